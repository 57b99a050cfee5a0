"""What the steps of a program do, each kind in its own function.

They are generators, which yield what their task waits for, or asks for.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, Final

import numpy as np

from armillary.errors import quote
from armillary.programs.cell_names import frames_of
from armillary.programs.clearance import nearest_below
from armillary.programs.drives import driven
from armillary.programs.ending import Impossible, RunReason
from armillary.programs.followers import Followers
from armillary.programs.parts import PartStep, part_moved
from armillary.programs.program import moving_branches
from armillary.programs.recording import Event
from armillary.programs.running import Running
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
    Wait,
    WaitFor,
    Zone,
)
from armillary.programs.task_joints import driven_name, nearest_with_joints
from armillary.programs.tasks import BranchesEnd, Free, Going, Lock, Signal, Task, Until
from armillary.programs.tracks import Track

__all__ = ["Doing"]

MOST_STEPS: Final = 1_000_000
MOST_AT_ONCE: Final = 100_000
"""Steps of a run, in all and at one instant; a program that repeats more is refused."""


class Doing:
    """Does the steps of a run.

    Attributes:
        run: The run.
        world: Where everything is.
        followers: The robots that follow frames.
        count: How many steps have been done.
        counted_before: How many of these before the present instant.
    """

    def __init__(self, run: Running, followers: Followers, timeout: float) -> None:
        """Begin with no step done.

        Args:
            run: The run.
            followers: The robots that follow frames.
            timeout: After which time of the cell the run fails [s].
        """
        self.run, self.world, self.followers = run, run.world, followers
        self.count = self.counted_before = 0
        self._timeout = timeout
        self._moving: dict[Hashable, Any] = {}  # what is known of branches

    def steps(self, task: Task, steps: tuple[AnyStep, ...], above: str) -> Going:
        """Do steps, one after the other.

        Args:
            task: Whose steps they are.
            steps: The steps.
            above: Where they are, as messages say.

        Raises:
            Impossible: One cannot be done.
        """
        for k, step in enumerate(steps):
            place = f"{above}[{k}]"
            task.place = place
            self._count()
            if isinstance(step, Zone):
                yield from self._in_zone(task, step, place)
            elif isinstance(step, Repeat):
                for _ in range(step.count):
                    self._count()  # of what has no steps, too
                    yield from self.steps(task, step.steps, place)
            elif isinstance(step, Call):
                name = f"{place} > routine {step.routine}"
                yield from self.steps(
                    task, self.run.program.routines[step.routine], name
                )
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
        number = self.run.begin(task, step, place)
        if isinstance(step, PTP | Planned | Linear):
            yield from self._move(task, step)
        elif isinstance(step, Wait):
            yield Until(self.world.time + step.seconds)
        elif isinstance(step, WaitFor):
            if not self.run.is_seen(step.signal, step.value):
                wait = math.inf if step.timeout is None else step.timeout
                yield Signal(step.signal, step.value, self.world.time + wait)
                self.run.end(
                    number,
                    f"signal {quote(step.signal)}",
                    self.run.signals.setters.get(step.signal),
                )
                return
        elif isinstance(step, Set):
            self.run.set(step.signal, step.value, number)
        elif isinstance(step, Drive):
            self._drive(step)
        elif isinstance(step, Grip | Release | Appear | Leave):
            self._part(step)
        self.run.end(number)

    def _in_zone(self, task: Task, step: Zone, place: str) -> Going:
        lock = self.run.locks.setdefault(step.zone, Lock())
        if lock.owner != task.name:
            number = self.run.begin(task, step, place)
            if lock.owner:
                lock.queue.append(task.name)
                yield Free(step.zone)
                self.run.end(number, f"zone {quote(step.zone)}", lock.left)
            else:
                lock.owner = task.name
                self.run.end(number)
        lock.inside += 1
        yield from self.steps(task, step.steps, place)
        lock.inside -= 1
        if lock.inside:
            return
        lock.left = self.run.last(task.row)
        lock.owner = lock.queue.popleft() if lock.queue else ""
        while lock.owner in lock.queue:  # another branch of the same task
            lock.queue.remove(lock.owner)

    def _in_parallel(self, task: Task, step: Parallel, place: str) -> Going:
        """Do the branch that moves joints, or the first, and others beside it."""
        if not step.branches:
            return
        (main,) = moving_branches(self.run.program, step, self._moving)[:1] or [0]
        before = self.run.last(task.row)
        others = list[Task]()
        for k, steps in enumerate(step.branches):
            if k != main:
                row = f"{task.row}, branch {k + 1}"
                track = Track(row, np.zeros(0, np.int64), np.zeros(0))
                branch = Task(task.name, row, track, iter(()))
                branch.going = self.steps(branch, steps, f"{place}[{k}]")
                others.append(branch)
                # The step before lets the branch begin.
                self.run.end(self.run.begin(branch, step, place), cause=before)
        self.run.tasks += others
        yield from self.steps(task, step.branches[main], f"{place}[{main}]")
        if not all(branch.has_ended for branch in others):
            task.place = place
            number = self.run.begin(task, step, place)
            yield BranchesEnd(tuple(others))
            rows = {branch.row for branch in others}
            lasts = {
                span.task: k
                for k, span in enumerate(self.run.spans)
                if span.task in rows
            }
            last = max(lasts.values(), key=lambda k: self.run.spans[k].end)
            self.run.end(number, "its branches", last)
        tasks, done = self.run.tasks, set(others)
        tasks[:] = [each for each in tasks if each not in done]

    def _move(self, task: Task, step: PTP | Planned | Linear) -> Going:
        if not len(task.track.joints):
            nearest = nearest_with_joints(self.world.cell, task.name)
            raise Impossible(
                RunReason.LIMITS,
                f"the task {quote(task.name)} moves no joint: give it the name of a "
                f"manipulator, such as {quote(nearest)}, or "
                "Program(tasks, joints={...})",
            )
        if isinstance(step, Linear):
            moves, following = yield from self.run.moves.linear(
                step, task.track, task.following
            )
        elif isinstance(step, PTP):
            moves, following = yield from self.run.moves.ptp(step, task.track)
        else:
            moves, following = yield from self.run.moves.planned(step, task.track)
        task.following, start = following, self.world.time
        for motion, to in moves:
            self.run.begin_motion(task.track, motion, to)
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
        margin = max(step.margin, self.run.options.margin)
        near = nearest_below(
            self.run.recording(),
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

    def _drive(self, step: Drive) -> None:
        """Change the speed of a joint that moves by itself."""
        k, now = self.world.cell.joint(step.joint), self.world.time
        track = self.world.tracks[driven_name(self.world.cell, k)]
        values = track.at(now)
        if not track.moves(now):  # it may have been stopped at this instant
            values = values._replace(qd=np.zeros(1))
        motion = driven(step, k, values, self.run.limits, self._timeout - now + 1.0)
        if motion is not None:
            track.add(now, motion)
        elif track.moves(now):
            track.stop(now)
        self.run.changed.append(track)

    def _part(self, step: PartStep) -> None:
        """Grip, release, bring or remove a part."""
        world = self.world
        followed = self.followers.of_own(step) if isinstance(step, Grip) else []
        world.change(part_moved(world, step, self.run.options.meshes))
        if isinstance(step, Grip | Release):
            self.run.changed.append(step.part)
        for following, frame in followed:
            following.go_on_with(frame, world)
        self.run.events.append(Event(world.time, world.state, frozenset(world.absent)))
        self.run.set_sensors(part=step.part)
