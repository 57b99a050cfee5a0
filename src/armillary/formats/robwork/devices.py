"""The content of a workcell, a device or a chain; and the four kinds of devices.

A limit, a shape or a property may come before the frame that it is about. So these
elements are kept until every frame is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from armillary.errors import quote
from armillary.formats.robwork.annotations import (
    DEVICE,
    JUNCTION,
    SETUPS,
    Annotations,
)
from armillary.formats.robwork.frames import (
    SEPARATOR,
    FrameIndex,
    Node,
    Scope,
    on_paths,
)
from armillary.formats.robwork.joints import (
    JOINT_TYPES,
    LIMITS,
    joint_steps,
    read_depend,
    read_dh_joint,
    read_limit,
    read_state,
)
from armillary.formats.robwork.reader_context import ReaderContext
from armillary.formats.robwork.shapes import MODELS, ShapeReader
from armillary.formats.robwork.transform import TRANSFORM, read_transform
from armillary.formats.xml import Element
from armillary.model.property import Property
from armillary.spatial.pose import Pose

__all__ = [
    "BODY",
    "DEVICES",
    "WHEELS",
    "Body",
    "BodyReader",
    "Device",
    "Pending",
    "wheel_poses",
]

FRAMES: Final = ("Frame", "Joint", "DHJoint")
PARTS: Final = (*MODELS, *LIMITS, "Property")
BODY: Final = (*FRAMES, *PARTS, *SETUPS, "SerialChain")
"""The elements that a device or a chain may have."""

WHEELS: Final = ("LeftWheel", "RightWheel")
DEVICES: Final = {
    "SerialDevice": (*BODY, "Q"),
    "TreeDevice": (*BODY, "Q"),
    "ParallelDevice": (*BODY, "Junction", "Q"),
    "MobileDevice": (*BODY, "AxelWidth", *WHEELS),
}
"""The elements of devices, and the elements that each may have."""

FRAME_TYPES: Final = ("Fixed", "Movable", "EndEffector", "Revolute", "Prismatic")
_AXLE: Final = Pose.rotation_x(0.5 * math.pi)


@dataclass(frozen=True, slots=True)
class Pending:
    """An element to be read when all frames are known.

    Attributes:
        element: A shape, limit or property, or a reference to a setup.
        scope: The device and chains around it.
        last: The frame declared last before it.
    """

    element: Element
    scope: Scope
    last: Node | None


@dataclass(slots=True)
class Body:
    """The content of a workcell or a device, in the order of the file."""

    nodes: list[Node] = field(default_factory=list[Node])
    parts: list[Pending] = field(default_factory=list[Pending])
    setups: list[Pending] = field(default_factory=list[Pending])
    annotations: Annotations = field(default_factory=Annotations)


@dataclass(slots=True)
class Device:
    """A device.

    Attributes:
        element: Its declaration; the element's name is the kind of device.
        name: Of the device.
        support: Full name of the parent of its base.
        body: Its content; the first frame is the base.
        postures: Its `Q` elements.
        junctions: For each point where chains meet, the paths of those chains.
        wheels: How many frames of a mobile device are its base and wheels.
    """

    element: Element
    name: str
    support: str
    body: Body = field(default_factory=Body)
    postures: list[Element] = field(default_factory=list[Element])
    junctions: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    wheels: int = 0

    @property
    def kind(self) -> str:
        """Return the element's name: `SerialDevice` and so on."""
        return self.element.name

    @property
    def nodes(self) -> list[Node]:
        """Return its frames in the order of the file."""
        return self.body.nodes

    @property
    def marked_ends(self) -> list[Node]:
        """Return the frames that are marked as ends."""
        return [node for node in self.nodes if node.type == "EndEffector"]

    @property
    def unmarked_end(self) -> Node | None:
        """Return the last frame of a serial device in which no end is marked."""
        is_unmarked = self.kind == "SerialDevice" and not self.marked_ends
        return self.nodes[-1] if is_unmarked else None

    def set_parents(self, index: FrameIndex) -> None:
        """Set the parents of its frames."""
        if not self.nodes:
            return
        base, *others = self.nodes
        index.set_parent(base, self.support, None)
        declared, before = {base.full_name}, base
        for k, node in enumerate(others, start=1):
            is_serial = self.kind == "SerialDevice"
            usual = base if k <= self.wheels else before
            index.set_parent(node, usual.full_name, None if is_serial else declared)
            declared.add(node.full_name)
            before = node

    def joints(self) -> list[Node]:
        """Return the joints of RobWork's q, in its order."""
        own = {node.full_name: node for node in self.nodes}
        order: Iterable[str] = own
        if self.kind == "TreeDevice":
            ends = [node.full_name for node in self.marked_ends or self.nodes[-1:]]
            order = on_paths(ends, {name: node.parent for name, node in own.items()})
        nodes = map(own.__getitem__, order)
        return [n for n in nodes if n.is_joint and not n.passive and not n.depend]


