"""What people see of states: a line, tables in notebooks, and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from armillary.errors import FormatError, quote
from armillary.kinematics.placement import BaseVelocity, Placement
from armillary.model.display import MOST_NUMBERS, numbers, table
from armillary.model.workcell import Workcell

Numbers: TypeAlias = tuple[float, ...]
Contents: TypeAlias = tuple[
    Numbers, Numbers, tuple[Placement, ...], tuple[BaseVelocity, ...]
]
"""Of a state: joint positions, joint rates, placements, velocities of bases."""


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
            raise FormatError(f"This JSON is not a state: it has {quote(name)} twice.")


def differences(
    a: Contents, b: Contents, joints: Sequence[str]
) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield the name of what differs between two states, and its value in each.

    joints: Names of the joints.
    """
    for what, here, there in (("", a[0], b[0]), ("rate of ", a[1], b[1])):
        if len(here) != len(there) or len(here) > len(joints):
            yield f"{what}q".strip(), (here, there)
            continue
        for name, x, y in zip(joints, here, there, strict=False):
            if x != y:
                yield f"{what}{name}", (x, y)
    for what, here, there in (("base of ", a[2], b[2]), ("velocity of ", a[3], b[3])):
        left = {each.manipulator: each for each in here}
        right = {each.manipulator: each for each in there}
        for name in sorted({*left, *right}):
            if left.get(name) != right.get(name):
                yield f"{what}{name}", (left.get(name), right.get(name))
