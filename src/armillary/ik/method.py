"""What a method of inverse kinematics is: a query in, candidates for answers out."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from armillary.ik.problem import IKProblem
from armillary.ik.query import IKQuery, Tolerance
from armillary.ik.reason import (
    COMPLETE,
    NOT_FOUND,
    OUT_OF_REACH,
    SEARCHED,
    Reason,
    succeeded,
)

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Reasons = npt.NDArray[np.int8]
Whole = npt.NDArray[np.int64]
# An array, or how it is made when somebody asks.
Lazy = npt.NDArray[Any] | Callable[[], npt.NDArray[Any]]
# Why there may be others, numbers of `Doubt`: of all targets, of each, or how made.
Doubts = int | Reasons | Callable[[], Reasons]


ARRAYS = "q", "reason", "residual", "steps", "starts"


class IKMethod(Protocol):
    """A way to find joint positions for targets of a `IKProblem`.

    Methods are tried in order: what one leaves in doubt, the next starts from. See
    `answer.py` for how an answer is made of candidates.
    """

    @property
    def branches(self) -> tuple[tuple[str, ...], ...]:
        """Return the name of each candidate; empty where they have none."""
        ...

    def candidates(self, query: IKQuery, *, every: bool = False) -> Candidates:
        """Return candidates for each target.

        Those in which links touch by `query.avoid` have the reason `IN_COLLISION`.

        Args:
            query: The targets.
            every: Whether all that the method knows are asked for; else those among
                which the answer nearest to `query.near` is, one or more.
        """
        ...


def squares_of(tolerance: Tolerance) -> tuple[float, float]:
    """Return the squares of a distance [m^2] and of the chord of an angle."""
    distance, angle = tolerance
    return distance**2, (2.0 * math.sin(0.5 * min(angle, math.pi))) ** 2


def residual_of(squares: Array) -> Array:
    """Return distance [m] and angle [rad] of such squares, shape (..., 2)."""
    roots = np.sqrt(squares)
    roots[..., 1] = 2.0 * np.arcsin(np.minimum(0.5 * roots[..., 1], 1.0))
    return roots


def squares_from(residual: Array) -> Array:
    """Return the squares of which `residual_of` makes such numbers, shape (..., 2)."""
    roots = residual.copy()
    roots[..., 1] = 2.0 * np.sin(0.5 * roots[..., 1])
    return roots * roots


class Candidates:
    """What a method finds: b candidates for each of count targets.

    Attributes:
        q: Joint positions [m or rad], shape (count, b, n); NaN where there are none.
        settled: Whether each target has its answer, so that nothing else is tried.
        jumps: Which targets have an answer much farther from `query.near` than they are
            themselves, shape (count,): there a local search may find a nearer one.
    """

    def __init__(
        self,
        *,
        q: Array,
        reason: Lazy,
        residual: Lazy,
        steps: Lazy | None = None,
        starts: Lazy | None = None,
        doubt: Doubts = SEARCHED,
        settled: bool = False,
        jumps: Truths | None = None,
    ) -> None:
        """Keep candidates; see the properties for the others of the arrays."""
        self.q = q
        self._parts = reason, residual, steps, starts
        self._doubt, self.settled, self.jumps = doubt, settled, jumps

    @cached_property
    def reason(self) -> Reasons:
        """Return how each ends, as numbers of `Reason`, shape (count, b)."""
        return self._made(0)

    @cached_property
    def residual(self) -> Array:
        """Return the distance [m] and angle [rad] that remain, shape (count, b, 2)."""
        return self._made(1, 2)

    @cached_property
    def steps(self) -> Whole:
        """Return the steps of a search, shape (count, b); 0 of a closed form."""
        return self._made(2)

    @cached_property
    def starts(self) -> Whole:
        """Return from how many starts a search went, shape (count, b)."""
        return self._made(3)

    @property
    def success(self) -> Truths:
        """Return which of them reach the target within the limits, shape (count, b)."""
        return succeeded(self.reason)

    @property
    def doubt(self) -> Reasons:
        """Return why there may be others, as numbers of `Doubt`, shape (count,)."""
        if callable(self._doubt):
            self._doubt = self._doubt()
        doubt = np.asarray(self._doubt, np.int8)
        return doubt if doubt.ndim else np.full(len(self.q), doubt)

    def add_doubt(self, why: int, of: Any = True) -> None:
        """Say why there may be others, of those that seemed complete.

        Args:
            why: A number of `Doubt`.
            of: Of which targets, (count,); of all by default.
        """
        self._doubt = np.where(self.complete & of, why, self.doubt).astype(np.int8)

    def end_doubt(self, of: Whole) -> None:
        """Say of targets, by their indices, that there are no others."""
        doubt = self.doubt.copy()
        doubt[of] = COMPLETE
        self._doubt = doubt

    @property
    def complete(self) -> Truths:
        """Return where there are no others, but for whole turns of joints, (count,)."""
        return self.doubt == COMPLETE

    def _made(self, k: int, *core: int) -> Any:
        part, shape = self._parts[k], (*self.q.shape[:-1], *core)
        if part is None:
            return np.zeros(shape, np.int64)
        return (part() if callable(part) else part).reshape(shape)

    @property
    def arrays(self) -> dict[str, Any]:
        """Return all arrays by name."""
        return {name: getattr(self, name) for name in ARRAYS}

    def __reduce__(self) -> tuple[Any, ...]:
        return _candidates, (self.arrays, self.doubt)

    def at(self, rows: Any) -> Candidates:
        """Return the candidates for some targets: indices, truths or a slice."""
        parts = {name: array[rows] for name, array in self.arrays.items()}
        return Candidates(**parts, doubt=lambda: self.doubt[rows])

    def joined(self, other: Candidates) -> Candidates:
        """Return the candidates of both for the same targets."""
        parts: dict[str, Any] = {
            name: np.concatenate([array, getattr(other, name)], axis=1)
            for name, array in self.arrays.items()
        }
        return Candidates(**parts)

    def chosen(self, k: Whole) -> Candidates:
        """Return one candidate for each target, the k-th, in arrays of their own."""
        rows = np.arange(len(k))
        parts = {name: array[rows, k, None] for name, array in self.arrays.items()}
        return Candidates(**parts, doubt=lambda: self.doubt)

    def take(self, rows: Whole, other: Candidates, which: Any = ...) -> None:
        """Write over the candidates for some targets those of another, in order.

        Args:
            rows: The targets.
            other: Has candidates for others or for these alone.
            which: Those of it that are taken.
        """
        for name, array in self.arrays.items():
            array[rows] = getattr(other, name)[which]

    def nearest(self, near: Array) -> Candidates:
        """Return the best candidate for each target: by its reason, then the nearest.

        near: Joint positions, shape (n,) or (count, n).
        """
        if self.q.shape[1] == 1:
            return self
        rank = RANKS[self.reason]
        steps = ((self.q - near[..., np.newaxis, :]) ** 2).sum(axis=2)
        behind = rank > rank.min(axis=1, keepdims=True)
        return self.chosen(
            np.where(behind, np.inf, np.nan_to_num(steps)).argmin(axis=1)
        )


def prove_far(found: Candidates, problem: IKProblem, query: IKQuery) -> None:
    """End the doubt about targets that are farther away than the arm is long."""
    rows = np.flatnonzero((found.reason == NOT_FOUND).any(axis=1))
    if not rows.size:
        return
    targets = query.targets[rows].reshape(rows.size, -1)
    rows = rows[problem.out_of_reach(targets, query.tolerance[0])]
    reason = found.reason[rows]
    found.reason[rows] = np.where(reason == NOT_FOUND, OUT_OF_REACH, reason)
    found.end_doubt(rows)


def _candidates(arrays: dict[str, Any], doubt: Reasons) -> Candidates:
    """Return candidates that were pickled."""
    return Candidates(**arrays, doubt=doubt)


# How good a candidate is by its reason: the less the better.
RANKS = np.zeros(len(Reason))
RANKS[[Reason.IN_COLLISION, Reason.JUMP]] = 0.5
RANKS[[Reason.LIMITS, Reason.NOT_FOUND, Reason.TIMEOUT]] = 1.0, 2.0, 2.0
RANKS[Reason.OUT_OF_REACH] = 3.0
