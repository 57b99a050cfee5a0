"""Where manipulators stand: base poses in the state, and the attachment map.

Actin places the primary frame of a base: in the system's coordinates, or, attached, in
the primary frame of a link of another manipulator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from armillary.errors import ArmillaryError, quote
from armillary.formats.actin.exact import ATTRIBUTE, exact_attribute, exactly
from armillary.formats.actin.transforms import (
    entries,
    pose_element,
    pose_of_entries,
    read_pose,
)
from armillary.formats.actin.values import number, text_element
from armillary.formats.diagnostic import Report
from armillary.formats.xml import Element, report_unused, tag
from armillary.model.manipulator import Manipulator
from armillary.model.workcell import WORLD, Mount, Workcell
from armillary.spatial.pose import IDENTITY, Pose

__all__ = ["attachment_element", "base_element", "read_mounts"]

BASE_INDEX: Final = 0xFFFFFFFE
TRANSFORM: Final = "coordinateSystemTransform"


@dataclass(frozen=True, slots=True)
class _Support:
    """What a base stands on, and where things are there.

    Attributes:
        on: Name of the frame.
        before: Where Actin's pose is given, seen from that frame.
        after: The primary frame of the base, where the base stands.
    """

    on: str
    before: Pose
    after: Pose

    def ours(self, said: Pose) -> Pose:
        """Return where the base stands on the frame from the pose that Actin gives."""
        return self.before @ said @ self.after.inverse()

    def actins(self, pose: Pose) -> Pose:
        """Return the pose that Actin gives from where the base stands."""
        return self.before.inverse() @ pose @ self.after


def read_mounts(
    cell: Workcell, stated: Element, states: list[Element], report: Report
) -> tuple[Mount, ...]:
    """Return the mounts of a cell that has none yet.

    states: Those of the positions, one for each manipulator or fewer.
    """
    found: dict[int, Mount] = {}
    for k, element in _attachments(stated, len(cell.manipulators), report):
        if k in found:
            name = quote(cell.manipulators[k].name)
            report.error(element.place, "two-attachments", f"{name} is attached twice")
        mount = _attached(cell, k, element, report)
        if mount is not None:
            found[k] = mount
    for k, state in enumerate(states):
        element = state.only_child(TRANSFORM, report)
        if element is None:
            continue
        support = _Support(WORLD, IDENTITY, _foot(cell.manipulators[k]))
        mount = _mount(cell.manipulators[k].name, support, element, report)
        if k in found:
            message = "the base pose of an attached manipulator follows; it is left out"
            report.note(element.place, "attached", message)
        else:
            found[k] = mount
    return tuple(found[k] for k in sorted(found))


def _attachments(
    stated: Element, count: int, report: Report
) -> list[tuple[int, Element]]:
    """Return the nodes of the attachment map, each with its manipulator's index."""
    outer = stated.only_child("manipulatorSystemConfiguration", report)
    if outer is None:
        return []
    holder = outer.only_child("manipulatorAttachmentMap", report)
    report_unused(outer, report)
    if holder is None:
        return []
    nodes = holder.children_named("manipulatorAttachmentNode")
    report_unused(holder, report)
    pairs = [(_index(node, "manipulatorId", count, report), node) for node in nodes]
    return [(k, node) for k, node in pairs if k is not None]


def _attached(cell: Workcell, k: int, element: Element, report: Report) -> Mount | None:
    """Return the mount of a node of the attachment map."""
    count = len(cell.manipulators)
    below = _index(element, "baseManipulatorId", count, report)
    if below is None:
        return None
    owner = cell.manipulators[below]
    moving = _moving(owner)
    link = _index(element, "linkId", len(moving), report)
    offset = element.required_child("offset", report)
    frame = element.only_child("frame", report)
    if link is None or offset is None:
        return None
    place = owner.base if link < 0 else moving[link]
    on = f"{owner.name}/{owner.links[place].name}"
    if frame is not None:
        on = frame.read_text()
        report_unused(frame, report)
    try:
        at = cell.frame(on)
    except ArmillaryError as error:
        report.error(element.place, "unknown-frame", str(error).removesuffix("."))
        return None
    if at.link != cell.starts[below] + place:
        message = f"frame {quote(on)} is not on link {link} of manipulator {below}"
        report.error(element.place, "wrong-frame", message)
        return None
    support = _support(cell, k, on)
    mount = _mount(cell.manipulators[k].name, support, offset, report)
    report_unused(element, report)
    return mount


