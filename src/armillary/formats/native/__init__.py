"""The native format, `*.cell.json`: everything that a cell is, exactly."""

from __future__ import annotations

import re
from typing import Final

from armillary.formats.format import Format
from armillary.formats.native.read import read
from armillary.formats.native.wire import FORMAT_NAME
from armillary.formats.native.write import write

__all__ = ["FORMAT"]

_MARK: Final = re.compile(rb'"format"\s*:\s*"' + FORMAT_NAME.encode() + b'"')

FORMAT: Final = Format(
    name="cell",
    title="armillary's own format",
    suffixes=(".cell.json",),
    sniff=lambda data: _MARK.search(data) is not None,
    read=read,
    write=write,
)
