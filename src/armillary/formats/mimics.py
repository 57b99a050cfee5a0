"""Joints that follow others in files: chains, cycles, and limits that contradict."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from typing import Final, NamedTuple, Protocol

from armillary.errors import quote
from armillary.formats.diagnostic import Place, Report
from armillary.formats.names import shown_cycle
from armillary.model.coupling import Coupling
from armillary.model.limits import Limits
from armillary.model.parents import cycles

__all__ = ["MimicJoint", "check_mimics"]

LONGEST_CHAIN: Final = 32


class MimicJoint(Protocol):
    """A joint of a file, which may follow another one.

    Attributes:
        name: Of the joint.
        type: As in the file; `fixed` joints do not move.
        limits: Of its coordinate.
        mimic: The joint that it follows, if any.
        places: The location of its `mimic`, if it has one.
    """

    @property
    def name(self) -> str:
        """Return the name of the joint."""
        ...

    @property
    def type(self) -> str:
        """Return its type, as in the file."""
        ...

    @property
    def limits(self) -> Limits:
        """Return the limits of its coordinate."""
        ...

    @property
    def mimic(self) -> Coupling | None:
        """Return the joint that it follows, if any."""
        ...

    @property
    def places(self) -> Mapping[str, Place]:
        """Return the location of its `mimic`, if it has one."""
        ...


class _Drive(NamedTuple):
    """What moves a joint in the end: q = multiplier q_leader + offset."""

    leader: str
    multiplier: float = 1.0
    offset: float = 0.0
    steps: int = 0


def check_mimics(
    joints: Iterable[MimicJoint], report: Report, *, several: Collection[str]
) -> tuple[set[str], set[str]]:
    """Report joints that follow no moving joint, or themselves.

    several: The types of joints with several coordinates, which none can follow.

    Returns the names of those whose limits contradict those of their leader, and of
    those that are taken to move by themselves. Takes linear time.
    """
    by_name: dict[str, MimicJoint] = {}
    for joint in joints:
        by_name.setdefault(joint.name, joint)
    guess = report.guessing("it is taken to move by itself")
    free: set[str] = set()
    leaders: dict[str, str] = {}
    for name, joint in by_name.items():
        if joint.mimic is not None:
            if _can_lead(joint.mimic.of, joint, by_name, several, guess):
                leaders[name] = joint.mimic.of
            else:
                free.add(name)
    for cycle in cycles(leaders):
        guess.error(
            by_name[cycle[0]].places["mimic"],
            "mimic-cycle",
            f"joint {quote(cycle[0])} mimics itself: {shown_cycle(cycle)}",
            hint="Let one of them move by itself.",
        )
        free.add(cycle[0])
        del leaders[cycle[0]]
    drives: dict[str, _Drive | None] = {
        name: _Drive(name) for name in by_name if name not in leaders
    }
    # Each chain of followers is walked outwards from its leader, and once only.
    for follower in leaders:
        chain = [follower]
        while chain[-1] not in drives:
            chain.append(leaders[chain[-1]])
        for name, leader in reversed(list(pairwise(chain))):
            drives[name] = _next(by_name[name], drives[leader], report)
    return _contradicting(by_name, drives, report), free


def _can_lead(
    of: str,
    joint: MimicJoint,
    by_name: Mapping[str, MimicJoint],
    several: Collection[str],
    report: Report,
) -> bool:
    """Return whether a joint can follow `of`, which must have a single coordinate."""
    leader, hint = by_name.get(of), ""
    if leader is None:
        code, fault = "unknown-joint", "which does not exist"
        hint = report.hint(of, (name for name in by_name if name != joint.name))
    elif leader.type == "fixed":
        code, fault = "fixed-mimic", "which is fixed"
        hint = "Make the follower fixed too."
    elif leader.type in several:
        code = "free-mimic"
        fault = f"which is {leader.type}: it has several coordinates"
    else:
        return True
    report.error(
        joint.places["mimic"],
        code,
        f"joint {quote(joint.name)} mimics {quote(of)}, {fault}",
        hint=hint,
    )
    return False


def _next(joint: MimicJoint, drive: _Drive | None, report: Report) -> _Drive | None:
    """Return what moves a joint, from what moves the one that it follows."""
    assert joint.mimic is not None
    if drive is None:
        return None
    if drive.steps == LONGEST_CHAIN:
        report.error(
            joint.places["mimic"],
            "mimic-chain",
            f"joint {quote(joint.name)} follows {quote(drive.leader)} over more than "
            f"{LONGEST_CHAIN} joints",
            hint=f"Let it mimic {quote(drive.leader)} directly.",
        )
        return None
    # m1 (m0 q + b0) + b1 = (m1 m0) q + (m1 b0 + b1)
    multiplier = joint.mimic.multiplier * drive.multiplier
    offset = joint.mimic.multiplier * drive.offset + joint.mimic.offset
    if not (math.isfinite(multiplier) and math.isfinite(offset)):
        report.error(
            joint.places["mimic"],
            "bad-number",
            f"joint {quote(joint.name)} follows {quote(drive.leader)} by a multiplier "
            "or offset that is too large for a double",
        )
        return None
    return _Drive(drive.leader, multiplier, offset, drive.steps + 1)


def _contradicting(
    by_name: dict[str, MimicJoint], drives: dict[str, _Drive | None], report: Report
) -> set[str]:
    """Return the followers whose limits leave their leader no range, or one value."""
    excluded: set[str] = set()
    ranges = {
        name: (joint.limits.lower, joint.limits.upper)
        for name, joint in by_name.items()
        if (drive := drives[name]) is not None and not drive.steps
    }
    for name, drive in drives.items():
        if drive is None or not drive.steps or drive.multiplier == 0.0:
            continue
        limits = by_name[name].limits
        # Limits of m q + b are limits of q: (limit - b) / m, swapped for a negative m.
        low, high = sorted(
            (limit - drive.offset) / drive.multiplier
            for limit in (limits.lower, limits.upper)
        )
        before = ranges[drive.leader]
        after = max(before[0], low), min(before[1], high)
        if after[0] < after[1] or after == before:
            ranges[drive.leader] = after
            continue
        excluded.add(name)
        report.warning(
            by_name[name].places["mimic"],
            "mimic-limits",
            f"the limits of joint {quote(name)} would restrict {quote(drive.leader)}, "
            f"which it follows, to [{low + 0.0:g}, {high + 0.0:g}], but that joint has "
            f"[{before[0]:g}, {before[1]:g}]; they are left out",
        )
    return excluded
