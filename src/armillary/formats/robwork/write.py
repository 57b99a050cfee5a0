"""Cells to RobWork's workcells."""

from __future__ import annotations

from typing import Final

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.names import FreeNames
from armillary.formats.robwork.draft import NOWHERE, Draft, Losses, OutFrame
from armillary.formats.robwork.elements import property_elements
from armillary.formats.robwork.frames import Frames
from armillary.formats.robwork.node import SEPARATOR, WORLD_FRAME
from armillary.formats.robwork.notes import DEVICE, PROXIMITY, TYPE
from armillary.formats.robwork.roots import WORKCELL
from armillary.formats.robwork.scene import ENVIRONMENT
from armillary.formats.robwork.write_device import (
    device_element,
    home_of,
    referring,
    setup_elements,
)
from armillary.formats.robwork.write_setups import says_nothing, setup_text
from armillary.formats.xml import Element, tag, to_text
from armillary.model.limits import UNLIMITED
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.workcell import WORLD, Mount, Workcell

__all__ = ["SUFFIX", "write", "write_files"]

ESCAPE: Final = "&"
SUFFIX: Final = ".wc.xml"
SETUP_SUFFIX: Final = ".prox.xml"


def write(cell: Workcell, report: Report) -> bytes:
    """Return the workcell file of a cell, which has no place for rules of collisions.

    A joint that RobWork has no way to hold stays where it is at the start, which is a
    warning.
    """
    sheet = _Sheet(cell, report)
    if not says_nothing(cell.rules):
        sheet.losses["which pairs are tested for collision"] += 1
    return _finished(sheet.workcell(), report)


def write_files(cell: Workcell, name: str, report: Report) -> dict[str, bytes]:
    """Return the workcell file of a cell and, where it has rules, a proximity setup.

    name: Of the workcell file, such as `lab.wc.xml`; the setup is `lab.prox.xml`.
    """
    sheet = _Sheet(cell, report)
    text = None
    if not says_nothing(cell.rules):
        frames = Frames(cell, {full: own for own, full in sheet.names.items()})
        text = setup_text(cell, frames, sheet.losses, report)
    if text is None:
        return {name: _finished(sheet.workcell(), report)}
    setup = f"{name.removesuffix(SUFFIX)}{SETUP_SUFFIX}"
    return {
        setup: text.encode(),
        name: _finished(sheet.workcell(setup), report),
    }


def _finished(root: Element, report: Report) -> bytes:
    text = to_text(root)
    if ESCAPE in text:
        report.warning(
            NOWHERE,
            "escaped",
            'a name or text holds one of & < > ", which is escaped; RobWork itself '
            "reads escapes as they stand",
        )
    report.raise_if_errors()
    return text.encode()


