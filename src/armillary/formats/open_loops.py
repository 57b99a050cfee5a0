"""Closed loops that a format cannot hold."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.model.loops.loop import Closure, Rod
from armillary.model.workcell import Workcell

__all__ = ["report_open_loops"]

MOST_SHOWN: Final = 4


def report_open_loops(
    cell: Workcell,
    report: Report,
    *,
    closed: Collection[str] = (),
    is_closed: bool = False,
) -> None:
    """Warn of loops that a file leaves open, and of the joints that they determined.

    closed: Names of the manipulators whose own loops the file holds.
    is_closed: Whether it holds those of the cell.
    """
    for each in cell.manipulators:
        if each.loops and each.name not in closed:
            _report(
                f"manipulator {quote(each.name)}",
                each.loops,
                each.passive_names,
                report,
            )
    if cell.loops and not is_closed:
        own_joints = {
            f"{m.name}/{n}" for m in cell.manipulators for n in m.passive_names
        }
        free = [name for name in cell.passive_names if name not in own_joints]
        _report(f"cell {quote(cell.name)}", cell.loops, free, report)


def _report(
    whose: str, loops: Sequence[Closure | Rod], passive: Sequence[str], report: Report
) -> None:
    what = _listed([loop.label for loop in loops])
    follow = _listed(list(map(quote, passive)))
    joints = f"; {follow}, which followed, move by themselves" if passive else ""
    report.warning(
        NOWHERE, "open-loop", f"{whose} is written with open loops: {what}{joints}"
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_SHOWN} more" if names[MOST_SHOWN:] else ""
    return f"{', '.join(names[:MOST_SHOWN])}{more}"
