"""What a file is by its first bytes."""

from __future__ import annotations

import codecs
import re
from typing import Final

__all__ = ["BYTE_ORDER_MARKS", "first_tag", "is_zip"]

ZIP: Final = b"PK\3\4"

BYTE_ORDER_MARKS: Final = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# What may come before the first element, and that element.
_BEFORE: Final = re.compile(rb"\s*(?:<\?.*?>|<!--.*?-->|<!DOCTYPE.*?>)", re.DOTALL)
_FIRST: Final = re.compile(rb"\s*<([^\s/>!?][^\s/>]*)(?=[\s/>])")
_SNIFFED: Final = 1 << 16


def is_zip(data: bytes) -> bool:
    """Return whether data begins like an archive with files."""
    return data.startswith(ZIP)


def first_tag(data: bytes) -> str:
    """Return the name of an XML document's first element, empty if there is none."""
    if data.startswith(BYTE_ORDER_MARKS[1:]):
        data = data[:_SNIFFED].decode("utf-16", errors="replace").encode()
    offset = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    while (skipped := _BEFORE.match(data, offset)) is not None:
        offset = skipped.end()
    match = _FIRST.match(data, offset)
    return "" if match is None else match[1].decode("utf-8", errors="replace")
