"""Answers no joint of which is farther from `near` than a largest step."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import Cell
from armillary.errors import ModelError, ShapeError
from armillary.ik.free_joint import FreeJoint
from armillary.ik.reason import Reason
from arms import arm_of_axes

example = cache(arm.example)
"""The same cell each time, with the kernels of other tests."""

STEP = 0.05
LIMITS = np.radians([170, 120, 170, 120, 170, 120, 175])


@cache
def _iiwa() -> Cell:
    _, y, z = np.eye(3)
    points = np.outer([0.36, 0.36, 0.36, 0.78, 1.18, 1.18, 1.18], z)
    return arm_of_axes("RRRRRRR", [z, y, z, -y, z, y, z], points, limit=LIMITS)


def _at_corners(cell: Cell, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random q, and others all joints of which are STEP away."""
    rng = np.random.default_rng(0)
    low, high = np.clip(cell.limits, -2.5, 2.5)
    q = rng.uniform(low + STEP, high - STEP, (count, len(low)))
    return q, q + STEP * rng.choice([-1.0, 1.0], q.shape)


@pytest.mark.parametrize("part", [1.02, 1.1])
@pytest.mark.parametrize(
    ("make", "frame"), [(_iiwa, "tool"), (lambda: example("ur5e_on_oval"), "tool0")]
)
def test_an_answer_within_the_steps_is_found_where_the_nearest_is_not(
    make: Callable[[], Cell], frame: str, part: float
) -> None:
    """One exists by construction; the least sum of squares has a larger step."""
    cell = make()
    ik, fk = cell.ik(frame), cell.fk(frame)
    near, there = _at_corners(cell, 400)
    targets, most = fk(there), part * STEP
    nearest = ik(targets, near=near)
    far = np.abs(nearest.q - near).max(axis=1) > most
    assert far.sum() > 20
    found = ik(targets, near=near, largest_step=most)
    assert found.success.all()
    within = np.abs(found.q - near).max(axis=1) <= most
    np.testing.assert_array_equal(found.success, within)
    assert np.abs(fk(found.q) - targets).max() < 5e-6
    np.testing.assert_array_equal(found.q[~far], nearest.q[~far])
    np.testing.assert_array_equal(found.reason[~far], nearest.reason[~far])
    rows = [*np.flatnonzero(far)[:10], *np.flatnonzero(~far)[:10]]
    for k in rows:
        one = ik(targets[k], near=near[k], largest_step=most)
        np.testing.assert_array_equal(one.q, found.q[k])
        np.testing.assert_array_equal(one.residual, found.residual[k])
        assert one.reason == found.reason[k]
        assert one.success == found.success[k]


@pytest.mark.parametrize("method", [None, "closed", "numeric"])
def test_a_jump_fails_and_its_q_is_the_nearest_answer(
    method: str | None,
) -> None:
    cell = example("irb2400")
    ik, fk = cell.ik("tool0"), cell.fk("tool0")
    near = np.random.default_rng(0).uniform(-0.8, 0.8, (50, 6))
    targets = fk(near + 0.3)
    nearest = ik(targets, near=near, method=method)
    assert nearest.success.all()
    found = ik(targets, near=near, largest_step=0.1, method=method)
    assert (found.reason == Reason.JUMP).all()
    assert not found.success.any()
    np.testing.assert_array_equal(found.q, nearest.q)
    np.testing.assert_array_equal(found.residual, nearest.residual)
    assert "larger" not in str(nearest)
    assert "a jump" in str(found)


def test_steps_of_each_joint_and_of_each_target_count() -> None:
    cell = example("irb2400")
    ik, fk = cell.ik("tool0"), cell.fk("tool0")
    near = np.random.default_rng(0).uniform(-0.8, 0.8, (4, 6))
    moved = near.copy()
    moved[:, 2] += 0.2
    targets = fk(moved)
    of_joints = np.full(6, 0.01)
    assert not ik(targets, near=near, largest_step=of_joints).success.any()
    of_joints[2] = 0.21
    assert ik(targets, near=near, largest_step=of_joints).success.all()
    of_targets = np.array([[0.1], [0.3], [0.1], [0.3]])
    found = ik(targets, near=near, largest_step=of_targets)
    assert found.success.tolist() == [False, True, False, True]
    assert not ik(targets[0], near=near[0], largest_step=0.1).success
    state = cell.home.replace(q=near[0])
    assert ik(targets[0], near=state, largest_step=0.3).success


def test_other_reasons_stay() -> None:
    cell = _iiwa()
    ik = cell.ik("tool")
    target = cell.fk("tool")(np.full(7, 0.3))
    target[:3, 3] *= 5.0
    found = ik(target, near=np.zeros(7), largest_step=0.01)
    assert found.reason == Reason.OUT_OF_REACH


def test_a_given_arm_angle_is_kept() -> None:
    cell = _iiwa()
    ik, near = cell.ik("tool"), np.full(7, 0.4)
    target = cell.fk("tool")(near)
    angle = float(ik.closed.arm_angle(near)) + 0.3
    found = ik(target, near=near, arm_angle=angle, largest_step=0.05)
    assert found.reason == Reason.JUMP
    np.testing.assert_allclose(ik.closed.arm_angle(found.q), angle, atol=1e-6)


