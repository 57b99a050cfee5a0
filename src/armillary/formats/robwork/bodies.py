"""What stands in a workcell, a device or a chain, as nodes and remarks on them.

A limit, a shape or a property may stand before the frame that it is about. So these are
kept as remarks until every frame is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from armillary.errors import quote
from armillary.formats.robwork.desk import Desk
from armillary.formats.robwork.hinges import (
    JOINT_TYPES,
    joint_steps,
    read_depend,
    read_dh_joint,
    read_state,
)
from armillary.formats.robwork.limits import LIMITS, read_limit
from armillary.formats.robwork.node import SEPARATOR, Node, Scope
from armillary.formats.robwork.notes import SETUPS
from armillary.formats.robwork.shapes import MODELS, ShapeReader
from armillary.formats.robwork.transform import TRANSFORM, read_transform
from armillary.formats.xml import Element

__all__ = ["BODY", "FRAMES", "Body", "BodyReader", "Remark", "SetupReference"]

FRAMES: Final = ("Frame", "Joint", "DHJoint")
REMARKS: Final = (*MODELS, *LIMITS, "Property")
BODY: Final = (*FRAMES, *REMARKS, *SETUPS, "SerialChain")
"""What may stand in a device or in a chain."""

FRAME_TYPES: Final = ("Fixed", "Movable", "EndEffector", "Revolute", "Prismatic")
TRUTH: Final = ("false", "true")


@dataclass(frozen=True, slots=True)
class Remark:
    """A shape, limit or property, and the frame declared last before it."""

    element: Element
    scope: Scope
    last: Node | None


@dataclass(frozen=True, slots=True)
class SetupReference:
    """An element that names the file of a collision setup or the like."""

    element: Element
    scope: Scope


@dataclass(slots=True)
class Body:
    """What a workcell or a device holds, in the order of the file."""

    nodes: list[Node] = field(default_factory=list[Node])
    remarks: list[Remark] = field(default_factory=list[Remark])
    setups: list[SetupReference] = field(default_factory=list[SetupReference])


class BodyReader:
    """Reads frames, joints and what is said of them."""

    def __init__(self, desk: Desk, shapes: ShapeReader) -> None:
        self._desk = desk
        self._shapes = shapes

    def add(self, child: Element, scope: Scope, body: Body) -> None:
        """Add what one child of a workcell, device or chain gives to its body.

        It calls itself for chains in chains; elements are nested only so deeply.
        """
        if child.name in FRAMES:
            node = self.frame(child, scope)
            if node is not None:
                body.nodes.append(node)
        elif child.name in REMARKS:
            body.remarks.append(Remark(child, scope, next(reversed(body.nodes), None)))
        elif child.name in SETUPS:
            body.setups.append(SetupReference(child, scope))
        elif child.name == "SerialChain":
            name = self.name(child)
            for grandchild in self._desk.children(child, BODY):
                self.add(grandchild, (*scope, name), body)
            self._desk.close(child)

    def name(self, element: Element) -> str:
        """Return the required name of an element, something printable in any case."""
        name = element.required_attribute("name", self._desk.report)
        if name == "":
            self._desk.report.error(
                element.place, "missing-name", f"{element.label} has an empty name"
            )
        return name or f"<{element.name}>"

    def frame(self, element: Element, scope: Scope) -> Node | None:
        """Return the frame that a `Frame`, `Joint` or `DHJoint` declares."""
        desk = self._desk
        node = Node(
            element=element,
            scope=scope,
            name=self.name(element),
            refframe=element.attribute("refframe") or "",
        )
        known: tuple[str, ...] = (*TRANSFORM, *MODELS, "Property")
        match element.name:
            case "Frame":
                self._read_frame(node)
            case "Joint":
                known = (*known, *LIMITS, "Depend")
                self._read_joint(node)
            case _:
                known = (*known, *LIMITS, "Depend")
                self._read_dh_joint(node)
        for child in desk.children(element, known):
            if child.name in REMARKS:
                self.remark(child, node, inside=True)
        desk.close(element)
        return node

    def _read_frame(self, node: Node) -> None:
        element = node.element
        node.type = self._desk.choice(element, "type", FRAME_TYPES, "Fixed")
        node.daf = self._desk.choice(element, "daf", TRUTH, "false") == "true"
        node.pose = read_transform(element, self._desk)
        if node.type in JOINT_TYPES:
            node.steps = joint_steps(node.type, node.pose)
            # Outside of devices it has a place in RobWork's state, but nothing sets it.
            node.passive = not node.scope

    def _read_joint(self, node: Node) -> None:
        element = node.element
        element.required_attribute("type", self._desk.report)
        node.type = self._desk.choice(
            element, "type", tuple(JOINT_TYPES), next(iter(JOINT_TYPES))
        )
        node.passive = read_state(element, self._desk)
        node.pose = read_transform(element, self._desk)
        node.steps = joint_steps(node.type, node.pose)
        node.depend = read_depend(element, self._desk)
        if node.depend is not None and len(node.steps) > 1:
            self._desk.report.error(
                node.depend.place,
                "bad-depend",
                f"{element.label} of type {quote(node.type)} cannot depend on another "
                "joint; only Revolute and Prismatic ones can",
            )
            node.depend = None

    def _read_dh_joint(self, node: Node) -> None:
        element = node.element
        node.passive = read_state(element, self._desk)
        node.depend = read_depend(element, self._desk)
        found = read_dh_joint(element, self._desk)
        if found is not None:
            node.type, node.steps = found

    def remark(self, element: Element, node: Node, *, inside: bool = False) -> None:
        """Give a frame the shape, limit or property of an element.

        inside: Whether the element stands in that of the frame, where RobWork ignores
            what it says of the frame that it is about.
        """
        if inside:
            self._check_own(element, node)
        if element.name in LIMITS:
            read_limit(element, node, self._desk)
        elif element.name in MODELS:
            model = self._shapes.read(element)
            if model.is_drawn:
                node.visuals.extend(model.shapes)
            if model.may_touch:
                node.collisions.extend(model.shapes)
        else:
            node.notes.read(element, self._desk)

    def _check_own(self, element: Element, node: Node) -> None:
        """Warn of an element in a frame that names another one."""
        key = "refjoint" if element.name in LIMITS else "refframe"
        named = element.attribute(key)
        if not named or named == node.name:
            return
        own = node.full_name
        if own == named or own.endswith(f"{SEPARATOR}{named}"):
            return
        self._desk.report.warning(
            element.place,
            "refframe-ignored",
            f"{element.label} names {quote(named)}, but is about {quote(own)}, in "
            "which it stands",
        )
