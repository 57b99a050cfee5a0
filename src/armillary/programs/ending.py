"""How runs of programs end."""

from __future__ import annotations

from typing import NamedTuple

from armillary.ik.reason import Reason
from armillary.kinematics.ending import Ending

__all__ = ["Impossible", "RunFailure", "RunReason"]


class RunReason(Ending):
    """Why a run of a program ended.

    Those up to `IN_COLLISION` mean what they mean in `Reason`, of the pose that a
    motion is to reach. `JUMPS`, `NOT_PROVEN`: a line could not be followed, see
    `LineReason`. `NO_WAY`: a planner found no way. `OUTRUN`: a frame moves faster than
    the robot can follow within its limits. `DEADLOCK`: tasks wait for each other.
    `NEVER`: nothing that the program does makes a signal true. `TIMEOUT`: the time of a
    step or of the run is over. `NOT_THERE`: the part is absent, or not where the
    gripper is. `TAKEN`: another gripper has the part. `NOT_HELD`: the part that is
    released was not gripped.
    """

    DONE = 0, "done"
    NOT_FOUND = int(Reason.NOT_FOUND), Reason.NOT_FOUND.sentence
    INVALID_TARGET = int(Reason.INVALID_TARGET), Reason.INVALID_TARGET.sentence
    OUT_OF_REACH = int(Reason.OUT_OF_REACH), Reason.OUT_OF_REACH.sentence
    LIMITS = int(Reason.LIMITS), "blocked by joint limits"
    SINGULAR = int(Reason.SINGULAR), "singular: joints would have to move far"
    IN_COLLISION = int(Reason.IN_COLLISION), "in collision: links touch"
    JUMPS = 8, "only by a jump to another branch"
    NOT_PROVEN = 9, "not proven to be within the tolerance"
    NO_WAY = 10, "no way was found"
    OUTRUN = 11, "a frame moves faster than the robot can follow"
    DEADLOCK = 12, "tasks wait for each other"
    NEVER = 13, "a signal never comes"
    TIMEOUT = 14, "the time is over"
    NOT_THERE = 15, "a part is not there"
    TAKEN = 16, "another gripper has the part"
    NOT_HELD = 17, "a part that is released was not gripped"


class RunFailure(NamedTuple):
    """What a program could not do.

    Attributes:
        reason: Why.
        task: The task.
        step: Where its step is, as in `robot[2][0]`.
        time: When [s].
        why: A sentence with names and numbers.
    """

    reason: RunReason
    task: str
    step: str
    time: float
    why: str

    def __str__(self) -> str:
        return f"{self.step} at {self.time:.6g} s: {self.why}"


class Impossible(Exception):
    """What a step asks for cannot be done; a run ends with it."""

    def __init__(self, reason: RunReason, why: str) -> None:
        """Note the reason, and a sentence."""
        super().__init__(why)
        self.reason = reason
