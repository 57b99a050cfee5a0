"""What an SRDF says beside groups and collisions: kept as properties, written again.

An element becomes the property `srdf.<its name>` of a link. The text of the property is
JSON: the values of the table of the element, without defaults and the link's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from armillary.errors import quote
from armillary.formats.elements import REQUIRED
from armillary.formats.srdf.elements import ELEMENTS
from armillary.formats.srdf.names import Names, VirtualJoint
from armillary.formats.xml import Element
from armillary.model.property import Property

__all__ = [
    "BASE_POSE",
    "PREFIX",
    "SPHERE",
    "read_end_effectors",
    "read_joint_properties",
    "read_spheres",
    "read_virtual_joints",
    "values_of",
    "virtual_properties",
]

PREFIX: Final = "srdf."
SPHERE: Final = f"{PREFIX}sphere"
"""Property of a link: centre in the link's frame and radius of a sphere, [m]."""

BASE_POSE: Final = f"{PREFIX}base_pose"
"""Property of the base: its pose in the posture that the text names, as in SRDF."""

LINKS: Final = {"end_effector": "parent_link", "virtual_joint": "child_link"}
"""The field that names the link; a joint property is kept by the link of its joint."""

TYPES: Final = ("fixed", "planar", "floating")


def _record_type(kind: str) -> type[msgspec.Struct]:
    """Return what a property keeps of an element: all fields but the link's name."""
    rows = [row for row in ELEMENTS[kind].rows if row.key != LINKS.get(kind)]
    fields = [
        (row.key, str) if row.default is REQUIRED else (row.key, str, row.default)
        for row in rows
    ]
    groups = ("groups", tuple[str, ...], ())  # those that a virtual joint is in
    return msgspec.defstruct(kind, [*fields, groups], kw_only=True, omit_defaults=True)


_RECORDS: Final = {
    kind: _record_type(kind)
    for kind in ("end_effector", "virtual_joint", "joint_property")
}


def _property(kind: str, link: str, values: Mapping[str, Any]) -> Property:
    """Return the property of a link that keeps an element."""
    record = msgspec.convert(values, _RECORDS[kind])
    text = msgspec.json.encode(record).decode()
    return Property(name=f"{PREFIX}{kind}", of=link, text=text)


def values_of(note: Property) -> dict[str, Any] | None:
    """Return the values of the element that a property keeps, None if it keeps none."""
    kind = note.name.removeprefix(PREFIX)
    try:
        record = msgspec.json.decode(note.text, type=_RECORDS[kind])
    except msgspec.DecodeError:
        return None
    values = msgspec.structs.asdict(record)
    return values | ({LINKS[kind]: note.of} if kind in LINKS else {})


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
        yield _property("virtual_joint", joint.child_link, joint._asdict())


def read_end_effectors(robot: Element, names: Names) -> Iterator[Property]:
    """Yield a property of the parent link for each end effector."""
    seen: set[str] = set()
    for element in robot.children_named("end_effector"):
        fields = ELEMENTS.read(element, names)
        name, link = fields["name"], fields["parent_link"]
        if name is not None and name in seen:
            message = f"another end effector is called {quote(name)} too"
            names.report.warning(element.place, "repeated-name", message)
        seen.add(name or "")
        for each in filter(None, (fields["group"], fields["parent_group"])):
            names.check_group(element, each)
        if None not in fields.values():
            yield _property("end_effector", link, fields)


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
                yield Property(name=SPHERE, of=link, numbers=(*centre, radius))


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
        yield _property("joint_property", link, fields)
