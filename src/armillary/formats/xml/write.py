"""A tree of elements to text: indented, escaped, always the same."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Final, NoReturn
from xml.parsers import expat

from armillary.errors import quote
from armillary.formats.diagnostic import fault
from armillary.formats.numbers import WHITE_SPACE, number_text
from armillary.formats.xml.element import Element

__all__ = ["Value", "tag", "to_text"]

HEADER: Final = '<?xml version="1.0" encoding="utf-8"?>\n'
# Deeper levels keep this indentation, or a deep chain would take quadratic space.
DEEPEST_INDENT: Final = 32

Value = str | float | Iterable[float] | None

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_:][A-Za-z0-9_:.-]*")
_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_IN_TEXT: Final = str.maketrans(_ESCAPES)
_IN_ATTRIBUTE: Final = str.maketrans(
    {**_ESCAPES, '"': "&quot;", "\t": "&#9;", "\n": "&#10;"}
)


def tag(
    name: str,
    attributes: Mapping[str, Value] | None = None,
    *children: Element,
    text: str = "",
) -> Element:
    """Return an element to be written.

    attributes: Strings, numbers, or several numbers; bools become `true` and `false`;
        None leaves the attribute out.

    Raises FormatError for numbers that are not finite.
    """
    texts = {
        key: _value_text(value)
        for key, value in (attributes or {}).items()
        if value is not None
    }
    return Element(name, texts, children=children, text=text)


def to_text(root: Element) -> str:
    """Return the document of a tree, which parses back into an equal tree.

    Raises FormatError for names and characters that XML 1.0 cannot hold.
    """
    pieces = [HEADER]
    # What is still to be written, last first: closing tags, and elements with the
    # white space before them; None where white space would become part of a text.
    pending: list[str | tuple[Element, int | None]] = [(root, 0)]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        element, depth = item
        pieces.append(f"{_indent(depth)}<{_head(element)}")
        text = element.text
        if element.children and not text.strip(WHITE_SPACE):
            text = ""
        newline = "" if depth is None else "\n"
        if not (text or element.children):
            pieces.append(f"/>{newline}")
            continue
        inner = None if text or depth is None else depth + 1
        pieces.append(f">{'' if inner is None else newline}{_escape(element, text)}")
        closing_indent = "" if inner is None else _indent(depth)
        pending.append(f"{closing_indent}</{element.name}>{newline}")
        pending.extend((child, inner) for child in reversed(element.children))
    return "".join(pieces)


def _indent(depth: int | None) -> str:
    return "" if depth is None else "  " * min(depth, DEEPEST_INDENT)


def _head(element: Element) -> str:
    """Return the inside of an element's start tag."""
    if element.namespace:
        _refuse(element, "has a resolved namespace; write prefixes into names instead")
    _check_name(element, element.name)
    words = [element.name]
    for name, value in element.attributes.items():
        _check_name(element, name)
        _check_characters(element, value)
        words.append(f'{name}="{value.translate(_IN_ATTRIBUTE)}"')
    return " ".join(words)


def _escape(element: Element, text: str) -> str:
    _check_characters(element, text)
    return text.translate(_IN_TEXT)


def _check_name(element: Element, name: str) -> None:
    if not (_PLAIN_NAME.fullmatch(name) or _is_foreign_name(name)):
        _refuse(element, f"cannot hold {quote(name)}: that is not a name in XML")


def _check_characters(element: Element, text: str) -> None:
    match = _NOT_XML.search(text)
    if match:
        _refuse(element, f"cannot hold the character {quote(match.group())}")


@functools.lru_cache(maxsize=256)
def _is_foreign_name(name: str) -> bool:
    """Return whether expat reads a name beyond ASCII, whose rule is a long table."""
    if name.isascii() or _NOT_XML.search(name):
        return False
    seen: list[str] = []
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = lambda found, _: seen.append(found)
    try:
        parser.Parse(f"<{name}/>".encode(), True)
    except expat.ExpatError:
        return False
    return seen == [name]


def _value_text(value: str | float | Iterable[float]) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case Iterable():
            return " ".join(map(number_text, value))
        case _:
            return number_text(value)


def _refuse(element: Element, message: str) -> NoReturn:
    raise fault(element.place, "xml-write", f"{element.label} {message}")
