"""Paths: which of all answers to take at each pose, so that the arm need not jump."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import ShapeError
from armillary.ik.method import Candidates
from armillary.ik.solution import Solution
from armillary.ik.targets import as_joints, as_reals

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
        return cost_of(self, None)


def measure_of(
    largest_step: Any, weights: Any, shape: tuple[int, int]
) -> tuple[Array, Array]:
    """Return the largest step of each joint to each target, and weights of joints.

    Args:
        largest_step: Shape (), (n,) or (count, n).
        weights: Shape (n,), or None for equal ones.
        shape: (count, n).

    Returns:
        Steps, shape (count, n), and weights of which the largest is 1, shape (n,).

    Raises:
        ShapeError: A shape does not fit, or a number is not above 0.
    """
    count, n = shape
    steps = as_reals(largest_step, "largest_step")
    if steps.shape not in {(), (n,), (count, n)}:
        raise ShapeError(
            f"largest_step has shape {steps.shape}; it is a number, one for each of "
            f"{n} joints, shape ({n},), or those for each target, shape ({count}, {n})."
        )
    if not (steps > 0.0).all():
        raise ShapeError("largest_step must be above 0, for each joint and target.")
    parts = as_joints(np.ones(n) if weights is None else weights, "weights", n)
    if parts.shape != (n,):
        raise ShapeError(f"weights has shape {parts.shape}, not ({n},).")
    if not ((parts > 0.0) & np.isfinite(parts)).all():
        raise ShapeError("weights must be finite and above 0, for each joint.")
    return np.broadcast_to(steps, shape), parts / parts.max()


def judged(
    way: Candidates,
    largest_step: float | Array,
    start: Array | None = None,
    *,
    moves: Array | None = None,
    weights: Array | None = None,
) -> Path:
    """Return a path with its jumps.

    Args:
        way: The answers.
        largest_step: A larger step of a joint is a jump [m or rad], shape (), (n,) or
            (count, n).
        start: Where the arm comes from, shape (n,).
        weights: How much a step of each joint counts, shape (n,); by default 1.
        moves: How far each target is from the one before, shape (count,), in any unit;
            by default equally far.
    """
    answer = Solution(way, (len(way.q),))
    smooth = ~are_large(steps_of(answer.q, start), largest_step) & answer.success
    steps = _steps(answer.q, start, weights)
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


def best_of(paths: Sequence[Path], weights: Array | None = None) -> Path:
    """Return the path with the fewest jumps, and of those the least squared steps."""
    return min(paths, key=lambda path: cost_of(path, weights))


def cost_of(path: Path, weights: Array | None) -> tuple[int, float]:
    """Return what makes a path worse: jumps, then squares of weighted steps."""
    steps = np.delete(_steps(path.answer.q, weights=weights), path.jumps)
    return len(path.jumps), float(steps @ steps)


def steps_of(q: Array, start: Array | None = None) -> Array:
    """Return how far each joint moves to each target, shape (n, count); 0 at first."""
    by_joint = np.ascontiguousarray(q.T)  # much quicker than row by row
    came = by_joint[:, :1] if start is None else start[:, np.newaxis]
    return np.abs(np.diff(by_joint, prepend=came))


def are_large(steps: Array, largest_step: float | Array) -> npt.NDArray[np.bool_]:
    """Return at which targets a joint moves too far, shape (count,), also where NaN.

    Args:
        steps: As `steps_of` has them, shape (n, count).
        largest_step: Shape (), (n,) or (count, n).
    """
    most = np.broadcast_to(largest_step, steps.shape[::-1]).T
    return ~np.asarray((steps <= most).all(axis=0))


def _steps(q: Array, start: Array | None = None, weights: Array | None = None) -> Array:
    """Return the largest weighted step to each target, shape (count,); 0 at first."""
    steps = steps_of(q, start)
    if weights is not None:
        steps *= weights[:, np.newaxis]
    return steps.max(axis=0, initial=0.0)
