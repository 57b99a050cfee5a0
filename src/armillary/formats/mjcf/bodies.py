"""The bodies of a model, depth first: frames, replicates and attachments resolved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.mjcf.document import MAIN, MjcfDocument, with_attributes
from armillary.formats.mjcf.poses import read_pose
from armillary.formats.xml import Element
from armillary.limits import MJCF_COPIES
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import ZERO, vector

__all__ = ["Body", "PlacedElement", "read_bodies"]

MOST_COPIES: Final = 10_000

_OF_BODY: Final = ("joint", "freejoint", "geom", "site", "camera", "light", "inertial")
_OTHERS: Final = ("plugin", "flexcomp", "composite")


class PlacedElement(NamedTuple):
    """An element of a body.

    Attributes:
        element: With the defaults of its class; names with the prefix of an attachment.
        pose: Of the frames around it, in the body.
        document: The model that it is from.
    """

    element: Element
    pose: Pose
    document: MjcfDocument

    @property
    def own_pose(self) -> Pose:
        """Return its pose in the body."""
        pose = read_pose(self.element, self.document)
        return pose if self.pose.is_identity else self.pose @ pose


@dataclass(slots=True)
class Body:
    """One body.

    Attributes:
        name: In the file; empty where it has none.
        element: For its place and attributes.
        document: The model that it is from.
        parent: Its number; -1 for the world, which is the first body.
        pose: In the parent.
        parts: The elements of the body, by their names, `freejoint` as `joint`.
    """

    name: str
    element: Element
    document: MjcfDocument
    parent: int
    pose: Pose
    parts: dict[str, list[PlacedElement]] = field(
        default_factory=dict[str, list[PlacedElement]]
    )

    def of(self, kind: str) -> Sequence[PlacedElement]:
        """Return the elements of a name."""
        return self.parts.get(kind, ())

    @property
    def is_mocap(self) -> bool:
        """Return whether programs move it."""
        return self.element.attributes.get("mocap") == "true"


@dataclass(frozen=True, slots=True)
class _Scope:
    """What surrounds elements."""

    document: MjcfDocument
    childclass: str = MAIN
    pose: Pose = IDENTITY
    prefix: str = ""
    suffix: str = ""


def read_bodies(document: MjcfDocument) -> list[Body]:
    """Return the world and all bodies below it, depth first."""
    report = document.report
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
                bodies.append(Body(name, named, scope.document, owner, pose))
                inner = replace(_with_class(named, scope), pose=IDENTITY)
                wait(element.children, inner, len(bodies) - 1)
            case "frame":
                pose = scope.pose @ read_pose(element, scope.document)
                inner = replace(_with_class(element, scope), pose=pose)
                wait(element.children, inner, owner)
            case "replicate":
                for copy in reversed(list(_copies(element, scope, report))):
                    wait(element.children, copy, owner)
            case name if name in _OF_BODY:
                _add_part(bodies[owner], element, scope)
            case name if name in _OTHERS:
                report.unsupported.add(f"<{name}>", element.place)
            case "attach":
                report.error(
                    element.place,
                    "not-attached",
                    f"{element.label} attaches another model, which is not read",
                    hint="Open the file with MuJoCo and save it: MjSpec.to_xml().",
                )
            case _:
                pass  # `report_unknown` has said so
    return bodies


def _add_part(body: Body, element: Element, scope: _Scope) -> None:
    effective = scope.document.effective(element, "body", scope.childclass)
    kind = "joint" if element.name == "freejoint" else element.name
    placed = PlacedElement(_named(effective, scope), scope.pose, scope.document)
    body.parts.setdefault(kind, []).append(placed)


def _named(element: Element, scope: _Scope) -> Element:
    """Return an element whose name has the prefix and the suffix of its scope."""
    if not scope.prefix and not scope.suffix:
        return element
    attributes = dict(element.attributes)
    if "name" in attributes:
        attributes["name"] = f"{scope.prefix}{attributes['name']}{scope.suffix}"
    return with_attributes(element, attributes)


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
