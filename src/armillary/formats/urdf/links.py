"""`<link>`: its mass, and what it looks like and touches with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from armillary.formats.diagnostic import Place, Report, Severity
from armillary.formats.unsupported import possible_inertia
from armillary.formats.urdf.elements import Context, read_pose
from armillary.formats.urdf.shapes import ShapeReader
from armillary.formats.xml import Element, report_unused
from armillary.model.shape import Shape
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.vector import ZERO

__all__ = ["LinkElement", "read_link"]

# What simulators and planners add to links.
FOREIGN: Final = ("contact", "sensor", "surface", "self_filter", "collision_checking")
MOMENTS: Final = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkElement:
    """A link as the file gives it, without the joint that carries it."""

    name: str
    place: Place
    inertia: SpatialInertia | None
    visuals: tuple[Shape, ...]
    collisions: tuple[Shape, ...]

    @property
    def is_bare(self) -> bool:
        """Return whether the link has no mass and no shapes."""
        return self.inertia is None and not (self.visuals or self.collisions)


def read_link(element: Element, shapes: ShapeReader, context: Context) -> LinkElement:
    """Return what a `<link>` says; after an error in its name, the name is empty."""
    report, unsupported, _ = context
    name = element.required_attribute("name", report)
    if name == "":
        report.error(element.place, "empty-name", "a <link> has an empty name")
    if element.attribute("type") is not None:
        unsupported.add("attribute 'type' of <link>", element.place, Severity.NOTE)
    link = LinkElement(
        name=name or "",
        place=element.place,
        inertia=_inertia(element, report.tolerating("its inertia is left out")),
        visuals=shapes.read_all(element, "visual"),
        collisions=shapes.read_all(element, "collision"),
    )
    unsupported.add_children(element, FOREIGN)
    unsupported.add_prefixed(element)
    report_unused(element, report, Severity.NOTE)
    return link


def _inertia(link: Element, report: Report) -> SpatialInertia | None:
    """Return the inertia about the link's origin, None without one or after an error.

    The file gives it about the centre of mass, in the axes of `<origin>`.
    """
    inertial = link.first_child("inertial", report)
    if inertial is None:
        return None
    faults = report.faults
    X_LC = read_pose(inertial, report)
    mass_element = inertial.first_child("mass", report, required=True)
    moments_element = inertial.first_child("inertia", report, required=True)
    report_unused(inertial, report, Severity.NOTE)
    if mass_element is None or moments_element is None:
        return None
    mass = mass_element.number("value", report, required=True)
    xx, yy, zz, xy, xz, yz = (
        moments_element.number(name, report, required=True) or 0.0 for name in MOMENTS
    )
    report_unused(mass_element, report, Severity.NOTE)
    report_unused(moments_element, report, Severity.NOTE)
    if mass is None or report.faults > faults:
        return None
    rows = (xx, xy, xz), (xy, yy, yz), (xz, yz, zz)
    central = SpatialInertia.from_centre(mass, ZERO, rows)
    kept = possible_inertia(central, moments_element.place, link.label, report)
    if kept is None:
        return None
    inertia = kept.transformed(X_LC)
    rotational = [value for row in inertia.rotational for value in row]
    if all(map(math.isfinite, (*inertia.first_moment, *rotational))):
        return inertia
    report.error(
        inertial.place,
        "bad-number",
        f"the inertia of {link.label} is too large for a double",
    )
    return None
