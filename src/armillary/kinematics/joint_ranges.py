"""Between which limits coordinates of a joint are, and how far it moves its link."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec
import numpy as np

from armillary.model.drive import Drive
from armillary.model.joint import Joint
from armillary.model.values_read import values_read
from armillary.spatial.pose import IDENTITY

__all__ = ["Range", "farthest", "ranges_of", "speeds"]

Range: TypeAlias = tuple[float, float]


def ranges_of(
    drives: Sequence[Drive], range_of: Callable[[int], Range]
) -> tuple[Range, ...]:
    """Return the range of each coordinate of a joint.

    Args:
        drives: What moves them.
        range_of: The range of each joint of a cell, by its index.
    """
    found: list[Range] = []
    for drive in drives:
        a, b = (drive.multiplier * q + drive.offset for q in range_of(drive.of))
        found.append((min(a, b), max(a, b)))
    return tuple(found)


def speeds(joint: Any, ranges: tuple[Range, ...]) -> tuple[Any, Any]:
    """Return `joint.speed_bounds` of a joint or mechanism within ranges."""
    return _speeds(joint, ranges, values_read(joint))


def farthest(joint: Joint, ranges: tuple[Range, ...]) -> float:
    """Return a bound of how far a joint's frames are apart within ranges [m].

    Its precursor is left out. The distance of a mechanism is bounded by that in the
    middle of the ranges plus, for each coordinate, half of its range times its speed.
    """
    return _farthest(joint, ranges, values_read(joint))


@lru_cache(maxsize=1024)
def _speeds(joint: Any, ranges: tuple[Range, ...], read: Hashable) -> tuple[Any, Any]:
    if len(ranges) == 1:
        return joint.speed_bounds(*ranges[0])
    return joint.speed_bounds(*np.array(ranges).T)


@lru_cache(maxsize=1024)
def _farthest(joint: Joint, ranges: tuple[Range, ...], read: Hashable) -> float:
    if len(ranges) == 1:
        bare = msgspec.structs.replace(joint, precursor=IDENTITY)
        return bare.origin_bound(*ranges[0])
    lower, upper = np.array(ranges).T
    if not np.isfinite(upper - lower).all():
        return math.inf
    middle = joint.motion.pose(*(0.5 * (lower + upper)).tolist()).position
    linear, _ = speeds(joint, ranges)
    half = 0.5 * (upper - lower)
    way = np.where(half > 0.0, linear, 0.0) @ half
    return float(np.linalg.norm(middle) + way)
