"""Poses along the tree: every link's pose from the coordinates, each computed once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from armillary.model.workcell import FrameRef, Workcell
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.twist import Vector6
from armillary.spatial.vector import Number


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Layout:
    """A cell, and the frames that its manipulators' bases stand at just now.

    States that differ in their joints alone share one, which is told by identity.

    Attributes:
        cell: What there is.
        supports: For each manipulator the frame of its base; as `cell.supports` unless
            a state has moved or attached some.
    """

    cell: Workcell
    supports: tuple[FrameRef, ...]

    @classmethod
    def of(cls, cell: Workcell) -> Self:
        """Return the layout in which the cell was built."""
        return cls(cell, cell.supports)


Key = tuple[int, int]
"""A link of the cell: its manipulator and its place in there; (-1, -1) is the world."""

WORLD_KEY: Key = (-1, -1)


class Carried(NamedTuple):
    """A link's pose as that of the joint that moves it, and a constant behind it."""

    moving: Pose
    constant: Pose

    @property
    def pose(self) -> Pose:
        """Return the pose of the link's outer frame."""
        return self.moving @ self.constant


class Chains:
    """The poses of links in one frame of reference, at one vector of coordinates.

    Constant poses are multiplied with each other before they meet moving ones, so that
    fixed joints cost nothing.
    """

    def __init__(self, layout: Layout, q: Sequence[Number], root: Key) -> None:
        """Start with the link `root`, whose outer frame is the frame of reference."""
        self._layout = layout
        self._cell = layout.cell
        self._q = q
        self._known: dict[Key, Carried] = {root: Carried(IDENTITY, IDENTITY)}

    def pose(self, at: FrameRef) -> Pose:
        """Return the pose of a frame fixed to `root` or to what it carries."""
        carried = self.carried((at.manipulator, at.link))
        return carried.moving @ (carried.constant @ at.pose)

    def carried(self, key: Key) -> Carried:
        """Return the pose of a link's outer frame."""
        path: list[Key] = []
        while key not in self._known:
            path.append(key)
            key = parent_of(self._layout, key)
        for step in reversed(path):
            self._known[step] = self._next(step)
            key = step
        return self._known[key]

    def _next(self, key: Key) -> Carried:
        """Return the pose of a link whose parent's is known."""
        manipulator, k = key
        before = self._known[parent_of(self._layout, key)]
        if self._cell.manipulators[manipulator].parents[k] < 0:
            support = self._layout.supports[manipulator].pose
            before = Carried(before.moving, before.constant @ support)
        joint = self._cell.manipulators[manipulator].links[k].joint
        constant = before.constant @ joint.precursor
        q = self.coordinate(key)
        if q is None:
            return Carried(before.moving, constant)
        return Carried(before.moving @ constant @ joint.motion.pose(q), IDENTITY)

    def coordinate(self, key: Key) -> Number | None:
        """Return the coordinate of a link's joint, None where it is fixed."""
        manipulator, k = key
        drive = self._cell.manipulators[manipulator].drives[k]
        if drive is None:
            return None
        q = self._q[self._cell.offsets[manipulator] + drive.of]
        return drive.multiplier * q + drive.offset

    def subspace(self, key: Key) -> Vector6:
        """Return the twist of a link per unit rate of its own joint, in its frame."""
        manipulator, k = key
        joint = self._cell.manipulators[manipulator].links[k].joint
        return joint.motion.subspace(self.coordinate(key))


def parent_of(layout: Layout, key: Key) -> Key:
    """Return the link that carries a link, across mounts, up to the world."""
    manipulator, k = key
    parent = layout.cell.manipulators[manipulator].parents[k]
    if parent >= 0:
        return manipulator, parent
    support = layout.supports[manipulator]
    return support.manipulator, support.link


def ancestry(layout: Layout, key: Key) -> list[Key]:
    """Return a link and all that carry it, the world last."""
    found = [key]
    while found[-1] != WORLD_KEY:
        found.append(parent_of(layout, found[-1]))
    return found


def anchors(layout: Layout, keys: Iterable[Key]) -> list[Key]:
    """Return the link that moves each link: itself, or what it is fixed to in the end.

    It is the world for those that nothing moves.
    """
    known: dict[Key, Key] = {WORLD_KEY: WORLD_KEY}
    found: list[Key] = []
    for key in keys:
        path: list[Key] = []
        below = key
        while below not in known:
            manipulator, k = below
            if layout.cell.manipulators[manipulator].drives[k] is not None:
                known[below] = below
                break
            path.append(below)
            below = parent_of(layout, below)
        known.update(dict.fromkeys(path, known[below]))
        found.append(known[key])
    return found


def common_ancestor(layout: Layout, keys: Sequence[Key]) -> Key:
    """Return the nearest link that carries all of `keys`, itself one of them maybe."""
    shared = ancestry(layout, keys[0])
    for key in keys[1:]:
        line = set(ancestry(layout, key))
        shared = [link for link in shared if link in line]
    return shared[0]


def path_below(layout: Layout, root: Key, key: Key) -> list[Key]:
    """Return the links from `key` up to `root`, that one left out."""
    line = ancestry(layout, key)
    return line[: line.index(root)]


def link_of(at: FrameRef) -> Key:
    """Return the link that a frame is fixed to."""
    return at.manipulator, at.link
