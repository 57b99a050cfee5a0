"""What an SRDF says beside groups and collisions: kept as properties of links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from armillary.errors import quote
from armillary.formats.srdf.names import Names, VirtualJoint
from armillary.formats.xml import Element
from armillary.model.property import Property

__all__ = [
    "BASE_POSE",
    "END_EFFECTOR",
    "JOINT_PROPERTY",
    "PREFIX",
    "SPHERE",
    "VIRTUAL_JOINT",
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
END_EFFECTOR: Final = f"{PREFIX}end_effector"
VIRTUAL_JOINT: Final = f"{PREFIX}virtual_joint"
JOINT_PROPERTY: Final = f"{PREFIX}joint_property"
SPHERE: Final = f"{PREFIX}sphere"
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


def _kept(name: str, of: str, value: msgspec.Struct) -> Property:
    return Property(name=name, of=of, text=msgspec.json.encode(value).decode())


def read_virtual_joints(robot: Element, names: Names) -> None:
    """Note the virtual joints, which other elements may name."""
    report = names.report
    for element in robot.children_named("virtual_joint"):
        given = names.read(
            element, texts=("name", "parent_frame"), links=("child_link",)
        )
        type_ = (names.required(element, "type") or "fixed").lower()
        if type_ not in TYPES:
            report.error(
                element.place,
                "unknown-value",
                f"{element.label} is of type {quote(type_)}, not one of "
                f"{', '.join(TYPES)}",
                hint=names.report.hint(type_, TYPES),
            )
            continue
        if given is None:
            continue
        name, frame, child = given
        if name in names.virtual:
            report.error(
                element.place,
                "repeated-name",
                f"a virtual joint is called {quote(name)} already, at line "
                f"{names.virtual[name].place.line}",
                hint="Rename one.",
            )
        names.virtual[name] = VirtualJoint(name, type_, frame, child, element.place, [])


def virtual_properties(names: Names) -> Iterator[Property]:
    """Yield a property of the child link for each virtual joint."""
    for joint in names.virtual.values():
        value = KeptVirtualJoint(
            name=joint.name,
            type=joint.type,
            parent_frame=joint.parent_frame,
            groups=tuple(joint.groups),
        )
        yield _kept(VIRTUAL_JOINT, joint.child_link, value)


def read_end_effectors(robot: Element, names: Names) -> Iterator[Property]:
    """Yield a property of the parent link for each end effector."""
    seen: set[str] = set()
    for element in robot.children_named("end_effector"):
        name = names.required(element, "name")
        if name is not None and name in seen:
            message = f"another end effector is called {quote(name)} too"
            names.report.warning(element.place, "repeated-name", message)
        seen.add(name or "")
        link = names.link(element, "parent_link")
        group = names.required(element, "group")
        parent = (element.attribute("parent_group") or "").strip()
        for each in filter(None, (group, parent)):
            names.check_group(element, each)
        if name is not None and link is not None and group is not None:
            value = KeptEndEffector(name=name, group=group, parent_group=parent)
            yield _kept(END_EFFECTOR, link, value)


def read_spheres(robot: Element, names: Names) -> Iterator[Property]:
    """Yield a property of a link for each sphere that approximates it."""
    report = names.report
    for element in robot.children_named("link_sphere_approximation"):
        link = names.link(element, "link")
        spheres = element.children_named("sphere")
        if not spheres:
            message = f"{element.label} has no <sphere>, so it has no effect"
            report.warning(element.place, "no-sphere", message)
        for child in spheres:
            centre = child.numbers("center", 3, report, required=True)
            radius = child.number("radius", report, required=True)
            if radius is not None and radius < 0.0:
                message = f"the radius of a sphere is {radius:g}, less than 0"
                report.error(child.place, "bad-number", message)
            elif link is not None and centre is not None and radius is not None:
                yield Property(name=SPHERE, of=link, numbers=(*centre, radius))


def read_joint_properties(robot: Element, names: Names) -> Iterator[Property]:
    """Yield a property of the link behind a joint for each property of the joint."""
    for element in robot.children_named("joint_property"):
        given = names.read(element, texts=("joint_name", "property_name"))
        value = element.required_attribute("value", names.report)
        if given is None or value is None:
            continue
        joint, name = given
        if joint in names.virtual:
            link = names.virtual[joint].child_link
        else:
            parts = names.joints(element, joint)
            if not parts:
                continue
            link = names.manipulator.links[names.link_behind[parts[-1]]].name
        kept = JointProperty(joint=joint, name=name, value=value)
        yield _kept(JOINT_PROPERTY, link, kept)
