"""What it costs to begin: importing, compiling, memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

import numpy as np

import armillary as arm
from armillary.kernel.jit import host
from benchmarks.measure import Figure, within
from benchmarks.robots import ROBOTS, panda, talos

ROUNDS = 5


def figures() -> Iterator[Figure]:
    """Yield the figures of starting costs."""
    yield from processes()
    host()
    arm_robot, humanoid = panda(), talos()
    tip = lambda cell: cell.fk("panda_link8", joints=arm_robot.joints)  # noqa: E731
    cold, cached = first_kernel(ROBOTS / "panda_description/urdf/panda.urdf", tip)
    yield within("Panda, first FK kernel, cold", cold, at_most=0.150)
    yield within("Panda, first FK kernel, cached", cached, at_most=0.015)

    def everything(cell: arm.Cell) -> None:
        cell.fk(list(cell.manipulators[0].index), joints=humanoid.joints)
        cell.jacobian(humanoid.tip, joints=humanoid.joints)

    path = ROBOTS / "talos_data/robots/talos_reduced.urdf"
    cold, cached = first_kernel(path, everything)
    yield within("Talos, all poses + Jacobian, cold", cold, at_most=2.0)
    yield within("Talos, all poses + Jacobian, cached", cached, at_most=2.0)
    grown = memory_of_a_million()
    yield Figure(
        "memory of a million poses beyond in and out",
        f"{grown:.1f} MB",
        "",
        "< 50 MB",
        f"{grown:.1f} MB",
        grown < 50.0,
    )


ROBOT = f"""
import numpy as np
import armillary as arm
cell = arm.load({str(ROBOTS / "panda_description/urdf/panda.urdf")!r})
q = cell.home.q
target = cell.pose("panda_link8", cell.home)
"""
# What whole processes do, and how many seconds of processor time they may take, from
# the start of Python on.
PROCESSES = {
    "Python and NumPy alone": ("import numpy", 1.0),
    "import armillary.Cell, NumPy included": ("from armillary import Cell", 0.20),
    "first FK of a Panda": (ROBOT + "cell.fk('panda_link8')(q)", 0.20),
    "first IK of a Panda": (ROBOT + "cell.ik('panda_link8')(target)", 0.25),
    "first check of a Panda": (ROBOT + "cell.collision()(q)", 0.30),
    "first step of a controller of a Panda": (
        ROBOT + "cell.controller(arm.tasks.Frame('panda_link8'))(q, 0.0 * q, target)",
        0.30,
    ),
}


def processes() -> Iterator[Figure]:
    """Yield the processor time of whole processes that find what others have made."""
    with tempfile.TemporaryDirectory() as folder:
        # Bytecode as installing makes it, and a cache that the first run fills.
        quiet = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder}
        place = {**os.environ, **quiet, "ARMILLARY_CACHE": f"{folder}/cache"}
        for option in ("--version", "--help"):
            took = process_time(["-m", "armillary", option], place)
            yield within(f"armillary {option}", took, at_most=0.1)
        for what, (code, most) in PROCESSES.items():
            took = process_time(["-W", "ignore", "-c", code], place)
            yield within(what, took, at_most=most)


def process_time(arguments: list[str], environment: dict[str, str]) -> float:
    """Return the least processor time of several runs, the first one left out [s]."""
    times: list[float] = []
    for _ in range(1 + 2 * ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, *arguments],
            stdout=subprocess.DEVNULL,
            check=True,
            env=environment,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        user = after.ru_utime - before.ru_utime
        times.append(user + after.ru_stime - before.ru_stime)
    return min(times[1:])


def first_kernel(
    path: os.PathLike[str], ask: Callable[[arm.Cell], object]
) -> tuple[float, float]:
    """Return the time of a cell's first kernel, cold and from the cache [s]."""
    from armillary.kernel import kernel
    from armillary.model import motion

    before = os.environ.get("ARMILLARY_CACHE")
    cold, cached = [], []
    try:
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory() as folder:
                os.environ["ARMILLARY_CACHE"] = folder
                for times in (cold, cached):
                    cell = arm.load(path)
                    motion._motion_of.cache_clear()
                    kernel._shared.cache_clear()
                    start = time.perf_counter()
                    ask(cell)
                    times.append(time.perf_counter() - start)
    finally:
        os.environ.pop("ARMILLARY_CACHE")
        if before is not None:
            os.environ["ARMILLARY_CACHE"] = before
    return min(cold), min(cached)


def memory_of_a_million() -> float:
    """Return by how much a million poses raise the peak beyond their arrays [MB]."""
    robot = panda()
    fk = robot.cell.fk(robot.tip, joints=robot.joints)
    Q = robot.random_q(1_000_000)
    X = np.ones((1_000_000, 4, 4))  # every page is there before
    fk(Q[:100_000], out=X[:100_000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fk(Q, out=X)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (after - before) / 1024
