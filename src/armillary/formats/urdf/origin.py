"""The pose in an element's `<origin>`."""

from __future__ import annotations

import math
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.xml import Element, report_unused
from armillary.spatial.pose import IDENTITY, Pose

__all__ = ["read_pose"]

LENGTH_TOLERANCE: Final = 1e-6
LEAST_LENGTH: Final = 1e-12
ZERO: Final = (0.0, 0.0, 0.0)


def read_pose(parent: Element, report: Report) -> Pose:
    """Return the pose of an element: `xyz` with `rpy`, or with `quat_xyzw` of URDF 1.1.

    It is the identity without an `<origin>`, and after an error in one.
    """
    origin = parent.first_child("origin", report)
    if origin is None:
        return IDENTITY
    xyz = origin.numbers("xyz", 3, report, default=ZERO)
    rpy = origin.numbers("rpy", 3, report)
    xyzw = origin.numbers("quat_xyzw", 4, report)
    report_unused(origin, report)
    if xyzw is not None:
        if rpy is not None:
            report.error(
                origin.place,
                "two-rotations",
                f"<origin> of {parent.label} has both 'rpy' and 'quat_xyzw'",
                hint="Keep one of them.",
            )
        return _with_quaternion(origin, xyz, xyzw, report)
    if rpy is None or rpy == ZERO:
        return Pose.translation(*xyz)
    return Pose.from_rpy(*rpy, position=xyz)


def _with_quaternion(
    origin: Element,
    xyz: tuple[float, ...],
    xyzw: tuple[float, ...],
    report: Report,
) -> Pose:
    shown = quote(origin.attributes["quat_xyzw"])
    length = math.hypot(*xyzw)
    if not LEAST_LENGTH <= length < math.inf:
        report.error(
            origin.place,
            "bad-quaternion",
            f"the quaternion {shown} is no rotation",
            hint="Its length is 1; no rotation is 0 0 0 1.",
        )
        return IDENTITY
    if abs(length - 1.0) > LENGTH_TOLERANCE:
        report.note(
            origin.place,
            "quaternion-length",
            f"the quaternion {shown} has length {length:.6g}; normalised",
        )
    x, y, z, w = xyzw
    return Pose.from_quaternion((w, x, y, z), xyz)
