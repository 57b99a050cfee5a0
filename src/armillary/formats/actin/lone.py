"""A joint alone in a file, as in the seed's sample: a cell of one link on a base."""

from __future__ import annotations

from typing import Final

from armillary.formats.actin.joints import Carrier, component_element
from armillary.formats.diagnostic import Report
from armillary.formats.xml import Element
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.property import Property
from armillary.model.workcell import Workcell

__all__ = ["LIBRARY", "lone_cell", "lone_element"]

LIBRARY: Final = "actin.library"
ALONE: Final = "actin.alone"
BASE: Final = "base"


def lone_cell(name: str, carrier: Carrier) -> Workcell:
    """Return a cell of one joint, called like its element."""
    link = Link(name=name, parent=BASE, joint=carrier.joint, primary=carrier.primary)
    library = carrier.library
    notes = (Property(name=LIBRARY, of=name, text=library),) if library else ()
    arm = Manipulator(name=name, links=(Link(name=BASE), link), properties=notes)
    alone = Property(name=ALONE, text=name)
    return Workcell(name=name, manipulators=(arm,), properties=(alone,))


def lone_element(cell: Workcell, report: Report) -> Element | None:
    """Return the element of a cell that is one joint and no more, None for others."""
    names = [each.text for each in cell.properties if each.name == ALONE]
    if len(names) != 1 or len(cell.manipulators) != 1:
        return None
    (arm,) = cell.manipulators
    link = next((each for each in arm.links if each.parent == BASE), None)
    if link is None:
        return None
    library = next((p.text for p in arm.properties if p.name == LIBRARY), "")
    carrier = Carrier(joint=link.joint, primary=link.primary, library=library)
    alone = lone_cell(names[0], carrier)  # perhaps of another class than the cell
    if any(
        getattr(alone, field) != getattr(cell, field)
        for field in alone.__struct_fields__
    ):
        return None
    return component_element(link, library, report)[0]
