"""Strict, bounded XML: trees whose every element knows its line and column."""

from __future__ import annotations

from armillary.formats.xml.element import (
    TEXT_KEY,
    Element,
    Leftover,
    report_unused,
    unused,
)
from armillary.formats.xml.parse import parse
from armillary.formats.xml.write import tag, to_text

__all__ = [
    "TEXT_KEY",
    "Element",
    "Leftover",
    "parse",
    "report_unused",
    "tag",
    "to_text",
    "unused",
]
