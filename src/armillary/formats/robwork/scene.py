"""A workcell of RobWork to one of ours: environment, devices, parts.

- What never moves in the world makes up the manipulator `environment`, whose base is
  RobWork's `WORLD`.
- Each device is a manipulator. Its base stands on a frame, at the pose that RobWork
  gives the base frame; as there, that pose is no part of the device itself.
- Any other frame of the workcell that may move, or that hangs on a device, is a part: a
  manipulator with its name, to which the frames belong that are fixed to it. A part is
  bolted down unless RobWork may move it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import Place
from armillary.formats.names import FreeNames
from armillary.formats.robwork.build import Builder, manipulator
from armillary.formats.robwork.desk import Desk
from armillary.formats.robwork.device import Device
from armillary.formats.robwork.directory import Directory
from armillary.formats.robwork.node import WORLD_FRAME, Node
from armillary.formats.robwork.notes import TYPE, Notes
from armillary.formats.robwork.postures import HOME, read_postures
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.property import Property
from armillary.model.unit import Unit
from armillary.model.wheels import Wheels
from armillary.model.workcell import WORLD, Mount, Workcell

__all__ = ["ENVIRONMENT", "Scene"]

ENVIRONMENT: Final = "environment"
"""The manipulator that holds what never moves in the world."""


@dataclass(slots=True)
class Scene:
    """All that files say of a workcell.

    Attributes:
        name: Of the workcell.
        place: Where it is declared.
        directory: All frames.
        world: What is drawn in the world and may touch, as a frame of its own.
        frames: Those of the workcell itself, in the order of the file.
        devices: In the order of the file.
        notes: What is said of the whole.
        names: For each frame's full name its name in the cell, once that is made.
    """

    name: str
    place: Place
    directory: Directory
    world: Node
    frames: list[Node] = field(default_factory=list[Node])
    devices: list[Device] = field(default_factory=list[Device])
    notes: Notes = field(default_factory=Notes)
    names: dict[str, str] = field(default_factory=dict[str, str])

    def workcell(self, desk: Desk) -> Workcell | None:
        """Return the cell, or None after errors."""
        return _Assembly(self, desk).workcell()


class _Assembly:
    """Gives every frame to a manipulator, and makes the manipulators."""

    def __init__(self, scene: Scene, desk: Desk) -> None:
        self._scene = scene
        self._desk = desk
        self._devices = [device for device in scene.devices if device.nodes]
        self._names = FreeNames({WORLD})
        self._owner: dict[str, str] = {}
        self._manipulators: list[Manipulator | None] = []
        self._mounts: list[Mount] = []
        self._loads = Counter(node.parent for node in scene.directory)

    def workcell(self) -> Workcell | None:
        """Return the cell, or None after errors."""
        parts = self._parts()
        if parts[WORLD_FRAME] or not self._scene.world.is_untouched:
            self._names.derive(ENVIRONMENT)
        device_names = [
            self._name(device.name, device.element.place) for device in self._devices
        ]
        for device, name in zip(self._devices, device_names, strict=True):
            self._owner.update(dict.fromkeys(_full_names(device.nodes), name))
        part_names: dict[str, str] = {}
        for first, nodes in parts.items():
            if first != WORLD_FRAME:
                part_names[first] = self._name(first, nodes[0].place)
            name = part_names.get(first, ENVIRONMENT)
            self._owner.update(dict.fromkeys(_full_names(nodes), name))
        self._add_environment(parts.pop(WORLD_FRAME))
        for device, name in zip(self._devices, device_names, strict=True):
            self._add_device(device, name)
        for first, nodes in parts.items():
            self._add_part(nodes, part_names[first])
        self._scene.names = self._names_of_frames()
        made = [each for each in self._manipulators if each is not None]
        if len(made) < len(self._manipulators):
            return None
        return Workcell(
            name=self._scene.name,
            manipulators=tuple(made),
            mounts=tuple(self._mounts),
            properties=tuple(self._scene.notes.all),
        )

    def _names_of_frames(self) -> dict[str, str]:
        names = {WORLD_FRAME: f"{ENVIRONMENT}/{WORLD_FRAME}"}
        for node in self._scene.directory:
            name = node.full_name
            if name in self._owner:
                names[name] = f"{self._owner[name]}/{node.local_name}"
        return names

    def _parts(self) -> dict[str, list[Node]]:
        """Return the workcell's frames by the first frame of their part, or WORLD."""
        anchors = {WORLD_FRAME: WORLD_FRAME}
        own = {node.full_name: node for node in self._scene.frames}
        parts: dict[str, list[Node]] = {WORLD_FRAME: []}
        for node in self._scene.frames:
            path: list[str] = []
            name = node.full_name
            while name not in anchors:
                path.append(name)
                is_first = own[name].is_movable or not (
                    own[name].parent in own or own[name].parent == WORLD_FRAME
                )
                if is_first:
                    anchors[name] = name
                else:
                    name = own[name].parent
            anchors.update(dict.fromkeys(path, anchors[name]))
            parts.setdefault(anchors[name], []).append(node)
        # The first frame of a part may be declared behind what hangs on it.
        for first, nodes in parts.items():
            nodes.sort(key=lambda node, first=first: node.full_name != first)
        return parts

    def _name(self, wanted: str, place: Place) -> str:
        """Return a name for a manipulator, and tell where it is not the wanted one."""
        name = self._names.derive(wanted.replace("/", "_"))
        if name != wanted:
            self._desk.report.warning(
                place,
                "renamed",
                f"the name {quote(wanted)} cannot be kept; it becomes {quote(name)}",
            )
        return name

    def _add_environment(self, nodes: list[Node]) -> None:
        world = self._scene.world
        if not nodes and world.is_untouched:
            return
        builder = Builder(nodes, self._loads, self._desk)
        links = builder.links(
            Link(
                name=WORLD_FRAME,
                visuals=tuple(world.visuals),
                collisions=tuple(world.collisions),
            )
        )
        notes = [
            msgspec.structs.replace(each, of=WORLD_FRAME) for each in world.notes.all
        ]
        self._finish(ENVIRONMENT, links, [*notes, *builder.properties], world.place)

    def _add_part(self, nodes: list[Node], name: str) -> None:
        first = nodes[0]
        builder = Builder(nodes, self._loads, self._desk)
        links = builder.links()
        is_usual = first.daf and first.type == "Movable"
        if first.is_movable and not is_usual:
            builder.properties.append(
                Property(name=TYPE, of=first.local_name, text=first.type)
            )
        self._finish(name, links, builder.properties, first.place)
        self._mount(name, first)

    def _add_device(self, device: Device, name: str) -> None:
        builder = Builder(device.nodes, self._loads, self._desk, device.silent_end())
        links = builder.links()
        notes = [*device.notes.all, *builder.properties]
        made = self._finish(name, links, notes, device.element.place)
        self._mount(name, device.nodes[0])
        if made is None:
            return
        joints = [
            coordinate
            for node in device.joints()
            for coordinate in builder.coordinates.get(node.full_name, ())
        ]
        limits = {
            link.coordinate: (link.joint.unit is Unit.RADIAN, link.limits)
            for link in made.links
        }
        postures = read_postures(device.postures, joints, limits, self._desk)
        has_home = any(posture.name == HOME for posture in postures)
        self._manipulators[-1] = msgspec.structs.replace(
            made,
            postures=postures,
            home=HOME if has_home else "",
            wheels=_wheels(device, builder.coordinates),
        )

    def _finish(
        self,
        name: str,
        links: tuple[Link, ...],
        properties: Iterable[Property],
        place: Place,
    ) -> Manipulator | None:
        made = manipulator(name, links, tuple(properties), place, self._desk)
        self._manipulators.append(made)
        return made

    def _mount(self, name: str, base: Node) -> None:
        """Stand a manipulator on the frame that its first node hangs on."""
        on = WORLD
        if base.parent != WORLD_FRAME:
            support = self._scene.directory[base.parent]
            on = f"{self._owner[base.parent]}/{support.local_name}"
        # Where the first node moves, the base in front of it stands on that frame.
        mount = Mount(manipulator=name, on=on, bolted=not base.is_movable)
        if not base.moves:
            mount = msgspec.structs.replace(mount, pose=base.pose)
        if mount != Mount(manipulator=name):
            self._mounts.append(mount)


def _wheels(
    device: Device, coordinates: Mapping[str, tuple[str, ...]]
) -> Wheels | None:
    """Return the wheels of a mobile device; their q is how far they roll."""
    driven = device.driven()
    if driven is None:
        return None
    (left,), (right,) = (coordinates[node.full_name] for node in driven)
    return Wheels(left=left, right=right, travel=1.0)


def _full_names(nodes: Iterable[Node]) -> list[str]:
    return [node.full_name for node in nodes]
