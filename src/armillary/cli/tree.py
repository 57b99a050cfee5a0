"""The tree of a cell as text: manipulators on frames, links on links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from armillary.cli.table import number
from armillary.model.frame import Frame
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.workcell import WORLD, Mount, Workcell

DEEPEST_INDENT = 20

Row = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Node:
    """A frame in the tree: of manipulator number `owner`, -1 for the world.

    Attributes:
        name: Of the frame, bare.
        row: What is printed: the name, its type, what moves it.
        link: The number of the link, None for the world and for named frames.
    """

    owner: int
    name: str
    row: Row
    link: int | None = None


class _Tree:
    """The nodes of a cell, found from their parents."""

    def __init__(self, cell: Workcell) -> None:
        self._cell = cell
        self._mounts = {mount.manipulator: mount for mount in cell.mounts}
        self._standing: dict[tuple[int, str], list[int]] = {}
        for k, manipulator in enumerate(cell.manipulators):
            mount = self._mounts.get(manipulator.name)
            key = self._place(WORLD if mount is None else mount.on)
            self._standing.setdefault(key, []).append(k)

    def _place(self, frame: str) -> tuple[int, str]:
        """Return the manipulator that owns a frame, and its bare name."""
        owner = self._cell.frame(frame).manipulator
        if owner < 0 or frame in self._cell.manipulators[owner].places:
            return owner, frame
        return owner, frame.partition("/")[2]

    def children(self, node: _Node) -> list[_Node]:
        """Return what hangs on a frame: named frames, links, then manipulators."""
        found: list[_Node] = []
        if node.link is not None:
            manipulator = self._cell.manipulators[node.owner]
            frames = manipulator.links[node.link].frames
            found += [_of_frame(frame, node.owner) for frame in frames]
            found += [
                _of_link(manipulator, k, node.owner)
                for k in manipulator.children[node.link]
            ]
        standing = self._standing.get((node.owner, node.name), [])
        return [*found, *(self._of_base(k) for k in standing)]

    def _of_base(self, owner: int) -> _Node:
        manipulator = self._cell.manipulators[owner]
        base = manipulator.links[manipulator.base].name
        where = _where(self._mounts.get(manipulator.name))
        row = (f"{manipulator.name}/{base}", "base", where)
        return _Node(owner, base, row, manipulator.base)


def tree_rows(cell: Workcell) -> Iterator[Row]:
    """Yield a row for each frame of a cell: its place in the tree, type, what moves it.

    Deeper than twenty levels, a number stands for the indentation.
    """
    tree = _Tree(cell)
    waiting = [(_Node(-1, WORLD, (WORLD, "", "")), 0, "", "")]
    while waiting:
        node, depth, before, beneath = waiting.pop()
        yield before + node.row[0], *node.row[1:]
        children = tree.children(node)
        for k, child in reversed(list(enumerate(children))):
            is_last = k == len(children) - 1
            lines = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
            if depth >= DEEPEST_INDENT:
                marked = f"level {depth + 1}: "
                waiting.append((child, depth + 1, marked, ""))
            else:
                indent, further = (beneath + line for line in lines)
                waiting.append((child, depth + 1, indent, further))


def _of_frame(frame: Frame, owner: int) -> _Node:
    kind = "end effector" if frame.end_effector else "frame"
    return _Node(owner, frame.name, (frame.name, kind, ""))


def _of_link(manipulator: Manipulator, k: int, owner: int) -> _Node:
    link = manipulator.links[k]
    row = (link.name, link.joint.tag, _moved_by(link, manipulator))
    return _Node(owner, link.name, row, k)


def _moved_by(link: Link, manipulator: Manipulator) -> str:
    if not link.moves:
        return ""
    if link.coupling is None:
        return link.coordinate
    drive = f"{number(link.coupling.multiplier)} {link.coupling.of}"
    offset = link.coupling.offset
    added = f" + {number(offset)}" if offset else ""
    return f"{link.coordinate} = {drive}{added}"


def _where(mount: Mount | None) -> str:
    if mount is None or mount.pose.is_identity:
        return ""
    return f"at {' '.join(number(float(p)) for p in mount.pose.position)} m"
