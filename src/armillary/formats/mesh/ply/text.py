"""The rows of a PLY file in text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from armillary.errors import quote
from armillary.formats.diagnostic import Place
from armillary.formats.mesh.lines import Drawing, Line, Words, whole_number
from armillary.formats.mesh.parts import refusal
from armillary.formats.mesh.ply.header import Table

__all__ = ["TextRows"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


class TextRows:
    """The tables of a file in text, read one after the other.

    lines: Behind the header, one for each row.
    """

    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines = lines

    def numbers(self, table: Table, columns: tuple[int, ...]) -> Array:
        """Return three columns of a table, shape (rows, 3).

        Raises:
            FormatError: A row is missing, or its numbers are none.
        """
        drawing = Drawing()
        for place, entries in self._each(table):
            drawing.add_vertex([entries[k][0] for k in columns], place)
        return drawing.vertices

    def polygons(self, table: Table, column: int) -> Indices:
        """Return triangles that make the polygons in one list, shape (m, 3).

        Raises:
            FormatError: A row is missing, or is no polygon.
        """
        drawing = Drawing()
        for place, entries in self._each(table):
            corners = [whole_number(word, place) for word in entries[column]]
            drawing.add_polygon(corners, place)
        return drawing.faces

    def skip(self, table: Table) -> None:
        """Pass over a table.

        Raises:
            FormatError: A row is missing.
        """
        for _ in self._each(table):
            pass

    def _each(self, table: Table) -> Iterator[tuple[Place, list[Words]]]:
        """Yield the words of each column of each row, and where it stands."""
        for row in range(table.rows):
            line = next(self._lines, None)
            if line is None:
                name = quote(table.name.decode("utf-8", errors="replace"))
                raise refusal(
                    Place(table.place.path),
                    "wrong-size",
                    f"{name} should have {table.rows} rows, but the file ends after "
                    f"{row}",
                )
            place, words = line
            yield place, _entries(table, words, place)


def _entries(table: Table, words: Words, place: Place) -> list[Words]:
    """Return the words of a row by columns."""
    found: list[Words] = []
    at = 0
    for column in table.columns:
        count = 1
        if column.length and at < len(words):
            count = whole_number(words[at], place)
            at += 1
        if not 0 <= count <= len(words) - at:
            raise refusal(place, "wrong-count", "the row is too short")
        found.append(words[at : at + count])
        at += count
    if at < len(words):
        raise refusal(
            place, "wrong-count", f"the row has {len(words) - at} words too many"
        )
    return found
