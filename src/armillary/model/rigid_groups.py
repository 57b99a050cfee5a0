"""Which links of a cell are rigid with each other, and which carries which."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.model.parents import nearest
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell

__all__ = ["NO_LINK", "Indices", "RigidGroups"]

Indices = npt.NDArray[np.int64]

NO_LINK: Final = -2


class RigidGroups:
    """The rigid groups of a cell's links as it was built, and the links with shapes.

    Only fixed mounts join links; what else a link carries is in the trees of states.

    Attributes:
        has_shapes: Which links have collision shapes.
        groups: For each link that of its rigid group which is nearest to the world, or
            -1 where the group is fixed to that.
        carriers: For each link the nearest one with shapes that carries it, or -1.
        base_groups: The groups that bases of manipulators belong to.
    """

    def __init__(self, cell: Workcell) -> None:
        """Look at the links of `cell` and at its mounts."""
        self._cell = cell
        self._tree = tree = Tree.of(cell).released()
        self.has_shapes = np.array(
            [bool(link.collision_shapes) for link in cell.links], dtype=np.bool_
        )
        # A link begins a group if a joint or a movable base is between it and its
        # parent.
        loose = {tree.base_link(k) for k in tree.movable}

        def is_apart(link: int) -> bool:
            """Return whether a link may move in its parent."""
            return link in loose or bool(tree.drives[link])

        shaped: list[bool] = self.has_shapes.tolist()
        every = range(len(cell.links))
        self.groups = _indices(nearest(tree.parents, every, is_apart))
        bases = [tree.base_link(k) for k in range(len(cell.manipulators))]
        self.base_groups = np.unique(self.groups[bases])
        self.carriers = _indices(
            nearest(tree.parents, tree.parents, shaped.__getitem__)
        )

    def kin(self) -> tuple[Indices, Indices]:
        """Return the parent and the grandparent of each link, as RobWork has them.

        -1 stands for the world, -2 for none. Mounts that are not fixed join nothing,
        and a frame that a base is fixed to counts as a link of its own.
        """
        tree, count = self._tree, len(self._cell.links)
        parents = _indices(tree.parents)
        padded = np.full(count + len(tree.bases) + 2, NO_LINK, dtype=np.int64)
        for k, base in enumerate(tree.bases):
            if base.manner != "fixed":
                parents[tree.base_link(k)] = NO_LINK
            elif not tree.is_link(base.on):
                parents[tree.base_link(k)] = count + k
                padded[count + k] = base.frame.link
        padded[:count] = parents
        # The last two stand for the world and for none, which have no parent.
        return parents, padded[parents]

    # what is attached

    def nearest_base(self, k: int) -> tuple[Indices, Indices]:
        """Return the links with shapes that are rigid with the base of manipulator k.

        The second array has those with no link with shapes between themselves and the
        base, whether they move or not.
        """
        start, end = self._cell.starts[k : k + 2]
        own = start + np.flatnonzero(self.has_shapes[start:end])
        base_group = self.groups[self._tree.base_link(k)]
        carriers = self.carriers[own]
        is_own = (start <= carriers) & (carriers < end)
        return own[self.groups[own] == base_group], own[~is_own]

    def bearer(self, tree: Tree, k: int) -> tuple[int, bool]:
        """Return the link with shapes that carries a base in a tree, -1 without one.

        It is the nearest one. The second value tells whether what is between the two is
        rigid.
        """
        is_rigid = True
        for link in tree.ancestors(tree.bases[k].frame.link):
            if link < 0 or self.has_shapes[link]:
                return link, is_rigid
            is_rigid = is_rigid and not tree.drives[link]
        return -1, is_rigid


def _indices(numbers: object) -> Indices:
    return np.array(numbers, dtype=np.int64)
