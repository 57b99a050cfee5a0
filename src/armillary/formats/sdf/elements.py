"""The elements of SDF: what each holds, read and written by one table; poses."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.elements import (
    FILE,
    NUMBER,
    TEXT,
    Elements,
    ElementTable,
    Kind,
    Row,
    choice,
    numbers,
    one_of,
)
from armillary.formats.numbers import has_direction, number_text, plain_number
from armillary.formats.xml import Element
from armillary.formats.xml.write import Value
from armillary.model.shape import Shape
from armillary.model.shapes import Box, Capsule, Cone, Cylinder, Ellipsoid, Mesh, Sphere
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import EYE, three, without_negative_zeros

__all__ = [
    "BARE",
    "BARE_MOMENT",
    "BOOL",
    "ELEMENTS",
    "NAMESPACE",
    "NAME_IN_CELL",
    "SHAPES",
    "UNPLACED",
    "FilePose",
    "pose_element",
    "read_pose",
]

NAMESPACE: Final = "https://armillary.dev/sdf"
NAME_IN_CELL: Final = "armillary:name"
"""The attribute with the name in a cell, where SDF cannot have it."""

BARE: Final = {"mass": 1e-9, "bare": True}
BARE_MOMENT: Final = 1e-12
"""What a link without inertia is written with beside others that have one [kg m^2]:
programs take 1 kg for a link that says nothing."""

UNLIMITED: Final = 1e16
"""From here on a limit means that there is none."""

_INFINITIES: Final = {"inf": math.inf, "infinity": math.inf}
_WORDS: Final = {"0": False, "1": True, "False": False, "True": True}
_OTHER_WORDS: Final = {"FALSE": False, "TRUE": True, "false": False, "true": True}

BOOL: Final = choice(_WORDS | _OTHER_WORDS)


def _bound(element: Element, key: str, report: Report, default: Any) -> Any:
    """Return a number that may be infinite; numbers from 1e16 on are, too."""
    word = element.attributes.get(key, "").strip().lower()
    sign = -1.0 if word.startswith("-") else 1.0
    value = _INFINITIES.get(word.lstrip("+-"))
    if value is None:
        view = report.guessing("it is left out")
        value = element.number(key, view, default=float(default))
        return math.copysign(math.inf, value) if abs(value) >= UNLIMITED else value
    element.attribute(key)
    return sign * value


def _bound_text(value: float) -> Value:
    return number_text(value) if math.isfinite(value) else str(value)


def _plain_bound(text: str) -> float | None:
    value = plain_number(text)
    return value if value is not None and abs(value) < UNLIMITED else None


BOUND: Final = Kind(_bound, _bound_text, _plain_bound)
_THREE: Final = numbers(3)


def _child(name: str, kind: Kind[Report], field: str = "", **options: Any) -> Row[Any]:
    return Row(name, kind, field, child=True, **options)


_NAME: Final = Row("name", TEXT)
_AS: Final = Row(NAME_IN_CELL, TEXT, "as_", default=None)
_ROTATION: Final = (
    Row("rotation_format", one_of("euler_rpy", "quat_xyzw"), default="euler_rpy"),
    Row("degrees", BOOL, default=False),
)
_RADIUS, _LENGTH = _child("radius", NUMBER), _child("length", NUMBER)

ELEMENTS: Final = Elements[Report](
    ElementTable("sdf", Row("version", TEXT, default="")),
    ElementTable("gazebo", Row("version", TEXT, default="")),  # before 1.3
    ElementTable("world", Row("name", TEXT, default="")),
    ElementTable(
        "model",
        Row("name", TEXT, default=""),
        Row("canonical_link", TEXT, default=""),
        Row("placement_frame", TEXT, default=""),
        _AS,
        Row("armillary:posture", TEXT, "posture", default=""),
        _child("static", BOOL, default=None),
        _child("self_collide", BOOL, default=None),
    ),
    ElementTable(
        "include",
        Row("merge", BOOL, default=False),
        _child("uri", FILE),
        _child("name", TEXT, default=""),
        _child("static", BOOL, default=None),
        _child("placement_frame", TEXT, default=""),
    ),
    ElementTable("frame", _NAME, Row("attached_to", TEXT, default=""), _AS),
    ElementTable(
        "pose",
        Row("relative_to", TEXT, default=""),
        Row("frame", TEXT, default=""),  # its name before 1.7
        *_ROTATION,
        has_text=True,
    ),
    # Links
    ElementTable(
        "link",
        _NAME,
        _AS,
        Row("armillary:rod", NUMBER, "rod", default=None),
        Row("armillary:on", TEXT, "on", default=""),
        _child("self_collide", BOOL, default=None),
    ),
    ElementTable(
        "inertial",
        Row("auto", BOOL, default=False),
        Row("armillary:bare", BOOL, "bare", default=False),
        _child("mass", NUMBER, default=1.0, always=True),
        _child("density", NUMBER, default=None),
    ),
    ElementTable(
        "inertia",
        *(
            _child(key, NUMBER, default=1.0, always=True)
            for key in ("ixx", "iyy", "izz")
        ),
        *(
            _child(key, NUMBER, default=0.0, always=True)
            for key in ("ixy", "ixz", "iyz")
        ),
    ),
    ElementTable("visual", Row("name", TEXT, default=""), _AS),
    ElementTable(
        "collision",
        Row("name", TEXT, default=""),
        _AS,
        _child("density", NUMBER, default=None),
    ),
    ElementTable("geometry"),
    ElementTable("box", _child("size", _THREE), makes=Box),
    ElementTable("sphere", _RADIUS, makes=Sphere),
    ElementTable("cylinder", _RADIUS, _LENGTH, makes=Cylinder),
    ElementTable("capsule", _RADIUS, _LENGTH, makes=Capsule),
    ElementTable("ellipsoid", _child("radii", _THREE), makes=Ellipsoid),
    ElementTable("cone", _child("radius", NUMBER, "bottom"), _LENGTH, makes=Cone),
    ElementTable(
        "mesh",
        _child("uri", FILE, "file"),
        _child("scale", _THREE, default=(1.0, 1.0, 1.0)),
        makes=Mesh,
    ),
    ElementTable(
        "submesh",
        _child("name", TEXT, default=""),
        _child("center", BOOL, default=False),
    ),
    ElementTable(
        "plane",
        _child("normal", _THREE, default=(0.0, 0.0, 1.0)),
        _child("size", numbers(2), default=(1.0, 1.0)),
    ),
    ElementTable("polyline", _child("height", NUMBER, default=1.0)),
    ElementTable(
        "material",
        _child("diffuse", numbers(None), default=None),
        _child("ambient", numbers(None), default=None),
    ),
    # Joints
    ElementTable(
        "joint",
        _NAME,
        Row("type", TEXT),
        _AS,
        Row("armillary:position", TEXT, "position", default=None),
        Row("armillary:rotation", TEXT, "rotation", default=None),
        _child("parent", TEXT),
        _child("child", TEXT),
        _child("drake:rotor_inertia", NUMBER, "motor_inertia", default=0.0),
        _child("drake:gear_ratio", NUMBER, "gear_ratio", default=1.0),
        _child("gearbox_ratio", NUMBER, default=1.0),
        _child("gearbox_reference_body", TEXT, default=""),
        _child("thread_pitch", NUMBER, default=None),
        _child("screw_thread_pitch", NUMBER, default=None),
    ),
    *(
        ElementTable(
            name,
            Row("armillary:at", NUMBER, "at", default=0.0),
            Row("armillary:passive", BOOL, "passive", default=False),
            _child("use_parent_model_frame", BOOL, default=None),
        )
        for name in ("axis", "axis2")
    ),
    ElementTable("xyz", Row("expressed_in", TEXT, default=""), has_text=True),
    ElementTable(
        "limit",
        _child("lower", BOUND, default=-math.inf),
        _child("upper", BOUND, default=math.inf),
        _child("effort", BOUND, default=math.inf),
        _child("velocity", BOUND, default=math.inf),
    ),
    ElementTable(
        "dynamics",
        _child("damping", NUMBER, default=0.0),
        _child("friction", NUMBER, default=0.0),
        _child("spring_reference", NUMBER, "rest", default=0.0),
        _child("spring_stiffness", NUMBER, "stiffness", default=0.0),
    ),
    ElementTable(
        "mimic",
        Row("joint", TEXT, "of"),
        Row("axis", one_of("axis", "axis2"), default="axis"),
        _child("multiplier", NUMBER, default=1.0, always=True),
        _child("offset", NUMBER, default=0.0, always=True),
        _child("reference", NUMBER, default=0.0),
    ),
    ElementTable(
        "drake:mimic",
        Row("joint", TEXT, "of"),
        Row("multiplier", NUMBER, default=1.0),
        Row("offset", NUMBER, default=0.0),
    ),
)

SHAPES: Final = ELEMENTS.making(Shape)


# Poses


class FilePose(NamedTuple):
    """A pose as the file gives it, and the name of the frame that it is in.

    Without a name it is in the frame of the element around it.
    """

    pose: Pose
    relative_to: str = ""


UNPLACED: Final = FilePose(IDENTITY)


def read_pose(parent: Element, report: Report) -> FilePose:
    """Return the pose in an element's `<pose>`, the identity without one.

    It holds x, y, z and roll, pitch, yaw, in degrees if it says so; or, since 1.9, a
    quaternion x, y, z, w in place of the angles.
    """
    element = parent.first_child("pose", report)
    if element is None:
        return UNPLACED
    relative_to, frame, form, degrees = ELEMENTS.read(element, report).values()
    relative_to = relative_to or frame
    text = element.read_text()
    has_quaternion = form == "quat_xyzw"
    if degrees and has_quaternion:
        report.tolerating("it has no effect").error(
            element.place,
            "two-rotations",
            f"<pose> of {parent.label} is in degrees, but holds a quaternion",
        )
    if not text:
        return FilePose(IDENTITY, relative_to)
    values = element.text_numbers(7 if has_quaternion else 6, report, commas=True)
    if values is None:
        return FilePose(IDENTITY, relative_to)
    xyz, turn = three(values[:3]), values[3:]
    if not has_quaternion:
        if not any(turn):
            return FilePose(Pose(EYE, xyz), relative_to)
        roll, pitch, yaw = map(math.radians, turn) if degrees else turn
        return FilePose(Pose.from_rpy(roll, pitch, yaw, position=xyz), relative_to)
    if not has_direction(
        turn,
        f"the quaternion {quote(' '.join(map(str, turn)))}",
        element.place,
        report,
        codes=("bad-quaternion", "quaternion-length"),
        hint="A rotation has length 1; the identity is 0 0 0 1.",
    ):
        return FilePose(IDENTITY, relative_to)
    x, y, z, w = turn
    return FilePose(Pose.from_quaternion((w, x, y, z), xyz), relative_to)


def pose_element(pose: Pose, relative_to: str = "") -> list[Element]:
    """Return the `<pose>` of a pose, nothing for the identity."""
    if pose.is_identity and not relative_to:
        return []
    xyz = without_negative_zeros(pose.position)
    fields: dict[str, Any] = {"relative_to": relative_to}
    turn: tuple[float, ...] = (0.0, 0.0, 0.0)
    if pose.rotation == EYE:
        text = " ".join(map(number_text, (*xyz, *turn)))
        return [ELEMENTS.write("pose", fields, text=text)]
    w, x, y, z = pose.normalised().quaternion()
    turn = tuple(part + 0.0 for part in (x, y, z, w))
    text = " ".join(map(number_text, (*xyz, *turn)))
    fields["rotation_format"] = "quat_xyzw"
    return [ELEMENTS.write("pose", fields, text=text)]
