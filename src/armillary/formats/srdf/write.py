"""A cell to SRDF, the companion of the URDF that the same cell is written to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from armillary.errors import quote
from armillary.formats.diagnostic import NOWHERE, Report
from armillary.formats.elements import Elements
from armillary.formats.features import ALL, Held
from armillary.formats.names import FreeNames
from armillary.formats.srdf.collisions import untested_pairs
from armillary.formats.srdf.elements import ELEMENTS, IN_STATE, OF_ROBOT
from armillary.formats.srdf.extensions import BASE_POSE, PREFIX, SPHERE, values_of
from armillary.formats.srdf.names import Names
from armillary.formats.srdf.states import ROOT_JOINT
from armillary.formats.xml import Element, tag, to_text
from armillary.model.group import Group
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD
from armillary.model.posture import Posture
from armillary.model.property import Property
from armillary.model.workcell import Workcell

__all__ = ["held_features", "write"]

WORLD_JOINT: Final = "world_joint"
SPHERE_NUMBERS: Final = 4


def held_features() -> Held:
    """Return what an SRDF holds of a cell, of whose robot it says more."""
    return {
        "passive joints": ALL,
        "postures": ALL,
        "groups": ALL,
        "collision rules": "which pairs are tested",
        "properties": "those of SRDF",
        "movable bases": "of one robot",
    }


def write(cell: Workcell, report: Report) -> bytes:
    """Return the SRDF of a cell, with the names of links and joints as in its URDF.

    Raises FormatError for a cell without manipulators, or with too many pairs.
    """
    if not cell.manipulators:
        message = "the cell has no manipulator; SRDF needs a robot"
        report.error(NOWHERE, "no-robot", message)
        report.raise_if_errors()
    report.note(
        NOWHERE,
        "companion",
        "an SRDF is not a robot; write the URDF of this cell too, and load both",
    )
    exports = [_SrdfExport(cell, m, report) for m in cell.manipulators]
    parts = [element for export in exports for element in export.elements()]
    parts.extend(untested_pairs(cell, report))
    report.raise_if_errors()
    is_single = len(cell.manipulators) == 1
    name = cell.manipulators[0].name if is_single else cell.name
    return to_text(tag("robot", {"name": name}, *parts)).encode()


class _SrdfExport:
    """What an SRDF says of one manipulator."""

    def __init__(
        self, cell: Workcell, manipulator: Manipulator, report: Report
    ) -> None:
        self._cell = cell
        self._manipulator = manipulator
        self._report = report
        single = len(cell.manipulators) == 1
        self._prefix = "" if single else f"{manipulator.name}/"
        self._group_names = FreeNames({group.name for group in manipulator.groups})
        self._members = {
            group.name: frozenset(manipulator.group_joints(group.name))
            for group in manipulator.groups
        }
        self._virtual = list(self._kept("virtual_joint"))
        self._bases = self._properties(BASE_POSE)
        if self._prefix and (self._virtual or self._bases):
            # In the file this base is no longer that of the robot.
            self._virtual, self._bases = [], []
            self._not_kept(
                f"how {quote(manipulator.name)} is joined to the world, and the pose "
                "of its base in its postures, is not kept"
            )

    def elements(self) -> Iterator[Element]:
        """Yield all elements, those that others name first."""
        manipulator = self._manipulator
        states = [self._state(posture) for posture in manipulator.postures]
        for group in manipulator.groups:
            yield self._group(group)
        for elements in states:
            yield from elements
        for tool in self._kept("end_effector"):
            yield self._element("end_effector", **tool)
        yield from self._virtual_joints()
        for link in manipulator.links:
            if link.passive:
                yield self._element("passive_joint", name=link.coordinate)
        for each in self._kept("joint_property"):
            yield self._element("joint_property", **each)
        yield from self._spheres()
        if manipulator.home:
            self._not_kept(
                f"that {quote(manipulator.name)} starts in posture "
                f"{quote(manipulator.home)} is not kept"
            )

    def _group(self, group: Group) -> Element:
        virtual = [
            joint["name"] for joint in self._virtual if group.name in joint["groups"]
        ]
        members = {
            "link": group.links,
            "joint": (*virtual, *group.joints),
            "group": group.groups,
        }
        link, joint, inner = (
            [self._element(kind, name=name) for name in names]
            for kind, names in members.items()
        )
        chains = (
            self._element("chain", base_link=base, tip_link=tip)
            for base, tip in group.chains
        )
        return self._element("group", *link, *joint, *chains, *inner, name=group.name)

    def _state(self, posture: Posture) -> list[Element]:
        """Return a posture, with a group of its own if no other contains it."""
        joints = frozenset(posture.joints)
        fitting = [
            (len(members), name)
            for name, members in self._members.items()
            if joints <= members
        ]
        added: list[Element] = []
        if fitting:
            group = min(fitting)[1]
        else:
            group = self._group_names.derive(f"{posture.name}_joints")
            self._members[group] = joints
            added.append(self._group(Group(name=group, joints=posture.joints)))
            self._report.note(
                NOWHERE,
                "group-added",
                f"posture {quote(posture.name)} is in no group; the group "
                f"{quote(group)} is added",
            )
        root = self._virtual[0]["name"] if self._virtual else ROOT_JOINT
        bases = [each.numbers for each in self._bases if each.text == posture.name]
        positions = zip(posture.joints, posture.q, strict=True)
        state = self._element(
            "group_state",
            *(
                self._element("joint", tables=IN_STATE, name=root, value=base)
                for base in bases
            ),
            *(
                self._element("joint", tables=IN_STATE, name=n, value=(q,))
                for n, q in positions
            ),
            name=posture.name,
            group=group,
        )
        return [*added, state]

    def _virtual_joints(self) -> Iterator[Element]:
        virtual: list[dict[str, Any]] = self._virtual
        if not virtual and self._is_bolted_at_origin():
            base = self._manipulator.links[self._manipulator.base].name
            fixed: dict[str, Any] = {"type": "fixed", "parent_frame": WORLD}
            virtual = [fixed | {"name": WORLD_JOINT, "child_link": base}]
        for joint in virtual:
            yield self._element("virtual_joint", **joint)

    def _is_bolted_at_origin(self) -> bool:
        mounts = {mount.manipulator: mount for mount in self._cell.mounts}
        mount = mounts.get(self._manipulator.name)
        if mount is None or self._prefix:
            return False
        return mount.bolted and mount.on == WORLD and mount.pose.is_identity

    def _spheres(self) -> Iterator[Element]:
        spheres: dict[str, list[Element]] = {}
        for each in self._properties(SPHERE):
            if len(each.numbers) != SPHERE_NUMBERS:
                self._report_odd(each)
                continue
            *centre, radius = each.numbers
            element = ELEMENTS.write("sphere", center=centre, radius=radius)
            spheres.setdefault(each.of, []).append(element)
        for link, elements in spheres.items():
            yield self._element("link_sphere_approximation", *elements, link=link)

    def _element(
        self,
        kind: str,
        *children: Element,
        tables: Elements[Names] = ELEMENTS,
        **values: Any,
    ) -> Element:
        """Return an element in which names of several manipulators stay apart."""
        for row in tables[kind].rows:
            if values.get(row.key) and row.kind in OF_ROBOT:
                values[row.key] = f"{self._prefix}{values[row.key]}"
        return tables.write(kind, values, *children)

    def _properties(self, name: str) -> list[Property]:
        return [each for each in self._manipulator.properties if each.name == name]

    def _kept(self, kind: str) -> Iterator[dict[str, Any]]:
        """Yield the values of the elements of a kind that properties keep."""
        for note in self._properties(f"{PREFIX}{kind}"):
            values = values_of(note)
            if values is None:
                self._report_odd(note)
            else:
                yield values

    def _report_odd(self, note: Property) -> None:
        self._not_kept(
            f"the property {quote(note.name)} of {quote(note.of)} does not say what "
            f"one that begins with {PREFIX!r} should; it is left out"
        )

    def _not_kept(self, message: str) -> None:
        self._report.warning(NOWHERE, "not-kept", message)
