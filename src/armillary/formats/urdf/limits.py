"""`<limit>`: how far, how fast and how strongly a joint may move."""

from __future__ import annotations

import math
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.unsupported import Unsupported
from armillary.formats.xml import Element, report_unused
from armillary.model.limits import INFINITE, UNLIMITED, Limits

__all__ = ["read_limits"]

LIMITED: Final = ("revolute", "prismatic")
ENDS: Final = ("lower", "upper")
NEEDED: Final = ("effort", "velocity")
GREATEST: Final = ("velocity", "effort", "acceleration")
OTHERS: Final = ("deceleration", "jerk")
INFINITIES: Final = ("inf", "infinity")


def read_limits(
    joint: Element, type_: str, unsupported: Unsupported, report: Report
) -> Limits:
    """Return the limits of a `<joint>`; unlimited where it has none."""
    element = joint.first_child("limit", report)
    if element is None:
        if type_ in LIMITED:
            report.tolerating("taken as unlimited").error(
                joint.place,
                "missing-limit",
                f"{joint.label} has no <limit>, which a {type_} joint needs",
                hint="A joint that turns without end is of type continuous."
                if type_ == "revolute"
                else "",
            )
        return UNLIMITED
    if type_ in LIMITED or type_ == "continuous":
        return _limits(joint, element, type_, unsupported, report)
    for name in (*ENDS, *GREATEST, *OTHERS):
        element.attribute(name)
    report_unused(element, report)
    if type_ and type_ != "fixed":
        unsupported.add(f"<limit> of a {type_} joint", element.place)
    return UNLIMITED


def _limits(
    joint: Element,
    element: Element,
    type_: str,
    unsupported: Unsupported,
    report: Report,
) -> Limits:
    """Return the limits of a joint with one coordinate."""
    what = f"<limit> of {joint.label}"
    unlimited = report.tolerating("taken as unlimited")
    greatest = {name: _greatest(element, name, what, unlimited) for name in GREATEST}
    for name in OTHERS:
        if element.attribute(name) is not None:
            what_else = f"attribute {quote(name)} of <limit>"
            unsupported.add(what_else, element.place, Severity.NOTE)
    is_endless = type_ == "continuous"
    if is_endless:
        range_ = -INFINITE, INFINITE
        _tell_unused(element, what, report)
    else:
        range_ = _range(element, what, report)
    report_unused(element, report)
    missing = [name for name in NEEDED if name not in element.attributes]
    if missing:
        report.note(
            element.place,
            "missing-limit",
            f"{what} has no {' and no '.join(missing)}; taken as unlimited",
        )
    return Limits(lower=range_[0], upper=range_[1], **greatest)


def _greatest(element: Element, name: str, what: str, report: Report) -> float:
    """Return the greatest rate, effort or acceleration; infinite without one."""
    value = element.number(name, report)
    if value is None:
        return INFINITE
    if value < 0.0:
        report.tolerating("its magnitude is taken").error(
            element.place, "negative-limit", f"{what} has a negative {name}"
        )
    return abs(value)


def _tell_unused(element: Element, what: str, report: Report) -> None:
    """Report the range of a joint that turns without end."""
    no_effect = report.tolerating("it counts for nothing", Severity.NOTE)
    lower, upper = (element.number(end, no_effect, default=0.0) for end in ENDS)
    if lower != upper:
        report.note(
            element.place,
            "unused-limit",
            f"{what} has lower and upper, which count for nothing at a joint that is "
            "continuous",
            hint="Make it revolute if they shall count.",
        )


def _range(element: Element, what: str, report: Report) -> tuple[float, float]:
    """Return the least and the greatest coordinate."""
    lower = _end(element, "lower", -INFINITE, report)
    upper = _end(element, "upper", INFINITE, report)
    if lower > upper:
        both = all(end in element.attributes for end in ENDS)
        report.guessing("they are swapped").error(
            element.place,
            "swapped-limits",
            f"{what} has lower {lower:g} above upper {upper:g}",
            hint="Swap them." if both else "",
        )
        return upper, lower
    if not any(end in element.attributes for end in ENDS):
        report.warning(
            element.place,
            "no-range",
            f"{what} has neither lower nor upper; both are 0 then, and the joint "
            "cannot move",
        )
    return lower, upper


def _end(element: Element, name: str, infinite: float, report: Report) -> float:
    """Return one end of the range, 0 where it is not given, as URDF has it."""
    text = element.attribute(name)
    if text is None:
        return 0.0
    if text.strip().lower().lstrip("+-") in INFINITIES:
        sign = -1.0 if text.strip().startswith("-") else 1.0
        if sign == math.copysign(1.0, infinite):
            report = report.tolerating("it is taken as unlimited")
    report = report.guessing("it is taken as unlimited")
    return element.number(name, report, default=infinite)
