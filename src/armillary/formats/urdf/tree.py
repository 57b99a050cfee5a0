"""Links and joints as a tree: whether they make one, and the cell that they make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.names import FreeNames, check_unique, depth_first, shown_cycle
from armillary.formats.several_joints import (
    BALL,
    FLOATING,
    SplitJoint,
    links_behind,
    placed,
)
from armillary.formats.urdf.joints import FREE, SEVERAL, JointElement
from armillary.formats.urdf.links import UrdfLink
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

__all__ = ["PARTS", "cell_of", "check_names", "root_of"]


MOST_SHOWN: Final = 10


def check_names(
    links: Sequence[UrdfLink], joints: Sequence[JointElement], report: Report
) -> bool:
    """Report names that are taken, and links that joints name but that do not exist.

    Returns whether every link and both ends of every joint have a right name.
    """
    before = report.count(Severity.ERROR)
    check_unique("link", ((k.name, k.element) for k in links), report)
    check_unique("joint", ((k.name, k.element) for k in joints), report)
    known = {link.name for link in links}
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
    links: Sequence[UrdfLink], joints: Sequence[JointElement], report: Report
) -> str | None:
    """Return the name of the one link without a parent, below which all others are.

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
    roots = [link for link in links if link.name not in carrier]
    parents = {k.name: carrier[k.name].parent for k in links if k.name in carrier}
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
        names = ", ".join(quote(root.name) for root in roots[:MOST_SHOWN])
        more = f" and {len(roots) - MOST_SHOWN} more" if len(roots) > MOST_SHOWN else ""
        report.error(
            roots[1].place,
            "two-roots",
            f"{len(roots)} links have no parent, but a robot has one root: "
            f"{names}{more}",
            hint="Connect them by joints, such as fixed ones.",
        )
    return roots[0].name if is_tree and len(roots) == 1 else None


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
    links: Sequence[UrdfLink],
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
    ordered = [by_name[root].link]
    children = {link: [each.child for each in on] for link, on in carried.items()}
    for child in depth_first(root, children)[1:]:
        joint, body = carrier[child], by_name[child]
        if joint.type in SEVERAL:
            split = _split(joint, body.link, link_names, joint_names, report)
            ordered.extend(split)
        else:
            ordered.append(_carried(body, joint))
    manipulator = Manipulator(name=name, links=tuple(ordered))
    return Workcell(name=name, manipulators=(manipulator,), mounts=mounts)


def _carried(body: UrdfLink, joint: JointElement) -> Link:
    """Return a link behind a joint with at most one coordinate."""
    moves: Joint = Fixed(precursor=joint.origin)
    if joint.type != "fixed":
        kind = Prismatic if joint.type == "prismatic" else Revolute
        moves = kind(axis=joint.axis, precursor=joint.origin)
    return Link(
        name=body.name,
        parent=joint.parent,
        joint=moves,
        joint_name=joint.name,
        limits=joint.limits,
        dynamics=joint.dynamics,
        coupling=joint.mimic,
        inertia=body.inertia,
        visuals=body.visuals,
        collisions=body.collisions,
    )


def _free_base(
    root: UrdfLink, carried: Sequence[JointElement], report: Report
) -> JointElement | None:
    """Return the joint that lets the whole robot move freely, if there is one.

    root: The link without a parent.
    carried: The joints on it.
    """
    is_bare = root.inertia is None and not (root.visuals or root.collisions)
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
        SplitJoint(name=name, joint=each)
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
