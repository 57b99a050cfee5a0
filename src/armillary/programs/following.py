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

from collections.abc import Callable, Hashable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.programs.ending import Impossible, RunReason
from armillary.programs.tracks import JointValues
from armillary.trajectories.hermite import basis
from armillary.trajectories.motion import Motion

__all__ = ["FollowedWay", "Mover", "meet", "rests", "stop_at"]

Array = npt.NDArray[np.float64]
Poses = Callable[[Array], Array]
"""Poses (k, 4, 4) at instants (k,)."""

STEP: Final = 0.01
"""Between samples of a motion that follows a frame [s]."""

DIFFERENCE: Final = 2e-3
"""Between instants of which differences are taken where a motion meets a frame [s]."""

DURATIONS: Final[Array] = np.asarray(1e-3 * 1.1 ** np.arange(110), np.float64)
"""Durations of motions that meet a frame, of which the first is taken within which
limits hold [s], and refined `MOST_REFINEMENTS` times."""

COME_FAR: Final = (RunReason.LIMITS, RunReason.OUTRUN)
"""Reasons of motions whose end is reached: they tell more than that others miss it."""

AT_ONCE: Final = 22
MOST_REFINEMENTS: Final = 3
SHORTEST: Final = float(DURATIONS[0])

LIMIT_ROUNDING: Final = 1e-6
"""By which part limits may be exceeded, as rounding of differences has it."""

INSIDE: Final = 1e-9
"""By how much positions may be beyond their limits [m or rad]."""

JUMP: Final = 0.1
"""A greater step between instants of a difference is one to another branch."""

STILL: Final = 1e-7
"""Rates and accelerations below this are those of joints at rest."""

SAMPLES: Final = 33
"""Instants of a motion at which limits are compared."""

BASES: Final = tuple(basis(np.linspace(0.0, 1.0, SAMPLES), k) for k in range(3))
"""The polynomials of `basis` there, and their first two derivatives."""

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

    @property
    def limits(self) -> bytes:
        """Return its limits, to tell movers apart."""
        return self.velocity.tobytes() + self.acceleration.tobytes()

    def excess(self, qd: Array, qdd: Array) -> Array:
        """Return the greatest ratios of rates and accelerations to their limits.

        Of accelerations it is the square root, so that a motion that takes so many
        times as long is within its limits.

        Args:
            qd: Rates at samples of motions, shape (..., k, n).
            qdd: Accelerations, likewise.

        Returns:
            Shape (...).
        """
        most = np.zeros(qd.shape[:-2])
        for values, limits, power in (
            (qd, self.velocity, 1.0),
            (qdd, self.acceleration, 0.5),
        ):
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = np.maximum(values / limits[1], values / limits[0])
            ratios[np.abs(values) <= STILL] = 0.0
            most = np.maximum(most, ratios.max(axis=(-2, -1), initial=0.0) ** power)
        return most

    def are_within(self, q: Array) -> npt.NDArray[np.bool_]:
        """Return whether positions, shape (..., k, n), are within their limits."""
        lower, upper = self.position
        inside: Any = (q >= lower - INSIDE) & (q <= upper + INSIDE)
        return np.asarray(inside.all(axis=(-2, -1)))


def rests(values: JointValues) -> bool:
    """Return whether joints neither move nor begin to."""
    return all(-STILL <= rate <= STILL for rate in values.qd.tolist()) and all(
        -1e-4 <= bend <= 1e-4 for bend in values.qdd.tolist()
    )


class Arrivals(NamedTuple):
    """Values of joints with which motions may end, one for each duration.

    Attributes:
        values: Shape (k, n) each.
        reasons: Numbers of `RunReason`, 0 where there is an end, shape (k,).
    """

    values: JointValues
    reasons: npt.NDArray[np.int64]


def stop_at(mover: Mover, values: JointValues, q: Array) -> Motion:
    """Return the motion from joints that move to positions at rest.

    Raises:
        Impossible: No duration keeps limits.
    """

    def arrivals(durations: Array) -> Arrivals:
        k = len(durations)
        still = np.zeros((k, len(q)))
        ends = JointValues(np.broadcast_to(q, still.shape), still, still)
        return Arrivals(ends, np.zeros(k, np.int64))

    return _quickest(mover, values, arrivals)


