"""Closed forms of arms that place a point, whatever the rotation there."""

from __future__ import annotations

import numpy as np
import pytest

from armillary import Cell, Pose
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.ik.reason import Reason
from armillary.kernel.references import vectorize
from armillary.testing.samples import random_pose
from arms import ALLOWED, arm_of_axes

TURNS = {
    "elbow": "three joints place a point, axes 2 and 3 parallel",
    "meeting 12": "three joints place a point, axes 1 and 2 meeting",
    "meeting 23": "three joints place a point, axes 2 and 3 meeting",
    "parallel 12": "three joints place a point, axes 1 and 2 parallel",
}
SLIDES = "slides place a point"
TURN = "a joint that turns and slides place a point"
TRIANGLE = "two parallel axes place a point"
# z turns about z, l slides along it, x across it; r turns, p slides anywhere
PATTERNS = {
    **dict.fromkeys(("p", "pp", "ppp"), SLIDES),
    **dict.fromkeys(("rpp", "ppr", "zlx", "zxl", "lzx", "xzl", "zx", "xz"), TURN),
    **dict.fromkeys(("zz", "zzl", "zlz", "lzz"), TRIANGLE),
}


def random_arm(kind: str, seed: int = 0) -> Cell:
    """Return a random arm of a kind or a pattern, somewhere, with some tool."""
    rng = np.random.default_rng([seed, *map(ord, kind)])
    frame = random_pose(rng).matrix()[:3, :3]
    n = 3 if kind in TURNS else len(kind)
    axes = rng.normal(size=(n, 3))
    points = rng.uniform(-0.5, 0.5, (n, 3))
    for k, letter in enumerate(kind if kind in PATTERNS else ""):
        angle = rng.uniform(-3.0, 3.0)
        if letter in "zl":
            axes[k] = frame[:, 2] * rng.choice([-1.0, 1.0])
        elif letter == "x":
            axes[k] = frame[:, 0] * np.cos(angle) + frame[:, 1] * np.sin(angle)
    if kind == "elbow":
        axes[2] = -axes[1]
    elif kind == "parallel 12":
        axes[1] = axes[0]
    elif kind == "meeting 12":
        points[1] = points[0]
    elif kind == "meeting 23":
        points[2] = points[1]
    turning = [kind in TURNS or letter in "zr" for letter in kind[:n]]
    return arm_of_axes(
        "".join("R" if turns else "P" for turns in turning),
        axes,
        points,
        base=random_pose(rng),
        tool=random_pose(rng),
        limit=[np.pi if turns else 0.7 for turns in turning],
    )


def point_of(cell: Cell) -> InverseKinematics:
    return cell.ik("tool", rotation="")


