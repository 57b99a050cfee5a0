"""The rows of a binary PLY file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.errors import quote
from armillary.formats.diagnostic import Place
from armillary.formats.mesh.lines import Drawing
from armillary.formats.mesh.parts import refusal
from armillary.formats.mesh.ply.header import Table

__all__ = ["Rows"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

UNKNOWN: Final = 0


class Rows:
    """The tables of a binary file, read one after the other.

    data: Of the whole file.
    start: Where the first table begins.
    order: Of bytes, `<` or `>`.
    """

    def __init__(self, data: bytes, start: int, order: str) -> None:
        self._data = data
        self._at = start
        self._order = order

    @property
    def left(self) -> int:
        """Return how many bytes are left."""
        return len(self._data) - self._at

    def numbers(self, table: Table, columns: tuple[int, ...]) -> Array:
        """Return columns of a table without lists, shape (rows, columns).

        Raises:
            FormatError: The file is too short, or there are lists.
        """
        if any(column.length for column in table.columns):
            raise refusal(
                table.place, "unsupported-list", "a list beside coordinates is not read"
            )
        rows = self._take(table, self._row(table))
        return np.column_stack([rows[f"{k}"] for k in columns]).astype(np.float64)

    def polygons(self, table: Table, column: int) -> Indices:
        """Return triangles that make the polygons in one list, shape (m, 3).

        Raises:
            FormatError: The file is too short, or a polygon has too few corners.
        """
        uniform = self._uniform(table)
        if uniform is not None:
            corners = uniform[f"{column}"].astype(np.int64)
            if table.rows and corners.shape[1] < 3:
                raise _too_few(table, corners.shape[1])
            fan = [corners[:, [0, k, k + 1]] for k in range(1, corners.shape[1] - 1)]
            return (
                np.stack(fan, axis=1).reshape(-1, 3) if fan else np.zeros((0, 3), int)
            )
        drawing = Drawing()
        for lists in self._each(table):
            drawing.add_polygon(lists[column].tolist(), table.place)
        return drawing.faces

    def skip(self, table: Table) -> None:
        """Pass over a table.

        Raises:
            FormatError: The file is too short.
        """
        if self._uniform(table) is None:
            for _ in self._each(table):
                pass

    def _row(
        self, table: Table, lengths: dict[int, int] | None = None
    ) -> np.dtype[Any]:
        """Return the type of a row whose lists have given lengths."""
        fields: list[Any] = []
        for k, column in enumerate(table.columns):
            kind = self._order + column.type
            if column.length:
                fields.append((f"length {k}", self._order + column.length))
                fields.append((f"{k}", kind, ((lengths or {}).get(k, UNKNOWN),)))
            else:
                fields.append((f"{k}", kind))
        return np.dtype(fields)

    def _take(self, table: Table, row: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return all rows of a table, which are all of one type."""
        size = table.rows * row.itemsize
        if size > self.left:
            raise self._too_short(table, size)
        rows = np.frombuffer(self._data, row, table.rows, self._at)
        self._at += size
        return rows

    def _uniform(self, table: Table) -> npt.NDArray[Any] | None:
        """Return all rows if all their lists are as long as the first's, else None."""
        if table.rows * self._row(table).itemsize > self.left:
            raise self._too_short(table, table.rows * self._row(table).itemsize)
        start = self._at
        first = next(self._each(table), None) or {}
        self._at = start
        lengths = {k: len(entries) for k, entries in first.items()}
        row = self._row(table, lengths)
        if table.rows * row.itemsize > self.left:
            return None
        rows = self._take(table, row)
        for k, length in lengths.items():
            if (rows[f"length {k}"] != length).any():
                self._at = start
                return None
        return rows

    def _each(self, table: Table) -> Iterator[dict[int, npt.NDArray[Any]]]:
        """Yield the lists of each row by their columns."""
        for _ in range(table.rows):
            lists: dict[int, npt.NDArray[Any]] = {}
            for k, column in enumerate(table.columns):
                count = 1
                if column.length:
                    count = int(self._some(table, column.length, 1)[0])
                    if count < 0:
                        raise refusal(
                            table.place, "wrong-count", f"a list has {count} entries"
                        )
                entries = self._some(table, column.type, count)
                if column.length:
                    lists[k] = entries
            yield lists

    def _some(self, table: Table, kind: str, count: int) -> npt.NDArray[Any]:
        """Return the next numbers of one type."""
        dtype = np.dtype(self._order + kind)
        size = count * dtype.itemsize
        if size > self.left:
            raise self._too_short(table, size)
        found = np.frombuffer(self._data, dtype, count, self._at)
        self._at += size
        return found

    def _too_short(self, table: Table, size: int) -> Exception:
        name = quote(table.name.decode("utf-8", errors="replace"))
        return refusal(
            Place(table.place.path),
            "wrong-size",
            f"the {table.rows} rows of {name} take at least {size} more bytes, but "
            f"{self.left} are left",
        )


def _too_few(table: Table, corners: int) -> Exception:
    return refusal(
        table.place, "bad-polygon", f"a polygon has at least 3 corners, not {corners}"
    )
