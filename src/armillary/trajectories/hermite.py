"""Polynomials of degree 5 between two knots of a curve; symbols are in `curve.py`."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.kernel import Kernel
from armillary.kernel.kernel import shared_kernel
from armillary.spatial.ldl import inner
from armillary.spatial.polynomial import with_derivatives
from armillary.spatial.vector import Matrix, Number
from armillary.trace import trace

__all__ = ["BASIS", "BASIS_ROWS", "basis", "between_knots", "knot_between"]

Array = npt.NDArray[np.float64]

BASIS: Final = np.array(
    [  # of r^0, r^1, ..., r^5
        [0.0, 0.0, 0.0, 10.0, -15.0, 6.0],
        [0.0, 1.0, 0.0, -6.0, 8.0, -3.0],
        [0.0, 0.0, 0.0, -4.0, 7.0, -3.0],
        [0.0, 0.0, 0.5, -1.5, 1.5, -0.5],
        [0.0, 0.0, 0.0, 0.5, -1.0, 0.5],
    ]
)
"""Coefficients of H0 to H4, shape (5, 6)."""

BASIS_ROWS: Final = len(BASIS)
"""How many polynomials there are, H0 to H4."""

ORDERS: Final = 3


def basis(r: Array, order: int) -> Array:
    """Return derivatives of H0 to H4 by r: shape (...) to (..., 5).

    Args:
        r: Parts of the way between two knots.
        order: Of the derivative, 0 to 3.
    """
    powers = np.arange(6 - order)
    factors = np.ones(len(powers))
    for k in range(order):
        factors *= powers + order - k
    return (r[..., None] ** powers * factors) @ BASIS[:, order:].T


def knot_between(
    from_knot: Matrix, to_knot: Matrix, h: Number, part: Number
) -> list[list[Number]]:
    """Return position, slope and curvature between two knots.

        q = q_a + H0 (q_b - q_a) + h (H1 m_a + H2 m_b) + h^2 (H3 c_a + H4 c_b)

    Its derivatives by s are each one by r over h.

    Args:
        from_knot: Position, slope and curvature at the first.
        to_knot: The same at the second.
        h: How far they are apart in s.
        part: The part r of the way from the first to the second.
    """
    shares = [with_derivatives(row, part, ORDERS) for row in BASIS.tolist()]
    over = 1.0 / h
    scales = 1.0, over, over * over
    found: list[list[Number]] = [[], [], []]
    for (qa, ma, ca), (qb, mb, cb) in zip(
        zip(*from_knot, strict=True), zip(*to_knot, strict=True), strict=True
    ):
        ends = qb - qa, h * ma, h * mb, h * h * ca, h * h * cb
        rows = zip(*shares, strict=True)
        for row, scale, values in zip(rows, scales, found, strict=True):
            values.append(inner(row, ends) * scale)
        found[0][-1] = found[0][-1] + qa
    return found


@lru_cache(maxsize=64)
def between_knots(joints: int) -> Kernel:
    """Return the kernel from two knots to position, slope and curvature in between.

    It takes what `knot_between` does.

    joints: How many there are.
    """
    shape = ORDERS, joints
    program = trace(
        knot_between,
        name="between_knots",
        outputs=("knot",),
        from_knot=shape,
        to_knot=shape,
        h=(),
        part=(),
    )
    return shared_kernel(program)
