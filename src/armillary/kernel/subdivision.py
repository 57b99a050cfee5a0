"""How a `Subdivide` divides an interval: the reference, and what its code shares.

What is left of the interval [0, 1] is a list of parts. Each round takes the first of
them, divides them into `PIECES`, and puts back what the stages do not cover. So the
pieces, and with them the result, are the same whatever the number of lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from armillary.kernel.stages import Subdivide

__all__ = ["PIECES", "ROOM", "SHIFTS", "Pieces", "covered"]

Array = npt.NDArray[Any]

Pieces: TypeAlias = Callable[[Array, Array, Array], tuple[Array, Array, Array]]
"""From where pieces are, and how far they reach before and behind that, to how far they
are covered, and whether the interval ends there."""

PIECES: Final = 8
"""Pieces of a round."""

SHIFTS: Final = 3
"""A part is divided in 2^3 pieces, or in 2^2 or 2 where that many parts are left."""

ROOM: Final = 512
"""Parts that may be left."""


def covered(stage: Subdivide, longest: float, run: Pieces) -> tuple[float, float]:
    """Return up to where an interval is covered, and 1 if it ends there, else 0.

    Args:
        stage: The region.
        longest: No piece is longer at first.
        run: Covers pieces.
    """
    parts: list[tuple[float, float]] = [(0.0, 1.0)]  # from the last to the first
    rounds, end, ended = 0, 1.0, 0.0
    while parts:
        low, high = parts[-1]
        is_full = len(parts) > ROOM - 2 * PIECES
        if high - low <= stage.shortest or rounds >= stage.limit or is_full:
            # It does not go on here; a last round tells whether it ends here.
            nothing = np.zeros(PIECES)
            *_, ending = run(nothing + low, nothing, nothing)
            return low, float(ending.any())
        rounds += 1
        pieces = _taken(parts, longest)
        starts, stops = np.array(pieces).T
        # In the middle of a piece; where an end is known, at its beginning, so that
        # the first point of the interval that ends it is found.
        at = starts if ended else 0.5 * (starts + stops)
        back, ahead, ending = run(at, at - starts, stops - at)
        if stage.anywhere and ending.any():
            return 0.0, 1.0
        before, last = len(parts), PIECES
        joined = np.nan
        if ending.any():
            # Nothing counts behind the first end.
            last = int(np.argmax(ending))
            parts, end, ended = [], float(at[last]), 1.0
            if starts[last] < end:
                parts.append((float(starts[last]), end))
                joined = starts[last]
        for k in reversed(range(last)):
            middle, (low, high) = float(at[k]), pieces[k]
            if not ahead[k] >= high - middle:  # NaN covers nothing
                begin = middle + (float(ahead[k]) if ahead[k] > 0.0 else 0.0)
                # Joined to what is left at the beginning of the next piece.
                stop = parts.pop()[1] if joined == high else high
                parts.append((begin, stop))
            joined = np.nan
            if not back[k] >= middle - low:
                stop = middle - (float(back[k]) if back[k] > 0.0 else 0.0)
                parts.append((low, stop))
                joined = low
        if len(parts) == before:
            longest *= 2.0
    return end, ended


def _taken(
    parts: list[tuple[float, float]], longest: float
) -> list[tuple[float, float]]:
    """Take the first parts off a list, and return their pieces.

    Four parts, two or one, of 2, 4 or 8 pieces: as many as there are, if all but the
    last of them are short enough. The rest of that one waits.
    """
    each = PIECES
    while each > 2 and len(parts) >= 2 * PIECES // each:
        others = parts[-1 : -(2 * PIECES // each) : -1]
        if any(high - low > 0.5 * each * longest for low, high in others):
            break
        each //= 2
    taken = PIECES // each
    first = parts[: -taken - 1 : -1]
    del parts[-taken:]
    low, high = first[-1]
    if low + each * longest < high:
        first[-1] = low, low + each * longest
        parts.append((low + each * longest, high))
    pieces: list[tuple[float, float]] = []
    for low, high in first:
        width = (high - low) / each
        inner = [low + k * width for k in range(1, each)]
        pieces += pairwise([low, *inner, high])
    return pieces
