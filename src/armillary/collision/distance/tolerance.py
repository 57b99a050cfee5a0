"""By how much a depth may be wrong when its search ends."""

from __future__ import annotations

from typing import Final

from armillary.spatial.vector import Number
from armillary.trace.functions import by_precision, maximum, minimum

__all__ = ["GROWTH", "LIMIT", "PRECISION", "TOLERANCE", "allowed"]

LIMIT: Final = 4000
"""Most directions; polytopes of few corners take about 30, round bodies 150."""

TOLERANCE: Final = 1e-9
"""Of the size: cells that cannot be better by more are left."""

GROWTH: Final = 1.005
"""Of the tolerance with each direction: bodies may be as deep all around an axis."""

PRECISION: Final = 1e-10
"""The same for the last cell, around the best direction."""


def allowed(width: Number, depth: Number, factor: Number, extent: Number) -> Number:
    """Return by how much the depth may be wrong."""
    # The tolerance is a part of the size, and grows with each direction; a shallow
    # depth is to be as exact for its own size. Below `precise` all is rounding.
    precise = by_precision(width, double=PRECISION, single=1e-5) * extent
    shallow = minimum(TOLERANCE * extent, 1e-3 * depth)
    return maximum(factor * shallow, precise)
