"""What a joint's coordinate is measured in."""

from __future__ import annotations

from enum import Enum


class Unit(Enum):
    """The unit of a joint's coordinate q.

    A coordinate in metres is a length: it scales with the model. Any other does not.
    """

    METRE = "m"
    RADIAN = "rad"
    OTHER = ""

    @property
    def scales_with_length(self) -> bool:
        """Return whether q grows with the model when that is scaled."""
        return self is Unit.METRE
