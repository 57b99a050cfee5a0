"""The best answers for a purpose: none of all is better, and none leaves the target."""

from __future__ import annotations

import math

import numpy as np
import pytest

import armillary as arm
from armillary.errors import TraceError, UnknownName
from armillary.solve.ik.inverse import InverseKinematics
from armillary.solve.ik.reason import Reason


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
