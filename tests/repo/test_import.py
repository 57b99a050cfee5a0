"""Importing the package is quick, because its heavy parts load on first use."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import NamedTuple

import pytest

# Lines of Python that are executed, and modules beyond those of NumPy, both twice
# what they were when this was written.
MOST_LINES = 800_000
MOST_MODULES = 700
HEAVY = {"llvmlite", "scipy", "trimesh", "mujoco", "coal", "pinocchio", "jax"}

MEASURE = """
import json, sys
import numpy
before = set(sys.modules)
lines = 0

def in_frame(frame, event, arg):
    global lines
    lines += event == "line"
    return in_frame

sys.settrace(lambda frame, event, arg: in_frame)
import armillary
sys.settrace(None)
print(json.dumps([lines, sorted(set(sys.modules) - before)]))
"""


class Run(NamedTuple):
    """An import in a fresh process: lines that it executes, modules that it loads."""

    lines: int
    modules: list[str]

    @property
    def names(self) -> set[str]:
        """Return the packages that it loads."""
        return {name.split(".")[0] for name in self.modules}


@pytest.fixture(scope="module")
def run() -> Run:
    """Import the package in a fresh process, where NumPy is loaded already."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", MEASURE],
        check=True,
        capture_output=True,
        text=True,
    )
    return Run(*json.loads(done.stdout))


def test_import_is_little_work(run: Run):
    assert 0 < run.lines < MOST_LINES
    assert len(run.modules) < MOST_MODULES


def test_heavy_modules_stay_out(run: Run):
    assert "armillary" in run.names
    assert HEAVY & run.names == set()
