"""The elements of URDF: what each holds, read and written by one table; origins."""

from __future__ import annotations

from typing import Any, Final

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.elements import (
    FILE,
    NUMBER,
    TEXT,
    Elements,
    ElementTable,
    Kind,
    Row,
    numbers,
)
from armillary.formats.numbers import has_direction
from armillary.formats.xml import Element
from armillary.model.shape import Shape
from armillary.model.shapes import Box, Capsule, Cylinder, Mesh, Sphere
from armillary.spatial.euler import fixed_xyz, rows_from_fixed_xyz
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import EYE, ZERO, without_negative_zeros

__all__ = ["ELEMENTS", "SHAPES", "origin_element", "read_pose"]

ROTATION_TOLERANCE: Final = 1e-12
ONES: Final = (1.0, 1.0, 1.0)

_NAME: Final = Row("name", TEXT)
_SHAPE_NAME: Final = Row("name", TEXT, default="")
_LINK: Final = Row("link", TEXT)
_RADIUS, _LENGTH = Row("radius", NUMBER), Row("length", NUMBER)
_THREE: Final = numbers(3)


def _scale(element: Element, key: str, report: Report, default: Any) -> Any:
    """Return the scale of a mesh; a single number is that of all axes."""
    if len((element.attribute(key) or "").split()) == 1:
        view = report.tolerating("it is the scale along all axes")
        element.numbers(key, 3, view)
        return (element.number(key, report, default=1.0),) * 3
    return _THREE.read(element, key, report, default)


ELEMENTS: Final = Elements[Report](
    ElementTable(
        "origin",
        Row("xyz", _THREE, default=ZERO, always=True),
        Row("rpy", _THREE, default=None),
        Row("quat_xyzw", numbers(4), default=None),
    ),
    # Links
    ElementTable("link", _NAME),
    ElementTable("inertial"),
    ElementTable("mass", Row("value", NUMBER, "mass")),
    ElementTable("inertia", Row("ixx ixy ixz iyy iyz izz", NUMBER, "moments")),
    ElementTable("material", _NAME),
    ElementTable("color", Row("rgba", numbers(4))),
    ElementTable("visual", _SHAPE_NAME),
    ElementTable("collision", _SHAPE_NAME),
    ElementTable("geometry"),
    ElementTable("box", Row("size", _THREE), makes=Box),
    ElementTable("sphere", _RADIUS, makes=Sphere),
    ElementTable("cylinder", _RADIUS, _LENGTH, makes=Cylinder),
    ElementTable("capsule", _RADIUS, _LENGTH, makes=Capsule),
    ElementTable(
        "mesh",
        Row("filename", FILE, "file"),
        Row("scale", Kind(_scale), default=ONES),
        makes=Mesh,
    ),
    # Joints
    ElementTable("joint", _NAME, Row("type", TEXT)),
    ElementTable("parent", _LINK),
    ElementTable("child", _LINK),
    ElementTable("axis", Row("xyz", _THREE, "axis")),
    ElementTable(
        "mimic",
        Row("joint", TEXT, "of"),
        Row("multiplier", NUMBER, default=1.0, always=True),
        Row("offset", NUMBER, default=0.0, always=True),
    ),
    ElementTable(
        "limit",
        *(Row(key, NUMBER) for key in ("lower", "upper")),
        *(Row(key, NUMBER) for key in ("effort", "velocity", "acceleration")),
    ),
    ElementTable(
        "dynamics",
        *(
            Row(key, NUMBER, default=0.0, always=True)
            for key in ("damping", "friction")
        ),
    ),
    # Transmissions
    ElementTable("transmission", _NAME),
    ElementTable("actuator", _NAME),
    ElementTable("drake:rotor_inertia", Row("value", NUMBER, "motor_inertia")),
    ElementTable("drake:gear_ratio", Row("value", NUMBER, "gear_ratio")),
)

SHAPES: Final = ELEMENTS.making(Shape)


# Origins


def read_pose(parent: Element, report: Report) -> Pose:
    """Return the pose in an element's `<origin>`.

    It holds `xyz` with `rpy`, or with `quat_xyzw` of URDF 1.1. Without it, and after an
    error in it, the pose is the identity.
    """
    origin = parent.first_child("origin", report)
    if origin is None:
        return IDENTITY
    xyz, rpy, xyzw = ELEMENTS.read(origin, report).values()
    if xyzw is None:
        if rpy is None or rpy == ZERO:
            return Pose(EYE, xyz)
        return Pose(rows_from_fixed_xyz(*rpy), xyz)
    if rpy is not None:
        report.error(
            origin.place,
            "two-rotations",
            f"<origin> of {parent.label} has both 'rpy' and 'quat_xyzw'",
            hint="Keep one of them.",
        )
    shown = quote(origin.attributes["quat_xyzw"])
    if not has_direction(
        xyzw,
        f"the quaternion {shown}",
        origin.place,
        report,
        codes=("bad-quaternion", "quaternion-length"),
        hint="A rotation has length 1; the identity is 0 0 0 1.",
    ):
        return IDENTITY
    x, y, z, w = xyzw
    return Pose.from_quaternion((w, x, y, z), xyz)


def origin_element(pose: Pose, what: str, report: Report) -> list[Element]:
    """Return the `<origin>` of a pose, nothing for the identity.

    what: Whose it is, for the warning if the rotation is not kept to 1e-12.
    """
    if pose.is_identity:
        return []
    rpy = ZERO
    if pose.rotation != EYE:
        rpy = without_negative_zeros(fixed_xyz(pose.normalised().rotation))
        written = Pose(rows_from_fixed_xyz(*rpy), pose.position)
        if not written.approx_equal(pose, ROTATION_TOLERANCE):
            report.warning(
                NOWHERE,
                "rounded",
                f"the rotation of {what} is sheared; the nearest true one is written",
            )
    xyz = without_negative_zeros(pose.position)
    return [ELEMENTS.write("origin", xyz=xyz, rpy=None if rpy == ZERO else rpy)]
