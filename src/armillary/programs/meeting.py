"""Motions that end where a frame is that moves by itself, with its velocity.

A motion that meets it is a polynomial of degree 5 for each joint, from the positions,
rates and accelerations that joints have, to those with which the tool stands still
relative to the frame. Its duration is the least of a sequence at which limits hold:
they are compared at samples, and of what is chosen at all extremes between them.

Such a polynomial swings the farther back, or beyond its ends, the longer it takes, by a
part of rate times duration. Where none keeps limits, the motion has three parts: joints
come to rest, go to where the third part begins, and gain their rates from there. The
first and the last are polynomials of degree 4, whose rates neither overshoot nor change
their sign where joints end without acceleration: from the rate v and the acceleration a
to rest in the time T they lead as far as v T / 2 + a T^2 / 12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.programs.ending import Impossible, RunReason
from armillary.programs.mover import LIMIT_ROUNDING, Mover, rests
from armillary.programs.tracks import JointValues
from armillary.trajectories.curve import hermite_coefficients
from armillary.trajectories.hermite import basis
from armillary.trajectories.motion import Motion

__all__ = [
    "BEND",
    "FIRST",
    "PEAK",
    "SECOND",
    "SHORTEST",
    "Arrivals",
    "Poses",
    "meet",
    "quickest",
    "stop_at",
]

Array = npt.NDArray[np.float64]
Poses = Callable[[Array], Array]
"""Poses (k, 4, 4) at instants (k,)."""

DIFFERENCE: Final = 2e-3
"""Between instants of which differences are taken where a motion meets a frame [s]."""

DURATIONS: Final[Array] = np.asarray(1e-3 * 1.1 ** np.arange(110), np.float64)
"""Durations of motions that meet a frame, of which the first is taken within which
limits hold, and refined `MOST_REFINEMENTS` times."""

COME_FAR: Final = (RunReason.LIMITS, RunReason.OUTRUN)
"""Reasons of motions whose end is reached: they tell more than that others miss it."""

AT_ONCE: Final = 22
MOST_REFINEMENTS: Final = 3
SHORTEST: Final = float(DURATIONS[0])

PEAK: Final = 1.875
BEND: Final = 5.7735026918962573
"""The greatest s' and s'' of 10 u^3 - 15 u^4 + 6 u^5 from 0 to 1, for u = t."""

RAMPS: Final = 3
"""How many ways between rest and the values at an end are tried."""

JUMP: Final = 0.1
"""A greater step between instants of a difference is one to another branch."""

SAMPLES: Final = 33
"""Instants of a motion at which limits are compared."""

SHARES: Final = np.linspace(0.0, 1.0, SAMPLES)
BASES: Final = tuple(basis(SHARES, k) for k in range(3))
"""The polynomials of `basis` there, and their first two derivatives."""

FIRST: Final = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0
SECOND: Final = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / 12.0
"""Weights of the derivatives of five equidistant values."""


class Arrivals(NamedTuple):
    """Values of joints with which motions may end, one for each duration.

    Attributes:
        values: Shape (k, n) each.
        reasons: Numbers of `RunReason`, 0 where there is an end, shape (k,).
    """

    values: JointValues
    reasons: npt.NDArray[np.int64]


def stop_at(mover: Mover, values: JointValues, q: Array) -> Motion:
    """Return the motion from joints that move to positions at rest.

    Raises:
        Impossible: No duration keeps limits.
    """

    def arrivals(durations: Array) -> Arrivals:
        k = len(durations)
        still = np.zeros((k, len(q)))
        ends = JointValues(np.broadcast_to(q, still.shape), still, still)
        return Arrivals(ends, np.zeros(k, np.int64))

    return quickest(mover, values, arrivals)


def meet(mover: Mover, values: JointValues, poses: Poses) -> Motion:
    """Return the motion with which a tool meets a pose that moves.

    Args:
        mover: What moves the tool.
        values: Where its joints are at the start.
        poses: The pose to meet at times after the start, which ascend.

    Raises:
        Impossible: It is not reached, or moves faster than limits allow.
    """
    solver = mover.solver
    assert solver is not None
    n = len(values.q)

    def arrivals(durations: Array) -> Arrivals:
        k = len(durations)
        times = (durations[:, None] + DIFFERENCE * np.arange(-2.0, 3.0)).ravel()
        order = np.argsort(times, kind="stable")
        X = np.empty((len(times), 4, 4))
        X[order] = poses(times[order])
        found = solver(X, near=np.broadcast_to(values.q, (5 * k, n)))
        q, ends = found.q.reshape(k, 5, n), found.reason.reshape(k, 5).astype(np.int64)
        ends = np.where(found.success.reshape(k, 5), 0, ends)
        reasons = np.take_along_axis(
            ends, np.argmax(ends != 0, axis=1, keepdims=True), axis=1
        )[:, 0]
        jumps = np.abs(np.diff(q, axis=1)).max(axis=(1, 2)) > JUMP
        reasons[(reasons == 0) & jumps] = int(RunReason.JUMPS)
        rates, bends = (
            np.einsum("i,kin->kn", weights, q) / DIFFERENCE**power
            for power, weights in ((1, FIRST), (2, SECOND))
        )
        return Arrivals(JointValues(q[:, 2], rates, bends), reasons)

    return quickest(mover, values, arrivals)


