"""How far motions go beyond limits of positions: of each joint, and of several.

Between two knots positions are polynomials of time or of a path parameter, and so is
the sum a'q of a limit. Its greatest value is found by the roots of its derivative, in
those intervals alone whose Bernstein coefficients, which bound it (Farouki, CAGD 29,
2012), are above what is known already.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ShapeError
from armillary.kinematics.kernels import Joints, selection_of
from armillary.model.workcell import Workcell
from armillary.spatial.polynomial import bernstein, derivative, polynomial

__all__ = ["greatest_excess", "greatest_values", "workcell_of"]

Array = npt.NDArray[np.float64]

REAL: Final = 1e-6
"""Imaginary part of a root below which its real part is looked at."""


def workcell_of(cell: Any, count: int, joints: Joints) -> Workcell:
    """Return the workcell of a cell, or a workcell, whose joints are as many.

    Raises:
        UnknownName: A joint does not exist.
        ShapeError: There are more, or fewer.
    """
    workcell: Workcell = getattr(cell, "workcell", cell)
    found = len(selection_of(workcell, joints).inputs)
    if found != count:
        raise ShapeError(
            f"The motion is of {count} joints, and {found} are named here: pass the "
            "cell that it was made for, and the same joints=."
        )
    return workcell


def greatest_excess(cell: Workcell, pieces: Array, joints: Joints) -> float:
    """Return by how much positions are beyond the limit that they miss most.

    It is below 0 where all limits are kept, -inf where there are none.

    Args:
        cell: What has the limits.
        pieces: Coefficients of polynomials of r, from 0 to 1, shape (k, d + 1, n).
        joints: Names of the n joints; the others are at home.
    """
    chosen = selection_of(cell, joints).inputs
    lower, upper = (limit[list(chosen)] for limit in cell.limits)
    rows = cell.limit_rows.of_joints(chosen, cell.home_q)
    A, b = rows.polytope(lower, upper)
    if not len(b):
        return -np.inf
    sums: Array = np.einsum("kdn,mn->kmd", pieces, A)
    sums[..., 0] -= b
    powers = int(sums.shape[-1])
    return greatest_values(sums.reshape(-1, powers))


def greatest_values(values: Array) -> float:
    """Return the greatest value of polynomials over [0, 1].

    values: Their coefficients, constants first, shape (k, d + 1).
    """
    powers = int(values.shape[-1])
    ends = np.concatenate([values[:, 0], values.sum(axis=1)])
    most = float(ends.max())
    bounds = (values @ bernstein(powers - 1).T).max(axis=1)
    for k in np.argsort(-bounds).tolist():
        if not bounds[k] > most:
            break
        slopes = derivative(values[k])
        roots: npt.NDArray[np.complex128] = np.roots(slopes[::-1]).astype(np.complex128)
        for root in roots.tolist():
            if abs(root.imag) < REAL and 0.0 < root.real < 1.0:
                most = max(most, float(polynomial(values[k], root.real)))
    return most
