"""The header of a PLY file: its tables, their columns, and where they begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from armillary.errors import quote, unknown
from armillary.formats.diagnostic import Place
from armillary.formats.mesh.lines import Words, whole_number
from armillary.formats.mesh.parts import refusal

__all__ = ["Column", "Header", "Table", "read_header"]

LONGEST: Final = 1 << 16
MOST_COLUMNS: Final = 256
TYPES: Final = {
    **dict.fromkeys((b"char", b"int8"), "i1"),
    **dict.fromkeys((b"uchar", b"uint8"), "u1"),
    **dict.fromkeys((b"short", b"int16"), "i2"),
    **dict.fromkeys((b"ushort", b"uint16"), "u2"),
    **dict.fromkeys((b"int", b"int32"), "i4"),
    **dict.fromkeys((b"uint", b"uint32"), "u4"),
    **dict.fromkeys((b"float", b"float32"), "f4"),
    **dict.fromkeys((b"double", b"float64"), "f8"),
}
ORDERS: Final = {
    b"ascii": "",
    b"binary_little_endian": "<",
    b"binary_big_endian": ">",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: As in the header.
        type: Of its numbers, as NumPy writes it.
        length: Type of the length in front of each entry, empty where it is no list.
    """

    name: bytes
    type: str
    length: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table, which PLY calls an element.

    Attributes:
        name: As in the header.
        rows: How many it says to have.
        columns: In their order.
        place: Where it is declared.
    """

    name: bytes
    rows: int
    columns: tuple[Column, ...]
    place: Place

    def column(self, *names: bytes) -> int:
        """Return which column has one of these names.

        Raises:
            FormatError: None has.
        """
        for k, column in enumerate(self.columns):
            if column.name in names:
                return k
        raise refusal(
            self.place,
            "missing-property",
            f"element {_shown(self.name)} has no property {_shown(names[0])}",
        )


@dataclass(frozen=True, slots=True)
class Header:
    """What the header says.

    Attributes:
        order: Of bytes, as NumPy writes it; empty where the rows are text.
        tables: In their order.
        size: Bytes of the header.
        lines: Lines of the header.
    """

    order: str
    tables: tuple[Table, ...]
    size: int
    lines: int


def read_header(data: bytes, path: str) -> Header:
    """Return the header of a PLY file.

    Raises:
        FormatError: It is none, or never ends.
    """
    lines = data[:LONGEST].splitlines(keepends=True)
    if not lines or lines[0].strip() != b"ply":
        raise refusal(Place(path), "wrong-content", "a PLY file begins with 'ply'")
    order: str | None = None
    tables: list[Table] = []
    size = len(lines[0])
    for number, line in enumerate(lines[1:], start=2):
        size += len(line)
        place = Place(path, number)
        match line.split():
            case [] | [b"comment" | b"obj_info", *_]:
                continue
            case [b"format", name, b"1.0"] if name in ORDERS and order is None:
                order = ORDERS[name]
            case [b"element", name, count]:
                rows = whole_number(count, place)
                if rows < 0:
                    raise refusal(place, "wrong-count", f"there cannot be {rows} rows")
                tables.append(Table(name, rows, (), place))
            case [b"property", *words] if tables:
                tables[-1] = _with_column(tables[-1], words, place)
            case [b"end_header"] if order is not None:
                return Header(order, tuple(tables), size, number)
            case _:
                shown = _shown(line.strip())
                raise refusal(place, "bad-header", f"{shown} has no place in a header")
    raise refusal(Place(path), "bad-header", "the header does not end")


def _with_column(table: Table, words: Words, place: Place) -> Table:
    """Return a table with the column of a line `property` more."""
    column = _column(words, place)
    if len(table.columns) >= MOST_COLUMNS:
        raise refusal(
            place, "bad-header", f"an element has more than {MOST_COLUMNS} properties"
        )
    columns = (*table.columns, column)
    return Table(table.name, table.rows, columns, table.place)


def _column(words: Sequence[bytes], place: Place) -> Column:
    match words:
        case [b"list", length, kind, name]:
            of_length = _type(length, place)
            if of_length.startswith("f"):
                raise refusal(place, "bad-header", "the length of a list is no float")
            return Column(name, _type(kind, place), of_length)
        case [kind, name]:
            return Column(name, _type(kind, place))
        case _:
            shown = _shown(b" ".join(words))
            raise refusal(place, "bad-header", f"{shown} is no property")


def _type(name: bytes, place: Place) -> str:
    found = TYPES.get(name)
    if found is None:
        known = [each.decode() for each in TYPES]
        error = unknown("type", name.decode("utf-8", errors="replace"), known)
        raise refusal(place, "bad-header", str(error)) from error
    return found


def _shown(text: bytes) -> str:
    return quote(text.decode("utf-8", errors="replace"))
