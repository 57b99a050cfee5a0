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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, combinations, islice, product
from typing import Final

import msgspec

from armillary.errors import FormatError, ModelError, quote
from armillary.formats.diagnostic import NOWHERE, Budget, Place, Report, Severity
from armillary.formats.files import read_bytes
from armillary.formats.robwork.cells import ENVIRONMENT
from armillary.formats.robwork.elements import (
    CALIBRATION,
    COLLISION,
    ELEMENTS,
    PROXIMITY,
    RULE_FILES,
    SETUPS,
    Context,
)
from armillary.formats.robwork.frames import PREFIX, SEPARATOR, FileSection, LoosePart
from armillary.formats.xml import Element, parse, to_text
from armillary.limits import (
    FILE_SIZE,
    ROBWORK_COMPARED,
    ROBWORK_RULES,
    ROBWORK_SETUP_ELEMENTS,
    ROBWORK_SETUPS,
)
from armillary.model.collision_pairs import CollisionPairs
from armillary.model.link_pattern import REGEX, LinkName, fits, is_exact, matches
from armillary.model.link_pattern import scoped as in_scope
from armillary.model.property import Property
from armillary.model.regular_expression import compiled, literal
from armillary.model.rules import Rule, RuleReason, Rules
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell

__all__ = [
    "Patterns",
    "are_default",
    "find_setups",
    "is_name",
    "read_rules",
    "setup_elements",
    "setup_text",
]


MOST_ERRORS: Final = 10
"""After which no further file is opened to find more."""


# Patterns of frame names
#
# A pattern of RobWork is compared with the full names of all frames; `*` in it means
# any characters and `?` one character, and `REGEX` comes before a regular expression.
# It becomes the side of a rule that means the same links, or the names of these links
# if there is no such side; the same holds in the other direction. A frame without a
# body of its own is not a link in the model, and rules about it have no effect, as in
# RobWork.

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
        self._left = ROBWORK_COMPARED.most

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


# Reading


def find_setups(section: FileSection, context: Context) -> list[tuple[LoosePart, str]]:
    """Return the references to files with rules in a section, each with its path.

    References that are not followed become properties of the section.
    """
    finder, report = context.finder, context.report
    setups: list[tuple[LoosePart, str]] = []
    for part in section.setups:
        element = part.element
        file = ELEMENTS.read(element, report)["file"] or ""
        if element.name == CALIBRATION:
            message = f"the calibration {quote(file)} is not applied, as in RobWork"
            report.note(element.place, "calibration", message)
        else:
            target = finder.find(file, element.place)
            if isinstance(target, str):
                setups.append((part, target))
                continue
            message = f"{target.message}; its rules for collisions are left out"
            report.warning(element.place, target.code, message, hint=target.hint)
        note = Property(
            name=f"{PREFIX}{element.name}",
            text=finder.from_first(file, element.place),
            description=SEPARATOR.join(part.scope[1:]),
        )
        section.unread.append(note)
    return setups


