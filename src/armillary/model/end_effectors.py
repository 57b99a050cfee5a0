"""End effectors, and the frames that are meant where a manipulator has none."""

from __future__ import annotations

from armillary.model.manipulator import Manipulator
from armillary.model.workcell import Workcell

__all__ = ["end_effectors", "frames_by_use", "last_link"]


def end_effectors(manipulator: Manipulator) -> list[str]:
    """Return the end effectors, from the base on, as `manipulator/frame`."""
    return _frames(manipulator, are_end_effectors=True)


def last_link(manipulator: Manipulator) -> str:
    """Return the last link from the base on, as `manipulator/link`."""
    return f"{manipulator.name}/{manipulator.links[manipulator.order[-1]].name}"


def frames_by_use(cell: Workcell) -> list[str]:
    """Return the frames of manipulators with joints, those that people mean first.

    They are the end effectors of all, then of each manipulator its other frames and its
    links but for the base, the last one first.
    """
    moving = [each for each in cell.manipulators if each.joint_names]
    found = [name for each in moving for name in end_effectors(each)]
    for each in moving:
        found += _frames(each, are_end_effectors=False)
        found += [f"{each.name}/{each.links[k].name}" for k in each.order[:0:-1]]
    return found


def _frames(manipulator: Manipulator, *, are_end_effectors: bool) -> list[str]:
    return [
        f"{manipulator.name}/{frame.name}"
        for k in manipulator.order
        for frame in manipulator.links[k].frames
        if frame.end_effector == are_end_effectors
    ]
