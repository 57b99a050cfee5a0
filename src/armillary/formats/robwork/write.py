"""Cells to RobWork's workcells, and manipulators with joints to devices in them."""

from __future__ import annotations

from typing import Final

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.names import FreeNames
from armillary.formats.open_loops import report_open_loops
from armillary.formats.robwork.device_export import device_element, junctions_of
from armillary.formats.robwork.elements import PROXIMITY, WORKCELL
from armillary.formats.robwork.frame_export import (
    ExportedFrame,
    FrameExport,
    property_elements,
    report_renamed,
)
from armillary.formats.robwork.frames import (
    DEVICE,
    SEPARATOR,
    WORLD_FRAME,
)
from armillary.formats.robwork.manipulators import ENVIRONMENT
from armillary.formats.robwork.patterns import Patterns
from armillary.formats.robwork.setups import are_default, setup_elements, setup_text
from armillary.formats.xml import Element, tag, to_text
from armillary.model.limits import UNLIMITED
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD, Mount
from armillary.model.workcell import Workcell

__all__ = ["SUFFIX", "write", "write_files"]

SUFFIX: Final = ".wc.xml"
SETUP_SUFFIX: Final = ".prox.xml"


def write(cell: Workcell, report: Report) -> bytes:
    """Return the workcell file of a cell, which cannot hold rules of collisions.

    A joint that RobWork cannot hold stays where it is at the start, with a warning.
    """
    writer = _WorkcellWriter(cell, report)
    if not are_default(cell.rules):
        report.unsupported.add("which pairs are tested for collision")
    return writer.text()


def write_files(cell: Workcell, name: str, report: Report) -> dict[str, bytes]:
    """Return the workcell file of a cell and, if it has rules, a proximity setup.

    name: Of the workcell file, such as `lab.wc.xml`; the setup is `lab.prox.xml`.
    """
    writer = _WorkcellWriter(cell, report)
    setup = None
    if not are_default(cell.rules):
        patterns = Patterns(cell, {full: own for own, full in writer.names.items()})
        setup = setup_text(cell, patterns, report)
    if setup is None:
        return {name: writer.text()}
    setup_name = f"{name.removesuffix(SUFFIX)}{SETUP_SUFFIX}"
    return {setup_name: setup.encode(), name: writer.text(setup_name)}


