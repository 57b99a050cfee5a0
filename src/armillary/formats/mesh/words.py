"""Words and numbers of meshes in text, and what references to meshes name."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.errors import quote
from armillary.formats.diagnostic import Place, fault

__all__ = [
    "STAGES",
    "floats",
    "place_of_word",
    "shown",
    "split_reference",
    "whole_numbers",
]

STAGES: Final = (".usd", ".usda", ".usdc", ".usdz")
"""Endings of stages of USD, which hold many meshes."""

DTYPES: Final = {float: np.float64, int: np.int64}
MOST: Final = {float: math.inf, int: 1 << 63}


def floats(
    words: Sequence[bytes], place: Callable[[int], Place]
) -> npt.NDArray[np.float64]:
    """Return finite numbers, shape (n,).

    place: The location of the k-th word.

    Raises:
        FormatError: A word is not a finite number.
    """
    return _numbers(words, place, float, "a finite number")


def whole_numbers(
    words: Sequence[bytes], place: Callable[[int], Place]
) -> npt.NDArray[np.int64]:
    """Return whole numbers, shape (n,).

    place: The location of the k-th word.

    Raises:
        FormatError: A word is not a whole number, or too large to count anything.
    """
    return _numbers(words, place, int, "a whole number")


def _numbers(
    words: Sequence[bytes],
    place: Callable[[int], Place],
    kind: type[float],
    what: str,
) -> npt.NDArray[Any]:
    numbers: npt.NDArray[Any] | None = None
    with suppress(ValueError, OverflowError):
        numbers = np.fromiter(map(kind, words), DTYPES[kind], len(words))
    if numbers is None or not np.isfinite(numbers).all() or b"_" in b" ".join(words):
        wrong = next(k for k, word in enumerate(words) if not _is_number(word, kind))
        message = f"{shown(words[wrong])} is not {what}"
        raise fault(place(wrong), "bad-number", message)
    return numbers


def place_of_word(text: bytes, path: str, index: int, *, first_line: int = 1) -> Place:
    """Return the location of the word of an index, or of the end of the text."""
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


def _is_number(word: bytes, kind: type[float]) -> bool:
    try:
        return b"_" not in word and abs(kind(word)) < MOST[kind]
    except ValueError:
        return False


def split_reference(reference: str) -> tuple[str, str]:
    """Return the file of a reference, and which prim of a stage it names, if any."""
    file, mark, inside = reference.rpartition("#")
    if mark and os.path.splitext(file)[1].lower() in STAGES:
        return file, inside
    return reference, ""
