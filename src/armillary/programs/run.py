"""Runs of programs: all tasks of a cell on one time axis.

Each task is a generator that yields what it waits for: a time, a signal, a zone. The
run goes from one instant to the next at which something happens, so that there is no
tick: the end of a motion or of a wait, or a part that comes to a sensor. At one instant
tasks go on in the order in which the program has them, as long as one of them can.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from armillary.collision.check import CheckOptions, CollisionCheck
from armillary.errors import ArmillaryError, ModelError, StateError, quote
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
from armillary.programs.cell_names import check_names
from armillary.programs.doing import Doing
from armillary.programs.ending import Impossible, RunFailure, RunReason
from armillary.programs.followers import Followers
from armillary.programs.program import Program
from armillary.programs.running import Failed, Running
from armillary.programs.sensors import SensorWatch
from armillary.programs.stuck import why_stuck
from armillary.programs.tasks import BranchesEnd, Signal, Task, Until
from armillary.programs.timeline import Timeline
from armillary.programs.world import RunLimits, World

__all__ = ["run", "runs"]

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
    options: Any = {"velocity": velocity, "acceleration": acceleration}
    options |= {"check": check, "timeout": timeout, "meshes": meshes}
    (timeline,) = runs(cell, program, [state], **options)
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
    listed: Any = states
    if not isinstance(listed, Iterable):
        raise StateError(
            f"runs() takes a list of states, not {quote(listed)}; run() takes one."
        )
    starts = [home(cell) if s is None else bound_state(cell, s) for s in states]
    if check is not None:
        check_of_same(check, cell, check.state)
    options = CheckOptions(meshes=meshes) if check is None else check.options
    limits = RunLimits(cell, velocity, acceleration)
    most = positive_number("timeout", timeout)
    check_names(cell, program)

    def going(start: State) -> Asking[Timeline]:
        world = World(start, program.absent, program.tasks)
        return _Run(Running.begun(program, world, limits, check, options), most).going()

    found: list[Timeline] = []
    # A run leaves no cycles behind, and what cells keep would be looked through often.
    with collector_paused():
        for k in range(0, len(starts), AT_ONCE):
            found += _in_step(map(going, starts[k : k + AT_ONCE]))
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
    """A run, from one instant to the next."""

    def __init__(self, run: Running, timeout: float) -> None:
        self.run, self.world, self.timeout = run, run.world, timeout
        self.followers = Followers(run)
        self.doing = Doing(run, self.followers, timeout)
        for task in run.tasks:
            steps = run.program.tasks[task.name]
            task.going = self.doing.steps(task, steps, task.name)

    def going(self) -> Asking[Timeline]:
        """Run the program to its end, and yield what is asked for on the way."""
        failure: RunFailure | None = None
        world = self.world
        try:
            yield from self._go_on()
            while not all(task.has_ended for task in self.run.tasks):
                now = world.time
                self._advance()
                if world.time > now:
                    self.doing.counted_before = self.doing.count
                yield from self._go_on()
        except Failed as failed:
            failure = failed.failure
        end = world.time
        spans = tuple(
            [s if s.end <= end else s._replace(end=end) for s in self.run.spans]
        )
        changes = tuple(self.run.signals.changes)
        return Timeline(self.run.program, self.run.recording(), spans, changes, failure)

    def _go_on(self) -> Asking[None]:
        """Let all tasks go on that can, until none can at this instant."""
        busy = True
        while busy:
            busy = False
            for task in self.run.tasks:
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
            self.run.fail(task, error.reason, str(error))
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
            return self.run.is_seen(waits.name, waits.value)
        if isinstance(waits, BranchesEnd):
            return all(branch.has_ended for branch in waits.branches)
        return self.run.locks[waits.zone].owner == task.name

    def _advance(self) -> None:
        """Go to the next instant at which something happens."""
        self.followers.follow_again()
        world, now = self.world, self.world.time
        times = [math.inf]
        for task in self.run.tasks:
            if isinstance(task.waits, Until):
                times.append(task.waits.time)
            elif isinstance(task.waits, Signal):
                times.append(task.waits.deadline)
                name, value, _ = task.waits
                times.append(self.run.signals.next_look(name, value, time=now))
            if self.followers.follows(task):
                times.append(task.track.end)
        coming = min(times)
        limit = min(coming, self.timeout)
        changing: SensorWatch | None = None
        for watch in self.run.watches:
            change = watch.next_change(bool(self.run.signals.values[watch.name]), limit)
            if change < limit or (change == limit and change < coming):
                changing, limit = watch, change
        if changing is not None:
            world.time = max(limit, now)
            self.run.set(
                changing.name, not self.run.signals.values[changing.name], None
            )
            self.run.set_sensors(but=changing)
            return
        if coming > self.timeout:
            self._stuck(coming)
        world.time = coming
        for task in self.run.tasks:
            waits = task.waits
            is_late = isinstance(waits, Signal) and waits.deadline <= coming
            if isinstance(waits, Signal) and is_late and not self._is_ready(task):
                why = f"the signal {quote(waits.name)} is not {waits.value!r} in time"
                self.run.fail(task, RunReason.TIMEOUT, why)
            if self.followers.follows(task) and task.track.end <= coming:
                self.followers.follow_on(task)

    def _stuck(self, coming: float) -> None:
        """End a run in which nothing more can happen, or not in time."""
        waiting = [
            task
            for task in self.run.tasks
            if not isinstance(task.waits, BranchesEnd) and task.waits is not None
        ]
        if math.isfinite(coming):
            self.world.time = self.timeout
            # Others wait for a signal, longer than the run may take.
            late = next((t for t in waiting if isinstance(t.waits, Until)), waiting[0])
            why = f"the run takes longer than timeout={self.timeout:g} s"
            self.run.fail(late, RunReason.TIMEOUT, why)
        moves = any(
            track.moves(self.world.time) for track in self.world.tracks.values()
        )
        if moves and self.run.watches:
            self.world.time = self.timeout
        task, reason, why = why_stuck(
            self.run.program, waiting, self.run.locks, self.run.signals
        )
        self.run.fail(task, reason, why)
