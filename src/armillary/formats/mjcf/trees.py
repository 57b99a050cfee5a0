"""Bodies to manipulators: which belong together, and the links that they become.

Each body below the world begins a manipulator, those of one prefix, `left/`, together;
a body that nothing moves and whose prefix differs from that of its parent begins one
that is mounted there. What is fixed to the world itself is `environment`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.mjcf.body import Body, PlacedElement
from armillary.formats.mjcf.document import MjcfDocument
from armillary.formats.mjcf.joints import (
    BALL_JOINT,
    FREE,
    BodyJoint,
    read_joint,
    steps_of,
)
from armillary.formats.mjcf.poses import read_fromto
from armillary.formats.names import FreeNames, check_unique
from armillary.formats.several_joints import BALL, SplitJoint, links_behind
from armillary.model.frame import Frame
from armillary.model.joints.fixed import Fixed
from armillary.model.link import Link
from armillary.model.mount import WORLD, Mount
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import Pose

__all__ = ["BASE", "ENVIRONMENT", "BodyGroup", "LinkAt", "Trees", "read_trees"]

ENVIRONMENT: Final = "environment"
BASE: Final = "base"
"""The name of the link that is put below bodies which move on the world."""

SEPARATOR: Final = "/"


@dataclass(slots=True)
class BodyGroup:
    """The bodies of a manipulator.

    Attributes:
        name: Of the manipulator.
        prefix: What the names of its elements begin with in the file.
        bodies: Their numbers, depth first.
        has_base: Whether a link is put below them, as they move on the world.
        mount: Where its base stands.
        links: Its links, depth first.
    """

    name: str
    prefix: str
    bodies: list[int]
    has_base: bool = False
    mount: Mount | None = None
    links: list[Link] = field(default_factory=list[Link])


@dataclass(frozen=True, slots=True)
class LinkAt:
    """Where a body is in the cell.

    Attributes:
        group: Its manipulator.
        link: The name of its link.
    """

    group: BodyGroup
    link: str

    @property
    def qualified(self) -> str:
        """Return the name of the link in the cell."""
        return f"{self.group.name}/{self.link}"


@dataclass(slots=True)
class Trees:
    """The manipulators of a model, and where the elements of the file are in them.

    Attributes:
        groups: The manipulators.
        bodies: Where each body is; the world is nowhere without an environment.
        joints: For each body its joints, each with the names of its coordinates.
        frames: For each body its sites that are frames, by their names in the file.
    """

    groups: list[BodyGroup]
    bodies: list[LinkAt | None]
    joints: list[list[tuple[BodyJoint, tuple[str, ...]]]]
    sites: dict[str, tuple[LinkAt, str]]

    def coordinates(self) -> dict[str, tuple[BodyGroup, tuple[str, ...], BodyJoint]]:
        """Return manipulator and coordinates of each joint with a name in the file."""
        found: dict[str, tuple[BodyGroup, tuple[str, ...], BodyJoint]] = {}
        for at, joints in zip(self.bodies, self.joints, strict=True):
            for joint, names in joints:
                if joint.name and at is not None:
                    found[joint.name] = at.group, names, joint
        return found


def read_trees(
    document: MjcfDocument,
    bodies: Sequence[Body],
    inertias: Sequence[SpatialInertia | None],
    coupled: Iterable[tuple[str, str]],
) -> Trees:
    """Return the manipulators of bodies, their links without shapes.

    inertias: Of the bodies.
    coupled: Pairs of joints, of which one follows the other.
    """
    joints = [[read_joint(each) for each in body.of("joint")] for body in bodies]
    _check_names(bodies, joints, document.report)
    _check_free(bodies, joints, document.report)
    groups, owner = _groups(document, bodies, joints, coupled)
    trees = Trees(groups, [None] * len(bodies), [[] for _ in bodies], {})
    for group in groups:
        _add_links(group, trees, bodies, joints, inertias, document.report)
    for group in groups:
        _mount(group, trees, bodies, joints, owner)
    return trees


def _check_names(
    bodies: Sequence[Body], joints: Sequence[Sequence[BodyJoint]], report: Report
) -> None:
    """Report names that are taken: of bodies, joints, geoms and sites."""
    check_unique("body", [(b.name, b.element) for b in bodies[1:]], report)
    of_all = [(j.name, j.element) for each in joints for j in each]
    check_unique("joint", of_all, report)
    for kind in ("geom", "site"):
        elements = [p.element for b in bodies for p in b.of(kind)]
        named = [(e.attributes.get("name", ""), e) for e in elements]
        check_unique(kind, named, report)


def _check_free(
    bodies: Sequence[Body], joints: list[list[BodyJoint]], report: Report
) -> None:
    """Report joints where there can be none, and leave them out."""
    for number, (body, own) in enumerate(zip(bodies, joints, strict=True)):
        bad = ""
        free = [joint for joint in own if joint.type == FREE]
        if number == 0 and own:
            bad = "is in the world, which cannot move"
        elif free and body.parent != 0:
            bad = "is free, but its body is inside of another one"
        elif free and len(own) > 1:
            bad = "is free, so its body can have no other joint"
        if free and not bad and _is_aligned(body, free[0]):
            report.unsupported.add(
                "that a free body's frame is put into its centre of mass",
                free[0].element.place,
            )
        if bad:
            joint = free[0] if free else own[0]
            message = f"{joint.element.label} {bad}"
            report.error(joint.element.place, "bad-joint", message)
            joints[number] = []


def _is_aligned(body: Body, joint: BodyJoint) -> bool:
    align = joint.element.attributes.get("align", "auto")
    return align == "true" or (align == "auto" and body.document.settings["alignfree"])


# Which bodies belong together


def _groups(
    document: MjcfDocument,
    bodies: Sequence[Body],
    joints: Sequence[Sequence[BodyJoint]],
    coupled: Iterable[tuple[str, str]],
) -> tuple[list[BodyGroup], list[BodyGroup | None]]:
    """Return the manipulators in order, and that of each body."""
    children: list[list[int]] = [[] for _ in bodies]
    for number, body in enumerate(bodies[1:], 1):
        children[body.parent].append(number)
    leader = _leaders(bodies, joints, coupled)
    owner: list[BodyGroup | None] = [None] * len(bodies)
    groups: list[BodyGroup] = []
    names = FreeNames({WORLD})
    if _holds_something(bodies[0]):
        owner[0] = BodyGroup(ENVIRONMENT, "", [0])
        names.derive(ENVIRONMENT)
        groups.append(owner[0])
    of_prefix: dict[str, BodyGroup] = {}
    of_leader: dict[int, BodyGroup] = {}
    is_single = len(children[0]) == 1
    for number, body in enumerate(bodies[1:], 1):
        prefix = _prefix(body.name)
        outer = owner[body.parent] if body.parent else None
        stays = not joints[number] and not body.is_mocap
        if outer is not None and (
            not stays or not prefix or not outer.prefix or outer.prefix == prefix
        ):
            owner[number] = outer
        elif body.parent == 0 and leader[number] in of_leader:
            owner[number] = of_leader[leader[number]]
        elif (
            body.parent == 0
            and prefix
            and prefix in of_prefix
            and not _is_loose(body, joints[number])
        ):
            owner[number] = of_prefix[prefix]
        else:
            name = prefix.removesuffix(SEPARATOR) or body.name or f"body{number}"
            if is_single and not prefix and body.parent == 0:
                name = _name_of(document)
            reserved = {WORLD} if owner[0] is None else {WORLD, ENVIRONMENT}
            plain = _plain(name, reserved, document)
            group = BodyGroup(names.derive(plain), prefix, [])
            groups.append(group)
            owner[number] = group
            if body.parent == 0 and not _is_loose(body, joints[number]):
                of_leader[leader[number]] = group
                if prefix:
                    of_prefix.setdefault(prefix, group)
        owned = owner[number]
        assert owned is not None
        owned.bodies.append(number)
    for group in groups:
        _settle(group, bodies, joints)
    return groups, owner


def _leaders(
    bodies: Sequence[Body],
    joints: Sequence[Sequence[BodyJoint]],
    coupled: Iterable[tuple[str, str]],
) -> list[int]:
    """Return for each body that of the bodies below the world which it goes with.

    Bodies below the world go together where joints of one follow those of another.
    """
    top = list(range(len(bodies)))
    for number, body in enumerate(bodies[1:], 1):
        top[number] = number if body.parent == 0 else top[body.parent]
    body_of = {j.name: k for k, own in enumerate(joints) for j in own if j.name}
    joined = list(range(len(bodies)))

    def found(k: int) -> int:
        while joined[k] != k:
            k = joined[k]
        return k

    for one, other in coupled:
        if one in body_of and other in body_of:
            a, b = found(top[body_of[one]]), found(top[body_of[other]])
            joined[max(a, b)] = min(a, b)
    return [found(k) for k in range(len(bodies))]


def _is_loose(body: Body, joints: Sequence[BodyJoint]) -> bool:
    return body.is_mocap or any(joint.type == FREE for joint in joints)


def _settle(
    group: BodyGroup, bodies: Sequence[Body], joints: Sequence[Sequence[BodyJoint]]
) -> None:
    """Decide whether the links of a group need a base below them."""
    inside = set(group.bodies)
    roots = [k for k in group.bodies if bodies[k].parent not in inside]
    own = joints[roots[0]]
    moves = bool(own) and own[0].type != FREE
    group.has_base = len(roots) > 1 or moves
    if group.prefix and any(
        bodies[k].name and not bodies[k].name.startswith(group.prefix)
        for k in group.bodies
    ):
        group.prefix = ""


def _holds_something(world: Body) -> bool:
    return bool(world.of("geom")) or any(
        "name" in each.element.attributes for each in world.of("site")
    )


def _prefix(name: str) -> str:
    head, separator, rest = name.partition(SEPARATOR)
    return head + separator if head and separator and rest else ""


def _name_of(document: MjcfDocument) -> str:
    """Return the name of the model, else that of its file."""
    name = document.root.attributes.get("model", "")
    return name or os.path.basename(document.path).split(".")[0] or "model"


def _plain(name: str, reserved: Collection[str], document: MjcfDocument) -> str:
    plain = name.replace(SEPARATOR, "_")
    if plain in reserved:
        plain = f"{plain}_robot"
    if plain != name:
        document.report.note(
            document.root.place,
            "renamed",
            f"the name {quote(name)} cannot be kept; it becomes {quote(plain)}",
        )
    return plain


# Links


def _add_links(
    group: BodyGroup,
    trees: Trees,
    bodies: Sequence[Body],
    joints: Sequence[Sequence[BodyJoint]],
    inertias: Sequence[SpatialInertia | None],
    report: Report,
) -> None:
    """Make the links of a group."""

    def local(name: str) -> str:
        return name.removeprefix(group.prefix) if group.prefix else name

    taken = {local(bodies[k].name) for k in group.bodies if bodies[k].name}
    names = FreeNames(set(taken))
    own_names = {k: local(bodies[k].name) for k in group.bodies}
    if 0 in own_names:
        own_names[0] = ENVIRONMENT
    for k in group.bodies:
        if not own_names[k]:
            own_names[k] = names.derive(f"body{k}")
    coordinates = FreeNames(
        {local(j.name) for k in group.bodies for j in joints[k] if j.name}
    )
    base = ""
    if group.has_base:
        base = names.derive(BASE)
        group.links.append(Link(name=base))
    for k in group.bodies:
        body = bodies[k]
        at = LinkAt(group, own_names[k])
        trees.bodies[k] = at
        link = Link(name=at.link, inertia=inertias[k])
        outer = trees.bodies[body.parent] if body.parent > 0 else None
        parent = outer.link if outer is not None and outer.group is group else base
        moving: list[tuple[BodyJoint, str]] = []
        for joint in joints[k]:
            if joint.type == FREE:
                trees.joints[k].append((joint, ()))
                continue
            name = local(joint.name) or coordinates.derive(at.link)
            parts = (name,)
            if joint.type == BALL_JOINT:
                parts = tuple(f"{name}_{end}" for end in BALL)
                report.warning(
                    joint.element.place,
                    "split-joint",
                    f"ball joint {quote(name)} becomes 3 joints: {', '.join(parts)}",
                )
            moving.append((joint, name))
            trees.joints[k].append((joint, parts))
        if not parent:
            group.links.append(link)
        elif not moving:
            group.links.append(_fixed(link, parent, body.pose, coordinates))
        else:
            steps, back = steps_of(moving, body.pose)
            group.links += _behind(steps, back, parent, link, names, coordinates)
    _add_frames(group, trees, bodies, names, report)


def _fixed(link: Link, parent: str, pose: Pose, coordinates: FreeNames) -> Link:
    name = coordinates.derive(link.name)
    return msgspec.structs.replace(
        link,
        parent=parent,
        joint=Fixed(precursor=pose),
        joint_name="" if name == link.name else name,
    )


def _behind(
    steps: Sequence[SplitJoint],
    back: Pose,
    parent: str,
    link: Link,
    names: FreeNames,
    coordinates: FreeNames,
) -> list[Link]:
    """Return the links behind joints; one more where the last is beside the body."""
    if back.is_identity:
        return links_behind(steps, parent=parent, body=link, names=names)
    pivot = Link(name=names.derive(steps[-1].name))
    made = links_behind(steps, parent=parent, body=pivot, names=names)
    return [*made, _fixed(link, pivot.name, back, coordinates)]


def _add_frames(
    group: BodyGroup,
    trees: Trees,
    bodies: Sequence[Body],
    names: FreeNames,
    report: Report,
) -> None:
    """Make the sites with names frames of their links."""
    frames: dict[str, list[Frame]] = {}
    for k in group.bodies:
        at = trees.bodies[k]
        assert at is not None
        for site in bodies[k].of("site"):
            given = site.element.attributes.get("name", "")
            if not given:
                continue
            local = given.removeprefix(group.prefix) if group.prefix else given
            name = names.derive(local)
            if name != local:
                report.note(
                    site.element.place,
                    "renamed",
                    f"site {quote(given)} becomes the frame {quote(name)}, as a link "
                    "or frame has its name",
                )
            frames.setdefault(at.link, []).append(
                Frame(name=name, pose=_site_pose(site))
            )
            trees.sites[given] = at, name
    group.links = [
        msgspec.structs.replace(link, frames=tuple(frames[link.name]))
        if link.name in frames
        else link
        for link in group.links
    ]


def _site_pose(site: PlacedElement) -> Pose:
    if "fromto" in site.element.attributes:
        line = read_fromto(site.element, site.document.report)
        if line is not None:
            return site.pose @ line[0]
    return site.own_pose


def _mount(
    group: BodyGroup,
    trees: Trees,
    bodies: Sequence[Body],
    joints: Sequence[Sequence[BodyJoint]],
    owner: Sequence[BodyGroup | None],
) -> None:
    """Say where the base of a group stands."""
    if group.has_base:
        return
    first = group.bodies[0]
    body = bodies[first]
    loose = _is_loose(body, joints[first])
    on = WORLD
    if body.parent > 0 and owner[body.parent] is not group:
        at = trees.bodies[body.parent]
        assert at is not None
        on = at.qualified
    if loose or on != WORLD or not body.pose.is_identity:
        group.mount = Mount(
            manipulator=group.name, on=on, pose=body.pose, bolted=not loose
        )
