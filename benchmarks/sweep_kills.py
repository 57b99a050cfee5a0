"""Sweeps that are killed at random moments and continued, beside undisturbed ones."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np

import armillary as arm
from benchmarks.measure import fewer

KILLS = fewer(50)
ROWS, CHUNK = 2_000_000, 20_000
SEED = 7
LATEST = 0.8  # of the time that an undisturbed sweep takes
KINDS = (  # who computes what is killed, and where results go
    ("threads", "out"),
    ("processes", "out"),
    ("threads", "out.npz"),
)
PROGRAM = """
import sys
from benchmarks.sweep_kills import swept
swept(*sys.argv[1:])
"""


def report() -> Iterator[str]:
    """Yield what came of each kind of sweep, in `KILLS` kills together."""
    rng = np.random.default_rng(SEED)
    share = -(-KILLS // len(KINDS))
    for executor, name in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            yield kills(Path(folder), executor, name, share, rng)


def kills(
    folder: Path, executor: str, name: str, count: int, rng: np.random.Generator
) -> str:
    """Kill sweeps, continue each on threads, and say what came of them."""
    took = killed_after(folder / name, executor, None)
    expected = contents(folder / name)
    partly = equal = 0
    for number in range(count):
        path = folder / str(number) / name
        path.parent.mkdir()
        killed_after(path, executor, rng.uniform(0.0, LATEST * took))
        partly += 0 < swept(str(path), "threads") < ROWS
        equal += contents(path) == expected
        shutil.rmtree(path.parent)
    return (
        f"{executor}, {name}: {count} times kill -9 within {took:.1f} s of the first "
        f"chunk, {partly} of them before the last: after a second call {equal} are "
        "equal to the undisturbed one, byte for byte"
    )


def swept(path: str, executor: str) -> int:
    """Sweep to a group or into a reduction; return how many rows that computed."""
    cell = arm.example("irb2400")
    pose = cell.fk("tool0", dtype=np.float32)
    samples = cell.samples(ROWS)
    if not path.endswith(".npz"):
        asked = {"pose": pose, "q": arm.sweeps.rows}
        return arm.sweep(asked, samples, path, executor=executor, chunk=CHUNK).computed
    import_module("armillary.sweeps.sweep").INTERVAL = 0.0  # a file after every chunk  # pyright: ignore
    voxels = arm.sweeps.Voxels(lower=(-2, -2, -1), upper=(2, 2, 3), size=0.1)
    found = arm.sweep(
        pose, samples, path, reduce=voxels, executor=executor, chunk=CHUNK
    )
    assert found["count"].sum() == ROWS
    return found.computed


def killed_after(path: Path, executor: str, seconds: float | None) -> float:
    """Sweep in a new process, and kill it and its workers.

    Args:
        path: Where results go.
        executor: Who computes.
        seconds: From the first chunk on; None to let it end.

    Returns:
        The time from the first chunk to the end [s].
    """
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path), executor], start_new_session=True
    )
    while not (path.is_file() or list(path.glob("*/c.*"))):
        assert process.poll() is None
        time.sleep(0.001)
    start = time.perf_counter()
    if seconds is not None:
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == 0 or seconds is not None
    return time.perf_counter() - start


def contents(path: Path) -> dict[str, bytes]:
    """Return the bytes of every file of a group, or of all arrays of a file."""
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.is_file())
        return {str(each.relative_to(path)): each.read_bytes() for each in files}
    with np.load(path) as file:  # the archive has the time of its writing
        return {name: file[name].tobytes() for name in file.files}
