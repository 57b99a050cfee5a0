"""Rows as CSV, so exact that numbers are read back the same."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

__all__ = ["csv_text"]


def csv_text(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a line of names and a line for each row, of texts and plain numbers.

    Lines end with a line feed. A name or a text with a comma is put between quotes.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)  # numbers by `str`, which has all digits
    return text.getvalue()
