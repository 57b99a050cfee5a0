"""Simulated steps are the steps of a controller, one after another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import tasks
from armillary.errors import ModelError, ShapeError

RAIL = np.array([0.0, 0.0, -1.2, 1.5, -1.0, -1.4, 0.3])
DT = 1e-2
STEPS = 40


@pytest.fixture(scope="module")
def control() -> Any:
    cell = arm.example("ur10_on_rail")
    return cell.controller(
        [tasks.Position("tool0"), tasks.Posture()],
        acceleration=15.0,
        rate=1 / DT,
        avoid=cell.collision(margin=0.02),
    )


@pytest.fixture(scope="module")
def target(control: Any) -> Any:
    fk = arm.example("ur10_on_rail").fk("tool0")
    return fk(RAIL)[:3, 3] + [0.2, 0.1, 0.0]


def moving(target: Any, time: float) -> Any:
    return target + np.array([0.2 * time, 0.0, 0.1 * time])


def test_it_takes_the_steps_of_the_controller(control: Any, target: Any) -> None:
    found = control.simulate(RAIL, [target, None], STEPS)
    assert found.q.shape == found.qd.shape == (STEPS + 1, 7)
    assert np.allclose(found.time, DT * np.arange(STEPS + 1))
    q, qd = RAIL, np.zeros(7)
    for k in range(STEPS):
        step = control(q, qd, [target, None])
        q, qd = step.q_next, step.qd
        assert np.array_equal(found.q[k + 1], q)
        assert np.array_equal(found.qd[k + 1], qd)
        assert found.reason[k] == step.reason
        assert found.distance[k] == step.distance
        assert found.scale[k] == step.scale
        assert found.active[k] == step.active
    assert sum(found.summary().values()) == STEPS


def test_targets_of_steps_are_those_of_a_function(control: Any, target: Any) -> None:
    by_time = control.simulate(RAIL, [lambda t: moving(target, t), None], STEPS)
    listed = np.array([moving(target, DT * k) for k in range(STEPS)])
    by_step = control.simulate(RAIL, [listed, None], STEPS)
    assert np.array_equal(by_time.q, by_step.q)


def test_rows_of_a_batch_are_simulated_alone(control: Any, target: Any) -> None:
    Q = RAIL + np.linspace(-0.1, 0.1, 3)[:, None]
    listed = np.array([[moving(p, DT * k) for k in range(STEPS)] for p in Q[:, :3]])
    found = control.simulate(Q, [listed, None], STEPS, qd=0.1 * np.ones(7))
    assert found.q.shape == (3, STEPS + 1, 7)
    assert found.active.shape == (3, STEPS)
    constant = control.simulate(Q, [np.tile(target, (3, 1, 1)), None], STEPS)
    for row in range(3):
        one = control.simulate(Q[row], [listed[row], None], STEPS, qd=0.1 * np.ones(7))
        assert np.allclose(found.q[row], one.q, rtol=0.0, atol=1e-9)
        one = control.simulate(Q[row], [target, None], STEPS)
        assert np.allclose(constant.q[row], one.q, rtol=0.0, atol=1e-9)


def test_obstacles_move_on_at_their_velocities(control: Any, target: Any) -> None:
    velocity = np.array([0.3, 0.0, 0.1])
    begin = target + np.array([[-0.3, 0.0, 0.0], [0.0, 1.0, 0.0]])
    once = arm.Obstacles.spheres(begin, 0.05, velocity)
    found = control.simulate(RAIL, [target, None], STEPS, obstacles=once)
    by_time = control.simulate(RAIL, [target, None], STEPS, obstacles=once.after)
    times = DT * np.arange(STEPS)[:, None, None]
    listed = arm.Obstacles.spheres(begin + times * velocity, 0.05, velocity)
    by_step = control.simulate(RAIL, [target, None], STEPS, obstacles=listed)
    without = control.simulate(RAIL, [target, None], STEPS)
    assert np.array_equal(found.q, by_time.q)
    assert np.allclose(found.q, by_step.q, rtol=0.0, atol=1e-9)
    assert (found.distance <= without.distance).all()
    assert not np.array_equal(found.distance, without.distance)


def test_wrong_requests_are_refused(control: Any, target: Any) -> None:
    with pytest.raises(ModelError, match="at least 1"):
        control.simulate(RAIL, [target, None], 0)
    with pytest.raises(ShapeError, match="40 of them"):
        control.simulate(RAIL, [np.tile(target, (7, 1)), None], STEPS)
    with pytest.raises(ShapeError, match="list of 2"):
        control.simulate(RAIL, target, STEPS)
    with pytest.raises(ShapeError, match=r"\(..., 7\)"):
        control.simulate(RAIL[:6], [target, None], STEPS)
    with pytest.raises(ShapeError, match="needs qd of shape"):
        control.simulate(RAIL, [target, None], STEPS, qd=RAIL[:6])

    def coming(time: float) -> arm.Obstacles:
        count = 1 if time < 5.5 * DT else 2
        return arm.Obstacles.spheres(np.full((count, 3), 9.0), 0.1)

    with pytest.raises(ShapeError, match="number of obstacles"):
        control.simulate(RAIL, [target, None], STEPS, obstacles=coming)


def test_a_single_task_takes_its_target_alone() -> None:
    cell = arm.example("ur10_on_rail")
    control = cell.controller(tasks.Coupling({"elbow": 1.0}), acceleration=20.0)
    found = control.simulate(RAIL, 1.6, 900)
    assert found.q[-1, 3] == pytest.approx(1.6, abs=1e-3)
