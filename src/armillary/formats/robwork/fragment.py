"""One RobWork file to elements: also what RobWork reads though it is no XML document.

Files that are included mostly have several root elements, or only text. Comments may
hold `--`. A first line that begins with `<?` is dropped by RobWork; here a proper XML
declaration is heeded, and anything else of the kind is dropped as there.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, replace
from typing import Final
from xml.parsers import expat

from armillary.errors import FormatError
from armillary.formats.diagnostic import Diagnostic, Report
from armillary.formats.xml import Element, Limits, parse

__all__ = ["DEEPEST", "MOST_ELEMENTS", "Fragment", "parse_fragment"]

DEEPEST: Final = 64
MOST_ELEMENTS: Final = 50_000
# Reading takes far longer than parsing; no workcell has so many.
LIMITS: Final = Limits(elements=MOST_ELEMENTS, depth=DEEPEST)

WRAPPER: Final = "fragment"
_HEAD: Final = f"<{WRAPPER}>".encode()
_TAIL: Final = f"</{WRAPPER}>".encode()
_DECLARATION: Final = re.compile(rb"<\?xml\s[^>]*\?>")
_NEW_LINE: Final = re.compile(rb"[^\r\n]")
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"<\0", b"\0<")

_SEVERAL_ROOTS: Final = expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT
_NO_ROOT: Final = (
    expat.errors.XML_ERROR_SYNTAX,
    expat.errors.XML_ERROR_NO_ELEMENTS,
    "the document has no element",
)


@dataclass(frozen=True, slots=True)
class Fragment:
    """What a file holds: its root elements, and the text beside them."""

    elements: tuple[Element, ...]
    text: str = ""


def parse_fragment(data: bytes, path: str, report: Report) -> Fragment:
    """Return the root elements of a file, none, one or many.

    Raises:
        FormatError: The file is not well-formed, nor would it be inside of an element.
    """
    if not data.startswith(_UTF_16):
        data = _without_comments(_without_odd_line(data))
    try:
        return Fragment((parse(data, path, LIMITS, report=report),))
    except FormatError as error:
        words = error.diagnostics[0].message
        if words != _SEVERAL_ROOTS and words not in _NO_ROOT:
            raise
        try:
            return _wrapped(data, path, report)
        except FormatError:
            if words == _SEVERAL_ROOTS:
                raise
            raise error from None


def _wrapped(data: bytes, path: str, report: Report) -> Fragment:
    """Return what is inside of an element put around the file."""
    start = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    declaration = _DECLARATION.match(data, start)
    if declaration is not None:
        start = declaration.end()
    column = len(data[:start].decode("utf-8", errors="replace").lstrip("\ufeff")) + 1
    whole = data[:start] + _HEAD + data[start:] + _TAIL
    try:
        root = parse(whole, path, LIMITS, report=report)
    except FormatError as error:
        raise FormatError(*(_back(each, column) for each in error.args)) from None
    return Fragment(tuple(_moved(child, column) for child in root.children), root.text)


def _back(diagnostic: Diagnostic, column: int) -> Diagnostic:
    """Return a finding whose place on the first line does not count the wrapper."""
    place = diagnostic.place
    if place.line != 1 or place.column <= column:
        return diagnostic
    return replace(
        diagnostic,
        place=replace(place, column=max(column, place.column - len(_HEAD))),
    )


def _moved(element: Element, column: int) -> Element:
    """Return an element whose place on the first line does not count the wrapper.

    Elements are at most `DEEPEST` deep, so that this ends.
    """
    place = element.place
    if place.line != 1:
        return element
    return Element(
        element.name,
        element.attributes,
        children=tuple(_moved(child, column) for child in element.children),
        text=element.text,
        place=(place.path, 1, max(column, place.column - len(_HEAD))),
    )


def _without_odd_line(data: bytes) -> bytes:
    """Blank a first line that begins with `<?` but closes no instruction."""
    start = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    if not data.startswith(b"<?", start):
        return data
    end = data.find(b"\n", start)
    end = len(data) if end < 0 else end
    if b"?>" in data[start:end]:
        return data
    return data[:start] + b" " * (end - start) + data[end:]


def _without_comments(data: bytes) -> bytes:
    """Blank all comments, and keep their line ends; an open one is left alone."""
    pieces: list[bytes] = []
    done = 0
    while (begin := data.find(b"<!--", done)) >= 0:
        end = data.find(b"-->", begin + 4)
        if end < 0:
            break
        end += 3
        pieces.append(data[done:begin])
        pieces.append(_NEW_LINE.sub(b" ", data[begin:end]))
        done = end
    pieces.append(data[done:])
    return b"".join(pieces)
