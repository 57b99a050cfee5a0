"""Patterns of frame names in RobWork's rules, and the sides of our rules.

A pattern of RobWork is compared with the full names of all frames; `*` in it means any
characters and `?` one character, and `REGEX` comes before a regular expression. It
becomes the side of a rule that means the same links, or the names of these links if
there is no such side; the same holds in the other direction. A frame without a body of
its own is not a link in the model, and rules about it have no effect, as in RobWork.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from armillary.errors import ModelError
from armillary.formats.robwork.frames import SEPARATOR
from armillary.formats.robwork.manipulators import ENVIRONMENT
from armillary.model.link_pattern import REGEX, LinkName, fits, is_exact, matches
from armillary.model.link_pattern import scoped as in_scope
from armillary.model.regular_expression import compiled, literal
from armillary.model.workcell import Workcell

__all__ = ["Patterns", "is_name"]

MOST_COMPARED: Final = 2_000_000
"""Names, and characters of those that regular expressions are compared with."""

WILD: Final = {"?": ".", "*": ".*"}
OWN: Final = "/"


class Patterns:
    """Translates between patterns of RobWork and sides of rules, for one cell.

    Attributes:
        full_names: For the full name of each frame in RobWork, its name in the cell.
    """

    def __init__(self, cell: Workcell, names: Mapping[str, str]) -> None:
        """Take a cell and, for each frame's full name in RobWork, its name in it."""
        links = [
            LinkName(m.name, link.name) for m in cell.manipulators for link in m.links
        ]
        known = {link.qualified: link for link in links}
        self.full_names = names
        self._cell = cell
        self._links = {
            full: known[name] for full, name in names.items() if name in known
        }
        self._full = {link: full for full, link in self._links.items()}
        self._owners = tuple(m.name for m in cell.manipulators)
        self._characters = 2 * sum(map(len, names))
        self._left = MOST_COMPARED

    # Reading

    def sides(self, pattern: str, scope: str) -> tuple[str, ...]:
        """Return sides that together mean the links that a pattern of RobWork does.

        scope: The device and chains whose names come before those that it matches.

        Raises:
            ModelError: The pattern is not a regular expression, or there is too much to
                compare.
        """
        prefix = f"{scope}{SEPARATOR}" if scope else ""
        if is_name(pattern):
            link = self._links.get(f"{prefix}{pattern}")
            return () if link is None else (_side(link),)
        wanted = self._matching(in_scope(_plain(pattern), prefix))
        if not wanted:
            return ()
        for side in self._sides_like(_plain(pattern), prefix):
            if self._meant(side) == wanted:
                return (side,)
        return tuple(map(_side, wanted))

    def _sides_like(self, pattern: str, prefix: str) -> Iterator[str]:
        """Yield sides that may mean what a pattern does."""
        if prefix:
            yield in_scope(pattern, self._own_prefix(prefix))
            return
        yield pattern
        yield from _translated(pattern, self._owners, SEPARATOR, OWN)
        if not pattern.startswith(REGEX):
            yield f"{ENVIRONMENT}{OWN}{pattern}"

    def _own_prefix(self, prefix: str) -> str:
        """Return what comes before our names of the frames in a scope of RobWork."""
        for full, name in self.full_names.items():
            if full.startswith(prefix):
                return name.removesuffix(full.removeprefix(prefix))
        return prefix

    # Writing

    def patterns(self, side: str) -> tuple[str, ...]:
        """Return patterns of RobWork that together mean the links that a side does.

        Raises:
            ModelError: There is too much to compare.
        """
        if is_exact(side):
            at = self._cell.frame(side)
            m = self._cell.manipulators[self._cell.owners[at.link]]
            return (self.name(LinkName(m.name, self._cell.links[at.link].name)),)
        wanted = self._meant(side)
        for pattern in self._patterns_like(side):
            if self._matching(pattern) == wanted:
                return (pattern,)
        return tuple(map(self.name, wanted))

    def name(self, link: LinkName) -> str:
        """Return the pattern that means one link."""
        name = self._full.get(link, link.qualified)
        return name if is_name(name) else f"{REGEX}{literal(name)}"

    def _patterns_like(self, side: str) -> Iterator[str]:
        """Yield patterns that may mean what a side does."""
        if OWN not in side:
            yield side
        yield from _translated(side, self._owners, OWN, SEPARATOR)
        yield from _translated(side, self._owners, OWN, "")

    # Comparing

    def _meant(self, side: str) -> list[LinkName]:
        """Return the links that a side of a rule means."""
        self._compare(side)
        return [link for link in self._full if matches(side, link)]

    def _matching(self, pattern: str) -> list[LinkName]:
        """Return the links whose full names a pattern matches."""
        pattern = _plain(pattern)
        self._compare(pattern)
        if pattern.startswith(REGEX):
            is_one = compiled(pattern.removeprefix(REGEX)).matches
        else:
            is_one = partial(fits, pattern)
        return [link for full, link in self._links.items() if is_one(full)]

    def _compare(self, pattern: str) -> None:
        """Count the work of comparing a pattern with all names."""
        is_regex = pattern.startswith(REGEX)
        self._left -= self._characters if is_regex else len(self.full_names)
        if self._left < 0:
            raise ModelError(
                f"The patterns take too long to compare with the "
                f"{len(self.full_names)} frames; name the frames instead."
            )


def is_name(pattern: str) -> bool:
    """Return whether a pattern of RobWork is the name of one frame."""
    return is_exact(pattern) and "?" not in pattern


def _plain(pattern: str) -> str:
    """Return a pattern of RobWork with nothing but `*`, or as a regular expression."""
    if pattern.startswith(REGEX) or "?" not in pattern:
        return pattern
    return REGEX + "".join(WILD.get(c) or literal(c) for c in pattern)


def _side(link: LinkName) -> str:
    """Return the side that means one link."""
    name = link.qualified
    return name if is_exact(name) else f"{REGEX}{literal(name)}"


def _translated(
    pattern: str, owners: Iterable[str], old: str, new: str
) -> Iterator[str]:
    """Yield a pattern that begins with an owner's name, with its separator replaced.

    old, new: The separators; without a new one the owner's name is removed too.
    """
    regex = REGEX if pattern.startswith(REGEX) else ""
    as_text = literal if regex else str
    rest = pattern.removeprefix(regex)
    for owner in owners:
        head = as_text(f"{owner}{old}")
        if rest.startswith(head):
            front = as_text(f"{owner}{new}" if new else "")
            yield f"{regex}{front}{rest.removeprefix(head)}"
