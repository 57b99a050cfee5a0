"""Postures of manipulators as states of a cell."""

from __future__ import annotations

from collections.abc import Iterator

from armillary.errors import unknown
from armillary.kinematics.state import State
from armillary.model.manipulator import Manipulator
from armillary.model.workcell import Workcell

__all__ = ["HOME", "in_posture", "posture_names", "postures_of"]

HOME = "home"
"""Names the joint positions in which a cell starts, where no posture has that name."""


def postures_of(manipulator: Manipulator) -> dict[str, dict[str, float]]:
    """Return for each posture the positions of its joints, by their names in a cell.

    Joints that loops determine are left out, and postures that have no others.
    """
    postures = {
        posture.name: {
            f"{manipulator.name}/{name}": position
            for name, position in zip(posture.joints, posture.q, strict=True)
            if name in manipulator.joint_names
        }
        for posture in manipulator.postures
    }
    return {name: positions for name, positions in postures.items() if positions}


def posture_names(cell: Workcell) -> tuple[str, ...]:
    """Return the names that `in_posture` knows, `home` first."""
    return tuple(dict.fromkeys([HOME, *(name for name, _ in _postures(cell))]))


def in_posture(state: State, name: str) -> State:
    """Return the state with joints as a posture has them.

    Args:
        state: Joints that the posture leaves out stay as they are here.
        name: Of a posture of one manipulator, `manipulator/posture`; or of all that
            have one of that name; or `home`, where no manipulator has one.

    Raises:
        UnknownName: There is none.
    """
    positions: dict[str, float] = {}
    for each, joints in _postures(state.cell):
        if each == name:
            positions |= joints
    if positions:
        return state.joints(positions)
    if name == HOME:
        return state.replace(q=state.cell.home_q)
    raise unknown("posture", name, posture_names(state.cell), owner="the cell")


def _postures(cell: Workcell) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield postures by their bare names, then by those with their manipulators."""
    for prefix in (False, True):
        for manipulator in cell.manipulators:
            for name, joints in postures_of(manipulator).items():
                yield f"{manipulator.name}/{name}" if prefix else name, joints
