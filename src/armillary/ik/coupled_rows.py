"""Candidates of methods that do not know limits that couple joints."""

from __future__ import annotations

import numpy as np

from armillary.ik.method import Candidates
from armillary.ik.problem import ROUNDING, IKProblem
from armillary.ik.reason import LIMITS, TURNS

__all__ = ["kept_within"]


def kept_within(found: Candidates, problem: IKProblem) -> Candidates:
    """Return candidates; those that break limits that couple joints are `LIMITS`.

    They are moved within where rounding alone leads beyond; what is found is changed.
    """
    rows = problem.rows
    if not len(rows):
        return found
    if problem.has_coupled_turns:
        found.add_doubt(TURNS)
    beyond = rows.excess(found.q)
    at = np.nonzero(found.success & (beyond > 0.0))
    if at[0].size:
        small = beyond[at] <= ROUNDING
        found.q[at] = np.where(small[:, None], problem.within(found.q[at]), found.q[at])
        found.reason[at] = np.where(small, found.reason[at], LIMITS)
        found.settled = found.settled and bool(small.all())
    return found
