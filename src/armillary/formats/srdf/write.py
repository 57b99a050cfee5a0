"""A cell to SRDF, the companion of the URDF that the same cell is written to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

import msgspec

from armillary.errors import quote
from armillary.formats.diagnostic import Place, Report
from armillary.formats.names import FreeNames
from armillary.formats.srdf.remarks import (
    BASE_POSE,
    END_EFFECTOR,
    JOINT_PROPERTY,
    PREFIX,
    SPHERE,
    VIRTUAL_JOINT,
    JointProperty,
    KeptEndEffector,
    KeptVirtualJoint,
)
from armillary.formats.srdf.states import ROOT_JOINT
from armillary.formats.srdf.write_collisions import untested_pairs
from armillary.formats.xml import Element, tag, to_text
from armillary.model.group import Group
from armillary.model.manipulator import Manipulator
from armillary.model.posture import Posture
from armillary.model.property import Property
from armillary.model.workcell import WORLD, Workcell

__all__ = ["write"]

NOWHERE: Final = Place()
WORLD_JOINT: Final = "world_joint"

Kept = TypeVar("Kept", bound=msgspec.Struct)


def write(cell: Workcell, report: Report) -> bytes:
    """Return the SRDF of a cell.

    Links and joints are called as in the URDF of the cell, which it stands beside.

    Raises FormatError for a cell without manipulators, or with too many pairs.
    """
    if not cell.manipulators:
        message = "the cell has no manipulator; SRDF needs a robot"
        report.error(NOWHERE, "no-robot", message)
        report.raise_if_errors()
    report.note(
        NOWHERE,
        "companion",
        "an SRDF is no robot; write the URDF of this cell too, and load both",
    )
    drafts = [_Draft(cell, m, report) for m in cell.manipulators]
    parts = [element for draft in drafts for element in draft.elements()]
    parts.extend(untested_pairs(cell, report))
    report.raise_if_errors()
    is_single = len(cell.manipulators) == 1
    name = cell.manipulators[0].name if is_single else cell.name
    return to_text(tag("robot", {"name": name}, *parts)).encode()


class _Draft:
    """What an SRDF says of one manipulator."""

    def __init__(
        self, cell: Workcell, manipulator: Manipulator, report: Report
    ) -> None:
        self._cell = cell
        self._manipulator = manipulator
        self._report = report
        single = len(cell.manipulators) == 1
        self._prefix = "" if single else f"{manipulator.name}/"
        self._names = FreeNames({group.name for group in manipulator.groups})
        self._members = {
            group.name: frozenset(manipulator.group_joints(group.name))
            for group in manipulator.groups
        }
        self._virtual = [
            (each.of, found)
            for each in self._properties(VIRTUAL_JOINT)
            if (found := self._decoded(each, KeptVirtualJoint)) is not None
        ]
        self._bases = list(self._properties(BASE_POSE))
        if self._prefix and (self._virtual or self._bases):
            # In the file this base is no longer that of the robot.
            self._virtual, self._bases = [], []
            report.warning(
                NOWHERE,
                "not-kept",
                f"how {quote(manipulator.name)} is joined to the world, and where its "
                "postures have its base, is not kept",
            )

    def elements(self) -> Iterator[Element]:
        """Yield all elements, those that others name first."""
        states = [self._state(posture) for posture in self._manipulator.postures]
        for group in self._manipulator.groups:
            yield self._group(group)
        for elements in states:
            yield from elements
        yield from self._end_effectors()
        yield from self._virtual_joints()
        yield from self._passive()
        yield from self._joint_properties()
        yield from self._spheres()
        self._tell()

    def _group(self, group: Group) -> Element:
        virtual = [found for _, found in self._virtual if group.name in found.groups]
        return tag(
            "group",
            {"name": self._name(group.name)},
            *(tag("link", {"name": self._name(name)}) for name in group.links),
            *(tag("joint", {"name": each.name}) for each in virtual),
            *(tag("joint", {"name": self._name(name)}) for name in group.joints),
            *(
                tag(
                    "chain",
                    {"base_link": self._name(base), "tip_link": self._name(tip)},
                )
                for base, tip in group.chains
            ),
            *(tag("group", {"name": self._name(name)}) for name in group.groups),
        )

    def _state(self, posture: Posture) -> list[Element]:
        """Return a posture, with a group of its own where it is in no other."""
        joints = frozenset(posture.joints)
        fitting = [
            (len(found), name)
            for name, found in self._members.items()
            if joints <= found
        ]
        found: list[Element] = []
        if fitting:
            group = min(fitting)[1]
        else:
            group = self._names.derive(f"{posture.name}_joints")
            self._members[group] = joints
            found.append(self._group(Group(name=group, joints=posture.joints)))
            self._report.note(
                NOWHERE,
                "group-added",
                f"posture {quote(posture.name)} is in no group; the group "
                f"{quote(group)} is added",
            )
        positions = zip(posture.joints, posture.q, strict=True)
        state = tag(
            "group_state",
            {"name": self._name(posture.name), "group": self._name(group)},
            *self._base(posture),
            *(tag("joint", {"name": self._name(n), "value": q}) for n, q in positions),
        )
        return [*found, state]

    def _base(self, posture: Posture) -> Iterator[Element]:
        """Yield where a posture has the base."""
        for each in self._bases:
            if each.text == posture.name:
                name = self._virtual[0][1].name if self._virtual else ROOT_JOINT
                yield tag("joint", {"name": name, "value": each.numbers})

    def _end_effectors(self) -> Iterator[Element]:
        for each in self._properties(END_EFFECTOR):
            found = self._decoded(each, KeptEndEffector)
            if found is not None:
                parent = self._name(found.parent_group) if found.parent_group else None
                yield tag(
                    "end_effector",
                    {
                        "name": found.name,
                        "parent_link": self._name(each.of),
                        "group": self._name(found.group),
                        "parent_group": parent,
                    },
                )

    def _virtual_joints(self) -> Iterator[Element]:
        for link, found in self._virtual:
            yield tag(
                "virtual_joint",
                {
                    "name": found.name,
                    "type": found.type,
                    "parent_frame": found.parent_frame,
                    "child_link": self._name(link),
                },
            )
        mounts = {mount.manipulator: mount for mount in self._cell.mounts}
        mount = mounts.get(self._manipulator.name)
        if mount is None or self._virtual or self._prefix:
            return
        if mount.bolted and mount.on == WORLD and mount.pose.is_identity:
            base = self._manipulator.links[self._manipulator.base].name
            yield tag(
                "virtual_joint",
                {
                    "name": WORLD_JOINT,
                    "type": "fixed",
                    "parent_frame": WORLD,
                    "child_link": base,
                },
            )

    def _passive(self) -> Iterator[Element]:
        for link in self._manipulator.links:
            if link.passive:
                yield tag("passive_joint", {"name": self._name(link.coordinate)})

    def _joint_properties(self) -> Iterator[Element]:
        for each in self._properties(JOINT_PROPERTY):
            found = self._decoded(each, JointProperty)
            if found is not None:
                is_virtual = any(
                    found.joint == joint.name for _, joint in self._virtual
                )
                yield tag(
                    "joint_property",
                    {
                        "joint_name": found.joint
                        if is_virtual
                        else self._name(found.joint),
                        "property_name": found.name,
                        "value": found.value,
                    },
                )

    def _spheres(self) -> Iterator[Element]:
        spheres: dict[str, list[Element]] = {}
        for each in self._properties(SPHERE):
            if len(each.numbers) != 4:
                self._tell_odd(each)
                continue
            *centre, radius = each.numbers
            element = tag("sphere", {"center": centre, "radius": radius})
            spheres.setdefault(each.of, []).append(element)
        for link, elements in spheres.items():
            attributes = {"link": self._name(link)}
            yield tag("link_sphere_approximation", attributes, *elements)

    def _tell(self) -> None:
        """Report what an SRDF does not say."""
        manipulator = self._manipulator
        if manipulator.home:
            self._report.warning(
                NOWHERE,
                "not-kept",
                f"that {quote(manipulator.name)} starts in posture "
                f"{quote(manipulator.home)} is not kept",
            )

    def _name(self, name: str) -> str:
        return f"{self._prefix}{name}"

    def _properties(self, name: str) -> Iterator[Property]:
        return (each for each in self._manipulator.properties if each.name == name)

    def _decoded(self, given: Property, kind: type[Kept]) -> Kept | None:
        try:
            return msgspec.json.decode(given.text, type=kind)
        except msgspec.DecodeError:
            self._tell_odd(given)
            return None

    def _tell_odd(self, given: Property) -> None:
        self._report.warning(
            NOWHERE,
            "not-kept",
            f"the property {quote(given.name)} of {quote(given.of)} does not say what "
            f"one that begins with {PREFIX!r} should; it is left out",
        )
