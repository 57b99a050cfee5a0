"""Where a base stands in a state, and how it moves."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from operator import lt
from typing import Any

import msgspec

from armillary.errors import ModelError, StateError, quote
from armillary.model.check_pose import rigid
from armillary.model.fields import ThreeFloats, default
from armillary.model.frame import FrameRef
from armillary.model.parents import endless
from armillary.model.tree import Tree
from armillary.model.workcell import WORLD, Workcell
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import without_negative_zeros


class Placement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the base of a manipulator stands just now.

    Attributes:
        manipulator: Its name.
        on: The frame it is fixed to, qualified; `world` for a base that stands free.
        pose: Of the base in that frame.
    """

    manipulator: str
    on: str = WORLD
    pose: Pose = IDENTITY

    def __post_init__(self) -> None:
        """Store 0.0 for -0.0, so that equal placements give equal texts.

        Raises:
            StateError: The pose does not hold finite numbers.
        """
        try:
            given = rigid(self.pose, quote(self.manipulator))
        except ModelError as error:
            raise StateError(str(error)) from error
        x, y, z = map(without_negative_zeros, given.rotation)
        pose = Pose((x, y, z), without_negative_zeros(given.position))
        msgspec.structs.force_setattr(self, "pose", pose)


class BaseVelocity(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The twist of a free base in the world, about its origin, in world axes.

    Attributes:
        manipulator: Its name.
        linear: [m/s].
        angular: [rad/s].
    """

    manipulator: str
    linear: ThreeFloats = default((0.0, 0.0, 0.0))
    angular: ThreeFloats = default((0.0, 0.0, 0.0))

    def __post_init__(self) -> None:
        """Store plain numbers, 0.0 for -0.0.

        Raises:
            StateError: They are not three finite ones for each half.
        """
        for name in ("linear", "angular"):
            given = getattr(self, name)
            try:
                numbers = tuple(float(number) + 0.0 for number in given)
            except (TypeError, ValueError):
                numbers = ()
            if len(numbers) != 3 or not all(map(math.isfinite, numbers)):
                raise StateError(
                    f"The {name} velocity of {quote(self.manipulator)} must be three "
                    f"finite numbers, not {given!r}."
                )
            msgspec.structs.force_setattr(self, name, numbers)


def name_of(thing: Placement | BaseVelocity) -> str:
    """Return the name of the manipulator that something of a state is about."""
    return thing.manipulator


def in_order(things: Iterable[Any], field: str) -> tuple[Any, ...]:
    """Return what is about manipulators in the order of their names.

    Raises:
        StateError: Two are about the same one; the message calls them `field`.
    """
    given = tuple(things)
    names = list(map(name_of, given))
    if all(map(lt, names, names[1:])):
        return given
    ordered = tuple(sorted(given, key=name_of))
    for one, other in pairwise(map(name_of, ordered)):
        if one == other:
            raise StateError(f"{quote(one)} is twice in the {field} of a state.")
    return ordered


def check_movable(cell: Workcell, name: str) -> None:
    """Refuse to move what is fixed.

    Raises:
        StateError: It is.
        UnknownName: No manipulator has that name.
    """
    cell.number(name)
    mount = cell.mounted.get(name)
    if mount is not None and mount.bolted:
        raise StateError(
            f"{quote(name)} is fixed to {quote(mount.on)}; a mount with bolted=False "
            "would let it move."
        )


def check_carried(tree: Tree, names: Iterable[str]) -> None:
    """Refuse manipulators that are attached to themselves, as states from files may.

    Raises:
        StateError: One does.
    """
    falling = endless([tree.cell.owners[base.frame.link] for base in tree.bases])
    for name in names:
        if tree.cell.index[name] in falling:
            raise StateError(
                f"{quote(name)} is attached to itself in this state; attachments must "
                "lead to the world."
            )


def check_not_carried(tree: Tree, part: str, to: str, at: FrameRef) -> None:
    """Refuse to attach a manipulator to a frame that it carries.

    Args:
        tree: Where all else stands.
        part: The manipulator.
        to: Name of the frame.
        at: The frame.

    Raises:
        StateError: The part carries it.
    """
    if tree.cell.index[part] in tree.bases_among(tree.ancestors(at.link)):
        raise StateError(
            f"{quote(part)} cannot be attached to {quote(to)}: that frame is carried "
            "by the part itself."
        )


def placed_frame(cell: Workcell, manipulator: str) -> FrameRef:
    """Return the frame that mounts and placements place: in front of the base."""
    k = cell.index[manipulator]
    base = cell.starts[k] + cell.manipulators[k].base
    return FrameRef(base, cell.links[base].joint.precursor.inverse())
