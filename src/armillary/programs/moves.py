"""The motion that each step of a program with a target leads to."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CheckOptions, CollisionCheck, check_of
from armillary.errors import ModelError, quote
from armillary.ik.reason import Reason
from armillary.kinematics.postures import in_posture
from armillary.model.fields import kept
from armillary.model.mount import WORLD
from armillary.planning.cartesian_path import Tool
from armillary.planning.planner import planner
from armillary.planning.tool_curve import Blend, ToolCurve, curve_through
from armillary.programs.asked import AskedAnything, AskedLine, AskedPose, Asking
from armillary.programs.ending import Impossible, RunReason
from armillary.programs.following import FollowedWay
from armillary.programs.meeting import meet, stop_at
from armillary.programs.mover import LIMIT_ROUNDING, Mover, rests
from armillary.programs.steps import PTP, JointMotion, Linear, Planned
from armillary.programs.tracks import Move, Track
from armillary.programs.world import RunLimits, World
from armillary.spatial.pose import Pose, pose_of_matrix
from armillary.trajectories.kept_limits import slowed
from armillary.trajectories.motion import Motion
from armillary.trajectories.straight import straight_motion
from armillary.trajectories.time_path import time_path

__all__ = ["Following", "Moves"]

Array = npt.NDArray[np.float64]
Made = TypeVar("Made")

ROUGHLY: Final = 2.0**-12
"""To what positions are rounded that solvers of poses start from [m or rad]."""

SAME_ANSWER: Final = 1e-6
"""Answers to a pose that are so near to each other are one [m or rad]."""

MOST_KEPT: Final = 20_000
"""Motions that a cell keeps for further runs."""

HOLD: Final = 0.5
"""How long a robot that follows a frame is computed ahead while it waits [s]."""


@dataclass(eq=False)
class Following:
    """A robot that follows a frame which moves by itself.

    Attributes:
        frame: The frame that it follows.
        tool: The frame of the robot that does.
        way: Where the tool is relative to it; None while it is still to be met.
        meeting: Returns the motion that meets the frame from now on; None afterwards.
    """

    frame: str
    tool: str
    way: FollowedWay | None
    meeting: Callable[[], Motion] | None = None

    def go_on_with(self, frame: str, world: World) -> None:
        """Follow another frame from now on, as if it carried the one before."""
        offset = np.linalg.solve(*world.poses_of(frame, self.frame))
        self.frame = frame
        if self.way is not None:
            self.way.key = self.way.key, frame, offset.tobytes()

            def poses(times: Array) -> Array:
                return np.asarray(world.frame_poses(frame, times) @ offset)

            self.way.frame = poses


@dataclass(eq=False)
class Moves:
    """Makes the motions of a run.

    Attributes:
        world: Where everything is.
        limits: Of joints.
        check: What must not touch where motions are planned; None for the cell's own
            check, made when it is needed.
        options: What that check is made with.
    """

    world: World
    limits: RunLimits
    check: CollisionCheck | None
    options: CheckOptions

    def mover(self, track: Track, frame: str, acceleration: float = 1.0) -> Mover:
        """Return what moves a frame, if one is named, within limits."""
        solver = self.world.solver(frame, track) if frame else None
        joints, limits = track.joints, self.limits
        return Mover(
            solver,
            limits.position[:, joints],
            limits.velocity[:, joints],
            limits.accelerations(joints) * acceleration,
            self.world.coupled_rows(track),
        )

    def ptp(
        self, step: PTP, track: Track
    ) -> Asking[tuple[list[Move], Following | None]]:
        """Return the motions of a step, and what is followed after them.

        It yields what it asks for, as `linear` does.

        Raises:
            Impossible: A target is not reached.
        """
        world = self.world
        if any(isinstance(to, Pose) for to in step.to) and world.moves(
            step.relative_to, track
        ):
            return self._meeting(step, track)
        values = track.at(world.time)
        key = (
            *("ptp", step, track.joints.tobytes()),
            *(part.tobytes() for part in values),
            world.surroundings(
                *filter(None, (step.frame, step.relative_to)), but=track
            ),
            *(self.limits.key, world.coupled(track)),
        )
        moves = yield from self._kept_answer(key, lambda: self._ptp(step, track))
        return list(moves), None

    def _ptp(self, step: PTP, track: Track) -> Asking[tuple[Move, ...]]:
        """Return the motions of a step to what stands still."""
        mover = self._slower(self.mover(track, step.frame, step.acceleration), step)
        values = track.at(self.world.time)
        targets = yield from self._targets(step, track, mover)
        moves: list[Move] = []
        if not rests(values):
            moves.append(Move(stop_at(mover, values, targets[0]), targets[0]))
        elif step.blend and len(targets) > 1:
            motion = self._blended(step, track, mover, [values.q, *targets])
            return (Move(motion, targets[-1]),)
        else:
            targets = [np.asarray(values.q), *targets]
        for q0, q1 in pairwise(targets):
            arrays = straight_motion(q0, q1, mover.velocity, mover.acceleration)
            if arrays is not None:
                moves.append(Move(Motion(**arrays._asdict(), joint_names=()), q1))
        return tuple(moves)

    def _slower(self, mover: Mover, step: JointMotion) -> Mover:
        return mover._replace(velocity=mover.velocity * step.speed)

    def _blended(
        self, step: PTP, track: Track, mover: Mover, way: list[Array]
    ) -> Motion:
        motion = time_path(
            self.world.cell,
            np.stack(way),
            blend=step.blend,
            velocity=(mover.velocity[0], mover.velocity[1]),
            acceleration=(mover.acceleration[0], mover.acceleration[1]),
            joints=self.world.names(track),
        ).motion()
        return slowed([motion], mover.velocity, mover.acceleration)[0]

    def _meeting(self, step: PTP, track: Track) -> tuple[list[Move], Following]:
        """Return the motion that ends at a pose of a frame that moves."""
        (to,) = step.to if len(step.to) == 1 else (None,)
        if not isinstance(to, Pose):
            raise Impossible(
                RunReason.OUTRUN,
                f"{quote(step.relative_to)} moves: give its poses one step each",
            )
        mover = self._slower(self.mover(track, step.frame, step.acceleration), step)
        X = np.asarray(to.matrix(), np.float64)
        world = self.world

        def meeting() -> Motion:
            now = world.time
            values = track.at(now)
            key = (
                *("meeting", step, track.joints.tobytes(), mover.limits),
                *(now, *(part.tobytes() for part in values), world.coupled(track)),
                world.ways(step.frame, step.relative_to, but=track),
            )

            def poses(times: Array) -> Array:
                return np.asarray(
                    world.frame_poses(step.relative_to, now + times) @ X, np.float64
                )

            return self._kept(key, lambda: meet(mover, values, poses))

        motion = meeting()
        following = Following(step.relative_to, step.frame, None, meeting)
        following.way = FollowedWay(
            mover,
            lambda times: world.frame_poses(step.relative_to, times),
            world.time,
            lambda s: np.broadcast_to(X, (len(s), 4, 4)),
            0.0,
            key=("at", step.frame, X.tobytes()),
            speed=math.inf,
            acceleration=math.inf,
        )
        return [Move(motion)], following

    def linear(
        self, step: Linear, track: Track, following: Following | None
    ) -> Asking[tuple[list[Move], Following | None]]:
        """Return the motions of a step along lines and arcs, as `ptp` does.

        Raises:
            Impossible: The way is not followed to its end.
        """
        world = self.world
        values = track.at(world.time)
        frame = step.relative_to
        # However slow the frame is: rates alone do not tell whether it is followed.
        if following is not None and (
            not rests(values) or world.moves(following.frame, track)
        ):
            # What the tool carries, it moves relative to what it follows; what that
            # carries, such as a part on a conveyor, moves as it does.
            names = {world.cell.qualified(each) for each in (following.frame, frame)}
            if len(names) == 1 or any(
                world.carries(each, frame) for each in (step.frame, following.frame)
            ):
                return self._along(step, track, following.frame)
        if world.moves(frame, track):
            raise Impossible(
                RunReason.OUTRUN,
                f"{quote(frame)} moves, and the robot does not follow it: a PTP to a "
                "pose relative to it comes before lines",
            )
        if not rests(values):
            raise Impossible(
                RunReason.OUTRUN,
                "the robot follows a frame, and a line relative to another begins at "
                "rest: a PTP comes before it",
            )
        key = (
            *("line", step, track.joints.tobytes(), values.q.tobytes()),
            world.surroundings(step.frame, frame, but=track),
            *(self.limits.key, world.coupled(track)),
        )
        motion = yield from self._kept_answer(
            key, lambda: self._found(self._line(key, step, track, values.q))
        )
        return [Move(motion)], None

    def _line(self, key: Hashable, step: Linear, track: Track, q: Array) -> AskedLine:
        world = self.world
        mover = self.mover(track, "", step.acceleration)
        segments, frame = step.to, step.relative_to
        _, joints = world.chain(frame)
        if joints.isdisjoint(track.joints.tolist()) or world.carries(step.frame, frame):
            # It stands still: one solver in the world serves wherever it is.
            X = pose_of_matrix(world.pose(frame))
            segments, frame = tuple(each.placed(X) for each in segments), WORLD
        solver = world.solver(step.frame, track, frame)
        return AskedLine(
            key,
            solver,
            lambda: Tool(world.cell, step.frame, frame, solver.joints, world.now()),
            [segment.as_given for segment in segments],
            q,
            step.blend,
            (step.speed or math.inf, step.tool_acceleration or math.inf),
            mover.velocity,
            mover.acceleration,
        )

    def _along(
        self, step: Linear, track: Track, followed: str
    ) -> tuple[list[Move], Following | None]:
        """Return the first motion along a way in a frame that moves.

        followed: The frame that is followed; that of the step stays where it is in it.
        """
        world = self.world
        mover = self.mover(track, step.frame, step.acceleration)
        F, R, X = world.poses_of(followed, step.relative_to, step.frame)
        first = np.asarray(np.linalg.solve(R, X), np.float64)
        R_F = np.linalg.solve(F, R)
        where = step, first.tobytes(), R_F.tobytes()
        curve = self._kept(("curve", *where), lambda: _curve(step, first, followed))
        way = FollowedWay(
            mover,
            lambda times: world.frame_poses(followed, times),
            world.time,
            lambda s: np.asarray(R_F @ curve.points(s).pose),
            curve.length,
            key=("along", world.time, *where),
            speed=step.speed or math.inf,
            acceleration=step.tool_acceleration or math.inf,
        )
        values = track.at(world.time)
        key = self._key_of_way(way, followed, track, step.frame, step.relative_to)
        motion = self._kept(key, lambda: way.slowed(values))
        way.duration = motion.duration
        return [Move(motion)], Following(followed, step.frame, way)

    def followed(self, following: Following, track: Track, end: float) -> Motion | None:
        """Return the motion that follows a frame from now on, to an instant.

        None where nothing is followed, or it moves no more.

        Raises:
            Impossible: It is too fast, or leads to where the robot does not reach.
        """
        world, way, frame = self.world, following.way, following.frame
        if way is None or not world.moves(frame, track):
            return None

        def make() -> Motion:
            motion, excess = way.motion(track.at(world.time), world.time, end)
            if excess > 1.0 + LIMIT_ROUNDING:
                raise Impossible(
                    RunReason.OUTRUN,
                    f"{quote(frame)} moves, or changes its speed, faster than the "
                    "robot can follow; Drive(acceleration=) changes speeds slowly",
                )
            return motion

        key = self._key_of_way(way, frame, track, following.tool)
        key = *key, way.begin, way.duration, end
        return self._kept(key, make)

    def _key_of_way(
        self, way: FollowedWay, frame: str, track: Track, *others: str
    ) -> tuple[Hashable, ...]:
        """Return what decides the motion along a way that a frame carries, from now on.

        others: Further frames that count.
        """
        world = self.world
        return (
            *(way.key, frame, track.joints.tobytes(), way.mover.limits, world.time),
            *(part.tobytes() for part in track.at(world.time)),
            *(world.coupled(track), world.ways(frame, *others, but=track)),
        )

    def planned(self, step: Planned, track: Track) -> Asking[tuple[list[Move], None]]:
        """Return the motion along a way that touches nothing.

        Raises:
            Impossible: No way is found, or the robot does not rest.
        """
        world = self.world
        values = track.at(world.time)
        if world.moves(step.relative_to, track) or not rests(values):
            raise Impossible(
                RunReason.OUTRUN,
                "a way is planned from rest, to what stands still; use PTP to meet or "
                "leave a frame that moves",
            )
        state = world.now()
        key = (
            *("planned", step, track.joints.tobytes()),
            *(state.q.tobytes(), state.placements, self._key_of_check()),
            *(self.limits.key, world.branch),
        )
        motion = yield from self._kept_answer(key, lambda: self._plan(step, track))
        return [Move(motion)], None

    def _plan(self, step: Planned, track: Track) -> Asking[Motion]:
        world = self.world
        state = world.now().replace(qd=np.zeros(len(world.state.q)), time=0.0)
        mover = self._slower(self.mover(track, step.frame, step.acceleration), step)
        check = self.check_of(step.margin)
        (to,) = step.to
        if isinstance(to, Pose):
            (R,) = world.frame_poses(step.relative_to, np.array([world.time]))
            goal: Any = R @ np.asarray(to.matrix(), np.float64)
        else:
            goal = np.array(state.q)
            goal[track.joints] = (yield from self._targets(step, track, mover))[0]
        own = set(track.joints.tolist())
        names = world.cell.joint_names
        plan = planner(world.cell, check)(
            np.asarray(state.q),
            goal,
            seed=step.seed,
            timeout=None,
            fixed=[name for k, name in enumerate(names) if k not in own],
            frame=step.frame or None,
        )
        if not plan.success:
            raise Impossible(RunReason.NO_WAY, f"{plan!r}".strip("<>"))
        rates, greatest = _wide(self.limits, track, mover)
        motion = plan.timed(
            blend=step.blend,
            velocity=(rates[0], rates[1]),
            acceleration=(greatest[0], greatest[1]),
        )
        motion = _of_joints(motion, track.joints)
        return slowed([motion], mover.velocity, mover.acceleration)[0]

    def check_of(self, margin: float = 0.0) -> CollisionCheck:
        """Return the check of the present state."""
        state = self.world.now().replace(time=0.0)
        if self.check is None:
            options = self.options._replace(margin=margin)
            return check_of(self.world.cell, state, options)
        options = self.check.options
        options = options._replace(margin=max(margin, options.margin))
        return check_of(self.world.cell, state, options, self.check.obstacles)

    def _targets(
        self, step: JointMotion, track: Track, mover: Mover
    ) -> Asking[list[Array]]:
        """Return the joint positions of targets, shape (n,) each.

        Raises:
            Impossible: A pose is not reached.
            ModelError: There are more or fewer positions than joints.
        """
        world, near = self.world, np.asarray(track.at(self.world.time).q)
        n, found = len(track.joints), list[Array]()
        for to in step.to:
            if isinstance(to, str):
                q = np.asarray(in_posture(world.now(), to).q)[track.joints]
            elif isinstance(to, Pose):
                q = yield from self._reached(step, to, track, mover, near)
            else:
                q = np.array(to, np.float64)
                if len(q) != n:
                    names = ", ".join(world.names(track))
                    raise ModelError(
                        f"a target has {len(q)} joint positions, and the task moves "
                        f"{n} joints: {names or 'none'}."
                    )
            lower, upper = mover.position
            if (q < lower - 1e-9).any() or (q > upper + 1e-9).any():
                k = int(np.argmax(np.maximum(lower - q, q - upper)))
                raise Impossible(
                    RunReason.LIMITS,
                    f"the target {q[k]:.6g} of "
                    f"{quote(world.names(track)[k])} is beyond its "
                    f"limits, {lower[k]:.6g} to {upper[k]:.6g}",
                )
            found.append(q)
            near = q
        return found

    def _reached(
        self, step: JointMotion, to: Pose, track: Track, mover: Mover, near: Array
    ) -> Asking[Array]:
        world = self.world
        (R,) = world.frame_poses(step.relative_to, np.array([world.time]))
        X = np.asarray(R @ np.asarray(to.matrix(), np.float64))
        solver = mover.solver
        assert solver is not None
        key = (
            *("pose", step.frame, track.joints.tobytes(), X.tobytes()),
            *(world.surroundings(step.frame, but=track), world.coupled(track)),
        )

        def ask(near: Array) -> AskedPose:
            return AskedPose((*key, near.tobytes()), solver, X, near)

        answer = yield from self._found(ask(near))
        if not answer.success:
            reason = Reason(answer.reason)
            raise Impossible(
                RunReason(int(reason)),
                f"the pose of {quote(step.frame)} relative to "
                f"{quote(step.relative_to)}: {reason.sentence}",
            )
        if solver.numeric.problem.is_redundant:
            return np.asarray(answer.q)
        # The same answer to a pose, to the bit, wherever the joints come from: solvers
        # end within a tolerance, so that an answer depends on their start, and lines
        # from the same pose would not be the same, and could not be kept.
        q: Array = answer.q
        rough = np.round(q / ROUGHLY) * ROUGHLY + 0.0  # no negative zeros
        again = yield from self._kept_answer(
            (*key, rough.tobytes()), lambda: self._found(ask(rough))
        )
        is_same = bool(np.abs(again.q - q).max() < SAME_ANSWER)  # NaN: none is found
        return again.q if is_same else q

    def _kept_answer(
        self, key: Hashable, make: Callable[[], Asking[Made]]
    ) -> Asking[Made]:
        """Return what is made by asking, which the cell keeps for further runs.

        Args:
            key: What decides it.
            make: Makes it, where it is not known.

        Raises:
            Impossible: There is no such motion.
            ArmillaryError: What is asked for is wrong.
        """
        made: Any = self._known.get(key)
        if made is None:
            found = yield from make()
            made = self._kept(key, lambda: found)
        return made

    def _found(self, asked: AskedAnything) -> Asking[Any]:
        """Return what is asked for, or raise why it is not found."""
        yield asked
        if isinstance(asked.found, Exception):
            raise asked.found
        return asked.found

    @cached_property
    def _known(self) -> dict[Hashable, Any]:
        """Return what the cell keeps."""
        return kept(self.world.cell, "motions of programs", dict[Hashable, Any])

    def _key_of_check(self) -> Hashable:
        check = self.check
        return self.options if check is None else (check.options, check.obstacles)

    def _kept(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return a motion, or a curve, that the cell keeps for further runs."""
        known = self._known
        made = known.get(key)
        if made is None:
            made = make()
            if len(known) >= MOST_KEPT:
                known.clear()
            known[key] = made
        return made


