"""Limits of the speed and acceleration of a frame along paths, as rows of x and u.

With p(s) the position of the frame, x = s'^2 and u = s'',

    |v|^2 = |p'|^2 x,    a = p' u + p'' x

so that a limit of the speed bounds x, and one of the acceleration holds where e a <= A
cos(pi / (2 K)) in K directions e, evenly spaced in the plane of p' and p'': that is a
polygon inside of the circle, whose corners are on it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.kernel.arguments import positive_number
from armillary.kinematics.kernels import Joints
from armillary.kinematics.questions import jacobian
from armillary.kinematics.state import State
from armillary.model.workcell import Workcell

__all__ = ["ToolLimits", "tool_limits"]

Array = npt.NDArray[np.float64]

DIRECTIONS: Final = 12
"""Directions in which accelerations are limited, both ways: 1 % below the limit."""

STEP: Final = 1e-5
"""Step of the difference quotient of p'' along q', in units of q."""


class ToolLimits(NamedTuple):
    """Limits of a frame.

    Attributes:
        frame: Its name.
        speed: The greatest speed of its origin [m/s], or infinite.
        acceleration: The greatest acceleration of its origin [m/s^2], or infinite.
    """

    frame: str
    speed: float
    acceleration: float

    def rows(
        self, cell: Workcell, grid: Array, joints: Joints, state: State | None
    ) -> Array:
        """Return rows a, b, lower and upper, of lower <= a u + b x <= upper.

        Args:
            cell: What moves.
            grid: Position, slope and curvature at points, shape (..., g, 3, n).
            joints: As for `jacobian`.
            state: As for `jacobian`.

        Returns:
            Shape (..., g, r, 4).
        """
        kernel: Any = jacobian(cell, self.frame, joints=joints, state=state)
        q, slope, curvature = np.moveaxis(grid, -2, 0)

        def velocity(at: Array, rate: Array) -> Array:
            return np.einsum("...ij,...j->...i", kernel(at)[..., :3, :], rate)

        first = velocity(q, slope)
        step = STEP / np.maximum(np.abs(slope).max(axis=-1, keepdims=True), 1e-30)
        ahead, behind = q + step * slope, q - step * slope
        change = velocity(ahead, slope) - velocity(behind, slope)
        second = velocity(q, curvature) + change / (2.0 * step)
        rows: list[Array] = []
        none = np.zeros(first.shape[:-1])
        if self.speed < np.inf:
            square = (first * first).sum(axis=-1)
            rows.append(_row(none, square, -np.inf, self.speed**2))
        if self.acceleration < np.inf:
            e1, e2 = _plane(first, second)
            most = self.acceleration * np.cos(np.pi / (2 * DIRECTIONS))
            for k in range(DIRECTIONS):
                angle = np.pi * k / DIRECTIONS
                e = np.cos(angle) * e1 + np.sin(angle) * e2
                a, b = ((e * part).sum(axis=-1) for part in (first, second))
                rows.append(_row(a, b, -most, most))
        return np.stack(rows, axis=-2)


def tool_limits(frame: Any, speed: Any, acceleration: Any) -> ToolLimits | None:
    """Return the limits of a frame, None without.

    Raises:
        ModelError: A limit is not above 0, or limits or the frame are missing.
    """
    if frame is None and speed is None and acceleration is None:
        return None
    if frame is None or (speed is None and acceleration is None):
        raise ModelError(
            "Limits of a frame are given as tool=, its name, and tool_speed= or "
            "tool_acceleration=, or both."
        )
    limits = [
        np.inf if value is None else positive_number(name, value, most=np.inf)
        for name, value in (
            ("tool_speed", speed),
            ("tool_acceleration", acceleration),
        )
    ]
    if not np.isfinite(limits).any():
        return None
    return ToolLimits(frame, *limits)


def _row(a: Array, b: Array, lower: float, upper: float) -> Array:
    return np.stack([a, b, np.full(a.shape, lower), np.full(a.shape, upper)], axis=-1)


def _plane(first: Array, second: Array) -> tuple[Array, Array]:
    """Return two unit vectors, at right angles, in whose plane two vectors are."""
    with np.errstate(invalid="ignore", divide="ignore"):
        e1 = first / np.linalg.norm(first, axis=-1, keepdims=True)
        e1 = np.where(np.isfinite(e1), e1, [1.0, 0.0, 0.0])
        rest = second - (second * e1).sum(axis=-1, keepdims=True) * e1
        e2 = rest / np.linalg.norm(rest, axis=-1, keepdims=True)
    return e1, np.where(np.isfinite(e2), e2, 0.0)
