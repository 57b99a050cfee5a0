"""Motions that meet a frame that moves by itself, and follow it.

A motion that meets it is a polynomial of degree 5 for each joint, from the positions,
rates and accelerations that joints have, to those with which the tool stands still
relative to the frame. Its duration is the least of a sequence at which limits hold.

A motion that follows it is sampled: the tool is at R(t) X(s(t)), where R is the pose of
the frame and X(s) a curve that is given relative to it, and

    s(t) = L (10 u^3 - 15 u^4 + 6 u^5),    u = t / T

whose first and second derivatives are 0 at both ends. Rates and accelerations of joints
are differences of the fourth order of inverse kinematics; between samples they are
polynomials of degree 5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.programs.ending import Impossible, RunReason
from armillary.programs.tracks import JointValues
from armillary.trajectories.motion import Motion

__all__ = ["FollowedWay", "Mover", "meet", "rests", "stop_at"]

Array = npt.NDArray[np.float64]
Poses = Callable[[Array], Array]
"""Poses (k, 4, 4) at instants (k,)."""

STEP: Final = 0.01
"""Between samples of a motion that follows a frame [s]."""

DIFFERENCE: Final = 2e-3
"""Between instants of which differences are taken where a motion meets a frame [s]."""

LONGEST: Final = 30.0
SHORTEST: Final = 1e-3
LONGER: Final = 1.1
BISECTIONS: Final = 16
"""Durations of motions that meet a frame [s]: the longest, the shortest, by how much
each that is tried is longer than the one before, and halvings of the last interval."""

SLACK: Final = 1e-6
"""By which part limits may be exceeded, as rounding of differences has it."""

STILL: Final = 1e-7
"""Rates and accelerations below this are those of joints at rest."""

FIRST: Final = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0
SECOND: Final = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / 12.0
"""Weights of the derivatives of five equidistant values."""

PEAK: Final = 1.875
BEND: Final = 5.7735026918962573
"""The greatest s' and s'' of the law above, for L = T = 1."""


class Mover(NamedTuple):
    """What moves a frame, and within which limits.

    Attributes:
        solver: Poses in the world to positions of the joints of a task.
        position: Least and greatest positions [m or rad], shape (2, n).
        velocity: Least and greatest rates, shape (2, n).
        acceleration: Least and greatest accelerations, shape (2, n).
    """

    solver: InverseKinematics | None
    position: Array
    velocity: Array
    acceleration: Array

    def excess(self, motion: Motion, times: Array) -> float:
        """Return the greatest ratio of what a motion needs to its limits.

        Of accelerations it is the square root, so that a motion that takes so many
        times as long is within its limits.
        """
        found = motion.at(times)
        most = 0.0
        for values, limits, root in (
            (found.qd, self.velocity, 1.0),
            (found.qdd, self.acceleration, 0.5),
        ):
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = np.maximum(values / limits[1], values / limits[0])
            ratios = np.where(np.abs(values) <= STILL, 0.0, ratios)
            most = max(most, float(ratios.max(initial=0.0)) ** root)
        return most

    def is_within(self, motion: Motion, times: Array) -> bool:
        """Return whether positions are within their limits at instants."""
        q = motion.at(times).q
        slack = 1e-9
        return bool(
            ((q >= self.position[0] - slack) & (q <= self.position[1] + slack)).all()
        )


def rests(values: JointValues) -> bool:
    """Return whether joints neither move nor begin to."""
    return bool(
        (np.abs(values.qd) <= STILL).all() and (np.abs(values.qdd) <= 1e-4).all()
    )


def stop_at(mover: Mover, values: JointValues, q: Array) -> Motion:
    """Return the motion from joints that move to positions at rest.

    Raises:
        Impossible: No duration keeps limits.
    """
    still = np.zeros(len(q))
    return _quickest(mover, values, lambda _: JointValues(q, still, still))


def meet(mover: Mover, values: JointValues, poses: Poses) -> Motion:
    """Return the motion with which a tool meets a pose that moves.

    Args:
        mover: What moves the tool.
        values: Where its joints are at the start.
        poses: The pose to meet at times after the start.

    Raises:
        Impossible: It is not reached, or moves faster than limits allow.
    """
    solver = mover.solver
    assert solver is not None

    def arrival(duration: float) -> JointValues | RunReason:
        times = duration + DIFFERENCE * np.arange(-2.0, 3.0)
        found = solver(poses(times), near=np.broadcast_to(values.q, (5, len(values.q))))
        if not found.success.all():
            return RunReason(int(found.reason[~found.success][0]))
        q = found.q
        jumps = np.abs(np.diff(q, axis=0)).max() > 0.1
        if jumps:
            return RunReason.JUMPS
        return JointValues(q[2], FIRST @ q / DIFFERENCE, SECOND @ q / DIFFERENCE**2)

    return _quickest(mover, values, arrival)


