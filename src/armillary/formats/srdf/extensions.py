"""What an SRDF says beside groups and collisions: kept as properties, written again.

Each element becomes a property of a link, whose text is JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from armillary.errors import quote
from armillary.formats.srdf.elements import ELEMENTS
from armillary.formats.srdf.names import Names, VirtualJoint
from armillary.formats.xml import Element
from armillary.model.property import Property

__all__ = [
    "BASE_POSE",
    "END_EFFECTORS",
    "JOINT_PROPERTIES",
    "PREFIX",
    "SPHERE_OF",
    "VIRTUAL_JOINTS",
    "JointProperty",
    "KeptEndEffector",
    "KeptVirtualJoint",
    "read_end_effectors",
    "read_joint_properties",
    "read_spheres",
    "read_virtual_joints",
    "virtual_properties",
]

PREFIX: Final = "srdf."
END_EFFECTORS: Final = f"{PREFIX}end_effector"
VIRTUAL_JOINTS: Final = f"{PREFIX}virtual_joint"
JOINT_PROPERTIES: Final = f"{PREFIX}joint_property"
SPHERE_OF: Final = f"{PREFIX}sphere"
"""Property of a link: centre in the link's frame and radius of a sphere, [m]."""

BASE_POSE: Final = f"{PREFIX}base_pose"
"""Property of the base: its pose in the posture that the text names, as in SRDF."""

TYPES: Final = ("fixed", "planar", "floating")


class KeptEndEffector(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An end effector as the property of its parent link keeps it, in JSON."""

    name: str
    group: str
    parent_group: str = ""


class KeptVirtualJoint(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A virtual joint as the property of its child link keeps it, in JSON."""

    name: str
    type: str
    parent_frame: str
    groups: tuple[str, ...] = ()


class JointProperty(msgspec.Struct, kw_only=True):
    """A property of a joint as the property of its link keeps it, in JSON."""

    joint: str
    name: str
    value: str


def _property(name: str, of: str, value: msgspec.Struct) -> Property:
    return Property(name=name, of=of, text=msgspec.json.encode(value).decode())


def read_virtual_joints(robot: Element, names: Names) -> None:
    """Note the virtual joints, which other elements may name."""
    report = names.report
    for element in robot.children_named("virtual_joint"):
        fields = ELEMENTS.read(element, names)
        type_ = fields["type"] = (fields["type"] or "fixed").lower()
        if type_ not in TYPES:
            report.error(
                element.place,
                "unknown-value",
                f"{element.label} is of type {quote(type_)}, not one of "
                f"{', '.join(TYPES)}",
                hint=report.hint(type_, TYPES),
            )
            continue
        if None in fields.values():
            continue
        joint = VirtualJoint(**fields, place=element.place, groups=[])
        if joint.name in names.virtual:
            report.error(
                element.place,
                "repeated-name",
                f"a virtual joint is called {quote(joint.name)} already, at line "
                f"{names.virtual[joint.name].place.line}",
                hint="Rename one.",
            )
        names.virtual[joint.name] = joint


def virtual_properties(names: Names) -> Iterator[Property]:
    """Yield a property of the child link for each virtual joint."""
    for joint in names.virtual.values():
        value = KeptVirtualJoint(
            name=joint.name,
            type=joint.type,
            parent_frame=joint.parent_frame,
            groups=tuple(joint.groups),
        )
        yield _property(VIRTUAL_JOINTS, joint.child_link, value)


def read_end_effectors(robot: Element, names: Names) -> Iterator[Property]:
    """Yield a property of the parent link for each end effector."""
    seen: set[str] = set()
    for element in robot.children_named("end_effector"):
        fields = ELEMENTS.read(element, names)
        name, link = fields["name"], fields.pop("parent_link")
        if name is not None and name in seen:
            message = f"another end effector is called {quote(name)} too"
            names.report.warning(element.place, "repeated-name", message)
        seen.add(name or "")
        for each in filter(None, (fields["group"], fields["parent_group"])):
            names.check_group(element, each)
        if link is not None and None not in fields.values():
            yield _property(END_EFFECTORS, link, KeptEndEffector(**fields))


def read_spheres(robot: Element, names: Names) -> Iterator[Property]:
    """Yield a property of a link for each sphere that approximates it."""
    report = names.report
    for element in robot.children_named("link_sphere_approximation"):
        link = ELEMENTS.read(element, names)["link"]
        spheres = element.children_named("sphere")
        if not spheres:
            message = f"{element.label} has no <sphere>, so it has no effect"
            report.warning(element.place, "no-sphere", message)
        for child in spheres:
            centre, radius = ELEMENTS.read(child, names).values()
            if radius is not None and radius < 0.0:
                message = f"the radius of a sphere is {radius:g}, less than 0"
                report.error(child.place, "bad-number", message)
            elif link is not None and centre is not None and radius is not None:
                yield Property(name=SPHERE_OF, of=link, numbers=(*centre, radius))


def read_joint_properties(robot: Element, names: Names) -> Iterator[Property]:
    """Yield a property of the link behind a joint for each property of the joint."""
    for element in robot.children_named("joint_property"):
        fields = ELEMENTS.read_whole(element, names)
        if fields is None:
            continue
        joint = fields["joint"]
        if joint in names.virtual:
            link = names.virtual[joint].child_link
        else:
            parts = names.joints(element, joint)
            if not parts:
                continue
            link = names.manipulator.links[names.link_behind[parts[-1]]].name
        yield _property(JOINT_PROPERTIES, link, JointProperty(**fields))
