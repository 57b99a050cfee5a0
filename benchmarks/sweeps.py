"""Sweeps beside the loops, batches and processes that they replace; two workers."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import armillary as arm
from armillary.cli.bench import first_seconds
from armillary.sweeps import Samples
from benchmarks.measure import Figure, medians, within

WORKERS = 2
ROWS = 100_000_000  # of positions
TARGETS = 1_000_000
CHUNK = 1_000_000
BLOCK = 1 << 15  # rows of one call in the loop; the fastest of 2^11 to 2^16
CLUSTER_ROWS = 20_000_000

# What new processes run.
MEMORY = """
import sys
from benchmarks.sweeps import peak_memory
print(peak_memory(sys.argv[1]))
"""
FIRST_CHUNK = """
import pickle, sys, tempfile, time
start = time.perf_counter()
import armillary as arm
kernel, samples = pickle.load(sys.stdin.buffer)
with tempfile.TemporaryDirectory() as folder:
    arm.sweep(kernel, samples, folder + "/out", chunk=samples.count)
    print(time.perf_counter() - start)
"""


def figures() -> Iterator[Figure]:
    """Yield the figures of sweeps."""
    yield from loop_figures()
    yield memory_figure()
    yield from batch_figures()
    yield from cluster_figures()
    yield from first_chunk_figures()


def positions() -> tuple[Any, Samples]:
    """Return the kernel of positions in float32 and the samples that it is asked of."""
    cell = arm.example("irb2400")
    kernel = cell.fk("tool0", form="quaternion", dtype=np.float32)
    return kernel, cell.samples(ROWS)


# beside a loop


def loop_figures() -> Iterator[Figure]:
    """Yield the ratios to loops that call the kernel with `out=`."""
    kernel, samples = positions()
    with ThreadPoolExecutor(WORKERS) as pool, emptied() as (folder, empty):
        stored, made, bare = medians(
            lambda: arm.sweep(
                kernel, samples, folder / "out", executor=pool, chunk=CHUNK
            ),
            lambda: looped(pool, kernel, samples, folder),
            lambda: looped(pool, kernel, samples, None),
            lambda: called(pool, kernel, samples),
            turns=3,
            before=empty,
        )
    what = f"{ROWS:.0e} FK positions (7 float32) to files, {WORKERS} threads, beside"
    yield stored.at_most(f"{what} a loop that makes rows, calls and writes", 1.15)
    yield made.at_most(f"{what} a loop that makes rows and calls", 1.15)
    yield bare.at_most(f"{what} calls alone, of the same rows again and again", 1.15)


@contextmanager
def emptied() -> Generator[tuple[Path, Callable[[], None]]]:
    """Give a new folder, and what empties it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def empty() -> None:
            shutil.rmtree(folder)
            folder.mkdir()

        yield folder, empty


def looped(pool: Executor, kernel: Any, samples: Samples, folder: Path | None) -> None:
    """Compute rows in blocks on threads, with no more than that takes."""

    def chunk(start: int) -> None:
        out = np.empty((BLOCK, 7), np.float32)
        end = min(samples.count, start + CHUNK)
        file = None if folder is None else (folder / str(start)).open("wb")
        for first in range(start, end, BLOCK):
            rows = samples.rows(first, min(end, first + BLOCK))
            kernel(rows, out=out[: len(rows)], threads=1)
            if file is not None:
                file.write(out[: len(rows)].data)
        if file is not None:
            file.close()

    for _ in pool.map(chunk, range(0, samples.count, CHUNK)):
        pass


def called(pool: Executor, kernel: Any, samples: Samples) -> None:
    """Call the kernel as often as a sweep of samples does, with rows in the cache."""
    rows = samples.rows(0, BLOCK).astype(np.float32)

    def chunk(start: int) -> None:
        out = np.empty((BLOCK, 7), np.float32)
        end = min(samples.count, start + CHUNK)
        for first in range(start, end, BLOCK):
            count = min(end, first + BLOCK) - first
            kernel(rows[:count], out=out[:count], threads=1)

    for _ in pool.map(chunk, range(0, samples.count, CHUNK)):
        pass


