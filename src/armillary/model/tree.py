"""The tree of a cell's links, as bases are attached just now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, Self

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.model.drive import Drive
from armillary.model.fields import kept
from armillary.model.frame import FrameRef
from armillary.model.link import Link
from armillary.model.link_poses import common_ancestor
from armillary.model.mount import WORLD
from armillary.model.parents import ancestors, nearest, nearest_shared
from armillary.model.workcell import IN_WORLD, WORLD_LINK, Workcell
from armillary.spatial.pose import IDENTITY, Pose, matrices_of

__all__ = ["Base", "Tree"]

Array = npt.NDArray[np.float64]


class Base(NamedTuple):
    """Where the base of a manipulator is attached.

    Attributes:
        frame: The link that carries it, and the pose of the base in that link.
        on: Qualified name of the frame that it is attached to.
        pose: Of the base in that frame.
        mode: Why it stays there or not: `fixed`, `loose`, `attached` by a state, or
            nothing for a base without a mount.
    """

    frame: FrameRef
    on: str = WORLD
    pose: Pose = IDENTITY
    mode: Literal["", "fixed", "loose", "attached"] = ""


class DifferentBases(NamedTuple):
    """The bases of a tree that stand elsewhere than in another one.

    Attributes:
        tree: The other tree, whose bases are written.
        bases: Where they are, by the numbers of their manipulators, with the matrices
            of their poses where these are known, shape (4, 4).
    """

    tree: Tree
    bases: Mapping[int, tuple[Base, Array | None]]

    @property
    def written(self) -> tuple[Base, ...]:
        """Return where all bases are."""
        bases = list(self.tree.bases)
        for k, (base, _) in self.bases.items():
            bases[k] = base
        return tuple(bases)


class MovedInWorld(NamedTuple):
    """Bases many of which a state has moved in the world.

    Attributes:
        others: Where all bases were before.
        poses: Where those that moved are, by the numbers of their manipulators.
    """

    others: tuple[Base, ...]
    poses: Mapping[int, Pose]

    @property
    def written(self) -> tuple[Base, ...]:
        """Return where all bases are."""
        return tuple(map(self.base, range(len(self.others))))

    def base(self, manipulator: int) -> Base:
        """Return where one is."""
        pose = self.poses.get(manipulator)
        if pose is None:
            return self.others[manipulator]
        return Base(FrameRef(WORLD_LINK, pose), WORLD, pose, "loose")


FEW_MOVED: Final = 8
"""Bases are written as a whole where at least one in so many moved."""


_UNMOVED: Final = (None, None)


class Tree(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The links of a cell, and what carries each of them just now.

    Links have the numbers that they have in `cell.links`, -1 is the world. A state that
    attaches nothing shares the tree of its cell, and states that differ in their joints
    alone share theirs, so that trees are compared by identity.

    Attributes:
        cell: Whose links.
        parents: The link that carries each link, across mounts.
        drives: What moves the joint of each link, by the index in the cell's q: nothing
            where it is fixed, several coordinates where it is a mechanism.
        base_of: The manipulator whose base each link is, -1 for the others; the last is
            the world's.
        stands: Where bases are, which of another tree's moved, or where many did.
        alike: Another tree that attaches bases to the same frames, at other poses. What
            only attachments decide is cached there, once for all such trees.
    """

    cell: Workcell
    parents: tuple[int, ...]
    drives: tuple[tuple[Drive, ...], ...]
    base_of: tuple[int, ...]
    stands: tuple[Base, ...] | DifferentBases | MovedInWorld
    alike: Tree | None = None

    @classmethod
    def of(cls, cell: Workcell) -> Self:
        """Return the tree in which a cell was built, cached by the cell."""
        return kept(cell, "tree", lambda: cls._built(cell))

    @classmethod
    def _built(cls, cell: Workcell) -> Self:
        bases: list[Base] = []
        base_of = [-1] * (len(cell.links) + 1)
        for k, manipulator in enumerate(cell.manipulators):
            frame, mount = cell.base_frames[k], cell.mounted.get(manipulator.name)
            if mount is None:
                bases.append(Base(frame))
            else:
                mode = "fixed" if mount.bolted else "loose"
                bases.append(Base(frame, mount.on, mount.pose, mode))
            base_of[cell.starts[k] + manipulator.base] = k
        parents = tuple(cell.joints.bare_tree.parents)
        return cls(cell, parents, cell.joints.drives, tuple(base_of), tuple(bases))

    @cached_property
    def bases(self) -> tuple[Base, ...]:
        """Return where the base of each manipulator is attached."""
        stands = self.stands
        is_noted = isinstance(stands, (DifferentBases, MovedInWorld))
        return stands.written if is_noted else stands

    @property
    def _moved(self) -> DifferentBases:
        """Return which bases moved since a tree whose bases are written."""
        stands = self.stands
        is_other = isinstance(stands, DifferentBases)
        return stands if is_other else DifferentBases(self, {})

    def base(self, manipulator: int) -> Base:
        """Return where the base of a manipulator is attached, by its number."""
        stands = self.stands
        if isinstance(stands, MovedInWorld):
            return stands.base(manipulator)
        if not isinstance(stands, DifferentBases):
            return stands[manipulator]
        tree, bases = stands
        known = bases.get(manipulator)
        return tree.base(manipulator) if known is None else known[0]

    def base_matrix(self, manipulator: int) -> Array:
        """Return the pose of a base in the link that carries it, shape (4, 4)."""
        stands = self.stands
        if isinstance(stands, DifferentBases):
            _, matrix = stands.bases.get(manipulator, _UNMOVED)
            if matrix is not None:
                return matrix
        return self.base_matrices[manipulator]

    def moved_since(self, other: Tree) -> list[int]:
        """Return the manipulators whose bases stand elsewhere than in another tree.

        other: A tree that attaches bases to the same frames.
        """
        (tree, now), (written, before) = self._moved, other._moved
        if tree is other:
            return [*now]
        if tree is written:
            # What is written is the same: only what moved since is looked at.
            every = {**now, **before}
            return [k for k in every if self.base(k) is not other.base(k)]
        # The truths of the 16 numbers of a base are two words.
        differ = self.base_matrices.ravel() != other.base_matrices.ravel()
        words = differ.view(np.uint64)
        return (words[::2] | words[1::2]).nonzero()[0].tolist()

    def attached(
        self,
        changes: Mapping[int, Base],
        matrices: Iterable[Array | None] | None = None,
    ) -> Self:
        """Return the tree with the bases of some manipulators attached elsewhere.

        Args:
            changes: Where they are, by the numbers of the manipulators.
            matrices: Those of their poses in the links, if they are known.
        """
        stays = are_same_movable = True
        tree, before = self._moved
        for k, base in changes.items():
            known = before.get(k)
            (link, _), on, _, mode = tree.base(k) if known is None else known[0]
            (to_link, _), to, _, to_mode = base
            is_same_movable = mode == to_mode or "fixed" not in {mode, to_mode}
            stays = stays and link == to_link and on == to and is_same_movable
            are_same_movable = are_same_movable and is_same_movable
        if not stays:
            bases, parents = list(self.bases), list(self.parents)
            for k, base in changes.items():
                bases[k] = base
                parents[self.base_link(k)] = base.frame.link
            made = type(self)(
                self.cell, tuple(parents), self.drives, self.base_of, tuple(bases)
            )
            if are_same_movable:
                vars(made)["movable"] = self.movable
            return made
        # Bases only move: the links and what carries them are the same. Of few that
        # moved since bases were written, these are noted; so there are no chains.
        if matrices is None:
            matrices = [None] * len(changes)
        now = zip(changes, zip(changes.values(), matrices, strict=True), strict=True)
        moved = DifferentBases(tree, {**before, **dict(now)})
        are_many = len(moved.bases) * FEW_MOVED > len(self.cell.manipulators)
        stands = moved.written if are_many else moved
        same = self.cell, self.parents, self.drives, self.base_of
        return type(self)(*same, stands, self.alike or self)

    def moved(self, poses: Mapping[int, Pose], matrices: Array) -> Self | None:
        """Return the tree with many bases elsewhere in the world, as `placed` does.

        It is None where they are few, or not all stand in the world and may move there.
        What the bases are is worked out when it is asked for: states that follow one
        another seldom are asked.

        Args:
            poses: Where they are, by the numbers of the manipulators.
            matrices: The same, shape (n, 4, 4).
        """
        before, same = self.alike or self, (self.cell, self.parents, self.drives)
        are_few = len(poses) * FEW_MOVED <= len(self.cell.manipulators)
        if are_few or not before._free_bases.issuperset(poses):
            return None
        stands = self.stands
        if isinstance(stands, MovedInWorld):
            stands = MovedInWorld(stands.others, {**stands.poses, **poses})
        else:
            stands = MovedInWorld(self.bases, poses)
        made = type(self)(*same, self.base_of, stands, before)
        made._keep_matrices(self.base_matrices, poses, matrices)
        return made

    def _keep_matrices(
        self, before: Array, changes: Mapping[int, Any], poses: Array
    ) -> None:
        """Keep `base_matrices`, those of another tree and those that changed."""
        matrices = before.copy()
        matrices[[*changes]] = poses
        matrices.flags.writeable = False
        vars(self)["base_matrices"] = matrices

    def placed(self, changes: Mapping[int, Base], poses: Array | None = None) -> Self:
        """Return what `attached` does, for poses of floats alone.

        poses: The matrices of those of `changes`, shape (n, 4, 4), if they are known.
        """
        if poses is None:
            poses = matrices_of([base.frame.pose for base in changes.values()])
        made = self.attached(changes, poses)
        is_known = "base_matrices" in vars(self._moved.tree)
        if is_known and made._moved.tree is made:
            made._keep_matrices(self.base_matrices, changes, poses)
        return made

    @cached_property
    def base_matrices(self) -> Array:
        """Return the pose of each base in the link that carries it, shape (m, 4, 4)."""
        tree, moved = self._moved
        if tree is self:
            matrices = matrices_of([base.frame.pose for base in self.bases])
        else:
            matrices = tree.base_matrices.copy()
            for k, (base, known) in moved.items():
                matrices[k] = base.frame.pose.matrix() if known is None else known
        matrices.flags.writeable = False
        return matrices

    @cached_property
    def movable(self) -> tuple[int, ...]:
        """Return the manipulators whose bases are not fixed: states may move them."""
        if self.alike:
            return self.alike.movable
        return tuple(k for k, base in enumerate(self.bases) if base.mode != "fixed")

    @cached_property
    def _free_bases(self) -> frozenset[int]:
        """Return the movable manipulators whose bases stand in the world."""
        bases = enumerate(self.bases)
        in_world = {
            k for k, (at, on, *_) in bases if (at.link, on) == (WORLD_LINK, WORLD)
        }
        return frozenset(in_world.intersection(self.movable))

    @property
    def carried_bases(self) -> tuple[int, ...]:
        """Return the manipulators on links that states attach there or could move."""
        return (self.alike or self)._carried_bases

    @cached_property
    def _carried_bases(self) -> tuple[int, ...]:
        return tuple(k for k in self.movable if self.bases[k].frame.link >= 0)

    @cached_property
    def carriers(self) -> tuple[int, ...]:
        """Return the movable manipulator that carries each one by fixed mounts.

        That may be itself; it is -1 where the world carries it so.
        """
        if self.alike:
            return self.alike.carriers
        bases = [self.base_link(k) for k in range(len(self.bases))]
        movable = {bases[k] for k in self.movable}
        carried_by = nearest(self.parents, bases, movable.__contains__)
        return tuple(self.cell.owners[base] for base in carried_by)

    @cached_property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """Return `carried_bases`, each on what the world or an earlier level carries.

        All trees of a cell have the same `carriers`.
        """
        if self.alike:
            return self.alike.levels
        carriers, attached = Tree.of(self.cell).carriers, set(self.carried_bases)
        above: dict[int, list[int]] = {}
        for k in self.carried_bases:
            carrier = carriers[self.cell.owners[self.bases[k].frame.link]]
            above.setdefault(carrier if carrier in attached else -1, []).append(k)
        levels: list[tuple[int, ...]] = []
        level = above.get(-1, [])
        while level:
            levels.append(tuple(level))
            level = [upper for k in level for upper in above.get(k, ())]
        return tuple(levels)

    def released(self) -> Self:
        """Return the tree with each base that is not fixed on the world."""
        world = Base(IN_WORLD, mode="loose")
        return self.attached(dict.fromkeys(self.movable, world))

    def base_link(self, manipulator: int) -> int:
        """Return the link that is the base of a manipulator."""
        return self.cell.starts[manipulator] + self.cell.manipulators[manipulator].base

    @property
    def links(self) -> tuple[Link, ...]:
        """Return the links of the cell."""
        return self.cell.links

    def placement(self, link: int) -> Pose:
        """Return the pose of a base in the link that carries it."""
        base = self.base_of[link]
        return self.base(base).frame.pose if base >= 0 else IDENTITY

    def name(self, link: int) -> str:
        """Return the qualified name of a link."""
        if link < 0:
            return WORLD
        owner = self.cell.manipulators[self.cell.owners[link]]
        return f"{owner.name}/{self.cell.links[link].name}"

    @cached_property
    def joint_links(self) -> tuple[int, ...]:
        """Return the link behind each joint of the cell's q, then each passive one."""
        return self.cell.joints.links

    def moving_joints(self, links: Iterable[int]) -> dict[int, None]:
        """Return the joints of the cell's q that move any of the links, in order.

        Where a passive joint does, they are those that decide where it is.
        """
        joints = {drive.of: None for link in links for drive in self.drives[link]}
        system = self.cell.loop_system
        return system.deciding(joints) if system.blocks else joints

    def passive_joints(self, links: Iterable[int]) -> tuple[int, ...]:
        """Return the passive joints that must be known to know where links are."""
        system = self.cell.loop_system
        if not system.blocks:
            return ()
        moving = {drive.of for link in links for drive in self.drives[link]}
        return system.solved_with(moving)

    # towards the world

    def ancestors(self, link: int) -> list[int]:
        """Return a link and all that carry it, the world last."""
        return ancestors(self.parents, link)

    def common_ancestor(self, links: Sequence[int]) -> int:
        """Return the nearest link that is or carries each of `links`, one at least."""
        return common_ancestor(self, links)

    def path(self, root: int, link: int) -> list[int]:
        """Return the links from `link` up to `root`, that one left out."""
        line = self.ancestors(link)
        return line[: line.index(root)]

    def between(self, frames: Sequence[FrameRef]) -> set[int]:
        """Return the links between frames, below the nearest one that carries all."""
        links = [frame.link for frame in frames]
        root = self.common_ancestor(links)
        return {step for link in links for step in self.path(root, link)}

    def bases_among(self, links: Iterable[int]) -> list[int]:
        """Return the manipulators whose bases are among links, in the order of those.

        Among the ancestors of a link those are the manipulators that carry it.
        """
        return [k for link in links if (k := self.base_of[link]) >= 0]

    def movers(self, links: Iterable[int]) -> list[int]:
        """Return the link whose joint moves each link: itself, or what it is fixed to.

        It is the world for those that nothing moves.
        """
        drives = self.drives
        return nearest(self.parents, links, lambda link: bool(drives[link]))

    # away from the world

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Return the links that each link carries, those of the world last."""
        if self.alike:
            return self.alike.children
        children: list[list[int]] = [[] for _ in range(len(self.parents) + 1)]
        for link, parent in enumerate(self.parents):
            children[parent].append(link)
        return tuple(map(tuple, children))

    def _descendants(self, links: Iterable[int]) -> set[int]:
        """Return links and all that they carry."""
        descendants: set[int] = set()
        waiting = list(links)
        while waiting:
            link = waiting.pop()
            if link not in descendants:
                descendants.add(link)
                waiting += self.children[link]
        return descendants

    # frames by their qualified names

    def is_link(self, frame: str) -> bool:
        """Return whether a frame is the world or a link, not one fixed to that."""
        return self.name(self.cell.frame(frame).link) == frame

    def frame_parent(self, frame: str) -> str | None:
        """Return the frame that carries a frame, None for the world.

        A named frame is carried by its link, a link by its parent, a base by the frame
        that it is attached to.
        """
        if frame == WORLD:
            return None
        link = self.cell.frame(frame).link
        if self.name(link) != frame:
            return self.name(link)
        base = self.base_of[link]
        return self.bases[base].on if base >= 0 else self.name(self.parents[link])

    def frame_children(self, frame: str) -> Iterator[str]:
        """Yield what a frame carries: named frames, links, then bases."""
        link = self.cell.frame(frame).link
        if link >= 0 and self.name(link) == frame:
            owner = self.cell.manipulators[self.cell.owners[link]]
            start = self.cell.starts[self.cell.owners[link]]
            yield from (f"{owner.name}/{f.name}" for f in self.cell.links[link].frames)
            yield from (self.name(start + k) for k in owner.children[link - start])
        yield from (self.name(self.base_link(k)) for k in self._bases_on.get(frame, ()))

    @cached_property
    def _bases_on(self) -> dict[str, list[int]]:
        """Return the manipulators whose bases are attached to each frame."""
        if self.alike:
            return self.alike._bases_on
        by_frame: dict[str, list[int]] = {}
        for k, base in enumerate(self.bases):
            by_frame.setdefault(base.on, []).append(k)
        return by_frame

    def common_frame(self, frames: Sequence[str]) -> str:
        """Return the nearest frame that is or carries each of these, one at least."""
        return nearest_shared([self._frame_ancestors(frame) for frame in frames])

    def _frame_ancestors(self, frame: str) -> list[str]:
        way = [frame]
        while (parent := self.frame_parent(way[-1])) is not None:
            way.append(parent)
        return way

    def carried_by(self, frames: Iterable[str]) -> set[int]:
        """Return the links that any of the frames carries.

        The frames' own links are not among them, unless another frame carries those.
        """
        first: list[int] = []
        for frame in frames:
            if self.is_link(frame):
                first += self.children[self.cell.frame(frame).link]
            else:
                first += map(self.base_link, self._bases_on.get(frame, ()))
        return self._descendants(first)
