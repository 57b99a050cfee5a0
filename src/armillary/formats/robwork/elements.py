"""The elements of RobWork's files: what each may have, and how its values are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from armillary.errors import quote, suggestion
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.robwork.include import FileFinder
from armillary.formats.xml import Element, report_unused
from armillary.model.axis import X, Y, Z
from armillary.model.joint import Joint
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.shape import Shape
from armillary.model.shapes import Box, Cone, Cylinder, HalfSpace, Sphere

__all__ = [
    "CALIBRATION",
    "COLLISION",
    "DEVICES",
    "ELEMENTS",
    "FRAMES",
    "GEOMETRY",
    "JOINTS_BY_TYPE",
    "LIMITS",
    "MODELS",
    "PARTS",
    "PROXIMITY",
    "SETUPS",
    "SHAPES",
    "SIMPLE_JOINTS",
    "TRANSFORM",
    "WHEELS",
    "WORKCELL",
    "Context",
    "ElementType",
    "known_children",
    "may_have",
    "name",
    "one_of",
    "report_unknown",
    "values",
]


@dataclass(frozen=True, slots=True)
class Context:
    """What every part of the reader uses.

    Attributes:
        report: Receives the diagnostics.
        finder: Finds the files that the workcell refers to.
    """

    report: Report
    finder: FileFinder


# How attributes are read: each function returns None after it has reported an error

Read = Callable[[Element, str, Report], Any]


def required(element: Element, key: str, report: Report) -> str | None:
    """Return a text that must be given."""
    return element.required_attribute(key, report)


def optional(element: Element, key: str, _report: Report) -> str:
    """Return a text, empty if it is not given."""
    return element.attributes.get(key, "")


def name(element: Element, key: str, report: Report) -> str | None:
    """Return a text that must be given and not be empty."""
    value = required(element, key, report)
    if value == "":
        message = f"attribute {quote(key)} of {element.label} is empty"
        report.error(element.place, "missing-name", message)
    return value or None


def number(element: Element, key: str, report: Report) -> float | None:
    """Return a number that must be given."""
    return element.number(key, report, required=True)


def size(element: Element, key: str, report: Report) -> float | None:
    """Return a number that must be given and not be negative."""
    value = number(element, key, report)
    if value is None or value >= 0.0:
        return value
    message = f"attribute {quote(key)} of {element.label} is negative"
    report.error(element.place, "negative-size", message)
    return None


def one_of(*words: str, is_required: bool = False) -> Read:
    """Return a reader of one of a few words; without or with another, the first one."""

    def read(element: Element, key: str, report: Report) -> str:
        value = element.attributes.get(key)
        if value is None and is_required:
            required(element, key, report)
        if value is None or value in words:
            return value or words[0]
        report.error(
            element.place,
            "unknown-value",
            f"attribute {quote(key)} of {element.label} is {quote(value)}, not one of "
            f"{', '.join(words)}",
            hint=suggestion(value, words),
        )
        return words[0]

    return read


# The table


@dataclass(frozen=True, slots=True)
class ElementType:
    """What an element may have: attributes with their readers, and children."""

    attributes: Mapping[str, Read]
    children: tuple[str, ...]


def may_have(*children: str, **attributes: Read) -> ElementType:
    """Return a row of the table."""
    return ElementType(attributes, children)


WORKCELL: Final = "WorkCell"
DEVICES: Final = ("SerialDevice", "TreeDevice", "ParallelDevice", "MobileDevice")
FRAMES: Final = ("Frame", "Joint", "DHJoint")
MODELS: Final = ("Drawable", "CollisionModel")
TRANSFORM: Final = ("RPY", "Pos", "Transform")
WHEELS: Final = ("LeftWheel", "RightWheel")
COLLISION, PROXIMITY, CALIBRATION = "CollisionSetup", "ProximitySetup", "Calibration"
SETUPS: Final = (COLLISION, PROXIMITY, CALIBRATION)
"""Elements that name a file."""

_TURN_X, _TURN_Y = Revolute(axis=X), Revolute(axis=Y)
_TURN_Z, _SLIDE_Z = Revolute(axis=Z), Prismatic(axis=Z)

SIMPLE_JOINTS: Final = {"Revolute": _TURN_Z, "Prismatic": _SLIDE_Z}
JOINTS_BY_TYPE: Final[Mapping[str, tuple[tuple[str, Joint], ...]]] = {
    "Revolute": (("", _TURN_Z),),
    "Prismatic": (("", _SLIDE_Z),),
    "Universal": (("_x", _TURN_X), ("", _TURN_Y)),
    "Spherical": (("_x", _TURN_X), ("_y", _TURN_Y), ("", _TURN_Z)),
    "PrismaticUniversal": (("_x", _TURN_X), ("_y", _TURN_Y), ("", _SLIDE_Z)),
    "PrismaticSpherical": (
        ("_x", _TURN_X),
        ("_y", _TURN_Y),
        ("_z", _TURN_Z),
        ("", _SLIDE_Z),
    ),
}
"""The motions of each type of joint, the innermost first, with suffixes for names.

