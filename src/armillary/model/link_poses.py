"""Where links are, in one frame of reference, on floats or traced scalars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from armillary.model.drive import Drive
from armillary.model.frame import FrameRef
from armillary.model.link import Link
from armillary.model.parents import ancestors, nearest_shared
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.twist import halves
from armillary.spatial.vector import Number, Vector3, apply

__all__ = ["BareTree", "LinkPoses", "LinkTree", "common_ancestor", "poses_of"]


class LinkTree(Protocol):
    """Links, and what carries and moves each: those of a manipulator or of a cell."""

    @property
    def links(self) -> Sequence[Link]:
        """Return the links, by which they are numbered; -1 is the world."""
        ...

    @property
    def parents(self) -> Sequence[int]:
        """Return the link that carries each link."""
        ...

    @property
    def drives(self) -> Sequence[Sequence[Drive]]:
        """Return what moves the joint of each link: nothing where it is fixed."""
        ...

    def placement(self, link: int) -> Pose:
        """Return the pose in its parent of a link before its joint: that of a base."""
        ...


class BareTree(msgspec.Struct, frozen=True, eq=False):
    """A tree of links as plain data.

    Attributes:
        links: The links.
        parents: The link that carries each, -1 for the world.
        drives: What moves the joint of each.
        placements: The pose in its parent of each link that is a base.
    """

    links: Sequence[Link]
    parents: Sequence[int]
    drives: Sequence[Sequence[Drive]]
    placements: Mapping[int, Pose]

    def placement(self, link: int) -> Pose:
        """Return the pose in its parent of a link before its joint: that of a base."""
        return self.placements.get(link, IDENTITY)


def common_ancestor(tree: LinkTree, links: Sequence[int]) -> int:
    """Return the nearest link that is or carries each of `links`, one at least."""
    return nearest_shared([ancestors(tree.parents, link) for link in links])


def poses_of(
    tree: LinkTree,
    q: Sequence[Number],
    frames: Sequence[FrameRef],
    relative_to: FrameRef,
) -> list[Pose]:
    """Return the poses of `frames` in `relative_to`.

    q: A number for each joint: of the independent ones, then of the passive ones.
    """
    root = common_ancestor(tree, [at.link for at in (relative_to, *frames)])
    links = LinkPoses(tree, q, root)
    if relative_to.link == root and relative_to.pose.is_identity:
        return [links.pose(at) for at in frames]
    X_AR = links.pose(relative_to).inverse()
    return [X_AR @ links.pose(at) for at in frames]


class _Factors(NamedTuple):
    """A link's pose as that of the joint that moves it, and a constant behind it."""

    moving: Pose
    constant: Pose


class LinkPoses:
    """The poses of links in one frame of reference, at one vector of all joints.

    Each is computed once. Constant poses are multiplied with each other before they
    meet moving ones, so that fixed joints cost nothing.
    """

    def __init__(self, tree: LinkTree, q: Sequence[Number], root: int) -> None:
        """Start with the link `root`, whose outer frame is the frame of reference."""
        self._tree = tree
        self._q = q
        self._known: dict[int, _Factors] = {root: _Factors(IDENTITY, IDENTITY)}
        self._poses: dict[int, Pose] = {}
        self._turned: dict[int, list[tuple[Vector3, Vector3]]] = {}

    def pose(self, at: FrameRef) -> Pose:
        """Return the pose of a frame fixed to `root` or to what it carries."""
        moving, constant = self._factors(at.link)
        return moving @ (constant @ at.pose)

    def link_pose(self, link: int) -> Pose:
        """Return the pose of a link's outer frame."""
        if link not in self._poses:
            moving, constant = self._factors(link)
            self._poses[link] = moving @ constant
        return self._poses[link]

    def _factors(self, link: int) -> _Factors:
        known, parents = self._known, self._tree.parents
        path: list[int] = []
        while link not in known:
            path.append(link)
            link = parents[link]
        factors = known[link]
        for step in reversed(path):
            factors = known[step] = self._next(step, factors)
        return factors

    def _next(self, link: int, parent: _Factors) -> _Factors:
        """Return the pose of a link from that of its parent."""
        tree = self._tree
        joint = tree.links[link].joint
        moving, constant = parent
        constant = constant @ tree.placement(link) @ joint.precursor
        q = self.joint_positions(link)
        if not q:
            return _Factors(moving, constant)
        return _Factors(moving @ constant @ joint.motion.pose(*q), IDENTITY)

    def joint_positions(self, link: int) -> list[Number]:
        """Return the coordinates of a link's joint, none where it is fixed."""
        return [
            drive.multiplier * self._q[drive.of] + drive.offset
            for drive in self._tree.drives[link]
        ]

    def turned_columns(self, link: int) -> list[tuple[Vector3, Vector3]]:
        """Return the twists of a link per unit rate of each coordinate of its joint.

        Each is the linear part, about the origin of the link's frame, and the angular
        one, both in the axes of the reference.
        """
        if link not in self._turned:
            joint, R = self._tree.links[link].joint, self.link_pose(link).rotation
            columns = joint.motion.columns(*self.joint_positions(link))
            # The angular part is recorded first, as the order of code depends on it.
            turned = [(apply(R, w), apply(R, v)) for v, w in map(halves, columns)]
            self._turned[link] = [(v, w) for w, v in turned]
        return self._turned[link]
