"""What states hold as plain values, what people see of it, and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from armillary.errors import FormatError, quote
from armillary.kinematics.placement import BaseVelocity, Placement
from armillary.model.display import MOST_NUMBERS, numbers, table
from armillary.model.workcell import Workcell

__all__ = [
    "START",
    "Contents",
    "differences",
    "state_line",
    "state_tables",
    "without_repeats",
]

Numbers: TypeAlias = tuple[float, ...]
START: Final = 0.0
"""The time that JSON leaves out, which it knows by its identity [s]."""


class Contents(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What a state holds, as plain values; see `State`. It is what JSON has of it."""

    q: Numbers = ()
    qd: Numbers = ()
    passive: Numbers = ()
    placements: tuple[Placement, ...] = ()
    base_velocities: tuple[BaseVelocity, ...] = ()
    time: float = START


def state_line(contents: Contents, cell: Workcell | None) -> str:
    """Return the cell, numbers and moved bases of a state in a line."""
    q, qd, passive = contents.q, contents.qd, contents.passive
    placements = contents.placements
    of = "" if cell is None else f" of {quote(cell.name)}"
    parts = [f"<State{of}: q={numbers(q)}"]
    if any(qd):
        parts.append(f"qd={numbers(qd)}")
    if passive:
        parts.append(f"passive={numbers(passive)}")
    for each in placements[:MOST_NUMBERS]:
        parts.append(f"{quote(each.manipulator)} on {quote(each.on)}")
    if len(placements) > MOST_NUMBERS:
        parts.append(f"... {len(placements)} moved bases in all")
    if contents.time:
        parts.append(f"at {contents.time:g} s")
    return ", ".join(parts) + ">"


def state_tables(contents: Contents, cell: Workcell | None) -> str:
    """Return the joints and moved bases of a state as HTML."""
    q, qd, passive = contents.q, contents.qd, contents.passive
    names = range(len(q)) if cell is None else cell.joint_names
    joints = [
        (name, f"{position:.6g}", f"{rate:.6g}")
        for name, position, rate in zip(names, q, qd or [0.0] * len(q), strict=True)
    ]
    followers = range(len(passive)) if cell is None else cell.passive_names
    joints += [
        (f"{name} (passive)", f"{position:.6g}", "")
        for name, position in zip(followers, passive, strict=True)
    ]
    shown = table("State", ("joint", "q", "qd"), joints)
    if contents.placements:
        bases = ((each.manipulator, each.on) for each in contents.placements)
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
    a: Contents, b: Contents, cell: Workcell | None
) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield the name of what differs between two states, and its value in each.

    cell: That of the first, if it is known; else joints are called by number.
    """
    n, m = len(a.q), len(a.passive)
    joints: Sequence[str] = list(map(str, range(n)))
    passive: Sequence[str] = [f"passive {k}" for k in range(m)]
    if cell is not None:
        joints, passive = cell.joint_names, cell.passive_names
    for what, whole, names, here, there in (
        ("", "q", joints, a.q, b.q),
        ("rate of ", "q", joints, a.qd, b.qd),
        ("", "passive", passive, a.passive, b.passive),
    ):
        if len(here) != len(there) or len(here) > len(names):
            yield f"{what}{whole}", (here, there)
            continue
        for name, x, y in zip(names, here, there, strict=False):
            if x != y:
                yield f"{what}{name}", (x, y)
    for what, before, after in (
        ("base of ", a.placements, b.placements),
        ("velocity of ", a.base_velocities, b.base_velocities),
    ):
        left = {each.manipulator: each for each in before}
        right = {each.manipulator: each for each in after}
        for name in sorted({*left, *right}):
            if left.get(name) != right.get(name):
                yield f"{what}{name}", (left.get(name), right.get(name))
    if a.time != b.time:
        yield "time", (a.time, b.time)
