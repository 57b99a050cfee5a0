"""Frames of SDF: names in scopes, where each is, and what it is attached to.

A world and each model is a scope. In it, links, joints, frames and models have names,
and `model::name` is one in a model inside of it. The pose of each is in the frame that
it is relative to:

- a link or a model: in that of the scope,
- a frame: in what it is attached to,
- a joint: in its child,

unless it says another one. The pose of a model may be that of a frame inside of it, its
placement frame. What a merged include brings is in a frame that stands for the included
model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from armillary.errors import quote
from armillary.formats.diagnostic import Place, Report
from armillary.formats.names import shown_cycle
from armillary.formats.sdf.elements import UNPLACED, FilePose
from armillary.formats.sdf.files import SdfFile
from armillary.limits import SDF_NAME_PARTS
from armillary.spatial.pose import IDENTITY, Pose

__all__ = ["MODEL_FRAME", "SEPARATOR", "WORLD_FRAME", "Frames", "Scope", "SdfNode"]

SEPARATOR: Final = "::"
MODEL_FRAME: Final = "__model__"
WORLD_FRAME: Final = "world"
STEPS: Final = 6


@dataclass(slots=True, eq=False)
class SdfNode:
    """A link, joint, frame or model in its scope.

    Attributes:
        kind: Which of these it is.
        name: In the scope.
        scope: Where it is declared.
        place: In the file.
        pose: As the file gives it.
        base: What its pose is relative to where the file does not say; empty for the
            frame of the scope.
        attached: What a frame is attached to; the child of a joint.
        model_frame: What `__model__` means for it: empty, or the frame that stands for
            a merged model.
        inner: The scope that a model is.
        body: What else was read of it.
        full_name: In the cell.
    """

    kind: str
    name: str
    scope: Scope
    place: Place
    pose: FilePose = UNPLACED
    base: str = ""
    attached: str = ""
    model_frame: str = ""
    inner: Scope | None = None
    body: Any = None
    full_name: str = ""

    @property
    def label(self) -> str:
        """Return what messages call it."""
        return f"{self.kind} {quote(self.name)}"


@dataclass(slots=True, eq=False)
class Scope:
    """A world, or a model.

    Attributes:
        name: Of the model or world.
        file: By whose version its names are read.
        outer: The scope around it.
        prefix: Of the names of all inside of it, in the cell: `"arm::"`.
        is_world: Whether it is the world.
        static: Whether it says that nothing in it moves.
        self_collide: Whether it says that its links are tested with each other.
        posture: Name of the posture that the file shows, if it says one.
        canonical: Name of its canonical link, if it says one.
        placement: Name of the frame whose pose is that of the model, if not its own.
        nodes: All that have a frame, by name; `order` in the order of the file.
        lost: How many models are missing, whose names may be referred to.
    """

    name: str
    file: SdfFile
    place: Place
    outer: Scope | None = None
    prefix: str = ""
    is_world: bool = False
    static: bool = False
    self_collide: bool | None = None
    posture: str = ""
    canonical: str = ""
    placement: str = ""
    nodes: dict[str, SdfNode] = field(default_factory=dict[str, SdfNode])
    order: list[SdfNode] = field(default_factory=list[SdfNode])
    lost: int = 0

    @property
    def label(self) -> str:
        """Return what messages call it."""
        return f"{'world' if self.is_world else 'model'} {quote(self.name)}"

    def of_kind(self, kind: str) -> Iterator[SdfNode]:
        """Yield the nodes of a kind, in the order of the file."""
        return (node for node in self.order if node.kind == kind)

    def path(self, name: str, model_frame: str = "") -> list[SdfNode] | None:
        """Return the nodes that lead to a name, nothing for the frame of the scope.

        model_frame: What `__model__` means.

        Returns None where there is no such name.
        """
        own = WORLD_FRAME if self.is_world else MODEL_FRAME
        if name in ("", own):
            name = model_frame
            if not name:
                return []
        if name in self.nodes:
            return [self.nodes[name]]
        scope, path, begun = self, list[SdfNode](), ""
        parts = name.split(SEPARATOR)
        if len(parts) > SDF_NAME_PARTS.most:
            return None
        for number, part in enumerate(parts, 1):
            begun = f"{begun}{SEPARATOR}{part}" if begun else part
            node = scope.nodes.get(begun)
            if number == len(parts) and begun == MODEL_FRAME and path:
                return path
            if node is None:
                continue
            path.append(node)
            begun = ""
            if node.inner is None:
                return path if number == len(parts) else None
            scope = node.inner
        return path if not begun and path else None


class Frames:
    """Finds where frames are, and to which links they are attached."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._raw: dict[SdfNode, Pose] = {}
        self._in_scope: dict[SdfNode, Pose] = {}
        self._paths: dict[SdfNode, list[SdfNode]] = {}
        self._links: dict[SdfNode, SdfNode | Scope | None] = {}

    # Poses

    def in_scope(self, node: SdfNode) -> Pose:
        """Return the pose of a node in the frame of its scope.

        After an error it is where it is without what was wrong.
        """
        pending, waiting = [node], dict[SdfNode, None]()
        while pending:
            current = pending[-1]
            if current in self._in_scope:
                waiting.pop(current, None)
                pending.pop()
                continue
            needed = [n for n in self._needs(current) if n not in self._in_scope]
            waiting[current] = None
            again = next((each for each in needed if each in waiting), None)
            if again is not None:
                names = [each.name for each in waiting]
                self._refuse_cycle(again, names[names.index(again.name) :], "relative")
                self._paths[current] = []
                if current.inner is not None:
                    current.inner.placement = ""
                continue
            if needed:
                pending.extend(needed)
                continue
            self._in_scope[current] = self._placed(current)
        return self._in_scope[node]

    def at_path(self, path: list[SdfNode]) -> Pose:
        """Return the pose at the end of a path, in the scope where it begins."""
        pose = IDENTITY
        for node in path:
            pose = pose @ self.in_scope(node)
        return pose

    def from_top(self, node: SdfNode, top: Scope) -> Pose:
        """Return the pose of a node in the frame of a scope around it."""
        pose, scope = self.in_scope(node), node.scope
        while scope is not top:
            assert scope.outer is not None, "the scope is inside of the top one"
            pose = self.in_scope(self.node_of(scope)) @ pose
            scope = scope.outer
        return pose

    def relative(self, node: SdfNode, to: SdfNode, top: Scope) -> Pose:
        """Return the pose of a node in another: exactly, if a short chain leads there.

        top: A scope around both.
        """
        pose, current = IDENTITY, node
        for _ in range(STEPS):
            if current is to:
                return pose
            self.in_scope(current)
            pose, path = self._raw[current] @ pose, self._base_path(current)
            if not path and current.scope.outer is None:
                break
            # Without a name it is in the frame of its model.
            current = path[-1] if path else self.node_of(current.scope)
        X_TA = self.from_top(to, top)
        return X_TA.inverse() @ self.from_top(node, top)

    @staticmethod
    def node_of(scope: Scope) -> SdfNode:
        """Return the node that a model is in the scope around it."""
        assert scope.outer is not None, "the world has no node"
        return scope.outer.nodes[scope.name]

    def base_of(self, node: SdfNode) -> SdfNode | None:
        """Return what the pose of a node is relative to; None for its scope."""
        path = self._base_path(node)
        return path[-1] if path else None

    def _needs(self, node: SdfNode) -> list[SdfNode]:
        needs = list(self._base_path(node))
        if node.inner is not None and node.inner.placement:
            needs += self._placement(node.inner)
        return needs

    def _placed(self, node: SdfNode) -> Pose:
        pose = node.pose.pose
        if node.inner is not None and node.inner.placement:
            # X_RM = X_RF X_MF^-1 with F the placement frame.
            pose = pose @ self.at_path(self._placement(node.inner)).inverse()
        elif isinstance(node.body, Scope) and node.body.placement:
            pose = pose @ self._in_merged(node, node.body).inverse()
        self._raw[node] = pose
        return self.at_path(self._base_path(node)) @ pose

    def _in_merged(self, proxy: SdfNode, merged: Scope) -> Pose:
        """Return the pose of a merged model's placement frame in that of the model.

        proxy: The frame that stands for the frame of the model, to which all in it is
            relative in the end.
        """
        path = self._placement(merged)
        pose, seen = self.at_path(path[1:]), set[SdfNode]()
        while path and path[0] is not proxy and path[0] not in seen:
            node = path[0]
            seen.add(node)
            own = node.pose.pose
            if node.inner is not None and node.inner.placement:
                inner = self.at_path(self._placement(node.inner))
                own = own @ inner.inverse()
            path = self._base_path(node)
            pose = self.at_path(path[1:]) @ own @ pose
        return pose

    def _placement(self, scope: Scope) -> list[SdfNode]:
        path = scope.path(scope.placement)
        if path is None:
            self._unknown(scope.placement, scope, scope.place, "its placement frame")
            scope.placement = ""
        return path or []

    def _base_path(self, node: SdfNode) -> list[SdfNode]:
        """Return the path to what the pose of a node is relative to."""
        if node not in self._paths:
            name = node.pose.relative_to or node.base
            path = node.scope.path(name, node.model_frame)
            if node in (path or ()):
                self._refuse_cycle(node, [node.name], "relative")
                path = []
            if path is None:
                said = f"what the pose of {node.label} is relative to"
                self._unknown(name, node.scope, node.place, said)
            self._paths[node] = path or []
        return self._paths[node]

    # Attachment

    def link_of(self, node: SdfNode) -> SdfNode | Scope | None:
        """Return the link that a node moves with; the world as its scope; or None."""
        chain, seen = [node], {node}
        result: SdfNode | Scope | None = None
        while True:
            current = chain[-1]
            if current in self._links:
                result = self._links[current]
                break
            if current.kind == "link":
                result = current
                break
            step = self._carrier(current)
            if not isinstance(step, SdfNode):
                result = step
                break
            if step in seen:
                names = [each.name for each in chain]
                self._refuse_cycle(step, names[names.index(step.name) :], "attached")
                break
            chain.append(step)
            seen.add(step)
        self._links.update(dict.fromkeys(chain, result))
        return result

    def _carrier(self, node: SdfNode) -> SdfNode | Scope | None:
        """Return what a frame, a joint or a model is attached to."""
        if node.inner is not None:
            return self._canonical(node.inner)
        path = node.scope.path(node.attached, node.model_frame)
        if path is None:
            kind = "child" if node.kind == "joint" else "attached_to"
            said = f"the {kind} of {node.label}"
            self._unknown(node.attached, node.scope, node.place, said)
            return None
        return path[-1] if path else self._of_scope(node.scope)

    def _of_scope(self, scope: Scope) -> SdfNode | Scope | None:
        return scope if scope.is_world else self._canonical(scope)

    def canonical(self, scope: Scope) -> SdfNode | None:
        """Return the canonical link of a model, None where it has no link."""
        node = self._canonical(scope)
        link = self.link_of(node) if node is not None else None
        return link if isinstance(link, SdfNode) else None

    def _canonical(self, scope: Scope) -> SdfNode | None:
        if scope.canonical:
            path = scope.path(scope.canonical)
            if path:
                return path[-1]
            place = scope.place
            self._unknown(scope.canonical, scope, place, "its canonical link")
            scope.canonical = ""
        link = next(scope.of_kind("link"), None)
        return link or next(scope.of_kind("model"), None)

    # Faults

    def _unknown(self, name: str, scope: Scope, place: Place, said: str) -> None:
        report = self._report
        if scope.lost and "relative" not in said:
            report = report.tolerating("it is left out")
        elif scope.file.version < (1, 7):
            report = report.tolerating("it is read as without it")
        report.error(
            place,
            "unknown-frame",
            f"{scope.label} has no frame {quote(name)}, {said}",
            hint=report.hint(name, scope.nodes),
        )

    def _refuse_cycle(self, node: SdfNode, names: list[str], how: str) -> None:
        self._report.error(
            node.place,
            "cycle",
            f"{node.label} is {how} to itself: {shown_cycle(names)}",
            hint="Let one of them be relative to the model.",
        )
