"""A name of a class means one thing in the whole package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "armillary"

PUBLIC = {
    "Arc",
    "Call",
    "Coupling",
    "Drive",
    "Frame",
    "Poses",
    "Positions",
    "Posture",
    "Program",
    "Samples",
    "Voxels",
}
"""Names in public modules that users tell apart by the module."""


def test_names_of_classes_are_unique():
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path.relative_to(PACKAGE).as_posix())
    twice = {name: where for name, where in places.items() if len(where) > 1}
    assert {*twice} <= PUBLIC, twice
