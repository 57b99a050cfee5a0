"""States as text: a short line, tables in notebooks, and a check of their JSON."""

from __future__ import annotations

from typing import Any

from armillary.errors import FormatError, quote
from armillary.kinematics.state_diff import Contents
from armillary.model.display import MOST_NUMBERS, numbers, table
from armillary.model.workcell import Workcell


def state_line(contents: Contents, cell: Workcell | None) -> str:
    """Return the cell, numbers and moved bases of a state in a line."""
    q, qd, placements, _ = contents
    of = "" if cell is None else f" of {quote(cell.name)}"
    parts = [f"<State{of}: q={numbers(q)}"]
    if any(qd):
        parts.append(f"qd={numbers(qd)}")
    for each in placements[:MOST_NUMBERS]:
        parts.append(f"{quote(each.manipulator)} on {quote(each.on)}")
    if len(placements) > MOST_NUMBERS:
        parts.append(f"... {len(placements)} moved bases in all")
    return ", ".join(parts) + ">"


def state_tables(contents: Contents, cell: Workcell | None) -> str:
    """Return the joints and moved bases of a state as HTML."""
    q, qd, placements, _ = contents
    names = range(len(q)) if cell is None else cell.joint_names
    joints = (
        (name, f"{position:.6g}", f"{rate:.6g}")
        for name, position, rate in zip(names, q, qd or [0.0] * len(q), strict=True)
    )
    shown = table("State", ("joint", "q", "qd"), joints)
    if placements:
        bases = ((each.manipulator, each.on) for each in placements)
        shown += table("Moved bases", ("manipulator", "on"), bases)
    return shown


def without_repeats(pairs: list[tuple[str, Any]]) -> None:
    """Refuse a JSON object that has a key twice; readers would keep the last.

    Raises:
        FormatError: It has.
    """
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise FormatError(f"This JSON is no state: it has {quote(name)} twice.")
