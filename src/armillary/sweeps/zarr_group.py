"""A Zarr group of results: each chunk is a file that is there as a whole or not at all.

It is written as Zarr format 3 without compression, so that chunks need no library and a
new worker starts quickly; https://zarr-specs.readthedocs.io, core protocol 3.0.

A file is a shard of one chunk, by the codec sharding_indexed 1.0: the rows, their
CRC-32C, which Zarr checks, and at the end the index, which says that the chunk begins
at byte 0. Zarr does not read what is between them, so a second checksum is there, that
of the rows and of the place of the chunk in the group. A chunk whose bytes have
changed, or that is a copy of another chunk, is computed again.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from armillary.errors import SweepError, quote
from armillary.kernel.threads import default_threads
from armillary.replaced_file import replacing
from armillary.sweeps import crc32c
from armillary.sweeps.fields import ResultAxis, ResultField, Results, check_fits
from armillary.sweeps.result import filled

__all__ = [
    "ATTRIBUTES",
    "ZarrGroup",
    "attributes_of",
    "check_checksums",
    "check_same",
    "checked_attributes",
    "foreign",
]

ATTRIBUTES: Final = "armillary_sweep"
METADATA: Final = "zarr.json"
ROWS: Final = "row"  # the first dimension
DRAFT: Final = ".part-"
CHUNK: Final = "c."  # how the names of files of chunks begin
CHECKSUM: Final = {"checksum": "crc32c of rows and place"}  # among the attributes
TAIL: Final = 3 * crc32c.SIZE + 16  # bytes behind the rows of a chunk
# Numbers as bytes, with a checksum behind them: of rows, and of the index of a shard.
CODECS: Final = [
    {"name": "bytes", "configuration": {"endian": "little"}},
    {"name": "crc32c"},
]
BLOCK: Final = 1 << 20  # bytes that are added at once
# Of what there are digests, and which attributes describe it.
DIGESTS: Final = {
    "question": ("another question or cell", ("question", "reductions", "cells")),
    "samples": ("other samples", ("samples",)),
}


@dataclass(frozen=True)
class ZarrGroup:
    """The folder of a group, and what each array in it is.

    Attributes:
        path: The folder.
        count: Rows in all.
        chunk: Rows of a chunk.
        fields: Each array by its name.
    """

    path: Path
    count: int
    chunk: int
    fields: Mapping[str, ResultField]

    @property
    def chunks(self) -> int:
        """Return the number of chunks."""
        return -(-self.count // self.chunk)

    def create(self, attributes: Mapping[str, Any]) -> None:
        """Write the metadata, and remove drafts of an earlier call.

        Raises:
            OSError: The system refuses.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        node = {"zarr_format": 3, "node_type": "group"}
        about = {ATTRIBUTES: {**attributes, **CHECKSUM}}
        _write(self.path, node | {"attributes": about})
        for name, field in self.fields.items():
            (self.path / name).mkdir(exist_ok=True)
            _write(self.path / name, self._array(name, field))
        self.remove_drafts()

    def remove_drafts(self) -> None:
        """Remove files that were left half-written, as by a worker that was killed."""
        for name in self.fields:
            for left in (self.path / name).glob(f"{DRAFT}*"):
                left.unlink(missing_ok=True)

    def _array(self, name: str, field: ResultField) -> dict[str, Any]:
        """Return the metadata of an array."""
        kinds = {"f": "float", "i": "int", "u": "uint"}
        kind = field.dtype.kind
        bits = "" if kind == "b" else 8 * field.dtype.itemsize
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [self.count, *field.shape],
            "data_type": f"{kinds.get(kind, 'bool')}{bits}",
            "chunk_grid": {
                "name": "regular",
                "configuration": {"chunk_shape": [self.chunk, *field.shape]},
            },
            "chunk_key_encoding": {
                "name": "default",
                "configuration": {"separator": "."},
            },
            "fill_value": {"f": "NaN", "b": False}.get(kind, 0),
            "codecs": [
                {
                    "name": "sharding_indexed",
                    "configuration": {
                        "chunk_shape": [self.chunk, *field.shape],
                        "codecs": CODECS,
                        "index_codecs": CODECS,
                        "index_location": "end",
                    },
                }
            ],
            "attributes": {
                "units": field.units,
                **(field.attributes or {}),
                **{axis.name: list(axis.names) for axis in field.axes if axis.names},
            },
            "dimension_names": [ROWS, *self._dimensions(name)],
        }

    def _dimensions(self, name: str) -> list[str]:
        """Return the names of the dimensions of an array, without that of rows.

        Arrays have a name in common only where the dimensions are equal, as xarray
        demands.
        """
        field = self.fields[name]
        if not field.axes:
            return [f"{name}_{k + 1}" for k in range(len(field.shape))]
        return [
            axis.name if self._is_shared(axis, size) else f"{name}_{axis.name}"
            for axis, size in zip(field.axes, field.shape, strict=True)
        ]

    def _is_shared(self, axis: ResultAxis, size: int) -> bool:
        """Return whether all arrays with this axis have it alike, and none its name."""
        return axis.name not in self.fields and all(
            (each, count) == (axis, size)
            for field in self.fields.values()
            for each, count in zip(field.axes, field.shape, strict=False)
            if each.name == axis.name
        )

    def whole(self) -> set[int]:
        """Return the numbers of the chunks that are there, with all their arrays.

        All files are read: a chunk whose bytes have changed is not there.
        """
        whole = set(range(self.chunks))
        for name in self.fields:
            with os.scandir(self.path / name) as entries:
                names = {each.name for each in entries}
            whole = {k for k in whole if self._file(name, k) in names}
        # Checksums of all files: reading and CRC release the interpreter's lock.
        with ThreadPoolExecutor(default_threads()) as pool:
            for name in self.fields:
                numbers = sorted(whole)
                sound = pool.map(partial(self._is_sound, name), numbers)
                whole = {k for k, good in zip(numbers, sound, strict=True) if good}
        return whole

    def _is_sound(self, name: str, number: int) -> bool:
        """Return whether the file of a chunk has its size and its checksums."""
        try:
            self._chunk(name, number)
        except ValueError:
            return False
        return True

    def tail(self, name: str, number: int, checksum: int) -> bytes:
        """Return what is behind the rows of a chunk, whose checksum is given."""
        place = crc32c.crc32c(f"{name} {number}".encode(), checksum)
        size = self.chunk * self.fields[name].row_bytes + crc32c.SIZE
        index = struct.pack("<QQ", 0, size)
        checks = checksum, place, crc32c.crc32c(index)
        of_rows, of_place, of_index = map(crc32c.as_bytes, checks)
        return of_rows + of_place + index + of_index

    def file(self, name: str, number: int) -> Path:
        """Return the file of a chunk of an array."""
        return self.path / name / self._file(name, number)

    def _file(self, name: str, number: int) -> str:
        return f"{CHUNK}{number}{'.0' * len(self.fields[name].shape)}"

    @contextmanager
    def writing(self, number: int) -> Generator[ChunkWriter]:
        """Give what writes a chunk; its files get their names when the block ends.

        After an error in the block, or where not all rows were written, nothing has
        changed.
        """
        with ExitStack() as stack:
            files = {
                name: stack.enter_context(
                    replacing(self.file(name, number), draft=DRAFT)
                )
                for name in self.fields
            }
            writer = ChunkWriter(self, files, dict.fromkeys(files, 0))
            yield writer
            writer.end(number)

    def read(self, name: str, *, is_whole: bool) -> npt.NDArray[Any]:
        """Return an array as it is on disk.

        Args:
            name: The name of the array.
            is_whole: Whether all chunks are there; else others are NaN, or 0.

        Raises:
            SweepError: It does not fit into memory, or a chunk has gone or changed.
        """
        field = self.fields[name]
        check_fits(
            self.count,
            field.row_bytes,
            "rows in memory",
            f"read parts of {quote(str(self.path / name))} with zarr.open_array",
        )
        array = np.empty((self.count, *field.shape), field.dtype)
        for number in range(self.chunks):
            start = number * self.chunk
            part = array[start : start + self.chunk]
            try:
                part[...] = self._chunk(name, number)[: len(part)]
            except (FileNotFoundError, ValueError) as error:
                if is_whole:
                    raise SweepError(
                        f"{quote(str(self.file(name, number)))} has gone or was "
                        "changed; the same sweep computes it again."
                    ) from error
                filled({name: part}, 0, len(part))
        return array

    def _chunk(self, name: str, number: int) -> npt.NDArray[Any]:
        """Return a chunk of an array as it is on disk.

        Raises:
            FileNotFoundError: It is not there.
            ValueError: Its size or checksum is wrong.
        """
        field = self.fields[name]
        # Mapped into memory, since it may be larger; an empty file raises ValueError.
        data = np.memmap(self.file(name, number), np.uint8, mode="r")
        rows, tail = data[:-TAIL], data[-TAIL:]
        if tail.tobytes() != self.tail(name, number, crc32c.crc32c(rows)):
            raise ValueError("wrong checksum")
        little = field.dtype.newbyteorder("<")
        return rows.view(little).reshape(self.chunk, *field.shape)