def apart(cell: Cell, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the largest difference of joint vectors, whole turns left out."""
    whole = np.abs((a - b + np.pi) % (2.0 * np.pi) - np.pi)
    return np.where(cell.limits[1] > 3.0, whole, np.abs(a - b)).max(axis=-1)


def sample(cell: Cell, count: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Return random q within the limits and where the point is; rotations are not."""
    rng, most = np.random.default_rng(1), cell.limits[1]
    q = rng.uniform(-most, most, (count, len(most)))
    targets = np.array([random_pose(rng).matrix() for _ in range(count)])
    targets[:, :3, 3] = cell.fk("tool")(q)[:, :3, 3]
    return q, targets


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", [*TURNS, *PATTERNS])
def test_every_branch_reaches_the_point(kind: str) -> None:
    cell = random_arm(kind)
    closed = point_of(cell).closed
    assert closed.family == {**TURNS, **PATTERNS}[kind]
    q, targets = sample(cell)
    found, squares, reason, *_ = vectorize(closed.program, targets, ALLOWED)
    assert found.shape == (200, len(closed.branches), len(cell.joint_names))
    met = np.isin(reason, (Reason.SOLVED, Reason.LIMITS))
    error = cell.fk("tool")(found)[..., :3, 3] - targets[:, None, :3, 3]
    assert np.abs(error)[met].max() < 2e-6
    assert np.median(np.abs(error)[met]) < 1e-14
    own = np.where(met, apart(cell, found, q[:, None]), np.inf)
    assert own.min(axis=1).max() < 1e-6
    assert np.isnan(found[~met]).all()
    assert (squares[..., 1] == 0.0).all()
    b = len(closed.branches)
    between = apart(cell, found[:, :, None], found[:, None]) + 9.0 * np.eye(b)
    assert np.nanmin(between) > 1e-7


@pytest.mark.parametrize("kind", ["elbow", "meeting 23", "rpp", "ppr", "lzx", "zlz"])
def test_no_branch_is_missed(kind: str) -> None:
    """A search from many starts finds only what the formula finds."""
    cell = random_arm(kind)
    ik = point_of(cell)
    _, targets = sample(cell, 5)
    searched = ik.all(targets, method="numeric")
    known = vectorize(ik.closed.program, targets, ALLOWED)[0]
    for row, every in zip(range(5), known, strict=True):
        q = searched.q[row][searched.success[row]]
        assert len(q)
        assert np.nanmin(apart(cell, q[:, None], every), axis=1).max() < 1e-3


def leg() -> Cell:
    """Return a leg: the hip rolls, hip and knee bend; thigh and shank of 0.2 m."""
    axes = [(1, 0, 0), (0, 1, 0), (0, 1, 0)]
    points = [(0.2, 0.05, 0.0), (0.2, 0.13, 0.0), (0.2, 0.13, -0.2)]
    foot = Pose.translation(0.0, 0.0, -0.2)
    return arm_of_axes("RRR", axes, points, tool=foot, limit=[0.8, 2.0, 2.7])


def test_a_leg_puts_its_foot_down() -> None:
    cell = leg()
    ik = point_of(cell)
    assert ik.closed.family == TURNS["elbow"]
    q, targets = sample(cell, 500)
    answer = ik(targets, near=q)
    assert answer.success.all()
    assert np.abs(answer.q - q).max() < 1e-6
    assert (answer.residual[:, 1] == 0.0).all()
    found = ik.all(targets)
    bent = [names[1] == "up" for names in ik.closed.branches]
    exists = ~np.isnan(found.q[..., 2])
    # z2 . ((A3 - A2) x (W - A3)) = 0.04 sin(q_3)
    assert ((found.q[..., 2] > 0.0) == bent)[exists].all()


def test_points_out_of_reach_are_proven_and_said_how_far_off() -> None:
    cell = leg()
    target = Pose.translation(0.2, 0.13, -0.5).matrix()
    answer = point_of(cell)(target)
    assert answer.reason == Reason.OUT_OF_REACH
    assert answer.residual[1] == 0.0
    assert np.isclose(answer.residual[0], 0.1, atol=1e-3)


def test_what_cannot_place_points_is_reported_why() -> None:
    up = [(0, 0, 1)] * 4
    cases = {
        "RRRR": (up, "4 joints move the point, more than it needs"),
        "RPP": (
            [(0, 0, 1), (1, 0, 0), (0, 1, 0)],
            "joint 1 and what slides reach the same places",
        ),
        "PRP": (
            [(1, 0, 1), (0, 0, 1), (1, 0, 1)],
            "the axis that turns stands between two that slide askew",
        ),
        "R": (up[:1], "nothing slides across the axis that turns"),
        "PP": (up[:2], "joints 1 and 2 do not slide independently"),
    }
    for kinds, (axes, why) in cases.items():
        points = np.arange(len(kinds))[:, None] * np.array([1.0, 0.0, 0.0])
        cell = arm_of_axes(kinds, axes, points, tool=Pose.translation(1.0, 0.0, 0.0))
        assert point_of(cell).why_not_closed == why
    half = leg().ik("tool", position="xy", rotation="")
    why = "the goal is neither a full pose or position, nor leaves one axis free"
    assert half.why_not_closed == why
