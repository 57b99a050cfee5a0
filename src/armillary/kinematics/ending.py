"""How rows of a batch end: numbers with a name, and a sentence for people."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Self

import numpy as np
import numpy.typing as npt

__all__ = ["Ending"]


class Ending(IntEnum):
    """Ways to end; 0 is success.

    A member is written as its number and its sentence.
    """

    sentence: str

    def __new__(cls, number: int, sentence: str = "") -> Self:
        """Make a member that is a number and tells its sentence."""
        member = int.__new__(cls, number)
        member._value_ = number
        member.sentence = sentence
        return member

    @classmethod
    def summary(cls, endings: npt.NDArray[Any]) -> dict[str, int]:
        """Return how many ended how, most frequent first."""
        values, counts = np.unique(endings, return_counts=True)
        pairs = sorted(zip(values, counts, strict=True), key=lambda pair: -pair[1])
        return {cls(int(value)).name: int(count) for value, count in pairs}

    @classmethod
    def text(cls, endings: npt.NDArray[Any], success: npt.NDArray[np.bool_]) -> str:
        """Return as text how many succeeded, and how the others ended."""
        best = cls(0)
        texts = [f"{int(success.sum())} of {success.size} {best.sentence}"]
        for name, count in cls.summary(endings).items():
            if name != best.name:
                texts.append(f"{count} {cls[name].sentence}")
        return "; ".join(texts)
