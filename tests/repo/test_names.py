"""A name of a class means one thing in the whole package."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from itertools import chain
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "armillary"
CLASS = re.compile(r"^[ \t]*class (\w+)", re.MULTILINE)

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


def places(package: Path) -> dict[str, list[str]]:
    """Where each name of a class stands that two classes or more have."""
    texts = {path: path.read_text("utf-8") for path in sorted(package.rglob("*.py"))}
    lines = Counter(chain(*map(CLASS.findall, texts.values())))
    found: dict[str, list[str]] = defaultdict(list)
    for path, text in texts.items():
        # Lines of docstrings look the same: what may be there twice is parsed.
        if any(lines[name] > 1 for name in CLASS.findall(text)):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(path.relative_to(package).as_posix())
    return {name: where for name, where in found.items() if len(where) > 1}


def test_names_of_classes_are_unique():
    assert places(PACKAGE).keys() <= PUBLIC, places(PACKAGE)


def test_names_that_stand_twice_are_found(tmp_path: Path):
    texts = {
        "a": "class A:\n    class B: ...\n",
        "b": 'class B: ...\n"""\nclass A:\n"""\n',
        "c": "class C:\n    class D: ...\n\nclass E:\n    class D: ...\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    assert places(tmp_path) == {"B": ["a.py", "b.py"], "D": ["c.py", "c.py"]}
