"""Isaac's kinematic trees out: parents before children, as Isaac needs them."""

from __future__ import annotations

import sys
from typing import Final

import msgspec

from armillary.errors import ArmillaryError, quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.features import (
    ALL,
    OWN_JOINTS,
    Held,
    report_losses,
    report_lost_rules,
)
from armillary.formats.isaac.poses import pose_record
from armillary.formats.json import Record, to_text
from armillary.formats.names import FreeNames
from armillary.formats.records import TYPE, joint_record
from armillary.model.joint import Joint
from armillary.model.joints import Fixed, Prismatic, Revolute
from armillary.model.joints.opaque import OpaqueJoint
from armillary.model.limits import Limits
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.workcell import Workcell
from armillary.spatial.pose import IDENTITY, Pose

__all__ = ["held_features", "write"]

# The tree, its links, link: these are split where they are long.
DEPTH: Final = 3
LARGEST: Final = sys.float_info.max


def held_features() -> Held:
    """Return what a kinematic tree holds of a cell."""
    return {
        **dict.fromkeys(("Revolute", "Prismatic"), ALL),
        OWN_JOINTS: "those with a `motor`",
        "names of joints": "as links",
        "limits of position": ALL,
        "frames": "as links",
        "primary frames": "in the poses of frames",
        "mounts": "in the pose of the base",
        "collision rules": "that the robot is tested against itself",
    }


def write(cell: Workcell, report: Report) -> bytes:
    """Return the text of a kinematic tree.

    A joint with a precursor becomes a constant link `<link>_origin` and behind it a
    link that moves; where joint and link have different names, the link that moves has
    the joint's name and carries one with the link's. So every frame and every joint
    keeps its name.

    Raises:
        FormatError: The cell has not exactly one manipulator, or a number of it is not
            finite.
    """
    if len(cell.manipulators) != 1:
        report.error(
            NOWHERE,
            "many-manipulators",
            f"the cell has {len(cell.manipulators)} manipulators; a kinematic tree is "
            "one",
            hint="Save a cell with one of them.",
        )
        report.raise_if_errors()
    (manipulator,) = cell.manipulators
    links = _Tree(manipulator, report).links(cell.base_frames[0].pose)
    report_losses(cell, held_features(), report)
    report_lost_rules(cell, report)
    report.raise_if_errors()
    report.note(NOWHERE, "name", "the cell is named after the file")
    return to_text({"links": links}, depth=DEPTH)


class _Tree:
    """Makes the links of a file, and counts what they cannot hold."""

    def __init__(self, manipulator: Manipulator, report: Report) -> None:
        self._manipulator = manipulator
        self._report = report
        self._records: list[Record] = []
        self._names = FreeNames(set(manipulator.frame_refs))

    def links(self, support: Pose) -> list[Record]:
        """Return the records of all links, the base at `support`."""
        for k in self._manipulator.order:
            link = self._manipulator.links[k]
            try:
                self._link(link, support if link.parent is None else None)
            except ArmillaryError as error:
                message = f"link {quote(link.name)}: {str(error).removesuffix('.')}"
                self._report.error(NOWHERE, "unwritable", message)
            if link.coupling is not None:
                of = quote(link.coupling.of)
                self._warn(
                    "lost-coupling", link, f"follows {of}; it is written as free"
                )
        return self._records

    def _link(self, link: Link, support: Pose | None) -> None:
        """Add the records of a link and of its frames."""
        joint = link.joint
        if isinstance(joint, (Revolute, Prismatic)) or joint.motor:
            self._moving(link, joint)
        else:
            pose = self._fixed_pose(link)
            self._add(
                link.name, link.parent, pose if support is None else support @ pose
            )
        for frame in link.frames:
            self._add(frame.name, link.name, link.primary @ frame.pose)

    def _moving(self, link: Link, joint: Joint) -> None:
        """Add a constant link before a joint, the joint, and the link behind it."""
        parent = link.parent
        if not joint.precursor.is_identity:
            origin = self._names.derive(f"{link.name}_origin")
            self._add(origin, parent, joint.precursor)
            parent = origin
        name = link.name
        if link.coordinate != link.name:
            name = self._names.derive(link.coordinate)
            if name != link.coordinate:
                self._warn("lost-joint-name", link, f"is written as {quote(name)}")
        # The precursor is in the constant link before, so the motor begins at 0.
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

    def _fixed_pose(self, link: Link) -> Pose:
        """Return the pose of a link that does not move, or that Isaac cannot move."""
        joint = link.joint
        if isinstance(joint, Fixed):
            return joint.precursor
        kind = joint.kind if isinstance(joint, OpaqueJoint) else type(joint).__name__
        if isinstance(joint, OpaqueJoint):
            self._warn("lost-joint", link, f"is of type {kind}; it is written as fixed")
            return joint.precursor
        links = [link] if not link.inputs else map(self._behind, link.inputs)
        q = [min(max(0.0, each.limits.lower), each.limits.upper) for each in links]
        shown = ", ".join(f"{each:g}" for each in q)
        self._warn("lost-joint", link, f"is of type {kind}; it is fixed at q = {shown}")
        return joint.precursor @ joint.motion.pose(*q)

    def _behind(self, joint: str) -> Link:
        """Return the link behind a joint."""
        return next(k for k in self._manipulator.links if k.coordinate == joint)

    def _add(self, name: str, parent: str | None, pose: Pose) -> None:
        """Add a link that does not move; one at its parent's frame has no motor."""
        record: Record = {"name": name}
        if parent is not None:
            record["parent"] = parent
        if not pose.is_identity:
            properties = {"pose": pose_record(pose)}
            record["motor"] = {"type": "constant", "properties": properties}
        self._records.append(record)

    def _warn(self, code: str, link: Link, text: str) -> None:
        self._report.warning(NOWHERE, code, f"joint {quote(link.coordinate)} {text}")


def _limits(limits: Limits) -> Record:
    """Return limits as files hold them: Isaac's largest numbers mean unlimited."""
    if limits.lower < -LARGEST and limits.upper > LARGEST:
        return {}
    lower, upper = max(limits.lower, -LARGEST), min(limits.upper, LARGEST)
    return {"limits": (lower, upper)}
