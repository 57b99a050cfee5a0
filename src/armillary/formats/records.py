"""Joints and poses in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, TypeAlias, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType

from armillary.errors import JointError, ModelError, quote, suggestion
from armillary.forks import IMPORT_LOCK
from armillary.formats.json import Record
from armillary.limits import PARAMETER_DEPTH
from armillary.model.joint import Joint
from armillary.model.joints import JOINT_TYPES
from armillary.model.joints.opaque import OpaqueJoint
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import EYE, ZERO

__all__ = [
    "PRECURSOR",
    "TYPE",
    "PoseInFile",
    "defaults_of",
    "joint_of",
    "joint_record",
    "pose_of",
    "pose_record",
]

TYPE: Final = "type"
SCRIPT: Final = "Script"
PRECURSOR: Final = "precursor"
_NESTED: Final = frozenset({dict, list})
_FLAT: Final = frozenset({float, int, bool, str, type(None)})
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


def pose_of(record: PoseInFile) -> Pose:
    """Return the pose that a file gives; what holds it checks that it is rigid.

    Raises:
        ModelError: It has two rotations, or an invalid quaternion.
    """
    position = ZERO if record.position is UNSET else record.position
    if record.quaternion_wxyz is UNSET and record.rpy is UNSET:
        return Pose(EYE if record.rotation is UNSET else record.rotation, position)
    forms = [name for name in _ROTATIONS if getattr(record, name) is not UNSET]
    if len(forms) > 1:
        raise ModelError(f"A pose has {' and '.join(forms)}; give one of them.")
    if record.rpy is not UNSET:
        return Pose.from_rpy(*record.rpy, position)
    return Pose.from_quaternion(record.quaternion_wxyz, position)


def pose_record(pose: Pose) -> Record:
    """Return a pose of the model as files hold it: without defaults, 0.0 for -0.0."""
    if pose is IDENTITY:
        return {}
    rotation, position = cast(Any, pose.rotation), cast(Any, pose.position)
    record: Record = {}
    if position != ZERO:
        record["position"] = tuple(x + 0.0 for x in position)
    if rotation != EYE:
        record["rotation"] = tuple(tuple(x + 0.0 for x in row) for row in rotation)
    return record


def joint_of(record: dict[str, Any], own_kinds: Mapping[str, type[Joint]]) -> Joint:
    """Return the joint that a file gives; opaque if its type is unknown.

    Raises:
        ModelError: Its parameters are not those of its type.
        msgspec.ValidationError: A pose among them has another form.
    """
    tag = record.get(TYPE)
    if not isinstance(tag, str) or not tag:
        raise JointError(
            "A joint has no type, or one that is not a string; give it one of "
            f"{', '.join(JOINT_TYPES)}, or the tag of your own class."
        )
    kind = JOINT_TYPES.get(tag) or own_kinds.get(tag) or _script(tag)
    if kind is None:
        return _opaque(tag, record)
    parameters = {
        key: _value(given, own_kinds) for key, given in record.items() if key != TYPE
    }
    _check_names(kind, parameters)
    return kind(**parameters)


def _script(tag: str) -> type[Joint] | None:
    """Return the class of joints that a script moves, if this is its tag.

    Reading one runs nothing.
    """
    if tag != SCRIPT:
        return None
    with IMPORT_LOCK:
        from armillary.scripts.mechanism import Script

    return Script


def joint_record(joint: Joint) -> Record:
    """Return a joint as files hold it; its poses were checked before.

    Raises:
        JointError: Its class cannot be identified in files.
    """
    if isinstance(joint, OpaqueJoint):
        parameters = msgspec.json.decode(joint.parameters)
        return {TYPE: joint.kind, **_precursor(joint), **parameters}
    kind = type(joint)
    record: Record = {TYPE: kind.tag}
    if joint.precursor is not IDENTITY:
        record.update(_precursor(joint))
    for name in _parameters(kind):
        value = getattr(joint, name)
        record[name] = value if type(value) is float else _record(value)
    return record


@cache
def _parameters(kind: type[Joint]) -> tuple[str, ...]:
    """Return the names of the parameters of a class, without its precursor.

    Raises:
        JointError: Files cannot identify the class, or one of its parameters.
    """
    if JOINT_TYPES.get(kind.tag, kind) is not kind:
        raise JointError(
            f"Class {kind.__qualname__} has the tag of the built-in {kind.tag}; give "
            "it another one: tag = '...'."
        )
    names = tuple(name for name in kind.__struct_fields__ if name != PRECURSOR)
    if TYPE in names:
        raise JointError(
            f"A parameter of {kind.__qualname__} is called 'type', as is what "
            "identifies its class in files; rename it."
        )
    return names


def _precursor(joint: Joint) -> Record:
    record = pose_record(joint.precursor)
    return {PRECURSOR: record} if record else {}


def _record(value: Any) -> Record:
    """Return a stored parameter as files hold it."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Pose):
        return pose_record(value)
    if isinstance(value, Joint):
        return joint_record(value)
    if isinstance(value, tuple):
        items = cast(tuple[Any, ...], value)
        is_flat = all(type(item) in _FLAT for item in items)
        return items if is_flat else tuple(map(_record, items))
    return value


