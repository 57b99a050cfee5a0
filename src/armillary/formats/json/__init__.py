"""Strict JSON whose diagnostics have a line and a column, and a readable layout."""

from __future__ import annotations

from armillary.formats.json.document import Document
from armillary.formats.json.layout import Record, to_text
from armillary.formats.json.locations import Steps

__all__ = ["Document", "Record", "Steps", "to_text"]
