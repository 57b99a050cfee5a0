"""Results of a sweep: arrays by their names, in memory or on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

__all__ = ["SweepResult", "filled", "in_memory"]

Array = npt.NDArray[Any]


@final
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SweepResult(Mapping[str, Array]):
    """The results of a sweep by their names; those on disk are read when asked for.

    Attributes:
        path: The file or folder of the results, or None in memory.
        rows: Rows of samples in all.
        computed: Rows that this call computed; others were there before.
    """

    path: Path | None
    rows: int
    computed: int
    _readers: Mapping[str, Callable[[], Array]]

    def __getitem__(self, name: str) -> Array:
        return self._readers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)

    def __repr__(self) -> str:
        names = ", ".join(self._readers)
        where = "in memory" if self.path is None else f"in {self.path}"
        return f"<sweep of {self.rows:,} rows {where}: {names}>"


def in_memory(
    arrays: Mapping[str, Array], rows: int, computed: int, path: Path | None = None
) -> SweepResult:
    """Return results that are in memory, and perhaps in a file as well."""
    readers = {name: _returns(array) for name, array in arrays.items()}
    return SweepResult(path=path, rows=rows, computed=computed, _readers=readers)


def _returns(array: Array) -> Callable[[], Array]:
    return lambda: array


def filled(fill: Mapping[str, Array], start: int, stop: int) -> None:
    """Mark rows that could not be computed: NaN, or 0 in arrays of whole numbers."""
    for array in fill.values():
        array[start:stop] = np.nan if array.dtype.kind == "f" else 0
