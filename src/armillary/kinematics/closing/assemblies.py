"""All assemblies of loops at some joint positions, each once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.kinematics.closing.grid import nearest_rows, period_of
from armillary.kinematics.closing.solver import solved_near
from armillary.model.fields import kept
from armillary.model.frame import FrameRef
from armillary.model.link_poses import poses_of
from armillary.model.tree import Tree
from armillary.model.unit import Unit
from armillary.model.workcell import IN_WORLD, Workcell
from armillary.spatial.pose import IDENTITY

__all__ = ["SAME", "Assemblies", "wrapped"]

Array = npt.NDArray[np.float64]
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
STARTS: Final = 1024  # of a round
MOST_ROUNDS: Final = 64
LEAST_HITS: Final = 4
"""How often each assembly is found before the search ends."""
QUIET_ROUNDS: Final = 3
DIGITS: Final = 4
"""Digits of the changes by which assemblies are ordered: rounding must not matter."""


class Assemblies:
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
        found, hits = self._given[np.newaxis][:0], np.zeros(0, np.int64)
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
            known = len(found)
            closed, _ = solved_near(self._cell, self._q, starts)
            closed = closed[np.isfinite(closed).all(axis=1)]
            found, hits = self._merged(found, hits, closed)
            if len(found) > MOST_SETS:
                raise ModelError(TOO_MANY)
            if len(found) > known:
                quiet = 0
                wide = np.maximum(wide, 1.5 * np.abs(found - self._given).max(axis=0))
            else:
                quiet += 1
            if quiet >= QUIET_ROUNDS and (not len(found) or hits.min() >= LEAST_HITS):
                break
        return self._given + self._changes(found) * self._units

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
        self, found: Array, hits: Indices, closed: Array
    ) -> tuple[Array, Indices]:
        """Return assemblies and how often each was found, with more of them."""
        # One at a time: what is near the first of the new ones is the same as that.
        while len(closed) and len(found) <= MOST_SETS:
            if len(found):
                change = wrapped(self._cell, closed[:, None] - found)
                apart = np.abs(change).max(axis=2)
                is_known = apart.min(axis=1) < SAME
                own = apart[is_known].argmin(axis=1)
                hits = hits + np.bincount(own, minlength=len(found))
                closed = closed[~is_known]
            found = np.vstack([found, closed[:1]])
            hits = np.append(hits, np.zeros(len(closed[:1]), np.int64))
        return found, hits

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
            found = poses_of(tree, (*self._q, *passive.tolist()), shown, IN_WORLD)
            each = np.array([X.matrix() for X in found])
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
