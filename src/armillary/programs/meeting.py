"""Motions that end where a frame is that moves by itself, with its velocity.

A motion that meets it is a polynomial of degree 5 for each joint, from the positions,
rates and accelerations that joints have, to those with which the tool stands still
relative to the frame. Its duration is the least of a sequence at which limits hold,
which are compared at all its extremes. Between that and the one
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
from functools import cache, reduce
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.kernel import Kernel
from armillary.kernel.kernel import shared_kernel
from armillary.programs.ending import Impossible, RunReason
from armillary.programs.mover import EXACT, LIMIT_ROUNDING, STILL, Mover, rests
from armillary.programs.tracks import JointValues
from armillary.spatial.polynomial import polynomial, with_derivatives
from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace import trace
from armillary.trace.functions import maximum, minimum, select, sqrt
from armillary.trajectories.curve import hermite_coefficients
from armillary.trajectories.kept_limits import BEYOND
from armillary.trajectories.motion import Motion

__all__ = [
    "SHORTEST",
    "Arrivals",
    "Poses",
    "kept_limits",
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

STEPS_TO_ROOT: Final = 8
"""Steps to where a rate or an acceleration is 0: limits are compared there, and it is
proven afterwards that a motion keeps them."""

SAMPLED: Final = np.linspace(0.0, 1.0, 33)[:, None] ** np.arange(6)
"""From coefficients to the instants at which coupled limits are compared."""

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
        near = np.broadcast_to(values.q, (5 * k, n))
        found = solver(X, near=near, tolerance=EXACT)
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
        excess, within = kept_limits(mover, values, ends, durations)
        # What is not reached is NaN, and has its reason.
        fast = excess > 1.0 + LIMIT_ROUNDING
        reasons = np.where((reasons == 0) & fast, int(RunReason.OUTRUN), reasons)
        reasons[(reasons == 0) & ~within] = int(RunReason.LIMITS)
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


def kept_limits(
    mover: Mover, values: JointValues, ends: JointValues, durations: Array
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return how polynomials of degree 5 keep limits: at their ends and all extremes.

    Args:
        mover: The limits.
        values: With which they begin, shape (n,) or (k, n) each.
        ends: With which they end, shape (k, n) each.
        durations: How long they take [s], shape (k,).

    Returns:
        The greatest ratio to limits of rates, or the root of that of accelerations: a
        motion that takes so many times as long keeps them. And whether positions are
        within theirs. Shape (k,) each. Limits that couple joints are compared at
        samples.
    """
    T = durations[:, None]
    knots = np.empty((len(T), ends.q.shape[1], 2, 3))
    for k, parts in enumerate(zip(values, ends, strict=True)):
        knots[:, :, 0, k], knots[:, :, 1, k] = parts
    limits = np.concatenate([mover.velocity, mover.acceleration]).T
    found: Any = _reached()(T, knots, limits)
    ratios, low, high = found
    within = mover.are_within(low, high)
    if mover.coupled is not None:
        curve = hermite_coefficients(T, np.moveaxis(knots, 1, 3))[:, 0]
        beyond = SAMPLED @ curve @ mover.coupled.A.T - mover.coupled.b
        within &= (beyond <= BEYOND).all(axis=(1, 2))
    return ratios.max(axis=1), within


@cache
def _reached() -> Kernel:
    """Return the kernel of `reached`, for one joint."""
    shapes: Any = {"T": (), "knots": (2, 3), "limits": (4,)}
    names = "ratio", "low", "high"
    return shared_kernel(
        trace(reached, name="reached_by_quintic", outputs=names, **shapes)
    )


