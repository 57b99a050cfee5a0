"""Runs of programs: all tasks of a cell on one time axis.

Each task is a generator that yields what it waits for: a time, a signal, a zone. The
run goes from one instant to the next at which something happens, so that there is no
tick: the end of a motion or of a wait, or a part that comes to a sensor. At one instant
tasks go on in the order in which the program has them, as long as one of them can.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, cast

import numpy as np

from armillary.collision.check import CheckOptions, CollisionCheck
from armillary.errors import ArmillaryError, ModelError, quote
from armillary.ik.avoidance import check_of_same
from armillary.kernel.arguments import positive_number
from armillary.kinematics.state import State, bound_state, home
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell
from armillary.programs.drives import driven
from armillary.programs.ending import Impossible, RunFailure, RunReason
from armillary.programs.moves import HOLD, Following, Moves
from armillary.programs.parts import PartStep, part_moved
from armillary.programs.program import ALONE, Program
from armillary.programs.recording import Event, Recording
from armillary.programs.sensors import SensorWatch
from armillary.programs.spans import SignalChange, Span
from armillary.programs.steps import (
    PTP,
    AnyStep,
    Appear,
    Call,
    Drive,
    Grip,
    Leave,
    Linear,
    Planned,
    Release,
    Repeat,
    Set,
    Value,
    Wait,
    WaitFor,
    Zone,
)
from armillary.programs.tasks import Free, Lock, Signal, Task, Until, Waits
from armillary.programs.timeline import Timeline
from armillary.programs.tracks import Track
from armillary.programs.world import RunLimits, World

__all__ = ["run"]

MOST_STEPS: Final = 1_000_000
"""Steps of a run; a program that repeats more is refused."""


def run(
    cell: Workcell,
    program: Program,
    state: State | None = None,
    *,
    check: CollisionCheck | None = None,
    velocity: Any = None,
    acceleration: Any = None,
    timeout: float = 3600.0,
    meshes: MeshSource | None = None,
) -> Timeline:
    """Return what happens in a cell while a program runs.

    The same program, cell and state give the same timeline, to the last bit. Nothing is
    tested for contacts but motions that are planned; `timeline.clearance()` says how
    near links come.

    Args:
        cell: The cell.
        program: What its tasks do.
        state: Where it starts; by default at home. Rates do not count.
        check: What must not touch where motions are planned, and in the timeline: its
            rules, margin and obstacles count. By default that of the cell.
        velocity: Greatest rates [m/s or rad/s] of joints that have no limit in the
            model, one number; or by the names of joints, in place of the model's.
        acceleration: Greatest accelerations [m/s^2 or rad/s^2], likewise.
        timeout: After which time of the cell a run fails [s].
        meshes: What reads meshes, by default what `arm.load` has left with the cell.

    Returns:
        The timeline. What cannot be done ends it, with `timeline.failure`: which step,
        when and why.

    Raises:
        ModelError: Two tasks move the same joint, a joint that moves has no limit of
            its acceleration, a target does not fit the joints of its task, or the check
            is of another cell.
        UnknownName: A joint, frame, part or posture does not exist.
        StateError: The state is of another cell, or a part cannot be moved.
    """
    given: Any = program
    if not isinstance(given, Program):
        raise ModelError(
            f"A cell runs an arm.Program, such as Program([PTP(to=q)]), not "
            f"{quote(program)}."
        )
    start = home(cell) if state is None else bound_state(cell, state)
    if check is not None:
        check_of_same(check, cell, check.state)
    options = CheckOptions(meshes=meshes) if check is None else check.options
    made = _Run(
        cell,
        program,
        World(start, program.absent, program.tasks),
        RunLimits(cell, velocity, acceleration),
        check,
        options,
        positive_number("timeout", timeout),
    )
    return made.timeline()


class _Run:
    def __init__(
        self,
        cell: Workcell,
        program: Program,
        world: World,
        limits: RunLimits,
        check: CollisionCheck | None,
        options: CheckOptions,
        timeout: float,
    ) -> None:
        self.cell, self.program, self.world, self.limits = cell, program, world, limits
        self.options, self.timeout, self.check = options, timeout, check
        self.moves = Moves(world, limits, check, options)
        self.spans: list[Span] = []
        self.changes: list[SignalChange] = []
        self.events = [Event(0.0, world.state, frozenset(world.absent))]
        self.setters: dict[str, int | None] = {}
        self.locks: dict[str, Lock] = {}
        self.count = 0
        _check_names(cell, program)
        self.tasks = self._tasks()
        self.values: dict[str, Value] = {
            step.signal: False for _, step in program.walk() if isinstance(step, Set)
        }
        self.values |= program.signals
        self.watches = [
            SensorWatch(name, sensor, world, options.meshes)
            for name, sensor in program.sensors.items()
        ]
        self.values |= {w.name: w.distance(0.0) <= 0.0 for w in self.watches}
        for name, value in self.values.items():
            self.changes.append(SignalChange(name, 0.0, value))

    def _tasks(self) -> list[Task]:
        """Return the tasks, each with the joints that it moves."""
        driven = {
            self.cell.joint(step.joint)
            for _, step in self.program.walk()
            if isinstance(step, Drive)
        }
        q = self.world.state.q
        owners: dict[int, str] = {}
        tasks: list[Task] = []
        for name, steps in self.program.tasks.items():
            joints = np.array(self._joints(name, driven), np.int64)
            for k in cast("list[int]", joints.tolist()):
                if k in owners:
                    raise ModelError(
                        f"The tasks {quote(owners[k])} and {quote(name)} both move "
                        f"{quote(self.cell.joint_names[k])}; say which moves what, "
                        "Program(tasks, joints={...})."
                    )
                if k in driven:
                    raise ModelError(
                        f"{quote(self.cell.joint_names[k])} is driven, and joints of "
                        f"the task {quote(name)}: a joint is moved by one of both."
                    )
                owners[k] = name
            track = Track(name, joints, q[joints])
            self.world.tracks[name] = track
            task = Task(name, track, iter(()))
            task.going = self._steps(task, steps, name)
            tasks.append(task)
        for k in sorted(driven):
            name = _driven_name(self.cell, k)
            self.world.tracks[name] = Track(name, np.array([k]), q[[k]])
        return tasks

    def _joints(self, name: str, driven: set[int]) -> list[int]:
        """Return the joints that a task moves."""
        given = self.program.joints.get(name)
        if given is not None:
            return [self.cell.joint(joint) for joint in given]
        names = self.cell.joint_names
        if name == ALONE and len(self.program.tasks) == 1:
            return [k for k in range(len(names)) if k not in driven]
        if name not in self.cell.index:
            return []
        _, joints = self.world.chain(f"{name}/{self._base(name)}")
        number, links = self.cell.number(name), self.cell.joints.links
        own = (k for k in joints if self.cell.owners[links[k]] == number)
        return sorted(k for k in own if k not in driven)

    def _base(self, name: str) -> str:
        manipulator = self.cell.manipulators[self.cell.number(name)]
        return manipulator.links[manipulator.base].name

    # the loop

    def timeline(self) -> Timeline:
        """Run the program to its end."""
        failure: RunFailure | None = None
        world = self.world
        try:
            self._go_on()
            while not all(task.has_ended for task in self.tasks):
                self._advance()
                self._go_on()
        except _Failed as failed:
            failure = failed.failure
        end = world.time
        self.spans = [span._replace(end=min(span.end, end)) for span in self.spans]
        obstacles = None if self.check is None else self.check.obstacles
        tracks = tuple(world.tracks.values())
        recording = Recording(end, tuple(self.events), tracks, self.options, obstacles)
        spans, changes = tuple(self.spans), tuple(self.changes)
        return Timeline(self.program, recording, spans, changes, failure)

    def _go_on(self) -> None:
        """Let all tasks go on that can, until none can at this instant."""
        busy = True
        while busy:
            busy = False
            for task in self.tasks:
                while not task.has_ended and self._is_ready(task):
                    busy = True
                    self._step(task)

    def _step(self, task: Task) -> None:
        try:
            task.waits = next(task.going)
        except StopIteration:
            task.waits, task.has_ended = None, True
        except Impossible as error:
            self._fail(task, error.reason, str(error))
        except ArmillaryError as error:
            raise type(error)(f"{task.place}: {error}") from error

    def _is_ready(self, task: Task) -> bool:
        waits = task.waits
        if waits is None:
            return True
        if isinstance(waits, Until):
            return waits.time <= self.world.time
        if isinstance(waits, Signal):
            return self._holds(waits.name, waits.value)
        return self.locks[waits.zone].owner == task.name

    def _advance(self) -> None:
        """Go to the next instant at which something happens."""
        world, now = self.world, self.world.time
        times = [math.inf]
        for task in self.tasks:
            if isinstance(task.waits, Until):
                times.append(task.waits.time)
            elif isinstance(task.waits, Signal):
                times.append(task.waits.deadline)
            if self._follows(task):
                times.append(task.track.end)
        coming = min(times)
        limit = min(coming, self.timeout)
        changing: SensorWatch | None = None
        for watch in self.watches:
            change = watch.next_change(bool(self.values[watch.name]), limit)
            if change < limit or (change == limit and change < coming):
                changing, limit = watch, change
        if changing is not None:
            world.time = max(limit, now)
            self._set(changing.name, not self.values[changing.name], None)
            self._set_sensors(but=changing)
            return
        if coming > self.timeout:
            self._stuck(coming)
        world.time = coming
        for task in self.tasks:
            waits = task.waits
            is_late = isinstance(waits, Signal) and waits.deadline <= coming
            if isinstance(waits, Signal) and is_late and not self._is_ready(task):
                why = f"the signal {quote(waits.name)} is not {waits.value!r} in time"
                self._fail(task, RunReason.TIMEOUT, why)
            if self._follows(task) and task.track.end <= coming:
                self._follow_on(task)

    def _stuck(self, coming: float) -> None:
        """End a run in which nothing more can happen, or not in time."""
        waiting = [task for task in self.tasks if task.waits is not None]
        if math.isfinite(coming):
            self.world.time = self.timeout
            late = next(t for t in waiting if isinstance(t.waits, Until))
            self._fail(late, RunReason.TIMEOUT, f"after {self.timeout:g} s")
        moves = any(
            track.moves(self.world.time) for track in self.world.tracks.values()
        )
        if moves and self.watches:
            self.world.time = self.timeout
        circle = self._circle(waiting)
        if circle:
            text = ", ".join(
                f"{quote(task.name)} waits for the zone {quote(zone)} of "
                f"{quote(self.locks[zone].owner)}"
                for task, zone in circle
            )
            self._fail(circle[0][0], RunReason.DEADLOCK, text)
        task = next((t for t in waiting if isinstance(t.waits, Signal)), waiting[0])
        waits = task.waits
        if isinstance(waits, Signal):
            others = [each for each in waiting if each is not task]
            setters = [
                quote(each.name) for each in others if self._may_set(each, waits.name)
            ]
            if setters:
                text = f"{', '.join(setters)} would set it, and waits, too"
                self._fail(
                    task,
                    RunReason.DEADLOCK,
                    f"{quote(task.name)} waits for the signal {quote(waits.name)}; "
                    f"{text}",
                )
            self._fail(
                task,
                RunReason.NEVER,
                f"nothing makes the signal {quote(waits.name)} {waits.value!r}",
            )
        zone = waits.zone if isinstance(waits, Free) else ""
        self._fail(
            task,
            RunReason.NEVER,
            f"the zone {quote(zone)} is never left by {quote(self.locks[zone].owner)}",
        )

    def _circle(self, waiting: list[Task]) -> list[tuple[Task, str]]:
        """Return tasks of which each waits for a zone of the next one."""
        wanted = {
            task.name: (task, task.waits.zone)
            for task in waiting
            if isinstance(task.waits, Free)
        }
        for first in wanted:
            name, chain = first, list[tuple[Task, str]]()
            while name in wanted and len(chain) <= len(wanted):
                task, zone = wanted[name]
                chain.append((task, zone))
                name = self.locks[zone].owner
                if name == first:
                    return chain
        return []

    def _may_set(self, task: Task, signal: str) -> bool:
        """Return whether steps of a task set a signal."""
        return any(
            isinstance(step, Set) and step.signal == signal
            for place, step in self.program.walk()
            if place.startswith((f"{task.name}[", "routine "))
        )

    def _fail(self, task: Task, reason: RunReason, why: str) -> None:
        text = why if why.endswith(".") else f"{why}."
        failure = RunFailure(reason, task.name, task.place, self.world.time, text)
        raise _Failed(failure)

    # steps

    def _steps(
        self, task: Task, steps: tuple[AnyStep, ...], above: str
    ) -> Iterator[Waits]:
        for k, step in enumerate(steps):
            place = f"{above}[{k}]"
            task.place = place
            self.count += 1
            if self.count > MOST_STEPS:
                raise Impossible(
                    RunReason.TIMEOUT, f"more than {MOST_STEPS} steps: repeat less"
                )
            if isinstance(step, Zone):
                yield from self._in_zone(task, step, place)
            elif isinstance(step, Repeat):
                for _ in range(step.count):
                    yield from self._steps(task, step.steps, place)
            elif isinstance(step, Call):
                name = f"{place} > routine {step.routine}"
                yield from self._steps(task, self.program.routines[step.routine], name)
            else:
                yield from self._simple(task, step, place)

    def _simple(self, task: Task, step: AnyStep, place: str) -> Iterator[Waits]:
        """Do a step without others in it."""
        number = self._begin(task, step, place)
        if isinstance(step, PTP | Planned | Linear):
            yield from self._move(task, step)
        elif isinstance(step, Wait):
            yield Until(self.world.time + step.seconds)
        elif isinstance(step, WaitFor):
            if not self._holds(step.signal, step.value):
                wait = math.inf if step.timeout is None else step.timeout
                yield Signal(step.signal, step.value, self.world.time + wait)
                self._end(number, f"signal {quote(step.signal)}", self._setter(step))
                return
        elif isinstance(step, Set):
            self._set(step.signal, step.value, number)
        elif isinstance(step, Drive):
            self._drive(step)
        elif isinstance(step, Grip | Release | Appear | Leave):
            self._part(step)
        self._end(number)

    def _begin(self, task: Task, step: AnyStep, place: str) -> int:
        name, now = step.label or type(step).__name__, self.world.time
        self.spans.append(Span(task.name, place, name, step, now, math.inf))
        return len(self.spans) - 1

    def _end(self, number: int, waited_for: str = "", cause: int | None = None) -> None:
        self.spans[number] = self.spans[number]._replace(
            end=self.world.time, waited_for=waited_for, cause=cause
        )

    def _in_zone(self, task: Task, step: Zone, place: str) -> Iterator[Waits]:
        lock = self.locks.setdefault(step.zone, Lock())
        if lock.owner == task.name:
            yield from self._steps(task, step.steps, place)
            return
        number = self._begin(task, step, place)
        if lock.owner:
            lock.queue.append(task.name)
            yield Free(step.zone)
            self._end(number, f"zone {quote(step.zone)}", lock.left)
        else:
            lock.owner = task.name
            self._end(number)
        yield from self._steps(task, step.steps, place)
        count = len(self.spans)
        lock.left = next(
            k for k in reversed(range(count)) if self.spans[k].task == task.name
        )
        lock.owner = lock.queue.popleft() if lock.queue else ""

    def _move(self, task: Task, step: PTP | Planned | Linear) -> Iterator[Waits]:
        if not len(task.track.joints):
            raise Impossible(
                RunReason.LIMITS,
                f"the task {quote(task.name)} moves no joint: give it the name of a "
                "manipulator, or Program(tasks, joints={...})",
            )
        if isinstance(step, Linear):
            motions, following = self.moves.linear(step, task.track, task.following)
        elif isinstance(step, PTP):
            motions, following = self.moves.ptp(step, task.track)
        else:
            motions, following = self.moves.planned(step, task.track)
        task.following = following
        for motion in motions:
            task.track.add(self.world.time, motion)
            # What it follows may change its motion, and the end with it.
            while task.track.end > self.world.time:
                yield Until(task.track.end)
        if following is not None:
            following.meeting = None

    def _follows(self, task: Task) -> bool:
        """Return whether a task waits while its robot follows a frame that moves."""
        following = task.following
        return (
            following is not None
            and not task.has_ended
            and self.world.moves(following.frame, task.track)
        )

    def _follow_on(self, task: Task) -> None:
        """Go on following a frame while a task waits."""
        following, now = task.following, self.world.time
        if following is None or following.meeting is not None:
            return
        if isinstance(task.waits, Until) and task.waits.time <= now:
            return  # it goes on by itself
        self._follow(task, following, now + HOLD)

    def _follow(self, task: Task, following: Following, end: float) -> None:
        world, way = self.world, following.way
        if way is None or not world.moves(following.frame, task.track):
            return
        try:
            motion, excess = way.motion(task.track.at(world.time), world.time, end)
        except Impossible as error:
            self._fail(task, error.reason, str(error))
            return
        if excess > 1.01:
            self._fail(
                task,
                RunReason.OUTRUN,
                f"{quote(following.frame)} moves faster than the robot can follow",
            )
        task.track.add(world.time, motion)

    def _changed(self, track: Track) -> None:
        """Let robots that follow a frame follow its new motion."""
        moved = set(track.joints.tolist())
        for task in self.tasks:
            following = task.following
            if following is None or task.track is track or task.has_ended:
                continue
            if moved.isdisjoint(self.world.chain(following.frame)[1]):
                continue
            now = self.world.time
            if following.meeting is not None:
                try:
                    task.track.add(now, following.meeting())
                except Impossible as error:
                    self._fail(task, error.reason, str(error))
            elif following.way is not None:
                end = max(following.way.begin + following.way.duration, now + HOLD)
                if isinstance(task.waits, Until) and task.waits.time > now:
                    end = task.waits.time
                self._follow(task, following, end)
            if isinstance(task.waits, Until) and task.track.end > now:
                task.waits = Until(task.track.end)

    def _drive(self, step: Drive) -> None:
        """Change the speed of a joint that moves by itself."""
        k, now = self.cell.joint(step.joint), self.world.time
        track = self.world.tracks[_driven_name(self.cell, k)]
        motion = driven(step, k, track.at(now), self.limits, self.timeout - now + 1.0)
        if motion is not None:
            track.add(now, motion)
        elif track.moves(now):
            track.stop(now)
        self._changed(track)

    def _part(self, step: PartStep) -> None:
        """Grip, release, bring or remove a part."""
        world = self.world
        followed = self._followed_by_own(step) if isinstance(step, Grip) else []
        world.change(part_moved(world, step, self.options.meshes))
        for following, frame in followed:
            following.go_on_with(frame, world)
        self.events.append(Event(world.time, world.state, frozenset(world.absent)))
        self._set_sensors()

    def _followed_by_own(self, step: Grip) -> list[tuple[Following, str]]:
        """Return robots that grip what they follow, and what carried it until then."""
        world, part = self.world, step.part
        by = world.chain(step.by)[1]
        carrier = world.state.tree.bases[self.cell.number(part)].on
        return [
            (task.following, carrier)
            for task in self.tasks
            if task.following is not None
            and not by.isdisjoint(task.track.joints.tolist())
            and part in world.chain(task.following.frame)[0]
        ]

    # signals

    def _holds(self, signal: str, value: Value) -> bool:
        held = self.values[signal]
        return held == value and isinstance(held, bool) == isinstance(value, bool)

    def _setter(self, step: WaitFor) -> int | None:
        return self.setters.get(step.signal)

    def _set(self, signal: str, value: Value, span: int | None) -> None:
        if not self._holds(signal, value):
            self.values[signal] = value
            self.setters[signal] = span
            self.changes.append(SignalChange(signal, self.world.time, value))

    def _set_sensors(self, but: SensorWatch | None = None) -> None:
        """Let sensors say what they see after parts changed their places."""
        for watch in self.watches:
            if watch is but:
                continue
            distance = watch.distance(self.world.time)
            is_on = bool(self.values[watch.name])
            if is_on and distance > 2e-9:
                self._set(watch.name, False, None)
            elif not is_on and distance < 0.0:
                self._set(watch.name, True, None)


def _driven_name(cell: Workcell, joint: int) -> str:
    """Return the name of the track of a joint that is driven."""
    return f"joint {cell.joint_names[joint]}"


class _Failed(Exception):
    """A run that ends early."""

    def __init__(self, failure: RunFailure) -> None:
        super().__init__(str(failure))
        self.failure = failure


def _check_names(cell: Workcell, program: Program) -> None:
    """Refuse names that do not exist in a cell, before anything moves.

    Raises:
        UnknownName: One does not exist.
        StateError: A part cannot be moved.
    """
    for place, step in program.walk():
        try:
            for name in ("frame", "relative_to", "by", "onto", "on"):
                given = getattr(step, name, "")
                if given:
                    cell.frame(given)
            if isinstance(step, Drive):
                cell.joint(step.joint)
            if isinstance(step, Grip | Release | Appear | Leave):
                cell.number(step.part)
        except ArmillaryError as error:
            raise type(error)(f"{place}: {error}") from error
