"""`armillary tree`: the frames of a cell in a state, and where they are."""

from __future__ import annotations

import argparse
from typing import Any

from armillary.cell.tree_text import tree_lines
from armillary.cli.input import add_file, open_cell
from armillary.cli.options import add_state, chosen_state, whole_number
from armillary.model.display import plural


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "tree",
        help="where all frames are in a state, as a tree",
        description="Print the tree of frames in a state: what each frame is, what "
        "moves it, the coordinate of its joint [m or rad], and its position in the "
        "world [m]. Without a state, the cell is at home.",
    )
    add_file(parser)
    add_state(parser)
    parser.add_argument(
        "--depth",
        metavar="N",
        type=whole_number(0),
        help="only frames down to this level",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the tree, and how much of it was left out."""
    cell = open_cell(options)
    state = chosen_state(cell, options)
    lines = list(tree_lines(state, depth=options.depth))
    for line in lines:
        print(line)
    hidden = len(cell.frame_names) - (len(lines) - 1)
    if hidden:
        print(f"... and {plural(hidden, 'frame')} below level {options.depth}")
    return 0