def reached(T: Number, knots: Matrix, limits: Vector) -> tuple[Number, Number, Number]:
    """Return how far a polynomial of degree 5 goes, and what of limits it takes.

    Between two extremes a polynomial is monotone, and has at most one root. Those of
    the third derivative are known, between them are those of the second one, between
    these those of the first one.

    Args:
        T: How long it takes [s].
        knots: Position, rate and acceleration at its begin and its end, shape (2, 3).
        limits: Least and greatest rate, least and greatest acceleration, shape (4,).

    Returns:
        The greatest ratio of a rate to its limit, or the root of that of accelerations;
        the least and the greatest position.
    """
    (q0, v0, a0), (q1, v1, a1) = knots
    # q(r) = q0 + c1 r + ... + c5 r^5 with r = t / T.
    d, u0, u1, b0, b1 = q1 - q0, v0 * T, v1 * T, 0.5 * a0 * T * T, 0.5 * a1 * T * T
    c3 = 10.0 * d - 6.0 * u0 - 4.0 * u1 - 3.0 * b0 + b1
    c4 = -15.0 * d + 8.0 * u0 + 7.0 * u1 + 3.0 * b0 - 2.0 * b1
    c5 = 6.0 * d - 3.0 * (u0 + u1) - b0 + b1
    rates = [u0, 2.0 * b0, 3.0 * c3, 4.0 * c4, 5.0 * c5]
    bends = [2.0 * b0, 6.0 * c3, 12.0 * c4, 20.0 * c5]
    # The third derivative is 6 (c3 + 4 c4 r + 10 c5 r^2), of which no root cancels.
    root = sqrt(maximum(4.0 * c4 * c4 - 10.0 * c3 * c5, 0.0))
    sum_ = -(2.0 * c4 + select(c4 < 0.0, -root, root))
    ways = [_share(sum_, 10.0 * c5), _share(c3, sum_)]
    edges = [0.0, reduce(minimum, ways), reduce(maximum, ways), 1.0]
    turns = [_root(bends, a, b) for a, b in pairwise(edges)]
    ends = [_root(rates, a, b) for a, b in pairwise([0.0, *turns, 1.0])]
    q = [q0, q1] + [q0 + r * polynomial([u0, b0, c3, c4, c5], r) for r in ends]
    v = [v0, v1] + [polynomial(rates, r) / T for r in turns]
    a = [a0, a1] + [polynomial(bends, r) / (T * T) for r in edges[1:3]]
    ratio = maximum(_ratio(v, *limits[:2]), sqrt(_ratio(a, *limits[2:])))
    return ratio, reduce(minimum, q), reduce(maximum, q)


def _share(above: Number, below: Number) -> Number:
    """Return a quotient, within 0 and 1; 0 where it has no denominator."""
    is_none = below == 0.0
    share = above / select(is_none, 1.0, below)
    return select(is_none, 0.0, minimum(maximum(share, 0.0), 1.0))


def _root(coefficients: list[Number], low: Number, high: Number) -> Number:
    """Return the root of a polynomial that is monotone between two values.

    By steps of Newton that stay between values of both signs, else these are halved. It
    is some value between them where there is no root.
    """
    rises = polynomial(coefficients, low) < polynomial(coefficients, high)
    r = 0.5 * (low + high)
    for _ in range(STEPS_TO_ROOT):
        value, slope = with_derivatives(coefficients, r, 2)
        is_before = (value < 0.0) == rises
        low, high = select(is_before, r, low), select(is_before, high, r)
        step = r - value / select(slope == 0.0, 1.0, slope)
        is_inside = (step >= low) & (step <= high)
        r = select(is_inside, step, 0.5 * (low + high))
    return r


def _ratio(values: list[Number], least: Number, most: Number) -> Number:
    """Return the greatest ratio of values to limits of their sign, 0 at rest."""
    high, low = reduce(maximum, values), reduce(minimum, values)
    up, down = high / most, low / least
    return maximum(select(high > STILL, up, 0.0), select(low < -STILL, down, 0.0))


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
    excess, within = kept_limits(
        mover, *((rest, moving) if before else (moving, rest)), T
    )
    for k in np.flatnonzero((excess <= 1.0 + LIMIT_ROUNDING) & within).tolist():
        end, time = JointValues(rests_at[k], still, still), float(T[k])
        yield [(0.0, end), (time, values)] if before else [(0.0, values), (time, end)]
