"""The order in which passive joints can be solved for: in blocks, one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

__all__ = ["matched", "solving_order"]

NOBODY: Final = -1


def matched(rows: Sequence[Sequence[int]], count: int) -> list[int]:
    """Return for each of `count` unknowns a row that has it, each row once, or -1.

    Augmenting paths (Kuhn 1955; Hopcroft and Karp give a faster order, which rows of
    few unknowns do not need).

    rows: The unknowns that are in each row.
    """
    owner = [NOBODY] * count
    for row in range(len(rows)):
        found_by: dict[int, int] = {}  # unknown -> the row from which it was reached
        waiting = [row]
        end = NOBODY
        while waiting and end == NOBODY:
            at = waiting.pop()
            for unknown in rows[at]:
                if unknown in found_by:
                    continue
                found_by[unknown] = at
                if owner[unknown] == NOBODY:
                    end = unknown
                    break
                waiting.append(owner[unknown])
        while end != NOBODY:
            at = found_by[end]
            previous = next((u for u in rows[at] if owner[u] == at), NOBODY)
            owner[end] = at
            end = NOBODY if at == row else previous
    return owner


def solving_order(needs: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield sets of nodes that need each other, after all that they need.

    The strongly connected components (Tarjan 1972), without recursion.

    needs: The nodes that each node needs.
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    for start in range(len(needs)):
        if start in index:
            continue
        waiting = [(start, iter(needs[start]))]
        index[start] = low[start] = len(index)
        path.append(start)
        on_path.add(start)
        while waiting:
            node, rest = waiting[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    path.append(other)
                    on_path.add(other)
                    waiting.append((other, iter(needs[other])))
                    break
                if other in on_path:
                    low[node] = min(low[node], index[other])
            else:
                waiting.pop()
                if waiting:
                    below = waiting[-1][0]
                    low[below] = min(low[below], low[node])
                if low[node] == index[node]:
                    found = path[path.index(node) :]
                    del path[len(path) - len(found) :]
                    on_path.difference_update(found)
                    yield sorted(found)
