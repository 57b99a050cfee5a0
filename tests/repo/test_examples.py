"""Every example runs, and ends well only if its own check holds."""

from __future__ import annotations

import re
import runpy
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from armillary.cli import bench

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def needs(text: str) -> list[str]:
    """The distributions that an example's first line, ``# needs: extra``, asks for."""
    found = re.match(r"# needs: ([\w-]+(?:, [\w-]+)*)\n", text)
    names = found[1].split(", ") if found else []
    return [each for name in names for each in requirements(name)]


def requirements(extra: str) -> list[str]:
    """The distributions of an extra of pyproject.toml, those it includes too."""
    extras = PROJECT["optional-dependencies"]
    assert extra in extras, (
        f"pyproject.toml has no extra {extra!r}: {', '.join(extras)}"
    )
    found: list[str] = []
    for text in extras[extra]:
        requirement = Requirement(text)
        if requirement.name == PROJECT["name"]:
            found += [
                each for name in requirement.extras for each in requirements(name)
            ]
        else:
            found.append(requirement.name)
    return found


def installed(name: str) -> bool:
    """Whether a distribution is in this environment."""
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def test_there_are_examples():
    assert "demo.py" in [path.name for path in EXAMPLES]


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("optimised")
@pytest.mark.usefixtures("capsys")  # no terminal, in which the demo would show a cell
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    absent = [name for name in needs(path.read_text("utf-8")) if not installed(name)]
    if absent:
        pytest.skip(f"needs {', '.join(absent)}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path)])
    monkeypatch.setattr(bench, "DURATION", 0.0)  # nobody reads what it prints of time
    monkeypatch.syspath_prepend(path.parent)
    # In this process, whose imports and kernels many examples share.
    runpy.run_path(str(path), run_name="__main__")


def test_needs_are_read():
    assert needs("import numpy\n# needs: mesh\n") == []
    assert needs("# needs: xacro\n") == ["xacro"]
    assert set(needs("# needs: bench\n")) > {"pin", "jax"}
    with pytest.raises(AssertionError, match="no extra 'meshes'"):
        needs("# needs: meshes\n")
