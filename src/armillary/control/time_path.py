"""The question how fast a path of joint positions can be followed within limits."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.control.path_curve import PathCurve, natural_spline
from armillary.control.sweep_stages import KNOTS, POINTS, TOLERANCE, sweeps
from armillary.control.timed_path import PathReason, TimedPath
from armillary.errors import ModelError, ShapeError, quote
from armillary.kinematics.kernels import Joints, selection_of
from armillary.model.workcell import Workcell

__all__ = ["time_path"]

Array = npt.NDArray[np.float64]
Batch = tuple[int, ...]

START_TOO_FAST, END_TOO_FAST, STOPS, REPEATED, INVALID = map(
    int,  # quicker than members of an enumeration
    (
        PathReason.START_TOO_FAST,
        PathReason.END_TOO_FAST,
        PathReason.STOPS,
        PathReason.REPEATED,
        PathReason.INVALID,
    ),
)

INTERVALS = 100
"""Intervals of a grid, where nothing is said."""

LEAST_INTERVALS = 10
"""Intervals between two waypoints, where nothing is said."""


class Curves(NamedTuple):
    """The paths of a question.

    Attributes:
        curve: The curves; those of rows that are faulty are meaningless.
        reason: What is wrong with each path, as numbers of `PathReason`, shape (...).
        still: Which paths rest at one point, shape (...).
    """

    curve: PathCurve
    reason: npt.NDArray[np.int8]
    still: npt.NDArray[np.bool_]


def time_path(  # noqa: PLR0913
    cell: Workcell,
    path: npt.ArrayLike,
    *,
    velocity: npt.ArrayLike | None = None,
    acceleration: npt.ArrayLike | None = None,
    at: npt.ArrayLike | None = None,
    derivatives: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    intervals: int | None = None,
    start: npt.ArrayLike = 0.0,
    end: npt.ArrayLike = 0.0,
    joints: Joints = None,
) -> TimedPath:
    """Return the fastest motion along a path within limits of its joints.

    The path is the natural cubic spline through waypoints, so it bends smoothly and the
    motion does not stop at waypoints. (At the corner of a polygon of straight lines an
    acceleration would be infinite. To stop at each waypoint, give each line as a path
    of two waypoints, in one batch.)

    Limits hold at the points of a grid, and everywhere on straight lines. Between
    points of a curved path they may be exceeded a little; `TimedPath.peaks` tells by
    how much. The motion is the fastest of those whose path acceleration is constant
    between points. Positions are not compared with their limits, and torques are not
    limited.

    Args:
        cell: What moves.
        path: Waypoints, joint positions [m or rad], shape (..., k, n), k >= 2.
        velocity: The greatest rates [m/s or rad/s], shape (), (n,) or (..., n). By
            default those of the cell.
        acceleration: The greatest accelerations [m/s^2 or rad/s^2], of the same shapes.
            By default those of the cell, which must then have one for each joint.
        at: The parameter s of each waypoint, ascending, shape (k,) or (..., k). By
            default the length of the polygon of waypoints up to there, in the units of
            q; where metres and radians mix, give your own.
        derivatives: dq/ds and d2q/ds2 at the waypoints, shape (..., k, n) each, for
            curves of your own; `at` must then be given. Between waypoints the path is
            the polynomial of degree 5 that has them.
        intervals: How many intervals of the grid, of equal length, are between two
            waypoints, or a few more; by default 10, or as many more as make 100 in all.
        start: The path speed ds/dt at the start, a number or shape (...).
        end: The path speed at the end, likewise.
        joints: Names of the n joints that q holds, in that order; by default all.

    Returns:
        Times, and the motion at any instant, with a reason for each path of a batch
        that cannot be timed.

    Raises:
        UnknownName: A joint does not exist.
        ShapeError: An array does not fit.
        ModelError: A limit or a path speed is negative or NaN, a joint has no limit,
            there are too few intervals, or derivatives are given without `at`.
    """
    names = cell.joint_names
    chosen = selection_of(cell, joints).inputs
    n = len(chosen)
    if not n:
        raise ModelError("There are no joints here that could move.")
    positions = _numbers("path", path)
    if positions.ndim < 2 or positions.shape[-1] != n or positions.shape[-2] < 2:
        raise ShapeError(
            f"A path has the shape (..., k, {n}): {n} joint positions for each of two "
            f"waypoints or more; this one has {positions.shape}."
        )
    velocity = cell.velocity_limits[list(chosen)] if velocity is None else velocity
    if acceleration is None:
        acceleration = _accelerations(cell, chosen)
    limits = [
        _limit("velocity", velocity, n),
        _limit("acceleration", acceleration, n),
    ]
    _check_limited([names[k] for k in chosen], limits)
    ends = [_speed("start", start), _speed("end", end)]
    curves = _curves(positions, at, derivatives)
    _check_batches(
        path=curves.reason.shape,
        velocity=limits[0].shape[:-1],
        acceleration=limits[1].shape[:-1],
        start=ends[0].shape,
        end=ends[1].shape,
    )
    per_knot = _intervals(intervals, positions.shape[-2])
    pieces = -(-per_knot // (POINTS - 1))
    curve = curves.curve.refined(pieces) if pieces > 1 else curves.curve
    x, time, reason = _swept(curve, -(-per_knot // pieces), limits, ends)
    reason = np.where(curves.reason > 0, curves.reason, reason)
    still = np.broadcast_to(curves.still, reason.shape)
    if reason.any():
        reason[still & (curves.reason == 0)] = 0
        failed = reason > 0
        x[failed] = time[failed] = np.nan
    if still.any():
        still = still & (reason == 0)
        x[still] = time[still] = 0.0
    curve = PathCurve(
        np.broadcast_to(curve.at, (*reason.shape, *curve.at.shape[-1:])),
        np.broadcast_to(curve.knots, (*reason.shape, *curve.knots.shape[-3:])),
    )
    speed = np.sqrt(x)
    for array in (time, speed, reason):
        array.flags.writeable = False
    return TimedPath(time[..., -1], time, speed, reason, curve)


def _swept(
    curve: PathCurve, per_knot: int, limits: list[Array], ends: list[Array]
) -> tuple[Array, Array, npt.NDArray[np.int8]]:
    """Return x and the time at the points of a grid, and what is wrong, piece by piece.

    Args:
        curve: The paths.
        per_knot: Intervals of the grid between two knots.
        limits: Of rates and accelerations.
        ends: Path speeds at the start and at the end.
    """
    n, count = curve.knots.shape[-1], curve.at.shape[-1] - 1
    longest = min(KNOTS - 1, (POINTS - 1) // per_knot)
    pieces: list[tuple[int, Array, Array]] = []
    for first in range(0, count, longest):
        size = min(longest, count - first)
        at = np.zeros((*curve.at.shape[:-1], KNOTS))
        knots = np.zeros((*at.shape, 3, n))
        at[..., : size + 1] = curve.at[..., first : first + size + 1]
        knots[..., : size + 1, :, :] = curve.knots[..., first : first + size + 1, :, :]
        pieces.append((size, at, knots))

    start, end = (speed * speed for speed in ends)
    lo = hi = end
    bounds: list[tuple[Array, ...]] = []
    for size, at, knots in reversed(pieces):
        kernel = sweeps(n, size, per_knot).backward
        lows, highs = kernel(at, knots, *limits, lo, hi)
        bounds.append((lows, highs))
        lo, hi = lows[..., 0], highs[..., 0]

    start_too_fast = (hi >= 0.0) & (start > hi * (1.0 + TOLERANCE))
    end_too_fast = (hi < 0.0) | (start < lo * (1.0 - TOLERANCE))
    fault = np.where(
        start_too_fast, START_TOO_FAST, np.where(end_too_fast, END_TOO_FAST, 0)
    )
    x = np.where(fault > 0, np.nan, np.maximum(np.minimum(start, hi), lo))
    time = np.zeros_like(x)
    found: list[list[Array]] = []
    for (size, at, knots), within in zip(pieces, reversed(bounds), strict=True):
        kernel = sweeps(n, size, per_knot).forward
        last = size * per_knot
        arrays = kernel(at, knots, limits[1], *within, x, time)
        x, time = (array[..., last] for array in arrays)
        found.append([array[..., :last] for array in arrays])
    found.append([x[..., None], time[..., None]])
    fault = np.where((fault == 0) & ~(time < np.inf), STOPS, fault).astype(np.int8)
    x, time = (np.concatenate(parts, axis=-1) for parts in zip(*found, strict=True))
    return x, time, fault


def _curves(
    positions: Array,
    at: npt.ArrayLike | None,
    derivatives: tuple[npt.ArrayLike, npt.ArrayLike] | None,
) -> Curves:
    """Return the curves through waypoints, shape (..., k, n).

    Raises:
        ShapeError: An array does not fit.
        ModelError: Derivatives are given without parameters.
    """
    shape = positions.shape
    with np.errstate(all="ignore"):
        steps = positions[..., 1:, :] - positions[..., :-1, :]
        still = (steps == 0.0).all((-1, -2))
        if at is not None:
            s = _fitting("at", at, shape[:-1])
        elif derivatives is None:
            s = np.zeros(shape[:-1])
            np.cumsum(np.sqrt((steps * steps).sum(-1)), axis=-1, out=s[..., 1:])
            s[still] = np.arange(shape[-2])
        else:
            raise ModelError(
                "derivatives= are those by a parameter: give its values as at=, one "
                "for each waypoint."
            )
        ascends = (s[..., 1:] > s[..., :-1]).all(-1)
        if derivatives is None:
            knots = natural_spline(s, positions)
            is_finite = np.isfinite(positions).all((-1, -2))
        else:
            named = zip(("derivatives[0]", "derivatives[1]"), derivatives, strict=True)
            known = [_fitting(name, values, shape) for name, values in named]
            knots = np.stack([positions, *known], axis=-2)
            still = still & (knots[..., 1:, :] == 0.0).all((-1, -2, -3))
            is_finite = np.isfinite(knots).all((-1, -2, -3))
        is_finite = is_finite & np.isfinite(s).all(-1)
    reason = np.where(is_finite, np.where(ascends, 0, REPEATED), INVALID)
    return Curves(PathCurve(s, knots), reason.astype(np.int8), still)


def _intervals(given: Any, knots: int) -> int:
    """Return how many intervals of the grid there are between two waypoints.

    Raises:
        ModelError: There are too few.
    """
    if given is None:
        return max(LEAST_INTERVALS, -(-INTERVALS // (knots - 1)))
    try:
        count = operator.index(given)
    except TypeError:
        count = 0
    least = 2 if knots == 2 else 1
    if count < least:
        raise ModelError(
            f"intervals is {quote(given)}; it must be a whole number, at least {least}."
        )
    return count


def _accelerations(cell: Workcell, joints: Sequence[int]) -> Array:
    """Return the accelerations that the model of a cell allows.

    Raises:
        ModelError: A joint has none.
    """
    found = cell.joints.acceleration_limits[list(joints)]
    endless = [
        cell.joint_names[k] for k, a in zip(joints, found, strict=True) if a == np.inf
    ]
    if endless:
        raise ModelError(
            "These joints have no acceleration limit in the model, so give "
            f"acceleration=: {', '.join(endless)}."
        )
    return found


def _check_limited(names: list[str], limits: list[Array]) -> None:
    """Refuse joints that nothing limits.

    Raises:
        ModelError: One has neither limit.
    """
    if any(np.isfinite(limit).all() for limit in limits):
        return
    velocity, acceleration = np.broadcast_arrays(*limits)
    endless = (np.isinf(velocity) & np.isinf(acceleration)).reshape(-1, len(names))
    free = np.flatnonzero(endless.any(axis=0)).tolist()
    if free:
        listed = ", ".join(quote(names[k]) for k in free)
        raise ModelError(
            f"These joints have neither a velocity nor an acceleration limit: {listed}."
        )


def _check_batches(**batches: Batch) -> None:
    """Refuse batches that do not fit together.

    Raises:
        ShapeError: They do not.
    """
    try:
        np.broadcast_shapes(*batches.values())
    except ValueError:
        listed = ", ".join(f"{name} has {batch}" for name, batch in batches.items())
        raise ShapeError(
            f"Batches do not fit together: {listed}. Each dimension must be the same "
            "in all of them, or 1."
        ) from None


def _numbers(name: str, value: Any) -> Array:
    """Return an array of numbers.

    Raises:
        ShapeError: They are not numbers, or rows of unequal length.
    """
    try:
        given = np.asarray(value)
    except ValueError as error:
        raise ShapeError(f"{name} has rows of unequal length.") from error
    if given.dtype.kind not in "fiub":
        raise ShapeError(f"{name} needs real numbers, not {given.dtype}.")
    return given.astype(np.float64)


def _fitting(name: str, value: Any, shape: Batch) -> Array:
    """Return an array that broadcasts to a shape.

    Raises:
        ShapeError: It does not.
    """
    array = _numbers(name, value)
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ShapeError(
            f"With this path {name} needs the shape {shape}; an array of shape "
            f"{array.shape} was given."
        ) from None


def _limit(name: str, value: Any, joints: int) -> Array:
    """Return limits of joints, shape (..., n).

    Raises:
        ShapeError: They do not fit.
        ModelError: One is negative or NaN.
    """
    array = _numbers(name, value)
    if array.ndim == 0:
        array = np.full(joints, array)
    if array.shape[-1] != joints:
        raise ShapeError(
            f"{name} is one number, or has the shape (..., {joints}); an array of "
            f"shape {array.shape} was given."
        )
    if not (array >= 0.0).all():
        raise ModelError(f"A limit in {name} is negative or NaN.")
    return array


def _speed(name: str, value: Any) -> Array:
    """Return path speeds, shape (...).

    Raises:
        ShapeError: They are not numbers.
        ModelError: One is negative, NaN or infinite.
    """
    array = _numbers(name, value)
    if not ((array >= 0.0) & (array < np.inf)).all():
        raise ModelError(
            f"{name} is a path speed, a finite number that is not negative; "
            f"{quote(value)} was given."
        )
    return array
