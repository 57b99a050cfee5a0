"""The many forms of a pose in Isaac's files.

What Isaac's own reader silently ignores is ignored here too, with a warning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

from armillary.errors import ModelError
from armillary.formats.json import Document, Record, Steps
from armillary.spatial.euler import rows_from_moving_xyz
from armillary.spatial.pose import Pose
from armillary.spatial.vector import EYE, ZERO, Rows

__all__ = ["numbers_of", "pose_of", "pose_record", "warn_of_unknown"]

Object: TypeAlias = Mapping[str, Any]

_UNITS: Final = {"radians": 1.0, "degrees": math.pi / 180.0}
_AXIS_KEYS: Final = ("axis", "angle_radians", "angle_degrees")
_RPY_KEYS: Final = tuple(
    f"{angle}_{unit}" for angle in ("roll", "pitch", "yaw") for unit in _UNITS
)
_QUATERNION_KEYS: Final = ("qw", "qx", "qy", "qz")
_ROTATION_KEYS: Final = (*_AXIS_KEYS, *_RPY_KEYS, *_QUATERNION_KEYS)


class _Ignored(Exception):
    """Why Isaac ignores a part."""


def pose_of(document: Document, record: Record, steps: Steps) -> Pose | None:
    """Return a pose, None after an error."""
    try:
        if isinstance(record, dict):
            return _from_object(document, cast(dict[str, Any], record), steps)
        numbers = numbers_of(record, 7)
        if numbers is not None:
            return Pose.from_quaternion(numbers[:4], numbers[4:])
    except ModelError as error:
        document.error(steps, "bad-pose", str(error).removesuffix("."))
        return None
    document.error(
        steps,
        "bad-pose",
        "a pose is an object, or seven numbers qw qx qy qz px py pz",
    )
    return None


def pose_record(pose: Pose) -> Record:
    """Return a pose as files hold it: translation, and quaternion if there is one.

    Raises:
        ModelError: It is not finite.
    """
    translation = tuple(map(float, pose.position))
    record: Record = {"translation": translation}
    rotation = ()
    if pose.rotation != EYE:
        rotation = tuple(map(float, pose.quaternion()))
        record["rotation"] = rotation
    if not all(map(math.isfinite, (*translation, *rotation))):
        raise ModelError("A pose has an entry that is not finite.")
    return record


def numbers_of(record: Record, count: int) -> tuple[float, ...] | None:
    """Return an array of `count` numbers, or None if it is anything else."""
    if not isinstance(record, list):
        return None
    items = [_number(item) for item in cast(list[Any], record)]
    numbers = tuple(item for item in items if item is not None)
    return numbers if len(numbers) == len(items) == count else None


def warn_of_unknown(
    document: Document, members: Object, known: tuple[str, ...], steps: Steps
) -> None:
    """Warn of members that Isaac ignores."""
    for key in members:
        if key not in known:
            document.warning(
                (*steps, key),
                "unknown-key",
                f"{key!r} is ignored",
                hint=f"Known here: {', '.join(known)}.",
            )


def _from_object(document: Document, members: Object, steps: Steps) -> Pose:
    warn_of_unknown(document, members, ("translation", "rotation"), steps)
    position: tuple[float, ...] | None = ZERO
    if "translation" in members:
        position = numbers_of(members["translation"], 3)
        if position is None:
            document.warning(
                (*steps, "translation"),
                "ignored-translation",
                "this translation is not an array of three numbers; it is taken as "
                "0 0 0, as Isaac does",
            )
            position = ZERO
    rotation = EYE
    if "rotation" in members:
        rotation = _rotation(document, members["rotation"], (*steps, "rotation"))
    return Pose.from_rotation_position(rotation, position)


def _rotation(document: Document, record: Record, steps: Steps) -> Rows:
    try:
        if not isinstance(record, dict):
            return _from_array(record)
        members = cast(dict[str, Any], record)
        warn_of_unknown(document, members, _ROTATION_KEYS, steps)
        kinds = [
            read for keys, read in _KINDS.items() if any(key in members for key in keys)
        ]
        if len(kinds) != 1:
            raise _Ignored("gives two rotations" if kinds else "gives no rotation")
        return kinds[0](members)
    except _Ignored as reason:
        document.warning(
            steps,
            "ignored-rotation",
            f"this rotation {reason}; it is ignored, as Isaac does",
            hint="Give an array w x y z, an axis and an angle, some of roll, pitch and "
            "yaw, or all of qw, qx, qy and qz.",
        )
        return EYE


def _from_array(record: Record) -> Rows:
    quaternion = numbers_of(record, 4)
    if quaternion is None:
        raise _Ignored("is neither an array of four numbers w x y z nor an object")
    return Pose.from_quaternion(quaternion).rotation


def _from_axis(members: Object) -> Rows:
    axis = numbers_of(members.get("axis"), 3)
    if axis is None:
        raise _Ignored("has no axis of three numbers")
    angle = _angle(members, "angle")
    if angle is None:
        raise _Ignored("has an axis but no angle")
    return Pose.rotation_about(axis, angle).rotation


def _from_rpy(members: Object) -> Rows:
    """Return Rx(roll) Ry(pitch) Rz(yaw); a missing angle is 0."""
    roll, pitch, yaw = (
        _angle(members, name) or 0.0 for name in ("roll", "pitch", "yaw")
    )
    return rows_from_moving_xyz(roll, pitch, yaw)


def _from_quaternion(members: Object) -> Rows:
    quaternion = [_number(members.get(key)) for key in _QUATERNION_KEYS]
    if None in quaternion:
        raise _Ignored("lacks one of qw, qx, qy and qz as a number")
    return Pose.from_quaternion(quaternion).rotation


_KINDS: Final = {
    _AXIS_KEYS: _from_axis,
    _RPY_KEYS: _from_rpy,
    _QUATERNION_KEYS: _from_quaternion,
}


def _angle(members: Object, name: str) -> float | None:
    """Return an angle [rad] given in either unit, None without one."""
    units = [unit for unit in _UNITS if f"{name}_{unit}" in members]
    if not units:
        return None
    if len(units) > 1:
        raise _Ignored(f"has the {name} in both units")
    value = _number(members[f"{name}_{units[0]}"])
    if value is None:
        raise _Ignored(f"has a {name} that is not a number")
    return value * _UNITS[units[0]]


def _number(record: Record) -> float | None:
    """Return a number of a file as a finite float, None if it is anything else."""
    if isinstance(record, bool) or not isinstance(record, (int, float)):
        return None
    try:
        return float(record)
    except OverflowError:  # a whole number of hundreds of digits
        return None
