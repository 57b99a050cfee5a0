"""Bytes to a tree of elements, in one bounded, linear pass of expat."""

from __future__ import annotations

import codecs
import re
from typing import Any, Final, NoReturn
from xml.parsers import expat

from armillary.errors import FormatError, quote
from armillary.file_start import BYTE_ORDER_MARKS
from armillary.forks import IMPORT_LOCK
from armillary.formats.diagnostic import Budget, Place, Report, Severity, fault
from armillary.formats.numbers import WHITE_SPACE
from armillary.formats.xml.declaration import (
    DECLARATION,
    ENCODINGS,
    UTF_16_STARTS,
    VERSIONS,
)
from armillary.formats.xml.element import NO_ATTRIBUTES, Element
from armillary.limits import (
    MIB,
    XML_ATTRIBUTES,
    XML_DEPTH,
    XML_ELEMENTS,
    XML_INSTRUCTIONS,
    XML_MARKUP,
    XML_SIZE,
    XML_VALUE,
    Limit,
)

__all__ = ["parse"]


# Errors that `repaired` may be able to repair.
_REPAIRED: Final = ("xml-syntax", "xml-declaration", "xml-encoding")
# A URI cannot contain a newline, but real ones contain spaces.
_SEPARATOR: Final = "\n"
_STRAY: Final = re.compile(rb"(?:</[\w:.-]{1,80}\s{0,80}>\s*)+")
# Put around a document with several roots, behind its declaration.
_HEAD, _TAIL = b"<fragment>", b"</fragment>"


def parse(
    data: bytes,
    path: str,
    *,
    budget: Budget | None = None,
    elements: Limit = XML_ELEMENTS,
    depth: Limit = XML_DEPTH,
    namespaces: bool = False,
    several: bool = False,
    report: Report | None = None,
) -> Element:
    """Return the root element of an XML document.

    Only plain documents are read: no DOCTYPE, so no entities except the five of XML
    itself. Comments are dropped.

    data: The document, in UTF-8, UTF-16, ISO-8859-1, US-ASCII or windows-1252.
    path: What to call it in messages.
    budget: What it may cost; by default that of the report.
    elements, depth: The limits of how many elements there may be, and how deep.
    namespaces: Whether prefixes are resolved and must be declared. If not, as for the
        many files that use a prefix without declaring it, names stay as written.
    several: Whether the document may have any number of root elements, and text beside
        them; the result is then an element around these.
    report: Receives notes on what had no effect. Unless it is strict, documents that
        are almost XML are read too: with `--` in a comment, a lone `&`, a declaration
        that is wrong or late, or bytes of another encoding.

    Raises FormatError, with line and column, for everything else.
    """
    allowed = budget or (Budget() if report is None else report.budget)

    def parsed(document: bytes) -> Element:
        bounds = allowed, elements, depth
        pass_ = _Parse(document, path, *bounds, namespaces=namespaces, report=report)
        if several:
            pass_.wrap()
        try:
            return pass_.run()
        finally:
            # The parser refers to its handlers, and they refer to the parser.
            del pass_.expat

    try:
        return parsed(data)
    except FormatError as error:
        is_repaired = error.diagnostics[0].code in _REPAIRED
        if report is None or report.is_strict or not is_repaired:
            raise
        with IMPORT_LOCK:
            from armillary.formats.xml.repair import repaired  # few need it

        meant, oddities = repaired(data)
        if not oddities:
            raise
    root = parsed(meant)
    for odd in oddities:
        tolerating = report.tolerating(odd.consequence, odd.severity)
        tolerating.error(Place(path, odd.line), odd.code, odd.message)
    return root


