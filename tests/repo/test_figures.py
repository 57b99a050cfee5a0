"""The figures of the pages are those that the script draws."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from armillary.model.joints import JOINT_TYPES

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "figures"


def texts(path: Path) -> list[str]:
    """The texts of a picture, numbers that depend on poses among them."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text("utf-8"))


@pytest.mark.thorough
def test_figures_are_those_of_the_script(tmp_path: Path):
    pytest.importorskip("matplotlib")
    script = str(FIGURES / "draw.py")  # it compares what it draws with joints
    subprocess.run([sys.executable, "-W", "error", script, str(tmp_path)], check=True)
    drawn = {path.name: texts(path) for path in tmp_path.iterdir()}
    assert len(drawn) == 10
    assert all(drawn.values())
    assert {name: texts(FIGURES / name) for name in drawn} == drawn
    names = {text for found in drawn.values() for text in found}
    still = {"Fixed", "AngleCoordinate", "LengthCoordinate"}
    assert {*JOINT_TYPES} - still <= names
