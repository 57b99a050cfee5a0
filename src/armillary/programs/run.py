"""Runs of programs: all tasks of a cell on one time axis.

Each task is a generator that yields what it waits for: a time, a signal, a zone. The
run goes from one instant to the next at which something happens, so that there is no
tick: the end of a motion or of a wait, or a part that comes to a sensor. At one instant
tasks go on in the order in which the program has them, as long as one of them can.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, Final, cast

import numpy as np

from armillary.collision.check import CheckOptions, CollisionCheck
from armillary.errors import ArmillaryError, ModelError, quote
from armillary.ik.avoidance import check_of_same
from armillary.kernel.arguments import positive_number
from armillary.kinematics.state import State, bound_state, home
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell
from armillary.paused_collector import collector_paused
from armillary.programs.asked import (
    AskedAnything,
    AskedLine,
    AskedPose,
    Asking,
    find,
)
from armillary.programs.cell_names import check_names, frames_of
from armillary.programs.clearance import nearest_below
from armillary.programs.drives import driven
from armillary.programs.ending import Impossible, RunFailure, RunReason
from armillary.programs.moves import HOLD, Following, Moves
from armillary.programs.parts import PartStep, part_moved
from armillary.programs.program import ALONE, Program, moving_branches
from armillary.programs.recording import Event, Recording
from armillary.programs.sensors import SensorWatch
from armillary.programs.signals import Signals
from armillary.programs.spans import Span
from armillary.programs.steps import (
    PTP,
    AnyStep,
    Appear,
    Call,
    Drive,
    Grip,
    Leave,
    Linear,
    Parallel,
    Planned,
    Release,
    Repeat,
    Set,
    Value,
    Wait,
    WaitFor,
    Zone,
)
from armillary.programs.stuck import why_stuck
from armillary.programs.tasks import BranchesEnd, Free, Going, Lock, Signal, Task, Until
from armillary.programs.timeline import Timeline
from armillary.programs.tracks import Track
from armillary.programs.world import RunLimits, World
from armillary.trajectories.motion import Motion

__all__ = ["run", "runs"]

MOST_STEPS: Final = 1_000_000
MOST_AT_ONCE: Final = 100_000
"""Steps of a run, in all and at one instant; a program that repeats more is refused."""

AT_ONCE: Final = 128
"""How many runs go on together at most."""


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
    options = {"velocity": velocity, "acceleration": acceleration}
    (timeline,) = runs(
        cell,
        program,
        [state],
        check=check,
        **options,
        timeout=timeout,
        meshes=meshes,
    )
    return timeline


def runs(
    cell: Workcell,
    program: Program,
    states: Iterable[State | None],
    *,
    check: CollisionCheck | None = None,
    velocity: Any = None,
    acceleration: Any = None,
    timeout: float = 3600.0,
    meshes: MeshSource | None = None,
) -> list[Timeline]:
    """Return what happens in a cell while a program runs, from each of several states.

    The timelines are those of `run`, to the last bit. Many layouts are faster together
    than one by one: poses and lines that runs ask for at about the same step are found
    in one call.

    Args:
        cell: The cell.
        program: What its tasks do.
        states: Where it starts, such as layouts; None is home.
        check: As for `run`.
        velocity: As for `run`.
        acceleration: As for `run`.
        timeout: As for `run`.
        meshes: As for `run`.

    Raises:
        ModelError: As for `run`.
        UnknownName: As for `run`.
        StateError: As for `run`.
    """
    given: Any = program
    if not isinstance(given, Program):
        raise ModelError(
            f"A cell runs an arm.Program, such as Program([PTP(to=q)]), not "
            f"{quote(program)}."
        )
    starts = [home(cell) if s is None else bound_state(cell, s) for s in states]
    if check is not None:
        check_of_same(check, cell, check.state)
    options = CheckOptions(meshes=meshes) if check is None else check.options
    limits = RunLimits(cell, velocity, acceleration)
    most = positive_number("timeout", timeout)
    found: list[Timeline] = []
    # A run leaves no cycles behind, and what cells keep would be looked through often.
    with collector_paused():
        for k in range(0, len(starts), AT_ONCE):
            found += _in_step(
                _Run(
                    cell,
                    program,
                    World(start, program.absent, program.tasks),
                    limits,
                    check,
                    options,
                    most,
                ).going()
                for start in starts[k : k + AT_ONCE]
            )
    return found


def _in_step(going: Iterable[Asking[Timeline]]) -> list[Timeline]:
    """Let runs go on until each has a timeline; what they ask for is found together."""
    left = dict(enumerate(going))
    found: dict[int, Timeline] = {}
    while left:
        asked: list[AskedAnything] = []
        for k, run in list(left.items()):
            try:
                asked.append(next(run))
            except StopIteration as end:
                found[k] = end.value
                del left[k]
        find(asked)
    return [found[k] for k in sorted(found)]


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
        self.events = [Event(0.0, world.state, frozenset(world.absent))]
        self.locks: dict[str, Lock] = {}
        self.count = self.counted_before = 0
        # What moves, and parts that are carried, otherwise from this instant on.
        self.changed: list[Track | str] = []
        check_names(cell, program)
        self.tasks = self._tasks()
        values: dict[str, Value] = {
            step.signal: False for _, step in program.walk() if isinstance(step, Set)
        }
        values |= program.signals
        self.watches = [
            SensorWatch(name, sensor, world, options.meshes)
            for name, sensor in program.sensors.items()
        ]
        values |= {w.name: w.distance(0.0) <= 0.0 for w in self.watches}
        self.signals = Signals(values, program.scan)

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
                    if owners[k] == name:
                        raise ModelError(
                            f"joints= of the task {quote(name)} names "
                            f"{quote(self.cell.joint_names[k])} twice."
                        )
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
            task = Task(name, name, track, iter(()))
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

    def _nearest(self, name: str) -> str:
        """Return the manipulator with joints whose name is nearest to one."""
        names = [each.name for each in self.cell.manipulators if each.joint_names]
        return (get_close_matches(name, names, 1, 0.0) or [""])[0]

    def _base(self, name: str) -> str:
        manipulator = self.cell.manipulators[self.cell.number(name)]
        return manipulator.links[manipulator.base].name

    # the loop

    def going(self) -> Asking[Timeline]:
        """Run the program to its end, and yield what is asked for on the way."""
        failure: RunFailure | None = None
        world = self.world
        try:
            yield from self._go_on()
            while not all(task.has_ended for task in self.tasks):
                now = world.time
                self._advance()
                if world.time > now:
                    self.counted_before = self.count
                yield from self._go_on()
        except _Failed as failed:
            failure = failed.failure
        end = world.time
        self.spans = [span._replace(end=min(span.end, end)) for span in self.spans]
        spans, changes = tuple(self.spans), tuple(self.signals.changes)
        return Timeline(self.program, self._recording(), spans, changes, failure)

    def _recording(self) -> Recording:
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

    def _go_on(self) -> Asking[None]:
        """Let all tasks go on that can, until none can at this instant."""
        busy = True
        while busy:
            busy = False
            for task in self.tasks:
                while not task.has_ended and self._is_ready(task):
                    busy = True
                    yield from self._step(task)

    def _step(self, task: Task) -> Asking[None]:
        try:
            coming = next(task.going)
            while isinstance(coming, AskedPose | AskedLine):
                yield coming
                coming = next(task.going)
            task.waits = coming
        except StopIteration:
            task.waits, task.has_ended = None, True
        except Impossible as error:
            self._fail(task, error.reason, str(error))
        except ArmillaryError as error:
            where = f"{task.place} at {self.world.time:.6g} s"
            raise type(error)(f"{where}: {error}") from error

    def _is_ready(self, task: Task) -> bool:
        waits = task.waits
        if waits is None:
            return True
        if isinstance(waits, Until):
            return waits.time <= self.world.time
        if isinstance(waits, Signal):
            return self._is_seen(waits.name, waits.value)
        if isinstance(waits, BranchesEnd):
            return all(branch.has_ended for branch in waits.branches)
        return self.locks[waits.zone].owner == task.name

    def _advance(self) -> None:
        """Go to the next instant at which something happens."""
        self._follow_again()
        world, now = self.world, self.world.time
        times = [math.inf]
        for task in self.tasks:
            if isinstance(task.waits, Until):
                times.append(task.waits.time)
            elif isinstance(task.waits, Signal):
                times.append(task.waits.deadline)
                name, value, _ = task.waits
                times.append(self.signals.next_look(name, value, time=now))
            if self._follows(task):
                times.append(task.track.end)
        coming = min(times)
        limit = min(coming, self.timeout)
        changing: SensorWatch | None = None
        for watch in self.watches:
            change = watch.next_change(bool(self.signals.values[watch.name]), limit)
            if change < limit or (change == limit and change < coming):
                changing, limit = watch, change
        if changing is not None:
            world.time = max(limit, now)
            self._set(changing.name, not self.signals.values[changing.name], None)
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
        waiting = [
            task
            for task in self.tasks
            if not isinstance(task.waits, BranchesEnd) and task.waits is not None
        ]
        if math.isfinite(coming):
            self.world.time = self.timeout
            # Others wait for a signal, longer than the run may take.
            late = next((t for t in waiting if isinstance(t.waits, Until)), waiting[0])
            why = f"the run takes longer than timeout={self.timeout:g} s"
            self._fail(late, RunReason.TIMEOUT, why)
        moves = any(
            track.moves(self.world.time) for track in self.world.tracks.values()
        )
        if moves and self.watches:
            self.world.time = self.timeout
        task, reason, why = why_stuck(self.program, waiting, self.locks, self.signals)
        self._fail(task, reason, why)

    def _fail(self, task: Task, reason: RunReason, why: str) -> None:
        text = why if why.endswith(".") else f"{why}."
        failure = RunFailure(reason, task.name, task.place, self.world.time, text)
        raise _Failed(failure)

    # steps

    def _steps(self, task: Task, steps: tuple[AnyStep, ...], above: str) -> Going:
        for k, step in enumerate(steps):
            place = f"{above}[{k}]"
            task.place = place
            self._count()
            if isinstance(step, Zone):
                yield from self._in_zone(task, step, place)
            elif isinstance(step, Repeat):
                for _ in range(step.count):
                    self._count()  # of what has no steps, too
                    yield from self._steps(task, step.steps, place)
            elif isinstance(step, Call):
                name = f"{place} > routine {step.routine}"
                yield from self._steps(task, self.program.routines[step.routine], name)
            elif isinstance(step, Parallel):
                yield from self._in_parallel(task, step, place)
            else:
                yield from self._simple(task, step, place)

    def _count(self) -> None:
        """Count a step, or a round of a `Repeat`, so that no program is endless."""
        self.count += 1
        if self.count - self.counted_before > MOST_AT_ONCE:
            raise Impossible(
                RunReason.TIMEOUT,
                f"more than {MOST_AT_ONCE} steps at one instant: steps that are "
                "repeated have to take time",
            )
        if self.count > MOST_STEPS:
            raise Impossible(
                RunReason.TIMEOUT, f"more than {MOST_STEPS} steps: repeat less"
            )

    def _simple(self, task: Task, step: AnyStep, place: str) -> Going:
        """Do a step without others in it."""
        if self.world.absent:
            self.world.be_there(*frames_of(step))
        number = self._begin(task, step, place)
        if isinstance(step, PTP | Planned | Linear):
            yield from self._move(task, step)
        elif isinstance(step, Wait):
            yield Until(self.world.time + step.seconds)
        elif isinstance(step, WaitFor):
            if not self._is_seen(step.signal, step.value):
                wait = math.inf if step.timeout is None else step.timeout
                yield Signal(step.signal, step.value, self.world.time + wait)
                self._end(
                    number,
                    f"signal {quote(step.signal)}",
                    self.signals.setters.get(step.signal),
                )
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
        self.spans.append(Span(task.row, place, name, step, now, math.inf))
        return len(self.spans) - 1

    def _end(self, number: int, waited_for: str = "", cause: int | None = None) -> None:
        self.spans[number] = self.spans[number]._replace(
            end=self.world.time, waited_for=waited_for, cause=cause
        )

    def _in_zone(self, task: Task, step: Zone, place: str) -> Going:
        lock = self.locks.setdefault(step.zone, Lock())
        if lock.owner != task.name:
            number = self._begin(task, step, place)
            if lock.owner:
                lock.queue.append(task.name)
                yield Free(step.zone)
                self._end(number, f"zone {quote(step.zone)}", lock.left)
            else:
                lock.owner = task.name
                self._end(number)
        lock.inside += 1
        yield from self._steps(task, step.steps, place)
        lock.inside -= 1
        if lock.inside:
            return
        lock.left = self._last(task.row)
        lock.owner = lock.queue.popleft() if lock.queue else ""
        while lock.owner in lock.queue:  # another branch of the same task
            lock.queue.remove(lock.owner)

    def _last(self, row: str) -> int | None:
        """Return the last span of a task or a branch, None before its first."""
        numbers = range(len(self.spans) - 1, -1, -1)
        return next((k for k in numbers if self.spans[k].task == row), None)

    def _in_parallel(self, task: Task, step: Parallel, place: str) -> Going:
        """Do the branch that moves joints, or the first, and others beside it."""
        if not step.branches:
            return
        (main,) = moving_branches(self.program, step)[:1] or [0]
        before = self._last(task.row)
        others = list[Task]()
        for k, steps in enumerate(step.branches):
            if k != main:
                row = f"{task.row}, branch {k + 1}"
                track = Track(row, np.zeros(0, np.int64), np.zeros(0))
                branch = Task(task.name, row, track, iter(()))
                branch.going = self._steps(branch, steps, f"{place}[{k}]")
                others.append(branch)
                # The step before lets the branch begin.
                self._end(self._begin(branch, step, place), cause=before)
        self.tasks += others
        yield from self._steps(task, step.branches[main], f"{place}[{main}]")
        if not all(branch.has_ended for branch in others):
            task.place = place
            number = self._begin(task, step, place)
            yield BranchesEnd(tuple(others))
            lasts = [self._last(branch.row) for branch in others]
            last = max(
                (k for k in lasts if k is not None), key=lambda k: self.spans[k].end
            )
            self._end(number, "its branches", last)
        self.tasks = [each for each in self.tasks if each not in others]

    def _move(self, task: Task, step: PTP | Planned | Linear) -> Going:
        if not len(task.track.joints):
            raise Impossible(
                RunReason.LIMITS,
                f"the task {quote(task.name)} moves no joint: give it the name of a "
                f"manipulator, such as {quote(self._nearest(task.name))}, or "
                "Program(tasks, joints={...})",
            )
        if isinstance(step, Linear):
            moves, following = yield from self.moves.linear(
                step, task.track, task.following
            )
        elif isinstance(step, PTP):
            moves, following = yield from self.moves.ptp(step, task.track)
        else:
            moves, following = yield from self.moves.planned(step, task.track)
        task.following, start = following, self.world.time
        for motion, to in moves:
            self._begin_motion(task.track, motion, to)
            # What it follows may change its motion, and the end with it.
            while task.track.end > self.world.time:
                yield Until(task.track.end)
        if following is not None:
            following.meeting = None
        if isinstance(step, Planned):
            self._keep_off(task, step, start)

    def _keep_off(self, task: Task, step: Planned, start: float) -> None:
        """Refuse a planned motion that came too near to what others moved meanwhile.

        Planners see others where they are when it begins.
        """
        world, end = self.world, self.world.time
        if not any(
            piece.start < end and piece.end > start
            for track in world.tracks.values()
            if track is not task.track
            for piece in track.pieces
        ):
            return
        own = set(task.track.joints.tolist())
        margin = max(step.margin, self.options.margin)
        near = nearest_below(
            self._recording(),
            lambda pair: bool(own & world.chain(*pair)[1]),
            start,
            end,
            margin,
        )
        if near.distance <= margin:
            raise Impossible(
                RunReason.IN_COLLISION,
                f"the way is free of what stood still when it began, but "
                f"{' and '.join(map(quote, near.pair))} come within "
                f"{near.distance:.4g} m at {near.time:.6g} s, as others move: let the "
                "tasks share a Zone, or wait for each other",
            )

    def _follows(self, task: Task) -> bool:
        """Return whether a task waits, or has ended, while its robot follows a frame.

        Robots cannot stop at once, so that they go on as long as the run does.
        """
        following = task.following
        return following is not None and self.world.moves(following.frame, task.track)

    def _follow_on(self, task: Task) -> None:
        """Go on following a frame while a task waits."""
        following, now = task.following, self.world.time
        if following is None or following.meeting is not None:
            return
        if isinstance(task.waits, Until) and task.waits.time <= now:
            return  # it goes on by itself
        self._follow(task, following, now + HOLD)

    def _follow(self, task: Task, following: Following, end: float) -> None:
        try:
            motion = self.moves.followed(following, task.track, end)
        except Impossible as error:
            why = str(error)
            if task.has_ended:
                why += (
                    ": the task has ended, and its robot goes on to follow "
                    f"{quote(following.frame)}; let a PTP be the last step"
                )
            self._fail(task, error.reason, why)
            return
        if motion is not None:
            self._begin_motion(task.track, motion)

    def _begin_motion(self, track: Track, motion: Motion, to: Any = None) -> None:
        """Let a motion begin now, and those who follow what it moves follow it."""
        track.add(self.world.time, motion, to)
        self.changed.append(track)

    def _follow_again(self) -> None:
        """Let robots that follow a frame follow its new motion, from now on.

        What follows another robot may be followed, too; each does so once an instant.
        """
        done: list[Task] = []
        while self.changed:
            changed = self.changed.pop(0)
            for task in self.tasks:
                following = task.following
                if following is None or task.track is changed or task in done:
                    continue
                names, joints = self.world.chain(following.frame)
                if isinstance(changed, str):
                    is_other = changed in names
                else:
                    is_other = not joints.isdisjoint(changed.places)
                if is_other:
                    done.append(task)
                    self._follow_from_now(task, following)

    def _follow_from_now(self, task: Task, following: Following) -> None:
        """Follow a frame whose motion is another from now on."""
        now = self.world.time
        if following.meeting is not None:
            try:
                self._begin_motion(task.track, following.meeting())
            except Impossible as error:
                self._fail(task, error.reason, str(error))
        elif following.way is not None:
            end = following.way.begin + following.way.duration
            if end <= now:  # it stays where it is relative to the frame
                self._follow(task, following, now + HOLD)
                return
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
        self.changed.append(track)

    def _part(self, step: PartStep) -> None:
        """Grip, release, bring or remove a part."""
        world = self.world
        followed = self._followed_by_own(step) if isinstance(step, Grip) else []
        world.change(part_moved(world, step, self.options.meshes))
        if isinstance(step, Grip | Release):
            self.changed.append(step.part)
        for following, frame in followed:
            following.go_on_with(frame, world)
        self.events.append(Event(world.time, world.state, frozenset(world.absent)))
        self._set_sensors(part=step.part)

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

    def _is_seen(self, signal: str, value: Value) -> bool:
        return self.signals.are_seen(signal, value, time=self.world.time)

    def _set(self, signal: str, value: Value, span: int | None) -> None:
        self.signals.set(signal, value, time=self.world.time, span=span)

    def _set_sensors(self, *, but: SensorWatch | None = None, part: str = "") -> None:
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
