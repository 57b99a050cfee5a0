"""Links and joints of models as graphs: parts that joints connect, trees, loops."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.sdf.joints import GEARBOX, SdfJoint
from armillary.formats.sdf.scopes import WORLD_FRAME, Frames, Scope, SdfNode

__all__ = ["FIXED", "Edge", "SdfPart", "Top", "parts_of", "read_tops"]

FIXED: Final = "fixed"


@dataclass(slots=True, eq=False)
class Edge:
    """A joint between two links.

    Attributes:
        node: The joint in its scope; None for what holds links of a static model.
        joint: As the file has it; None likewise.
        type: Of the joint; `fixed` in static models, whatever it is.
        parent: The link that carries the other; None for the world.
        child: The link that is carried.
        number: Its place among all joints, in the order of the file.
    """

    node: SdfNode | None
    joint: SdfJoint | None
    type: str
    parent: SdfNode | None
    child: SdfNode
    number: int = 0

    @property
    def is_fixed(self) -> bool:
        """Return whether it does not move."""
        return self.type == FIXED

    @property
    def is_closure(self) -> bool:
        """Return whether it says that it closes a loop."""
        return self.joint is not None and self.joint.held is not None


@dataclass(slots=True, eq=False)
class Top:
    """A model of the world, with all models inside of it.

    Attributes:
        node: In the world.
        links, joints, frames: Their nodes, in the order of the file.
        static: For links that a static model holds, the outermost such model.
    """

    node: SdfNode
    links: list[SdfNode] = field(default_factory=list[SdfNode])
    joints: list[SdfNode] = field(default_factory=list[SdfNode])
    frames: list[SdfNode] = field(default_factory=list[SdfNode])
    static: dict[SdfNode, Scope] = field(default_factory=dict[SdfNode, Scope])

    @property
    def scope(self) -> Scope:
        """Return the scope of the model."""
        assert self.node.inner is not None, "a model is a scope"
        return self.node.inner


def read_tops(world: Scope) -> list[Top]:
    """Return the models of a world."""
    tops: list[Top] = []
    for node in world.of_kind("model"):
        top = Top(node)
        _collect(top.scope, top, None)
        tops.append(top)
    return tops


def _collect(scope: Scope, top: Top, static: Scope | None) -> None:
    """Add what is in a model; models are nested only so deeply."""
    static = static or (scope if scope.static else None)
    for node in scope.order:
        if node.inner is not None:
            _collect(node.inner, top, static)
            continue
        {"link": top.links, "joint": top.joints, "frame": top.frames}[node.kind].append(
            node
        )
        if static is not None and node.kind == "link":
            top.static[node] = static


# Edges


class EdgeReader:
    """Finds the links that joints connect."""

    def __init__(self, tops: Sequence[Top], frames: Frames, report: Report) -> None:
        self._frames = frames
        self._report = report
        self.static = {k: v for top in tops for k, v in top.static.items()}

    def edge(self, node: SdfNode) -> Edge | None:
        """Return a joint between two links; None after an error, and for gears."""
        joint = node.body
        if not isinstance(joint, SdfJoint) or joint.type == GEARBOX:
            return None
        parent = self.end(node, joint.parent, "parent")
        child = self.end(node, joint.child, "child")
        if parent is None or child is None:
            return None
        if isinstance(child, Scope):
            message = f"the child of {node.label} is the world, which nothing carries"
            self._report.error(node.place, "unknown-link", message)
            return None
        if parent is child:
            message = f"{node.label} connects link {quote(child.name)} with itself"
            hint = "Name two links."
            self._report.error(node.place, "same-link", message, hint=hint)
            return None
        ends = parent if isinstance(parent, SdfNode) else None
        static = self.static.get(child)
        is_inside = ends is None or self.static.get(ends) is static
        type_ = joint.type
        if static is not None and is_inside and type_ != FIXED:
            what = "that a joint of a static model could move"
            self._report.unsupported.add(what, node.place, Severity.NOTE)
            type_ = FIXED
        return Edge(node, joint, type_, ends, child)

    def end(self, node: SdfNode, name: str, end: str) -> SdfNode | Scope | None:
        """Return the link, or the world, that an end of a joint names."""
        scope = node.scope
        path = scope.path(name, node.model_frame)
        if path is None and name == WORLD_FRAME:
            while scope.outer is not None:
                scope = scope.outer
            return scope
        if path is None:
            report = self._report
            if scope.lost:
                report = report.tolerating("it is left out")
            report.error(
                node.place,
                "unknown-link",
                f"the {end} of {node.label} is {quote(name)}, which {scope.label} does "
                "not have",
                hint=report.hint(name, scope.nodes),
            )
            return None
        if not path:
            return scope if scope.is_world else self._frames.canonical(scope)
        return self._frames.link_of(path[-1])


# Parts: what joints connect


@dataclass(slots=True, eq=False)
class SdfPart:
    """Links that joints connect, as a tree with loops: a manipulator.

    Attributes:
        tops: The models that it is of.
        links: In the order of the file.
        root: Where the tree begins; None for a bare link that stands for the world.
        on: What holds the root: the world, or a fixed joint; None where it is free.
        tree: The joints of the tree, each with whether it is reversed, by the link that
            it carries.
        loops: The joints that close loops.
        outer: Those that close loops with other parts, whose parents are in this one.
    """

    tops: list[Top]
    links: list[SdfNode]
    root: SdfNode | None = None
    on: Scope | Edge | None = None
    tree: dict[SdfNode, tuple[Edge, bool]] = field(
        default_factory=dict[SdfNode, tuple[Edge, bool]]
    )
    loops: list[Edge] = field(default_factory=list[Edge])
    outer: list[Edge] = field(default_factory=list[Edge])

    def drop_rigid_loops(self, report: Report) -> None:
        """Leave out joints between links that fixed joints connect already."""
        sets = Sets()
        for target, (edge, _) in self.tree.items():
            if edge.is_fixed:
                other = edge.parent if target is edge.child else edge.child
                sets.join(other or self, target)
        kept: list[Edge] = []
        for edge in self.loops:
            if sets.find(edge.parent or self) is not sets.find(edge.child):
                kept.append(edge)
            elif edge.node is not None:
                report.note(
                    edge.node.place,
                    "open-loop",
                    f"{edge.node.label} connects links that fixed joints connect "
                    "already; it has no effect",
                )
        self.loops = kept


class Sets:
    """Sets of things that are joined step by step."""

    def __init__(self) -> None:
        self._of: dict[object, object] = {}

    @classmethod
    def of(cls, edges: Iterable[Edge]) -> Sets:
        """Return the sets of links that edges join."""
        sets = cls()
        for edge in edges:
            if edge.parent is not None:
                sets.join(edge.parent, edge.child)
        return sets

    def find(self, item: object) -> object:
        """Return what stands for the set of an item."""
        root = item
        while (above := self._of.get(root, root)) is not root:
            root = above
        while (above := self._of.get(item, item)) is not root and above is not item:
            self._of[item], item = root, above
        return root

    def join(self, a: object, b: object) -> None:
        """Make the sets of two items one."""
        self._of[self.find(b)] = self.find(a)


def parts_of(
    world: Scope, tops: Sequence[Top], frames: Frames, report: Report
) -> list[SdfPart]:
    """Return the manipulators of a world, those of each model in turn.

    Models that a moving joint of the world connects are one, unless both are fixed
    without it: then it closes a loop between them, as does a joint that says so. A
    fixed joint between models mounts one on the other.
    """
    reader = EdgeReader(tops, frames, report)
    within = [e for top in tops for n in top.joints if (e := reader.edge(n))]
    between = [e for n in world.of_kind("joint") if (e := reader.edge(n))]
    owner = {link: top for top in tops for link in top.links}
    outside = [e for e in between if e.parent and owner[e.parent] is not owner[e.child]]
    edges = [*within, *(e for e in between if e not in outside)]
    edges += _static_edges(tops, within, world, frames)
    mounts = [e for e in outside if e.is_fixed and not e.is_closure]
    held, own = _held(edges, mounts)
    outer: list[Edge] = []
    for edge in outside:
        a, b = own.find(edge.parent), own.find(edge.child)
        if edge.is_closure or (not edge.is_fixed and a is not b and {a, b} <= held):
            outer.append(edge)
        elif not edge.is_fixed:
            edges.append(edge)
    sets = Sets.of(edges)
    anchored = {sets.find(e.child) for e in edges if e.parent is None}
    standing = Sets()
    on: dict[object, Edge] = {}
    for edge in mounts:
        assert edge.parent is not None, "it is between models"
        a, b = sets.find(edge.parent), sets.find(edge.child)
        closes = standing.find(a) is standing.find(b)
        if closes or b in anchored:
            # What is mounted already cannot be mounted again: they are one.
            edges.append(edge)
            sets.join(edge.parent, edge.child)
            anchored.add(sets.find(edge.child))
        else:
            on[edge.child] = edge
            anchored.add(b)
        standing.join(a, b)
    for number, edge in enumerate((*edges, *outer)):
        edge.number = number
    parts = _parts(tops, edges, sets, owner)
    by_link: dict[SdfNode | None, list[Edge]] = {}
    for edge in edges:
        by_link.setdefault(edge.child, []).append(edge)
        if edge.parent is not None:
            by_link.setdefault(edge.parent, []).append(edge)
    for part in parts:
        _root(part, by_link, on, world, frames)
        _grow(part, by_link)
        part.drop_rigid_loops(report)
    of = {link: part for part in parts for link in part.links}
    for edge in outer:
        assert edge.parent is not None, "it is between models"
        part = of[edge.parent]
        (part.loops if part is of[edge.child] else part.outer).append(edge)
    return parts


def _held(edges: Iterable[Edge], mounts: Iterable[Edge]) -> tuple[set[object], Sets]:
    """Return what the world holds, without joints between models that move.

    edges: Those in models, and to the world.
    mounts: The fixed ones between models.

    Returns the sets of links that are fixed, and the set of each link.
    """
    sets = Sets.of(edges)
    held = {sets.find(edge.child) for edge in edges if edge.parent is None}
    carried: dict[object, list[object]] = {}
    for edge in mounts:
        assert edge.parent is not None, "it is between models"
        a, b = sets.find(edge.parent), sets.find(edge.child)
        carried.setdefault(a, []).append(b)
    pending = list(held)
    while pending:
        for each in carried.get(pending.pop(), ()):
            if each not in held:
                held.add(each)
                pending.append(each)
    return held, sets


def _static_edges(
    tops: Sequence[Top], edges: Sequence[Edge], world: Scope, frames: Frames
) -> list[Edge]:
    """Return what holds the links of static models: each set of them by one."""
    sets = Sets()
    standing: set[Scope] = set()
    static = {k: v for top in tops for k, v in top.static.items()}
    for edge in edges:
        if edge.parent is not None:
            sets.join(edge.parent, edge.child)
        elif edge.child in static:
            standing.add(static[edge.child])
            sets.join(static[edge.child], edge.child)
    found: list[Edge] = []
    for link, scope in static.items():
        first = frames.canonical(scope) or link
        if scope not in standing:
            standing.add(scope)
            sets.join(scope, first)
            found.append(Edge(None, None, FIXED, None, first))
        if sets.find(link) is not sets.find(scope):
            sets.join(scope, link)
            found.append(Edge(None, None, FIXED, first, link))
    return found


def _parts(
    tops: Sequence[Top],
    edges: Iterable[Edge],
    sets: Sets,
    owner: dict[SdfNode, Top],
) -> list[SdfPart]:
    parts: dict[object, SdfPart] = {}
    for top in tops:
        for link in top.links:
            part = parts.setdefault(sets.find(link), SdfPart([], []))
            part.links.append(link)
            if owner[link] not in part.tops:
                part.tops.append(owner[link])
    return list(parts.values())


def _root(
    part: SdfPart,
    by_link: dict[SdfNode | None, list[Edge]],
    on: dict[object, Edge],
    world: Scope,
    frames: Frames,
) -> None:
    """Choose the link where the tree of a part begins, and what holds it."""
    links = set(part.links)
    to_world = [e for k in part.links for e in by_link.get(k, ()) if e.parent is None]
    if to_world:
        part.on = world
        is_plain = len(to_world) == 1 and to_world[0].is_fixed
        part.root = to_world[0].child if is_plain else None
        return
    for link in part.links:
        if link in on:
            part.root, part.on = link, on[link]
            return
    carried = {e.child for k in part.links for e in by_link.get(k, ())}
    canonical = frames.canonical(part.tops[0].scope)
    free = [link for link in part.links if link not in carried]
    if canonical in links and (canonical in free or not free):
        part.root = canonical
    else:
        part.root = free[0] if free else part.links[0]


def _grow(part: SdfPart, by_link: dict[SdfNode | None, list[Edge]]) -> None:
    """Find the tree of a part, and the joints that close loops.

    The first joint of the file that carries a link is in the tree, if it leads there;
    then come others, and those that are reversed.
    """
    seen: set[SdfNode | None] = {part.root}
    used: set[Edge] = set()
    first: dict[SdfNode, Edge] = {}
    for link in part.links:
        carrying = [
            e for e in by_link.get(link, ()) if e.child is link and not e.is_closure
        ]
        if carrying:
            first[link] = min(carrying, key=lambda e: e.number)
    queues: tuple[deque[Edge], ...] = (deque(), deque(), deque())
    closures: dict[int, Edge] = {}

    def add(edge: Edge, link: SdfNode | None) -> None:
        if edge.is_closure:
            closures[edge.number] = edge
        elif edge.parent is not link:
            queues[2].append(edge)
        else:
            queues[first[edge.child] is not edge].append(edge)

    def visit(link: SdfNode | None) -> None:
        for edge in by_link.get(link, ()):
            add(edge, link)

    if part.root is None:
        for link in part.links:
            for edge in by_link.get(link, ()):
                if edge.parent is None:
                    add(edge, None)
    else:
        visit(part.root)
    while any(queues):
        rank = next(k for k, queue in enumerate(queues) if queue)
        edge = queues[rank].popleft()
        if edge in used:
            continue
        used.add(edge)
        is_reversed = rank == 2
        if is_reversed and edge.parent is None:
            continue  # it holds the root
        target = edge.parent if is_reversed else edge.child
        if target in seen:
            part.loops.append(edge)
            continue
        assert target is not None, "the world is the root"
        seen.add(target)
        part.tree[target] = (edge, is_reversed)
        visit(target)
    part.loops += (closures[number] for number in sorted(closures))
