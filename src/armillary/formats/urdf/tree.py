"""Links and joints as a tree: whether they make one, and the cell that they make."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import Place, Report, Severity
from armillary.formats.names import FreeNames, check_unique, depth_first, shown_cycle
from armillary.formats.several_joints import (
    BALL,
    FLOATING,
    PartOfJoint,
    links_behind,
    placed,
)
from armillary.formats.urdf.joints import FREE, SEVERAL, JointElement
from armillary.model.axis import Axis, X, Y, Z
from armillary.model.joint import Joint
from armillary.model.joints.fixed import Fixed
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.mount import Mount
from armillary.model.parents import cycles
from armillary.model.workcell import Workcell
from armillary.spatial.vector import cross, unit

__all__ = ["PARTS", "cell_of", "check_mimics", "check_names", "root_of"]


LONGEST_CHAIN: Final = 32
MOST_SHOWN: Final = 10


def check_names(
    links: Sequence[tuple[str, Place]], joints: Sequence[JointElement], report: Report
) -> bool:
    """Report names that are taken, and links that joints name but that do not exist.

    links: The name and the location of each.

    Returns whether every link and both ends of every joint have a right name.
    """
    before = report.count(Severity.ERROR)
    check_unique("link", links, report)
    check_unique("joint", ((joint.name, joint.place) for joint in joints), report)
    known = {name for name, _ in links}
    for joint in report.bounded(joints):
        for end, name in (("parent", joint.parent), ("child", joint.child)):
            if name and name not in known:
                report.error(
                    joint.places[end],
                    "unknown-link",
                    f"the {end} of joint {quote(joint.name)} is {quote(name)}, which "
                    "does not exist",
                    hint=report.hint(name, known),
                )
    all_given = all(joint.parent and joint.child for joint in joints)
    return "" not in known and all_given and report.count(Severity.ERROR) == before


def root_of(
    links: Sequence[tuple[str, Place]], joints: Sequence[JointElement], report: Report
) -> str | None:
    """Return the name of the one link without a parent, below which all others are.

    links: The name and the location of each.

    Report links with two parents, several roots, and cycles; then it is None.
    """
    carrier: dict[str, JointElement] = {}
    is_tree = True
    for joint in joints:
        first = carrier.setdefault(joint.child, joint)
        if first is not joint:
            is_tree = False
            report.error(
                joint.place,
                "two-parents",
                f"joint {quote(joint.name)} carries link {quote(joint.child)}, which "
                f"joint {quote(first.name)} of line {first.place.line} carries already",
                hint="A link has one parent; URDF has no closed loops.",
            )
    roots = [(name, place) for name, place in links if name not in carrier]
    parents = {name: carrier[name].parent for name, _ in links if name in carrier}
    for cycle in cycles(parents):
        is_tree = False
        first, *rest = cycle
        report.error(
            carrier[first].place,
            "cycle",
            f"link {quote(first)} carries itself: "
            f"{shown_cycle([first, *reversed(rest)])}",
        )
    if len(roots) > 1:
        names = ", ".join(quote(name) for name, _ in roots[:MOST_SHOWN])
        more = f" and {len(roots) - MOST_SHOWN} more" if len(roots) > MOST_SHOWN else ""
        report.error(
            roots[1][1],
            "two-roots",
            f"{len(roots)} links have no parent, but a robot has one root: "
            f"{names}{more}",
            hint="Connect them by joints, such as fixed ones.",
        )
    return roots[0][0] if is_tree and len(roots) == 1 else None


class _Drive(NamedTuple):
    """What moves a joint in the end: q = multiplier q_leader + offset."""

    leader: str
    multiplier: float = 1.0
    offset: float = 0.0
    steps: int = 0


def check_mimics(
    joints: Iterable[JointElement], report: Report
) -> tuple[set[str], set[str]]:
    """Report joints that follow no moving joint, or themselves.

    Returns the names of those whose limits contradict those of their leader, and of
    those that are taken to move by themselves. Takes linear time.
    """
    by_name: dict[str, JointElement] = {}
    for joint in joints:
        by_name.setdefault(joint.name, joint)
    guess = report.guessing("it is taken to move by itself")
    free: set[str] = set()
    leaders: dict[str, str] = {}
    for name, joint in by_name.items():
        if joint.mimic is not None:
            if _can_lead(joint.mimic.of, joint, by_name, guess):
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
    of: str, joint: JointElement, by_name: dict[str, JointElement], report: Report
) -> bool:
    """Return whether a joint can follow `of`, which must have a single coordinate."""
    leader, hint = by_name.get(of), ""
    if leader is None:
        code, fault = "unknown-joint", "which does not exist"
        hint = report.hint(of, (name for name in by_name if name != joint.name))
    elif leader.type == "fixed":
        code, fault = "fixed-mimic", "which is fixed"
        hint = "Make the follower fixed too."
    elif leader.type in SEVERAL:
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


def _next(joint: JointElement, drive: _Drive | None, report: Report) -> _Drive | None:
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
    by_name: dict[str, JointElement], drives: dict[str, _Drive | None], report: Report
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


# The links and joints of a faultless URDF to a cell


SPLIT: Final = {"floating": FLOATING, "spherical": BALL}

PARTS: Final[dict[str, tuple[str, ...]]] = {
    "planar": ("x", "y", "theta"),
    **{kind: tuple(joints) for kind, joints in SPLIT.items()},
}
"""The joints that replace a joint with several coordinates: ends of their names."""

AXES: Final[tuple[Axis, Axis, Axis]] = (X, Y, Z)


def cell_of(
    name: str,
    root: str,
    links: Sequence[Link],
    joints: Sequence[JointElement],
    report: Report,
) -> Workcell:
    """Return a cell of one manipulator, its links depth first."""
    by_name = {link.name: link for link in links}
    carrier = {joint.child: joint for joint in joints}
    carried: dict[str, list[JointElement]] = {}
    for joint in joints:
        carried.setdefault(joint.parent, []).append(joint)
    mounts: tuple[Mount, ...] = ()
    free = _free_base(by_name[root], carried.get(root, []), report)
    if free is not None:
        root = free.child
        if not free.origin.is_identity:
            mounts = (Mount(manipulator=name, pose=free.origin),)
    link_names = FreeNames(set(by_name))
    joint_names = FreeNames({joint.name for joint in joints})
    ordered = [by_name[root]]
    children = {link: [each.child for each in on] for link, on in carried.items()}
    for child in depth_first(root, children)[1:]:
        joint, body = carrier[child], by_name[child]
        if joint.type in SEVERAL:
            ordered.extend(_split(joint, body, link_names, joint_names, report))
        else:
            ordered.append(_carried(body, joint))
    manipulator = Manipulator(name=name, links=tuple(ordered))
    return Workcell(name=name, manipulators=(manipulator,), mounts=mounts)


def _carried(body: Link, joint: JointElement) -> Link:
    """Return a link behind a joint with at most one coordinate."""
    moves: Joint = Fixed(precursor=joint.origin)
    if joint.type != "fixed":
        kind = Prismatic if joint.type == "prismatic" else Revolute
        moves = kind(axis=joint.axis, precursor=joint.origin)
    return msgspec.structs.replace(
        body,
        parent=joint.parent,
        joint=moves,
        joint_name=joint.name,
        limits=joint.limits,
        dynamics=joint.dynamics,
        coupling=joint.mimic,
    )


def _free_base(
    root: Link, carried: Sequence[JointElement], report: Report
) -> JointElement | None:
    """Return the joint that lets the whole robot move freely, if there is one.

    root: The link without a parent.
    carried: The joints on it.
    """
    is_bare = root == Link(name=root.name)
    if not is_bare or len(carried) != 1 or carried[0].type not in FREE:
        return None
    joint = carried[0]
    report.note(
        joint.place,
        "free-base",
        f"{joint.type} joint {quote(joint.name)} makes link {quote(joint.child)} the "
        f"base, which moves through the state; link {quote(root.name)} is left out",
    )
    if joint.type == "planar":
        report.warning(
            joint.place,
            "not-kept",
            f"that base {quote(joint.child)} stays in a plane is not kept",
        )
    return joint


def _split(
    joint: JointElement, body: Link, links: FreeNames, joints: FreeNames, report: Report
) -> list[Link]:
    """Return the links of a joint with several coordinates, the last one its child."""
    moves = _moves(joint)
    names = [joints.derive(f"{joint.name}_{part}") for part in moves]
    report.note(
        joint.place,
        "split-joint",
        f"{joint.type} joint {quote(joint.name)} becomes {len(moves)} joints: "
        f"{', '.join(names)}",
    )
    steps = [
        PartOfJoint(name=name, joint=each)
        for name, each in zip(names, placed(joint.origin, moves.values()), strict=True)
    ]
    return links_behind(steps, parent=joint.parent, body=body, names=links)


def _moves(joint: JointElement) -> dict[str, Joint]:
    """Return the joints that replace a joint, with the ends of their names."""
    if joint.type != "planar":
        return SPLIT[joint.type]
    first, second, normal = _plane(joint.axis)
    parts = Prismatic(axis=first), Prismatic(axis=second), Revolute(axis=normal)
    return dict(zip(PARTS["planar"], parts, strict=True))


def _plane(axis: Axis) -> tuple[Axis, Axis, Axis]:
    """Return two directions in the plane of a planar joint, and its normal.

    The first is the projection of the coordinate axis after the one that is most like
    the normal: x and y where the normal is z.
    """
    normal = unit(axis)
    most_like = max(range(3), key=lambda k: abs(normal[k]))
    # n x a, then that x n: the part of the axis `a` in the plane.
    level = cross(cross(normal, AXES[(most_like + 1) % 3]), normal)
    first = unit(level)
    return first, unit(cross(normal, first)), normal
