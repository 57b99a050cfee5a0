"""How far, how fast and how strongly a joint may move."""

from __future__ import annotations

import math

import msgspec

from armillary.errors import ModelError

INFINITE = math.inf


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a joint's coordinate, all inclusive; infinite where there is none.

    Attributes:
        lower: Least coordinate [m or rad].
        upper: Greatest coordinate [m or rad].
        velocity: Greatest rate [m/s or rad/s].
        acceleration: Greatest acceleration [m/s^2 or rad/s^2].
        effort: Greatest force or torque [N or N m].
    """

    lower: float = -INFINITE
    upper: float = INFINITE
    velocity: float = INFINITE
    acceleration: float = INFINITE
    effort: float = INFINITE

    def __post_init__(self) -> None:
        """Check the order of the limits.

        Raises:
            ModelError: A limit is not a number or NaN, lower is above upper, or a
                greatest rate, an acceleration or an effort is negative.
        """
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if type(value) is not float:
                msgspec.structs.force_setattr(self, name, _number(name, value))
        in_order = (
            self.lower <= self.upper
            and self.velocity >= 0.0
            and self.acceleration >= 0.0
            and self.effort >= 0.0
        )
        if not in_order:  # nothing is in order with NaN
            self._refuse()

    def _refuse(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if math.isnan(value):
                raise ModelError(f"The limit '{name}' is NaN; leave it out instead.")
            if name not in {"lower", "upper"} and value < 0.0:
                raise ModelError(f"The limit '{name}' is {value}; it cannot be < 0.")
        if self.lower > self.upper:
            raise ModelError(
                f"The limits are swapped: lower {self.lower:g} is above upper "
                f"{self.upper:g}."
            )

    def contains(self, q: float, tolerance: float = 0.0) -> bool:
        """Return whether `q` lies within the limits, give or take `tolerance`."""
        return self.lower - tolerance <= q <= self.upper + tolerance


UNLIMITED = Limits()


def _number(name: str, value: object) -> float:
    try:
        return float(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"The limit '{name}' is {value!r}; it takes a number."
        ) from error
