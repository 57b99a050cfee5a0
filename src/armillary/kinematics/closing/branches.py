"""The branches of a cell's loops, and their names."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, StateError, quote
from armillary.kinematics.closing.branch import Branch, home_branch
from armillary.kinematics.closing.solver import (
    LoopReason,
    loop_reasons,
    solved_near,
    solved_on,
    walked,
)
from armillary.kinematics.closing.stages import AssemblyGrid, nearest_rows, period_of
from armillary.kinematics.joint_vector import numbers_of
from armillary.model.fields import kept
from armillary.model.frame import FrameRef
from armillary.model.link_poses import poses_of
from armillary.model.tree import Tree
from armillary.model.unit import Unit
from armillary.model.workcell import IN_WORLD, Workcell
from armillary.spatial.pose import IDENTITY

__all__ = ["Branches", "LoopAssemblies", "bound_passive", "replaced_passive"]

Array = npt.NDArray[np.float64]

HOME: Final = "home"
PLACES: Final = 8
"""Joint positions besides home at which assemblies are numbered."""
BASES: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
"""Bases of the coordinates of places: a Halton sequence covers limits evenly.

Halton, "On the efficiency of certain quasi-random sequences of points in evaluating
multi-dimensional integrals", Numerische Mathematik 2 (1960).
"""

_LOCK = threading.RLock()

# all assemblies of loops at some joint positions, each once

Indices = npt.NDArray[np.int64]

SAME: Final = 1e-6
"""Changes of passive joints that count as none [rad, or of the size of a loop]."""
MOST: Final = 64
"""Most linkages."""
MOST_SETS: Final = 1024
"""Most positions of passive joints; several of them may be one linkage."""
TOO_MANY: Final = (
    f"The loops have more than {MOST} assemblies there; ask a cell with fewer loops, "
    "or start a state at the passive joints that you mean."
)
MOST_WAYS: Final = 1024
"""Ways of states whose ends a cell keeps."""

STARTS: Final = 1024  # of a round
MOST_ROUNDS: Final = 64
LEAST_HITS: Final = 4
"""How often each assembly is found before the search ends."""
QUIET_ROUNDS: Final = 3
DIGITS: Final = 4
"""Digits of the changes by which assemblies are ordered: rounding must not matter."""


class LoopAssemblies:
    """The assemblies of a cell at some joint positions.

    They are ordered by how far passive joints are from given ones, and then by the
    changes of these one after the other, in angles and parts of the size of loops; so
    the order is the same in every process and for scaled cells.

    Attributes:
        passive: The passive joints of each, shape (count, m) [m or rad]; angles are
            those nearest to the given ones.
        linkages: The numbers of those that are listed, one for each linkage: several
            positions of joints, such as of three that make up a ball, can give the same
            poses of links.
    """

    def __init__(self, cell: Workcell, positions: Sequence[float]) -> None:
        """Search for them.

        Newton's method starts at random places, in rounds. The search ends when no
        round finds more, and each assembly has been found several times.

        Args:
            cell: Whose loops.
            positions: Of all joints; passive ones are where the search begins.

        Raises:
            ModelError: There are too many.
        """
        self._cell = cell
        system = cell.loop_system
        x = np.array(positions, dtype=np.float64)
        self._q, self._given = x[: system.count], x[system.count :]
        self._units = np.array(system.units[system.count :])
        self.passive = self._ordered(self._found())
        self.linkages = self._one_for_each_linkage()

    def index(self, passive: Array) -> int | None:
        """Return which assembly has these passive joints, None for none.

        passive: Shape (m,) [m or rad].
        """
        apart = np.abs(wrapped(self._cell, self.passive - passive)).max(axis=1)
        nearest = int(apart.argmin()) if len(apart) else 0
        return nearest if len(apart) and apart[nearest] < SAME else None

    def _found(self) -> Array:
        """Return the passive joints of all assemblies, shape (count, m)."""
        rng = np.random.default_rng(0)
        periods = _periods(self._cell)
        wide = self._widths()
        assemblies, hits = self._given[np.newaxis][:0], np.zeros(0, np.int64)
        quiet = 0
        for number in range(MOST_ROUNDS):
            # Turning joints start anywhere in a turn; sliding ones alternate between
            # narrow and wide ranges, which grow with what is found.
            noise = rng.uniform(-1.0, 1.0, (STARTS, len(self._given)))
            narrow = np.where(np.arange(STARTS)[:, None] % 2, wide, 2.0 * self._units)
            spread = np.where(periods > 0.0, 0.5 * periods, narrow)
            starts = self._given + spread * noise
            if not number:
                starts[0] = self._given
            known = len(assemblies)
            closed, _ = solved_near(self._cell, self._q, starts)
            closed = closed[np.isfinite(closed).all(axis=1)]
            assemblies, hits = self._merged(assemblies, hits, closed)
            if len(assemblies) > MOST_SETS:
                raise ModelError(TOO_MANY)
            if len(assemblies) > known:
                quiet = 0
                wide = np.maximum(
                    wide, 1.5 * np.abs(assemblies - self._given).max(axis=0)
                )
            else:
                quiet += 1
            if quiet >= QUIET_ROUNDS and (
                not len(assemblies) or hits.min() >= LEAST_HITS
            ):
                break
        return self._given + self._changes(assemblies) * self._units

    def _widths(self) -> Array:
        """Return how far from the given ones to search joints that slide, (m,) [m].

        A linkage and its mirror image are as far apart as its longest lever and its
        longest slide are long.
        """
        cell, system = self._cell, self._cell.loop_system
        links = (cell.links[k] for k in cell.joints.links)
        slides = np.array([link.joint.unit is Unit.METRE for link in links])
        every = np.abs(np.concatenate([self._q, self._given]))
        longest = float(every[slides].max(initial=0.0))
        return np.full(len(self._given), 2.0 * (max(system.sizes) + longest))

    def _merged(
        self, known: Array, hits: Indices, closed: Array
    ) -> tuple[Array, Indices]:
        """Return assemblies and how often each was found, with more of them."""
        # One at a time: what is near the first of the new ones is the same as that.
        while len(closed) and len(known) <= MOST_SETS:
            if len(known):
                change = wrapped(self._cell, closed[:, None] - known)
                apart = np.abs(change).max(axis=2)
                is_known = apart.min(axis=1) < SAME
                own = apart[is_known].argmin(axis=1)
                hits = hits + np.bincount(own, minlength=len(known))
                closed = closed[~is_known]
            known = np.vstack([known, closed[:1]])
            hits = np.append(hits, np.zeros(len(closed[:1]), np.int64))
        return known, hits

    def _changes(self, passive: Array) -> Array:
        """Return how far passive joints are from the given ones, of the size of loops.

        Half a turn is one change, whichever way rounding takes it.
        """
        change = wrapped(self._cell, passive - self._given)
        half = 0.5 * _periods(self._cell) / self._units
        return np.where(change < SAME - half, change + 2.0 * half, change)

    def _ordered(self, passive: Array) -> Array:
        changes = np.round(self._changes(passive), DIGITS)
        farthest = np.abs(changes).max(axis=1, initial=0.0)
        return passive[np.lexsort((*changes.T[::-1], farthest))]

    def _one_for_each_linkage(self) -> list[int]:
        """Return the number of the first assembly of each linkage.

        A linkage is the poses of the links with frames, shapes or a mass, and of those
        that carry no other link.
        """
        cell = self._cell
        tree = Tree.of(cell)
        shown = [
            FrameRef(k, IDENTITY)
            for k, link in enumerate(cell.links)
            if link.frames
            or link.visuals
            or link.collisions
            or link.inertia
            or k not in tree.parents
        ]
        size = max(cell.loop_system.sizes)
        first: list[int] = []
        poses: list[Array] = []
        for k, passive in enumerate(self.passive):
            placed = poses_of(tree, (*self._q, *passive.tolist()), shown, IN_WORLD)
            each = np.array([X.matrix() for X in placed])
            each[:, :3, 3] /= size
            if all(np.abs(each - other).max() > SAME for other in poses):
                first.append(k)
                poses.append(each)
            if len(first) > MOST:
                raise ModelError(TOO_MANY)
        return first


def wrapped(cell: Workcell, change: Array) -> Array:
    """Return the least changes to the same poses [rad, or of the size of loops].

    change: Shape (..., m) [m or rad].
    """
    system = cell.loop_system
    nearest = nearest_rows(change, np.zeros_like(change), _periods(cell))
    return nearest / np.array(system.units[system.count :])


def _periods(cell: Workcell) -> Array:
    """Return after which change of each passive joint poses repeat, 0 for never."""
    return kept(
        cell,
        "periods of passive joints",
        lambda: np.array([period_of(cell, k) for k in cell.loop_system.passive]),
    )


# the branches of a cell's loops, and their names


class Branches:
    """The branches of a cell: that of home is the first.

    The assemblies at home are numbered first, then those at a few other places within
    limits that are on none of the branches before. Places are searched one after the
    other, when an assembly is on no branch that is known. So numbers do not depend on
    earlier calls, except those of assemblies that no place leads to: these are numbered
    in the order in which they are met.
    """

    def __init__(self, cell: Workcell) -> None:
        """Know the branch of the assembly at home."""
        self.cell = cell
        self._known: dict[str, Branch] = {HOME: home_branch(cell)}
        self._places: list[_Place] = []
        self._met: dict[str, Branch] = {}
        self._last: tuple[tuple[float, ...], tuple[str, Branch]] | None = None

    @classmethod
    def of(cls, cell: Workcell) -> Branches:
        """Return the branches of a cell, cached by the cell."""
        return kept(cell, "branches", lambda: cls(cell))

    @property
    def home(self) -> Branch:
        """Return the branch of the assembly at home."""
        return self._known[HOME]

    def named(self, positions: Sequence[float]) -> tuple[str, Branch]:
        """Return the branch of an assembly, and its name.

        positions: Of all joints, loops closed, passive ones last. The answer to the
            last ones is kept: questions to the same state follow each other.
        """
        key, last = tuple(positions), self._last
        if last is None or last[0] != key:
            last = self._last = key, self._named(positions)
        return last[1]

    def _named(self, positions: Sequence[float]) -> tuple[str, Branch]:
        if tuple(positions) == self.cell.joints.home:
            return HOME, self.home
        x = np.array(positions, dtype=np.float64)
        count = self.cell.loop_system.count
        back = walked(self.cell, self.home.seed[:count], x)
        if self._is_same(back, self.home.seed[count:]):
            return HOME, self.home
        with _LOCK:
            name = self._among(x, range(1))
            if name is None and self._is_on(self.home, x):
                name = HOME
            name = name or self._among(x, range(1, 1 + PLACES)) or self._met_before(x)
            return name, self._known[name]

    def _among(self, x: Array, places: range) -> str | None:
        """Return the branch of an assembly, by name, if some places lead to it.

        Args:
            x: Positions of all joints, loops closed.
            places: The numbers of the places.
        """
        for number in places:
            place = self._place(number)
            at = place.reached(self.cell, x)
            if at is None:
                continue
            name = place.names[at]
            if place.is_seed[at] or self._is_on(self._known[name], x):
                return name
        return None

    def _place(self, number: int) -> _Place:
        """Return a place with its assemblies named, cached here."""
        while len(self._places) <= number:
            k = len(self._places)
            place = _Place(self.cell, k)
            for passive in place.passive:
                y = np.concatenate([place.q, passive])
                name = self._among(y, range(k))
                place.is_seed.append(name is None)
                place.names.append(name or self._new(y))
            self._places.append(place)
        return self._places[number]

    def _new(self, x: Array) -> str:
        """Return the name of a new branch, which begins at an assembly."""
        if tuple(x.tolist()) == self.cell.joints.home:
            return HOME
        name = str(len(self._known) + 1)
        self._known[name] = Branch(self.cell, x.tolist())
        return name

    def _met_before(self, x: Array) -> str:
        """Return the name of an assembly that no place leads to, maybe a new one."""
        for name, branch in self._met.items():
            if self._is_on(branch, x):
                return name
        name = self._new(x)
        self._met[name] = self._known[name]
        return name

    def _is_on(self, branch: Branch, x: Array) -> bool:
        """Return whether kernels of a branch find an assembly."""
        count = self.cell.loop_system.count
        return self._is_same(solved_on(self.cell, branch, x[:count])[0], x[count:])

    def _is_same(self, one: Array, other: Array) -> bool:
        return bool((np.abs(wrapped(self.cell, one - other)) < SAME).all())


class _Place:
    """Joint positions at which assemblies have names.

    Attributes:
        q: The positions.
        passive: Of each assembly, shape (count, m).
        names: Of the branch of each.
        is_seed: Whether that branch begins at the assembly.
    """

    def __init__(self, cell: Workcell, number: int) -> None:
        """Find the assemblies at a place; the first is home."""
        x = np.array(cell.joints.home)
        count = cell.loop_system.count
        if number:
            x[:count] = _halton_point(cell, number)
        self.q = x[:count]
        self.names: list[str] = []
        self.is_seed: list[bool] = []
        self._assemblies: LoopAssemblies | None = None
        try:
            self._assemblies = LoopAssemblies(cell, x.tolist())
        except ModelError:  # too many to be numbered
            self.passive = x[np.newaxis, count:][: 0 if number else 1]
            return
        assemblies = self._assemblies
        others = [
            k for k in range(len(assemblies.passive)) if k not in assemblies.linkages
        ]
        self._order = [*assemblies.linkages, *others]
        self.passive = assemblies.passive[self._order]
        if not number:  # exactly as it is
            self.passive[0] = x[count:]

    def reached(self, cell: Workcell, x: Array) -> int | None:
        """Return to which of its assemblies a straight way leads, None for none."""
        if self._assemblies is None:
            return None
        end = walked(cell, self.q, x)
        at = self._assemblies.index(end) if np.isfinite(end).all() else None
        return None if at is None else self._order.index(at)


def _halton_point(cell: Workcell, number: int) -> Array:
    """Return joint positions within limits, far from others with lower numbers."""
    count = cell.loop_system.count
    axes = AssemblyGrid.axes_of(cell, range(count))
    parts = [_radical_inverse(number, BASES[k % len(BASES)]) for k in range(count)]
    return np.array(
        [a.lower + a.step * a.cells * t for a, t in zip(axes, parts, strict=True)]
    )


def _radical_inverse(number: int, base: int) -> float:
    """Return a number with its digits mirrored at the point: 6 is 0.011 in base 2."""
    mirrored, scale = 0.0, 1.0 / base
    while number:
        number, digit = divmod(number, base)
        mirrored += scale * digit
        scale /= base
    return mirrored


# the passive joints of states


CLOSE: Final = 1e-6
"""How far given passive joints may be from closed loops [rad, or of their size]."""
EXACT: Final = 1e-12
"""How near they are kept as they are, in the same units: states come back equal."""


def bound_passive(
    cell: Workcell, q: Sequence[float], passive: Sequence[float]
) -> tuple[float, ...]:
    """Return given passive joints, or without any those on the branch of home.

    Raises:
        StateError: Loops are not closed there, or cannot be.
    """
    if len(passive):
        return checked_passive(cell, q, passive)
    return moved_passive(cell, q, cell.joints.home)


def replaced_passive(
    cell: Workcell, q: Sequence[float], before: Sequence[float], given: Any
) -> tuple[float, ...]:
    """Return the passive joints of a state whose joints are moved.

    Args:
        cell: Whose loops.
        q: Positions of the independent joints, shape (n,).
        before: Positions of all joints before that, shape (n + m,).
        given: Those of passive joints, shape (m,); None to follow from before.

    Raises:
        StateError: Loops are not closed there, or cannot be.
    """
    if given is not None:
        return checked_passive(cell, q, numbers_of(given, "passive").tolist())
    return moved_passive(cell, q, before)


def moved_passive(
    cell: Workcell, q: Sequence[float], start: Sequence[float]
) -> tuple[float, ...]:
    """Return passive joints where a way from closed positions leads.

    It is the straight one, or where that is blocked, another one on the same branch.

    Args:
        cell: Whose loops.
        q: Positions of the independent joints, shape (n,).
        start: Positions of all joints, loops closed, shape (n + m,).

    Raises:
        StateError: There is no way, or loops cannot be closed at q.
    """
    system = cell.loop_system
    if not system.blocks or tuple(q) == tuple(start[: system.count]):
        return tuple(start[system.count :])
    # The same states follow each other in run after run.
    known = kept(cell, "ends of ways", dict[Any, tuple[float, ...]])
    key = tuple(q), tuple(start)
    passive = known.get(key)
    if passive is None:
        passive = _moved_passive(cell, q, start)
        if len(known) >= MOST_WAYS:
            known.clear()
        known[key] = passive
    return passive


def _moved_passive(
    cell: Workcell, q: Sequence[float], start: Sequence[float]
) -> tuple[float, ...]:
    """Return the same, found anew."""
    passive = walked(cell, np.array(q), np.array(start))
    if not np.isfinite(passive).all():  # around what blocks the straight way
        _, branch = Branches.of(cell).named(start)
        passive, _ = solved_on(cell, branch, np.array(q))
    if not np.isfinite(passive).all():
        system = cell.loop_system
        in_loops = {k for each in system.equations for k in each.joints}
        moving = [k for k in sorted(in_loops) if k < system.count]
        names = ", ".join(f"{quote(cell.joint_names[k])} = {q[k]:g}" for k in moving)
        (number,) = loop_reasons(cell, np.array([q]), np.array(start))
        raise StateError(
            f"The loops cannot be closed on the way to {names}. At these positions the "
            f"answer is: {LoopReason(int(number)).sentence}."
        )
    return tuple(passive.tolist())


def checked_passive(
    cell: Workcell, q: Sequence[float], passive: Sequence[float]
) -> tuple[float, ...]:
    """Return given passive joints with loops closed exactly.

    Raises:
        StateError: There are too many or too few, or loops are not closed.
    """
    names = cell.passive_names
    if len(passive) != len(names):
        raise StateError(
            f"passive has {len(passive)} numbers; the loops of cell {quote(cell.name)} "
            f"determine {len(names)} joints: {', '.join(map(quote, names[:8]))}."
        )
    if not names:
        return ()
    solved, _ = solved_near(cell, q, passive)
    units = np.array(cell.loop_system.units[cell.loop_system.count :])
    apart = np.abs(solved - np.array(passive)) / units
    if not (apart < CLOSE).all():
        raise StateError(
            "The loops are not closed at these passive joints: passive = "
            f"{tuple(passive)}. Leave passive= out to have them follow q, or begin at "
            "one of cell.branches(state)."
        )
    if (apart < EXACT).all():
        return tuple(passive)
    return tuple(solved.tolist())
