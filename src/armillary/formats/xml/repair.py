"""Repair of documents that are almost XML, where their meaning is clear."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from armillary.errors import quote
from armillary.formats.diagnostic import Severity
from armillary.formats.xml.declaration import (
    DECLARATION,
    ENCODINGS,
    UTF_16_STARTS,
    VERSIONS,
)

__all__ = [
    "Oddity",
    "repaired",
    "with_blank_comments",
]

_VERSION: Final = re.compile(rb"\bversion\s*=\s*[\"']([^\"']*)[\"']")
_ENCODING: Final = re.compile(rb"\bencoding\s*=\s*[\"']([^\"']*)[\"']")
_PARTS: Final = re.compile(rb"<!--|<!\[CDATA\[")
_ENDS: Final = {b"<!--": b"-->", b"<![CDATA[": b"]]>"}
_LONE_AMPERSAND: Final = re.compile(rb"&(?!(?:#[0-9]+|#x[0-9A-Fa-f]+|[A-Za-z]\w*);)")
_INK: Final = re.compile(rb"[^\r\n]")
# Python's names of encodings in which the markup of XML has its ASCII codes.
_CODECS: Final = re.compile(
    r"utf-8|ascii|iso8859-\d+|cp125\d|koi8-[ru]|gb2312|gbk|gb18030|big5|shift_jis|"
    r"euc_(jp|kr)"
)


class Oddity(NamedTuple):
    """A reason why a document is not XML.

    Attributes:
        line: The line of it, or of the first of its kind.
        code: Id of the diagnostic.
        message: A clause.
        consequence: How it is read.
        severity: A warning if names may be read differently.
    """

    line: int
    code: str
    message: str
    consequence: str
    severity: Severity = Severity.NOTE


def repaired(data: bytes) -> tuple[bytes, list[Oddity]]:
    """Return the XML that a document means, in UTF-8, and what was odd about it.

    Lines keep their numbers. Takes linear time. What is not clear stays as it is.
    """
    if any(map(data.startswith, UTF_16_STARTS.values())):
        return data, []
    oddities: list[Oddity] = []
    data = data.removeprefix(codecs.BOM_UTF8)
    decoded = _decoded(data, oddities)
    if decoded is None:
        return data, []
    data = _without_declaration(decoded, oddities)
    data = with_blank_comments(data, oddities)
    data = _with_ampersands(data, oddities)
    without = data.rstrip(b"\0")
    if len(without) < len(data):
        message = "the document ends in zero bytes"
        line = _line(data, len(without))
        oddities.append(Oddity(line, "xml-syntax", message, "they are left out"))
    return without, oddities


def _line(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1


def _blank(data: bytes) -> bytes:
    """Return bytes with all but their line ends made blank."""
    return _INK.sub(b" ", data)


def _declaration(data: bytes) -> re.Match[bytes] | None:
    """Return the XML declaration, before which there is white space and comments."""
    match = DECLARATION.search(data)
    if match is None:
        return None
    before = 0
    while data.startswith(b"<!--", before := _after_blanks(data, before)):
        end = data.find(b"-->", before + 4)
        if end < 0:
            return None
        before = end + 3
    return match if before == match.start() else None


def _after_blanks(data: bytes, start: int) -> int:
    while start < len(data) and data[start] in b" \t\r\n":
        start += 1
    return start


def _decoded(data: bytes, found: list[Oddity]) -> bytes | None:
    """Return a document in UTF-8, None if its encoding is not known."""
    declaration = _declaration(data)
    named = None if declaration is None else _ENCODING.search(declaration[0])
    name = "utf-8" if named is None else named[1].decode("ascii", "replace")
    try:
        encoding = codecs.lookup(name).name
    except (LookupError, ValueError):  # a ValueError if there is a zero byte in it
        return None
    if not _CODECS.fullmatch(encoding):
        return None
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        if encoding != "utf-8":
            return None
        found.append(
            Oddity(
                _line(data, error.start),
                "xml-encoding",
                f"the byte 0x{data[error.start]:02x} does not belong to UTF-8",
                "the document is read as ISO-8859-1",
                Severity.WARNING,
            )
        )
        return data.decode("latin-1").encode()
    if name.lower() not in ENCODINGS:
        message = f"the encoding {quote(name)} is not one of XML's"
        found.append(Oddity(1, "xml-encoding", message, f"it is read as {encoding}"))
    return text.encode()


def _without_declaration(data: bytes, found: list[Oddity]) -> bytes:
    """Return a document with its declaration made blank."""
    declaration = _declaration(data)
    if declaration is None:
        return data
    start, end = declaration.span()
    line = _line(data, start)
    version = _VERSION.search(declaration[0])
    shown = "" if version is None else version[1].decode("ascii", "replace")
    if shown not in VERSIONS:
        message = f"there is no XML version {quote(shown)}"
        found.append(Oddity(line, "xml-declaration", message, "it is read as 1.0"))
    if start:
        message = "<?xml ...?> is not the very first thing in the file"
        found.append(Oddity(line, "xml-declaration", message, "it is left out"))
    return data[:start] + _blank(declaration[0]) + data[end:]


def with_blank_comments(data: bytes, found: list[Oddity]) -> bytes:
    """Return a document in which no comment has two hyphens.

    found: Receives the first such comment.
    """
    pieces: list[bytes] = []
    done = 0
    for start, end in _comments(data):
        inside = data[start:end]
        if b"--" in inside or inside.endswith(b"-"):
            if not pieces:
                message = "a comment has two hyphens in a row"
                odd = Oddity(_line(data, start), "xml-syntax", message, "it is skipped")
                found.append(odd)
            pieces += data[done:start], _blank(inside)
            done = end
    return b"".join((*pieces, data[done:]))


def _comments(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the text of each comment begins and ends."""
    offset = 0
    while (begin := _PARTS.search(data, offset)) is not None:
        end = data.find(_ENDS[begin[0]], begin.end())
        if end < 0:
            return
        if begin[0] == b"<!--":
            yield begin.end(), end
        offset = end + 3


def _with_ampersands(data: bytes, found: list[Oddity]) -> bytes:
    """Return a document in which each `&` begins an entity."""
    first = None if b"<![CDATA[" in data else _LONE_AMPERSAND.search(data)
    if first is None:
        return data
    line = _line(data, first.start())
    message = "an & does not begin an entity"
    found.append(Oddity(line, "xml-syntax", message, "it is read as &amp;"))
    return _LONE_AMPERSAND.sub(b"&amp;", data)