def meet(mover: Mover, values: JointValues, poses: Poses) -> Motion:
    """Return the motion with which a tool meets a pose that moves.

    Args:
        mover: What moves the tool.
        values: Where its joints are at the start.
        poses: The pose to meet at times after the start, which ascend.

    Raises:
        Impossible: It is not reached, or moves faster than limits allow.
    """
    solver = mover.solver
    assert solver is not None
    n = len(values.q)

    def arrivals(durations: Array) -> Arrivals:
        k = len(durations)
        times = (durations[:, None] + DIFFERENCE * np.arange(-2.0, 3.0)).ravel()
        order = np.argsort(times, kind="stable")
        X = np.empty((len(times), 4, 4))
        X[order] = poses(times[order])
        found = solver(X, near=np.broadcast_to(values.q, (5 * k, n)))
        q, ends = found.q.reshape(k, 5, n), found.reason.reshape(k, 5).astype(np.int64)
        ends = np.where(found.success.reshape(k, 5), 0, ends)
        reasons = np.take_along_axis(
            ends, np.argmax(ends != 0, axis=1, keepdims=True), axis=1
        )[:, 0]
        jumps = np.abs(np.diff(q, axis=1)).max(axis=(1, 2)) > JUMP
        reasons[(reasons == 0) & jumps] = int(RunReason.JUMPS)
        rates, bends = (
            np.einsum("i,kin->kn", weights, q) / DIFFERENCE**power
            for power, weights in ((1, FIRST), (2, SECOND))
        )
        return Arrivals(JointValues(q[:, 2], rates, bends), reasons)

    return _quickest(mover, values, arrivals)


def _quickest(
    mover: Mover, values: JointValues, arrivals: Callable[[Array], Arrivals]
) -> Motion:
    """Return the motion of the least duration that keeps limits."""
    why: dict[int, float] = {}
    found: tuple[float, float, JointValues] | None = None

    def first_of(durations: Array) -> tuple[float, float, JointValues] | None:
        """Return the one before the first that keeps limits, that, and its end."""
        ends, reasons = arrivals(durations)
        q, qd, qdd = _quintics(values, ends, durations)
        with np.errstate(invalid="ignore"):
            fast = mover.excess(qd, qdd) > 1.0 + LIMIT_ROUNDING
            reasons = np.where((reasons == 0) & fast, int(RunReason.OUTRUN), reasons)
            beyond = (reasons == 0) & ~mover.are_within(q)
        reasons[beyond] = int(RunReason.LIMITS)
        good = np.flatnonzero(reasons == 0)
        if not len(good):
            for each, duration in zip(reasons.tolist(), durations, strict=True):
                why[each] = why.get(each, 0.0) + float(duration)
            return None
        k = int(good[0])
        before = float(durations[k - 1]) if k else 0.5 * float(durations[0])
        return before, float(durations[k]), JointValues(*(part[k] for part in ends))

    for first in range(0, len(DURATIONS), AT_ONCE):
        found = first_of(DURATIONS[first : first + AT_ONCE])
        if found is not None:
            break
    if found is None:
        # Of many durations the reason is that of most time, where the end is reached.
        far = {int(each): why[each] for each in COME_FAR if each in why} or why
        reason = RunReason(max(far, key=far.__getitem__))
        raise Impossible(
            reason,
            f"no motion of up to {DURATIONS[-1]:.0f} s leads there: {reason.sentence}",
        )
    for _ in range(MOST_REFINEMENTS):
        before, duration, _end = found
        finer = before + (duration - before) * np.linspace(0.0, 1.0, AT_ONCE + 1)[1:]
        found = first_of(finer) or found
    _, duration, end = found
    return Motion.through(
        [0.0, duration],
        *(np.stack(pair) for pair in zip(values, end, strict=True)),
    )


def _quintics(values: JointValues, ends: JointValues, durations: Array) -> JointValues:
    """Return samples of polynomials of degree 5 between ends, shape (k, SAMPLES, n)."""
    T = durations[:, None]
    q, qd, qdd = values
    # The same as `hermite_coefficients`, of many durations at once.
    parts = np.stack([ends.q - q, T * qd, T * ends.qd, T * T * qdd, T * T * ends.qdd])
    each = T[:, None]
    ways, rates, bends = (
        np.einsum("sj,jkn->ksn", rows, parts) / each**order
        for order, rows in enumerate(BASES)
    )
    return JointValues(q + ways, rates, bends)


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
        self.duration = max(self.duration, 2.0 * SHORTEST)
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
        path = solver.path(poses, start=values.q)
        bad = ~path.answer.success
        if bad.any():
            reason = RunReason(int(path.answer.reason[bad][0]))
            raise Impossible(reason, f"the way: {reason.sentence}")
        if len(path.jumps):
            reason = RunReason.JUMPS
            raise Impossible(reason, f"the way: {reason.sentence}")
        q = np.array(path.answer.q)
        windows = np.lib.stride_tricks.sliding_window_view(q, 5, axis=0)
        qd = windows @ FIRST / h
        qdd = windows @ SECOND / h**2
        q = q[2:-2].copy()
        # It goes on exactly as joints move; rounding of the solver is not a jump.
        q[0], qd[0], qdd[0] = values
        motion = Motion.through(h * np.arange(count + 1.0), q, qd, qdd)
        return motion, float(self.mover.excess(qd, qdd))
