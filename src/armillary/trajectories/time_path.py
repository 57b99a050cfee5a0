"""The fastest motion along a path of joint positions within limits.

Given q(s), the times are found from the greatest path speeds s' that limits allow, by
two sweeps over a grid of s (TOPP-RA, see `pass_stages.py`), and dt = ds / s':

    the curve         a spline through the waypoints, or the caller's, `curve.py`
    backward sweep    at each grid point those s'^2 from which the end can be reached
    forward sweep     from the start, the greatest path acceleration that stays in them

A path of up to 64 waypoints without limits of torques is one kernel (`_whole`). Others
are swept in pieces (`_swept`): the interval that the backward sweep of a piece ends
with is where that of the piece before begins, and the forward sweep hands on x = s'^2
and the time. Torques bound x and the path acceleration like accelerations do, but for
viscous friction, whose root of x is replaced by its tangent at the path speeds of the
sweep before (`torques.py`); that is repeated `FRICTION_ITERATIONS` times.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError, StateError, quote
from armillary.kernel.arguments import (
    fitting,
    numbers_of,
    positive_number,
    whole_number,
)
from armillary.kinematics.kernels import Joints, selection_of
from armillary.kinematics.state import State, bound_state, home
from armillary.model.workcell import Workcell
from armillary.trajectories.blends import blended
from armillary.trajectories.curve import PathCurve, natural_spline
from armillary.trajectories.further_limits import FurtherLimits
from armillary.trajectories.jerk_path import (
    UNLIMITED,
    PathEnds,
    jerk_limits,
    within_jerk,
)
from armillary.trajectories.kernels import (
    LARGE,
    LONG,
    SIZES,
    SMALL,
    Size,
    Sweeps,
    entry,
    spline,
    sweeps,
    whole_path,
)
from armillary.trajectories.limits import (
    acceleration_limits,
    check_batches,
    check_limited,
    path_speed,
    two_of,
    velocity_limits,
)
from armillary.trajectories.path_parts import Curves, PathLimits, Timed
from armillary.trajectories.timed_path import PathReason, TimedPath
from armillary.trajectories.tool_limits import tool_limits
from armillary.trajectories.torques import torque_limits

__all__ = ["time_path"]

Array = npt.NDArray[np.float64]
Batch = tuple[int, ...]

STOPS, REPEATED, INVALID, OVERLOADED = map(  # quicker than an enumeration's members
    int,
    (
        PathReason.STOPS,
        PathReason.REPEATED,
        PathReason.INVALID,
        PathReason.OVERLOADED,
    ),
)

FRICTION_ITERATIONS = 2
"""How often the path speeds are found again near which viscous friction is linear."""

INTERVALS = 100
"""Intervals of a grid by default."""

LEAST_INTERVALS = 10
"""The least number of intervals between two waypoints by default."""

NEAREST: Final = 1e-8
"""Lines between waypoints that are shorter than this part of one next to them, or of
all, count as rounding where jerk is limited; see `_nearly_repeats`."""

_NOTHING: Final = np.zeros(LONG.knots)
_ZERO: Final = np.zeros(())
_ONE: Final = np.ones(())


class PathGrid(NamedTuple):
    """The points at which limits hold.

    Attributes:
        curve: The paths.
        size: What the kernels have room for.
        per_knot: Intervals between two knots, of equal length.
    """

    curve: PathCurve
    size: Size
    per_knot: int


def time_path(  # noqa: PLR0913
    cell: Workcell,
    path: npt.ArrayLike,
    *,
    velocity: npt.ArrayLike | None = None,
    acceleration: npt.ArrayLike | None = None,
    at: npt.ArrayLike | None = None,
    derivatives: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    blend: npt.ArrayLike | None = None,
    intervals: int | None = None,
    start: npt.ArrayLike = 0.0,
    end: npt.ArrayLike = 0.0,
    path_rates: tuple[float, float] | None = None,
    torque: npt.ArrayLike | Literal[True] | None = None,
    tool: str | None = None,
    tool_speed: float | None = None,
    tool_acceleration: float | None = None,
    jerk: npt.ArrayLike | None = None,
    start_acceleration: npt.ArrayLike = 0.0,
    end_acceleration: npt.ArrayLike = 0.0,
    joints: Joints = None,
    state: State | None = None,
) -> TimedPath:
    """Return the fastest motion along a path within limits of its joints.

    The path is the natural cubic spline through waypoints, so it bends smoothly and the
    motion does not stop at waypoints. (At the corner of a polygon of straight lines an
    acceleration would be infinite. To stop at each waypoint, give each line as a path
    of two waypoints, in one batch.)

    Limits hold at the points of a grid, and everywhere on straight lines. Between
    points of a curved path they may be exceeded a little; `TimedPath.peaks` tells by
    how much. The motion is the fastest of those whose path acceleration is constant
    between points. Positions are not compared with their limits: a path keeps them
    at any speed or at none, see `TimedPath.limit_excess`.

    Torques are limited where `torque` is given. They are those of
    `cell.inverse_dynamics`, also at both sides of all points of the grid.

    Args:
        cell: What moves.
        path: Waypoints, joint positions [m or rad], shape (..., k, n), k >= 2.
        velocity: The greatest rates [m/s or rad/s], shape (), (n,) or (..., n). By
            default those of the cell. Where both directions of joints differ, a tuple
            of two such arrays, at least (n,): lower limits, none above 0, and upper
            ones.
        acceleration: The greatest accelerations [m/s^2 or rad/s^2], likewise. By
            default those of the cell, which must then have one for each joint.
        at: The parameter s of each waypoint, ascending, shape (k,) or (..., k). By
            default the length of the polygon of waypoints up to there, in the units of
            q; where metres and radians mix, give your own.
        derivatives: dq/ds and d2q/ds2 at the waypoints, shape (..., k, n) each, for
            curves of your own; `at` must then be given. Between waypoints the path is
            the polynomial of degree 5 that has them.
        blend: Instead of a spline, the path is the polygon of waypoints, whose corners
            are rounded: by how much each joint may deviate from it at an inner
            waypoint at most [m or rad], one number or shape (..., k - 2). Where lines
            are short, it deviates less.
        intervals: How many intervals of the grid, of equal length, are between two
            waypoints, or a few more; by default 10, or as many more as make 100 in all.
        start: The path speed ds/dt at the start, a number or shape (...).
        end: The path speed at the end, likewise.
        path_rates: The greatest ds/dt and d2s/dt2, either may be infinite; `at` must
            then be given, and `torque` may not. Where s is the way of a tool, these are
            its speed and its acceleration along the path.
        torque: The greatest torques or forces [N m or N], as for `velocity`, but that
            zero need not be within; True for the effort limits of the cell. By default
            there are none. Joints with a limit of torque need no other.
        tool: A frame, whose speed or acceleration is limited, too.
        tool_speed: The greatest speed of its origin [m/s].
        tool_acceleration: The greatest acceleration of its origin [m/s^2]. The motion
            keeps to up to 1 % less.
        jerk: The greatest jerks [m/s^3 or rad/s^3], shape (), (n,) or (..., n), the
            same in both directions; by default jerk is not limited.
        start_acceleration: The path acceleration d2s/dt2 at the start, a number or
            shape (...), where it starts in motion and jerk is limited.
        end_acceleration: The path acceleration at the end, likewise.
        joints: Names of the n joints that q holds, in that order; by default all. For
            torques the others are locked.
        state: For torques, the state whose attachments and moved bases are used.

    Returns:
        Times, and the motion at any instant, with a reason for each path of a batch
        that cannot be timed.

    Raises:
        UnknownName: A joint does not exist.
        ShapeError: An array does not fit.
        ModelError: A limit or a path speed is negative or NaN, zero is not within
            limits, a joint has no limit, there are too few intervals, or derivatives
            are given without `at`. With torques also what `inverse_dynamics` raises.
        StateError: The state is not one of this cell, or is given without torques.
    """
    chosen = _moving_joints(cell, joints)
    positions = _waypoints(path, len(chosen))
    shape = positions.shape
    limits = PathLimits(
        velocity_limits(cell, chosen, velocity),
        acceleration_limits(cell, chosen, acceleration, is_needed=torque is None),
    )
    torques = None if torque is None else torque_limits(cell, chosen, torque)
    of_tool = tool_limits(tool, tool_speed, tool_acceleration)
    has_rows = torques is not None or of_tool is not None
    if state is not None and not has_rows:
        raise StateError(
            "state= counts for torques and frames only: give torque= or tool=, too."
        )
    ends = path_speed("start", start), path_speed("end", end)
    names = [cell.joint_names[k] for k in chosen]
    bounded = None if path_rates is None else _with_path_rates(limits, path_rates)
    if bounded is not None:
        if has_rows or blend is not None:
            raise ModelError(
                "path_rates= cannot be combined with torque=, tool= or blend=."
            )
        limits = bounded
        positions, derivatives = _with_parameter(positions, at, derivatives)
        names.append("s")
    most = None if jerk is None else jerk_limits(jerk, len(chosen))
    if most is not None and bounded is not None:
        free = np.full((*most.shape[:-1], 1), UNLIMITED)
        most = np.concatenate([most, free], axis=-1)
    _check_fit(shape[:-2], names, limits, torques, ends, most)
    of = tuple(names), home(cell) if state is None else bound_state(cell, state)
    further = None
    if has_rows:
        further = FurtherLimits(torques, of_tool, cell, joints, state)
    if most is not None:
        motions = PathEnds(
            *ends,
            _path_acceleration("start_acceleration", start_acceleration, ends[0]),
            _path_acceleration("end_acceleration", end_acceleration, ends[1]),
        )
        curves = _curves(positions, at, derivatives, blend)
        if at is None:
            is_so = (curves.reason == 0) & _nearly_repeats(positions)
            curves.reason[is_so] = REPEATED
        found = within_jerk(curves, intervals, limits, most, motions, further)
        timed = TimedPath(*found[:5], *of, *found[5:])
        return timed if bounded is None else _without_parameter(timed)
    if _is_any("start_acceleration", start_acceleration) or _is_any(
        "end_acceleration", end_acceleration
    ):
        raise ModelError(
            "Path accelerations at the ends count where jerk is limited: give jerk=, "
            "too."
        )
    count, per_knot = shape[-2] - 1, _intervals(intervals, shape[-2])
    is_spline = derivatives is None and blend is None
    if is_spline and not has_rows and LONG.holds(count, per_knot):
        s = None if at is None else fitting("at", at, shape[:-1])
        timed = TimedPath(*_whole(positions, s, per_knot, limits, ends), *of)
    else:
        curves = _curves(positions, at, derivatives, blend)
        timed = TimedPath(*_by_pieces(curves, per_knot, limits, ends, further), *of)
    return timed if bounded is None else _without_parameter(timed)


def _is_any(name: str, value: Any) -> bool:
    """Return whether a number is not 0."""
    is_zero = type(value) is float and value == 0.0
    return not is_zero and bool(np.any(numbers_of(name, value)))


def _with_path_rates(limits: PathLimits, given: Any) -> PathLimits | None:
    """Return limits of joints and, as of a further one, of the path parameter.

    None where neither its speed nor its rate is limited.

    Raises:
        ShapeError: They are not two numbers.
        ModelError: One is not above 0.
    """
    rates = [
        positive_number("A limit of path_rates=", which, most=np.inf)
        for which in two_of("path_rates", given)
    ]
    if rates == [np.inf, np.inf]:
        return None
    widened: list[Array] = []
    for most, each in zip(rates, limits, strict=True):
        column = np.broadcast_to([[-most], [most]], (*each.shape[:-1], 1))
        widened.append(np.concatenate([each, column], axis=-1))
    return PathLimits(*widened)


def _with_parameter(
    positions: Array,
    at: npt.ArrayLike | None,
    derivatives: tuple[npt.ArrayLike, npt.ArrayLike] | None,
) -> tuple[Array, tuple[Array, Array] | None]:
    """Return waypoints, and derivatives, with the parameter as a further joint.

    Raises:
        ShapeError: An array does not fit.
        ModelError: The parameter is not given.
    """
    if at is None:
        raise ModelError("path_rates= are those of the parameter: give at=, too.")
    s = fitting("at", at, positions.shape[:-1])[..., None]
    known: list[Array] = []
    if derivatives is not None:
        pairs = zip(two_of("derivatives", derivatives), (1.0, 0.0), strict=True)
        for k, (each, rate) in enumerate(pairs):
            array = fitting(f"derivatives[{k}]", each, positions.shape)
            known.append(np.concatenate([array, np.full_like(s, rate)], axis=-1))
    both = (known[0], known[1]) if known else None
    return np.concatenate([positions, s], axis=-1), both


def _without_parameter(timed: TimedPath) -> TimedPath:
    """Return paths whose last joint is the parameter without that joint."""
    knots = timed.curve.knots[..., :-1]
    knots.flags.writeable = False
    curve = PathCurve(timed.curve.at, knots)
    return replace(timed, curve=curve, joint_names=timed.joint_names[:-1])


def _path_acceleration(name: str, value: Any, speed: Array) -> Array:
    """Return path accelerations at an end, shape (...).

    Raises:
        ModelError: One is not finite, or is that of an end at rest.
    """
    if type(value) is float and value == 0.0:
        return _ZERO
    array = numbers_of(name, value)
    if not np.isfinite(array).all():
        raise ModelError(f"{name} must be finite; {quote(value)} was given.")
    if ((array != 0.0) & (speed == 0.0)).any():
        raise ModelError(
            f"{name} is that of an end in motion: give its path speed, too, or leave "
            "it out."
        )
    return array


def _moving_joints(cell: Workcell, joints: Joints) -> tuple[int, ...]:
    """Return the places of the joints that move.

    Raises:
        UnknownName: One does not exist.
        ModelError: There is none.
    """
    chosen = selection_of(cell, joints).inputs
    if not chosen:
        raise ModelError(
            "There is no joint to move: joints= names none, or the cell has none."
        )
    return chosen


def _waypoints(path: Any, joints: int) -> Array:
    """Return waypoints, shape (..., k, n).

    Raises:
        ShapeError: They have another shape, or are fewer than two.
    """
    positions = numbers_of("path", path)
    shape = positions.shape
    if positions.ndim < 2 or shape[-1] != joints or shape[-2] < 2:
        raise ShapeError(
            f"A path has the shape (..., k, {joints}): {joints} joint positions for "
            f"each of two waypoints or more; this one has {shape}."
        )
    return positions


def _check_fit(
    batch: Batch,
    names: list[str],
    limits: PathLimits,
    torque: Array | None,
    ends: tuple[Array, Array],
    jerk: Array | None,
) -> None:
    """Check that all joints are limited, and that batches fit that of the paths.

    Raises:
        ModelError: A joint has no limit in one direction.
        ShapeError: Batches do not fit together.
    """
    if jerk is None:  # limits of jerk are finite
        check_limited(names, *limits, *([] if torque is None else [torque]))
    check_batches(
        path=batch,
        velocity=limits.velocity.shape[:-2],
        acceleration=limits.acceleration.shape[:-2],
        torque=() if torque is None else torque.shape[:-2],
        jerk=() if jerk is None else jerk.shape[:-1],
        start=ends[0].shape,
        end=ends[1].shape,
    )


def _whole(
    positions: Array,
    at: Array | None,
    per_knot: int,
    limits: PathLimits,
    ends: tuple[Array, Array],
) -> Timed:
    """Return times of paths through waypoints that one kernel has room for."""
    knots, n = positions.shape[-2:]
    size = next(size for size in SIZES if size.holds(knots - 1, per_knot))
    path = _padded(positions, 0, knots, size.knots, behind=1)
    given = _NOTHING[: size.knots]
    if at is not None:
        given = _padded(at, 0, knots, size.knots, behind=0)
    kernel = whole_path(n, size, knots - 1, per_knot)
    s, made, time, speed, reason, moves = kernel(
        path, given, _ZERO if at is None else _ONE, *limits, *ends
    )
    points = (knots - 1) * per_knot + 1
    curve = PathCurve(s[..., :knots], made[..., :knots, :, :])
    return _timed(time[..., :points], speed[..., :points], reason, moves == 0.0, curve)


def _by_pieces(
    curves: Curves,
    per_knot: int,
    limits: PathLimits,
    ends: tuple[Array, Array],
    further: FurtherLimits | None,
) -> Timed:
    """Return times of curves, found piece by piece."""
    count = curves.curve.at.shape[-1] - 1
    small = further is not None or SMALL.holds(count, per_knot)
    size = SMALL if small else LARGE
    pieces = -(-per_knot // (size.points - 1))
    curve = curves.curve.refined(pieces) if pieces > 1 else curves.curve
    grid = PathGrid(curve, size, -(-per_knot // pieces))
    if further is None:
        time, speed, fault = _swept(grid, limits, ends)
    else:
        time, speed, fault = _loaded(grid, limits, ends, further)
    is_sound = curves.reason == 0
    reason = np.where(is_sound & ~curves.still, fault, curves.reason)
    still = np.broadcast_to(curves.still, reason.shape)
    curve = PathCurve(
        np.broadcast_to(curve.at, (*reason.shape, *curve.at.shape[-1:])),
        np.broadcast_to(curve.knots, (*reason.shape, *curve.knots.shape[-3:])),
    )
    return _timed(time, speed, reason, still, curve)


def _timed(
    time: Array, speed: Array, reason: Any, still: Any, curve: PathCurve
) -> Timed:
    """Return what was found, NaN of paths that failed.

    still: Which paths rest at one point, shape (...).
    """
    if reason.any():
        failed = reason > 0
        time[failed] = speed[failed] = np.nan
        still = still & ~failed
    if still.any():
        time[still] = speed[still] = 0.0
    reason = reason.astype(np.int8)
    for array in (time, speed, reason, curve.at, curve.knots):
        array.flags.writeable = False
    return Timed(time[..., -1], time, speed, reason, curve)


def _loaded(
    grid: PathGrid,
    limits: PathLimits,
    ends: tuple[Array, Array],
    further: FurtherLimits,
) -> tuple[Array, Array, Array]:
    """Return the same as `_swept` with limits of torques, or of a frame."""
    along = further.along(grid.curve.refined(grid.per_knot).knots)
    time, speed, fault = _swept(grid, limits, ends, along.rows())
    if along.has_viscous:
        for _ in range(FRICTION_ITERATIONS):
            time, speed, fault = _swept(grid, limits, ends, along.rows(speed))
    return time, speed, np.where((fault > 0) & along.overloaded, OVERLOADED, fault)


def _swept(
    grid: PathGrid,
    limits: PathLimits,
    ends: tuple[Array, Array],
    rows: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Return times and path speeds at the points of a grid, and what is wrong.

    Args:
        grid: The paths, and the points at which limits hold.
        limits: The limits of rates and accelerations.
        ends: Path speeds at the start and at the end.
        rows: Further rows at each point, shape (..., g, r, 4).
    """
    lengths = _lengths(grid)
    pieces = _pieces(grid, lengths, rows)
    n, others = grid.curve.knots.shape[-1], 0 if rows is None else rows.shape[-2]

    def kernels(length: int) -> Sweeps:
        return sweeps(n, grid.size, length, grid.per_knot, others)

    # Backwards: the end of each piece is the start of the next.
    lo = hi = ends[1] * ends[1]
    bounds: list[tuple[Array, ...]] = []
    for length, (curve, further) in zip(
        reversed(lengths), reversed(pieces), strict=True
    ):
        lows, highs = kernels(length).backward(*curve, *limits, *further, lo, hi)
        bounds.append((lows, highs))
        lo, hi = lows[..., 0], highs[..., 0]

    # Forwards, each piece from the x and the time at the end of the one before.
    x, fault = entry()(ends[0], lo, hi)
    time: Array = np.zeros_like(x)
    times: list[Array] = []
    speeds: list[Array] = []
    for length, (curve, further), within in zip(
        lengths, pieces, reversed(bounds), strict=True
    ):
        forward = kernels(length).forward
        motion = forward(*curve, limits.acceleration, *further, *within, x, time)
        first, last = min(1, len(times)), length * grid.per_knot
        x, time, _ = (part[..., last] for part in motion)
        times.append(motion[1][..., first : last + 1])
        speeds.append(motion[2][..., first : last + 1])
    fault = np.where((fault == 0) & ~(time < np.inf), STOPS, fault)
    return np.concatenate(times, axis=-1), np.concatenate(speeds, axis=-1), fault


