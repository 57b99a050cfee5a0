"""Timelines: what happens in a cell while a program runs."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CheckOptions, CollisionCheck, check_of
from armillary.errors import unknown
from armillary.kernel.arguments import numbers_of, positive_number
from armillary.kinematics.state import State
from armillary.model.workcell import Workcell
from armillary.programs.ending import Failure, RunReason
from armillary.programs.program import Program
from armillary.programs.steps import Value
from armillary.programs.tracks import JointValues, Track, values_at
from armillary.trajectories.motion_parts import Samples, sample_times

if TYPE_CHECKING:
    from armillary.programs.clearance import Clearance
    from armillary.programs.loads import Loads

__all__ = ["Event", "SignalChange", "Span", "Timeline"]

Array = npt.NDArray[np.float64]


class Span(NamedTuple):
    """A step of a program in time.

    Attributes:
        task: The task.
        place: Where the step is in the program, as in `robot[2][0]`.
        name: Its label, or its kind.
        start: When it begins [s].
        end: When it ends [s].
        waited_for: What it waited for, such as `signal 'ready'`; empty if for nothing.
        cause: The number of the span that let it go on, among `Timeline.spans`; None
            where the step itself took the time.
    """

    task: str
    place: str
    name: str
    start: float
    end: float
    waited_for: str = ""
    cause: int | None = None


class SignalChange(NamedTuple):
    """A signal that changes.

    Attributes:
        signal: Its name.
        time: When [s].
        value: What it holds from then on.
    """

    signal: str
    time: float
    value: Value


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
@dataclass(frozen=True, eq=False, repr=False)
class Timeline:
    """What happens in a cell while a program runs, at each instant.

    Attributes:
        program: The program.
        duration: When the last task ended, or the run failed [s].
        spans: All steps that were done, in order of their starts.
        signals: Changes of signals and sensors, in order of time; those at time 0 are
            what they hold at first.
        events: Changes of attachments and bases, the start among them.
        failure: What could not be done; None where the program was done to its end.
        tracks: The motions of joints.
        options: What collision checks are made with.
        obstacles: What stands around the cell in these.
    """

    program: Program
    duration: float
    spans: tuple[Span, ...]
    signals: tuple[SignalChange, ...]
    events: tuple[Event, ...]
    failure: Failure | None
    tracks: tuple[Track, ...]
    options: CheckOptions
    obstacles: Any = None

    @property
    def success(self) -> bool:
        """Return whether the program was done to its end."""
        return self.failure is None

    @property
    def reason(self) -> RunReason:
        """Return why the run ended."""
        return RunReason.DONE if self.failure is None else self.failure.reason

    def __bool__(self) -> bool:
        """Return whether the program was done to its end."""
        return self.success

    @property
    def cell(self) -> Workcell:
        """Return what was run."""
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

    def sampled(self, rate: float) -> Samples:
        """Return the motion of all joints at a constant rate, and at the end.

        Args:
            rate: Samples a second.

        Raises:
            ModelError: The rate is not above 0.
        """
        t = sample_times(self.duration, positive_number("The rate", rate))
        found = self.at(t)
        return Samples(t, *found, np.full_like(found.q, np.nan))

    def signal(self, name: str, time: float) -> Value:
        """Return what a signal holds at an instant.

        Raises:
            UnknownName: There is no such signal.
        """
        changes = [change for change in self.signals if change.signal == name]
        if not changes:
            known = sorted({change.signal for change in self.signals})
            raise unknown("signal", name, known, owner="this program")
        k = bisect_right(changes, float(time), key=lambda change: change.time)
        return changes[max(k - 1, 0)].value

    def span(self, name: str) -> Span:
        """Return the first span of a step, by its label or its place.

        Raises:
            UnknownName: There is none.
        """
        for span in self.spans:
            if name in {span.name, span.place}:
                return span
        known = sorted({span.name for span in self.spans})
        raise unknown("step", name, known, owner="this timeline")

    @cached_property
    def critical_path(self) -> tuple[Span, ...]:
        """Return the spans that decide the duration, from the first to the last one.

        Each begins when the one before it ends, in the same task or in the one that it
        waited for: if any took less time, the whole would.
        """
        if not self.spans:
            return ()
        by_task: dict[str, list[int]] = {}
        for k, span in enumerate(self.spans):
            by_task.setdefault(span.task, []).append(k)
        k = max(range(len(self.spans)), key=lambda k: (self.spans[k].end, -k))
        path: list[int] = []
        while True:
            span = self.spans[k]
            if span.cause is None or span.cause in path:
                path.append(k)
                before = by_task[span.task].index(k) - 1
                if before < 0:
                    break
                k = by_task[span.task][before]
            else:
                k = span.cause
        return tuple(self.spans[k] for k in reversed(path))

    @cached_property
    def use(self) -> dict[str, float]:
        """Return the part of the duration during which joints of each task move."""
        total = self.duration or 1.0
        return {
            track.name: sum(
                max(min(piece.end, self.duration) - piece.start, 0.0)
                for piece in track.pieces
            )
            / total
            for track in self.tracks
            if len(track.joints)
        }

    def clearance(self, *, tolerance: float = 1e-5) -> Clearance:
        """Return how near links come, proven between all instants.

        Parts that are absent do not count.

        Args:
            tolerance: By how much less than the distance that is found any other may
                be [m].

        Raises:
            ModelError: As for `cell.collision`.
        """
        from armillary.programs.clearance import clearance

        return clearance(self, tolerance=tolerance)

    def loads(self) -> Loads:
        """Return torques, powers and energy of the joints, beside their limits.

        They are those of `cell.inverse_dynamics` with what is attached at each instant.
        Torques are sampled at both ends of at least 500 intervals a second, and refined
        around the greatest; energies are sums over these by the trapezoidal rule.
        """
        from armillary.programs.loads import loads

        return loads(self)

    def knots(self, start: float, end: float, *, most: float) -> Array:
        """Return the instants between which the motion is smooth, both ends included.

        Args:
            start: The first [s].
            end: The last [s].
            most: How far two of them are apart at most [s].
        """
        instants = [np.array([start, end])]
        for track in self.tracks:
            for piece in track.pieces:
                if piece.end > start and piece.start < end:
                    inner = piece.start + piece.motion.times
                    instants += [inner[inner < piece.end], np.array([piece.end])]
        knots = np.unique(np.concatenate(instants))
        knots = knots[(knots >= start) & (knots <= end)]
        counts = np.maximum(np.ceil(np.diff(knots) / most), 1.0).astype(int)
        parts = [
            np.linspace(a, b, count, endpoint=False)
            for a, b, count in zip(knots[:-1], knots[1:], counts, strict=True)
        ]
        return np.concatenate([*parts, knots[-1:]])

    def check(self, time: float) -> CollisionCheck:
        """Return the collision check of the state at an instant [s]."""
        state = self._event(min(max(float(time), 0.0), self.duration)).state
        return check_of(self.cell, state, self.options, self.obstacles)

    @property
    def _first(self) -> Array:
        return self.events[0].state.q

    def _event(self, time: float) -> Event:
        k = bisect_right(self.events, time, key=lambda event: event.time) - 1
        return self.events[max(k, 0)]

    def __repr__(self) -> str:
        end = "" if self.failure is None else f"; {self.failure}"
        return f"<Timeline: {self.duration:.6g} s, {len(self.spans)} steps{end}>"
