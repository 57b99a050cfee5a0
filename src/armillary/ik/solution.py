"""What inverse kinematics answers: one answer to each target, or all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from armillary.ik.method import Candidates, Doubts, residual_of
from armillary.ik.problem import IKProblem
from armillary.ik.reason import COMPLETE, Doubt, Reason
from armillary.model.display import table

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Reasons = npt.NDArray[np.int8]
Whole = npt.NDArray[np.int64]
Batch = tuple[int, ...]

SAME = 1e-6
NEARLY = 1e-3, 1e-2  # misses up to these are worth a hint at the tolerance [m], [rad]


class Solution:
    """The answers to a batch of targets; its arrays are read-only.

    Attributes:
        q: Joint positions [m or rad], shape (..., n): an answer where `success`, else
            the nearest that was found; NaN for targets that are not a pose.
    """

    _row: tuple[Array, Callable[[Array], Candidates]]

    def __init__(self, found: Candidates, batch: Batch) -> None:
        """Keep the answers to a batch: one candidate for each of its targets."""
        vars(self)["_found"] = found
        self.q = _closed(found.q.reshape(*batch, found.q.shape[-1]))

    @classmethod
    def of_row(
        cls,
        row: Array,
        n: int,
        found: Callable[[Array], Candidates],
        *,
        met: bool = True,
    ) -> Self:
        """Return the answer to one target, of which only q is looked at now.

        Args:
            row: Numbers of their own, of which q are the first n.
            n: How many joints there are.
            found: Makes the candidate of a row when somebody asks for more.
            met: Whether it meets the target.
        """
        solution = cls.__new__(cls)
        row.setflags(write=False)
        solution.q = row[:n]
        solution.success = _TRUTHS[met]
        solution._row = row, found
        return solution

    @cached_property
    def _found(self) -> Candidates:
        row, found = self._row
        return found(row)

    @cached_property
    def success(self) -> Truths:
        """Whether each target is met within the tolerances, shape (...)."""
        return self._part(self._found.success)

    @cached_property
    def residual(self) -> Array:
        """Distance [m] and angle [rad] that remain, the largest, shape (..., 2)."""
        return self._part(self._found.residual, 2)

    @cached_property
    def reason(self) -> Reasons:
        """Why, as numbers of `Reason`, shape (...)."""
        return self._part(self._found.reason)

    @cached_property
    def steps(self) -> Whole:
        """Steps of the search from the start that led to q, shape (...).

        They are 0 where a closed form answered.
        """
        return self._part(self._found.steps)

    @cached_property
    def starts(self) -> Whole:
        """The number of the start that led to q, from 1 on, shape (...).

        Where no answer was found, it is the number of all starts.
        """
        return self._part(self._found.starts)

    def _part(self, array: Any, *core: int) -> Any:
        return _closed(array.reshape((*self.q.shape[:-1], *core)))

    def summary(self) -> dict[str, int]:
        """Return how many targets ended how, most frequent first."""
        return Reason.summary(self.reason)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._found, self.q.shape[:-1])

    def __repr__(self) -> str:
        return f"<Solution: {self}>"

    def _repr_html_(self) -> str:
        rows = (
            (name, number, Reason[name].sentence)
            for name, number in self.summary().items()
        )
        return table("Solution", ("reason", "targets", "meaning"), rows)

    def __str__(self) -> str:
        text = Reason.text(self.reason, self.success)
        return text + _nearly(self.reason, self.residual)


class Answers:
    """Every answer to a batch of targets; its arrays are read-only.

    Attributes:
        q: Joint positions [m or rad], shape (..., b, n). Of a closed form, those beyond
            the joint limits stand here, too; NaN where a branch does not exist.
        branches: The name of each of the b branches of a closed form, else empty.
    """

    _branches: tuple[Array, Array, Array, Doubts]

    def __init__(
        self,
        found: Candidates,
        batch: Batch,
        problem: IKProblem,
        branches: tuple[tuple[str, ...], ...] = (),
    ) -> None:
        """Keep the candidates for the targets of a batch, and what they are called."""
        self._problem = problem
        vars(self)["_found"] = found
        self.q = _closed(found.q.reshape(*batch, *found.q.shape[1:]))
        self.branches = branches

    def __reduce__(self) -> tuple[Any, ...]:
        batch = self.q.shape[:-2]
        return Answers, (self._found, batch, self._problem, self.branches)

    @classmethod
    def of_branches(
        cls,
        found: tuple[Array, Array, Array, Doubts],
        problem: IKProblem,
        branches: tuple[tuple[str, ...], ...],
    ) -> Self:
        """Return the branches of one target, of which only q is looked at now.

        Args:
            found: q (b, n), squares of what remains (b, 2), numbers of `Reason` (b,),
                and why there may be others, a number of `Doubt`, or how it is made.
            problem: What they are for.
            branches: What they are called.
        """
        answers = cls.__new__(cls)
        answers._branches, answers._problem = found, problem
        answers.q = found[0]
        answers.q.setflags(write=False)
        answers.branches = branches
        return answers

    @cached_property
    def _found(self) -> Candidates:
        q, squares, numbers, doubt = self._branches
        return Candidates(
            q=q[np.newaxis],
            reason=numbers.astype(np.int8),
            residual=lambda: residual_of(squares),
            doubt=doubt,
        )

    @cached_property
    def complete(self) -> Truths:
        """Whether these are all answers to each target, shape (...).

        Whole turns of joints do not count. Closed forms know all answers, except where
        `why_incomplete` says otherwise; a search does not.
        """
        return _closed(self._found.complete.reshape(self.q.shape[:-2]))

    def why_incomplete(self, index: Any = ()) -> str:
        """Return why there may be more answers to one target; empty if there are none.

        Args:
            index: Which target of the batch.
        """
        doubt = self._found.doubt.reshape(self.q.shape[:-2])[index]
        return "" if doubt == COMPLETE else Doubt(int(doubt)).sentence

    @cached_property
    def reason(self) -> Reasons:
        """Why, as numbers of `Reason`, shape (..., b)."""
        return _closed(self._found.reason.reshape(self.q.shape[:-1]))

    @cached_property
    def success(self) -> Truths:
        """Which of them reach the target within the limits, shape (..., b)."""
        return _closed(self._found.success.reshape(self.q.shape[:-1]))

    @cached_property
    def residual(self) -> Array:
        """Return the distance [m] and angle [rad] that remain, shape (..., b, 2)."""
        return _closed(self._found.residual.reshape(*self.reason.shape, 2))

    @property
    def count(self) -> Whole:
        """Return how many branches succeed, shape (...)."""
        return np.asarray(self.success.sum(axis=-1), dtype=np.int64)

    def distinct(self, index: Any = ()) -> Array:
        """Return the answers to one target that differ from each other, shape (k, n).

        At the edge of reach and at singular targets several branches give the same, or
        the same but for whole turns of joints.

        Args:
            index: Which target of the batch.
        """
        q = self.q[index][self.success[index]]
        return q[self._problem.distinct(q, SAME)]

    def __repr__(self) -> str:
        text = f"{int(self.success.sum())} to {self.count.size} targets"
        return f"<Answers: {text}{_nearly(self.reason, self.residual)}>"


def _nearly(reason: Reasons, residual: Array) -> str:
    """Return a hint at the tolerance where answers miss it by little."""
    near = (reason == Reason.NOT_FOUND) & (residual <= NEARLY).all(axis=-1)
    if not near.any():
        return ""
    distance, angle = residual[near].max(axis=0)
    return (
        f"; {int(near.sum())} not found are within {distance:.1g} m and {angle:.1g} "
        "rad of the target, but not within tolerance=; a wider one accepts them"
    )


def _closed(array: Any) -> Any:
    array.setflags(write=False)
    return array


_TRUTHS: Final[tuple[Truths, Truths]] = (
    _closed(np.array(False)),
    _closed(np.array(True)),
)
