"""RobWork's workcells and devices to cells."""

from __future__ import annotations

import os
from typing import Final

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.format import ReadOptions
from armillary.formats.robwork.bodies import Body, BodyReader, Remark
from armillary.formats.robwork.desk import Desk
from armillary.formats.robwork.device import DEVICES, Device, read_device
from armillary.formats.robwork.directory import Directory
from armillary.formats.robwork.expand import Follower, expand
from armillary.formats.robwork.frames import Frames
from armillary.formats.robwork.limits import LIMITS
from armillary.formats.robwork.meshes import Meshes
from armillary.formats.robwork.node import WORLD_FRAME, Node
from armillary.formats.robwork.notes import SETUPS
from armillary.formats.robwork.placing import check_cycles, place_in_world
from armillary.formats.robwork.read_setups import read_rules
from armillary.formats.robwork.roots import WORKCELL, root_of
from armillary.formats.robwork.scene import Scene
from armillary.formats.robwork.setups import SetupFiles
from armillary.formats.robwork.shapes import ShapeReader
from armillary.formats.xml import Element
from armillary.model.coupling import Coupling
from armillary.model.property import Property
from armillary.model.workcell import Workcell

__all__ = ["read"]

MODELS_AND_NOTES: Final = ("Drawable", "CollisionModel", "Property")
IN_WORKCELL: Final = (*DEVICES, "Frame", *MODELS_AND_NOTES, *SETUPS, "Camera")


def read(data: bytes, path: str, options: ReadOptions, report: Report) -> Workcell:
    """Return the cell in a workcell or a device file.

    Raises FormatError with all that was found, if the file is faulty.
    """
    follower = Follower(path, options.roots)
    whole = expand(data, path, follower, report)
    # What is missing would only seem to be unknown.
    report.raise_if_errors()
    root = root_of(whole, path, report)
    meshes = Meshes(follower, report)
    reading = _Reading(Desk.of(report), follower, meshes)
    scene = reading.scene(root, path)
    reading.connect(scene)
    meshes.tell()
    report.raise_if_errors()
    cell = scene.workcell(reading.desk)
    report.raise_if_errors()
    assert cell is not None, "a faulty cell was let pass"
    frames = Frames(cell, scene.names)
    rules = read_rules(reading.setups.opened, frames, reading.desk)
    reading.desk.unsupported.report_all()
    report.raise_if_errors()
    return msgspec.structs.replace(cell, rules=rules)


