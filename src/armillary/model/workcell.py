"""Workcells: manipulators, and what they are mounted on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import Any, Final, Self

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import (
    ArmillaryError,
    ModelError,
    ShapeError,
    quote,
    unknown,
)
from armillary.model.cell_joints import CellJoints
from armillary.model.coupled_limit import (
    CoupledLimit,
    limit_rows_of,
    linear_drive,
    no_room,
)
from armillary.model.display import sized
from armillary.model.drive import Drive
from armillary.model.fields import (
    EMPTY,
    TupleOf,
    reduced,
    renamed,
    replaced,
    store_tuples,
)
from armillary.model.frame import FrameRef
from armillary.model.limit_rows import LimitRows
from armillary.model.link import Link
from armillary.model.link_pattern import is_exact
from armillary.model.loops.loop import Closure, Rod, store_loops
from armillary.model.loops.system import LoopSystem
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD, Mount
from armillary.model.parameters import approx_equal
from armillary.model.parents import endless
from armillary.model.property import Property
from armillary.model.rules import Rules
from armillary.spatial.pose import IDENTITY, Pose

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

WORLD_LINK: Final = -1  # the number of the world among links
IN_WORLD: Final = FrameRef(WORLD_LINK, IDENTITY)
DEFAULT_RULES = Rules()


class Workcell(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A cell as data: any number of manipulators, and the mounts between them.

    Attributes:
        name: For messages and files.
        manipulators: Their order gives the order of q.
        mounts: Of manipulators that do not stand at the origin of the world.
        properties: What else files say of the cell as a whole.
        rules: Which pairs of links are tested for collision.
        loops: Those between manipulators, of frames as `manipulator/frame`.
        coupled_limits: Those that couple joints of manipulators, as
            `manipulator/joint`; each manipulator has those of its own joints.
    """

    name: str = "cell"
    manipulators: TupleOf[Manipulator] = EMPTY
    mounts: TupleOf[Mount] = EMPTY
    properties: TupleOf[Property] = EMPTY
    rules: Rules = DEFAULT_RULES
    loops: TupleOf[Closure | Rod] = EMPTY
    coupled_limits: TupleOf[CoupledLimit] = EMPTY

    def __post_init__(self) -> None:
        """Check names and mounts.

        Raises:
            ModelError: Two manipulators share a name, or a mount is not possible.
            UnknownName: A mount, a property or a rule names what does not exist.
        """
        store_tuples(self, "manipulators", "mounts", "properties", "coupled_limits")
        store_loops(self)
        taken = {WORLD}
        for manipulator in self.manipulators:
            if manipulator.name in taken:
                raise ModelError(
                    f"The name {quote(manipulator.name)} is taken; manipulators need "
                    "distinct names, and 'world' is the cell's own."
                )
            taken.add(manipulator.name)
        self._check_mounts()
        for each in self.properties:
            if each.of:
                self.frame(each.of)
        if self.rules is not DEFAULT_RULES:
            self.check_rules(self.rules)
        if self.loops:
            self.loop_system  # noqa: B018
        own = [m for m in self.manipulators if m.coupled_limits]
        if self.coupled_limits or (self.loops and own):
            faulty = no_room(self.limit_rows, *self.limits)
            if faulty:
                raise ModelError(f"Cell {quote(self.name)}: {faulty}")

    def __repr__(self) -> str:
        sizes = sized(manipulator=len(self.manipulators), joint=len(self.joint_names))
        return f"<Cell {quote(self.name)}: {sizes}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)

    def _check_mounts(self) -> None:
        mounted: set[str] = set()
        for mount in self.mounts:
            self.number(mount.manipulator)
            if mount.manipulator in mounted:
                raise ModelError(
                    f"Manipulator {quote(mount.manipulator)} is mounted twice."
                )
            mounted.add(mount.manipulator)
        self._qualify()
        falling = endless([self.owners[at.link] for at in self.base_frames])
        if falling:
            name = self.manipulators[min(falling)].name
            raise ModelError(
                f"Manipulator {quote(name)} would be mounted on itself: the mounts "
                "form a cycle."
            )

    def _qualify(self) -> None:
        """Store the frames of mounts and loops qualified: unique after edits too."""
        full = self.qualified
        mounts = (
            renamed(m, f"{quote(m.manipulator)} cannot be mounted on", full, "on")
            for m in self.mounts
        )
        loops = (renamed(m, f"In {m.label},", full, "a", "b") for m in self.loops)
        msgspec.structs.force_setattr(self, "mounts", tuple(mounts))
        msgspec.structs.force_setattr(self, "loops", tuple(loops))

    # editing: each gives a new cell that shares what did not change

    def add(
        self,
        manipulator: Manipulator,
        *,
        on: str = WORLD,
        pose: Pose = IDENTITY,
        bolted: bool = True,
    ) -> Self:
        """Return the cell with one more manipulator, the last in the order of q.

        Args:
            manipulator: What to add.
            on: The frame that its base is mounted on.
            pose: Of the base in that frame.
            bolted: Whether it stays there in every state.

        Raises:
            ModelError: The name is taken, or `manipulator` is not a `Manipulator`.
            UnknownName: There is no frame `on`.
        """
        _check_manipulator(manipulator)
        mount = Mount(manipulator=manipulator.name, on=on, pose=pose, bolted=bolted)
        return msgspec.structs.replace(
            self,
            manipulators=(*self.manipulators, manipulator),
            mounts=(*self.mounts, mount),
        )

    def remove(self, name: str) -> Self:
        """Return the cell without a manipulator, and the loops and rules that name it.

        Raises:
            UnknownName: No manipulator has that name.
            ModelError: Others are mounted on it; remove or mount those first.
        """
        k = self.number(name)
        carried = [
            quote(m.name)
            for m, at in zip(self.manipulators, self.base_frames, strict=True)
            if self.owners[at.link] == k
        ]
        if carried:
            raise ModelError(
                f"{quote(name)} cannot be removed: it carries {', '.join(carried)}; "
                "remove or mount those first."
            )
        kept = (*self.manipulators[:k], *self.manipulators[k + 1 :])
        mounts = [m for m in self.mounts if m.manipulator != name]
        rules, loops = self.rules.without(name), self.joints.loops_without(k)
        coupled = self._coupled_limits_without(k)
        return self.replace(
            manipulators=kept,
            mounts=mounts,
            rules=rules,
            loops=loops,
            coupled_limits=coupled,
        )

    def _coupled_limits_without(self, k: int) -> list[CoupledLimit]:
        """Return its own coupled limits that name no joint of a manipulator."""
        links = range(self.starts[k], self.starts[k + 1])
        return [
            limit
            for limit in self.coupled_limits
            if not any(self._joint_link(joint) in links for joint in limit.joints)
        ]

    def exchange(self, manipulator: Manipulator) -> Self:
        """Return the cell with another manipulator of the same name; mounts stay.

        Raises:
            UnknownName: No manipulator has that name, or a frame that a mount or a rule
                names is missing in the new one.
            ModelError: `manipulator` is not a `Manipulator`.
        """
        _check_manipulator(manipulator)
        changed = list(self.manipulators)
        changed[self.number(manipulator.name)] = manipulator
        return self.replace(manipulators=changed)

    def replace(self, **fields: Any) -> Self:
        """Return the cell with other values of some of its fields, such as `rules`.

        Raises:
            UnknownName: There is no such field, or a value names what is not here.
        """
        return replaced(self, fields)

    def mount(
        self,
        name: str,
        *,
        on: str = WORLD,
        pose: Pose = IDENTITY,
        bolted: bool = True,
    ) -> Self:
        """Return the cell with a manipulator mounted elsewhere.

        Args:
            name: Of the manipulator.
            on: The frame that its base is mounted on.
            pose: Of the base in that frame.
            bolted: Whether it stays there in every state.

        Raises:
            UnknownName: The manipulator or the frame does not exist.
            ModelError: It would be mounted on itself.
        """
        self.number(name)
        mount = Mount(manipulator=name, on=on, pose=pose, bolted=bolted)
        mounts = {each.manipulator: each for each in self.mounts}
        mounts[name] = mount  # where the old one was, if there was one
        return msgspec.structs.replace(self, mounts=tuple(mounts.values()))

    def scaled(self, factor: float) -> Self:
        """Return the cell with all its lengths `factor` times as long.

        See `Manipulator.scaled`.

        Raises:
            ModelError: `factor` is not above 0, or a joint cannot be scaled.
        """
        return msgspec.structs.replace(
            self,
            manipulators=tuple(each.scaled(factor) for each in self.manipulators),
            mounts=tuple(
                msgspec.structs.replace(mount, pose=mount.pose.scaled(factor))
                for mount in self.mounts
            ),
            loops=tuple(loop.scaled(factor) for loop in self.loops),
            coupled_limits=tuple(
                limit.scaled([self._rate(joint, factor) for joint in limit.joints])
                for limit in self.coupled_limits
            ),
        )

    def _rate(self, joint: str, factor: float) -> float:
        """Return by how much a coordinate changes where lengths do by a factor."""
        unit = self.links[self._joint_link(joint)].joint.unit
        return factor if unit.scales_with_length else 1.0

    def approx_equal(self, other: object, tolerance: float) -> bool:
        """Return whether `other` has the same manipulators with nearly equal numbers.

        tolerance: The largest difference of two numbers; names must be equal.
        """
        return approx_equal(self, other, tolerance)

    def number(self, name: str) -> int:
        """Return the position of the manipulator called `name`.

        Raises:
            UnknownName: There is none.
        """
        if name not in self.index:
            raise unknown("manipulator", name, self.index, owner=self._owner)
        return self.index[name]

    def check_rules(self, rules: Rules) -> None:
        """Check that every name in rules is that of a link or frame here.

        Raises:
            UnknownName: One is not; patterns may match nothing.
            ModelError: A bare name is not unique.
        """
        for side in filter(is_exact, rules.sides):
            try:
                self.frame(side)
            except ArmillaryError as error:
                raise type(error)(f"A rule names {quote(side)}: {error}") from error

    @property
    def _owner(self) -> str:
        return f"cell {quote(self.name)}"

    @cached_property
    def index(self) -> dict[str, int]:
        """Return the position of each manipulator by name."""
        return {m.name: k for k, m in enumerate(self.manipulators)}

    @cached_property
    def mounted(self) -> dict[str, Mount]:
        """Return the mount of each manipulator that has one, by its name."""
        return {mount.manipulator: mount for mount in self.mounts}

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Return the links of all manipulators, by which links are numbered."""
        return tuple(link for m in self.manipulators for link in m.links)

    @cached_property
    def owners(self) -> tuple[int, ...]:
        """Return the manipulator of each link, and -1 as the last for the world."""
        return (*(k for k, m in enumerate(self.manipulators) for _ in m.links), -1)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Return the number of the first link of each manipulator, then that of all."""
        return tuple(accumulate((len(m.links) for m in self.manipulators), initial=0))

    @cached_property
    def base_frames(self) -> tuple[FrameRef, ...]:
        """Return the pose of each manipulator's base in the link that carries it."""
        frames: list[FrameRef] = []
        for manipulator in self.manipulators:
            mount = self.mounted.get(manipulator.name)
            if mount is None:
                frames.append(IN_WORLD)
            else:
                at = self.frame(mount.on)
                frames.append(at._replace(pose=at.pose @ mount.pose))
        return tuple(frames)

    @cached_property
    def joints(self) -> CellJoints:
        """Return the joints of the cell, which loops divide in two."""
        loops = [(each, self.frame(each.a), self.frame(each.b)) for each in self.loops]
        return CellJoints(self.manipulators, self.base_frames, loops)

    @property
    def loop_system(self) -> LoopSystem:
        """Return what loops say about the joints."""
        return self.joints.system

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Return the names of all joints in the order of q.

        They are `manipulator/joint` where the cell has more than one manipulator.
        """
        return self.joints.all_names[: self.loop_system.count]

    @cached_property
    def passive_names(self) -> tuple[str, ...]:
        """Return the names of the joints that loops determine, as in `joint_names`."""
        return self.joints.all_names[self.loop_system.count :]

    @cached_property
    def limits(self) -> tuple[Array, Array]:
        """Return the least and the greatest q, each of shape (n,) [m or rad]."""
        lower, upper, _ = self.joints.ranges
        count = self.loop_system.count
        return lower[:count], upper[:count]

    @cached_property
    def limit_rows(self) -> LimitRows:
        """Return the limits that couple joints, as rows A q <= b of all joints.

        They are those of the manipulators, then those of the cell; see `CoupledLimit`.
        The limits of each joint are not among them.
        """
        labelled = [
            (f"{m.name}/{limit.label}", limit, f"{m.name}/")
            for m in self.manipulators
            for limit in m.coupled_limits
        ]
        labelled += [(limit.label, limit, "") for limit in self.coupled_limits]
        parts = [
            limit_rows_of(
                [(label, limit)],
                lambda joint, owner=owner: self.drive(f"{owner}{joint}"),
                self.loop_system.count,
            )
            for label, limit, owner in labelled
        ]
        return LimitRows.of(
            [row for part in parts for row in part.A],
            [end for part in parts for end in part.b],
            [label for part in parts for label in part.labels],
            self.loop_system.count,
        )

    def within_limits(self, q: npt.ArrayLike, *, tolerance: float = 0.0) -> Truths:
        """Return where q is within the limits of joints and those that couple them.

        Passive joints of loops, and joints that follow others, are not looked at: their
        limits narrow those of q where that is linear.

        Args:
            q: Positions of all joints [m or rad], shape (..., n).
            tolerance: How far beyond a limit counts as within.

        Returns:
            Shape (...); False of NaN.

        Raises:
            ShapeError: `q` has another shape.
        """
        given = np.asarray(q, np.float64)
        lower, upper = self.limits
        if given.shape[-1:] != lower.shape:
            raise ShapeError(
                f"within_limits takes q of shape (..., {len(lower)}), one number for "
                f"each joint of {self._owner}; an array of shape {given.shape} was "
                "given."
            )
        inside = (given >= lower - tolerance) & (given <= upper + tolerance)
        each = np.asarray(inside.all(axis=-1))
        rows = self.limit_rows
        return each & rows.holds(given, tolerance) if len(rows) else each

    def drive(self, joint: str) -> Drive:
        """Return how q moves the joint of a name, bare or qualified.

        Raises:
            UnknownName: There is none.
            ModelError: The bare name is not unique; or the joint is fixed, a mechanism,
                or determined by loops.
        """
        link = self._joint_link(joint)
        return linear_drive(
            joint, self.links[link], self.joints.drives[link], self.loop_system.count
        )

    def _joint_link(self, name: str) -> int:
        """Return the link behind a joint, bare or qualified.

        Raises:
            UnknownName: There is none.
            ModelError: The bare name is not unique; qualify it.
        """
        found = self._joint_links.get(name, [])
        if not found:
            known = [key for key in self._joint_links if "/" in key]
            raise unknown("joint", name, known, owner=self._owner)
        if len(found) > 1:
            owners = (self.manipulators[self.owners[k]].name for k in found)
            choices = ", ".join(quote(f"{owner}/{name}") for owner in owners)
            raise ModelError(f"Joint {quote(name)} is not unique; say {choices}.")
        return found[0]

    @cached_property
    def _joint_links(self) -> dict[str, list[int]]:
        """Return the links behind the joints of each name, bare or qualified."""
        found: dict[str, list[int]] = {}
        for k, link in enumerate(self.links):
            if link.parent is not None:
                owner = self.manipulators[self.owners[k]].name
                for name in {link.coordinate, f"{owner}/{link.coordinate}"}:
                    found.setdefault(name, []).append(k)
        return found

    @property
    def home_q(self) -> tuple[float, ...]:
        """Return where the cell starts, n numbers [m or rad]: home postures, else zero.

        Where limits exclude zero, it is the limit nearest to zero.
        """
        return self.joints.home[: self.loop_system.count]

    @property
    def home_passive(self) -> tuple[float, ...]:
        """Return where passive joints are at home, m numbers [m or rad]."""
        return self.joints.home[self.loop_system.count :]

    @cached_property
    def velocity_limits(self) -> Array:
        """Return the greatest rates, shape (n,) [m/s or rad/s]."""
        return self.joints.ranges.velocity[: self.loop_system.count]

    @cached_property
    def effort_limits(self) -> Array:
        """Return the greatest efforts, shape (n,) [N or N m]."""
        return self.joints.efforts[: self.loop_system.count]

    @cached_property
    def frame_names(self) -> tuple[str, ...]:
        """Return the names of all frames as `manipulator/frame`, the world's first."""
        names = (f"{m.name}/{f}" for m in self.manipulators for f in m.frame_refs)
        return (WORLD, *names)

    @cached_property
    def _bare(self) -> dict[str, list[int]]:
        """Return the manipulators that have a frame of each bare name."""
        owners: dict[str, list[int]] = {}
        for k, manipulator in enumerate(self.manipulators):
            for name in manipulator.frame_refs:
                owners.setdefault(name, []).append(k)
        return owners

    def frame(self, name: str) -> FrameRef:
        """Return where the frame called `name` is fixed.

        Raises:
            UnknownName: There is none.
            ModelError: The bare name is not unique; qualify it.
        """
        known = self._known_frames.get(name) if type(name) is str else None
        if known is None:
            known = self._frame(name)
            self._known_frames[str(name)] = known
        return known

    @cached_property
    def _known_frames(self) -> dict[str, FrameRef]:
        """Return the frames that were asked for, by the names that were given."""
        return {}

    def _frame(self, name: str) -> FrameRef:
        if name == WORLD:
            return IN_WORLD
        owners = self._bare.get(str(name), ())
        if len(owners) > 1:
            choices = ", ".join(f"'{self.manipulators[k].name}/{name}'" for k in owners)
            raise ModelError(f"Frame {quote(name)} is not unique; say {choices}.")
        if owners:
            frame = self.manipulators[owners[0]].frame_refs[name]
            return FrameRef(self.starts[owners[0]] + frame.link, frame.pose)
        owner, _, bare = str(name).partition("/")
        k = self.index.get(owner)
        if k is None or not bare:
            # A link of this name, as URDF has them, is not the world.
            known = {WORLD: None, **self._bare}
            raise unknown("frame", str(name), known, owner=self._owner)
        frames = self.manipulators[k].frame_refs
        if bare not in frames:
            raise unknown("frame", bare, frames, owner=f"manipulator '{owner}'")
        return FrameRef(self.starts[k] + frames[bare].link, frames[bare].pose)

    def qualified(self, name: str) -> str:
        """Return the unique name `manipulator/frame` of a frame; `world` stays.

        Raises:
            UnknownName: There is no such frame.
            ModelError: The bare name is not unique.
        """
        at = self.frame(name)
        if at.link < 0:
            return WORLD
        owner = self.manipulators[self.owners[at.link]]
        bare = name if name in owner.frame_refs else name.partition("/")[2]
        return f"{owner.name}/{bare}"

    @cached_property
    def _joints(self) -> dict[str, list[int]]:
        """Return the places of all joints of each name, bare or qualified."""
        places: dict[str, list[int]] = {}
        for place, link in enumerate(self.joints.links):
            joint = self.links[link].coordinate
            owner = self.manipulators[self.owners[link]].name
            for name in {joint, f"{owner}/{joint}"}:
                places.setdefault(name, []).append(place)
        return places

    def joint(self, name: str) -> int:
        """Return the place in q of the joint called `name`, bare or qualified.

        Raises:
            UnknownName: There is none.
            ModelError: The bare name is not unique; qualify it.
        """
        every, count = self._joints.get(name, []), self.loop_system.count
        places = [k for k in every if k < count]
        if every and not places:
            raise ModelError(
                f"Joint {quote(name)} is passive: loops determine it, so it has no "
                "place in q. cell.close_loops(q) returns where it is."
            )
        return self._only("joint", name, places, self.joint_names)

    def passive_joint(self, name: str) -> int:
        """Return the place of a passive joint among all joints, passive ones last.

        Raises:
            UnknownName: Loops determine no joint of that name.
            ModelError: The bare name is not unique; qualify it.
        """
        every, count = self._joints.get(name, []), self.loop_system.count
        places = [k for k in every if k >= count]
        return self._only("passive joint", name, places, self.passive_names)

    def _only(
        self, kind: str, name: str, places: Sequence[int], known: Sequence[str]
    ) -> int:
        if not places:
            raise unknown(kind, name, known, owner=self._owner)
        if len(places) > 1:
            choices = ", ".join(quote(self.joints.all_names[k]) for k in places)
            raise ModelError(f"Joint {quote(name)} is not unique; say {choices}.")
        return places[0]


def _check_manipulator(thing: object) -> None:
    """Check that something to add is a manipulator.

    Raises:
        ModelError: It is not.
    """
    if not isinstance(thing, Manipulator):
        raise ModelError(
            f"{thing!r} is not a Manipulator. Of a cell take each of its manipulators, "
            "such as other.manipulators[0]."
        )
