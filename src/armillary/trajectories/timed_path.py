"""Paths with a time for each point: what `cell.time_path` returns."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from armillary.errors import ShapeError, StateError, quote
from armillary.kinematics.ending import Ending
from armillary.kinematics.kernels import Joints
from armillary.kinematics.state import State
from armillary.trajectories.curve import PathCurve, hermite_coefficients
from armillary.trajectories.motion import Motion
from armillary.trajectories.motion_parts import POWERS, Peaks, Samples
from armillary.trajectories.position_limits import greatest_excess, workcell_of

__all__ = ["PathReason", "TimedPath"]

Array = npt.NDArray[np.float64]


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


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TimedPath:
    """Paths q(s) with the time of each point; arrays are read-only.

    Between two points of the grid the path acceleration d2s/dt2 is constant. Where jerk
    is limited the path parameter is there the polynomial of time of degree 5 that has
    its value, speed and acceleration at both.

    Attributes:
        duration: How long each path takes [s], shape (...); NaN where it failed.
        time: The time at each of g points of a grid [s], shape (..., g).
        speed: The path speed ds/dt there, shape (..., g).
        reason: How each ended, as numbers of `PathReason`, shape (...).
        curve: The paths.
        joint_names: The names of the n joints.
        start: The state that motions begin in, but for these joints.
        grid: The path parameter at each point of the grid, shape (..., g), and
        acceleration: The path acceleration there, if jerk is limited.
    """

    duration: Array
    time: Array
    speed: Array
    reason: npt.NDArray[np.int8]
    curve: PathCurve
    joint_names: tuple[str, ...]
    start: State
    grid: Array | None = None
    acceleration: Array | None = None

    @property
    def success(self) -> npt.NDArray[np.bool_]:
        """Return which paths have times, shape (...)."""
        return np.asarray(self.reason == PathReason.TIMED)

    @property
    def parameter(self) -> Array:
        """Return the path parameter s at each point of the grid, shape (..., g)."""
        if self.grid is not None:
            return self.grid
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

        def motion(row: tuple[int, ...]) -> Sequence[Array]:
            return self.motion(row).at(instants[row])[1:]

        n = self.curve.knots.shape[-1]
        return Samples(instants, *self._by_rows(motion, (*instants.shape, n), 4))

    def motion(self, row: Any = ()) -> Motion:
        """Return the motion along one path.

        Args:
            row: Which row of the batch: a number, or one for each of its dimensions.

        Raises:
            StateError: There is no such row, or its path has no times.
        """
        place = self._place(row)
        time, at = self.time[place], self.curve.at[place]
        h = np.diff(at)
        if self.grid is None or self.acceleration is None:
            law, piece = _constant_accelerations(time, self.speed[place], h)
        else:
            motion = np.stack(
                [self.grid[place], self.speed[place], self.acceleration[place]], axis=1
            )
            time, law, piece = _smooth_laws(time, motion, at)
        curve = hermite_coefficients(h, self.curve.knots[place])
        return Motion.on(
            self.start, self.joint_names, times=time, law=law, curve=curve, piece=piece
        )

    def sampled(
        self, *, rate: float | None = None, dt: float | None = None, row: Any = ()
    ) -> Samples:
        """Return the motion along one path at a constant rate, and at its end.

        Args:
            rate: Samples a second.
            dt: The time between two samples instead [s].
            row: Which row of the batch: a number, or one for each of its dimensions.

        Raises:
            ModelError: The rate is not above 0.
            StateError: There is no such row, or its path has no times.
        """
        return self.motion(row).sampled(rate=rate, dt=dt)

    def peaks(self) -> Peaks:
        """Return the greatest rates, accelerations and jerks, also between grid points.

        Limits of rates and accelerations hold at the points of the grid; between them
        this tells by how much a curved path exceeds them, found at eight samples of
        each interval. More points lessen it: the excess of accelerations falls as the
        square of the distance of points. Jerks are those inside of intervals. Paths
        that failed are NaN.
        """
        shape = *self.batch, self.curve.knots.shape[-1]
        return Peaks(*self._by_rows(lambda row: self.motion(row).peaks(), shape, 3))

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
            h = np.diff(self.curve.at[row])
            pieces = hermite_coefficients(h, self.curve.knots[row])
            return [np.array(greatest_excess(workcell, pieces, joints))]

        (found,) = self._by_rows(excess, self.batch, 1)
        return found

    def _by_rows(
        self,
        compute: Callable[[tuple[int, ...]], Sequence[Array]],
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

    def _place(self, row: Any) -> tuple[int, ...]:
        if not (self.batch or self.reason) and np.shape(row) == (0,):
            return ()  # most often
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

    def __repr__(self) -> str:
        if self.batch:
            return f"<TimedPath: {PathReason.text(self.reason, self.success)}>"
        if not self.success:
            return f"<TimedPath: {PathReason(int(self.reason)).sentence}>"
        return f"<TimedPath: {float(self.duration):.6g} s>"


def _constant_accelerations(
    time: Array, speed: Array, h: Array
) -> tuple[Array, npt.NDArray[np.int64]]:
    """Return r(t) in the intervals of a grid, and which part of a path each is on.

    s' = s'[k] + u t with u = s'' constant, and r is the part of the way between knots.
    """
    count, per_knot = len(h), (len(time) - 1) // len(h)
    step = time[1:] - time[:-1]
    u = (speed[1:] - speed[:-1]) / np.where(step > 0.0, step, np.inf)
    law = np.zeros((count, per_knot, POWERS))
    law[..., 0] = np.arange(per_knot) / per_knot
    law[..., 1] = speed[:-1].reshape(count, per_knot) / h[:, None]
    law[..., 2] = 0.5 * u.reshape(count, per_knot) / h[:, None]
    piece = np.repeat(np.arange(count), per_knot)
    return law.reshape(-1, POWERS), piece


def _smooth_laws(
    time: Array, motion: Array, at: Array
) -> tuple[Array, Array, npt.NDArray[np.int64]]:
    """Return times, r(t) between them, and which part of a path each is on.

    Args:
        time: The time at each point of a grid [s], shape (g,).
        motion: s, s' and s'' there, shape (g, 3).
        at: s at the knots of the path, shape (k,).
    """
    s, h = motion[:, 0], np.diff(at)
    middle = 0.5 * (s[1:] + s[:-1])
    piece = np.clip(np.searchsorted(at, middle, side="right") - 1, 0, len(h) - 1)
    step = np.diff(time)
    goes = step > 0.0
    if not goes.any():
        return np.zeros(2), np.zeros((1, POWERS)), np.zeros(1, dtype=np.int64)
    law = hermite_coefficients(step, motion[..., None])[..., 0]
    law[:, 0] -= at[piece]
    powers = np.where(goes, step, 1.0)[:, None] ** np.arange(POWERS)
    law = law / powers / h[piece, None]
    return np.append(time[:-1][goes], time[-1]), law[goes], piece[goes]
