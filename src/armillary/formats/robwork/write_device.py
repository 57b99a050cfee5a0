"""A manipulator with joints as a device element."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from armillary.errors import quote
from armillary.formats.diagnostic import Report
from armillary.formats.robwork.device import WHEELS, wheel_poses
from armillary.formats.robwork.draft import NOWHERE, Draft, OutFrame
from armillary.formats.robwork.elements import property_elements
from armillary.formats.robwork.node import SEPARATOR
from armillary.formats.robwork.notes import DEVICE, JUNCTION, PREFIX, SETUPS
from armillary.formats.robwork.q_order import mark_ends
from armillary.formats.robwork.write_postures import posture_elements
from armillary.formats.xml import Element, tag
from armillary.model.manipulator import Manipulator
from armillary.model.property import Property
from armillary.model.workcell import Mount

__all__ = ["device_element", "home_of", "referring", "setup_elements"]

TOLERANCE: Final = 1e-12


def home_of(manipulator: Manipulator) -> dict[str, float]:
    """Return where each joint is at the start, those that follow others included."""
    lower, upper = manipulator.limits
    q: list[float] = np.clip(0.0, lower, upper).tolist()
    if manipulator.home:
        posture = manipulator.posture(manipulator.home)
        for joint, position in zip(posture.joints, posture.q, strict=True):
            q[manipulator.joint_names.index(joint)] = position
    return {
        link.coordinate: drive.multiplier * q[drive.of] + drive.offset
        for link, drive in zip(manipulator.links, manipulator.drives, strict=True)
        if drive is not None
    }


def device_element(
    manipulator: Manipulator, mount: Mount, losses: Counter[str], report: Report
) -> Element:
    """Return the device that a manipulator is: of its own kind, or as simple as it is.

    mount: How its base stands on the frame that is declared last before it.
    """
    draft = Draft(manipulator, home_of(manipulator), losses, report)
    kind = _kind(draft, mount)
    if kind == "TreeDevice" and not _is_said(manipulator, kind):
        mark_ends(draft, report)
    if manipulator.wheels is not None and kind != "MobileDevice":
        losses["that a base drives on two wheels"] += 1
    marked = [frame for frame in draft.frames if frame.type == "EndEffector"]
    if kind == "SerialDevice" and len(marked) == 1 and marked[0] is draft.frames[-1]:
        marked[0].type = "Fixed"  # the last frame is the end without a word
    base = draft.frames[0]
    base.pose = mount.pose
    base.type = "Fixed" if mount.bolted else "Movable"
    _tell_late_owners(draft, report)
    if kind == "MobileDevice":
        body = _mobile_body(draft)
    else:
        chains = _chains(manipulator) if kind == "ParallelDevice" else set[str]()
        body = _grouped(draft.frames, kind, chains)
    attributes = {"name": manipulator.name}
    if kind == "MobileDevice":
        attributes["basename"] = base.name
    return tag(
        kind,
        attributes,
        *body,
        *property_elements(manipulator.properties, losses),
        *setup_elements(manipulator.properties),
        *(_junctions(manipulator) if kind == "ParallelDevice" else ()),
        *posture_elements(draft, kind, losses, report),
    )


def setup_elements(notes: Sequence[Property]) -> list[Element]:
    """Return the references to setups, each in its chains."""
    found: list[Element] = []
    for note in notes:
        kind = note.name.removeprefix(PREFIX)
        if not note.name.startswith(PREFIX) or kind not in SETUPS:
            continue
        element = tag(kind, {"file": note.text})
        for chain in reversed(note.description.split(SEPARATOR)):
            if chain:
                element = tag("SerialChain", {"name": chain}, element)
        found.append(element)
    return found


# Which kind of device


def _kind(draft: Draft, mount: Mount) -> str:
    """Return the kind that a manipulator comes from, where it still is one."""
    manipulator = draft.manipulator
    is_chain = all(b.parent == a.name for a, b in pairwise(draft.frames))
    for given in ("ParallelDevice", "TreeDevice"):
        if _is_said(manipulator, given):
            return given
    if _wheels(draft) and mount.pose.is_identity and not mount.bolted:
        return "MobileDevice"
    return "SerialDevice" if is_chain else "TreeDevice"


def _is_said(manipulator: Manipulator, kind: str) -> bool:
    """Return whether a manipulator was read from a device of a kind."""
    return any(n.name == DEVICE and n.text == kind for n in manipulator.properties)


def _wheels(draft: Draft) -> list[OutFrame]:
    """Return the left and the right wheel, if they are as RobWork has them."""
    wheels = draft.manipulator.wheels
    if wheels is None or wheels.travel != 1.0:
        return []
    by_name = {frame.name: frame for frame in draft.frames}
    names = [draft.joints.get(name, "") for name in (wheels.left, wheels.right)]
    found = [by_name[name] for name in names if name in by_name]
    if len(found) < len(WHEELS):
        return []
    width = _axle_width(found)
    is_width = width > 0.0 and wheels.track_width in {None, width}
    is_usual = is_width and all(
        frame.type == "Revolute"
        and frame.parent == draft.frames[0].name
        and not frame.passive
        and frame.pose.approx_equal(pose, TOLERANCE)
        for frame, pose in zip(found, wheel_poses(width), strict=True)
    )
    return found if is_usual else []


def _axle_width(wheels: Sequence[OutFrame]) -> float:
    left, right = (float(wheel.pose.position[1]) for wheel in wheels)
    return left - right


def _tell_late_owners(draft: Draft, report: Report) -> None:
    """Warn of joints that follow one that is declared behind them."""
    seen: set[str] = set()
    for frame in draft.frames:
        if frame.drive is not None and frame.drive[0] not in seen:
            report.warning(
                NOWHERE,
                "late-owner",
                f"joint {quote(frame.name)} of {quote(draft.manipulator.name)} follows "
                f"{quote(frame.drive[0])}, which is farther out; RobWork itself knows "
                "only joints that are declared before",
            )
        seen.add(frame.name)


# The body of a device


def _mobile_body(draft: Draft) -> list[Element]:
    wheels = _wheels(draft)
    own = [draft.frames[0], *wheels]
    names = {frame.name for frame in own}
    return [
        tag("AxelWidth", text=repr(_axle_width(wheels))),
        *(tag(k, {"name": f.name}) for k, f in zip(WHEELS, own[1:], strict=True)),
        *(_with_reference(part, frame) for frame in own for part in frame.parts),
        *(
            frame.element(name=frame.name, refframe=frame.parent)
            for frame in draft.frames
            if frame.name not in names
        ),
    ]


def _with_reference(part: Element, frame: OutFrame) -> Element:
    """Return an element that stood in a frame as one that names it."""
    key = "refjoint" if part.name.endswith("Limit") else "refframe"
    return referring(part, key, frame.name)


def referring(part: Element, key: str, name: str) -> Element:
    """Return an element that names the frame that it is about."""
    first = {k: v for k, v in part.attributes.items() if k == "name"}
    attributes = {**first, key: name, **part.attributes}
    return tag(part.name, attributes, *part.children, text=part.text)


def _chains(manipulator: Manipulator) -> set[str]:
    """Return the names of the chains that meet in junctions."""
    return {
        name
        for note in manipulator.properties
        if note.name == JUNCTION
        for path in note.text.split("|")
        for name in path.split()
    }


def _junctions(manipulator: Manipulator) -> list[Element]:
    return [
        tag(
            "Junction",
            {},
            *(tag("Chains", text=path.strip()) for path in note.text.split("|")),
        )
        for note in manipulator.properties
        if note.name == JUNCTION
    ]


def _grouped(frames: Sequence[OutFrame], kind: str, chains: set[str]) -> list[Element]:
    """Return frames as elements, those of a chain that is needed inside of it."""
    body: list[Element] = []
    inside: list[Element] = []
    current = before = ""
    for frame in frames:
        around = [c for c in chains if frame.name.startswith(f"{c}{SEPARATOR}")]
        chain = max(around, key=len, default="")
        if chain != current:
            body += _closed(current, inside)
            current, inside = chain, []
        is_next = frame.parent == before
        refframe = None if is_next or kind == "SerialDevice" else frame.parent or None
        name = frame.name.removeprefix(f"{chain}{SEPARATOR}") if chain else frame.name
        inside.append(frame.element(name=name, refframe=refframe))
        before = frame.name
    return body + _closed(current, inside)


def _closed(chain: str, inside: list[Element]) -> list[Element]:
    return [tag("SerialChain", {"name": chain}, *inside)] if chain else inside
