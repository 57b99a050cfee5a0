"""Importing the package is quick, because its heavy parts load on first use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

LIMIT = 0.25  # [s], NumPy included
# A machine on which NumPy alone is slow may take as many times NumPy's own time.
TIMES_NUMPY = 3.0
HEAVY = {"llvmlite", "scipy", "trimesh", "mujoco", "coal", "pinocchio", "jax"}

MEASURE = """
import json, sys, time
start = time.perf_counter()
import numpy
middle = time.perf_counter()
import armillary
end = time.perf_counter()
names = sorted({name.split(".")[0] for name in sys.modules})
print(json.dumps([middle - start, end - start, names]))
"""


def measure(bytecode: Path) -> tuple[float, float, set[str]]:
    """Time NumPy's import and the whole in a fresh process [s], with its modules."""
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
    return numpy, whole, set(names)


def test_import_is_quick(tmp_path: Path):
    runs = [measure(tmp_path) for _ in range(6)]
    numpy = min(run[0] for run in runs)
    whole = min(run[1] for run in runs)
    assert whole < max(LIMIT, TIMES_NUMPY * numpy), (
        f"{whole:.3f} s, NumPy {numpy:.3f} s"
    )


def test_heavy_modules_stay_out(tmp_path: Path):
    _, _, names = measure(tmp_path)
    assert "armillary" in names
    assert HEAVY & names == set()
