"""Isaac's kinematic trees out: parents before children, as Isaac needs them."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from typing import Final

import msgspec

from armillary.errors import ArmillaryError, quote
from armillary.formats.diagnostic import Place, Report
from armillary.formats.isaac.poses import pose_record
from armillary.formats.json import Record, to_text
from armillary.formats.records import TYPE, joint_record
from armillary.model.joint import Joint
from armillary.model.joints import Fixed, Prismatic, Revolute
from armillary.model.joints.opaque import OpaqueJoint
from armillary.model.limits import Limits
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.workcell import Workcell
from armillary.spatial.pose import IDENTITY, Pose

__all__ = ["write"]

# The tree, its links, link: these are split where they are long.
DEPTH: Final = 3
LARGEST: Final = sys.float_info.max

_NOWHERE: Final = Place()


def write(cell: Workcell, report: Report) -> bytes:
    """Return the text of a kinematic tree.

    A joint with a precursor becomes a constant link `<link>_origin` and behind it a
    link that moves; where joint and link have different names, the link that moves is
    called like the joint and carries one called like the link. So every frame and every
    joint keeps its name.

    Raises:
        FormatError: The cell has not exactly one manipulator, or a number of it is not
            finite.
    """
    if len(cell.manipulators) != 1:
        report.error(
            _NOWHERE,
            "many-manipulators",
            f"the cell has {len(cell.manipulators)} manipulators; a kinematic tree is "
            "one",
            hint="Save a cell with one of them.",
        )
        report.raise_if_errors()
    (manipulator,) = cell.manipulators
    links = _Tree(manipulator, report).links(cell.supports[0].pose)
    _tell_notes(cell, report)
    report.raise_if_errors()
    name = "the name of the cell is left to that of the file"
    report.note(_NOWHERE, "name", name)
    return to_text({"links": links}, depth=DEPTH)


class _Tree:
    """Makes the links of a file, and counts what they cannot hold."""

    def __init__(self, manipulator: Manipulator, report: Report) -> None:
        self._manipulator = manipulator
        self._report = report
        self._records: list[Record] = []
        self._lost: Counter[str] = Counter()
        self._names = set(manipulator.places)

    def links(self, support: Pose) -> list[Record]:
        """Return the records of all links, the base at `support`."""
        manipulator = self._manipulator
        for k in manipulator.order:
            link = manipulator.links[k]
            try:
                self._link(link, support if link.parent is None else None)
            except ArmillaryError as error:
                message = f"link {quote(link.name)}: {str(error).removesuffix('.')}"
                self._report.error(_NOWHERE, "unwritable", message)
            self._count_losses(link)
        for what, count in self._lost.items():
            where = f"{count} links" if count > 1 else "a link"
            message = f"{_LOSSES[what]} of {where} cannot be written"
            self._report.warning(_NOWHERE, f"lost-{what}", message)
        return self._records

    def _link(self, link: Link, support: Pose | None) -> None:
        """Add the records of a link and of its frames."""
        joint = link.joint
        if isinstance(joint, (Revolute, Prismatic)) or joint.motor:
            self._moving(link, joint)
        else:
            pose = self._placement(link)
            self._add(
                link.name, link.parent, pose if support is None else support @ pose
            )
        for frame in link.frames:
            self._add(frame.name, link.name, link.primary @ frame.pose)

    def _moving(self, link: Link, joint: Joint) -> None:
        """Add a constant link in front of a joint, the joint, and what it carries."""
        parent = link.parent
        if not joint.precursor.is_identity:
            origin = self._fresh(f"{link.name}_origin")
            self._add(origin, parent, joint.precursor)
            parent = origin
        name = link.name
        if link.coordinate != link.name:
            name = self._fresh(link.coordinate)
            if name != link.coordinate:
                self._warn("lost-joint-name", link, f"is written as {quote(name)}")
        record = joint_record(msgspec.structs.replace(joint, precursor=IDENTITY))
        del record[TYPE]
        properties: Record = {**record, **_limits(link.limits)}
        kind = "revolute" if isinstance(joint, Revolute) else "prismatic"
        if not isinstance(joint, (Revolute, Prismatic)):
            kind = joint.motor
        if kind != "revolute":
            self._warn("not-of-isaac", link, f"is {kind}; Isaac's reader refuses it")
        motor: Record = {"type": kind, "properties": properties}
        self._records.append({"name": name, "parent": parent, "motor": motor})
        if name != link.name:
            self._records.append({"name": link.name, "parent": name})

    def _placement(self, link: Link) -> Pose:
        """Return where a link is that does not move, or that Isaac cannot move."""
        joint, limits = link.joint, link.limits
        if isinstance(joint, Fixed):
            return joint.precursor
        kind = joint.kind if isinstance(joint, OpaqueJoint) else type(joint).__name__
        if isinstance(joint, OpaqueJoint):
            self._warn("lost-joint", link, f"is of type {kind}; it is written as fixed")
            return joint.precursor
        q = min(max(0.0, limits.lower), limits.upper)
        self._warn("lost-joint", link, f"is of type {kind}; it is fixed at q = {q:g}")
        return joint.transform(q)

    def _add(self, name: str, parent: str | None, pose: Pose) -> None:
        """Add a link that does not move; one at its parent's frame has no motor."""
        record: Record = {"name": name}
        if parent is not None:
            record["parent"] = parent
        if not pose.is_identity:
            properties = {"pose": pose_record(pose)}
            record["motor"] = {"type": "constant", "properties": properties}
        self._records.append(record)

    def _fresh(self, name: str) -> str:
        """Return a name that no link has yet, and take it."""
        ways = itertools.chain([name], (f"{name}_{k}" for k in itertools.count(2)))
        found = next(way for way in ways if way not in self._names)
        self._names.add(found)
        return found

    def _warn(self, code: str, link: Link, text: str) -> None:
        self._report.warning(_NOWHERE, code, f"joint {quote(link.coordinate)} {text}")

    def _count_losses(self, link: Link) -> None:
        limits = link.limits
        lowest = min(limits.velocity, limits.acceleration, limits.effort)
        if link.moves and lowest <= LARGEST:
            self._lost["rates"] += 1
        if link.inertia is not None:
            self._lost["inertia"] += 1
        if link.visuals or link.collisions:
            self._lost["shapes"] += 1
        if any(frame.end_effector for frame in link.frames):
            self._lost["end-effectors"] += 1
        if link.passive:
            self._lost["passive"] += 1
        if link.coupling is not None:
            of = quote(link.coupling.of)
            self._warn("lost-coupling", link, f"follows {of}; it is written as free")


