"""Inertias that were read, as far as links take them."""

from __future__ import annotations

from armillary.formats.diagnostic import Place, Report
from armillary.spatial.inertia import SpatialInertia

__all__ = ["possible_inertia"]


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
