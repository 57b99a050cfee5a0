"""A manipulator as frames of RobWork, before they become elements."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.joint_axis import JointAxis, joint_axis_of
from armillary.formats.names import FreeNames
from armillary.formats.robwork.elements import ELEMENTS, LIMITS
from armillary.formats.robwork.frames import (
    COORDINATE,
    DAF,
    TYPE,
    q_order,
)
from armillary.formats.robwork.parts import (
    limit_elements,
    property_elements,
    shape_elements,
)
from armillary.formats.robwork.transform import transform_elements
from armillary.formats.xml import Element, tag
from armillary.model.drive import Drive
from armillary.model.joints.opaque import OpaqueJoint
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.plugins import advice
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import (
    ZERO,
    Vector3,
    cross,
    dot,
    norm,
    scale,
    subtract,
    transpose,
)

__all__ = ["ExportedFrame", "FrameExport", "report_renamed"]

MOST_SHOWN: Final = 5
Z_AXIS: Final = (0.0, 0.0, 1.0)


class Depend(NamedTuple):
    """The frame of the joint that another one depends on, and how."""

    of: str
    multiplier: float
    offset: float


@dataclass(slots=True, kw_only=True)
class ExportedFrame:
    """A frame of RobWork to be written.

    Attributes:
        name: In its device.
        parent: The name of its parent; empty for the base.
        pose: Its constant pose in its parent.
        type: Of a frame, or of a joint.
        is_joint: Whether it is a joint.
        passive: Whether the joint is passive.
        daf: Whether RobWork may attach it to other frames.
        depend: How a joint depends on that of another frame.
        parts: Limits, properties and shapes.
    """

    name: str
    parent: str = ""
    pose: Pose = IDENTITY
    type: str = "Fixed"
    is_joint: bool = False
    passive: bool = False
    daf: bool = False
    depend: Depend | None = None
    parts: list[Element] = field(default_factory=list[Element])

    @property
    def is_active(self) -> bool:
        """Return whether it is a joint that is neither passive nor dependent."""
        return self.is_joint and not self.passive and self.depend is None

    def element(
        self, *, name: str, refframe: str | None, in_workcell: bool = False
    ) -> Element:
        """Return the element of a frame or joint.

        name, refframe: As they must be written there.
        in_workcell: Whether it is outside of devices, where RobWork has no joints, but
            frames that move as joints do.
        """
        kind = "Joint" if self.is_joint and not in_workcell else "Frame"
        depend = [] if self.depend is None else [ELEMENTS.write("Depend", self.depend)]
        return ELEMENTS.write(
            kind,
            self,
            *transform_elements(self.pose),
            *depend,
            *self.parts,
            name=name,
            refframe=refframe,
        )

    def outer_parts(self, name: str) -> list[Element]:
        """Return its parts as elements that are outside of it and refer to it.

        name: As it must be written there.
        """
        elements: list[Element] = []
        for part in self.parts:
            first = {k: v for k, v in part.attributes.items() if k == "name"}
            key = "refjoint" if part.name in LIMITS else "refframe"
            attributes = {**first, key: name, **part.attributes}
            elements.append(tag(part.name, attributes, *part.children, text=part.text))
        return elements


class FrameExport:
    """The frames of one manipulator, in an order in which RobWork can read them.

    A joint about another axis than z, or with another name than its link, becomes a
    joint about z and a fixed frame behind it.

    Attributes:
        frames: The frames; the first one is the base.
        joints: The name of the frame of each joint, by the name of the joint.
        types: The types of frames that the model has no field for.
    """

    def __init__(self, manipulator: Manipulator, report: Report) -> None:
        self.manipulator = manipulator
        self.joints: dict[str, str] = {}
        self._report = report
        self._names = FreeNames(set(manipulator.frame_refs))
        self._axes = {
            link.coordinate: axis
            for link in manipulator.links
            if link.moves and (axis := joint_axis_of(link.joint)) is not None
        }
        self.types = {
            each.of: each.text for each in manipulator.properties if each.name == TYPE
        }
        self._dafs = {p.of for p in manipulator.properties if p.name == DAF}
        self._name_joints()
        frames: list[ExportedFrame] = []
        for k in manipulator.order:
            frames += self._frames_of(manipulator.links[k], manipulator.drives[k])
        self.frames = _in_reading_order(frames)
        self._report_late_owners()

    def _name_joints(self) -> None:
        """Give every joint the name of its link, or one of its own if necessary."""
        for link in self.manipulator.links:
            name = link.coordinate
            axis = self._axes.get(name) if link.moves else None
            if axis is None:
                continue
            if axis.axis == Z_AXIS and axis.after.is_identity:
                self.joints[name] = link.name
            else:
                free = f"{name}_joint" if name == link.name else name
                self.joints[name] = self._names.derive(free)
        report_renamed(
            f"RobWork's joints are frames: those of {quote(self.manipulator.name)} are "
            "written with other names",
            self.joints.items(),
            self._report,
        )

    def _frames_of(self, link: Link, drives: Sequence[Drive]) -> list[ExportedFrame]:
        """Return the frames of a link: a joint if it needs one, and its own frames."""
        axis = self._axes.get(link.coordinate) if drives else None
        frame = ExportedFrame(name=link.name, parent=link.parent or "")
        frames = [frame]
        if axis is not None:
            frames = self._joint(link, drives[0], axis)
            frame = frames[-1]
        elif link.parent is not None:
            frame.type = self.types.get(link.name, "Fixed")
            frame.daf = link.name in self._dafs
            frame.pose = link.joint.precursor
            if drives:
                frame.pose = self._stopped(link, drives)
        frame.parts += self._properties(link.name)
        frame.parts += shape_elements(link, self._report)
        for each in link.frames:
            kind = "EndEffector" if each.end_effector else "Fixed"
            named = ExportedFrame(
                name=each.name,
                parent=link.name,
                pose=link.primary @ each.pose,
                type=self.types.get(each.name, kind),
                daf=each.name in self._dafs,
                parts=self._properties(each.name),
            )
            frames.append(named)
        return frames

    def _properties(self, of: str) -> list[Element]:
        return property_elements(self.manipulator.properties, self._report, of)

    def _stopped(self, link: Link, drives: Sequence[Drive]) -> Pose:
        """Return the pose of a joint that RobWork does not have at its start."""
        if isinstance(link.joint, OpaqueJoint):
            kind = link.joint.kind
            self._report.error(
                NOWHERE,
                "unknown-joint-type",
                f"joint {quote(link.coordinate)} of {quote(self.manipulator.name)} is "
                f"of type {quote(kind)}, which is not known here",
                hint=advice(kind),
            )
            return link.joint.precursor
        home = self.manipulator.home_q
        q = [drive.multiplier * home[drive.of] + drive.offset for drive in drives]
        self._report.warning(
            NOWHERE,
            "joint-type",
            f"joint {quote(link.coordinate)} of {quote(self.manipulator.name)} is a "
            f"{type(link.joint).__name__}, which RobWork cannot hold: it only has "
            f"joints that turn or slide by q about a line; it stays at "
            f"{', '.join(f'{each:g}' for each in q)}",
        )
        return link.joint.precursor @ link.joint.motion.pose(*q)

    def _joint(self, link: Link, drive: Drive, axis: JointAxis) -> list[ExportedFrame]:
        """Return the joint of a link and, if it needs one, the frame behind it."""
        name = self.joints[link.coordinate]
        # before Rot(axis, q) after = (before X_BZ) Rot(z, q) (X_BZ^-1 after)
        X_BZ = _z_to(axis.axis)
        joint = ExportedFrame(
            name=name,
            parent=link.parent or "",
            pose=axis.before @ X_BZ,
            type="Prismatic" if axis.slides else "Revolute",
            is_joint=True,
            passive=link.passive,
            parts=limit_elements(link.limits, not axis.slides, self._report),
        )
        if link.coupling is not None:
            # In RobWork it never depends on a dependent joint.
            owner = self.joints.get(self.manipulator.all_names[drive.of])
            if owner is not None:
                joint.depend = Depend(owner, drive.multiplier, drive.offset)
            else:
                what = "that a joint follows one that is fixed here"
                self._report.unsupported.add(what)
        if not link.coordinate == link.name == name:
            note = ELEMENTS.write("Property", name=COORDINATE, text=link.coordinate)
            joint.parts.append(note)
        if name == link.name:
            return [joint]
        pose = X_BZ.inverse() @ axis.after
        return [joint, ExportedFrame(name=link.name, parent=name, pose=pose)]

    def set_passive(self, opened: Collection[str], *, closed: bool) -> None:
        """Mark the joints of loops as RobWork's q has them.

        Args:
            opened: Joints that followed and are active in the file, loops being open.
            closed: Whether the file closes the loops of the manipulator.
        """
        passive = {self.joints.get(name): False for name in opened}
        if closed:
            # Of the joints in loops, those from `count` on follow from the ones before.
            system = self.manipulator.loop_system
            for k in {k for each in system.equations for k in each.joints}:
                name = self.manipulator.all_names[k]
                passive[self.joints.get(name)] = k >= system.count
        for frame in self.frames:
            frame.passive = passive.get(frame.name, frame.passive)

    def _report_late_owners(self) -> None:
        """Warn of joints that depend on one that is declared after them."""
        seen: set[str] = set()
        for frame in self.frames:
            if frame.depend is not None and frame.depend.of not in seen:
                self._report.warning(
                    NOWHERE,
                    "late-owner",
                    f"joint {quote(frame.name)} of {quote(self.manipulator.name)} "
                    f"follows {quote(frame.depend.of)}, which is farther out; RobWork "
                    "itself knows only joints that are declared before",
                )
            seen.add(frame.name)

    # RobWork's q: in a tree, the joints on the paths to its ends

    def joints_of_q(self, kind: str) -> list[str]:
        """Return the names of the joints in RobWork's q, in its order.

        kind: Of the device.
        """
        parents = {frame.name: frame.parent for frame in self.frames}
        ends = [frame.name for frame in self.frames if frame.type == "EndEffector"]
        active = {frame.name for frame in self.frames if frame.is_active}
        names = {frame: name for name, frame in self.joints.items()}
        order = q_order(kind, parents, ends)
        return [names[frame] for frame in order if frame in active]

    def mark_ends(self) -> None:
        """Mark ends until every active joint is on the path to one."""
        parents = {frame.name: frame.parent for frame in self.frames}
        carriers = set(parents.values())
        leaves = [frame for frame in self.frames if frame.name not in carriers]
        leaves.sort(key=lambda frame: frame.type != "EndEffector")
        # Ends of the model come first; others are marked only for the joints that are
        # then still on no path.
        missing = {frame.name for frame in self.frames if frame.is_active}
        marked: list[str] = []
        for leaf in leaves:
            path = q_order("TreeDevice", parents, [leaf.name])
            if leaf.type != "EndEffector" and not missing.isdisjoint(path):
                marked.append(self._mark(leaf))
            missing.difference_update(path)
        if marked:
            more = f" and {len(marked) - 1} more frames are" if marked[1:] else " is"
            self._report.note(
                NOWHERE,
                "end-effectors",
                f"{quote(marked[0])}{more} an end of {quote(self.manipulator.name)} "
                "here, so that RobWork's q holds every joint",
            )

    def _mark(self, leaf: ExportedFrame) -> str:
        """Make an end of a frame, or of one behind it if it is a joint; return it."""
        end = leaf
        if leaf.is_joint:
            name = self._names.derive(f"{leaf.name}_end")
            end = ExportedFrame(name=name, parent=leaf.name)
            self.frames.insert(self.frames.index(leaf) + 1, end)
        end.type = "EndEffector"
        return end.name


def report_renamed(what: str, names: Iterable[tuple[str, str]], report: Report) -> None:
    """Report names that differ in the file.

    names: Each name, and the name in the file.
    """
    renamed = [f"{quote(own)} as {quote(new)}" for own, new in names if own != new]
    if renamed:
        more = ", ..." if len(renamed) > MOST_SHOWN else ""
        message = f"{what}, {', '.join(renamed[:MOST_SHOWN])}{more}"
        report.note(NOWHERE, "renamed", message)


def _z_to(axis: Vector3) -> Pose:
    """Return a rotation that takes z to an axis of length 1."""
    if axis == Z_AXIS:
        return IDENTITY
    # Gram-Schmidt: x is the coordinate axis least like the axis, without its part
    # along it, and y completes the frame.
    k = min(range(3), key=lambda i: abs(axis[i]))
    along = (float(k == 0), float(k == 1), float(k == 2))
    x = subtract(along, scale(dot(along, axis), axis))
    x = scale(1.0 / float(norm(x)), x)
    return Pose(transpose((x, cross(axis, x), axis)), ZERO)


def _in_reading_order(frames: list[ExportedFrame]) -> list[ExportedFrame]:
    """Return frames after their parents and, if possible, what they depend on."""
    names = {frame.name for frame in frames}
    done = {""}
    ordered: list[ExportedFrame] = []
    while frames:
        later: list[ExportedFrame] = []
        for frame in frames:
            needed = {frame.parent, frame.depend.of if frame.depend else ""}
            if needed & names <= done:
                ordered.append(frame)
                done.add(frame.name)
            else:
                later.append(frame)
        if len(later) == len(frames):
            return ordered + later
        frames = later
    return ordered
