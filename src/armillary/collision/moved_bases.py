"""Checks with another pose of bases in each row: a base on six joints of a carrier.

`CollisionCheck.at_bases` asks the check of another cell, in which each of these
manipulators is fixed to a carrier without shapes: three slides and three hinges, behind
the other joints. So a batch is one call, as it is for joint positions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError, quote
from armillary.kinematics.placement import base_matrices, check_movable
from armillary.kinematics.state import State, branch_of, home
from armillary.model.joints import Prismatic, Revolute
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD
from armillary.model.workcell import Workcell

__all__ = ["MovedBases", "base_numbers", "moved_bases"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

AXES: Final = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
UPRIGHT: Final = 1e-12
"""Cosine of the angle about y below which that about z is taken as 0."""


class JointCheck(Protocol):
    """A check of a cell: joint positions (..., n) to truths (...)."""

    def __call__(self, q: npt.ArrayLike) -> Truths: ...


class MovedBases(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A check of a cell whose bases of some manipulators are joints, too.

    Attributes:
        names: The manipulators.
        check: The check of that cell; its q has six numbers for each behind q.
    """

    names: tuple[str, ...]
    check: JointCheck

    def __call__(self, q: npt.ArrayLike, bases: Mapping[str, npt.ArrayLike]) -> Truths:
        """Return where links touch, shape (...).

        Args:
            q: Joint positions [m or rad], shape (..., n).
            bases: The poses of all of its bases in the world, shape (..., 4, 4) each.

        Raises:
            ShapeError: A shape does not fit.
            ModelError: A matrix is not a pose.
        """
        parts = [np.asarray(q, np.float64)]
        parts += [base_numbers(name, bases[name]) for name in self.names]
        try:
            batch = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
        except ValueError as error:
            shapes = ", ".join(str(np.shape(bases[name])) for name in self.names)
            raise ShapeError(
                f"Joint positions of shape {np.shape(q)} and bases of shape {shapes} "
                "do not broadcast."
            ) from error
        return self.check(
            np.concatenate(
                [np.broadcast_to(part, (*batch, part.shape[-1])) for part in parts],
                axis=-1,
            )
        )


def moved_bases(
    state: State,
    names: Sequence[str],
    check_of: Callable[[Workcell, State], JointCheck],
) -> MovedBases:
    """Return the check in which the bases of manipulators are joints.

    Args:
        state: The state that is checked.
        names: The manipulators.
        check_of: Returns the check of a cell and its state.

    Raises:
        UnknownName: A manipulator does not exist.
        StateError: A base is fixed.
        ModelError: A base is attached in the state, or closed loops are on another
            branch than at home.
    """
    cell = state.cell
    attached = state.attachments
    for name in names:
        check_movable(cell, name)
        if name in attached:
            raise ModelError(
                f"{quote(name)} is attached to {quote(attached[name])} in the state of "
                "the check: its base moves with that. Release it before you place it."
            )
    if branch_of(state) is not branch_of(home(cell)):
        raise ModelError(
            "Bases move in checks on the branch of loops at home only; the state of "
            "this check is on another."
        )
    moved = cell
    for name in names:
        carrier = _carrier(moved, name)
        moved = moved.add(carrier)
        moved = moved.mount(name, on=f"{carrier.name}/{_TIP}", bolted=True)
    return MovedBases(tuple(names), check_of(moved, _state_of(moved, state, names)))


_TIP: Final = "tip"


def _carrier(cell: Workcell, name: str) -> Manipulator:
    """Return six joints without shapes; at zero their tip is at the world."""
    taken, own = {WORLD, *cell.index}, f"base of {name}"
    while own in taken:
        own += "'"
    links, parent = [Link(name="ground")], "ground"
    kinds = [Prismatic(axis=axis) for axis in AXES]
    kinds += [Revolute(axis=axis) for axis in reversed(AXES)]
    for k, joint in enumerate(kinds):
        link = _TIP if k == len(kinds) - 1 else f"part {k}"
        links.append(Link(name=link, parent=parent, joint=joint))
        parent = link
    return Manipulator(name=own, links=links)


def _state_of(cell: Workcell, state: State, names: Sequence[str]) -> State:
    """Return the state of a cell with carriers that is a state without."""
    known = len(state.q)
    made = home(cell)
    made = made.replace(q=[*state.q.tolist(), *made.q.tolist()[known:]])
    for placement in state.placements:
        name = placement.manipulator
        if name in names:
            continue
        if placement.on == WORLD:
            made = made.place(name, placement.pose)
        else:
            made = made.attach(name, placement.on, pose=placement.pose, replace=True)
    return made


def base_numbers(name: str, poses: npt.ArrayLike) -> Array:
    """Return what the joints of a carrier are at: (..., 4, 4) to (..., 6).

    They are x, y, z [m], then the angles about z, y and x [rad], R = Rz Ry Rx.

    Raises:
        ShapeError: They have another shape.
        ModelError: One is not a rigid pose.
    """
    X = base_matrices(name, poses)
    R = X[..., :3, :3]
    # Near a right angle of y, z is free; x follows from what z leaves of R, so that the
    # product of all three is R to rounding.
    flat = np.hypot(R[..., 0, 0], R[..., 1, 0])
    y = np.arctan2(-R[..., 2, 0], flat)
    z = np.where(flat > UPRIGHT, np.arctan2(R[..., 1, 0], R[..., 0, 0]), 0.0)
    row = np.cos(z)[..., None] * R[..., 1, :] - np.sin(z)[..., None] * R[..., 0, :]
    x = np.arctan2(-row[..., 2], row[..., 1])
    return np.concatenate([X[..., :3, 3], np.stack([z, y, x], axis=-1)], axis=-1)