def memory_figure() -> Figure:
    """Return the greatest memory of a new process that sweeps."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, f"{folder}/out"],
            capture_output=True,
            check=True,
            text=True,
        )
    size = float(done.stdout)
    what = f"{ROWS:.0e} FK positions (7 float32) to files, greatest memory"
    return Figure(what, f"{size:.0f} MB", "", "< 1000 MB", f"{size:.0f} MB", size < 1e3)


def peak_memory(path: str) -> float:
    """Return the greatest memory of this process, having swept [MB]; of Linux."""
    kernel, samples = positions()
    with ThreadPoolExecutor(WORKERS) as pool:
        arm.sweep(kernel, samples, path, executor=pool, chunk=CHUNK)
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return 1024e-6 * float(peak)


# beside a batch


def batch_figures() -> Iterator[Figure]:
    """Yield the ratios to a batch of inverse kinematics, in memory."""
    cell = arm.example("irb2400")
    targets = cell.fk("tool0")(cell.samples(TARGETS).rows(0, TARGETS))
    for method, turns in (("closed", 15), ("numeric", 5)):
        ik = partial(cell.ik("tool0"), method=method)
        with ThreadPoolExecutor(WORKERS) as pool:
            bare, arrays = medians(
                lambda ik=ik, pool=pool: arm.sweep(ik, targets, executor=pool),
                lambda ik=ik: ik(targets, threads=WORKERS),
                lambda ik=ik: arrays_of(ik(targets, threads=WORKERS)),
                turns=turns,
            )
        what = f"IK {method}, {TARGETS:.0e} targets, {WORKERS} threads"
        yield bare.at_most(f"{what}, beside the batch", 1.05)
        yield arrays.at_most(f"{what}, beside the batch and its four arrays", 1.05)


def arrays_of(solution: Any) -> tuple[Any, ...]:
    """Return the arrays of a sweep, some of which a batch makes when asked."""
    return solution.q, solution.success, solution.residual, solution.reason


# on a cluster


def cluster_figures() -> Iterator[Figure]:
    """Yield the ratio of a Dask cluster to processes, which have worked before."""
    if not find_spec("distributed"):
        return
    kernel, samples = positions()
    samples = replace(samples, total=CLUSTER_ROWS)
    with (
        cluster() as client,
        ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool,
        emptied() as (folder, empty),
    ):

        def swept(executor: Executor) -> None:
            out = folder / "out"
            arm.sweep(kernel, samples, out, executor=executor, chunk=CHUNK)

        (turn,) = medians(
            lambda: swept(client.get_executor()),
            lambda: swept(pool),
            turns=3,
            before=empty,
        )
    what = f"{CLUSTER_ROWS:.0e} FK positions, chunks of {CHUNK:.0e}"
    yield turn.at_most(f"{what}, Dask, beside {WORKERS} processes", 1.3)


@contextmanager
def cluster(workers: int = WORKERS) -> Generator[Any]:
    """Give the client of a Dask cluster on this machine, which nobody else reaches."""
    distributed: Any = import_module("distributed")
    with (
        warnings.catch_warnings(action="ignore"),
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as local,
        distributed.Client(local) as client,
    ):
        yield client


# the first chunk


def first_chunk_figures() -> Iterator[Figure]:
    """Yield how long the first chunk takes where nothing is imported or compiled."""
    kernel, samples = positions()
    samples = replace(samples, total=CHUNK)
    what = f"first chunk of {CHUNK:.0e} FK positions"
    cold, cached = first_seconds(FIRST_CHUNK, (kernel, samples))
    yield within(f"{what}, new program, compiled", cold, at_most=2.0)
    yield within(f"{what}, new program, from the cache", cached, at_most=2.0)
    yield within(f"{what}, new process", _new_process(kernel, samples), at_most=2.0)
    if find_spec("distributed"):
        took = _new_dask_worker(kernel, samples)
        yield within(f"{what}, new Dask worker", took, at_most=2.0)


def _new_process(kernel: Any, samples: Samples) -> float:
    """Return the time of a chunk with the start of its process [s], median of 5."""

    def once() -> float:
        with (
            emptied() as (folder, _),
            ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        ):
            return _first_chunk(kernel, samples, folder, pool)

    return median(once() for _ in range(5))


def _new_dask_worker(kernel: Any, samples: Samples) -> float:
    """Return the time of a chunk on a worker that has just connected [s], median of 3.

    The start of the worker itself is Dask's.
    """

    def once() -> float:
        with emptied() as (folder, _), cluster(workers=1) as client:
            return _first_chunk(kernel, samples, folder, client.get_executor())

    return median(once() for _ in range(3))


def _first_chunk(
    kernel: Any, samples: Samples, folder: Path, executor: Executor
) -> float:
    start = time.perf_counter()
    arm.sweep(kernel, samples, folder / "out", executor=executor, chunk=samples.count)
    return time.perf_counter() - start
