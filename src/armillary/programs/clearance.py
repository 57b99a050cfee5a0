"""How near links come during a timeline, proven between all instants.

Between two instants a and b, at which the least distance of all pairs is d(a) and d(b),
it is nowhere less than

    (d(a) + d(b) - v (b - a)) / 2

where v bounds how fast links of pairs approach each other: `approach_rates` of the
check times the greatest rates of joints. Intervals in which that is less than the least
known distance by more than a tolerance are halved, all at once, until there are none. A
golden section then finds the least distance next to the best of all instants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.programs.timeline import Timeline
from armillary.programs.tracks import BETWEEN

__all__ = ["Clearance", "clearance"]

Array = npt.NDArray[np.float64]

COARSE: Final = 0.05
"""The longest interval at first [s]."""

SAMPLED: Final = 0.002
"""Between instants, where nothing bounds how fast links move [s]."""

MOST: Final = 4_000_000
"""Distances that are computed at most; then what is proven is less."""

ROUNDING: Final = 1e-9
"""Of distances [m]."""

GOLDEN: Final = 0.5 * (math.sqrt(5.0) - 1.0)
SECTIONS: Final = 60


class Clearance(NamedTuple):
    """How near links come during a timeline.

    Attributes:
        distance: The least distance that was found [m]; below 0 where links overlap,
            infinite where no pair is tested.
        proven: No pair is nearer than this at any instant [m]; minus infinity where
            nothing bounds how fast links move, as in closed loops: then distances were
            sampled.
        pair: The two links that come nearest.
        time: When that is [s].
        step: The step of a task at that time whose joints move; empty if there is none.
    """

    distance: float
    proven: float
    pair: tuple[str, str]
    time: float
    step: str

    @property
    def is_free(self) -> bool:
        """Return whether it is proven that no links touch at any instant."""
        return self.proven > 0.0


def clearance(timeline: Timeline, *, tolerance: float = 1e-5) -> Clearance:
    """Return how near links come, see `Timeline.clearance`."""
    best, where, proven = math.inf, 0.0, math.inf
    for start, end in _spans(timeline):
        check = timeline.check(start)
        if not len(check.pairs):
            continue
        found, time, bound = _least(timeline, check, start, end, tolerance, best)
        proven = min(proven, bound)
        if found < best:
            best, where = found, time
    if best == math.inf:
        return Clearance(math.inf, math.inf, ("", ""), 0.0, "")
    # Of two states that meet at an instant, the pair is that of the nearer one.
    nearest = min(
        (
            contact
            for check, q in _at(timeline, where)
            for contact in check.contacts(q, within=best + 1e-6)[:1]
        ),
        key=lambda contact: contact.distance,
        default=None,
    )
    pair = ("", "") if nearest is None else nearest.links
    return Clearance(best, proven, pair, where, _step_at(timeline, where))


def _spans(timeline: Timeline) -> Iterator[tuple[float, float]]:
    """Yield the intervals of time in which attachments stay."""
    times = sorted({event.time for event in timeline.events})
    yield from pairwise([*times, max(timeline.duration, times[-1])])


def _at(timeline: Timeline, time: float) -> Iterator[tuple[CollisionCheck, Array]]:
    """Yield the checks of the states at an instant, on both sides of it."""
    q = timeline.at(time).q
    yield timeline.check(time), q
    yield timeline.check(max(np.nextafter(time, -1.0), 0.0)), q


def _least(
    timeline: Timeline,
    check: CollisionCheck,
    start: float,
    end: float,
    tolerance: float,
    best: float,
) -> tuple[float, float, float]:
    """Return the least distance in an interval, when that is, and what is proven."""
    knots = timeline.knots(start, end, most=COARSE)

    def distances(times: Array) -> Array:
        found = check.clearance(timeline.at(times).q)
        return np.where(np.isnan(found), -math.inf, found)

    if len(knots) < 2:
        (least,) = distances(knots)
        return float(least), start, float(least) - ROUNDING
    speeds = _speeds(timeline, check, knots)
    if speeds is None:
        count = max(2, math.ceil((end - start) / SAMPLED))
        times = np.linspace(start, end, count + 1)
        d = distances(times)
        k = int(np.argmin(d))
        return float(d[k]), float(times[k]), -math.inf
    values = distances(knots)
    a, b, d_a, d_b, v = knots[:-1], knots[1:], values[:-1], values[1:], speeds
    k = int(np.argmin(values))
    least, where = float(values[k]), float(knots[k])
    proven, count = math.inf, len(values)
    while len(a):
        bound = 0.5 * (d_a + d_b - v * (b - a))
        is_open = bound < min(least, best) - tolerance
        is_open &= (b - a) > 1e-12 * max(end, 1.0)
        if count > MOST:
            is_open[:] = False
        proven = min(proven, float(bound[~is_open].min(initial=math.inf)))
        a, b, d_a, d_b, v = (part[is_open] for part in (a, b, d_a, d_b, v))
        if not len(a):
            break
        middle = 0.5 * (a + b)
        d = distances(middle)
        count += len(d)
        k = int(np.argmin(d))
        if d[k] < least:
            least, where = float(d[k]), float(middle[k])
        a, b = np.concatenate([a, middle]), np.concatenate([middle, b])
        d_a, d_b = np.concatenate([d_a, d]), np.concatenate([d, d_b])
        v = np.concatenate([v, v])
    if least < best:
        width = max(tolerance / max(float(speeds.max()), 1e-9), 1e-9) * 100.0
        low, high = max(start, where - width), min(end, where + width)
        found, time = _golden(lambda t: float(distances(np.array([t]))[0]), low, high)
        if found < least:
            least, where = found, time
    return least, where, min(proven, least) - ROUNDING


def _speeds(timeline: Timeline, check: CollisionCheck, knots: Array) -> Array | None:
    """Return bounds of how fast links approach in each interval [m/s], shape (k,).

    None where nothing is known.
    """
    if not check.may_be_free:
        return np.zeros(len(knots) - 1)
    inner = knots[:-1, None] + np.diff(knots)[:, None] * np.linspace(0.0, 1.0, 9)
    # The rates at an end are those of this interval, not of the one behind it.
    inner[:, -1] = np.nextafter(knots[1:], -math.inf)
    values = timeline.at(inner)
    rates = np.abs(values.qd).max(axis=1)
    slack = BETWEEN * rates * (np.diff(knots)[:, None] / 8.0)
    lower = (values.q.min(axis=1) - slack).min(axis=0)
    upper = (values.q.max(axis=1) + slack).max(axis=0)
    per_joint = check.approach_rates(lower, upper)
    constant = (np.abs(values.qd) == rates[:, None]).all(axis=1)
    rates = np.where(constant, rates, BETWEEN * rates)
    with np.errstate(invalid="ignore"):
        products = rates[:, None, :] * per_joint
    products = np.where(rates[:, None, :] > 0.0, products, 0.0).sum(axis=2)
    speeds = products.max(axis=1, initial=0.0)
    return speeds if np.isfinite(speeds).all() else None


def _golden(
    value: Callable[[float], float], low: float, high: float
) -> tuple[float, float]:
    """Return the least value between two instants, and when that is."""
    a, b = low, high
    x, y = b - GOLDEN * (b - a), a + GOLDEN * (b - a)
    f, g = value(x), value(y)
    for _ in range(SECTIONS):
        if b - a <= 1e-13 * max(abs(b), 1.0):
            break
        if f <= g:
            b, y, g = y, x, f
            x = b - GOLDEN * (b - a)
            f = value(x)
        else:
            a, x, f = x, y, g
            y = a + GOLDEN * (b - a)
            g = value(y)
    return (f, x) if f <= g else (g, y)


def _step_at(timeline: Timeline, time: float) -> str:
    """Return the step that moves joints at an instant."""
    moving = {
        track.name
        for track in timeline.tracks
        for piece in track.pieces
        if piece.start <= time <= piece.end
    }
    for span in timeline.spans:
        if span.start <= time <= span.end and span.task in moving:
            return span.place
    return ""
