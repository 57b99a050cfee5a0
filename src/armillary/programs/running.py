"""What a run knows: where everything is, its tasks, signals, sensors and spans."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Never

from armillary.collision.check import CheckOptions, CollisionCheck
from armillary.programs.ending import RunFailure, RunReason
from armillary.programs.moves import Moves
from armillary.programs.program import Program
from armillary.programs.recording import Event, Recording
from armillary.programs.sensors import SensorWatch
from armillary.programs.signals import Signals
from armillary.programs.spans import Span
from armillary.programs.steps import AnyStep, Set, Value
from armillary.programs.task_joints import tasks_of
from armillary.programs.tasks import Lock, Task
from armillary.programs.tracks import Track
from armillary.programs.world import RunLimits, World
from armillary.trajectories.motion import Motion

__all__ = ["Failed", "Running"]


class Failed(Exception):
    """A run that ends early."""

    def __init__(self, failure: RunFailure) -> None:
        """Note why."""
        super().__init__(str(failure))
        self.failure = failure


@dataclass(eq=False)
class Running:
    """A program while it runs.

    Attributes:
        program: What its tasks do.
        world: Where everything is.
        limits: Of joints.
        check: What must not touch where motions are planned; None for the cell's own.
        options: What that check is made with.
        tasks: Those that run, branches of `Parallel` among them.
        moves: Makes their motions.
        signals: Values of signals.
        watches: When sensors change.
        locks: The zones that were entered, by name.
        spans: What was done from when to when.
        events: Attachments and bases that changed.
        changed: What moves, and parts that are carried, otherwise from this instant on.
    """

    program: Program
    world: World
    limits: RunLimits
    check: CollisionCheck | None
    options: CheckOptions
    tasks: list[Task]
    moves: Moves
    signals: Signals
    watches: list[SensorWatch]
    events: list[Event]
    locks: dict[str, Lock] = field(default_factory=dict[str, Lock])
    spans: list[Span] = field(default_factory=list[Span])
    changed: list[Track | str] = field(default_factory=list["Track | str"])

    @classmethod
    def begun(
        cls,
        program: Program,
        world: World,
        limits: RunLimits,
        check: CollisionCheck | None,
        options: CheckOptions,
    ) -> Running:
        """Return a program before its first step.

        Args:
            program: What its tasks do.
            world: Where everything is.
            limits: Of joints.
            check: What must not touch where motions are planned.
            options: What that check is made with.

        Raises:
            ModelError: A joint is moved by two tasks.
            UnknownName: A joint does not exist.
        """
        tasks = tasks_of(program, world)
        values: dict[str, Value] = {
            step.signal: False for _, step in program.walk() if isinstance(step, Set)
        }
        values |= program.signals
        watches = [
            SensorWatch(name, sensor, world, options.meshes)
            for name, sensor in program.sensors.items()
        ]
        values |= {w.name: w.distance(0.0) <= 0.0 for w in watches}
        return cls(
            program,
            world,
            limits,
            check,
            options,
            tasks,
            Moves(world, limits, check, options),
            Signals(values, program.scan),
            watches,
            [Event(0.0, world.state, frozenset(world.absent))],
        )

    def recording(self) -> Recording:
        """Return what has moved until now."""
        world, check = self.world, self.check
        obstacles = None if check is None else check.obstacles
        tracks = tuple(world.tracks.values())
        return Recording(
            world.time,
            tuple(self.events),
            tracks,
            self.limits.velocity,
            self.options,
            obstacles,
        )

    def fail(self, task: Task, reason: RunReason, why: str) -> Never:
        """End the run at a step.

        Raises:
            Failed: Always.
        """
        text = why if why.endswith(".") else f"{why}."
        failure = RunFailure(reason, task.name, task.place, self.world.time, text)
        raise Failed(failure)

    # spans and motions

    def begin(self, task: Task, step: AnyStep, place: str) -> int:
        """Begin the span of a step, and return its number."""
        name, now = step.label or type(step).__name__, self.world.time
        self.spans.append(Span(task.row, place, name, step, now, math.inf))
        return len(self.spans) - 1

    def end(self, number: int, waited_for: str = "", cause: int | None = None) -> None:
        """End a span, and note what it has waited for and which span let it go on."""
        self.spans[number] = self.spans[number]._replace(
            end=self.world.time, waited_for=waited_for, cause=cause
        )

    def last(self, row: str) -> int | None:
        """Return the last span of a task or a branch, None before its first."""
        numbers = range(len(self.spans) - 1, -1, -1)
        return next((k for k in numbers if self.spans[k].task == row), None)

    def begin_motion(self, track: Track, motion: Motion, to: Any = None) -> None:
        """Let a motion begin now, and those who follow what it moves follow it."""
        track.add(self.world.time, motion, to)
        self.changed.append(track)

    # signals

    def is_seen(self, signal: str, value: Value) -> bool:
        """Return whether a signal has a value now."""
        return self.signals.are_seen(signal, value, time=self.world.time)

    def set(self, signal: str, value: Value, span: int | None) -> None:
        """Set a signal."""
        self.signals.set(signal, value, time=self.world.time, span=span)

    def set_sensors(self, *, but: SensorWatch | None = None, part: str = "") -> None:
        """Let sensors say what they see after parts changed their places.

        Args:
            but: The sensor whose change was this instant.
            part: The part that changed its place, with those that it carries; by
                default all.
        """
        for watch in self.watches:
            if watch is but:
                continue
            is_on = bool(self.signals.values[watch.name])
            # A sensor that is on goes on seeing whatever else it sees.
            distance = watch.distance(self.world.time, "" if is_on else part)
            if is_on and distance > 2e-9:
                self.set(watch.name, False, None)
            elif not is_on and distance < 0.0:
                self.set(watch.name, True, None)
