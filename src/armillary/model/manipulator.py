"""Manipulators: trees of links."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, quote, unknown
from armillary.model.coupled_limit import (
    CoupledLimit,
    coupled_faults,
    limit_rows_of,
    linear_drive,
    no_room,
)
from armillary.model.display import sized
from armillary.model.drive import Drive
from armillary.model.fields import EMPTY, TupleOf, reduced, replaced, store_tuples
from armillary.model.frame import FrameRef
from armillary.model.group import Group, group_faults, members
from armillary.model.joint_drives import (
    Ranges,
    joint_drives,
    joint_ranges,
    read_only,
    renumbered,
)
from armillary.model.limit_rows import LimitRows
from armillary.model.link import Link
from armillary.model.link_poses import BareTree
from armillary.model.loops.equations import PlacedLoop, loop_joints
from armillary.model.loops.loop import Closure, Rod, store_loops
from armillary.model.loops.system import LoopSystem, loop_system
from armillary.model.parameters import approx_equal
from armillary.model.posture import Posture, posture_faults
from armillary.model.property import Property
from armillary.model.validate import check_manipulator
from armillary.model.wheels import Wheels, wheel_faults
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import IDENTITY, Pose

__all__ = [
    "Fault",
    "Manipulator",
    "note_faults",
]

Array = npt.NDArray[np.float64]

# what is wrong with what is said of a manipulator beside its links


class Fault(NamedTuple):
    """What is wrong, and in which item of which field of a manipulator.

    Attributes:
        field: Such as `postures`.
        place: Of the item, None for the field as a whole.
        message: A sentence.
    """

    field: str
    place: int | None
    message: str


def note_faults(
    links: Sequence[Link],
    joint_names: Sequence[str],
    places: Container[str],
    *,
    postures: Sequence[Posture] = (),
    home: str = "",
    groups: Sequence[Group] = (),
    properties: Sequence[Property] = (),
    wheels: Wheels | None = None,
) -> Iterator[Fault]:
    """Yield what is wrong with what a manipulator has beside its links.

    links: A legal tree.
    joint_names: Of the joints that have a place in q.
    places: Names of the links and frames.
    """
    for place, message in posture_faults(postures, joint_names):
        yield Fault("postures", place, message)
    if home and all(posture.name != home for posture in postures):
        message = f"No posture is called {quote(home)}, in which it shall start."
        yield Fault("home", None, message)
    if groups:
        names = {link.name for link in links}
        joints = {link.coordinate for link in links if link.parent is not None}
        for place, message in group_faults(groups, names, joints):
            yield Fault("groups", place, message)
    for place, each in enumerate(properties):
        if each.of and each.of not in places:
            message = (
                f"Property {quote(each.name)} is about {quote(each.of)}, which is not "
                "a link or frame here."
            )
            yield Fault("properties", place, message)
    if wheels is not None:
        for message in wheel_faults(wheels, joint_names):
            yield Fault("wheels", None, message)


# manipulators: trees of links


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
        loops: What closes loops of its links; passive joints follow the others then.
        coupled_limits: Limits of sums of joints, beside the limits of each.
    """

    name: str
    links: TupleOf[Link]
    postures: TupleOf[Posture] = EMPTY
    home: str = ""
    groups: TupleOf[Group] = EMPTY
    properties: TupleOf[Property] = EMPTY
    wheels: Wheels | None = None
    loops: TupleOf[Closure | Rod] = EMPTY
    coupled_limits: TupleOf[CoupledLimit] = EMPTY

    def __post_init__(self) -> None:
        """Check every rule of a legal tree.

        Raises:
            ModelError: One or more are broken; the message lists all.
        """
        store_tuples(
            self, "links", "postures", "groups", "properties", "coupled_limits"
        )
        store_loops(self)
        check_manipulator(self.name, self.links)
        notes = self.postures, self.home, self.groups, self.properties, self.wheels
        if any(notes):
            self._check_notes()
        if self.loops:
            self._check_loops()
        if self.coupled_limits:
            self._check_coupled_limits()

    def _check_notes(self) -> None:
        """Refuse postures, groups, properties and wheels of what does not exist."""
        faults = note_faults(
            self.links,
            [self.links[k].coordinate for k in self.joint_links],
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

    def _check_loops(self) -> None:
        """Close the loops.

        Raises:
            ModelError: They cannot be; or a name of a loop is not known.
        """
        try:
            self.loop_system  # noqa: B018
        except ModelError as error:
            raise ModelError(f"Manipulator {quote(self.name)}: {error}") from error

    def _check_coupled_limits(self) -> None:
        """Refuse limits of what has no place in q, and those that leave no room.

        Raises:
            ModelError: There is one.
        """
        messages = [text for _, text in self.coupled_limit_faults()]
        if not messages:
            messages = [no_room(self.limit_rows, *self.limits)]
        faulty = " ".join(filter(None, messages))
        if faulty:
            raise ModelError(f"Manipulator {quote(self.name)}: {faulty}")

    def coupled_limit_faults(
        self, limits: Sequence[CoupledLimit] | None = None
    ) -> Iterator[tuple[int, str]]:
        """Yield what is wrong with coupled limits of this tree: in which, a sentence.

        limits: Those to look at; by default its own.
        """
        listed = self.coupled_limits if limits is None else limits
        return coupled_faults(listed, self._driven)

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
        children: list[list[int]] = [[] for _ in self.links]
        for k, parent in enumerate(self.parents):
            if parent >= 0:
                children[parent].append(k)
        return tuple(map(tuple, children))

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Return the links depth first: parents before children, children as given."""
        waiting = [self.base]
        order: list[int] = []
        while waiting:
            k = waiting.pop()
            order.append(k)
            waiting.extend(reversed(self.children[k]))
        return tuple(order)

    @cached_property
    def base(self) -> int:
        """Return the position of the base link."""
        return self.parents.index(-1)

    @cached_property
    def joint_links(self) -> tuple[int, ...]:
        """Return the links whose joints have a number, depth first."""
        return tuple(
            k
            for k in self.order
            if self.links[k].has_coordinate and self.links[k].coupling is None
        )

    @cached_property
    def loop_system(self) -> LoopSystem:
        """Return which of those joints its loops determine."""
        links = self.joint_links
        if not self.loops:
            return LoopSystem(order=tuple(range(len(links))), count=len(links))
        joints = loop_joints([self.links[k] for k in links], self.ranges, self._start)
        tree = BareTree(self.links, self.parents, self.joint_drives, {})
        return loop_system(tree, self.placed_loops, joints)

    @cached_property
    def placed_loops(self) -> list[PlacedLoop]:
        """Return its loops with their frames looked up, joints as in `joint_links`."""
        return [self._placed(loop) for loop in self.loops]

    def _placed(self, loop: Closure | Rod) -> PlacedLoop:
        """Return a loop with its frames looked up."""
        for name in (loop.a, loop.b):
            if name not in self.frame_refs:
                known = unknown("frame", name, self.frame_refs)
                raise ModelError(f"In {loop.label}: {known}")
        a, b = self.frame_refs[loop.a], self.frame_refs[loop.b]
        if not loop.joint:
            return PlacedLoop(loop, a, b)
        moving = [k for k, link in enumerate(self.links) if link.has_coordinate]
        names = [self.links[k].coordinate for k in moving]
        if loop.joint not in names:
            known = unknown("joint", loop.joint, names)
            raise ModelError(f"In {loop.label}: {known}")
        (drive,) = self.joint_drives[moving[names.index(loop.joint)]]
        return PlacedLoop(loop, a, b, drive)

    @cached_property
    def _start(self) -> tuple[float, ...]:
        """Return where joints start, by `joint_links`, before loops are closed."""
        q: list[float] = np.clip(0.0, *self.ranges[:2]).tolist()
        for posture in self.postures:
            if posture.name == self.home:
                names = [self.links[k].coordinate for k in self.joint_links]
                for name, position in zip(posture.joints, posture.q, strict=True):
                    q[names.index(name)] = position
        if self.coupled_limits and not self.home and not self.loops:
            q = self.limit_rows.nearest(q, *self.ranges[:2]).tolist()
        return tuple(q)

    @cached_property
    def home_vector(self) -> tuple[float, ...]:
        """Return where all joints are at home, by `joint_links` [m or rad].

        That is the posture `home`, else zero or the limit nearest to it; loops closed.
        """
        system = self.loop_system
        if not system.equations:
            return self._start
        return tuple(q for _, q in sorted(zip(system.order, system.home, strict=True)))

    @property
    def home_q(self) -> tuple[float, ...]:
        """Return where all joints are at home, those of q first, then passive ones."""
        return tuple(self.home_vector[k] for k in self.loop_system.order)

    @cached_property
    def coordinates(self) -> tuple[int, ...]:
        """Return the links whose joints have a place in q, in the order of q."""
        system = self.loop_system
        return tuple(self.joint_links[k] for k in system.order[: system.count])

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Return the names of the joints that have a place in q."""
        return tuple(self.links[k].coordinate for k in self.coordinates)

    @cached_property
    def passive_names(self) -> tuple[str, ...]:
        """Return the names of the joints that its loops determine."""
        links, system = self.joint_links, self.loop_system
        return tuple(
            self.links[links[k]].coordinate for k in system.order[system.count :]
        )

    @property
    def all_names(self) -> tuple[str, ...]:
        """Return the names of the joints of q, then of the passive ones."""
        return (*self.joint_names, *self.passive_names)

    @cached_property
    def joint_drives(self) -> tuple[tuple[Drive, ...], ...]:
        """Return what moves the joint of each link, by the numbers of `joint_links`.

        It is nothing where the joint is fixed, one joint's coordinate, or several where
        it is a mechanism.
        """
        return joint_drives(self.links, self.joint_links)

    @cached_property
    def drives(self) -> tuple[tuple[Drive, ...], ...]:
        """Return what moves the joint of each link: nothing where it is fixed.

        Coordinates are numbered as in q, then follow the passive joints of loops.
        """
        return renumbered(self.joint_drives, self.loop_system.order)

    @cached_property
    def frame_refs(self) -> dict[str, FrameRef]:
        """Return where each named frame and each link's outer frame is fixed."""
        refs = {link.name: FrameRef(k, IDENTITY) for k, link in enumerate(self.links)}
        for k, link in enumerate(self.links):
            for frame in link.frames:
                refs[frame.name] = FrameRef(k, link.primary @ frame.pose)
        return refs

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
        change with them. Masses, motors, efforts and properties remain.

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
        coupled = tuple(
            limit.scaled([rates[joint] for joint in limit.joints])
            for limit in self.coupled_limits
        )
        return msgspec.structs.replace(
            self,
            coupled_limits=coupled,
            links=tuple(links),
            postures=postures,
            wheels=wheels,
            loops=tuple(loop.scaled(factor) for loop in self.loops),
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
        links = members(
            groups[name], groups, self.index, self._by_coordinate, self.parents
        )
        return tuple(self.links[k].coordinate for k in self.coordinates if k in links)

    def link(self, name: str) -> Link:
        """Return the link called `name`.

        Raises:
            UnknownName: There is none.
        """
        if name not in self.index:
            raise unknown("link", name, self.index, owner=f"manipulator '{self.name}'")
        return self.links[self.index[name]]

    @cached_property
    def ranges(self) -> Ranges:
        """Return limits and greatest rates of all joints, by `joint_links`.

        Raises:
            ModelError: They leave a joint nothing.
        """
        ranges = joint_ranges(self.links, self.joint_drives, len(self.joint_links))
        for k, lower, upper in zip(self.joint_links, *ranges[:2], strict=True):
            if lower > upper:
                name = self.links[k].coordinate
                raise ModelError(
                    f"Joint '{name}' of '{self.name}' has no coordinate left: the "
                    "limits of the joints that follow it exclude its own."
                )
        return ranges

    @cached_property
    def velocity_limits(self) -> Array:
        """Return the greatest rate of each coordinate, shape (n,) [m/s or rad/s].

        Those of joints that follow another narrow that of the followed one.
        """
        return read_only(self.ranges.velocity[self._independent])

    @cached_property
    def limits(self) -> tuple[Array, Array]:
        """Return the least and greatest q, each of shape (n,) [m or rad].

        The limits of joints that follow another narrow those of the followed one.

        Raises:
            ModelError: They leave a joint nothing.
        """
        lower, upper, _ = self.ranges
        return read_only(lower[self._independent]), read_only(upper[self._independent])

    @cached_property
    def limit_rows(self) -> LimitRows:
        """Return the coupled limits as rows A q <= b of the coordinates.

        Raises:
            ModelError: A joint has no place in q.
        """
        labelled = [(each.label, each) for each in self.coupled_limits]
        return limit_rows_of(labelled, self._driven, len(self.coordinates))

    def _driven(self, joint: str) -> Drive:
        """Return how a coordinate of q moves a joint.

        Raises:
            UnknownName: There is no such joint.
            ModelError: It is fixed, a mechanism, or determined by loops.
        """
        places = self._by_coordinate
        if joint not in places:
            raise unknown("joint", joint, places, owner=f"manipulator '{self.name}'")
        return linear_drive(
            joint, self.links[places[joint]], self.drives[places[joint]], self._count
        )

    @property
    def _count(self) -> int:
        return self.loop_system.count

    @property
    def _independent(self) -> list[int]:
        system = self.loop_system
        return list(system.order[: system.count])
