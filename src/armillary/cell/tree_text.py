"""The tree of a cell as text: manipulators on frames, links on links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from armillary.errors import JointError, printable
from armillary.kinematics.state import State, bound_state, home, link_poses
from armillary.model.link import Link
from armillary.model.mount import WORLD
from armillary.model.tree import Base, Tree
from armillary.model.workcell import Workcell

__all__ = ["DEEPEST_INDENT", "tree", "tree_lines", "tree_rows"]

DEEPEST_INDENT = 20
HEADER = ("frame", "joint type", "joint")
NUMBERS = ("q", "x [m]", "y [m]", "z [m]")
DECIMALS = 4


class TreeRow(NamedTuple):
    """A frame in the printed tree.

    Attributes:
        place: Its name behind the lines of the tree.
        kind: What it is: a base, a kind of joint, a frame.
        joint: What moves it, or where a base stands.
    """

    place: str
    kind: str
    joint: str


def tree(cell: Workcell, state: State | None = None) -> str:
    """Return the tree of frames in a state as text: a line for each, in columns.

    They tell what each frame is, what moves it, the coordinate of its joint [m or
    rad], and its position in the world [m].

    state: The one at home by default.

    Raises:
        StateError: The state is not one of this cell.
    """
    shown = home(cell) if state is None else bound_state(cell, state)
    return "\n".join(tree_lines(shown))


def tree_rows(cell: Workcell) -> Iterator[TreeRow]:
    """Yield a row for each frame of a cell: its place in the tree, type, what moves it.

    Deeper than twenty levels, a number stands for the indentation.
    """
    return (row for _, row in _rows(Tree.of(cell)))


def tree_lines(state: State, *, depth: int | None = None) -> Iterator[str]:
    """Yield a header, then a line for each frame: its row, its joint's q, where it is.

    Positions are those in the world [m]; `?` where a joint cannot move, as those of
    unknown types.

    depth: The level of the deepest frames that are shown, the world's being 0.
    """
    cell, tree = state.cell, state.tree
    poses = link_poses(state)
    rows: list[tuple[str, ...]] = [(*HEADER, *NUMBERS)]
    for name, row in _rows(tree, depth):
        at = cell.frame(name)
        is_joint = at.link >= 0 and tree.is_link(name)
        q = poses.joint_positions(at.link) if is_joint else []
        coordinate = _fixed(float(q[0])) if len(q) == 1 else ""
        try:
            position = [_fixed(float(p)) for p in poses.pose(at).position]
        except JointError:  # a joint of an unknown type is below
            position = ["?"] * 3
        rows.append((*map(printable, row), coordinate, *position))
    return _aligned(rows)


def _rows(tree: Tree, deepest: int | None = None) -> Iterator[tuple[str, TreeRow]]:
    """Yield each frame, qualified, and its row."""
    waiting = [(WORLD, 0, "", "")]
    while waiting:
        name, depth, before, beneath = waiting.pop()
        row = _row(tree, name)
        yield name, row._replace(place=before + row.place)
        children = [] if depth == deepest else list(tree.frame_children(name))
        for k, child in reversed(list(enumerate(children))):
            is_last = k == len(children) - 1
            lines = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
            if depth >= DEEPEST_INDENT:
                waiting.append((child, depth + 1, f"level {depth + 1}: ", ""))
            else:
                indent, further = (beneath + line for line in lines)
                waiting.append((child, depth + 1, indent, further))


def _row(tree: Tree, name: str) -> TreeRow:
    """Return the row of a frame, without the lines of the tree."""
    if name == WORLD:
        return TreeRow(WORLD, "", "")
    bare = name.partition("/")[2]
    number = tree.cell.frame(name).link
    link = tree.cell.links[number]
    if not tree.is_link(name):
        is_end = any(each.name == bare and each.end_effector for each in link.frames)
        return TreeRow(bare, "end effector" if is_end else "frame", "")
    if link.parent is None:
        return TreeRow(name, "base", _where(tree.bases[tree.base_of[number]]))
    passive = tree.cell.joints.links[tree.cell.loop_system.count :]
    mark = " (passive)" if number in passive else ""
    return TreeRow(bare, link.joint.tag, _moved_by(link) + mark)


def _moved_by(link: Link) -> str:
    if not link.has_coordinate:
        return ", ".join(link.inputs)
    if link.coupling is None:
        return link.coordinate
    drive = f"{_short(link.coupling.multiplier)} {link.coupling.of}"
    offset = link.coupling.offset
    added = f" + {_short(offset)}" if offset else ""
    return f"{link.coordinate} = {drive}{added}"


def _where(base: Base) -> str:
    mode = "" if base.mode == "fixed" else base.mode
    if base.pose.is_identity:
        return mode
    where = " ".join(_short(round(float(p), 9)) for p in base.pose.position)
    where = f"at {where} m"
    return ", ".join(filter(None, (mode, where)))


def _short(value: float) -> str:
    return f"{value + 0.0:.6g}"


def _fixed(value: float) -> str:
    return f"{round(value, DECIMALS) + 0.0:.{DECIMALS}f}"


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield lines of columns: the texts to the left, the numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if k < len(HEADER) else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
