"""A COLLADA document: its elements by their ids, and numbers in its texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import quote
from armillary.formats.mesh.parts import refusal
from armillary.formats.xml import Element

__all__ = ["Library", "floats", "whole_numbers"]

ID: Final = "id"
_PIECE: Final = re.compile(r"\S[\s\S]{0,65536}\S*")
_NO_WHOLE_NUMBERS: Final = re.compile(r"[^0-9\s]|[0-9]{18}", re.ASCII)


class Library:
    """Look up what a document refers to within itself.

    root: Of the document.
    """

    def __init__(self, root: Element) -> None:
        self.root = root
        self._by_id: dict[str, Element] = {}
        for element in root.walk():
            name = element.attributes.get(ID)
            if name is not None:
                self._by_id.setdefault(name, element)

    def find(self, element: Element, attribute: str, kind: str) -> Element:
        """Return the element of a kind that an attribute refers to as `#id`.

        Raises:
            FormatError: There is no reference, or none of that kind in this file.
        """
        reference = element.attributes.get(attribute, "")
        found = self._by_id.get(reference[1:])
        if not reference.startswith("#"):
            raise refusal(
                element.place,
                "reference-outside",
                f"{attribute} of {element.label} is {quote(reference)}; only what is "
                "in the same file is read, as '#id'",
            )
        if found is None or found.name != kind:
            raise refusal(
                element.place,
                "unknown-reference",
                f"{attribute} of {element.label} is {quote(reference)}; there is no "
                f"<{kind}> of that id",
            )
        return found


def floats(element: Element, count: int | None = None) -> npt.NDArray[np.float64]:
    """Return the finite numbers in an element, shape (n,).

    Raises:
        FormatError: They are none, or not as many.
    """
    try:
        numbers = np.concatenate(
            [np.array(words, dtype=np.float64) for words in _words(element.text)]
        )
    except ValueError as error:
        message = f"{element.label}: {error}"
        raise refusal(element.place, "bad-number", message) from error
    if "_" in element.text or not np.isfinite(numbers).all():
        raise refusal(
            element.place,
            "bad-number",
            f"{element.label} holds what is no finite number",
        )
    if count is not None and len(numbers) != count:
        raise refusal(
            element.place,
            "wrong-count",
            f"{element.label} holds {len(numbers)} numbers, not {count}",
        )
    return numbers


def whole_numbers(element: Element) -> npt.NDArray[np.int64]:
    """Return the whole numbers in an element, from 0 up, shape (n,).

    Raises:
        FormatError: There is something else.
    """
    if _NO_WHOLE_NUMBERS.search(element.text):
        raise refusal(
            element.place,
            "bad-number",
            f"{element.label} holds what is no whole number that counts something",
        )
    return np.concatenate(
        [np.array(words, dtype=np.int64) for words in _words(element.text)]
    )


def _words(text: str) -> Iterator[list[str]]:
    """Yield the words of a text, not all at once: each takes more than its letters."""
    yield []
    for piece in _PIECE.finditer(text):
        yield piece[0].split()
