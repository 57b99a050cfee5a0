"""The content of a workcell and of its devices: their frames, and what is about them.

A limit, a shape or a property may come before the frame that it is about. So these
elements are kept until every frame is known.
"""

from __future__ import annotations

import math
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.robwork.elements import (
    DEVICES,
    FRAMES,
    LIMITS,
    MODELS,
    PARTS,
    SETUPS,
    WHEELS,
    WORKCELL,
    Context,
    known_children,
    values,
)
from armillary.formats.robwork.frames import (
    SEPARATOR,
    WORLD_FRAME,
    Body,
    FrameIndex,
    Node,
    Part,
    Scope,
)
from armillary.formats.robwork.joints import joint_steps, read_dh_joint, read_limit
from armillary.formats.robwork.shapes import read_shapes
from armillary.formats.robwork.transform import read_transform
from armillary.formats.xml import Element
from armillary.model.property import Property
from armillary.spatial.pose import Pose

__all__ = [
    "read_bodies",
    "read_parts",
    "wheel_poses",
]

_AXLE: Final = Pose.rotation_x(0.5 * math.pi)


def read_bodies(root: Element, context: Context) -> list[Body]:
    """Return the workcell's own frames, then the frames of each device."""
    own = Body(element=root)
    if root.name != WORKCELL:
        return [own, _device(root, WORLD_FRAME, context)]
    bodies = [own]
    for child in known_children(root):
        if child.name in DEVICES:
            is_mounted = own.nodes and child.name != "MobileDevice"
            support = own.nodes[-1].full_name if is_mounted else WORLD_FRAME
            bodies.append(_device(child, support, context))
        elif child.name == "Camera":
            context.report.unsupported.add("<Camera>", child.place)
        else:
            _add(child, (), own, context)
    return bodies


def _device(element: Element, support: str, context: Context) -> Body:
    """Return a device whose base has the parent `support`."""
    given = values(element, context.report)
    name = given["name"] or f"<{element.name}>"
    device = Body(element=element, name=name, support=support)
    if element.name == "MobileDevice" and given["basename"]:
        _add_wheels(device, given["basename"], context.report)
    for child in known_children(element):
        _add(child, (name,), device, context)
    return device


def _add(child: Element, scope: Scope, body: Body, context: Context) -> None:
    """Add a child of a workcell, device or chain.

    It calls itself for chains in chains; elements are nested only so deeply.
    """
    part = Part(child, scope, body.nodes[-1] if body.nodes else None)
    if child.name in FRAMES:
        body.nodes.append(_frame(child, scope, context))
    elif child.name in PARTS:
        body.parts.append(part)
    elif child.name in SETUPS:
        body.setups.append(part)
    elif child.name == "SerialChain":
        name = values(child, context.report)["name"] or f"<{child.name}>"
        for grandchild in known_children(child):
            _add(grandchild, (*scope, name), body, context)


def _frame(element: Element, scope: Scope, context: Context) -> Node:
    """Return the frame that a `Frame`, `Joint` or `DHJoint` declares."""
    report, given = context.report, values(element, context.report)
    name = given["name"] or f"<{element.name}>"
    node = Node(element=element, scope=scope, name=name, refframe=given["refframe"])
    if element.name == "DHJoint":
        read_dh_joint(node, given, report)
    else:
        node.type, node.pose = given["type"], read_transform(element, report)
        node.steps = joint_steps(node.type, node.pose)
    if element.name == "Frame":
        node.daf = given["daf"] == "true"
        # Outside of devices nothing sets the value of a joint in RobWork's state.
        node.passive = bool(node.steps) and not scope
    else:
        node.passive = given["state"] == "Passive"
        node.depend = element.only_child("Depend", report)
    for child in known_children(element):
        if child.name in PARTS:
            _check_reference(child, node, report)
            _read_part(child, node, context)
    return node


