"""RobWork's workcells and devices to cells."""

from __future__ import annotations

import os
from typing import Final

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import Place, Report
from armillary.formats.format import ReadOptions
from armillary.formats.robwork.annotations import SETUPS
from armillary.formats.robwork.devices import (
    BODY,
    DEVICES,
    Body,
    BodyReader,
    Device,
    Pending,
)
from armillary.formats.robwork.frames import WORLD_FRAME, FrameIndex, Node
from armillary.formats.robwork.include import FileFinder, Fragment, expand
from armillary.formats.robwork.joints import LIMITS
from armillary.formats.robwork.manipulators import CellBuilder
from armillary.formats.robwork.patterns import Patterns
from armillary.formats.robwork.reader_context import ReaderContext
from armillary.formats.robwork.setups import SetupFiles, read_rules
from armillary.formats.robwork.shapes import MODELS, ShapeReader
from armillary.formats.xml import Element, first_tag
from armillary.model.coupling import Coupling
from armillary.model.workcell import Workcell

__all__ = ["WORKCELL", "read", "sniff"]

WORKCELL: Final = "WorkCell"
IN_WORKCELL: Final = (*DEVICES, "Frame", *MODELS, "Property", *SETUPS, "Camera")
ROOTS: Final = (WORKCELL, *DEVICES)
FRAGMENTS: Final = (*BODY, "Include", "Define", "Use", "Q", "Junction", "Camera")

# Files that go with a workcell, by their first element.
OTHERS: Final = {
    "CollisionSetup": "a collision setup, read with the workcell that names it",
    "ProximitySetup": "a proximity setup, read with the workcell that names it",
    "SerialDeviceCalibration": "the calibration of a device",
    "BaseCalibration": "the calibration of a device",
    "CalibrationMeasurements": "a list of measurements for a calibration",
    "SerialDevicePoseMeasurements": "a list of measurements for a calibration",
    "DynamicWorkCell": "a dynamic workcell, which adds forces to a workcell",
    "IncludeData": "a part of a dynamic workcell, which adds forces to a workcell",
}

_FIRST_TAGS: Final = frozenset(n.lower() for n in (*ROOTS, *FRAGMENTS, *OTHERS))


def sniff(data: bytes) -> bool:
    """Return whether the first element is one that RobWork's files begin with.

    Fragments and setups are among them, so that the reader can say what they are.
    """
    return first_tag(data).lower() in _FIRST_TAGS


def read(data: bytes, path: str, options: ReadOptions, report: Report) -> Workcell:
    """Return the cell in a workcell or a device file.

    Raises:
        FormatError: With all diagnostics, if the file is faulty.
    """
    finder = FileFinder(path, options.roots)
    whole = expand(data, path, finder, report)
    # What is missing would only seem to be unknown.
    report.raise_if_errors()
    root = _root_of(whole, path, report)
    context = ReaderContext(report)
    shapes = ShapeReader(context, finder)
    setups = SetupFiles(finder, context)
    cells = _Reading(context, shapes, setups, root).cells()
    shapes.report_missing()
    report.raise_if_errors()
    name = root.attributes.get("name") or os.path.basename(path).split(".")[0] or "cell"
    cell = cells.workcell(name)
    report.raise_if_errors()
    assert cell is not None, "a faulty cell was accepted"
    rules = read_rules(setups.opened, Patterns(cell, cells.names), context)
    report.raise_if_errors()
    return msgspec.structs.replace(cell, rules=rules)


def _root_of(fragment: Fragment, path: str, report: Report) -> Element:
    """Return the one root element, a workcell or a device.

    Raises:
        FormatError: The file is something else, which the message names.
    """
    elements = fragment.elements
    roots = [element for element in elements if element.name in ROOTS]
    if len(roots) == len(elements) == 1:
        return roots[0]
    if not elements:
        report.error(Place(path), "no-workcell", "the file has no element")
    elif roots:
        other = next(
            element for element in (*roots[1:], *elements) if element is not roots[0]
        )
        report.error(
            other.place,
            "several-roots",
            f"{other.label} stands beside {roots[0].label}, not in it",
            hint="Put several devices into one <WorkCell>.",
        )
    else:
        _report_root(elements[0], report)
    report.raise_if_errors()
    raise AssertionError("a file without a root was accepted")


def _report_root(first: Element, report: Report) -> None:
    """Report what a file is that is neither workcell nor device."""
    code, hint = "no-workcell", ""
    if first.name in OTHERS:
        message = f"this is {OTHERS[first.name]}, not a workcell"
    elif first.name in FRAGMENTS:
        code, hint = "fragment", "Load the file that includes it."
        message = (
            f"this is a fragment: it begins with {first.label}, outside of any device "
            "or workcell"
        )
    else:
        message = f"the root element is {first.label}, not one of {', '.join(ROOTS)}"
        likely = next((r for r in ROOTS if r.lower() == first.name.lower()), None)
        hint = f"Did you mean {quote(likely)}?" if likely else ""
    report.error(first.place, code, message, hint=hint)


