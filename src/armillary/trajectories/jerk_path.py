"""Times along paths within limits of jerk: the kernel's arguments and results.

The motion is found on a grid whose intervals `jerk_stages.py` describes. Its spline is
within limits at three places of each interval; a motion that starts and ends at rest is
slowed down by as much as it exceeds them between these, which is some thousandths.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import KernelError, ModelError
from armillary.kernel import Kernel
from armillary.kernel.arguments import whole_number
from armillary.kernel.pipeline_kernel import CompiledPipeline, compile_pipeline
from armillary.trajectories.curve import PathCurve
from armillary.trajectories.further_limits import FurtherLimits
from armillary.trajectories.jerk_bounds import PathBounds
from armillary.trajectories.jerk_columns import GRADED
from armillary.trajectories.jerk_guess import coarser, grid_points
from armillary.trajectories.jerk_knots import MORE, closer_knots
from armillary.trajectories.jerk_spline import FAST
from armillary.trajectories.jerk_stages import jerk_pipeline, jerk_records
from armillary.trajectories.limits import limits_of
from armillary.trajectories.path_parts import Curves, PathLimits
from armillary.trajectories.timed_path import PathReason

__all__ = ["UNLIMITED", "JerkTimed", "PathEnds", "jerk_limits", "within_jerk"]

Array = npt.NDArray[np.float64]

SIZES: Final = (
    (251, 256),
    (507, 512),
    (1019, 1024),
    (2043, 2048),
    (4089, 4096),
)
"""How many knots and intervals kernels have room for."""

INTERVALS: Final = 150
"""About how many intervals a grid has by default, if there are fewer waypoints."""

TURN: Final = 0.3
"""Paths that turn by more at waypoints [rad], in the mean, get more intervals."""

MOST_PER_KNOT: Final = 4
"""Most intervals between two waypoints by default, where there are many waypoints."""

UNLIMITED: Final = 1e9
"""Takes the place of infinite limits."""

LOCAL: Final = 1e-3
"""By how much motions may exceed limits of jerk between places before they are found
again, in parts of the speed."""

TIGHTENINGS: Final = 3
"""How often motions are found again that exceed limits of jerk between places."""

TIMES, SPEEDS, ACCELERATIONS, SPECIAL, JERKS, PEAK, FAULT = 1, 2, 3, 4, 5, 6, 7
"""Which results of the kernel these are."""

EXCESS: Final = 1e-3
"""By how much motions may exceed limits between places of the grid."""


FRICTION_ITERATIONS: Final = 2
"""How often motions are found again near whose speeds viscous friction is linear."""

_NO_PUSHES: Final = np.full(2, FAST)
_NOT_BLOCKED: Final = np.zeros((), dtype=bool)
_STOPS: Final = int(PathReason.STOPS)
_TOO_FAST: Final = (int(PathReason.START_TOO_FAST), int(PathReason.END_TOO_FAST))


class PathEnds(NamedTuple):
    """Path speeds and path accelerations at both ends, shape (...) each."""

    start: Array
    end: Array
    start_acceleration: Array
    end_acceleration: Array


class JerkTimed(NamedTuple):
    """What is found: fields of `TimedPath`."""

    duration: Array
    time: Array
    speed: Array
    reason: npt.NDArray[np.int8]
    curve: PathCurve
    grid: Array
    acceleration: Array


def jerk_limits(given: Any, joints: int) -> Array:
    """Return the greatest jerks, shape (..., n).

    Raises:
        ShapeError: They do not fit.
        ModelError: One is not finite and above 0.
    """
    limits = limits_of("jerk", given, joints)
    most = np.minimum(-limits[..., 0, :], limits[..., 1, :])
    if not ((most > 0.0) & (most < np.inf)).all():
        raise ModelError(
            "Limits of jerk are finite numbers above 0. Where no jerk is limited, "
            "leave out jerk=."
        )
    return most


def within_jerk(
    curves: Curves,
    intervals: Any,
    limits: PathLimits,
    jerk: Array,
    ends: PathEnds,
    further: FurtherLimits | None = None,
) -> JerkTimed:
    """Return the fastest motion along paths within limits, of jerk too.

    Args:
        curves: The paths.
        intervals: How many there are between knots; None chooses them.
        limits: Of rates and accelerations.
        jerk: The greatest jerks, shape (..., n).
        ends: The motion at both ends.
        further: Limits of torques, or of a frame.

    Raises:
        ModelError: There are too many waypoints.
    """
    curve = curves.curve
    per_knot = _per_knot(curve.knots[..., 0, :], intervals)
    bounded = None if further is None else PathBounds(further, curve)
    velocity, acceleration, blocked = _finite(limits, curve)
    pushes = _NO_PUSHES if bounded is None else bounded.pushes()
    begun = _first_motion(
        curve,
        per_knot,
        (velocity, acceleration, jerk, ends, pushes),
        is_closer=intervals is None and per_knot == 1,
    )
    grid, asked, special = begun.grid, begun.asked, begun.special

    def solved(near: _NearMotion, bounds: Array | None = None) -> list[Array]:
        here = asked._replace(near=near.motion)
        if bounds is None:
            return _tightened(grid, here, near.intervals, 0)
        here = here.within(bounds, grid.size[1])
        return _tightened(grid, here, near.intervals, bounds.shape[-2] // 2)

    def timed(found: list[Array]) -> JerkTimed:
        return _results(found, grid.total, curves, blocked)

    if bounded is None:
        return timed(solved(begun.near))
    points = grid_points(begun.curve, per_knot, special)
    in_motion = np.asarray((special <= 0.0).any(axis=-1))
    unknown = _NearMotion(asked.near, begun.near.intervals)
    return _within_bounds(
        bounded, solved, timed, unknown, points, in_motion, grid.total
    )


class _Begun(NamedTuple):
    """What is known before a motion is looked for.

    Attributes:
        curve: The curve, perhaps with more knots.
        grid: The grid.
        asked: What the kernel is asked.
        near: The motion that is found on a coarser grid.
        special: See `jerk_columns.py`.
    """

    curve: PathCurve
    grid: _Grid
    asked: _KernelQuestion
    near: _NearMotion
    special: Array


def _first_motion(
    curve: PathCurve,
    per_knot: int,
    limited: tuple[Array, Array, Array, PathEnds, Array],
    *,
    is_closer: bool,
) -> _Begun:
    """Return the grid of curves, and motions on a coarser one.

    Args:
        curve: The curves.
        per_knot: How many intervals there are between two waypoints.
        limited: Limits and ends, as `_KernelQuestion` has them.
        is_closer: Whether intervals are added where the coarser motion says so.
    """
    knots, n = curve.knots.shape[-3], curve.knots.shape[-1]
    total = (knots - 1) * per_knot + MORE * is_closer
    count = total + 2 * GRADED - 2
    size = _size(total // per_knot + 1, count)
    padded = _padded(curve, size[0])
    asked = _KernelQuestion(padded, *limited, _ones(size[1]), _no_motion(size))
    coarse, fewer = _coarse_motion(curve, per_knot, size, asked, is_closer=is_closer)
    if is_closer:
        motion = coarse[TIMES], coarse[SPEEDS], coarse[ACCELERATIONS]
        at, held = closer_knots(padded, motion, size, total - MORE)
        asked = asked._replace(curve=(at, held))
        curve = PathCurve(at[..., : total + 1], held[..., : total + 1, :, :])
    grid = _Grid(n, size, curve.at.shape[-1] - 1, per_knot, count)
    # where the motion at an end is given, a guess for it is of little use
    rests = np.asarray((coarse[SPECIAL] > 0.0).all(axis=-1))
    near = _NearMotion(_motion_near(coarse, rests), fewer)
    return _Begun(curve, grid, asked, near, coarse[SPECIAL])


def _within_bounds(
    path: PathBounds,
    solved: Callable[[_NearMotion, Array], list[Array]],
    timed: Callable[[list[Array]], JerkTimed],
    near: _NearMotion,
    points: Array,
    in_motion: npt.NDArray[np.bool_],
    count: int,
) -> JerkTimed:
    """Return the fastest motion within further limits, too.

    Args:
        path: The further limits.
        solved: From a motion to begin with, and them at the places of the grid, to what
            the kernel returns.
        timed: From that to the result.
        near: What says that there is no motion to begin with: that one without further
            limits is too far off.
        points: s at the points of the grid, shape (..., g).
        in_motion: Whether it starts or ends in motion, shape (...).
        count: How many intervals the grid has.
    """
    tighter = np.ones(in_motion.shape)
    unknown = np.zeros_like(points)
    made = path.bounds(points, unknown, unknown, tighter, is_first=True)
    found: list[Array] = []
    for _ in range(1 + FRICTION_ITERATIONS * made.has_viscous):
        found = solved(near, made.rows)
        near = _NearMotion(_motion_near(found), count)
        made = path.bounds(*_points(found, count), tighter, is_first=False)
    result = timed(found)
    over = path.excess(result)
    if (in_motion & (over > 1.0 + 0.5 * EXCESS)).any():
        # such motions cannot be slowed down as a whole
        tighter = np.where(in_motion, over * over, 1.0)
        made = path.bounds(*_points(found, count), tighter, is_first=False)
        result = timed(solved(near, made.rows))
        over = path.excess(result)
    slower = np.where(in_motion, 1.0, over)[..., None]
    reason = np.where(
        (result.reason == 0) & in_motion & (over > 1.0 + EXCESS),
        np.where(result.speed[..., 0] > 0.0, *_TOO_FAST),
        result.reason,
    )
    is_faulty = np.isin(reason, [*_TOO_FAST, PathReason.STOPS])
    is_faulty |= (reason == 0) & (result.duration > 0.0)
    reason = np.where(made.overloaded & is_faulty, PathReason.OVERLOADED, reason)
    reason = reason.astype(np.int8)
    failed = (reason > 0)[..., None]
    time, speed, acceleration = (
        np.where(failed, np.nan, part)
        for part in (
            result.time * slower,
            result.speed / slower,
            result.acceleration / (slower * slower),
        )
    )
    for array in (time, speed, acceleration, reason):
        array.flags.writeable = False
    return result._replace(
        duration=time[..., -1],
        time=time,
        speed=speed,
        acceleration=acceleration,
        reason=reason,
    )


def _points(found: list[Array], count: int) -> tuple[Array, Array, Array]:
    """Return s, x and dx/ds at the points of the grid."""
    way, _, speed, acceleration = (
        np.nan_to_num(each[..., 1 : count + 2]) for each in found[:SPECIAL]
    )
    return way, speed * speed, 2.0 * acceleration


def _results(
    motion: Any,
    count: int,
    curves: Curves,
    blocked: npt.NDArray[np.bool_],
) -> JerkTimed:
    """Return times, and why there is no motion where that is so."""
    special, peak, fault = (motion[k] for k in (SPECIAL, PEAK, FAULT))
    points, time, speed, acceleration = (
        each[..., : count + 3] for each in motion[:SPECIAL]
    )
    s, held = curves.curve.at, curves.curve.knots
    batch = fault.shape
    in_motion = special <= 0.0
    is_moving = in_motion.any(axis=-1)
    with np.errstate(all="ignore"):
        # what rests at both ends is slowed down to be within limits
        slower = np.sqrt(np.maximum(peak[..., :2].max(axis=-1), 1.0))
        slower = np.maximum(slower, np.cbrt(peak[..., 2]))
        slower = np.where(is_moving, 1.0, slower)[..., None]
        time, speed = time * slower, speed / slower
        acceleration = acceleration / (slower * slower)
    is_sound = (fault <= 0.0) & (time[..., -1] < np.inf) & (curves.reason <= 0)
    if (is_sound & ~(curves.still | blocked | is_moving)).all():
        reason = np.zeros(batch, dtype=np.int8)
    else:
        fault = _faults(motion, in_motion, time)
        reason = _reasons(fault, curves, blocked)
        still = np.broadcast_to(curves.still, batch) & (reason == 0)
        failed = reason > 0
        for part in (time, speed, acceleration):
            part[failed] = np.nan
            part[still] = 0.0
        first, last = (np.broadcast_to(s[..., k], batch)[still] for k in (0, -1))
        points[still] = np.linspace(first, last, count + 3, axis=-1)
    if batch != s.shape[:-1]:
        s = np.broadcast_to(s, (*batch, *s.shape[-1:]))
        held = np.broadcast_to(held, (*batch, *held.shape[-3:]))
    curve = PathCurve(s, held)
    for array in (time, speed, reason, points, acceleration, curve.at, curve.knots):
        array.flags.writeable = False
    return JerkTimed(time[..., -1], time, speed, reason, curve, points, acceleration)


def _faults(
    motion: Any, in_motion: npt.NDArray[np.bool_], time: Array
) -> npt.NDArray[np.float64]:
    """Return why kernels found no motion, numbers of `PathReason`, or 0.

    in_motion: Which ends are in motion, shape (..., 2).
    """
    peak, fault = motion[PEAK], motion[FAULT]
    is_moving = in_motion.any(axis=-1)
    most = (1.0 + EXCESS) * np.array([1.0 + EXCESS, 1.0, 1.0])
    with np.errstate(invalid="ignore"):
        too_fast = (peak > most).any(axis=-1) & is_moving
    start_or_end = np.where(in_motion[..., 0], *_TOO_FAST)
    # what rests at both ends is not too fast there, but stopped by limits
    is_too_fast = (fault == _TOO_FAST[0]) | (fault == _TOO_FAST[1])
    fault = np.where(is_too_fast & ~is_moving, _STOPS, fault)
    fault = np.where(too_fast & (fault <= 0.0), start_or_end, fault)
    return np.where((fault <= 0.0) & ~np.isfinite(time[..., -1]), _STOPS, fault)


def _reasons(
    fault: Array, curves: Curves, blocked: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int8]:
    """Return why there is no motion: the path, limits of 0, or the kernel."""
    of_path = curves.reason
    fault = np.where(blocked & (of_path <= 0.0), _STOPS, fault)
    reason = np.where(of_path > 0.0, of_path, np.where(curves.still, 0.0, fault))
    return reason.astype(np.int8)


class _KernelQuestion(NamedTuple):
    """What the kernel is asked.

    Attributes:
        curve: s and position, slope and curvature at knots, padded.
        velocity: Limits, shape (..., 2, n).
        acceleration: Limits, shape (..., 2, n).
        jerk: Limits, shape (..., n).
        ends: The motion at both ends.
        pushes: As `PathBounds.pushes` returns them.
        tighter: What jerks in each interval count as times as great, shape (..., i).
        near: As `_motion_near` returns it.
        bounds: Further limits, if there are any.
    """

    curve: tuple[Array, Array]
    velocity: Array
    acceleration: Array
    jerk: Array
    ends: PathEnds
    pushes: Array
    tighter: Array
    near: tuple[Array, ...]
    bounds: tuple[Array, ...] = ()

    def within(self, bounds: Array, size: int) -> _KernelQuestion:
        """Return the same within further limits, with room for `size` intervals."""
        padded = np.zeros((*bounds.shape[:-3], size, *bounds.shape[-2:]))
        padded[..., : bounds.shape[-3], :, :] = bounds
        return self._replace(bounds=(padded,))

    @property
    def arrays(self) -> list[Array]:
        """Return what the kernel takes."""
        return [
            *self.curve,
            *(self.velocity, self.acceleration, self.jerk, *self.ends),
            *(self.pushes, self.tighter, *self.near, *self.bounds),
        ]


CORES: Final = (1, 3, 2, 2, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 3)
"""How many dimensions arrays of `_KernelQuestion` have beside those of the batch."""


def _padded(curve: PathCurve, size: int) -> tuple[Array, Array]:
    """Return curves with room for `size` knots."""
    knots = curve.at.shape[-1]
    at = np.zeros((*curve.at.shape[:-1], size))
    at[..., :knots] = curve.at
    path = np.zeros((*curve.knots.shape[:-3], size, *curve.knots.shape[-2:]))
    path[..., :knots, :, :] = curve.knots
    return at, path


class _NearMotion(NamedTuple):
    """A motion near the one that is looked for.

    Attributes:
        motion: As `_motion_near` returns it.
        intervals: How many intervals its grid has.
    """

    motion: tuple[Array, ...]
    intervals: int


@lru_cache(maxsize=8)
def _no_motion(size: tuple[int, int]) -> tuple[Array, ...]:
    """Return what says that there is no motion to begin with."""
    nothing = np.zeros(size[1] + 3)
    return nothing, nothing, nothing, np.zeros(2), np.zeros(())


@lru_cache(maxsize=8)
def _ones(intervals: int) -> Array:
    """Return what does not tighten limits of any interval."""
    return np.ones(intervals)


def _motion_near(
    found: list[Array], *where: npt.NDArray[np.bool_]
) -> tuple[Array, ...]:
    """Return s, s', s'' and `special` of motions, and which can be begun with.

    Args:
        found: What the kernel returns.
        where: Which may be, if not all, shape (...).
    """
    is_known = found[FAULT] <= 0.0
    for some in where:
        is_known = is_known & some
    known = is_known.astype(np.float64)
    return found[0], found[SPEEDS], found[ACCELERATIONS], found[SPECIAL], known


class _Grid(NamedTuple):
    """A grid, and the kernels of motions on it.

    Attributes:
        joints: How many there are.
        size: The most knots and intervals that kernels have room for.
        intervals: How many there are between knots.
        per_knot: Intervals of the grid in each of them, before those at both ends are
            divided.
        total: How many the grid has.
    """

    joints: int
    size: tuple[int, int]
    intervals: int
    per_knot: int
    total: int

    def kernel(self, was: int, rows: int) -> Kernel:
        """Return the kernel for motions near those on a grid of `was` intervals."""
        intervals, per_knot = self.intervals, self.per_knot
        return _kernel(self.joints, self.size, intervals, per_knot, was, rows=rows)


def _coarse_motion(
    curve: PathCurve,
    per_knot: int,
    size: tuple[int, int],
    asked: _KernelQuestion,
    *,
    is_closer: bool,
) -> tuple[list[Array], int]:
    """Return what the kernel returns on a coarser grid, and how many intervals it has.

    is_closer: Whether intervals are added to those between knots where it says so.
    """
    fewer, each = (curve, per_knot) if is_closer else coarser(curve, per_knot)
    *_, knots, _, n = fewer.knots.shape
    asked = asked._replace(curve=_padded(fewer, size[0]))
    count = (knots - 1) * each + 2 * GRADED - 2
    kernel = _kernel(n, size, knots - 1, each, count, rows=0, is_last=False)
    return list(kernel(*asked.arrays)), count


def _tightened(grid: _Grid, asked: _KernelQuestion, was: int, rows: int) -> list[Array]:
    """Return motions, found again where they exceed limits between places.

    Limits of jerk are tightened in the intervals where that is. Motions that start or
    end in motion cannot be slowed down as a whole, so that all limits of those are
    tightened by what is left.

    Args:
        grid: The grid.
        asked: What the kernel is asked.
        was: How many intervals the grid of the motion has with which it begins.
        rows: How many further limits there are at each place.
    """
    found: list[Array] = list(grid.kernel(was, rows)(*asked.arrays))
    kernel = grid.kernel(grid.total, rows)
    for _ in range(TIGHTENINGS):
        over_jerk = np.asarray(found[PEAK][..., 2] > (1.0 + LOCAL) ** 3)
        if not over_jerk.any():
            break
        jerks = found[JERKS]
        factor = np.maximum(np.nan_to_num(jerks, nan=1.0), 1.0)
        factor = asked.tighter * np.where(jerks < 0.5 * FAST, factor, 1.0)
        asked = asked._replace(tighter=factor)
        _find_again(kernel, asked, found, over_jerk)
    in_motion = (found[SPECIAL] <= 0.0).any(axis=-1)
    if not in_motion.any():
        return found
    over = np.maximum(np.nan_to_num(found[PEAK], nan=1.0), 1.0)
    is_over = in_motion & (over > 1.0 + 0.5 * EXCESS).any(axis=-1)
    if is_over.any():
        rate = 1.0 / np.sqrt(over[..., 0])[..., None, None]
        asked = asked._replace(
            velocity=asked.velocity * rate,
            acceleration=asked.acceleration / over[..., 1][..., None, None],
            jerk=asked.jerk / over[..., 2][..., None],
        )
        again = _find_again(kernel, asked, found, np.asarray(is_over))
        # in parts of the limits that are asked for, not of the tightened ones
        found[PEAK] /= np.where(again[..., None], over, 1.0)
    return found


def _find_again(
    kernel: Kernel,
    asked: _KernelQuestion,
    found: list[Array],
    again: npt.NDArray[np.bool_],
) -> npt.NDArray[np.bool_]:
    """Replace some motions by those that are found near them, where there are any.

    Returns:
        Which are replaced.
    """
    asked = asked._replace(near=_motion_near(found))
    made = kernel(
        *(
            np.broadcast_to(array, (*again.shape, *array.shape[array.ndim - core :]))[
                again
            ]
            for array, core in zip(asked.arrays, CORES, strict=False)
        )
    )
    is_found = made[FAULT] <= 0.0
    replaced = np.array(again)
    replaced[again] = is_found
    for k, part in enumerate(made):
        found[k] = np.array(found[k])
        found[k][replaced] = part[is_found]
    return replaced


def _finite(
    limits: PathLimits, curve: PathCurve
) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """Return limits without infinity and 0, and which paths limits of 0 stop."""
    blocked = _NOT_BLOCKED
    finite: list[Array] = []
    for limit in limits:
        most = np.minimum(np.maximum(limit, -UNLIMITED), UNLIMITED)
        none = limit == 0.0
        if none.any():
            blocked = blocked | (none.any(axis=-2) & _moving(curve)).any(axis=-1)
            most = np.where(none, [[-1.0], [1.0]], most)
        finite.append(most)
    return finite[0], finite[1], blocked


def _moving(curve: PathCurve) -> npt.NDArray[np.bool_]:
    """Return which joints move, shape (..., n)."""
    positions = curve.knots[..., 0, :]
    moves = (positions != positions[..., :1, :]).any(axis=-2)
    return moves | (curve.knots[..., 1:, :] != 0.0).any((-2, -3))


def _per_knot(positions: Array, given: Any) -> int:
    """Return how many intervals there are between two waypoints."""
    knots = positions.shape[-2]
    if given is not None:
        return whole_number("intervals", given, least=1)
    per_knot = max(1, INTERVALS // (knots - 1))
    if knots > 2 and per_knot < MOST_PER_KNOT:
        steps = positions[..., 1:, :] - positions[..., :-1, :]
        lengths = np.sqrt(np.einsum("...j,...j->...", steps, steps))
        with np.errstate(all="ignore"):
            inner = np.einsum("...j,...j->...", steps[..., 1:, :], steps[..., :-1, :])
            cosine = inner / (lengths[..., 1:] * lengths[..., :-1])
            cosine = np.minimum(np.maximum(cosine, -1.0), 1.0)
            turns = np.arccos(cosine).mean(axis=-1)
        turn = np.fmax.reduce(turns, axis=None, initial=0.0)
        per_knot = max(per_knot, min(MOST_PER_KNOT, int(np.ceil(turn / TURN))))
    return per_knot


def _size(knots: int, count: int) -> tuple[int, int]:
    """Return the smallest size that holds a grid.

    Raises:
        ModelError: None does.
    """
    for size in SIZES:
        if knots <= size[0] and count <= size[1]:
            return size
    most_knots, most = SIZES[-1]
    raise ModelError(
        f"Within limits of jerk a path has at most {most_knots} waypoints, and its "
        f"grid {most} intervals; here are {knots} and {count}. Give fewer waypoints, "
        "or a smaller intervals=."
    )


@lru_cache(maxsize=32)
def _code(joints: int, size: tuple[int, int], *, rows: int) -> CompiledPipeline:
    knots, intervals = size
    pipeline = jerk_pipeline(joints, knots=knots, intervals=intervals, rows=rows)
    try:
        # intervals are in lanes
        return compile_pipeline(pipeline, lanes=1)
    except KernelError as error:
        raise ModelError(
            f"A path of {joints} joints within limits of jerk, and {rows} further "
            f"limits of torques and frames, cannot have {intervals} intervals: "
            f"{error} Give fewer waypoints, or a smaller intervals=."
        ) from error


@lru_cache(maxsize=128)
def _kernel(
    joints: int,
    size: tuple[int, int],
    intervals: int,
    per_knot: int,
    was: int,
    *,
    rows: int,
    is_last: bool = True,
) -> Kernel:
    code = _code(joints, size, rows=rows)
    return code(jerk_records(intervals, per_knot, was, rows=rows, is_last=is_last))
