"""Collision and proximity setups: their files, and the rules in them.

Both kinds list which frames are not tested for collision: the older one by pairs, the
newer one by patterns of which the last that matches decides. As in `XMLRWLoader`,
collision setups count before proximity setups, and those of devices before the
workcell's; as in `BasicFilterStrategy`, pairs that cannot move relative to each other
are left out before all of them. Without any setup a frame is also not tested against
its parent and the children of its siblings.

RobWork ignores the flags of all files. Here they hold for the frames that a file is
about, before the rules of all files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, islice, product
from typing import Final

import msgspec

from armillary.errors import FormatError, ModelError, quote
from armillary.formats.diagnostic import NOWHERE, Budget, Place, Report, Severity
from armillary.formats.files import read_bytes
from armillary.formats.robwork.elements import (
    CALIBRATION,
    COLLISION,
    PROXIMITY,
    SETUPS,
    Context,
    known_children,
    may_have,
    name,
    one_of,
    report_unknown,
    values,
)
from armillary.formats.robwork.frames import PREFIX, SEPARATOR, Body, Part
from armillary.formats.robwork.patterns import Patterns, is_name
from armillary.formats.xml import Element, parse, tag, to_text
from armillary.limits import FILE_SIZE, ROBWORK_SETUP_ELEMENTS
from armillary.model.collision_pairs import CollisionPairs
from armillary.model.property import Property
from armillary.model.rules import Rule, RuleReason, Rules
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell

__all__ = ["are_default", "find_setups", "read_rules", "setup_elements", "setup_text"]

MOST_FILES: Final = 1000
MOST_ERRORS: Final = 10
"""After which no further file is opened to find more."""

MOST_RULES: Final = 100_000
"""The most rules and pairs that patterns may be expanded to."""


_PATTERNS: Final = may_have(PatternA=name, PatternB=name)
_SWITCH: Final = one_of("true", "false")
TABLES: Final = {
    COLLISION: {
        COLLISION: may_have("Exclude", "Volatile", "ExcludeStaticPairs"),
        "Exclude": may_have("FramePair"),
        "FramePair": may_have(first=name, second=name),
        "ExcludeStaticPairs": may_have(),  # they are left out in any case
    },
    PROXIMITY: {
        PROXIMITY: may_have(
            *("Include", "Exclude"),
            UseIncludeAll=_SWITCH,
            UseExcludeStaticPairs=_SWITCH,
        ),
        "Include": _PATTERNS,
        "Exclude": _PATTERNS,
    },
}
"""The elements of each kind of file, by the name of its root."""


def find_setups(body: Body, context: Context) -> list[tuple[Part, str]]:
    """Return the references to files with rules in a body, each with its path.

    References that are not followed become properties of the body.
    """
    finder, report = context.finder, context.report
    setups: list[tuple[Part, str]] = []
    for part in body.setups:
        element = part.element
        file = values(element, report)["file"] or ""
        if element.name == CALIBRATION:
            message = f"the calibration {quote(file)} is not applied, as in RobWork"
            report.note(element.place, "calibration", message)
        else:
            found = finder.find(file, element.place)
            if isinstance(found, str):
                setups.append((part, found))
                continue
            message = f"{found.message}; its rules for collisions are left out"
            report.warning(element.place, found.code, message, hint=found.hint)
        kept = Property(
            name=f"{PREFIX}{element.name}",
            text=finder.from_first(file, element.place),
            description=SEPARATOR.join(part.scope[1:]),
        )
        body.unread.append(kept)
    return setups


def read_rules(
    setups: Sequence[tuple[Part, str]], patterns: Patterns, context: Context
) -> Rules:
    """Return the rules of all setups of a workcell.

    setups: In the order of the file, those of devices before the workcell's own.
    """
    if not setups:
        return Rules.robwork()
    readers = _open_all(setups, patterns, context)
    context.report.raise_if_errors()
    every = chain(
        chain.from_iterable(reader.flags() for reader in readers),
        chain.from_iterable(reader.rules() for reader in readers),
    )
    found = list(islice(every, MOST_RULES + 1))
    rules = Rules.robwork(has_setup=True)
    message = f"the setups stand for more than {MOST_RULES} rules"
    if len(found) <= MOST_RULES:
        try:
            return rules.extended(found)
        except ModelError as error:
            message = str(error).removesuffix(".")
    place = setups[-1][0].element.place
    context.report.error(place, "too-many-rules", message)
    return rules


def _open_all(
    setups: Sequence[tuple[Part, str]], patterns: Patterns, context: Context
) -> list[_RuleReader]:
    """Return a reader of each file, in the order in which their rules count."""
    report, readers = context.report, list[_RuleReader]()
    size, count = FILE_SIZE.most, ROBWORK_SETUP_ELEMENTS.most
    for number, (part, path) in enumerate(setups):
        element = part.element
        if number == MOST_FILES:
            message = f"there are more than {MOST_FILES} setups"
            report.error(element.place, "too-many-files", message)
        if number >= MOST_FILES or report.count(Severity.ERROR) > MOST_ERRORS:
            break
        file = element.attributes["file"]
        shown = context.finder.shown(file, element.place.path, path)
        try:
            data = read_bytes(path, size)
            root = parse(
                data,
                shown,
                budget=Budget({ROBWORK_SETUP_ELEMENTS: count}),
                elements=ROBWORK_SETUP_ELEMENTS,
                report=report,
            )
        except FormatError as error:
            for found in error.diagnostics:
                report.add(found)
            continue
        size -= len(data)
        count -= sum(1 for _ in root.walk())
        if root.name == element.name:
            scope = SEPARATOR.join(part.scope)
            readers.append(_RuleReader(root, scope, patterns, report))
            continue
        report.error(
            root.place,
            "wrong-root",
            f"the root element is {root.label}, but the element that names this file "
            f"is a <{element.name}>",
        )
    # The sort keeps the order of the files of one kind.
    return sorted(readers, key=lambda reader: reader.root.name != COLLISION)


class _RuleReader:
    """Reads one file.

    Attributes:
        root: The content of the file.
    """

    def __init__(
        self, root: Element, scope: str, patterns: Patterns, report: Report
    ) -> None:
        """Report what is unknown in the file.

        scope: The device and chains whose names come before those in the file, such as
            `SchunkHand.f1`; empty for the whole workcell.
        """
        self.root = root
        self._scope = scope
        self._patterns = patterns
        self._report = report
        self._table = TABLES[root.name]
        self._sides: dict[str, tuple[str, ...]] = {}
        report_unknown(root, report, self._table)

    def flags(self) -> Iterator[Rule]:
        """Yield the rules of the file's flags, which are about all its frames."""
        root, report = self.root, self._report
        flags = values(root, report, self._table)
        for flag in (key for key, value in flags.items() if value == "false"):
            message = (
                f"{flag} is applied to the frames of this file; RobWork itself takes "
                "it for true"
            )
            report.note(root.place, "flag", message)
        if flags.get("UseIncludeAll") == "false":
            yield from self._product("*", "*", root.place, tested=False)
        elif flags.get("UseExcludeStaticPairs") == "false":
            for rule in self._product("*", "*", root.place, tested=True):
                yield msgspec.structs.replace(rule, where="rigid")

    def rules(self) -> Iterator[Rule]:
        """Yield the rules of the file, in order."""
        for element in known_children(self.root, self._table):
            if element.name == "Volatile":
                self._report.unsupported.add("<Volatile>", element.place)
            elif self.root.name == PROXIMITY:
                yield from self._rule(element, tested=element.name == "Include")
            else:
                for pair in known_children(element, self._table):
                    yield from self._rule(pair, tested=False)

    def _rule(self, element: Element, *, tested: bool) -> Iterator[Rule]:
        """Yield the rules of an element with two patterns."""
        left, right = values(element, self._report, self._table).values()
        if left and right:
            yield from self._product(left, right, element.place, tested=tested)

    def _product(self, a: str, b: str, place: Place, *, tested: bool) -> Iterator[Rule]:
        """Yield the rules of two patterns."""
        for left, right in product(self._side(a, place), self._side(b, place)):
            yield Rule(a=left, b=right, tested=tested, reason=RuleReason.ROBWORK)

    def _side(self, pattern: str, place: Place) -> tuple[str, ...]:
        """Return the sides of rules that a pattern means."""
        if pattern not in self._sides:
            try:
                found = self._patterns.sides(pattern, self._scope)
            except ModelError as error:
                message = str(error).removesuffix(".")
                self._report.error(place, "bad-pattern", message)
            else:
                if not found:
                    self._report_unmatched(pattern, place)
                self._sides[pattern] = found
        return self._sides.setdefault(pattern, ())

    def _report_unmatched(self, pattern: str, place: Place) -> None:
        """Warn of a name that no frame has, and of a pattern without links."""
        prefix = f"{self._scope}{SEPARATOR}" if self._scope else ""
        full, names = f"{prefix}{pattern}", self._patterns.full_names
        if not is_name(pattern):
            if pattern != "*":
                message = f"the pattern {quote(full)} matches no link"
                self._report.warning(place, "no-match", message)
        elif full not in names:
            known = (n.removeprefix(prefix) for n in names if n.startswith(prefix))
            self._report.warning(
                place,
                "unknown-frame",
                f"there is no frame {quote(full)}; its rules are left out",
                hint=self._report.hint(pattern, known),
            )


