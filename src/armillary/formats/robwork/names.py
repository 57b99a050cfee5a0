"""What a frame of RobWork is called here, and what a link of ours is called there."""

from __future__ import annotations

from armillary.formats.robwork.node import SEPARATOR, WORLD_FRAME
from armillary.formats.robwork.notes import DEVICE
from armillary.model.workcell import WORLD, Workcell

__all__ = ["frame_names"]


def frame_names(cell: Workcell) -> dict[str, str]:
    """Return, for each frame's full name in RobWork, its name in a loaded cell.

    `PA10.Joint1` is `PA10/Joint1` and `SchunkHand.f1.Joint2` is `SchunkHand/f1.Joint2`;
    a frame of the workcell is in the environment or in a part, and `WORLD` is `world`.
    """
    names = {WORLD_FRAME: WORLD}
    for manipulator in cell.manipulators:
        is_device = any(note.name == DEVICE for note in manipulator.properties)
        scope = (manipulator.name,) if is_device else ()
        for place in manipulator.places:
            full = SEPARATOR.join((*scope, place))
            names.setdefault(full, f"{manipulator.name}/{place}")
    return names
