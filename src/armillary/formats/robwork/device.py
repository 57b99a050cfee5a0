"""Device elements: serial, tree, parallel and mobile."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from armillary.errors import quote
from armillary.formats.robwork.bodies import BODY, Body, BodyReader
from armillary.formats.robwork.desk import Desk
from armillary.formats.robwork.directory import Directory
from armillary.formats.robwork.hinges import joint_steps
from armillary.formats.robwork.node import SEPARATOR, Node
from armillary.formats.robwork.notes import DEVICE, JUNCTION, Notes
from armillary.formats.robwork.placing import place_base, place_in_chain, place_in_tree
from armillary.formats.xml import Element
from armillary.model.property import Property
from armillary.spatial.pose import Pose

__all__ = ["DEVICES", "WHEELS", "Device", "read_device", "wheel_poses"]

DEVICES: Final = ("SerialDevice", "TreeDevice", "ParallelDevice", "MobileDevice")
_AXLE: Final = Pose.rotation_x(0.5 * math.pi)
WHEELS: Final = ("LeftWheel", "RightWheel")
ALLOWED: Final = {
    "SerialDevice": (*BODY, "Q"),
    "TreeDevice": (*BODY, "Q"),
    "ParallelDevice": (*BODY, "Junction", "Q"),
    "MobileDevice": (*BODY, "AxelWidth", *WHEELS),
}


@dataclass(slots=True)
class Device:
    """A device: its frames, and what is said of the whole.

    Attributes:
        element: That declares it; its name is the kind of device.
        name: Of the device.
        support: Full name of the frame that the base hangs on.
        body: What it holds.
        postures: Its `Q` elements.
        junctions: For each place where chains meet, the paths of those chains.
        notes: What is said of it as a whole.
        wheels: How many frames of a mobile device are its base and wheels.
    """

    element: Element
    name: str
    support: str
    body: Body = field(default_factory=Body)
    postures: list[Element] = field(default_factory=list[Element])
    junctions: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    notes: Notes = field(default_factory=Notes)
    wheels: int = 0

    @property
    def kind(self) -> str:
        """Return the element's name: `SerialDevice` and so on."""
        return self.element.name

    @property
    def nodes(self) -> list[Node]:
        """Return its frames in the order of the file, first the base."""
        return self.body.nodes

    def place(self, directory: Directory, desk: Desk) -> None:
        """Hang its frames on each other, and its base on its support."""
        if not self.nodes:
            return
        place_base(self.nodes[0], self.support, directory, desk)
        if self.kind == "SerialDevice":
            place_in_chain(self.nodes, directory, desk)
            return
        if self.wheels:
            # The wheels hang on the base, and so does what follows them.
            base, wheels = self.nodes[0], self.nodes[1 : self.wheels]
            rest = [base, *self.nodes[self.wheels :]]
            place_in_tree(rest, directory, desk, others=wheels)
            for wheel in wheels:
                wheel.parent = base.full_name
        else:
            place_in_tree(self.nodes, directory, desk)

    def ends(self) -> list[Node]:
        """Return the frames that are its ends, in RobWork's order."""
        if self.kind == "SerialDevice":
            return self.nodes[-1:]
        marked = [node for node in self.nodes if node.type == "EndEffector"]
        return marked or self.nodes[-1:]

    def silent_end(self) -> Node | None:
        """Return the last frame of a serial device whose frames mark no end."""
        is_marked = any(node.type == "EndEffector" for node in self.nodes)
        return None if self.kind != "SerialDevice" or is_marked else self.nodes[-1]

    def driven(self) -> tuple[Node, Node] | None:
        """Return the left and the right wheel of a mobile device."""
        if self.kind != "MobileDevice":
            return None
        left, right = self.nodes[1 : self.wheels]
        return left, right

    def joints(self) -> list[Node]:
        """Return the joints whose coordinates make up RobWork's q, in its order."""
        own = {node.full_name: node for node in self.nodes}
        found: dict[str, Node] = own
        if self.kind == "TreeDevice":
            found = {}
            for end in self.ends():
                for node in _new_chain(end, own, found):
                    found[node.full_name] = node
        return [
            node
            for node in found.values()
            if node.moves and not node.passive and not node.depend
        ]


