"""Several joints between two links, with bare links between them.

Links have one joint with one coordinate. What formats say of joints with more of them,
or of links with several joints, becomes joints one behind the other: a ball is
Rz(yaw) Ry(pitch) Rx(roll). The links between have no mass and no shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from armillary.formats.names import FreeNames
from armillary.model.axis import X, Y, Z
from armillary.model.coupling import Coupling
from armillary.model.joint import Joint
from armillary.model.joint_dynamics import NO_DYNAMICS, JointDynamics
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.limits import UNLIMITED, Limits
from armillary.model.link import Link
from armillary.spatial.pose import Pose

__all__ = ["BALL", "FLOATING", "SplitJoint", "links_behind", "placed"]

SLIDES: Final[dict[str, Joint]] = {
    "x": Prismatic(axis=X),
    "y": Prismatic(axis=Y),
    "z": Prismatic(axis=Z),
}

BALL: Final[dict[str, Joint]] = {
    "yaw": Revolute(axis=Z),
    "pitch": Revolute(axis=Y),
    "roll": Revolute(axis=X),
}
"""The joints of a ball, with ends of their names.

Two of the axes fall together where the pitch is a right angle.
"""

FLOATING: Final[dict[str, Joint]] = SLIDES | BALL
"""The joints of a body that moves freely, with ends of their names."""


class SplitJoint(msgspec.Struct, frozen=True, kw_only=True):
    """One of several joints between two links.

    Attributes:
        name: Of the coordinate.
        joint: In the outer frame of the one before.
        limits: Of the coordinate.
        dynamics: About the coordinate.
        coupling: The joint that it follows, if any.
        passive: Whether loops determine it.
    """

    name: str
    joint: Joint
    limits: Limits = UNLIMITED
    dynamics: JointDynamics = NO_DYNAMICS
    coupling: Coupling | None = None
    passive: bool = False


def placed(origin: Pose, joints: Iterable[Joint]) -> list[Joint]:
    """Return joints one behind the other, of which the first stands at a pose.

    origin: In front of what the first joint has in front of its motion.
    """
    first, *rest = joints
    return [first.replace(precursor=origin @ first.precursor), *rest]


def links_behind(
    steps: Sequence[SplitJoint], *, parent: str, body: Link, names: FreeNames
) -> list[Link]:
    """Return the links behind joints, the last one a body.

    steps: At least one, the innermost first.
    parent: Name of the link that carries the first joint.
    body: What the last joint carries.
    names: Of links, from which those between get names like their joints.
    """
    links: list[Link] = []
    for number, step in enumerate(steps, 1):
        is_last = number == len(steps)
        link = body if is_last else Link(name=names.derive(step.name))
        links.append(
            msgspec.structs.replace(
                link,
                parent=parent,
                joint=step.joint,
                joint_name=step.name,
                limits=step.limits,
                dynamics=step.dynamics,
                coupling=step.coupling,
                passive=step.passive,
            )
        )
        parent = link.name
    return links
