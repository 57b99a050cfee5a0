"""How near links come during a timeline, proven between all instants.

Between two instants a and b, at which the distance of a pair is d(a) and d(b), it is
nowhere less than

    (d(a) + d(b) - v (b - a)) / 2

where v bounds how fast its links approach each other: `approach_rates` of the check
times the greatest rates of joints. Intervals in which that is less than the least known
distance by more than a tolerance are halved, all at once, until no such interval is
left. What is always as near as the nearest pair asks for no more instants than it
moves. A golden section then finds the least distance next to the best of all instants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.errors import quote
from armillary.kinematics.speed_bounds import zero_product
from armillary.programs.recording import Recording
from armillary.programs.tracks import BETWEEN, inside_of

__all__ = ["Clearance", "clearance", "nearest_sample"]

Array = npt.NDArray[np.float64]

COARSE: Final = 0.05
"""The longest interval at first [s]."""

SAMPLED: Final = 0.002
"""Between instants, where nothing bounds how fast links move [s]."""

MOST: Final = 4_000_000
"""Distances that are computed at most; then what is proven is less."""

ROUNDING: Final = 1e-9
"""Of distances [m]."""

UNPROVEN: Final = -math.inf

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
        sampled: The pairs whose distances are known at samples every 2 ms alone:
            nothing bounds how fast closed loops, and scripts that are not compiled,
            move their links.
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
        where = " and ".join(map(quote, self.pair))
        proven = "nothing" if self.proven == UNPROVEN else f"{self.proven:.6g} m"
        count = len(self.sampled)
        but = f" but for {count} pairs, which were sampled" if count else ""
        step = f" in {self.step}" if self.step else ""
        return (
            f"<Clearance: {self.distance:.6g} m, {where} at {self.time:.6g} s{step}; "
            f"proven {proven}{but}>"
        )


def clearance(recording: Recording, *, tolerance: float = 1e-5) -> Clearance:
    """Return how near links come, see `Timeline.clearance`."""
    best, where, proven = math.inf, 0.0, math.inf
    sampled: dict[tuple[str, str], None] = {}
    for start, end in recording.attached_spans():
        check = recording.check(start)
        if not len(check.pairs):
            continue
        found, time, bound, unknown = _least(
            recording, check, start, end, tolerance, best
        )
        sampled |= dict.fromkeys(unknown)
        proven = min(proven, bound)
        if found < best:
            best, where = found, time
    if best == math.inf:
        return Clearance(distance=math.inf, proven=math.inf)
    # Of two states that meet at an instant, the pair is that of the nearer one.
    nearest = min(
        (
            contact
            for check, q in _at(recording, where)
            for contact in check.contacts(q, within=best + 1e-6)[:1]
        ),
        key=lambda contact: contact.distance,
        default=None,
    )
    pair = ("", "") if nearest is None else nearest.links
    if proven == math.inf:  # all that moves was sampled
        proven = UNPROVEN
    return Clearance(
        distance=best, proven=proven, pair=pair, time=where, sampled=tuple(sampled)
    )


def nearest_sample(
    recording: Recording,
    moved: Callable[[tuple[str, str]], bool],
    start: float,
    end: float,
) -> Clearance:
    """Return how near some pairs come in a span of time, at samples every `SAMPLED`.

    Args:
        recording: What moved.
        moved: Whether a pair counts.
        start: When it begins [s].
        end: When it ends [s].
    """
    best = Clearance(distance=math.inf)
    for first, last in recording.attached_spans():
        a, b = max(first, start), min(last, end)
        check = recording.check(first)
        columns = [k for k, pair in enumerate(check.pairs) if moved(pair)]
        if a >= b or not columns:
            continue
        times = np.linspace(a, b, math.ceil((b - a) / SAMPLED) + 1)
        distances = check.distances(recording.at(times).q)[:, columns]
        row, k = divmod(int(np.argmin(distances)), len(columns))
        if distances[row, k] < best.distance:
            best = Clearance(
                distance=float(distances[row, k]),
                pair=check.pairs[columns[k]],
                time=float(times[row]),
            )
    return best


def _at(recording: Recording, time: float) -> Iterator[tuple[CollisionCheck, Array]]:
    """Yield the checks of the states at an instant, on both sides of it."""
    q = recording.at(time).q
    yield recording.check(time), q
    yield recording.check(max(np.nextafter(time, -1.0), 0.0)), q


def _least(
    recording: Recording,
    check: CollisionCheck,
    start: float,
    end: float,
    tolerance: float,
    best: float,
) -> tuple[float, float, float, list[tuple[str, str]]]:
    """Return the least distance in an interval, when that is, and what is proven.

    The last are the pairs that were sampled, of which nothing is proven.
    """
    knots = recording.knots(start, end, most=COARSE)

    def distances(times: Array) -> Array:
        found = check.distances(recording.at(times).q)
        return np.where(np.isnan(found), -math.inf, found)

    def nearest(times: Array) -> Array:
        found = check.clearance(recording.at(times).q)
        return np.where(np.isnan(found), -math.inf, found)

    if len(knots) < 2:
        (least,) = nearest(knots)
        return float(least), start, float(least) - ROUNDING, []
    speeds = _speeds(recording, check, knots)
    known = np.isfinite(speeds).all(axis=0)
    least, where, proven = math.inf, start, math.inf
    unknown = [check.pairs[k] for k in np.flatnonzero(~known).tolist()]
    if unknown:
        count = max(2, math.ceil((end - start) / SAMPLED))
        times = np.linspace(start, end, count + 1)
        least, where = _at_least(nearest(times)[:, None], times, least, where)
        if not known.any():
            return least, where, math.inf, unknown
    speeds = speeds[:, known]
    values = distances(knots)[:, known]
    least, where = _at_least(values, knots, least, where)
    a, b, d_a, d_b, v = knots[:-1], knots[1:], values[:-1], values[1:], speeds
    count = len(values)
    while len(a):
        bound = (0.5 * (d_a + d_b - v * (b - a)[:, None])).min(axis=1, initial=math.inf)
        is_open = bound < min(least, best) - tolerance
        is_open &= (b - a) > 1e-12 * max(end, 1.0)
        if count > MOST // len(check.pairs):
            is_open[:] = False
        proven = min(proven, float(bound[~is_open].min(initial=math.inf)))
        a, b, d_a, d_b, v = (np.asarray(part[is_open]) for part in (a, b, d_a, d_b, v))
        if not len(a):
            break
        middle: Array = 0.5 * (a + b)
        d = distances(middle)[:, known]
        count += len(d)
        least, where = _at_least(d, middle, least, where)
        a, b = np.concatenate([a, middle]), np.concatenate([middle, b])
        d_a, d_b = np.concatenate([d_a, d]), np.concatenate([d, d_b])
        v = np.concatenate([v, v])
    if least < best:
        width = max(tolerance / max(float(speeds.max()), 1e-9), 1e-9) * 100.0
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


def _speeds(recording: Recording, check: CollisionCheck, knots: Array) -> Array:
    """Return bounds of how fast pairs approach in each interval [m/s], (k, pairs).

    They are infinite where nothing is known.
    """
    if not check.may_be_free:
        return np.zeros((len(knots) - 1, len(check.pairs)))
    first, last = inside_of(knots).T[:, :, None]
    inner = first + (last - first) * np.linspace(0.0, 1.0, 9)
    values = recording.at(inner)
    rates = np.abs(values.qd).max(axis=1)
    slack = BETWEEN * rates * (np.diff(knots)[:, None] / 8.0)
    lower = (values.q.min(axis=1) - slack).min(axis=0)
    upper = (values.q.max(axis=1) + slack).max(axis=0)
    per_joint = check.approach_rates(lower, upper)
    constant = (np.abs(values.qd) == rates[:, None]).all(axis=1)
    rates = np.asarray(np.where(constant, rates, BETWEEN * rates), np.float64)
    # What is not known of a joint does not matter where it rests.
    speeds: Array = zero_product(rates[:, None, :], per_joint).sum(axis=2)
    return speeds


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
