"""RobWork's workcells and devices to cells.

`read` shows the steps: directives are expanded (`include`), elements become frames of
the workcell and of its devices, these get their parents (`frames`) and what is about
them (`parts`), and become links and manipulators (`cells`). The rules of collisions
come last (`rules`), since their patterns are compared with all links.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Final

import msgspec

from armillary.errors import quote
from armillary.file_start import first_tag
from armillary.formats.diagnostic import Place, Report
from armillary.formats.format import ReadOptions
from armillary.formats.names import check_unique
from armillary.formats.robwork.cells import CellBuilder
from armillary.formats.robwork.elements import (
    DEVICES,
    ELEMENTS,
    FRAMES,
    LIMITS,
    PARTS,
    SETUPS,
    WHEELS,
    WORKCELL,
    Context,
)
from armillary.formats.robwork.frames import (
    SEPARATOR,
    WORLD_FRAME,
    FileFrame,
    FileSection,
    FrameIndex,
    LoosePart,
    Scope,
)
from armillary.formats.robwork.include import FileFinder, expand
from armillary.formats.robwork.joints import joint_steps, read_dh_joint
from armillary.formats.robwork.parts import read_part, read_property
from armillary.formats.robwork.rules import Patterns, find_setups, read_rules
from armillary.formats.robwork.transform import read_transform
from armillary.formats.xml import Element
from armillary.model.coupling import Coupling
from armillary.model.workcell import Workcell
from armillary.spatial.pose import Pose

__all__ = ["read", "sniff", "wheel_poses"]

ROOTS: Final = (WORKCELL, *DEVICES)
IN_FILES: Final = ("Include", "Define", "Use", "Junction", "Camera")
FRAGMENTS: Final = (*ELEMENTS["SerialDevice"].children, *IN_FILES)

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
_AXLE: Final = Pose.rotation_x(0.5 * math.pi)


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
    ELEMENTS.report_unknown(root, report)
    context = Context(report, finder)
    sections = _sections(root, context)
    index = _index(root, sections, report)
    for section in sections:
        _read_loose_parts(section, index, context)
    setups: list[tuple[LoosePart, str]] = []
    for section in (*sections[1:], sections[0]):  # those of devices count first
        setups += find_setups(section, context)
    finder.report_missing(report)
    report.raise_if_errors()
    name = root.attributes.get("name") or os.path.basename(path).split(".")[0] or "cell"
    cells = CellBuilder(index, sections, report)
    cell = cells.workcell(name)
    rules = read_rules(setups, Patterns(cell, cells.names), context)
    report.raise_if_errors()
    return msgspec.structs.replace(cell, rules=rules)


# The root element


def _root_of(whole: Element, path: str, report: Report) -> Element:
    """Return the one root element, a workcell or a device.

    Raises:
        FormatError: The file is something else, which the message names.
    """
    elements = whole.children
    roots = [element for element in elements if element.name in ROOTS]
    if len(roots) == len(elements) == 1:
        root = roots[0]
        if root.name == WORKCELL:
            ELEMENTS.read(root, report)  # it must have a name, which may be empty
        return root
    if not elements:
        report.error(Place(path), "no-workcell", "the file has no element")
    elif roots:
        other = next(each for each in (*roots[1:], *elements) if each is not roots[0])
        report.error(
            other.place,
            "several-roots",
            f"{other.label} is beside {roots[0].label}, not in it",
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


# The frames of the workcell and of its devices
#
# A limit, a shape or a property may come before the frame that it is about. So these
# elements wait until every frame is known.


def _sections(root: Element, context: Context) -> list[FileSection]:
    """Return the workcell's own frames, then the frames of each device."""
    workcell = FileSection(element=root)
    if root.name != WORKCELL:
        return [workcell, _device(root, WORLD_FRAME, context)]
    sections = [workcell]
    for child in ELEMENTS.children(root):
        if child.name in DEVICES:
            is_mounted = workcell.frames and child.name != "MobileDevice"
            support = workcell.frames[-1].full_name if is_mounted else WORLD_FRAME
            sections.append(_device(child, support, context))
        elif child.name == "Camera":
            context.report.unsupported.add("<Camera>", child.place)
        else:
            _add(child, (), workcell, context)
    return sections


def _device(element: Element, support: str, context: Context) -> FileSection:
    """Return a device whose base has the parent `support`."""
    fields = ELEMENTS.read(element, context.report)
    name = fields["name"] or f"<{element.name}>"
    device = FileSection(element=element, name=name, support=support)
    if fields.get("basename"):
        _add_wheels(device, fields["basename"], context.report)
    for child in ELEMENTS.children(element):
        _add(child, (name,), device, context)
    return device


def _add(child: Element, scope: Scope, section: FileSection, context: Context) -> None:
    """Add a child of a workcell, device or chain.

    It calls itself for chains in chains; elements are nested only so deeply.
    """
    part = LoosePart(child, scope, section.frames[-1] if section.frames else None)
    if child.name in FRAMES:
        section.frames.append(_frame(child, scope, context))
    elif child.name in PARTS:
        section.parts.append(part)
    elif child.name in SETUPS:
        section.setups.append(part)
    elif child.name == "SerialChain":
        name = ELEMENTS.read(child, context.report)["name"] or f"<{child.name}>"
        for grandchild in ELEMENTS.children(child):
            _add(grandchild, (*scope, name), section, context)


