"""The rigid bodies of a cell: links that joints move, and all that is fixed to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from armillary.model.drive import Drive
from armillary.model.frame import FrameRef
from armillary.model.tree import Tree
from armillary.model.workcell import WORLD_LINK
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import IDENTITY, Pose

__all__ = ["GROUND", "Bodies", "RigidBody"]

GROUND: Final = -1
"""The number of the body that does not move."""


class RigidBody(NamedTuple):
    """A rigid body; its frame is the outer frame of the joint that moves it.

    Attributes:
        link: The link behind that joint, or the base that nothing holds.
        parent: The number of the body that carries it, or `GROUND`.
        before: The pose in the frame of `parent` of what the joint starts from; of a
            free base its own pose in the world.
        drives: What moves each coordinate of its joint, by the index of that in the
            vector of all coordinates; six of a free base, whose twist they are: of its
            origin, in the axes of the world.
        is_free: Whether it is a free base.
    """

    link: int
    parent: int
    before: Pose
    drives: tuple[Drive, ...]
    is_free: bool = False


class Bodies(NamedTuple):
    """The bodies of a tree of links, each after the one that carries it.

    Attributes:
        rows: The bodies.
        fixed: The body that each link is fixed to, and the pose of the link in that.
    """

    rows: tuple[RigidBody, ...]
    fixed: dict[int, tuple[int, Pose]]

    @classmethod
    def of(cls, tree: Tree, free: Sequence[int] = (), first: int = 0) -> Self:
        """Return the bodies of a tree, whose base poses may be traced.

        Args:
            tree: The links, and what carries each.
            free: Manipulators whose bases nothing holds.
            first: The index of the first coordinate of the first free base.
        """
        rows: list[RigidBody] = []
        fixed: dict[int, tuple[int, Pose]] = {WORLD_LINK: (GROUND, IDENTITY)}
        bases = {tree.base_link(m): k for k, m in enumerate(free)}
        waiting = list(reversed(tree.children[WORLD_LINK]))
        while waiting:
            link = waiting.pop()
            waiting += reversed(tree.children[link])
            body, pose = fixed[tree.parents[link]]
            pose = pose @ tree.placement(link)
            if link in bases:
                start = first + 6 * bases[link]
                six = tuple(Drive(start + k, 1.0, 0.0) for k in range(6))
                rows.append(RigidBody(link, GROUND, pose, six, is_free=True))
                body, pose = len(rows) - 1, IDENTITY
            pose = pose @ tree.links[link].joint.precursor
            if tree.drives[link]:
                rows.append(RigidBody(link, body, pose, tree.drives[link]))
                body, pose = len(rows) - 1, IDENTITY
            fixed[link] = body, pose
        return cls(tuple(rows), fixed)

    @property
    def parents(self) -> list[int]:
        """Return the body that carries each body."""
        return [body.parent for body in self.rows]

    def holder(self, at: FrameRef) -> tuple[int, Pose]:
        """Return the body that a frame is fixed to, and the frame's pose in that."""
        body, pose = self.fixed[at.link]
        return body, pose @ at.pose

    def inertias(self, tree: Tree) -> list[SpatialInertia]:
        """Return the inertia of each body, about its frame; unknown ones count nothing.

        tree: The links, where all base poses are floats.
        """
        inertias = [SpatialInertia.zero() for _ in self.rows]
        for link, (body, pose) in self.fixed.items():
            inertia = tree.links[link].inertia if link >= 0 else None
            if inertia is not None and body != GROUND:
                own = inertia.transformed(pose @ tree.links[link].primary)
                inertias[body] += own
        return inertias
