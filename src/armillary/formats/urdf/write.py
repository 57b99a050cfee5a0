"""A cell to URDF."""

from __future__ import annotations

import math
from collections import Counter
from typing import Final

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.features import (
    ALL,
    Held,
    fields_of,
    report_losses,
    report_lost_rules,
)
from armillary.formats.joint_axis import HELD_BY_LINES, JointAxis, joint_axis_of
from armillary.formats.names import FreeNames, depth_first
from armillary.formats.urdf.elements import ELEMENTS, SHAPES, origin_element
from armillary.formats.urdf.joints import DRAKE, MOTOR, transmission_element
from armillary.formats.urdf.links import LinkWriter
from armillary.formats.xml import Element, tag, to_text
from armillary.model.frame import FrameRef
from armillary.model.joint_dynamics import NO_DYNAMICS, JointDynamics
from armillary.model.limits import UNLIMITED, Limits
from armillary.model.link import Link
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD
from armillary.model.shape import Shape
from armillary.model.workcell import Workcell
from armillary.spatial.pose import Pose

__all__ = ["held_features", "write"]

UNBOUNDED: Final = 1e9
"""The number that is written for an infinite limit."""

WITH_CAPSULES: Final = "1.1"
"""The first version of URDF with capsules; urdfdom leaves them out of older ones."""

DEFAULT_NAME: Final = Workcell().name


def held_features() -> Held:
    """Return what URDF holds of a cell."""
    return {
        **HELD_BY_LINES,
        "couplings": ALL,
        "names of joints": ALL,
        **fields_of(Limits, ELEMENTS["limit"].fields),
        **fields_of(JointDynamics, (*ELEMENTS["dynamics"].fields, *MOTOR)),
        "masses": ALL,
        "frames": "as links",
        "primary frames": "in the origins",
        "visuals": ALL,
        "collision shapes": ALL,
        **dict.fromkeys((kind.__name__ for kind in SHAPES.values()), ALL),
        **fields_of(Shape, ("name", "colour")),
        "several manipulators": "as one robot",
        "mounts": "as fixed joints",
        "collision rules": "that a robot is tested against itself",
    }


def write(cell: Workcell, report: Report) -> bytes:
    """Return the URDF of a cell.

    Raises FormatError for a cell that URDF cannot hold, with each joint that neither
    turns about a line nor slides along one.
    """
    if not cell.manipulators:
        message = "the cell has no manipulator; URDF needs a link"
        report.error(NOWHERE, "no-links", message)
        report.raise_if_errors()
    export = _UrdfExport(cell, report)
    for number in range(len(cell.manipulators)):
        export.add_manipulator(number)
    export.report_changes()
    report.raise_if_errors()
    return to_text(export.robot()).encode()