class _Reading:
    """Reads the elements of one tree: first all frames, then what is about them."""

    def __init__(
        self,
        context: ReaderContext,
        shapes: ShapeReader,
        setups: SetupFiles,
        root: Element,
    ) -> None:
        self._context = context
        self._reader = BodyReader(context, shapes)
        self._setups = setups
        self._root = root
        self._world = Node(element=root, scope=(), name=WORLD_FRAME)
        self._own = Body()
        self._devices: list[Device] = []
        self._index = FrameIndex(context)

    def cells(self) -> CellBuilder:
        """Return all frames, each with its parent and with what is about it."""
        self._read_frames()
        bodies: list[tuple[Body, Device | None]] = [(self._own, None)]
        bodies += [(device.body, device) for device in self._devices]
        for body, _ in bodies:
            self._index.add(body.nodes)
        self._check_devices()
        for k, node in enumerate(self._own.nodes):
            self._index.set_parent(node, WORLD_FRAME, self._index if k else None)
        for device in self._devices:
            device.set_parents(self._index)
        self._index.check_cycles()
        for device in self._devices:
            self._couple(device)
        for body, device in bodies:
            for part in body.parts:
                self._read_part(part, body, device)
        for body, _ in (*bodies[1:], bodies[0]):
            kept = map(self._setups.open, body.setups)
            body.annotations.properties += (each for each in kept if each is not None)
        return CellBuilder(
            index=self._index,
            world=self._world,
            own=self._own,
            devices=[device for device in self._devices if device.nodes],
            context=self._context,
        )

    def _read_frames(self) -> None:
        root, context = self._root, self._context
        if root.name != WORKCELL:
            self._devices.append(self._reader.device(root, WORLD_FRAME))
            return
        root.required_attribute("name", context.report)
        for child in context.children(root, IN_WORKCELL):
            if child.name in DEVICES:
                support = WORLD_FRAME
                if self._own.nodes and child.name != "MobileDevice":
                    support = self._own.nodes[-1].full_name
                self._devices.append(self._reader.device(child, support))
            elif child.name == "Camera":
                context.unsupported.add("<Camera>", child.place)
            else:
                self._reader.add(child, (), self._own)
        context.close(root)

    def _check_devices(self) -> None:
        first: dict[str, Device] = {}
        for device in self._devices:
            taken = first.setdefault(device.name, device)
            place = device.element.place
            if taken is not device:
                self._context.error(
                    place,
                    "repeated-name",
                    f"there is a device {quote(device.name)} already, at "
                    f"{taken.element.place}",
                    hint="Rename one.",
                )
            if not device.nodes:
                message = (
                    f"{device.element.label} has no frame and is left out, as in "
                    "RobWork"
                )
                self._context.warning(place, "empty-device", message)

    def _couple(self, device: Device) -> None:
        """Find the joints that others depend on."""
        own = {node.full_name: node for node in device.nodes}
        for node in device.nodes:
            depend = node.depend
            if depend is None:
                continue
            found = self._index.find(depend.on, node.scope)
            owner = own.get(found or "")
            if owner is not None and len(owner.steps) == 1:
                node.coupling = Coupling(
                    of=owner.joint_name, multiplier=depend.gain, offset=depend.offset
                )
                continue
            hint = ""
            if found is None:
                what, hint = "is unknown", self._index.hint(depend.on, node.scope)
            elif owner is None:
                what = "is not in the same device"
            else:
                what = "is not a joint with one coordinate"
            self._context.error(
                depend.place,
                "bad-depend",
                f"{node.element.label} depends on {quote(depend.on)}, which {what}",
                hint=hint,
            )

    def _read_part(self, part: Pending, body: Body, device: Device | None) -> None:
        """Give a limit, shape or property to the frame that it is about."""
        element, context = part.element, self._context
        kind = "joint" if element.name in LIMITS else "frame"
        named = element.attribute(f"ref{kind}")
        if element.name == "Property" and not named:
            body.annotations.read(element, context)
            return
        target: str | None = WORLD_FRAME
        if named:
            target = self._index.find(named, part.scope)
        elif part.last is not None:
            target = part.last.full_name
        elif device is not None and device.nodes and kind == "frame":
            target = device.nodes[0].full_name
        if target is None or (kind == "joint" and target == WORLD_FRAME):
            if named:
                message = (
                    f"{element.label} is about {quote(named)}, which is not a {kind} "
                    "here; it is left out"
                )
                hint = self._index.hint(named, part.scope)
                context.warning(element.place, f"unknown-{kind}", message, hint=hint)
            else:
                message = (
                    f"{element.label} names no joint, and none is declared before it"
                )
                context.error(element.place, "unknown-joint", message)
            return
        node = self._world if target == WORLD_FRAME else self._index[target]
        self._reader.read_part(element, node)
