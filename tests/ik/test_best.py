"""The best answers for a purpose: none of all is better, and none leaves the target."""

from __future__ import annotations

import math

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, TraceError, UnknownName
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.ik.reason import Reason
from arms import TAU, arm_of_axes


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    return arm.example("ur5e_on_oval")


@pytest.fixture(scope="module")
def six(cell: arm.Cell) -> InverseKinematics:
    return cell.ik("tool0", joints=list(cell.joint_names[1:]))


def _targets(cell: arm.Cell, ik: InverseKinematics, count: int) -> np.ndarray:
    q = np.random.default_rng(3).uniform(-1.5, 1.5, (count, len(ik.joints)))
    return cell.fk("tool0", joints=list(ik.joints))(q)


def test_no_branch_of_a_closed_form_is_better(cell: arm.Cell, six: InverseKinematics):
    targets = _targets(cell, six, 30)

    def purpose(q):
        return (q[0] - 1.0) ** 2 + np.cos(q[2])

    best = six.best(targets, purpose)
    assert best.success.all()
    values = np.where(
        six.all(targets).success,
        purpose(np.moveaxis(six.all(targets).q, -1, 0)),
        np.inf,
    )
    assert purpose(best.q.T) == pytest.approx(values.min(axis=1), abs=1e-5)


def test_free_motion_serves_the_purpose(cell: arm.Cell):
    """The cart of the track goes where it is wanted, as far as the arm reaches."""
    ik = cell.ik("tool0")
    targets = _targets(cell, ik, 10)
    best = ik.best(targets, lambda q: (q[0] - 1.0) ** 2, starts=16)
    assert best.success.all()
    assert cell.fk("tool0")(best.q) == pytest.approx(targets, abs=5e-6)
    many = ik.all(targets, starts=600)
    others = np.where(many.success, np.abs(many.q[..., 0] - 1.0), np.inf).min(axis=1)
    off = np.abs(best.q[:, 0] - 1.0)
    assert (off < others + 0.02).mean() >= 0.8
    assert (off < others + 0.1).all()  # the end of a descent may be a local one


@pytest.mark.parametrize("purpose", ["limits", "manipulability"])
def test_named_purposes_are_served(cell: arm.Cell, purpose: str):
    ik = cell.ik("tool0")
    targets = _targets(cell, ik, 8)
    best, plain = ik.best(targets, purpose, starts=8), ik(targets)
    assert best.success.all()

    def value(q: np.ndarray) -> np.ndarray:
        if purpose == "manipulability":
            J = cell.jacobian("tool0")(q)
            return -np.sqrt(np.linalg.det(J @ J.swapaxes(1, 2)))
        lower, upper = cell.limits
        some = np.isfinite(upper - lower)
        lower, upper = lower[some], upper[some]
        middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
        return 0.5 * (((q[:, some] - middle) / half) ** 2).sum(axis=1)

    assert (value(best.q) <= value(plain.q) + 1e-9).mean() > 0.8
    assert value(best.q).mean() < value(plain.q).mean()


def test_what_has_no_answer_says_why(cell: arm.Cell, six: InverseKinematics):
    targets = _targets(cell, six, 3)
    targets[0, :3, 3] = 50.0
    targets[1, 0, 0] = math.nan
    best = six.best(targets, "limits")
    assert list(best.reason) == [
        Reason.OUT_OF_REACH,
        Reason.INVALID_TARGET,
        Reason.SOLVED,
    ]


def test_one_target_gives_one_answer(cell: arm.Cell, six: InverseKinematics):
    assert six.best(_targets(cell, six, 1)[0], "limits").q.shape == (6,)


def test_bad_purposes_are_refused(six: InverseKinematics):
    with pytest.raises(UnknownName, match="limits"):
        six.best(np.eye(4), "limit")
    with pytest.raises(TraceError, match="one number"):
        six.best(np.eye(4), lambda q: [q[0], q[1]])


# against a grid over the free motion


def _manipulability(cell: arm.Cell, frame: str, q: np.ndarray) -> np.ndarray:
    J = cell.jacobian(frame)(q)
    return np.sqrt(np.abs(np.linalg.det(J @ J.swapaxes(-1, -2))))