class _Reading:
    """Reads the elements of one tree, first all frames, then what is said of them."""

    def __init__(self, desk: Desk, follower: Follower, meshes: Meshes) -> None:
        self.desk = desk
        self.setups = SetupFiles(follower, desk)
        self._reader = BodyReader(desk, ShapeReader(desk, meshes))
        self._own = Body()

    # First what is there,

    def scene(self, root: Element, path: str) -> Scene:
        """Return what the root element holds, its frames not yet hung."""
        scene = Scene(
            name=self._cell_name(root, path),
            place=root.place,
            directory=Directory(self.desk),
            world=Node(element=root, scope=(), name=WORLD_FRAME),
        )
        if root.name == WORKCELL:
            for child in self.desk.children(root, IN_WORKCELL):
                self._add(child, scene)
            self.desk.close(root)
        else:
            self._add(root, scene)
        scene.frames = self._own.nodes
        return scene

    def _add(self, child: Element, scene: Scene) -> None:
        if child.name in DEVICES:
            last = next(reversed(self._own.nodes), None)
            on_world = last is None or child.name == "MobileDevice"
            support = WORLD_FRAME if on_world or last is None else last.full_name
            scene.devices.append(read_device(child, support, self._reader, self.desk))
        elif child.name == "Camera":
            self.desk.unsupported.add("<Camera>", child.place)
        else:
            self._reader.add(child, (), self._own)

    def _cell_name(self, root: Element, path: str) -> str:
        name = root.attributes.get("name", "")
        if root.name == WORKCELL:
            root.required_attribute("name", self.desk.report)
        return name or os.path.basename(path).split(".")[0] or "cell"

    # then how it hangs together.

    def connect(self, scene: Scene) -> None:
        """Hang the frames on each other, and give them what is said of them."""
        scene.directory.add(scene.frames)
        for device in scene.devices:
            scene.directory.add(device.nodes)
        self._check_devices(scene)
        place_in_world(scene.frames, scene.directory, self.desk)
        for device in scene.devices:
            device.place(scene.directory, self.desk)
        check_cycles(scene.directory, self.desk)
        self._couple(scene)
        for remark in self._own.remarks:
            self._apply(remark, scene, None)
        for device in scene.devices:
            for remark in device.body.remarks:
                self._apply(remark, scene, device)
            device.notes.all += self._opened(device.body)
        scene.notes.all += self._opened(self._own)

    def _opened(self, body: Body) -> list[Property]:
        """Open the setups of a workcell or device; return what keeps the others."""
        kept = map(self.setups.open, body.setups)
        return [each for each in kept if each is not None]

    def _check_devices(self, scene: Scene) -> None:
        first: dict[str, Device] = {}
        for device in scene.devices:
            taken = first.setdefault(device.name, device)
            if taken is not device:
                self.desk.report.error(
                    device.element.place,
                    "repeated-name",
                    f"a device is called {quote(device.name)} already, at "
                    f"{taken.element.place}",
                    hint="Rename one.",
                )
            if not device.nodes:
                self.desk.report.warning(
                    device.element.place,
                    "empty-device",
                    f"{device.element.label} has no frame and is left out, as in "
                    "RobWork",
                )

    def _couple(self, scene: Scene) -> None:
        """Find the joints that others depend on."""
        for device in scene.devices:
            own = {node.full_name: node for node in device.nodes}
            for node in device.nodes:
                if node.depend is None:
                    continue
                found = scene.directory.find(node.depend.on, node.scope)
                owner = None if found is None else own.get(found)
                if owner is None or len(owner.steps) != 1:
                    self._tell_bad_owner(node, found, scene)
                    continue
                node.coupling = Coupling(
                    of=owner.coordinate,
                    multiplier=node.depend.gain,
                    offset=node.depend.offset,
                )

    def _tell_bad_owner(self, node: Node, found: str | None, scene: Scene) -> None:
        depend = node.depend
        assert depend is not None
        if found is None:
            what = "is no frame that is known there"
        elif (
            found in scene.directory
            and scene.directory[found].scope[:1] == (node.scope[:1])
        ):
            what = "is no joint with one coordinate"
        else:
            what = "is not in the same device"
        self.desk.report.error(
            depend.place,
            "bad-depend",
            f"{node.element.label} depends on {quote(depend.on)}, which {what}",
            hint=scene.directory.hint(depend.on, node.scope) if found is None else "",
        )

    def _apply(self, remark: Remark, scene: Scene, device: Device | None) -> None:
        """Give a limit, shape or property to the frame that it is about."""
        element = remark.element
        is_limit = element.name in LIMITS
        key = "refjoint" if is_limit else "refframe"
        named = element.attribute(key)
        if element.name == "Property" and not named:
            (device or scene).notes.read(element, self.desk)
            return
        target: str | None = WORLD_FRAME
        if named:
            target = scene.directory.find(named, remark.scope)
        elif remark.last is not None:
            target = remark.last.full_name
        elif device is not None and device.nodes and not is_limit:
            target = device.nodes[0].full_name
        if target is None or (is_limit and target == WORLD_FRAME):
            self._tell_unknown(remark, named, scene)
            return
        node = scene.world if target == WORLD_FRAME else scene.directory[target]
        self._reader.remark(element, node)

    def _tell_unknown(self, remark: Remark, named: str | None, scene: Scene) -> None:
        element = remark.element
        if not named:
            self.desk.report.error(
                element.place,
                "unknown-joint",
                f"{element.label} names no joint, and none is declared before it",
            )
            return
        kind = "joint" if element.name in LIMITS else "frame"
        self.desk.report.warning(
            element.place,
            f"unknown-{kind}",
            f"{element.label} is about {quote(named)}, which is no {kind} here; it is "
            "left out",
            hint=scene.directory.hint(named, remark.scope),
        )
