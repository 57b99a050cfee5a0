"""Motions that follow a frame that moves by itself.

Such a motion is sampled: the tool is at R(t) X(s(t)), where R is the pose of the frame
and X(s) a curve that is given relative to it, and

    s(t) = L (10 u^3 - 15 u^4 + 6 u^5),    u = t / T

whose first and second derivatives are 0 at both ends. Rates and accelerations of joints
are those of polynomials of degree 5 through six samples of inverse kinematics around
each, of which none is outside of the motion, since the third derivative of s jumps at
its ends. Between samples joints are polynomials of degree 5, whose extremes are
compared with limits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from operator import itemgetter
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import quote
from armillary.programs.ending import Impossible, RunReason
from armillary.programs.meeting import SHORTEST, Poses
from armillary.programs.mover import (
    BEND,
    EXACT,
    LIMIT_ROUNDING,
    PEAK,
    Mover,
    rests,
)
from armillary.programs.tracks import JointValues
from armillary.spatial.polynomial import differentiation
from armillary.trajectories.kept_limits import greatest_ratios
from armillary.trajectories.motion import Motion

__all__ = ["FollowedWay"]

Array = npt.NDArray[np.float64]

STEP: Final = 0.01
"""Between samples of a motion that follows a frame [s], at most."""

MANY: Final = 1024
MOST: Final = 65_536
SAME: Final = 1e-8
"""A motion of more pieces than `MANY` has these at first, then twice as many until
joints in their middles are where they were before [m or rad], `MOST` at most."""

WIDER: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.3)
"""Over what parts of a motion to either side means of positions are taken where a joint
comes to its limit."""

OFF_LIMITS: Final = 0.05
"""How far from limits joints are led, in parts of what they move."""

ROUNDS: Final = 4

JUMP: Final = 0.1
"""How far from such means joints are at most [m or rad]."""

LONGEST: Final = 1e8
"""How long a way may take [s]."""

SLOWEST: Final = 1000.0
"""How many times as long as at first it may: the rest is what the frame does."""

LEAST_PIECES: Final = 16
"""A motion has so many polynomials, or more."""

NEARLY: Final = 0.9
"""What part of the duration of a straight motion is tried first."""

AROUND: Final = 6
"""Samples by which rates and accelerations are found."""


def _weights(order: int) -> Array:
    """Return weights of derivatives at each of `AROUND` samples at 0, 1, 2, ...

    order: Of the derivative.

    Returns:
        Shape (AROUND, AROUND): of the samples, for the derivative at each of them.
    """
    at = np.arange(float(AROUND))
    powers = at[:, None] ** np.arange(AROUND)
    return np.asarray(powers @ differentiation(AROUND, order) @ np.linalg.inv(powers))


FIRST: Final = _weights(1)
SECOND: Final = _weights(2)


class FollowedWay:
    """A way that is given relative to a frame that moves.

    Attributes:
        mover: What moves the tool.
        frame: The poses of the frame at instants of the run.
        begin: When it begins [s], on the time axis of the run.
        duration: How long the way takes [s]; after it the tool stays at its end.
        key: What decides the way, apart from how the frame moves.
    """

    def __init__(
        self,
        mover: Mover,
        frame: Poses,
        begin: float,
        way: Callable[[Array], Array],
        length: float,
        *,
        key: Hashable,
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
            key: What decides the way, apart from how the frame moves.
            speed: The greatest speed along it [m/s].
            acceleration: The greatest acceleration along it [m/s^2].
        """
        self.mover, self.frame, self.begin, self.key = mover, frame, begin, key
        self._way, self._length = way, length
        slowest = max(PEAK * length / speed, (BEND * length / acceleration) ** 0.5)
        self.duration = max(slowest, SHORTEST) if length else 0.0

    def poses(self, times: Array) -> Array:
        """Return the poses of the tool in the world at instants of the run."""
        u = np.ones(len(times))
        if self.duration:
            u = np.clip((times - self.begin) / self.duration, 0.0, 1.0)
        s = self._length * u**3 * (10.0 - 15.0 * u + 6.0 * u * u)
        return np.asarray(self.frame(times) @ self._way(s))

    def slowed(self, values: JointValues) -> Motion:
        """Return the motion along the way, in a time in which limits hold.

        values: Where the joints are when it begins.

        Raises:
            Impossible: The way is not followed, or the frame itself is too fast.
        """
        self.duration = max(self.duration, self._shortest(values), 2.0 * SHORTEST)
        before, power = (0.0, 0.0), 1.0
        longest = SLOWEST * self.duration
        while self.duration <= longest:
            motion, excess = self.motion(values, self.begin, self.begin + self.duration)
            if excess <= 1.0 + LIMIT_ROUNDING:
                return motion
            # The excess falls with some power of the duration, less than the first
            # where the frame itself takes a part of the rates.
            if before[1] > excess:
                longer = self.duration / before[0]
                power = float(np.log(before[1] / excess) / np.log(longer))
            before = self.duration, excess
            power = min(max(power, 0.2), 1.0)
            self.duration *= min(max((1.001 * excess) ** (1.0 / power), 1.001), 50.0)
        raise Impossible(
            RunReason.OUTRUN, f"the frame: {RunReason.OUTRUN.sentence} within limits"
        )

    def _shortest(self, values: JointValues) -> float:
        """Return about how long a straight motion to the end of the way takes [s].

        As if the frame stood still; a little less, so that limits are not kept yet.
        """
        mover = self.mover
        assert mover.solver is not None
        X = self.frame(np.array([self.begin])) @ self._way(np.array([self._length]))
        end = mover.solver(X[0], near=values.q, explain=False)
        if not end.success:
            return 0.0
        return NEARLY * mover.shortest(end.q - values.q)

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
        if not end - start <= LONGEST:
            raise Impossible(
                RunReason.TIMEOUT,
                f"the way takes {end - start:.4g} s, and a robot follows a frame for "
                f"{LONGEST:g} s at most: it is too slow",
            )
        needed = math.ceil((end - start) / STEP)
        count = max(LEAST_PIECES, min(needed, MANY))
        motion, excess = self._sampled(values, start, end, count)
        while count < needed:
            if count >= MOST:
                raise Impossible(
                    RunReason.TIMEOUT,
                    f"the way takes {end - start:.4g} s, and {MOST} polynomials are "
                    "not enough for what the frame does meanwhile: it is too slow",
                )
            count = min(2 * count, needed)
            coarse = motion
            motion, excess = self._sampled(values, start, end, count)
            if np.abs(coarse.at(motion.times).q - motion.q).max() <= SAME:
                break
        if excess == math.inf:
            raise Impossible(
                RunReason.LIMITS,
                f"the way: {RunReason.LIMITS.sentence} between poses: a joint comes to "
                "its limit on it. Begin farther from the limit",
            )
        return motion, excess

    def _sampled(
        self, values: JointValues, start: float, end: float, count: int
    ) -> tuple[Motion, float]:
        """Return the motion in a span of time, of so many polynomials.

        Where a joint comes to its limit, others may do its part, and it slows down.

        Returns:
            The motion, and by how much it exceeds limits; infinite of positions.

        Raises:
            Impossible: The way is not followed.
        """
        solver = self.mover.solver
        assert solver is not None
        times = start + (end - start) / count * np.arange(count + 1.0)
        poses = self.poses(times)
        path = solver.path(poses, start=values.q, tolerance=EXACT)
        first = q = np.array(path.answer.q)
        bad = np.flatnonzero(~path.answer.success)
        if bad.size:
            reason = RunReason(int(path.answer.reason[bad[0]]))
            where = f"at {times[bad[0]]:.6g} s"
            raise Impossible(reason, f"the way {where}: {reason.sentence}")
        if len(path.jumps):
            k = int(path.jumps[0])
            steps = np.abs(q[k] - (q[k - 1] if k else values.q))
            joint = int(np.argmax(steps))
            raise Impossible(
                RunReason.JUMPS,
                f"the way at {times[k]:.6g} s: {RunReason.JUMPS.sentence}, by "
                f"{steps[joint]:.4g} of {quote(solver.joints[joint])}",
            )
        best = self._through(values, times, q)
        for part in WIDER:
            if best[1] <= 1.0 + LIMIT_ROUNDING or not (
                self.mover.is_at_limit(first) or self._begins_otherwise(best[0])
            ):
                break
            # Means of positions are within limits, and nearly follow the frame: a joint
            # is slow when it comes to its limit, and others are moved by its part.
            on = values.q + values.qd * (times - start)[:, None]
            q = first
            for _ in range(ROUNDS):
                means = _means(q, on, math.ceil(part * count), self.mover.position)
                near = solver(poses, near=means, tolerance=EXACT)
                if not near.success.all() or np.abs(near.q - means).max() > JUMP:
                    break
                q = np.array(near.q)
                found = self._through(values, times, q.copy())
                best = min(best, found, key=itemgetter(1))
        return best

    def _begins_otherwise(self, motion: Motion) -> bool:
        """Return whether a redundant arm moves otherwise when a motion begins.

        Answers at which it arrives, and those that follow from one another, may differ
        in what does not move the tool: then its rates change within the first piece.
        """
        solver = self.mover.solver
        if solver is None or not solver.numeric.problem.is_redundant:
            return False
        (first,) = greatest_ratios(
            [_first_piece(motion)], self.mover.velocity, self.mover.acceleration
        )
        return bool(first > 1.0 + LIMIT_ROUNDING)

    def _through(
        self, values: JointValues, times: Array, q: Array
    ) -> tuple[Motion, float]:
        """Return the motion through samples, and by how much it exceeds limits.

        Args:
            values: Where the joints are when it starts.
            times: Instants that are equally far apart [s], shape (k,).
            q: Joint positions there, shape (k, n).
        """
        mover, count = self.mover, len(times) - 1
        h = (times[-1] - times[0]) / count
        first = np.clip(np.arange(count + 1) - 2, 0, count + 1 - AROUND)
        windows = np.lib.stride_tricks.sliding_window_view(q, AROUND, axis=0)[first]
        place = np.arange(count + 1) - first
        qd = np.einsum("kni,ki->kn", windows, FIRST[place]) / h
        qdd = np.einsum("kni,ki->kn", windows, SECOND[place]) / h**2
        # It goes on exactly as joints move; rounding of the solver is not a jump. Over
        # long pieces what a rate is off as at rest would lead far away.
        off = JointValues(values.q, values.qd - qd[0], values.qdd - qdd[0])
        q[0] = values.q
        if h <= STEP or not rests(off):
            qd[0], qdd[0] = values.qd, values.qdd
        motion = Motion.through(h * np.arange(count + 1.0), q, qd, qdd)
        if not mover.are_kept(motion.curve, q):
            return motion, math.inf
        (excess,) = greatest_ratios([motion], mover.velocity, mover.acceleration)
        return motion, float(excess)


