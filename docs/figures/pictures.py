"""Draw the pictures of the example cells, in docs/figures/cells.

Run this after a change of what is drawn: `python docs/figures/pictures.py [NAME ...]`.
It needs the extra `view`, and Chromium or Chrome.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from PIL import Image

import armillary as arm

FOLDER = Path(__file__).parent / "cells"
SIZE = (640, 480)
MOST_BYTES = 60_000
HOW: dict[str, dict[str, Any]] = {
    "oval_track_cell": {
        "show": ["visuals", "joints"],
        "look_from": (2.6, -4.4, 2.5),
        "look_at": (0.5, -0.7, 0.7),
    },
    "ur5e_on_oval": {"show": ["visuals", "joints"]},
}
"""What differs from the picture that `cell.shot(path)` makes."""


def draw(name: str) -> None:
    """Draw one example cell at home, in a palette of colours."""
    path = FOLDER / f"{name}.png"
    arm.example(name).shot(path, size=SIZE, **HOW.get(name, {}))
    with Image.open(path) as image:
        small = image.quantize(64, Image.Quantize.MAXCOVERAGE)
    small.save(path, optimize=True)
    written = path.stat().st_size
    assert written < MOST_BYTES, f"{path} has {written} bytes"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in sys.argv[1:] or arm.example_names():
        draw(each)