class _UrdfExport:
    """The links and joints of a URDF that is being made."""

    def __init__(self, cell: Workcell, report: Report) -> None:
        self.cell = cell
        self.report = report
        self.is_single = len(cell.manipulators) == 1
        self._renamed: dict[str, str] = {}
        links = {
            self._full(m, frame) for m in cell.manipulators for frame in m.frame_refs
        }
        joints = {
            self._full(m, link.coordinate)
            for m in cell.manipulators
            for link in m.links
            if link.parent is not None
        }
        for name in sorted(links | joints):
            free = _unexpanded(name)
            if free != name:
                while free in links | joints | {*self._renamed.values()}:
                    free += "_"
                self._renamed[name] = free
        links, joints = ({*map(self._plain, names)} for names in (links, joints))
        self.link_names, self.joint_names = FreeNames(links), FreeNames(joints)
        self.unsupported = report.unsupported
        report_losses(cell, held_features(), report)
        self.link_writer = LinkWriter(report)
        self.unbounded: Counter[str] = Counter()
        self.has_accelerations = False
        self.links: list[Element] = []
        self.joints: list[Element] = []
        self.transmissions: list[Element] = []
        self.children: dict[str, list[str]] = {}
        self.coordinates: dict[str, str] = {}
        self.world = ""

    def name(self, manipulator: Manipulator, name: str) -> str:
        """Return the name of a link, frame or joint in the file."""
        return self._plain(self._full(manipulator, name))

    def _full(self, manipulator: Manipulator, name: str) -> str:
        return name if self.is_single else f"{manipulator.name}/{name}"

    def _plain(self, name: str) -> str:
        """Return a name in which xacro would expand nothing."""
        return self._renamed.get(name) or _unexpanded(name)

    def add_manipulator(self, number: int) -> None:
        """Add all links of a manipulator, and the joint that mounts its base."""
        manipulator = self.cell.manipulators[number]
        support = self.cell.base_frames[number]
        for k in manipulator.order:
            link = manipulator.links[k]
            if link.parent is not None:
                self._add_joint(manipulator, link)
            else:
                self._add_base(manipulator, link, support)
            self._add_link(manipulator, link)

    def _add_base(self, manipulator: Manipulator, base: Link, at: FrameRef) -> None:
        """Fix a base to its mount; the base of a single robot is the root."""
        X_SB = at.pose @ base.joint.precursor
        if self.is_single and X_SB.is_identity:
            return
        if at.link >= 0:
            carrier = self.cell.manipulators[self.cell.owners[at.link]]
            parent = self.name(carrier, self.cell.links[at.link].name)
        else:
            parent = self._world()
        name = self.joint_names.derive(self.name(manipulator, f"{base.name}_mount"))
        self._fix(name, parent, self.name(manipulator, base.name), X_SB)

    def _world(self) -> str:
        """Return the name of the root link, which is the world."""
        if not self.world:
            self.world = self.link_names.derive(WORLD)
            self.links.insert(0, ELEMENTS.write("link", name=self.world))
        return self.world

    def _add_link(self, manipulator: Manipulator, link: Link) -> None:
        """Add a link's body, and its frames as links of their own."""
        name = self.name(manipulator, link.name)
        self.links.append(self.link_writer.element(name, link))
        if not link.primary.is_identity:
            self._note(
                "primary-frame",
                f"the origins in link {quote(name)} hold its primary frame too",
            )
        for frame in link.frames:
            child = self.name(manipulator, frame.name)
            self.links.append(ELEMENTS.write("link", name=child))
            joint = self.joint_names.derive(f"{child}_frame")
            self._fix(joint, name, child, link.primary @ frame.pose)
            self._note(
                "frame-link",
                f"frame {quote(child)} becomes a link on fixed joint {quote(joint)}",
            )

    def _add_joint(self, manipulator: Manipulator, link: Link) -> None:
        """Add the joint that carries a link, and a fixed one behind it if needed."""
        name = self.name(manipulator, link.coordinate)
        parent = self.name(manipulator, link.parent or "")
        child = self.name(manipulator, link.name)
        if not link.moves:
            self._fix(name, parent, child, link.joint.precursor)
            if link.limits != UNLIMITED:
                self.unsupported.add("a limit of a fixed joint")
            return
        axis = joint_axis_of(link.joint)
        if axis is None:
            self.report.error(
                NOWHERE,
                "joint-type",
                f"joint {quote(name)} is a {type(link.joint).__name__}, which URDF "
                "cannot hold: it only has joints that turn by q about a line, or slide "
                "by q along one",
            )
            return
        between = child
        if not axis.after.is_identity:
            between = self.link_names.derive(f"{child}_pivot")
            self.links.append(ELEMENTS.write("link", name=between))
        self._move(manipulator, link, axis, parent, between)
        if between != child:
            joint = self.joint_names.derive(f"{name}_offset")
            self._fix(joint, between, child, axis.after)
            self._note(
                "offset-link",
                f"joint {quote(name)} turns about a line beside its link; link "
                f"{quote(between)} and fixed joint {quote(joint)} are put between",
            )

    def _move(
        self,
        manipulator: Manipulator,
        link: Link,
        axis: JointAxis,
        parent: str,
        child: str,
    ) -> None:
        """Add a joint that moves."""
        name = self.name(manipulator, link.coordinate)
        type_ = "prismatic" if axis.slides else "revolute"
        if not axis.slides and not _is_bounded(link.limits):
            type_ = "continuous"
        parts = [ELEMENTS.write("axis", axis), *self._limit(type_, link.limits)]
        if any(getattr(link.dynamics, name) for name in ELEMENTS["dynamics"].fields):
            parts.append(ELEMENTS.write("dynamics", link.dynamics))
        if link.coupling is None:
            self.coordinates[child] = name
        else:
            leader = self.name(manipulator, link.coupling.of)
            parts.append(ELEMENTS.write("mimic", link.coupling, of=leader))
        self._join(name, type_, parent, child, axis.before, *parts)
        if any(getattr(link.dynamics, k) != getattr(NO_DYNAMICS, k) for k in MOTOR):
            self.transmissions.append(transmission_element(name, link.dynamics))

    def _limit(self, type_: str, limits: Limits) -> list[Element]:
        """Return the `<limit>` of a joint, for most of which URDF needs numbers."""
        if type_ == "continuous" and limits == UNLIMITED:
            return []
        values = {name: getattr(limits, name) for name in ELEMENTS["limit"].fields}
        if type_ == "continuous":
            del values["lower"], values["upper"]
        if values["acceleration"] == UNLIMITED.acceleration:
            del values["acceleration"]
        else:
            self.has_accelerations = True
        for name, value in values.items():
            if math.isinf(value):
                values[name] = UNBOUNDED if value > 0.0 else -UNBOUNDED
                self.unbounded[name] += 1
        return [ELEMENTS.write("limit", values)]

    def _warn(self, code: str, message: str) -> None:
        self.report.warning(NOWHERE, code, message)

    def _note(self, code: str, message: str) -> None:
        self.report.note(NOWHERE, code, message)

    def _fix(self, name: str, parent: str, child: str, X_PC: Pose) -> None:
        self._join(name, "fixed", parent, child, X_PC)

    def _join(
        self,
        name: str,
        type_: str,
        parent: str,
        child: str,
        origin: Pose,
        *parts: Element,
    ) -> None:
        self.children.setdefault(parent, []).append(child)
        self.joints.append(
            ELEMENTS.write(
                "joint",
                {"name": name, "type": type_},
                ELEMENTS.write("parent", link=parent),
                ELEMENTS.write("child", link=child),
                *origin_element(origin, f"joint {quote(name)}", self.report),
                *parts,
            )
        )

    def report_changes(self) -> None:
        """Report what the file expresses differently, or cannot hold."""
        name = self.cell.name
        known = (DEFAULT_NAME, self.cell.manipulators[0].name)
        if self.is_single and name not in known:
            self.unsupported.add(f"the cell's name {quote(name)}")
        robot = self.cell.manipulators[0].name if self.is_single else name
        report_lost_rules(self.cell, self.report)
        renamed = [*self._renamed, *([robot] if robot != _unexpanded(robot) else [])]
        if renamed:
            self._warn(
                "renamed",
                f"names such as {quote(renamed[0])} hold what xacro would expand: '$' "
                "becomes '_' in them",
            )
        for kind, count in self.unbounded.items():
            joints = "joints have" if count > 1 else "joint has"
            self._warn(
                "unbounded",
                f"{count} {joints} no limit {quote(kind)}, but URDF needs one: "
                f"{-UNBOUNDED if kind == 'lower' else UNBOUNDED:g} is written",
            )
        if self.link_writer.has_capsules:
            self._note(
                "newer-urdf",
                f"capsules need URDF {WITH_CAPSULES}; programs that only know 1.0 "
                "refuse the file",
            )
        if self.has_accelerations:
            self._note(
                "newer-urdf",
                "limits of acceleration are new in URDF 1.2; programs that only know "
                "an older one leave them out",
            )
        if not self.is_single:
            self._report_merging()

    def _report_merging(self) -> None:
        """Report that manipulators become one, and what that does to q."""
        self._warn(
            "one-robot",
            f"{len(self.cell.manipulators)} manipulators become one robot; their "
            "frames and joints are called 'manipulator/name' in it",
        )
        order = [
            self.coordinates[child]
            for child in depth_first(self._world(), self.children)
            if child in self.coordinates
        ]
        # q of the file is depth first over the one tree, that of the cell goes from
        # manipulator to manipulator.
        if tuple(order) != self.cell.joint_names:
            self._warn(
                "joint-order",
                "the order of the joints changes, since one manipulator is mounted on "
                f"another; it becomes {', '.join(order)}",
            )

    def robot(self) -> Element:
        """Return the root element."""
        manipulators = self.cell.manipulators
        name = manipulators[0].name if self.is_single else self.cell.name
        drake = DRAKE if self.transmissions else None
        version = WITH_CAPSULES if self.link_writer.has_capsules else None
        return tag(
            "robot",
            {"name": _unexpanded(name), "version": version, "xmlns:drake": drake},
            *self.link_writer.materials(),
            *self.links,
            *self.joints,
            *self.transmissions,
        )


def _unexpanded(name: str) -> str:
    """Return a name without what begins an expression of xacro."""
    return name.replace("$(", "_(").replace("${", "_{")


def _is_bounded(limits: Limits) -> bool:
    return math.isfinite(limits.lower) or math.isfinite(limits.upper)
