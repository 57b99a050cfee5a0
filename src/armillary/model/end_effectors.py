"""End effectors, and the frames that are meant where a manipulator has none."""

from __future__ import annotations

import re
from typing import Final

from armillary.model.manipulator import Manipulator
from armillary.model.workcell import Workcell

__all__ = ["default_frame", "end_effectors", "frames_by_use", "last_link"]

# Names that robots' files give the frame that work is done with, the outermost first.
TOOL_NAMES: Final = tuple(
    re.compile(rf"(?:^|[\W_])(?:{name})(?:$|[\W_])", re.IGNORECASE)
    for name in (
        "tcp|tool_?cent(?:er|re)_?point|grasp(?:_?target|_?frame)?",
        r"tool\d*|end_?effector|eef|ee",
        "flange",
    )
)


def end_effectors(manipulator: Manipulator) -> list[str]:
    """Return the end effectors, from the base on, as `manipulator/frame`."""
    return _frames(manipulator, are_end_effectors=True)


def last_link(manipulator: Manipulator) -> str:
    """Return the link that is meant where there are no frames, as `manipulator/link`.

    It is the first of those that `frames_by_use` has; of a manipulator without joints
    the last from the base on.
    """
    return f"{manipulator.name}/{manipulator.links[_links_by_use(manipulator)[0]].name}"


def frames_by_use(cell: Workcell) -> list[str]:
    """Return the frames of manipulators with joints, those that people mean first.

    They are the end effectors of all, then of each manipulator its other frames and its
    links but for the base. Of links those that are called like a tool come first, then
    those with most joints before them; of these the last one.
    """
    moving = [each for each in cell.manipulators if each.joint_names]
    frames = [name for each in moving for name in end_effectors(each)]
    for each in moving:
        frames += _frames(each, are_end_effectors=False)
        frames += [
            f"{each.name}/{each.links[k].name}" for k in _links_by_use(each)[:-1]
        ]
    return frames


def default_frame(cell: Workcell) -> str:
    """Return the frame that is meant where nobody names one: the first by use.

    Of a cell without joints it is the first end effector, or else the last link. The
    cell must have a manipulator.
    """
    fixed = (name for each in cell.manipulators for name in end_effectors(each))
    return next(iter(frames_by_use(cell)), None) or next(
        fixed, last_link(cell.manipulators[-1])
    )


def _links_by_use(manipulator: Manipulator) -> list[int]:
    """Return the links, those that people mean first, the base last."""
    joints = _joints_before(manipulator)

    def use(k: int) -> tuple[bool, int, int]:
        name = manipulator.links[k].name
        ranks = (i for i, each in enumerate(TOOL_NAMES) if each.search(name))
        rank = next(ranks, len(TOOL_NAMES)) if joints[k] else len(TOOL_NAMES)
        return k == manipulator.base, rank, -joints[k]

    last_first = manipulator.order[::-1]  # which decides where uses are the same
    return sorted(last_first, key=use)


def _joints_before(manipulator: Manipulator) -> dict[int, int]:
    """Return how many joints move each link."""
    counts: dict[int, int] = {}
    for k in manipulator.order:
        before = counts.get(manipulator.parents[k], 0)
        counts[k] = before + manipulator.links[k].has_coordinate
    return counts


def _frames(manipulator: Manipulator, *, are_end_effectors: bool) -> list[str]:
    return [
        f"{manipulator.name}/{frame.name}"
        for k in manipulator.order
        for frame in manipulator.links[k].frames
        if frame.end_effector == are_end_effectors
    ]