def test_a_largest_step_needs_near_and_numbers_above_zero() -> None:
    ik = example("irb2400").ik("tool0")
    targets, near = np.eye(4), np.zeros(6)
    with pytest.raises(ModelError, match="limits steps from near="):
        ik(targets, largest_step=0.1)
    for wrong in (0.0, -1.0, np.nan, [0.1] * 5 + [0.0]):
        with pytest.raises(ShapeError, match="must be above 0"):
            ik(targets, near=near, largest_step=wrong)
    with pytest.raises(ShapeError, match=r"has shape \(3,\); it is a number"):
        ik(targets, near=near, largest_step=[0.1] * 3)
    for step in (0.1, 2.0):  # of one target, also where the nearest answer is within
        there = example("irb2400").fk("tool0")(near + 0.2)
        for wrong in (np.full((3, 6), step), np.full((1, 1), step)):
            with pytest.raises(ShapeError, match="does not fit targets of batch"):
                ik(there, near=near, largest_step=wrong)


def _searches(ik: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which each local search adds how many targets it has."""
    local, calls = ik.numeric.local, list[int]()

    def counted(query: Any) -> Any:
        calls.append(len(query.targets))
        return local(query)

    monkeypatch.setattr(ik.numeric, "local", counted)
    return calls


def test_jumps_that_are_clear_take_few_searches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A loop waits for the answer, so what cannot be found is not searched for long."""
    cell, near = example("irb2400"), np.full(6, 0.3)
    ik, target = cell.ik("tool0"), cell.fk("tool0")(near + 0.1)
    calls = _searches(ik, monkeypatch)
    assert ik(target, near=near, largest_step=0.09).reason == Reason.JUMP
    assert 0 < len(calls) <= 3  # answers stand alone
    cell = _iiwa()
    ik, near = cell.ik("tool"), np.linspace(0.3, 0.9, 7)
    target = cell.fk("tool")(near + 0.1)
    calls = _searches(ik, monkeypatch)
    asked = _scans(monkeypatch)
    assert ik(target, near=near, largest_step=0.01).reason == Reason.JUMP
    assert len(calls) <= 1  # the corners of the box are nearer than any answer
    assert ik(target, near=near, largest_step=0.05).reason == Reason.JUMP
    assert len(calls) <= 5
    assert 0 < len(asked) <= 16
    assert sum(asked) < 700


def _scans(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which each look at all branches adds how many values it has."""
    every_at, asked = FreeJoint.every_at, list[int]()

    def counted(self: FreeJoint, query: Any, values: np.ndarray) -> Any:
        asked.append(values.size)
        return every_at(self, query, values)

    monkeypatch.setattr(FreeJoint, "every_at", counted)
    return asked


NEAR = [
    [0.06791198, 0.48631992, -0.33098041, -1.08543433, -0.0456806, -0.5220836, -1.3139],
    [-3.4397746, 1.0208185, 3.42507415, -0.65475460, -0.84340686, 3.0299080, 0.4453042],
]
MOST = [0.04638947, 0.03965642]
THERE = [
    [0.05699681, 0.48963898, -0.32149272, -1.0893991, -0.0919455, -0.5225993, -1.26779],
    [-3.4406105, 1.02075259, 3.39900396, -0.61510939, -0.8039403, 3.04005244, 0.481862],
]


def test_steps_of_servo_loops_that_local_searches_missed_are_found() -> None:
    """Of loops next to singular poses: the box holds answers in one corner alone."""
    cell = example("ur5e_on_oval")
    targets, most = cell.fk("tool0")(THERE), np.array(MOST)[:, None]
    assert (np.abs(np.subtract(THERE, NEAR)) <= most).all()
    found = cell.ik("tool0")(targets, near=NEAR, largest_step=most)
    assert found.success.all()
    assert (np.abs(found.q - NEAR) <= most).all()
    np.testing.assert_allclose(cell.fk("tool0")(found.q), targets, atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_a_jump_has_no_answer_that_other_searches_find(seed: int) -> None:
    """Newton's method from 200 starts in the box, by forward kinematics alone."""
    cell = _iiwa()
    ik, fk, jacobian = cell.ik("tool"), cell.fk("tool"), cell.jacobian("tool")
    rng = np.random.default_rng(seed)
    near = rng.uniform(-0.9, 0.9, (40, 7)) * LIMITS
    near[:, 5] *= 0.02  # next to a straight wrist
    low, high = np.maximum(near - STEP, -LIMITS), np.minimum(near + STEP, LIMITS)
    targets = fk(np.clip(near + 0.06 * rng.choice([-1.0, 1.0], near.shape), -2, 2))
    found = ik(targets, near=near, largest_step=STEP)
    jumps = np.flatnonzero(found.reason == Reason.JUMP)
    assert jumps.size > 3
    for k in jumps:
        q = rng.uniform(low[k], high[k], (200, 7))
        for _ in range(12):
            X, J = fk(q), jacobian(q)
            R = targets[k, :3, :3] @ np.swapaxes(X[:, :3, :3], -1, -2)
            turn = 0.5 * np.stack([R[:, i, j] - R[:, j, i] for i, j in TURN], axis=1)
            error = np.concatenate([targets[k, :3, 3] - X[:, :3, 3], turn], axis=1)
            back = np.swapaxes(J, -1, -2)
            damped = J @ back + 1e-9 * np.eye(6)
            q = q + (back @ np.linalg.solve(damped, error[..., None]))[..., 0]
            q = np.clip(q, low[k], high[k])
        assert np.abs(fk(q) - targets[k]).max(axis=(1, 2)).min() > 1e-7


TURN = ((2, 1), (0, 2), (1, 0))
"""Elements of a rotation whose differences are twice the sine of its vector."""
