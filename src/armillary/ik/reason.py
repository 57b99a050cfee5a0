"""Why an answer of inverse kinematics is what it is."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.ik.status import Ending


class Reason(Ending):
    """How a target ended.

    `OUT_OF_REACH` is claimed only where it is proven; `NOT_FOUND` says that the search
    spent its budget, no more; `TIMEOUT`, that its time was over before. `LIMITS` says
    that an answer was found beyond the joint limits and none within.
    """

    SOLVED = 0, "solved"
    NOT_FOUND = 1, "not found within the budget of starts"
    INVALID_TARGET = 2, "the target is no rigid pose"
    OUT_OF_REACH = 3, "out of reach: no joint positions lead there"
    LIMITS = 4, "blocked by joint limits: found only beyond them"
    SINGULAR = 5, "singular: the closed form has no unique answer there"
    TIMEOUT = 6, "not found before the timeout"


SUCCESSES: Final = (Reason.SOLVED, Reason.SINGULAR)
"""Those with which a target is met."""


def succeeded(reasons: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Tell of numbers of `Reason` which mean that a target is met."""
    return np.asarray((reasons == Reason.SOLVED) | (reasons == Reason.SINGULAR))
