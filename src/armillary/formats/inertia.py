"""Inertias that were read, as far as links take them."""

from __future__ import annotations

from armillary.formats.diagnostic import Place, Report
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import Pose

__all__ = ["placed_inertia", "possible_inertia"]


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
    places: tuple[Place, Place],
    of: str,
    report: Report,
) -> SpatialInertia | None:
    """Return the inertia of a link from that about its centre of mass, None without.

    X_LC: Pose of the centre, and of the axes of the moments, in the link.
    places: Of the moments, and of all.
    of: What messages call the link.
    """
    possible = possible_inertia(central, places[0], of, report)
    if possible is None:
        return None
    # From the axes at the centre of mass to those of the link (Steiner).
    inertia = possible.transformed(X_LC)
    fault = inertia.fault()
    if fault is None or not fault.is_refused:
        return inertia
    message = f"the inertia of {of} about its origin is impossible: {fault.message}"
    report.error(places[1], "bad-inertia", message)
    return None
