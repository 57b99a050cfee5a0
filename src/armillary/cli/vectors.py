"""Vectors of numbers from the command line and from CSV and NPY files, in chunks."""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from armillary.cli.progress import Progress
from armillary.errors import ShapeError, quote

Array = npt.NDArray[Any]
NumberedLine = tuple[int, str]

ROWS_PER_CHUNK = 1 << 16
LONGEST_LINE = 1 << 20
NPY_MAGIC = b"\x93NUMPY"
# What takes a list of numbers.
NUMBERED = (
    "--q", "--qd", "--qdd", "--gravity", "--pose", "--near", "--tolerance",
    "--from", "--look-at", "--grid", "--rpy", "--box",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Vectors:
    """The vectors in a file, read as they are asked for.

    Attributes:
        names: The names at the head of the file, if it has them.
        batch: The shape of the batch; None if only the end of the file shows it.
        size: What `chunks` counts to.
        chunks: Arrays, (k, n) one after another but for a single vector (n,), each with
            what is read once it is done.
    """

    names: tuple[str, ...] | None = None
    batch: tuple[int, ...] | None = None
    size: int
    chunks: Iterator[tuple[Array, int]]


def join_numbers(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the numbers after an option as one, `--q=1,-2e-3`.

    The parser would take numbers such as -2e-3 for options.
    """
    waiting = list(reversed(arguments))
    found: list[str] = []
    while waiting:
        argument = waiting.pop()
        numbers: list[str] = []
        while argument in NUMBERED and waiting and _are_numbers(waiting[-1]):
            numbers.append(waiting.pop().strip(","))
        found.append(f"{argument}={','.join(numbers)}" if numbers else argument)
    return found


def vector_of_text(text: str, option: str = "--q") -> Array:
    """Return the numbers of a text, separated by commas or blanks, shape (n,).

    Raises:
        ShapeError: A part of it is not a number.
    """
    parts = [part for part in re.split(r"[,\s]+", text) if part]
    return np.array([_number(part, option) for part in parts])


@contextmanager
def open_vectors(
    path: str, *, matrices: bool = False
) -> Generator[Vectors, None, None]:
    """Give the vectors in a file: NPY if it begins so, else CSV.

    Args:
        path: Of the file.
        matrices: Whether an NPY array (..., 4, 4) holds vectors of 16 numbers.

    Raises:
        ShapeError: It holds something else.
        OSError: It cannot be read.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ShapeError(f"{path}: this is not a plain file.")
    with open(path, "rb") as file:
        is_npy = file.read(len(NPY_MAGIC)) == NPY_MAGIC
    if is_npy:
        yield _of_npy(path, matrices)
        return
    # Bytes that are not text will fail as numbers, and be shown.
    with open(path, encoding="utf-8-sig", errors="replace") as text:
        yield _of_csv(_Lines(path, text))


def checked_vectors(
    vectors: Vectors, joints: Sequence[str], path: str
) -> Iterator[Array]:
    """Yield the chunks of a file of joint vectors, showing the progress.

    Raises:
        ShapeError: The vectors have not one number for each joint.
    """
    with Progress(vectors.size) as progress:
        for q, done in vectors.chunks:
            if q.shape[-1] != len(joints):
                raise ShapeError(
                    f"{path}: the vectors have {q.shape[-1]} numbers; "
                    f"{len(joints)} are expected, for the joints {', '.join(joints)}."
                )
            yield q
            progress.at(done)


# NPY: mapped into memory, so that a file of any size takes little of it.


def _of_npy(path: str, matrices: bool) -> Vectors:
    try:
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OverflowError, EOFError) as error:
        raise ShapeError(f"{path}: this NPY file cannot be read: {error}") from error
    if array.ndim == 0 or array.dtype.kind not in "fiu":
        raise ShapeError(
            f"{path}: an array (..., n) of real numbers is needed; this one has the "
            f"shape {array.shape} and holds {array.dtype}."
        )
    core = 2 if matrices and array.shape[-2:] == (4, 4) else 1
    batch = array.shape[: array.ndim - core]
    if not batch:
        return Vectors(batch=batch, size=1, chunks=iter([(array.ravel(), 1)]))
    count, width = math.prod(batch), math.prod(array.shape[len(batch) :])
    return Vectors(batch=batch, size=count, chunks=_slices(array, count, width))


def _slices(array: Array, count: int, width: int) -> Iterator[tuple[Array, int]]:
    # Whatever the order in memory, only what is taken out of the file is copied.
    flat, done = array.flat, 0
    while done < count:
        start, done = done, min(done + ROWS_PER_CHUNK, count)
        yield flat[start * width : done * width].reshape(done - start, width), done


# CSV: one vector a line; names of joints first, if at all; # begins a comment.


def _of_csv(lines: _Lines) -> Vectors:
    first = lines.take(1)
    names = _header(*first[0], lines.path) if first else None
    return Vectors(
        names=names,
        size=os.path.getsize(lines.path),
        chunks=_parsed(lines, [] if names else first),
    )


class _Lines:
    """The lines of a text file that say something, each with its number."""

    def __init__(self, path: str, file: TextIO) -> None:
        self.path = path
        self.done = 0
        self._file = file
        self._number = 0

    def take(self, count: int) -> list[NumberedLine]:
        """Return the next `count` lines, fewer at the end of the file."""
        found: list[NumberedLine] = []
        while len(found) < count:
            line = self._file.readline(LONGEST_LINE)
            if not line:
                break
            self._number += 1
            self.done += len(line)
            if len(line) == LONGEST_LINE:
                raise ShapeError(
                    f"{self.path}:{self._number}: the line is longer than "
                    f"{LONGEST_LINE} characters; this is not a CSV file."
                )
            text = line.partition("#")[0].strip()
            if text:
                found.append((self._number, text))
        return found


def _header(line: int, text: str, path: str) -> tuple[str, ...] | None:
    """Return the names in a first line, None where it holds numbers."""
    cells = [cell.strip().strip('"') for cell in text.split(",")]
    are_numbers = [_is_number(cell) for cell in cells]
    if all(are_numbers):
        return None
    if any(are_numbers):
        raise ShapeError(
            f"{path}:{line}: the line holds both names and numbers: {quote(text)}. "
            "Begin with a line of names, or with numbers."
        )
    return tuple(cells)


def _parsed(lines: _Lines, start: list[NumberedLine]) -> Iterator[tuple[Array, int]]:
    width = 0
    while numbered := [*start, *lines.take(ROWS_PER_CHUNK - len(start))]:
        start = []
        array = _table(numbered, lines.path)
        width = width or array.shape[1]
        if array.shape[1] != width:
            raise _ragged(lines.path, numbered[0][0], array.shape[1], width)
        yield array, lines.done


def _table(numbered: list[NumberedLine], path: str) -> Array:
    """Return lines of numbers as an array; where one is bad, name it."""
    try:
        return np.loadtxt([text for _, text in numbered], delimiter=",", ndmin=2)
    except ValueError:
        width = numbered[0][1].count(",") + 1
        rows: list[list[float]] = []
        for line, text in numbered:
            cells = text.split(",")
            if len(cells) != width:
                raise _ragged(path, line, len(cells), width) from None
            rows.append([_number(cell.strip(), f"{path}:{line}") for cell in cells])
        return np.array(rows)


def _ragged(path: str, line: int, found: int, width: int) -> ShapeError:
    return ShapeError(f"{path}:{line}: {found} numbers; the lines before have {width}.")


def _number(text: str, source: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ShapeError(
            f"{source}: {quote(text)} is not a number. Separate numbers by commas."
        ) from None


def _are_numbers(text: str) -> bool:
    parts = [part for part in re.split("[,:]", text) if part]
    return bool(parts) and all(map(_is_number, parts))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
