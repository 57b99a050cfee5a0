"""Equality constraints: joints that follow others, and closed loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import Place, Report
from armillary.formats.elements import TEXT, ElementTable, Row, numbers
from armillary.formats.mjcf.body import Body
from armillary.formats.mjcf.document import MAIN, SWITCH, MjcfDocument
from armillary.formats.mjcf.joints import SLIDE
from armillary.formats.mjcf.rods import LINEAR, RodElements, all_coefficients
from armillary.formats.mjcf.trees import BodyGroup, LinkAt, Trees
from armillary.formats.names import FreeNames
from armillary.formats.xml import Element
from armillary.model.coupling import Coupling
from armillary.model.frame import Frame
from armillary.model.limits import INFINITE
from armillary.model.link import Link
from armillary.model.loops.loop import Closure, Rod
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import ZERO, norm, subtract

__all__ = [
    "EQUALITIES",
    "Couple",
    "LoopFound",
    "add_couplings",
    "couples",
    "find_loops",
]

ALL: Final = "xyz"
_ACTIVE: Final = Row[Report]("active", SWITCH, default=True)
_ENDS: Final = (
    *(Row[Report](key, TEXT, default=None) for key in ("body1", "body2")),
    *(Row[Report](key, TEXT, default=None) for key in ("site1", "site2")),
)
_NAME: Final = Row[Report]("name", TEXT, default="")

EQUALITIES: Final = {
    "joint": ElementTable[Report](
        "joint",
        _NAME,
        _ACTIVE,
        Row("joint1", TEXT),
        Row("joint2", TEXT, default=None),
        Row("polycoef", numbers(None), default=LINEAR),
    ),
    "connect": ElementTable[Report](
        "connect", _NAME, _ACTIVE, *_ENDS, Row("anchor", numbers(3), default=ZERO)
    ),
    "weld": ElementTable[Report](
        "weld",
        _NAME,
        _ACTIVE,
        *_ENDS,
        Row("anchor", numbers(3), default=ZERO),
        Row("relpose", numbers(7), default=None),
    ),
}
"""The constraints that are read, and what of them is."""


class Couple(NamedTuple):
    """Two joints, of which the first follows the second.

    Attributes:
        element: The constraint.
        follower: Its name in the file.
        leader: Its name in the file.
        constant: The follower's distance from its `ref` where the leader is at its own.
        rate: Of the follower by the leader.
    """

    element: Element
    follower: str
    leader: str
    constant: float
    rate: float


@dataclass(frozen=True, slots=True)
class LoopFound:
    """A constraint between two bodies.

    Attributes:
        element: It.
        loop: Of frames as `manipulator/frame`; so is the joint of a rod.
    """

    element: Element
    loop: Closure | Rod


def couples(
    document: MjcfDocument, rods: Sequence[RodElements]
) -> tuple[list[Couple], list[Element]]:
    """Return the constraints that are linear couplings, and those that are not read.

    rods: What their elements are.
    """
    report = document.report
    of_rods = {id(each) for rod in rods for each in rod.used}
    found: list[Couple] = []
    others: list[Element] = []
    for element in document.sections.get("equality", []):
        if id(element) in of_rods:
            continue
        effective = document.effective(element, "equality", MAIN)
        if element.name not in EQUALITIES:
            report.unsupported.add(f"<{element.name}> of <equality>", element.place)
            others.append(effective)
            continue
        if effective.attributes.get("active", "true") != "true":
            what = f"an <equality> <{element.name}> that is not active"
            report.unsupported.add(what, element.place)
            others.append(effective)
            continue
        if element.name != "joint":
            continue
        values = EQUALITIES["joint"].read(effective, report)
        coefficients = all_coefficients(values)
        if values["joint1"] is None:
            continue
        if values["joint2"] is None:
            report.unsupported.add("a joint that an <equality> holds", element.place)
            others.append(effective)
        elif any(coefficients[2:]) or len(coefficients) > len(LINEAR):
            what = "a <joint> of <equality> that is not linear"
            report.unsupported.add(what, element.place)
            others.append(effective)
        else:
            constant, rate = coefficients[:2]
            one, other = values["joint1"], values["joint2"]
            found.append(Couple(effective, one, other, constant, rate))
    return found, others


def add_couplings(  # noqa: PLR0912
    couplings: Sequence[Couple], trees: Trees, report: Report
) -> list[Element]:
    """Let links follow others; return the constraints for which that is not possible.

    MuJoCo has q1 - ref1 = c0 + c1 (q2 - ref2).
    """
    known = trees.coordinates()
    leaders: dict[tuple[str, str], str] = {}
    followers: dict[str, dict[str, tuple[Coupling, Place]]] = {}
    left: list[Element] = []
    for couple in couplings:
        place, label = couple.element.place, couple.element.label
        ends: list[tuple[BodyGroup, str, float]] = []
        for name in (couple.follower, couple.leader):
            if name not in known:
                report.error(
                    place,
                    "unknown-joint",
                    f"{label} names the joint {quote(name)}, which does not exist",
                    hint=report.hint(name, known),
                )
                break
            group, names, joint = known[name]
            if len(names) != 1:
                message = f"{label} names {quote(name)}, which has several coordinates"
                report.error(place, "free-mimic", message)
                break
            ends.append((group, names[0], joint.ref))
        if len(ends) < 2:
            continue
        (group, follower, ref1), (other, leader, ref2) = ends
        why = ""
        if group is not other:
            why = "they are of different manipulators"
        elif (group.name, follower) in leaders:
            why = f"{quote(follower)} follows another joint already"
        else:
            chain = leader
            while chain and chain != follower:
                chain = leaders.get((group.name, chain), "")
            if chain:
                why = "they would follow each other"
        if why:
            report.warning(
                place,
                "not-kept",
                f"{quote(follower)} does not follow {quote(leader)} as {label} says: "
                f"{why}",
            )
            left.append(couple.element)
            continue
        leaders[group.name, follower] = leader
        offset = ref1 + couple.constant - couple.rate * ref2
        coupling = Coupling(of=leader, multiplier=couple.rate, offset=offset)
        followers.setdefault(group.name, {})[follower] = coupling, place
    for group in trees.groups:
        if group.name in followers:
            _follow(group, followers[group.name], report)
    return left


def _follow(
    group: BodyGroup, followers: Mapping[str, tuple[Coupling, Place]], report: Report
) -> None:
    """Let links follow others, without limits that leave the others no range."""
    all_ = {name: coupling for name, (coupling, _) in followers.items()}
    links = _following(group.links, all_)
    if _is_possible(group, links):
        group.links = links
        return
    for name, (coupling, place) in followers.items():
        links = _following(group.links, {name: coupling})
        if not _is_possible(group, links):
            links = _following(group.links, {name: coupling}, unlimited=True)
            report.warning(
                place,
                "mimic-limits",
                f"the limits of joint {quote(name)} would leave {quote(coupling.of)}, "
                "which it follows, no range; they are left out",
            )
        group.links = links


def _is_possible(group: BodyGroup, links: Sequence[Link]) -> bool:
    try:
        Manipulator(name=group.name, links=tuple(links))
    except ModelError:
        return False
    return True


def _following(
    links: Sequence[Link],
    couplings: Mapping[str, Coupling],
    *,
    unlimited: bool = False,
) -> list[Link]:
    """Return links of which some follow others."""
    made: list[Link] = []
    for link in links:
        coupling = couplings.get(link.coordinate) if link.parent is not None else None
        if coupling is None:
            made.append(link)
            continue
        limits = link.limits
        if unlimited:
            limits = msgspec.structs.replace(limits, lower=-INFINITE, upper=INFINITE)
        made.append(msgspec.structs.replace(link, coupling=coupling, limits=limits))
    return made


# Loops


def find_loops(
    document: MjcfDocument,
    bodies: Sequence[Body],
    trees: Trees,
    rods: Sequence[RodElements],
) -> tuple[list[LoopFound], list[Element]]:
    """Return the loops that are closed, and the constraints that are not read.

    Frames that loops need are added to links.
    """
    finder = _LoopFinder(document, bodies, trees)
    for element in document.sections.get("equality", []):
        if element.name in ("connect", "weld"):
            effective = document.effective(element, "equality", MAIN)
            if effective.attributes.get("active", "true") == "true":
                finder.add(effective)
    for rod in rods:
        finder.add_rod(rod)
    finder.store_frames()
    return finder.loops, finder.left


class _LoopFinder:
    def __init__(
        self, document: MjcfDocument, bodies: Sequence[Body], trees: Trees
    ) -> None:
        self._report = document.report
        self._bodies, self._trees = bodies, trees
        self._numbers = {body.name: k for k, body in enumerate(bodies) if body.name}
        self._numbers[WORLD] = 0
        self._frames: dict[tuple[str, str], list[Frame]] = {}
        self._names = {
            group.name: FreeNames(
                {link.name for link in group.links}
                | {frame.name for link in group.links for frame in link.frames}
            )
            for group in trees.groups
        }
        self._of_site = {
            site.element.attributes["name"]: (k, site.own_pose)
            for k, body in enumerate(bodies)
            for site in body.of("site")
            if site.element.attributes.get("name") in trees.sites
        }
        self._world: list[Pose] = []
        self.loops: list[LoopFound] = []
        self.left: list[Element] = []

    def add(self, element: Element) -> None:
        """Add a constraint."""
        values = EQUALITIES[element.name].read(element, self._report)
        by_site = values["site1"] is not None or values["site2"] is not None
        bodies = self._bodies_of(element, values, by_site=by_site)
        if bodies is None or self._is_refused(element, self._why_not(*bodies)):
            return
        if by_site:
            ends = [self._site(values[key]) for key in ("site1", "site2")]
        else:
            ends = self._ends(element, values, *bodies)
        rotation = ALL if element.name == "weld" else ""
        loop = Closure(ends[0], ends[1], ALL, rotation, name=values["name"] or "")
        self.loops.append(LoopFound(element, loop))

    def add_rod(self, rod: RodElements) -> None:
        """Add a rod."""
        element = rod.element
        ends: dict[str, str] = {"site1": rod.sites[0], "site2": rod.sites[1]}
        bodies = self._bodies_of(element, ends, by_site=True)
        if bodies is None or self._is_refused(element, self._why_not(*bodies)):
            return
        by, before = "", 0.0
        if rod.joint:
            known = self._trees.coordinates().get(rod.joint)
            if known is None or len(known[1]) != 1 or known[2].type != SLIDE:
                why = f"joint {quote(rod.joint)} does not slide"
                self._is_refused(element, why)
                return
            group, (coordinate,), joint = known
            by, before = f"{group.name}/{coordinate}", joint.ref
        one, other = (
            self._pose(number) @ self._of_site[site][1]
            for number, site in zip(bodies, rod.sites, strict=True)
        )
        found = norm(subtract(other.position, one.position)) + rod.constant - before
        length = rod.length(float(found), self._report)
        if length <= 0.0 and not by:
            self._is_refused(element, f"its length would be {length:g} m")
            return
        a, b = map(self._site, rod.sites)
        name = rod.element.attributes.get("name", "")
        loop = Rod(a, b, length=length, by=by, name=name)
        self.loops.append(LoopFound(element, loop))

    def _is_refused(self, element: Element, why: str) -> bool:
        """Return whether a constraint closes no loop; report why."""
        if why:
            self._report.warning(
                element.place, "not-kept", f"{element.label} closes no loop: {why}"
            )
            self.left.append(element)
        return bool(why)

    def _bodies_of(
        self, element: Element, values: Mapping[str, Any], *, by_site: bool
    ) -> tuple[int, int] | None:
        """Return the numbers of both bodies, None after an error."""
        kind, known = ("site", self._of_site) if by_site else ("body", self._numbers)
        found: list[int] = []
        for end in ("1", "2"):
            name = values[f"{kind}{end}"]
            if name is None and not by_site and end == "2":
                name = WORLD
            if name is None or name not in known:
                self._report.error(
                    element.place,
                    "unknown-frame" if by_site else "unknown-link",
                    f"{element.label} names the {kind} {quote(name or '')}, which "
                    "does not exist",
                    hint=self._report.hint(name or "", known),
                )
                return None
            place = known[name]
            found.append(place if isinstance(place, int) else place[0])
        return found[0], found[1]

    def _why_not(self, body1: int, body2: int) -> str:
        if body1 == body2:
            return "both ends are on one body"
        for k in (body1, body2):
            top = k
            while self._bodies[top].parent > 0:
                top = self._bodies[top].parent
            if self._bodies[top].is_mocap:
                return f"body {quote(self._bodies[top].name)} is moved by programs"
            if any(j.type == "free" for j, _ in self._trees.joints[top]):
                one, other = self._trees.bodies[body1], self._trees.bodies[body2]
                if one is None or other is None or one.group is not other.group:
                    return (
                        f"body {quote(self._bodies[top].name)} is free, and its pose "
                        "belongs to the state"
                    )
        return ""

    def _site(self, name: str) -> str:
        at, frame = self._trees.sites[name]
        return f"{at.group.name}/{frame}"

    def _ends(
        self, element: Element, values: Mapping[str, Any], one: int, other: int
    ) -> list[str]:
        """Return frames on two bodies, where the constraint begins to hold."""
        between = self._pose(one).inverse() @ self._pose(other)
        anchor = Pose.translation(*(values["anchor"] or ZERO))
        if element.name == "connect":
            in_one, in_other = anchor, between.inverse() @ anchor
        else:
            # The anchor of a weld is in the second body, the pose is of that one.
            relative = values["relpose"]
            if relative is not None and any(relative[3:]):
                between = Pose.from_quaternion(relative[3:], relative[:3])
            in_one, in_other = between @ anchor, anchor
        return [
            self._frame(element, one, in_one, other),
            self._frame(element, other, in_other, one),
        ]

    def _pose(self, number: int) -> Pose:
        """Return the pose of a body in the world as the file has it."""
        if not self._world:
            for body in self._bodies:
                outer = self._world[body.parent] if body.parent >= 0 else IDENTITY
                self._world.append(outer @ body.pose)
        return self._world[number]

    def _frame(self, element: Element, body: int, pose: Pose, other: int) -> str:
        """Return a frame at a pose on a body, a new one unless there is an equal one.

        other: The body at the other end; what is fixed to the world is on its base.
        """
        at = self._trees.bodies[body]
        if at is None:
            beside = self._trees.bodies[other]
            if beside is None:
                return WORLD
            group = beside.group
            stands = IDENTITY if group.mount is None else group.mount.pose
            at, pose = LinkAt(group, group.links[0].name), stands.inverse() @ pose
        own = self._frames.setdefault((at.group.name, at.link), [])
        for frame in own:
            if frame.pose == pose:
                return f"{at.group.name}/{frame.name}"
        name = self._names[at.group.name].derive(f"{at.link}_{element.name}")
        own.append(Frame(name=name, pose=pose))
        return f"{at.group.name}/{name}"

    def store_frames(self) -> None:
        """Put the new frames into the links."""
        for group in self._trees.groups:
            group.links = [self._with_frames(group, link) for link in group.links]

    def _with_frames(self, group: BodyGroup, link: Link) -> Link:
        added = self._frames.get((group.name, link.name))
        if not added:
            return link
        return msgspec.structs.replace(link, frames=(*link.frames, *added))
