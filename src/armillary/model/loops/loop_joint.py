"""A joint, as far as loops care."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from armillary.model.joint_drives import Ranges
from armillary.model.link import Link
from armillary.model.unit import Unit

__all__ = ["LoopJoint", "loop_joints"]


class LoopJoint(NamedTuple):
    """A joint, as far as loops care.

    Attributes:
        name: For messages.
        unit: Of its coordinate.
        start: Its position at home; that of a passive joint is a guess.
        lower: Its least position.
        upper: Its greatest position.
        rank: Joints of higher rank are rather passive.
    """

    name: str
    unit: Unit
    start: float
    lower: float
    upper: float
    rank: int


def loop_joints(
    links: Sequence[Link], ranges: Ranges, start: Sequence[float]
) -> list[LoopJoint]:
    """Return joints as loops see them.

    Args:
        links: The link behind each joint.
        ranges: Of the joints.
        start: Where they are before loops are closed.
    """
    lower, upper, _ = ranges
    rows = zip(links, start, lower.tolist(), upper.tolist(), strict=True)
    return [
        LoopJoint(link.coordinate, link.joint.unit, *rest, rank=int(link.passive))
        for link, *rest in rows
    ]
