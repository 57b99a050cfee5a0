"""Elements of SDF to scopes: worlds, models, what is nested and what is included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from armillary.errors import quote
from armillary.formats.diagnostic import Report, Severity
from armillary.formats.names import FreeNames, shown_cycle
from armillary.formats.sdf.elements import ELEMENTS, FilePose, read_pose
from armillary.formats.sdf.files import ROOTS, SdfFile, SdfFiles
from armillary.formats.sdf.joints import read_joint
from armillary.formats.sdf.links import LinkReader
from armillary.formats.sdf.scopes import (
    MODEL_FRAME,
    SEPARATOR,
    WORLD_FRAME,
    Scope,
    SdfNode,
)
from armillary.formats.xml import Element
from armillary.limits import SDF_NESTING

__all__ = ["ModelReader"]

CONTENTS: Final = ("model", "include", "link", "joint", "frame")
OTHER_ROOTS: Final = ("actor", "light")
MERGED: Final = "_merged__{}__model__"


@dataclass(frozen=True, slots=True)
class _Into:
    """Where elements are read into.

    Attributes:
        scope: Whose names they have.
        file: That they are in.
        chain: The paths of the files that include each other, the innermost last.
        depth: Of models and includes.
        model_frame: What their `__model__` means; empty for that of the scope.
    """

    scope: Scope
    file: SdfFile
    chain: tuple[str, ...]
    depth: int = 0
    model_frame: str = ""


class ModelReader:
    """Reads worlds and models, and what they include."""

    def __init__(self, files: SdfFiles, links: LinkReader, report: Report) -> None:
        self._files = files
        self._links = links
        self._report = report

    def world(self, element: Element, file: SdfFile) -> Scope:
        """Return a world."""
        name = ELEMENTS.read(element, self._report)["name"] or "world"
        scope = Scope(name, file, element.place, is_world=True)
        self._contents(element, _Into(scope, file, (file.path,)))
        return scope

    def models(self, elements: tuple[Element, ...], file: SdfFile) -> Scope:
        """Return the world that models without a world stand in."""
        scope = Scope(WORLD_FRAME, file, file.root.place, is_world=True)
        into = _Into(scope, file, (file.path,))
        for element in elements:
            self._model(element, into)
        return scope

    # What is in a scope

    def _contents(self, element: Element, into: _Into) -> None:
        readers: dict[str, Callable[[Element, _Into], object]] = {
            "model": self._model,
            "include": self._include,
            "link": self._link,
            "joint": self._joint,
            "frame": self._frame,
        }
        names = [name for name in CONTENTS if name != "link"]
        known = names if into.scope.is_world else CONTENTS
        for child in self._report.bounded(element.children_named(*known)):
            readers[child.name](child, into)

    def _add(self, kind: str, element: Element, into: _Into, **fields: Any) -> SdfNode:
        """Add a node to a scope; report a name that it cannot have."""
        scope, report = into.scope, self._report
        given = element.attributes.get("name", "")
        name = fields.pop("name", given)
        if name == "" and "name" in element.attributes:
            message = f"a <{kind}> has an empty name"
            report.error(element.place, "empty-name", message)
        node = SdfNode(
            kind, name, scope, element.place, model_frame=into.model_frame, **fields
        )
        if not node.full_name:
            node.full_name = f"{scope.prefix}{name}"
        taken = scope.nodes.get(name)
        if name == WORLD_FRAME and not scope.is_world:
            view = report.tolerating(f"it means the {kind} in {scope.label}")
            message = f"the name {quote(name)} of a {kind} means the world in SDF"
            view.error(element.place, "repeated-name", message, hint="Rename it.")
        elif name == MODEL_FRAME or (taken and taken.kind == kind):
            where = f", at line {taken.place.line}" if taken else ""
            why = "is taken already" if taken else "means something else in SDF"
            report.error(
                element.place,
                "repeated-name",
                f"in {scope.label} the name {quote(name)} of a {kind} {why}{where}",
                hint="Rename it.",
            )
        elif taken is not None:
            # They were allowed before 1.7, and are clear where nothing refers to them.
            view = report
            if into.file.version < (1, 7):
                view = report.tolerating(f"it means the {taken.kind}", Severity.NOTE)
            view = view.tolerating(f"it means the {taken.kind}")
            view.error(
                element.place,
                "repeated-name",
                f"in {scope.label} a {taken.kind} and a {kind} are called "
                f"{quote(name)}",
            )
        if name:
            scope.nodes.setdefault(name, node)
            scope.order.append(node)
        return node

    def _link(self, element: Element, into: _Into) -> None:
        link = self._links.read(element, into.file)
        pose = read_pose(element, self._report)
        self._add(
            "link", element, into, pose=pose, body=link, full_name=link.named or ""
        )

    def _frame(self, element: Element, into: _Into) -> None:
        fields = ELEMENTS.read(element, self._report)
        pose = read_pose(element, self._report)
        self._add(
            "frame",
            element,
            into,
            pose=pose,
            base=fields["attached_to"],
            attached=fields["attached_to"],
            full_name=fields["as_"] or "",
        )

    def _joint(self, element: Element, into: _Into) -> None:
        joint = read_joint(element, into.file.version, self._report)
        pose = read_pose(element, self._report)
        child = "" if joint is None else joint.child
        named = element.attributes.get("armillary:name", "")
        self._add(
            "joint",
            element,
            into,
            pose=pose,
            base=child,
            attached=child,
            body=joint,
            full_name=named,
        )

    def _model(self, element: Element, into: _Into) -> None:
        self._read_model(element, into, read_pose(element, self._report), {})

    def _read_model(
        self,
        element: Element,
        into: _Into,
        pose: FilePose,
        said: dict[str, Any],
    ) -> None:
        """Add a model.

        pose: Of the model.
        said: What an include says in place of the file: name, static, placement.
        """
        report, outer = self._report, into.scope
        report.budget.check(SDF_NESTING, into.depth, element.place)
        fields = ELEMENTS.read(element, report) | said
        name = fields["name"] or "model"
        if not fields["name"]:
            message = f"{element.label} has no name; it is called {quote(name)}"
            report.warning(element.place, "missing-name", message)
        if outer.is_world and name in outer.nodes:
            name = FreeNames(set(outer.nodes)).derive(name)
            view = report.tolerating(f"it is called {quote(name)}")
            message = (
                f"{outer.label} has a model called {quote(fields['name'])} already"
            )
            view.error(element.place, "repeated-name", message, hint="Rename one.")
        scope = Scope(
            name=name,
            file=into.file,
            place=element.place,
            outer=outer,
            prefix="" if outer.is_world else f"{outer.prefix}{name}{SEPARATOR}",
            static=bool(fields["static"]),
            self_collide=fields["self_collide"],
            posture=fields["posture"] or "",
            canonical=fields["canonical_link"],
            placement=fields["placement_frame"],
        )
        self._add(
            "model",
            element,
            into,
            name=name,
            pose=pose,
            inner=scope,
            full_name=fields["as_"] or "",
        )
        inside = _Into(scope, into.file, into.chain, into.depth + 1)
        self._contents(element, inside)

    # Includes

    def _include(self, element: Element, into: _Into) -> None:
        fields = ELEMENTS.read(element, self._report)
        given = element.first_child("pose", self._report) is not None
        pose = read_pose(element, self._report)
        uri = fields["uri"]
        if uri is None:
            return
        file = self._files.included(uri, into.file, element.place)
        if file is None:
            into.scope.lost += 1
            return
        chain = (*into.chain, file.path)
        if file.path in into.chain:
            self._report.error(
                element.place,
                "include-cycle",
                f"{quote(uri)} includes itself: {shown_cycle(chain[:-1])}",
            )
            return
        self._report.budget.check(SDF_NESTING, into.depth + 1, element.place)
        model = self._included_model(file, element, uri)
        if model is None:
            into.scope.lost += 1
            return
        said: dict[str, Any] = {}
        if fields["name"]:
            said["name"] = fields["name"]
        if fields["static"] is not None:
            said["static"] = fields["static"]
        if fields["placement_frame"]:
            said["placement_frame"] = fields["placement_frame"]
            if not given:
                self._report.error(
                    element.place,
                    "missing-element",
                    f"{element.label} has a <placement_frame>, but no <pose> of it",
                )
        own_pose = read_pose(model, self._report)
        inside = _Into(into.scope, file, chain, into.depth + 1, into.model_frame)
        if fields["merge"]:
            self._merge(model, inside, pose if given else own_pose, said)
        else:
            self._read_model(model, inside, pose if given else own_pose, said)

    def _included_model(
        self, file: SdfFile, include: Element, uri: str
    ) -> Element | None:
        """Return the one model of an included file."""
        if file.root.name not in ROOTS:
            return None  # which is reported
        models = file.root.children_named("model")
        others = file.root.children_named(*OTHER_ROOTS)
        if not models:
            if others:
                self._report.unsupported.add(
                    f"an <include> of an <{others[0].name}>",
                    include.place,
                    Severity.NOTE,
                )
                return None
            view = self._report.tolerating("it is left out")
            message = f"{quote(uri)} holds no model"
            view.error(include.place, "no-model", message)
            return None
        for other in models[1:]:
            view = self._report.tolerating("the first one counts")
            message = f"{quote(file.path)} is included, but has more than one model"
            view.error(other.place, "repeated-element", message)
        return models[0]

    def _merge(
        self, model: Element, into: _Into, pose: FilePose, said: dict[str, Any]
    ) -> None:
        """Add what is in a model to the scope around it.

        A frame stands for that of the model.
        """
        fields = ELEMENTS.read(model, self._report) | said
        scope = into.scope
        # The model as it would be by itself: for its canonical link and placement.
        alone = Scope(
            name=fields["name"] or "model",
            file=into.file,
            place=model.place,
            outer=scope,
            prefix=scope.prefix,
            is_world=False,
            canonical=fields["canonical_link"],
            placement=fields["placement_frame"],
        )
        proxy = MERGED.format(alone.name)
        while proxy in scope.nodes:
            proxy += "_"
        # Its place follows the frames of what is merged, which come next.
        frame = SdfNode(
            "frame",
            proxy,
            scope,
            model.place,
            pose=pose,
            model_frame=into.model_frame,
            inner=None,
        )
        before = len(scope.order)
        scope.nodes[proxy] = frame
        inside = _Into(scope, into.file, into.chain, into.depth, proxy)
        self._contents(model, inside)
        merged = scope.order[before:]
        for node in merged:
            node.base = node.base or proxy
            if node.kind == "frame":
                node.attached = node.attached or proxy
            alone.order.append(node)
            alone.nodes.setdefault(node.name, node)
        if fields["static"]:
            scope.static = True
        first = next(alone.of_kind("link"), None) or next(alone.of_kind("model"), None)
        frame.attached = alone.canonical or (first.name if first else "")
        if alone.placement:
            frame.body = alone