def _value(record: Record, own_kinds: Mapping[str, type[Joint]]) -> Any:
    """Return a parameter that a file gives: an object is a joint or a pose."""
    if isinstance(record, dict):
        if TYPE in record:
            return joint_of(cast(dict[str, Any], record), own_kinds)
        return pose_of(msgspec.convert(record, PoseInFile))
    if isinstance(record, list):
        items = cast(list[Any], record)
        is_flat = _NESTED.isdisjoint(map(type, items))
        return tuple(items if is_flat else (_value(item, own_kinds) for item in items))
    return record


def _check_names(kind: type[Joint], names: Mapping[str, Any]) -> None:
    """Refuse parameters that the class does not have, and missing ones."""
    defaults = defaults_of(kind)
    for name in names:
        if name not in defaults:
            guess = f"{suggestion(name, defaults)} It has".lstrip()
            raise JointError(
                f"{kind.__name__} has no parameter {quote(name)}. {guess} "
                f"{', '.join(defaults)}."
            )
    for name, default in defaults.items():
        if default is msgspec.NODEFAULT and name not in names:
            raise JointError(f"{kind.__name__} needs the parameter {quote(name)}.")


@cache
def defaults_of(kind: type[Joint]) -> dict[str, Any]:
    """Return the default of each parameter of a class, NODEFAULT if it is required."""
    names, values = kind.__struct_fields__, kind.__struct_defaults__
    required = (msgspec.NODEFAULT,) * (len(names) - len(values))
    return dict(zip(names, (*required, *values), strict=True))


def _opaque(tag: str, record: dict[str, Any]) -> OpaqueJoint:
    """Return the joint of an unknown type, its parameters as they are."""
    precursor: Any = _value(record.get(PRECURSOR, {}), {})
    if not isinstance(precursor, Pose):
        raise JointError(f"The precursor of a joint is a pose, not {precursor!r}.")
    rest = {key: item for key, item in record.items() if key not in {TYPE, PRECURSOR}}
    _check_depth(rest, 0)
    text = msgspec.json.encode(rest).decode()
    return OpaqueJoint(kind=tag, precursor=precursor, parameters=text)


def _check_depth(record: Record, depth: int) -> None:
    """Refuse what is nested too deeply to be written again."""
    if depth > PARAMETER_DEPTH.most:
        raise ModelError(f"A joint: {PARAMETER_DEPTH.excess()}.")
    if isinstance(record, dict):
        record = list(cast(dict[str, Any], record).values())
    if isinstance(record, list):
        for item in cast(list[Any], record):
            _check_depth(item, depth + 1)
