"""Frames of RobWork to a cell: environment, devices, parts, and the links of each.

- What never moves in the world is the manipulator `environment`, whose base is
  RobWork's `WORLD`.
- Each device is a manipulator, mounted on the parent of its base frame with the pose of
  that frame, which in RobWork is not a part of the device either.
- Any other frame of the workcell that may move, or whose parent is in a device, is a
  part: a manipulator with its name, to which the frames belong that are fixed to it. A
  part has a fixed mount unless RobWork may move it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import Place
from armillary.formats.names import FreeNames
from armillary.formats.robwork.devices import read_junctions
from armillary.formats.robwork.elements import Context
from armillary.formats.robwork.frames import (
    COORDINATE,
    DEVICE,
    TYPE,
    WORLD_FRAME,
    Body,
    FrameIndex,
    Node,
)
from armillary.formats.robwork.joints import HOME, read_postures
from armillary.formats.xml import Element
from armillary.model.axis import Z
from armillary.model.frame import Frame
from armillary.model.joints.fixed import Fixed
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.limits import UNLIMITED
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.property import Property
from armillary.model.wheels import Wheels
from armillary.model.workcell import WORLD, Mount, Workcell

__all__ = ["ENVIRONMENT", "CellBuilder"]

ENVIRONMENT: Final = "environment"
"""The manipulator of what never moves in the world."""

BASE: Final = "Base"
"""The name of a base that RobWork does not have."""


class CellBuilder:
    """Divides the frames of a workcell among manipulators, and makes these.

    Attributes:
        names: For each frame's full name its name in the cell, once that is made.
    """

    def __init__(
        self, index: FrameIndex, bodies: Sequence[Body], context: Context
    ) -> None:
        """Take all frames, whose parents are known.

        bodies: The workcell's own frames, then those of each device.
        """
        self._world = index.nodes[WORLD_FRAME]
        self._own, *devices = bodies
        self._devices = [device for device in devices if device.nodes]
        self._nodes = list(index.nodes.values())
        self._context = context
        self.names = {WORLD_FRAME: f"{ENVIRONMENT}/{WORLD_FRAME}"}
        self._free = FreeNames({WORLD})
        self._mounts: list[Mount] = []
        self._child_counts = Counter(node.parent for node in self._nodes)

    def workcell(self, name: str) -> Workcell | None:
        """Return the cell, or None after errors."""
        parts = self._parts()
        fixed = parts.pop(WORLD_FRAME)
        has_environment = bool(fixed) or not self._world.is_plain
        if has_environment:
            self._free.derive(ENVIRONMENT)
        device_names = [self._name(d.name, d.element) for d in self._devices]
        part_names = [self._name(f, nodes[0].element) for f, nodes in parts.items()]
        names = (ENVIRONMENT, *device_names, *part_names)
        groups = (fixed, *(d.nodes for d in self._devices), *parts.values())
        owners = {
            node.full_name: owner
            for nodes, owner in zip(groups, names, strict=True)
            for node in nodes
        }
        self.names |= {
            node.full_name: f"{owners[node.full_name]}/{node.local_name}"
            for node in self._nodes
            if node.full_name in owners
        }
        made = [self._environment(fixed)] if has_environment else []
        made += map(self._device, self._devices, device_names)
        made += map(self._part, parts.values(), part_names)
        manipulators = tuple(each for each in made if each is not None)
        if len(manipulators) < len(made):
            return None
        return Workcell(
            name=name,
            manipulators=manipulators,
            mounts=tuple(self._mounts),
            properties=(*self._own.properties.values(), *self._own.unread),
        )

    def _parts(self) -> dict[str, list[Node]]:
        """Return the workcell's frames by the first frame of their part, or WORLD."""
        own = {node.full_name: node for node in self._own.nodes}
        first_of = {WORLD_FRAME: WORLD_FRAME}
        parts: dict[str, list[Node]] = {WORLD_FRAME: []}
        for node in self._own.nodes:
            path: list[str] = []
            name = node.full_name
            while name not in first_of:
                path.append(name)
                parent = own[name].parent
                is_on_device = parent not in own and parent != WORLD_FRAME
                if own[name].is_movable or is_on_device:
                    first_of[name] = name
                else:
                    name = parent
            first_of.update(dict.fromkeys(path, first_of[name]))
            parts.setdefault(first_of[name], []).append(node)
        # The first frame of a part may be declared after its children.
        for first, nodes in parts.items():
            nodes.sort(key=lambda node, first=first: node.full_name != first)
        return parts

    def _name(self, wanted: str, element: Element) -> str:
        """Return a free name for a manipulator; report another one than is wanted."""
        name = self._free.derive(wanted.replace("/", "_"))
        if name != wanted:
            message = (
                f"the name {quote(wanted)} cannot be kept; it becomes {quote(name)}"
            )
            self._context.report.warning(element.place, "renamed", message)
        return name

    def _environment(self, nodes: list[Node]) -> Manipulator | None:
        world = self._world
        builder = _LinkBuilder(nodes, self._child_counts, self._context)
        builder.keep_properties(world, WORLD_FRAME)
        base = Link(
            name=WORLD_FRAME,
            visuals=tuple(world.visuals),
            collisions=tuple(world.collisions),
        )
        return self._manipulator(ENVIRONMENT, builder, world.element.place, base)

    def _part(self, nodes: list[Node], name: str) -> Manipulator | None:
        first = nodes[0]
        builder = _LinkBuilder(nodes, self._child_counts, self._context)
        made = self._manipulator(name, builder, first.element.place)
        self._mount(name, first)
        is_usual = first.daf and first.type == "Movable"
        if made is None or is_usual or not first.is_movable:
            return made
        kept = Property(name=TYPE, of=first.local_name, text=first.type)
        return msgspec.structs.replace(made, properties=(*made.properties, kept))

    def _device(self, device: Body, name: str) -> Manipulator | None:
        builder = _LinkBuilder(
            device.nodes, self._child_counts, self._context, device.unmarked_end
        )
        kind = device.element.name
        builder.properties.append(Property(name=DEVICE, text=kind))
        if kind == "ParallelDevice":
            builder.properties += read_junctions(device, self._context)
        builder.properties += (*device.properties.values(), *device.unread)
        made = self._manipulator(name, builder, device.element.place)
        self._mount(name, device.nodes[0])
        if made is None:
            return None
        names = builder.joint_names
        joints = [
            joint for node in device.joints() for joint in names.get(node.full_name, ())
        ]
        links = {link.coordinate: link for link in made.links}
        postures = read_postures(
            device.element.children_named("Q"), joints, links, self._context.report
        )
        has_home = any(posture.name == HOME for posture in postures)
        wheels = None
        if kind == "MobileDevice":
            left, right = device.nodes[1 : device.wheels]
            (left,), (right,) = names[left.full_name], names[right.full_name]
            # Their q is how far they roll.
            wheels = Wheels(left=left, right=right, travel=1.0)
        return msgspec.structs.replace(
            made, postures=postures, home=HOME if has_home else "", wheels=wheels
        )

    def _manipulator(
        self,
        name: str,
        builder: _LinkBuilder,
        place: Place,
        base: Link | None = None,
    ) -> Manipulator | None:
        """Return a manipulator, or None after an error with the rules that it breaks.

        If the limits of joints that depend on others leave a joint no range, they are
        left out: RobWork ignores them.
        """
        links = builder.links(base)
        properties = tuple(builder.properties)
        try:
            made = Manipulator(name=name, links=links, properties=properties)
        except ModelError as error:
            message = str(error).removesuffix(".").replace("\n  ", " ")
            self._context.report.error(place, "bad-device", message)
            return None
        try:
            _ = made.limits
        except ModelError as error:
            self._context.report.warning(
                place,
                "limits-exclude",
                f"{str(error).removesuffix('.')}; the limits of joints that depend on "
                "others are left out",
            )
            links = tuple(
                msgspec.structs.replace(link, limits=UNLIMITED)
                if link.coupling is not None
                else link
                for link in links
            )
            made = Manipulator(name=name, links=links, properties=properties)
        return made

    def _mount(self, name: str, base: Node) -> None:
        """Mount a manipulator on the parent of its first frame."""
        on = WORLD
        if base.parent != WORLD_FRAME:
            on = self.names[base.parent]
        # The pose of a joint is in the joint, after the base that is added before it.
        pose = Mount(manipulator=name).pose if base.steps else base.pose
        mount = Mount(manipulator=name, on=on, pose=pose, bolted=not base.is_movable)
        if mount != Mount(manipulator=name):
            self._mounts.append(mount)


