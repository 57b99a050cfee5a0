"""What moves a joint: a coordinate, maybe through a coupling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from armillary.spatial.vector import Number

__all__ = ["Drive"]


class Drive(NamedTuple):
    """What moves a joint: coordinate number `of`, as q = multiplier q_of + offset."""

    of: int
    multiplier: float
    offset: float

    def at(self, q: Sequence[Number]) -> Number:
        """Return where the joint is at coordinates `q`."""
        return self.multiplier * q[self.of] + self.offset