def read_rules(
    setups: Sequence[tuple[LoosePart, str]], patterns: Patterns, context: Context
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
    rule_list = list(islice(every, ROBWORK_RULES.most + 1))
    rules = Rules.robwork(has_setup=True)
    message = ROBWORK_RULES.excess()
    if len(rule_list) <= ROBWORK_RULES.most:
        try:
            return rules.extended(rule_list)
        except ModelError as error:
            message = str(error).removesuffix(".")
    place = setups[-1][0].element.place
    context.report.error(place, "too-many-rules", message)
    return rules


def _open_all(
    setups: Sequence[tuple[LoosePart, str]], patterns: Patterns, context: Context
) -> list[_RuleReader]:
    """Return a reader of each file, in the order in which their rules count."""
    report, readers = context.report, list[_RuleReader]()
    size, count = FILE_SIZE.most, ROBWORK_SETUP_ELEMENTS.most
    for number, (part, path) in enumerate(setups):
        element = part.element
        if number == ROBWORK_SETUPS.most:
            excess = report.budget.excess(ROBWORK_SETUPS, element.place)
            report.add(excess.diagnostics[0])
        if number >= ROBWORK_SETUPS.most or report.count(Severity.ERROR) > MOST_ERRORS:
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
            for diagnostic in error.diagnostics:
                report.add(diagnostic)
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
        self._tables = RULE_FILES[root.name]
        self._sides: dict[str, tuple[str, ...]] = {}
        self._tables.report_unknown(root, report)

    def flags(self) -> Iterator[Rule]:
        """Yield the rules of the file's flags, which are about all its frames."""
        root, report = self.root, self._report
        flags = self._tables.read(root, report)
        for flag in (key for key, value in flags.items() if not value):
            message = (
                f"{flag} is applied to the frames of this file; RobWork itself takes "
                "it for true"
            )
            report.note(root.place, "flag", message)
        if not flags.get("UseIncludeAll", True):
            yield from self._product("*", "*", root.place, tested=False)
        elif not flags.get("UseExcludeStaticPairs", True):
            for rule in self._product("*", "*", root.place, tested=True):
                yield msgspec.structs.replace(rule, where="rigid")

    def rules(self) -> Iterator[Rule]:
        """Yield the rules of the file, in order."""
        for element in self._tables.children(self.root):
            if element.name == "Volatile":
                self._report.unsupported.add("<Volatile>", element.place)
            elif self.root.name == PROXIMITY:
                yield from self._rule(element, tested=element.name == "Include")
            else:
                for pair in self._tables.children(element):
                    yield from self._rule(pair, tested=False)

    def _rule(self, element: Element, *, tested: bool) -> Iterator[Rule]:
        """Yield the rules of an element with two patterns."""
        sides = self._tables.read_whole(element, self._report)
        if sides is not None:
            yield from self._product(**sides, place=element.place, tested=tested)

    def _product(self, a: str, b: str, place: Place, *, tested: bool) -> Iterator[Rule]:
        """Yield the rules of two patterns."""
        for left, right in product(self._side(a, place), self._side(b, place)):
            yield Rule(a=left, b=right, tested=tested, reason=RuleReason.ROBWORK)

    def _side(self, pattern: str, place: Place) -> tuple[str, ...]:
        """Return the sides of rules that a pattern means."""
        if pattern not in self._sides:
            try:
                sides = self._patterns.sides(pattern, self._scope)
            except ModelError as error:
                message = str(error).removesuffix(".")
                self._report.error(place, "bad-pattern", message)
            else:
                if not sides:
                    self._report_unmatched(pattern, place)
                self._sides[pattern] = sides
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

_START: Final = Rules.robwork(has_setup=True)
_DEFAULTS: Final = (Rules(), Rules.robwork())


def setup_elements(properties: Sequence[Property]) -> list[Element]:
    """Return the references to setups that were not read, each in its chains."""
    elements: list[Element] = []
    for each in properties:
        kind = each.name.removeprefix(PREFIX)
        if each.name.startswith(PREFIX) and kind in SETUPS:
            element = ELEMENTS.write(kind, file=each.text)
            for name in reversed(each.description.split(SEPARATOR)):
                if name:
                    element = ELEMENTS.write("SerialChain", {"name": name}, element)
            elements.append(element)
    return elements


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
    # The rules of a setup follow those that RobWork begins with.
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
        elements = list(islice(every, ROBWORK_RULES.most + 1))
    except ModelError:
        elements = None
    if elements is None or len(elements) > ROBWORK_RULES.most:
        what = "which pairs of links are tested for collision, by more rules than fit"
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
    table = RULE_FILES[PROXIMITY][PROXIMITY]
    return to_text(table.write(dict.fromkeys(table.fields, True), *elements))


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
        # RobWork tests all pairs except those in one group, which move together.
        if is_tested != (groups[i] != groups[j]):
            yield _element(names[i], names[j], tested=is_tested)


def _element(a: str, b: str, *, tested: bool) -> Element:
    table = RULE_FILES[PROXIMITY]["Include" if tested else "Exclude"]
    return table.write(a=a, b=b)
