"""Straight motions of cells with closed loops: how far they are free of collision.

`PairSpans` bounds distances, as for timelines: a motion is cut into spans, which are
halved until each is proven to be free, or one ends where links touch.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.collision.motion import MotionReason
from armillary.collision.motion_stages import GAP_AT_END, SHORTEST
from armillary.collision.pair_spans import (
    PairsCheck,
    PairSpans,
    approach_speeds,
    distances_of,
)
from armillary.kinematics.closing.enclosing import Stretches, with_passive
from armillary.kinematics.state import branch_of

__all__ = ["closed_motions"]

Array = npt.NDArray[np.float64]
Reasons = npt.NDArray[np.int8]

STRIDE: Final = 0.05
"""How far joints move in a span at first [m or rad]."""

MOST_SPANS: Final = 4096
"""Spans of a motion at first."""

SHORTEST_PART: Final = 2.0**-14
"""Spans in which loops are not proven to move on are not halved below this part of a
span at first."""

MOST_DISTANCES: Final = 1 << 17
"""Positions of a motion at which distances are computed at most; what is not proven
then is not."""


def closed_motions(
    check: PairsCheck, Q0: Array, Q1: Array, rounding: float
) -> tuple[Array, Reasons]:
    """Return how far motions are free, and why: (n, joints) twice -> (n,) twice.

    Args:
        check: What must not touch.
        Q0: Where motions begin.
        Q1: Where they end.
        rounding: Links touch that come nearer than the margin and this [m].
    """
    fraction = np.full(len(Q0), np.nan)
    reason = np.full(len(Q0), MotionReason.INVALID, np.int8)
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.flatnonzero(np.isfinite(Q1 - Q0).all(axis=1))
    # Short motions are proven together, as one span each.
    whole = _are_free(check, Q0[rows], Q1[rows], check.margin + GAP_AT_END * rounding)
    fraction[rows[whole]], reason[rows[whole]] = 1.0, MotionReason.FREE
    for k in rows[~whole].tolist():
        fraction[k], reason[k] = _motion(check, Q0[k], Q1[k], rounding)
    return fraction, reason


def _are_free(
    check: PairsCheck, Q0: Array, Q1: Array, enough: float
) -> npt.NDArray[np.bool_]:
    """Return which motions are proven at once to keep links farther apart, (n,)."""
    # Motions last from 0 to 1, so that v is the way by which links may come nearer.
    middle = 0.5 * Q0 + 0.5 * Q1
    reach = np.maximum(np.abs(Q1 - middle), np.abs(Q0 - middle))
    given = Stretches(middle, reach, Q1 - Q0, np.zeros_like(middle))
    joints = with_passive(branch_of(check.state), given, Q0, Q1)
    v = approach_speeds(check, joints)
    bounds = 0.5 * (distances_of(check, Q0) + distances_of(check, Q1) - v)
    return np.asarray(bounds.min(axis=1, initial=math.inf) > enough)


def _motion(
    check: PairsCheck, q0: Array, q1: Array, rounding: float
) -> tuple[float, MotionReason]:
    """Return the same of one motion, q0 + t (q1 - q0) for t in [0, 1].

    Spans that are proven to keep more than `enough` apart are dropped, and so are those
    behind the first instant that ends it; the others are halved.
    """
    way = q1 - q0

    def at(t: Array) -> Array:
        q = q0 + t[:, None] * way
        q[t == 1.0] = q1
        return q

    def stretches(a: Array, b: Array) -> Stretches:
        middle = 0.5 * (a + b)
        half = np.maximum(b - middle, middle - a)[:, None]
        rates = np.tile(way, (len(a), 1))
        return Stretches(at(middle), half * np.abs(way), rates, np.zeros_like(rates))

    longest = float(np.abs(way).max(initial=0.0))
    count = min(max(math.ceil(longest / STRIDE), 1), MOST_SPANS)
    times = np.linspace(0.0, 1.0, count + 1)
    spans = PairSpans.between(check, times, at, stretches, least=SHORTEST_PART / count)
    touching, enough = check.margin + rounding, check.margin + GAP_AT_END * rounding

    # It is not free beyond the first instant at which links touch, or from which on
    # nothing is known of them.
    end, why = 1.0, MotionReason.FREE

    def ends(t: Array, are: npt.NDArray[np.bool_], reason: MotionReason) -> None:
        nonlocal end, why
        first = float(t[are].min(initial=math.inf))
        if first < end or (first == end and why == MotionReason.FREE):
            end, why = first, reason

    def look(spans: PairSpans) -> None:
        for t, d in ((spans.a, spans.d_a), (spans.b, spans.d_b)):
            least = d.min(axis=1, initial=math.inf)
            unknown = least == -math.inf
            ends(t, unknown, MotionReason.NOT_PROVEN)
            ends(t, (least <= touching) & ~unknown, MotionReason.CONTACT)
        ends(spans.a, (spans.v == math.inf).any(axis=1), MotionReason.NOT_PROVEN)

    look(spans)
    computed = len(spans.a)
    while True:
        spans = spans.rows((spans.a < end) & ~(spans.bounds > enough))
        is_short = spans.b - spans.a <= SHORTEST
        ends(spans.a, is_short, MotionReason.NOT_PROVEN)
        spans = spans.rows(~is_short & (spans.a < end))
        if not len(spans.a):
            return end, why
        computed += len(spans.a)
        if computed > MOST_DISTANCES:
            return float(spans.a.min()), MotionReason.NOT_PROVEN
        spans = spans.halved()
        look(spans)
