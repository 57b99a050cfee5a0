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


def pose_of(document: Document, given: Record, steps: Steps) -> Pose | None:
    """Return a pose, None after an error."""
    try:
        if isinstance(given, dict):
            return _from_object(document, cast(dict[str, Any], given), steps)
        numbers = numbers_of(given, 7)
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


def numbers_of(given: Record, count: int) -> tuple[float, ...] | None:
    """Return an array of `count` numbers, or None if it is anything else."""
    if not isinstance(given, list):
        return None
    items = [_number(item) for item in cast(list[Any], given)]
    found = tuple(item for item in items if item is not None)
    return found if len(found) == len(items) == count else None


def warn_of_unknown(
    document: Document, given: Object, known: tuple[str, ...], steps: Steps
) -> None:
    """Warn of members that Isaac ignores."""
    for key in given:
        if key not in known:
            document.warning(
                (*steps, key),
                "unknown-key",
                f"{key!r} is ignored",
                hint=f"Known here: {', '.join(known)}.",
            )


def _from_object(document: Document, given: Object, steps: Steps) -> Pose:
    warn_of_unknown(document, given, ("translation", "rotation"), steps)
    position: tuple[float, ...] | None = ZERO
    if "translation" in given:
        position = numbers_of(given["translation"], 3)
        if position is None:
            document.warning(
                (*steps, "translation"),
                "ignored-translation",
                "this translation is not an array of three numbers; it is taken as "
                "0 0 0, as Isaac does",
            )
            position = ZERO
    rotation = EYE
    if "rotation" in given:
        rotation = _rotation(document, given["rotation"], (*steps, "rotation"))
    return Pose.from_rotation_position(rotation, position)


def _rotation(document: Document, given: Record, steps: Steps) -> Rows:
    try:
        if not isinstance(given, dict):
            return _from_array(given)
        members = cast(dict[str, Any], given)
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


def _from_array(given: Record) -> Rows:
    quaternion = numbers_of(given, 4)
    if quaternion is None:
        raise _Ignored("is neither an array of four numbers w x y z nor an object")
    return Pose.from_quaternion(quaternion).rotation


def _from_axis(given: Object) -> Rows:
    axis = numbers_of(given.get("axis"), 3)
    if axis is None:
        raise _Ignored("has no axis of three numbers")
    angle = _angle(given, "angle")
    if angle is None:
        raise _Ignored("has an axis but no angle")
    return Pose.rotation_about(axis, angle).rotation


def _from_rpy(given: Object) -> Rows:
    """Return Rx(roll) Ry(pitch) Rz(yaw); a missing angle is 0."""
    roll, pitch, yaw = (_angle(given, name) or 0.0 for name in ("roll", "pitch", "yaw"))
    return rows_from_moving_xyz(roll, pitch, yaw)


def _from_quaternion(given: Object) -> Rows:
    quaternion = [_number(given.get(key)) for key in _QUATERNION_KEYS]
    if None in quaternion:
        raise _Ignored("lacks one of qw, qx, qy and qz as a number")
    return Pose.from_quaternion(quaternion).rotation


_KINDS: Final = {
    _AXIS_KEYS: _from_axis,
    _RPY_KEYS: _from_rpy,
    _QUATERNION_KEYS: _from_quaternion,
}


def _angle(given: Object, name: str) -> float | None:
    """Return an angle [rad] given in either unit, None without one."""
    found = [unit for unit in _UNITS if f"{name}_{unit}" in given]
    if not found:
        return None
    if len(found) > 1:
        raise _Ignored(f"has the {name} in both units")
    value = _number(given[f"{name}_{found[0]}"])
    if value is None:
        raise _Ignored(f"has a {name} that is not a number")
    return value * _UNITS[found[0]]


def _number(given: Record) -> float | None:
    """Return a number of a file as a finite float, None if it is anything else."""
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        return None
    try:
        return float(given)
    except OverflowError:  # a whole number of hundreds of digits
        return None