def _curve(step: Linear, first: Array, followed: str) -> ToolCurve:
    """Return the curve of a step in a frame that moves.

    Args:
        step: The step.
        first: Where it begins, in `relative_to`, shape (4, 4).
        followed: The frame that the robot follows.

    Raises:
        Impossible: The tool has to stop at a corner.
    """
    names = [f"Target {k}" for k in range(len(step.to))]
    blend = Blend(step.blend, None)
    curve = curve_through(first, [each.as_given for each in step.to], names, blend)
    if curve.sharp[:-1].any():
        raise Impossible(
            RunReason.OUTRUN,
            f"{quote(followed)} moves: a way with corners is given one step a "
            "corner, or with blend=",
        )
    return curve


def _of_joints(motion: Motion, joints: Any = slice(None)) -> Motion:
    """Return the motion of some joints of one, without its state.

    joints: Their places in the motion, shape (k,); by default all.
    """
    return Motion(
        times=motion.times,
        law=motion.law,
        curve=motion.curve[:, :, joints],
        piece=motion.piece,
        joint_names=(),
    )


def _wide(limits: RunLimits, track: Track, mover: Mover) -> tuple[Array, Array]:
    """Return limits of rates and accelerations of all joints; others do not move."""
    n = limits.velocity.shape[1]
    rates, greatest = np.ones((2, n)), np.ones((2, n))
    rates[0], greatest[0] = -1.0, -1.0
    rates[:, track.joints] = mover.velocity
    greatest[:, track.joints] = mover.acceleration
    return rates, greatest
