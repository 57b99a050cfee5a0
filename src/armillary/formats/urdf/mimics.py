"""Whether each joint that mimics another can do so."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.names import Guesses
from armillary.formats.urdf.hinges import SEVERAL, Hinge

__all__ = ["check_mimics"]

LONGEST_CHAIN: Final = 32
MOST_SHOWN: Final = 10


class _Drive(NamedTuple):
    """What moves a joint in the end: q = multiplier q_leader + offset."""

    leader: str
    multiplier: float = 1.0
    offset: float = 0.0
    steps: int = 0


def check_mimics(
    hinges: Iterable[Hinge], guesses: Guesses, report: Report
) -> tuple[set[str], set[str]]:
    """Report joints that follow no moving joint, or themselves.

    Takes time linear in their number, however they follow each other.

    Returns the names of those whose limits contradict those of their leader, and of
    those that are guessed to move by themselves.
    """
    by_name: dict[str, Hinge] = {}
    for hinge in hinges:
        by_name.setdefault(hinge.name, hinge)
    drives: dict[str, _Drive | None] = {}
    free: set[str] = set()
    guess = report.guessing("it is taken to move by itself")
    for name, hinge in by_name.items():
        if hinge.mimic is None:
            drives[name] = _Drive(name)
        elif not _has_leader(hinge, by_name, guesses, guess):
            drives[name] = _Drive(name)
            free.add(name)
    for name in by_name:
        chain, end = _followed(name, by_name, drives)
        if chain and end not in drives:
            _tell_cycle(chain, by_name[end], guess)
            drives[end] = _Drive(end)
            free.add(end)
            chain = chain[: [hinge.name for hinge in chain].index(end)]
        drive = drives.get(end)
        for hinge in reversed(chain):
            drive = drives[hinge.name] = _next(hinge, drive, report)
    return _contradicting(by_name, drives, report), free


def _has_leader(
    hinge: Hinge, by_name: dict[str, Hinge], guesses: Guesses, report: Report
) -> bool:
    """Return whether a joint follows one that moves by a single coordinate."""
    assert hinge.mimic is not None
    of, hint = hinge.mimic.of, ""
    leader = by_name.get(of)
    if leader is None:
        code, fault = "unknown-joint", "which does not exist"
        hint = guesses.hint(of, (name for name in by_name if name != hinge.name))
    elif leader.type == "fixed":
        code, fault = "fixed-mimic", "which is fixed"
        hint = "Make the follower fixed too."
    elif leader.type in SEVERAL:
        code, fault = "free-mimic", f"which is {leader.type}: it has no one coordinate"
    else:
        return True
    report.error(
        hinge.places["mimic"],
        code,
        f"joint {quote(hinge.name)} mimics {quote(of)}, {fault}",
        hint=hint,
    )
    return False


def _followed(
    name: str, by_name: dict[str, Hinge], drives: dict[str, _Drive | None]
) -> tuple[list[Hinge], str]:
    """Return a joint and those it follows, and the joint known or seen that ends it."""
    chain: list[Hinge] = []
    seen: set[str] = set()
    while name not in drives and name not in seen:
        seen.add(name)
        chain.append(by_name[name])
        mimic = by_name[name].mimic
        assert mimic is not None
        name = mimic.of
    return chain, name


def _tell_cycle(chain: list[Hinge], first: Hinge, report: Report) -> None:
    names = [hinge.name for hinge in chain]
    cycle = [*names[names.index(first.name) :], first.name]
    shown = " -> ".join(map(quote, cycle[:MOST_SHOWN]))
    report.error(
        first.places["mimic"],
        "mimic-cycle",
        f"joint {quote(first.name)} mimics itself: {shown}"
        + (" -> ..." if len(cycle) > MOST_SHOWN else ""),
        hint="Let one of them move by itself.",
    )


def _next(hinge: Hinge, drive: _Drive | None, report: Report) -> _Drive | None:
    """Return what moves a joint, from what moves the one that it follows."""
    assert hinge.mimic is not None
    if drive is None:
        return None
    if drive.steps == LONGEST_CHAIN:
        report.error(
            hinge.places["mimic"],
            "mimic-chain",
            f"joint {quote(hinge.name)} follows {quote(drive.leader)} over more than "
            f"{LONGEST_CHAIN} joints",
            hint=f"Let it mimic {quote(drive.leader)} directly.",
        )
        return None
    multiplier = hinge.mimic.multiplier * drive.multiplier
    offset = hinge.mimic.multiplier * drive.offset + hinge.mimic.offset
    if not (math.isfinite(multiplier) and math.isfinite(offset)):
        report.error(
            hinge.places["mimic"],
            "bad-number",
            f"joint {quote(hinge.name)} follows {quote(drive.leader)} by a multiplier "
            "or offset that is too large for a double",
        )
        return None
    return _Drive(drive.leader, multiplier, offset, drive.steps + 1)


def _contradicting(
    by_name: dict[str, Hinge], drives: dict[str, _Drive | None], report: Report
) -> set[str]:
    """Return the followers whose limits leave their leader nothing, or one spot."""
    found: set[str] = set()
    ranges = {
        name: (hinge.limits.lower, hinge.limits.upper)
        for name, hinge in by_name.items()
        if (drive := drives[name]) is not None and not drive.steps
    }
    for name, drive in drives.items():
        if drive is None or not drive.steps or drive.multiplier == 0.0:
            continue
        limits = by_name[name].limits
        low, high = sorted(
            (limit - drive.offset) / drive.multiplier
            for limit in (limits.lower, limits.upper)
        )
        before = ranges[drive.leader]
        after = max(before[0], low), min(before[1], high)
        if after[0] < after[1] or after == before:
            ranges[drive.leader] = after
            continue
        found.add(name)
        report.warning(
            by_name[name].places["mimic"],
            "mimic-limits",
            f"the limits of joint {quote(name)} would hold {quote(drive.leader)}, "
            f"which it follows, within [{low + 0.0:g}, {high + 0.0:g}], against the "
            f"[{before[0]:g}, {before[1]:g}] of that one; they are left out",
        )
    return found
