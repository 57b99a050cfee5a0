"""Why an answer of inverse kinematics is what it is."""

from __future__ import annotations

from enum import IntEnum


class Reason(IntEnum):
    """How a target ended.

    `OUT_OF_REACH` is claimed only where it is proven; `NOT_FOUND` says that the search
    spent its budget, no more. `LIMITS` says that an answer was found beyond the joint
    limits and none within.
    """

    SOLVED = 0
    NOT_FOUND = 1
    INVALID_TARGET = 2
    OUT_OF_REACH = 3
    LIMITS = 4
    SINGULAR = 5

    @property
    def sentence(self) -> str:
        """Return what it means, for people."""
        return _SENTENCES[self]


_SENTENCES = {
    Reason.SOLVED: "solved",
    Reason.NOT_FOUND: "not found within the budget of starts",
    Reason.INVALID_TARGET: "the target is no rigid pose",
    Reason.OUT_OF_REACH: "out of reach: no joint positions lead there",
    Reason.LIMITS: "blocked by joint limits: found only beyond them",
    Reason.SINGULAR: "singular: the closed form has no unique answer there",
}
