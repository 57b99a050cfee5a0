"""RobWork files to elements: Include, Define and Use, and files that are not quite XML.

RobWork pastes text. Here the directives are replaced by elements, each of which keeps
its file, line and column. An included file may have several root elements or only text,
but must be well-formed by itself: one that closes what another opens is refused. As in
RobWork, a definition is known in its own file only, from there on. It may itself use
and include, which RobWork does not support.
"""

from __future__ import annotations

import codecs
import os
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

from armillary.errors import FormatError, quote
from armillary.formats.diagnostic import Diagnostic, Place, Report
from armillary.formats.files import read_bytes
from armillary.formats.numbers import WHITE_SPACE
from armillary.formats.paths import Roots
from armillary.formats.xml import Element, parse
from armillary.formats.xml.declaration import UTF_16_STARTS
from armillary.formats.xml.repair import with_blank_comments
from armillary.limits import (
    FILE_SIZE,
    ROBWORK_DEPTH,
    ROBWORK_ELEMENTS,
    ROBWORK_FILES,
    ROBWORK_INCLUDE_DEPTH,
    ROBWORK_MESHES,
    Limit,
)

__all__ = ["FileFinder", "expand", "parse_fragment"]

MISSING: Final = "reference-missing"
MESH_SUFFIXES: Final = (
    *("", ".stl", ".stla", ".stlb", ".obj"),
    *(".3ds", ".ac", ".ac3d", ".tri", ".dae"),
)
"""What RobWork adds to a file name without a suffix, some of it in another order."""

_SEVERAL_ROOTS: Final = expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT
_NO_ROOT: Final = (
    expat.errors.XML_ERROR_SYNTAX,
    expat.errors.XML_ERROR_NO_ELEMENTS,
    "the document has no element",
)


# One file


def parse_fragment(data: bytes, path: str, report: Report) -> Element:
    """Return an element around the root elements of a file and the text beside them.

    Raises:
        FormatError: The file is not well-formed, nor is it inside a root element.
    """
    if not any(map(data.startswith, UTF_16_STARTS.values())):
        # In RobWork a comment may contain `--`.
        data = with_blank_comments(_without_odd_line(data), [])

    def parsed(*, several: bool = False) -> Element:
        return parse(
            data,
            path,
            elements=ROBWORK_ELEMENTS,
            depth=ROBWORK_DEPTH,
            several=several,
            report=report,
        )

    try:
        return Element("", children=(parsed(),))
    except FormatError as error:
        words = error.diagnostics[0].message
        if words != _SEVERAL_ROOTS and words not in _NO_ROOT:
            raise
        try:
            return parsed(several=True)
        except FormatError:
            if words == _SEVERAL_ROOTS:
                raise
            raise error from None


def _without_odd_line(data: bytes) -> bytes:
    """Blank a first line that begins with `<?` but closes no instruction."""
    start = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    end = data.find(b"\n", start)
    end = len(data) if end < 0 else end
    if not data.startswith(b"<?", start) or b"?>" in data[start:end]:
        return data
    return data[:start] + b" " * (end - start) + data[end:]


# The files that it refers to


