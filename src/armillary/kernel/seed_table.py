"""Known answers, in an order in which the nearest of a problem is quickly found.

They lie in the cells of a grid over three parameters. In a cell all are compared, by
features: parameters as small whole numbers, of which one instruction compares sixteen.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.kernel.search_layout import PACK

Array = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

# The first feature of a place that holds no entry.
VOID = 16383


class SeedTable(NamedTuple):
    """Known answers, sorted by the grid cell that their problem falls into.

    Attributes:
        features: The problems, in packs of eight: (packs, pairs, 8, 2), int16.
        starts: Their answers, shape (8 packs, n).
        offsets: The pack at which each cell starts, shape (cells + 1,).
        grid: Origin (3), inverse side, greatest cell number by axis (3), then the
            number of cells along the second and third axis.
        columns: Which parameters of a problem are features, shape (2 pairs,).
        factors: What they are multiplied with, shape (2 pairs,).
        axes: Which three parameters place a problem in the grid.
        void: The least squared distance of what is not an entry.
    """

    features: npt.NDArray[np.int16]
    starts: Array
    offsets: Whole
    grid: Array
    columns: Whole
    factors: Array
    axes: Whole
    void: int


UNREAD: Final = SeedTable(
    features=np.zeros((1, 1, PACK, 2), np.int16),
    starts=np.zeros((PACK, 1)),
    offsets=np.zeros(2, np.int64),
    grid=np.zeros(9),
    columns=np.zeros(2, np.int64),
    factors=np.zeros(2),
    axes=np.zeros(3, np.int64),
    void=0,
)
"""For searches with one start, a given one: those never read a table."""


def make_seed_table(
    problems: Array, answers: Array, axes: tuple[int, int, int], scales: Array, per: int
) -> SeedTable:
    """Sort known answers into a grid in which each shares its cell with about `per`.

    Args:
        problems: Their parameters, shape (k, m).
        answers: Shape (k, n).
        axes: Which parameters place a problem.
        scales: How much each parameter counts in comparisons, shape (m,).
        per: Answers in a cell, on average over all answers.
    """
    numbers, grid = _cells(problems[:, axes], per)
    counts = np.bincount(numbers, minlength=int(np.prod(grid[4:7] + 1.0)))
    offsets = np.concatenate([[0], np.cumsum(-(-counts // PACK))]).astype(np.int64)
    # Short whole numbers are sorted digit by digit, many times faster.
    order = np.argsort(numbers.astype(np.min_scalar_type(len(counts))), kind="stable")
    # Entry i of a cell goes to place i of its packs.
    within = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    places = np.repeat(offsets[:-1] * PACK, counts) + within
    columns, factors, values = _features(problems, scales)
    features = np.zeros((int(offsets[-1]) * PACK, len(columns)), np.int16)
    features[:, 0] = VOID
    features[places] = values[order]
    starts = np.full((len(features), answers.shape[1]), np.nan)
    starts[places] = answers[order]
    packed = features.reshape(-1, PACK, len(columns) // 2, 2).swapaxes(1, 2)
    return SeedTable(
        features=np.ascontiguousarray(packed),
        starts=starts,
        offsets=offsets,
        grid=grid,
        columns=columns,
        factors=factors,
        axes=np.array(axes, np.int64),
        void=(VOID - levels_of(scales)) ** 2,
    )


def pairs_of(scales: Array) -> int:
    """Return how many pairs of features a table with these scales has."""
    return max(1, -(-int(np.count_nonzero(scales)) // 2))


def levels_of(scales: Array) -> int:
    """Return the greatest feature, so small that no entry is as far off as a void."""
    # Two entries differ by 2 L at most in each of 2 p features, so by 2 L sqrt(2 p) at
    # most; padding differs by VOID - L at least in its first feature, which must be
    # more.
    return int(VOID / (1.0 + 2.0 * math.sqrt(2 * pairs_of(scales))))


def _features(
    problems: Array, scales: Array
) -> tuple[Whole, Array, npt.NDArray[np.int16]]:
    """Return which parameters are features, their factors, and those of all entries."""
    chosen = np.flatnonzero(scales)
    size = 2 * pairs_of(scales)
    columns, factors = np.zeros(size, np.int64), np.zeros(size)
    columns[: len(chosen)] = chosen
    factors[: len(chosen)] = scales[chosen]
    # The greatest feature of all becomes `levels_of`: the whole range of whole numbers
    # is used.
    parameters = problems.take(columns, axis=1)
    scaled = parameters * factors
    largest = float(np.abs(scaled).max(initial=1e-9))
    factors = factors * (levels_of(scales) / largest)
    np.multiply(parameters, factors, out=scaled)
    return columns, factors, scaled.astype(np.int16)


def _cells(places: Array, per: int) -> tuple[Whole, Array]:
    """Return the cell of each place, and the grid that the cells make."""
    low, high = places.min(axis=0), places.max(axis=0)
    span = np.maximum(high - low, 1e-9 + 1e-3 * (high - low).max())
    # The side of cells with one entry each, were entries spread evenly.
    smallest = float((span.prod() / len(places)) ** (1 / 3))
    side = smallest * per ** (1 / 3)
    # The mean over entries of how many share a cell, which is sum(n^2) / sum(n) for
    # cells of n, is what a scan takes. Cells shrink until that is about `per`.
    for _ in range(2):  # places are dense in some parts and rare in others
        counts = np.bincount(_numbers(places - low, span, side)[0]).astype(np.float64)
        mates = float((counts * counts).sum() / counts.sum())
        side = max(smallest, side * (per / mates) ** (1 / 3))
    numbers, sizes = _numbers(places - low, span, side)
    grid = np.array([*low, 1.0 / side, *(sizes - 1), *sizes[1:]], np.float64)
    return numbers, grid


def _numbers(places: Array, span: Array, side: float) -> tuple[Whole, Whole]:
    """Return the number of each place's cell, and how many there are by axis."""
    sizes = np.maximum(1, np.ceil(span / side)).astype(np.int64)
    cells = np.clip((places * (1.0 / side)).astype(np.int64), 0, sizes - 1)
    return (cells[:, 0] * sizes[1] + cells[:, 1]) * sizes[2] + cells[:, 2], sizes
