"""Actin-style XML out: a stated system, or a joint that was alone in its file."""

from __future__ import annotations

from typing import Final

from armillary.errors import FormatError, quote
from armillary.formats.actin.bodies import actuator_elements, body_elements
from armillary.formats.actin.coordinates import coordinate_elements
from armillary.formats.actin.joints import component_element
from armillary.formats.actin.lone import LIBRARY, lone_element
from armillary.formats.actin.names import declared
from armillary.formats.actin.placing import attachment_element, base_element
from armillary.formats.actin.shapes import shape_elements
from armillary.formats.actin.state import position_elements
from armillary.formats.actin.values import text_element
from armillary.formats.diagnostic import Place, Report
from armillary.formats.xml import Element, Limits, tag, to_text
from armillary.model.manipulator import Manipulator
from armillary.model.workcell import WORLD, Workcell

__all__ = ["write"]

# Each link is an element inside `childLinks`, and there is more around and inside.
DEEPEST: Final = (Limits().depth - 32) // 2


def write(cell: Workcell, report: Report) -> bytes:
    """Return the text of a cell.

    Raises:
        FormatError: A number is not finite, a text cannot stand in XML, a joint is of
            an unknown type, or a chain is too long.
    """
    root = lone_element(cell, report)
    if root is None:
        root = _system(cell, report)
    report.raise_if_errors()
    return to_text(declared(root)).encode()


def _system(cell: Workcell, report: Report) -> Element:
    """Return a stated system."""
    _tell_losses(cell, report)
    manipulators: list[Element] = []
    states: list[Element] = []
    attachments: list[Element] = []
    mounts = {mount.manipulator: mount for mount in cell.mounts}
    for manipulator in cell.manipulators:
        element, rates = _manipulator(manipulator, report)
        manipulators.append(element)
        children = position_elements(manipulator, rates, report)
        mount = mounts.get(manipulator.name)
        if mount is not None and mount.on == WORLD:
            children.append(base_element(cell, mount))
        elif mount is not None:
            attachments.append(attachment_element(cell, mount, report))
        states.append(tag("mn:positionState", {}, *children))
    system = tag("mn:system", {}, tag("mn:manipulators", {}, *manipulators))
    found = [text_element("mn:identifier", cell.name, report), system]
    if any(state.children for state in states):
        positions = tag("mn:positionStates", {}, *states)
        found.append(tag("mn:state", {}, positions))
    if attachments:
        nodes = tag("mn:manipulatorAttachmentMap", {}, *attachments)
        found.append(tag("mn:manipulatorSystemConfiguration", {}, nodes))
    return tag("mn:statedSystem", {}, *found)


def _manipulator(
    manipulator: Manipulator, report: Report
) -> tuple[Element, dict[str, float]]:
    """Return the element of a manipulator and the rates of its links' coordinates."""
    libraries = {p.of: p.text for p in manipulator.properties if p.name == LIBRARY}
    rates: dict[str, float] = {}
    made: dict[int, Element] = {}
    depths: dict[int, int] = {}
    for k in manipulator.order:
        depths[k] = depths.get(manipulator.parents[k], 0) + 1
    if max(depths.values()) > DEEPEST:
        message = f"{quote(manipulator.name)} has more than {DEEPEST} links in a row"
        report.error(Place(), "too-deep", message, hint="XML would nest them all.")
        report.raise_if_errors()
    # Read backwards, the children of a link come before it.
    for k in reversed(manipulator.order):
        link = manipulator.links[k]
        children = [made.pop(child) for child in manipulator.children[k]]
        component, rate = component_element(link, libraries.get(link.name, ""), report)
        rates[link.name] = rate
        parts = [text_element("mn:identifier", link.name, report)]
        if component is None and link.name in libraries:
            message = f"the library of link {quote(link.name)} is not kept"
            report.warning(Place(), "not-kept", message)
        if component is not None:
            parts.append(tag("mn:linkKinematicsContainer", {}, component))
        try:
            parts.extend(actuator_elements(link, rate, report))
            parts.extend(body_elements(link, report))
            parts.extend(shape_elements(link.visuals, link.collisions, report))
            parts.extend(coordinate_elements(link, report))
        except FormatError as error:
            message = f"link {quote(link.name)}: {error.diagnostics[0].message}"
            report.error(Place(), "bad-number", message)
        if children:
            parts.append(tag("mn:childLinks", {}, *children))
        made[k] = tag("mn:manipulatorLink", {}, *parts)
    name = text_element("mn:identifier", manipulator.name, report)
    base = made[manipulator.base]
    return tag("mn:individualManipulator", {}, name, base), rates


def _tell_losses(cell: Workcell, report: Report) -> None:
    """Warn of what a file cannot hold, once a kind."""
    counts: dict[str, int] = {}

    def lose(what: str) -> None:
        counts[what] = counts.get(what, 0) + 1

    for _ in cell.properties:
        lose("a property of the cell")
    if cell.rules != Workcell().rules:
        lose("which pairs of links are tested for collisions")
    for manipulator in cell.manipulators:
        for _ in manipulator.groups:
            lose("a group of joints")
        if manipulator.wheels is not None:
            lose("that a base drives on two wheels")
        for note in manipulator.properties:
            if note.name != LIBRARY or note.numbers or note.description:
                lose(f"property {quote(note.name)}")
        if list(manipulator.order) != list(range(len(manipulator.links))):
            report.note(
                Place(), "order", f"links of {quote(manipulator.name)} go depth first"
            )
    order = [cell.index[mount.manipulator] for mount in cell.mounts]
    if order != sorted(order):
        report.note(Place(), "order", "mounts go in the order of the manipulators")
    for what, count in counts.items():
        times = f" ({count} times)" if count > 1 else ""
        report.warning(Place(), "not-kept", f"{what} is not kept{times}")
