"""Motions that end where a frame is that moves by itself, with its velocity.

A motion that meets it is a polynomial of degree 5 for each joint, from the positions,
rates and accelerations that joints have, to those with which the tool stands still
relative to the frame. Its duration is the least of a sequence at which limits hold,
which are compared at samples and at all extremes between them. Between that and the one
before, the ratio of rates to limits is taken for a straight line: it falls as a power
of the duration, which is convex, so that a line errs to the side of longer durations.

Such a polynomial swings the farther back, or beyond its ends, the longer it takes, by a
part of rate times duration. Where none keeps limits, the motion has three parts: joints
come to rest, go to where the third part begins, and gain their rates from there. The
first and the last are polynomials of degree 4, whose rates neither overshoot nor change
their sign where joints end without acceleration: from the rate v and the acceleration a
to rest in the time T they lead as far as v T / 2 + a T^2 / 12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.programs.ending import Impossible, RunReason
from armillary.programs.mover import LIMIT_ROUNDING, Mover, rests
from armillary.programs.tracks import JointValues
from armillary.spatial.polynomial import differentiation
from armillary.trajectories.curve import hermite_coefficients
from armillary.trajectories.motion import Motion

__all__ = [
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

GROWTH: Final = 1.1
DURATIONS: Final[Array] = np.asarray(1e-3 * GROWTH ** np.arange(110), np.float64)
"""Durations of motions that meet a frame, of which the first is taken within which
limits hold, and refined, at most `MOST_REFINEMENTS` times."""

COME_FAR: Final = (RunReason.LIMITS, RunReason.OUTRUN)
"""Reasons of motions whose end is reached: they tell more than that others miss it."""

AT_ONCE: Final = 37
MOST_REFINEMENTS: Final = 3

NEARBY: Final = 1.0 + np.array([0.0, 1e-6, 1e-5, 1e-4, 1e-3])
"""By what durations are longer that are tried beside one that is expected."""

LONGER: Final = (1.0, 1.0 + 1e-7, 1.0 + 1e-5, 1.0 + 1e-3)
"""By what a motion is longer where limits turn out not to be kept at all instants."""

SHORTEST: Final = float(DURATIONS[0])

RAMPS: Final = 3
"""How many ways between rest and the values at an end are tried."""

JUMP: Final = 0.1
"""A greater step between instants of a difference is one to another branch."""

SAMPLES: Final = 33
SHARES: Final = np.linspace(0.0, 1.0, SAMPLES)
"""Instants of a motion at which limits are compared, in parts of its duration."""

POWERS: Final = np.arange(6)
DERIVATIVES: Final = np.stack([differentiation(6, order) for order in range(5)])
"""From coefficients of r^0 to r^5 to those of derivatives by r, shape (5, 6, 6)."""

AT_SAMPLES: Final = (SHARES[:, None] ** POWERS) @ DERIVATIVES[:4]
"""From coefficients to derivatives of orders 0 to 3 there, shape (4, SAMPLES, 6)."""

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

    return quickest(mover, values, arrivals, least=mover.least(q - values.q))


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


class _WithinLimits(NamedTuple):
    """A motion that keeps limits.

    Attributes:
        before: A duration before it that does not [s].
        duration: Its duration [s].
        end: With which values it ends, shape (n,) each.
        sooner: Where in between limits are reached, by a straight line [s]; NaN where
            it is not a limit of rates or accelerations that the one before exceeds.
    """

    before: float
    duration: float
    end: JointValues
    sooner: float


def quickest(
    mover: Mover, values: JointValues, arrivals: Ends, least: float = 0.0
) -> Motion:
    """Return the motion of the least duration that keeps limits.

    Args:
        mover: The limits.
        values: With which values it begins, shape (n,) each.
        arrivals: With which it may end.
        least: Shorter durations surely exceed limits [s].

    Raises:
        Impossible: No duration keeps limits.
    """
    why: dict[int, float] = {}

    def first_of(durations: Array) -> _WithinLimits | None:
        """Return the first that keeps limits."""
        ends, reasons = arrivals(durations)
        q, qd, qdd = _extremes(values, ends, durations)
        with np.errstate(invalid="ignore"):
            excess = mover.excess(qd, qdd)
            fast = excess > 1.0 + LIMIT_ROUNDING
            reasons = np.where((reasons == 0) & fast, int(RunReason.OUTRUN), reasons)
            beyond = (reasons == 0) & ~mover.are_within(q)
        reasons[beyond] = int(RunReason.LIMITS)
        good = np.flatnonzero(reasons == 0)
        if not len(good):
            for each, duration in zip(reasons.tolist(), durations, strict=True):
                why[each] = why.get(each, 0.0) + float(duration)
            return None
        k = int(good[0])
        end = JointValues(*(part[k] for part in ends))
        duration = float(durations[k])
        if not k:
            return _WithinLimits(duration / GROWTH, duration, end, np.nan)
        before, sooner = float(durations[k - 1]), np.nan
        if reasons[k - 1] == int(RunReason.OUTRUN):
            a, b = excess[k - 1 : k + 1].tolist()
            sooner = before + (duration - before) * min((a - 1.0) / (a - b), 1.0)
        return _WithinLimits(before, duration, end, sooner)

    for first in range(0, len(DURATIONS), AT_ONCE):
        durations = DURATIONS[first : first + AT_ONCE]
        found = None if durations[-1] < least else first_of(durations)
        if found is None:
            continue
        for _ in range(MOST_REFINEMENTS):
            before, duration, _, _ = found
            found = first_of(np.linspace(before, duration, AT_ONCE + 1)) or found
            if found.sooner > 0.0:
                near = np.minimum(found.sooner * NEARBY, found.duration)
                found = first_of(near) or found
                break
        for longer in LONGER:
            end = first_of(found.duration * np.array([longer])) if longer > 1 else found
            motion = end and _through([(0.0, values), (end.duration, end.end)])
            if motion and mover.are_kept_along(motion):
                return motion
    motion = _in_parts(mover, values, arrivals)
    if motion is not None:
        return motion
    raise _refusal(why)


def _refusal(why: dict[int, float]) -> Impossible:
    """Return the error that no duration keeps limits.

    why: How much time is lost to each reason, the sum of its durations [s].
    """
    # Of many durations the reason is that of most time, where the end is reached.
    far = {int(each): why[each] for each in COME_FAR if each in why} or why
    reason = RunReason(max(far, key=far.__getitem__))
    return Impossible(
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


def _extremes(values: JointValues, ends: JointValues, durations: Array) -> JointValues:
    """Return what polynomials of degree 5 reach, at samples and all extremes between.

    Args:
        values: With which they begin, shape (n,) or (k, n) each.
        ends: With which they end, shape (k, n) each.
        durations: How long they take [s], shape (k,).

    Returns:
        Shape (k, 2 SAMPLES - 1, n) each; where there is no extreme between samples, the
        second of these again.
    """
    knots = np.empty((len(durations), 2, 3, ends.q.shape[1]))
    for k, parts in enumerate(zip(values, ends, strict=True)):
        knots[:, 0, k], knots[:, 1, k] = parts
    C = hermite_coefficients(durations[:, None], knots)[:, 0].swapaxes(0, 1)
    at = np.einsum("osp,pkn->oskn", AT_SAMPLES, C)
    found = np.concatenate([at[:3], at[:3, 1:]], axis=1)
    # Each change of sign of the next derivative is one root of it, which two of
    # Newton's steps refine.
    order, s, k, n = np.nonzero(at[1:, :-1] * at[1:, 1:] < 0.0)
    if order.size:
        low, step = SHARES[s], SHARES[1]
        a, b = at[order + 1, s, k, n], at[order + 1, s + 1, k, n]
        r = low + step * a / (a - b)
        own = C[:, k, n].T[:, :, None]
        value, slope, bend = (
            (DERIVATIVES[order + more] @ own)[:, :, 0] for more in range(3)
        )
        for _ in range(2):
            powers = r[:, None] ** POWERS
            rate = (bend * powers).sum(axis=1)
            move = (slope * powers).sum(axis=1) / np.where(rate == 0.0, np.inf, rate)
            r = np.clip(r - move, low, low + step)
        value *= r[:, None] ** POWERS
        found[order, SAMPLES + s, k, n] = value.sum(axis=1)
    ways, rates, bends = np.moveaxis(found, 1, 2)
    each = durations[:, None, None]
    return JointValues(ways, rates / each, bends / (each * each))


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
            if begin - came >= max(mover.shortest(ramp[0][1].q - rest.q), SHORTEST):
                # Of a ramp without a duration there is but one knot.
                knots = [*stopped, *((begin + time, each) for time, each in ramp)]
                return k, _through(knots)
    return None


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
    T: Array = np.asarray(least * 1.15 ** np.arange(12), np.float64)
    each = T[:, None]
    rests_at = q + sign * qd * each / 2.0 + qdd * each * each / 12.0
    rest = JointValues(rests_at, *(np.zeros_like(rests_at),) * 2)
    moving = JointValues(*(np.broadcast_to(part, rests_at.shape) for part in values))
    found = _extremes(*((rest, moving) if before else (moving, rest)), T)
    good = mover.excess(*found[1:]) <= 1.0 + LIMIT_ROUNDING
    for k in np.flatnonzero(good & mover.are_within(found.q)).tolist():
        end, time = JointValues(rests_at[k], still, still), float(T[k])
        yield [(0.0, end), (time, values)] if before else [(0.0, values), (time, end)]
