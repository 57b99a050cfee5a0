"""A cell while a program runs: where everything is, as far as that is decided."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property
from itertools import takewhile
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, StateError, quote
from armillary.ik.factory import solver_of
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.kinematics.bound_kernel import AnyKernel
from armillary.kinematics.closing.branch import Branch
from armillary.kinematics.moving_links import moving_links
from armillary.kinematics.placement import Placement
from armillary.kinematics.questions import fk
from armillary.kinematics.state import State, branch_of
from armillary.model.fields import kept
from armillary.model.frame import FrameRef
from armillary.model.limit_rows import LimitRows
from armillary.model.mount import WORLD
from armillary.model.workcell import Workcell
from armillary.programs.ending import Impossible, RunReason
from armillary.programs.tracks import JointValues, Track, TrackPiece, values_at
from armillary.spatial.pose import Pose
from armillary.trajectories.limits import acceleration_limits, velocity_limits
from armillary.trajectories.motion import Motion

__all__ = ["World", "absent_pose"]

Array = npt.NDArray[np.float64]

AWAY: Final = -1000.0
APART: Final = 10.0
"""The height at which absent parts are, and how far they are apart [m]."""


def absent_pose(cell: Workcell, part: str) -> Pose:
    """Return where an absent part is: far below, apart from all others."""
    return Pose.translation(APART * cell.number(part), 0.0, AWAY)


class _Carrier(NamedTuple):
    """What gives the poses of a place on a link.

    Attributes:
        kernel: Poses of the link that joints move, None where none does.
        offset: The pose of the place on that link, or in the world, shape (4, 4).
        names: The manipulators that carry it.
    """

    kernel: AnyKernel | None
    offset: Array
    names: set[str]


class _Chain(NamedTuple):
    """What carries frames.

    Attributes:
        names: The manipulators that carry them.
        joints: The joints that move these.
        placed: Where states place bases of these.
        others: Places of these joints apart from those of a track, by its name.
    """

    names: set[str]
    joints: set[int]
    placed: tuple[Placement, ...]
    others: dict[str, list[int]]


class World:
    """What is known of a cell during a run, up to an instant and on from there.

    Attributes:
        cell: The cell.
        state: Attachments and bases at `time`; its q is that of the last change.
        time: The present instant [s].
        tasks: Names of tasks; other tracks are those of joints that are driven.
        tracks: How joints move, by the name of the task or the joint that is driven.
        gripped: Parts that are gripped, and by which frame.
        absent: Parts that are not there.
        changes: The instants at which attachments changed, and the states after them.
    """

    def __init__(
        self, state: State, absent: Iterable[str], tasks: Iterable[str]
    ) -> None:
        """Begin in a state, without parts that are absent.

        Args:
            state: The state.
            absent: Names of parts.
            tasks: Names of the tasks of the program.

        Raises:
            StateError: A part that is absent is attached or cannot be moved.
            UnknownName: It does not exist.
        """
        self.cell = state.cell
        self.time = 0.0
        cell = self.cell
        links = cell.joints.links[: len(cell.joint_names)]
        self._owners = [cell.owners[link] for link in links]
        self.tasks = frozenset(tasks)
        self.tracks: dict[str, Track] = {}
        self._carriers: dict[FrameRef, _Carrier] = {}
        # Of the whole run: all its states are on one branch of closed loops.
        self._kernels: dict[Hashable, AnyKernel] = {}
        self._solvers: dict[Hashable, InverseKinematics] = {}
        self._now = (0.0, b"", state)
        self._values = (-1.0, 0), values_at([], state.q, 0.0)
        self._chains: dict[tuple[str, ...], _Chain] = {}
        self._coupled: dict[str, list[int]] = {}
        self.gripped: dict[str, str] = {}
        self.absent = set(absent)
        places = {part: absent_pose(self.cell, part) for part in sorted(self.absent)}
        state = state.place_all(places) if places else state
        self.state = state.replace(qd=np.zeros(len(state.q)), time=0.0)
        self.changes: list[tuple[float, State]] = [(0.0, self.state)]

    def values(self, time: float) -> JointValues:
        """Return positions, rates and accelerations of all joints, shape (N,).

        Arrays are read-only. The values of the last instant are kept.
        """
        tracks = self.tracks.values()
        key = time, sum([track.changes for track in tracks])
        known, values = self._values
        if known != key:
            values = values_at(list(tracks), self.changes[0][1].q, time)
            for part in values:
                part.flags.writeable = False
            self._values = key, values
        return values

    def names(self, track: Track) -> list[str]:
        """Return the names of the joints of a track."""
        names = self.cell.joint_names
        return [names[k] for k in track.joints.tolist()]

    def now(self) -> State:
        """Return the state at the present instant."""
        values = self.values(self.time)
        key = values.q.tobytes() + values.qd.tobytes()
        time, known, state = self._now
        if time != self.time or known != key or state.tree is not self.state.tree:
            state = self.state.replace(q=values.q, qd=values.qd, time=self.time)
            self._now = self.time, key, state
        return state

    def change(self, state: State) -> None:
        """Take over attachments and bases that change now."""
        before = {each.manipulator: each for each in self.state.placements}
        changed = {
            each.manipulator
            for each in state.placements
            if before.pop(each.manipulator, None) is not each
        }
        changed |= set(before)
        self.state = state
        # What nothing that changed carries stays as it is known.
        self._chains = {
            frames: chain
            for frames, chain in self._chains.items()
            if changed.isdisjoint(chain.names)
        }
        self._carriers = {
            at: carrier
            for at, carrier in self._carriers.items()
            if changed.isdisjoint(carrier.names)
        }
        self.changes.append((self.time, state))

    @cached_property
    def branch(self) -> Branch | None:
        """Return on which loops are closed during the run; None without loops."""
        return branch_of(self.state)

    @property
    def version(self) -> Hashable:
        """Return what changes where motions or attachments do."""
        return len(self.changes), sum([each.changes for each in self.tracks.values()])

    def chain(self, *frames: str) -> tuple[set[str], set[int]]:
        """Return the manipulators that carry frames, and the joints that move them."""
        chain = self._known_chain(frames)
        return chain.names, chain.joints

    def placed(self, *frames: str) -> tuple[Placement, ...]:
        """Return where states place the bases of manipulators that carry frames."""
        return self._known_chain(frames).placed

    def _known_chain(self, frames: tuple[str, ...]) -> _Chain:
        known = self._chains.get(frames)
        if known is None:
            known = self._chains[frames] = self._chain(frames)
        return known

    def _chain(self, frames: tuple[str, ...]) -> _Chain:
        cell, bases = self.cell, self.state.tree.bases
        looped = kept(cell, "ends of loops by manipulators", lambda: _looped(cell))
        names: set[str] = set()
        waiting = [cell.qualified(frame) for frame in frames if frame != WORLD]
        while waiting:
            name = waiting.pop().partition("/")[0]
            if name == WORLD or name in names:
                continue
            names.add(name)
            on = bases[cell.number(name)].on
            if on != WORLD:
                waiting.append(on)
            waiting += looped.get(name, ())
        numbers = {cell.number(name) for name in names}
        joints = {k for k, owner in enumerate(self._owners) if owner in numbers}
        placed = tuple(p for p in self.state.placements if p.manipulator in names)
        return _Chain(names, joints, placed, {})

    def is_tool(self, frame: str) -> bool:
        """Return whether the joints of a task move a frame."""
        _, joints = self.chain(frame)
        return any(
            name in self.tasks and not joints.isdisjoint(track.places)
            for name, track in self.tracks.items()
        )

    def carries(self, frame: str, other: str) -> bool:
        """Return whether one frame carries another, rigidly, as joints move it."""
        moving, tree = moving_links(self.cell), self.state.tree
        row, at = (
            moving.fixed_to(tree, self.cell.frame(name).link).row
            for name in (frame, other)
        )
        return row == at != 0

    def moves(self, frame: str, but: Track) -> bool:
        """Return whether joints of other tracks move a frame, from now on."""
        if frame == WORLD:
            return False
        _, joints = self.chain(frame)
        return any(
            track.moves(self.time) and not joints.isdisjoint(track.places)
            for track in self.tracks.values()
            if track is not but
        )

    def frame_poses(self, frame: str, times: Array) -> Array:
        """Return the poses of a frame in the world at instants, shape (k, 4, 4).

        times: Instants that ascend [s], shape (k,).
        """
        if frame == WORLD:
            return np.broadcast_to(np.eye(4), (len(times), 4, 4))
        X = self.poses_at(self.cell.frame(frame), self.samples(times, frame))
        return X if X.ndim > 2 else np.broadcast_to(X, (len(times), 4, 4))

    def samples(self, times: Array, *frames: str) -> Array:
        """Return the positions of joints that move frames, at instants, shape (k, N).

        Args:
            times: Instants that ascend [s], shape (k,).
            frames: The frames; joints that do not move them are where they began.
        """
        q = self.changes[0][1].q[None].repeat(len(times), axis=0)
        _, joints = self.chain(*frames)
        for track in self.tracks.values():
            if track.pieces and not joints.isdisjoint(track.places):
                q[:, track.joints] = track.samples(times).q
        return q

    def pose(self, frame: str) -> Array:
        """Return the pose of a frame in the world at the present instant, (4, 4)."""
        (X,) = self.poses_of(frame)
        return X

    def poses_of(self, *frames: str) -> list[Array]:
        """Return the poses of frames in the world at the present instant."""
        q = self.values(self.time).q
        return [self.poses_at(self.cell.frame(frame), q) for frame in frames]

    def poses_at(self, at: FrameRef, q: Array) -> Array:
        """Return poses of a place on a link in the world, as attachments are now.

        Only loops that move the link are closed: a part on a conveyor costs as much
        beside a robot with loops as without.

        Args:
            at: The place.
            q: Joint positions, shape (..., N).

        Returns:
            Shape (..., 4, 4), or (4, 4) where no joint moves it.
        """
        kernel, offset, _ = self._carrier(at)
        return offset if kernel is None else np.asarray(kernel(q) @ offset)

    def _carrier(self, at: FrameRef) -> _Carrier:
        """Return the poses of the link that joints move, and the place on that."""
        known = self._carriers.get(at)
        if known is not None:
            return known
        moving, tree = moving_links(self.cell), self.state.tree
        fixed = moving.fixed_to(tree, at.link)
        offset = (fixed.pose @ at.pose).matrix()
        kernel, link = None, moving.links[fixed.row]
        names, _ = self.chain(WORLD if at.link < 0 else tree.name(at.link))
        if link >= 0:
            name = tree.name(link)
            key = name, self.placed(name)
            kernel = self._kernels.get(key)
            if kernel is None:
                kernel = fk(self.cell, name, relative_to=WORLD, state=self.state)
                self._kernels[key] = kernel
        made = self._carriers[at] = _Carrier(kernel, offset, names)
        return made

    def be_there(self, *frames: str) -> None:
        """Refuse frames of parts that are absent.

        Raises:
            Impossible: One is.
        """
        for frame in frames:
            name = self.cell.qualified(frame).partition("/")[0] if frame else WORLD
            if name in self.absent:
                raise Impossible(
                    RunReason.NOT_THERE,
                    f"{quote(frame)} is on {quote(name)}, which is absent",
                )

    def surroundings(self, *frames: str, but: Track | None) -> Hashable:
        """Return what decides where frames are now, apart from the joints of a track.

        Args:
            frames: The frames.
            but: The track, if there is one.
        """
        chain = self._known_chain(frames)
        track = but.name if but else ""
        others = chain.others.get(track)
        if others is None:
            own = but.places if but else ()
            others = chain.others[track] = sorted(chain.joints.difference(own))
        where = self.values(self.time).q[others].tobytes() if others else b""
        return chain.placed, where, self.branch

    def ways(self, *frames: str, but: Track | None) -> Hashable:
        """Return what decides how frames move from now on, likewise."""
        _, joints = self.chain(*frames)
        moving = [
            (each.joints.tobytes(), piece.start, piece.end, *_numbers_of(piece.motion))
            for each in self.tracks.values()
            if each.end > self.time
            and each is not but
            and not joints.isdisjoint(each.places)
            for piece in takewhile(self._is_ahead, reversed(each.pieces))
        ]
        return self.surroundings(*frames, but=but), *moving

    def _is_ahead(self, piece: TrackPiece) -> bool:
        return piece.end > self.time

    def coupled(self, track: Track) -> bytes:
        """Return where joints are now whose limits are coupled with those of a task."""
        coupled = self._coupled.get(track.name)
        if coupled is None:
            coupled = list(self.cell.limit_rows.others(track.joints.tolist()))
            self._coupled[track.name] = coupled
        return self.values(self.time).q[coupled].tobytes() if coupled else b""

    def coupled_rows(self, track: Track) -> LimitRows | None:
        """Return limits that couple the joints of a task, None where there are none."""
        rows = self.cell.limit_rows
        if not len(rows):
            return None
        found = rows.of_joints(track.joints.tolist(), self.values(self.time).q)
        return found if len(found) else None

    def solver(
        self, frame: str, track: Track, relative_to: str = WORLD
    ) -> InverseKinematics:
        """Return the solver of poses of a frame by the joints of a task.

        Args:
            frame: The frame.
            track: The motions of the task.
            relative_to: In what poses are given.

        Raises:
            ModelError: The joints do not move the frame.
            UnknownName: It does not exist.
        """
        key = (
            *(frame, relative_to, track.name, self.coupled(track)),
            self.surroundings(frame, relative_to, but=track),
        )
        solver = self._solvers.get(key)
        if solver is None:
            self._be_moved(frame, relative_to, track)
            names, state = self.names(track), self.now()
            solver = solver_of(
                self.cell, frame, relative_to=relative_to, joints=names, state=state
            )
            self._solvers[key] = solver
        return solver

    def _be_moved(self, frame: str, relative_to: str, track: Track) -> None:
        """Refuse a frame that no joint of a task moves, nor what its poses are in.

        Raises:
            ModelError: None does.
            UnknownName: The frame does not exist.
        """
        _, joints = self.chain(frame, relative_to)
        if joints.isdisjoint(track.places):
            raise ModelError(
                f"no joint of the task {quote(track.name)} moves {quote(frame)}. Its "
                f"joints are {', '.join(self.names(track)) or 'none'}; a part is moved "
                "after a Grip."
            )

    def part(self, name: str) -> str:
        """Return the name of a part, a manipulator whose base may be moved.

        Raises:
            StateError: Its base is fixed.
            UnknownName: It does not exist.
        """
        k = self.cell.number(name)
        if self.state.tree.bases[k].mode == "fixed":
            raise StateError(
                f"{quote(name)} is mounted with bolted=True, so that it cannot be "
                f"moved: Mount(manipulator={quote(name)}, bolted=False) lets it."
            )
        return name


class RunLimits:
    """Limits of rates and accelerations of all joints of a cell.

    Attributes:
        position: Least and greatest positions [m or rad], shape (2, N).
        velocity: Least and greatest rates, shape (2, N).
        acceleration: Least and greatest accelerations, shape (2, N); infinite where
            nothing is known.
    """

    def __init__(self, cell: Workcell, velocity: Any, acceleration: Any) -> None:
        """Take those of the model, or others by the names of joints.

        Args:
            cell: The cell.
            velocity: None, a number, or numbers by the names of joints: for joints
                that have no limit in the model.
            acceleration: Likewise.

        Raises:
            ModelError: A number is not above 0.
            UnknownName: A joint does not exist.
        """
        joints = range(len(cell.joint_names))
        self.cell = cell
        self._accelerations: dict[bytes, Array] = {}
        self.position = np.stack(cell.limits)
        self.velocity = velocity_limits(cell, joints, None)
        self.acceleration = acceleration_limits(cell, joints, None, is_needed=False)
        for name, given, limits in (
            ("velocity", velocity, self.velocity),
            ("acceleration", acceleration, self.acceleration),
        ):
            if not isinstance(given, Mapping):
                if given is not None:
                    free = np.isinf(limits[1])
                    limits[0, free] = -_positive(name, given)
                    limits[1, free] = -limits[0, free]
                continue
            for joint, value in cast("Mapping[str, Any]", given).items():
                k = cell.joint(joint)
                limits[:, k] = -_positive(name, value), _positive(name, value)

    @cached_property
    def key(self) -> bytes:
        """Return what tells limits apart."""
        limits = self.position, self.velocity, self.acceleration
        return b"".join(each.tobytes() for each in limits)

    def accelerations(self, joints: npt.NDArray[np.int64]) -> Array:
        """Return those of some joints, shape (2, n).

        Raises:
            ModelError: One has none.
        """
        key = joints.tobytes()
        if key not in self._accelerations:
            lower, upper = self.acceleration[:, joints]
            is_known = np.isfinite(lower).all() and np.isfinite(upper).all()
            self._accelerations[key] = acceleration_limits(
                self.cell,
                joints.tolist(),
                (lower, upper) if is_known else None,
                is_needed=True,
            )
        return self._accelerations[key]


def _numbers_of(motion: Motion) -> tuple[bytes, ...]:
    """Return what decides a motion; bytes that are kept are hashed only once."""
    parts = motion.times, motion.law, motion.curve, motion.piece
    return kept(motion, "numbers", lambda: tuple(each.tobytes() for each in parts))


def _looped(cell: Workcell) -> dict[str, list[str]]:
    """Return what closes loops with each manipulator, and so moves it, too."""
    looped: dict[str, list[str]] = {}
    for loop in cell.loops:
        for end in (loop.a, loop.b):
            looped.setdefault(end.partition("/")[0], []).extend((loop.a, loop.b))
    return looped


def _positive(name: str, value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and value > 0.0):
        raise ModelError(f"{name}= is above 0, not {quote(value)}.")
    return float(value)
