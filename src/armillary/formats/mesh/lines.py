"""Meshes in text, line by line, with numbers read strictly."""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import quote
from armillary.formats.diagnostic import Place
from armillary.formats.mesh.parts import MOST_FACES, MOST_VERTICES, refusal, too_many

__all__ = ["Drawing", "Line", "lines_of", "whole_number"]

LONGEST_LINE: Final = 1 << 20
DIGITS: Final = 18

Words = list[bytes]
Line = tuple[Place, Words]


def lines_of(data: bytes, path: str, *, first: int = 1) -> Iterator[Line]:
    """Yield the words of each line that has some, and its place.

    A backslash at the end of a line continues it.

    first: The number of the first line.

    Raises:
        FormatError: This is no text, or a line never ends.
    """
    if b"\0" in data:
        raise refusal(Place(path), "not-text", "this is no text: it holds a zero byte")
    pending: Words = []
    place = Place(path, first)
    number = first - 1
    for number, line in enumerate(BytesIO(data), start=first):
        if not pending:
            place = Place(path, number)
        if len(line) > LONGEST_LINE:
            raise refusal(
                place, "line-too-long", f"the line has more than {LONGEST_LINE} bytes"
            )
        words = line.split()
        if words and words[-1] == b"\\":
            pending += words[:-1]
            if len(pending) > LONGEST_LINE:
                raise refusal(place, "line-too-long", "the continued line never ends")
            continue
        if words or pending:
            yield place, pending + words
        pending = []
    if pending:
        yield Place(path, number), pending


class Drawing:
    """Corners and triangles as they come out of lines of text."""

    def __init__(self) -> None:
        self._vertices = array("d")
        self._faces = array("q")

    @property
    def count(self) -> int:
        """Return how many corners there are so far."""
        return len(self._vertices) // 3

    def add_vertex(self, words: Sequence[bytes], place: Place) -> None:
        """Add a corner of three words.

        Raises:
            FormatError: They are no finite numbers, or there are too many corners.
        """
        if len(words) != 3:
            raise refusal(
                place, "wrong-count", f"a vertex has 3 coordinates, not {len(words)}"
            )
        for word in words:
            try:
                value = float(word)
            except ValueError:
                value = math.nan
            if not math.isfinite(value) or b"_" in word:
                raise refusal(
                    place, "bad-number", f"{_shown(word)} is no finite number"
                )
            self._vertices.append(value)
        if len(self._vertices) > 3 * MOST_VERTICES:
            raise too_many(place)

    def add_polygon(self, corners: Sequence[int], place: Place) -> None:
        """Add a polygon as a fan of triangles, corners counted from 0.

        Raises:
            FormatError: It has fewer than three corners, or there are too many.
        """
        if len(corners) < 3:
            raise refusal(
                place,
                "bad-polygon",
                f"a polygon has at least 3 corners, not {len(corners)}",
            )
        first = corners[0]
        for second, third in itertools.pairwise(corners[1:]):
            self._faces.extend((first, second, third))
        if len(self._faces) > 3 * MOST_FACES:
            raise too_many(place)

    @property
    def vertices(self) -> npt.NDArray[np.float64]:
        """Return the corners, shape (n, 3)."""
        return np.frombuffer(self._vertices, dtype=np.float64).reshape(-1, 3)

    @property
    def faces(self) -> npt.NDArray[np.int64]:
        """Return the triangles, shape (m, 3)."""
        return np.frombuffer(self._faces, dtype=np.int64).reshape(-1, 3)


def whole_number(word: bytes, place: Place) -> int:
    """Return the whole number that a word is.

    Raises:
        FormatError: It is none, or has too many digits to count anything.
    """
    digits = word.removeprefix(b"-")
    if not digits.isdigit() or len(digits) > DIGITS:
        raise refusal(place, "bad-number", f"{_shown(word)} is no whole number")
    return int(word)


def _shown(word: bytes) -> str:
    return quote(word.decode("utf-8", errors="replace"))
