"""The scripts of the page on vcPythonKinematics, verbatim, where it is at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples" / "scripts"
PAGE = ROOT.parent / "shared" / "seeds" / "002_70b93c150ef0c8e4.txt"
FIRST = "from vcPythonKinematics import *"


def published(name: str, folder: Path) -> Path:
    """Write a script of the page to a folder, as it is printed there.

    name: `cartesian` or `scara`, the first and the second on the page.
    """
    if not PAGE.exists():
        pytest.skip("the page on vcPythonKinematics is not beside this checkout")
    _, first, second = PAGE.read_text(encoding="utf-8").split(FIRST)
    body = {"cartesian": first.partition("Example. ")[0], "scara": second}[name]
    path = folder / f"{name}.py"
    path.write_text(FIRST + body, encoding="utf-8")
    return path


def component(name: str) -> Path:
    """The component that an example script and that of the page have in common."""
    return EXAMPLES / f"{name}.json"