class _LinkBuilder:
    """Makes the links of one manipulator from a tree of frames.

    The base is the first frame, or a link of its own if that is a joint. A fixed frame
    without shapes and children becomes a named frame of its parent's link; every other
    one becomes a link, and a joint with several coordinates becomes several.

    Attributes:
        properties: Of the manipulator.
        joint_names: The joints of each frame that is one, by its full name.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        child_counts: Mapping[str, int],
        context: Context,
        end: Node | None = None,
    ) -> None:
        """Keep the frames.

        child_counts: How many children each frame has, by its full name.
        end: The frame that is the end of a device, though its type does not say so.
        """
        self.properties: list[Property] = []
        self.joint_names: dict[str, tuple[str, ...]] = {}
        self._nodes = nodes
        self._own = {node.full_name: node for node in nodes}
        self._context = context
        self._end = end
        self._pairs = self._joint_pairs(child_counts)
        self._parents = {node.parent for node in nodes}
        self._names = FreeNames({node.local_name for node in nodes})
        self._links: list[Link] = []
        self._frames: dict[str, list[Frame]] = {}

    def links(self, base: Link | None = None) -> tuple[Link, ...]:
        """Return the links.

        base: Parent of the frames whose parents are not among them; by default the
            first frame is the base.
        """
        if base is None and self._nodes[0].steps:
            first = self._nodes[0]
            base = Link(name=self._names.derive(BASE))
            self._context.report.note(
                first.element.place,
                "base-added",
                f"{first.element.label} is the first frame of its device and moves; "
                f"the base {quote(base.name)} is put in front of it",
            )
        if base is not None:
            self._links.append(base)
        joints_of_pairs = set(map(id, self._pairs.values()))
        for node in self._nodes:
            if id(node) not in joints_of_pairs:
                self._add(node, None if base is None else base.name)
        taken = {link.coordinate for link in self._links if link.moves}
        return tuple(self._finished(link, taken) for link in self._links)

    def keep_properties(self, node: Node, name: str) -> None:
        """Keep the properties of a frame."""
        for each in node.properties.values():
            if each.name != COORDINATE:
                self.properties.append(msgspec.structs.replace(each, of=name))

    def _finished(self, link: Link, taken: set[str]) -> Link:
        """Return a link with its frames, and a free name for a joint without motion."""
        changes: dict[str, Any] = {}
        if link.name in self._frames:
            changes["frames"] = tuple(self._frames[link.name])
        if not link.moves and link.name in taken:
            changes["joint_name"] = self._names.derive(f"{link.name}_fixed")
        return msgspec.structs.replace(link, **changes) if changes else link

    def _add(self, node: Node, base: str | None) -> None:
        """Add the frame or the links of a node."""
        joint = self._pairs.get(node.full_name)
        above = self._own.get((joint or node).parent)
        parent = base if above is None else above.local_name
        name = node.local_name
        self.keep_properties(node, name)
        if joint is not None:
            self._add_pair(joint, node, parent)
        elif node.steps:
            self._add_joint(node, parent)
        elif (
            parent is not None
            and not node.has_shapes
            and node.full_name not in self._parents
        ):
            is_end = node.type == "EndEffector"
            frame = Frame(
                name=name, pose=node.pose, end_effector=is_end or node is self._end
            )
            self._frames.setdefault(parent, []).append(frame)
            if not is_end:
                self._keep_type(node)
        else:
            pose = Fixed() if parent is None else Fixed(precursor=node.pose)
            self._add_link(node, name=name, parent=parent, joint=pose)
            if parent is not None:
                self._keep_type(node)

    def _add_link(self, node: Node, **fields: Any) -> None:
        """Add a link with the shapes of a frame."""
        visuals, collisions = tuple(node.visuals), tuple(node.collisions)
        self._links.append(Link(visuals=visuals, collisions=collisions, **fields))

    def _add_joint(self, node: Node, parent: str | None) -> None:
        """Add a link for each coordinate; the last is the frame behind the joint."""
        *first, (_, last) = node.steps
        names: list[str] = []
        for suffix, joint in first:
            name = self._names.derive(f"{node.local_name}{suffix}")
            self._links.append(
                Link(name=name, parent=parent, joint=joint, passive=node.passive)
            )
            names.append(name)
            parent = name
        own = node.local_name if first else node.joint_name
        self._add_link(
            node,
            name=node.local_name,
            parent=parent,
            joint=last,
            joint_name=own if own != node.local_name else "",
            limits=node.limits,
            coupling=node.coupling,
            passive=node.passive,
        )
        self.joint_names[node.full_name] = (*names, own)

    def _add_pair(self, joint: Node, frame: Node, parent: str | None) -> None:
        """Add the one link that armillary wrote as a joint about z and a frame."""
        X_FM = joint.steps[0][1].precursor
        axis = frame.pose.inverse().rotate(Z)
        kind = Prismatic if joint.type == "Prismatic" else Revolute
        own = joint.joint_name
        self._add_link(
            frame,
            name=frame.local_name,
            parent=parent,
            joint=kind(axis=axis, precursor=X_FM @ frame.pose),
            joint_name=own if own != frame.local_name else "",
            limits=joint.limits,
            coupling=joint.coupling,
            passive=joint.passive,
        )
        self.joint_names[joint.full_name] = (own,)

    def _keep_type(self, node: Node) -> None:
        """Keep the type of a frame that is not fixed as a property."""
        if node.is_movable or node.type != "Fixed":
            kept = Property(name=TYPE, of=node.local_name, text=node.type)
            self.properties.append(kept)
        if node.is_movable:
            what = "that a movable frame inside of a device can be moved"
            self._context.report.unsupported.add(what, node.element.place)

    def _joint_pairs(self, child_counts: Mapping[str, int]) -> dict[str, Node]:
        """Return the joint in front of each frame that is one link with it.

        Armillary writes such pairs; the frame is the only child of the joint.
        """
        found: dict[str, Node] = {}
        for frame in self._nodes:
            joint = self._own.get(frame.parent)
            if (
                joint is not None
                and COORDINATE in joint.properties
                and len(joint.steps) == child_counts[joint.full_name] == 1
                and joint.is_plain
                and type(joint.steps[0][1]) in {Revolute, Prismatic}
                and frame.type == "Fixed"
                and not frame.is_movable
                and frame.pose.position == (0.0, 0.0, 0.0)
            ):
                found[frame.full_name] = joint
        return found
