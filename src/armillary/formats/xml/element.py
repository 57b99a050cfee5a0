"""XML elements that remember what a reader asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, overload

import msgspec

from armillary.errors import nearest, quote
from armillary.formats.diagnostic import Diagnostic, Place, Report, Severity
from armillary.formats.numbers import (
    WHITE_SPACE,
    plain_number,
    plain_numbers,
    read_numbers,
)

__all__ = [
    "NO_ATTRIBUTES",
    "TEXT_KEY",
    "Element",
    "Leftover",
    "report_unused",
    "unused",
]

TEXT_KEY: Final = "#text"
"""What stands for the text of an element where one of its attributes is asked for."""

MOST_EXPLAINED: Final = 200
_DOUBTFUL: Final = (Severity.ERROR, Severity.WARNING)

NO_ATTRIBUTES: Final[Mapping[str, str]] = MappingProxyType({})


class Element(msgspec.Struct, eq=False):
    """One XML element, which remembers what a reader asked for.

    The methods that take a name note that the reader knows it, so that `unused` can
    return what no reader has asked for; attributes do not. Once a document is parsed,
    nothing else changes.

    Attributes:
        name: As written, prefix included; the local name where namespaces are resolved.
        attributes: All attributes, as written.
        children: The child elements in document order.
        text: All character data directly inside, joined; empty if there is only white
            space around children.
        namespace: The namespace's URI where namespaces are resolved.
        path, line, column: The location of its tag, as in `Place`.
    """

    name: str
    attributes: Mapping[str, str] = NO_ATTRIBUTES
    children: tuple[Element, ...] = ()
    text: str = ""
    namespace: str = ""
    path: str = ""
    line: int = 0
    column: int = 0
    _asked_attributes: tuple[str, ...] = ()
    _asked_children: tuple[str, ...] = ()
    _asked_text: bool = False

    def __repr__(self) -> str:
        return f"<Element {self.label} at {self.place}>"

    @property
    def place(self) -> Place:
        """Return the location of the element's tag."""
        return Place(self.path, self.line, self.column)

    @property
    def label(self) -> str:
        """Return the element as messages show it: `<joint name='elbow'>`."""
        name = self.attributes.get("name")
        tail = f" name={quote(name)}" if name is not None else ""
        return f"<{quote(self.name)[1:-1]}{tail}>"

    def what(self, key: str) -> str:
        """Return an attribute as messages call it; `TEXT_KEY` is the text."""
        whose = "the text" if key == TEXT_KEY else f"attribute {quote(key)}"
        return f"{whose} of {self.label}"

    def of_text(self) -> Element:
        """Return the element with its text as the attribute `TEXT_KEY`.

        So what reads attributes reads it too.
        """
        attributes = {TEXT_KEY: self.read_text()}
        path, line, column = self.path, self.line, self.column
        return Element(self.name, attributes, path=path, line=line, column=column)

    def walk(self) -> Iterator[Element]:
        """Return this element and all below it, each before its children."""
        pending: list[Element] = [self]
        while pending:
            element = pending.pop()
            yield element
            pending.extend(reversed(element.children))

    def attribute(self, name: str) -> str | None:
        """Return an attribute's value, or None without it."""
        if name not in self._asked_attributes:
            self._asked_attributes += (name,)
        return self.attributes.get(name)

    def ask(self, names: tuple[str, ...]) -> None:
        """Note that the reader knows attributes of these names."""
        asked = self._asked_attributes
        if asked:
            names = (*asked, *(name for name in names if name not in asked))
        self._asked_attributes = names

    def leaves(self, names: tuple[str, ...]) -> dict[str, Element] | None:
        """Return the children by name, None where a name comes twice.

        names: What the reader knows of them.
        """
        asked = self._asked_children
        if asked:
            names = (*asked, *(name for name in names if name not in asked))
        self._asked_children = names
        found = {child.name: child for child in self.children}
        return found if len(found) == len(self.children) else None

    def required_attribute(self, name: str, report: Report) -> str | None:
        """Return an attribute's value; without it report an error and return None."""
        value = self.attribute(name)
        if value is None:
            report.error(
                self.place,
                "missing-attribute",
                f"{self.label} has no attribute {quote(name)}",
            )
        return value

    @overload
    def numbers(
        self,
        name: str,
        count: int | None,
        report: Report,
        *,
        default: tuple[float, ...],
    ) -> tuple[float, ...]: ...

    @overload
    def numbers(
        self,
        name: str,
        count: int | None,
        report: Report,
        *,
        default: None = None,
        required: bool = False,
    ) -> tuple[float, ...] | None: ...

    def numbers(
        self,
        name: str,
        count: int | None,
        report: Report,
        *,
        default: tuple[float, ...] | None = None,
        required: bool = False,
    ) -> tuple[float, ...] | None:
        """Return the finite numbers that an attribute lists.

        count: How many there must be, or None where any number of them will do.
        default: The result without the attribute, and after an error in it.
        required: Whether it is an error that the attribute is missing.
        """
        text = self.attribute(name)
        if text is None:
            if required:
                self.required_attribute(name, report)
            return default
        # Nearly all are without fault; nothing is put into words for them.
        plain = plain_numbers(text, count)
        if plain is not None:
            return plain
        values = read_numbers(
            text,
            count,
            what=self.what(name),
            place=self.place,
            report=report,
            commas=True,
        )
        return default if values is None else values

    @overload
    def number(self, name: str, report: Report, *, default: float) -> float: ...

    @overload
    def number(
        self,
        name: str,
        report: Report,
        *,
        default: None = None,
        required: bool = False,
    ) -> float | None: ...

    def number(
        self,
        name: str,
        report: Report,
        *,
        default: float | None = None,
        required: bool = False,
    ) -> float | None:
        """Return the finite number in an attribute; arguments as in `numbers`."""
        # Nearly all are without fault, and nothing but a number.
        text = self.attributes.get(name)
        plain = None if text is None else plain_number(text)
        if plain is not None:
            if name not in self._asked_attributes:
                self._asked_attributes += (name,)
            return plain
        values = self.numbers(name, 1, report, required=required)
        return default if values is None else values[0]

    def each_number(
        self, names: Sequence[str], report: Report, *, default: float | None = None
    ) -> tuple[float, ...] | None:
        """Return the finite numbers of several attributes.

        default: Of each; without it the result is None unless all are given.
        """
        numbers = [self.number(n, report, required=default is None) for n in names]
        values = [default if number is None else number for number in numbers]
        known = tuple(number for number in values if number is not None)
        return known if len(known) == len(names) else None

    def read_text(self) -> str:
        """Return the character data directly inside, without white space around it."""
        self._asked_text = True
        return self.text.strip(WHITE_SPACE)

    def text_numbers(
        self, count: int | None, report: Report, *, commas: bool = False
    ) -> tuple[float, ...] | None:
        """Return the finite numbers of the element's text, as `numbers` does.

        commas: Whether commas between all numbers are tolerated.
        """
        text = self.read_text()
        plain = plain_numbers(text, count)
        if plain is not None:
            return plain
        return read_numbers(
            text,
            count,
            what=self.what(TEXT_KEY),
            place=self.place,
            report=report,
            commas=commas,
        )

    def children_named(self, *names: str) -> tuple[Element, ...]:
        """Return the children of one name or of several, in document order."""
        if not self._asked_children:
            self._asked_children = names
        else:
            for name in names:
                if name not in self._asked_children:
                    self._asked_children += (name,)
        if not self.children:
            return ()
        return tuple([child for child in self.children if child.name in names])

    def only_child(self, name: str, report: Report) -> Element | None:
        """Return the one child of a name, or None; report an error for a second one."""
        children = self.children_named(name)
        if len(children) > 1:
            self._report_repeated(children, report)
        return children[0] if children else None

    def first_child(
        self, name: str, report: Report, *, required: bool = False
    ) -> Element | None:
        """Return the first child of a name, or None; a second one is tolerated.

        required: Whether it is an error that there is none.
        """
        if name not in self._asked_children:
            self._asked_children += (name,)
        first: Element | None = None
        for child in self.children:
            if child.name == name:
                if first is not None:
                    extra = self.children_named(name)
                    tolerant = report.tolerating("the first one counts")
                    self._report_repeated(extra, tolerant)
                    break
                first = child
        if first is None and required:
            self._report_missing(name, report)
        return first

    def required_child(self, name: str, report: Report) -> Element | None:
        """Return the one child of a name; report an error unless there is just one."""
        child = self.only_child(name, report)
        if child is None:
            self._report_missing(name, report)
        return child

    def _report_repeated(self, found: tuple[Element, ...], report: Report) -> None:
        for extra in found[1:]:
            report.error(
                extra.place,
                "repeated-element",
                f"{self.label} has more than one <{extra.name}>",
                hint=f"Keep one; the first is at line {found[0].place.line}.",
            )

    def _report_missing(self, name: str, report: Report) -> None:
        report.error(self.place, "missing-element", f"{self.label} has no <{name}>")

    def asked(self, kind: Literal["attribute", "element"]) -> tuple[str, ...]:
        """Return the names that readers have asked for, found or not."""
        return self._asked_attributes if kind == "attribute" else self._asked_children

    @property
    def is_read(self) -> bool:
        """Return whether a reader has asked for anything inside."""
        asked = self._asked_attributes or self._asked_children or self._asked_text
        return bool(asked)

    def is_used_up(self) -> bool:
        """Return whether readers have asked for all that is there, seen quickly."""
        asked = self._asked_attributes
        for name in self.attributes:
            if name not in asked:
                return False
        asked = self._asked_children
        for child in self.children:
            if child.name not in asked:
                return False
        return self._asked_text or not self.text

    def asked_text(self) -> bool:
        """Return whether a reader has asked for the text."""
        return self._asked_text


