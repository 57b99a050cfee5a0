"""The branches of a cell's loops, and their names."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.kinematics.closing.assemblies import SAME, Assemblies, wrapped
from armillary.kinematics.closing.branch import Branch, home_branch
from armillary.kinematics.closing.grid import Grid
from armillary.kinematics.closing.solver import solved_on, walked
from armillary.model.fields import kept
from armillary.model.workcell import Workcell

__all__ = ["HOME", "Branches"]

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

    @classmethod
    def of(cls, cell: Workcell) -> Branches:
        """Return the branches of a cell, which it keeps."""
        return kept(cell, "branches", lambda: cls(cell))

    @property
    def home(self) -> Branch:
        """Return the branch of the assembly at home."""
        return self._known[HOME]

    def named(self, positions: Sequence[float]) -> tuple[str, Branch]:
        """Return the branch of an assembly, and its name.

        positions: Of all joints, loops closed, passive ones last.
        """
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
        """Return a place with its assemblies named, which this keeps."""
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
        self._assemblies: Assemblies | None = None
        try:
            self._assemblies = Assemblies(cell, x.tolist())
        except ModelError:  # too many to be numbered
            self.passive = x[np.newaxis, count:][: 0 if number else 1]
            return
        found = self._assemblies
        others = [k for k in range(len(found.passive)) if k not in found.linkages]
        self._order = [*found.linkages, *others]
        self.passive = found.passive[self._order]
        if not number:  # exactly as it is
            self.passive[0] = x[count:]

    def reached(self, cell: Workcell, x: Array) -> int | None:
        """Return to which of its assemblies a straight way leads, None for none."""
        if self._assemblies is None:
            return None
        found = walked(cell, self.q, x)
        at = self._assemblies.index(found) if np.isfinite(found).all() else None
        return None if at is None else self._order.index(at)


def _halton_point(cell: Workcell, number: int) -> Array:
    """Return joint positions within limits, far from others with lower numbers."""
    count = cell.loop_system.count
    axes = Grid.axes_of(cell, range(count))
    parts = [_radical_inverse(number, BASES[k % len(BASES)]) for k in range(count)]
    return np.array(
        [a.lower + a.step * a.cells * t for a, t in zip(axes, parts, strict=True)]
    )


def _radical_inverse(number: int, base: int) -> float:
    """Return a number with its digits mirrored at the point: 6 is 0.011 in base 2."""
    found, scale = 0.0, 1.0 / base
    while number:
        number, digit = divmod(number, base)
        found += scale * digit
        scale /= base
    return found
