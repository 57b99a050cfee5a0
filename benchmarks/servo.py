"""Servo loops of arms with more joints than a pose needs: how large steps get.

    python -m benchmarks servo

Motions q(t) are sums of three sines of each joint within 30 to 95 % of its range, 1000
poses each. A loop starts at their first q and is given one pose after the other. Its
steps are compared with those of q(t): each with the step at the same pose, and with the
largest of the motion. The same poses are then known beforehand, to `ik.path`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

import armillary as arm
from armillary import Cell, Link, Manipulator, Pose
from armillary.ik.reason import Reason
from benchmarks.measure import fewer
from benchmarks.robots import panda

Array = npt.NDArray[np.float64]

MOTIONS, POSES, PLANNED = 250, 1000, 20
SPEED = 0.72, 0.3, 1.5  # of the sines: a factor, and the range of their turns
MOST = 3.0  # times the path's step
TURN = np.radians([170, 120, 170, 120, 170, 120, 175])
X, Y, Z = np.eye(3)


def report() -> Iterator[str]:
    """Yield the lines of a table."""
    count, planned = fewer(MOTIONS), fewer(PLANNED)
    yield f"{count} motions of {POSES} poses of each arm; `ik.path` on {planned}"
    yield ""
    yield "| arm | call | beyond 3 | beyond 3 of the largest | clean | reported |"
    yield "| --- | --- | --- | --- | --- | --- |"
    later: list[tuple[str, Any, Array, Array]] = []
    for name, cell, frame, joints in arms():
        ik = cell.ik(frame, joints=joints)
        fk = cell.fk(frame, joints=joints)
        path = motions(ik, count)
        targets = np.asarray(fk(path))
        steps = np.abs(np.diff(path, axis=0)).max(axis=2)
        most = MOST * steps.max(axis=0)[:, None]
        yield _row(name, "near=", *_loop(ik, targets, path[0]), steps)
        options = {"largest_step": most}
        way = _loop(ik, targets, path[0], **options)
        yield _row(name, "near=, largest_step=", *way, steps)
        later.append((name, ik, path[:, :planned], targets[:, :planned]))
    for name, ik, path, targets in later:
        steps = np.abs(np.diff(path, axis=0)).max(axis=2)
        ways = [
            ik.path(poses, start=q[0], largest_step=MOST * float(most))
            for poses, q, most in zip(
                targets.swapaxes(0, 1),
                path.swapaxes(0, 1),
                steps.max(axis=0),
                strict=True,
            )
        ]
        q = np.stack([way.answer.q for way in ways], axis=1)
        jumps = sum(len(way.jumps) for way in ways)
        yield _row(name, f"ik.path, {planned} motions", q, jumps, steps)


def arms() -> Iterator[tuple[str, Cell, str, list[str]]]:
    """Yield names, cells, frames and joints."""
    robot = panda()
    yield "Panda", robot.cell, robot.tip, robot.joints
    cell = arm.example("ur5e_on_oval")
    yield "UR5e on the oval track", cell, "tool0", list(cell.joint_names)
    for name, cell in (("iiwa14", iiwa()), ("Fetch", fetch())):
        yield name, cell, "tool", list(cell.joint_names)


def iiwa() -> Cell:
    """Return an arm of the iiwa14's lengths and limits, both by its data sheet."""
    offsets = (0.36, 0.0, 0.0, 0.42, 0.4, 0.0, 0.0)
    axes = (Z, Y, Z, -Y, Z, Y, Z)
    limits = [(-turn, turn) for turn in TURN]
    return _chain(axes, [z * Z for z in offsets], limits, 0.126 * Z)


def fetch() -> Cell:
    """Return the arm of a Fetch by the sizes and limits that its maker publishes."""
    offsets = (
        (0.119525, 0.0, 0.34858),
        (0.117, 0.0, 0.06),
        (0.219, 0.0, 0.0),
        (0.133, 0.0, 0.0),
        (0.197, 0.0, 0.0),
        (0.1245, 0.0, 0.0),
        (0.1385, 0.0, 0.0),
    )
    endless = None
    limits = (
        (-1.6056, 1.6056),
        (-1.221, 1.518),
        endless,
        (-2.251, 2.251),
        endless,
        (-2.16, 2.16),
        endless,
    )
    return _chain((Z, Y, X, Y, X, Y, X), offsets, limits, 0.16645 * X)


def _chain(axes: Any, offsets: Any, limits: Any, tool: Array) -> Cell:
    links = [Link(name="base")]
    rows = zip(axes, offsets, limits, strict=True)
    for k, (axis, offset, ends) in enumerate(rows):
        there = Pose.translation(*offset)
        joint = arm.joints.Revolute(precursor=there, axis=tuple(axis))
        end = (
            {} if ends is None else {"limits": arm.Limits(lower=ends[0], upper=ends[1])}
        )
        links.append(Link(name=f"l{k}", parent=links[-1].name, joint=joint, **end))
    joint = arm.joints.Fixed(precursor=Pose.translation(*tool))
    links.append(Link(name="tool", parent=links[-1].name, joint=joint))
    return Cell(manipulators=(Manipulator(name="arm", links=tuple(links)),))


def motions(ik: Any, count: int) -> Array:
    """Return joint positions along motions, shape (POSES, count, n)."""
    rng = np.random.default_rng(0)
    low, high = np.clip(ik.numeric.problem.limits, -np.pi, np.pi)
    shape = count, len(low), 3
    factor, *range_ = SPEED
    turns = factor * rng.uniform(*range_, shape)
    begin, size = rng.random(shape), rng.uniform(0.2, 1.0, shape)
    at = np.linspace(0.0, 1.0, POSES)[:, None, None, None]
    wave = (size * np.sin(2.0 * np.pi * (turns * at + begin))).sum(axis=3)
    least, greatest = wave.min(axis=0), wave.max(axis=0)
    wave = (2.0 * wave - least - greatest) / (greatest - least)
    half = 0.5 * (high - low) * rng.uniform(0.3, 0.95, shape[:2])
    return rng.uniform(low + half, high - half) + half * wave


def _loop(ik: Any, targets: Array, q: Array, **options: Any) -> tuple[Array, int]:
    """Return q at each pose, and how many steps were reported as jumps."""
    way, jumps = [q], 0
    for poses in targets[1:]:
        answer = ik(poses, near=way[-1], **options)
        is_jump = answer.reason == Reason.JUMP
        assert (answer.success | is_jump).all()
        jumps += int(is_jump.sum())
        way.append(answer.q)
    return np.array(way), jumps


def _row(name: str, call: str, q: Array, jumps: int, steps: Array) -> str:
    ours = np.abs(np.diff(q, axis=0)).max(axis=2)
    each, largest = ours > MOST * steps, ours > MOST * steps.max(axis=0)
    clean = int((~each.any(axis=0)).sum())
    numbers = (int(each.sum()), int(largest.sum()), clean, jumps)
    return f"| {name} | {call} | " + " | ".join(map(str, numbers)) + " |"
