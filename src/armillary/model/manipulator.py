"""Manipulators: trees of links."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, quote, unknown
from armillary.model.annotations import note_faults
from armillary.model.coupling import Coupling
from armillary.model.display import sized
from armillary.model.drive import Drive
from armillary.model.fields import EMPTY, TupleOf, reduced, replaced, store_tuples
from armillary.model.frame import FrameRef
from armillary.model.group import Group, members
from armillary.model.link import Link
from armillary.model.parameters import approx_equal
from armillary.model.posture import Posture
from armillary.model.property import Property
from armillary.model.validate import check_manipulator
from armillary.model.wheels import Wheels
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import IDENTITY, Pose

Array = npt.NDArray[np.float64]


class Manipulator(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A tree of links; a part or a fixture is one without moving joints.

    Attributes:
        name: Unique in its cell, without "/".
        links: In any order; exactly one, the base, has no parent.
        postures: Named joint positions.
        home: Name of the posture in which it starts; without one it starts at zero, or
            at the limits nearest to that.
        groups: Named groups of joints.
        properties: What else files say of it, or of its links and frames.
        wheels: On which it drives; see `Cell.differential_drive`.
    """

    name: str
    links: TupleOf[Link]
    postures: TupleOf[Posture] = EMPTY
    home: str = ""
    groups: TupleOf[Group] = EMPTY
    properties: TupleOf[Property] = EMPTY
    wheels: Wheels | None = None

    def __post_init__(self) -> None:
        """Check every rule of a legal tree.

        Raises:
            ModelError: One or more are broken; the message lists all.
        """
        store_tuples(self, "links", "postures", "groups", "properties")
        check_manipulator(self.name, self.links)
        notes = self.postures, self.home, self.groups, self.properties, self.wheels
        if any(notes):
            self._check_notes()

    def _check_notes(self) -> None:
        """Refuse postures, groups, properties and wheels of what does not exist."""
        faults = note_faults(
            self.links,
            self.joint_names,
            self.frame_refs,
            postures=self.postures,
            home=self.home,
            groups=self.groups,
            properties=self.properties,
            wheels=self.wheels,
        )
        faulty = " ".join(fault.message for fault in faults)
        if faulty:
            raise ModelError(f"Manipulator {quote(self.name)}: {faulty}")

    def __repr__(self) -> str:
        sizes = sized(link=len(self.links), joint=len(self.coordinates))
        return f"<Manipulator {quote(self.name)}: {sizes}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)

    @cached_property
    def index(self) -> dict[str, int]:
        """Return the position of each link by name."""
        return {link.name: k for k, link in enumerate(self.links)}

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """Return the position of each link's parent, -1 for the base."""
        index = self.index
        return tuple(
            -1 if link.parent is None else index[link.parent] for link in self.links
        )

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Return the positions of each link's children, in their given order."""
        found: list[list[int]] = [[] for _ in self.links]
        for k, parent in enumerate(self.parents):
            if parent >= 0:
                found[parent].append(k)
        return tuple(map(tuple, found))

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Return the links depth first: parents before children, children as given."""
        waiting = [self.base]
        found: list[int] = []
        while waiting:
            k = waiting.pop()
            found.append(k)
            waiting.extend(reversed(self.children[k]))
        return tuple(found)

    @cached_property
    def base(self) -> int:
        """Return the position of the base link."""
        return self.parents.index(-1)

    @cached_property
    def coordinates(self) -> tuple[int, ...]:
        """Return the links whose joints have a place in q, in the order of q."""
        return tuple(
            k
            for k in self.order
            if self.links[k].has_coordinate and self.links[k].coupling is None
        )

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Return the names of the joints that have a place in q."""
        return tuple(self.links[k].coordinate for k in self.coordinates)

    @cached_property
    def drives(self) -> tuple[tuple[Drive, ...], ...]:
        """Return what moves the joint of each link: nothing where it is fixed.

        It is one coordinate, or several where the joint is a mechanism.
        """
        place = {k: i for i, k in enumerate(self.coordinates)}
        by_joint = {
            link.coordinate: k
            for k, link in enumerate(self.links)
            if link.has_coordinate
        }
        found: dict[int, Drive] = {k: Drive(i, 1.0, 0.0) for k, i in place.items()}
        for k in by_joint.values():
            self._follow(k, by_joint, found)
        drives: list[tuple[Drive, ...]] = []
        for k, link in enumerate(self.links):
            sources = [by_joint[name] for name in link.inputs]
            if link.has_coordinate:
                sources = [k]
            drives.append(tuple(found[source] for source in sources))
        return tuple(drives)

    def _follow(
        self, k: int, by_joint: dict[str, int], found: dict[int, Drive]
    ) -> None:
        """Find what moves a joint, and all that it follows on the way there."""
        followers: list[tuple[int, Coupling]] = []
        while k not in found:
            coupling = self.links[k].coupling
            assert coupling is not None
            followers.append((k, coupling))
            k = by_joint[coupling.of]
        drive = found[k]
        for follower, coupling in reversed(followers):
            factor = coupling.multiplier
            offset = factor * drive.offset + coupling.offset
            drive = Drive(drive.of, factor * drive.multiplier, offset)
            found[follower] = drive

    @cached_property
    def frame_refs(self) -> dict[str, FrameRef]:
        """Return where each named frame and each link's outer frame is fixed."""
        found = {link.name: FrameRef(k, IDENTITY) for k, link in enumerate(self.links)}
        for k, link in enumerate(self.links):
            for frame in link.frames:
                found[frame.name] = FrameRef(k, link.primary @ frame.pose)
        return found

    def posture(self, name: str) -> Posture:
        """Return the posture called `name`.

        Raises:
            UnknownName: There is none.
        """
        for each in self.postures:
            if each.name == name:
                return each
        known = [each.name for each in self.postures]
        raise unknown("posture", name, known, owner=f"manipulator '{self.name}'")

    def exchange(self, link: Link) -> Manipulator:
        """Return the manipulator with another link of the same name.

        Raises:
            UnknownName: No link has that name.
            ModelError: That is not a legal tree.
        """
        old = self.link(link.name)
        return self.replace(links=[link if k is old else k for k in self.links])

    def replace(self, **fields: Any) -> Manipulator:
        """Return the manipulator with other values of some of its fields.

        Raises:
            UnknownName: There is no such field.
            ModelError: That is not a legal tree.
        """
        return replaced(self, fields)

    def scaled(self, factor: float) -> Manipulator:
        """Return the manipulator with all its lengths `factor` times as long.

        Coordinates that are lengths are scaled too: limits, postures and couplings
        change with them. Masses, efforts and properties remain.

        Raises:
            ModelError: `factor` is not above 0, or a joint cannot be scaled.
        """
        rates = {
            link.coordinate: factor if link.joint.unit.scales_with_length else 1.0
            for link in self.links
        }
        links: list[Link] = []
        for link in self.links:
            scaled, coupling = link.scaled(factor), link.coupling
            if coupling is not None:
                ratio = rates[link.coordinate] / rates[coupling.of]
                changed = msgspec.structs.replace(
                    scaled.coupling or coupling, multiplier=coupling.multiplier * ratio
                )
                scaled = msgspec.structs.replace(scaled, coupling=changed)
            links.append(scaled)
        postures = tuple(
            msgspec.structs.replace(
                posture,
                q=[
                    rates[joint] * q
                    for joint, q in zip(posture.joints, posture.q, strict=True)
                ],
            )
            for posture in self.postures
        )
        wheels = self.wheels
        if wheels is not None:
            wheels = wheels.scaled(factor, rate=rates[wheels.left])
        return msgspec.structs.replace(
            self, links=tuple(links), postures=postures, wheels=wheels
        )

    def approx_equal(self, other: object, tolerance: float) -> bool:
        """Return whether `other` has the same links with nearly the same numbers.

        tolerance: The largest difference of two numbers; names must be equal.
        """
        return approx_equal(self, other, tolerance)

    def total_inertia(self, poses: Sequence[Pose]) -> SpatialInertia:
        """Return the inertia of all links together, leaving out those not known.

        poses: Of each link's outer frame in a frame A, in the order of `links`.

        Returns:
            About A's origin and in its axes.

        Raises:
            ModelError: There are not as many poses as links.
        """
        if len(poses) != len(self.links):
            raise ModelError(
                f"{len(poses)} poses were given for the {len(self.links)} links of "
                f"{quote(self.name)}; give one for each, in the order of links."
            )
        total = SpatialInertia.zero()
        for link, pose in zip(self.links, poses, strict=True):
            if link.inertia is not None:
                total += link.inertia.transformed(pose @ link.primary)
        return total

    @cached_property
    def _by_coordinate(self) -> dict[str, int]:
        """Return the position of the link behind each joint, fixed ones too."""
        return {
            link.coordinate: k
            for k, link in enumerate(self.links)
            if link.parent is not None
        }

    def group_joints(self, name: str) -> tuple[str, ...]:
        """Return the names of a group's joints that have a place in q, in its order.

        Raises:
            UnknownName: There is no such group.
        """
        groups = {group.name: group for group in self.groups}
        if name not in groups:
            raise unknown("group", name, groups, owner=f"manipulator '{self.name}'")
        found = members(
            groups[name], groups, self.index, self._by_coordinate, self.parents
        )
        return tuple(self.links[k].coordinate for k in self.coordinates if k in found)

    def link(self, name: str) -> Link:
        """Return the link called `name`.

        Raises:
            UnknownName: There is none.
        """
        if name not in self.index:
            raise unknown("link", name, self.index, owner=f"manipulator '{self.name}'")
        return self.links[self.index[name]]

    @cached_property
    def velocity_limits(self) -> Array:
        """Return the greatest rate of each coordinate, shape (n,) [m/s or rad/s].

        Those of joints that follow another narrow that of the followed one.
        """
        greatest = np.full(len(self.coordinates), math.inf)
        for link, drive in self._own_drives():
            rate = link.limits.velocity / abs(drive.multiplier)
            greatest[drive.of] = min(greatest[drive.of], rate)
        greatest.flags.writeable = False
        return greatest

    def _own_drives(self) -> Iterator[tuple[Link, Drive]]:
        """Yield the links whose limits narrow those of what moves them, and that."""
        for link, drives in zip(self.links, self.drives, strict=True):
            if link.has_coordinate and drives[0].multiplier != 0.0:
                yield link, drives[0]

    @cached_property
    def limits(self) -> tuple[Array, Array]:
        """Return the least and greatest q, each of shape (n,) [m or rad].

        The limits of joints that follow another narrow those of the followed one.

        Raises:
            ModelError: They leave a joint nothing.
        """
        count = len(self.coordinates)
        lower, upper = np.full(count, -math.inf), np.full(count, math.inf)
        for link, drive in self._own_drives():
            ends = [
                (limit - drive.offset) / drive.multiplier
                for limit in (link.limits.lower, link.limits.upper)
            ]
            lower[drive.of] = max(lower[drive.of], min(ends))
            upper[drive.of] = min(upper[drive.of], max(ends))
        for k, name in enumerate(self.joint_names):
            if lower[k] > upper[k]:
                raise ModelError(
                    f"Joint '{name}' of '{self.name}' has no coordinate left: the "
                    "limits of the joints that follow it exclude its own."
                )
        lower.flags.writeable = upper.flags.writeable = False
        return lower, upper
