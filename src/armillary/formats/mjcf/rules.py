"""Which links are tested for collision: contype, conaffinity and `<exclude>`.

MuJoCo tests two geoms if a bit of the `contype` of one is in the `conaffinity` of the
other, unless they are on one body, on bodies that are fixed to each other, or on a body
and its parent; the world and what is fixed to it is nobody's parent here. Rules are
about links: a pair of links is tested if any of their geoms are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.elements import NAME, ElementTable, Row
from armillary.formats.joint_axis import joint_axis_of
from armillary.formats.mjcf.body import Body
from armillary.formats.mjcf.document import MjcfDocument
from armillary.formats.mjcf.trees import Trees
from armillary.limits import MJCF_PAIRS
from armillary.model.collision_pairs import CollisionPairs
from armillary.model.link import Link
from armillary.model.link_pattern import links_of
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD
from armillary.model.rules import Rule, RuleReason, Rules
from armillary.model.tree import Tree
from armillary.model.workcell import Workcell

__all__ = ["EXCLUDE", "DefaultPairs", "is_pivot", "read_rules"]

EXCLUDE: Final = ElementTable[Report](
    "exclude", Row("body1", NAME, "a"), Row("body2", NAME, "b")
)
"""Two bodies that are not tested against each other."""

Masks = frozenset[tuple[int, int]]
Truths = npt.NDArray[np.bool_]
UNTURNED: Final = 1e-12
BITS: Final = 31


def masks_of(body: Body, report: Report) -> Masks:
    """Return the pairs of contype and conaffinity of the geoms that may touch."""
    found: set[tuple[int, int]] = set()
    for geom in body.of("geom"):
        masks: list[int] = []
        for key in ("contype", "conaffinity"):
            number = geom.element.number(key, report, default=1.0)
            if number != int(number) or not 0 <= number < 1 << BITS:
                message = f"{quote(key)} of {geom.element.label} is {number:g}"
                report.error(
                    geom.element.place,
                    "bad-number",
                    f"{message}; it takes a whole number of {BITS} bits",
                )
                number = 1.0
            masks.append(int(number))
        if any(masks):
            found.add((masks[0], masks[1]))
    return frozenset(found)


def tested_by(masks: Sequence[Masks]) -> Truths:
    """Return whether any geoms of links with masks are tested, shape (n, n)."""
    # Few links differ.
    numbers = {each: k for k, each in enumerate(dict.fromkeys(masks))}
    table = [
        [any(c & b or d & a for a, b in one for c, d in other) for other in numbers]
        for one in numbers
    ]
    of_links = np.array([numbers[each] for each in masks], np.int64)
    known: Truths = np.array(table, np.bool_).reshape(len(numbers), len(numbers))
    return known[of_links][:, of_links]


class DefaultPairs:
    """Which links of a cell MuJoCo tests where nothing excludes them."""

    def __init__(self, cell: Workcell) -> None:
        self._cell = cell
        self._of_link: dict[str, tuple[str, str]] = {}

    def among(self, links: Sequence[str]) -> Truths:
        """Return which pairs of some links are tested by default, shape (n, n).

        They are unless they are on one rigid body, or one is on the rigid body that
        carries the other and is not fixed to the world.

        links: As `manipulator/link`, n of them.
        """
        bodies = [self._bodies(link) for link in links]
        numbers = {name: k for k, name in enumerate({*chain.from_iterable(bodies)})}
        rows = [(numbers[own], numbers[below]) for own, below in bodies]
        own, below = np.array(rows, np.int64).reshape(-1, 2).T
        carries = np.array([one not in ("", WORLD) for one, _ in bodies], np.bool_)
        is_carried = carries & (below[:, None] == own)
        return (own[:, None] != own) & ~(is_carried | is_carried.T)

    def _bodies(self, link: str) -> tuple[str, str]:
        """Return the rigid body of a link and that which carries it.

        A rigid body is called after the link whose joint moves it, or `world`.
        """
        if link not in self._of_link:
            own = self._moved(link)
            self._of_link[link] = own, "" if own == WORLD else self._below(own)
        return self._of_link[link]

    def _find(self, link: str) -> tuple[int, Manipulator, Link]:
        owner, _, bare = link.partition("/")
        number = self._cell.index[owner]
        manipulator = self._cell.manipulators[number]
        return number, manipulator, manipulator.links[manipulator.index[bare]]

    def _moved(self, link: str) -> str:
        """Return the link that moves the rigid body of a link."""
        while True:
            number, manipulator, found = self._find(link)
            if found.moves:
                return link
            if found.parent is not None:
                link = f"{manipulator.name}/{found.parent}"
                continue
            mount = self._cell.mounted.get(manipulator.name)
            at = self._cell.base_frames[number]
            if mount is not None and not mount.bolted and at.link < 0:
                return link
            if at.link < 0:
                return WORLD
            owner = self._cell.manipulators[self._cell.owners[at.link]]
            link = f"{owner.name}/{self._cell.links[at.link].name}"

    def _below(self, moved: str) -> str:
        """Return the rigid body that carries one.

        Links that only stand between joints have no body of their own.
        """
        _, manipulator, link = self._find(moved)
        parent = link.parent
        while parent is not None:
            _, _, found = self._find(f"{manipulator.name}/{parent}")
            if not is_pivot(manipulator, found):
                return self._moved(f"{manipulator.name}/{parent}")
            parent = found.parent
        return ""


def is_pivot(manipulator: Manipulator, link: Link) -> bool:
    """Return whether a link is only there so that another joint follows.

    Such a link needs no body: reading several joints of one body makes it again, called
    like its joint, with its origin on the axis, and turned as the body is at zero.
    """
    below = manipulator.children[manipulator.index[link.name]]
    is_bare = (
        link.moves
        and link.parent is not None
        and link.inertia is None
        and not (link.frames or link.visuals or link.collisions)
        and len(below) == 1
        and link.name == link.coordinate
        and not any(link.name in (loop.a, loop.b) for loop in manipulator.loops)
    )
    if not is_bare:
        return False
    own, following = joint_axis_of(link.joint), manipulator.links[below[0]]
    axis = joint_axis_of(following.joint)
    if own is None or not own.after.is_identity or (following.moves and axis is None):
        return False
    behind = following.joint.precursor if axis is None else axis.before
    return bool(np.allclose(behind.rotation, np.eye(3), rtol=0.0, atol=UNTURNED))


def read_rules(
    document: MjcfDocument, bodies: Sequence[Body], trees: Trees, cell: Workcell
) -> Rules:
    """Return the rules of a model.

    cell: All of it but the rules.
    """
    report = document.report
    at = [each.qualified if each is not None else "" for each in trees.bodies]
    touching = {
        f"{m.name}/{link.name}"
        for m in cell.manipulators
        for link in m.links
        if link.collisions
    }
    only_drawn = [
        f"{m.name}/{link.name}"
        for m in cell.manipulators
        for link in m.links
        if link.collision_shapes and not link.collisions
    ]
    masks = {
        name: masks_of(body, report)
        for body, name in zip(bodies, at, strict=True)
        if name in touching
    }
    excluded = set(_excludes(document, bodies, at))
    count = len(masks) * (len(masks) - 1) // 2
    if count > report.budget.most(MJCF_PAIRS):
        report.warning(
            document.root.place,
            "too-many-rules",
            f"{MJCF_PAIRS.excess(count)}: contype, conaffinity and <exclude> are not "
            "read, and all of them are tested",
        )
        return Rules(within=True)
    names = sorted(masks)
    number = {name: k for k, name in enumerate(names)}
    wanted = DefaultPairs(cell).among(names)
    wanted &= tested_by([masks[name] for name in names])
    for a, b in excluded:
        if a in number and b in number:
            wanted[number[a], number[b]] = False
    rules = rules_of(cell, names, np.triu(wanted, 1))
    return rules.extended(
        Rule(a=name, b="*", reason=RuleReason.NEVER) for name in only_drawn
    )


def _excludes(
    document: MjcfDocument, bodies: Sequence[Body], at: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield the pairs of links that are excluded by name."""
    report = document.report
    by_name = {body.name: k for k, body in enumerate(bodies) if body.name}
    by_name[WORLD] = 0
    for element in document.sections.get("contact", []):
        if element.name == "pair":
            report.unsupported.add("a <pair> of <contact>", element.place)
        if element.name != "exclude":
            continue
        ends: list[str] = []
        for name in EXCLUDE.read(element, report).values():
            if name is not None and name not in by_name:
                report.error(
                    element.place,
                    "unknown-link",
                    f"{element.label} names the body {quote(name)}, which does not "
                    "exist",
                    hint=report.hint(name, by_name),
                )
            elif name is not None:
                ends.append(at[by_name[name]])
        if len(ends) == 2 and all(ends):
            yield _pair(ends[0], ends[1])


