"""How near links come during a timeline, proven between all instants.

`PairSpans` says what no pair is nearer than between two instants. Spans in which that
is less than the least known distance by more than a tolerance are halved, all at once,
until no such span is left. What is always as near as the nearest pair asks for no more
instants than it moves. A golden section then finds the least distance next to the best
of all instants.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.collision.pair_spans import PairSpans
from armillary.errors import quote
from armillary.kinematics.state import State
from armillary.programs.recording import Recording

__all__ = ["UNTESTED", "Clearance", "clearance", "nearest_below"]

Array = npt.NDArray[np.float64]

COARSE: Final = 0.05
"""The longest interval at first [s]."""

SAMPLED: Final = 0.002
"""Between instants, where nothing bounds how fast links move [s]."""

SHORTEST: Final = 1e-4
"""Spans in which loops are not proven to move on are not halved below this [s]."""

MOST_DISTANCES: Final = 4_000_000
"""Distances that are computed at most; then what is proven is less."""

ROUNDING: Final = 1e-9
"""Of distances [m]."""

UNPROVEN: Final = -math.inf

UNTESTED: Final = "no pair of links is tested"
"""What is said where the distance is infinite."""

GOLDEN: Final = 0.5 * (math.sqrt(5.0) - 1.0)
SECTIONS: Final = 60


class Clearance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How near links come during a recording.

    Attributes:
        distance: The least distance that was found [m]; below 0 where links overlap,
            infinite where no pair is tested.
        proven: No pair is nearer than this at any instant [m], but for those that were
            sampled; minus infinity where all were.
        pair: The two links that come nearest.
        time: When that is [s].
        step: The step of a task at that time whose joints move, empty at rest.
        sampled: The pairs whose distances are known at samples every 2 ms alone, as
            nothing bounds how fast their links move: scripts that are not compiled
            move them, or loops that come so near to a singularity that it is not proven
            on which branch they go on.
    """

    distance: float
    pair: tuple[str, str] = ("", "")
    time: float = 0.0
    step: str = ""
    proven: float = UNPROVEN
    sampled: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Let JSON, which has no infinities, leave out what is not proven."""
        if self.proven == UNPROVEN:
            msgspec.structs.force_setattr(self, "proven", UNPROVEN)

    @property
    def is_free(self) -> bool:
        """Return whether it is proven that no links touch at any instant."""
        return self.proven > 0.0 and not self.sampled

    def __repr__(self) -> str:
        if self.distance == math.inf:
            return f"<Clearance: {UNTESTED}>"
        where = " and ".join(map(quote, self.pair))
        proven = "nothing" if self.proven == UNPROVEN else f"{self.proven:.6g} m"
        count = len(self.sampled)
        but = f" but for {count} pairs, which were sampled" if count else ""
        step = f" in {self.step}" if self.step else ""
        return (
            f"<Clearance: {self.distance:.6g} m, {where} at {self.time:.6g} s{step}; "
            f"proven {proven}{but}>"
        )


def clearance(
    recording: Recording,
    *,
    tolerance: float = 1e-5,
    start: float = 0.0,
    end: float = math.inf,
    of: str | None = None,
) -> Clearance:
    """Return how near links come in a span of time, see `Timeline.clearance`."""

    def counts(check: CollisionCheck) -> Callable[[tuple[str, str]], bool]:
        own = _with_carried(check.state, of or "")
        return lambda pair: any(link.partition("/")[0] in own for link in pair)

    moved = None if of is None else counts
    found = _nearest(recording, start, end, tolerance, moved=moved)
    if found.proven == math.inf and found.sampled:  # all that moves was sampled
        return msgspec.structs.replace(found, proven=UNPROVEN)
    return found


def nearest_below(
    recording: Recording,
    moved: Callable[[tuple[str, str]], bool],
    start: float,
    end: float,
    enough: float,
) -> Clearance:
    """Return how near some pairs come in a span of time.

    Where its distance is above `enough`, none of the pairs that are not sampled is
    nearer than that at any instant.

    Args:
        recording: What moved.
        moved: Whether a pair counts.
        start: When it begins [s].
        end: When it ends [s].
        enough: Greater distances count as equal [m].
    """
    return _nearest(recording, start, end, None, enough, lambda check: moved)


def _nearest(
    recording: Recording,
    start: float,
    end: float,
    tolerance: float | None,
    enough: float = math.inf,
    moved: Callable[[CollisionCheck], Callable[[tuple[str, str]], bool]] | None = None,
) -> Clearance:
    """Return how near pairs come between instants, over all changes of attachments.

    Args:
        recording: What moved.
        start: When it begins [s].
        end: When it ends [s].
        tolerance: By how much less may be proven than is found [m]; None for what
            counts as touching in motions, by which more than `enough` is proven then.
        enough: Greater distances need not be right [m].
        moved: Returns which pairs of a check count; by default all do.
    """
    best, proven = Clearance(distance=math.inf), math.inf
    sampled: dict[tuple[str, str], None] = {}
    for first, last in recording.attached_spans():
        check, columns = recording.check(first), None
        a, b = max(first, start), min(last, end)
        if moved is not None:
            counts = moved(check)
            columns = np.flatnonzero([counts(pair) for pair in check.pairs])
        # An instant between two spans is that of the second one, unless asked for.
        is_outside = a > b or (a == b and first < last and start < end)
        if is_outside or not len(check.pairs if columns is None else columns):
            continue
        within, most = tolerance, enough
        if within is None:
            within = check.nearness
            most = enough + 2.0 * within
        known = min(best.distance, most)
        found, time, bound, unknown = _least(
            recording, check, a, b, within, known, columns
        )
        proven = min(proven, bound)
        sampled |= dict.fromkeys(unknown)
        if found < best.distance:
            d = check.distances(recording.at(time).q)
            k = int(np.argmin(d) if columns is None else columns[np.argmin(d[columns])])
            best = Clearance(distance=found, pair=check.pairs[k], time=time)
    return msgspec.structs.replace(best, proven=proven, sampled=tuple(sampled))


def _with_carried(state: State, name: str) -> set[str]:
    """Return a manipulator and those that it carries."""
    bases = state.tree.bases
    found, before = {name}, set[str]()
    while found != before:
        before = set(found)
        for each, base in zip(state.cell.manipulators, bases, strict=True):
            if base.on.partition("/")[0] in before:
                found.add(each.name)
    return found


def _least(
    recording: Recording,
    check: CollisionCheck,
    start: float,
    end: float,
    tolerance: float,
    best: float,
    columns: npt.NDArray[np.int64] | None = None,
) -> tuple[float, float, float, list[tuple[str, str]]]:
    """Return the least distance in an interval, when that is, and what is proven.

    The last are the pairs that were sampled, of which nothing is proven.

    Args:
        recording: What moved.
        check: Of the attachments in the interval.
        start: When it begins [s].
        end: When it ends [s].
        tolerance: By how much less may be proven than is found [m].
        best: A distance that is known already [m]; greater ones need not be right.
        columns: Pairs that count; by default all.
    """
    knots = recording.knots(start, end, most=COARSE)

    def at(times: Array) -> Array:
        return recording.at(times).q

    def nearest(times: Array) -> Array:
        if columns is None:
            found = check.clearance(at(times))
        else:
            found = check.distances(at(times))[:, columns].min(axis=1)
        return np.where(np.isnan(found), -math.inf, found)

    if len(knots) < 2:
        (least,) = nearest(knots)
        return float(least), start, float(least) - ROUNDING, []
    spans = PairSpans.between(check, knots, at, recording.stretches, least=SHORTEST)
    if columns is not None:
        spans = spans.pairs(columns)
    known = np.isfinite(spans.v).all(axis=0)
    least, where, proven = math.inf, start, math.inf
    places: list[int] = spans.columns[~known].tolist()
    unknown = [check.pairs[k] for k in places]
    if unknown:
        count = max(2, math.ceil((end - start) / SAMPLED))
        times = np.linspace(start, end, count + 1)
        least, where = _at_least(nearest(times)[:, None], times, least, where)
        if not known.any():
            return least, where, math.inf, unknown
    spans = spans.pairs(np.flatnonzero(known))
    fastest = float(spans.v.max(initial=0.0))
    least, where = _at_least(spans.d_a, spans.a, least, where)
    least, where = _at_least(spans.d_b[-1:], spans.b[-1:], least, where)
    count = len(spans.a)
    while len(spans.a):
        bounds = spans.bounds
        is_open = bounds < min(least, best) - tolerance
        is_open &= (spans.b - spans.a) > 1e-12 * max(end, 1.0)
        if count > MOST_DISTANCES // len(check.pairs):
            is_open[:] = False
        proven = min(proven, float(bounds[~is_open].min(initial=math.inf)))
        if not is_open.any():
            break
        spans = spans.rows(is_open).halved()
        middles = len(spans.a) // 2
        count += middles
        least, where = _at_least(spans.d_b[:middles], spans.b[:middles], least, where)
    if least < best:
        width = max(tolerance / max(fastest, 1e-9), 1e-9) * 100.0
        low, high = max(start, where - width), min(end, where + width)
        found, time = _golden(lambda t: float(nearest(np.array([t]))[0]), low, high)
        if found < least:
            least, where = found, time
    return least, where, min(proven, least) - ROUNDING, unknown


def _at_least(
    d: Array, times: Array, least: float, where: float
) -> tuple[float, float]:
    """Return the least of distances (k, pairs) at instants, or one that is known."""
    each = d.min(axis=1)
    k = int(np.argmin(each))
    return (float(each[k]), float(times[k])) if each[k] < least else (least, where)


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
