"""`armillary shot`: a picture of the cell."""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt

from armillary.cli.input import FILE, open_cell
from armillary.cli.options import STATE, chosen_state, names_of
from armillary.cli.vectors import vector_of_text
from armillary.cli.verb import option, verb
from armillary.errors import quote
from armillary.view.kinds import Layer

DONE = 0
DESCRIPTION = """\
Draw a picture of the cell in a state, as a PNG file. This needs Chromium or Chrome,
which draws it without opening a window.
"""


def _size(text: str) -> tuple[int, int]:
    width, cross, height = text.partition("x")
    if not (cross and width.isdecimal() and height.isdecimal()):
        raise argparse.ArgumentTypeError(
            f"{quote(text)} is not a width and a height, such as 1280x960"
        )
    return int(width), int(height)


@verb(
    "shot",
    (
        *FILE,
        option("out OUT.png", "the file to write"),
        *STATE,
        option(
            "--size WxH",
            "width and height in pixels; else 1280x960",
            type=_size,
            default=(1280, 960),
        ),
        option(
            "--from X,Y,Z",
            "position of the camera in metres; else one that sees the whole cell",
            has_numbers=True,
            dest="look_from",
        ),
        option(
            "--look-at X,Y,Z",
            "point in the middle of the picture in metres; else that of the cell",
            has_numbers=True,
        ),
        option(
            "--show LAYERS",
            f"what is drawn, of: {', '.join(Layer)}; else visuals",
            type=names_of,
        ),
        option(
            "--timeout S",
            "how long the browser may take to connect, and then to draw; else 60 s",
            type=float,
            default=60.0,
        ),
    ),
    description=DESCRIPTION,
)
def run(options: argparse.Namespace) -> int:
    """Write the picture; return an exit code."""
    cell = open_cell(options)
    cell.shot(
        options.out,
        chosen_state(cell, options),
        size=options.size,
        look_from=_point("--from", options.look_from),
        look_at=_point("--look-at", options.look_at),
        show=options.show,
        timeout=options.timeout,
    )
    return DONE


def _point(option: str, text: str | None) -> npt.NDArray[np.float64] | None:
    return None if text is None else vector_of_text(text, option)
