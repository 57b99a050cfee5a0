"""Limits that couple joints, which a format cannot hold."""

from __future__ import annotations

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.model.workcell import Workcell

__all__ = ["report_lost_limits"]


def report_lost_limits(cell: Workcell, report: Report) -> None:
    """Warn of each limit of several joints that a file leaves out."""
    limits = [
        (f"manipulator {quote(m.name)}", each)
        for m in cell.manipulators
        for each in m.coupled_limits
    ]
    limits += [(f"cell {quote(cell.name)}", each) for each in cell.coupled_limits]
    for whose, limit in limits:
        name = f" {quote(limit.name)}" if limit.name else ""
        report.warning(
            NOWHERE,
            "lost-coupled-limit",
            f"{whose} is written without its coupled limit{name}: {limit}",
        )
