"""Reductions of a sweep, kept in place of rows: counts, histograms, the best values.

Counts are whole numbers, and of equal values the one of the lowest row is the best.
Merging is therefore exact in any order: the result does not depend on chunks, workers
or interruptions. A new reduction is a subclass of `Reduction` with `start` and `add`,
and with `merge` if parts are not summed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import Any, final

import numpy as np
import numpy.typing as npt

from armillary.errors import SweepError, quote, unknown
from armillary.sweeps.fields import ResultField, Results, check_fits, whole_number

__all__ = ["Best", "Count", "Histogram", "Reduction", "States", "Voxels"]

Array = npt.NDArray[Any]
Whole = npt.NDArray[np.int64]
States = dict[str, Array]

SAMPLES = "samples"
MOST = 2.0**63  # voxels along an axis, which memory never holds


class Reduction(ABC):
    """What rows are reduced to: arrays whose merging is exact in any order."""

    @abstractmethod
    def start(self, fields: Mapping[str, ResultField], count: int) -> States:
        """Return the arrays before any row.

        Args:
            fields: The results of a row.
            count: Rows in all.

        Raises:
            SweepError: A result does not exist or has another shape.
        """

    @abstractmethod
    def add(self, states: States, rows: Array, results: Results, first: int) -> None:
        """Add rows of samples with their results; `first` is the first one's number."""

    def merge(self, states: States, others: States) -> None:
        """Add what other rows came to; by default sums."""
        for name, array in states.items():
            np.add(array, others[name], out=array)


