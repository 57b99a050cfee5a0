"""With `conflict="slow"` rates keep their direction where rates along it exist."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import armillary as arm
from armillary import tasks
from rate_problems import rate_limits

R = arm.RateReason
GAIN = 10.0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("rate", [100.0, 500.0])
def test_the_direction_is_left_only_where_a_linear_program_finds_no_rates(
    rail: arm.Cell, rate: float
) -> None:
    """Joints that move already in another direction do not lead aside."""
    rng = np.random.default_rng(3)
    rows, n, dt = 16, 7, 1.0 / rate
    home = np.array([0.5, 0.0, -1.2, 1.5, -1.0, -1.4, 0.3])
    Q = home + rng.uniform(-0.5, 0.5, (rows, n))
    fk, jacobian = rail.fk("tool0"), rail.jacobian("tool0")
    T = fk(Q + rng.uniform(-0.6, 0.6, (rows, n)))[:, :3, 3]
    a = np.full(n, 10.0)
    control = rail.controller(
        [tasks.Position("tool0", gain=GAIN), tasks.Posture()],
        acceleration=a,
        rate=rate,
        conflict="slow",
    )
    steps = int(0.8 * rate)
    motion = control.simulate(Q, [T[:, None], None], steps)
    most = rail.velocity_limits
    judged = aside = 0
    for k in range(0, steps, int(rate / 25.0)):
        q, qd, x = motion.q[:, k], motion.qd[:, k], motion.qd[:, k + 1]
        low, high = rate_limits(q, qd, rail.limits, most, a, dt)
        wanted = GAIN * (T - fk(q)[:, :3, 3])
        for i, (J, v) in enumerate(zip(jacobian(q)[:, :3], wanted, strict=True)):
            size = np.linalg.norm(v)
            if size < 1e-2:
                continue
            best = linprog(
                [0.0] * n + [-1.0],
                A_eq=np.hstack([J, -v[:, None]]),
                b_eq=np.zeros(3),
                bounds=[*zip(low[i], high[i], strict=True), (None, 1.0)],
            )
            got, u = J @ x[i], v / size
            left = np.linalg.norm(got - u * (u @ got))
            if best.status == 0:
                judged += 1
                assert left <= 1e-6 * np.linalg.norm(got) + 1e-9
                assert u @ got == pytest.approx(best.x[-1] * size, abs=1e-5 * size)
            elif left > 1e-4 * np.linalg.norm(got):
                aside += 1
                assert motion.reason[i, k] in {R.ASIDE, R.SINGULAR, R.MET}
    assert judged > 150
    assert aside > 0
