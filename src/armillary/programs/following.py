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

from collections.abc import Callable, Hashable
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.programs.ending import Impossible, RunReason
from armillary.programs.meeting import SHORTEST, Poses
from armillary.programs.mover import BEND, LIMIT_ROUNDING, PEAK, Mover
from armillary.programs.tracks import JointValues
from armillary.spatial.polynomial import differentiation
from armillary.trajectories.kept_limits import greatest_ratios
from armillary.trajectories.motion import Motion

__all__ = ["FollowedWay"]

Array = npt.NDArray[np.float64]

STEP: Final = 0.01
"""Between samples of a motion that follows a frame [s], at most."""

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
        for _ in range(24):
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
        solver = self.mover.solver
        assert solver is not None
        count = max(LEAST_PIECES, int(np.ceil((end - start) / STEP)))
        h = (end - start) / count
        poses = self.poses(start + h * np.arange(count + 1.0))
        path = solver.path(poses, start=values.q)
        bad = ~path.answer.success
        if bad.any():
            reason = RunReason(int(path.answer.reason[bad][0]))
            raise Impossible(reason, f"the way: {reason.sentence}")
        if len(path.jumps):
            reason = RunReason.JUMPS
            raise Impossible(reason, f"the way: {reason.sentence}")
        q = np.array(path.answer.q)
        first = np.clip(np.arange(count + 1) - 2, 0, count + 1 - AROUND)
        windows = np.lib.stride_tricks.sliding_window_view(q, AROUND, axis=0)[first]
        place = np.arange(count + 1) - first
        qd = np.einsum("kni,ki->kn", windows, FIRST[place]) / h
        qdd = np.einsum("kni,ki->kn", windows, SECOND[place]) / h**2
        # It goes on exactly as joints move; rounding of the solver is not a jump.
        q[0], qd[0], qdd[0] = values
        motion = Motion.through(h * np.arange(count + 1.0), q, qd, qdd)
        if not self.mover.are_kept(motion.curve, q):
            raise Impossible(
                RunReason.LIMITS,
                f"the way: {RunReason.LIMITS.sentence} between poses: a joint comes to "
                "its limit on it. Begin farther from the limit",
            )
        (excess,) = greatest_ratios(
            [motion], self.mover.velocity, self.mover.acceleration
        )
        return motion, float(excess)
