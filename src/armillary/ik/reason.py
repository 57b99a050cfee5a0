"""How targets and tasks end: numbers with a name, and a sentence."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.kernel import search_layout
from armillary.kinematics.ending import Ending


class Reason(Ending):
    """How a target ended.

    `OUT_OF_REACH` is claimed only where it is proven; `NOT_FOUND` says that the search
    spent its budget, no more; `TIMEOUT`, that its time was over before. `LIMITS` says
    that an answer was found beyond the joint limits and none within; `IN_COLLISION`,
    that answers were found within them, and links touch at all of these; `JUMP`, that
    answers were found, and a joint moves to each of them by more than `largest_step`.
    """

    SOLVED = search_layout.SOLVED, "solved"
    NOT_FOUND = search_layout.UNSOLVED, "not found within the budget of starts"
    INVALID_TARGET = search_layout.INVALID, "the target is not a rigid pose"
    OUT_OF_REACH = 3, "out of reach: no joint positions lead there"
    LIMITS = 4, "blocked by joint limits: found only beyond them"
    SINGULAR = 5, "singular: the closed form has no unique answer there"
    TIMEOUT = search_layout.STOPPED, "not found before the timeout"
    IN_COLLISION = 7, "in collision: links touch at every answer that was found"
    JUMP = 8, "a jump: each answer that was found is farther than the largest step"


SUCCESSES: Final = (Reason.SOLVED, Reason.SINGULAR)
"""Those with which a target is met."""

# Their numbers, which are quicker to get at than members of an enumeration.
SOLVED, SINGULAR = map(int, SUCCESSES)
NOT_FOUND, TIMEOUT = int(Reason.NOT_FOUND), int(Reason.TIMEOUT)
INVALID_TARGET, OUT_OF_REACH = int(Reason.INVALID_TARGET), int(Reason.OUT_OF_REACH)
LIMITS, IN_COLLISION = int(Reason.LIMITS), int(Reason.IN_COLLISION)
JUMP = int(Reason.JUMP)


def succeeded(reasons: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which numbers of `Reason` mean that a target is met."""
    return np.asarray((reasons == SOLVED) | (reasons == SINGULAR))


class Doubt(Ending):
    """Why the answers to a target may not be all."""

    COMPLETE = 0, "these are all answers, apart from whole turns of joints"
    SEARCHED = 1, "a search found them, from many starts"
    TURNS = 2, "limits that couple joints may hold in other turns of a joint"
    CLOSE = 3, "answers coincide, or are closer than rounding can tell apart"
    MANY = 4, "the target is singular, or nearly: there may be infinitely many"
    MISSED = 5, "an answer of the formula misses the target by more than the tolerance"
    ELBOW = 6, "only some positions of what is free were tried"


COMPLETE, SEARCHED, TURNS = map(int, (Doubt.COMPLETE, Doubt.SEARCHED, Doubt.TURNS))
CLOSE, MANY, MISSED = map(int, (Doubt.CLOSE, Doubt.MANY, Doubt.MISSED))
ELBOW = int(Doubt.ELBOW)


class RateReason(Ending):
    """Whether the twist of a task is achieved, and the reason if it is not.

    `LIMITS`: the limits of joints allow no more. `SINGULAR`: a part of the twist is in
    directions in which the joints cannot move the frame, or only by disturbing tasks
    of higher priority. `UNFINISHED`: the solver reached its maximum number of
    iterations; the rates are within the limits, but not optimal.

    Of a controller, `AVOIDING`: collision avoidance changes the motion. `BLOCKED`: it
    stops the motion, in a local minimum that needs a planner. `BRAKING`: a joint cannot
    stop before its limit, or needs more torque than its limit. `PUSHED`: even maximum
    braking does not keep the safety margin. `INSIDE`: links or obstacles are nearer
    than the margin already; they are separated as far as they can be together.
    `ASIDE`: with `conflict="slow"`, no rates in the direction that the first task
    requests are within the bounds.
    """

    MET = 0, "met"
    SINGULAR = 1, "partly in directions that the joints cannot move in, as out of reach"
    LIMITS = 2, "slowed by the limits of joints"
    UNFINISHED = 3, "cut short: within the limits, but not the best"
    INVALID = 4, "not finite"
    AVOIDING = 5, "avoiding what is near"
    BLOCKED = 6, "blocked by what is near: no progress is left"
    BRAKING = 7, "braking: a limit is too near to stop before it"
    PUSHED = 8, "pushed: something approaches faster than the joints can retreat"
    INSIDE = 9, "nearer than the margin already"
    ASIDE = 10, "off the requested direction: no rates along it are within the bounds"