class Leftover(msgspec.Struct, frozen=True):
    """Something in an element that no reader has asked for."""

    kind: Literal["attribute", "element", "text"]
    name: str
    place: Place


def unused(element: Element) -> Iterator[Leftover]:
    """Yield what no reader asked for: attributes, children, and text, in that order.

    Declarations of namespaces are left out, and so are children of children.
    """
    asked = element.asked("attribute")
    for name in element.attributes:
        declares = name == "xmlns" or name.startswith("xmlns:")
        if name not in asked and not declares:
            yield Leftover("attribute", name, element.place)
    asked = element.asked("element")
    for child in element.children:
        if child.name not in asked:
            yield Leftover("element", child.name, child.place)
    if element.text and not element.asked_text():
        text = element.text.strip(WHITE_SPACE)
        if text:
            yield Leftover("text", text, element.place)


def report_unused(
    root: Element,
    report: Report,
    *,
    foreign: Mapping[str, Collection[str]] | None = None,
    asides: Collection[str] = (),
    misspelt: Severity = Severity.WARNING,
) -> None:
    """Report what no reader asked for, in all elements in which one asked for anything.

    The first ones come with the known name most like each.

    foreign: What other programs put into elements of a name: attributes and children,
        which are counted as not kept. So are, if it is given, children with a prefix.
    asides: Elements in and below which a name that is not like a known one is a note.
    misspelt: Severity of an element with a name like a known one.
    """
    pending = [(root, Severity.WARNING)]
    while pending:
        element, unlike = pending.pop()
        if element.name in asides:
            unlike = Severity.NOTE
        for leftover in () if element.is_used_up() else unused(element):
            if foreign is not None and _is_foreign(leftover, foreign.get(element.name)):
                what = f"attribute {quote(leftover.name)} of <{element.name}>"
                if leftover.kind == "element":
                    what = f"<{leftover.name}>"
                report.unsupported.add(what, leftover.place, Severity.NOTE)
            else:
                _report(leftover, element, report, unlike, misspelt)
        for child in reversed(element.children):
            if child.is_read:
                pending.append((child, unlike))


def _is_foreign(leftover: Leftover, names: Collection[str] | None) -> bool:
    if leftover.kind == "text":
        return False
    has_prefix = leftover.kind == "element" and ":" in leftover.name
    return has_prefix or leftover.name in (names or ())


def _report(
    leftover: Leftover,
    element: Element,
    report: Report,
    unlike: Severity,
    misspelt: Severity,
) -> None:
    likely, severity = None, unlike
    is_early = sum(map(report.count, _DOUBTFUL)) < MOST_EXPLAINED
    if leftover.kind != "text" and is_early:
        likely = nearest(leftover.name, element.asked(leftover.kind))
    if likely:
        severity = misspelt if leftover.kind == "element" else Severity.WARNING
    inside = "in" if leftover.kind == "text" else "of"
    report.add(
        Diagnostic(
            place=leftover.place,
            severity=severity,
            code=f"unknown-{leftover.kind}",
            message=f"the {leftover.kind} {quote(leftover.name)} {inside} "
            f"{element.label} was not understood",
            hint=f"Did you mean {quote(likely)}?" if likely else "",
        )
    )
