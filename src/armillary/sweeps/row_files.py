"""Files of rows of numbers, CSV and NPY, read and written in chunks.

An NPY file is mapped into memory and a CSV file is read line by line, so both may be
larger than the memory.
"""

from __future__ import annotations

import io
import math
import os
import re
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, Final, TextIO

import numpy as np
import numpy.typing as npt

from armillary.errors import UNREADABLE_ARRAY, ShapeError, quote
from armillary.limits import CSV_LINE
from armillary.replaced_file import replacing
from armillary.sweeps.progress import ProgressBar

__all__ = ["ENDINGS", "Append", "RowFile", "as_number", "open_rows", "result_file"]

Array = npt.NDArray[Any]
NumberedLine = tuple[int, str]
Append = Callable[[npt.NDArray[np.float64]], None]

ENDINGS: Final = (".npy", ".csv")
ROWS_PER_CHUNK = 1 << 16
LONGEST_LINE: Final = CSV_LINE.most
NPY_MAGIC: Final = b"\x93NUMPY"
# No comma or quote, and nothing that reads as a number.
PLAIN_NAME: Final = re.compile(r"(?!(?i:nan|inf(inity)?)$)[A-Za-z_][\w/. -]*")


@dataclass(frozen=True, kw_only=True)
class RowFile:
    """The rows of numbers in a file, read as they are asked for.

    Attributes:
        names: The names at the head of the file, if it has them.
        batch: The shape of the batch; None if only the end of the file shows it.
        size: What the numbers of `numbered` count to: rows, or bytes of a CSV file.
        numbered: Arrays (k, n), one after another, each with what is read by then.
    """

    names: tuple[str, ...] | None = None
    batch: tuple[int, ...] | None = None
    size: int
    numbered: Iterator[tuple[Array, int]]

    @property
    def chunks(self) -> Iterator[Array]:
        """Return the chunks, (k, n), and show on a terminal how much is done."""
        with ProgressBar(self.size) as progress:
            for rows, done in self.numbered:
                yield rows
                progress.at(done)

    @property
    def result_batch(self) -> tuple[int, ...]:
        """Return the shape of the batch for `result_file`."""
        return (0,) if self.batch is None else self.batch


