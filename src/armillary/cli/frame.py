"""The frame that a verb is about."""

from __future__ import annotations

import argparse

from armillary.errors import ModelError, quote
from armillary.model.workcell import Workcell


def add_frame(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add the option `--frame`."""
    default = "" if required else "; else the first end effector, or the last link"
    parser.add_argument(
        "--frame", metavar="F", required=required, help=f"a frame of the cell{default}"
    )


def chosen_frame(cell: Workcell, options: argparse.Namespace) -> str:
    """Return the frame that was named, else the first end effector, else the last link.

    Raises:
        ModelError: None was named and the cell is empty.
    """
    if options.frame is not None:
        name: str = options.frame
        return name
    for manipulator in cell.manipulators:
        for link in manipulator.links:
            for frame in link.frames:
                if frame.end_effector:
                    return f"{manipulator.name}/{frame.name}"
    if not cell.manipulators:
        raise ModelError(f"Cell {quote(cell.name)} is empty; it has no frame.")
    last = cell.manipulators[-1]
    return f"{last.name}/{last.links[last.order[-1]].name}"