class _Sheet:
    """A workcell file in the making.

    Devices keep the order of the manipulators. Each is preceded by the frame that it
    stands on, where that is not declared yet; else by a frame `<device>_mount`.

    Attributes:
        losses: Receives what is not kept.
        names: For each qualified name of a frame, its full name in the file.
    """

    def __init__(self, cell: Workcell, report: Report) -> None:
        self._cell = cell
        self._report = report
        self.losses = Losses()
        self._mounts = {mount.manipulator: mount for mount in cell.mounts}
        self.names: dict[str, str] = {}
        self._frames: dict[str, tuple[OutFrame, str]] = {}
        self._children: list[Element] = []
        self._last = WORLD_FRAME
        loose = [m for m in cell.manipulators if not self._is_device(m)]
        for manipulator in cell.manipulators:
            if self._is_device(manipulator):
                for place in manipulator.places:
                    own = f"{manipulator.name}/{place}"
                    self.names[own] = f"{manipulator.name}{SEPARATOR}{place}"
        self._taken = FreeNames({WORLD_FRAME, *self.names.values()})
        for manipulator in loose:
            self._name_loose(manipulator)
        for manipulator in loose:
            self._draft_loose(manipulator)

    def workcell(self, setup: str = "") -> Element:
        """Return the root element.

        setup: The file of a proximity setup, if there is one.
        """
        for manipulator in self._cell.manipulators:
            if self._is_device(manipulator):
                self._add_device(manipulator)
            if manipulator.groups:
                self.losses["a group of joints"] += len(manipulator.groups)
        for name in list(self._frames):
            self._declare(name)
        self._add_world()
        root = tag(
            WORKCELL,
            {"name": self._cell.name},
            *self._children,
            *property_elements(self._cell.properties, self.losses),
            *setup_elements(self._cell.properties),
            *([tag(PROXIMITY, {"file": setup})] if setup else ()),
        )
        self.losses.tell(self._report)
        return root

    # Frames of the workcell: environment and parts

    def _mount(self, manipulator: Manipulator) -> Mount:
        return self._mounts.get(manipulator.name, Mount(manipulator=manipulator.name))

    def _is_environment(self, manipulator: Manipulator) -> bool:
        base = manipulator.links[manipulator.base]
        mount = self._mount(manipulator)
        return (
            manipulator.name == ENVIRONMENT
            and base.name == WORLD_FRAME
            and mount == Mount(manipulator=ENVIRONMENT)
            and base.joint.precursor.is_identity
        )

    def _is_device(self, manipulator: Manipulator) -> bool:
        """Return whether a manipulator is written as a device, not as loose frames.

        Loose are the environment, parts that may be moved, and those that would be read
        back as the same part. What moves there is neither driven nor limited.
        """
        if _is_robot(manipulator):
            return True
        mount = self._mount(manipulator)
        if self._is_environment(manipulator) or not mount.bolted:
            return False
        at = self._cell.frame(mount.on)
        base = manipulator.links[manipulator.base].name
        return not (
            manipulator.name == base
            and at.manipulator >= 0
            and _is_robot(self._cell.manipulators[at.manipulator])
        )

    def _name_loose(self, manipulator: Manipulator) -> None:
        """Name the frames of a manipulator that becomes frames of the workcell."""
        base = manipulator.links[manipulator.base].name
        renamed: list[str] = []
        for place in manipulator.places:
            own = f"{manipulator.name}/{place}"
            if place == WORLD_FRAME and self._is_environment(manipulator):
                self.names[own] = WORLD_FRAME
                continue
            keeps = manipulator.name in {ENVIRONMENT, base}
            wanted = place if keeps else f"{manipulator.name}{SEPARATOR}{place}"
            if place == base and not keeps:
                wanted = manipulator.name
            self.names[own] = self._taken.derive(wanted)
            if self.names[own] != place:
                renamed.append(f"{quote(place)} as {quote(self.names[own])}")
        if renamed:
            self._report.note(
                NOWHERE,
                "renamed",
                f"{quote(manipulator.name)} has no joints and becomes frames of the "
                f"workcell, {', '.join(renamed[:5])}"
                + (", ..." if len(renamed) > 5 else ""),
            )

    def _draft_loose(self, manipulator: Manipulator) -> None:
        draft = Draft(manipulator, home_of(manipulator), self.losses, self._report)
        mount = self._mount(manipulator)
        is_world = self._is_environment(manipulator)
        for frame in draft.frames:
            name = self.names[f"{manipulator.name}/{frame.name}"]
            if not frame.parent:
                if is_world:
                    self._frames[WORLD_FRAME] = frame, ""
                    continue
                base = manipulator.links[manipulator.base]
                frame.pose = mount.pose @ base.joint.precursor
                frame.type, frame.daf = _type_of(manipulator, mount)
                parent = self._full_name(mount.on)
            else:
                parent = self.names[f"{manipulator.name}/{frame.parent}"]
            self._frames[name] = frame, parent
        if manipulator.postures:
            self.losses["a posture of what has no joints"] += 1
        if manipulator.wheels is not None:
            self.losses["that a base drives on two wheels"] += 1
        for note in manipulator.properties:
            if not note.of:
                self.losses["a property of a part as a whole"] += 1

    def _full_name(self, frame: str) -> str:
        """Return what a frame of the cell is called in the whole file."""
        if frame == WORLD:
            return WORLD_FRAME
        return self.names[self._cell.qualified(frame)]

    def _declare(self, name: str) -> None:
        """Add a frame of the workcell, if that has not been done."""
        if name == WORLD_FRAME or name not in self._frames:
            return
        frame, parent = self._frames[name]
        if self._last == WORLD_FRAME and parent != WORLD_FRAME:
            # RobWork hangs the first frame on the world, whatever it says.
            on_world = (n for n, (_, p) in self._frames.items() if p == WORLD_FRAME)
            first = next(on_world, None)
            if first is None:
                first = self._taken.derive("origin")
                self._frames[first] = OutFrame(name=first, parent=""), WORLD_FRAME
            self._declare(first)
        del self._frames[name]
        self._last = name
        element = frame.element(name=name, refframe=parent, loose=True)
        self._children.append(element)

    def _add_world(self) -> None:
        """Add what is drawn in the world itself."""
        found = self._frames.pop(WORLD_FRAME, None)
        if found is None:
            return
        self._children += [
            referring(part, "refframe", WORLD_FRAME) for part in found[0].parts
        ]

    # Devices

    def _add_device(self, manipulator: Manipulator) -> None:
        mount = self._mount(manipulator)
        support = self._full_name(mount.on)
        base = manipulator.links[manipulator.base]
        mount = msgspec.structs.replace(mount, pose=mount.pose @ base.joint.precursor)
        if support != self._last:
            self._declare(support)
        if support != self._last:
            name = self._taken.derive(f"{manipulator.name}_mount")
            self._frames[name] = OutFrame(name=name, parent=""), support
            self._declare(name)
            self._report.note(
                NOWHERE,
                "mount-frame",
                f"the frame {quote(name)} comes before {quote(manipulator.name)}, "
                "which RobWork would place on the frame declared before it",
            )
        self._children.append(
            device_element(manipulator, mount, self.losses, self._report)
        )


def _is_robot(manipulator: Manipulator) -> bool:
    """Return whether a manipulator was a device, or moves like one."""
    return any(note.name == DEVICE for note in manipulator.properties) or any(
        _is_driven(link) for link in manipulator.links
    )


def _is_driven(link: Link) -> bool:
    """Return whether a joint is more than a frame that moves."""
    is_free = link.passive and link.coupling is None and link.limits == UNLIMITED
    return link.moves and not is_free


def _type_of(manipulator: Manipulator, mount: Mount) -> tuple[str, bool]:
    """Return the type of the first frame of a part, and whether it can be attached."""
    if mount.bolted:
        return "Fixed", False
    base = manipulator.links[manipulator.base].name
    for note in manipulator.properties:
        if note.name == TYPE and note.of == base:
            return note.text, note.text == "Fixed"
    return "Movable", True
