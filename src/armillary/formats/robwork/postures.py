"""Q elements: joint positions with a name, in metres and radians."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from armillary.errors import quote
from armillary.formats.robwork.desk import Desk
from armillary.formats.xml import Element
from armillary.model.limits import Limits
from armillary.model.posture import Posture

__all__ = ["HOME", "read_postures"]

HOME: Final = "Home"
"""The name of the posture in which a device starts."""

MOST_TURNS: Final = 2
MOST_SHOWN: Final = 12


def read_postures(
    elements: Sequence[Element],
    joints: Sequence[str],
    limits: Mapping[str, tuple[bool, Limits]],
    desk: Desk,
) -> tuple[Posture, ...]:
    """Return the postures that `Q` elements give.

    joints: Names of the coordinates that RobWork's q holds, in its order.
    limits: For each of them whether it turns, and its limits.
    """
    found: dict[str, Posture] = {}
    for element in elements:
        name = element.required_attribute("name", desk.report)
        values = element.text_numbers(None, desk.report)
        desk.close(element)
        if name is None or values is None:
            continue
        if len(values) != len(joints):
            _tell_count(element, name, len(values), joints, desk)
        elif name in found:
            desk.report.warning(
                element.place,
                "repeated-posture",
                f"there is a <Q> named {quote(name)} already, which counts, as in "
                "RobWork",
            )
        else:
            found[name] = Posture(name=name, joints=tuple(joints), q=values)
            _check_range(element, found[name], limits, desk)
    return tuple(found.values())


def _tell_count(
    element: Element, name: str, count: int, joints: Sequence[str], desk: Desk
) -> None:
    shown = ", ".join(joints[:MOST_SHOWN])
    more = ", ..." if len(joints) > MOST_SHOWN else ""
    message = (
        f"<Q> {quote(name)} has {count} numbers, but the device has {len(joints)} "
        f"joints of its own: {shown or 'none'}{more}"
    )
    if name == HOME:
        desk.report.error(element.place, "wrong-count", message)
    else:
        desk.report.warning(element.place, "wrong-count", f"{message}; it is left out")


def _check_range(
    element: Element,
    posture: Posture,
    limits: Mapping[str, tuple[bool, Limits]],
    desk: Desk,
) -> None:
    """Warn of positions outside of limits, and of angles that must be degrees."""
    for joint, position in zip(posture.joints, posture.q, strict=True):
        turns, range_ = limits[joint]
        if turns and abs(position) > MOST_TURNS * 2.0 * math.pi:
            desk.report.warning(
                element.place,
                "degrees",
                f"<Q> {quote(posture.name)} turns {quote(joint)} by {position:g}, "
                "which looks like degrees; it is read as radians, as RobWork does",
            )
        elif not range_.contains(position, tolerance=1e-6):
            desk.report.warning(
                element.place,
                "out-of-range",
                f"<Q> {quote(posture.name)} puts {quote(joint)} at {position:g}, "
                f"outside of its limits, {range_.lower:g} to {range_.upper:g}",
            )
