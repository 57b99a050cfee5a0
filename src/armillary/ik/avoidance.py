"""Answers free of collision: what they avoid, and which candidates are left.

Candidates that reach their target are tested in one call, and those that touch are
marked. In place of the marked ones a closed form offers its other branches, nearest
first (`nearest_free`), and a search what it finds from more and more other starts
(`search_free`). What is left marked ends as IN_COLLISION, which proves nothing of a
search.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, Self, runtime_checkable

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from armillary.errors import ModelError, printable, quote
from armillary.ik.method import Candidates, IKMethod
from armillary.ik.problem import IKProblem
from armillary.ik.query import BASE_DIMENSIONS, IKQuery
from armillary.ik.reason import Reason
from armillary.ik.whole_turns import nearest_turns
from armillary.kernel.search import SearchOptions
from armillary.kinematics.state import State, bound_state, branch_of, home
from armillary.model.workcell import Workcell

__all__ = [
    "Avoidance",
    "Check",
    "check_of_same",
    "found_from",
    "marked",
    "nearest_free",
    "search_free",
]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

ROUNDS: Final = (8, 24, 96)
"""Starts of each round of a search for answers that touch nothing."""
ONCE: Final = SearchOptions(steps=40, stale_factor=np.inf, starts=1)
AT_ONCE: Final = 65536  # starts
TARGETS_AT_ONCE: Final = 4096  # each with up to 192 branches
SPREAD: Final = 1.5  # how far from `near` half of the starts are, at most [m or rad]
START_SEED: Final = 161803


@runtime_checkable
class Check(Protocol):
    """A test for collision, such as `cell.collision(state)` returns."""

    @property
    def cell(self) -> Workcell:
        """Return the cell whose links are tested."""
        ...

    @property
    def state(self) -> State:
        """Return the state: attachments, moved bases and the branch of loops."""
        ...

    def __call__(self, q: npt.ArrayLike) -> Truths:
        """Return where links touch: all joint positions (..., n) to truths (...)."""
        ...


@runtime_checkable
class BasesCheck(Check, Protocol):
    """A test for collision that takes other poses of bases, too."""

    def at_bases(self, q: npt.ArrayLike, bases: Mapping[str, npt.ArrayLike]) -> Truths:
        """Return where links touch, bases at poses (..., 4, 4) by name."""
        ...


class Avoidance(msgspec.Struct, frozen=True, eq=False):
    """A test for collision as a function of the joints that move.

    Attributes:
        check: The test.
        joints: The places of the joints that move in the cell's q.
        rest: Where all joints are, from which the others take their positions.
        bases: The manipulators whose bases are given with q.
    """

    check: Check
    joints: tuple[int, ...]
    rest: Array
    bases: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, check: Any, cell: Workcell, state: State | None, joints: tuple[int, ...]
    ) -> Self:
        """Return the test for joints of a cell; the others are as in `state`.

        Raises:
            ModelError: `check` is something else, or a check of another cell, of other
                attachments or moved bases, or of another branch.
        """
        bound = home(cell) if state is None else bound_state(cell, state)
        check_of_same(check, cell, bound)
        return cls(check, joints, bound.q)

    def __call__(self, q: Array, poses: Array | None = None) -> Truths:
        """Return where links touch, shape (...).

        Args:
            q: The joints that move, shape (..., n).
            poses: Those of the k bases in the world, shape (..., k, 4, 4).
        """
        whole = np.empty((*q.shape[:-1], len(self.rest)))
        whole[...] = self.rest
        whole[..., list(self.joints)] = q
        if poses is None or not isinstance(self.check, BasesCheck):
            return self.check(whole)
        placed = {name: poses[..., k, :, :] for k, name in enumerate(self.bases)}
        return self.check.at_bases(whole, placed)

    def with_bases(self, names: tuple[str, ...]) -> Avoidance:
        """Return the test in which the bases of manipulators are given with q.

        Raises:
            ModelError: The test takes no bases.
        """
        if not isinstance(self.check, BasesCheck):
            raise ModelError(
                "With bases= the check of avoid= needs a method at_bases(q, bases), as "
                "cell.collision() has; this one only takes q."
            )
        return replace(self, bases=names)


def check_of_same(check: Any, cell: Workcell, bound: State) -> None:
    """Refuse a test for collision of something else.

    Args:
        check: What was given as `avoid`.
        cell: The cell that is moved.
        bound: Its state.

    Raises:
        ModelError: `check` is something else, or a check of another cell, of other
            attachments or moved bases, or of another branch.
    """
    if not isinstance(check, Check):
        raise ModelError(
            "avoid= takes a collision check, such as cell.collision(margin=0.01), not "
            f"{printable(repr(check))}."
        )
    if check.cell is not cell and check.cell != cell:
        raise ModelError(
            f"The collision check to avoid is of another cell, "
            f"{quote(check.cell.name)}: make it of this one, by "
            "avoid=cell.collision(state)."
        )
    tested = bound_state(cell, check.state)
    for k in bound.tree.movable:
        mine, other = bound.tree.bases[k], tested.tree.bases[k]
        if mine.frame != other.frame:
            name = quote(cell.manipulators[k].name)
            raise _elsewhere(
                f"{name} is on {quote(other.on)} in the state of the check and on "
                f"{quote(mine.on)} in that of the question, or elsewhere on it"
            )
    if branch_of(bound) is not branch_of(tested):
        raise _elsewhere("closed loops are on other branches")


def _elsewhere(how: str) -> ModelError:
    return ModelError(
        f"The collision check to avoid is of another state: {how}. Give both the same: "
        "state=state, avoid=cell.collision(state)."
    )


def marked(found: Candidates, query: IKQuery) -> Candidates:
    """Return candidates; those that would succeed but touch are `IN_COLLISION`.

    All are tested in one call; what is found is changed.
    """
    if query.avoid is not None:
        rows, which = np.nonzero(found.success)
        if rows.size:
            poses = query.bases
            if poses is None:
                touching = query.avoid(found.q[rows, which])
            else:
                poses = poses[rows] if poses.ndim > BASE_DIMENSIONS else poses
                touching = query.avoid(found.q[rows, which], poses)
            found.reason[rows[touching], which[touching]] = Reason.IN_COLLISION
    return found


def nearest_free(
    found: Candidates, method: IKMethod, query: IKQuery, problem: IKProblem
) -> Candidates:
    """Return the nearest candidates, others in place of those that touch something.

    Args:
        found: The nearest of a method for each target, or all; it is changed.
        method: Knows all others.
        query: The targets.
        problem: What they are for.
    """
    if query.avoid is None:
        return found
    found = marked(found, query)
    rows = np.flatnonzero(found.reason[:, 0] == Reason.IN_COLLISION)
    if found.q.shape[1] > 1 or not rows.size:
        return found
    found.settled = False
    for first in range(0, len(rows), TARGETS_AT_ONCE):
        part = rows[first : first + TARGETS_AT_ONCE]
        near = _wanted(query, part, problem)
        others = method.candidates(query.at(part, near=near), every=True).nearest(near)
        free = others.success[:, 0]
        found.take(part[free], others, free)
    return found


def search_free(
    found: Candidates,
    search: Callable[[IKQuery], Candidates],
    query: IKQuery,
    problem: IKProblem,
) -> Candidates:
    """Return what a search found, other answers in place of those that touch something.

    They are sought from more and more starts, the same for all targets; half of them
    are around `near` if that is given. The nearest of a round is taken.

    Args:
        found: The candidate of each target; it is changed.
        search: Finds one for each target from the start in `seed`.
        query: The targets.
        problem: What they are for.
    """
    if query.avoid is None:
        return found
    found = marked(found, query)
    rng = np.random.default_rng([START_SEED, query.random_seed])
    for count in ROUNDS:
        rows = np.flatnonzero(found.reason[:, 0] == Reason.IN_COLLISION)
        if not rows.size or query.is_late:
            break
        anywhere = rng.uniform(*problem.start_range, (count, len(problem.joints)))
        around = rng.uniform(-SPREAD, SPREAD, (count // 2, len(problem.joints)))
        piece = max(1, AT_ONCE // count)
        for first in range(0, len(rows), piece):
            part = rows[first : first + piece]
            near = _wanted(query, part, problem)
            starts = np.tile(anywhere, (len(part), 1, 1))
            if query.near is not None:
                starts[:, : len(around)] = near[:, np.newaxis] + around
            others = _tried(search, query, part, starts, problem).nearest(near)
            free = others.success[:, 0]
            found.take(part[free], others, free)
    return found


def _tried(
    search: Callable[[IKQuery], Candidates],
    query: IKQuery,
    rows: npt.NDArray[np.int64],
    starts: Array,
    problem: IKProblem,
) -> Candidates:
    """Return what is found from each of several starts, shape (count, b, n)."""
    once = query.at(rows, explain=False, search_options=ONCE)
    tried = found_from(problem.within(starts), search, once)
    if query.near is not None:
        near = _wanted(query, rows, problem)[:, np.newaxis]
        tried.q = nearest_turns(tried.q, near, problem.limits, problem.turning)
    tried.q = problem.within(tried.q)
    return marked(tried, once)


def found_from(
    starts: Array, search: Callable[[IKQuery], Candidates], query: IKQuery
) -> Candidates:
    """Return what is found from several starts for each target.

    Args:
        starts: Joint positions, shape (count, b, n).
        search: Finds a candidate for each target from the start in `seed`.
        query: The targets.
    """
    count, width, n = starts.shape
    rows = np.repeat(np.arange(count, dtype=np.int64), width)
    tried = search(query.at(rows, near=None, seed=starts.reshape(-1, n)))
    parts: dict[str, Any] = {
        name: array.reshape(count, width, *array.shape[2:])
        for name, array in tried.arrays.items()
    }
    return Candidates(**parts)


def _wanted(query: IKQuery, rows: npt.NDArray[np.int64], problem: IKProblem) -> Array:
    """Return what answers to some targets are to be near, shape (count, n)."""
    wanted = query.wanted
    there = wanted[rows] if wanted.ndim > 1 else np.tile(wanted, (len(rows), 1))
    return np.clip(there, *problem.finite_limits)
