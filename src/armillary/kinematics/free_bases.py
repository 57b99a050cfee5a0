"""The bases of a cell that states may move, and where they stand, for its survey."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.kinematics.placement import movable
from armillary.model.tree import Tree, nearest
from armillary.model.workcell import Workcell

__all__ = ["Bases", "Standing"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

FRAMES: Final = -3  # the axis of frames in an array of poses


class Bases:
    """The bases of a cell that states may move, and what moves with each of them.

    The frames of a cell are rows, manipulator by manipulator, the links of each first.

    Attributes:
        free: The manipulators whose bases are not bolted down.
        roots: For each manipulator the free one that it is bolted to in the end, itself
            maybe; -1 where that is the world.
        starts: The first row of each manipulator.
        carried: For each free one the rows that move with it.
    """

    def __init__(self, cell: Workcell) -> None:
        """Look at the mounts of `cell`."""
        self.free = movable(cell)
        sizes = [len(manipulator.places) for manipulator in cell.manipulators]
        self.starts = [0, *np.cumsum(sizes, dtype=np.int64).tolist()]
        self.roots = _roots(cell, self.free)
        spans: dict[int, list[Indices]] = {k: [] for k in self.free}
        for m, root in enumerate(self.roots):
            if root >= 0:
                spans[root].append(np.arange(self.starts[m], self.starts[m + 1]))
        self.carried = {k: np.concatenate(found) for k, found in spans.items()}

    def row(self, cell: Workcell, link: int) -> int:
        """Return the row of a link's outer frame."""
        k = cell.owners[link]
        return self.starts[k] + link - cell.starts[k]


def _roots(cell: Workcell, free: Sequence[int]) -> list[int]:
    tree = Tree.of(cell)
    bases = [tree.base_link(k) for k in range(len(cell.manipulators))]
    free_links = {bases[k] for k in free}
    roots = nearest(tree.parents, bases, free_links.__contains__)
    return [cell.owners[root] for root in roots]


class _Lift(NamedTuple):
    """Bases to put where they are held, all that hold them being right already.

    Attributes:
        holders: Rows of the links that hold them, shape (h,).
        offsets: The bases in those links, shape (h, 4, 4).
        rows: Rows of all frames that move with one of the bases, shape (r,).
        base: Which of the h bases that is, shape (r,).
    """

    holders: Indices
    offsets: Array
    rows: Indices
    base: Indices


class Standing:
    """Where the free bases stand in a tree.

    Attributes:
        matrices: Their poses in the world, the identity for those held, (f, 4, 4).
    """

    def __init__(self, bases: Bases, tree: Tree) -> None:
        """Sort the bases by how many of them hold each other."""
        frames = [tree.bases[k].frame for k in bases.free]
        is_held = [at.link >= 0 for at in frames]
        self.matrices = np.array(
            [np.eye(4) if at.link >= 0 else at.pose.matrix() for at in frames],
            dtype=np.float64,
        ).reshape(-1, 4, 4)
        self.matrices.flags.writeable = False
        held = [k for k, is_so in zip(bases.free, is_held, strict=True) if is_so]
        levels = _levels(bases, tree, held)
        self._lifts = [_lift(bases, tree, level) for level in levels]

    def settle(self, poses: Array, multiply: Callable[[Array, Array], Array]) -> None:
        """Move what is held to where it is, the lowest first.

        Args:
            poses: Of all frames, shape (..., k, 4, 4), as if what is held stood at the
                origin of the world.
            multiply: The product of two arrays of poses.
        """
        by_frame = poses.swapaxes(0, FRAMES)
        for holders, offsets, rows, base in self._lifts:
            lifted = multiply(poses.take(holders, FRAMES), offsets)
            moved = multiply(lifted.take(base, FRAMES), poses.take(rows, FRAMES))
            by_frame[rows] = moved.swapaxes(0, FRAMES)


def _levels(bases: Bases, tree: Tree, held: Sequence[int]) -> Iterator[list[int]]:
    """Yield the held bases, each held by what the world or an earlier level carries."""
    above: dict[int, list[int]] = {}
    for k in held:
        root = bases.roots[tree.cell.owners[tree.bases[k].frame.link]]
        is_held = root >= 0 and tree.bases[root].frame.link >= 0
        above.setdefault(root if is_held else -1, []).append(k)
    level = above.get(-1)
    while level:
        yield level
        level = [upper for k in level for upper in above.get(k, ())]


def _lift(bases: Bases, tree: Tree, held: Sequence[int]) -> _Lift:
    frames = [tree.bases[k].frame for k in held]
    cell = tree.cell
    rows = [bases.carried[k] for k in held]
    return _Lift(
        holders=np.array([bases.row(cell, at.link) for at in frames]),
        offsets=np.array([at.pose.matrix() for at in frames]),
        rows=np.concatenate(rows),
        base=np.repeat(np.arange(len(held)), [len(span) for span in rows]),
    )
