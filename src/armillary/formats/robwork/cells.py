"""Frames of RobWork to a cell: environment, devices, parts, and the links of each.

- What never moves in the world is the manipulator `environment`, whose base is
  RobWork's `WORLD`.
- Each device is a manipulator, mounted on the parent of its base frame with the pose of
  that frame, which in RobWork is not a part of the device either.
- Any other frame of the workcell that may move, or whose parent is in a device, is a
  part: a manipulator with its name, to which the frames belong that are fixed to it. A
  part has a fixed mount unless RobWork may move it.
- A frame inside of a device that may move is a part, too, unless joints or the end of
  the device are on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from armillary.errors import ModelError, quote
from armillary.formats.diagnostic import Report
from armillary.formats.names import FreeNames, depth_first
from armillary.formats.robwork.frames import (
    COORDINATE,
    DAF,
    DEVICE,
    TYPE,
    WORLD_FRAME,
    FileFrame,
    FileSection,
    FrameIndex,
)
from armillary.formats.robwork.joints import HOME, read_postures
from armillary.formats.robwork.junctions import read_junctions, with_loops
from armillary.model.axis import Z
from armillary.model.frame import Frame
from armillary.model.joint import Joint
from armillary.model.joints.fixed import Fixed
from armillary.model.joints.prismatic import Prismatic
from armillary.model.joints.revolute import Revolute
from armillary.model.limits import UNLIMITED
from armillary.model.link import Link
from armillary.model.loops.loop import Closure
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD, Mount
from armillary.model.property import Property
from armillary.model.wheels import Wheels
from armillary.model.workcell import Workcell
from armillary.spatial.pose import IDENTITY
from armillary.spatial.vector import ZERO

__all__ = ["ENVIRONMENT", "CellBuilder"]

ENVIRONMENT: Final = "environment"
"""The manipulator of what never moves in the world."""

BASE: Final = "Base"
"""The name of a base that RobWork does not have."""


class CellBuilder:
    """Divides the frames of a workcell among manipulators, and makes these.

    Attributes:
        names: For each frame's full name its name in the cell, once that is made.
    """

    def __init__(
        self, index: FrameIndex, sections: Sequence[FileSection], report: Report
    ) -> None:
        """Take all frames, whose parents are known.

        sections: The workcell's own frames, then those of each device.
        """
        self._world = index.frames[WORLD_FRAME]
        self._own, *self._devices = sections
        self._report = report
        self.names: dict[str, str] = {}
        self._free = FreeNames({WORLD})
        self._mounts: list[Mount] = []
        self._frames_by_name = index.frames
        self._children: dict[str, list[str]] = {}
        for name, frame in index.frames.items():
            self._children.setdefault(frame.parent, []).append(name)

    def workcell(self, name: str) -> Workcell:
        """Return the cell.

        Raises:
            FormatError: With all diagnostics, if a device breaks a rule.
        """
        for device in self._devices:
            self._take_out(device)
        environment, *parts = self._parts()
        sections = [device for device in self._devices if device.frames] + parts
        if environment.frames[1:] or not self._world.is_plain:
            sections.insert(0, environment)
        names = [self._name(section) for section in sections]
        self.names[WORLD_FRAME] = f"{ENVIRONMENT}/{WORLD_FRAME}"
        for section, owner in zip(sections, names, strict=True):
            for frame in section.frames:
                self.names[frame.full_name] = f"{owner}/{frame.local_name}"
        made = list(map(self._manipulator, sections, names))
        self._report.raise_if_errors()
        return Workcell(
            name=name,
            manipulators=tuple(each for each in made if each is not None),
            mounts=tuple(self._mounts),
            properties=(*self._own.properties.values(), *self._own.unread),
        )

    def _take_out(self, device: FileSection) -> None:
        """Make parts of the frames of a device that may be moved away from it.

        Those remain that carry joints, the end of the device, or one of its base.
        """
        own = {frame.full_name: frame for frame in device.frames}
        kept = 1 if device.element.name != "ParallelDevice" else len(own)
        for first in device.frames[max(kept, device.wheels) :]:
            if not first.is_movable or first.full_name not in own:
                continue
            names = depth_first(first.full_name, self._children)
            carried = [own[name] for name in names if name in own]
            end = device.unmarked_end
            if any(
                frame.steps or frame.type == "EndEffector" or frame is end
                for frame in carried
            ):
                continue
            for frame in carried:
                del own[frame.full_name]
                # It is named as if it were declared in the workcell.
                frame.scope, frame.local_name = (), frame.full_name
                self._own.frames.append(frame)
        device.frames[:] = own.values()

    def _parts(self) -> list[FileSection]:
        """Return the environment, and the parts of the workcell's other frames."""
        # A frame belongs to the nearest frame above it that begins a part: one that may
        # be moved, or whose parent is in a device.
        first_of = {WORLD_FRAME: WORLD_FRAME}
        for name in depth_first(WORLD_FRAME, self._children)[1:]:
            frame = self._frames_by_name[name]
            is_first = frame.is_movable or self._frames_by_name[frame.parent].scope
            first_of[name] = name if is_first else first_of[frame.parent]
        parts: dict[str, list[FileFrame]] = {WORLD_FRAME: [self._world]}
        for frame in self._own.frames:
            parts.setdefault(first_of[frame.full_name], []).append(frame)
        # The first frame of a part may be declared after its children.
        for first, frames in parts.items():
            frames.sort(key=lambda frame, first=first: frame.full_name != first)
        environment, *others = [
            FileSection(element=frames[0].element, name=name, frames=frames)
            for name, frames in parts.items()
        ]
        environment.name = ENVIRONMENT
        return [environment, *others]

    def _name(self, section: FileSection) -> str:
        """Return a free name for a manipulator; report another one than is wanted."""
        name = self._free.derive(section.name.replace("/", "_"))
        if name != section.name:
            self._report.warning(
                section.element.place,
                "renamed",
                f"the name {quote(section.name)} cannot be kept; it becomes "
                f"{quote(name)}",
            )
        return name

    def _manipulator(self, section: FileSection, name: str) -> Manipulator | None:
        """Return a manipulator, or None after an error with the rules that it breaks.

        If the limits of joints that depend on others leave a joint no range, they are
        left out: RobWork ignores them.
        """
        first, report = section.frames[0], self._report
        builder = _LinkBuilder(section, self._children, self._report)
        links, properties = builder.links(), builder.properties
        is_device = bool(first.scope)
        loops: list[Closure] = []
        if is_device:
            junctions: list[Property] = []
            if section.element.name == "ParallelDevice":
                loops, junctions = read_junctions(section, report)
            kind = Property(name=DEVICE, text=section.element.name)
            notes = (*section.properties.values(), *section.unread)
            properties = [kind, *junctions, *notes, *properties]
        elif first.is_movable and not (first.daf and first.type == "Movable"):
            type_note = Property(name=TYPE, of=first.local_name, text=first.type)
            properties.append(type_note)
        if first is self._world:
            self._mounts.append(Mount(manipulator=name))
        else:
            self._mount(name, first)
        place = section.element.place
        try:
            made = Manipulator(name=name, links=links, properties=tuple(properties))
        except ModelError as error:
            message = str(error).removesuffix(".").replace("\n  ", " ")
            report.error(place, "bad-device", message)
            return None
        try:
            # Limits of dependent joints narrow those of the joints that they follow.
            _ = made.limits
        except ModelError as error:
            report.warning(
                place,
                "limits-exclude",
                f"{str(error).removesuffix('.')}; the limits of joints that depend on "
                "others are left out",
            )
            links = [_without_limits(link) if link.coupling else link for link in links]
            made = msgspec.structs.replace(made, links=tuple(links))
        if is_device:
            made = self._with_postures(made, section, builder.joint_names)
        return with_loops(made, loops, section, report) if loops else made

    def _with_postures(
        self,
        made: Manipulator,
        device: FileSection,
        names: Mapping[str, tuple[str, ...]],
    ) -> Manipulator:
        """Return a manipulator with the postures and wheels of a device.

        names: The joints of each frame that is one, by its full name.
        """
        joints = [name for frame in device.joints() for name in names[frame.full_name]]
        links = {link.coordinate: link for link in made.links}
        elements = device.element.children_named("Q")
        postures = read_postures(elements, joints, links, self._report)
        has_home = any(posture.name == HOME for posture in postures)
        wheels = None
        if device.wheels:
            left, right = (names[frame.full_name][0] for frame in device.frames[1:3])
            # Their q is how far they roll.
            wheels = Wheels(left=left, right=right, travel=1.0)
        return msgspec.structs.replace(
            made, postures=postures, home=HOME if has_home else "", wheels=wheels
        )

    def _mount(self, name: str, base: FileFrame) -> None:
        """Mount a manipulator on the parent of its first frame."""
        on = WORLD if base.parent == WORLD_FRAME else self.names[base.parent]
        # The pose of a joint is in the joint, after the base that is added before it.
        pose = IDENTITY if base.steps else base.pose
        mount = Mount(manipulator=name, on=on, pose=pose, bolted=not base.is_movable)
        # A device that stands free at the origin is as without a mount.
        if not base.scope or mount != Mount(manipulator=name, bolted=False):
            self._mounts.append(mount)


