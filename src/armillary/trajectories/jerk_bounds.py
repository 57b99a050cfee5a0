"""Limits of torques and of a frame, along paths within limits of jerk.

The kernel keeps |a u + b x - m| <= 1 at the start and in the middle of each interval of
its grid. What a motion exceeds limits by in between is measured by samples, and the
motion is slowed down by that. Symbols are those of `jerk_stages.py`.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from armillary.trajectories.curve import PathCurve
from armillary.trajectories.further_limits import FurtherLimits
from armillary.trajectories.hermite import basis
from armillary.trajectories.jerk_spline import FAST
from armillary.trajectories.torques import PathTorques

__all__ = ["PathBounds"]

Array = npt.NDArray[np.float64]

FAR: Final = 100.0
"""Takes the place of an infinite limit, in parts of that on the other side."""

SAMPLES: Final = np.arange(8) / 8.0
"""Parts of the time of an interval at which excess is measured."""


class MotionOnGrid(Protocol):
    """A motion as `TimedPath` has it, shape (..., g) each."""

    @property
    def time(self) -> Array: ...
    @property
    def grid(self) -> Array: ...
    @property
    def speed(self) -> Array: ...
    @property
    def acceleration(self) -> Array: ...


class GridBounds(NamedTuple):
    """Limits at the places of a grid.

    Attributes:
        rows: a, b and m, shape (..., g - 1, 2 r, 3): those of
            the start of each interval, then those of its middle.
        overloaded: Which paths cannot rest at a place, shape (...).
        has_viscous: Whether they depend on the path speed itself.
    """

    rows: Array
    overloaded: npt.NDArray[np.bool_]
    has_viscous: bool


class PathBounds(NamedTuple):
    """Further limits along curves.

    Attributes:
        limits: Which there are.
        curve: The curves; rows that are faulty may hold NaN.
    """

    limits: FurtherLimits
    curve: PathCurve

    def pushes(self) -> Array:
        """Return the greatest path accelerations at rest: shape (..., 2).

        They speed up from the start, and slow down to the end.
        """
        at = self.curve.at
        along = self.limits.along(self.curve.at_parameters(at[..., [0, -1]]))
        a, _, lower, upper = np.moveaxis(along.rows(is_alone=True), -1, 0)
        a = a * np.array([[1.0], [-1.0]])
        with np.errstate(all="ignore"):
            most = np.where(a > 0.0, upper / a, np.where(a < 0.0, lower / a, FAST))
        return np.clip(np.nan_to_num(most, nan=FAST).min(axis=-1), 1e-9, FAST)

    def bounds(
        self,
        grid: Array,
        squares: Array,
        slopes: Array,
        tighter: Array,
        *,
        is_first: bool,
    ) -> GridBounds:
        """Return the limits at the places of a grid.

        Args:
            grid: s at its points, shape (..., g).
            squares: x there, of a motion near the one that is looked for.
            slopes: dx/ds there.
            tighter: What limits are divided by, shape (...).
            is_first: Whether that motion is one without further limits, so that
                viscous friction is left out.
        """
        h = np.diff(grid)
        middle = squares[..., :-1] + h * (
            0.375 * slopes[..., :-1] + 0.125 * slopes[..., 1:]
        )
        s = np.stack([grid[..., :-1], grid[..., :-1] + 0.5 * h], axis=-1)
        x = np.stack([squares[..., :-1], middle], axis=-1)
        places = s.reshape(*s.shape[:-2], 2 * s.shape[-2])
        along = self.limits.along(self.curve.at_parameters(places))
        speed = None
        if along.torques is not None and along.has_viscous and not is_first:
            speed = np.sqrt(np.maximum(x, 0.0)).reshape(places.shape)
            speed = np.minimum(speed, _most_speed(along.torques))
        a, b, lower, upper = np.moveaxis(along.rows(speed), -1, 0)
        least = FAR * np.maximum(np.where(np.isfinite(upper), upper, 1.0), 1e-9)
        most = FAR * np.maximum(np.where(np.isfinite(lower), -lower, 1.0), 1e-9)
        is_free = np.isinf(lower) & np.isinf(upper)
        lower = np.where(np.isinf(lower), -least, lower) / tighter[..., None, None]
        upper = np.where(np.isinf(upper), most, upper) / tighter[..., None, None]
        is_free |= ~((lower < 0.0) & (upper > 0.0))  # such paths are overloaded
        with np.errstate(all="ignore"):
            over = np.where(is_free, 0.0, 2.0 / np.where(is_free, 1.0, upper - lower))
            found = np.stack(
                [a * over, b * over, 0.5 * (upper + lower) * over], axis=-1
            )
            found = np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0)
        shape = *found.shape[:-3], s.shape[-2], 2 * found.shape[-2], 3
        return GridBounds(found.reshape(shape), along.overloaded, along.has_viscous)

    def excess(self, motion: MotionOnGrid) -> Array:
        """Return by what motions are to be slowed down to be within limits.

        The result has shape (...) and is at least 1.
        """
        time, grid = np.nan_to_num(motion.time), motion.grid
        speed = np.nan_to_num(motion.speed)
        acceleration = np.nan_to_num(motion.acceleration)
        step, way = np.diff(time), np.diff(grid)
        over = 1.0 / np.where(step > 0.0, step, 1.0)
        parts = np.stack(
            [
                way,
                step * speed[..., :-1],
                step * speed[..., 1:],
                step * step * acceleration[..., :-1],
                step * step * acceleration[..., 1:],
            ],
            axis=-1,
        )
        law = [
            parts @ basis(SAMPLES, order).T * over[..., None] ** order
            for order in range(3)
        ]
        s, v, u = (
            each.reshape(*each.shape[:-2], way.shape[-1] * len(SAMPLES)) for each in law
        )
        s = s + np.repeat(grid[..., :-1], len(SAMPLES), axis=-1)
        along = self.limits.along(self.curve.at_parameters(s))
        rows = along.rows(v if along.has_viscous else None, is_alone=True)
        a, b, lower, upper = (rows[..., k] for k in range(4))
        with np.errstate(all="ignore"):
            moving = a * u[..., None] + b * (v * v)[..., None]
            share: Array = moving / np.where(moving > 0.0, upper, lower)
            share = np.where(moving == 0.0, 0.0, share)
            worst = np.nan_to_num(share, nan=0.0).max(axis=(-1, -2))
        # Viscous friction falls with the speed, all else with its square.
        worst = np.maximum(worst, 1.0)
        return worst if along.has_viscous else np.sqrt(worst)


def _most_speed(torques: PathTorques) -> Array:
    """Return path speeds at which viscous friction alone leaves no torque."""
    lower, upper = torques.limits
    v = torques.viscous
    room = np.where(v > 0.0, upper - torques.rest, torques.rest - lower)
    with np.errstate(all="ignore"):
        most = np.where(v == 0.0, np.inf, room / np.abs(v))
    return np.maximum(most.min(axis=-1), 1e-9)