Ends = Callable[[Array], Arrivals]
"""With which values motions may end, by their durations (k,)."""


class _MeetingFound(NamedTuple):
    """A motion that keeps limits.

    Attributes:
        before: A duration before it that does not [s].
        duration: Its duration [s].
        end: With which values it ends, shape (n,) each.
    """

    before: float
    duration: float
    end: JointValues


def quickest(mover: Mover, values: JointValues, arrivals: Ends) -> Motion:
    """Return the motion of the least duration that keeps limits.

    Args:
        mover: The limits.
        values: With which values it begins, shape (n,) each.
        arrivals: With which it may end.

    Raises:
        Impossible: There is none.
    """
    why: dict[int, float] = {}

    def first_of(durations: Array) -> _MeetingFound | None:
        """Return the first that keeps limits at samples."""
        ends, reasons = arrivals(durations)
        q, qd, qdd = _quintics(values, ends, durations)
        with np.errstate(invalid="ignore"):
            fast = mover.excess(qd, qdd) > 1.0 + LIMIT_ROUNDING
            reasons = np.where((reasons == 0) & fast, int(RunReason.OUTRUN), reasons)
            beyond = (reasons == 0) & ~mover.are_within(q)
        reasons[beyond] = int(RunReason.LIMITS)
        good = np.flatnonzero(reasons == 0)
        if not len(good):
            for each, duration in zip(reasons.tolist(), durations, strict=True):
                why[each] = why.get(each, 0.0) + float(duration)
            return None
        k = int(good[0])
        before = float(durations[k - 1]) if k else 0.5 * float(durations[0])
        end = JointValues(*(part[k] for part in ends))
        return _MeetingFound(before, float(durations[k]), end)

    for first in range(0, len(DURATIONS), AT_ONCE):
        found = first_of(DURATIONS[first : first + AT_ONCE])
        if found is None:
            continue
        for _ in range(MOST_REFINEMENTS):
            before, duration, _ = found
            parts = np.linspace(0.0, 1.0, AT_ONCE + 1)[1:]
            found = first_of(before + (duration - before) * parts) or found
        knots = [(0.0, values), (found.duration, found.end)]
        for _ in range(AT_ONCE):
            if _keeps(mover, knots):
                return _through(knots)
            # Between samples a limit is exceeded, by a part of their distance squared.
            longer = first_of(knots[-1][0] * (1.0 + 2e-4 * np.arange(1.0, 3.0)))
            if longer is None:
                break
            knots = [(0.0, values), (longer.duration, longer.end)]
    motion = _in_parts(mover, values, arrivals)
    if motion is not None:
        return motion
    # Of many durations the reason is that of most time, where the end is reached.
    far = {int(each): why[each] for each in COME_FAR if each in why} or why
    reason = RunReason(max(far, key=far.__getitem__))
    raise Impossible(
        reason,
        f"no motion of up to {DURATIONS[-1]:.0f} s leads there: {reason.sentence}",
    )


Knots = list[tuple[float, JointValues]]
"""Instants [s], and the values of joints at them, between which are polynomials."""


def _through(knots: Knots) -> Motion:
    times, values = zip(*knots, strict=True)
    return Motion.through(
        times, *(np.stack(part) for part in zip(*values, strict=True))
    )


def _keeps(mover: Mover, knots: Knots) -> bool:
    """Return whether polynomials keep limits at all instants, not at samples alone."""
    for (t0, a), (t1, b) in pairwise(knots):
        h = np.array([t1 - t0])
        ends = [np.stack(pair) for pair in zip(a, b, strict=True)]
        (C,) = hermite_coefficients(h, np.stack(ends, axis=1))
        greatest = [_extremes(C, order) / h**order for order in range(3)]
        if mover.excess(*greatest[1:]) > 1.0 + LIMIT_ROUNDING:
            return False
        if not mover.are_within(greatest[0]):
            return False
    return True


def _extremes(C: Array, order: int) -> Array:
    """Return values of a derivative of polynomials at all its extremes in [0, 1].

    Args:
        C: Coefficients of r^0 to r^5, shape (6, n).
        order: Of the derivative.

    Returns:
        Values at the ends, and at extremes within, shape (k, n); where a polynomial has
        fewer of these than others, those of an end again.
    """
    D = _derivative(C, order)
    found = [D[0], D.sum(axis=0)]
    slope, bend = _derivative(C, order + 1), _derivative(C, order + 2)
    d = _at(SHARES[:, None], slope)
    # Of the slope each change of sign has one root, which Newton's steps refine.
    rows, joints = np.nonzero(d[:-1] * d[1:] < 0.0)
    if rows.size:
        low, step = SHARES[rows], SHARES[1]
        r = low + step * d[rows, joints] / (d[rows, joints] - d[rows + 1, joints])
        for _ in range(2):
            rate = _at(r, bend[:, joints])
            move = _at(r, slope[:, joints]) / np.where(rate == 0.0, np.inf, rate)
            r = np.clip(r - move, low, low + step)
        values = np.broadcast_to(D[0], (len(rows), C.shape[1])).copy()
        values[np.arange(len(rows)), joints] = _at(r, D[:, joints])
        found += list(values)
    return np.stack(found)


