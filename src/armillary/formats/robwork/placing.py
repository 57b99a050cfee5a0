"""On which frame each frame hangs: RobWork's rules, and what they do to a file.

- A frame of the workcell hangs on its refframe, which may be declared later and may be
  a frame of a device; without one on the world. The first one always hangs there.
- The base of a device hangs on the frame of the workcell that is declared last before
  it, else on the world; that of a mobile device always on the world.
- In a serial device every frame hangs on the one before it.
- In the other devices a frame hangs on its refframe in the same device, which must be
  declared before it; without one on the frame before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from armillary.errors import quote
from armillary.formats.robwork.desk import Desk
from armillary.formats.robwork.directory import Directory
from armillary.formats.robwork.node import WORLD_FRAME, Node

__all__ = [
    "check_cycles",
    "place_base",
    "place_in_chain",
    "place_in_tree",
    "place_in_world",
]


def place_in_world(nodes: Sequence[Node], directory: Directory, desk: Desk) -> None:
    """Hang the frames of a workcell on their parents."""
    for k, node in enumerate(nodes):
        if k == 0 or not node.refframe:
            node.parent = WORLD_FRAME
            if node.refframe not in {"", WORLD_FRAME}:
                _tell_ignored(node, "it is the first frame, which", desk)
            continue
        found = directory.find(node.refframe, ())
        if found is None:
            _tell_unknown(node, directory, desk)
        node.parent = found or WORLD_FRAME


def place_base(base: Node, support: str, directory: Directory, desk: Desk) -> None:
    """Hang the first frame of a device on the frame declared before the device."""
    base.parent = support
    if not base.refframe or base.refframe == support:
        return
    if directory.find(base.refframe, base.scope) != support:
        _tell_ignored(base, "it is the base of its device, which", desk)


def place_in_chain(nodes: Sequence[Node], directory: Directory, desk: Desk) -> None:
    """Hang every frame of a serial device but the first on the one before it."""
    for before, node in pairwise(nodes):
        node.parent = before.full_name
        if not node.refframe:
            continue
        if directory.find(node.refframe, node.scope) != node.parent:
            _tell_ignored(node, "it is in a serial device, and", desk)


def place_in_tree(
    nodes: Sequence[Node],
    directory: Directory,
    desk: Desk,
    *,
    others: Iterable[Node] = (),
) -> None:
    """Hang every frame of a tree-like device but the first on the one it names.

    others: Frames of the device that hang already.
    """
    declared: set[str] = {node.full_name for node in (*nodes[:1], *others)}
    for before, node in pairwise(nodes):
        node.parent = before.full_name
        if node.refframe:
            found = directory.find(node.refframe, node.scope)
            if found is None or found not in declared:
                _tell_unknown(node, directory, desk, later=found is not None)
            else:
                node.parent = found
        declared.add(node.full_name)


def check_cycles(directory: Directory, desk: Desk) -> None:
    """Report frames that hang on themselves, each cycle once.

    One of its frames is hung on the world, so that the rest can be read.
    """
    rooted: set[str] = {WORLD_FRAME}
    for start in directory:
        path: dict[str, None] = {}
        name = start.full_name
        while name not in rooted and name not in path:
            path[name] = None
            name = directory[name].parent
        if name in path and name not in rooted:
            names = list(path)
            cycle = [*names[names.index(name) :], name]
            node = directory[name]
            desk.report.error(
                node.place,
                "cycle",
                f"frame {quote(name)} hangs on itself: "
                + " on ".join(map(quote, cycle[:10])),
                hint="A device stands on the workcell frame declared last before it.",
            )
            node.parent = WORLD_FRAME
        rooted.update(path)


def _tell_ignored(node: Node, why: str, desk: Desk) -> None:
    desk.report.warning(
        node.place,
        "refframe-ignored",
        f"the refframe {quote(node.refframe)} of {node.element.label} is ignored, as "
        f"in RobWork: {why} hangs on {quote(node.parent)}",
    )


def _tell_unknown(
    node: Node, directory: Directory, desk: Desk, *, later: bool = False
) -> None:
    where = "not declared before it in the same device" if later else "not declared"
    desk.report.error(
        node.place,
        "unknown-frame",
        f"{node.element.label} refers to the frame {quote(node.refframe)}, "
        f"which is {where}",
        hint="" if later else directory.hint(node.refframe, node.scope),
    )
