"""Poses: an orientation as a quaternion w, x, y, z, and a translation."""

from __future__ import annotations

import math
from typing import Final

from armillary.errors import quote
from armillary.formats.actin.exact import exact_attribute, exactly
from armillary.formats.diagnostic import Report
from armillary.formats.xml import Element, report_unused, tag
from armillary.formats.xml.write import Value
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import EYE, ZERO, Rows

__all__ = ["entries", "pose_element", "pose_of_entries", "read_child_pose", "read_pose"]

LENGTH_TOLERANCE: Final = 1e-6
LEAST_LENGTH: Final = 1e-12
QUATERNION: Final = ("q0", "q1", "q2", "q3")
AXES: Final = ("x", "y", "z")


def read_child_pose(parent: Element, name: str, report: Report) -> Pose:
    """Return the pose in the only child of a name, the identity without one."""
    child = parent.only_child(name, report)
    return IDENTITY if child is None else read_pose(child, report)


def read_pose(element: Element, report: Report) -> Pose:
    """Return the pose that an element holds; what is missing turns or moves nothing.

    The rotation may be called `rotation`, and the translation may stand inside it, as
    in the seed's damaged sample.
    """
    turns = [
        child
        for name in ("orientation", "rotation")
        if (child := element.only_child(name, report)) is not None
    ]
    if len(turns) > 1:
        message = f"{element.label} has an orientation and a rotation"
        report.error(turns[1].place, "two-rotations", message, hint="Keep one.")
    position = element.only_child("translation", report)
    for turn in turns:
        inside = turn.only_child("translation", report)
        if inside is None:
            continue
        if position is None:
            position = inside
            message = "the translation inside the orientation is taken as beside it"
            report.note(inside.place, "translation-inside", message)
        else:
            message = f"{element.label} has two translations"
            report.error(inside.place, "two-translations", message, hint="Keep one.")
    report_unused(element, report)
    rotation = _rotation(turns[0], report) if turns else EYE
    origin = ZERO
    if position is not None:
        x, y, z = (position.number(axis, report, default=0.0) for axis in AXES)
        origin = (x, y, z)
        report_unused(position, report)
    return Pose(rotation, origin)


def _rotation(element: Element, report: Report) -> Rows:
    given = [element.number(name, report, required=True) for name in QUATERNION]
    wxyz = tuple(q for q in given if q is not None)
    if len(wxyz) < len(given):
        return EYE
    shown = quote(" ".join(f"{q:g}" for q in wxyz))
    length = math.hypot(*wxyz)
    if not LEAST_LENGTH <= length < math.inf:
        report.error(
            element.place,
            "bad-quaternion",
            f"the quaternion {shown} is no rotation",
            hint="Its length is 1; no rotation is 1 0 0 0.",
        )
        return EYE
    if abs(length - 1.0) > LENGTH_TOLERANCE:
        report.warning(
            element.place,
            "quaternion-length",
            f"the quaternion {shown} has length {length:.6g}; normalised",
        )
    said = Pose.from_quaternion(wxyz)
    rotation = pose_of_entries((*exactly(element, entries(said)[:9], report), *ZERO))
    report_unused(element, report)
    return rotation.rotation


def pose_element(name: str, pose: Pose, *more: Element) -> Element:
    """Return an element to be written that holds a pose.

    more: Further children.
    """
    wxyz = tuple(float(q) + 0.0 for q in pose.quaternion())
    said = entries(Pose.from_quaternion(wxyz))[:9]
    exact = exact_attribute(entries(pose)[:9], said)
    orientation = tag(
        "cr:orientation", dict(zip(QUATERNION, wxyz, strict=True)) | exact
    )
    xyz: dict[str, Value] = dict(zip(AXES, entries(pose)[9:], strict=True))
    return tag(name, {}, orientation, tag("cr:translation", xyz), *more)


def entries(pose: Pose) -> tuple[float, ...]:
    """Return the nine numbers of the rotation, row by row, and those of the origin."""
    return tuple(float(number) + 0.0 for number in pose.entries)


def pose_of_entries(numbers: tuple[float, ...]) -> Pose:
    """Return the pose of the numbers that `entries` returns."""
    a, b, c, d, e, f, g, h, i, x, y, z = numbers
    return Pose(((a, b, c), (d, e, f), (g, h, i)), (x, y, z))
