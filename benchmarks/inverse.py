"""Numeric inverse kinematics beside the Robotics Toolbox's C++ `ik_LM`."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import armillary as arm
from armillary.cli.bench import first_seconds
from armillary.ik.reason import Reason
from benchmarks.arms import random_arms
from benchmarks.linkages import delta
from benchmarks.measure import Figure, beside, best_times, faster, within
from benchmarks.robots import Robot, panda, ur5

COUNT = 10_000
FEW = 100  # of them for the peer
FREE_COUNT = 2_000  # targets where collisions are avoided
TURNS = 30
SQUARES = 1e-12  # of 1e-6 m and of 1e-6 rad
ONE_LAP = 2.0 * (3.0 + np.pi)  # of the oval track [m]

# What a new process runs; its processor time begins with Python.
FIRST_SOLVER = """
import pickle, sys, time
cell, frame, joints, target = pickle.load(sys.stdin.buffer)
assert cell.ik(frame, joints=joints)(target).success
print(time.process_time())
"""


def figures() -> Iterator[Figure]:
    """Yield the figures of numeric inverse kinematics, one thread."""
    yield from batch_figures("Panda", panda(), at_most=1.2e-6)
    yield from batch_figures("UR5", ur5(), at_most=0.65e-6)
    yield from single_figures("Panda", panda())
    yield from seeded_figures("Panda", panda())
    yield from failing_figures("Panda", panda())
    yield path_figure()
    yield from loop_figures()
    yield from avoiding_figures()
    yield from compile_figures("Panda", panda())
    yield arms_figure()


def batch_figures(name: str, robot: Robot, *, at_most: float) -> Iterator[Figure]:
    """Yield the share of targets solved, the mean time, and the ratio to the peer."""
    targets = robot.cell.fk(robot.tip, joints=robot.joints)(robot.random_q(COUNT))
    ik = robot.cell.ik(robot.tip, joints=robot.joints)
    solve = functools.partial(ik, targets, method="numeric", threads=1)
    yield solved(f"{name} IK numeric, of {COUNT}", solve().success, at_least=1.0)

    (ours,) = best_times(solve, turns=TURNS, clock=time.process_time)
    yield within(f"{name} IK numeric, batch", ours / COUNT, at_most=at_most)
    what = f"{name} IK numeric, RTB ik_LM"

    def beside_toolbox() -> Iterator[Figure]:
        peer = fastest_peer(robot, targets[:FEW])
        ours, theirs = best_times(
            solve,
            lambda: [peer(X) for X in targets[:FEW]],
            turns=TURNS,
            clock=time.process_time,
        )
        yield faster(what, ours / COUNT, theirs / FEW, at_least=100)

    yield from beside("roboticstoolbox", what, beside_toolbox)


def single_figures(name: str, robot: Robot) -> Iterator[Figure]:
    """Yield the median and the 99th percentile of calls with one new target each.

    Each target is solved once: a second call of the same one would find its memory and
    branches warm. What others on the machine take away counts in no processor time.
    """
    targets = robot.cell.fk(robot.tip, joints=robot.joints)(robot.random_q(COUNT, 1))
    ik = robot.cell.ik(robot.tip, joints=robot.joints)
    ik(targets[0])
    middle, late = np.percentile(first_tries(ik, targets[1:]), [50, 99]).tolist()
    yield within(f"{name} IK, one call, median", middle, at_most=8e-6)
    yield within(f"{name} IK, one call, 99 of 100", late, at_most=50e-6)


def seeded_figures(name: str, robot: Robot) -> Iterator[Figure]:
    """Yield the same where each call has a near position, which is far away."""
    count = COUNT // 5
    targets = robot.cell.fk(robot.tip, joints=robot.joints)(robot.random_q(count, 1))
    ik = robot.cell.ik(robot.tip, joints=robot.joints)
    rows = list(zip(targets, robot.random_q(count, 2), strict=True))
    call = lambda row: ik(row[0], near=row[1])  # noqa: E731
    call(rows[0])
    middle, late = np.percentile(first_tries(call, rows[1:]), [50, 99]).tolist()
    yield within(f"{name} IK, near= far away, median", middle, at_most=50e-6)
    yield within(f"{name} IK, near= far away, 99 of 100", late, at_most=500e-6)


def first_tries(call: Callable[[Any], object], rows: Iterable[Any]) -> list[float]:
    """Return the processor time of one call with each row [s]."""
    took: list[float] = []
    for row in rows:
        start = time.thread_time()
        call(row)
        took.append(time.thread_time() - start)
    return took


def failing_figures(name: str, robot: Robot) -> Iterator[Figure]:
    """Yield the medians of calls with one target that has no answer."""
    targets = robot.cell.fk(robot.tip, joints=robot.joints)(robot.random_q(200, 2))
    ik = robot.cell.ik(robot.tip, joints=robot.joints)
    shoulder = np.array([0.0, 0.0, 0.333])
    away = targets[:, :3, 3] - shoulder
    away /= np.linalg.norm(away, axis=1)[:, None]
    rows = (
        ("out of reach", 3.0, Reason.OUT_OF_REACH, 100e-6),
        ("not found", 0.9, Reason.NOT_FOUND, 3e-3),
    )
    for what, distance, reason, at_most in rows:
        moved = targets.copy()
        moved[:, :3, 3] = shoulder + distance * away
        chosen = moved[ik(moved).reason == reason]
        ik(chosen[0])
        middle = float(np.median(first_tries(ik, chosen)))
        yield within(f"{name} IK, one call, {what}, median", middle, at_most=at_most)


def path_figure() -> Figure:
    """Return the figure of a path around the oval track, with arm and track."""
    cell = arm.example("ur5e_on_oval")
    s = np.linspace(0.0, ONE_LAP, COUNT)
    offsets = np.tile(np.diag([-1.0, 1.0, -1.0, 1.0]), (COUNT, 1, 1))
    offsets[:, 1, 3] = -0.45  # outside of the track, pointing down
    offsets[:, 2, 3] = 0.3 + 0.1 * np.sin(3.0 * s)
    path = cell.fk("plate", joints=["track/cart"])(s[:, None]) @ offsets
    ik = cell.ik("tool0")
    start = ik(path[0], near=cell.home.q).q
    way = ik.path(path, start=start)
    assert way.answer.success.all(), way.answer.summary()
    assert not way.jumps.size, way.jumps
    (took,) = best_times(lambda: ik.path(path, start=start))
    return within(f"UR5e on the oval track, path of {COUNT}", took, at_most=30e-3)


def loop_figures() -> Iterator[Figure]:
    """Yield the share of targets of a delta solved, and the mean time."""
    cell = delta()
    targets = cell.fk("platform")(
        np.random.default_rng(0).uniform(-0.6, 1.2, (COUNT, 3))
    )
    ik = cell.ik("platform", rotation="")
    for method, at_most in (("closed", 150e-9), ("numeric", 300e-9)):
        solve = functools.partial(ik, targets, method=method, threads=1)
        name = f"Delta IK {method}"
        yield solved(f"{name}, of {COUNT}", solve().success, at_least=1.0)
        (took,) = best_times(solve, turns=TURNS)
        yield within(f"{name}, batch", took / COUNT, at_most=at_most)


def avoiding_figures() -> Iterator[Figure]:
    """Yield the mean times of answers free of collision, beside an obstacle.

    Targets are drawn as anywhere: links touch at many, and some have no free answer.
    """
    post = arm.Link(name="post", collisions=[arm.shapes.Box(size=(0.3, 0.3, 2.0))])
    part = arm.Manipulator(name="post", links=[post])
    there = arm.Pose.translation(0.9, 0.5, 0.5)
    for name, least, at_most in (
        ("irb2400", 0.7, 5e-6),
        ("ur10_on_rail", 0.7, 0.2e-3),
    ):
        cell = arm.example(name).add(part, pose=there)
        lower, upper = np.clip(cell.limits, -3.0, 3.0)
        Q = np.random.default_rng(0).uniform(lower, upper, (FREE_COUNT, len(lower)))
        targets = cell.fk("tool0")(Q)
        ik = cell.ik("tool0", avoid=cell.collision())
        solve = functools.partial(ik, targets)
        yield solved(f"{name} IK, free answers", solve().success, at_least=least)
        (took,) = best_times(solve, turns=3)
        yield within(f"{name} IK, free answers", took / FREE_COUNT, at_most=at_most)


def compile_figures(name: str, robot: Robot) -> Iterator[Figure]:
    """Yield the time from the start of Python to the first answer."""
    (target,) = robot.cell.fk(robot.tip, joints=robot.joints)(robot.random_q(1))
    what = robot.cell, robot.tip, robot.joints, target
    cold, cached = first_seconds(FIRST_SOLVER, what)
    what = f"{name} IK, new process until its first answer"
    yield within(f"{what}, compiled", cold, at_most=1.0)
    yield within(f"{what}, cached", cached, at_most=0.25)


def arms_figure() -> Figure:
    """Return the worst share of the arms of example-robot-data."""
    shares = {name: rate for name, rate, _ in random_arms(COUNT)}
    worst = min(shares, key=lambda name: shares[name])
    what = f"{len(shares)} arms, the worst: {worst}"
    return solved(what, np.array([shares[worst]]), at_least=0.999)


def solved(what: str, success: np.ndarray, *, at_least: float) -> Figure:
    """Return the line for the share of targets solved."""
    share = float(success.mean())
    asked = f">= {at_least:.2%}"
    return Figure(what, f"{share:.2%}", "", asked, f"{share:.2%}", share >= at_least)


# The peer: Levenberg and Marquardt in C++, in the variant that is fastest here.


def fastest_peer(robot: Robot, targets: np.ndarray) -> Callable[[np.ndarray], object]:
    """Return the peer's solver that takes least time and finds 99 of 100 answers."""
    chain = elementary_transforms(robot)
    first = chain.fkine(np.zeros(len(robot.joints))).A
    ours = robot.cell.fk(robot.tip, joints=robot.joints)(np.zeros(len(robot.joints)))
    assert np.abs(first - ours).max() < 1e-9
    known: dict[float, Callable[[np.ndarray], object]] = {}
    for method, gain in (("chan", 1.0), ("sugihara", 1e-4), ("wampler", 1e-4)):
        # Its tolerance is of half the sum of squares.
        solve = functools.partial(
            chain.ik_LM, tol=0.5 * SQUARES, method=method, k=gain, joint_limits=True
        )
        start = time.perf_counter()
        success = [solve(X).success for X in targets]
        if np.mean(success) >= 0.99:
            known[time.perf_counter() - start] = solve
    assert known, "no variant of the peer solves its targets"
    return known[min(known)]


def elementary_transforms(robot: Robot):
    """Return a robot as the Robotics Toolbox writes it."""
    import roboticstoolbox as rtb

    model = robot.model
    turns = {"X": rtb.ET.Rx, "Y": rtb.ET.Ry, "Z": rtb.ET.Rz}
    steps = []
    for k in range(1, model.njoints):
        assert model.parents[k] == k - 1, "the joints are one after another"
        steps.append(rtb.ET.SE3(model.jointPlacements[k].homogeneous))
        low, high = model.lowerPositionLimit[k - 1], model.upperPositionLimit[k - 1]
        turn = turns[model.joints[k].shortname()[-1]]
        steps.append(turn(qlim=np.clip([low, high], -np.pi, np.pi)))
    tip = model.frames[model.getFrameId(robot.tip)]
    steps.append(rtb.ET.SE3(tip.placement.homogeneous))
    return rtb.ETS(steps)