@contextmanager
def open_rows(
    path: str, *, matrices: bool = False, at_once: int | None = None
) -> Generator[RowFile, None, None]:
    """Give the rows of numbers in a file: NPY if it begins so, else CSV.

    Args:
        path: The path of the file.
        matrices: Whether an NPY array (..., 4, 4) holds rows of 16 numbers.
        at_once: The rows of a chunk.

    Raises:
        ShapeError: It holds something else.
        OSError: It cannot be read.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ShapeError(f"{path}: this is not a plain file.")
    count = at_once or ROWS_PER_CHUNK
    with open(path, "rb") as file:
        is_npy = file.read(len(NPY_MAGIC)) == NPY_MAGIC
    if is_npy:
        yield _npy_rows(path, count, matrices)
        return
    # Bytes that are not text will fail as numbers, and be shown.
    with open(path, encoding="utf-8-sig", errors="replace") as text:
        yield _csv_rows(path, text, count)


# NPY: mapped into memory, so that a file of any size takes little of it.


def _npy_rows(path: str, at_once: int, matrices: bool) -> RowFile:
    try:
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except UNREADABLE_ARRAY as error:
        raise ShapeError(f"{path}: this NPY file cannot be read: {error}") from error
    if array.ndim == 0 or array.dtype.kind not in "fiu":
        raise ShapeError(
            f"{path}: an array (..., n) of real numbers is needed; this one has the "
            f"shape {array.shape} and holds {array.dtype}."
        )
    core = 2 if matrices and array.shape[-2:] == (4, 4) else 1
    batch = array.shape[: array.ndim - core]
    count, width = math.prod(batch), math.prod(array.shape[len(batch) :])

    def slices() -> Iterator[tuple[Array, int]]:
        # Whatever the order in memory, only what is taken out of the file is copied.
        for start in range(0, count, at_once):
            stop = min(start + at_once, count)
            rows = array.flat[start * width : stop * width]
            yield rows.reshape(stop - start, width), stop

    return RowFile(batch=batch, size=count, numbered=slices())


# CSV: one row a line; names of the numbers first, if at all; # begins a comment.


def _csv_rows(path: str, file: TextIO, at_once: int) -> RowFile:
    lines = _lines(path, file)
    first = list(islice(lines, 1))
    names = _header(*first[0], path) if first else None

    def tables(pending: list[NumberedLine]) -> Iterator[tuple[Array, int]]:
        width = 0
        while numbered := [*pending, *islice(lines, at_once - len(pending))]:
            pending = []
            rows = _table(numbered, path)
            width = width or rows.shape[1]
            if rows.shape[1] != width:
                raise _ragged(path, numbered[0][0], rows.shape[1], width)
            yield rows, file.buffer.tell()

    size = os.path.getsize(path)
    return RowFile(names=names, size=size, numbered=tables([] if names else first))


def _lines(path: str, file: TextIO) -> Iterator[NumberedLine]:
    """Yield the lines that are neither empty nor comments, each with its number."""
    read = iter(partial(file.readline, LONGEST_LINE), "")
    for number, line in enumerate(read, start=1):
        if len(line) == LONGEST_LINE:
            raise ShapeError(
                f"{path}:{number}: the line is longer than {LONGEST_LINE} characters; "
                "this is not a CSV file."
            )
        if text := line.partition("#")[0].strip():
            yield number, text


def _header(line: int, text: str, path: str) -> tuple[str, ...] | None:
    """Return the names in a first line, None where it holds numbers."""
    cells = [cell.strip().strip('"') for cell in text.split(",")]
    are_numbers = [as_number(cell) is not None for cell in cells]
    if all(are_numbers):
        return None
    if any(are_numbers):
        raise ShapeError(
            f"{path}:{line}: the line holds both names and numbers: {quote(text)}. "
            "Begin with a line of names, or with numbers."
        )
    return tuple(cells)


def _table(numbered: list[NumberedLine], path: str) -> Array:
    """Return lines of numbers as an array; where one is bad, name it."""
    try:
        return np.loadtxt([text for _, text in numbered], delimiter=",", ndmin=2)
    except ValueError:
        # NumPy counts rows without comments; line by line, the error has its place.
        width = numbered[0][1].count(",") + 1
        rows: list[list[float]] = []
        for line, text in numbered:
            cells = text.split(",")
            if len(cells) != width:
                raise _ragged(path, line, len(cells), width) from None
            rows.append([_number(cell.strip(), f"{path}:{line}") for cell in cells])
        return np.array(rows)


def _ragged(path: str, line: int, count: int, width: int) -> ShapeError:
    return ShapeError(f"{path}:{line}: {count} numbers; the lines before have {width}.")


def _number(text: str, source: str) -> float:
    number = as_number(text)
    if number is None:
        raise ShapeError(
            f"{source}: {quote(text)} is not a number. Separate numbers by commas."
        )
    return number


def as_number(text: str) -> float | None:
    """Return the number in a text; None if there is no number."""
    try:
        return float(text)
    except ValueError:
        return None


# results


@contextmanager
def result_file(
    path: str,
    batch: tuple[int, ...],
    row: tuple[int, ...] = (),
    *,
    names: Sequence[str] = (),
) -> Generator[Append, None, None]:
    """Give a function that appends float64 numbers to a new file.

    A file that ends with `.csv` has a line for each result, with full precision, below
    a line of the names; another one is an NPY array. Both can be read back. The file
    appears when the block ends without an error.

    Args:
        path: The path of the file.
        batch: Shape of the batch of results; its first length may be 0 if unknown.
        row: Shape of a result.
        names: The names of the numbers of a result; a CSV file has none where one is
            not plain.

    Raises:
        OSError: The file cannot be written.
    """
    with replacing(os.path.realpath(path)) as file:
        if path.endswith(".csv"):
            if names and all(map(PLAIN_NAME.fullmatch, names)):
                file.write((",".join(names) + "\n").encode())
            yield partial(_append_lines, file, math.prod(row))
            return
        size, shape = 0, (*batch, *row)
        _write_header(file, shape)
        start = file.tell()

        def append(array: npt.NDArray[np.float64]) -> None:
            nonlocal size
            assert array.dtype == np.float64, array.dtype
            file.write(np.ascontiguousarray(array).data)
            size += array.size

        yield append
        # NumPy leaves room in the header, so that the first length may have grown.
        if size and shape:
            shape = (size // math.prod(shape[1:]), *shape[1:])
        file.seek(0)
        _write_header(file, shape)
        assert file.tell() == start, "the header has grown"


def _append_lines(file: BinaryIO, width: int, array: npt.NDArray[np.float64]) -> None:
    text = io.StringIO()
    np.savetxt(text, array.reshape(-1, width), fmt="%.17g", delimiter=",")
    file.write(text.getvalue().encode())


def _write_header(file: BinaryIO, shape: tuple[int, ...]) -> None:
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
