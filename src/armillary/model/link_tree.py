"""Which links of a cell are rigid with each other, and which carries which."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, quote
from armillary.model.link_pattern import LinkName
from armillary.model.tree import Tree, nearest
from armillary.model.workcell import WORLD_LINK, Workcell

__all__ = ["Carried", "LinkTree", "carried"]

Indices = npt.NDArray[np.int64]

NO_LINK: Final = -2


class Carried(NamedTuple):
    """A manipulator whose base is carried by a link, and how people say it.

    Attributes:
        manipulator: Its index in the cell.
        holder: The link that carries it.
        verb: `bolted to`, `standing on` or `held by`.
    """

    manipulator: int
    holder: int
    verb: str


def carried(tree: Tree) -> tuple[Carried, ...]:
    """Return the manipulators on links that a state attached there or could move."""
    return tuple(
        Carried(
            k, base.frame.link, "held by" if base.manner == "held" else "standing on"
        )
        for k, base in enumerate(tree.bases)
        if base.frame.link >= 0 and base.manner != "bolted"
    )


class LinkTree:
    """The rigid groups of a cell's links as it was built, and the links with shapes.

    Only bolted mounts join links; what else stands on a link is given by states.

    Attributes:
        owners: The manipulator of each link, -1 for the world as the last.
        has_shapes: Which links have collision shapes.
        bolted: The manipulators that are bolted to links.
        groups: For each link that of its rigid group which is nearest to the world, or
            -1 where the group is fixed to that.
        carriers: For each link the nearest one with shapes that carries it, or -1.
    """

    def __init__(self, cell: Workcell) -> None:
        """Look at the links of `cell` and at its mounts."""
        self.cell = cell
        self._tree = tree = Tree.of(cell)
        self.owners: Indices = np.array(cell.owners, dtype=np.int64)
        self.has_shapes = np.array(
            [bool(link.collision_shapes) for link in cell.links], dtype=np.bool_
        )
        self.bolted = tuple(
            Carried(k, base.frame.link, "bolted to")
            for k, base in enumerate(tree.bases)
            if base.manner == "bolted" and base.frame.link >= 0
        )
        loose = {
            tree.base_link(k)
            for k, base in enumerate(tree.bases)
            if base.manner != "bolted"
        }
        self._parents = [
            WORLD_LINK if link in loose else parent
            for link, parent in enumerate(tree.parents)
        ]

        def is_joined(link: int) -> bool:
            """Return whether a link is rigid with its parent."""
            return link not in loose if tree.base_of[link] >= 0 else self._fixed(link)

        every = range(len(cell.links))
        self.groups = _indices(
            nearest(self._parents, every, lambda link: not is_joined(link))
        )
        shaped: list[bool] = self.has_shapes.tolist()
        self.carriers = _indices(
            nearest(self._parents, self._parents, shaped.__getitem__)
        )

    def _fixed(self, link: int) -> bool:
        return not self.cell.links[link].moves

    def name(self, link: int) -> LinkName:
        """Return the name of a link."""
        owner = self.cell.manipulators[self.cell.owners[link]]
        return LinkName(owner.name, self.cell.links[link].name)

    def kin(self) -> tuple[Indices, Indices]:
        """Return the parent and the grandparent of each link, as RobWork has them.

        -1 stands for the world, -2 for none. Mounts that are not bolted join nothing,
        and a frame that a base is bolted to counts as a link of its own.
        """
        tree, count = self._tree, len(self.cell.links)
        parents = _indices(tree.parents)
        padded = np.full(count + len(tree.bases) + 2, NO_LINK, dtype=np.int64)
        for k, base in enumerate(tree.bases):
            if base.manner != "bolted":
                parents[tree.base_link(k)] = NO_LINK
            elif not tree.is_link(base.on):
                parents[tree.base_link(k)] = count + k
                padded[count + k] = base.frame.link
        padded[:count] = parents
        # The last two stand for the world and for none, which have no parent.
        return parents, padded[parents]

    # what a state adds

    def nearest_base(self, k: int) -> tuple[Indices, Indices]:
        """Return the links with shapes that are rigid with the base of manipulator k.

        The second array has those with no link with shapes between themselves and the
        base, whether they move or not.
        """
        start, end = self.cell.starts[k : k + 2]
        own = start + np.flatnonzero(self.has_shapes[start:end])
        base_group = self.groups[self._tree.base_link(k)]
        return (
            own[self.groups[own] == base_group],
            own[self.owners[self.carriers[own]] != k],
        )

    def bearer(self, link: int, held: dict[int, int]) -> tuple[int, bool]:
        """Return the link with shapes that is or carries a link, -1 without one.

        The second value tells whether the two are rigidly joined.

        held: The links that carry what states move, by the index of the manipulator.

        Raises:
            ModelError: Manipulators hold each other in a circle.
        """
        is_rigid = True
        seen: set[int] = set()
        while link >= 0 and not self.has_shapes[link]:
            base = self._tree.base_of[link]
            if link in seen:
                name = quote(self.name(link).manipulator)
                raise ModelError(f"Manipulator {name} is held by what it holds itself.")
            seen.add(link)
            is_rigid = is_rigid and (base >= 0 or self._fixed(link))
            link = held.get(base, self._parents[link])
        return link, is_rigid


def _indices(numbers: object) -> Indices:
    return np.array(numbers, dtype=np.int64)
