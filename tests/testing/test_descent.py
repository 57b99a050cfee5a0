"""The simplest solver judges the one that people use."""

from __future__ import annotations

import numpy as np
import pytest

import armillary as arm
from armillary import Cell
from armillary.errors import ShapeError
from armillary.testing import jacobian_transpose
from armillary.testing.jacobian_transpose import _Descent

ARMS = {"irb2400": "tool0", "scara": "tcp", "ur5e_on_oval": "tool0"}
TOLERANCE = 1e-4


def joints(cell: Cell, count: int) -> np.ndarray:
    """Return joint positions well within the limits."""
    lower, upper = (0.7 * np.clip(limit, -2, 2) for limit in cell.limits)
    return np.random.default_rng(5).uniform(lower, upper, (count, len(lower)))


@pytest.mark.parametrize("name", ARMS)
def test_what_it_solves_the_numeric_solver_solves_too(name: str) -> None:
    cell, frame = arm.example(name), ARMS[name]
    q = joints(cell, 4)
    X = cell.fk(frame)(q)
    solved = 0
    for k in range(len(q)):
        simple = jacobian_transpose(cell, frame, X[k], start=q[k] + 0.02)
        if simple is None:
            continue
        solved += 1
        assert np.abs(cell.fk(frame)(simple) - X[k]).max() < TOLERANCE
        answer = cell.ik(frame)(X[k], seed=simple)
        assert answer.success
        if len(q[k]) <= 6:
            assert np.abs(answer.q - simple).max() < 0.01
    assert solved >= 2


def test_either_sign_of_a_dual_quaternion_is_the_same_target() -> None:
    cell = arm.example("scara")
    q = joints(cell, 1)[0]
    dual = cell.fk("tcp", form="dual_quaternion")(q)
    answers = [
        jacobian_transpose(cell, "tcp", target, start=q + 0.01)
        for target in (dual, -dual, cell.fk("tcp")(q))
    ]
    assert answers[0] is not None
    for other in answers[1:]:
        assert np.abs(answers[0] - other).max() < 1e-9


def test_the_gradient_is_that_of_the_cost() -> None:
    cell = arm.example("ur5e_on_oval")
    dual = cell.fk("tool0", form="dual_quaternion")
    q, other = joints(cell, 2)
    lower, upper = cell.limits
    descent = _Descent(cell, "tool0", "world", dual(other), lower, upper)
    for at in (q, np.where(np.arange(7) == 3, 6.6, q)):  # the second beyond a limit
        _, gradient = descent.cost(at)
        for i, h in enumerate(np.eye(7) * 1e-5):
            slope = (descent.cost(at + h)[0] - descent.cost(at - h)[0]) / 2e-5
            assert gradient[i] == pytest.approx(slope, rel=1e-6, abs=1e-7)


def test_out_of_reach_or_beyond_limits_is_nothing() -> None:
    cell = arm.example("pan_tilt")
    frame = cell.frame_names[-1]
    far = cell.fk(frame)(cell.home.q).copy()
    far[0, 3] += 10.0
    assert jacobian_transpose(cell, frame, far, steps=200) is None
    beyond = cell.fk(frame)(cell.limits[1] + 0.3)
    assert jacobian_transpose(cell, frame, beyond, steps=200) is None


def test_wrong_shapes_are_reported() -> None:
    cell = arm.example("pan_tilt")
    with pytest.raises(ShapeError, match=r"not \(2, 4, 4\)"):
        jacobian_transpose(cell, cell.frame_names[-1], np.zeros((2, 4, 4)))
    with pytest.raises(ShapeError, match="start has shape"):
        jacobian_transpose(cell, cell.frame_names[-1], np.eye(4), start=np.zeros(9))
