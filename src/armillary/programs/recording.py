"""What moved during a run, and what was attached to what."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CheckOptions, CollisionCheck, check_of
from armillary.kernel.arguments import numbers_of
from armillary.kinematics.closing.enclosing import Stretches
from armillary.kinematics.state import State
from armillary.model.workcell import Workcell
from armillary.programs.tracks import (
    JointValues,
    Track,
    knots_of,
    stretches_of,
    values_at,
)

__all__ = ["Event", "Recording"]

Array = npt.NDArray[np.float64]


class Event(NamedTuple):
    """Attachments or bases that change.

    Attributes:
        time: When [s].
        state: The state from then on, with q and qd of that instant.
        absent: The parts that are not there from then on.
    """

    time: float
    state: State
    absent: frozenset[str]


@final
@dataclass(frozen=True, eq=False)
class Recording:
    """What moved during a run, and what was attached to what.

    Attributes:
        duration: How long it is [s].
        events: Changes of attachments and bases, the start among them.
        tracks: The motions of joints.
        velocity: Least and greatest rates of the joints, shape (2, N), as the run had
            them.
        options: What collision checks are made with.
        obstacles: What stands around the cell in these.
    """

    duration: float
    events: tuple[Event, ...]
    tracks: tuple[Track, ...]
    velocity: Array
    options: CheckOptions
    obstacles: Any = None

    @property
    def cell(self) -> Workcell:
        """Return what moved."""
        return self.events[0].state.cell

    def state(self, time: float) -> State:
        """Return the state of the cell at an instant: joints, rates, attachments.

        time: The instant [s]; before 0 and after the end it is that of the end nearest.
        """
        instant = min(max(float(time), 0.0), self.duration)
        values = values_at(self.tracks, self._first, instant)
        event = self._event(instant)
        return event.state.replace(q=values.q, qd=values.qd, time=instant)

    def absent(self, time: float) -> frozenset[str]:
        """Return the parts that are not in the cell at an instant [s]."""
        return self._event(min(max(float(time), 0.0), self.duration)).absent

    def at(self, time: npt.ArrayLike) -> JointValues:
        """Return positions, rates and accelerations of all joints.

        Args:
            time: Instants within the run [s], shape (...).

        Returns:
            Arrays of shape (..., n), joints in the order of `cell.joint_names`.

        Raises:
            ShapeError: They are not numbers.
        """
        given = numbers_of("time", time)
        flat, back = np.unique(
            np.clip(given.ravel(), 0.0, self.duration), return_inverse=True
        )
        whole = JointValues(
            *(np.zeros((len(flat), len(self._first))) for _ in range(3))
        )
        whole.q[:] = self._first
        for track in self.tracks:
            found = track.samples(flat)
            for part, values in zip(whole, found, strict=True):
                part[:, track.joints] = values
        back = back.reshape(-1)
        shape = (*given.shape, len(self._first))
        return JointValues(*(part[back].reshape(shape) for part in whole))

    def check(self, time: float) -> CollisionCheck:
        """Return the collision check of the state at an instant [s]."""
        state = self._event(min(max(float(time), 0.0), self.duration)).state
        return check_of(self.cell, state, self.options, self.obstacles)

    def attached_spans(self) -> Iterator[tuple[float, float]]:
        """Yield the intervals of time in which attachments stay as they are [s]."""
        times = sorted({event.time for event in self.events})
        yield from pairwise([*times, max(self.duration, times[-1])])

    def knots(self, start: float, end: float, *, most: float) -> Array:
        """Return the instants between which the motion is smooth, both ends included.

        Args:
            start: The first [s].
            end: The last [s].
            most: How far two of them are apart at most [s].
        """
        return knots_of(self.tracks, start, end, most)

    def stretches(self, start: Array, end: Array) -> Stretches:
        """Return where joints are between instants among which knots are, and how fast.

        Args:
            start: When each interval begins [s], shape (s,).
            end: When it ends.
        """
        return stretches_of(self.tracks, self._first, start, end)

    @property
    def _first(self) -> Array:
        return self.events[0].state.q

    def _event(self, time: float) -> Event:
        k = bisect_right(self.events, time, key=lambda event: event.time) - 1
        return self.events[max(k, 0)]
