"""The simplest inverse kinematics there is, to judge better ones by."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.cell.cell import Cell
from armillary.errors import ShapeError
from armillary.ik.targets import as_matrices
from armillary.model.mount import WORLD
from armillary.spatial import dual_quaternion
from armillary.spatial.pose import Pose

Array = npt.NDArray[np.float64]

MARGIN, WEIGHT = 0.01, 10.0
ARMIJO, SHRINK = 0.5, 0.5
LINE_STEPS = 30


class _Descent(NamedTuple):
    """What a descent looks at: dual quaternions, their Jacobian, the limits."""

    cell: Cell
    frame: str
    relative_to: str
    target: Array
    lower: Array
    upper: Array

    def cost(self, q: Array) -> tuple[float, Array]:
        """Return 1/2 |d - d*|^2 + 1/2 WEIGHT |beyond|^2, and its gradient."""
        kernel = self.cell.fk(
            self.frame, relative_to=self.relative_to, form="dual_quaternion"
        )
        dual: Array = kernel(q)
        # d and -d are the same pose: the nearer one is meant.
        error = dual - np.copysign(1.0, dual @ self.target) * self.target
        beyond = q - np.clip(q, self.lower + MARGIN, self.upper - MARGIN)
        value = 0.5 * float(error @ error) + 0.5 * WEIGHT * float(beyond @ beyond)
        return value, self.jacobian(q, dual).T @ error + WEIGHT * beyond

    def jacobian(self, q: Array, dual: Array) -> Array:
        """Return d dual / d q, shape (8, n): 1/2 dual V, V in the frame's axes."""
        kernel = self.cell.jacobian(
            self.frame, relative_to=self.relative_to, axes=self.frame
        )
        linear, angular = np.split(kernel(q), 2)
        r, d = dual[:4], dual[4:]
        upper = 0.5 * _left(r) @ angular
        return np.vstack([upper, 0.5 * (_left(d) @ angular + _left(r) @ linear)])


def jacobian_transpose(
    cell: Cell,
    frame: str,
    target: Any,
    *,
    start: Any = None,
    relative_to: str = WORLD,
    steps: int = 1000,
    gradient_tolerance: float = 1e-6,
) -> Array | None:
    """Find joint positions by steepest descent along J' e, in plain NumPy.

    The error is the difference of dual quaternions, of the sign that is nearer; joints
    nearer to a limit than 0.01 are pushed back. Each step goes down the gradient g by
    at most 1 + |g| in all, halved until the cost falls by half of what its slope
    promises (Armijo), as Isaac's solver of kinematic trees does. It is slow, finds what
    is downhill, and shares nothing with `Cell.ik` but forward kinematics.

    Args:
        cell: The cell; all its joints may move.
        frame: The frame to place.
        target: One pose, shape (4, 4), or a dual quaternion, shape (8,).
        start: The first joint positions, shape (n,); home by default.
        relative_to: The frame in which the target is given.
        steps: Most steps.
        gradient_tolerance: Length of the gradient at which it has arrived.

    Returns:
        Joint positions, shape (n,); None where it stopped short, arrived beyond a
        limit, or in a valley of the cost that is not the target.

    Raises:
        ShapeError: The target is not one pose, or `start` not one vector.
    """
    lower, upper = cell.limits
    q = np.array(cell.home.q if start is None else start, dtype=np.float64)
    if q.shape != lower.shape:
        raise ShapeError(f"start has shape {q.shape}; it needs {lower.shape}.")
    descent = _Descent(cell, frame, relative_to, _dual(target), lower, upper)
    value, gradient = descent.cost(q)
    for _ in range(steps):
        length = float(np.linalg.norm(gradient))
        if not length > gradient_tolerance:
            break
        next_point = _lower_on_line(descent, q, value, gradient / length, length)
        if next_point is None:
            break
        q, value, gradient = next_point
    arrived = np.linalg.norm(gradient) <= gradient_tolerance
    reached = value <= 1e3 * gradient_tolerance**2
    within = bool(((q >= lower) & (q <= upper)).all())
    return q if arrived and reached and within else None


def _lower_on_line(
    descent: _Descent, q: Array, value: float, direction: Array, slope: float
) -> tuple[Array, float, Array] | None:
    """Return the first point down the line that is low enough, None without one."""
    size = 1.0 + slope
    for _ in range(LINE_STEPS):
        there = q - size * direction
        lower, gradient = descent.cost(there)
        if lower <= value - ARMIJO * size * slope:
            return there, lower, gradient
        size *= SHRINK
    return None


def _dual(target: Any) -> Array:
    """Return the unit dual quaternion of one target."""
    array = np.asarray(target, dtype=np.float64)
    if array.shape not in {(4, 4), (8,)}:
        raise ShapeError(
            f"A target has shape (4, 4), or (8,) as a dual quaternion; not "
            f"{array.shape}."
        )
    pose = Pose.from_matrix(as_matrices(array))
    return np.array(dual_quaternion.from_pose(pose), dtype=np.float64)


def _left(q: Array) -> Array:
    """Return the matrix of the product q (0, v) as a function of v, shape (4, 3)."""
    w, x, y, z = q
    return np.array([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]])
