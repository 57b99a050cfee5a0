"""Cells to RobWork's workcells, and manipulators with joints to devices in them.

The frames of each manipulator come from `frame_export`; elements are written by the
tables by which they are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.features import ALL, FEATURES, Held, fields_of, report_losses
from armillary.formats.format import WriteOptions
from armillary.formats.joint_axis import HELD_BY_LINES
from armillary.formats.names import FreeNames
from armillary.formats.open_loops import report_open_loops
from armillary.formats.robwork import SUFFIX
from armillary.formats.robwork.cells import ENVIRONMENT
from armillary.formats.robwork.elements import (
    ELEMENTS,
    LIMITS,
    PROXIMITY,
    SHAPES,
    WHEELS,
    WORKCELL,
)
from armillary.formats.robwork.frame_export import (
    ExportedFrame,
    FrameExport,
    report_renamed,
)
from armillary.formats.robwork.frames import (
    DEVICE,
    JUNCTION,
    SEPARATOR,
    WORLD_FRAME,
)
from armillary.formats.robwork.joints import HOME
from armillary.formats.robwork.junctions import (
    Junctions,
    LegFrame,
    closures,
    joined,
)
from armillary.formats.robwork.parts import property_elements
from armillary.formats.robwork.read import wheel_poses
from armillary.formats.robwork.rules import (
    Patterns,
    are_default,
    setup_elements,
    setup_text,
)
from armillary.formats.xml import Element, tag, to_text
from armillary.model.limits import UNLIMITED, Limits
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD, Mount
from armillary.model.posture import Posture
from armillary.model.workcell import Workcell

__all__ = ["held_features", "write", "write_files"]


SETUP_SUFFIX: Final = ".prox.xml"


def held_features() -> Held:
    """Return what RobWork's files hold of a cell."""
    return {
        **HELD_BY_LINES,
        "couplings": ALL,
        "passive joints": ALL,
        "closed loops": "of one device whose legs meet",
        "names of joints": ALL,
        **fields_of(Limits, (f for kind in LIMITS for f in ELEMENTS[kind].fields)),
        "frames": ALL,
        "end effectors": ALL,
        "primary frames": "in the poses of frames",
        "visuals": ALL,
        "collision shapes": ALL,
        **dict.fromkeys((kind.__name__ for kind in SHAPES.values()), ALL),
        "Cone": "with a tip",
        "Mesh": "without a scale",
        "colours": "of what is drawn",
        "names of shapes": ALL,
        "several manipulators": ALL,
        "mounts": ALL,
        "movable bases": ALL,
        "postures": "of all joints of a device",
        "home": "as Home",
        "wheels": "of a mobile device",
        "collision rules": "in a file beside it",
        "properties": "of frames, devices and the workcell",
    }


def write(cell: Workcell, report: Report) -> bytes:
    """Return the workcell file of a cell, which cannot hold rules of collisions.

    A joint that RobWork cannot hold stays where it is at the start, with a warning.
    """
    writer = _WorkcellWriter(cell, report)
    if not are_default(cell.rules):
        report.unsupported.add(FEATURES["collision rules"].what)
    return writer.text()


