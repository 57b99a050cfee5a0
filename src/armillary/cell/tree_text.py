"""The tree of a cell as text: manipulators on frames, links on links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from armillary.errors import JointError, printable
from armillary.kinematics.chains import WORLD_KEY, Chains, link_of
from armillary.kinematics.frame_tree import Base, FrameTree
from armillary.kinematics.state import State
from armillary.model.link import Link
from armillary.model.workcell import WORLD, Workcell

__all__ = ["DEEPEST_INDENT", "Row", "tree_lines", "tree_rows"]

DEEPEST_INDENT = 20
HEADER = ("frame", "joint type", "joint")
NUMBERS = ("q", "x [m]", "y [m]", "z [m]")
DECIMALS = 4


class Row(NamedTuple):
    """A frame in the printed tree.

    Attributes:
        place: Its name behind the lines of the tree.
        kind: What it is: a base, a kind of joint, a frame.
        joint: What moves it, or where a base stands.
    """

    place: str
    kind: str
    joint: str


def tree_rows(cell: Workcell, state: State | None = None) -> Iterator[Row]:
    """Yield a row for each frame of a cell: its place in the tree, type, what moves it.

    Deeper than twenty levels, a number stands for the indentation.

    state: Who holds whom; by default as the cell was built.
    """
    return (row for _, row in _rows(cell, FrameTree(cell, state)))


def tree_lines(
    cell: Workcell, state: State, *, depth: int | None = None
) -> Iterator[str]:
    """Yield a header, then a line for each frame: its row, its joint's q, where it is.

    state: One of the cell's. Positions are those in the world [m]; `?` where a joint
        cannot move, as those of unknown types.
    depth: The level of the deepest frames that are shown, the world's being 0.
    """
    tree = FrameTree(cell, state)
    chains = Chains(state.layout, state.q, WORLD_KEY)
    rows: list[tuple[str, ...]] = [(*HEADER, *NUMBERS)]
    for name, row in _rows(cell, tree, depth):
        at = cell.frame(name)
        q = chains.coordinate(link_of(at)) if tree.is_link(name) else None
        coordinate = "" if q is None else _fixed(float(q))
        try:
            position = [_fixed(float(p)) for p in chains.pose(at).position]
        except JointError:  # a joint of an unknown type is below
            position = ["?"] * 3
        rows.append((*map(printable, row), coordinate, *position))
    return _aligned(rows)


def _rows(
    cell: Workcell, tree: FrameTree, deepest: int | None = None
) -> Iterator[tuple[str, Row]]:
    """Yield each frame, qualified, and its row."""
    waiting = [(WORLD, 0, "", "")]
    while waiting:
        name, depth, before, beneath = waiting.pop()
        row = _row(cell, tree, name)
        yield name, row._replace(place=before + row.place)
        children = [] if depth == deepest else list(tree.children(name))
        for k, child in reversed(list(enumerate(children))):
            is_last = k == len(children) - 1
            lines = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
            if depth >= DEEPEST_INDENT:
                waiting.append((child, depth + 1, f"level {depth + 1}: ", ""))
            else:
                indent, further = (beneath + line for line in lines)
                waiting.append((child, depth + 1, indent, further))


def _row(cell: Workcell, tree: FrameTree, name: str) -> Row:
    """Return the row of a frame, without the lines of the tree."""
    if name == WORLD:
        return Row(WORLD, "", "")
    owner, _, bare = name.partition("/")
    manipulator = cell.manipulators[cell.index[owner]]
    place = manipulator.places[bare].link
    link = manipulator.links[place]
    if not tree.is_link(name):
        is_end = any(each.name == bare and each.end_effector for each in link.frames)
        return Row(bare, "end effector" if is_end else "frame", "")
    if link.parent is None:
        return Row(name, "base", _where(tree.base(owner)))
    return Row(bare, link.joint.tag, _moved_by(link))


def _moved_by(link: Link) -> str:
    if not link.moves:
        return ""
    if link.coupling is None:
        return link.coordinate
    drive = f"{_short(link.coupling.multiplier)} {link.coupling.of}"
    offset = link.coupling.offset
    added = f" + {_short(offset)}" if offset else ""
    return f"{link.coordinate} = {drive}{added}"


def _where(base: Base) -> str:
    if base.pose.is_identity:
        return base.manner
    where = " ".join(_short(round(float(p), 9)) for p in base.pose.position)
    where = f"at {where} m"
    return ", ".join(filter(None, (base.manner, where)))


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
