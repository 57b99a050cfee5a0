"""Motion that slows down along obstacles finds its best rates."""

from __future__ import annotations

import numpy as np

import armillary as arm
from armillary import tasks

R = arm.RateReason


def test_postures_beside_slow_tasks_stop_nothing() -> None:
    """Rows that depend on those of tasks are broken by rounding in the free motion."""
    cell = arm.example("ur10_on_rail")
    names = cell.joint_names
    check, fk = cell.collision(margin=0.02), cell.fk("tool0")
    rng = np.random.default_rng(5)
    start = np.array([1.0, 0.2, -1.2, 1.5, -1.0, -1.4, 0.3])
    Q = start + rng.uniform(-0.6, 0.6, (400, 7))
    Q = Q[np.argsort(check.clearance(Q))[-16:]]
    control = cell.controller(
        [tasks.Position("tool0"), tasks.Posture(weight=1e-3)],
        avoid=check,
        joints=[names[0], *names[3:]],
        acceleration=10.0,
        rate=250.0,
        conflict="slow",
    )
    goals = fk(Q)[:, None, :3, 3] + rng.uniform(-0.4, 0.4, (len(Q), 1, 3))
    motion = control.simulate(Q, [goals, None], 250)
    assert motion.distance.min() > 0.02 - 5e-4
    assert np.isin(motion.reason, [R.AVOIDING, R.BLOCKED, R.ASIDE]).mean() > 0.1
    assert (motion.reason == R.UNFINISHED).mean() < 0.01
