"""The wrench that a frame passes on to what it carries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Self

from armillary.dynamics.bodies import GROUND, Bodies
from armillary.dynamics.inverse import inertial_wrench, transmitted_wrenches
from armillary.dynamics.multibody import Multibody
from armillary.dynamics.operational import frame_pose
from armillary.errors import ModelError, quote
from armillary.model.frame import FrameRef
from armillary.model.tree import Tree
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.twist import (
    ZERO6,
    Vector6,
    add6,
    inverse_transform_wrench,
    transform_wrench,
    turn,
)
from armillary.spatial.vector import Number, transpose

__all__ = ["Cut", "reaction"]


class Cut(NamedTuple):
    """What a frame carries.

    Attributes:
        frame: The frame.
        bodies: The bodies that are behind it, and that none of these carries.
        links: The links that are fixed to the same body as the frame.
    """

    frame: FrameRef
    bodies: tuple[int, ...]
    links: tuple[int, ...]

    @classmethod
    def at(cls, tree: Tree, bodies: Bodies, frame: str) -> Self:
        """Return what a frame carries; of a link, that and the link itself.

        frame: Its qualified name.

        Raises:
            ModelError: A loop closes around it.
        """
        at = tree.cell.frame(frame)
        links = tree.carried_by([frame])
        if at.link >= 0 and tree.is_link(frame):
            links = links | {at.link}
        _check_loops(tree, links, frame)
        holder, _ = bodies.holder(at)
        behind = [
            k
            for k, row in enumerate(bodies.rows)
            if row.link in links and row.parent == holder
        ]
        fixed = sorted(link for link in links if bodies.fixed[link][0] == holder)
        return cls(at, tuple(behind), tuple(fixed))

    def inertia(self, tree: Tree, bodies: Bodies) -> SpatialInertia:
        """Return the inertia of `links`, in the frame of their body."""
        total = SpatialInertia.zero()
        for link in self.links:
            inertia = tree.links[link].inertia
            if inertia is not None:
                pose = bodies.fixed[link][1] @ tree.links[link].primary
                total += inertia.transformed(pose)
        return total


def _check_loops(tree: Tree, links: Collection[int], frame: str) -> None:
    """Refuse loops through a cut: how they share the load is not known."""
    for placed in tree.cell.joints.placed_loops:
        if (placed.a.link in links) != (placed.b.link in links):
            raise ModelError(
                f"The wrench at {quote(frame)} is unknown: {placed.loop.label} also "
                "joins what the frame carries to the rest of the cell, and takes a "
                "part of the load. Ask for a frame that carries all of the loop, or "
                "none of it."
            )


def reaction(
    bodies: Multibody,
    cut: Cut,
    carried: SpatialInertia,
    axes: FrameRef,
    qd: Sequence[Number],
    qdd: Sequence[Number],
) -> Vector6:
    """Return the wrench [N, N m] on what is behind a cut, about its frame's origin.

    Args:
        bodies: In their configuration.
        cut: What is behind it.
        carried: The inertia of `cut.links`.
        axes: The frame in whose axes the wrench is written.
        qd: The rates of the independent coordinates.
        qdd: Their accelerations.
    """
    rates = bodies.all_rates(qd)
    motion = bodies.accelerations(rates, bodies.all_accelerations(rates, qdd))
    wrenches = transmitted_wrenches(bodies, motion)
    holder, X = bodies.bodies.holder(cut.frame)
    moved = ZERO6, bodies.ground
    if holder != GROUND:
        moved = motion.velocity[holder], motion.acceleration[holder]
    total = inertial_wrench(carried, *moved)
    for k in cut.bodies:
        total = add6(total, transform_wrench(bodies.poses[k], wrenches[k]))
    found = inverse_transform_wrench(X, total)
    if axes == cut.frame:
        return found
    R_WF = frame_pose(bodies, cut.frame).rotation
    R_WA = frame_pose(bodies, axes).rotation
    return turn(transpose(R_WA), turn(R_WF, found))
