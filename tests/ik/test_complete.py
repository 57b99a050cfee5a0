"""Formulas claim all answers only where they have them: at singular poses they do not.

Judges are the joint positions that poses were made from.
"""

from __future__ import annotations

import pickle

import numpy as np
import numpy.typing as npt
import pytest

import armillary as arm
from arms import arm_of_axes

Array = npt.NDArray[np.float64]

X, Y, Z = np.eye(3)
MANY = "the target is singular, or nearly: there may be infinitely many"
ELBOW_POINTS = [
    (0, 0, 0),
    (0.1, 0, 0.3),
    (0.1, 0, 0.8),
    (0.5, 0.05, 0.9),
    (0.6, 0.05, 0.9),
    (0.7, 0.05, 0.9),
]
ARMS = {
    "gantry": ("PPPRRR", [X, Y, Z, Z, Y, Z], np.zeros((6, 3))),
    "slides between turns": ("PRPRRP", [X, Z, Y, Y, X, Z], np.zeros((6, 3))),
    "elbow": ("RRRRRR", [Z, Y, Y, X, Y, X], ELBOW_POINTS),
}


def arm_off(name: str, off: float, seed: int = 0) -> arm.Cell:
    """Return an arm whose axes are off by so much [rad]."""
    kinds, axes, points = ARMS[name]
    noise = np.random.default_rng(seed).normal(size=(6, 3))
    limit = [2.0 if kind == "P" else np.pi for kind in kinds]
    return arm_of_axes(kinds, np.array(axes) + off * noise, points, limit=limit)


def near_quarters(cell: arm.Cell, seed: int, count: int = 60) -> Array:
    """Return joint positions, turns mostly at quarters or 1e-13 to 1e-3 from there."""
    rng = np.random.default_rng(seed)
    most = cell.limits[1]
    q = rng.uniform(-most, most, (count, 6))
    quarter = rng.integers(-1, 2, q.shape) * np.pi / 2
    far = rng.choice([0.0, 1.0], (count, 1)) * 10 ** rng.uniform(-13, -3, (count, 1))
    picked = (most > 3.0) & (rng.random(q.shape) < rng.choice([0.3, 1.0], (count, 1)))
    return np.where(picked, quarter + far * rng.normal(size=q.shape), q)


def apart(cell: arm.Cell, a: Array, b: Array) -> Array:
    """Return the largest difference of joints, whole turns left out."""
    gap = np.abs(a - b)
    turned = np.abs((a - b + np.pi) % (2.0 * np.pi) - np.pi)
    return np.where(cell.limits[1] > 3.0, turned, gap).max(axis=-1)


@pytest.mark.parametrize("off", [0.0, 2e-12, 3e-10])
@pytest.mark.parametrize("name", ARMS)
def test_what_is_complete_has_the_joint_positions_of_the_pose(
    name: str, off: float
) -> None:
    cell = arm_off(name, off)
    ik = cell.ik("tool")
    q = near_quarters(cell, 1)
    answers = ik.all(cell.fk("tool")(q))
    own = np.nan_to_num(apart(cell, answers.q, q[:, None]), nan=9.0).min(axis=1)
    assert own[answers.complete].max() < 1e-3
    assert not answers.complete.all()
    most = cell.limits[1]
    q = np.random.default_rng(2).uniform(-most, most, (200, 6))
    assert ik.all(cell.fk("tool")(q)).complete.mean() > 0.98


def test_a_target_with_infinitely_many_answers_says_so() -> None:
    cell = arm_off("slides between turns", 0.0)
    ik = cell.ik("tool")
    target = np.asarray(cell.fk("tool")([0.1, -np.pi / 2, 0.6, 0.0, 0.0, 0.2]))
    one, row = ik.all(target), ik.all(target[np.newaxis])
    assert not one.complete and not row.complete[0]
    assert one.why_incomplete() == row.why_incomplete(0) == MANY
    regular = np.asarray(cell.fk("tool")([0.1, 0.4, 0.6, 0.5, 0.7, 0.2]))
    assert ik.all(regular).complete and not ik.all(regular).why_incomplete()


def test_of_infinitely_many_answers_one_within_limits_is_found() -> None:
    """With the first and last turn of a straight wrist only their sum is given."""
    kinds, axes, points = ARMS["elbow"]
    limit = [3.0, 3.0, 3.0, 1.0, 3.0, 1.0]
    cell = arm_of_axes(kinds, axes, points, limit=limit)
    ik = cell.ik("tool")
    q = np.array([[0.3, -0.4, 0.5, 0.9, 0.0, 0.9], [0.3, -0.4, 0.5, 0.9, 0.0, 0.2]])
    targets = np.asarray(cell.fk("tool")(q))
    answers = ik(targets)
    assert answers.success.all()
    assert all(ik(target).success for target in targets)
    assert np.abs(cell.fk("tool")(answers.q) - targets).max() < 1e-6
    assert (np.abs(answers.q) <= limit).all()
    one = pickle.loads(pickle.dumps(ik.all(targets[0])))
    assert not one.complete and not ik.all(targets).complete.any()


def test_a_branch_that_rounding_may_hide_is_not_said_to_be_none() -> None:
    """The wrist is stretched, and no branch of such a pose is met by the formula."""
    axes, tilt = np.array([Z, -Y, -Y, -Y, Z, -Y]), 3.67e-6
    axes[4] = 0.0, np.sin(tilt), np.cos(tilt)
    points = np.zeros((6, 3))
    points[:, 2] = 0.24, 0.24, 0.64, 0.97, 0.97, 0.97
    points[4:, 1] = -0.135
    points[5] += 0.12 * axes[4]
    cell = arm_of_axes("RRRRRR", axes, points)
    q = np.random.default_rng(0).uniform(-3.0, 3.0, (40, 6))
    q[:, 4] = np.pi
    answers = cell.ik("tool").all(cell.fk("tool")(q))
    own = np.nan_to_num(apart(cell, answers.q, q[:, None]), nan=9.0).min(axis=1)
    assert own.max() > 0.1
    assert own[answers.complete].max(initial=0.0) < 1e-3
