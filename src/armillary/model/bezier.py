"""How far cubic curves go from a point, by the hull of their control points."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

RELATIVE_GAP: Final = 1e-9
MOST_CURVES: Final = 4096
MOST_HALVINGS: Final = 40
ROUNDING: Final = 1e-14


def control_points(coefficients: Array, low: float, high: float) -> Array:
    """Return the control points of a cubic between two parameters.

    Args:
        coefficients: c_k of c_0 + c_1 w + c_2 w^2 + c_3 w^3, shape (4, 3).
        low: Parameter of the first control point.
        high: Parameter of the last one.

    Returns:
        Shape (4, 3).
    """
    a, b, c, d = coefficients
    h = high - low
    # The same cubic in x = (w - low) / h, then in Bernstein's polynomials.
    a, b, c, d = (
        a + low * (b + low * (c + low * d)),
        h * (b + low * (2.0 * c + 3.0 * low * d)),
        h**2 * (c + 3.0 * low * d),
        h**3 * d,
    )
    return np.array([a, a + b / 3.0, a + 2.0 * b / 3.0 + c / 3.0, a + b + c + d])


def largest_distance(curves: Array, centre: Array) -> float:
    """Return an upper bound of the distance of cubics from a point.

    A cubic lies within the hull of its control points. Those that may go farthest are
    halved (de Casteljau) until the bound is within 1e-9 of a distance that is reached,
    or until there are too many of them, as on a circle about the centre.

    Args:
        curves: Control points, shape (n, 4, 3).
        centre: The point, shape (3,).
    """
    reached = top = 0.0
    for _ in range(MOST_HALVINGS if len(curves) else 0):
        distances = np.linalg.norm(curves - centre, axis=2)
        ceilings = distances.max(axis=1)
        reached = max(reached, float(distances[:, [0, 3]].max()))
        top = float(ceilings.max())
        if top <= reached * (1.0 + RELATIVE_GAP) or len(curves) > MOST_CURVES:
            break
        curves = _halved(curves[ceilings > reached])
    return max(top, reached) * (1.0 + ROUNDING)


def _halved(curves: Array) -> Array:
    a, b, c, d = (curves[:, k] for k in range(4))
    ab, bc, cd = 0.5 * (a + b), 0.5 * (b + c), 0.5 * (c + d)
    abc, bcd = 0.5 * (ab + bc), 0.5 * (bc + cd)
    middle = 0.5 * (abc + bcd)
    left = np.stack([a, ab, abc, middle], axis=1)
    return np.concatenate([left, np.stack([middle, bcd, cd, d], axis=1)])
