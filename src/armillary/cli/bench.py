"""`armillary bench`: how fast this machine computes the pose of a frame."""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.cell.cell import Cell
from armillary.cli.input import FILE, open_cell
from armillary.cli.options import FRAME, chosen_frame
from armillary.cli.verb import verb
from armillary.errors import KernelError, printable
from armillary.kernel.threads import default_threads
from armillary.kinematics.bound_kernel import AnyKernel
from armillary.model.display import plural
from armillary.scripts.mechanism import scripts_of
from armillary.scripts.trust import is_isolated

BATCH = 100_000
SHORTEST = 0.001  # [s] of one measurement; short ones fit between other work
DURATION = 0.25  # [s] for all measurements of one figure
FEWEST = 3  # measurements
WIDEST = 3.0  # [m or rad], where a joint has no limit

# What the new process runs; its processor time begins with Python.
FIRST_KERNEL = """
import pickle, sys, time
import armillary.kernel.compiler
from armillary.scripts import trust
cell, frame, given, isolated = pickle.load(sys.stdin.buffer)
for source in given:
    trust.consent(source)
for source in isolated:
    trust.isolate(source)
start = time.perf_counter()
cell.fk(frame)
print(time.perf_counter() - start, time.process_time())
"""


@verb(
    "bench",
    (
        *FILE,
        FRAME,
    ),
    description="Measure the first kernel of a frame's pose, without and with the "
    "cache on disk, one call, and a batch on one and on all threads.",
)
def run(options: argparse.Namespace) -> int:
    """Measure and print."""
    cell = open_cell(options)
    frame = chosen_frame(cell, options)
    fk = cell.fk(frame)
    print(
        f"pose of {printable(frame)}: {plural(len(cell.joint_names), 'joint')}, "
        f"{plural(fk.operation_count, 'operation')}, {fk.lanes} poses at once"
    )
    for what, figure in _figures(cell, frame, fk):
        print(f"  {what:<32}{figure}", flush=True)
    return 0


def _figures(cell: Cell, frame: str, fk: AnyKernel) -> Iterator[tuple[str, str]]:
    """Yield what was measured, and the figure."""
    cold, cached, whole = first_kernels(cell, frame)
    yield "first kernel, compiled", f"{1e3 * cold:9.1f} ms"
    yield "first kernel, from the cache", f"{1e3 * cached:9.1f} ms"
    yield "new process until then", f"{1e3 * whole:9.1f} ms of processor time"
    q = cell.home.q
    yield "one call", f"{1e6 * seconds(lambda: fk(q)):9.2f} us"
    Q = random_vectors(cell, BATCH)
    out = np.empty((BATCH, 4, 4))
    for threads in sorted({1, default_threads()}):
        row_seconds = seconds(lambda: fk(Q, out=out, threads=threads)) / BATCH  # noqa: B023
        what = f"each of {BATCH:,}, {plural(threads, 'thread')}"
        yield what, f"{1e9 * row_seconds:9.1f} ns   {1e-6 / row_seconds:.1f} million/s"


def first_kernels(cell: Cell, frame: str) -> tuple[float, float, float]:
    """Return how long the first kernel takes [s], compiled and from the cache.

    Both in new processes, where nothing is in memory; imports are not counted. Then the
    processor time of the second process, with its imports, until it has the kernel.
    Scripts run there as they may here.
    """
    scripts = {each.source: each.file for each in scripts_of(cell.workcell)}
    isolated = {each for each in scripts if is_isolated(each, scripts[each])}
    consented = scripts.keys() - isolated
    what = cell, frame, consented, isolated
    (cold, _), (cached, whole) = _printed_twice(FIRST_KERNEL, what)
    return cold, cached, whole


def first_seconds(script: str, what: Any) -> tuple[float, float]:
    """Return the seconds that a script prints, without and with a cache.

    It runs in new processes and reads `what` as a pickle.

    Raises:
        KernelError: It failed.
    """
    (cold,), (cached,) = _printed_twice(script, what)
    return cold, cached


def _printed_twice(script: str, what: Any) -> list[list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        return [_printed(script, what, folder) for _ in range(2)]


def _printed(script: str, what: Any, cache: str) -> list[float]:
    paths = [path for path in sys.path if path]
    environment = {
        **os.environ,
        "ARMILLARY_CACHE": cache,
        "PYTHONPATH": os.pathsep.join(paths),
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=pickle.dumps(what),
        env=environment,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise KernelError(f"The first call could not be measured: {said}")
    return [float(number) for number in done.stdout.split()]


def random_vectors(cell: Cell, count: int) -> npt.NDArray[np.float64]:
    """Return joint vectors within the limits, shape (count, n), always the same."""
    lower, upper = (np.clip(limit, -WIDEST, WIDEST) for limit in cell.limits)
    return np.random.default_rng(0).uniform(lower, upper, (count, len(lower)))


def seconds(call: Callable[[], Any]) -> float:
    """Return the least time of one call [s], over many measurements."""
    # Repeat the call until one measurement takes long enough for the clock; then the
    # least of many measurements, since other processes only add time.
    timer = timeit.Timer(call)
    count, took = 1, timer.timeit(1)
    while took < SHORTEST:
        count = max(2 * count, int(1.2 * count * SHORTEST / max(took, 1e-9)))
        took = timer.timeit(count)
    end = time.perf_counter() + DURATION
    times = [took]
    while len(times) < FEWEST or time.perf_counter() < end:
        times.append(timer.timeit(count))
    return min(times) / count
