"""Paths with a time for each point: what `cell.time_path` returns."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from armillary.errors import ShapeError, StateError, quote
from armillary.kernel.arguments import positive_number
from armillary.kinematics.ending import Ending
from armillary.kinematics.kernels import Joints
from armillary.trajectories.curve import PathCurve
from armillary.trajectories.position_limits import greatest_excess, workcell_of

__all__ = ["PathReason", "Peaks", "Samples", "TimedPath", "sample_times"]

Array = npt.NDArray[np.float64]

SAMPLES = 8
"""Parts of each interval of the grid, at whose ends `TimedPath.peaks` looks."""


class PathReason(Ending):
    """How the timing of a path ended.

    `STOPS` says that limits of zero, or next to it, leave no speed at a point, so that
    the end is never reached.
    """

    TIMED = 0, "timed"
    START_TOO_FAST = (
        1,
        "too fast at the start to stay within limits",
    )
    END_TOO_FAST = (
        2,
        "the end speed cannot be reached within limits",
    )
    STOPS = 3, "stopped: limits leave no speed at a point"
    REPEATED = 4, "a waypoint is repeated, or parameters do not ascend"
    INVALID = 5, "not finite"
    OVERLOADED = 6, "a limit of torque is too low to rest at a point"


class Samples(NamedTuple):
    """Motion of joints at instants.

    Attributes:
        time: Instants [s], shape (..., m).
        q: Positions [m or rad], shape (..., m, n).
        qd: Rates [m/s or rad/s], shape (..., m, n).
        qdd: Accelerations [m/s^2 or rad/s^2], shape (..., m, n).
    """

    time: Array
    q: Array
    qd: Array
    qdd: Array


class Peaks(NamedTuple):
    """The greatest rates and accelerations along paths, in either direction.

    Attributes:
        velocity: Greatest rates [m/s or rad/s], shape (..., n).
        acceleration: Greatest accelerations [m/s^2 or rad/s^2], shape (..., n).
    """

    velocity: Array
    acceleration: Array


def sample_times(duration: float, rate: float) -> Array:
    """Return instants at a constant rate, and the end [s].

    Raises:
        ModelError: The rate is not above 0.
    """
    rate = positive_number("The rate", rate)
    count = math.ceil(duration * rate * (1.0 - 1e-12))
    return np.append(np.arange(count) / rate, duration)


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TimedPath:
    """Paths q(s) with the time of each point; arrays are read-only.

    Between two points of the grid the path acceleration d2s/dt2 is constant.

    Attributes:
        duration: How long each path takes [s], shape (...); NaN where it failed.
        time: The time at each of g points of a grid [s], shape (..., g).
        speed: The path speed ds/dt there, shape (..., g).
        reason: How each ended, as numbers of `PathReason`, shape (...).
        curve: The paths.
    """

    duration: Array
    time: Array
    speed: Array
    reason: npt.NDArray[np.int8]
    curve: PathCurve

    @property
    def success(self) -> npt.NDArray[np.bool_]:
        """Return which paths have times, shape (...)."""
        return np.asarray(self.reason == PathReason.TIMED)

    @property
    def parameter(self) -> Array:
        """Return the path parameter s at each point of the grid, shape (..., g)."""
        at, points = self.curve.at, int(self.time.shape[-1])
        count = int(at.shape[-1]) - 1
        per_knot = (points - 1) // count
        knot = np.array([min(k // per_knot, count - 1) for k in range(points)])
        rest = np.array([k / per_knot for k in range(points)]) - knot
        return np.asarray(at[..., knot] * (1.0 - rest) + at[..., knot + 1] * rest)

    @property
    def batch(self) -> tuple[int, ...]:
        """Return the shape of the batch."""
        return self.reason.shape

    def summary(self) -> dict[str, int]:
        """Return the number of paths of each reason, most frequent first."""
        return PathReason.summary(self.reason)

    def at(self, time: npt.ArrayLike) -> Samples:
        """Return the motion at instants.

        Before the start and after the end a path rests at that end: rates and
        accelerations are zero there. Paths that failed are NaN.

        Args:
            time: Instants [s], one number or shape (..., m), whose leading dimensions
                broadcast to the batch.

        Raises:
            ShapeError: They do not.
        """
        try:
            array = np.asarray(time, dtype=np.float64)
            instants = np.broadcast_to(array, (*self.batch, *array.shape[-1:]))
        except (TypeError, ValueError) as error:
            raise ShapeError(
                f"Instants of this batch of shape {self.batch} are one number, or an "
                f"array of shape {(*self.batch, 'm')}: {error}."
            ) from error

        def motion(row: tuple[int, ...]) -> list[Array]:
            asked = np.atleast_1d(instants[row])
            is_known = ~np.isnan(asked)
            times = np.where(is_known, asked, 0.0)
            grid = self.time[row]
            k = np.searchsorted(grid, times, side="right") - 1
            k = np.clip(k, 0, len(grid) - 2)
            since = np.clip(times, 0.0, grid[-1]) - grid[k]
            q, qd, qdd = self._motion(row, k, since)
            rests = (times < 0.0) | (times > grid[-1])
            qd[rests] = qdd[rests] = 0.0
            parts = [np.where(is_known[:, None], a, np.nan) for a in (q, qd, qdd)]
            return parts if instants[row].ndim else [a[0] for a in parts]

        n = self.curve.knots.shape[-1]
        q, qd, qdd = self._by_rows(motion, (*instants.shape, n), 3)
        return Samples(instants, q, qd, qdd)

    def sampled(self, *, rate: float, row: Any = ()) -> Samples:
        """Return the motion along one path at a constant rate, and at its end.

        Args:
            rate: Samples a second.
            row: Which row of the batch: a number, or one for each of its dimensions.

        Raises:
            ModelError: The rate is not above 0.
            StateError: There is no such row, or its path has no times.
        """
        place = self._place(row)
        times = sample_times(float(self.duration[place]), rate)
        return self._row(place).at(times)

    def peaks(self) -> Peaks:
        """Return the greatest rates and accelerations, also between grid points.

        Limits hold at the points of the grid; between them this tells by how much a
        curved path exceeds them, found at eight samples of each interval. More points
        lessen it: the excess of accelerations falls as the square of the distance
        of points. Paths that failed are NaN.
        """

        def peaks(row: tuple[int, ...]) -> list[Array]:
            steps = np.diff(self.time[row])
            k = np.repeat(np.arange(len(steps)), SAMPLES + 1)
            parts = np.tile(np.linspace(0.0, 1.0, SAMPLES + 1), len(steps))
            _, qd, qdd = self._motion(row, k, parts * steps[k])
            return [np.abs(qd).max(axis=0), np.abs(qdd).max(axis=0)]

        shape = *self.batch, self.curve.knots.shape[-1]
        return Peaks(*self._by_rows(peaks, shape, 2))

    def limit_excess(self, cell: Any, *, joints: Joints = None) -> Array:
        """Return by how much each path is beyond the limit of positions it misses most.

        Times do not matter for it: it is a property of the curve. Limits of joints and
        those that couple them count, everywhere along the curve, not only at the points
        of the grid.

        Args:
            cell: The cell that moves.
            joints: As for `cell.time_path`.

        Returns:
            Shape (...): 0 or less where limits are kept [m or rad, or the unit of a
            coupled limit]; NaN for paths that failed.

        Raises:
            UnknownName: A joint does not exist.
            ShapeError: The cell has other joints.
        """
        workcell = workcell_of(cell, int(self.curve.knots.shape[-1]), joints)

        def excess(row: tuple[int, ...]) -> list[Array]:
            pieces = self.curve.polynomials(row)
            return [np.array(greatest_excess(workcell, pieces, joints))]

        (found,) = self._by_rows(excess, self.batch, 1)
        return found

    def _by_rows(
        self,
        compute: Callable[[tuple[int, ...]], list[Array]],
        shape: tuple[int, ...],
        count: int,
    ) -> list[Array]:
        """Return what is computed for each row that has times, else NaN."""
        arrays = [np.full(shape, np.nan) for _ in range(count)]
        for row in np.ndindex(self.batch):
            if self.success[row]:
                for array, values in zip(arrays, compute(row), strict=True):
                    array[row] = values
        return arrays

    def _motion(
        self, row: tuple[int, ...], k: npt.NDArray[np.int64], since: Array
    ) -> tuple[Array, Array, Array]:
        """Return q, qd and qdd a time after grid points k: shape (m) to (m, n) each.

        In an interval u = s'' is constant, and t after its start

            s' = s'[k] + u t,    s = s[k] + (s'[k] + u t / 2) t
        """
        speed, at = self.speed[row], self.curve.at[row]
        per_knot = (len(speed) - 1) // (len(at) - 1)
        knot = k // per_knot
        gap = (at[knot + 1] - at[knot]) / per_knot
        squares = speed * speed
        with np.errstate(divide="ignore", invalid="ignore"):
            u = (squares[k + 1] - squares[k]) / (2.0 * gap)
            way = (speed[k] + 0.5 * u * since) * since / gap
        part = (k + np.clip(way, 0.0, 1.0)) / per_knot
        rate = (speed[k] + u * since)[:, None]
        q, slope, curvature = self.curve.evaluate(row, part)
        return q, slope * rate, slope * u[:, None] + curvature * rate * rate

    def _place(self, row: Any) -> tuple[int, ...]:
        try:
            place = tuple(map(operator.index, np.ravel(row).tolist()))
        except TypeError as error:
            raise StateError(f"Rows are whole numbers, not {quote(row)}.") from error
        if len(place) != len(self.batch):
            raise StateError(
                f"These paths are a batch of shape {self.batch}: row= must choose one "
                f"of it, and is {quote(row)}."
            )
        for index, size in zip(place, self.batch, strict=True):
            if not -size <= index < size:
                raise StateError(f"There are {size} rows here, and none is {index}.")
        if not self.success[place]:
            sentence = PathReason(int(self.reason[place])).sentence
            raise StateError(f"The path has no times: {sentence}.")
        return place

    def _row(self, place: tuple[int, ...]) -> TimedPath:
        """Return one path of the batch."""
        curve = PathCurve(self.curve.at[place], self.curve.knots[place])
        arrays = self.duration, self.time, self.speed, self.reason
        duration, time, speed, reason = (np.asarray(a[place]) for a in arrays)
        return TimedPath(duration, time, speed, reason, curve)

    def __repr__(self) -> str:
        if self.batch:
            return f"<TimedPath: {PathReason.text(self.reason, self.success)}>"
        if not self.success:
            return f"<TimedPath: {PathReason(int(self.reason)).sentence}>"
        return f"<TimedPath: {float(self.duration):.6g} s>"
