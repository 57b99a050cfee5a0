"""Devices: some joints of a cell as a robot with a q of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import StateError, quote, unknown
from armillary.kinematics import questions
from armillary.kinematics.bound_kernel import AnyKernel
from armillary.kinematics.frame_tree import carried
from armillary.kinematics.kernels import Joints, listed_joints
from armillary.kinematics.state import State, bound_state, home, rates_of
from armillary.model.workcell import Workcell
from armillary.spatial.inertia import SpatialInertia

if TYPE_CHECKING:
    from armillary.collision.check import CollisionCheck
    from armillary.ik.inverse_kinematics import InverseKinematics

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from armillary.errors import ModelError
from armillary.forks import IMPORT_LOCK
from armillary.model.end_effectors import end_effectors, last_link
from armillary.model.group import Group
from armillary.model.manipulator import Manipulator
from armillary.model.mount import WORLD
from armillary.model.parents import nearest
from armillary.model.tree import Tree
from armillary.model.workcell import WORLD_LINK

__all__ = ["Device", "chosen", "device"]

Array = npt.NDArray[np.float64]
Frames = str | Sequence[str] | None

# which joints, base and ends a device has, from what a user names

T = TypeVar("T")


class DeviceChoice(NamedTuple):
    """What makes a device.

    Attributes:
        joints: Places in the cell's q.
        base: A frame, qualified.
        ends: Frames, qualified.
    """

    joints: tuple[int, ...]
    base: str
    ends: tuple[str, ...]


def chosen(
    state: State,
    names: Sequence[str],
    joints: Sequence[str] | None,
    base: str | None,
    ends: Sequence[str],
) -> DeviceChoice:
    """Return the joints, base and ends of a device; see `Cell.device`."""
    cell = state.cell
    if names and joints is not None:
        raise ModelError("A device has joints= or names of what has them, not both.")
    parts = [_part(state, name) for name in names]
    if joints is not None:
        parts = [_of_joints(state, [cell.joint(name) for name in joints])]
    root = cell.qualified(base) if base is not None else _base(state, parts, ends)
    tips = _unique(map(cell.qualified, ends) if ends else _all(parts, "ends"))
    if not tips:
        raise ModelError(
            "A device needs the name of a manipulator or a group, names of joints, or "
            "the frames that it moves."
        )
    places = _unique(_all(parts, "joints"))
    if ends and joints is None:
        between = _between(state, root, tips)
        named, places = places, tuple(k for k in between if not parts or k in places)
        if named and not places:
            ends_text = ", ".join(map(quote, tips))
            raise ModelError(
                f"No joint of {', '.join(map(quote, names))} moves {ends_text} in "
                f"{quote(root)}; name other ends, or what has the joints between."
            )
    return DeviceChoice(places, root, tips)


def _base(state: State, parts: Sequence[DeviceChoice], ends: Sequence[str]) -> str:
    """Return the base that several parts have in common, or that of the first end."""
    cell = state.cell
    if parts:
        return state.tree.common_frame([part.base for part in parts])
    owner = cell.owners[cell.frame(ends[0]).link] if ends else -1
    return WORLD if owner < 0 else _base_of(cell.manipulators[owner])


def _base_of(manipulator: Manipulator) -> str:
    return f"{manipulator.name}/{manipulator.links[manipulator.base].name}"


def _part(state: State, name: str) -> DeviceChoice:
    """Return what a manipulator or a group by its name stands for."""
    cell = state.cell
    if name in cell.index:
        k = cell.index[name]
        links = cell.joints.links[: cell.loop_system.count]
        own = (place for place, link in enumerate(links) if cell.owners[link] == k)
        active = _active(state.tree, own)
        manipulator = cell.manipulators[k]
        ends = tuple(end_effectors(manipulator) or [last_link(manipulator)])
        return DeviceChoice(tuple(active), _base_of(manipulator), ends)
    manipulator, group = _find_group(cell, name)
    named = manipulator.group_joints(group.name)
    places = [cell.joint(f"{manipulator.name}/{joint}") for joint in named]
    part = _of_joints(state, list(_active(state.tree, places)))
    if not group.chains:
        return part
    tips = tuple(f"{manipulator.name}/{tip}" for _, tip in group.chains)
    roots = [f"{manipulator.name}/{root}" for root, _ in group.chains]
    root = state.tree.common_frame(roots)
    return DeviceChoice(part.joints, root, tips)


def _find_group(cell: Workcell, name: str) -> tuple[Manipulator, Group]:
    groups = {
        f"{manipulator.name}/{group.name}": (manipulator, group)
        for manipulator in cell.manipulators
        for group in manipulator.groups
    }
    found = [full for full, (_, group) in groups.items() if name in {full, group.name}]
    if not found:
        known = (*cell.index, *groups)
        owner = f"cell {quote(cell.name)}"
        raise unknown("manipulator or group", name, known, owner=owner)
    if len(found) > 1:
        choices = ", ".join(map(quote, found))
        raise ModelError(f"Group {quote(name)} is not unique; say {choices}.")
    return groups[found[0]]


def _of_joints(state: State, places: list[int]) -> DeviceChoice:
    """Return joints, the frame that carries them all, and the links they move last."""
    cell = state.cell
    if len(set(places)) < len(places):
        names = [cell.joint_names[k] for k in places]
        raise ModelError(f"A device names a joint twice: {names}.")
    tree = state.tree
    links = list(dict.fromkeys(tree.joint_links[place] for place in places))
    parents = [tree.parents[link] for link in links]
    carriers = nearest(tree.parents, parents, links.__contains__)
    ends = tuple(tree.name(link) for link in links if link not in carriers)
    outer = [
        tree.name(link)
        for link, carrier in zip(links, carriers, strict=True)
        if carrier == WORLD_LINK
    ]
    stands = [tree.frame_parent(name) or WORLD for name in outer] or [WORLD]
    return DeviceChoice(tuple(places), tree.common_frame(stands), ends)


def _between(state: State, base: str, ends: Sequence[str]) -> tuple[int, ...]:
    """Return the joints between a base and ends, as they first come on the way."""
    tree, cell = state.tree, state.cell
    up = tree.ancestors(cell.frame(base).link)
    found: dict[int, None] = {}
    for end in ends:
        down = tree.ancestors(cell.frame(end).link)
        shared = set(up) & set(down)
        way = [k for k in up if k not in shared]
        way += reversed([k for k in down if k not in shared])
        found |= tree.moving_joints(way)
    return tuple(_active(tree, found))


def _active(tree: Tree, places: Iterable[int]) -> Iterator[int]:
    """Yield the joints that motors drive."""
    for place in places:
        if not tree.cell.links[tree.joint_links[place]].passive:
            yield place


def _all(parts: Sequence[DeviceChoice], what: str) -> Iterator[Any]:
    return (item for part in parts for item in getattr(part, what))


def _unique(items: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(items))


# devices: some joints of a cell as a robot with a q of its own


def device(
    cell: Workcell,
    names: str | Sequence[str] = (),
    *,
    joints: Joints = None,
    base: str | None = None,
    ends: str | Sequence[str] = (),
    state: State | None = None,
) -> Device:
    """Return a view of the cell in which only some joints move, with its own q.

    Args:
        cell: What it is a view of.
        names: A manipulator or a group of joints, or a list of them in the order
            of q. Their passive joints are left out.
        joints: Names of joints in the order of q, in place of `names`; passive ones
            may be among them.
        base: The frame that poses are relative to; by default that of what is
            named, or the nearest that carries all of it.
        ends: The frames that it moves. With them only the joints between the base
            and those move, in the order in which they come. By default the end
            effectors of what is named, or else its last links.
        state: Where all else stands; at home by default.

    Raises:
        UnknownName: A manipulator, group, joint or frame does not exist.
        ModelError: Nothing is named, a joint is named twice, or a bare name is not
            unique.
        StateError: The state is not one of this cell.
    """
    bound = home(cell) if state is None else bound_state(cell, state)
    listed = (names,) if isinstance(names, str) else tuple(names)
    tips = (ends,) if isinstance(ends, str) else tuple(ends)
    choice = chosen(bound, listed, listed_joints(joints), base, tips)
    return Device(cell=cell, state=bound, **choice._asdict())


class Device(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A view of a cell in which only some joints move; made by `cell.device`.

    Its kernels take its own q. Everything else, the other joints, the bases and the
    attachments, is as in `state`; `at` gives the same device in another state.

    Attributes:
        cell: What it is a view of.
        joints: The places of its joints in the cell's q; they give the order of its q.
        base: The frame that its poses are relative to.
        ends: The frames that it moves.
        state: Where all else stands.
    """

    cell: Workcell
    joints: tuple[int, ...]
    base: str
    ends: tuple[str, ...]
    state: State

    def __post_init__(self) -> None:
        """Bind the state, which a device that was sent has lost."""
        msgspec.structs.force_setattr(self, "state", bound_state(self.cell, self.state))

    def __repr__(self) -> str:
        ends = ", ".join(map(quote, self.ends))
        return f"<device of {len(self.joints)} joints, {quote(self.base)} to {ends}>"

    @property
    def end(self) -> str:
        """Return the first of its ends."""
        return self.ends[0]

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Return the names of its joints in the order of its q."""
        names = self.cell.joint_names
        return tuple(names[k] for k in self.joints)

    @property
    def limits(self) -> tuple[Array, Array]:
        """Return the least and the greatest q, each of shape (n,) [m or rad]."""
        lower, upper = self.cell.limits
        places = list(self.joints)
        return lower[places], upper[places]

    # states

    def at(self, state: State) -> Self:
        """Return the device where all else stands as in another state.

        Raises:
            StateError: The state is not one of this cell.
        """
        return msgspec.structs.replace(self, state=state)

    def q(self, state: State) -> Array:
        """Return its joint positions in a state, shape (n,) [m or rad]."""
        return bound_state(self.cell, state).q[list(self.joints)]

    def qd(self, state: State) -> Array:
        """Return its joint rates in a state, shape (n,) [m/s or rad/s]."""
        return rates_of(bound_state(self.cell, state))[list(self.joints)]

    def with_q(self, state: State, q: Any, *, check_limits: bool = False) -> State:
        """Return a state with its joints at q, shape (n,), and all else unchanged.

        check_limits: Whether a state beyond limits is refused; else `cell.violations`
            lists what it breaks.

        Raises:
            StateError: q has another number of joints, is not finite, or with
                `check_limits` breaks a limit.
        """
        state = bound_state(self.cell, state)
        return state.replace(q=self._put(state.q, q), check_limits=check_limits)

    def with_qd(self, state: State, qd: Any) -> State:
        """Return a state with its joints moving at qd, shape (n,); see `with_q`.

        Raises:
            StateError: qd has another number of joints, or is not finite.
        """
        state = bound_state(self.cell, state)
        return state.replace(qd=self._put(rates_of(state), qd))

    def whole(self, q: Any) -> Array:
        """Return the cell's q for its own: (..., n) to (..., N), others as in `state`.

        Raises:
            StateError: q has another number of joints.
        """
        given = self._checked(q)
        result = np.empty((*given.shape[:-1], len(self.state.q)))
        result[...] = self.state.q
        result[..., list(self.joints)] = given
        return result

    def posture(self, name: str) -> Array:
        """Return its q in the named posture of its manipulators, shape (n,).

        Joints that the posture leaves out are as in `state`.

        Raises:
            UnknownName: No posture of this name moves one of its joints.
        """
        found: dict[int, float] = {}
        known: dict[str, None] = {}
        for m in self.cell.manipulators:
            for posture in m.postures:
                places = [self.cell.joint(f"{m.name}/{j}") for j in posture.joints]
                if set(places) & set(self.joints):
                    known[posture.name] = None
                    if posture.name == name:
                        found.update(zip(places, posture.q, strict=True))
        if name not in known:
            raise unknown("posture", name, known, owner=repr(self))
        q = self.state.q
        return np.array([found.get(k, q[k]) for k in self.joints], dtype=np.float64)

    def payload(
        self, state: State, *, relative_to: str | None = None
    ) -> SpatialInertia:
        """Return the inertia of all that its ends carry in a state; see `cell.carried`.

        What hangs on the links of the ends counts, by whichever of their frames.

        relative_to: About which frame's origin; by default that of `end`.

        Raises:
            StateError: The state is not one of this cell.
            UnknownName: There is no such frame.
        """
        tree = self.state.tree
        links = [tree.name(self.cell.frame(end).link) for end in self.ends]
        about = self.end if relative_to is None else relative_to
        return carried(self.cell, links, state, relative_to=about)

    # kernels

    def fk(
        self,
        frames: Frames = None,
        *,
        relative_to: str | None = None,
        form: str = "matrix",
        dtype: npt.DTypeLike = np.float64,
    ) -> AnyKernel:
        """Return the kernel of forward kinematics: its q to poses; as `cell.fk`.

        Args:
            frames: By default the end, or the list of ends where there are several.
            relative_to: By default the base.
            form: As for `cell.fk`.
            dtype: As for `cell.fk`.

        Raises:
            UnknownName: A frame or form does not exist.
            ModelError: A bare name is not unique, or `frames` is an empty list.
        """
        return questions.fk(
            self.cell,
            self._frames(frames),
            form=form,
            dtype=dtype,
            **self._options(relative_to),
        )

    def jacobian(
        self,
        frames: Frames = None,
        *,
        relative_to: str | None = None,
        point: str | npt.ArrayLike | None = None,
        axes: str | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> AnyKernel:
        """Return the kernel of a Jacobian: its q to (..., 6, n); as `cell.jacobian`.

        A column holds what the joints add that follow its own. The other joints stand
        still.

        Args:
            frames: By default the end, or the list of ends where there are several; a
                list of k frames gives (..., k, 6, n).
            relative_to: By default the base.
            point: As for `cell.jacobian`.
            axes: As for `cell.jacobian`.
            dtype: As for `cell.fk`.

        Raises:
            UnknownName: A frame does not exist.
            ModelError: A bare name is not unique, or `frames` is an empty list.
        """
        return questions.jacobian(
            self.cell,
            self._frames(frames),
            point=point,
            axes=axes,
            dtype=dtype,
            **self._options(relative_to),
        )

    def ik(
        self,
        frames: Frames = None,
        *,
        relative_to: str | None = None,
        position: str = "xyz",
        rotation: str = "xyz",
        axes: str = "target",
        avoid: CollisionCheck | None = None,
    ) -> InverseKinematics:
        """Return the solver of inverse kinematics: targets to its q; as `cell.ik`.

        Where other joints or placed bases decide where the frames are, another state
        is another solver; targets in the base's frame avoid that.

        Args:
            frames: By default the end, or the list of ends where there are several.
            relative_to: The frame in which targets are given; by default the base.
            position: As for `cell.ik`.
            rotation: As for `cell.ik`.
            axes: As for `cell.ik`.
            avoid: As for `cell.ik`.

        Raises:
            UnknownName: A frame does not exist.
            ModelError: Nothing is asked for, no joint of it moves a frame, or the check
                is of another cell or state.
        """
        with IMPORT_LOCK:
            from armillary.ik.factory import solver_of  # nobody else pays for it

        return solver_of(
            self.cell,
            self._frames(frames),
            position=position,
            rotation=rotation,
            axes=axes,
            avoid=avoid,
            **self._options(relative_to),
        )

    # inside

    def _options(self, relative_to: str | None) -> dict[str, Any]:
        """Return what its kernels differ in from those of the cell."""
        base = self.base if relative_to is None else relative_to
        return {"relative_to": base, "joints": self.joint_names, "state": self.state}

    def _frames(self, frames: Frames) -> str | Sequence[str]:
        """Return the frames asked about: by default the end, or the list of ends."""
        if frames is not None:
            return frames
        return self.end if len(self.ends) == 1 else self.ends

    def _checked(self, q: Any) -> Array:
        """Return vectors of its joints, shape (..., n)."""
        try:
            array = np.asarray(q, dtype=np.float64)
        except (TypeError, ValueError) as error:
            text = f"{self!r} takes vectors of numbers, not {q!r}."
            raise StateError(text) from error
        if array.shape[-1:] != (len(self.joints),):
            raise StateError(
                f"{self!r} takes vectors of {len(self.joints)} numbers, not an array "
                f"of shape {array.shape}."
            )
        return array

    def _put(self, whole: Array, q: Any) -> Array:
        """Return a vector of the cell with the device's numbers in their places."""
        given = self._checked(q)
        if given.ndim != 1:
            raise StateError(f"{self!r} takes one vector; a state holds no batch.")
        result = whole.copy()
        result[list(self.joints)] = given
        return result