def write_files(
    cell: Workcell, name: str, options: WriteOptions, report: Report
) -> dict[str, bytes]:
    """Return the workcell file of a cell and, if it has rules, a proximity setup.

    name: Of the workcell file, such as `lab.wc.xml`; the setup is `lab.prox.xml`.
    """
    writer = _WorkcellWriter(cell, report)
    setup = None
    if not are_default(cell.rules):
        patterns = Patterns(
            cell, {full: qualified for qualified, full in writer.names.items()}
        )
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
        report_losses(self._cell, held_features(), self._report)
        for device in self._devices:
            self._add_device(device)
        report_open_loops(
            self._cell,
            self._report,
            is_written=lambda owner, _: owner in self._closed,
        )
        for name in list(self._waiting):
            self._declare(name)
        if WORLD_FRAME in self._waiting:
            world, _ = self._waiting[WORLD_FRAME]
            self._children += world.outer_parts(WORLD_FRAME)
        root = ELEMENTS.write(
            WORKCELL,
            self._cell,
            *self._children,
            *property_elements(self._cell.properties, self._report),
            *setup_elements(self._cell.properties),
            *([ELEMENTS.write(PROXIMITY, file=setup)] if setup else ()),
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
            qualified = f"{manipulator.name}/{frame}"
            if frame == WORLD_FRAME and self._is_environment(manipulator):
                self.names[qualified] = WORLD_FRAME
                continue
            wanted = frame
            if manipulator.name not in {ENVIRONMENT, base}:
                wanted = f"{manipulator.name}{SEPARATOR}{frame}"
                wanted = manipulator.name if frame == base else wanted
            self.names[qualified] = self._free.derive(wanted)
            named.append((frame, self.names[qualified]))
        what = "has no joints and becomes frames of the workcell"
        report_renamed(f"{quote(manipulator.name)} {what}", named, self._report)

    def _add_frames(self, manipulator: Manipulator) -> None:
        """Add the frames of a manipulator to those to be declared."""
        mount = self._mount(manipulator)
        base = manipulator.links[manipulator.base]
        export = FrameExport(manipulator, self._report)
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
        export = FrameExport(manipulator, self._report)
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
    is_device = any(each.name == DEVICE for each in manipulator.properties)
    # What RobWork can move outside of devices is passive, independent and unlimited.
    is_driven = any(
        link.moves
        and not (link.passive and link.coupling is None and link.limits == UNLIMITED)
        for link in manipulator.links
    )
    return is_device or is_driven or bool(manipulator.loops)


# Devices, made of the frames of manipulators


TOLERANCE: Final = 1e-12


def device_element(
    export: FrameExport,
    mount: Mount,
    junctions: Junctions | None,
    start: Mapping[str, float],
    report: Report,
) -> Element:
    """Return the device for a manipulator: of its own kind, or the simplest one.

    Args:
        export: Its frames.
        mount: How its base is mounted on the frame that is declared last before it.
        junctions: What closes its loops, None where nothing does.
        start: Where it starts, where that is not its posture at home.
        report: Receives what is not kept.
    """
    manipulator, frames = export.manipulator, export.frames
    wheels = _wheels(export)
    was = {each.text for each in manipulator.properties if each.name == DEVICE}
    # The kind that the device had in RobWork is kept where it still fits.
    is_chain = all(b.parent == a.name for a, b in pairwise(frames))
    kind = "SerialDevice" if is_chain else "TreeDevice"
    if junctions is not None:
        kind = "ParallelDevice"
    elif "TreeDevice" in was:
        kind = "TreeDevice"
    elif wheels and mount.pose.is_identity and not mount.bolted:
        kind = "MobileDevice"
    if kind == "TreeDevice" and kind not in was:
        export.mark_ends()
    if manipulator.wheels is not None and kind != "MobileDevice":
        report.unsupported.add("that a base drives on two wheels")
    marked = [frame for frame in frames if frame.type == "EndEffector"]
    if kind == "SerialDevice" and marked == frames[-1:]:
        marked[0].type = "Fixed"  # the last frame is the end without being marked
    base = frames[0]
    base.pose = mount.pose
    base.type = "Fixed" if mount.bolted else "Movable"
    if kind == "MobileDevice":
        body = _mobile_body(frames, wheels)
    else:
        body = _grouped(frames, kind, _chains(junctions or []))
    return ELEMENTS.write(
        kind,
        {"name": manipulator.name, "basename": base.name},
        *body,
        *property_elements(manipulator.properties, report),
        *setup_elements(manipulator.properties),
        *(
            tag("Junction", {}, *(tag("Chains", text=path) for path in paths))
            for paths in junctions or ()
        ),
        *_postures(export, kind, start, report),
    )


def _wheels(export: FrameExport) -> list[ExportedFrame]:
    """Return the left and the right wheel, if they are like RobWork's."""
    wheels = export.manipulator.wheels
    if wheels is None or wheels.travel != 1.0:
        return []
    names = [export.joints.get(name) for name in (wheels.left, wheels.right)]
    by_name = {frame.name: frame for frame in export.frames}
    wheel_frames = [by_name[name] for name in names if name is not None]
    if len(wheel_frames) < len(WHEELS):
        return []
    width = _axle_width(wheel_frames)
    is_usual = width > 0.0 and wheels.track_width in {None, width}
    is_usual = is_usual and all(
        frame.type == "Revolute"
        and frame.parent == export.frames[0].name
        and not frame.passive
        and frame.pose.approx_equal(pose, TOLERANCE)
        for frame, pose in zip(wheel_frames, wheel_poses(width), strict=True)
    )
    return wheel_frames if is_usual else []


def _axle_width(wheels: Sequence[ExportedFrame]) -> float:
    left, right = (float(wheel.pose.position[1]) for wheel in wheels)
    return left - right


def _mobile_body(
    frames: Sequence[ExportedFrame], wheels: Sequence[ExportedFrame]
) -> list[Element]:
    driven = [frames[0], *wheels]
    names = {frame.name for frame in driven}
    return [
        tag("AxelWidth", text=repr(_axle_width(wheels))),
        *(ELEMENTS.write(k, f) for k, f in zip(WHEELS, wheels, strict=True)),
        *(part for frame in driven for part in frame.outer_parts(frame.name)),
        *(
            frame.element(name=frame.name, refframe=frame.parent)
            for frame in frames
            if frame.name not in names
        ),
    ]


def junctions_of(export: FrameExport) -> Junctions | None:
    """Return junctions that close the loops of a manipulator, None if none can.

    They are those with which it was read, or none, where the ends of all legs meet.
    """
    manipulator = export.manipulator
    wanted = joined(manipulator.loops)
    if wanted is None or not set(manipulator.all_names) <= export.joints.keys():
        return None
    as_read = [
        [path.strip() for path in each.text.split("|")]
        for each in manipulator.properties
        if each.name == JUNCTION
    ]
    for junctions in [as_read, []] if as_read else [[]]:
        chains = _chains(junctions)
        frames = [
            LegFrame(frame.name, frame.parent, _chain_around(frame.name, chains))
            for frame in export.frames
        ]
        loops = closures(frames, junctions)
        if not isinstance(loops, str) and joined(loops) == wanted:
            return junctions
    return None


def _chains(junctions: Junctions) -> set[str]:
    return {chain for paths in junctions for path in paths for chain in path.split()}


def _chain_around(frame: str, chains: set[str]) -> str:
    """Return the innermost of some chains that a frame is in by its name."""
    around = [c for c in chains if frame.startswith(f"{c}{SEPARATOR}")]
    return max(around, key=len, default="")


def _grouped(
    frames: Sequence[ExportedFrame], kind: str, chains: set[str]
) -> list[Element]:
    """Return frames as elements; those of a needed chain are inside of it."""
    groups: list[tuple[str, list[Element]]] = [("", [])]
    before = ""
    for frame in frames:
        chain = _chain_around(frame.name, chains)
        if chain != groups[-1][0]:
            groups.append((chain, []))
        is_next = frame.parent == before
        # A serial device takes the frame before as the parent in any case.
        refframe = None if is_next or kind == "SerialDevice" else frame.parent or None
        name = frame.name.removeprefix(f"{chain}{SEPARATOR}") if chain else frame.name
        groups[-1][1].append(frame.element(name=name, refframe=refframe))
        before = frame.name
    body: list[Element] = []
    for chain, inside in groups:
        as_chain = ELEMENTS.write("SerialChain", {"name": chain}, *inside)
        body += [as_chain] if chain else inside
    return body


def _postures(
    export: FrameExport, kind: str, start: Mapping[str, float], report: Report
) -> list[Element]:
    """Return the postures as vectors of RobWork's q, in which a device starts at Home.

    Args:
        export: Its frames.
        kind: Of the device.
        start: Where it starts, where that is not its posture at home.
        report: Receives what is not kept.
    """
    manipulator, lost = export.manipulator, report.unsupported
    named = {each.name: each for each in manipulator.postures}
    if kind == "MobileDevice":
        if named:
            lost.add("a posture of a mobile device")
        return []
    home, of = manipulator.home, f"of {quote(manipulator.name)}"
    if home != HOME and HOME in named:
        other = f"{HOME}_2"
        named = {other if name == HOME else name: q for name, q in named.items()}
        message = (
            f"the posture {quote(HOME)} {of} is not where it starts, and becomes "
            f"{quote(other)}"
        )
        report.warning(NOWHERE, "renamed", message)
    if home not in {"", HOME}:
        named[HOME] = manipulator.posture(home)
        message = (
            f"the posture {quote(home)} {of}, in which it starts, is written as "
            f"{quote(HOME)} too"
        )
        report.note(NOWHERE, "home", message)
    if start:
        named[HOME] = Posture(name=HOME, joints=[*start], q=[*start.values()])
    joints = export.joints_of_q(kind)
    elements: list[Element] = []
    for name, posture in named.items():
        positions = dict(zip(posture.joints, posture.q, strict=True))
        if not positions.keys() <= set(joints):
            lost.add("the position of a joint that RobWork's q does not hold")
        if not positions.keys() >= set(joints):
            lost.add("that a posture leaves a joint where it is (0 is written)")
        text = " ".join(repr(positions.get(joint, 0.0)) for joint in joints)
        elements.append(ELEMENTS.write("Q", name=name, text=text))
    return elements
