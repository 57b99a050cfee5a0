"""Tables of aligned columns."""

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
    """Return a number for people to read; an infinite one is none: `-`."""
    return f"{value + 0.0:.6g}" if math.isfinite(value) else "-"


def plural(count: int, noun: str) -> str:
    """Return `1 link`, `2 links`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
