"""`armillary info`: what a cell holds, as a tree and a table of joints."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from armillary.cell.cell import Cell
from armillary.cell.tree_text import tree_rows
from armillary.cli.input import add_file, open_cell
from armillary.cli.joints import DEGREES_PER_RADIAN
from armillary.cli.table import number, table
from armillary.errors import printable
from armillary.model.display import sized
from armillary.model.unit import Unit

TREE = ("frame", "joint type", "joint")
JOINTS = (">q", "joint", "unit", ">lower", ">upper", ">rate", ">effort")


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "info",
        help="what a cell holds: its tree, joints, limits",
        description="Print the tree of frames, and the joints in the order of q with "
        "their units and limits; '-' stands for no limit. Rates are per second, "
        "efforts in N or N m.",
    )
    add_file(parser)
    parser.add_argument(
        "--degrees", action="store_true", help="print angles in degrees"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the tree and the joints."""
    for line in described(open_cell(options), in_degrees=options.degrees):
        print(line)
    return 0


def described(cell: Cell, *, in_degrees: bool = False) -> Iterator[str]:
    """Yield the lines that describe a cell."""
    yield f"{printable(cell.name)}: {_counts(cell)}"
    yield ""
    yield from table(TREE, tree_rows(cell.workcell))
    if cell.joint_names or cell.passive_names:
        yield ""
        yield from table(JOINTS, _joint_rows(cell, in_degrees=in_degrees))
    if cell.passive_names:
        yield ""
        yield printable(str(cell.mobility()))


def _counts(cell: Cell) -> str:
    links = sum(len(m.links) for m in cell.manipulators)
    return sized(
        manipulator=len(cell.manipulators), link=links, joint=len(cell.joint_names)
    )


def _joint_rows(cell: Cell, *, in_degrees: bool) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the joints, passive ones last, without a place in q.

    Joints that follow a joint narrow its limits.
    """
    joints = cell.workcell.joints
    lower, upper, _ = joints.ranges
    for k, (name, place) in enumerate(zip(joints.all_names, joints.links, strict=True)):
        link = cell.workcell.links[place]
        turned = in_degrees and link.joint.unit is Unit.RADIAN
        factor = DEGREES_PER_RADIAN if turned else 1.0
        bounds = float(lower[k]), float(upper[k]), link.limits.velocity
        yield (
            str(k) if k < len(cell.joint_names) else "passive",
            name,
            "deg" if turned else link.joint.unit.value or "-",
            *(number(bound * factor) for bound in bounds),
            number(link.limits.effort),
        )
