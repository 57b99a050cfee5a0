"""Limits whose lower one is above the upper one."""

from __future__ import annotations

from armillary.formats.diagnostic import SWAPPED_LIMITS, Place, Report
from armillary.model.limits import INFINITE

__all__ = ["in_order"]


def in_order(
    lower: float,
    upper: float,
    what: str,
    place: Place,
    report: Report,
    *,
    both_given: bool = True,
) -> tuple[float, float]:
    """Return limits that are swapped as the caller reads them; report that they are.

    what: Whose they are, for messages: `"<limit> of <joint name='elbow'>"`.
    both_given: Whether the file gives both, rather than one beside a default.
    """
    chosen = report.swapped_limits
    view = report.guessing(SWAPPED_LIMITS["swap"])
    if chosen:
        view = report.tolerating(SWAPPED_LIMITS[chosen])
    hint = "Swap them if that is meant." if both_given else ""
    if chosen != "unlimited":
        meant = "Some simulators read them as no limits: swapped_limits='unlimited'"
        hint = f"{hint} {meant}.".lstrip()
    view.error(
        place,
        "swapped-limits",
        f"{what} has lower {lower:g} above upper {upper:g}",
        hint=hint,
    )
    return (-INFINITE, INFINITE) if chosen == "unlimited" else (upper, lower)
