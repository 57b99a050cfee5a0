"""Things that each follow at most one other: which of them go round in circles."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["endless"]


def endless(leaders: Sequence[int]) -> set[int]:
    """Return those from which following the leaders never ends, in linear time.

    leaders: For each the number of the one that it follows, -1 where it follows none.
    """
    ends = {-1: True}
    for start in range(len(leaders)):
        path: dict[int, None] = {}
        k = start
        while k not in ends and k not in path:
            path[k] = None
            k = leaders[k]
        # One that is on this very path closes a circle.
        ends.update(dict.fromkeys(path, ends.get(k, False)))
    return {k for k, has_end in ends.items() if not has_end}
