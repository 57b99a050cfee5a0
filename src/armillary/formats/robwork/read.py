"""RobWork's workcells and devices to cells."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import Place, Report
from armillary.formats.format import ReadOptions
from armillary.formats.names import check_unique
from armillary.formats.robwork.devices import read_bodies, read_parts
from armillary.formats.robwork.elements import (
    DEVICES,
    ELEMENTS,
    WORKCELL,
    Context,
    report_unknown,
    values,
)
from armillary.formats.robwork.frames import WORLD_FRAME, Body, FrameIndex, Node, Part
from armillary.formats.robwork.include import FileFinder, expand
from armillary.formats.robwork.manipulators import CellBuilder
from armillary.formats.robwork.patterns import Patterns
from armillary.formats.robwork.setups import find_setups, read_rules
from armillary.formats.xml import Element, first_tag
from armillary.model.coupling import Coupling
from armillary.model.workcell import Workcell

__all__ = ["read", "sniff"]

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
    report_unknown(root, report)
    context = Context(report, finder)
    bodies = read_bodies(root, context)
    index = _index(root, bodies, report)
    for body in bodies:
        read_parts(body, index, context)
    setups: list[tuple[Part, str]] = []
    for body in (*bodies[1:], bodies[0]):  # those of devices count first
        setups += find_setups(body, context)
    finder.report_missing(report)
    report.raise_if_errors()
    name = root.attributes.get("name") or os.path.basename(path).split(".")[0] or "cell"
    cells = CellBuilder(index, bodies, report)
    cell = cells.workcell(name)
    rules = read_rules(setups, Patterns(cell, cells.names), context)
    report.raise_if_errors()
    return msgspec.structs.replace(cell, rules=rules)


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
            values(root, report)  # it must have a name, which may be empty
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


def _index(root: Element, bodies: Sequence[Body], report: Report) -> FrameIndex:
    """Return all frames, each with its parent and the joint that it depends on."""
    devices = bodies[1:]
    named = ((device.name, device.element.place) for device in devices)
    check_unique("device", named, report)
    world = Node(element=root, scope=(), name=WORLD_FRAME)
    index = FrameIndex(world, bodies, report)
    for body in bodies:
        index.set_parents(body)
    index.check_cycles()
    for device in devices:
        _couple(device, index, report)
        if not device.nodes:
            message = (
                f"{device.element.label} has no frame and is left out, as in RobWork"
            )
            report.warning(device.element.place, "empty-device", message)
    return index


def _couple(device: Body, index: FrameIndex, report: Report) -> None:
    """Find the joints that others depend on."""
    own = set(map(id, device.nodes))
    for node in device.nodes:
        if node.depend is None:
            continue
        given = values(node.depend, report)
        on, gain, offset = given["on"], given["gain"], given["offset"]
        if on is None or gain is None or offset is None:
            continue
        owner = index.find(on, node.scope)
        fault, hint = "", ""
        if owner is None:
            fault, hint = "which is unknown", index.hint(on, node.scope)
        elif id(owner) not in own:
            fault = "which is not in the same device"
        elif len(owner.steps) != 1:
            fault = "which is not a joint with one coordinate"
        elif len(node.steps) > 1:
            fault = f"but only Revolute and Prismatic joints can, not {node.type}"
        else:
            node.coupling = Coupling(
                of=owner.joint_name, multiplier=gain, offset=offset
            )
            continue
        message = f"{node.element.label} depends on {quote(on)}, {fault}"
        report.error(node.depend.place, "bad-depend", message, hint=hint)
