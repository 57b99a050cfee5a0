"""Poses in MJCF: positions with one of five kinds of rotations, and lines `fromto`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.mjcf.document import TURNS, MjcfDocument
from armillary.formats.numbers import GREATEST_LENGTH, LEAST_LENGTH
from armillary.formats.xml import Element
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import (
    ZERO,
    Vector3,
    add,
    cross,
    dot,
    norm,
    scale,
    subtract,
    transpose,
    unit,
    vector,
)

__all__ = ["pose_attributes", "read_fromto", "read_pose", "turned_to"]

_AXES: Final = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
_IDENTITY_QUATERNION: Final = (1.0, 0.0, 0.0, 0.0)


def read_pose(element: Element, document: MjcfDocument) -> Pose:
    """Return the pose in the attributes of an element, with `pos` and one rotation."""
    report = document.report
    pos = element.numbers("pos", 3, report, default=ZERO)
    given = [key for key in TURNS if key in element.attributes]
    if len(given) > 1:
        report.error(
            element.place,
            "two-rotations",
            f"{element.label} has several rotations: {', '.join(given)}",
            hint="Keep one of them.",
        )
    turn = IDENTITY
    if given:
        turn = _turned(element, given[0], document)
    elif "quat" in element.attributes:
        wxyz = element.numbers("quat", 4, report, default=_IDENTITY_QUATERNION)
        if _has_length(element, "quat", wxyz, report):
            turn = Pose.from_quaternion(wxyz)
    return Pose(turn.rotation, vector(pos))


def _turned(element: Element, key: str, document: MjcfDocument) -> Pose:
    """Return the rotation of one of `TURNS`."""
    report = document.report
    angle = math.pi / 180.0 if document.in_degrees else 1.0
    if key == "axisangle":
        x, y, z, turn = element.numbers(key, 4, report, default=(0.0, 0.0, 1.0, 0.0))
        if not _has_length(element, key, (x, y, z), report):
            return IDENTITY
        return Pose.rotation_about((x, y, z), turn * angle)
    if key == "euler":
        angles = element.numbers(key, 3, report, default=ZERO)
        pose = IDENTITY
        for letter, each in zip(document.settings["eulerseq"], angles, strict=True):
            step = Pose.rotation_about(_AXES[letter.lower()], each * angle)
            # Lower case: axes turn with the body; upper case: they stay.
            pose = pose @ step if letter.islower() else step @ pose
        return pose
    if key == "zaxis":
        z = element.numbers(key, 3, report, default=_AXES["z"])
        return turned_to(z) if _has_length(element, key, z, report) else IDENTITY
    numbers = element.numbers(key, 6, report)
    if numbers is None:
        return IDENTITY
    x, y = vector(numbers[:3]), vector(numbers[3:])
    if not _has_length(element, key, x, report):
        return IDENTITY
    x = unit(x)
    y = subtract(y, scale(dot(x, y), x))
    if not _has_length(element, key, y, report):
        return IDENTITY
    y = unit(y)
    return Pose(transpose((x, y, cross(x, y))), ZERO)


def _has_length(
    element: Element, key: str, values: Sequence[float], report: Report
) -> bool:
    length = math.hypot(*values)
    if LEAST_LENGTH <= length < GREATEST_LENGTH:
        return True
    report.error(
        element.place,
        "bad-quaternion" if key == "quat" else "zero-axis",
        f"attribute {quote(key)} of {element.label} has a part of length {length:g}, "
        "which gives no rotation",
    )
    return False


def turned_to(z: Sequence[float]) -> Pose:
    """Return the least rotation that turns the z axis to a direction, not zero."""
    direction = unit(vector(z))
    axis = cross(_AXES["z"], direction)
    sine = norm(axis)
    if sine == 0.0:
        return IDENTITY if direction[2] > 0.0 else Pose.rotation_x(math.pi)
    return Pose.rotation_about(axis, math.atan2(sine, direction[2]))


def read_fromto(element: Element, report: Report) -> tuple[Pose, float] | None:
    """Return the pose in the middle of a line and its length, None without `fromto`.

    The z axis points from its end to its start.
    """
    ends = element.numbers("fromto", 6, report)
    if ends is None:
        return None
    start, end = vector(ends[:3]), vector(ends[3:])
    along = subtract(start, end)
    if not _has_length(element, "fromto", along, report):
        return None
    middle: Vector3 = scale(0.5, add(start, end))
    return Pose(turned_to(along).rotation, middle), float(norm(along))


def pose_attributes(pose: Pose) -> dict[str, tuple[float, ...] | None]:
    """Return the attributes of a pose, None for what is the default."""
    position = tuple(x + 0.0 for x in pose.position)
    quaternion = tuple(x + 0.0 for x in pose.quaternion())
    return {
        "pos": None if position == ZERO else position,
        "quat": None if quaternion == _IDENTITY_QUATERNION else quaternion,
    }
