"""States: where everything of a cell is at a moment."""

from __future__ import annotations

import math
from typing import Any, Self

import msgspec
import numpy as np

from armillary.errors import StateError


class State(msgspec.Struct, frozen=True, kw_only=True):
    """The joint positions and rates of a cell; immutable, equal by value.

    Attributes:
        q: Joint positions [m or rad], in the order of the cell's `joint_names`.
        qd: Joint rates [m/s or rad/s]; empty where nothing moves.
    """

    q: tuple[float, ...] = ()
    qd: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Store plain numbers.

        Raises:
            StateError: A number is not finite, or there are fewer rates than positions.
        """
        for name in ("q", "qd"):
            msgspec.structs.force_setattr(self, name, _numbers(getattr(self, name), name))
        if self.qd and len(self.qd) != len(self.q):
            raise StateError(f"{len(self.qd)} rates for {len(self.q)} positions.")

    def replace(self, **changes: Any) -> Self:
        """Return the state with other joint positions or rates.

        Raises:
            StateError: The number of joints changes, or a number is not finite.
        """
        changed = msgspec.structs.replace(self, **changes)
        if len(changed.q) != len(self.q):
            raise StateError(
                f"q has {len(changed.q)} numbers; this state has {len(self.q)} joints."
            )
        return changed


def _numbers(values: Any, name: str) -> tuple[float, ...]:
    try:
        numbers = tuple(np.asarray(values, dtype=np.float64).tolist())
    except (TypeError, ValueError) as error:
        raise StateError(f"{name} must be a vector of numbers, not {values!r}.") from error
    if not all(isinstance(number, float) for number in numbers):
        raise StateError(f"{name} must be one vector; a state holds no batch.")
    if not all(map(math.isfinite, numbers)):
        raise StateError(f"{name} holds a number that is not finite: {numbers}.")
    return numbers
