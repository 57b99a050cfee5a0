"""The bodies of a model, depth first: frames, replicates and attachments resolved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.mjcf.attachments import AttachedBodies, attach, merge_sections
from armillary.formats.mjcf.body import Body, FrameAround, PlacedElement
from armillary.formats.mjcf.document import MAIN, MjcfDocument, with_attributes
from armillary.formats.mjcf.poses import read_pose
from armillary.formats.xml import Element
from armillary.limits import MJCF_COPIES
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import ZERO, vector

__all__ = ["SOFT", "read_bodies"]

MOST_COPIES: Final = 10_000

_OF_BODY: Final = ("joint", "freejoint", "geom", "site", "camera", "light", "inertial")
SOFT: Final = ("flexcomp", "composite", "plugin")
"""Elements of which MuJoCo makes bodies that deform, and what computes their forces."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """What surrounds elements."""

    document: MjcfDocument
    childclass: str = MAIN
    pose: Pose = IDENTITY
    suffix: str = ""
    frames: tuple[FrameAround, ...] = ()


def read_bodies(document: MjcfDocument) -> list[Body]:
    """Return the world and all bodies below it, depth first.

    What refers to bodies that are attached or replicated is added to the sections of
    the document.
    """
    report = document.report
    of_models: dict[str, list[Body]] = {}
    attachments: list[AttachedBodies] = []
    suffixes: list[str] = []
    world = Body("world", document.root, document, -1, IDENTITY)
    bodies = [world]
    # Elements that wait: what they are in, and the body that they belong to.
    pending: list[tuple[Element, _Scope, int]] = []

    def wait(elements: Sequence[Element], scope: _Scope, owner: int) -> None:
        pending.extend((each, scope, owner) for each in reversed(elements))

    wait(document.sections.get("worldbody", []), _Scope(document), 0)
    while pending:
        element, scope, owner = pending.pop()
        match element.name:
            case "body":
                named = _named(element, scope)
                pose = scope.pose @ read_pose(named, scope.document)
                name = named.attributes.get("name", "")
                body = Body(name, named, document, owner, pose, frames=scope.frames)
                bodies.append(body)
                inner = replace(_with_class(named, scope), pose=IDENTITY, frames=())
                wait(element.children, inner, len(bodies) - 1)
            case "frame":
                pose = scope.pose @ read_pose(element, scope.document)
                around = FrameAround(element.attributes.get("name", ""), scope.pose)
                frames = (*scope.frames, around)
                inner = replace(_with_class(element, scope), pose=pose, frames=frames)
                wait(element.children, inner, owner)
            case "replicate":
                for copy in reversed(list(_copies(element, scope, report))):
                    suffixes.append(copy.suffix)
                    wait(element.children, copy, owner)
            case name if name in (*_OF_BODY, *SOFT):
                _add_part(bodies[owner], element, scope)
            case "attach":
                source = _source(element, document, bodies, of_models)
                if source is not None:
                    added = attach(
                        element,
                        source,
                        bodies,
                        owner,
                        scope.pose,
                        suffix=scope.suffix,
                    )
                    attachments += [] if added is None else [added]
            case _:
                pass  # `report_unknown` has said so
    if attachments or suffixes:
        different = list(dict.fromkeys(reversed(suffixes)))
        merge_sections(document, bodies, attachments, different)
    return bodies


def _source(
    element: Element,
    document: MjcfDocument,
    bodies: list[Body],
    of_models: dict[str, list[Body]],
) -> list[Body] | None:
    """Return the bodies of the model that an `<attach>` names, None after an error."""
    report = document.report
    name = element.attributes.get("model")
    if name is None:
        if not {"body", "frame"} & element.attributes.keys():
            report.error(
                element.place,
                "missing-attribute",
                f"{element.label} names neither 'model', nor 'body' or 'frame'",
            )
            return None
        return list(bodies)
    if name not in document.models:
        report.error(
            element.place,
            "not-attached",
            f"{element.label} attaches the model {quote(name)}, which is not among the "
            "assets that could be read",
            hint=report.hint(name, document.models),
        )
        return None
    if name not in of_models:
        of_models[name] = read_bodies(document.models[name])
    return of_models[name]


def _add_part(body: Body, element: Element, scope: _Scope) -> None:
    effective = scope.document.effective(element, "body", scope.childclass)
    kind = "joint" if element.name == "freejoint" else element.name
    placed = PlacedElement(
        _named(effective, scope), scope.pose, scope.document, scope.frames
    )
    body.parts.setdefault(kind, []).append(placed)


def _named(element: Element, scope: _Scope) -> Element:
    """Return an element whose name has the suffix of its scope."""
    if not scope.suffix or "name" not in element.attributes:
        return element
    name = f"{element.attributes['name']}{scope.suffix}"
    return with_attributes(element, {**element.attributes, "name": name})


def _with_class(element: Element, scope: _Scope) -> _Scope:
    name = element.attributes.get("childclass")
    if name is None:
        return scope
    if name not in scope.document.classes:
        scope.document.report.error(
            element.place,
            "unknown-class",
            f"{element.label} has the childclass {quote(name)}, which is not defined",
            hint=scope.document.report.hint(name, scope.document.classes),
        )
        return scope
    return replace(scope, childclass=name)


def _copies(element: Element, scope: _Scope, report: Report) -> Iterator[_Scope]:
    """Yield the scope of each copy of what is inside of a `<replicate>`."""
    count = element.number("count", report, required=True)
    if count is None:
        return
    if count < 1 or count != int(count) or count > MOST_COPIES:
        report.error(
            element.place,
            "bad-count",
            f"'count' of {element.label} is {count:g}; it takes 1 to {MOST_COPIES}",
        )
        return
    size = sum(1 for _ in element.walk())
    report.budget.spend(MJCF_COPIES, element.place, size * int(count))
    offset = vector(element.numbers("offset", 3, report, default=ZERO))
    euler = {
        key: element.attributes[key] for key in ("euler",) if key in element.attributes
    }
    turn = read_pose(with_attributes(element, euler), scope.document)
    step = Pose(turn.rotation, offset)
    separator = element.attributes.get("sep", "")
    width = len(str(int(count)))
    pose = IDENTITY
    for number in range(int(count)):
        suffix = f"{separator}{number:0{width}d}"
        yield replace(scope, pose=scope.pose @ pose, suffix=f"{suffix}{scope.suffix}")
        pose = pose @ step