def _add_wheels(device: Body, base: str, report: Report) -> None:
    """Add base and wheels: axles along y at half the width, as in RobWork."""
    element, scope = device.element, (device.name,)
    device.nodes.append(
        Node(element=element, scope=scope, name=base, type="Movable", daf=True)
    )
    found = element.required_child("AxelWidth", report)
    (width,) = (None if found is None else found.text_numbers(1, report)) or (1.0,)
    if found is not None and width <= 0.0:
        report.error(
            found.place,
            "bad-device",
            f"the wheels of {element.label} cannot be {width:g} m apart",
            hint="Write the distance of the left wheel from the right one.",
        )
    for side, X_BW in zip(WHEELS, wheel_poses(width), strict=True):
        wheel = element.required_child(side, report)
        if wheel is not None:
            name = values(wheel, report)["name"] or f"<{side}>"
            node = Node(element=wheel, scope=scope, name=name)
            node.type, node.pose = "Revolute", X_BW
            node.steps = joint_steps(node.type, X_BW)
            device.nodes.append(node)
    device.wheels = len(device.nodes)


def wheel_poses(width: float) -> tuple[Pose, Pose]:
    """Return the poses of left and right wheel in the base: axles along y."""
    left, right = (Pose.translation(0.0, y, 0.0) for y in (0.5 * width, -0.5 * width))
    return left @ _AXLE, right @ _AXLE


# What is about frames


def read_parts(body: Body, index: FrameIndex, context: Context) -> None:
    """Give each limit, shape and property to the frame that it is about."""
    for part in body.parts:
        element = part.element
        kind = "joint" if element.name in LIMITS else "frame"
        named = element.attributes.get(f"ref{kind}", "")
        if element.name == "Property" and not named:
            _read_property(element, body.properties, context.report)
            continue
        if named:
            node = index.find(named, part.scope)
        elif part.last is None and body.name and kind == "frame":
            node = body.nodes[0] if body.nodes else index.nodes[WORLD_FRAME]
        else:
            node = part.last or index.nodes[WORLD_FRAME]
        is_world = node is index.nodes[WORLD_FRAME]
        if node is not None and not (kind == "joint" and is_world):
            _read_part(element, node, context)
        elif named:
            message = (
                f"{element.label} is about {quote(named)}, which is not a {kind} here; "
                "it is left out"
            )
            hint = index.hint(named, part.scope)
            code = f"unknown-{kind}"
            context.report.warning(element.place, code, message, hint=hint)
        else:
            message = f"{element.label} names no joint, and none is declared before it"
            context.report.error(element.place, "unknown-joint", message)


def _read_part(element: Element, node: Node, context: Context) -> None:
    """Give a frame the shape, limit or property of an element."""
    if element.name in LIMITS:
        read_limit(element, node, context.report)
    elif element.name in MODELS:
        read_shapes(element, node, context)
    else:
        _read_property(element, node.properties, context.report)


def _check_reference(element: Element, node: Node, report: Report) -> None:
    """Warn of an element in a frame that names another one, as RobWork ignores."""
    key = "refjoint" if element.name in LIMITS else "refframe"
    named, own = element.attributes.get(key), node.full_name
    if not named or f"{SEPARATOR}{own}".endswith(f"{SEPARATOR}{named}"):
        return
    report.warning(
        element.place,
        "refframe-ignored",
        f"{element.label} names {quote(named)}, but is inside {quote(own)} and about "
        "that",
    )


def _read_property(
    element: Element, properties: dict[str, Property], report: Report
) -> None:
    """Add the property of an element; RobWork keeps the first of each name."""
    given = values(element, report)
    name, kind = given["name"], given["type"]
    text = element.read_text()
    numbers: tuple[float, ...] | None = ()
    if kind != "string":
        count, text = (1 if kind == "double" else None), ""
        view = report.tolerating("it is left out")
        numbers = element.text_numbers(count, view)
    if name is None or numbers is None:
        return
    if name in properties:
        message = (
            f"there is a property {quote(name)} already, which counts, as in RobWork"
        )
        report.warning(element.place, "repeated-property", message)
        return
    properties[name] = Property(
        name=name, text=text, numbers=numbers, description=given["desc"]
    )