The frame with the name of the joint comes after the last motion.
"""

LIMITS: Final = {
    "PosLimit": {"min": "lower", "max": "upper"},
    "VelLimit": {"max": "velocity"},
    "AccLimit": {"max": "acceleration"},
}
"""The elements, their attributes, and the fields of `Limits` that these give."""

SHAPES: Final[Mapping[str, tuple[type[Shape], Mapping[str, str]]]] = {
    "Sphere": (Sphere, {"radius": "radius"}),
    "Box": (Box, dict.fromkeys("xyz", "size")),
    "Cone": (Cone, {"radius": "bottom", "z": "length"}),
    "Cylinder": (Cylinder, {"radius": "radius", "z": "length"}),
    "Plane": (HalfSpace, {}),
}
"""The simple shapes: elements, their classes, and the field of each attribute.

A cone is about the middle of its height, its tip upwards; a plane is all below that of
x and y.
"""

PARTS: Final = (*MODELS, *LIMITS, "Property")
"""Elements about a frame, which are inside of it or name it."""

GEOMETRY: Final = ("Polytope", *SHAPES, "Tube", "Custom")
_BODY: Final = (*FRAMES, *PARTS, *SETUPS, "SerialChain")
_IN_MODEL: Final = (*TRANSFORM, "RGB", *GEOMETRY)
_joint: Final = partial(
    may_have,
    *(*TRANSFORM, *PARTS, "Depend"),
    name=name,
    refframe=optional,
    state=one_of("Active", "Passive"),
)

ELEMENTS: Final[Mapping[str, ElementType]] = {
    WORKCELL: may_have(
        *(*DEVICES, "Frame", *MODELS, "Property", *SETUPS, "Camera"), name=required
    ),
    "SerialDevice": may_have(*_BODY, "Q", name=name),
    "TreeDevice": may_have(*_BODY, "Q", name=name),
    "ParallelDevice": may_have(*_BODY, "Junction", "Q", name=name),
    "MobileDevice": may_have(*_BODY, "AxelWidth", *WHEELS, name=name, basename=name),
    "SerialChain": may_have(*_BODY, name=name),
    "Junction": may_have("Chains"),
    "Chains": may_have(),
    "AxelWidth": may_have(),
    **dict.fromkeys(WHEELS, may_have(name=name)),
    "Q": may_have(name=name),
    **dict.fromkeys(SETUPS, may_have(file=required)),
    "Frame": may_have(
        *(*TRANSFORM, *MODELS, "Property"),
        name=name,
        refframe=optional,
        type=one_of("Fixed", "Movable", "EndEffector", *SIMPLE_JOINTS),
        daf=one_of("false", "true"),
    ),
    "Joint": _joint(type=one_of(*JOINTS_BY_TYPE, is_required=True)),
    "DHJoint": _joint(
        type=optional,
        **dict.fromkeys(("alpha", "a", "offset"), number),
        **dict.fromkeys(("d", "theta", "b", "beta"), optional),
    ),
    "Depend": may_have(on=name, gain=number, offset=number),
    **{
        kind: may_have(refjoint=optional, **dict.fromkeys(fields, number))
        for kind, fields in LIMITS.items()
    },
    "Property": may_have(
        name=name,
        refframe=optional,
        type=one_of("string", "double", "Q"),
        desc=optional,
    ),
    "Drawable": may_have(
        *_IN_MODEL,
        name=optional,
        refframe=optional,
        colmodel=one_of("Enabled", "Disabled"),
    ),
    "CollisionModel": may_have(*_IN_MODEL, name=optional, refframe=optional),
    **dict.fromkeys((*TRANSFORM, "RGB"), may_have()),
    "Polytope": may_have(file=required, level=optional),
    "Tube": may_have(radius=size, thickness=size, z=size, level=optional),
    **{
        kind: may_have(level=optional, **dict.fromkeys(sizes, size))
        for kind, (_, sizes) in SHAPES.items()
    },
}
"""All elements of workcells and devices that are read."""

TEXTS: Final = frozenset(("Chains", "AxelWidth", "Q", "Property", *TRANSFORM, "RGB"))
"""Elements that have a text."""


def values(
    element: Element, report: Report, table: Mapping[str, ElementType] = ELEMENTS
) -> dict[str, Any]:
    """Return what the attributes of an element say, None where there is an error."""
    readers = table[element.name].attributes
    return {key: read(element, key, report) for key, read in readers.items()}


def known_children(
    element: Element, table: Mapping[str, ElementType] = ELEMENTS
) -> tuple[Element, ...]:
    """Return the children that an element may have, in the order of the file."""
    return element.children_named(*table[element.name].children)


def report_unknown(
    root: Element, report: Report, table: Mapping[str, ElementType] = ELEMENTS
) -> None:
    """Report what the table does not have, in an element and in all below it.

    RobWork refuses a file with an unknown element. Here it is an error if the name is
    like a known one: a joint that is left out changes all that follows.
    """
    pending = [root]
    while pending:
        element = pending.pop()
        known = table.get(element.name)
        if known is None:  # it is not read
            continue
        for key in known.attributes:
            element.attribute(key)
        children = known_children(element, table)
        if element.name in TEXTS:
            element.read_text()
        pending.extend(children)
    report_unused(root, report, misspelt=Severity.ERROR)
