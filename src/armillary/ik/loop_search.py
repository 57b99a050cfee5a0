"""A search for cells with closed loops: passive joints are unknowns beside q.

The search solves the errors of goals and the equations of loops together, e(q, p) = 0,
from starts (q, p) at which loops are closed, and with tolerances tighter than asked.
That is exact, but may end on another branch of the loops, or with passive joints beyond
limits. So each q is verified with loops closed on the branch (`LoopCheck`), where only
q counts. What is refused is sought again from the assembly of the right branch at the q
that was found, then from sampled ones, ROUNDS times.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.ik.loop_check import LoopCheck
from armillary.ik.problem import IKProblem, Limits
from armillary.ik.search_step import LIMIT_SLACK
from armillary.kernel.search import Search, SearchPlan, SearchResult
from armillary.kernel.search_layout import SOLVED, UNSOLVED
from armillary.kinematics.closing.branch import home_branch
from armillary.kinematics.closing.stages import block_programs
from armillary.kinematics.inputs import program_of
from armillary.trace import evaluate

__all__ = ["ClosedSamples", "LoopSearch", "loop_constants", "loop_tolerances"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

TIGHTER: Final = 0.5
"""How exact the search is, compared with what is asked for once loops are closed."""
CLOSED: Final = 0.1  # how exact loops are closed, compared with the goals
DRAWS: Final = 8
ROUNDS: Final = 6
"""How often what was found on another branch is sought again."""


def loop_tolerances(problem: IKProblem, squares: Array, exactness: float) -> Array:
    """Return the largest errors of a search: tighter ones of goals, then of loops.

    Args:
        problem: What is reached.
        squares: The largest errors of goals.
        exactness: What may remain of a goal [m or rad].
    """
    longest = max(1.0, *problem.tree.cell.loop_system.sizes)
    closed = CLOSED * exactness / longest
    return np.append(TIGHTER**2 * squares, closed**2)


def loop_constants(problem: IKProblem) -> Array:
    """Return for each block of moved loops a number of its determinant's sign."""
    cell, branch = problem.tree.cell, problem.branch
    seed = (branch or home_branch(cell)).seed
    signs: list[float] = []
    for number in cell.loop_system.needed(problem.selection.passive):
        programs = block_programs(cell, number)
        block = programs.block
        numbers = seed[[*block.inputs, *block.unknowns]].tolist()
        signs.append(float(evaluate(programs.implicit, numbers)[-1]))
    return np.array(signs)


class ClosedSamples:
    """Positions at which loops are closed: q, then passive joints.

    Attributes:
        vectors: Shape (count, n + m) [m or rad].
        closing: The kernel q (..., n) -> passive joints (..., m), NaN where loops
            cannot be closed.
    """

    def __init__(
        self, problem: IKProblem, rng: np.random.Generator, count: int
    ) -> None:
        """Draw about so many, at least one."""
        self.closing = problem.closed(_passive_program(problem))
        self._rest = np.array([problem.selection.rest[k] for k in _passive(problem)])
        lower, upper = problem.start_range
        draws: list[Array] = []
        total = 0
        for _ in range(DRAWS):
            q = rng.uniform(lower, upper, (count, len(lower)))
            p = np.asarray(self.closing(q))
            closes = np.isfinite(p).all(axis=1) & _within(p, problem.passive_limits)
            closes &= problem.rows.holds(q)
            draws.append(np.hstack([q, p])[closes])
            total += int(closes.sum())
            if total >= count // 2:
                break
        if not total:
            draws.append(np.concatenate([problem.home, self._rest])[np.newaxis])
        self.vectors: Array = np.concatenate(draws)[:count]

    @cached_property
    def passive_range(self) -> Limits:
        """Return the least and the greatest passive joints, each of shape (m,)."""
        passive = self.vectors[:, -len(self._rest) :]
        return passive.min(axis=0), passive.max(axis=0)

    def assembled(self, q: Array) -> Array:
        """Return q, shape (count, n), with passive joints; at rest where none close."""
        n = q.shape[-1]
        both = np.empty((len(q), n + len(self._rest)))
        both[:, :n] = q
        passive = np.asarray(self.closing(q))
        both[:, n:] = np.where(np.isfinite(passive), passive, self._rest)
        return both


