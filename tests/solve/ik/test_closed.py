"""Closed forms against forward kinematics, on random arms of every family."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import armillary as arm
from armillary import Cell, Link, Manipulator, Pose
from armillary.equations.chain import Layout
from armillary.equations.closed.recognise import FAMILIES
from armillary.equations.poses import poses_program as fk_program
from armillary.equations.selection import Selection
from armillary.kernel.vectorize import vectorize
from armillary.model.limits import Limits
from armillary.solve.ik.reason import Reason
from armillary.testing.samples import random_pose
from armillary.trace import Program

TAU = 2.0 * np.pi
KINDS = (
    "elbow",
    "elbow, right angles",
    "meeting 12",
    "meeting 23",
    "parallel 12",
    "three parallel",
    "three parallel, right angles",
)
EXPECTED = dict(
    zip(
        KINDS,
        [FAMILIES[k].name for k in (0, 0, 1, 2, 3, 4, 4)],
        strict=True,
    )
)


class Lines(NamedTuple):
    """The axes of an arm at q = 0: directions and points, shape (6, 3)."""

    axes: np.ndarray
    points: np.ndarray


def random_lines(kind: str, rng: np.random.Generator) -> Lines:
    """Return the axes of a random arm of a kind."""
    axes = rng.normal(size=(6, 3))
    points = rng.uniform(-0.5, 0.5, (6, 3))
    x, y, z = np.eye(3)
    if kind == "elbow":
        axes[2] = axes[1]
    elif kind == "elbow, right angles":
        axes = np.array([z, y, -y, x, y, x])
    elif kind == "meeting 12":
        points[1] = points[0]
    elif kind == "meeting 23":
        points[2] = points[1]
    elif kind == "parallel 12":
        axes[1] = -axes[0]
    elif kind == "three parallel":
        axes[2], axes[3] = axes[1], -axes[1]
        points[5] = points[4]
    else:
        axes = np.array([z, y, y, -y, z, y])
        points[5] = points[4]
    if "three" not in kind:
        points[4] = points[5] = points[3]
    axes = axes / np.linalg.norm(axes, axis=1)[:, None]
    return Lines(axes, points + rng.uniform(-1, 1, (6, 1)) * axes)


def cell_of(
    lines: Lines,
    *,
    base: Pose | None = None,
    tool: Pose | None = None,
    limit: float = np.pi,
) -> Cell:
    """Return an arm with given axes, whose links are all parallel at q = 0."""
    links = [Link(name="base")]
    before = np.zeros(3)
    for k, (axis, point) in enumerate(zip(*lines, strict=True)):
        there = Pose.translation(*(point - before))
        if k == 0 and base is not None:
            there = base @ there
        joint = arm.joints.Revolute(precursor=there, axis=tuple(axis))
        limits = Limits(lower=-limit, upper=limit)
        parent = links[-1].name
        links.append(Link(name=f"l{k}", parent=parent, joint=joint, limits=limits))
        before = point
    fixed = arm.joints.Fixed(precursor=tool or Pose.identity())
    links.append(Link(name="tool", parent="l5", joint=fixed))
    return Cell(manipulators=(Manipulator(name="arm", links=tuple(links)),))


def backwards(lines: Lines) -> Lines:
    """Return the axes in the opposite order: the arm standing on its tool."""
    return Lines(-lines.axes[::-1], lines.points[::-1])


def moved_lines(lines: Lines, q: np.ndarray) -> Lines:
    """Return where the axes are at q, by the product of exponentials."""
    X = Pose.identity()
    axes, points = [], []
    for axis, point, angle in zip(*lines, q, strict=True):
        axes.append(X.rotate(axis))
        points.append(X @ point)
        turn = Pose.translation(*point) @ Pose.rotation_about(axis, angle)
        X = X @ turn @ Pose.translation(*-point)
    return Lines(np.array(axes), np.array(points))


def turned_apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the largest difference of two joint vectors, whole turns left out."""
    return np.abs((a - b + np.pi) % TAU - np.pi).max(axis=-1)


def poses_program(cell: Cell) -> Program:
    """Return the program of the tool's pose; most arms here are met only once."""
    whole = cell.ik("tool").goals[0]
    return fk_program(
        Layout.of(cell),
        [whole.frame],
        whole.relative_to,
        single=True,
        form="matrix",
        selection=Selection(tuple(range(6)), (0.0,) * 6),
    )


def every_branch(cell: Cell, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the branches and their reasons, without machine code."""
    program = cell.ik("tool").closed.program
    q, _, reason = vectorize(program, targets, np.full(2, 1e-12))
    return q, reason


def check(cell: Cell, count: int = 300, seed: int = 0) -> None:
    """Hold every branch of random targets to forward kinematics and to each other."""
    q = np.random.default_rng(seed).uniform(-np.pi, np.pi, (count, 6))
    fk = poses_program(cell)
    targets = vectorize(fk, q)
    found, reason = every_branch(cell, targets)
    assert found.shape == (count, len(cell.ik("tool").closed.branches), 6)
    success = (reason == Reason.SOLVED) | (reason == Reason.SINGULAR)
    error = np.abs(vectorize(fk, found) - targets[:, None]).max(axis=(-2, -1))
    assert error[success].max() < 2e-6
    assert np.median(error[success]) < 1e-13
    own = np.where(success, turned_apart(found, q[:, None]), np.inf)
    assert (own.min(axis=1) < 1e-5).all()
    # each branch is another answer, and the nearest to zero of its turns
    b = found.shape[1]
    apart = turned_apart(found[:, :, None], found[:, None]) + 9.0 * np.eye(b)
    assert np.nanmin(apart) > 1e-7
    assert np.abs(found[success]).max() <= np.pi


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_every_branch_reaches_the_target(kind: str, seed: int) -> None:
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    lines = random_lines(kind, rng)
    cell = cell_of(lines, base=random_pose(rng), tool=random_pose(rng))
    assert cell.ik("tool").closed.family == EXPECTED[kind]
    assert cell.ik("tool").why_not_closed == ""
    assert not cell.ik("tool").closed.backwards
    check(cell, seed=seed)


@pytest.mark.parametrize("kind", KINDS)
def test_arms_are_solved_from_their_other_end(kind: str) -> None:
    rng = np.random.default_rng(KINDS.index(kind))
    lines = backwards(random_lines(kind, rng))
    cell = cell_of(lines, base=random_pose(rng), tool=random_pose(rng))
    assert cell.ik("tool").closed.backwards
    assert cell.ik("tool").closed.family == EXPECTED[kind]
    check(cell)
