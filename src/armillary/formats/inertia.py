"""Inertias that no body has: reported, and left out where links refuse them."""

from __future__ import annotations

from armillary.formats.diagnostic import Place, Report
from armillary.spatial.inertia import SpatialInertia

__all__ = ["possible_inertia"]


def possible_inertia(
    inertia: SpatialInertia, place: Place, of: str, report: Report
) -> SpatialInertia | None:
    """Return an inertia that was read, None where links refuse it.

    of: What messages call its link.
    """
    fault = inertia.fault()
    if fault is None:
        return inertia
    message = f"the inertia of {of} is impossible: {fault.message}"
    if fault.is_refused:
        report.tolerating("it is left out").error(place, "bad-inertia", message)
        return None
    report.warning(place, "bad-inertia", message)
    return inertia