class LoopSearch:
    """A search whose answers are q, verified on the branch of the loops.

    It is called as `Search` is, with starts of q alone.
    """

    def __init__(
        self, problem: IKProblem, search: Search, samples: ClosedSamples
    ) -> None:
        """Prepare to verify what a search for q and passive joints finds."""
        self._search, self._samples = search, samples
        self._known = samples.vectors
        self._check = LoopCheck(problem)
        self._n = len(problem.joints)
        self._errors = 2 * len(problem.goals)

    def __call__(
        self,
        problems: Array,
        plan: SearchPlan,
        *,
        seeds: Array | None = None,
        threads: int = 1,
        deadline: int = 0,
    ) -> SearchResult:
        """Solve problems; see `Search`.

        What is found on another branch, or with passive joints beyond their limits, is
        sought again: from the right assembly at the q that was found, then from others.
        """
        first = None if seeds is None else self._samples.assembled(seeds)
        found = self._search(
            problems, plan, seeds=first, threads=threads, deadline=deadline
        )
        left, starts = self._refuse(problems, plan, found, threads)
        for other in self._others if left.size else ():
            if not left.size:
                break
            rows = np.ascontiguousarray(problems[left])
            again = self._search(
                rows, plan, seeds=starts, threads=threads, deadline=deadline
            )
            self._refuse(rows, plan, again, threads)
            good = np.flatnonzero(again.endings[:, 0] == SOLVED)
            found.take(left[good], again.at(good))
            left = left[np.isin(np.arange(len(left)), good, invert=True)]
            starts = np.repeat(self._known[[other]], len(left), axis=0)
        return self._of_q(found)

    @cached_property
    def _others(self) -> npt.NDArray[np.int64]:
        """Return the start of each round, one for all: none depends on the others."""
        return np.random.default_rng(0).integers(len(self._known), size=ROUNDS)

    def chain(
        self, problems: Array, plan: SearchPlan, first: Array, *, deadline: int = 0
    ) -> SearchResult:
        """Solve problems one after the other; see `Search.chain`."""
        (start,) = self._samples.assembled(first[np.newaxis])
        found = self._search.chain(problems, plan, start, deadline=deadline)
        self._refuse(problems, plan, found, 1)
        return self._of_q(found)

    def _refuse(
        self, problems: Array, plan: SearchPlan, found: SearchResult, threads: int
    ) -> tuple[npt.NDArray[np.int64], Array]:
        """Mark what is not an answer on the branch; return which, and new starts."""
        n, k, count = self._n, self._errors, self._search.n
        allowed = plan.tolerances[:k] / TIGHTER**2
        ends = plan.constants[: 2 * count].reshape(2, count)[:, n:]
        q = found.unknowns[:, :n]
        checked = self._check(q, problems, allowed, ends, threads)
        is_right = checked[:, k] > 0.0
        if found.failures:
            solved = found.endings[:, 0] == SOLVED
            bad = np.flatnonzero(solved & ~is_right)
            found.errors[solved, :k] = checked[solved, :k]
        else:
            bad = np.flatnonzero(~is_right)
            found.errors[:, :k] = checked[:, :k]
        if not bad.size:
            return bad, q[:0]
        found.endings[bad, 0] = UNSOLVED
        return bad, self._samples.assembled(q[bad])

    def _of_q(self, found: SearchResult) -> SearchResult:
        """Return what was found without passive joints."""
        return SearchResult(
            np.ascontiguousarray(found.unknowns[:, : self._n]),
            np.ascontiguousarray(found.errors[:, : self._errors]),
            found.endings,
            int((found.endings[:, 0] != SOLVED).sum()),
        )


def _passive(problem: IKProblem) -> tuple[int, ...]:
    return problem.selection.passive


def _passive_program(problem: IKProblem) -> Any:
    def passive(_: Any, q: Any) -> Any:
        return [q[k] for k in _passive(problem)]

    return program_of(
        passive, problem.tree, problem.selection, name="passive_of_q", output="found"
    )


def _within(passive: Array, limits: Limits) -> Truths:
    """Return which rows are within limits, shape (count,)."""
    lower, upper = limits
    return np.asarray(
        ((passive >= lower - LIMIT_SLACK) & (passive <= upper + LIMIT_SLACK)).all(
            axis=-1
        )
    )