# Writing: references, and a proximity setup in a file beside the workcell

FLAGS: Final = {"UseIncludeAll": "true", "UseExcludeStaticPairs": "true"}
_START: Final = Rules.robwork(has_setup=True)
_DEFAULTS: Final = (Rules(), Rules.robwork())


def setup_elements(properties: Sequence[Property]) -> list[Element]:
    """Return the references to setups that were not read, each in its chains."""
    found: list[Element] = []
    for each in properties:
        kind = each.name.removeprefix(PREFIX)
        if each.name.startswith(PREFIX) and kind in SETUPS:
            element = tag(kind, {"file": each.text})
            for chain in reversed(each.description.split(SEPARATOR)):
                if chain:
                    element = tag("SerialChain", {"name": chain}, element)
            found.append(element)
    return found


def are_default(rules: Rules) -> bool:
    """Return whether rules are the defaults, ours or RobWork's."""
    return rules in _DEFAULTS


def setup_text(cell: Workcell, patterns: Patterns, report: Report) -> str | None:
    """Return the file with the rules of a cell, None if that would be too long.

    Rules that could be those of a setup are written one by one, with their patterns.
    Others become the pairs on which they differ from RobWork, which begins with all
    pairs but static ones.
    """
    rules, first = cell.rules, len(_START.rules)
    are_of_setup = (
        (rules.within, rules.between) == (_START.within, _START.between)
        and rules.rules[:first] == _START.rules
        and all(rule.where == "any" for rule in rules.rules[first:])
    )
    if are_of_setup:
        every = _rule_elements(rules.rules[first:], patterns)
    else:
        every = _pair_elements(cell, patterns)
    try:
        elements = list(islice(every, MOST_RULES + 1))
    except ModelError:
        elements = None
    if elements is None or len(elements) > MOST_RULES:
        what = "which pairs are tested for collision, by more rules than fit"
        report.unsupported.add(what)
        return None
    if not are_of_setup:
        message = (
            "the rules of collisions become the pairs on which RobWork would differ"
        )
        report.note(NOWHERE, "pairs-listed", message)
    for _ in rules.touches:
        report.unsupported.add("what may touch an attached part")
    usual = [rule for default in _DEFAULTS for rule in default.rules]
    for rule in rules.rules:
        if (
            rule.reason not in {RuleReason.ROBWORK, RuleReason.USER}
            and rule not in usual
        ):
            report.unsupported.add("the reason of a rule of collisions")
    return to_text(tag(PROXIMITY, FLAGS, *elements))


def _rule_elements(rules: Sequence[Rule], patterns: Patterns) -> Iterator[Element]:
    """Yield each rule, as one element or as one for each pair that it names."""
    for rule in rules:
        for a, b in product(patterns.patterns(rule.a), patterns.patterns(rule.b)):
            yield _element(a, b, tested=rule.tested)


def _pair_elements(cell: Workcell, patterns: Patterns) -> Iterator[Element]:
    """Yield the pairs of links with shapes on which the rules and RobWork differ."""
    decided = CollisionPairs(cell, cell.rules)
    pairs = decided.pairs(Tree.of(cell).released())
    tested, groups = set(pairs), decided.groups
    names = [patterns.name(link) for link in decided.link_names]
    for i, j in combinations(range(len(names)), 2):
        is_tested = (pairs.links[i], pairs.links[j]) in tested
        if is_tested != (groups[i] != groups[j]):
            yield _element(names[i], names[j], tested=is_tested)


def _element(a: str, b: str, *, tested: bool) -> Element:
    return tag("Include" if tested else "Exclude", {"PatternA": a, "PatternB": b})
