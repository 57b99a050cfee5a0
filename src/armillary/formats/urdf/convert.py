"""The links and joints of a faultless URDF to a cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.names import FreeNames, depth_first
from armillary.formats.urdf.joints import FREE, SEVERAL, JointElement
from armillary.model.axis import Axis, X, Y, Z
from armillary.model.joint import Joint
from armillary.model.joints.fixed import Fixed
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.mount import Mount
from armillary.model.workcell import Workcell
from armillary.spatial.vector import cross, unit

__all__ = ["PARTS", "cell_of"]

PARTS: Final[dict[str, tuple[str, ...]]] = {
    "planar": ("x", "y", "theta"),
    "floating": ("x", "y", "z", "yaw", "pitch", "roll"),
    "spherical": ("yaw", "pitch", "roll"),
}
"""The joints that replace a joint with several coordinates: ends of their names.

The rotation is Rz(yaw) Ry(pitch) Rx(roll).
"""

AXES: Final[tuple[Axis, Axis, Axis]] = (X, Y, Z)
_SLIDES: Final = {"x": X, "y": Y, "z": Z}
_TURNS: Final = {"yaw": Z, "pitch": Y, "roll": X}


def cell_of(
    name: str,
    root: str,
    links: Sequence[Link],
    joints: Sequence[JointElement],
    report: Report,
) -> Workcell:
    """Return a cell of one manipulator, its links depth first."""
    by_name = {link.name: link for link in links}
    carrier = {joint.child: joint for joint in joints}
    carried: dict[str, list[JointElement]] = {}
    for joint in joints:
        carried.setdefault(joint.parent, []).append(joint)
    mounts: tuple[Mount, ...] = ()
    free = _free_base(by_name[root], carried.get(root, []), report)
    if free is not None:
        root = free.child
        if not free.origin.is_identity:
            mounts = (Mount(manipulator=name, pose=free.origin),)
    link_names = FreeNames(set(by_name))
    joint_names = FreeNames({joint.name for joint in joints})
    found = [by_name[root]]
    children = {link: [each.child for each in on] for link, on in carried.items()}
    for child in depth_first(root, children)[1:]:
        joint, body = carrier[child], by_name[child]
        if joint.type in SEVERAL:
            found.extend(_split(joint, body, link_names, joint_names, report))
        else:
            found.append(_carried(body, joint))
    manipulator = Manipulator(name=name, links=tuple(found))
    return Workcell(name=name, manipulators=(manipulator,), mounts=mounts)


def _carried(body: Link, joint: JointElement) -> Link:
    """Return a link behind a joint with at most one coordinate."""
    moves: Joint = Fixed(precursor=joint.origin)
    if joint.type != "fixed":
        kind = Prismatic if joint.type == "prismatic" else Revolute
        moves = kind(axis=joint.axis, precursor=joint.origin)
    return msgspec.structs.replace(
        body,
        parent=joint.parent,
        joint=moves,
        joint_name=joint.name,
        limits=joint.limits,
        dynamics=joint.dynamics,
        coupling=joint.mimic,
    )


def _free_base(
    root: Link, carried: Sequence[JointElement], report: Report
) -> JointElement | None:
    """Return the joint that lets the whole robot move freely, if there is one.

    root: The link without a parent.
    carried: The joints on it.
    """
    is_bare = root == Link(name=root.name)
    if not is_bare or len(carried) != 1 or carried[0].type not in FREE:
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


def _split(
    joint: JointElement, body: Link, links: FreeNames, joints: FreeNames, report: Report
) -> Iterator[Link]:
    """Yield the links of a joint with several coordinates, the last one its child."""
    steps = _steps(joint)
    names = [joints.derive(f"{joint.name}_{suffix}") for suffix, _ in steps]
    report.note(
        joint.place,
        "split-joint",
        f"{joint.type} joint {quote(joint.name)} becomes {len(steps)} joints: "
        f"{', '.join(names)}",
    )
    parent = joint.parent
    for number, (name, (_, moves)) in enumerate(zip(names, steps, strict=True), 1):
        link = body if number == len(steps) else Link(name=links.derive(name))
        yield msgspec.structs.replace(link, parent=parent, joint=moves, joint_name=name)
        parent = link.name


def _steps(joint: JointElement) -> list[tuple[str, Joint]]:
    """Return the joints that replace a joint, with the ends of their names."""
    slides, turns = _SLIDES, _TURNS
    if joint.type == "planar":
        first, second, normal = _plane(joint.axis)
        slides, turns = {"x": first, "y": second}, {"theta": normal}
    steps: list[tuple[str, Joint]] = []
    for part in PARTS[joint.type]:
        kind = Prismatic if part in slides else Revolute
        steps.append((part, kind(axis=(slides | turns)[part])))
    part, first_joint = steps[0]
    steps[0] = part, msgspec.structs.replace(first_joint, precursor=joint.origin)
    return steps


def _plane(axis: Axis) -> tuple[Axis, Axis, Axis]:
    """Return two directions in the plane of a planar joint, and its normal.

    The first is the projection of the coordinate axis after the one that is most like
    the normal: x and y where the normal is z.
    """
    normal = unit(axis)
    most_like = max(range(3), key=lambda k: abs(normal[k]))
    level = cross(cross(normal, AXES[(most_like + 1) % 3]), normal)
    first = unit(level)
    return first, unit(cross(normal, first)), normal