def test_no_position_of_the_cart_is_much_better(cell: arm.Cell, six):
    """The cart moves along a grid, and the closed form answers all else."""
    ik = cell.ik("tool0")
    targets = _targets(cell, ik, 12)
    carts = np.linspace(-7.0, 7.0, 1500)  # more than a lap
    X = cell.fk("plate", joints=["track/cart"])(carts[:, None])
    at_home = cell.fk("plate", joints=["track/cart"])([0.0])
    found = _manipulability(cell, "tool0", ik.best(targets, "manipulability").q)
    for value, target in zip(found, targets, strict=True):
        every = six.all(at_home @ np.linalg.inv(X) @ target)
        q = np.concatenate([np.tile(carts[:, None, None], (1, 8, 1)), every.q], axis=2)
        grid = _manipulability(cell, "tool0", q[every.success])
        assert value > 0.99 * grid.max()


LIMITS = np.radians([170, 120, 170, 120, 170, 120, 175])


@pytest.fixture(scope="module")
def seven() -> arm.Cell:
    """Return an arm with spherical shoulder and wrist, and the limits of an iiwa."""
    _, y, z = np.eye(3)
    points = np.outer([0.36, 0.36, 0.36, 0.78, 1.18, 1.18, 1.18], z)
    tool = arm.Pose.translation(0.0, 0.0, 0.126)
    axes = [z, y, z, -y, z, y, z]
    return arm_of_axes("RRRRRRR", axes, points, tool=tool, limit=LIMITS)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", [None, "closed", "numeric"])
@pytest.mark.parametrize("purpose", ["limits", "manipulability"])
def test_no_arm_angle_is_much_better(seven: arm.Cell, purpose: str, method: str | None):
    ik = seven.ik("tool")
    rng = np.random.default_rng(1)
    q = 0.8 * rng.uniform(-LIMITS, LIMITS, (10, 7))
    targets = seven.fk("tool")(q)

    def value(q: np.ndarray) -> np.ndarray:
        if purpose == "manipulability":
            return -_manipulability(seven, "tool", q)
        return ((q / LIMITS) ** 2).sum(axis=-1)

    best = ik.best(targets, purpose, method=method)
    assert best.success.all()
    assert np.abs(seven.fk("tool")(best.q) - targets).max() < 5e-6
    angles = np.linspace(-np.pi, np.pi, 400)
    grid = [ik.all(targets, arm_angle=angle) for angle in angles]
    least = np.min(
        [
            np.where(one.success, value(np.nan_to_num(one.q)), np.inf).min(axis=1)
            for one in grid
        ],
        axis=0,
    )
    assert (value(best.q) <= least + 0.01 * np.abs(least)).all()


def test_a_given_arm_angle_is_kept(seven: arm.Cell):
    ik = seven.ik("tool")
    q = 0.6 * np.random.default_rng(2).uniform(-LIMITS, LIMITS, (20, 7))
    targets, angles = seven.fk("tool")(q), ik.closed.arm_angle(q)
    best = ik.best(targets, "limits", arm_angle=angles)
    assert best.success.all()
    off = ik.closed.arm_angle(best.q) - angles
    assert np.abs((off + np.pi) % TAU - np.pi).max() < 1e-6
    every = ik.all(targets, arm_angle=angles)
    values = np.where(every.success, ((every.q / LIMITS) ** 2).sum(axis=2), np.inf)
    got = ((best.q / LIMITS) ** 2).sum(axis=1)
    assert got == pytest.approx(values.min(axis=1), abs=1e-9)
    far = targets[:2].copy()
    far[0, :3, 3] = 9.0
    missed = ik.best(far, "limits", arm_angle=angles[:2])
    assert list(missed.reason) == [Reason.OUT_OF_REACH, Reason.SOLVED]
    with pytest.raises(ModelError, match="arm angle"):
        ik.best(targets, "limits", arm_angle=0.0, method="numeric")


def test_a_timeout_ends_the_search_for_the_best(cell: arm.Cell):
    ik = cell.ik("tool0")
    targets = _targets(cell, ik, 200)
    best = ik.best(targets, "manipulability", timeout=1e-6)
    assert (best.reason == Reason.TIMEOUT).sum() > 150
    every = ik.all(targets, timeout=1e-6)
    assert not every.success.any()
