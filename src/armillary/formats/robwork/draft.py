"""A manipulator as frames of RobWork, before they become elements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import Place, Report
from armillary.formats.joint_axis import JointAxis, joint_axis_of
from armillary.formats.names import FreeNames
from armillary.formats.robwork.elements import (
    limit_elements,
    property_elements,
    shape_elements,
    transform_elements,
)
from armillary.formats.robwork.notes import COORDINATE, TYPE
from armillary.formats.xml import Element, tag
from armillary.model.link import Link
from armillary.model.manipulator import Drive, Manipulator
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import (
    Vector3,
    cross,
    dot,
    norm,
    scale,
    subtract,
    transpose,
)

__all__ = ["Draft", "Losses", "OutFrame"]

MOST_SHOWN: Final = 5
NOWHERE: Final = Place()


class Losses(Counter[str]):
    """Counts what RobWork cannot hold, a kind at a time."""

    def tell(self, report: Report) -> None:
        """Report every kind once."""
        for kind, count in self.items():
            times = f" ({count} times)" if count > 1 else ""
            report.warning(NOWHERE, "not-kept", f"{kind} is not kept{times}")


@dataclass(slots=True, kw_only=True)
class OutFrame:
    """A frame of RobWork to be written.

    Attributes:
        name: In its device.
        parent: The name of the frame that it hangs on; empty for the base.
        pose: Its constant pose in that frame.
        type: Of a frame, or of a joint.
        moves: Whether it is a joint.
        passive: Whether the joint is passive.
        daf: Whether RobWork may attach it to other frames.
        drive: Which frame's coordinate a joint follows, with gain and offset.
        parts: Limits, properties and shapes.
    """

    name: str
    parent: str
    pose: Pose = IDENTITY
    type: str = "Fixed"
    moves: bool = False
    passive: bool = False
    daf: bool = False
    drive: tuple[str, float, float] | None = None
    parts: list[Element] = field(default_factory=list[Element])

    def element(
        self, *, name: str, refframe: str | None, loose: bool = False
    ) -> Element:
        """Return the element of a frame or joint.

        name: As the place where it is written asks for it; so for `refframe`.
        loose: Whether it is outside of devices, where RobWork has no joints, but
            frames that move as joints do.
        """
        is_joint = self.moves and not loose
        attributes = {"name": name, "refframe": refframe}
        attributes["type"] = (
            None if self.type == "Fixed" and not self.moves else self.type
        )
        if is_joint:
            attributes["state"] = "Passive" if self.passive else None
        elif self.daf:
            attributes["daf"] = "true"
        depend: list[Element] = []
        if self.drive is not None:
            on, gain, offset = self.drive
            depend = [tag("Depend", {"on": on, "gain": gain, "offset": offset})]
        return tag(
            "Joint" if is_joint else "Frame",
            attributes,
            *transform_elements(self.pose),
            *depend,
            *self.parts,
        )


class Draft:
    """The frames of one manipulator, in an order in which RobWork can read them.

    A joint about another axis than z, or with another name than its link, becomes a
    joint about z and a fixed frame behind it.
    """

    def __init__(
        self,
        manipulator: Manipulator,
        home: Mapping[str, float],
        losses: Counter[str],
        report: Report,
    ) -> None:
        self.manipulator = manipulator
        self._home = home
        self._losses = losses
        self._report = report
        self._names = FreeNames(set(manipulator.places))
        self._frozen: set[str] = set()
        self.joints: dict[str, str] = {}
        self.frames: list[OutFrame] = []
        self._types = {
            note.of: note.text for note in manipulator.properties if note.name == TYPE
        }
        self._name_joints()
        for k in manipulator.order:
            self._add(manipulator.links[k], manipulator.drives[k])
        self.frames = _owners_first(self.frames)

    def derive(self, name: str) -> str:
        """Return a name that no frame has, and take it."""
        return self._names.derive(name)

    def _name_joints(self) -> None:
        """Give every joint the name of its link, or one of its own if need be."""
        renamed: list[str] = []
        for link in self.manipulator.links:
            if not link.moves:
                continue
            pivot = joint_axis_of(link.joint)
            if pivot is None:
                self._frozen.add(link.coordinate)
                continue
            name = link.coordinate
            if _is_plain(pivot):
                self.joints[name] = link.name
            else:
                free = f"{name}_joint" if name == link.name else name
                self.joints[name] = self._names.derive(free)
            if self.joints[name] != name:
                renamed.append(f"{quote(name)} as {quote(self.joints[name])}")
        if renamed:
            self._report.note(
                NOWHERE,
                "renamed",
                f"RobWork's joints are frames: those of {quote(self.manipulator.name)} "
                f"are written with other names, {', '.join(renamed[:MOST_SHOWN])}"
                + (", ..." if len(renamed) > MOST_SHOWN else ""),
            )

    def _add(self, link: Link, drive: Drive | None) -> None:
        """Add the frames of a link."""
        parent = link.parent or ""
        if link.parent is None:
            frame = OutFrame(name=link.name, parent="")
        elif drive is None or link.coordinate in self._frozen:
            frame = self._fixed(link, drive)
        else:
            frame = self._moving(link, drive, parent)
        frame.parts += property_elements(
            self.manipulator.properties, self._losses, link.name
        )
        frame.parts += shape_elements(
            link.visuals, link.collisions, link.primary, self._losses
        )
        self.frames.append(frame)
        if link.inertia is not None:
            self._losses["the mass and inertia of a link"] += 1
        for each in link.frames:
            kind = "EndEffector" if each.end_effector else "Fixed"
            self.frames.append(
                OutFrame(
                    name=each.name,
                    parent=link.name,
                    pose=link.primary @ each.pose,
                    type=self._types.get(each.name, kind),
                    parts=property_elements(
                        self.manipulator.properties, self._losses, each.name
                    ),
                )
            )

    def _fixed(self, link: Link, drive: Drive | None) -> OutFrame:
        """Return a frame that does not move, or may not: a joint stopped at home."""
        pose = link.joint.precursor
        if drive is not None:
            q = self._home[link.coordinate]
            pose = link.joint.transform(q)
            self._report.warning(
                NOWHERE,
                "joint-type",
                f"joint {quote(link.coordinate)} of {quote(self.manipulator.name)} is "
                f"a {type(link.joint).__name__}, which RobWork cannot hold: it only "
                f"has joints that turn or slide by q about a line; it stays at {q:g}",
            )
        return OutFrame(
            name=link.name,
            parent=link.parent or "",
            pose=pose,
            type=self._types.get(link.name, "Fixed"),
        )

    def _moving(self, link: Link, drive: Drive, parent: str) -> OutFrame:
        """Add a joint; return the frame of the link, which may be the joint itself."""
        pivot = joint_axis_of(link.joint)
        assert pivot is not None
        turn = _z_to(pivot.axis)
        joint = OutFrame(
            name=self.joints[link.coordinate],
            parent=parent,
            pose=pivot.before @ turn,
            type="Prismatic" if pivot.slides else "Revolute",
            moves=True,
            passive=link.passive,
            drive=self._followed(link, drive),
            parts=limit_elements(link.limits, not pivot.slides, self._losses),
        )
        if joint.name != link.coordinate or joint.name != link.name:
            note = {"name": COORDINATE}
            joint.parts.append(tag("Property", note, text=link.coordinate))
        if joint.name == link.name:
            return joint
        self.frames.append(joint)
        behind = turn.inverse() @ pivot.after
        return OutFrame(name=link.name, parent=joint.name, pose=behind)

    def _followed(self, link: Link, drive: Drive) -> tuple[str, float, float] | None:
        """Return what a joint follows; RobWork's joints follow no followers."""
        if link.coupling is None:
            return None
        m = self.manipulator
        owner = m.links[m.coordinates[drive.of]].coordinate
        if owner in self._frozen:
            self._losses["that a joint follows one that is fixed here"] += 1
            return None
        return self.joints[owner], drive.multiplier, drive.offset