@dataclass(frozen=True)
class ChunkWriter:
    """The open files of a chunk, and the checksums of what is in them so far."""

    group: ZarrGroup
    files: Mapping[str, Any]
    checksums: dict[str, int]

    def add(self, results: Results) -> None:
        """Write the next rows."""
        for name, field in self.group.fields.items():
            little = field.dtype.newbyteorder("<")
            rows = np.ascontiguousarray(results[name], little)
            data = rows.data.cast("B") if rows.size else b""
            self.files[name].write(data)
            self.checksums[name] = crc32c.crc32c(data, self.checksums[name])

    def end(self, number: int) -> None:
        """Write zeros for the rows that the last chunk lacks, then what ends a chunk.

        number: The number of the chunk.
        """
        group = self.group
        missing = max(0, (number + 1) * group.chunk - group.count)
        for name, field in group.fields.items():
            # Chunks of Zarr have one size.
            left = missing * field.row_bytes
            file, checksum = self.files[name], self.checksums[name]
            file.seek(left, os.SEEK_CUR)  # a hole, which reads as zeros
            for start in range(0, left, BLOCK):
                checksum = crc32c.crc32c(bytes(min(BLOCK, left - start)), checksum)
            file.write(group.tail(name, number, checksum))


def attributes_of(path: Path) -> dict[str, Any] | None:
    """Return what a group says of its sweep; None if there is nothing yet.

    Raises:
        SweepError: There is something else.
    """
    if not path.exists():
        return None
    if path.is_dir() and all(each.name.startswith(DRAFT) for each in path.iterdir()):
        return None
    try:
        node = json.loads((path / METADATA).read_bytes())
        return checked_attributes(node["attributes"][ATTRIBUTES])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise foreign(path) from error


