"""What the elements of URDF share: origins, and the table of shapes."""

from __future__ import annotations

from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.numbers import has_direction
from armillary.formats.xml import Element, tag
from armillary.model.shape import Shape
from armillary.model.shapes import Box, Capsule, Cylinder, Sphere
from armillary.spatial.euler import fixed_xyz, rows_from_fixed_xyz
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import EYE, ZERO, without_negative_zeros

__all__ = ["SHAPES", "origin_element", "read_pose"]

ROTATION_TOLERANCE: Final = 1e-12

SHAPES: Final[dict[str, tuple[type[Shape], dict[str, int]]]] = {
    "box": (Box, {"size": 3}),
    "sphere": (Sphere, {"radius": 1}),
    "cylinder": (Cylinder, {"radius": 1, "length": 1}),
    "capsule": (Capsule, {"radius": 1, "length": 1}),
}
"""The class and the attributes of each element, with the count of their numbers."""


def read_pose(parent: Element, report: Report) -> Pose:
    """Return the pose in an element's `<origin>`.

    It holds `xyz` with `rpy`, or with `quat_xyzw` of URDF 1.1. Without it, and after an
    error in it, the pose is the identity.
    """
    origin = parent.first_child("origin", report)
    if origin is None:
        return IDENTITY
    xyz = origin.numbers("xyz", 3, report, default=ZERO)
    rpy = origin.numbers("rpy", 3, report)
    xyzw = origin.numbers("quat_xyzw", 4, report)
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
    return [tag("origin", {"xyz": xyz, "rpy": None if rpy == ZERO else rpy})]
