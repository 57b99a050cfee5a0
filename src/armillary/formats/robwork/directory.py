"""All frames of a workcell by their full names, and how names in a scope are meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from armillary.errors import quote
from armillary.formats.robwork.desk import Desk
from armillary.formats.robwork.node import SEPARATOR, WORLD_FRAME, Node, Scope

__all__ = ["Directory"]

MOST_COMPARED = 1000


class Directory:
    """Finds the frame that a name stands for."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._nodes: dict[str, Node] = {}

    def add(self, nodes: Iterable[Node]) -> None:
        """Add frames; report those whose name is taken."""
        for node in nodes:
            first = self._nodes.setdefault(node.full_name, node)
            if node.full_name == WORLD_FRAME:
                self._desk.report.error(
                    node.place,
                    "repeated-name",
                    f"no frame but the world can be called {WORLD_FRAME!r}",
                )
            elif first is not node:
                self._desk.report.error(
                    node.place,
                    "repeated-name",
                    f"a frame is called {quote(node.full_name)} already, at "
                    f"{first.place}",
                    hint="Rename one.",
                )

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def __getitem__(self, full_name: str) -> Node:
        return self._nodes[full_name]

    def __contains__(self, full_name: str) -> bool:
        return full_name in self._nodes

    def find(self, name: str, scope: Scope) -> str | None:
        """Return the full name that a name means in a scope, None if nothing has it.

        RobWork looks it up in the scope itself. Here the scopes around it are searched
        too, from the inside out, and a full name is taken as it is.
        """
        for count in range(len(scope), -1, -1):
            full = SEPARATOR.join((*scope[:count], name))
            if full in self._nodes:
                return full
        return WORLD_FRAME if name == WORLD_FRAME else None

    def hint(self, name: str, scope: Scope) -> str:
        """Return the sentence with the nearest name that would be known there."""
        prefix = SEPARATOR.join((*scope, ""))
        known = (full.removeprefix(prefix) for full in self._nodes)
        return self._desk.hint(name, list(islice(known, MOST_COMPARED)))
