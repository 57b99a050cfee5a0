"""`armillary tree`: the frames of a cell in a state, and where they are."""

from __future__ import annotations

import argparse
import json
from typing import Any

from armillary.cell.tree_text import tree_lines
from armillary.cli.input import FILE, open_cell
from armillary.cli.options import JSON, STATE, chosen_state
from armillary.cli.table import finite
from armillary.cli.verb import option, verb, whole_number
from armillary.errors import JointError
from armillary.kinematics.state import State
from armillary.model.display import plural
from armillary.model.frame import FrameRef
from armillary.model.link_poses import LinkPoses
from armillary.model.mount import WORLD
from armillary.model.workcell import WORLD_LINK


@verb(
    "tree",
    (
        *FILE,
        *STATE,
        option("--depth N", "only frames down to this level", type=whole_number(0)),
        JSON,
    ),
    description="Print the tree of frames in a state: what each frame is, what "
    "moves it, the coordinate of its joint [m or rad], and its position in the "
    "world [m]. Without a state, the cell is at home.",
)
def run(options: argparse.Namespace) -> int:
    """Print the tree, and how much of it was left out."""
    cell = open_cell(options)
    state = chosen_state(cell, options)
    if options.json:
        print(json.dumps(_object(state, options.depth)))
        return 0
    lines = list(tree_lines(state, depth=options.depth))
    for line in lines:
        print(line)
    hidden = len(cell.frame_names) - (len(lines) - 1)
    if hidden:
        print(f"... and {plural(hidden, 'frame')} below level {options.depth}")
    return 0


def _object(state: State, depth: int | None) -> dict[str, Any]:
    """Return what is printed as JSON: the frames, parents first, each with its pose.

    A pose is null where a joint cannot move, as those of unknown types.
    """
    tree = state.tree
    poses = LinkPoses(tree, state.positions.tolist(), WORLD_LINK)
    frames: list[dict[str, Any]] = []
    waiting: list[tuple[str, str | None, int]] = [(WORLD, None, 0)]
    while waiting:
        name, parent, level = waiting.pop()
        frames.append(
            {
                "frame": name,
                "parent": parent,
                "pose": _pose(poses, state.cell.frame(name)),
            }
        )
        if level != depth:
            children = [(each, name, level + 1) for each in tree.frame_children(name)]
            waiting += reversed(children)
    return {"cell": state.cell.name, "frames": frames}


def _pose(poses: LinkPoses, at: FrameRef) -> list[list[float | None]] | None:
    """Return the pose of a frame in the world, row by row, null if it is unknown."""
    try:
        matrix = poses.pose(at).matrix()
    except JointError:
        return None
    return [finite(row) for row in matrix.tolist()]
