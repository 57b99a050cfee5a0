"""Tables: records that all rows of a call share, as many as the call says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias, final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import KernelError, ShapeError, unknown
from armillary.kernel.machine_type import I32, PTR, real_of
from armillary.kernel.memory import Struct

__all__ = [
    "Field",
    "Sizes",
    "Table",
    "chosen_index",
    "code",
    "index",
    "pack_all",
    "reals",
    "span",
    "taken",
]

Array = npt.NDArray[Any]

Sizes: TypeAlias = Mapping[tuple[str, str], int]
"""How many entries there are in what fields of a kind point into, by kind and name."""


@final
class Field(msgspec.Struct, frozen=True):
    """A field of the records of a table.

    It is made by `reals`, `index`, `span`, `record` or `code`.

    Attributes:
        name: Its name; programs read it as an input of this name.
        kind: What it holds.
        shape: The shape of its numbers.
        of: The column, or the table, that it points into.
        by: Another field, an entry of a column with one number for each: what that
            holds is added to the position, rounded down; see `chosen_index`.
    """

    name: str
    kind: Literal["real", "index", "span", "record", "code"]
    shape: tuple[int, ...] = ()
    of: str = ""
    by: str = ""


def reals(name: str, shape: tuple[int, ...] = ()) -> Field:
    """Return a field of numbers."""
    return Field(name, "real", shape)


def index(name: str, of: str) -> Field:
    """Return a field that is a position along the first axis of a column.

    Programs read what the column holds there, and may write it.
    """
    return Field(name, "index", (), of)


def chosen_index(name: str, of: str, by: str) -> Field:
    """Return a field that is a position in a column, which each row chooses.

    It is the number of entries by which it is ahead of a number that the row has: an
    entry of another column. Positions before or behind the column are those of its
    first or last entry, and NaN is the first. Only kernels that compute one row at a
    time have such fields.

    Args:
        name: Its name.
        of: The column that it points into.
        by: An index of the same table, to entries that are numbers.
    """
    return Field(name, "index", (), of, by)


def span(name: str, of: str) -> Field:
    """Return a field that is a range of another table: its first record, and a count.

    An `Each` over that table with this field as `within` runs for these records.
    """
    return Field(name, "span", (2,), of)


def record(name: str, of: str) -> Field:
    """Return a field that is the position of a record of another table.

    A `Call` gives that record to what it calls.
    """
    return Field(name, "record", (), of)


def code(name: str) -> Field:
    """Return a field that is the code of a `Call`, with its tables: two addresses."""
    return Field(name, "code", (2,))


@final
class Table(msgspec.Struct, frozen=True, dict=True):
    """What the records of a table are.

    Attributes:
        name: Its name.
        fields: The fields of a record.
        is_single: Whether it always has one record, no more and no fewer.
    """

    name: str
    fields: tuple[Field, ...]
    is_single: bool = False

    @cached_property
    def by_name(self) -> Mapping[str, Field]:
        """Return the fields by their names."""
        return {field.name: field for field in self.fields}

    def layout(self, bits: int) -> Struct:
        """Return how a record lies in memory; `bits` are those of its numbers."""
        kinds = {"real": real_of(bits), "code": PTR}
        return Struct.of(
            **{
                field.name: (kinds.get(field.kind, I32), math.prod(field.shape))
                for field in self.fields
            }
        )

    def pack(
        self,
        given: Mapping[str, Any],
        sizes: Sizes,
        dtype: np.dtype[Any],
    ) -> Array:
        """Return records as machine code reads them: a structured array, read-only.

        Args:
            given: An array for each field, shape (count, *field shape).
            sizes: The number of entries of what fields point into.
            dtype: The type of numbers.

        Raises:
            KernelError: A field is missing, or points beyond what is there.
            UnknownName: There is no such field.
            ShapeError: Shapes do not fit.
        """
        names = [field.name for field in self.fields]
        for name in given:
            if name not in names:
                raise unknown("field", name, names, owner=f"table '{self.name}'")
        arrays = [self._values(field, given, sizes) for field in self.fields]
        counts = {len(array) for array in arrays}
        if len(counts) > 1:
            listed = ", ".join(
                f"{len(a)} of {name}" for a, name in zip(arrays, names, strict=True)
            )
            raise ShapeError(
                f"The fields of table '{self.name}' differ in length: {listed}."
            )
        count = counts.pop() if counts else 0
        packed = np.zeros(count, _record(self, dtype))
        for name, array in zip(names, arrays, strict=True):
            packed[name] = array
        # Indices are checked once, here; machine code trusts them.
        packed.flags.writeable = False
        return packed

    def changed(
        self, packed: Array, rows: Array, given: Mapping[str, Any], sizes: Sizes
    ) -> Array:
        """Return a copy of records, `pack`ed, with other values of some fields.

        Args:
            packed: The records.
            rows: The positions of those that change, each once, sorted, shape (m,).
            given: An array for each field that does, shape (m, *field shape).
            sizes: As for `pack`.

        Raises:
            KernelError: A field points beyond what is there.
            UnknownName: There is no such field.
            ShapeError: Shapes do not fit.
        """
        changed = copied(packed)
        for name in given:
            field = self.by_name.get(name)
            if field is None:
                raise unknown("field", name, self.by_name, owner=f"table '{self.name}'")
            values = self._values(field, given, sizes)
            if len(values) != len(rows):
                raise ShapeError(
                    f"Field '{name}' of table '{self.name}' has {len(values)} values "
                    f"for {len(rows)} records."
                )
            # All records at once are written in order, which is faster.
            whole = len(rows) == len(changed)
            changed[name][slice(None) if whole else rows] = values
        changed.flags.writeable = False
        return changed

    def extended(
        self,
        packed: Array,
        given: Mapping[str, Any],
        sizes: Sizes,
        moved: Mapping[str, tuple[int, int]],
    ) -> Array:
        """Return records, `pack`ed, with more of them behind.

        Args:
            packed: The records.
            given: An array for each field of the others, shape (m, *field shape).
            sizes: As for `pack`, of all that fields of the others point into.
            moved: For columns whose entries have moved, the first that did and by how
                much: positions there are those of the same entries.

        Raises:
            KernelError: A field is missing, or points beyond what is there.
            UnknownName: There is no such field.
            ShapeError: Shapes do not fit.
        """
        names = [field.name for field in self.fields]
        if given.keys() - names:
            strange = min(given.keys() - names)
            raise unknown("field", strange, names, owner=f"table '{self.name}'")
        arrays = [self._values(field, given, sizes) for field in self.fields]
        counts = {*map(len, arrays)}
        if len(counts) > 1:
            raise ShapeError(f"The fields of table '{self.name}' differ in length.")
        before, count = len(packed), counts.pop() if counts else 0
        made = np.empty(before + count, packed.dtype)
        _bytes(made)[: before * packed.dtype.itemsize] = _bytes(packed)
        for field, array in zip(self.fields, arrays, strict=True):
            values = made[field.name]
            values[before:] = array
            if field.kind == "index" and field.of in moved:
                first, by = moved[field.of]
                known = values[:before]
                known += by * (known >= first)
        made.flags.writeable = False
        return made

    def with_numbers(self, packed: Array, given: Mapping[str, Any]) -> Array:
        """Return a copy of records, `pack`ed, with other numbers in the last ones.

        Args:
            packed: The records.
            given: An array for some of the fields of those, shape (m, *field shape);
                those of fields that are not numbers are not looked at.

        Raises:
            UnknownName: There is no such field.
            ShapeError: Shapes do not fit.
        """
        made, names = copied(packed), packed.dtype.names or ()
        for name, values in given.items():
            if name not in names:
                raise unknown("field", name, names, owner=f"table '{self.name}'")
            into = made[name]
            if into.dtype.kind == "f":
                first = len(made) - len(values)
                if first < 0 or values.shape[1:] != into.shape[1:]:
                    raise ShapeError(
                        f"Field '{name}' of table '{self.name}' needs numbers of "
                        f"shape {into.shape[1:]} for at most {len(made)} records, not "
                        f"{values.shape}."
                    )
                into[first:] = values
        made.flags.writeable = False
        return made

    def with_front(self, packed: Array, front: Array) -> Array:
        """Return a copy of records whose first ones have the numbers of others.

        Args:
            packed: The records.
            front: Those of others, no more of them.
        """
        made = copied(packed)
        for field in self.fields:
            if field.kind == "real":
                made[field.name][: len(front)] = front[field.name]
        made.flags.writeable = False
        return made

    def sizes(
        self, columns: Mapping[str, tuple[int, ...]], counts: Mapping[str, int]
    ) -> dict[tuple[str, str], int]:
        """Return the number of entries of what its fields point into.

        Args:
            columns: The shapes of the columns of the pipeline.
            counts: The number of records of each table.
        """
        return {
            (field.kind, field.of): columns[field.of][0]
            if field.kind == "index"
            else counts[field.of]
            for field in self.fields
            if field.kind in {"index", "span", "record"}
        }

    def check_count(self, count: int) -> None:
        """Raise a `ShapeError` if there must be one record and `count` is another."""
        if self.is_single and count != 1:
            raise ShapeError(f"Table '{self.name}' needs one record, not {count}.")

    def _values(self, field: Field, given: Mapping[str, Any], sizes: Sizes) -> Array:
        """Return the values of a field, checked."""
        if field.name in given:
            array: Array = np.asarray(given[field.name])
            if (
                array.size
                and array.shape[1:] == field.shape
                and _leads_within(field, array, sizes)
            ):
                return array
        title = f"Field '{field.name}' of table '{self.name}'"
        if field.name not in given:
            raise KernelError(f"{title} is missing.")
        array = np.asarray(given[field.name])
        # An empty list has no shape within records, and float64 as type.
        if array.size == 0:
            array = np.zeros((len(array), *field.shape), array.dtype)
        if array.shape[1:] != field.shape or array.ndim == 0:
            wanted = ", ".join(map(str, ("count", *field.shape)))
            raise ShapeError(f"{title} needs the shape ({wanted}), not {array.shape}.")
        if field.kind == "real":
            if array.dtype.kind not in "fiub":
                raise ShapeError(f"{title} needs numbers, not {array.dtype}.")
            return array
        if array.size and array.dtype.kind not in "iu":
            raise ShapeError(f"{title} needs whole numbers, not {array.dtype}.")
        if field.kind == "code":
            return array
        size = sizes[field.kind, field.of]
        if field.kind in {"index", "record"}:
            beyond = (array < 0) | (array >= size)
        else:
            first, count = array[:, 0], array[:, 1]
            # first + count might overflow; size - first does not.
            beyond = (first < 0) | (count < 0) | (first > size) | (count > size - first)
        if beyond.any():
            at = int(np.flatnonzero(beyond)[0])
            raise KernelError(
                f"{title} is {array[at].tolist()} in record {at}; '{field.of}' has "
                f"{size} entries."
            )
        return array


def _leads_within(field: Field, array: Array, sizes: Sizes) -> bool:
    """Return whether the values of a field are sound, where that is seen at once."""
    kind = array.dtype.kind
    if field.kind == "real":
        return kind == "f"
    if kind != "i":
        return False
    if field.kind == "code":
        return True
    if field.kind == "span":
        return False
    # Numbers below 0 are large as they lie in memory.
    unsigned = array.view(np.dtype(f"u{array.dtype.itemsize}"))
    return bool(unsigned.max() < sizes[field.kind, field.of])


def copied(packed: Array) -> Array:
    """Return a copy of records; NumPy's own copies them number by number."""
    # Views check each field, bytes are copied at once.
    return np.frombuffer(bytearray(packed.tobytes()), packed.dtype)


