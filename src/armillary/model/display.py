"""How values show themselves: short lines, and small tables in notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

MOST_NUMBERS: Final = 8
MOST_ROWS: Final = 60


def plural(count: int, noun: str) -> str:
    """Return `1 link`, `2 links`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def sized(**counts: int) -> str:
    """Return numbers with their nouns: 2 links, 1 joint."""
    return ", ".join(plural(count, noun) for noun, count in counts.items())


def numbers(values: Sequence[float]) -> str:
    """Return the first few numbers in brackets, rounded."""
    shown = [f"{value:.5g}" for value in values[:MOST_NUMBERS]]
    if len(values) > MOST_NUMBERS:
        shown.append(f"... {len(values)} in all")
    return f"[{', '.join(shown)}]"


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as HTML, every text escaped; long ones are cut."""
    from html import escape

    waiting = iter(rows)
    body = [_row("td", cells) for cells in islice(waiting, MOST_ROWS)]
    if left := sum(1 for _ in waiting):
        body.append(_row("td", [f"... {left} more"]))
    lines = [_row("th", header), *body]
    return f"<table><caption>{escape(caption)}</caption>{''.join(lines)}</table>"


def _row(tag: str, cells: Sequence[object]) -> str:
    from html import escape  # few print HTML

    inner = "".join(f"<{tag}>{escape(str(each))}</{tag}>" for each in cells)
    return f"<tr>{inner}</tr>"
