"""Joints that follow another joint."""

from __future__ import annotations

import math

import msgspec

from armillary.errors import ModelError


class Coupling(msgspec.Struct, frozen=True, kw_only=True):
    """Make a joint's coordinate q = multiplier q_of + offset.

    Attributes:
        of: Name of the joint that is followed, in the same manipulator.
        multiplier: Rate between the two.
        offset: Coordinate where that of the followed joint is zero [m or rad].
    """

    of: str
    multiplier: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            ModelError: One of them is not finite.
        """
        for name in ("multiplier", "offset"):
            value = float(getattr(self, name))
            msgspec.structs.force_setattr(self, name, value)
            if not math.isfinite(value):
                raise ModelError(
                    f"The coupling to '{self.of}' has {name} {value}, not a finite one."
                )
