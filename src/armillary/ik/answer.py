"""One answer to each target: which candidate it is, and what is tried where none is.

candidates     of the first closed form; without one, the answer of the search
nearest        by the sum of squares of steps from `near`, of those within limits
approached     much farther from `near` than its target: a local search may find a
nearer answer, where more joints than needed leave a choice
met at limits  beyond limits by little: a local search from the limits lets the
other joints make up for that
put at limits  beyond limits or out of reach: the nearest vector within them
in doubt       NOT_FOUND, or LIMITS of a form that does not know all answers: the
next method starts from there
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from armillary.forks import IMPORT_LOCK
from armillary.ik.closed_forms.program import LEAST_STEP, NEARBY, STEEP
from armillary.ik.method import Candidates, IKMethod, prove_far, residual_of
from armillary.ik.numeric import NumericSearch
from armillary.ik.problem import IKProblem
from armillary.ik.query import IKQuery
from armillary.ik.reason import (
    IN_COLLISION,
    INVALID_TARGET,
    LIMITS,
    NOT_FOUND,
    OUT_OF_REACH,
    succeeded,
)
from armillary.kernel.search_layout import CLOSE

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

BEYOND = 0.02  # how far beyond limits an answer is sought within them [m or rad]
WORTH_SEARCHING = 100.0  # most tolerances that a local search is expected to close


def answer(
    forms: Sequence[IKMethod], numeric: NumericSearch, query: IKQuery
) -> Candidates:
    """Return the answer to each target as its only candidate.

    That is the nearest candidate of the first form. Where it is much farther from
    `near` than its target, a local search may find a nearer one; what is beyond limits
    is put at them; and where there is doubt, the next method starts from there.

    Args:
        forms: Closed forms, in the order in which they are tried.
        numeric: The search that is tried last.
        query: The targets.
    """
    if not forms:
        return _searched(numeric, query)
    first, *others = forms
    candidates = first.candidates(query)
    if candidates.settled:
        return candidates
    problem = numeric.problem
    wanted = np.clip(query.wanted, *problem.finite_limits)
    candidates = candidates.nearest(wanted)
    prove_far(candidates, problem, query)
    if (candidates.reason == OUT_OF_REACH).all():  # nothing is tried
        _put_at_limits(candidates, problem, query, wanted)
        return candidates
    can_search = problem.can_search and query.can_search
    if query.near is not None and problem.can_search and query.held is None:
        candidates = _approached(candidates, numeric, query, wanted)
        if candidates.success.all():
            return candidates
    reason = candidates.reason[:, 0]
    blocked = reason == LIMITS
    touching = reason == IN_COLLISION
    doubt = reason == NOT_FOUND
    if can_search:
        _met_at_limits(candidates, numeric, query)
        blocked = candidates.reason[:, 0] == LIMITS
    _put_at_limits(candidates, problem, query, wanted)
    doubt = doubt | (blocked & ~candidates.complete)
    rows = np.flatnonzero(doubt)
    if rows.size and query.can_search and (others or problem.can_search):
        left = query.at(rows, near=None, seed=candidates.q[rows, 0])
        candidates.take(rows, answer(others, numeric, left))
        found_there = succeeded(reason) | (reason == IN_COLLISION)
        reason[blocked & ~found_there] = LIMITS
    rows = np.flatnonzero(touching & ~candidates.complete)
    if rows.size and query.can_search:
        _search_free(candidates, numeric, query, rows)
    return candidates


def _searched(numeric: NumericSearch, query: IKQuery) -> Candidates:
    """Return what a search finds, nearer answers where a free joint may be given.

    They are sought for answers far from `near`, which local searches do not find; the
    search from many starts then answers only what these miss.
    """
    problem = numeric.problem
    if query.near is None or query.deadline or query.search_options is not None:
        return numeric.candidates(query)
    if not (problem.is_redundant and problem.can_search):
        return numeric.candidates(query)
    found = numeric.local(query)
    near = np.clip(query.near, *problem.finite_limits)
    apart = found.q[:, 0] - near
    is_close = found.success[:, 0] & (np.abs(apart) <= CLOSE).all(axis=1)
    far = np.flatnonzero(~is_close)
    if not far.size:
        return found
    with IMPORT_LOCK:
        from armillary.ik.free_joint import free_joint

    free = free_joint(problem)
    if free is not None and free.is_quick:
        success = found.success[far, 0]
        apart = apart[far]
        steps = np.where(success, (apart * apart).sum(axis=1), np.inf)
        others = free.nearest(query.at(far), steps)
        apart = others.q[:, 0] - (near if near.ndim == 1 else near[far])
        nearer = others.success[:, 0] & ((apart**2).sum(axis=1) < steps)
        found.take(far[nearer], others, nearer)
        far = far[~others.success[:, 0]]
    if far.size:
        found.take(far, numeric.candidates(query.at(far)))
    return found


def _approached(
    found: Candidates, numeric: NumericSearch, query: IKQuery, wanted: Array
) -> Candidates:
    """Return answers with those that are far from `near` by a local search."""
    q, reason = found.q[:, 0], found.reason[:, 0]
    jumps = found.jumps
    if jumps is None:
        jumps = _jumps(found, numeric.problem, query, wanted)
    if found.complete.any():  # farther beyond limits it proves that none is near
        apart = np.abs(q - numeric.problem.within(q))
        jumps = jumps & ((apart <= BEYOND).all(axis=1) | ~found.complete)
    jumps = jumps & (reason != OUT_OF_REACH) & (reason != INVALID_TARGET)
    rows = np.flatnonzero(jumps)
    if not rows.size:
        return found
    local = numeric.local(query.at(rows))
    there = wanted if wanted.ndim == 1 else wanted[rows]
    steps, others = (((x - there) ** 2).sum(axis=1) for x in (q[rows], local.q[:, 0]))
    better = local.success[:, 0] & ((others < steps) | ~succeeded(reason[rows]))
    if len(rows) == len(q) and better.all():
        return local
    found.take(rows[better], local, better)
    return found


def _search_free(
    found: Candidates,
    numeric: NumericSearch,
    query: IKQuery,
    rows: npt.NDArray[np.int64],
) -> None:
    """Write over answers to some targets, which touch something, those that do not."""
    if numeric.problem.can_search:
        others = numeric.candidates(query.at(rows))
        free = others.success[:, 0]
        found.take(rows[free], others, free)


def _jumps(
    found: Candidates, problem: IKProblem, query: IKQuery, near: Array
) -> Truths:
    """Return which answers are much farther from `near` than their targets, or none."""
    steps = ((found.q[:, 0] - near) ** 2).sum(axis=1)
    # A step far larger than the way of its target, in parts of the arm, is a jump.
    steps = np.where(found.success[:, 0], steps, np.inf)
    squares = problem.squares(near, query.targets[:, 0])
    apart = squares[:, 0] / problem.size**2 + squares[:, 1]
    return (steps > LEAST_STEP**2) & (apart < np.minimum(steps / STEEP, NEARBY))


def _met_at_limits(found: Candidates, numeric: NumericSearch, query: IKQuery) -> None:
    """Replace misses that a small change turns into answers with joints at limits.

    A branch that is a little beyond limits, put at them, misses by about as much; a
    local search lets the other joints make up for that.
    """
    rows = np.flatnonzero((found.reason[:, 0] == LIMITS) & found.complete)
    if not rows.size:
        return
    problem = numeric.problem
    q = found.q[rows, 0]
    inside = problem.within(q)
    near = (np.abs(q - inside) <= BEYOND).all(axis=1)
    rows, inside = rows[near], inside[near]
    if rows.size:
        remains = residual_of(problem.squares(inside, query.targets[rows, 0]))
        near = (remains <= WORTH_SEARCHING * np.array(query.tolerance)).all(axis=1)
        rows, inside = rows[near], inside[near]
    if rows.size:
        local = numeric.local(query.at(rows, near=inside))
        good = local.success[:, 0]
        found.take(rows[good], local, good)


def _put_at_limits(
    found: Candidates, problem: IKProblem, query: IKQuery, wanted: Array
) -> None:
    """Write over misses what is nearest to them within limits."""
    reason = found.reason[:, 0]
    rows = np.flatnonzero((reason == LIMITS) | (reason == OUT_OF_REACH))
    if rows.size:
        q = np.where(np.isnan(found.q[:, 0]), wanted, found.q[:, 0])[rows]
        found.q[rows, 0] = q = problem.within(q)
        squares = problem.squares(q, query.targets[rows, 0])
        found.residual[rows, 0] = residual_of(squares)
