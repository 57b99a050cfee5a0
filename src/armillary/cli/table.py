"""Numbers and tables as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from armillary.errors import printable

GAP = "  "


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table: a header, and rows of as many texts.

    A column whose header starts with ">" is aligned to the right.
    """
    to_right = [name.startswith(">") for name in header]
    names = [name.lstrip(">") for name in header]
    lines = [names, *([printable(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, to_right, strict=True)
        ]
        yield GAP.join(cells).rstrip()


def number(value: float) -> str:
    """Return a number for people to read; `-` for an infinite one."""
    return f"{value + 0.0:.6g}" if math.isfinite(value) else "-"


def finite(values: Iterable[float]) -> list[float | None]:
    """Return numbers for JSON, which has None for what is infinite or NaN."""
    return [value if math.isfinite(value) else None for value in values]


def comma_separated(values: Iterable[float]) -> str:
    """Return numbers as a line of CSV, each so exact that it is read back the same."""
    return ",".join(map(repr, values))
