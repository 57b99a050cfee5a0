"""Collision and proximity setups to rules.

Both kinds say which frames are not tested: the older one by pairs, the newer one by
patterns of which the last that matches decides. As `XMLRWLoader` has it, collision
setups count before proximity setups, and those of devices before the workcell's; and as
`BasicFilterStrategy` has it, pairs that cannot move in each other are left out before
all of them. Without any setup a frame is also not tested against its parent and the
children of its siblings.

RobWork drops the flags of all files on the way. Here they hold for the frames that a
file is about, before the rules of all files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice, product
from typing import Final

import msgspec

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import Place
from armillary.formats.robwork.desk import Desk
from armillary.formats.robwork.frames import Frames, is_name
from armillary.formats.robwork.node import SEPARATOR
from armillary.formats.robwork.notes import COLLISION, PROXIMITY
from armillary.formats.robwork.setups import Setup
from armillary.formats.xml import Element
from armillary.model.rules import Reason, Rule, Rules

__all__ = ["read_rules"]

MOST_RULES: Final = 100_000
"""What the patterns of all files may be spelled out to."""

VERBS: Final = ("Include", "Exclude")
FLAGS: Final = ("true", "false")
IN_COLLISION: Final = ("Exclude", "Volatile", "ExcludeStaticPairs")


def read_rules(setups: Sequence[Setup], frames: Frames, desk: Desk) -> Rules:
    """Return the rules that the setups of a workcell make up together.

    setups: In the order of the file, those of devices before the workcell's own.
    """
    if not setups:
        return Rules.robwork()
    # The sort keeps the order of the files of one kind.
    ordered = sorted(setups, key=lambda setup: setup.kind != COLLISION)
    readings = [_Reading(setup, frames, desk) for setup in ordered]
    every = chain(
        chain.from_iterable(reading.flags() for reading in readings),
        chain.from_iterable(reading.rules() for reading in readings),
    )
    found = list(islice(every, MOST_RULES + 1))
    rules = Rules.robwork(has_setup=True)
    fault = ""
    if len(found) > MOST_RULES:
        fault = f"the setups stand for more than {MOST_RULES} rules"
    else:
        try:
            return rules.extended(found)
        except ModelError as error:
            fault = str(error).removesuffix(".")
    desk.report.error(ordered[-1].root.place, "too-many-rules", fault)
    return rules


class _Reading:
    """Reads one setup."""

    def __init__(self, setup: Setup, frames: Frames, desk: Desk) -> None:
        self._setup = setup
        self._root = setup.root
        self._frames = frames
        self._desk = desk
        self._sides: dict[str, tuple[str, ...]] = {}
        self._is_right = self._root.name == setup.kind
        if not self._is_right:
            desk.report.error(
                self._root.place,
                "wrong-root",
                f"the root element is {self._root.label}, but what names this file is "
                f"a <{setup.kind}>",
            )

    def flags(self) -> Iterator[Rule]:
        """Yield what the attributes of the file say of all its frames."""
        if not self._is_right or self._setup.kind != PROXIMITY:
            return
        place = self._root.place
        if not self._flag("UseIncludeAll"):
            yield from self._product("*", "*", place, tested=False)
        elif not self._flag("UseExcludeStaticPairs"):
            for rule in self._product("*", "*", place, tested=True):
                yield msgspec.structs.replace(rule, where="rigid")
        # Without pairs there are none to leave out.
        self._root.attribute("UseExcludeStaticPairs")

    def _flag(self, name: str) -> bool:
        value = self._desk.choice(self._root, name, FLAGS, "true") == "true"
        if not value:
            self._desk.report.note(
                self._root.place,
                "flag",
                f"{name} is heeded for the frames of this file; RobWork itself takes "
                "it for true",
            )
        return value

    def rules(self) -> Iterator[Rule]:
        """Yield the rules of the file, in order."""
        if not self._is_right:
            return
        if self._setup.kind == COLLISION:
            yield from self._collision()
        else:
            for element in self._desk.children(self._root, VERBS):
                yield from self._rule(
                    element,
                    "PatternA",
                    "PatternB",
                    tested=element.name == "Include",
                )
        self._desk.close(self._root)

    def _collision(self) -> Iterator[Rule]:
        for element in self._desk.children(self._root, IN_COLLISION):
            if element.name == "Exclude":
                for pair in self._desk.children(element, ("FramePair",)):
                    yield from self._rule(pair, "first", "second", tested=False)
            elif element.name == "Volatile":
                element.read_text()
                self._desk.unsupported.add("<Volatile>", element.place)
            # Pairs that cannot move in each other are left out in any case.
            self._desk.close(element)

    def _rule(
        self, element: Element, a: str, b: str, *, tested: bool
    ) -> Iterator[Rule]:
        """Yield the rules of an element with two patterns."""
        given = [
            element.required_attribute(name, self._desk.report) or "" for name in (a, b)
        ]
        self._desk.close(element)
        for name, pattern in zip((a, b), given, strict=True):
            if name in element.attributes and not pattern:
                message = f"attribute {quote(name)} of {element.label} is empty"
                self._desk.report.error(element.place, "missing-name", message)
        if all(given):
            yield from self._product(given[0], given[1], element.place, tested=tested)

    def _product(self, a: str, b: str, place: Place, *, tested: bool) -> Iterator[Rule]:
        """Yield the rules of two patterns."""
        for left, right in product(self._side(a, place), self._side(b, place)):
            yield Rule(a=left, b=right, tested=tested, reason=Reason.ROBWORK)

    def _side(self, pattern: str, place: Place) -> tuple[str, ...]:
        """Return what a pattern of the file means, as sides of rules."""
        found = self._sides.get(pattern)
        if found is None:
            found = self._sides[pattern] = self._new_side(pattern, place)
        return found

    def _new_side(self, pattern: str, place: Place) -> tuple[str, ...]:
        scope = self._setup.scope
        try:
            found = self._frames.sides(pattern, scope)
        except ModelError as error:
            message = str(error).removesuffix(".")
            self._desk.report.error(place, "bad-pattern", message)
            return ()
        if not found:
            self._tell_none(pattern, f"{scope}{SEPARATOR}" if scope else "", place)
        return found

    def _tell_none(self, pattern: str, prefix: str, place: Place) -> None:
        """Warn of a name that no frame has, and of a pattern without links."""
        names = self._frames.full_names
        if not is_name(pattern):
            if pattern != "*":
                message = f"the pattern {quote(f'{prefix}{pattern}')} matches no link"
                self._desk.report.warning(place, "no-match", message)
        elif f"{prefix}{pattern}" not in names:
            inside = (
                name.removeprefix(prefix) for name in names if name.startswith(prefix)
            )
            self._desk.report.warning(
                place,
                "unknown-frame",
                f"no frame is called {quote(f'{prefix}{pattern}')}; that is left out",
                hint=self._desk.hint(pattern, inside),
            )
