"""Joints with more than one coordinate: free bases, or several joints in a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.names import FreeNames
from armillary.formats.urdf.bodies import Body
from armillary.formats.urdf.hinges import FREE, Hinge
from armillary.model.axis import Axis, X, Y, Z
from armillary.model.joint import Joint
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.link import Link
from armillary.spatial.vector import cross, unit

__all__ = ["free_base", "split"]

AXES: Final[tuple[Axis, Axis, Axis]] = (X, Y, Z)


def free_base(root: Body, carried: Sequence[Hinge], report: Report) -> Hinge | None:
    """Return the joint that lets the whole robot move freely, if there is one.

    root: The link that nothing carries.
    carried: The joints on it.
    """
    if not root.is_bare or len(carried) != 1 or carried[0].type not in FREE:
        return None
    joint = carried[0]
    report.note(
        joint.place,
        "free-base",
        f"{joint.type} joint {quote(joint.name)} makes link {quote(joint.child)} the "
        f"base, which moves through the state; link {quote(root.name)} is left out",
    )
    if joint.type == "planar":
        report.warning(
            joint.place,
            "not-kept",
            f"that base {quote(joint.child)} stays in a plane is not kept",
        )
    return joint


def split(
    joint: Hinge, links: FreeNames, joints: FreeNames, report: Report
) -> Iterator[Link]:
    """Yield the links of a planar, floating or spherical joint, the last its child.

    The last one is without a body.
    """
    match joint.type:
        case "planar":
            steps = _planar(joint)
        case "spherical":
            steps = _spherical(joint)
        case _:
            steps = _floating(joint)
    names = [joints.derive(f"{joint.name}_{suffix}") for suffix, _ in steps]
    report.note(
        joint.place,
        "split-joint",
        f"{joint.type} joint {quote(joint.name)} becomes {len(steps)} joints: "
        f"{', '.join(names)}",
    )
    parent = joint.parent
    for number, (name, (_, moves)) in enumerate(zip(names, steps, strict=True), 1):
        is_last = number == len(steps)
        link = joint.child if is_last else links.derive(name)
        yield Link(name=link, parent=parent, joint=moves, joint_name=name)
        parent = link


def _planar(joint: Hinge) -> list[tuple[str, Joint]]:
    """Slide along two directions of the plane, then turn about its normal.

    The first direction is the coordinate axis next, in turn, to the one most like the
    normal, made level: x and y where the normal is z.
    """
    normal = unit(joint.axis)
    most_like = max(range(3), key=lambda k: abs(normal[k]))
    level = cross(cross(normal, AXES[(most_like + 1) % 3]), normal)
    first = unit(level)
    second = unit(cross(normal, first))
    return [
        ("x", Prismatic(axis=first, precursor=joint.origin)),
        ("y", Prismatic(axis=second)),
        ("theta", Revolute(axis=normal)),
    ]


def _floating(joint: Hinge) -> list[tuple[str, Joint]]:
    """Slide along x, y, z, then turn by Rz(yaw) Ry(pitch) Rx(roll)."""
    return [
        ("x", Prismatic(axis=X, precursor=joint.origin)),
        ("y", Prismatic(axis=Y)),
        ("z", Prismatic(axis=Z)),
        ("yaw", Revolute(axis=Z)),
        ("pitch", Revolute(axis=Y)),
        ("roll", Revolute(axis=X)),
    ]


def _spherical(joint: Hinge) -> list[tuple[str, Joint]]:
    """Turn by Rz(yaw) Ry(pitch) Rx(roll)."""
    return [
        ("yaw", Revolute(axis=Z, precursor=joint.origin)),
        ("pitch", Revolute(axis=Y)),
        ("roll", Revolute(axis=X)),
    ]
