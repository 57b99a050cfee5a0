"""Closed loops that a format cannot hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    is_written: Callable[[str, int], bool] = lambda owner, number: False,
) -> None:
    """Warn of loops that a file leaves open, and of the joints that they determined.

    is_written: Returns whether the file holds a loop: of a manipulator by its name, or
        of the cell by an empty one; and its place among those.
    """
    for each in cell.manipulators:
        names = each.passive_names
        whose = f"manipulator {quote(each.name)}"
        _report(whose, each.name, each.loops, names, is_written, report)
    own_joints = {f"{m.name}/{n}" for m in cell.manipulators for n in m.passive_names}
    free = [name for name in cell.passive_names if name not in own_joints]
    _report(f"cell {quote(cell.name)}", "", cell.loops, free, is_written, report)


def _report(
    whose: str,
    owner: str,
    loops: Sequence[Closure | Rod],
    passive: Sequence[str],
    is_written: Callable[[str, int], bool],
    report: Report,
) -> None:
    open_ = [loop for k, loop in enumerate(loops) if not is_written(owner, k)]
    if not open_:
        return
    what = _listed([loop.label for loop in open_])
    joints = (
        f"; {_listed(list(map(quote, passive)))}, which followed, " if passive else ""
    )
    if joints and len(open_) == len(loops):
        joints += "move by themselves"
    elif joints:
        joints += f"follow only the other {len(loops) - len(open_)}"
    report.warning(
        NOWHERE, "open-loop", f"{whose} is written with open loops: {what}{joints}"
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_SHOWN} more" if names[MOST_SHOWN:] else ""
    return f"{', '.join(names[:MOST_SHOWN])}{more}"
