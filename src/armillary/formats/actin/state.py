"""States: joint positions, base poses, and the attachment map.

Actin places the primary frame of a base: in the system's coordinates, or, attached, in
the primary frame of a link of another manipulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from armillary.errors import ArmillaryError, quote
from armillary.formats.actin.joints import rate_of
from armillary.formats.actin.names import actin_tag
from armillary.formats.actin.values import (
    built,
    entries,
    exact_attribute,
    exactly,
    flag,
    number,
    pose_elements,
    read_pose,
    text,
    text_element,
)
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.numbers import number_text
from armillary.formats.xml import Element
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD, Mount
from armillary.model.posture import Posture
from armillary.model.property import Property
from armillary.model.workcell import Workcell
from armillary.spatial.pose import IDENTITY, Pose, pose_of_entries

STATE: Final = "state"
TIME: Final = "actin.time"
"""Of a cell: the time of its state [s]."""

VELOCITIES: Final = "actin.jointVelocities"
"""Of a manipulator: the rates of its joints in its state, as the file has them."""

HOME: Final = "home"
"""The name of where loops are closed, if the manipulator has no posture of its own."""

BASE_INDEX: Final = 0xFFFFFFFE
TRANSFORM: Final = "coordinateSystemTransform"
CONFIGURATION: Final = "manipulatorSystemConfiguration"
ATTACHMENTS: Final = "manipulatorAttachmentMap"
ATTACHMENT: Final = "manipulatorAttachmentNode"


def position_states(root: Element, count: int, report: Report) -> list[Element]:
    """Return the states of the positions of manipulators, as many or fewer."""
    return _states(_system_state(root, report), "position", count, report)


def _system_state(root: Element, report: Report) -> Element | None:
    state = root.only_child("state", report)
    if state is None:
        return None
    return state.only_child("manipulatorSystemState", report) or state


def _states(
    state: Element | None, what: str, count: int, report: Report
) -> list[Element]:
    holder = None if state is None else state.only_child(f"{what}States", report)
    states = () if holder is None else holder.children_named(f"{what}State")
    if len(states) > count:
        message = f"there are {len(states)} {what} states for {count} manipulators"
        report.error(states[count].place, "wrong-count", message)
    return list(states[:count])


# The time and the joint rates, for which a cell has properties.


def read_time(root: Element, report: Report) -> tuple[Property, ...]:
    """Return the property that holds the time of the state [s], or none."""
    state = _system_state(root, report)
    time = None if state is None else number(state, "time", report)
    return () if time is None else (Property(name=TIME, numbers=(time,)),)


def read_velocities(
    root: Element, manipulators: Sequence[Manipulator], report: Report
) -> list[tuple[Property, ...]]:
    """Return for each manipulator the property that holds its joint rates, or none.

    They are numbers of the file: one for each link but the base, in Actin's order.
    """
    state = _system_state(root, report)
    properties: list[tuple[Property, ...]] = [() for _ in manipulators]
    states = _states(state, "velocity", len(manipulators), report)
    for k, each in enumerate(states):
        element = each.only_child("jointVelocities", report)
        count = len(_all_but_base(manipulators[k]))
        rates = None if element is None else element.text_numbers(count, report)
        if rates is not None:
            properties[k] = (Property(name=VELOCITIES, numbers=rates),)
    return properties


def written_time(cell: Workcell) -> Property | None:
    """Return the property that is written as the time, None without such."""
    note = next((each for each in cell.properties if each.name == TIME), None)
    return note if note is not None and _holds(note, 1) else None


def written_velocities(manipulator: Manipulator) -> Property | None:
    """Return the property that is written as joint rates, None without such.

    Of a manipulator that has other links than the file had it does not fit any more.
    """
    notes = (each for each in manipulator.properties if each.name == VELOCITIES)
    note = next(notes, None)
    count = len(_all_but_base(manipulator))
    return note if note is not None and _holds(note, count) else None


def _holds(note: Property, count: int) -> bool:
    plain = Property(name=note.name, numbers=note.numbers)
    return len(note.numbers) == count and note == plain


def _velocity_elements(cell: Workcell) -> list[Element]:
    rates = [written_velocities(each) for each in cell.manipulators]
    if all(each is None for each in rates):
        return []
    states = [
        actin_tag("velocityState", {}, *_numbers("jointVelocities", each))
        for each in rates
    ]
    return [actin_tag("velocityStates", {}, *states)]


def _numbers(name: str, note: Property | None) -> list[Element]:
    if note is None:
        return []
    return [actin_tag(name, text=" ".join(map(number_text, note.numbers)))]


def state_elements(cell: Workcell, report: Report) -> list[Element]:
    """Return the state and the attachments of a cell, as far as it has them."""
    elements: list[Element] = []
    states = [_position_state(cell, each, report) for each in cell.manipulators]
    parts: list[Element] = []
    if any(state.children for state in states):
        parts.append(actin_tag("positionStates", {}, *states))
    parts += _velocity_elements(cell)
    parts += _numbers("time", written_time(cell))
    if parts:
        elements.append(actin_tag("state", {}, *parts))
    nodes = [
        _attachment_element(cell, cell.mounted[each.name], report)
        for each in cell.manipulators
        if each.name in cell.mounted and cell.mounted[each.name].on != WORLD
    ]
    if nodes:
        elements.append(
            actin_tag(CONFIGURATION, {}, actin_tag(ATTACHMENTS, {}, *nodes))
        )
    return elements


def _position_state(
    cell: Workcell, manipulator: Manipulator, report: Report
) -> Element:
    children = _position_elements(cell, manipulator, report)
    mount = cell.mounted.get(manipulator.name)
    if mount is not None and mount.on == WORLD:
        children.append(_mount_element(TRANSFORM, cell, mount))
    return actin_tag("positionState", {}, *children)


# Joint positions: one number for each link but the base.


def read_posture(
    state: Element, manipulator: Manipulator, rates: list[float], report: Report
) -> Posture | None:
    """Return the joint positions of a state, None without any.

    rates: Of each link, the change of our coordinate for one of the file's.
    """
    element = state.only_child("jointPositions", report)
    name = text(state, "identifier", report, STATE)
    links = _all_but_base(manipulator)
    numbers = None if element is None else element.text_numbers(len(links), report)
    if element is None or numbers is None:
        return None
    said = tuple(q * rates[k] for q, k in zip(numbers, links, strict=True))
    by_link = dict(zip(links, exactly(element, said, report), strict=True))
    for k, q in by_link.items():
        if k not in manipulator.coordinates and q != 0.0:
            message = f"link {quote(manipulator.links[k].name)} has no coordinate"
            report.warning(element.place, "unused-position", message)
    q = tuple(by_link[k] for k in manipulator.coordinates)
    return Posture(name=name, joints=manipulator.joint_names, q=q)


def _position_elements(
    cell: Workcell, manipulator: Manipulator, report: Report
) -> list[Element]:
    """Return the joint positions at home, nothing without such a posture or loops.

    Joints of loops are where these are closed, which the posture only says roughly.
    """
    for posture in manipulator.postures:
        if posture.name != manipulator.home:
            message = f"posture {quote(posture.name)} is not kept"
            report.warning(NOWHERE, "lost-posture", message)
    closed = _closed_positions(cell, manipulator)
    if not manipulator.home and not closed:
        return []
    at: dict[str, float] = {}
    if manipulator.home:
        home = manipulator.posture(manipulator.home)
        if home.joints != manipulator.joint_names and not closed:
            message = (
                f"posture {quote(home.name)} names other joints, or in another order, "
                "than q does; those that it leaves out are written as 0"
            )
            report.warning(NOWHERE, "lost-posture", message)
        at |= zip(home.joints, home.q, strict=True)
    at |= closed
    links = [manipulator.links[k] for k in _all_but_base(manipulator)]
    wanted = [at.get(each.coordinate, 0.0) if each.moves else 0.0 for each in links]
    rates = [rate_of(link.joint) for link in links]
    said = [q / rate + 0.0 for q, rate in zip(wanted, rates, strict=True)]
    exact = exact_attribute(wanted, (q * r for q, r in zip(said, rates, strict=True)))
    return [
        text_element("identifier", manipulator.home or HOME, report),
        actin_tag("jointPositions", exact, text=" ".join(map(number_text, said))),
    ]


def _closed_positions(cell: Workcell, manipulator: Manipulator) -> dict[str, float]:
    """Return where the joints of a manipulator are at home, if loops move any."""
    number = cell.index[manipulator.name]
    link_indices = {k for k, owner in enumerate(cell.owners) if owner == number}
    places = {
        k: place for place, k in enumerate(cell.joints.links) if k in link_indices
    }
    system = cell.loop_system
    in_loops = {k for each in system.equations for k in each.joints}
    if in_loops.isdisjoint(places.values()):
        return {}
    home = cell.joints.home
    return {cell.links[k].coordinate: home[place] for k, place in places.items()}


def _all_but_base(manipulator: Manipulator) -> list[int]:
    """Return all links but the base, in Actin's order, which is depth first."""
    return [k for k in manipulator.order if k != manipulator.base]