@final
@dataclass(frozen=True, kw_only=True)
class Voxels(Reduction):
    """How many positions are in each voxel, for maps of reach and dexterity.

    The result is `count`, whole numbers of shape (nx, ny, nz); positions outside the
    box, made as large as whole voxels, do not count.

    Attributes:
        lower: The corner of the box [m], three numbers.
        upper: The opposite corner [m].
        size: The edge of a voxel [m].
        of: The result with positions (3,), poses (4, 4) or quaternions and origins
            (7,), or `samples` for the samples themselves.
        where: A result: only rows in which it is true count, as for `Count`.
    """

    lower: Sequence[float]
    upper: Sequence[float]
    size: float
    of: str = "pose"
    where: str | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of voxels along x, y and z."""
        extents = np.subtract(self.upper, self.lower).tolist()
        return tuple(ceil(min(each / self.size, MOST) - 1e-9) for each in extents)

    @property
    def _is_box(self) -> bool:
        return len(self.lower) == len(self.upper) == 3 and bool(
            np.less(self.lower, self.upper).all()
        )

    def start(self, fields: Mapping[str, ResultField], count: int) -> States:
        """Return zeros."""
        numbers = np.array([*self.lower, *self.upper, self.size], np.float64)
        if not (np.isfinite(numbers).all() and self.size > 0.0 and self._is_box):
            raise SweepError(
                f"Voxels of {self.size} m do not fill the box from {self.lower} to "
                f"{self.upper}; lower < upper and size > 0 are needed, and no number "
                "may be NaN or infinite."
            )
        check_fits(prod(self.shape), 8, "voxels", "use larger voxels or a smaller box")
        if self.of != SAMPLES:
            shape = _field(fields, self.of).shape
            if shape not in {(3,), (4, 4), (7,)}:
                raise SweepError(
                    f"Voxels need positions or poses; {quote(self.of)} has shape "
                    f"{shape} in each row."
                )
        if self.where is not None:
            _check_scalar(fields, self.where)
        return {"count": np.zeros(self.shape, np.int64)}

    def add(self, states: States, rows: Array, results: Results, first: int) -> None:
        """Count the positions of rows."""
        values = rows if self.of == SAMPLES else results[self.of]
        points = _positions(values)
        if self.where is not None:
            points = points[_is_true(results[self.where])]
        # NaN compares as outside, so positions that are not known do not count.
        voxels = np.floor((points - np.array(self.lower)) / self.size)
        inside = ((voxels >= 0) & (voxels < self.shape)).all(axis=1)
        axes: Any = tuple(voxels[inside].astype(np.int64).T)
        index = np.asarray(np.ravel_multi_index(axes, self.shape), np.int64)
        _tally(states["count"].reshape(-1), index)


@final
@dataclass(frozen=True, kw_only=True)
class Histogram(Reduction):
    """How many values are in each bin.

    The result is `count`, whole numbers of shape (..., bins) for values (...).

    Attributes:
        of: The result with the values.
        edges: The edges of bins, ascending; the last bin has its upper edge, too.
    """

    of: str
    edges: Sequence[float]

    def start(self, fields: Mapping[str, ResultField], count: int) -> States:
        """Return zeros."""
        if len(self.edges) < 2 or not (np.diff(self.edges) > 0.0).all():
            raise SweepError("The edges of a histogram are at least two and ascend.")
        shape = _field(fields, self.of).shape
        return {"count": np.zeros((*shape, len(self.edges) - 1), np.int64)}

    def add(self, states: States, rows: Array, results: Results, first: int) -> None:
        """Count the values of rows."""
        counts = states["count"].reshape(-1, len(self.edges) - 1)
        columns = results[self.of].reshape(len(rows), -1).T
        for k, values in enumerate(columns):
            numbers = values.astype(np.uint8) if values.dtype.kind == "b" else values
            counts[k] += np.histogram(numbers, np.asarray(self.edges))[0]


@final
@dataclass(frozen=True, kw_only=True)
class Count(Reduction):
    """In how many rows of each group a result is true.

    The result is `count`, whole numbers of shape (groups,).

    Attributes:
        of: The result, truths or numbers; numbers are true if not 0 and not NaN.
        by: How many rows in succession make a group, or the result with the number of
            the group; by default all rows are one.
        groups: The number of groups where a result has it.
    """

    of: str
    by: str | int | None = None
    groups: int | None = None

    def start(self, fields: Mapping[str, ResultField], count: int) -> States:
        """Return zeros."""
        _check_scalar(fields, self.of)
        number = _groups(self.by, self.groups, fields, count)
        return {"count": np.zeros(number, np.int64)}

    def add(self, states: States, rows: Array, results: Results, first: int) -> None:
        """Count the rows."""
        groups = _group_of(self.by, states["count"], results, first, len(rows))
        _tally(states["count"], groups[_is_true(results[self.of])])


@final
@dataclass(frozen=True, kw_only=True)
class Best(Reduction):
    """The greatest value of each group and its row, or the least.

    The results are `value` and `row`, the number of the row of samples, both of shape
    (groups,); of groups without a number they are NaN and -1. NaN is never the best.

    Attributes:
        of: The result with the values.
        least: Whether the least is the best.
        by: As for `Count`.
        groups: As for `Count`.
    """

    of: str
    least: bool = False
    by: str | int | None = None
    groups: int | None = None

    def start(self, fields: Mapping[str, ResultField], count: int) -> States:
        """Return NaN and -1."""
        _check_scalar(fields, self.of)
        number = _groups(self.by, self.groups, fields, count)
        return {"value": np.full(number, np.nan), "row": np.full(number, -1, np.int64)}

    def add(self, states: States, rows: Array, results: Results, first: int) -> None:
        """Compare the rows of each group, then the best with that so far."""
        values = results[self.of].astype(np.float64)
        groups = _group_of(self.by, states["row"], results, first, len(rows))
        known = np.flatnonzero(~np.isnan(values))
        keys = values if self.least else -values
        # Sorted by group, then value, then row: the first of each group is its best,
        # and of equal values that of the lowest row.
        order = known[np.lexsort((known, keys[known], groups[known]))]
        present, at = np.unique(groups[order], return_index=True)
        best = order[at]
        self._take(states, present, values[best], first + best)

    def merge(self, states: States, others: States) -> None:
        """Take what is better."""
        groups = np.flatnonzero(others["row"] >= 0)
        self._take(states, groups, others["value"][groups], others["row"][groups])

    def _take(self, states: States, groups: Whole, values: Array, rows: Whole) -> None:
        value, row = states["value"][groups], states["row"][groups]
        better = values < value if self.least else values > value
        better |= (row < 0) | ((values == value) & (rows < row))
        states["value"][groups[better]] = values[better]
        states["row"][groups[better]] = rows[better]


def _field(fields: Mapping[str, ResultField], name: str) -> ResultField:
    if name not in fields:
        raise unknown("result", name, fields)
    return fields[name]


def _check_scalar(fields: Mapping[str, ResultField], name: str) -> None:
    shape = _field(fields, name).shape
    if prod(shape) != 1 or shape:
        raise SweepError(
            f"A number in each row is needed; {quote(name)} has shape {shape}."
        )


def _is_true(values: Array) -> npt.NDArray[np.bool_]:
    """Return where numbers are neither 0 nor NaN, or truths are true."""
    return (values != 0) & (values == values)  # noqa: PLR0124


def _groups(
    by: str | int | None,
    groups: int | None,
    fields: Mapping[str, ResultField],
    count: int,
) -> int:
    """Return the number of groups."""
    if by is None:
        return 1
    if not isinstance(by, str):
        if (number := whole_number(by, "by")) < 1:
            raise SweepError(f"by={by} rows cannot make a group.")
        return _checked(-(-count // number))
    _check_scalar(fields, by)
    if fields[by].dtype.kind not in "iu":
        raise SweepError(f"by= names {quote(by)}, which must be whole numbers.")
    if groups is None or (given := whole_number(groups, "groups")) < 1:
        raise SweepError(f"by={quote(by)} needs the number of groups: groups=.")
    return _checked(given)


def _checked(groups: int) -> int:
    """Return the number of groups, if arrays of them fit into memory."""
    check_fits(groups, 16, "groups", "use fewer")
    return groups


def _group_of(
    by: str | int | None, states: Array, results: Results, first: int, count: int
) -> Whole:
    """Return the group of each row."""
    if by is None:
        return np.zeros(count, np.int64)
    if not isinstance(by, str):
        return np.arange(first, first + count) // by
    groups = results[by].astype(np.int64)
    if groups.size and (groups.min() < 0 or groups.max() >= len(states)):
        raise SweepError(
            f"{quote(by)} has groups from {groups.min()} to {groups.max()}; they must "
            f"be from 0 to {len(states) - 1}."
        )
    return groups


def _positions(values: Array) -> Array:
    """Return the positions of poses or points, shape (n, 3)."""
    if values.shape[1:] == (4, 4):
        return values[:, :3, 3]
    if values.ndim == 2 and values.shape[1] in {3, 7}:
        return values[:, -3:]
    raise SweepError(
        f"Voxels need samples that are poses or points, not of shape "
        f"{values.shape[1:]}."
    )


def _tally(counts: Whole, index: Whole) -> None:
    """Add 1 at each index, also where one comes several times."""
    # Dense counts where there are many rows for each place, else only those that occur.
    if len(counts) <= 4 * len(index):
        counts += np.bincount(index, minlength=len(counts))
        return
    once, numbers = np.unique(index, return_counts=True)
    counts[once] += numbers
