"""PosLimit, VelLimit and AccLimit: degrees for what turns, metres for what slides."""

from __future__ import annotations

import math
import sys
from typing import Final

import msgspec

from armillary.errors import quote
from armillary.formats.robwork.desk import Desk
from armillary.formats.robwork.node import Node
from armillary.formats.robwork.transform import looks_like_radians
from armillary.formats.xml import Element
from armillary.model.unit import Unit

__all__ = ["LARGEST", "LIMITS", "read_limit"]

LIMITS: Final = {
    "PosLimit": ("lower", "upper"),
    "VelLimit": ("velocity",),
    "AccLimit": ("acceleration",),
}
"""The elements, and the limits of ours that they give."""

LARGEST: Final = sys.float_info.max
"""The limit, and its negative, of what has none: RobWork's own default."""

UNLIMITED: Final = 1e300


def read_limit(element: Element, node: Node, desk: Desk) -> None:
    """Give a joint the limit of an element; the last one of its kind counts."""
    report = desk.report
    names = ("min", "max") if element.name == "PosLimit" else ("max",)
    given = [element.number(name, report, required=True) for name in names]
    element.attribute("refjoint")
    desk.close(element)
    values = [value for value in given if value is not None]
    if len(values) < len(given):
        return
    if len(node.steps) != 1:
        kind = "is no joint" if not node.steps else "has several coordinates"
        report.warning(
            element.place,
            "not-kept",
            f"{element.label} is about {quote(node.full_name)}, which {kind}",
        )
        return
    if values[-1] < (values[0] if len(values) > 1 else 0.0):
        report.error(
            element.place,
            "bad-limit",
            f"{element.label} of {quote(node.full_name)} goes from {values[0]:g} to "
            f"{values[-1]:g}"
            if len(values) > 1
            else f"{element.label} of {quote(node.full_name)} is negative",
        )
        return
    turns = _turns(node)
    if turns and element.name == "PosLimit" and any(map(looks_like_radians, values)):
        report.warning(
            element.place,
            "radians",
            f"the limits of {quote(node.full_name)}, {values[0]:g} and {values[-1]:g}, "
            "look like radians; they are read as degrees, as RobWork does",
        )
    factor = math.pi / 180.0 if turns else 1.0
    fields = LIMITS[element.name]
    ours = [_unlimited(value * factor) for value in values]
    changes = dict(zip(fields, ours, strict=True))
    before = [getattr(node.limits, field) for field in fields]
    if not all(map(math.isinf, before)) and before != list(changes.values()):
        report.warning(
            element.place,
            "repeated-limit",
            f"{quote(node.full_name)} has another <{element.name}>; this one counts",
        )
    node.limits = msgspec.structs.replace(node.limits, **changes)


def _unlimited(value: float) -> float:
    """Return a limit, infinite where it stands for none."""
    return math.copysign(math.inf, value) if abs(value) >= UNLIMITED else value


def _turns(node: Node) -> bool:
    return node.steps[0].joint.unit is Unit.RADIAN
