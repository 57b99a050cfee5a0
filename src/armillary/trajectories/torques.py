"""Limits of torques along paths, as rows of what bounds path speed and acceleration.

With qd = q' s' and qdd = q' u + q'' x, where x = s'^2, inverse dynamics are

    tau = M qdd + C qd + g + friction = a u + b x + g + c + v sqrt(x)
    a = M q',    b = M q'' + C(q, q') q'

where c is Coulomb friction and v viscous friction at the rates q' (Pham and Pham, "A
new approach to time-optimal path parameterization based on reachability analysis", IEEE
Transactions on Robotics 34(3), 2018, section III). Inverse dynamics themselves tell the
terms, as they are even or odd in rates. The root is bounded by linear functions of x,

    0 <= sqrt(x) <= (x / r + r) / 2    for each r > 0

so that limits hold whatever r is, and nothing is lost of the upper one where r = s'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.dynamics.questions import inverse_dynamics
from armillary.errors import ModelError
from armillary.kinematics.kernels import Joints
from armillary.kinematics.state import State
from armillary.model.workcell import Workcell
from armillary.trajectories.limits import limits_of

__all__ = ["PathTorques", "path_torques", "torque_limits"]

Array = npt.NDArray[np.float64]

LEAST_SHARE = 1e-2
"""The least r, in parts of the greatest path speed of the path."""


def torque_limits(cell: Workcell, joints: Sequence[int], given: Any) -> Array:
    """Return limits of torques [N m or N], shape (..., 2, n).

    Args:
        cell: The cell.
        joints: The places of the joints in it.
        given: As for `limits_of`, or True for the limits of efforts of the cell.

    Raises:
        ModelError: The model of the cell is asked and limits none of these joints.
    """
    if given is not True:
        return limits_of("torque", given, len(joints), has_zero=False)
    modelled = cell.effort_limits[list(joints)]
    if not np.isfinite(modelled).any():
        raise ModelError(
            "No joint has an effort limit in the model: give torque= numbers, one for "
            "each joint."
        )
    return limits_of("torque", modelled, len(joints))


class PathTorques(NamedTuple):
    """Torques at the points of a grid, shape (..., g, n) each.

    Attributes:
        a: The torque that grows with u.
        b: The torque that grows with x.
        rest: What holds at rest, with Coulomb friction against the motion to come.
        viscous: The torque that grows with the path speed.
        limits: Lower and upper limits, shape (..., 1, n) each.
    """

    a: Array
    b: Array
    rest: Array
    viscous: Array
    limits: tuple[Array, Array]

    @property
    def has_viscous(self) -> bool:
        """Return whether torques depend on the path speed itself."""
        return bool(np.any(self.viscous != 0.0))

    @property
    def overloaded(self) -> npt.NDArray[np.bool_]:
        """Return which paths have a point whose torques at rest break limits."""
        lower, upper = self.limits
        beyond = (self.rest < lower) | (self.rest > upper)
        return np.asarray(beyond.any(axis=(-1, -2)))

    def rows(self, speed: Array | None = None) -> Array:
        """Return rows a, b, lower and upper, shape (..., g, r, 4).

        speed: Path speeds near which nothing is lost, shape (..., g); without them
            viscous friction is left out.
        """
        lower, upper = (limit - self.rest for limit in self.limits)
        if speed is None:
            return _stacked(self.a, self.b, lower, upper)
        with np.errstate(invalid="ignore"):
            most = np.nanmax(np.nan_to_num(speed), axis=-1, keepdims=True)
            r = np.maximum(np.nan_to_num(speed), LEAST_SHARE * most)
            r = np.where(r > 0.0, r, 1.0)[..., None]
        # a u + b x + v sqrt(x) is bounded on one side by its tangent, on the other by
        # sqrt(x) >= 0.
        v = self.viscous
        tangent = _stacked(
            self.a,
            self.b + 0.5 * v / r,
            np.where(v < 0.0, lower - 0.5 * v * r, -np.inf),
            np.where(v > 0.0, upper - 0.5 * v * r, np.inf),
        )
        others = _stacked(
            self.a,
            self.b,
            np.where(v < 0.0, -np.inf, lower),
            np.where(v > 0.0, np.inf, upper),
        )
        return np.concatenate(np.broadcast_arrays(tangent, others), axis=-2)


def _stacked(*parts: Array) -> Array:
    return np.stack(np.broadcast_arrays(*parts), axis=-1)


def path_torques(
    cell: Workcell,
    grid: Array,
    limits: Array,
    *,
    joints: Joints,
    state: State | None,
) -> PathTorques:
    """Return the torques along paths.

    Args:
        cell: What moves.
        grid: Position, slope and curvature at the points of a grid, shape (..., g, 3,
            n).
        limits: Of torques, shape (..., 2, n).
        joints: As for `inverse_dynamics`.
        state: As for `inverse_dynamics`.
    """
    torque: Any = inverse_dynamics(cell, joints=joints, state=state)
    q, slope, curvature = np.moveaxis(grid, -2, 0)
    still = np.zeros_like(q)
    rest = torque(q, still, still)  # g
    # At the rates q' and -q', M q'' + C q' + g is the same, and friction is opposite.
    forth, back = torque(q, slope, curvature), torque(q, -slope, curvature)
    friction = 0.5 * (forth - back)  # c + v
    viscous = np.zeros_like(q)
    if np.any(friction != 0.0):
        # At twice the rates it is c + 2 v.
        twice = 0.5 * (torque(q, 2.0 * slope, still) - torque(q, -2.0 * slope, still))
        viscous = twice - friction
    # A difference of rounding errors is not friction.
    scale = np.abs(forth).max(axis=-1, keepdims=True)
    viscous = np.where(np.abs(viscous) > 1e-9 * scale, viscous, 0.0)
    return PathTorques(
        a=torque(q, still, slope) - rest,
        b=0.5 * (forth + back) - rest,
        rest=rest + friction - viscous,
        viscous=viscous,
        limits=(limits[..., None, 0, :], limits[..., None, 1, :]),
    )
