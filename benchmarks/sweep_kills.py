"""Sweeps that are killed at random moments and continued, beside undisturbed ones."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import armillary as arm

KILLS = 50
ROWS = 3_000_000
CHUNK = 50_000
SEED = 7
PROGRAM = """
import sys
from benchmarks.sweep_kills import sweep
print("ready", flush=True)
sweep(sys.argv[1], sys.argv[2])
print("done", flush=True)
"""


def report() -> Iterator[str]:
    """Yield how many sweeps were killed, and how many ended as undisturbed ones did."""
    rng = np.random.default_rng(SEED)
    with tempfile.TemporaryDirectory() as folder:
        for executor, kind in (
            ("threads", "out"),
            ("processes", "out"),
            ("threads", "out.npz"),
        ):
            yield line(Path(folder, executor), executor, kind, rng)


def line(folder: Path, executor: str, kind: str, rng: np.random.Generator) -> str:
    """Return what came of one kind of sweep."""
    folder = folder.with_name(f"{folder.name} {kind}")
    folder.mkdir()
    whole = folder / f"whole {kind}"
    start = time.perf_counter()
    run(whole, executor, limit=None)
    took, expected = time.perf_counter() - start, contents(whole)
    equal = killed = partial = 0
    for number in range(KILLS):
        path = folder / f"{number} {kind}"
        killed += run(path, executor, limit=rng.uniform(0.0, took))
        done = sweep(path, executor)
        partial += 0 < done.computed < ROWS
        equal += contents(path) == expected
    return (
        f"{executor}, {kind}: of {KILLS} killed at random within {took:.1f} s, {killed} "
        f"had not ended, {partial} continued from some chunks, {equal} are equal to the "
        "undisturbed one, byte for byte"
    )