def _is_plain(pivot: JointAxis) -> bool:
    """Return whether a joint of RobWork is enough: about z, its frame on the line."""
    return pivot.axis == (0.0, 0.0, 1.0) and pivot.after.is_identity


def _z_to(axis: Vector3) -> Pose:
    """Return a rotation that takes z to an axis of length 1."""
    if axis == (0.0, 0.0, 1.0):
        return IDENTITY
    k = min(range(3), key=lambda i: abs(axis[i]))
    along = (float(k == 0), float(k == 1), float(k == 2))
    x = subtract(along, scale(dot(along, axis), axis))
    x = scale(1.0 / float(norm(x)), x)
    return Pose(transpose((x, cross(axis, x), axis)), (0.0, 0.0, 0.0))


def _owners_first(frames: Iterable[OutFrame]) -> list[OutFrame]:
    """Return the frames with what each hangs on, and follows, before it if possible."""
    waiting = list(frames)
    names = {frame.name for frame in waiting}
    done: set[str] = {""}
    found: list[OutFrame] = []
    while waiting:
        later: list[OutFrame] = []
        for frame in waiting:
            owner = "" if frame.drive is None else frame.drive[0]
            if frame.parent in done and (owner in done or owner not in names):
                found.append(frame)
                done.add(frame.name)
            else:
                later.append(frame)
        if len(later) == len(waiting):
            return [*found, *later]
        waiting = later
    return found
