"""Words and numbers of meshes in text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import quote
from armillary.formats.diagnostic import Place
from armillary.formats.mesh.faults import refusal

__all__ = ["floats", "place_of_word", "shown", "whole_numbers"]

FIT: Final = 1 << 62


def floats(
    words: Sequence[bytes], place: Callable[[int], Place]
) -> npt.NDArray[np.float64]:
    """Return finite numbers, shape (n,).

    place: Where the k-th word stands.

    Raises:
        FormatError: A word is not a finite number.
    """
    try:
        numbers = np.fromiter(map(float, words), np.float64, len(words))
    except ValueError:
        numbers = np.full(len(words), np.nan)
    if not np.isfinite(numbers).all() or b"_" in b" ".join(words):
        wrong = next(k for k, word in enumerate(words) if not _is_finite(word))
        message = f"{shown(words[wrong])} is not a finite number"
        raise refusal(place(wrong), "bad-number", message)
    return numbers


def whole_numbers(
    words: Sequence[bytes], place: Callable[[int], Place]
) -> npt.NDArray[np.int64]:
    """Return whole numbers, shape (n,).

    place: Where the k-th word stands.

    Raises:
        FormatError: A word is not a whole number, or too large to count anything.
    """
    try:
        if b"_" not in b" ".join(words):
            return np.fromiter(map(int, words), np.int64, len(words))
    except (ValueError, OverflowError):
        pass
    wrong = next(k for k, word in enumerate(words) if not _is_whole(word))
    message = f"{shown(words[wrong])} is not a whole number"
    raise refusal(place(wrong), "bad-number", message)


def place_of_word(text: bytes, path: str, index: int, *, first_line: int = 1) -> Place:
    """Return where the word of an index stands, or where the text ends."""
    line = first_line
    for words in map(bytes.split, text.splitlines()):
        index -= len(words)
        if index < 0:
            break
        line += 1
    return Place(path, line)


def shown(word: bytes) -> str:
    """Return a word as messages show it."""
    return quote(word.decode("utf-8", errors="replace"))


def _is_finite(word: bytes) -> bool:
    try:
        return b"_" not in word and bool(np.isfinite(float(word)))
    except ValueError:
        return False


def _is_whole(word: bytes) -> bool:
    try:
        return b"_" not in word and abs(int(word)) < FIT
    except ValueError:
        return False
