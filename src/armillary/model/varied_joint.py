"""Joints whose parameters are inputs of a program: they move as mechanisms do.

A parameter p of a joint is one more coordinate of its pose, X(q, p). So what a
`Mechanism` has follows for it, too: its twists per unit rate, and the rates of those.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, cast

import msgspec

from armillary.errors import ArmillaryError, ModelError
from armillary.model.joint import Joint
from armillary.model.motion import TracedMotion
from armillary.model.unit import Unit
from armillary.model.values_read import values_read
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.twist import Vector6, exp
from armillary.spatial.vector import Number

__all__ = [
    "SIX",
    "Path",
    "VariedJoint",
    "changed_parts",
    "corrected",
    "part_at",
    "unchecked",
]

Path = tuple[str | int, ...]

SIX: Final = ("x", "y", "z", "rx", "ry", "rz")
"""The numbers of a twist that corrects a pose."""
MOST_NAMES: Final = 6
"""How many parameters a message names."""


def changed_parts(
    value: Any,
    changes: Mapping[Path, Any],
    made: Callable[..., Any] = msgspec.structs.replace,
) -> Any:
    """Return a value with some of its parts replaced.

    Args:
        value: Structs and tuples in each other.
        changes: What replaces a part, by the fields and places that lead to it.
        made: Makes a struct with other values of some fields; by default with all
            checks of a new one.
    """
    if () in changes:
        return changes[()]
    by_step: dict[str | int, dict[Path, Any]] = {}
    for (step, *rest), part in changes.items():
        by_step.setdefault(step, {})[tuple(rest)] = part
    if isinstance(value, tuple):
        items = list(cast(Sequence[Any], value))
        for k, inner in by_step.items():
            place = cast(int, k)
            items[place] = changed_parts(items[place], inner, made)
        return tuple(items)
    fields: dict[str, Any] = {}
    for step, inner in by_step.items():
        name = cast(str, step)
        fields[name] = changed_parts(getattr(value, name), inner, made)
    return made(value, **fields)


def unchecked(struct: Any, **fields: Any) -> Any:
    """Return a struct with other values of some fields, which may be traced.

    What it has kept is not copied.
    """
    changed = copy.copy(struct)
    for name, value in fields.items():
        msgspec.structs.force_setattr(changed, name, value)
    return changed


def part_at(value: Any, path: Path) -> Any:
    """Return the part of a value that fields and places lead to."""
    for step in path:
        value = value[step] if isinstance(step, int) else getattr(value, step)
    return value


def corrected(pose: Pose, twist: Mapping[str, Any]) -> Pose:
    """Return a pose with a twist behind it; what is not named of the twist is 0."""
    x, y, z, rx, ry, rz = (twist.get(name, 0.0) for name in SIX)
    return pose @ exp((x, y, z, rx, ry, rz))


class VariedJoint:
    """A joint with traced scalars for some of its parameters; see `Joint`.

    Attributes:
        joint: The joint as it was, without its precursor.
        precursor: The constant pose in front, floats or traced.
    """

    def __init__(
        self,
        joint: Joint,
        precursor: Pose,
        paths: Sequence[Path],
        values: Sequence[Any],
    ) -> None:
        """Vary a joint.

        Args:
            joint: As it was.
            precursor: Floats or traced.
            paths: The fields and places that lead to its parameters; of a pose, then
                the name of one of the numbers of the twist that corrects it.
            values: Of those, traced.
        """
        self.joint = msgspec.structs.replace(joint, precursor=IDENTITY)
        self.precursor = precursor
        self._paths, self._values = tuple(paths), tuple(values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.joint, name)

    @property
    def unit(self) -> Unit:
        """Return what the coordinate is measured in."""
        return self.joint.unit

    @property
    def motion(self) -> VariedMotion:
        """Return the motion of its coordinates at the parameters."""
        count = len(self.joint.input_units)
        read = values_read(self.joint)
        return VariedMotion(_motion(self.joint, self._paths, count, read), self._values)


class VariedMotion:
    """What a `TracedMotion` gives, of a joint at parameters."""

    def __init__(self, motion: TracedMotion, values: Sequence[Number]) -> None:
        """Take the motion of coordinates and parameters, at these parameters."""
        self._motion, self._values = motion, tuple(values)
        self._steady = [0.0] * len(self._values)

    def pose(self, *q: Number) -> Pose:
        """Return the pose at the coordinates `q`."""
        return self._motion.pose(*q, *self._values)

    def columns(self, *q: Number) -> list[Vector6]:
        """Return the twist per unit rate of each coordinate, in M."""
        return self._motion.columns(*q, *self._values)[: len(q)]

    def column_rates(self, q: Sequence[Number], qd: Sequence[Number]) -> list[Vector6]:
        """Return the time derivative of each of `columns` at the rates `qd`."""
        whole = self._motion.column_rates([*q, *self._values], [*qd, *self._steady])
        return whole[: len(q)]

    def column_accelerations(
        self, q: Sequence[Number], qd: Sequence[Number], qdd: Sequence[Number]
    ) -> list[Vector6]:
        """Return the second time derivative of each of `columns`."""
        whole = self._motion.column_accelerations(
            [*q, *self._values], [*qd, *self._steady], [*qdd, *self._steady]
        )
        return whole[: len(q)]

    def warn_of_accelerations(self) -> None:
        """Warn where derivatives at a point are not those beside it."""
        self._motion.warn_of_accelerations()


class _Extended(NamedTuple):
    """A joint and its parameters as one moving frame of coordinates and parameters."""

    joint: Joint
    paths: tuple[Path, ...]
    joints: int

    def pose(self, values: Any) -> Any:
        q, p = values[: self.joints], values[self.joints :]
        changes: dict[Path, Any] = {}
        twists: dict[Path, dict[str, Any]] = {}
        for path, value in zip(self.paths, p, strict=True):
            if path[-1] in SIX and isinstance(part_at(self.joint, path[:-1]), Pose):
                twists.setdefault(path[:-1], {})[cast(str, path[-1])] = value
            else:
                changes[path] = value
        for path, twist in twists.items():
            changes[path] = corrected(part_at(self.joint, path), twist)
        varied = changed_parts(self.joint, changes, unchecked)
        is_mechanism = self.joint.motion.shape != ()
        return varied.pose(q if is_mechanism else q[0])

    def subspace(self, values: Any) -> None:
        """Return nothing: its twists follow from the pose."""


@lru_cache(maxsize=1024)
def _motion(
    joint: Joint, paths: tuple[Path, ...], count: int, read: Hashable
) -> TracedMotion:
    """Return the motion of a joint's coordinates and parameters.

    Raises:
        ModelError: The parameters cannot be inputs of its pose.
    """
    extended = _Extended(joint, paths, count)
    try:
        return TracedMotion(cast(Any, extended), count + len(paths))
    except (ArmillaryError, TypeError, ValueError) as error:
        names = ", ".join(".".join(map(str, path)) for path in paths[:MOST_NAMES])
        names += " and others" if len(paths) > MOST_NAMES else ""
        raise ModelError(
            f"{names} of {type(joint).__name__} cannot be an input: {error}"
        ) from error