class FileFinder:
    """Finds the files that a workcell and the files included in it refer to.

    Besides the roots that the caller allows, everything in the folder of the first
    file may be referred to.
    """

    def __init__(self, path: str, roots: Roots) -> None:
        self._roots = roots
        self._folder = os.path.dirname(os.path.abspath(path))
        self._home = Roots(folders=[self._folder])
        self._meshes: dict[tuple[str, str], str] = {}
        self._missing: list[tuple[Place, str]] = []

    def find(self, reference: str, place: Place) -> str | Diagnostic:
        """Return the path of a plain file, or why a reference cannot be followed.

        reference: A path; on Windows it is often written with backslashes.
        place: Location of the reference; relative paths start in the folder of its
            file.
        """
        reference = reference.replace("\\", "/")
        base = _folder_of(place)
        path = self._roots.find(reference, base=base, place=place)
        if isinstance(path, Diagnostic) and path.code == "reference-outside":
            absolute = os.path.join(base, reference)
            at_home = self._home.find(absolute, base=self._folder, place=place)
            if not isinstance(at_home, Diagnostic) or at_home.code == MISSING:
                path = at_home
        return path if isinstance(path, Diagnostic) else str(path)

    def shown(self, reference: str, outer: str, found: str) -> str:
        """Return the path of a file that was found, as messages show it.

        outer: The path of the file that refers to it.
        """
        reference = reference.replace("\\", "/")
        path = os.path.normpath(os.path.join(os.path.dirname(outer), reference))
        return path if os.path.realpath(path) == found else found

    def from_first(self, reference: str, place: Place) -> str:
        """Return a reference as the first file would write it, found or not."""
        path = os.path.join(_folder_of(place), reference.replace("\\", "/"))
        return os.path.relpath(path, self._folder).replace(os.sep, "/")

    # Meshes, which are looked up, but not opened

    def mesh(self, reference: str, place: Place, report: Report) -> str:
        """Return the path of a mesh from the folder of the first file.

        The suffix is added if a file with one of those that RobWork tries exists.
        """
        reference = reference.replace("\\", "/")
        key = (_folder_of(place), reference)
        if key not in self._meshes:
            if len(self._meshes) < ROBWORK_MESHES.most:
                reference += self._suffix(reference, place, report)
            is_relative = not os.path.isabs(reference)
            path = self.from_first(reference, place) if is_relative else reference
            self._meshes[key] = path
        return self._meshes[key]

    def _suffix(self, reference: str, place: Place, report: Report) -> str:
        """Return what the name of a mesh lacks; report a missing or forbidden file."""
        path = os.path.join(_folder_of(place), reference)
        for suffix in MESH_SUFFIXES:
            if _is_file(path + suffix):
                file = self.find(reference + suffix, place)
                if isinstance(file, Diagnostic):
                    report.warning(place, file.code, file.message, hint=file.hint)
                return suffix
        self._missing.append((place, reference))
        return ""

    def report_missing(self, report: Report) -> None:
        """Report how many meshes are missing, in one warning."""
        if not self._missing:
            return
        place, first = self._missing[0]
        others = f" and {len(self._missing) - 1} more" if self._missing[1:] else ""
        report.warning(
            place,
            "missing-mesh",
            f"there is no file for the geometry {quote(first)}{others}, of "
            f"{len(self._meshes)} in all; shapes keep the names",
            hint="Poses need none of them; drawing and collisions do.",
        )


def _folder_of(place: Place) -> str:
    """Return the folder of the file that refers to another."""
    return os.path.dirname(os.path.abspath(place.path))


def _is_file(path: str) -> bool:
    try:
        return os.path.isfile(path)
    except ValueError:
        return False


# Directives


@dataclass(slots=True)
class _File:
    """A file that is being read, the file that includes it, and its definitions."""

    path: str
    real: str
    outer: _File | None = None
    included_at: Place | None = None
    definitions: dict[str, Element] = field(default_factory=dict[str, Element])

    def chain(self) -> list[_File]:
        """Return this file and those around it, the innermost first."""
        return [self, *(self.outer.chain() if self.outer else ())]


def expand(data: bytes, path: str, finder: FileFinder, report: Report) -> Element:
    """Return an element around the root elements of a file, all directives followed.

    Raises:
        FormatError: The first file is not well-formed, or the result is too large.
    """
    fragment = parse_fragment(data, path, report)
    file = _File(path, os.path.realpath(path))
    return _Expansion(finder, report, len(data)).expand(fragment, file, 0)