# Mounts.


def read_mounts(
    cell: Workcell, stated: Element, states: list[Element], report: Report
) -> tuple[Mount, ...]:
    """Return the mounts of a cell that has none yet.

    states: Those of the positions, one for each manipulator or fewer.
    """
    mounts: dict[int, Mount] = {}
    outer = stated.only_child(CONFIGURATION, report)
    holder = None if outer is None else outer.only_child(ATTACHMENTS, report)
    for node in () if holder is None else holder.children_named(ATTACHMENT):
        attached = _read_attachment(cell, node, report)
        if attached is not None:
            k, mount = attached
            if mounts.setdefault(k, mount) is not mount:
                message = f"{quote(mount.manipulator)} is attached twice"
                report.error(node.place, "two-attachments", message)
    for k, state in enumerate(states):
        element = state.only_child(TRANSFORM, report)
        if element is None:
            continue
        mount = _read_mount(cell, k, WORLD, element, report)
        if mount is None:
            continue
        if mounts.setdefault(k, mount) is not mount:
            message = "the base pose of an attached manipulator follows; it is left out"
            report.note(element.place, "attached", message)
    return tuple(mounts[k] for k in sorted(mounts))


def _read_attachment(
    cell: Workcell, node: Element, report: Report
) -> tuple[int, Mount] | None:
    """Return a manipulator and its mount in the attachment map; None after an error."""
    count = len(cell.manipulators)
    k = _index(node, "manipulatorId", count, report)
    below = _index(node, "baseManipulatorId", count, report)
    offset = node.required_child("offset", report)
    if k is None or below is None or offset is None:
        return None
    owner = cell.manipulators[below]
    moving = _all_but_base(owner)
    link = _index(node, "linkId", len(moving), report)
    if link is None:
        return None
    link_index = owner.base if link < 0 else moving[link]
    on = text(node, "frame", report, f"{owner.name}/{owner.links[link_index].name}")
    try:
        at = cell.frame(on)
    except ArmillaryError as error:
        report.error(node.place, "unknown-frame", str(error).removesuffix("."))
        return None
    if at.link != cell.starts[below] + link_index:
        message = f"frame {quote(on)} is not on link {link} of manipulator {below}"
        report.error(node.place, "wrong-frame", message)
        return None
    mount = _read_mount(cell, k, on, offset, report)
    return None if mount is None else (k, mount)


