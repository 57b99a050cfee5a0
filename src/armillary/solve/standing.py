"""A cell built anew as it stands in a state."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from armillary.model.manipulator import Manipulator
from armillary.model.posture import Posture
from armillary.model.workcell import Mount, Workcell
from armillary.solve.state import State

__all__ = ["as_it_stands"]

C = TypeVar("C", bound=Workcell)


def as_it_stands(cell: C, state: State) -> C:
    """Return a cell whose home is a state of another: q, bases, and who holds whom."""
    placed = {each.manipulator: each for each in state.placements}
    kept = (mount for mount in cell.mounts if mount.manipulator not in placed)
    moved = (
        Mount(manipulator=name, on=each.on, pose=each.pose, bolted=False)
        for name, each in placed.items()
    )
    manipulators = (
        _at_home(manipulator, state.q[start : start + len(manipulator.coordinates)])
        for manipulator, start in zip(cell.manipulators, cell.offsets, strict=True)
    )
    return msgspec.structs.replace(
        cell, manipulators=tuple(manipulators), mounts=(*kept, *moved)
    )


def _at_home(manipulator: Manipulator, q: tuple[float, ...]) -> Manipulator:
    if not q:
        return manipulator
    posture = Posture(name="home", joints=manipulator.joint_names, q=q)
    return msgspec.structs.replace(manipulator, postures=(posture,), home="home")