class _Expansion:
    """Follows directives, and counts what that adds."""

    def __init__(self, finder: FileFinder, report: Report, size: int) -> None:
        self._finder = finder
        self._report = report
        self._elements = 0
        self._files = 0
        self._size = size
        self._using: list[Element] = []

    def expand(self, outer: Element, file: _File, depth: int) -> Element:
        """Return an element with the directives inside of it replaced.

        It calls itself for each level of the tree, of which there are at most
        `ROBWORK_DEPTH`.
        """
        follow = {"Use": self._use, "Include": self._include}
        children: list[Element] = []
        text = outer.text
        for element in outer.children:
            self._elements += 1
            self._bound(ROBWORK_ELEMENTS, self._elements, element.place)
            self._bound(ROBWORK_DEPTH, depth, element.place)
            if element.name == "Define":
                self._define(element, file)
            elif element.name not in follow:
                children.append(self.expand(element, file, depth + 1))
            elif (added := follow[element.name](element, file, depth)) is not None:
                children += added.children
                if added.text.strip(WHITE_SPACE):
                    if text.strip(WHITE_SPACE):
                        self._report.error(
                            element.place,
                            "mixed-text",
                            f"{element.label} adds text to an element that has text "
                            "already, and their order would be lost",
                            hint="Write the text out.",
                        )
                    text = added.text
        return Element(
            outer.name,
            outer.attributes,
            children=tuple(children),
            text=text,
            path=outer.path,
            line=outer.line,
            column=outer.column,
        )

    def _bound(self, limit: Limit, count: int, place: Place) -> None:
        """Raise all errors, with that of a file which is too large, if it is."""
        budget = self._report.budget
        if count > budget.most(limit):
            self._report.add(budget.excess(limit, place).diagnostics[0])
            self._report.raise_if_errors()

    def _define(self, element: Element, file: _File) -> None:
        name = element.required_attribute("id", self._report)
        if name is None:
            return
        first = file.definitions.get(name)
        if first is not None and first.place != element.place:
            self._report.warning(
                element.place,
                "repeated-define",
                f"{quote(name)} is defined already, at line {first.place.line}; from "
                "here on the new definition counts",
            )
        file.definitions[name] = element

    def _use(self, element: Element, file: _File, depth: int) -> Element | None:
        name = element.required_attribute("id", self._report)
        if name is None:
            return None
        definition = file.definitions.get(name)
        if definition is None:
            self._report.error(
                element.place,
                "unknown-define",
                f"nothing is defined as {quote(name)} up to here, in this file",
                hint=self._report.hint(name, file.definitions)
                or "A definition is known in its own file only.",
            )
            return None
        if definition in self._using:
            self._report.error(
                element.place,
                "define-cycle",
                f"the definition of {quote(name)} at line {definition.place.line} uses "
                "itself",
            )
            return None
        self._using.append(definition)
        expanded = self.expand(definition, file, depth + 1)
        self._using.pop()
        return expanded

    def _include(self, element: Element, file: _File, depth: int) -> Element | None:
        reference = element.required_attribute("file", self._report)
        if reference is None:
            return None
        place = element.place
        target = self._finder.find(reference, place)
        if isinstance(target, Diagnostic):
            return self._refuse(file, target)
        path = self._finder.shown(reference, file.path, target)
        inner = _File(path, target, file, place)
        chain = inner.chain()
        if any(outer.real == target for outer in chain[1:]):
            names = " -> ".join(os.path.basename(each.path) for each in chain[::-1])
            message = f"{quote(reference)} includes itself: {names}"
            cycle = Diagnostic(place=place, code="include-cycle", message=message)
            return self._refuse(file, cycle)
        self._files += 1
        self._bound(ROBWORK_INCLUDE_DEPTH, len(chain), place)
        self._bound(ROBWORK_FILES, self._files, place)
        try:
            data = read_bytes(target, FILE_SIZE.most - self._size)
            self._size += len(data)
            fragment = parse_fragment(data, path, self._report)
        except FormatError as error:
            return self._refuse(inner, *error.diagnostics)
        return self.expand(fragment, inner, depth + 1)

    def _refuse(self, file: _File, *found: Diagnostic) -> None:
        """Report why a file cannot be included, and where the one around it is."""
        for diagnostic in found:
            self._report.add(diagnostic)
        for each in file.chain():
            if each.included_at is not None:
                name = os.path.basename(each.path)
                self._report.note(
                    each.included_at, "included-here", f"{quote(name)} is included here"
                )
