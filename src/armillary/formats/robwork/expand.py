"""Include, Define and Use: many files to one tree, each element at its own place.

RobWork pastes text. Here elements are put in the place of the directives, so that each
keeps its file, line and column; a file that is not well-formed by itself, because it
closes what another one opens, cannot be included so, and is refused.

As in RobWork, what a file defines is known in that file only, and from there on. What
is defined may itself use and include, which RobWork does not follow.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Final

from armillary.errors import FormatError, quote
from armillary.formats.diagnostic import Diagnostic, Place, Report
from armillary.formats.files import SIZE_CAP, read_bytes
from armillary.formats.names import Guesses
from armillary.formats.numbers import WHITE_SPACE
from armillary.formats.paths import Roots
from armillary.formats.robwork.fragment import (
    DEEPEST,
    MOST_ELEMENTS,
    Fragment,
    parse_fragment,
)
from armillary.formats.xml import Element

__all__ = ["Follower", "expand"]

MOST_FILES: Final = 1000
DEEPEST_INCLUDE: Final = 16
MISSING: Final = "reference-missing"

DIRECTIVES: Final = ("Include", "Define", "Use")


class Follower:
    """Finds the files that a workcell and the files included in it refer to.

    Besides the roots that the caller allows, everything in the folder of the first
    file may be referred to.
    """

    def __init__(self, path: str, roots: Roots) -> None:
        self._roots = roots
        self.folder = os.path.dirname(os.path.abspath(path))
        self._home = Roots(folders=[self.folder])

    def find(self, reference: str, place: Place) -> str | Diagnostic:
        """Return the path of a plain file, or why a reference is not followed.

        reference: A path; RobWork's users on Windows write backslashes.
        place: Of the reference; relative ones start in the folder of its file.
        """
        reference = reference.replace("\\", "/")
        base = os.path.dirname(os.path.abspath(place.path))
        found = self._roots.find(reference, base=base, place=place)
        if isinstance(found, Diagnostic) and found.code == "reference-outside":
            absolute = os.path.join(base, reference)
            at_home = self._home.find(absolute, base=self.folder, place=place)
            if not isinstance(at_home, Diagnostic) or at_home.code == MISSING:
                found = at_home
        return found if isinstance(found, Diagnostic) else str(found)


@dataclass(slots=True)
class _File:
    """A file that is being read, the files that include it, and what it defines."""

    path: str
    real: str
    outer: _File | None = None
    included_at: Place | None = None
    definitions: dict[str, Element] = field(default_factory=dict[str, Element])

    def chain(self) -> list[_File]:
        """Return this file and those around it, the innermost first."""
        found: list[_File] = []
        file: _File | None = self
        while file is not None:
            found.append(file)
            file = file.outer
        return found


@dataclass(slots=True)
class _Pasted:
    """What stands in the place of some elements once all directives are followed."""

    elements: list[Element] = field(default_factory=list[Element])
    text: str = ""


class _TooMuch(Exception):
    """The tree has grown beyond what is read."""


def expand(data: bytes, path: str, follower: Follower, report: Report) -> Fragment:
    """Return the root elements of a file with all directives followed.

    Raises:
        FormatError: The first file is not well-formed.
    """
    fragment = parse_fragment(data, path, report)
    expansion = _Expansion(follower, report, len(data))
    file = _File(path, os.path.realpath(path))
    try:
        pasted = expansion.paste(fragment.elements, fragment.text, file, 0)
    except _TooMuch as refusal:
        code, place, message = refusal.args
        report.error(place, code, message)
        report.raise_if_errors()
        raise
    return Fragment(tuple(pasted.elements), pasted.text)


class _Expansion:
    """Follows directives, and counts what comes of it."""

    def __init__(self, follower: Follower, report: Report, size: int) -> None:
        self._follower = follower
        self._report = report
        self._guesses = Guesses()
        self._elements = 0
        self._files = 0
        self._size = size
        self._using: list[Element] = []

    def paste(
        self, elements: tuple[Element, ...], text: str, file: _File, depth: int
    ) -> _Pasted:
        """Return elements with what their directives stand for.

        It calls itself for each level of the tree, of which there are at most
        `DEEPEST`.
        """
        pasted = _Pasted(text=text)
        for element in elements:
            self._count(element, depth)
            match element.name:
                case "Define":
                    self._define(element, file)
                case "Use":
                    self._add(pasted, self._use(element, file, depth), element)
                case "Include":
                    self._add(pasted, self._include(element, file, depth), element)
                case _:
                    pasted.elements.append(self._copy(element, file, depth))
        return pasted

    def _count(self, element: Element, depth: int) -> None:
        self._elements += 1
        if self._elements > MOST_ELEMENTS:
            message = f"more than {MOST_ELEMENTS} elements once all is put together"
            raise _TooMuch("xml-limit", element.place, message)
        if depth > DEEPEST:
            message = f"elements nested more than {DEEPEST} deep"
            raise _TooMuch("xml-limit", element.place, message)

    def _copy(self, element: Element, file: _File, depth: int) -> Element:
        inside = self.paste(element.children, element.text, file, depth + 1)
        place = element.place
        return Element(
            element.name,
            element.attributes,
            children=tuple(inside.elements),
            text=inside.text,
            place=(place.path, place.line, place.column),
        )

    def _add(self, pasted: _Pasted, more: _Pasted, directive: Element) -> None:
        pasted.elements.extend(more.elements)
        if not more.text.strip(WHITE_SPACE):
            return
        if pasted.text.strip(WHITE_SPACE):
            self._report.error(
                directive.place,
                "mixed-text",
                f"{directive.label} brings text where text stands already, and their "
                "order would be lost",
                hint="Write the text out.",
            )
        pasted.text = more.text

    # Define and Use

    def _define(self, element: Element, file: _File) -> None:
        name = element.required_attribute("id", self._report)
        if name is None:
            return
        taken = file.definitions.get(name)
        if taken is not None and taken.place != element.place:
            self._report.warning(
                element.place,
                "repeated-define",
                f"{quote(name)} is defined already, at line {taken.place.line}; from "
                "here on the new definition counts",
            )
        file.definitions[name] = element

    def _use(self, element: Element, file: _File, depth: int) -> _Pasted:
        name = element.required_attribute("id", self._report)
        if name is None:
            return _Pasted()
        definition = file.definitions.get(name)
        if definition is None:
            self._report.error(
                element.place,
                "unknown-define",
                f"nothing is defined as {quote(name)} up to here, in this file",
                hint=self._guesses.hint(name, file.definitions)
                or "A definition is known in its own file only.",
            )
            return _Pasted()
        if definition in self._using:
            self._report.error(
                element.place,
                "define-cycle",
                f"the definition of {quote(name)} at line {definition.place.line} uses "
                "itself",
            )
            return _Pasted()
        self._using.append(definition)
        pasted = self.paste(definition.children, definition.text, file, depth + 1)
        self._using.pop()
        return pasted

    # Include

    def _include(self, element: Element, file: _File, depth: int) -> _Pasted:
        reference = element.required_attribute("file", self._report)
        if reference is None:
            return _Pasted()
        inner = self._open(reference, element.place, file)
        if inner is None:
            return _Pasted()
        try:
            data = read_bytes(inner.real, SIZE_CAP - self._size)
            self._size += len(data)
            fragment = parse_fragment(data, inner.path, self._report)
        except FormatError as error:
            for found in error.diagnostics:
                self._report.add(found)
            self._tell_chain(inner)
            return _Pasted()
        return self.paste(fragment.elements, fragment.text, inner, depth + 1)

    def _open(self, reference: str, place: Place, file: _File) -> _File | None:
        """Return the file that is included, or tell why it cannot be."""
        found = self._follower.find(reference, place)
        if isinstance(found, Diagnostic):
            self._report.add(found)
            self._tell_chain(file)
            return None
        shown = os.path.normpath(
            os.path.join(os.path.dirname(file.path), reference.replace("\\", "/"))
        )
        path = shown if os.path.realpath(shown) == found else found
        inner = _File(path, found, file, place)
        chain = inner.chain()
        if any(outer.real == found for outer in chain[1:]):
            names = " -> ".join(os.path.basename(each.path) for each in chain[::-1])
            self._report.error(
                place, "include-cycle", f"{quote(reference)} includes itself: {names}"
            )
            self._tell_chain(file)
            return None
        self._files += 1
        if len(chain) > DEEPEST_INCLUDE:
            message = f"files included more than {DEEPEST_INCLUDE} deep"
            raise _TooMuch("include-limit", place, message)
        if self._files > MOST_FILES:
            message = f"more than {MOST_FILES} files are included"
            raise _TooMuch("include-limit", place, message)
        return inner

    def _tell_chain(self, file: _File) -> None:
        """Tell from where a faulty file is included."""
        for each in file.chain():
            if each.included_at is not None:
                name = os.path.basename(each.path)
                self._report.note(
                    each.included_at, "included-here", f"{quote(name)} is included here"
                )
