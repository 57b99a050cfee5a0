"""Robots that go on following frames, and what lets them move otherwise."""

from __future__ import annotations

from dataclasses import dataclass

from armillary.errors import quote
from armillary.programs.ending import Impossible
from armillary.programs.moves import HOLD, Following
from armillary.programs.running import Running
from armillary.programs.steps import Grip
from armillary.programs.tasks import Task, Until

__all__ = ["Followers"]


@dataclass(frozen=True)
class Followers:
    """The robots of a run that follow frames.

    Attributes:
        run: The run.
    """

    run: Running

    def follows(self, task: Task) -> bool:
        """Return whether a task waits, or has ended, while its robot follows a frame.

        Robots cannot stop at once, so that they go on as long as the run does.
        """
        following = task.following
        return following is not None and self.run.world.moves(
            following.frame, task.track
        )

    def follow_on(self, task: Task) -> None:
        """Go on following a frame while a task waits."""
        following, now = task.following, self.run.world.time
        if following is None or following.meeting is not None:
            return
        if isinstance(task.waits, Until) and task.waits.time <= now:
            return  # it goes on by itself
        self._follow(task, following, now + HOLD)

    def _follow(self, task: Task, following: Following, end: float) -> None:
        try:
            motion = self.run.moves.followed(following, task.track, end)
        except Impossible as error:
            why = str(error)
            if task.has_ended:
                why += (
                    ": the task has ended, and its robot goes on to follow "
                    f"{quote(following.frame)}; let a PTP be the last step"
                )
            self.run.fail(task, error.reason, why)
            return
        if motion is not None:
            self.run.begin_motion(task.track, motion)

    def follow_again(self) -> None:
        """Let robots that follow a frame follow its new motion, from now on.

        What follows another robot may be followed, too; each does so once an instant.
        """
        done: list[Task] = []
        while self.run.changed:
            changed = self.run.changed.pop(0)
            for task in self.run.tasks:
                following = task.following
                if following is None or task.track is changed or task in done:
                    continue
                names, joints = self.run.world.chain(following.frame)
                if isinstance(changed, str):
                    is_other = changed in names
                else:
                    is_other = not joints.isdisjoint(changed.places)
                if is_other:
                    done.append(task)
                    self._follow_from_now(task, following)

    def _follow_from_now(self, task: Task, following: Following) -> None:
        """Follow a frame whose motion is another from now on."""
        now = self.run.world.time
        if following.meeting is not None:
            try:
                self.run.begin_motion(task.track, following.meeting())
            except Impossible as error:
                self.run.fail(task, error.reason, str(error))
        elif following.way is not None:
            end = following.way.begin + following.way.duration
            if end <= now:  # it stays where it is relative to the frame
                self._follow(task, following, now + HOLD)
                return
            self._follow(task, following, end)
        if isinstance(task.waits, Until) and task.track.end > now:
            task.waits = Until(task.track.end)

    def of_own(self, step: Grip) -> list[tuple[Following, str]]:
        """Return robots that grip what they follow, and what carried it until then."""
        world, part = self.run.world, step.part
        by = world.chain(step.by)[1]
        carrier = world.state.tree.bases[world.cell.number(part)].on
        return [
            (task.following, carrier)
            for task in self.run.tasks
            if task.following is not None
            and not by.isdisjoint(task.track.joints.tolist())
            and part in world.chain(task.following.frame)[0]
        ]
