"""Paths: which of all answers to take at each pose, so that the arm need not jump."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.ik.method import Candidates
from armillary.ik.solution import Solution

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# A step that is larger than both beside it by this factor is a jump to another answer,
# however small it is, unless the target moves farther by as much.
SWITCH = 4.0
LEAST_SWITCH = 1e-3  # [m or rad]


class Path(NamedTuple):
    """How a sequence of targets is followed.

    Attributes:
        answer: The answer to each target.
        jumps: Indices of the targets that could only be reached by a jump from the one
            before, or not at all: by a step beyond `largest_step`, or one that is much
            larger than those before and after it.
    """

    answer: Solution
    jumps: Indices

    @property
    def largest_step(self) -> float:
        """Return the most that a joint moves between neighbours, jumps left out."""
        steps = np.delete(_steps(self.answer.q), self.jumps)
        return float(steps.max(initial=0.0))

    @property
    def is_uneven(self) -> bool:
        """Return whether a step is much larger than the mean."""
        steps = _steps(self.answer.q)[1:]
        return bool(steps.max(initial=0.0) > SWITCH * steps.sum() / max(len(steps), 1))

    @property
    def cost(self) -> tuple[int, float]:
        """Return what makes one path worse than another: jumps, then squared steps."""
        steps = np.delete(_steps(self.answer.q), self.jumps)
        return len(self.jumps), float(steps @ steps)


def judged(
    way: Candidates,
    largest_step: float,
    start: Array | None = None,
    *,
    moves: Array | None = None,
) -> Path:
    """Return a path with its jumps.

    Args:
        way: The answers.
        largest_step: A larger step of a joint is a jump [m or rad].
        start: Where the arm comes from, shape (n,).
        moves: How far each target is from the one before, shape (count,), in any unit;
            by default equally far.
    """
    answer = Solution(way, (len(way.q),))
    steps = _steps(answer.q, start)
    smooth = (steps <= largest_step) & answer.success
    moves = np.ones(len(steps)) if moves is None else moves
    smooth[1:] &= ~_stands_out(steps[1:], moves[1:])
    return Path(answer, np.flatnonzero(~smooth))


def _stands_out(steps: Array, moves: Array) -> npt.NDArray[np.bool_]:
    """Return which steps are much larger than both beside them, shape (count,)."""

    def beside(sizes: Array) -> Array:
        return np.maximum(np.append(0.0, sizes[:-1]), np.append(sizes[1:], 0.0))

    if len(steps) == 1:
        return np.zeros(1, np.bool_)  # there is nothing to compare it with
    most = SWITCH * beside(steps) + LEAST_SWITCH
    is_large = np.asarray(steps > most)
    if is_large.any():  # a target that moves farther than those beside may need a step
        farther = moves / np.maximum(beside(moves), np.finfo(np.float64).tiny)
        is_large &= steps > most * np.maximum(1.0, farther)
    return is_large


def best_of(paths: Sequence[Path]) -> Path:
    """Return the path with the fewest jumps, and of those the least squared steps."""
    return min(paths, key=lambda path: path.cost)


def _steps(q: Array, start: Array | None = None) -> Array:
    """Return the most that a joint moves to each target, shape (count,); 0 at first."""
    by_joint = np.ascontiguousarray(q.T)  # much quicker than row by row
    came = by_joint[:, :1] if start is None else start[:, np.newaxis]
    return np.abs(np.diff(by_joint, prepend=came)).max(axis=0, initial=0.0)
