"""States: where everything of a cell is at a moment, and what is attached to what."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Self, cast

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import FormatError, StateError, quote
from armillary.forks import IMPORT_LOCK
from armillary.kinematics.joint_vector import (
    NO_NUMBERS,
    check_joints,
    check_rates,
    numbers_of,
)
from armillary.kinematics.placement import (
    BaseVelocity,
    Placement,
    check_attachable,
    check_carried,
    check_free,
    check_movable,
    free_to_move,
    in_order,
    name_of,
    placed_frame,
    placements_of,
)
from armillary.kinematics.state_contents import (
    START,
    Contents,
    differences,
    state_line,
    state_tables,
    without_repeats,
)
from armillary.model.fields import EMPTY, TupleOf, Vector, default, kept
from armillary.model.frame import FrameRef
from armillary.model.link_poses import LinkPoses, poses_of
from armillary.model.mount import WORLD
from armillary.model.tree import Base, Tree
from armillary.model.workcell import IN_WORLD, WORLD_LINK, Workcell
from armillary.spatial.pose import Pose, pose_from
from armillary.spatial.vector import ZERO

if TYPE_CHECKING:
    from armillary.kinematics.closing.branch import Branch

__all__ = [
    "State",
    "bound_state",
    "branch_of",
    "home",
    "link_poses",
    "poses_in",
    "rates_of",
]

Array = npt.NDArray[np.float64]


_EMPTY: Final = default(NO_NUMBERS)

_STRUCT: Final[Any] = msgspec.Struct
_struct_copy: Final = _STRUCT.__copy__
_TUPLE: Final[Any] = tuple
_new_tuple: Final = _TUPLE.__new__
"""Makes named tuples, whose own constructors are Python."""
_on: Final[Callable[[Placement], str]] = attrgetter("on")
_store: Final = msgspec.structs.force_setattr

# states: where everything of a cell is at a moment, and what is attached to what


class State(
    msgspec.Struct,
    frozen=True,
    eq=False,
    kw_only=True,
    dict=True,
):
    """Joint positions and rates, moved bases and attachments; immutable.

    States are equal by value, hashable, small to pickle and to send. A state knows its
    cell as long as it stays in the process; one that was sent is bound again by
    `cell.bind(state)`.

    Attributes:
        q: Joint positions [m or rad], in the order of the cell's `joint_names`; a
            read-only array, shape (n,).
        passive: Positions of the joints that loops determine [m or rad], in the order
            of the cell's `passive_names`; a read-only array, shape (m,).
        qd: Joint rates [m/s or rad/s]; a read-only array, shape (n,), or (0,) where
            nothing moves.
        placements: The bases that do not stand where the cell was built, by name.
        base_velocities: Of bases that move freely in the world, by name.
        time: When this is [s].
    """

    q: Vector = _EMPTY
    qd: Vector = _EMPTY
    passive: Vector = _EMPTY
    placements: TupleOf[Placement] = EMPTY
    base_velocities: TupleOf[BaseVelocity] = EMPTY
    time: float = START

    def __post_init__(self) -> None:
        """Store read-only arrays, and placements in the order of their names.

        Raises:
            StateError: A number is not finite, rates and positions differ in number, or
                a manipulator stands in two places.
        """
        for name in ("q", "qd", "passive"):
            given: Any = getattr(self, name)
            if given is not NO_NUMBERS:
                _store(self, name, numbers_of(given, name))
        _store(self, "time", _time_of(self.time))
        check_rates(self.qd, self.q)
        for name in ("placements", "base_velocities"):
            ordered = in_order(getattr(self, name), name)
            _store(self, name, ordered)

    # the cell

    def bound(self, cell: Workcell) -> Self:
        """Return this state as one of `cell`.

        Raises:
            StateError: It has other joints, moves what is not free, or something stands
                on itself.
            UnknownName: It names what is not there.
        """
        own: Workcell | None = self.__dict__.get("cell")
        if own is cell:
            return self
        check_joints(len(self.q), own, cell)
        for placement in self.placements:
            check_movable(cell, placement.manipulator)
            cell.frame(placement.on)
        passive: tuple[float, ...] = ()
        if cell.passive_names or self.passive.size:
            with IMPORT_LOCK:
                from armillary.kinematics.closing.branches import bound_passive

            passive = bound_passive(cell, self.q.tolist(), self.passive.tolist())
        # A struct whose fields are numbers and arrays is hidden from the garbage
        # collector, which then could not free a cell that has kept its home state. One
        # that is made with a list is not, nor are its copies.
        copy = msgspec.structs.replace(self, passive=[*passive])
        vars(copy)["cell"] = cell
        check_carried(copy.tree, map(name_of, copy.placements))
        for velocity in self.base_velocities:
            check_free(copy.tree, velocity.manipulator)
        return copy

    @property
    def positions(self) -> Array:
        """Return the positions of all joints, those of q first, then passive ones.

        A read-only array, shape (n + m,) [m or rad].
        """
        if not self.passive.size:
            return self.q
        return np.frombuffer(self.q.tobytes() + self.passive.tobytes(), np.float64)

    @property
    def branch(self) -> str:
        """Return the name of the branch on which its loops are closed: `home`, 2, 3.

        See `Cell.branches`.
        """
        with IMPORT_LOCK:
            from armillary.kinematics.closing.branches import Branches

        return Branches.of(self.cell).named(self.positions.tolist())[0]

    @property
    def cell(self) -> Workcell:
        """Return the cell that this is a state of.

        Raises:
            StateError: The state has been sent from elsewhere; bind it first.
        """
        cell = self.__dict__.get("cell")
        if cell is None:
            raise StateError("This state does not know its cell: use cell.bind(state).")
        return cell

    @property
    def tree(self) -> Tree:
        """Return the links of the cell with bases attached as in this state."""
        tree = self.__dict__.get("tree")
        if tree is None:
            tree = self._attached(Tree.of(self.cell), self.placements)
            vars(self)["tree"] = tree
        return tree

    def _attached(
        self,
        tree: Tree,
        placements: Sequence[Placement],
        matrices: Array | None = None,
    ) -> Tree:
        if not placements:
            return tree
        cell = self.cell
        index = cell.index
        are_many = len(placements) > 1 and {*map(_on, placements)} == {WORLD}
        if are_many and matrices is not None:
            poses = {index[each.manipulator]: each.pose for each in placements}
            moved = tree.moved(poses, matrices)
            if moved is not None:
                return moved
        bases = {
            index[each.manipulator]: self._base_at(each.on, each.pose)
            for each in placements
        }
        return tree.placed(bases, matrices)

    def _base_at(self, on: str, pose: Pose) -> Base:
        """Return where a base at a pose in a frame is."""
        if on == WORLD:
            frame = _new_tuple(FrameRef, (WORLD_LINK, pose))
            return _new_tuple(Base, (frame, on, pose, "loose"))
        at = self.cell.frame(on)
        return Base(at._replace(pose=at.pose @ pose), on, pose, "attached")

    # joints

    def replace(
        self,
        *,
        q: Any = None,
        qd: Any = None,
        passive: Any = None,
        time: float | None = None,
        check_limits: bool = False,
    ) -> Self:
        """Return the state with other joint positions or rates, or at another time.

        Args:
            q: Joint positions [m or rad], shape (n,).
            qd: Joint rates [m/s or rad/s], shape (n,).
            passive: Positions of the joints that loops determine, shape (m,); by
                default they follow q on the straight way, on the same branch.
            time: When that is [s].
            check_limits: Whether positions and rates beyond limits are refused.

        Raises:
            StateError: The number of joints changes, a number is not finite, loops
                cannot be closed, or with `check_limits` one breaks a limit.
        """
        changed = self._copy()
        if q is not None:
            positions = numbers_of(q, "q")
            if len(positions) != len(self.q):
                raise StateError(
                    f"q has {len(positions)} numbers; this state has {len(self.q)} "
                    "joints."
                )
            _store(changed, "q", positions)
        if check_limits and self.passive.size:  # before loops that may not close there
            with IMPORT_LOCK:
                from armillary.kinematics.violations import refuse_violations

            where = [*changed.q.tolist(), *[math.nan] * len(self.passive)]
            refuse_violations(self.cell, where, [0.0] * len(self.qd))
        if passive is not None or self.passive.size:
            with IMPORT_LOCK:
                from armillary.kinematics.closing.branches import replaced_passive

            before, to = self.positions.tolist(), changed.q.tolist()
            follow: Any = replaced_passive(self.cell, to, before, passive)
            if follow is not self.passive:
                _store(changed, "passive", numbers_of(follow, "passive"))
        if qd is not None:
            rates = numbers_of(qd, "qd")
            check_rates(rates, changed.q)
            _store(changed, "qd", rates)
        if time is not None:
            _store(changed, "time", _time_of(time))
        if check_limits:
            with IMPORT_LOCK:
                from armillary.kinematics.violations import refuse_violations

            where, rates = changed.positions.tolist(), changed.qd.tolist()
            refuse_violations(self.cell, where, rates)
        return changed

    def joints(
        self, positions: Mapping[str, float], *, check_limits: bool = False
    ) -> Self:
        """Return the state with some joints moved.

        Args:
            positions: The positions of joints by name [m or rad].
            check_limits: As for `replace`.

        Raises:
            UnknownName: A joint does not exist.
            StateError: A number is not finite, or with `check_limits` breaks a limit.
        """
        q: list[Any] = self.q.tolist()
        for name, position in positions.items():
            q[self.cell.joint(name)] = position
        return self.replace(q=q, check_limits=check_limits)

    # bases and attachments

    @property
    def attachments(self) -> dict[str, str]:
        """Return the frame that holds each attached manipulator."""
        return {p.manipulator: p.on for p in self.placements if p.on != WORLD}

    def place(self, name: str, pose: Any, *, relative_to: str = WORLD) -> Self:
        """Return the state with a free base moved.

        Args:
            name: A manipulator that is not attached.
            pose: Of its base in `relative_to`, shape (4, 4) or a `Pose`.
            relative_to: Any frame.

        Raises:
            StateError: It is attached or fixed.
            UnknownName: The manipulator or the frame does not exist.
        """
        return self.place_all({name: pose}, relative_to=relative_to)

    def place_all(self, poses: Mapping[str, Any], *, relative_to: str = WORLD) -> Self:
        """Return the state with free bases moved, as `place` moves one.

        Many are moved in a fraction of the time that one after the other takes.

        Args:
            poses: The poses of bases in `relative_to` by the names of manipulators that
                are not attached, shape (4, 4) or a `Pose`.
            relative_to: Any frame; it counts where it is in this state.

        Raises:
            StateError: One is attached or fixed.
            UnknownName: A manipulator or the frame does not exist.
        """
        cell, held = self.cell, self.attachments
        if held or not all(map(free_to_move(cell).__contains__, poses)):
            for name in poses:
                check_movable(cell, name)
                if name in held:
                    raise StateError(
                        f"{quote(name)} is attached to {quote(held[name])}; release it "
                        "before you move it."
                    )
        given = [X if type(X) is Pose else pose_from(X) for X in poses.values()]
        if relative_to != WORLD:
            X_WR = self._pose(cell.frame(relative_to))
            given = [X_WR @ X for X in given]
        placements, matrices = placements_of(poses, given)
        return self._placed(*placements, matrices=matrices)

    def with_velocity(
        self, name: str, *, linear: Any = ZERO, angular: Any = ZERO
    ) -> Self:
        """Return the state with a free base moving in the world; by default at rest.

        What it carries moves with it. A base that is gripped follows its parent, and
        is at rest when it is released.

        Args:
            name: A manipulator that is not attached.
            linear: Velocity of its base's origin, in world axes [m/s], shape (3,).
            angular: Its angular velocity, in world axes [rad/s], shape (3,).

        Raises:
            StateError: It is attached to another, mounted on another or fixed, or a
                number is not finite.
            UnknownName: The manipulator does not exist.
        """
        check_free(self.tree, name)
        V = BaseVelocity(manipulator=name, linear=linear, angular=angular)
        others = self._velocities_but(name)
        moves = any((*V.linear, *V.angular))
        velocities = (*others, V) if moves else others
        changed = self._copy()
        _store(changed, "base_velocities", in_order(velocities, "base_velocities"))
        return changed

    def attach(
        self, part: str, to: str, *, pose: Any = None, replace: bool = False
    ) -> Self:
        """Return the state with a manipulator attached to a frame, not moved in it.

        As RobWork's `attachTo`: the pose of the base relative to its parent stays
        the same number, so the part jumps with its new parent; see `grip`.

        Args:
            part: The manipulator.
            to: The frame to attach it to.
            pose: Of the base in that frame; by default that in its present parent.
            replace: Whether it may be taken from its present parent.

        Raises:
            StateError: The part is fixed or attached already, or would carry itself.
            UnknownName: The part or the frame does not exist.
        """
        check_attachable(self.tree, part, to, replace=replace)
        X = self._base(part).pose if pose is None else pose_from(pose)
        return self._placed(
            Placement(manipulator=part, on=self.cell.qualified(to), pose=X)
        )

    def grip(self, part: str, *, by: str, replace: bool = False) -> Self:
        """Return the state with a manipulator attached to a frame where it is now.

        Args:
            part: The manipulator; its pose in the world is kept.
            by: The frame that takes it.
            replace: Whether it may be taken from its present parent.

        Raises:
            StateError: The part is fixed or attached already, or would carry itself.
            UnknownName: The part or the frame does not exist.
        """
        check_attachable(self.tree, part, by, replace=replace)
        base = placed_frame(self.cell, part)
        (X,) = poses_in(self, [base], self.cell.frame(by))
        on = self.cell.qualified(by)
        return self._placed(Placement(manipulator=part, on=on, pose=X.normalised()))

    def release(self, part: str, *, pose: Any = None) -> Self:
        """Return the state with a manipulator let go in the world.

        Args:
            part: A manipulator that is attached to another one, or mounted on it and
                not fixed.
            pose: Of its base in the world; by default where it is.

        Raises:
            StateError: It is not attached, or is fixed.
            UnknownName: It does not exist.
        """
        check_movable(self.cell, part)
        if self.parent(part) == WORLD:
            attached = ", ".join(map(quote, self.attachments)) or "none"
            raise StateError(
                f"{quote(part)} is not attached. Attached parts: {attached}."
            )
        if pose is None:
            pose = self._pose(placed_frame(self.cell, part)).normalised()
        return self._placed(Placement(manipulator=part, pose=pose_from(pose)))

    def parent(self, name: str) -> str:
        """Return the frame that carries a manipulator's base in this state."""
        return self._base(name).on

    def children(self, frame: str) -> tuple[str, ...]:
        """Return the manipulators whose bases a frame carries in this state."""
        wanted = self.cell.qualified(frame)
        return tuple(name for name in self.cell.index if self.parent(name) == wanted)

    # sending and comparing

    def to_json(self) -> str:
        """Return the state as JSON; equal states give equal texts.

        Raises:
            StateError: A name holds half a character, which UTF-8 has no bytes for.
        """
        try:
            return msgspec.json.encode(self._contents).decode()
        except UnicodeEncodeError as error:
            text = f"The name {error.object!a} holds half a character; rename it."
            raise StateError(text) from error

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the state that `to_json` wrote; bind it to its cell.

        Raises:
            FormatError: The text is not a state, or says something twice.
        """
        with IMPORT_LOCK:
            import json

        try:
            contents = msgspec.json.decode(text, type=Contents)
            json.loads(text, object_pairs_hook=without_repeats)
            return cls(**msgspec.structs.asdict(contents))
        except (msgspec.DecodeError, UnicodeDecodeError, StateError) as error:
            raise FormatError(f"This JSON is not a state: {error}") from error

    def difference(self, other: State) -> dict[str, tuple[Any, Any]]:
        """Return what differs: name to the value here and there.

        Keys are joints (by name, or by number for a state that knows no cell),
        `rate of <joint>`, `base of <manipulator>`, `velocity of <manipulator>` and
        `time`.
        """
        cell = self.__dict__.get("cell")
        return dict(differences(self._contents, other._contents, cell))

    def __array__(self, *_: Any, **__: Any) -> Any:
        """Refuse to be an array: kernels of q would leave out attachments in silence.

        Raises:
            StateError: Always; the message names what to write.
        """
        raise StateError(
            "A state is not an array: pass state.q for joint positions, and "
            "state=state to cell.fk and the like for its attachments."
        )

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or self._key == cast("State", other)._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return state_line(self._contents, self.__dict__.get("cell"))

    def _repr_html_(self) -> str:
        return state_tables(self._contents, self.__dict__.get("cell"))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_contents, (type(self), *msgspec.structs.astuple(self._contents))

    @property
    def _key(self) -> tuple[Any, ...]:
        """Return what equal states share; bytes will do, without NaN and -0.0."""
        vectors = self.q.tobytes(), self.qd.tobytes(), self.passive.tobytes()
        return *vectors, self.placements, self.base_velocities, self.time

    @property
    def _contents(self) -> Contents:
        return Contents(
            tuple(self.q.tolist()),
            tuple(self.qd.tolist()),
            tuple(self.passive.tolist()),
            self.placements,
            self.base_velocities,
            self.time,
        )

    # inside

    def _copy(self) -> Self:
        """Return a copy, whose fields its maker may store as states hold them."""
        # A copy is not checked again, as all that it holds has been.
        # (States are their own copies, those of a `Struct` are new.)
        copy: Self = _struct_copy(self)
        own = self.__dict__
        if "cell" in own:
            known = vars(copy)
            known["cell"] = own["cell"]
            known["tree"] = own.get("tree") or self.tree
        return copy

    def _placed(self, *placements: Placement, matrices: Array | None = None) -> Self:
        """Return the state with bases elsewhere; several are free in the world.

        matrices: Those of their poses, if they are known.
        """
        changed = self._copy()
        if len(placements) == 1:
            (placement,) = placements
            name = placement.manipulator
            k = bisect_left(self.placements, name, key=name_of)
            behind = k + (self._placement(name) is not None)
            placed = (*self.placements[:k], placement, *self.placements[behind:])
            if placement.on != WORLD:  # what is attached moves as its parent does
                _store(changed, "base_velocities", self._velocities_but(name))
        else:
            by_name = {each.manipulator: each for each in self.placements}
            by_name.update((each.manipulator, each) for each in placements)
            placed = in_order(by_name.values(), "placements")
        _store(changed, "placements", placed)
        vars(changed)["tree"] = self._attached(self.tree, placements, matrices)
        return changed

    def _placement(self, name: str) -> Placement | None:
        """Return where a manipulator was moved to, None where it was not."""
        k = bisect_left(self.placements, name, key=name_of)
        candidates = self.placements[k : k + 1]
        return (
            candidates[0] if candidates and candidates[0].manipulator == name else None
        )

    def _base(self, name: str) -> Base:
        return self.tree.base(self.cell.number(name))

    def _velocities_but(self, name: str) -> tuple[BaseVelocity, ...]:
        return tuple(V for V in self.base_velocities if V.manipulator != name)

    def _pose(self, at: FrameRef) -> Pose:
        (X,) = poses_in(self, [at], IN_WORLD)
        return X


def link_poses(state: State) -> LinkPoses:
    """Return the poses of links in the world in a state, each computed once."""
    return LinkPoses(state.tree, state.positions.tolist(), WORLD_LINK)


def poses_in(
    state: State, frames: Sequence[FrameRef], relative_to: FrameRef
) -> list[Pose]:
    """Return the poses of frames in a state, computed from what is between them."""
    return poses_of(state.tree, state.positions.tolist(), frames, relative_to)


def _of_contents(kind: type[State], *contents: Any) -> State:
    return kind(**dict(zip(Contents.__struct_fields__, contents, strict=True)))


def _time_of(given: Any) -> float:
    """Return a time as states hold it.

    Raises:
        StateError: It is not a finite number.
    """
    try:
        time = float(given) or START
    except (TypeError, ValueError, OverflowError):
        time = math.nan
    if not math.isfinite(time):
        raise StateError(f"time must be a finite number [s], not {given!r}.")
    return time


# states of a cell: that at home, those of users, and what follows from a state


def home(cell: Workcell) -> State:
    """Return the state in which a cell starts, with joints at `home_q`."""
    return kept(cell, "home", lambda: State(q=cell.home_q).bound(cell))


def branch_of(state: State) -> Branch | None:
    """Return the branch of the loops of a state, None without loops."""
    if not state.passive.size:
        return None
    with IMPORT_LOCK:
        from armillary.kinematics.closing.branches import Branches

    return Branches.of(state.cell).named(state.positions.tolist())[1]


def rates_of(state: State) -> npt.NDArray[np.float64]:
    """Return the rates of all joints, shape (n,) [m/s or rad/s]; 0 where none are.

    It is read-only where the state has rates.
    """
    return state.qd if state.qd.size else np.zeros(len(state.q))


def bound_state(cell: Workcell, state: Any) -> State:
    """Return a state that came from elsewhere as one of a cell.

    Raises:
        StateError: It is not a `State`, or has other joints.
        UnknownName: It names a manipulator or frame that is not in the cell.
    """
    if not isinstance(state, State):
        raise StateError(
            f"Here a State is needed, not {quote(state)}; cell.home is one, and "
            "cell.home.replace(q=q) one with joints at q."
        )
    return state.bound(cell)
