"""Where a base stands in a state, and how it moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter, lt
from typing import Any, Final, cast

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError, StateError, printable, quote
from armillary.kernel.arguments import numbers_of
from armillary.kinematics.joint_vector import finite_numbers
from armillary.model.check_pose import are_rigid, is_rigid, rigid, rigid_matrices
from armillary.model.fields import ThreeFloats, default, kept
from armillary.model.frame import FrameRef
from armillary.model.mount import WORLD
from armillary.model.parents import endless
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell
from armillary.spatial.pose import IDENTITY, Pose, matrices_of
from armillary.spatial.vector import EYE, without_negative_zeros

Array = npt.NDArray[np.float64]

FEWEST_TOGETHER: Final = 8
"""So many poses are checked together."""

NEGATIVE_ZERO: Final = np.uint64(1 << 63)


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
        pose = self.pose
        if is_rigid(pose):
            if 0.0 not in pose.entries:
                return
        else:
            try:
                pose = rigid(pose, quote(self.manipulator))
            except ModelError as error:
                raise StateError(str(error)) from error
        rotation, position = pose.rotation, pose.position
        if rotation is not EYE:
            x, y, z = map(without_negative_zeros, rotation)
            rotation = x, y, z
        pose = Pose(rotation, without_negative_zeros(position))
        msgspec.structs.force_setattr(self, "pose", pose)


def base_names(bases: Any) -> tuple[str, ...]:
    """Return the manipulators whose bases are placed, sorted.

    Raises:
        ModelError: They are not given by name.
    """
    given = cast("Mapping[Any, Any]", bases)
    if not (isinstance(bases, Mapping) and all(isinstance(k, str) for k in given)):
        raise ModelError(
            "bases= takes poses by the names of manipulators, such as "
            f"bases={{'ur5': X}}, not {printable(repr(given))}."
        )
    return tuple(sorted(given))


def base_matrices(name: str, poses: Any) -> npt.NDArray[np.float64]:
    """Return poses of the base of a manipulator as matrices, shape (..., 4, 4).

    Raises:
        ShapeError: They have another shape.
        ModelError: One is not a rigid pose.
    """
    given: Any = poses.matrix() if isinstance(poses, Pose) else poses
    X = numbers_of(f"The base of {quote(name)}", given)
    if X.shape[-2:] != (4, 4):
        raise ShapeError(
            f"The base of {quote(name)} takes poses of shape (..., 4, 4), not "
            f"{X.shape}."
        )
    if not are_rigid(X):
        raise ModelError(f"A pose of the base of {quote(name)} is not rigid.")
    return X


def placements_of(
    names: Iterable[str], poses: Sequence[Pose]
) -> tuple[list[Placement], Array]:
    """Return where bases stand in the world.

    Many are made in a fraction of the time that one after the other takes.

    Args:
        names: The manipulators.
        poses: Their poses.

    Returns:
        The placements; and the matrices of their poses, shape (n, 4, 4).

    Raises:
        StateError: A pose does not hold finite numbers.
    """
    matrices = rigid_matrices(poses) if len(poses) >= FEWEST_TOGETHER else None
    # Negative zeros are stored as zeros, one by one.
    if matrices is not None and (matrices.view(np.uint64) != NEGATIVE_ZERO).all():
        return _checked(names, poses), matrices
    placements = [
        Placement(manipulator=name, pose=X)
        for name, X in zip(names, poses, strict=True)
    ]
    return placements, matrices_of([each.pose for each in placements])


def _checked(names: Iterable[str], poses: Sequence[Pose]) -> list[Placement]:
    """Return placements in the world of poses that they would store as they are."""
    # Copies of one placement are not checked again.
    struct: Any = msgspec.Struct
    copy, store = struct.__copy__, msgspec.structs.force_setattr
    placements: list[Placement] = []
    for name, pose in zip(names, poses, strict=True):
        placement = copy(_NOWHERE)
        store(placement, "manipulator", name)
        store(placement, "pose", pose)
        placements.append(placement)
    return placements


_NOWHERE: Final = Placement(manipulator="")


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
            numbers = finite_numbers(given, 3)
            if numbers is None:
                raise StateError(
                    f"The {name} velocity of {quote(self.manipulator)} must be three "
                    f"finite numbers, not {given!r}."
                )
            msgspec.structs.force_setattr(self, name, tuple(numbers.tolist()))


name_of: Final[Callable[[Placement | BaseVelocity], str]] = attrgetter("manipulator")
"""Returns the name of the manipulator that something of a state is about."""


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
    if name in free_to_move(cell):
        return
    cell.number(name)
    for loop in cell.loops:
        sides = [set(_carriers(cell, end)) for end in (loop.a, loop.b)]
        if cell.index[name] in sides[0] ^ sides[1]:
            raise StateError(
                f"The base of {quote(name)} cannot be moved by a state: {loop.label} "
                "holds it, which was closed with the base where the cell was built."
            )
    mount = cell.mounted.get(name)
    if mount is not None and mount.bolted:
        raise StateError(
            f"{quote(name)} is fixed to {quote(mount.on)}; a mount with bolted=False "
            "would let it move."
        )


def free_to_move(cell: Workcell) -> frozenset[str]:
    """Return the manipulators that `check_movable` lets pass; none where loops are."""
    return kept(cell, "movable bases", lambda: _movable(cell))


def _movable(cell: Workcell) -> frozenset[str]:
    if cell.loops:
        return frozenset()
    mounts = cell.mounted
    return frozenset(
        each.name
        for each in cell.manipulators
        if each.name not in mounts or not mounts[each.name].bolted
    )


def _carriers(cell: Workcell, frame: str) -> Iterator[int]:
    """Yield the manipulators that carry a frame, its own first."""
    k = cell.owners[cell.frame(frame).link]
    while k >= 0:
        yield k
        k = cell.owners[cell.base_frames[k].link]


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


def holder_of(tree: Tree, name: str) -> str | None:
    """Return the frame that a manipulator is attached to, None where it is not."""
    base = tree.base(tree.cell.number(name))
    return base.on if base.mode == "attached" else None


def check_free(tree: Tree, name: str) -> None:
    """Refuse to move a base that is not free in the world.

    Raises:
        StateError: It is attached to another, mounted on another or fixed.
        UnknownName: The manipulator does not exist.
    """
    check_movable(tree.cell, name)
    on = tree.base(tree.cell.number(name)).on
    if on != WORLD:
        raise StateError(
            f"{quote(name)} is carried by {quote(on)} and moves with it; only a base "
            "on the world has a velocity of its own."
        )


def check_attachable(tree: Tree, part: str, to: str, *, replace: bool) -> None:
    """Refuse to attach a manipulator to a frame that it carries, or a second time.

    Args:
        tree: Where all else stands.
        part: The manipulator.
        to: Name of the frame.
        replace: Whether it may be taken from what holds it.

    Raises:
        StateError: The part carries the frame, is fixed, or attached already.
        UnknownName: There is no such manipulator or frame.
    """
    check_movable(tree.cell, part)
    at = tree.cell.frame(to)
    present = holder_of(tree, part)
    if present is not None and not replace:
        raise StateError(
            f"{quote(part)} is attached to {quote(present)} already; release it first, "
            "or pass replace=True."
        )
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