def rules_of(cell: Workcell, names: Sequence[str], wanted: Truths) -> Rules:
    """Return the rules by which just these pairs of links are tested.

    Where no links of two manipulators, or of one, are tested, one rule says so.

    names: The links that can touch as `manipulator/link`, sorted.
    wanted: Which pairs i < j of them are tested, shape (n, n).
    """
    base = Rules(
        within=True,
        rules=(
            Rule(a="*", b="*", where="rigid", reason=RuleReason.RIGID),
            Rule(a="*", b="*", where="joined", reason=RuleReason.ADJACENT),
        ),
    )
    pairs = CollisionPairs(cell, base).pairs(Tree.of(cell))
    number = {name: k for k, name in enumerate(names)}
    places = np.array([number.get(name, -1) for name in pairs.links], np.int64)
    i, j = places[pairs.indices.T]
    are_known = (i >= 0) & (j >= 0)
    i, j = i[are_known], j[are_known]
    usual = np.zeros_like(wanted)
    usual[np.minimum(i, j), np.maximum(i, j)] = True
    rules = [
        Rule(a=names[i], b=names[j], tested=True, reason=RuleReason.ALWAYS)
        for i, j in np.argwhere(wanted & ~usual).tolist()
    ]
    left_out = np.argwhere(usual & ~wanted).tolist()
    owners = [_owner(name) for name in names]
    # Names are sorted, and so those of two owners come in one order alone.
    of_owners = Counter((owners[i], owners[j]) for i, j in left_out)
    first = [k for k, owner in enumerate(owners) if k == 0 or owner != owners[k - 1]]
    # In blocks of the links of two owners.
    blocks = np.logical_or.reduceat(wanted, first, axis=0) if first else wanted
    blocks = np.logical_or.reduceat(blocks, first, axis=1) if first else blocks
    met = {
        (owners[first[i]], owners[first[j]]) for i, j in np.argwhere(blocks).tolist()
    }
    whole = {key for key, count in of_owners.items() if count > 1 and key not in met}
    rules += [
        Rule(a=links_of(one), b=links_of(other), reason=RuleReason.NEVER)
        for one, other in sorted(whole)
    ]
    rules += [
        Rule(a=names[i], b=names[j], reason=RuleReason.NEVER)
        for i, j in left_out
        if (owners[i], owners[j]) not in whole
    ]
    return base.extended(rules)


def _pair(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a < b else (b, a)


def _owner(name: str) -> str:
    return name.partition("/")[0]