def _derivative(C: Array, order: int) -> Array:
    """Return coefficients of a derivative of polynomials, shape (6 - order, n)."""
    found = C
    for _ in range(order):
        found = found[1:] * np.arange(1.0, len(found))[:, None]
    return found


def _at(r: Array, C: Array) -> Array:
    """Return values of polynomials."""
    total = np.zeros(np.broadcast_shapes(r.shape, C.shape[1:]))
    for coefficient in C[::-1]:
        total = total * r + coefficient
    return total


# three parts


def _in_parts(mover: Mover, values: JointValues, arrivals: Ends) -> Motion | None:
    """Return a motion that rests twice on its way, None where limits forbid all."""
    stopped = next(_ramps(mover, values, before=False), None)
    if stopped is None:
        return None
    before = float(DURATIONS[0])
    for first in range(0, len(DURATIONS), AT_ONCE):
        durations = DURATIONS[first : first + AT_ONCE]
        found = _in_parts_of(mover, stopped, arrivals, durations)
        if found is not None:
            k, motion = found
            before = float(durations[k - 1]) if k else before
            finer = np.linspace(before, float(durations[k]), AT_ONCE + 1)[1:]
            sooner = _in_parts_of(mover, stopped, arrivals, finer)
            return motion if sooner is None else sooner[1]
        before = float(durations[-1])
    return None


def _in_parts_of(
    mover: Mover, stopped: Knots, arrivals: Ends, durations: Array
) -> tuple[int, Motion] | None:
    """Return the first of several durations in which there is such a motion, and that.

    stopped: Its first part.
    """
    ends, reasons = arrivals(durations)
    came, rest = stopped[-1]
    for k in np.flatnonzero(reasons == 0).tolist():
        end = JointValues(*(part[k] for part in ends))
        for ramp in islice(_ramps(mover, end, before=True), RAMPS):
            begin = float(durations[k]) - ramp[-1][0]
            if begin - came >= max(_shortest(mover, ramp[0][1].q - rest.q), SHORTEST):
                # Of a ramp without a duration there is but one knot.
                knots = [*stopped, *((begin + time, each) for time, each in ramp)]
                return k, _through(knots)
    return None


def _shortest(mover: Mover, way: Array) -> float:
    """Return the least duration of a polynomial from rest to rest [s].

    Its greatest rate is PEAK times way / T, its greatest acceleration BEND times
    way / T^2, of either sign.
    """
    goes = way != 0.0
    d = np.abs(way)[goes]
    fastest = np.asarray(
        np.where(way > 0.0, mover.velocity[1], -mover.velocity[0]), np.float64
    )
    rates = fastest[goes]
    bends = np.minimum(mover.acceleration[1], -mover.acceleration[0])[goes]
    least = np.maximum(PEAK * d / rates, np.sqrt(BEND * d / bends))
    return float(least.max(initial=0.0))


def _ramps(mover: Mover, values: JointValues, *, before: bool) -> Iterator[Knots]:
    """Yield ways between rest and values, within limits, the shortest first.

    Args:
        mover: What limits there are.
        values: With which joints move, shape (n,) each.
        before: Whether rest comes before them, or after.
    """
    if rests(values):
        yield [(0.0, values)]
        return
    q, qd, qdd = values
    still, sign = np.zeros(len(q)), -1.0 if before else 1.0
    rates = np.abs(qd) / np.minimum(mover.acceleration[1], -mover.acceleration[0])
    # The greatest acceleration of such a way is 3/2 v / T where it ends without one.
    least = max(1.5 * float(rates.max()), SHORTEST)
    for T in (least * 1.15 ** np.arange(12)).tolist():
        rest = JointValues(q + sign * qd * T / 2.0 + qdd * T * T / 12.0, still, still)
        knots = [(0.0, rest), (T, values)] if before else [(0.0, values), (T, rest)]
        if _keeps(mover, knots):
            yield knots


def _quintics(values: JointValues, ends: JointValues, durations: Array) -> JointValues:
    """Return samples of polynomials of degree 5 between ends, shape (k, SAMPLES, n)."""
    T = durations[:, None]
    q, qd, qdd = values
    # The same as `hermite_coefficients`, for many durations at once.
    parts = np.stack([ends.q - q, T * qd, T * ends.qd, T * T * qdd, T * T * ends.qdd])
    each = T[:, None]
    ways, rates, bends = (
        np.einsum("sj,jkn->ksn", rows, parts) / each**order
        for order, rows in enumerate(BASES)
    )
    return JointValues(q + ways, rates, bends)
