"""Tracks: the motions of some joints of a cell, one after the other."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.kinematics.closing.enclosing import Stretches
from armillary.kinematics.state import State
from armillary.trajectories.motion import Motion
from armillary.trajectories.motion_parts import POWERS, bounded_motion

__all__ = [
    "JointValues",
    "Move",
    "Track",
    "TrackPiece",
    "inside_of",
    "knots_of",
    "stretches_of",
    "values_at",
]

Array = npt.NDArray[np.float64]

STILL: Final = 1e-9
"""Rates below this at the end of a motion are rounding."""

SHORTEST: Final = 1e-9
"""The duration of the motion of a run that takes no time [s]."""

INSIDE: Final = 1e-12
"""How far inside of an interval what holds there is asked for, in parts of the instant
or of a second: accelerations jump where pieces meet, and instants are rounded."""


def inside_of(knots: Array) -> Array:
    """Return the first and the last instant inside of each interval, shape (k, 2).

    knots: Instants that ascend [s], shape (k + 1,).
    """
    a, b = knots[:-1], knots[1:]
    off = np.minimum(INSIDE * np.maximum(b, 1.0), 0.25 * (b - a))
    return np.stack([a + off, b - off], axis=1)


class JointValues(NamedTuple):
    """Positions [m or rad], rates and accelerations of joints, shape (..., n) each."""

    q: Array
    qd: Array
    qdd: Array


class Move(NamedTuple):
    """A motion that a step asks for.

    Attributes:
        motion: The motion.
        to: Where joints rest after it, shape (n,); None for where its polynomials end.
            They end there but for rounding, which depends on where they begin.
    """

    motion: Motion
    to: Array | None = None


class TrackPiece(NamedTuple):
    """A motion on the time axis of a run.

    Attributes:
        start: When it begins [s].
        end: When it ends, or is interrupted by the next one [s].
        motion: The motion.
        to: Where joints rest after it, if it is not interrupted, as in `Move`.
    """

    start: float
    end: float
    motion: Motion
    to: Array | None = None

    @property
    def is_whole(self) -> bool:
        """Return whether nothing interrupts it."""
        return self.end == self.start + self.motion.duration

    @property
    def last(self) -> Array:
        """Return where joints rest after it, shape (n,)."""
        if self.to is not None and self.is_whole:
            return self.to
        return self.motion.at(float(self.end - self.start)).q


@dataclass(eq=False)
class Track:
    """How some joints move during a run; between motions they rest.

    Attributes:
        name: The task, or the joint that is driven.
        joints: Places of the joints in q, shape (n,).
        rest: Their positions before the first motion [m or rad], shape (n,).
        pieces: Their motions, in order of time.
        changes: How many times they changed.
        end: When the last motion ends [s].
    """

    name: str
    joints: npt.NDArray[np.int64]
    rest: Array
    pieces: list[TrackPiece] = field(default_factory=list[TrackPiece])
    changes: int = 0
    end: float = -math.inf
    _last: tuple[float, JointValues] | None = None

    def add(self, start: float, motion: Motion, to: Array | None = None) -> None:
        """Let a motion begin, which interrupts the one before."""
        self._last = None
        self.changes += 1
        if self.pieces and self.pieces[-1].end > start:
            self.pieces[-1] = self.pieces[-1]._replace(end=start)
        self.end = start + motion.duration
        self.pieces.append(TrackPiece(start, self.end, motion, to))

    def stop(self, time: float) -> None:
        """Let joints rest at once where they are."""
        self._last = None
        self.changes += 1
        self.end = time
        self.pieces[-1] = self.pieces[-1]._replace(end=time)

    def at(self, time: float) -> JointValues:
        """Return where the joints are at an instant, from the left where pieces meet.

        time: An instant [s]. The values of the last one are kept.
        """
        last = self._last
        if last is None or last[0] != time:
            last = self._last = time, self._at(time)
        return last[1]

    def _at(self, time: float) -> JointValues:
        k = bisect_right(self.pieces, time, key=_start_of) - 1
        if k < 0:
            return self._resting(self.rest)
        piece = self.pieces[k]
        if time > piece.end:
            return self._resting(piece.last)
        # Rounding must not lead beyond its end, where a motion rests.
        since = min(float(time - piece.start), piece.motion.duration)
        found = piece.motion.at(since)
        if time == piece.end and piece.is_whole and _is_still(found.qd):
            return self._resting(found.q if piece.to is None else piece.to)
        return JointValues(found.q, found.qd, found.qdd)

    def samples(self, times: Array) -> JointValues:
        """Return the same for instants that ascend, shape (k,)."""
        if len(times) == 1:
            (time,) = times.tolist()
            last = self._last
            values = last[1] if last and last[0] == time else self._at(time)
            return JointValues(*(part[None] for part in values))
        within = self._within_one(times)
        if within is not None:
            return within
        n = len(self.joints)
        q, qd, qdd = (np.zeros((len(times), n)) for _ in range(3))
        q[:] = self.rest
        if not len(times):
            return JointValues(q, qd, qdd)
        first = bisect_right(self.pieces, times[0], key=_start_of) - 1
        for k in range(max(first - 1, 0), len(self.pieces)):
            piece, last = self.pieces[k], k + 1 == len(self.pieces)
            if piece.start > times[-1]:
                break
            behind = math.inf if last else self.pieces[k + 1].start
            a, b, c = np.searchsorted(times, [piece.start, piece.end, behind])
            if last or piece.end < behind:  # the instant at which it ends is its own
                b = max(b, int(np.searchsorted(times, piece.end, side="right")))
                b = min(b, c)
            if b > a:
                since = np.minimum(times[a:b] - piece.start, piece.motion.duration)
                found = piece.motion.at(since)
                q[a:b], qd[a:b], qdd[a:b] = found.q, found.qd, found.qdd
            if c > b:
                q[b:c] = piece.last
        return JointValues(q, qd, qdd)

    def _within_one(self, times: Array) -> JointValues | None:
        """Return the same where all instants are in one motion, else None."""
        if not len(times) or not self.pieces:
            return None
        first, last = float(times[0]), float(times[-1])
        k = bisect_right(self.pieces, first, key=_start_of) - 1
        if k < 0 or last > self.pieces[k].end:
            return None
        if k + 1 < len(self.pieces) and last >= self.pieces[k + 1].start:
            return None
        piece = self.pieces[k]
        found = piece.motion.at(np.minimum(times - piece.start, piece.motion.duration))
        return JointValues(found.q, found.qd, found.qdd)

    def motion(self, duration: float, start: State) -> Motion:
        """Return all motions and rests as one.

        Args:
            duration: How long it is [s].
            start: The state that it begins in.
        """
        times, laws, curves = [0.0], list[Array](), list[Array]()

        def add(until: float, law: Array, curve: Array) -> None:
            if until > times[-1]:
                times.append(until)
                laws.append(law)
                curves.append(curve)

        def rest(until: float) -> None:
            q = np.zeros((POWERS, len(self.joints)))
            q[0] = self.at(times[-1]).q
            add(until, np.zeros(POWERS), q)

        for piece in self.pieces:
            rest(min(piece.start, duration))
            ends = piece.start + piece.motion.times[1:]
            curves_of: Array = piece.motion.curve[piece.motion.piece]
            for k, end in enumerate(map(float, ends)):
                law, curve = piece.motion.law[k], curves_of[k]
                add(min(end, piece.end, duration), law, curve)
        rest(max(duration, times[-1] + SHORTEST if len(times) == 1 else 0.0))
        names = start.cell.joint_names
        return Motion.on(
            start,
            [names[int(k)] for k in self.joints],
            times=np.array(times),
            law=np.stack(laws),
            curve=np.stack(curves),
            piece=np.arange(len(laws)),
        )

    @cached_property
    def places(self) -> list[int]:
        """Return the places of the joints in q."""
        return self.joints.tolist()

    def moves(self, time: float) -> bool:
        """Return whether joints move at an instant or later, as is known by then."""
        return self.end > time

    def stretches(self, middle: Array, half: Array) -> Stretches:
        """Return where the joints are in intervals in which no piece of a motion ends.

        Args:
            middle: Instants in the middle of them [s], shape (s,).
            half: How far they reach from there [s], shape (s,).
        """
        shape = len(middle), len(self.joints)
        found = Stretches(self.rest[None].repeat(shape[0], 0), *np.zeros((3, *shape)))
        first = bisect_right(self.pieces, middle.min(), key=_start_of) - 1
        last = bisect_right(self.pieces, middle.max(), key=_start_of)
        for piece in self.pieces[max(first, 0) : last]:
            begun = middle >= piece.start
            moves = begun & (middle < piece.end)
            for part in found:
                part[begun] = 0.0
            if not moves.all():
                found.q[begun & ~moves] = piece.last
            if moves.any():
                motion, since = piece.motion, middle[moves] - piece.start
                polynomials = motion.times, motion.law, motion.curve, motion.piece
                own = bounded_motion(*polynomials, since, half[moves])
                for part, values in zip(found, own, strict=True):
                    part[moves] = values
        return found

    def knots(self, start: float, end: float) -> Array:
        """Return the instants in an interval at which pieces of motions meet [s]."""
        instants = [
            np.append(inner[inner < piece.end], piece.end)
            for piece in self.pieces
            if piece.end > start and piece.start < end
            for inner in [piece.start + piece.motion.times]
        ]
        knots = np.concatenate([np.zeros(0), *instants])
        return knots[(knots > start) & (knots < end)]

    @staticmethod
    def _resting(q: Array) -> JointValues:
        still = np.zeros(len(q))
        return JointValues(np.asarray(q), still, still)


def _is_still(qd: Array) -> bool:
    return all(-STILL < rate < STILL for rate in qd.tolist())


def _start_of(piece: TrackPiece) -> float:
    return piece.start


def values_at(tracks: Sequence[Track], q: Array, time: float) -> JointValues:
    """Return the values of all joints at an instant.

    Args:
        tracks: What moves joints.
        q: Positions of those that no track moves, shape (N,).
        time: The instant [s].
    """
    whole = JointValues(np.array(q), np.zeros(len(q)), np.zeros(len(q)))
    for track in tracks:
        if track.pieces:
            for part, value in zip(whole, track.at(time), strict=True):
                part[track.joints] = value
    return whole


def knots_of(
    tracks: Iterable[Track], start: float, end: float, most: float = math.inf
) -> Array:
    """Return the instants between which motions are smooth, both ends included [s].

    Args:
        tracks: The motions.
        start: The first [s].
        end: The last [s].
        most: How far two of them are apart at most [s].
    """
    inner = [track.knots(start, end) for track in tracks]
    knots = np.unique(np.concatenate([[start, end], *inner]))
    counts = np.maximum(np.ceil(np.diff(knots) / most), 1.0).astype(int)
    steps = np.repeat(np.diff(knots) / counts, counts)
    inside = np.arange(len(steps)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.append(np.repeat(knots[:-1], counts) + inside * steps, knots[-1:])


def stretches_of(
    tracks: Sequence[Track], q: Array, start: Array, end: Array
) -> Stretches:
    """Return where all joints are in intervals, and how fast.

    Args:
        tracks: What moves joints.
        q: Positions of those that no track moves, shape (N,).
        start: When each interval begins [s], ascending, shape (s,).
        end: When it ends, not after the next one begins.
    """
    inner = np.concatenate(
        [np.zeros(0), *(track.knots(start[0], end[-1]) for track in tracks)]
    )
    of = np.searchsorted(start, inner, side="right") - 1
    inner = np.unique(inner[(inner > start[of]) & (inner < end[of])])
    if not len(inner):
        return _smooth_stretches(tracks, q, start, end)
    begins = np.sort(np.concatenate([start, inner]))
    ends = np.sort(np.concatenate([end, inner]))
    parts = _smooth_stretches(tracks, q, begins, ends)
    return parts.joined(np.searchsorted(begins, start))


def _smooth_stretches(
    tracks: Iterable[Track], q: Array, start: Array, end: Array
) -> Stretches:
    """Return the same of intervals in which no piece of a motion ends."""
    middle = 0.5 * (start + end)
    half = np.maximum(end - middle, middle - start)
    shape = len(middle), len(q)
    whole = Stretches(q[None].repeat(shape[0], 0), *np.zeros((3, *shape)))
    for track in tracks:
        if track.pieces:
            found = track.stretches(middle, half)
            for part, values in zip(whole, found, strict=True):
                part[:, track.joints] = values
    return whole