_LOSSES: Final = {
    "rates": "the limits of velocity, acceleration and effort",
    "inertia": "the mass properties",
    "shapes": "the shapes",
    "passive": "that no motor drives the joint",
    "end-effectors": "which frames are end effectors",
}


def _tell_notes(cell: Workcell, report: Report) -> None:
    """Warn of what stands beside the links and has no place in a file."""
    (manipulator,) = cell.manipulators
    notes = {
        "postures": manipulator.postures,
        "groups": manipulator.groups,
        "wheels": manipulator.wheels,
        "properties": (*manipulator.properties, *cell.properties),
        "unbolted": [mount for mount in cell.mounts if not mount.bolted],
        "rules": cell.rules != Workcell().rules,
    }
    for what, found in notes.items():
        if found:
            message = f"{_NOTES[what]} cannot be written"
            report.warning(_NOWHERE, f"lost-{what}", message)


_NOTES: Final = {
    "postures": "named postures",
    "groups": "groups of joints",
    "wheels": "that the base drives on two wheels",
    "properties": "properties",
    "unbolted": "that the base is not bolted",
    "rules": "which pairs of links are tested for collision",
}


def _limits(limits: Limits) -> Record:
    """Return limits as files hold them: Isaac's largest numbers stand for none."""
    if limits.lower < -LARGEST and limits.upper > LARGEST:
        return {}
    lower, upper = max(limits.lower, -LARGEST), min(limits.upper, LARGEST)
    return {"limits": (lower, upper)}
