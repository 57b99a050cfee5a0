"""`<link>`: what a link weighs, looks like and touches with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from armillary.formats.diagnostic import Place, Report, Severity
from armillary.formats.unsupported import Unsupported, possible_inertia
from armillary.formats.urdf.origin import read_pose
from armillary.formats.urdf.shapes import ShapeReader
from armillary.formats.xml import Element, report_unused
from armillary.model.shape import Shape
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.vector import ZERO

__all__ = ["Body", "read_body"]

# What simulators and planners add to links.
FOREIGN: Final = ("contact", "sensor", "surface", "self_filter", "collision_checking")
MOMENTS: Final = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A link as the file gives it, without the joint that carries it."""

    name: str
    place: Place
    inertia: SpatialInertia | None
    visuals: tuple[Shape, ...]
    collisions: tuple[Shape, ...]

    @property
    def is_bare(self) -> bool:
        """Return whether the link is but a frame."""
        return self.inertia is None and not (self.visuals or self.collisions)


def read_body(
    link: Element, shapes: ShapeReader, unsupported: Unsupported, report: Report
) -> Body:
    """Return what a `<link>` says; after an error in its name, the name is empty."""
    name = link.required_attribute("name", report)
    if name == "":
        report.error(link.place, "empty-name", "a <link> has an empty name")
    if link.attribute("type") is not None:
        unsupported.add("attribute 'type' of <link>", link.place, Severity.NOTE)
    body = Body(
        name=name or "",
        place=link.place,
        inertia=_inertia(link, report.tolerating("its inertia is left out")),
        visuals=shapes.read_all(link, "visual"),
        collisions=shapes.read_all(link, "collision"),
    )
    unsupported.add_children(link, FOREIGN)
    unsupported.add_prefixed(link)
    report_unused(link, report, Severity.NOTE)
    return body


def _inertia(link: Element, report: Report) -> SpatialInertia | None:
    """Return the inertia about the link's origin, None without one or after an error.

    A file gives it about the centre of mass, in the axes of `<origin>`.
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
    moments = [moments_element.number(name, report, required=True) for name in MOMENTS]
    report_unused(mass_element, report, Severity.NOTE)
    report_unused(moments_element, report, Severity.NOTE)
    xx, yy, zz, xy, xz, yz = (m if m is not None else math.nan for m in moments)
    if mass is None or report.faults > faults:
        return None
    rows = (xx, xy, xz), (xy, yy, yz), (xz, yz, zz)
    central = SpatialInertia.from_centre(mass, ZERO, rows)
    kept = possible_inertia(central, moments_element.place, link.label, report)
    if kept is None:
        return None
    inertia = central.transformed(X_LC)
    rotational = [value for row in inertia.rotational for value in row]
    if not all(map(math.isfinite, (*inertia.first_moment, *rotational))):
        report.error(
            inertial.place,
            "bad-number",
            f"the inertia of {link.label} is too large for a double",
        )
        return None
    return inertia
