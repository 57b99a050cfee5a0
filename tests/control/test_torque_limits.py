"""Limits of torques: motion takes no more than them, by inverse dynamics."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import armillary as arm
from armillary import tasks
from armillary.errors import ModelError, ShapeError
from masses import with_inertias

Array = npt.NDArray[np.float64]
HOME = np.array([0.1, 0.2, -1.2, 1.5, -1.0, -1.4, 0.3])
RATE = 500.0


@pytest.fixture(scope="module")
def rail() -> arm.Cell:
    return with_inertias(arm.example("ur10_on_rail"), 3)


def torques(cell: arm.Cell, motion: Any, **options: Any) -> Array:
    """Return those of all steps, shape (..., steps, n)."""
    change = np.diff(motion.qd, axis=-2) * RATE
    at, rates = motion.q[..., :-1, :], motion.qd[..., :-1, :]
    return cell.inverse_dynamics(**options)(at, rates, change)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("conflict", ["bend", "slow"])
def test_motion_takes_no_more_than_the_limits(rail: arm.Cell, conflict: Any) -> None:
    fk = rail.fk("tool0")
    target = fk(HOME + np.array([0.6, 0.5, -0.3, 0.4, 0.3, 0.2, 0.5]))
    free = rail.controller(
        [tasks.Frame("tool0"), tasks.Posture()],
        acceleration=60.0,
        rate=RATE,
        conflict=conflict,
    )
    unlimited = np.abs(torques(rail, free.simulate(HOME, [target, None], 600)))
    still = np.abs(rail.gravity_torque()(HOME))
    limits = still + 0.35 * (unlimited.max(axis=0) - still)
    control = rail.controller(
        [tasks.Frame("tool0"), tasks.Posture()],
        acceleration=60.0,
        torque=limits,
        rate=RATE,
        conflict=conflict,
    )
    motion = control.simulate(HOME, [target, None], 1500)
    needed = np.abs(torques(rail, motion))
    assert (unlimited > limits).any(axis=1).sum() > 10
    assert (needed <= limits * (1.0 + 1e-6) + 1e-6).all()
    held = {text for texts in motion.active for text in texts}
    assert any(text.startswith("torque limit of ") for text in held)
    assert arm.RateReason.BRAKING not in motion.reason
    assert np.abs(fk(motion.q[-1]) - target).max() < 1e-2


def test_loads_that_no_motion_can_hold(rail: arm.Cell) -> None:
    X = rail.fk("tool0")(HOME)
    still = np.abs(rail.gravity_torque()(HOME))
    limits = np.full(7, np.inf)
    limits[2] = 0.5 * still[2]  # the shoulder cannot carry the arm
    control = rail.controller(
        tasks.Frame("tool0"), acceleration=1.0, torque=limits, rate=RATE
    )
    step = control(HOME, np.zeros(7), X)
    assert step.reason == arm.RateReason.BRAKING
    assert np.abs(step.qd).max() <= 1.0 / RATE + 1e-12


def test_loads_of_the_state_count(rail: arm.Cell) -> None:
    """A limit that an arm keeps where nothing pulls is broken where gravity does."""
    limits = 1.5 * np.abs(rail.gravity_torque()(HOME)) + 5.0
    control = rail.controller(
        tasks.Posture(), acceleration=50.0, torque=limits, rate=RATE
    )
    goal = HOME + np.array([0.0, 0.8, 0.4, -0.6, 0.5, 0.5, 0.5])
    motion = control.simulate(HOME, goal, 800)
    needed = np.abs(torques(rail, motion))
    kept = motion.reason != arm.RateReason.BRAKING
    assert kept.mean() > 0.5
    assert (needed[kept] <= limits * (1.0 + 1e-6) + 1e-6).all()


def test_rows_of_a_batch_are_those_of_single_calls(rail: arm.Cell) -> None:
    random = np.random.default_rng(5)
    limits = 1.2 * np.abs(rail.gravity_torque()(HOME)) + 3.0
    control = rail.controller(
        [tasks.Frame("tool0"), tasks.Posture()],
        acceleration=60.0,
        torque=limits,
        rate=RATE,
    )
    q = HOME + random.uniform(-0.2, 0.2, (9, 7))
    qd = random.uniform(-0.1, 0.1, (9, 7))
    target = rail.fk("tool0")(HOME + 0.2)
    batch = control(q, qd, [target, None])
    for k in range(9):
        single = control(q[k], qd[k], [target, None])
        assert single.reason == batch.reason[k]
        assert batch.qd[k] == pytest.approx(single.qd, abs=1e-9)


def test_true_stands_for_the_limits_of_the_model(rail: arm.Cell) -> None:
    options: dict[str, Any] = {"acceleration": 60.0, "rate": RATE}
    q, qd = HOME, np.zeros(7)
    target = rail.fk("tool0")(HOME + 0.3)
    model = rail.controller(tasks.Frame("tool0"), torque=True, **options)
    given = rail.controller(tasks.Frame("tool0"), torque=rail.effort_limits, **options)
    none = rail.controller(tasks.Frame("tool0"), torque=False, **options)
    same = model(q, qd, target).qd
    assert given(q, qd, target).qd == pytest.approx(same, abs=1e-12)
    assert none(q, qd, target).qd.shape == (7,)


def test_bad_limits_are_refused(rail: arm.Cell) -> None:
    with pytest.raises(ShapeError, match="torque="):
        rail.controller(tasks.Frame("tool0"), torque=[1.0, 2.0])
    with pytest.raises(ModelError, match="above 0"):
        rail.controller(tasks.Frame("tool0"), torque=-1.0)
    bare = arm.example("ur5e_on_oval")
    with pytest.raises(ModelError, match="inertia"):
        bare.controller(tasks.Posture(), torque=10.0)