def _lengths(grid: PathGrid) -> list[int]:
    """Return how many intervals between knots each piece has that a kernel takes."""
    longest = min(grid.size.knots - 1, (grid.size.points - 1) // grid.per_knot)
    count = grid.curve.at.shape[-1] - 1
    return [min(longest, count - first) for first in range(0, count, longest)]


def _pieces(
    grid: PathGrid, lengths: list[int], rows: Array | None
) -> list[tuple[tuple[Array, Array], tuple[Array, ...]]]:
    """Return the knots of each piece, and the further rows of its points, padded."""
    (curve, size, per_knot), first = grid, 0
    pieces: list[tuple[tuple[Array, Array], tuple[Array, ...]]] = []
    for length in lengths:
        at = _padded(curve.at, first, length + 1, size.knots, behind=0)
        knots = _padded(curve.knots, first, length + 1, size.knots, behind=2)
        further: tuple[Array, ...] = ()
        if rows is not None:
            begin, points = first * per_knot, length * per_knot + 1
            further = (_padded(rows, begin, points, size.points, behind=2),)
        pieces.append(((at, knots), further))
        first += length
    return pieces


def _padded(array: Array, first: int, count: int, size: int, *, behind: int) -> Array:
    """Return so many entries of an axis, with zeros after them up to a size.

    behind: How many axes there are behind it.
    """
    axis, whole = array.ndim - behind - 1, (slice(None),) * behind
    padded = np.zeros((*array.shape[:axis], size, *array.shape[axis + 1 :]))
    padded[..., :count, *whole] = array[..., first : first + count, *whole]
    return padded


def _curves(
    positions: Array,
    at: npt.ArrayLike | None,
    derivatives: tuple[npt.ArrayLike, npt.ArrayLike] | None,
    blend: npt.ArrayLike | None,
) -> Curves:
    """Return the curves through waypoints, shape (..., k, n).

    Raises:
        ShapeError: An array does not fit.
        ModelError: Derivatives are given without parameters, or corners are to be
            rounded with either, or by no number above 0.
    """
    if blend is not None:
        if at is not None or derivatives is not None:
            raise ModelError(
                "blend= rounds the corners of a polygon, whose parameter is its "
                "length: leave out at= and derivatives=, or blend=."
            )
        return blended(positions, blend)
    shape = positions.shape
    with np.errstate(all="ignore"):
        steps = positions[..., 1:, :] - positions[..., :-1, :]
        still = (steps == 0.0).all((-1, -2))
        if at is not None:
            s = fitting("at", at, shape[:-1])
        elif derivatives is None:
            s = np.zeros(shape[:-1])
            squares = np.einsum("...j,...j->...", steps, steps)
            np.cumsum(np.sqrt(squares), axis=-1, out=s[..., 1:])
            s[still] = np.arange(shape[-2])
        else:
            raise ModelError(
                "derivatives= are those by a parameter: give its values as at=, one "
                "for each waypoint."
            )
        ascends = (s[..., 1:] > s[..., :-1]).all(-1)
        if derivatives is None:
            knots = _spline(s, positions)
            is_finite = np.isfinite(positions).all((-1, -2))
        else:
            both = enumerate(two_of("derivatives", derivatives))
            known = [fitting(f"derivatives[{k}]", each, shape) for k, each in both]
            knots = np.stack([positions, *known], axis=-2)
            still = still & (knots[..., 1:, :] == 0.0).all((-1, -2, -3))
            is_finite = np.isfinite(knots).all((-1, -2, -3))
        is_finite = is_finite & np.isfinite(s).all(-1)
    reason = np.where(is_finite, np.where(ascends, 0, REPEATED), INVALID)
    return Curves(PathCurve(s, knots), reason.astype(np.int8), still)


def _nearly_repeats(positions: Array) -> npt.NDArray[np.bool_]:
    """Return which paths have waypoints that are equal but for rounding, shape (...).

    Within limits of jerk these take up to 1e6 times as long as without one of them.
    Where lines get shorter little by little, as in samples of a motion that stops, the
    path is smooth, however short they are.
    """
    with np.errstate(all="ignore"):  # other numbers have a reason already
        lines = np.diff(positions, axis=-2)
        length = np.linalg.norm(lines, axis=-1)
        # A line much shorter than one next to it: a grid cannot have both.
        before, behind = length[..., :-1], length[..., 1:]
        is_so = np.minimum(before, behind) < NEAREST * np.maximum(before, behind)
        # Noise of joints that stand still turns back twice, on three short lines.
        is_short = np.maximum(before, behind) < NEAREST * length.sum(-1, keepdims=True)
        turns = is_short & ((lines[..., :-1, :] * lines[..., 1:, :]).sum(-1) < 0.0)
        found = is_so.any(-1) | (turns[..., :-1] & turns[..., 1:]).any(-1)
    return np.asarray(found)


def _spline(at: Array, positions: Array) -> Array:
    """Return what `natural_spline` does, from a kernel that has room for it."""
    count, n = positions.shape[-2:]
    size = next((size for size in SIZES if count <= size.knots), None)
    if size is None:
        return natural_spline(at, positions)
    path = _padded(positions, 0, count, size.knots, behind=1)
    given = _padded(at, 0, count, size.knots, behind=0)
    knots = spline(n, size, count - 1)(path, given, _ONE)
    return np.ascontiguousarray(knots[..., :count, :, :])


def _intervals(given: Any, knots: int) -> int:
    """Return how many intervals of the grid there are between two waypoints.

    Raises:
        ModelError: There are too few.
    """
    if given is None:
        return max(LEAST_INTERVALS, -(-INTERVALS // (knots - 1)))
    return whole_number("intervals", given, least=2 if knots == 2 else 1)