def _frame(element: Element, scope: Scope, context: Context) -> FileFrame:
    """Return the frame that a `Frame`, `Joint` or `DHJoint` declares."""
    report, fields = context.report, ELEMENTS.read(element, context.report)
    frame = FileFrame(
        element=element,
        scope=scope,
        name=fields["name"] or f"<{element.name}>",
        refframe=fields["refframe"],
        daf=fields.get("daf", False),
    )
    if element.name == "DHJoint":
        read_dh_joint(frame, fields, report)
    else:
        frame.type, frame.pose = fields["type"], read_transform(element, report)
        frame.steps = joint_steps(frame.type, frame.pose)
    if element.name == "Frame":
        # Outside of devices nothing sets the value of a joint in RobWork's state.
        frame.passive = bool(frame.steps) and not scope
    else:
        frame.passive = fields["passive"]
        frame.depend = element.only_child("Depend", report)
    for child in ELEMENTS.children(element):
        if child.name in PARTS:
            _check_reference(child, frame, report)
            read_part(child, frame, context)
    return frame


def _check_reference(element: Element, frame: FileFrame, report: Report) -> None:
    """Warn of an element in a frame that names another one, as RobWork ignores."""
    key = "refjoint" if element.name in LIMITS else "refframe"
    named, full_name = element.attributes.get(key), frame.full_name
    if not named or f"{SEPARATOR}{full_name}".endswith(f"{SEPARATOR}{named}"):
        return
    report.warning(
        element.place,
        "refframe-ignored",
        f"{element.label} names {quote(named)}, but is inside {quote(full_name)} and "
        "about that",
    )


def _add_wheels(device: FileSection, base: str, report: Report) -> None:
    """Add base and wheels: axles along y at half the width, as in RobWork."""
    element, scope = device.element, (device.name,)
    device.frames.append(
        FileFrame(element=element, scope=scope, name=base, type="Movable", daf=True)
    )
    axle = element.required_child("AxelWidth", report)
    (width,) = (None if axle is None else axle.text_numbers(1, report)) or (1.0,)
    if axle is not None and width <= 0.0:
        report.error(
            axle.place,
            "bad-device",
            f"the wheels of {element.label} cannot be {width:g} m apart",
            hint="Write the distance of the left wheel from the right one.",
        )
    for side, X_BW in zip(WHEELS, wheel_poses(width), strict=True):
        wheel = element.required_child(side, report)
        if wheel is not None:
            name = ELEMENTS.read(wheel, report)["name"] or f"<{side}>"
            frame = FileFrame(element=wheel, scope=scope, name=name)
            frame.type, frame.pose = "Revolute", X_BW
            frame.steps = joint_steps(frame.type, X_BW)
            device.frames.append(frame)
    device.wheels = len(device.frames)


def wheel_poses(width: float) -> tuple[Pose, Pose]:
    """Return the poses of left and right wheel in the base: axles along y."""
    left, right = (Pose.translation(0.0, y, 0.0) for y in (0.5 * width, -0.5 * width))
    return left @ _AXLE, right @ _AXLE


# Parents, the joints that others depend on, and what is about frames


def _index(
    root: Element, sections: Sequence[FileSection], report: Report
) -> FrameIndex:
    """Return all frames, each with its parent and the joint that it depends on."""
    devices = sections[1:]
    named = ((device.name, device.element) for device in devices)
    check_unique("device", named, report)
    world = FileFrame(element=root, scope=(), name=WORLD_FRAME)
    index = FrameIndex(world, sections, report)
    for section in sections:
        index.set_parents(section)
    index.check_cycles()
    for device in devices:
        _couple(device, index, report)
        if not device.frames:
            message = (
                f"{device.element.label} has no frame and is left out, as in RobWork"
            )
            report.warning(device.element.place, "empty-device", message)
    return index


def _couple(device: FileSection, index: FrameIndex, report: Report) -> None:
    """Find the joints that others depend on."""
    in_device = set(map(id, device.frames))
    for frame in device.frames:
        depend = frame.depend
        fields = depend and ELEMENTS.read_whole(depend, report)
        if depend is None or fields is None:
            continue
        on = fields.pop("of")
        owner = index.find(on, frame.scope)
        fault, hint = "", ""
        if owner is None:
            fault, hint = "which is unknown", index.hint(on, frame.scope)
        elif id(owner) not in in_device:
            fault = "which is not in the same device"
        elif len(owner.steps) != 1:
            fault = "which is not a joint with one coordinate"
        elif len(frame.steps) > 1:
            fault = f"but only Revolute and Prismatic joints can, not {frame.type}"
        else:
            frame.coupling = Coupling(of=owner.joint_name, **fields)
            continue
        message = f"{frame.element.label} depends on {quote(on)}, {fault}"
        report.error(depend.place, "bad-depend", message, hint=hint)


def _read_loose_parts(
    section: FileSection, index: FrameIndex, context: Context
) -> None:
    """Give each limit, shape and property outside of a frame to that it is about."""
    world = index.frames[WORLD_FRAME]
    for part in section.parts:
        element = part.element
        kind = "joint" if element.name in LIMITS else "frame"
        named = element.attributes.get(f"ref{kind}", "")
        if element.name == "Property" and not named:
            read_property(element, section.properties, context.report)
            continue
        if named:
            frame = index.find(named, part.scope)
        elif part.last is None and section.name and kind == "frame":
            frame = section.frames[0] if section.frames else world
        else:
            frame = part.last or world
        if frame is not None and not (kind == "joint" and frame is world):
            read_part(element, frame, context)
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
