"""A manipulator with joints as a device element."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.robwork.devices import wheel_poses
from armillary.formats.robwork.elements import SETUPS, WHEELS
from armillary.formats.robwork.frame_export import (
    ExportedFrame,
    FrameExport,
    property_elements,
)
from armillary.formats.robwork.frames import DEVICE, JUNCTION, PREFIX, SEPARATOR
from armillary.formats.robwork.joints import HOME
from armillary.formats.xml import Element, tag
from armillary.model.posture import Posture
from armillary.model.property import Property
from armillary.model.workcell import Mount

__all__ = ["device_element", "setup_elements"]

TOLERANCE: Final = 1e-12


def device_element(export: FrameExport, mount: Mount, report: Report) -> Element:
    """Return the device for a manipulator: of its own kind, or the simplest one.

    mount: How its base is mounted on the frame that is declared last before it.
    """
    manipulator, frames = export.manipulator, export.frames
    wheels = _wheels(export)
    was = {each.text for each in manipulator.properties if each.name == DEVICE}
    is_chain = all(b.parent == a.name for a, b in pairwise(frames))
    kind = "SerialDevice" if is_chain else "TreeDevice"
    if "ParallelDevice" in was:
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
    _report_late_owners(export, report)
    attributes = {"name": manipulator.name}
    junctions = [
        [path.strip() for path in each.text.split("|")]
        for each in manipulator.properties
        if each.name == JUNCTION and kind == "ParallelDevice"
    ]
    if kind == "MobileDevice":
        attributes["basename"] = base.name
        body = _mobile_body(frames, wheels)
    else:
        chains = {chain for paths in junctions for p in paths for chain in p.split()}
        body = _grouped(frames, kind, chains)
    return tag(
        kind,
        attributes,
        *body,
        *property_elements(manipulator.properties, report),
        *setup_elements(manipulator.properties),
        *(
            tag("Junction", {}, *(tag("Chains", text=path) for path in paths))
            for paths in junctions
        ),
        *_postures(export, kind, report),
    )


def setup_elements(properties: Sequence[Property]) -> list[Element]:
    """Return the references to setups that were not read, each in its chains."""
    found: list[Element] = []
    for each in properties:
        kind = each.name.removeprefix(PREFIX)
        if each.name.startswith(PREFIX) and kind in SETUPS:
            element = tag(kind, {"file": each.text})
            for chain in reversed(each.description.split(SEPARATOR)):
                if chain:
                    element = tag("SerialChain", {"name": chain}, element)
            found.append(element)
    return found


# The content of a device


def _wheels(export: FrameExport) -> list[ExportedFrame]:
    """Return the left and the right wheel, if they are like RobWork's."""
    wheels = export.manipulator.wheels
    if wheels is None or wheels.travel != 1.0:
        return []
    names = [export.joints.get(name, "") for name in (wheels.left, wheels.right)]
    by_name = {frame.name: frame for frame in export.frames}
    found = [by_name[name] for name in names if name in by_name]
    if len(found) < len(WHEELS):
        return []
    width = _axle_width(found)
    is_usual = (
        width > 0.0
        and wheels.track_width in {None, width}
        and all(
            frame.type == "Revolute"
            and frame.parent == export.frames[0].name
            and not frame.passive
            and frame.pose.approx_equal(pose, TOLERANCE)
            for frame, pose in zip(found, wheel_poses(width), strict=True)
        )
    )
    return found if is_usual else []


def _axle_width(wheels: Sequence[ExportedFrame]) -> float:
    left, right = (float(wheel.pose.position[1]) for wheel in wheels)
    return left - right


def _report_late_owners(export: FrameExport, report: Report) -> None:
    """Warn of joints that depend on one that is declared after them."""
    seen: set[str] = set()
    for frame in export.frames:
        if frame.depend is not None and frame.depend[0] not in seen:
            report.warning(
                NOWHERE,
                "late-owner",
                f"joint {quote(frame.name)} of {quote(export.manipulator.name)} "
                f"follows {quote(frame.depend[0])}, which is farther out; RobWork "
                "itself knows only joints that are declared before",
            )
        seen.add(frame.name)


def _mobile_body(
    frames: Sequence[ExportedFrame], wheels: Sequence[ExportedFrame]
) -> list[Element]:
    own = [frames[0], *wheels]
    names = {frame.name for frame in own}
    return [
        tag("AxelWidth", text=repr(_axle_width(wheels))),
        *(tag(k, {"name": f.name}) for k, f in zip(WHEELS, wheels, strict=True)),
        *(part for frame in own for part in frame.outer_parts(frame.name)),
        *(
            frame.element(name=frame.name, refframe=frame.parent)
            for frame in frames
            if frame.name not in names
        ),
    ]


def _grouped(
    frames: Sequence[ExportedFrame], kind: str, chains: set[str]
) -> list[Element]:
    """Return frames as elements; those of a needed chain are inside of it."""
    groups: list[tuple[str, list[Element]]] = [("", [])]
    before = ""
    for frame in frames:
        around = [c for c in chains if frame.name.startswith(f"{c}{SEPARATOR}")]
        chain = max(around, key=len, default="")
        if chain != groups[-1][0]:
            groups.append((chain, []))
        is_next = frame.parent == before
        refframe = None if is_next or kind == "SerialDevice" else frame.parent or None
        name = frame.name.removeprefix(f"{chain}{SEPARATOR}") if chain else frame.name
        groups[-1][1].append(frame.element(name=name, refframe=refframe))
        before = frame.name
    body: list[Element] = []
    for chain, inside in groups:
        body += [tag("SerialChain", {"name": chain}, *inside)] if chain else inside
    return body


# Postures


def _postures(export: FrameExport, kind: str, report: Report) -> list[Element]:
    """Return the postures as vectors of RobWork's q."""
    manipulator = export.manipulator
    if kind == "MobileDevice":
        if manipulator.postures:
            report.unsupported.add("a posture of a mobile device")
        return []
    joints = export.joints_of_q(kind)
    named = [(each.name, each) for each in manipulator.postures]
    home, of = manipulator.home, f"of {quote(manipulator.name)}"
    if home != HOME:
        other = f"{HOME}_2"
        if any(name == HOME for name, _ in named):
            # In RobWork the device would start there.
            report.warning(
                NOWHERE,
                "renamed",
                f"the posture {quote(HOME)} {of} is not where it starts, and becomes "
                f"{quote(other)}",
            )
        named = [(other if name == HOME else name, each) for name, each in named]
        if home:
            named.append((HOME, manipulator.posture(home)))
            report.note(
                NOWHERE,
                "home",
                f"the posture {quote(home)} {of}, in which it starts, is written as "
                f"{quote(HOME)} too",
            )
    return [_posture(name, each, joints, report) for name, each in named]


def _posture(
    name: str, posture: Posture, joints: Sequence[str], report: Report
) -> Element:
    given, lost = dict(zip(posture.joints, posture.q, strict=True)), report.unsupported
    if not given.keys() <= set(joints):
        lost.add("the position of a joint that RobWork's q does not hold")
    if not given.keys() >= set(joints):
        lost.add("that a posture leaves a joint where it is (0 is written)")
    text = " ".join(repr(given.get(joint, 0.0)) for joint in joints)
    return tag("Q", {"name": name}, text=text)
