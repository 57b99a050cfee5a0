"""What files say of a cell beyond its mechanics, kept as data."""

from __future__ import annotations

import math

import msgspec

from armillary.errors import ModelError, quote
from armillary.model.fields import EMPTY, Floats


class Property(msgspec.Struct, frozen=True, kw_only=True):
    """A note on a cell, on a manipulator, or on one of its links or frames.

    Nothing is computed from it.

    Attributes:
        name: What it tells; that of a format begins with its name: `robwork.joint`.
        of: The link or frame that it is about; empty for the whole.
        text: What it says, where that is a text.
        numbers: What it says, where that is numbers.
        description: A remark on it.
    """

    name: str
    of: str = ""
    text: str = ""
    numbers: Floats = EMPTY
    description: str = ""

    def __post_init__(self) -> None:
        """Store plain numbers and check them.

        Raises:
            ModelError: It has no name, or a number is not finite.
        """
        numbers = tuple(map(float, self.numbers))
        msgspec.structs.force_setattr(self, "numbers", numbers)
        if not self.name:
            raise ModelError("A property has no name.")
        if not all(map(math.isfinite, numbers)):
            raise ModelError(
                f"Property {quote(self.name)} holds a number that is not finite: "
                f"{numbers}."
            )