class _Parse:
    """One parse: expat calls `start`, `end`, `characters`; the open elements wait."""

    def __init__(
        self,
        data: bytes,
        path: str,
        budget: Budget,
        elements: Limit,
        depth: Limit,
        *,
        namespaces: bool,
        report: Report | None,
    ) -> None:
        self.data = data
        self.path = path
        self.budget = budget
        self.elements, self.depth = elements, depth
        # Looked up once: there are many elements.
        self.most_elements, self.most_deep = budget.most(elements), budget.most(depth)
        self.most_attributes = budget.most(XML_ATTRIBUTES)
        self.longest_value = budget.most(XML_VALUE)
        # No value of a document is longer than that.
        self.has_long_values = len(data) > self.longest_value
        self.report = report
        self.wrapped_at = 0
        # Whether expat counts more characters in the first line than there are.
        self.is_shifted = data.startswith(BYTE_ORDER_MARKS)
        self.root: Element | None = None
        self.count = 0
        self.open: list[Element] = []
        self.texts: dict[int, list[str]] = {}
        self.instructions: list[tuple[Place, str]] = []
        self.expat = expat.ParserCreate(
            namespace_separator=_SEPARATOR if namespaces else None
        )
        self.expat.buffer_text = True
        self.expat.buffer_size = 1 << 16
        # Newer versions put off scanning unfinished markup again, which would blur how
        # long it is; `run` bounds that work by itself.
        undefer = getattr(self.expat, "SetReparseDeferralEnabled", None)
        if undefer is not None:
            undefer(False)
        self.expat.StartElementHandler = (
            self.start_resolved if namespaces else self.start
        )
        self.expat.EndElementHandler = self.end
        self.expat.CharacterDataHandler = self.characters
        self.expat.XmlDeclHandler = self.declaration
        self.expat.StartDoctypeDeclHandler = self.doctype
        self.expat.ProcessingInstructionHandler = self.instruction

    def wrap(self) -> None:
        """Put an element around the document, which no location counts."""
        data = self.data
        start = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
        declaration = DECLARATION.match(data, start)
        if declaration is not None:
            start = declaration.end()
        before = data[:start].decode("utf-8", errors="replace").lstrip("\ufeff")
        self.wrapped_at = len(before) + 1
        self.is_shifted = True
        self.data = data[:start] + _HEAD + data[start:] + _TAIL

    def run(self) -> Element:
        """Feed the document in pieces, and bound the length of markup."""
        size = len(self.data)
        self.budget.check(XML_SIZE, size, Place(self.path, *self.location()))
        self.check_utf_16()
        view = memoryview(self.data)
        try:
            for begin in range(0, size, MIB):
                fed = min(begin + MIB, size)
                self.expat.Parse(view[begin:fed], False)
                # Expat scans unfinished markup again from its start for each piece.
                # Without a bound a long attribute would take quadratic time.
                if fed - self.expat.CurrentByteIndex > self.budget.most(XML_MARKUP):
                    self.exceed(XML_MARKUP)
            self.expat.Parse(b"", True)
        except expat.ExpatError as error:
            if not self.ends_in_stray_tags():
                self.explain(error)
        assert self.root is not None, "expat accepts no document without a root"
        for place, target in self.instructions:
            if self.report is not None:
                self.report.note(
                    place,
                    "xml-instruction",
                    f"the processing instruction {quote(target)} has no effect",
                )
        return self.root

    def ends_in_stray_tags(self) -> bool:
        """Return whether nothing but end tags comes behind the document; report it."""
        is_behind = self.root is not None and not self.open
        if not is_behind or self.report is None or self.report.is_strict:
            return False
        index = self.expat.CurrentByteIndex
        start = max(self.data.rfind(b"<", 0, index + 1), 0)
        if _STRAY.fullmatch(self.data, start) is None:
            return False
        message = "an end tag comes behind the end of the document"
        place = Place(self.path, *self.location())
        tolerating = self.report.tolerating("it is left out", Severity.NOTE)
        tolerating.error(place, "xml-syntax", message)
        return True

    def check_utf_16(self) -> None:
        """Refuse broken UTF-16, some of which expat would read as other characters."""
        for encoding, starts in UTF_16_STARTS.items():
            if self.data.startswith(starts):
                try:
                    self.data.decode(encoding)
                except UnicodeDecodeError as error:
                    text = self.data[: error.start].decode(encoding)
                    line = text.count("\n") + 1
                    self.refuse(
                        "xml-encoding",
                        f"broken UTF-16 in line {line}: {error.reason}",
                        hint="Save the file again as UTF-8.",
                    )

    def start(self, name: str, attributes: dict[str, str], namespace: str = "") -> None:
        """Open an element, if that keeps within the limits."""
        self.count += 1
        around = self.open
        if (
            self.count > self.most_elements
            or len(around) >= self.most_deep
            or len(attributes) > self.most_attributes
            or self.has_long_values
        ):
            self.check_limits(attributes)
        expat = self.expat
        line, column = expat.CurrentLineNumber, expat.CurrentColumnNumber + 1
        if line == 1 and self.is_shifted:
            line, column = self.location()
        given = attributes or NO_ATTRIBUTES
        element = Element(name, given, (), "", namespace, self.path, line, column)
        if around:
            outer: Any = around[-1]
            if outer.children:
                outer.children.append(element)
            else:
                outer.children = [element]  # a tuple when it ends
        around.append(element)

    def check_limits(self, attributes: dict[str, str]) -> None:
        """Refuse an element beyond the limits."""
        if self.count > self.most_elements:
            self.exceed(self.elements)
        if len(self.open) >= self.most_deep:
            self.exceed(self.depth)
        if len(attributes) > self.most_attributes:
            self.exceed(XML_ATTRIBUTES, len(attributes))
        for value in attributes.values():
            if len(value) > self.longest_value:
                self.exceed(XML_VALUE, len(value))

    def start_resolved(self, name: str, attributes: dict[str, str]) -> None:
        """Open an element whose names come as `uri, separator, local name`."""
        resolved = {
            f"{{{uri}}}{local}" if uri else local: value
            for key, value in attributes.items()
            for uri, _, local in [key.rpartition(_SEPARATOR)]
        }
        uri, _, local = name.rpartition(_SEPARATOR)
        self.start(local, resolved, uri)

    def characters(self, text: str) -> None:
        """Add character data to the innermost open element."""
        self.texts.setdefault(len(self.open), []).append(text)

    def end(self, _name: str) -> None:
        """Close the innermost element."""
        around, texts = self.open, self.texts
        if texts and len(around) in texts:
            text = "".join(texts.pop(len(around)))
            closed = around[-1]
            if not closed.children or text.strip(WHITE_SPACE):
                closed.text = text
        closed = around.pop()
        if closed.children:
            closed.children = tuple(closed.children)
        if not around:
            self.root = closed

    def declaration(self, version: str, encoding: str | None, _standalone: int) -> None:
        """Refuse versions, and encodings in which expat or Python would guess."""
        if version not in VERSIONS:
            self.refuse(
                "xml-declaration",
                f"there is no XML version {quote(version)}",
                hint='Write version="1.0".',
            )
        if encoding is not None and encoding.lower() not in ENCODINGS:
            self.refuse(
                "xml-encoding",
                f"the encoding {quote(encoding)} is not read",
                hint='Save the file as UTF-8 and write encoding="UTF-8".',
            )

    def doctype(self, name: str, *_: object) -> None:
        """Refuse document types, before anything they declare is looked at."""
        self.refuse(
            "xml-doctype",
            f"the document type {quote(name)} is not read, nor any entity it declares",
            hint="Remove <!DOCTYPE ...> and write out the entities.",
        )

    def instruction(self, target: str, _data: str) -> None:
        """Remember a processing instruction, which has no effect."""
        if len(self.instructions) < self.budget.most(XML_INSTRUCTIONS):
            self.instructions.append((Place(self.path, *self.location()), target))

    def location(self) -> tuple[int, int]:
        """Return the line and column that expat has reached, counted from 1."""
        line = self.expat.CurrentLineNumber
        column = self.expat.CurrentColumnNumber + 1
        if line == 1 and self.data.startswith(BYTE_ORDER_MARKS):
            column = max(1, column - 1)
        if line == 1 and 0 < self.wrapped_at < column:
            column = max(self.wrapped_at, column - len(_HEAD))
        return line, column

    def refuse(self, code: str, message: str, *, hint: str = "") -> NoReturn:
        raise self.error(code, message, hint)

    def exceed(self, limit: Limit, count: int | None = None) -> NoReturn:
        """Refuse what is beyond a limit."""
        place = Place(self.path, *self.location())
        raise self.budget.excess(limit, place, count)

    def explain(self, error: expat.ExpatError) -> NoReturn:
        """Raise expat's error with more than its own words."""
        message, hint = self.explanation(error.code)
        raise self.error("xml-syntax", message, hint) from error

    def error(self, code: str, message: str, hint: str = "") -> FormatError:
        return fault(Place(self.path, *self.location()), code, message, hint=hint)

    def explanation(self, code: int) -> tuple[str, str]:
        """Return what is wrong with the document, and how to fix it if known."""
        words = expat.ErrorString(code) or "not well-formed"
        if words in _AT_THE_END and self.open:
            return f"the document ends inside {_opened(self.open[-1])}", ""
        if words == _errors.XML_ERROR_NO_ELEMENTS:
            return "the document has no element", ""
        if words == _errors.XML_ERROR_TAG_MISMATCH:
            return f"mismatched tag; {_opened(self.open[-1])} is still open", ""
        if words == _errors.XML_ERROR_INVALID_TOKEN:
            return f"{words}{self.odd_byte()}", ""
        return words, _FIXES.get(words, "")

    def odd_byte(self) -> str:
        """Return the byte at which expat stopped, if text editors do not show it."""
        index = self.expat.CurrentByteIndex
        byte = self.data[index : index + 1]
        if byte >= b"\x80":
            return f": the byte 0x{byte.hex()} does not belong to the encoding"
        if byte and byte < b"\x20":
            return f": the byte 0x{byte.hex()} is not allowed"
        return ""


def _opened(element: Element) -> str:
    """Return an element whose end has not been seen as messages show it."""
    return f"<{quote(element.name)[1:-1]}> of line {element.line}"


_errors: Final = expat.errors
_AT_THE_END: Final = frozenset(
    (
        _errors.XML_ERROR_NO_ELEMENTS,
        _errors.XML_ERROR_UNCLOSED_TOKEN,
        _errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
        _errors.XML_ERROR_PARTIAL_CHAR,
    )
)
_FIXES: Final[dict[str, str]] = {
    _errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT: "A document has one root element.",
    _errors.XML_ERROR_UNDEFINED_ENTITY: (
        "Only &lt; &gt; &amp; &quot; &apos; and numbers such as &#181; can be used."
    ),
    _errors.XML_ERROR_MISPLACED_XML_PI: (
        "<?xml ...?> must be the very first thing in the file, and only once."
    ),
    _errors.XML_ERROR_INCORRECT_ENCODING: (
        "Declare the encoding in which the file is saved; mostly that is UTF-8."
    ),
    _errors.XML_ERROR_UNBOUND_PREFIX: 'Declare the prefix: xmlns:prefix="...".',
}
