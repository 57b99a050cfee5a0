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
from armillary.formats.robwork.notes import (
    AXLE_WIDTH,
    DEVICE,
    JUNCTION,
    PREFIX,
    SETUPS,
)
from armillary.formats.robwork.postures import HOME
from armillary.formats.xml import Element, tag
from armillary.model.manipulator import Manipulator
from armillary.model.posture import Posture
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
        _mark_ends(draft, report)
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
        *_postures(draft, kind, losses, report),
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
    said = {note.name: note.numbers for note in manipulator.properties if not note.of}
    if _is_said(manipulator, "MobileDevice") and not mount.bolted:
        width = said.get(AXLE_WIDTH, ())
        if len(width) == 1 and len(_wheels(draft.frames, width[0])) == len(WHEELS):
            return "MobileDevice" if mount.pose.is_identity else "TreeDevice"
    return "SerialDevice" if is_chain else "TreeDevice"


def _is_said(manipulator: Manipulator, kind: str) -> bool:
    """Return whether a manipulator was read from a device of a kind."""
    return any(n.name == DEVICE and n.text == kind for n in manipulator.properties)


def _mark_ends(draft: Draft, report: Report) -> None:
    """See that every driven joint is on the way to an end, and so in RobWork's q."""
    frames = {frame.name: frame for frame in draft.frames}
    carriers = {frame.parent for frame in draft.frames}
    leaves = [frame for frame in draft.frames if frame.name not in carriers]
    driven = {frame for frame, _ in _driven(draft)}
    covered: set[str] = set()
    marked: list[str] = []
    for leaf in sorted(leaves, key=lambda frame: frame.type != "EndEffector"):
        path = set(_path(leaf.name, frames))
        is_needed = bool(driven & path - covered)
        covered |= path if is_needed or leaf.type == "EndEffector" else set[str]()
        if is_needed and leaf.type != "EndEffector":
            marked.append(_mark(leaf, draft))
    if marked:
        report.note(
            NOWHERE,
            "end-effectors",
            f"{quote(marked[0])}"
            + (f" and {len(marked) - 1} more frames are" if len(marked) > 1 else " is")
            + f" an end of {quote(draft.manipulator.name)} here, so that RobWork's q "
            "holds every joint",
        )


def _mark(leaf: OutFrame, draft: Draft) -> str:
    """Make an end of a frame, or of one on it if it is a joint; return its name."""
    end = leaf
    if leaf.moves:
        end = OutFrame(name=draft.derive(f"{leaf.name}_end"), parent=leaf.name)
        draft.frames.insert(draft.frames.index(leaf) + 1, end)
    end.type = "EndEffector"
    return end.name


def _wheels(frames: Sequence[OutFrame], width: float) -> list[OutFrame]:
    """Return the joints that stand as the wheels of a mobile device, left and right."""
    turning = [
        frame
        for frame in frames
        if frame.type == "Revolute"
        and frame.parent == frames[0].name
        and frame.drive is None
        and not frame.passive
    ]
    return [
        wheel
        for pose in wheel_poses(width)
        for wheel in turning
        if wheel.pose.approx_equal(pose, TOLERANCE)
    ]


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
    note = next(n for n in draft.manipulator.properties if n.name == AXLE_WIDTH)
    (width,) = note.numbers
    own = [draft.frames[0], *_wheels(draft.frames, width)]
    names = {frame.name for frame in own}
    return [
        tag("AxelWidth", text=repr(width)),
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


# Postures


def _postures(
    draft: Draft, kind: str, losses: Counter[str], report: Report
) -> list[Element]:
    """Return the postures as vectors of RobWork's q."""
    manipulator = draft.manipulator
    if kind == "MobileDevice":
        if manipulator.postures:
            losses["a posture of a mobile device"] += 1
        return []
    joints = _joints_of_q(draft, kind)
    names = {coordinate: name for name, coordinate in joints}
    found = [_posture(each, joints, names, losses) for each in manipulator.postures]
    home = manipulator.home
    if home == HOME:
        return found
    for k, each in enumerate(manipulator.postures):
        if each.name == HOME:
            # In RobWork the device would start there.
            report.warning(
                NOWHERE,
                "renamed",
                f"the posture {quote(HOME)} of {quote(manipulator.name)} is not where "
                f"it starts, and becomes {quote(f'{HOME}_2')}",
            )
            found[k] = _posture(each, joints, names, losses, name=f"{HOME}_2")
    if home:
        start = _posture(manipulator.posture(home), joints, names, losses, name=HOME)
        found.append(start)
        report.note(
            NOWHERE,
            "home",
            f"the posture {quote(home)} of {quote(manipulator.name)}, in which it "
            f"starts, is written as {quote(HOME)} too",
        )
    return found


def _joints_of_q(draft: Draft, kind: str) -> list[tuple[str, str]]:
    """Return frame and coordinate of each joint in RobWork's q, in its order."""
    frames = {frame.name: frame for frame in draft.frames}
    order = list(frames)
    driven = dict(_driven(draft))
    if kind == "TreeDevice":
        marked = [f.name for f in draft.frames if f.type == "EndEffector"]
        order = list(
            dict.fromkeys(
                name
                for end in marked or order[-1:]
                for name in reversed(_path(end, frames))
            )
        )
    return [(name, driven[name]) for name in order if name in driven]


def _driven(draft: Draft) -> list[tuple[str, str]]:
    """Return frame and coordinate of each joint that is neither passive nor follows."""
    coordinates = {frame: name for name, frame in draft.joints.items()}
    return [
        (frame.name, coordinates[frame.name])
        for frame in draft.frames
        if frame.moves and not frame.passive and frame.drive is None
    ]


def _path(name: str, frames: dict[str, OutFrame]) -> list[str]:
    path: list[str] = []
    while name:
        path.append(name)
        name = frames[name].parent
    return path


def _posture(
    posture: Posture,
    joints: Sequence[tuple[str, str]],
    names: dict[str, str],
    losses: Counter[str],
    *,
    name: str = "",
) -> Element:
    given = dict(zip(posture.joints, posture.q, strict=True))
    if any(joint not in names for joint in given):
        losses["the position of a passive joint, or of one on no way to an end,"] += 1
    if any(coordinate not in given for _, coordinate in joints):
        losses["that a posture leaves a joint where it is, which becomes 0,"] += 1
    values = [given.get(coordinate, 0.0) for _, coordinate in joints]
    text = " ".join(map(repr, values))
    return tag("Q", {"name": name or posture.name}, text=text)
