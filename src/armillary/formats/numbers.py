"""Decimal numbers in text files: strict to read, exact to write."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Place, Report, fault
from armillary.limits import NUMBER_LENGTH

__all__ = [
    "WHITE_SPACE",
    "has_direction",
    "is_unit",
    "number_text",
    "plain_number",
    "plain_numbers",
    "read_numbers",
]

WHITE_SPACE: Final = " \t\r\n"
LEAST_COMMAS: Final = 2
LENGTH_TOLERANCE: Final = 1e-6
LEAST_LENGTH: Final = 1e-12
GREATEST_LENGTH: Final = 1e150  # beyond it squares are infinite

# `float` accepts more, which is refused: nan, inf, 1_000, digits of other scripts.
_NUMBER: Final = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_DECIMAL: Final = re.compile(_NUMBER)
_CHARACTERS: Final = "0123456789.-+eE"
"""What numbers are written with. Of a text of these `float` reads what `_NUMBER` is."""
_SPACED: Final = _CHARACTERS + WHITE_SPACE
LONGEST_PLAIN: Final = 200
_GAP: Final = re.compile(f"[{WHITE_SPACE}]+")
_NO_NUMBER_YET: Final = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)


def plain_number(text: str) -> float | None:
    """Return the number of a text that is nothing but one, as `plain_numbers` does."""
    # `strip` ends at the first character that is another one.
    if len(text) > LONGEST_PLAIN or text.strip(_CHARACTERS):
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def plain_numbers(text: str, count: int | None) -> tuple[float, ...] | None:
    """Return the numbers of a short text that is as it should be; of others None.

    It is what `read_numbers` returns, which says what is wrong with others.
    """
    if len(text) > LONGEST_PLAIN or text.strip(_SPACED):
        return None
    try:
        values = tuple(map(float, text.split()))
    except ValueError:
        return None
    if len(values) != count and not (count is None and values):
        return None
    # A sum is finite only where all are; it may be infinite of large ones.
    are_finite = math.isfinite(sum(values)) or all(map(math.isfinite, values))
    return values if are_finite else None


def read_numbers(
    text: str,
    count: int | None,
    *,
    what: str,
    place: Place,
    report: Report,
    commas: bool = False,
) -> tuple[float, ...] | None:
    """Return the finite numbers of a text, separated by white space.

    count: How many there must be, or None where any number of them will do.
    what: What the text is, for messages: `"attribute 'xyz' of <origin>"`.
    report: Receives an error if the text is anything else; the result is then None.
    commas: Whether commas between all numbers are tolerated.
    """
    words = [word for word in _GAP.split(text) if word]
    if commas and count is not None and text.count(",") == count - 1 >= LEAST_COMMAS:
        # A decimal comma would leave a gap without one.
        parts = [part.strip(WHITE_SPACE) for part in text.split(",")]
        if not any(map(_fault, parts)):
            report.tolerating("commas count as spaces").error(
                place, "bad-number", f"{what} has commas: {quote(text)}"
            )
            words = parts
    has_comma = any("," in word for word in words)  # then the count is not the fault
    if count is not None and len(words) != count and not has_comma:
        report.error(
            place,
            "wrong-count",
            f"{what} must hold {count} number{'s' if count != 1 else ''}, "
            f"not {len(words)}: {quote(text)}",
        )
        return None
    faults = [(word, reason) for word in words if (reason := _fault(word)) is not None]
    if faults:
        word, (reason, hint) = faults[0]
        report.error(place, "bad-number", f"{what}: {quote(word)} {reason}", hint=hint)
        return None
    return tuple(map(float, words))


def has_direction(
    vector: Sequence[float],
    what: str,
    place: Place,
    report: Report,
    *,
    codes: tuple[str, str],
    hint: str = "",
) -> bool:
    """Return whether a vector has a direction; note a length that is not 1.

    what: The vector, for messages: `"the axis (0, 0, 2) of <joint>"`.
    codes: Of the error that it has no direction, and of the note.
    hint: How to fix the error.
    """
    length = math.hypot(*vector)
    if not LEAST_LENGTH <= length < GREATEST_LENGTH:
        message = f"{what} has length {length:g}, which gives no direction"
        report.error(place, codes[0], message, hint=hint)
        return False
    if not is_unit(vector):
        report.note(place, codes[1], f"{what} has length {length:.6g}; normalised")
    return True


def is_unit(vector: Sequence[float]) -> bool:
    """Return whether a vector has length 1, of which `has_direction` says nothing."""
    return abs(math.hypot(*vector) - 1.0) <= LENGTH_TOLERANCE


def number_text(value: float) -> str:
    """Return the shortest text that reads back as exactly this number.

    Raises FormatError for NaN and infinities.
    """
    if type(value) is int:
        return str(value)
    number = float(value)
    if math.isfinite(number):
        return repr(number)
    raise fault(
        NOWHERE,
        "bad-number",
        f"{number!r} cannot be written",
        hint="Only finite numbers can.",
    )


def _fault(word: str) -> tuple[str, str] | None:
    """Return what is wrong with a number, and how to fix it."""
    if len(word) > (longest := NUMBER_LENGTH.most):
        return f"has {len(word)} characters, more than {longest}", ""
    if _DECIMAL.fullmatch(word):
        if math.isfinite(float(word)):
            return None
        return "is too large for a double", ""
    if _NO_NUMBER_YET.fullmatch(word):
        return "is not finite", "Give a finite number, or leave it out."
    if "," in word:
        return (
            "is not a number",
            "Write a decimal point, not a comma, and separate numbers by spaces.",
        )
    return "is not a number", ""