def _mount(
    manipulator: str, support: _Support, element: Element, report: Report
) -> Mount:
    """Return the mount of a pose that Actin gives."""
    loose = element.only_child("loose", report)
    if loose is not None:
        report_unused(loose, report)
    element.attribute(ATTRIBUTE)  # it is no pose's, so that `read_pose` would tell
    numbers = entries(support.ours(read_pose(element, report)))
    pose = pose_of_entries(exactly(element, numbers, report))
    return Mount(
        manipulator=manipulator, on=support.on, pose=pose, bolted=loose is None
    )


def base_element(cell: Workcell, mount: Mount) -> Element:
    """Return the base pose of a manipulator that stands on the ground."""
    k = cell.index[mount.manipulator]
    support = _Support(WORLD, IDENTITY, _foot(cell.manipulators[k]))
    return _written(f"mn:{TRANSFORM}", support, mount)


def attachment_element(cell: Workcell, mount: Mount, report: Report) -> Element:
    """Return the node of the attachment map of a manipulator that stands on another."""
    k = cell.index[mount.manipulator]
    at = cell.frame(mount.on)
    number = cell.owners[at.link]
    owner, own = cell.manipulators[number], at.link - cell.starts[number]
    moving = _moving(owner)
    link = BASE_INDEX if own == owner.base else moving.index(own)
    frame: list[Element] = []
    if mount.on != f"{owner.name}/{cell.links[at.link].name}":
        frame.append(text_element("am:frame", mount.on, report))
    return tag(
        "mn:manipulatorAttachmentNode",
        {},
        tag("mn:manipulatorId", text=str(k)),
        tag("mn:baseManipulatorId", text=str(number)),
        tag("mn:linkId", text=str(link)),
        *frame,
        _written("mn:offset", _support(cell, k, mount.on), mount),
    )


def _written(name: str, support: _Support, mount: Mount) -> Element:
    said = support.actins(mount.pose)
    loose = [] if mount.bolted else [tag("am:loose")]
    made = pose_element(name, said, *loose)
    exact = exact_attribute(entries(mount.pose), entries(support.ours(said)))
    return tag(name, exact, *made.children)


def _support(cell: Workcell, k: int, on: str) -> _Support:
    """Return the support of a manipulator on a frame of another one."""
    at = cell.frame(on)
    primary = cell.links[at.link].primary
    before = at.pose.inverse() @ primary
    return _Support(on, before, _foot(cell.manipulators[k]))


def _foot(manipulator: Manipulator) -> Pose:
    """Return the primary frame of a base, where the base stands."""
    base = manipulator.links[manipulator.base]
    return base.joint.precursor @ base.primary


def _moving(manipulator: Manipulator) -> list[int]:
    """Return all links but the base, in Actin's order, which is depth first."""
    return [k for k in manipulator.order if k != manipulator.base]


def _index(parent: Element, name: str, count: int, report: Report) -> int | None:
    """Return the index in a child, -1 for a base, None where there is no such thing."""
    child = parent.required_child(name, report)
    found = None if child is None else number(parent, name, report)
    if child is None or found is None:
        return None
    report_unused(child, report)
    index = found[0]
    if name == "linkId" and index == BASE_INDEX:
        return -1
    if index != int(index) or not 0 <= index < count:
        message = f"{child.label} is {index:g}; there are {count}, counted from 0"
        report.error(child.place, "bad-index", message)
        return None
    return int(index)