def _quickest(
    mover: Mover,
    values: JointValues,
    arrival: Callable[[float], JointValues | RunReason],
) -> Motion:
    reason = RunReason.OUTRUN
    parts = np.linspace(0.0, 1.0, 33)

    def tried(duration: float) -> Motion | None:
        nonlocal reason
        end = arrival(duration)
        if isinstance(end, RunReason):
            reason = end
            return None
        motion = Motion.through(
            [0.0, duration],
            np.stack([values.q, end.q]),
            np.stack([values.qd, end.qd]),
            np.stack([values.qdd, end.qdd]),
        )
        times = parts * duration
        if mover.excess(motion, times) > 1.0 + SLACK:
            reason = RunReason.OUTRUN
            return None
        if not mover.is_within(motion, times):
            reason = RunReason.LIMITS
            return None
        return motion

    duration, before, found = SHORTEST, 0.0, None
    while found is None:
        found = tried(duration)
        if found is None:
            before, duration = duration, duration * LONGER
            if duration > LONGEST:
                raise Impossible(reason, f"the motion: {reason.sentence}")
    for _ in range(BISECTIONS):
        middle = 0.5 * (before + duration)
        shorter = tried(middle)
        if shorter is None:
            before = middle
        else:
            duration, found = middle, shorter
    return found


class FollowedWay:
    """A way that is given relative to a frame that moves.

    Attributes:
        mover: What moves the tool.
        begin: When it begins [s], on the time axis of the run.
        duration: How long the way takes [s]; after it the tool stays at its end.
    """

    def __init__(
        self,
        mover: Mover,
        frame: Poses,
        begin: float,
        way: Callable[[Array], Array],
        length: float,
        *,
        speed: float,
        acceleration: float,
    ) -> None:
        """Note what is followed.

        Args:
            mover: What moves the tool.
            frame: The poses of the frame at instants of the run.
            begin: When the way begins [s].
            way: Poses in the frame by the parameter of the way, (k,) to (k, 4, 4).
            length: Up to which parameter it goes [m]; 0 to stay where it begins.
            speed: The greatest speed along it [m/s].
            acceleration: The greatest acceleration along it [m/s^2].
        """
        self.mover, self._frame, self.begin = mover, frame, begin
        self._way, self._length = way, length
        slowest = max(PEAK * length / speed, (BEND * length / acceleration) ** 0.5)
        self.duration = max(slowest, SHORTEST) if length else 0.0

    def poses(self, times: Array) -> Array:
        """Return the poses of the tool in the world at instants of the run."""
        u = np.ones(len(times))
        if self.duration:
            u = np.clip((times - self.begin) / self.duration, 0.0, 1.0)
        s = self._length * u**3 * (10.0 - 15.0 * u + 6.0 * u * u)
        return np.asarray(self._frame(times) @ self._way(s))

    def slowed(self, values: JointValues) -> Motion:
        """Return the motion along the way, in a time in which limits hold.

        values: Where the joints are when it begins.

        Raises:
            Impossible: The way is not followed, or the frame itself is too fast.
        """
        self.duration = max(self.duration, 2.0 * SHORTEST)
        for _ in range(24):
            motion, excess = self.motion(values, self.begin, self.begin + self.duration)
            if excess <= 1.0 + SLACK:
                return motion
            self.duration *= min(max(1.001 * excess, 1.001), 2.0)
        raise Impossible(
            RunReason.OUTRUN, f"the frame: {RunReason.OUTRUN.sentence} within limits"
        )

    def motion(
        self, values: JointValues, start: float, end: float
    ) -> tuple[Motion, float]:
        """Return the motion in a span of time, and by how much it exceeds limits.

        Args:
            values: Where the joints are when it starts.
            start: When that is [s].
            end: When it ends [s].

        Raises:
            Impossible: The way is not followed.
        """
        solver = self.mover.solver
        assert solver is not None
        count = max(4, int(np.ceil((end - start) / STEP)))
        h = (end - start) / count
        # Two further instants at each side, for differences.
        times = start + h * np.arange(-2.0, count + 3.0)
        poses = self.poses(times)
        forth = solver.path(poses[2:], start=values.q)
        back = solver.path(poses[1::-1], start=values.q)
        for path in (forth, back):
            bad = ~path.answer.success
            if bad.any():
                reason = RunReason(int(path.answer.reason[bad][0]))
                raise Impossible(reason, f"the way: {reason.sentence}")
            if len(path.jumps):
                reason = RunReason.JUMPS
                raise Impossible(reason, f"the way: {reason.sentence}")
        q = np.concatenate([back.answer.q[::-1], forth.answer.q])
        windows = np.lib.stride_tricks.sliding_window_view(q, 5, axis=0)
        qd = windows @ FIRST / h
        qdd = windows @ SECOND / h**2
        q = q[2:-2].copy()
        # It goes on exactly as joints move; rounding of the solver is not a jump.
        q[0], qd[0], qdd[0] = values
        motion = Motion.through(h * np.arange(count + 1.0), q, qd, qdd)
        fine = np.linspace(0.0, end - start, 4 * count + 1)
        return motion, self.mover.excess(motion, fine)
