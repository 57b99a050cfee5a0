"""Programs to fast callables, for any formula; the layer knows no robots."""

from __future__ import annotations

from armillary.kernel.interpret import interpret
from armillary.kernel.vectorize import vectorize

__all__ = ["interpret", "vectorize"]
