"""How documents begin: what a declaration may say, and byte orders."""

from __future__ import annotations

import codecs
import re
from typing import Final

__all__ = ["DECLARATION", "ENCODINGS", "UTF_16_STARTS", "VERSIONS"]

VERSIONS: Final = frozenset(("1.0", "1.1"))
ENCODINGS: Final = frozenset(
    ("utf-8", "utf-16", "iso-8859-1", "us-ascii", "windows-1252")
)

DECLARATION: Final = re.compile(rb"<\?xml\s[^<>]*?\?>")
UTF_16_STARTS: Final = {
    "utf-16-le": (codecs.BOM_UTF16_LE, b"<\0"),
    "utf-16-be": (codecs.BOM_UTF16_BE, b"\0<"),
}
"""How a document begins in each byte order of UTF-16, with a mark and without."""
