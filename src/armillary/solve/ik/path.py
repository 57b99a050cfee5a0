"""Paths: which of all answers to take at each pose, so that the arm need not jump."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.solve.ik.answers import Answers
from armillary.solve.ik.solution import Solution

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

# A jump weighs more than any number of steps between which there is none.
JUMP = 1e9


class Path(NamedTuple):
    """How a sequence of targets is followed.

    Attributes:
        answer: The answer to each.
        jumps: Which of them could only be reached by a jump from the one before, or not
            at all.
    """

    answer: Solution
    jumps: Places

    @property
    def largest_step(self) -> float:
        """Return the most that a joint moves between neighbours, jumps left out."""
        steps = np.delete(_steps(self.answer.q), self.jumps)
        return float(steps.max(initial=0.0))


def judged(answer: Solution, largest_step: float, start: Array | None = None) -> Path:
    """Return a path with its jumps: steps of a joint beyond `largest_step`."""
    steps = _steps(answer.q, start)
    return Path(answer, np.flatnonzero(~((steps <= largest_step) & answer.success)))


def best_of(paths: Sequence[Path]) -> Path:
    """Return the path with the fewest jumps, and of those that with the least step."""
    return min(paths, key=lambda path: (len(path.jumps), path.largest_step))


def through_branches(
    answers: Answers, other: Solution, largest_step: float, start: Array | None
) -> Solution:
    """Return the way through the branches of a closed form that jumps least often.

    Of those it has the least sum of squared steps (Viterbi 1967). `other` answers where
    there is no branch, and `start` is where the arm comes from.
    """
    some = np.flatnonzero(answers.success.any(axis=1))
    q, residual = other.q.copy(), other.residual.copy()
    reason = other.reason.copy()
    if some.size:
        chosen = _cheapest(answers.q[some], answers.success[some], largest_step, start)
        q[some] = answers.q[some, chosen]
        residual[some] = answers.residual[some, chosen]
        reason[some] = answers.reason[some, chosen]
    return Solution(
        q=q, reason=reason, residual=residual, steps=other.steps, starts=other.starts
    )


def _cheapest(
    q: Array, success: npt.NDArray[np.bool_], largest_step: float, start: Array | None
) -> Places:
    """Return the branch to take at each place, shape (count,)."""

    def weight(a: Array, b: Array) -> Array:
        step: Array = np.abs(a - b).max(axis=-1)
        cost: Array = np.where(step <= largest_step, step * step, JUMP + step)
        return cost

    first = np.zeros(q.shape[1]) if start is None else weight(q[0], start)
    cost = np.where(success[0], first, np.inf)
    before = np.zeros(q.shape[:2], np.int64)
    with np.errstate(invalid="ignore"):
        for k in range(1, len(q)):
            total = cost[:, None] + weight(q[k - 1][:, None], q[k][None])
            total[~success[k - 1]] = np.inf
            before[k] = total.argmin(axis=0)
            cost = np.where(success[k], total.min(axis=0), np.inf)
    chosen = np.empty(len(q), np.int64)
    chosen[-1] = cost.argmin()
    for k in range(len(q) - 1, 0, -1):
        chosen[k - 1] = before[k, chosen[k]]
    return chosen


def _steps(q: Array, start: Array | None = None) -> Array:
    """Return the most that a joint moves to each place, shape (count,); 0 at first."""
    came = q[:1] if start is None else start[None]
    return np.abs(np.diff(q, axis=0, prepend=came)).max(axis=1, initial=0.0)
