"""Importing the package is quick, because its heavy parts load on first use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

LIMIT = 0.25  # [s] of the processor's time, NumPy included
# A machine on which NumPy alone is slow may take as many times NumPy's own time.
TIMES_NUMPY = 5.0
HEAVY = {"llvmlite", "scipy", "trimesh", "mujoco", "coal", "pinocchio", "jax"}

MEASURE = """
import json, sys, time
start = time.process_time()
import numpy
middle = time.process_time()
import armillary
end = time.process_time()
names = sorted({name.split(".")[0] for name in sys.modules})
print(json.dumps([middle - start, end - start, names]))
"""


class Run(NamedTuple):
    """An import in a fresh process: NumPy's time and that of the whole [s], modules."""

    numpy: float
    whole: float
    names: set[str]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    bytecode = tmp_path_factory.mktemp("bytecode")
    return [measure(bytecode) for _ in range(4)]


def measure(bytecode: Path) -> Run:
    """Import the package in a fresh process."""
    # Bytecode is kept between the runs, as it is where the package is installed.
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(bytecode)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", MEASURE],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **kept},
    )
    numpy, whole, names = json.loads(done.stdout)
    return Run(numpy, whole, set(names))


def test_import_is_quick(runs: list[Run]):
    numpy = min(run.numpy for run in runs)
    whole = min(run.whole for run in runs)
    assert whole < max(LIMIT, TIMES_NUMPY * numpy), (
        f"{whole:.3f} s, NumPy {numpy:.3f} s"
    )


def test_heavy_modules_stay_out(runs: list[Run]):
    assert "armillary" in runs[0].names
    assert HEAVY & runs[0].names == set()
