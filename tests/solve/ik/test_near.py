"""Answers near a known vector: singularities, limits and paths sampled finely."""

from __future__ import annotations

import numpy as np
import pytest

import armillary as arm
from armillary import Cell, ShapeError
from armillary.solve.ik.reason import Reason


def _at_limits(cell: Cell, count: int) -> np.ndarray:
    """Return random q with one joint of each at a limit."""
    rng = np.random.default_rng(0)
    n = len(cell.joint_names)
    q = rng.uniform(*cell.limits, (count, n))
    ends = np.array(cell.limits)[rng.integers(2, size=count)]
    one = np.arange(count), rng.integers(n, size=count)
    q[one] = ends[one]
    return q


def test_a_singular_wrist_takes_its_free_joint_from_near() -> None:
    cell = arm.example("irb2400")
    ik, fk = cell.ik("tool0"), cell.fk("tool0")
    q = np.random.default_rng(0).uniform(-0.9, 0.9, (50, 6))
    q[:, 4] = 0.0
    answer = ik(fk(q), near=q)
    assert (answer.reason == Reason.SINGULAR).all()
    np.testing.assert_allclose(answer.q, q, atol=1e-9)
    moved = q + 0.1 * np.eye(6)[3]
    answer = ik(fk(q), near=moved)
    np.testing.assert_allclose(answer.q[:, 3], moved[:, 3], atol=1e-9)
    np.testing.assert_allclose(fk(answer.q), fk(q), atol=1e-9)
    every = ik.all(fk(q), near=moved)
    apart = np.abs(every.q - answer.q[:, None]).max(axis=2)
    assert np.nanmin(apart, axis=1).max() < 1e-9


def test_answers_at_limits_are_verified_at_the_tolerance() -> None:
    cell = arm.example("irb2400")
    ik, fk = cell.ik("tool0"), cell.fk("tool0")
    q = _at_limits(cell, 500)
    targets = fk(q).astype(np.float32)
    answer = ik(targets, near=q)
    assert answer.success.all()
    assert ((answer.q >= cell.limits[0]) & (answer.q <= cell.limits[1])).all()
    apart = fk(answer.q) - targets
    assert np.linalg.norm(apart[:, :3, 3], axis=1).max() < 1e-6
    assert np.abs(answer.residual[:, 0]).max() < 1e-6
    every = ik.all(targets)
    assert every.success.any(axis=1).all()
    found = every.q[every.success]
    assert ((found >= cell.limits[0]) & (found <= cell.limits[1])).all()
    beyond = every.q[every.reason == Reason.LIMITS]
    assert ((beyond < cell.limits[0]) | (beyond > cell.limits[1])).any(axis=1).all()


def test_a_slide_at_its_limit_answers_as_far_as_the_tolerance() -> None:
    cell = arm.example("scara")
    frame = cell.manipulators[-1].links[-1].name
    ik, fk = cell.ik(frame), cell.fk(frame)
    q = np.array([0.3, 0.8, cell.limits[1][2], 0.2])
    target = fk(q)
    for missed, reason in ((1e-8, "SOLVED"), (9e-7, "SOLVED"), (2e-6, "LIMITS")):
        target[2, 3] = fk(q)[2, 3] + missed
        answer = ik(target, near=q)
        assert Reason(int(answer.reason)).name == reason
        np.testing.assert_allclose(answer.q, q, atol=1e-12)
        np.testing.assert_allclose(answer.residual[0], missed, rtol=1e-6)
        assert ik.all(target, near=q).success.any() == (reason == "SOLVED")
    assert ik(target, near=q, tolerance=(1e-5, 1e-6)).success


def test_near_beyond_limits_is_brought_inside() -> None:
    cell = arm.example("irb2400")
    ik, fk = cell.ik("tool0"), cell.fk("tool0")
    q = np.random.default_rng(0).uniform(-0.9, 0.9, (100, 6))
    for near in (10.0, -10.0, 1e6):
        wanted = np.clip(np.full(6, near), *cell.limits)
        answer = ik(fk(q), near=np.full(6, near))
        assert answer.success.all()
        assert np.array_equal(answer.q, ik(fk(q), near=wanted).q)


@pytest.mark.parametrize("method", ["closed", "numeric"])
def test_near_must_be_numbers(method: str) -> None:
    ik = arm.example("irb2400").ik("tool0")
    near = np.zeros((2, 6))
    near[1, 3] = np.nan
    with pytest.raises(ShapeError, match="near must contain joint positions, but 1 of"):
        ik(np.eye(4)[None].repeat(2, axis=0), near=near, method=method)
