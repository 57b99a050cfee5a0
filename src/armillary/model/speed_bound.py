"""True upper bounds of how fast a joint moves and turns its outer frame."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Final

from armillary.model.highest import Box, Hill, highest
from armillary.model.motion import Motion
from armillary.model.square_distance import sum_of_squares
from armillary.spatial.vector import Number
from armillary.trace import jvp, trace

GAPS: Final = [1e-3] * 40 + [1e-2] * 60 + [5e-2] * 900  # of squares
GAPS_OF_SEVERAL: Final = [2e-2] * 64
Speeds = tuple[float, float]


@lru_cache(maxsize=4096)
def largest_speeds(motion: Motion, box: Box) -> tuple[Speeds, ...]:
    """Return upper bounds of |v| and |w| per unit rate of each coordinate, over a box.

    Those of one coordinate are mostly within 5e-4 relative of the largest speeds. A
    bound is infinite where the pose jumps, or may jump and that cannot be decided.

    Args:
        motion: The motion.
        box: The range of each coordinate.

    Returns:
        Linear [m per unit], then angular [rad per unit], for each coordinate.
    """
    gaps = GAPS_OF_SEVERAL if motion.shape else GAPS
    found: list[Speeds] = []
    for hills in _hills(motion):
        linear, angular = (max(0.0, highest(hill, box, gaps)) for hill in hills)
        found.append((math.sqrt(linear), math.sqrt(angular)))
    return tuple(found)


@lru_cache(maxsize=1024)
def _hills(motion: Motion) -> list[tuple[Hill, Hill]]:
    """Return the squares of both speeds for each coordinate."""
    count = math.prod(motion.shape)
    return [(_hill(motion, k, 0), _hill(motion, k, 1)) for k in range(count)]


def _hill(motion: Motion, k: int, part: int) -> Hill:
    def height(q: Any) -> Number:
        return _square_speeds(motion, q, k)[part]

    def moved(q: Any) -> Any:
        X = motion.pose(*q) if motion.shape else motion.pose(q)
        return X.rotation if part else X.position

    return Hill(height, motion.shape, smooth=trace(moved, q=motion.shape))


def _square_speeds(motion: Motion, q: Any, k: int) -> tuple[Number, Number]:
    """Return v . v and w . w at unit rate of the k-th coordinate.

    From a pose they are p' . p' and the sum of the squares of R', halved: turning does
    not change the former, and R' = R [w]x has the squares of [w]x.
    """
    if not motion.shape:
        given = motion.given_subspace(q)
        if given is not None:
            return sum_of_squares(given[:3]), sum_of_squares(given[3:])
    X = motion.pose(*q) if motion.shape else motion.pose(q)
    seed = q[k] if motion.shape else q
    rates = jvp(list(X.entries), [(seed, 1.0)])
    return sum_of_squares(rates[9:]), 0.5 * sum_of_squares(rates[:9])
