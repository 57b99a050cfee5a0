"""Poses in JSON: exact in rows, or as people write them."""

from __future__ import annotations

from math import isfinite
from typing import Any, Final, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from armillary.errors import ModelError
from armillary.formats.json import Record
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import EYE, ZERO

__all__ = ["PoseInFile", "checked_pose_record", "pose_of", "pose_record"]

ROTATION_TOLERANCE: Final = 1e-6
_ROTATIONS: Final = ("rotation", "quaternion_wxyz", "rpy")

Three: TypeAlias = tuple[float, float, float]
Four: TypeAlias = tuple[float, float, float, float]


class PoseInFile(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    """An origin, and a rotation in at most one of three forms.

    Attributes:
        position: Origin [m]; 0 0 0 if not given.
        rotation: Three rows of a rotation matrix. Armillary writes this form: it is
            exact.
        quaternion_wxyz: Quaternion of any length but 0, the scalar first.
        rpy: Roll, pitch, yaw [rad]: Rz(yaw) Ry(pitch) Rx(roll).
    """

    position: Three | UnsetType = UNSET
    rotation: tuple[Three, Three, Three] | UnsetType = UNSET
    quaternion_wxyz: Four | UnsetType = UNSET
    rpy: Three | UnsetType = UNSET


def pose_of(given: PoseInFile, *, check: bool = True) -> Pose:
    """Return the pose that a file gives.

    check: Whether rows are looked at; joints do that themselves.

    Raises:
        ModelError: It has two rotations, or none that is one.
    """
    position = ZERO if given.position is UNSET else given.position
    if given.quaternion_wxyz is UNSET and given.rpy is UNSET:
        if given.rotation is UNSET:
            return Pose(EYE, position)
        if check:
            _check(given.rotation)
        return Pose(given.rotation, position)
    forms = [name for name in _ROTATIONS if getattr(given, name) is not UNSET]
    if len(forms) > 1:
        raise ModelError(f"A pose has {' and '.join(forms)}; give one of them.")
    if given.rpy is not UNSET:
        return Pose.from_rpy(*given.rpy, position)
    return Pose.from_quaternion(given.quaternion_wxyz, position)


def pose_record(pose: Pose) -> Record:
    """Return a pose as files hold it, empty for the identity.

    Raises:
        ModelError: An entry is not finite, or the rotation is none.
    """
    if pose is IDENTITY:
        return {}
    px, py, pz = pose.position
    x, y, z = position = (float(px), float(py), float(pz))
    # The difference of a number to itself is 0 only where that is finite.
    if x - x + y - y + z - z != 0.0:
        raise ModelError(f"A pose has the origin {position}, which is not finite.")
    rows = EYE
    if pose.rotation is not EYE:
        rx, ry, rz = pose.rotation
        rows = (tuple(map(float, rx)), tuple(map(float, ry)), tuple(map(float, rz)))
        _check(rows)
    return _record(rows, position)


def checked_pose_record(pose: Pose) -> Record:
    """Return a pose of plain floats as files hold it, which was checked before."""
    return {} if pose is IDENTITY else _record(pose.rotation, pose.position)


def _record(rotation: Any, position: Any) -> Record:
    """Return a record without what is the default, and 0.0 for -0.0."""
    record: Record = {}
    if position != ZERO:
        record["position"] = tuple(x + 0.0 for x in position)
    if rotation != EYE:
        record["rotation"] = tuple(tuple(x + 0.0 for x in row) for row in rotation)
    return record


def _check(rotation: Any) -> None:
    """Refuse three rows of floats that are no rotation R: R R' = 1, det R = 1."""
    (a, b, c), (d, e, f), (g, h, i) = rotation
    errors = (
        abs(a * a + b * b + c * c - 1.0),
        abs(d * d + e * e + f * f - 1.0),
        abs(g * g + h * h + i * i - 1.0),
        abs(a * d + b * e + c * f),
        abs(d * g + e * h + f * i),
        abs(g * a + h * b + i * c),
    )
    worst = max(errors)
    # A sum, unlike a maximum, is never finite where one of them is not.
    if worst > ROTATION_TOLERANCE or not isfinite(sum(errors)):
        raise ModelError(
            "The rotation of a pose is sheared or scaled: R R' differs from 1 by "
            f"{worst:.3g}, more than {ROTATION_TOLERANCE:g}."
        )
    if a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g) < 0.0:
        raise ModelError(
            "The rotation of a pose is a reflection (determinant -1); a frame is "
            "right-handed. Swap or reverse one axis."
        )
