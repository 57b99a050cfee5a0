"""How far polynomials of degree 5 go, against the roots of their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from armillary.programs.meeting import kept_limits
from armillary.programs.mover import Mover
from armillary.programs.tracks import JointValues
from armillary.trajectories.curve import hermite_coefficients

Array = npt.NDArray[np.float64]


def extremes(curve: Array, order: int) -> Array:
    """Values of a derivative of a polynomial over [0, 1]: at its ends and extremes.

    curve: Coefficients, constants first, shape (6,).
    """
    p = np.polynomial.Polynomial(curve).deriv(order) if order else None
    p = np.polynomial.Polynomial(curve) if p is None else p
    roots = p.deriv().roots()
    real = roots[np.abs(roots.imag) < 1e-9].real
    return p(np.concatenate([[0.0, 1.0], real[(real > 0.0) & (real < 1.0)]]))


def judged(curve: Array, T: float, n: int) -> tuple[float, float, float]:
    """The greatest ratio to limits of 2 and 3, the least and greatest positions."""
    rate = max(np.abs(extremes(curve[:, k], 1)).max() / T / 2.0 for k in range(n))
    bend = max(np.abs(extremes(curve[:, k], 2)).max() / T**2 / 3.0 for k in range(n))
    q = np.concatenate([extremes(curve[:, k], 0) for k in range(n)])
    return max(rate, np.sqrt(bend)), float(q.min()), float(q.max())


def mover(low: float, high: float, n: int) -> Mover:
    """Limits of n joints: of positions, 2 of rates and 3 of accelerations."""
    bounds: list[Any] = [
        np.outer([a, b], np.ones(n)) for a, b in ((low, high), (-2.0, 2.0), (-3.0, 3.0))
    ]
    return Mover(None, *bounds)


@pytest.mark.parametrize("kind", ["random", "small", "rest", "line", "still"])
def test_limits_are_compared_at_all_extremes(kind: str):
    rng = np.random.default_rng(5)
    n, count = 3, 200
    ends = rng.normal(size=(count, 2, 3, n))
    if kind == "small":
        ends[:, :, 0] *= 1e-6
    elif kind == "rest":
        ends[:, :, 1:] = 0.0
    elif kind == "line":  # no third derivative
        ends[:, :, 2] = 0.0
        ends[:, :, 1] = ends[:, [1], 0] - ends[:, [0], 0]
    elif kind == "still":
        ends[:, :, 1:], ends[:, 1] = 0.0, ends[:, 0]
    T = np.ones(count) if kind == "line" else rng.uniform(0.01, 3.0, count)
    before, after = (JointValues(*np.moveaxis(ends[:, k], 1, 0)) for k in (0, 1))
    ratios, _ = kept_limits(mover(-9.0, 9.0, n), before, after, T)
    C = hermite_coefficients(T[:, None], ends)[:, 0]
    for k in range(count):
        ratio, least, most = judged(C[k], float(T[k]), n)
        assert ratios[k] == pytest.approx(ratio, rel=1e-8, abs=1e-6)
        if not ratio:
            assert not ratios[k]
        # Positions are within limits that are a little wider, and not else.
        row = JointValues(*(part[[k]] for part in before))
        end = JointValues(*(part[[k]] for part in after))
        off = 1e-7 * (1.0 + abs(least) + abs(most))
        for low, high, is_within in (
            (least - off, most + off, True),
            (least + off, most + off, False),
            (least - off, most - off, False),
        ):
            _, within = kept_limits(mover(low, high, n), row, end, T[[k]])
            assert within.tolist() == [is_within], (kind, k)