def wheel_poses(width: float) -> tuple[Pose, Pose]:
    """Return the poses of left and right wheel in the base: axles along y."""
    left, right = (Pose.translation(0.0, y, 0.0) for y in (0.5 * width, -0.5 * width))
    return left @ _AXLE, right @ _AXLE


class BodyReader:
    """Reads devices, frames, and the elements about frames."""

    def __init__(self, context: ReaderContext, shapes: ShapeReader) -> None:
        self._context = context
        self._shapes = shapes

    def add(self, child: Element, scope: Scope, body: Body) -> None:
        """Add a child of a workcell, device or chain to its body.

        It calls itself for chains in chains; elements are nested only so deeply.
        """
        pending = Pending(child, scope, body.nodes[-1] if body.nodes else None)
        if child.name in FRAMES:
            body.nodes.append(self._frame(child, scope))
        elif child.name in PARTS:
            body.parts.append(pending)
        elif child.name in SETUPS:
            body.setups.append(pending)
        elif child.name == "SerialChain":
            name = self._name(child)
            for grandchild in self._context.children(child, BODY):
                self.add(grandchild, (*scope, name), body)
            self._context.close(child)

    def _name(self, element: Element) -> str:
        """Return the required name of an element, after an error that of its tag."""
        name = element.required_attribute("name", self._context.report)
        if name == "":
            message = f"{element.label} has an empty name"
            self._context.error(element.place, "missing-name", message)
        return name or f"<{element.name}>"

    # Frames and what is about them

    def _frame(self, element: Element, scope: Scope) -> Node:
        """Return the frame that a `Frame`, `Joint` or `DHJoint` declares."""
        node = Node(
            element=element,
            scope=scope,
            name=self._name(element),
            refframe=element.attribute("refframe") or "",
        )
        known = (*TRANSFORM, *MODELS, "Property")
        if element.name == "Frame":
            self._read_frame(node)
        else:
            known = (*known, *LIMITS, "Depend")
            self._read_joint(node)
        for child in self._context.children(element, known):
            if child.name in PARTS:
                self._check_reference(child, node)
                self.read_part(child, node)
        self._context.close(element)
        return node

    def _read_frame(self, node: Node) -> None:
        element, choice = node.element, self._context.choice
        node.type = choice(element, "type", FRAME_TYPES, "Fixed")
        node.daf = choice(element, "daf", ("false", "true"), "false") == "true"
        node.pose = read_transform(element, self._context)
        if node.type in JOINT_TYPES:
            node.steps = joint_steps(node.type, node.pose)
            # Outside of devices nothing sets its value in RobWork's state.
            node.passive = not node.scope

    def _read_joint(self, node: Node) -> None:
        element, context = node.element, self._context
        node.passive = read_state(element, context)
        node.depend = read_depend(element, context)
        if element.name == "DHJoint":
            found = read_dh_joint(element, context)
            if found is not None:
                node.type, node.steps = found
            return
        element.required_attribute("type", context.report)
        node.type = context.choice(element, "type", tuple(JOINT_TYPES), "Revolute")
        node.pose = read_transform(element, context)
        node.steps = joint_steps(node.type, node.pose)
        if node.depend is not None and len(node.steps) > 1:
            context.error(
                node.depend.place,
                "bad-depend",
                f"{element.label} of type {quote(node.type)} cannot depend on another "
                "joint; only Revolute and Prismatic ones can",
            )
            node.depend = None

    def read_part(self, element: Element, node: Node) -> None:
        """Give a frame the shape, limit or property of an element."""
        if element.name in LIMITS:
            read_limit(element, node, self._context)
        elif element.name in MODELS:
            self._shapes.read(element, node)
        else:
            node.annotations.read(element, self._context)

    def _check_reference(self, element: Element, node: Node) -> None:
        """Warn of an element in a frame that names another one, as RobWork ignores."""
        named = element.attribute("refjoint" if element.name in LIMITS else "refframe")
        own = node.full_name
        if not named or f"{SEPARATOR}{own}".endswith(f"{SEPARATOR}{named}"):
            return
        self._context.warning(
            element.place,
            "refframe-ignored",
            f"{element.label} names {quote(named)}, but is inside {quote(own)} and "
            "about that",
        )

    # Devices

    def device(self, element: Element, support: str) -> Device:
        """Return the device of an element.

        support: Full name of the parent of its base.
        """
        context, name = self._context, self._name(element)
        device = Device(element, name, support)
        kind = Property(name=DEVICE, text=element.name)
        device.body.annotations.properties.append(kind)
        if element.name == "MobileDevice":
            self._read_wheels(device)
        for child in context.children(element, DEVICES[element.name]):
            if child.name == "Q":
                device.postures.append(child)
            elif child.name == "Junction":
                self._read_junction(device, child)
            else:
                self.add(child, (name,), device.body)
        context.close(element)
        if element.name == "ParallelDevice":
            self._keep_junctions(device)
        return device

    def _read_wheels(self, device: Device) -> None:
        """Add base and wheels: axles along y at half the width, as in RobWork."""
        element, context = device.element, self._context
        base = element.required_attribute("basename", context.report)
        width = element.required_child("AxelWidth", context.report)
        wheels = [element.required_child(side, context.report) for side in WHEELS]
        numbers = None if width is None else width.text_numbers(1, context.report)
        if base is None or width is None or numbers is None:
            return
        context.close(width)
        if numbers[0] <= 0.0:
            context.error(
                width.place,
                "bad-device",
                f"the wheels of {element.label} cannot be {numbers[0]:g} m apart",
                hint="Write the distance of the left wheel from the right one.",
            )
        scope = (device.name,)
        device.nodes.append(
            Node(element=element, scope=scope, name=base, type="Movable", daf=True)
        )
        for wheel, X_BW in zip(wheels, wheel_poses(numbers[0]), strict=True):
            if wheel is not None:
                node = Node(element=wheel, scope=scope, name=self._name(wheel))
                node.type, node.pose = "Revolute", X_BW
                node.steps = joint_steps("Revolute", X_BW)
                device.nodes.append(node)
                context.close(wheel)
        device.wheels = len(device.nodes)

    def _read_junction(self, device: Device, element: Element) -> None:
        paths: list[str] = []
        for chain in element.children_named("Chains"):
            paths.append(" ".join(chain.read_text().split()))
            self._context.close(chain)
        self._context.close(element)
        if len(paths) < 2:
            self._context.error(
                element.place,
                "bad-junction",
                f"a <Junction> of {device.element.label} has {len(paths)} <Chains>; at "
                "least two must meet",
            )
        device.junctions.append(tuple(paths))

    def _keep_junctions(self, device: Device) -> None:
        """Keep the junctions of a parallel device, and report that they are open."""
        element, context = device.element, self._context
        chains = {
            SEPARATOR.join(node.scope[1:])
            for node in device.nodes
            if len(node.scope) > 1
        }
        for paths in device.junctions:
            for name in {name for path in paths for name in path.split()} - chains:
                context.error(
                    element.place,
                    "unknown-chain",
                    f"{element.label} has no chain named {quote(name)} for its "
                    "junction",
                    hint=context.hint(name, chains),
                )
            kept = Property(name=JUNCTION, text=" | ".join(paths))
            device.body.annotations.properties.append(kept)
        what = "; ".join(" and ".join(map(quote, paths)) for paths in device.junctions)
        context.warning(
            element.place,
            "open-loop",
            f"{element.label} is read as an open tree: nothing joins "
            f"{what or 'the ends of its legs'}",
            hint="Its passive joints are part of q, and no state of them is closed.",
        )
