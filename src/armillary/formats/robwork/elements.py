"""The elements of RobWork's files: what each holds, read and written by one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from armillary.formats import numbers
from armillary.formats.diagnostic import Report
from armillary.formats.elements import (
    FILE,
    NAME,
    NUMBER,
    SIZE,
    TEXT,
    Elements,
    ElementTable,
    Kind,
    Row,
    choice,
    one_of,
)
from armillary.formats.robwork.include import FileFinder
from armillary.model.axis import X, Y, Z
from armillary.model.joint import Joint
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.shape import Shape
from armillary.model.shapes import Box, Cone, Cylinder, HalfSpace, Mesh, Sphere

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
    "RULE_FILES",
    "SETUPS",
    "SHAPES",
    "SIMPLE_JOINTS",
    "TRANSFORM",
    "WHEELS",
    "WORKCELL",
    "Context",
    "number_text",
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


# Groups of elements

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


# Rows that several elements have


def number_text(value: float) -> str:
    """Return the shortest exact text of a number; whole ones without a point.

    Raises FormatError for NaN and infinities, as products of large numbers may be.
    """
    value = value + 0.0  # no negative zero
    is_whole = abs(value) < 1e15 and value.is_integer()
    return str(int(value)) if is_whole else numbers.number_text(value)


_NUMBER: Final = Kind(NUMBER.read, number_text, NUMBER.plain)
_SIZE: Final = Kind(SIZE.read, number_text, SIZE.plain)
_SWITCH: Final = choice({"true": True, "false": False})

_NAME: Final = Row("name", NAME)
_FILE: Final = Row("file", TEXT)
_REFFRAME: Final = Row("refframe", TEXT, default="")
_REFJOINT: Final = Row("refjoint", TEXT, default="")
_PASSIVE: Final = Row(
    "state", choice({"Active": False, "Passive": True}), "passive", default=False
)
_LEVEL: Final = Row("level", TEXT, default="")
_MODEL_NAME: Final = Row("name", TEXT, default="", always=True)
_A_AND_B: Final = (Row("PatternA", NAME, "a"), Row("PatternB", NAME, "b"))

# Elements of one kind

_SHAPES: Final = Elements[Report](
    ElementTable("Sphere", _LEVEL, Row("radius", _SIZE), makes=Sphere),
    ElementTable("Box", _LEVEL, Row("x y z", _SIZE, "size"), makes=Box),
    ElementTable(
        "Cone",
        _LEVEL,
        Row("radius", _SIZE, "bottom"),
        Row("z", _SIZE, "length"),
        makes=Cone,
    ),
    ElementTable(
        "Cylinder",
        _LEVEL,
        Row("radius", _SIZE),
        Row("z", _SIZE, "length"),
        makes=Cylinder,
    ),
    ElementTable("Plane", _LEVEL, makes=HalfSpace),
)
SHAPES: Final = _SHAPES.making(Shape)
"""The simple shapes. A cone is about the middle of its height, its tip upwards; a plane
is all below that of x and y."""

GEOMETRY: Final = ("Polytope", *SHAPES, "Tube", "Custom")

_LIMITS: Final = Elements[Report](
    ElementTable(
        "PosLimit",
        _REFJOINT,
        Row("min", _NUMBER, "lower"),
        Row("max", _NUMBER, "upper"),
    ),
    ElementTable("VelLimit", _REFJOINT, Row("max", _NUMBER, "velocity")),
    ElementTable("AccLimit", _REFJOINT, Row("max", _NUMBER, "acceleration")),
)
LIMITS: Final = tuple(_LIMITS.tables)

PARTS: Final = (*MODELS, *LIMITS, "Property")
"""Elements about a frame, which are inside of it or name it."""

_IN_DEVICE: Final = (*FRAMES, *PARTS, *SETUPS, "SerialChain")
_IN_JOINT: Final = (*TRANSFORM, *PARTS, "Depend")
_IN_MODEL: Final = (*TRANSFORM, "RGB", *GEOMETRY)


# The tables


ELEMENTS: Final = Elements[Report](
    ElementTable(
        WORKCELL,
        Row("name", TEXT),
        children=(*DEVICES, "Frame", *MODELS, "Property", *SETUPS, "Camera"),
    ),
    ElementTable("SerialDevice", _NAME, children=(*_IN_DEVICE, "Q")),
    ElementTable("TreeDevice", _NAME, children=(*_IN_DEVICE, "Q")),
    ElementTable("ParallelDevice", _NAME, children=(*_IN_DEVICE, "Junction", "Q")),
    ElementTable(
        "MobileDevice",
        _NAME,
        Row("basename", NAME),
        children=(*_IN_DEVICE, "AxelWidth", *WHEELS),
    ),
    ElementTable("SerialChain", _NAME, children=_IN_DEVICE),
    ElementTable("Junction", children=("Chains",)),
    ElementTable("Chains", has_text=True),
    ElementTable("AxelWidth", has_text=True),
    *(ElementTable(side, _NAME) for side in WHEELS),
    ElementTable("Q", _NAME, has_text=True),
    *(ElementTable(kind, _FILE) for kind in SETUPS),
    ElementTable(
        "Frame",
        _NAME,
        _REFFRAME,
        Row(
            "type",
            one_of("Fixed", "Movable", "EndEffector", *SIMPLE_JOINTS),
            default="Fixed",
        ),
        Row("daf", choice({"false": False, "true": True}), default=False),
        children=(*TRANSFORM, *MODELS, "Property"),
    ),
    ElementTable(
        "Joint",
        _NAME,
        _REFFRAME,
        Row("type", one_of(*JOINTS_BY_TYPE)),
        _PASSIVE,
        children=_IN_JOINT,
    ),
    ElementTable(
        "DHJoint",
        _NAME,
        _REFFRAME,
        _PASSIVE,
        Row("type", TEXT, default=""),
        *(Row(key, NUMBER) for key in ("alpha", "a", "offset")),
        *(Row(key, TEXT, default="") for key in ("d", "theta", "b", "beta")),
        children=_IN_JOINT,
    ),
    ElementTable(
        "Depend",
        Row("on", NAME, "of"),
        Row("gain", NUMBER, "multiplier"),
        Row("offset", NUMBER),
    ),
    *_LIMITS.tables.values(),
    ElementTable(
        "Property",
        _NAME,
        _REFFRAME,
        Row("type", one_of("string", "double", "Q"), default="string"),
        Row("desc", TEXT, "description", default=""),
        has_text=True,
    ),
    ElementTable(
        "Drawable",
        _MODEL_NAME,
        _REFFRAME,
        Row(
            "colmodel",
            choice({"Enabled": True, "Disabled": False}),
            "is_tested",
            default=True,
        ),
        children=_IN_MODEL,
    ),
    ElementTable("CollisionModel", _MODEL_NAME, _REFFRAME, children=_IN_MODEL),
    *(ElementTable[Report](name, has_text=True) for name in (*TRANSFORM, "RGB")),
    ElementTable("Polytope", Row("file", FILE), _LEVEL, makes=Mesh),
    *_SHAPES.tables.values(),
    ElementTable(
        "Tube", *(Row(key, _SIZE) for key in ("radius", "thickness", "z")), _LEVEL
    ),
)
"""All elements of workcells and devices. A `Custom` geometry is not read."""

RULE_FILES: Final = {
    COLLISION: Elements[Report](
        ElementTable(COLLISION, children=("Exclude", "Volatile", "ExcludeStaticPairs")),
        ElementTable("Exclude", children=("FramePair",)),
        ElementTable("FramePair", Row("first", NAME, "a"), Row("second", NAME, "b")),
        ElementTable("ExcludeStaticPairs"),  # they are left out in any case
    ),
    PROXIMITY: Elements[Report](
        ElementTable(
            PROXIMITY,
            *(
                Row(flag, _SWITCH, default=True, always=True)
                for flag in ("UseIncludeAll", "UseExcludeStaticPairs")
            ),
            children=("Include", "Exclude"),
        ),
        ElementTable("Include", *_A_AND_B),
        ElementTable("Exclude", *_A_AND_B),
    ),
}
"""The elements of each kind of file with rules, by the name of its root."""