def _new_chain(end: Node, own: dict[str, Node], found: dict[str, Node]) -> list[Node]:
    """Return the frames from the base to an end that are not found yet."""
    chain: list[Node] = []
    node: Node | None = end
    while node is not None and node.full_name not in found:
        chain.append(node)
        node = own.get(node.parent)
    return chain[::-1]


def read_device(
    element: Element, support: str, reader: BodyReader, desk: Desk
) -> Device:
    """Return the device of an element.

    support: Full name of the frame of the workcell that is declared last before it.
    """
    name = reader.name(element)
    device = Device(element, name, support)
    device.notes.all.append(Property(name=DEVICE, text=element.name))
    if element.name == "MobileDevice":
        _read_wheels(device, reader, desk)
    for child in desk.children(element, ALLOWED[element.name]):
        if child.name == "Q":
            device.postures.append(child)
        elif child.name == "Junction":
            _read_junction(device, child, desk)
        else:
            reader.add(child, (name,), device.body)
    desk.close(element)
    _tell_open(device, desk)
    return device


def wheel_poses(width: float) -> tuple[Pose, Pose]:
    """Return the poses of left and right wheel in the base: axles along y."""
    left, right = (Pose.translation(0.0, y, 0.0) for y in (0.5 * width, -0.5 * width))
    return left @ _AXLE, right @ _AXLE


def _read_wheels(device: Device, reader: BodyReader, desk: Desk) -> None:
    """Add base and wheels: axles along y at half the width, as RobWork places them."""
    element = device.element
    base = element.required_attribute("basename", desk.report)
    width = element.required_child("AxelWidth", desk.report)
    wheels = [element.required_child(side, desk.report) for side in WHEELS]
    numbers = None if width is None else width.text_numbers(1, desk.report)
    if base is None or width is None or numbers is None:
        return
    desk.close(width)
    if numbers[0] <= 0.0:
        desk.report.error(
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
        if wheel is None:
            continue
        device.nodes.append(
            Node(
                element=wheel,
                scope=scope,
                name=reader.name(wheel),
                type="Revolute",
                pose=X_BW,
                steps=joint_steps("Revolute", X_BW),
            )
        )
        desk.close(wheel)
    device.wheels = len(device.nodes)


def _read_junction(device: Device, element: Element, desk: Desk) -> None:
    chains = element.children_named("Chains")
    paths: list[str] = []
    for chain in chains:
        paths.append(" ".join(chain.read_text().split()))
        desk.close(chain)
    desk.close(element)
    if len(paths) < 2:
        desk.report.error(
            element.place,
            "bad-junction",
            f"a <Junction> of {device.element.label} has {len(paths)} <Chains>; at "
            "least two must meet",
        )
    device.junctions.append(tuple(paths))


def _tell_open(device: Device, desk: Desk) -> None:
    """Tell what of a parallel device is not closed, and keep it."""
    if device.kind != "ParallelDevice":
        return
    chains = {
        SEPARATOR.join(node.scope[1:]) for node in device.nodes if len(node.scope) > 1
    }
    for paths in device.junctions:
        for name in {name for path in paths for name in path.split()}:
            if name not in chains:
                desk.report.error(
                    device.element.place,
                    "unknown-chain",
                    f"{device.element.label} has no chain named {quote(name)} for its "
                    "junction",
                    hint=desk.hint(name, chains),
                )
        device.notes.all.append(Property(name=JUNCTION, text=" | ".join(paths)))
    what = (
        "; ".join(" and ".join(map(quote, paths)) for paths in device.junctions)
        if device.junctions
        else "the ends of its legs"
    )
    desk.report.warning(
        device.element.place,
        "open-loop",
        f"{device.element.label} is read as an open tree: nothing joins {what}",
        hint="Its passive joints have places in q, and no state of them is closed.",
    )