def checked_attributes(attributes: Any) -> dict[str, Any]:
    """Return the attributes of a sweep.

    Raises:
        ValueError: They are others.
    """
    if not isinstance(attributes, dict):
        raise ValueError("not the attributes of a sweep")
    about = cast("dict[str, Any]", attributes)
    if not isinstance(chunk := about.get("chunk"), int) or chunk < 1:
        raise ValueError("not the chunk of a sweep")
    return about


def foreign(path: Path) -> SweepError:
    """Return the error for a path with something else."""
    return SweepError(
        f"{quote(str(path))} exists and has not been written by a sweep, or it is "
        "damaged. Choose another path, or remove it."
    )


def check_same(
    path: Path, stored: Mapping[str, Any], wanted: Mapping[str, Any]
) -> None:
    """Check that a group has the results of this question and these samples.

    Raises:
        SweepError: It says what differs.
    """
    for key, (what, described) in DIGESTS.items():
        digests = stored.get(f"{key}_digest"), wanted[f"{key}_digest"]
        if None in digests:
            raise SweepError(
                f"{quote(str(path))} cannot be continued: a function of this question, "
                "or of that whose results are there, is a lambda, is defined in a "
                "function or has no source text, so that it cannot be recognised. "
                "Define it at the top of a module, and choose another path, or remove "
                "what is there."
            )
        if digests[0] == digests[1]:
            continue
        differs = [each for each in described if stored.get(each) != wanted[each]]
        shown = "its description is the same, but not its code or data"
        if differs:
            shown = _difference(stored.get(differs[0]), wanted[differs[0]])
        raise SweepError(
            f"{quote(str(path))} has results of {what}: {shown}. Choose another path, "
            "or remove it."
        )
    if stored["chunk"] != wanted["chunk"]:
        raise SweepError(
            f"{quote(str(path))} has chunks of {stored['chunk']} rows, not "
            f"{wanted['chunk']}; leave out chunk= to continue."
        )


def check_checksums(path: Path, stored: Mapping[str, Any]) -> None:
    """Check that the chunks of a group have checksums.

    Raises:
        SweepError: An earlier version has written it.
    """
    if not stored.items() >= CHECKSUM.items():
        raise SweepError(
            f"{quote(str(path))} was written by an earlier version of armillary, "
            "without checksums of its chunks and their places: zarr reads it, but it "
            "cannot be continued. Choose another path, or remove it."
        )


def _difference(stored: Any, wanted: Any) -> str:
    """Return what differs; of two mappings only the entries that do."""
    old, new = stored, json.loads(json.dumps(wanted))  # lists in place of tuples
    if isinstance(old, dict) and isinstance(new, dict):
        theirs, ours = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        same = {k for k in theirs if k in ours and theirs[k] == ours[k]}
        old, new = (
            {k: each[k] for k in each if k not in same} for each in (theirs, ours)
        )
    return f"{_short(old)}, where this sweep has {_short(new)}"


def _short(thing: Any) -> str:
    text = json.dumps(thing)
    return text if len(text) < 300 else f"{text[:297]}..."


def _write(folder: Path, node: Mapping[str, Any]) -> None:
    with replacing(folder / METADATA, draft=DRAFT) as file:
        file.write(json.dumps(node, indent=1).encode())