class _LinkBuilder:
    """Makes the links of one manipulator from a tree of frames.

    The base is the first frame, or a link of its own if that is a joint. A fixed frame
    without shapes and children becomes a named frame of its parent's link; every other
    one becomes a link, and a joint with several coordinates becomes several.

    Attributes:
        properties: Of the manipulator.
        joint_names: The joints of each frame that is one, by its full name.
    """

    def __init__(
        self,
        section: FileSection,
        children: Mapping[str, Sequence[str]],
        report: Report,
    ) -> None:
        """Take the frames of a section.

        children: The full names of the children of each frame.
        """
        self.properties: list[Property] = []
        self.joint_names: dict[str, tuple[str, ...]] = {}
        self._section = section
        self._end = section.unmarked_end
        self._report = report
        self._own = {frame.full_name: frame for frame in section.frames}
        self._children = children
        self._parents = {frame.parent for frame in section.frames}
        self._names = FreeNames({frame.local_name for frame in section.frames})
        self._links: list[Link] = []
        self._frames: dict[str, list[Frame]] = {}

    def links(self) -> list[Link]:
        """Return the links."""
        first = self._section.frames[0]
        if first.steps:
            base = Link(name=self._names.derive(BASE))
            self._links.append(base)
            self._report.note(
                first.element.place,
                "base-added",
                f"{first.element.label} is the first frame of its device and moves; "
                f"the base {quote(base.name)} is put in front of it",
            )
        pairs = {
            frame.full_name: joint
            for frame in self._section.frames
            if (joint := self._joint_before(frame)) is not None
        }
        joints = {joint.full_name for joint in pairs.values()}
        for frame in self._section.frames:
            if frame.full_name not in joints:
                self._add(frame, pairs.get(frame.full_name, frame))
        taken = {link.coordinate for link in self._links if link.moves}
        return [self._finished(link, taken) for link in self._links]

    def _joint_before(self, frame: FileFrame) -> FileFrame | None:
        """Return the joint that is one link with the frame behind it, if there is one.

        Armillary writes such pairs; the frame is the only child of the joint.
        """
        joint = self._own.get(frame.parent)
        is_pair = (
            joint is not None
            and COORDINATE in joint.properties
            and len(joint.steps) == len(self._children[joint.full_name]) == 1
            and joint.is_plain
            and type(joint.steps[0][1]) in {Revolute, Prismatic}
            and frame.type == "Fixed"
            and not frame.is_movable
            and frame.pose.position == ZERO
        )
        return joint if is_pair else None

    def _finished(self, link: Link, taken: set[str]) -> Link:
        """Return a link with its frames, and a free name for a joint without motion."""
        changes: dict[str, Any] = {}
        if link.name in self._frames:
            changes["frames"] = tuple(self._frames[link.name])
        if not link.moves and link.name in taken:
            changes["joint_name"] = self._names.derive(f"{link.name}_fixed")
        return msgspec.structs.replace(link, **changes) if changes else link

    def _add(self, node: FileFrame, joint: FileFrame) -> None:
        """Add the frame or the links of a node, and of the joint that it is one with.

        joint: The node itself if it is not one with a joint before it.
        """
        above = self._own.get(joint.parent)
        parent = None if above is None else above.local_name
        if above is None and self._links:
            parent = self._links[0].name
        self.properties += [
            msgspec.structs.replace(each, of=node.local_name)
            for each in node.properties.values()
            if each.name != COORDINATE
        ]
        is_bare = not node.has_shapes and node.full_name not in self._parents
        if joint.steps:
            self._add_joint(joint, node, parent)
        elif parent is None:
            self._add_link(node, None, Fixed())
        elif not is_bare:
            self._add_link(node, parent, Fixed(precursor=node.pose))
            self._keep_type(node)
        else:
            is_end = node.type == "EndEffector"
            frame = Frame(
                name=node.local_name,
                pose=node.pose,
                end_effector=is_end or node is self._end,
            )
            self._frames.setdefault(parent, []).append(frame)
            if node.is_movable or not is_end:
                self._keep_type(node)

    def _add_link(
        self, frame: FileFrame, parent: str | None, joint: Joint, **fields: Any
    ) -> None:
        """Add a link with the name and the shapes of a frame."""
        link = Link(
            name=frame.local_name,
            parent=parent,
            joint=joint,
            visuals=tuple(frame.visuals),
            collisions=tuple(frame.collisions),
            **fields,
        )
        self._links.append(link)

    def _add_joint(
        self, joint: FileFrame, frame: FileFrame, parent: str | None
    ) -> None:
        """Add a link for each coordinate of a joint; the last is that of its frame."""
        *first, (_, motion) = joint.steps
        names: list[str] = []
        for suffix, before in first:
            name = self._names.derive(f"{joint.local_name}{suffix}")
            link = Link(name=name, parent=parent, joint=before, passive=joint.passive)
            self._links.append(link)
            names.append(name)
            parent = name
        if frame is not joint:
            kind = Prismatic if joint.type == "Prismatic" else Revolute
            # The frame is turned against the joint about the same origin: the joint is
            # about z, which in the axes of the frame is R^T z.
            axis = frame.pose.inverse().rotate(Z)
            motion = kind(axis=axis, precursor=motion.precursor @ frame.pose)
        joint_name = joint.local_name if first else joint.joint_name
        self._add_link(
            frame,
            parent,
            motion,
            joint_name=joint_name if joint_name != frame.local_name else "",
            limits=joint.limits,
            coupling=joint.coupling,
            passive=joint.passive,
        )
        self.joint_names[joint.full_name] = (*names, joint_name)

    def _keep_type(self, frame: FileFrame) -> None:
        """Keep the type of a frame that is not fixed as a property."""
        if frame.type not in {"Fixed", "EndEffector"}:
            type_note = Property(name=TYPE, of=frame.local_name, text=frame.type)
            self.properties.append(type_note)
        if frame.daf:
            self.properties.append(Property(name=DAF, of=frame.local_name))
        if frame.is_movable:
            what = "that a movable frame inside of a device can be moved"
            self._report.unsupported.add(what, frame.element.place)


def _without_limits(link: Link) -> Link:
    return msgspec.structs.replace(link, limits=UNLIMITED)
