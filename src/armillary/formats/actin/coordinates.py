"""What we know of a coordinate and Actin does not: its name, what it follows.

It stands in our own namespace, in our units: for a screw in radians, not in metres.
"""

from __future__ import annotations

from armillary.errors import ArmillaryError
from armillary.formats.actin.values import number, number_element, text_element
from armillary.formats.diagnostic import Report
from armillary.formats.xml import Element, report_unused, tag
from armillary.model.coupling import Coupling
from armillary.model.link import Link

__all__ = [
    "coordinate_elements",
    "read_coupling",
    "read_inputs",
    "read_joint_name",
    "read_passive",
]


def read_joint_name(link: Element, report: Report) -> str:
    """Return how a joint is called, empty where it is called like its link."""
    child = link.only_child("jointName", report)
    if child is None:
        return ""
    name = child.read_text()
    report_unused(child, report)
    return name


def read_passive(link: Element, report: Report) -> bool:
    """Return whether no motor drives a joint."""
    child = link.only_child("passive", report)
    if child is not None:
        report_unused(child, report)
    return child is not None


def read_coupling(link: Element, report: Report) -> Coupling | None:
    """Return what a joint follows, None where it is free."""
    element = link.only_child("coupling", report)
    if element is None:
        return None
    of = element.required_child("of", report)
    numbers: dict[str, float] = {}
    for name in ("multiplier", "shift"):
        found = number(element, name, report)
        if found is not None:
            numbers["offset" if name == "shift" else name] = found[0]
            report_unused(found[1], report)
    report_unused(element, report)
    if of is None:
        return None
    try:
        coupling = Coupling(of=of.read_text(), **numbers)
    except ArmillaryError as error:
        report.error(element.place, "bad-coupling", str(error).removesuffix("."))
        return None
    report_unused(of, report)
    return coupling


def read_inputs(link: Element, report: Report) -> tuple[str, ...]:
    """Return the joints whose coordinates a mechanism takes."""
    children = link.children_named("input")
    for child in children:
        report_unused(child, report)
    return tuple(child.read_text() for child in children)


def coordinate_elements(link: Link, report: Report) -> list[Element]:
    """Return what a link's elements of our own are."""
    found: list[Element] = []
    if link.joint_name:
        found.append(text_element("am:jointName", link.joint_name, report))
    if link.passive:
        found.append(tag("am:passive"))
    if link.coupling is not None:
        coupling = link.coupling
        found.append(
            tag(
                "am:coupling",
                {},
                text_element("am:of", coupling.of, report),
                number_element("am:multiplier", coupling.multiplier),
                number_element("am:shift", coupling.offset),
            )
        )
    found += [text_element("am:input", name, report) for name in link.inputs]
    return found
