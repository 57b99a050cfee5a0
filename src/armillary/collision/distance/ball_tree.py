"""Trees of balls around the elements of clouds.

The centres of elements are sorted along a space-filling curve. A record has `FANOUT`
balls; those of leaves are the centres themselves, with radius 0, each other ball is
around the balls of a record below. All records of a level but the last are full, so
that the records below one follow each other.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["BALLS", "BallTree", "ball_tree"]

Array = npt.NDArray[np.float64]

BALLS: Final = 16
"""Room of a record: as many numbers of 32 bits as fit into the widest registers."""

FANOUT: Final = BALLS - 1
"""Balls of a record; in place of the last one it says where records below begin."""

LEAF: Final = -1.0
"""In place of the first record below a record of elements."""

MISSING: Final = -np.inf
"""The radius in place of a missing ball: nothing is near it."""

BITS: Final = 14
"""Cells of the space-filling curve along each axis, as a power of two."""

BLOCK: Final = 1 << 14
"""Points whose places are computed at once, so that they stay in the cache."""

ROUNDING: Final = 2.0**-22
"""By which part of coordinates balls are grown, for centres in 32 bits."""


class BallTree(NamedTuple):
    """Balls around the elements of a cloud, in the cloud's frame.

    Attributes:
        balls: The centres and radii of each record [m], shape (r, 4, `BALLS`), as
            `kernel.stages.NearestPoint` takes them; the first is that around all.
        lower: The least coordinates of centres [m], shape (3,).
        upper: The greatest.
    """

    balls: Array
    lower: Array
    upper: Array


def ball_tree(centres: Array) -> BallTree:
    """Return the tree of the centres of elements [m], shape (n, 3)."""
    lower, upper = centres.min(axis=0), centres.max(axis=0)
    levels = [_records(centres[_order(centres, lower, upper)], 0.0)]
    while len(levels[-1]) > 1:
        levels.append(_records(*_around(levels[-1])))
    # The root comes first, so that its number is 0.
    levels.reverse()
    counts = [len(level) for level in levels]
    for level, start in zip(levels, np.cumsum(counts), strict=True):
        level[:, 0, -1] = start + FANOUT * np.arange(len(level))
    levels[-1][:, 0, -1] = LEAF
    return BallTree(np.concatenate(levels), lower, upper)


def _records(centres: Array, radii: Array | float) -> Array:
    """Return records of balls, shape (r, 4, `BALLS`)."""
    count = -(-len(centres) // FANOUT)
    balls = np.zeros((count * FANOUT, 4))
    balls[: len(centres), :3] = centres
    balls[: len(centres), 3] = radii
    balls[len(centres) :, :3] = centres[-1]
    balls[len(centres) :, 3] = MISSING
    records = np.zeros((count, 4, BALLS))
    records[:, :, :FANOUT] = balls.reshape(count, FANOUT, 4).transpose(0, 2, 1)
    records[:, 3, FANOUT] = MISSING
    return records


def _around(level: Array) -> tuple[Array, Array]:
    """Return the centres and radii of balls around the records of a level."""
    # The middle of the box of centres, in 32 bits so that both types of kernels have
    # the same; the radius reaches around all balls, also where centres are rounded.
    centres, radii = level[:, :3, :FANOUT], level[:, 3, :FANOUT]
    low, high = centres.min(axis=2), centres.max(axis=2)
    middle = (0.5 * (low + high)).astype(np.float32).astype(np.float64)
    away = centres - middle[:, :, np.newaxis]
    reach = np.sqrt(np.einsum("nik,nik->nk", away, away)) + radii
    size = np.maximum(np.abs(low), np.abs(high)).max(axis=1)
    return middle, reach.max(axis=1) * (1.0 + ROUNDING) + ROUNDING * size


def _order(points: Array, lower: Array, upper: Array) -> npt.NDArray[np.int64]:
    """Return the order of points along Hilbert's curve."""
    # Positions stand below the places along the curve: numbers are sorted faster than
    # positions by numbers.
    size = float((upper - lower).max())
    low = (len(points) - 1).bit_length()
    bits = 2 * (min(BITS, (64 - low) // 3) // 2)
    scale = (2**bits - 1) / size if size > 0.0 else 0.0
    key = np.empty(len(points), np.uint64)
    for start in range(0, len(points), BLOCK):
        some = (points[start : start + BLOCK] - lower) * scale
        key[start : start + BLOCK] = _places(some.astype(np.int32), bits)
    key <<= np.uint64(low)
    key |= np.arange(len(points), dtype=np.uint64)
    key.sort()
    return (key & np.uint64(2**low - 1)).astype(np.int64)


def _places(cells: npt.NDArray[np.int32], bits: int) -> npt.NDArray[np.uint64]:
    """Return the places of cells along Hilbert's curve: (n, 3) -> (n,).

    bits: How many bits coordinates have, an even number.
    """
    spread = _spread(np.arange(2**bits, dtype=np.uint64))
    cell = spread[cells[:, 0]]
    for axis in (1, 2):
        cell |= spread[cells[:, axis]] << np.uint64(axis)
    # Two bits of each axis at a time, the highest first.
    places, states = _hilbert_steps()
    key = np.zeros(len(cells), np.uint64)
    state = np.zeros(len(cells), np.uint16)
    for shift in range(3 * bits - 6, -1, -6):
        state |= (cell >> np.uint64(shift)).astype(np.uint16) & np.uint16(63)
        key = (key << np.uint64(6)) | places[state]
        state = states[state]
    return key


@lru_cache(1)
def _hilbert_steps() -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint16]]:
    """Return the tables of two steps along Hilbert's curve.

    Their positions are states, times 64, and the bits of a point, x lowest, those of
    the coarser cell above the others. Entries are places along the curve, and states
    times 64 (C. Hamilton, "Compact Hilbert indices", 2006, algorithm 2).
    """

    def turned(bits: int, count: int) -> int:
        count %= 3
        return ((bits >> count) | (bits << (3 - count))) & 7

    def step(state: int, bits: int) -> tuple[int, int]:
        entry, axis = divmod(state, 3)
        gray = turned(bits ^ entry, axis + 1)
        place = gray ^ (gray >> 1) ^ (gray >> 2)
        before = 2 * ((place - 1) // 2) if place else 0
        begin = before ^ (before >> 1)
        odd = place if place % 2 else max(place - 1, 0)
        trailing = ((odd + 1) & ~odd).bit_length() - 1  # ones at its end
        entry ^= turned(begin, -(axis + 1))
        return place, 3 * entry + (axis + (trailing if place else 0) + 1) % 3

    places, states = np.zeros(64 * 24, np.uint64), np.zeros(64 * 24, np.uint16)
    for state in range(24):
        for bits in range(64):
            coarse, middle = step(state, bits >> 3)
            fine, last = step(middle, bits & 7)
            places[64 * state + bits] = 8 * coarse + fine
            states[64 * state + bits] = 64 * last
    return places, states


def _spread(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return numbers of 21 bits with two zeros behind each bit."""
    for shift, mask in (
        (32, 0x1F00000000FFFF),
        (16, 0x1F0000FF0000FF),
        (8, 0x100F00F00F00F00F),
        (4, 0x10C30C30C30C30C3),
        (2, 0x1249249249249249),
    ):
        x = (x | (x << np.uint64(shift))) & np.uint64(mask)
    return x