def _first_piece(motion: Motion) -> Motion:
    """Return the first polynomial of a motion."""
    k = motion.piece[0]
    return Motion(
        times=motion.times[:2],
        law=motion.law[:1],
        curve=motion.curve[[k]],
        piece=np.zeros(1, np.int64),
        joint_names=motion.joint_names,
    )


def _means(q: Array, on: Array, reach: int, limits: Array) -> Array:
    """Return means of samples about each, of means again, off limits but at the start.

    Args:
        q: The samples, shape (k, n).
        on: Where joints would be that went on as they begin, from which they change to
            the samples at first, shape (k, n).
        reach: How many to either side count, less near the ends.
        limits: Least and greatest positions, shape (2, n).
    """
    at = np.arange(len(q))
    u = np.minimum(at / (4.0 * reach), 1.0)[:, None]
    share = u * u * (3.0 - 2.0 * u)
    off = OFF_LIMITS * (q.max(axis=0) - q.min(axis=0)) * share
    q = np.clip(on + (q - on) * share, limits[0] + off, limits[1] - off)
    wide = np.minimum(reach, np.minimum(at, at[::-1]))
    for _ in range(2):
        sums = np.cumsum(np.vstack([np.zeros_like(q[:1]), q]), axis=0)
        q = (sums[at + wide + 1] - sums[at - wide]) / (2.0 * wide + 1.0)[:, None]
    return q
