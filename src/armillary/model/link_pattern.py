"""Sides of rules: the name of a link, or a pattern of names.

A side is one of

- the name of a link or of a frame on it, `manipulator/link`, or the bare name while
  that is unique in the cell;
- a text with `*` in it, each standing for any characters;
- `REGEX` and a regular expression right behind it.

A pattern with a `/` is compared with `manipulator/link`, one without with the link's
own name, always as a whole.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from armillary.errors import ModelError, quote
from armillary.forks import IMPORT_LOCK

if TYPE_CHECKING:
    from armillary.model.regular_expression import Expression
from armillary.limits import PATTERN_LENGTH

__all__ = [
    "REGEX",
    "LinkName",
    "check_side",
    "fits",
    "is_exact",
    "link_of",
    "links_of",
    "matches",
    "scoped",
    "steps",
]

REGEX: Final = "REGEX"
ANYTHING: Final = "*"
LONGEST: Final = PATTERN_LENGTH.most
SEPARATOR: Final = "/"


class LinkName(NamedTuple):
    """A link by the name of its manipulator and its own."""

    manipulator: str
    link: str

    @property
    def qualified(self) -> str:
        """Return `manipulator/link`."""
        return f"{self.manipulator}{SEPARATOR}{self.link}"


def is_exact(side: str) -> bool:
    """Return whether a side is a name, not a pattern."""
    return ANYTHING not in side and not side.startswith(REGEX)


def check_side(side: str) -> None:
    """Check what can be checked of a side without a cell.

    Raises:
        ModelError: It is not a text, is empty or too long, or its regular expression is
            invalid.
    """
    given: Any = side
    if not isinstance(given, str | None):
        raise ModelError(
            f"A side of a rule is the name of a link or a pattern, not {given!r}."
        )
    if not side:
        raise ModelError("A side of a rule is empty; name a link, or '*' for all.")
    if is_exact(side):
        return
    length = len(side.removeprefix(REGEX))
    if length > LONGEST:
        raise ModelError(
            f"The pattern {quote(side)} has {length} characters, more than {LONGEST}."
        )
    if side.startswith(REGEX):
        _expression(side)


def steps(side: str, length: int) -> float:
    """Return a bound of the work of comparing a side with a name of some length."""
    if is_exact(side):
        return 0.0
    return _expression(side).steps(length) if side.startswith(REGEX) else length


def matches(side: str, name: LinkName) -> bool:
    """Return whether a pattern is one of a link."""
    text = name.qualified if SEPARATOR in side else name.link
    if side.startswith(REGEX):
        return _expression(side).matches(text)
    return fits(side, text)


def scoped(side: str, prefix: str) -> str:
    """Return a side that means in a scope what `side` means within it.

    prefix: What stands before all names of the scope, such as `arm/`.
    """
    if not side.startswith(REGEX):
        return f"{prefix}{side}"
    inside = side.removeprefix(REGEX).removeprefix("^")
    return (
        f"{REGEX}{_literal(prefix)}(?:{inside.removesuffix('$')})" if prefix else side
    )


def links_of(manipulator: str) -> str:
    """Return the pattern of all links of a manipulator, whatever its name contains.

    Patterns have a greatest length. A name too long for it is cut, and its pattern may
    fit other names that begin alike.

    Raises:
        ModelError: The name is not a text.
    """
    given: Any = manipulator
    if not isinstance(given, str):
        raise ModelError(
            "Rules take the name of a manipulator, such as "
            f"cell.manipulators[0].name, not {given!r}."
        )
    head = manipulator[: LONGEST // 3]
    rest = "" if head == manipulator else ANYTHING
    if is_exact(manipulator):
        return f"{head}{rest}{SEPARATOR}{ANYTHING}"
    return f"{REGEX}{_literal(head)}{rest and '.*'}{SEPARATOR}.*"


def link_of(qualified: str) -> str:
    """Return the side that names one link, whatever its name holds."""
    return qualified if is_exact(qualified) else f"{REGEX}{_literal(qualified)}"


@lru_cache(maxsize=256)
def _expression(side: str) -> Expression:
    with IMPORT_LOCK:
        from armillary.model.regular_expression import compiled  # few rules have one

    return compiled(side.removeprefix(REGEX))


def _literal(text: str) -> str:
    with IMPORT_LOCK:
        from armillary.model.regular_expression import literal

    return literal(text)


def fits(pattern: str, text: str) -> bool:
    """Return whether a whole text is one of a pattern with `*`."""
    head, *middle, tail = pattern.split(ANYTHING)
    if len(text) < len(head) + len(tail):
        return False
    if not (text.startswith(head) and text.endswith(tail)):
        return False
    place, end = len(head), len(text) - len(tail)
    for piece in middle:
        # The first place is the best: what fits behind a later one fits behind it.
        found = text.find(piece, place, end)
        if found < 0:
            return False
        place = found + len(piece)
    return True