class _WorkcellWriter:
    """Writes the workcell file.

    Devices keep the order of the manipulators. Each comes after the parent of its base,
    if that is not declared yet; else after a frame `<device>_mount`.

    Attributes:
        names: For each qualified name of a frame, its full name in the file.
    """

    def __init__(self, cell: Workcell, report: Report) -> None:
        self._cell = cell
        self._report = report
        self._mounts = {mount.manipulator: mount for mount in cell.mounts}
        self.names: dict[str, str] = {}
        # Frames of the workcell that are not declared yet, and their parents.
        self._waiting: dict[str, tuple[ExportedFrame, str]] = {}
        self._children: list[Element] = []
        self._closed: list[str] = []
        self._last = WORLD_FRAME
        self._devices = [m for m in cell.manipulators if self._is_device(m)]
        for device in self._devices:
            for frame in device.frame_refs:
                self.names[f"{device.name}/{frame}"] = (
                    f"{device.name}{SEPARATOR}{frame}"
                )
        self._free = FreeNames({WORLD_FRAME, *self.names.values()})
        others = [m for m in cell.manipulators if m not in self._devices]
        for manipulator in others:
            self._name_frames(manipulator)
        for manipulator in others:
            self._add_frames(manipulator)

    def text(self, setup: str = "") -> bytes:
        """Return the file.

        setup: The file of a proximity setup, if there is one.
        """
        for manipulator in self._cell.manipulators:
            for _ in manipulator.groups:
                self._report.unsupported.add("a group of joints")
        for device in self._devices:
            self._add_device(device)
        report_open_loops(self._cell, self._report, closed=self._closed)
        for name in list(self._waiting):
            self._declare(name)
        if WORLD_FRAME in self._waiting:
            world, _ = self._waiting[WORLD_FRAME]
            self._children += world.outer_parts(WORLD_FRAME)
        root = tag(
            WORKCELL,
            {"name": self._cell.name},
            *self._children,
            *property_elements(self._cell.properties, self._report),
            *setup_elements(self._cell.properties),
            *([tag(PROXIMITY, {"file": setup})] if setup else ()),
        )
        text = to_text(root)
        if "&" in text:
            self._report.warning(
                NOWHERE,
                "escaped",
                'a name or text contains one of & < > ", which is escaped; RobWork '
                "itself reads escapes as they stand",
            )
        self._report.raise_if_errors()
        return text.encode()

    # Frames of the workcell: environment and parts

    def _mount(self, manipulator: Manipulator) -> Mount:
        free = Mount(manipulator=manipulator.name, bolted=False)
        return self._mounts.get(manipulator.name, free)

    def _export(self, manipulator: Manipulator) -> FrameExport:
        return FrameExport(manipulator, manipulator.home_q, self._report)

    def _is_environment(self, manipulator: Manipulator) -> bool:
        base = manipulator.links[manipulator.base]
        fixed = Mount(manipulator=ENVIRONMENT)
        return (
            manipulator.name == ENVIRONMENT
            and base.name == WORLD_FRAME
            and self._mounts.get(ENVIRONMENT, fixed) == fixed
            and base.joint.precursor.is_identity
        )

    def _is_device(self, manipulator: Manipulator) -> bool:
        """Return whether a manipulator is written as a device, not as frames.

        The environment, parts that may be moved, and parts that would be read back as
        the same part are frames. What moves there is neither active nor limited.
        """
        if _is_robot(manipulator) or self._passive(manipulator):
            return True
        if self._is_environment(manipulator):
            return False
        mount = self._mounts.get(manipulator.name)
        if mount is None or not mount.bolted:
            return mount is None
        on = self._cell.owners[self._cell.frame(mount.on).link]
        is_on_robot = on >= 0 and _is_robot(self._cell.manipulators[on])
        base = manipulator.links[manipulator.base].name
        return manipulator.name != base or not is_on_robot

    def _name_frames(self, manipulator: Manipulator) -> None:
        """Name the frames of a manipulator that become frames of the workcell."""
        base = manipulator.links[manipulator.base].name
        named: list[tuple[str, str]] = []
        for frame in manipulator.frame_refs:
            own = f"{manipulator.name}/{frame}"
            if frame == WORLD_FRAME and self._is_environment(manipulator):
                self.names[own] = WORLD_FRAME
                continue
            wanted = frame
            if manipulator.name not in {ENVIRONMENT, base}:
                wanted = f"{manipulator.name}{SEPARATOR}{frame}"
                wanted = manipulator.name if frame == base else wanted
            self.names[own] = self._free.derive(wanted)
            named.append((frame, self.names[own]))
        what = "has no joints and becomes frames of the workcell"
        report_renamed(f"{quote(manipulator.name)} {what}", named, self._report)

    def _add_frames(self, manipulator: Manipulator) -> None:
        """Add the frames of a manipulator to those to be declared."""
        mount = self._mount(manipulator)
        base = manipulator.links[manipulator.base]
        export = self._export(manipulator)
        for frame in export.frames:
            name = self.names[f"{manipulator.name}/{frame.name}"]
            parent = self.names.get(f"{manipulator.name}/{frame.parent}", "")
            if not frame.parent and name != WORLD_FRAME:
                frame.pose = mount.pose @ base.joint.precursor
                if not mount.bolted:
                    frame.type = export.types.get(base.name, "Movable")
                    frame.daf = frame.type == "Fixed" or base.name not in export.types
                parent = self._full_name(mount.on)
            self._waiting[name] = frame, parent
        if manipulator.postures:
            self._report.unsupported.add("a posture of what has no joints")
        if manipulator.wheels is not None:
            self._report.unsupported.add("that a base drives on two wheels")
        for each in manipulator.properties:
            if not each.of:
                self._report.unsupported.add("a property of a part as a whole")

    def _full_name(self, frame: str) -> str:
        """Return the full name in the file of a frame of the cell."""
        if frame == WORLD:
            return WORLD_FRAME
        return self.names[self._cell.qualified(frame)]

    def _declare(self, name: str) -> None:
        """Add a frame of the workcell, unless that has been done."""
        if name == WORLD_FRAME or name not in self._waiting:
            return
        frame, parent = self._waiting[name]
        if self._last == WORLD_FRAME and parent != WORLD_FRAME:
            # In RobWork the parent of the first frame is always the world.
            on_world = (n for n, (_, p) in self._waiting.items() if p == WORLD_FRAME)
            first = next(on_world, None)
            if first is None:
                first = self._free.derive("origin")
                self._waiting[first] = ExportedFrame(name=first), WORLD_FRAME
            self._declare(first)
        del self._waiting[name]
        self._last = name
        element = frame.element(name=name, refframe=parent, in_workcell=True)
        self._children.append(element)

    # Devices

    def _add_device(self, manipulator: Manipulator) -> None:
        mount = self._mount(manipulator)
        support = self._full_name(mount.on)
        base = manipulator.links[manipulator.base]
        mount = msgspec.structs.replace(mount, pose=mount.pose @ base.joint.precursor)
        if support != self._last:
            self._declare(support)
        if support != self._last:
            name = self._free.derive(f"{manipulator.name}_mount")
            self._waiting[name] = ExportedFrame(name=name), support
            self._declare(name)
            self._report.note(
                NOWHERE,
                "mount-frame",
                f"the frame {quote(name)} is written before "
                f"{quote(manipulator.name)}, which RobWork would mount on the frame "
                "declared before it",
            )
        export = self._export(manipulator)
        junctions = junctions_of(export) if manipulator.loops else None
        if junctions is not None:
            self._closed.append(manipulator.name)
        opened = self._passive(manipulator)
        if junctions is not None:
            opened -= set(manipulator.passive_names)
        export.set_passive(opened, closed=junctions is not None)
        start = self._start(manipulator) if opened else {}
        self._children.append(
            device_element(export, mount, junctions, start, self._report)
        )

    def _passive(self, manipulator: Manipulator) -> set[str]:
        """Return the joints of a manipulator that loops determine."""
        cell, number = self._cell, self._cell.index[manipulator.name]
        links = cell.joints.links[cell.loop_system.count :]
        return {cell.links[k].coordinate for k in links if cell.owners[k] == number}

    def _start(self, manipulator: Manipulator) -> dict[str, float]:
        """Return where all joints of a manipulator are at home, loops closed."""
        cell, number = self._cell, self._cell.index[manipulator.name]
        return {
            cell.links[k].coordinate: q
            for k, q in zip(cell.joints.links, cell.joints.home, strict=True)
            if cell.owners[k] == number
        }


def _is_robot(manipulator: Manipulator) -> bool:
    """Return whether a manipulator was a device, or moves like one."""
    has_loops = bool(manipulator.loops)
    is_device = any(each.name == DEVICE for each in manipulator.properties)
    return (
        has_loops
        or is_device
        or any(
            link.moves
            and not (
                link.passive and link.coupling is None and link.limits == UNLIMITED
            )
            for link in manipulator.links
        )
    )
