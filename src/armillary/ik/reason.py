"""Why an answer of inverse kinematics is what it is."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.ik.status import Ending
from armillary.kernel import search_layout


class Reason(Ending):
    """How a target ended.

    `OUT_OF_REACH` is claimed only where it is proven; `NOT_FOUND` says that the search
    spent its budget, no more; `TIMEOUT`, that its time was over before. `LIMITS` says
    that an answer was found beyond the joint limits and none within.
    """

    SOLVED = search_layout.SOLVED, "solved"
    NOT_FOUND = search_layout.UNSOLVED, "not found within the budget of starts"
    INVALID_TARGET = search_layout.INVALID, "the target is no rigid pose"
    OUT_OF_REACH = 3, "out of reach: no joint positions lead there"
    LIMITS = 4, "blocked by joint limits: found only beyond them"
    SINGULAR = 5, "singular: the closed form has no unique answer there"
    TIMEOUT = search_layout.STOPPED, "not found before the timeout"


SUCCESSES: Final = (Reason.SOLVED, Reason.SINGULAR)
"""Those with which a target is met."""


def succeeded(reasons: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Tell of numbers of `Reason` which mean that a target is met."""
    return np.asarray((reasons == Reason.SOLVED) | (reasons == Reason.SINGULAR))
