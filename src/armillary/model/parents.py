"""Ways up a tree that is given by the parent of each node, and cycles on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

__all__ = ["ancestors", "cycles", "endless", "nearest", "nearest_shared"]

ROOT: Final = -1


def ancestors(parents: Sequence[int], node: int) -> list[int]:
    """Return a node and all above it, the root (-1) last."""
    way = [node]
    while node >= 0:
        node = parents[node]
        way.append(node)
    return way


def nearest(
    parents: Sequence[int], starts: Iterable[int], stops: Callable[[int], bool]
) -> list[int]:
    """Return the nearest place at which each way to the root stops, in linear time.

    Args:
        parents: Of each node, -1 for the root.
        starts: Where the ways begin; such a node may be the nearest one itself.
        stops: Whether a way ends at a node; all end at the root.
    """
    known = {ROOT: ROOT}
    places: list[int] = []
    for start in starts:
        way: list[int] = []
        node = start
        while node not in known:
            if stops(node):
                known[node] = node
                break
            way.append(node)
            node = parents[node]
        known.update(dict.fromkeys(way, known[node]))
        places.append(known[start])
    return places


def nearest_shared(lines: Sequence[Sequence[Any]]) -> Any:
    """Return the first of the first line that all lines have."""
    shared = set(lines[0]).intersection(*lines[1:])
    return next(each for each in lines[0] if each in shared)


def endless(parents: Sequence[int]) -> set[int]:
    """Return the nodes from which no way leads to a root, in linear time.

    parents: Of each node, -1 for a root.
    """
    ends = {ROOT: True}
    for start in range(len(parents)):
        path: dict[int, None] = {}
        k = start
        while k not in ends and k not in path:
            path[k] = None
            k = parents[k]
        # One that is on this very path closes a circle.
        ends.update(dict.fromkeys(path, ends.get(k, False)))
    return {k for k, has_end in ends.items() if not has_end}


def cycles(parents: Mapping[str, str]) -> list[list[str]]:
    """Return each cycle once, as the names in it, in linear time.

    parents: Of each name; those without an entry are roots.
    """
    done: set[str] = set()
    loops: list[list[str]] = []
    for start in parents:
        name, path = start, dict[str, None]()
        while name in parents and name not in done and name not in path:
            path[name] = None
            name = parents[name]
        if name in path:
            names = list(path)
            loops.append(names[names.index(name) :])
        done.update(path)
    return loops