def _attachment_element(cell: Workcell, mount: Mount, report: Report) -> Element:
    """Return the node of the attachment map of a mount on another manipulator."""
    at = cell.frame(mount.on)
    below = cell.owners[at.link]
    owner, own = cell.manipulators[below], at.link - cell.starts[below]
    link = BASE_INDEX if own == owner.base else _all_but_base(owner).index(own)
    frame: list[Element] = []
    if mount.on != f"{owner.name}/{owner.links[own].name}":
        frame.append(text_element("frame", mount.on, report))
    return actin_tag(
        ATTACHMENT,
        {},
        actin_tag("manipulatorId", text=str(cell.index[mount.manipulator])),
        actin_tag("baseManipulatorId", text=str(below)),
        actin_tag("linkId", text=str(link)),
        *frame,
        _mount_element("offset", cell, mount),
    )


def _read_mount(
    cell: Workcell, k: int, on: str, element: Element, report: Report
) -> Mount | None:
    """Return a mount, None after an error."""
    # The file gives the primary frame of the base in that of the link below it; a mount
    # gives the frame of the base in a frame of that link.
    before, after = _primary_frames(cell, k, on)
    pose = before @ read_pose(element, report) @ after.inverse()
    fields: dict[str, Any] = {
        "manipulator": cell.manipulators[k].name,
        "on": on,
        "pose": pose_of_entries(exactly(element, entries(pose), report)),
        "bolted": not flag(element, "loose", report),
    }
    return built(Mount, fields, element, "bad-pose", report)


def _mount_element(name: str, cell: Workcell, mount: Mount) -> Element:
    before, after = _primary_frames(cell, cell.index[mount.manipulator], mount.on)
    said = before.inverse() @ mount.pose @ after
    exact = exact_attribute(
        entries(mount.pose), entries(before @ said @ after.inverse())
    )
    loose = [] if mount.bolted else [actin_tag("loose")]
    return actin_tag(name, exact, *pose_elements(said), *loose)


def _primary_frames(cell: Workcell, k: int, on: str) -> tuple[Pose, Pose]:
    """Return the primary frames between which Actin gives the pose of a manipulator.

    The first is that of the link with the frame `on`, in that frame; the second is that
    of the base of manipulator `k`, in the frame that is mounted.
    """
    base = cell.manipulators[k].links[cell.manipulators[k].base]
    after = base.joint.precursor @ base.primary
    if on == WORLD:
        return IDENTITY, after
    at = cell.frame(on)
    return at.pose.inverse() @ cell.links[at.link].primary, after


def _index(parent: Element, name: str, count: int, report: Report) -> int | None:
    """Return the index in a child, -1 for a base, None after an error."""
    child = parent.required_child(name, report)
    index = None if child is None else number(parent, name, report)
    if child is None or index is None:
        return None
    if name == "linkId" and index == BASE_INDEX:
        return -1
    if index != int(index) or not 0 <= index < count:
        message = f"{child.label} is {index:g}; there are {count}, counted from 0"
        report.error(child.place, "bad-index", message)
        return None
    return int(index)
