"""Devices of RobWork, made of the frames of manipulators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.robwork.devices import wheel_poses
from armillary.formats.robwork.elements import WHEELS
from armillary.formats.robwork.frame_export import (
    ExportedFrame,
    FrameExport,
    property_elements,
)
from armillary.formats.robwork.frames import (
    DEVICE,
    JUNCTION,
    SEPARATOR,
)
from armillary.formats.robwork.joints import HOME
from armillary.formats.robwork.junctions import (
    Junctions,
    LegFrame,
    closures,
    joined,
)
from armillary.formats.robwork.setups import setup_elements
from armillary.formats.xml import Element, tag
from armillary.model.mount import Mount
from armillary.model.posture import Posture

__all__ = ["device_element", "junctions_of"]

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
    attributes = {"name": manipulator.name}
    if kind == "MobileDevice":
        attributes["basename"] = base.name
        body = _mobile_body(frames, wheels)
    else:
        body = _grouped(frames, kind, _chains(junctions or []))
    return tag(
        kind,
        attributes,
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
    found = [by_name[name] for name in names if name is not None]
    if len(found) < len(WHEELS):
        return []
    width = _axle_width(found)
    is_usual = width > 0.0 and wheels.track_width in {None, width}
    is_usual = is_usual and all(
        frame.type == "Revolute"
        and frame.parent == export.frames[0].name
        and not frame.passive
        and frame.pose.approx_equal(pose, TOLERANCE)
        for frame, pose in zip(found, wheel_poses(width), strict=True)
    )
    return found if is_usual else []


def _axle_width(wheels: Sequence[ExportedFrame]) -> float:
    left, right = (float(wheel.pose.position[1]) for wheel in wheels)
    return left - right


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


def junctions_of(export: FrameExport) -> Junctions | None:
    """Return junctions that close the loops of a manipulator, None if none can.

    They are those with which it was read, or none, where the ends of all legs meet.
    """
    manipulator = export.manipulator
    wanted = joined(manipulator.loops)
    if wanted is None or not set(manipulator.all_names) <= export.joints.keys():
        return None
    own = [
        [path.strip() for path in each.text.split("|")]
        for each in manipulator.properties
        if each.name == JUNCTION
    ]
    for junctions in [own, []] if own else [[]]:
        chains = _chains(junctions)
        frames = [
            LegFrame(frame.name, frame.parent, _chain_around(frame.name, chains))
            for frame in export.frames
        ]
        found = closures(frames, junctions)
        if not isinstance(found, str) and joined(found) == wanted:
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
        refframe = None if is_next or kind == "SerialDevice" else frame.parent or None
        name = frame.name.removeprefix(f"{chain}{SEPARATOR}") if chain else frame.name
        groups[-1][1].append(frame.element(name=name, refframe=refframe))
        before = frame.name
    body: list[Element] = []
    for chain, inside in groups:
        body += [tag("SerialChain", {"name": chain}, *inside)] if chain else inside
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
    found: list[Element] = []
    for name, posture in named.items():
        given = dict(zip(posture.joints, posture.q, strict=True))
        if not given.keys() <= set(joints):
            lost.add("the position of a joint that RobWork's q does not hold")
        if not given.keys() >= set(joints):
            lost.add("that a posture leaves a joint where it is (0 is written)")
        text = " ".join(repr(given.get(joint, 0.0)) for joint in joints)
        found.append(tag("Q", {"name": name}, text=text))
    return found
