"""Inertias that were read, as far as links take them."""

from __future__ import annotations

from typing import Any, NamedTuple

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Place, Report
from armillary.formats.xml import Element
from armillary.model.link import Link
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import Pose
from armillary.spatial.vector import ZERO, Vector3

__all__ = ["CentralInertia", "central_inertia", "placed_inertia", "possible_inertia"]


def possible_inertia(
    inertia: SpatialInertia, place: Place, of: str, report: Report
) -> SpatialInertia | None:
    """Return an inertia that was read, as far as links take it.

    Where only its moments are impossible, mass and centre are kept as a point mass;
    None where there is no mass to keep.

    of: What messages call its link.
    """
    fault = inertia.fault()
    if fault is None:
        return inertia
    message = f"the inertia of {of} is impossible: {fault.message}"
    if fault.is_refused:
        point = inertia.point_mass()
        has_mass = point.fault() is None
        doing = "its moments are taken as zero" if has_mass else "it is left out"
        report.tolerating(doing).error(place, "bad-inertia", message)
        return point if has_mass else None
    report.warning(place, "bad-inertia", message)
    return inertia


def placed_inertia(
    central: SpatialInertia,
    X_LC: Pose,
    link: Element,
    report: Report,
    *,
    moments: Element,
    inertial: Element,
) -> SpatialInertia | None:
    """Return the inertia of a link from that about its centre of mass, None without.

    X_LC: Pose of the centre, and of the axes of the moments, in the link.
    link, moments, inertial: The elements that messages are about.
    """
    possible: SpatialInertia | None = central
    if central.fault() is not None:
        possible = possible_inertia(central, moments.place, link.label, report)
    if possible is None:
        return None
    # From the axes at the centre of mass to those of the link (Steiner).
    inertia = possible.transformed(X_LC)
    fault = inertia.fault()
    if fault is None or not fault.is_refused:
        return inertia
    message = f"the inertia of {link.label} about its origin is impossible: "
    report.error(inertial.place, "bad-inertia", f"{message}{fault.message}")
    return None


class CentralInertia(NamedTuple):
    """An inertia as files hold it.

    Attributes:
        mass: In kg.
        centre: Of mass, in the link's frame [m].
        moments: Rows of the rotational inertia about it, in the axes of that frame.
    """

    mass: Any
    centre: Vector3
    moments: Any


def central_inertia(link: Link, name: str, report: Report) -> CentralInertia | None:
    """Return the inertia of a link that is written, None if it is unknown.

    name: Of the link in the file.
    """
    inertia = link.inertia
    if inertia is not None and not link.primary.is_identity:
        inertia = inertia.transformed(link.primary)
    if inertia is not None:
        inertia = possible_inertia(inertia, NOWHERE, quote(name), report)
    if inertia is None:
        return None
    # Without a mass there is no centre, and the moments are those about the origin.
    has_centre = inertia.mass != 0.0
    centre = inertia.centre() if has_centre else ZERO
    moments = inertia.about_centre() if has_centre else inertia.rotational
    return CentralInertia(inertia.mass, centre, moments)
