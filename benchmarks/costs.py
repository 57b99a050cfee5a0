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
from armillary.kernel.host import host
from benchmarks.measure import Figure, fewer, within
from benchmarks.robots import ROBOTS, SHARE, panda, talos

ROUNDS = fewer(5)


def figures() -> Iterator[Figure]:
    """Yield the figures of starting costs."""
    yield from processes()
    host()
    arm_robot, humanoid = panda(), talos()
    tip = lambda cell: cell.fk("panda_link8", joints=arm_robot.joints)  # noqa: E731
    cold, cached = first_kernel(ROBOTS / "panda_description/urdf/panda.urdf", tip)
    yield within("Panda, FK kernel where LLVM is loaded, cold", cold, at_most=0.150)
    yield within("Panda, FK kernel where LLVM is loaded, cached", cached, at_most=0.015)

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
PEER = f"""
import pinocchio as pin
path = {str(ROBOTS / "panda_description/urdf/panda.urdf")!r}
model = pin.buildModelFromUrdf(path)
data, q = model.createData(), pin.neutral(model)
"""
PEER_CHECK = f"""
kind = pin.GeometryType.COLLISION
shapes = pin.buildGeomFromUrdf(model, path, kind, None, [{str(SHARE.parent)!r}])
for shape in shapes.geometryObjects:
    if hasattr(shape.geometry, "buildConvexHull"):
        shape.geometry.buildConvexHull(True, "Qt")
        shape.geometry = shape.geometry.convex
shapes.addAllCollisionPairs()
found = shapes.createData()
manager = pin.BroadPhaseManager_DynamicAABBTreeCollisionManager(model, shapes, found)
pin.computeCollisions(model, data, manager, q, True)
"""
ANSWERED = "\nimport time; print(time.process_time())"
# What processes do and a peer that does the like, and how many seconds of processor
# time they may take, from the start of Python to the answer.
PROCESSES = {
    "Python and NumPy alone": ("import numpy", None, 1.0),
    "import armillary.Cell, NumPy included; Pinocchio": (
        "from armillary import Cell",
        "import pinocchio",
        0.20,
    ),
    "load, first FK of a Panda; Pinocchio": (
        ROBOT + "cell.fk('panda_link8')(q)",
        PEER + "pin.framesForwardKinematics(model, data, q)",
        0.20,
    ),
    "load, first IK of a Panda": (ROBOT + "cell.ik('panda_link8')(target)", None, 0.25),
    "load, first check of a Panda in hulls; Pinocchio": (
        ROBOT + "cell.collision()(q)",
        PEER + PEER_CHECK,
        0.30,
    ),
    "load, first inverse dynamics of a Panda; Pinocchio": (
        ROBOT + "cell.inverse_dynamics()(q, q, q)",
        PEER + "pin.rnea(model, data, q, q[:model.nv], q[:model.nv])",
        0.25,
    ),
    "load, first step of a controller of a Panda": (
        ROBOT + "cell.controller(arm.tasks.Frame('panda_link8'))(q, 0.0 * q, target)",
        None,
        0.30,
    ),
}


def processes() -> Iterator[Figure]:
    """Yield the processor time of processes that find what others have made."""
    with tempfile.TemporaryDirectory() as folder:
        # Bytecode as installing makes it, and a cache that the first run fills.
        quiet = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": folder}
        place = {**os.environ, **quiet, "ARMILLARY_CACHE": f"{folder}/cache"}
        for option in ("--version", "--help"):
            took = process_time(["-m", "armillary", option], place)
            yield within(f"armillary {option}", took, at_most=0.1)
        for what, (code, peer, most) in PROCESSES.items():
            title, arguments = f"new process: {what}", ["-W", "ignore", "-c"]
            took = process_time([*arguments, code + ANSWERED], place)
            other = process_time([*arguments, peer + ANSWERED], place) if peer else None
            yield within(title, took, at_most=most, peer=other)
            if "first FK" in what:
                took = process_time([*arguments, code], place)
                other = process_time([*arguments, peer or ""], place)
                title = "the same, with the end of the process"
                yield within(title, took, at_most=most, peer=other)
        # The same with an empty cache, where everything is compiled.
        with tempfile.TemporaryDirectory() as empty:
            fresh = {**place, "ARMILLARY_CACHE": empty, "ARMILLARY_BACKGROUND": "on"}
            for what in list(PROCESSES)[2:]:
                (code, peer, most) = PROCESSES[what]
                command = ["-W", "ignore", "-c", code + ANSWERED]
                took = process_time(command, fresh, rounds=0)
                name = f"new process, nothing cached: {what.partition(';')[0]}"
                yield within(name, took, at_most=10 * most)


def process_time(
    arguments: list[str], environment: dict[str, str], rounds: int = ROUNDS
) -> float:
    """Return the least processor time of runs after the first, or of that alone [s].

    Of one that prints it, what it prints; of any other, that of the whole process.
    """
    times: list[float] = []
    for _ in range(1 + rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            check=True,
            env=environment,
        )
        if arguments[-1].endswith(ANSWERED):
            times.append(float(done.stdout))
            continue
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        user = after.ru_utime - before.ru_utime
        times.append(user + after.ru_stime - before.ru_stime)
    return min(times[1:] or times)


def first_kernel(
    path: os.PathLike[str], ask: Callable[[arm.Cell], object]
) -> tuple[float, float]:
    """Return the time of a cell's first kernel, cold and from the cache [s].

    The process has the compiler in memory; `processes` begins with the process.
    """
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
