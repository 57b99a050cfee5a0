"""A Zarr group of results: each chunk is a file that is there as a whole or not at all.

It is written as Zarr format 3 without compression, so that chunks need no library and a
new worker starts quickly; https://zarr-specs.readthedocs.io, core protocol 3.0.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from armillary.errors import SweepError, quote
from armillary.replaced_file import replacing
from armillary.sweeps.fields import Field, Results
from armillary.sweeps.memory import check_fits
from armillary.sweeps.result import filled

__all__ = [
    "ATTRIBUTES",
    "Group",
    "attributes_of",
    "check_same",
    "checked_attributes",
    "foreign",
]

ATTRIBUTES: Final = "armillary_sweep"
METADATA: Final = "zarr.json"
DRAFT: Final = ".part-"
CHUNK: Final = "c."  # how the names of files of chunks begin
# Of what there are digests, and which attributes describe it.
DIGESTS: Final = {
    "question": ("another question or cell", ("question", "reductions", "cells")),
    "samples": ("other samples", ("samples",)),
}


@dataclass(frozen=True)
class Group:
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
    fields: Mapping[str, Field]

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
        _write(self.path, node | {"attributes": {ATTRIBUTES: attributes}})
        for name, field in self.fields.items():
            (self.path / name).mkdir(exist_ok=True)
            _write(self.path / name, self._array(name, field))
        self.remove_drafts()

    def remove_drafts(self) -> None:
        """Remove files that were left half-written, as by a worker that was killed."""
        for name in self.fields:
            for left in (self.path / name).glob(f"{DRAFT}*"):
                left.unlink(missing_ok=True)

    def _array(self, name: str, field: Field) -> dict[str, Any]:
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
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "attributes": {"units": field.units},
            "dimension_names": [
                "row",
                *(f"{name}_{k + 1}" for k in range(len(field.shape))),
            ],
        }

    def whole(self) -> set[int]:
        """Return the numbers of the chunks that are there, with all their arrays."""
        found = set(range(self.chunks))
        for name, field in self.fields.items():
            size = self.chunk * field.row_bytes
            with os.scandir(self.path / name) as entries:
                sizes = {each.name: each.stat().st_size for each in entries}
            found = {k for k in found if sizes.get(self._file(name, k)) == size}
        return found

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
            yield ChunkWriter(self, files)
            if number == self.chunks - 1:  # chunks of Zarr have one size
                missing = self.chunks * self.chunk - self.count
                for name, field in self.fields.items():
                    end = files[name].tell() + missing * field.row_bytes
                    files[name].truncate(end)

    def read(self, name: str, *, is_whole: bool) -> npt.NDArray[Any]:
        """Return an array as it is on disk.

        Args:
            name: Of the array.
            is_whole: Whether all chunks are there; else others are NaN, or 0.

        Raises:
            SweepError: It does not fit into memory, or a chunk has gone.
        """
        field = self.fields[name]
        check_fits(
            self.count,
            field.row_bytes,
            "rows in memory",
            f"read parts of {quote(str(self.path / name))} with zarr.open_array",
        )
        found = np.empty((self.count, *field.shape), field.dtype)
        for number in range(self.chunks):
            start = number * self.chunk
            part = found[start : start + self.chunk]
            file, little = self.file(name, number), field.dtype.newbyteorder("<")
            size = len(part) * math.prod(field.shape)
            try:
                part[...] = np.fromfile(file, little, count=size).reshape(part.shape)
            except (FileNotFoundError, ValueError) as error:
                if is_whole:
                    raise SweepError(
                        f"{quote(str(file))} has gone or was cut; the same sweep "
                        "computes it again."
                    ) from error
                filled({name: part}, 0, len(part))
        return found


@dataclass(frozen=True)
class ChunkWriter:
    """The open files of a chunk."""

    group: Group
    files: Mapping[str, Any]

    def add(self, results: Results) -> None:
        """Write the next rows."""
        for name, field in self.group.fields.items():
            little = field.dtype.newbyteorder("<")
            rows = np.ascontiguousarray(results[name], little)
            self.files[name].write(rows.data.cast("B") if rows.size else b"")


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


def checked_attributes(found: Any) -> dict[str, Any]:
    """Return the attributes of a sweep.

    Raises:
        ValueError: They are others.
    """
    if not isinstance(found, dict):
        raise ValueError("not the attributes of a sweep")
    about = cast("dict[str, Any]", found)
    if not isinstance(chunk := about.get("chunk"), int) or chunk < 1:
        raise ValueError("not the chunk of a sweep")
    return about


def foreign(path: Path) -> SweepError:
    """Return the error for a path with something else."""
    return SweepError(
        f"{quote(str(path))} exists and has not been written by a sweep, or it is "
        "damaged. Choose another path, or remove it."
    )


def check_same(path: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Check that a group has the results of this question and these samples.

    Raises:
        SweepError: It says what differs.
    """
    for key, (what, described) in DIGESTS.items():
        if found.get(f"{key}_digest") == wanted[f"{key}_digest"]:
            continue
        differs = [each for each in described if found.get(each) != wanted[each]]
        shown = "its description is the same, but not its code or data"
        if differs:
            old, new = (_short(each.get(differs[0])) for each in (found, wanted))
            shown = f"{old}, where this sweep has {new}"
        raise SweepError(
            f"{quote(str(path))} has results of {what}: {shown}. Choose another path, "
            "or remove it."
        )
    if found["chunk"] != wanted["chunk"]:
        raise SweepError(
            f"{quote(str(path))} has chunks of {found['chunk']} rows, not "
            f"{wanted['chunk']}; leave out chunk= to continue."
        )


def _short(thing: Any) -> str:
    text = json.dumps(thing)
    return text if len(text) < 300 else f"{text[:297]}..."


def _write(folder: Path, node: Mapping[str, Any]) -> None:
    with replacing(folder / METADATA, draft=DRAFT) as file:
        file.write(json.dumps(node, indent=1).encode())
