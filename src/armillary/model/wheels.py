"""The two wheels that a base drives on."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator

import msgspec

from armillary.errors import ModelError, quote

__all__ = ["Wheels", "wheel_faults"]


class Wheels(msgspec.Struct, frozen=True, kw_only=True):
    """Two wheels on one axle along y of a base whose x is forward and z up.

    Attributes:
        left: The joint of the wheel at the greater y.
        right: The joint of the other wheel.
        radius: Of both [m]; the axes of their joints tell which way they roll.
        travel: In place of a radius, how far a wheel rolls forward per unit of its
            joint [m]; 1 where its q is a length, as in RobWork.
        track_width: The distance of the wheels [m]; by default that of their links.
    """

    left: str
    right: str
    radius: float | None = None
    travel: float | None = None
    track_width: float | None = None

    def __post_init__(self) -> None:
        """Check the lengths.

        Raises:
            ModelError: Their radius, travel or distance is not above 0.
        """
        if (self.radius is None) == (self.travel is None):
            raise ModelError("A drive has either the radius of its wheels, or travel=.")
        if not 0.0 < self.length < math.inf:
            raise ModelError(
                f"A wheel cannot roll {self.length} m per unit of its joint."
            )
        if self.track_width is not None and not 0.0 < self.track_width < math.inf:
            raise ModelError(
                f"The track_width of two wheels is their distance, not "
                f"{self.track_width} m."
            )

    def scaled(self, factor: float, *, rate: float) -> Wheels:
        """Return the wheels with all lengths `factor` times as long.

        rate: By how much the coordinates of their joints are multiplied.
        """
        return msgspec.structs.replace(
            self,
            radius=None if self.radius is None else self.radius * factor,
            travel=None if self.travel is None else self.travel * factor / rate,
            track_width=None if self.track_width is None else self.track_width * factor,
        )

    @property
    def length(self) -> float:
        """Return how far the wheels roll per unit of their joints [m/rad or 1]."""
        length = self.radius if self.travel is None else self.travel
        assert length is not None
        return length


def wheel_faults(wheels: Wheels, joint_names: Container[str]) -> Iterator[str]:
    """Yield what is wrong with the wheels of a manipulator, a sentence each.

    joint_names: Of the joints that have a place in q.
    """
    if wheels.left == wheels.right:
        yield f"Both wheels are {quote(wheels.left)}; a drive has two."
    for name in dict.fromkeys((wheels.left, wheels.right)):
        if name not in joint_names:
            yield f"The wheel {quote(name)} is not a joint with an index in q here."
