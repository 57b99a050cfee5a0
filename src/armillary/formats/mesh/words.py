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
    "PARTED",
    "STAGES",
    "floats",
    "joined_reference",
    "place_of_word",
    "shown",
    "split_part",
    "split_reference",
    "whole_numbers",
]

STAGES: Final = (".usd", ".usda", ".usdc", ".usdz")
"""Endings of stages of USD, which hold many meshes."""

PARTED: Final = (".dae", ".obj", ".glb", ".gltf")
"""Endings of meshes whose parts have names."""
CENTRED: Final = "centre"

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
    """Return the file of a reference, and what it names in that, if anything.

    That is a prim of a stage, or a part of another mesh, see `split_part`.
    """
    if "#" not in reference:
        return reference, ""
    for at, letter in enumerate(reference):
        ending = os.path.splitext(reference[:at])[1] if letter == "#" else ""
        if ending.lower() in (*STAGES, *PARTED):
            return reference[:at], reference[at + 1 :]
    return reference, ""


def split_part(inside: str) -> tuple[str, bool]:
    """Return the name of a part of a mesh, and whether it is moved to the origin.

    `wheel.dae#tyre` is the part `tyre`, `wheel.dae#tyre|centre` the same with the
    middle of its box at the origin.
    """
    name, mark, rest = inside.rpartition("|")
    return (name, True) if mark and rest == CENTRED else (inside, False)


def joined_reference(file: str, part: str, *, centred: bool = False) -> str:
    """Return the reference that `split_reference` and `split_part` take apart."""
    return f"{file}#{part}|{CENTRED}" if centred else f"{file}#{part}"
