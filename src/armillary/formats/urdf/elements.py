"""The elements of URDF: what each holds, read and written by one table; origins."""

from __future__ import annotations

from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.elements import NUMBER, TEXT, Row, Table, numbers
from armillary.formats.numbers import has_direction
from armillary.formats.xml import Element
from armillary.model.shape import Shape
from armillary.model.shapes import Box, Capsule, Cylinder, Sphere
from armillary.spatial.euler import fixed_xyz, rows_from_fixed_xyz
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import EYE, ZERO, without_negative_zeros

__all__ = [
    "AXIS",
    "CHILD",
    "COLOR",
    "DYNAMICS",
    "GEOMETRY",
    "INERTIA",
    "JOINT",
    "LIMIT",
    "LINK",
    "MASS",
    "MATERIAL",
    "MIMIC",
    "NAMED",
    "PARENT",
    "RATIO",
    "ROTOR",
    "SHAPES",
    "origin_element",
    "read_pose",
]

ROTATION_TOLERANCE: Final = 1e-12
ONES: Final = (1.0, 1.0, 1.0)

_NAME: Final = Row("name", TEXT)
_THREE: Final = numbers(3)

# Links
LINK: Final = Table("link", _NAME)
MASS: Final = Table("mass", Row("value", NUMBER, "mass"))
INERTIA: Final = Table("inertia", Row("ixx ixy ixz iyy iyz izz", NUMBER, "moments"))
MATERIAL: Final = Table("material", _NAME)
COLOR: Final = Table("color", Row("rgba", numbers(4)))
NAMED: Final = {
    kind: Table(kind, Row("name", TEXT, default="")) for kind in ("visual", "collision")
}
"""What may hold a shape."""

SHAPES: Final[dict[str, type[Shape]]] = {
    "box": Box,
    "sphere": Sphere,
    "cylinder": Cylinder,
    "capsule": Capsule,
}
"""The shapes whose fields are sizes."""

GEOMETRY: Final = {
    table.name: table
    for table in (
        Table("box", Row("size", _THREE)),
        Table("sphere", Row("radius", NUMBER)),
        Table("cylinder", Row("radius", NUMBER), Row("length", NUMBER)),
        Table("capsule", Row("radius", NUMBER), Row("length", NUMBER)),
        Table(
            "mesh", Row("filename", TEXT, "file"), Row("scale", _THREE, default=ONES)
        ),
    )
}

# Joints
JOINT: Final = Table("joint", _NAME, Row("type", TEXT))
PARENT: Final = Table("parent", Row("link", TEXT))
CHILD: Final = Table("child", Row("link", TEXT))
AXIS: Final = Table("axis", Row("xyz", _THREE, "axis"))
MIMIC: Final = Table(
    "mimic",
    Row("joint", TEXT, "of"),
    Row("multiplier", NUMBER, default=1.0, always=True),
    Row("offset", NUMBER, default=0.0, always=True),
)
LIMIT: Final = Table(
    "limit",
    *(Row(end, NUMBER) for end in ("lower", "upper")),
    *(Row(name, NUMBER) for name in ("effort", "velocity", "acceleration")),
)
DYNAMICS: Final = Table(
    "dynamics",
    *(Row(name, NUMBER, default=0.0, always=True) for name in ("damping", "friction")),
)

# What Drake has in the actuator of a transmission
ROTOR: Final = Table("drake:rotor_inertia", Row("value", NUMBER, "motor_inertia"))
RATIO: Final = Table("drake:gear_ratio", Row("value", NUMBER, "gear_ratio"))

# Origins

_ORIGIN: Final = Table(
    "origin",
    Row("xyz", _THREE, default=ZERO, always=True),
    Row("rpy", _THREE, default=None),
    Row("quat_xyzw", numbers(4), default=None),
)


def read_pose(parent: Element, report: Report) -> Pose:
    """Return the pose in an element's `<origin>`.

    It holds `xyz` with `rpy`, or with `quat_xyzw` of URDF 1.1. Without it, and after an
    error in it, the pose is the identity.
    """
    origin = parent.first_child("origin", report)
    if origin is None:
        return IDENTITY
    xyz, rpy, xyzw = _ORIGIN.read(origin, report).values()
    if xyzw is None:
        if rpy is None or rpy == ZERO:
            return Pose.translation(*xyz)
        return Pose.from_rpy(*rpy, position=xyz)
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
    return [_ORIGIN.write(xyz=xyz, rpy=None if rpy == ZERO else rpy)]