def taken(packed: Array, which: npt.NDArray[np.int64]) -> Array:
    """Return a copy of some records."""
    whole = packed.view(f"V{packed.dtype.itemsize}")
    return whole.take(which).view(packed.dtype)


def _bytes(packed: Array) -> npt.NDArray[np.uint8]:
    """Return records as they lie in memory."""
    return packed.view(np.uint8)


@lru_cache(maxsize=256)
def _record(table: Table, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a record as machine code lays it out, with numbers of a type."""
    # NumPy writes the fields where `Struct` says.
    layout = table.layout(dtype.itemsize * 8)
    by_kind = {"real": dtype, "code": np.dtype(np.int64)}
    kinds = [by_kind.get(f.kind, np.dtype(np.int32)) for f in table.fields]
    return np.dtype(
        {
            "names": [field.name for field in table.fields],
            "formats": [
                (kind, field.shape)
                for kind, field in zip(kinds, table.fields, strict=True)
            ],
            "offsets": [layout.offsets[field.name] for field in table.fields],
            "itemsize": layout.bytes,
        }
    )


def pack_all(
    tables: Sequence[Table],
    given: Mapping[str, Mapping[str, Any]],
    columns: Mapping[str, tuple[int, ...]],
    dtype: np.dtype[Any],
    known: Mapping[str, Array] | None = None,
) -> dict[str, Array]:
    """Return the records of all tables of a pipeline, in the order of these.

    Args:
        tables: What they are.
        given: For each table an array for each of its fields.
        columns: The shape of each column that fields may point into.
        dtype: The type of numbers.
        known: Records of tables that are `pack`ed already, for the same type and no
            more entries of what they point into.

    Raises:
        KernelError: A table or field is missing, or points beyond what is there.
        UnknownName: There is no such table or field.
        ShapeError: Shapes do not fit.
    """
    names, packed = [table.name for table in tables], known or {}
    for name in given:
        if name not in names:
            raise unknown("table", name, names)
    for name in names:
        if name not in given and name not in packed:
            raise KernelError(f"Table '{name}' is missing.")
    # How far indices and ranges may point.
    sizes = {("index", name): shape[0] for name, shape in columns.items() if shape}
    for name in names:
        # Ranges point into another table: what all its fields have records for.
        if name in packed:
            count = len(packed[name])
        else:
            lengths = (np.shape(values) for values in given[name].values())
            count = min((n[0] for n in lengths if n), default=0)
        sizes["span", name] = sizes["record", name] = count
    return {
        table.name: packed[table.name]
        if table.name in packed
        else table.pack(given[table.name], sizes, dtype)
        for table in tables
    }
