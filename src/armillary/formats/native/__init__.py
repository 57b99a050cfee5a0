"""The native format, `*.cell.json`: everything that a cell is, exactly."""

from __future__ import annotations

import re
from typing import Final

from armillary.formats.format import Format, later

__all__ = ["FORMAT", "FORMAT_NAME"]

FORMAT_NAME: Final = "armillary cell"

_MARK: Final = re.compile(rb'"format"\s*:\s*"' + FORMAT_NAME.encode() + b'"')

FORMAT: Final = Format(
    name="cell",
    title="armillary's own format",
    holds=later("native.write", "held_features"),
    suffixes=(".cell.json",),
    sniff=lambda data: _MARK.search(data) is not None,
    read=later("native.read", "read"),
    write=later("native.write", "write"),
    write_files=later("native.write", "write_files"),
    read_by=("native", "json"),
)
