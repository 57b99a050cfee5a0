"""The fastest motion to joint positions within limits of jerk.

Ruckig finds it; this module brings the question into the form that Ruckig takes:

- Along a straight line q = q0 + s (q1 - q0) one number s moves, from 0 to 1. A limit L
  of joint k bounds the derivative of s by L[k] / (q1 - q0)[k]; the tightest holds.
- Limits of 0 are replaced by a small part of the opposite one. What uses them by more
  than rounding is refused afterwards.
- Ruckig computes some hundred seconds at most. A longer motion is asked for in a unit
  of time T, in which rates are T times, accelerations T^2 and jerks T^3 times as great.
- Its profiles, one a joint, change their jerk at different times. All these times
  together are the parts of the motion; of those that are too short for its arithmetic
  the following part takes the place.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError, quote
from armillary.kernel.arguments import numbers_of
from armillary.kinematics.kernels import Joints, selection_of
from armillary.kinematics.state import home
from armillary.model.workcell import Workcell
from armillary.trajectories.limits import (
    acceleration_limits,
    limits_of,
    velocity_limits,
)
from armillary.trajectories.motion import Motion
from armillary.trajectories.motion_parts import POWERS

__all__ = ["point_to_point"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

ROUNDING = 1e-9
"""By how much, in parts of a limit, a value at the end may be above it; and by how
much, in parts of the greatest rate, rates may not fit the parts after them."""

LONG = 500.0
"""Duration above which Ruckig is asked in another unit of time [s]."""

STEEP = 1e3
"""Greatest accelerations in that unit, in parts of rates; its square is that of jerks.

They make motion longer by less than 1e-5 of its duration.
"""

UNUSED = 1e-7
"""Part of the greatest rate or acceleration that counts as none, where a limit is 0."""

SHORTEST = 1e-9
"""How long a part is at least, in parts of the whole."""


class MotionEnds(NamedTuple):
    """Positions, rates and accelerations where a motion begins or ends, (n,) each."""

    q: Array
    qd: Array
    qdd: Array


def point_to_point(  # noqa: PLR0913
    cell: Workcell,
    q0: npt.ArrayLike,
    q1: npt.ArrayLike,
    *,
    jerk: npt.ArrayLike,
    velocity: npt.ArrayLike | None = None,
    acceleration: npt.ArrayLike | None = None,
    qd0: npt.ArrayLike = 0.0,
    qd1: npt.ArrayLike = 0.0,
    qdd0: npt.ArrayLike = 0.0,
    qdd1: npt.ArrayLike = 0.0,
    duration: float = 0.0,
    straight: bool = False,
    joints: Joints = None,
) -> Motion:
    """Return the fastest motion to joint positions within limits of their jerk.

    Joints move independently, and arrive together. Positions on the way are not
    compared with their limits, see `Motion.limit_excess`. Motions of more than 500
    s may take up to 1e-5 of that longer than the fastest. It is computed by Ruckig
    (`pip install armillary[ruckig]`; Berscheid and Kroeger, "Jerk-limited real-time
    trajectory generation with arbitrary target states", Robotics: Science and Systems
    2021).

    Args:
        cell: What moves.
        q0: Joint positions at the start [m or rad], shape (n,).
        q1: Joint positions at the end, likewise.
        jerk: Greatest changes of accelerations [m/s^3 or rad/s^3], shape () or (n,).
        velocity: Greatest rates [m/s or rad/s], shape () or (n,); by default those of
            the cell. Where both directions differ, a tuple of two arrays (n,): lower
            and upper limits.
        acceleration: Greatest accelerations [m/s^2 or rad/s^2], likewise. By default
            those of the cell, which must then have one for each joint.
        qd0: Rates at the start [m/s or rad/s], shape () or (n,). Where they exceed
            limits they are brought within them first.
        qd1: Rates at the end, likewise, but within limits.
        qdd0: Accelerations at the start [m/s^2 or rad/s^2], as `qd0`.
        qdd1: Accelerations at the end, as `qd1`.
        duration: How long it takes at least [s].
        straight: Whether joints move in proportion to each other, along the straight
            line between both positions. Both ends must then be at rest.
        joints: Names of the n joints that q0 holds, in that order; by default all.

    Returns:
        The motion, whose pieces have constant jerk.

    Raises:
        UnknownName: A joint does not exist.
        ShapeError: An array does not fit.
        ModelError: Ruckig is not installed or finds no motion; a number is not finite
            or a limit NaN or negative; a joint has no limit, or one of 0 and must move;
            what is asked at the end is beyond a limit; or a straight line does not
            begin or end at rest.
    """
    chosen = selection_of(cell, joints).inputs
    names = [cell.joint_names[k] for k in chosen]
    n = len(names)
    task = MotionTask(
        MotionEnds(_row("q0", q0, n), _row("qd0", qd0, n), _row("qdd0", qdd0, n)),
        MotionEnds(_row("q1", q1, n), _row("qd1", qd1, n), _row("qdd1", qdd1, n)),
        {
            "velocity": velocity_limits(cell, chosen, velocity),
            "acceleration": acceleration_limits(
                cell, chosen, acceleration, is_needed=True
            ),
            "jerk": limits_of("jerk", jerk, n),
        },
        duration,
    )
    _check_numbers(task, straight)
    first, last = task.first, task.last
    moving = np.any([first.q != last.q, *map(np.abs, (*first[1:], *last[1:]))], axis=0)
    _check(names, moving, last, task.limits)
    if straight and any(part.any() for part in (*first[1:], *last[1:])):
        raise ModelError(
            "A straight line begins and ends at rest: leave out straight=True, or the "
            "rates and accelerations at both ends."
        )
    along_line = straight and moving.any()
    parts = _line(task) if along_line else _parts_of(task, moving)
    _check_ways(names, parts, task.limits)
    length = np.diff(parts.time)
    curve = np.zeros((len(length), POWERS, n))
    # q = p + v t + a t^2 / 2 + j t^3 / 6, as polynomials of parts of the time
    H = length[:, None]
    curve[:, 0], curve[:, 1] = parts.q[:-1], H * parts.qd[:-1]
    curve[:, 2], curve[:, 3] = H**2 / 2.0 * parts.qdd, H**3 / 6.0 * parts.jerk
    law = np.zeros((len(length), POWERS))
    law[:, 1] = 1.0 / np.where(length > 0.0, length, 1.0)
    return Motion.on(
        home(cell),
        names,
        times=parts.time,
        law=law,
        curve=curve,
        piece=np.arange(len(length)),
    )


class ConstantJerks(NamedTuple):
    """A motion in m parts of constant jerk.

    Attributes:
        time: When each part begins, and when the last one ends [s], shape (m + 1,).
        q: Joint positions then [m or rad], shape (m + 1, n).
        qd: Rates then [m/s or rad/s], shape (m + 1, n).
        qdd: Accelerations at the beginning of each part [m/s^2 or rad/s^2], (m, n).
        jerk: Jerks in each part [m/s^3 or rad/s^3], shape (m, n).
    """

    time: Array
    q: Array
    qd: Array
    qdd: Array
    jerk: Array

    def last_accelerations(self) -> Array:
        """Return accelerations at the ends of parts [m/s^2 or rad/s^2], (m, n)."""
        return self.qdd + self.jerk * np.diff(self.time)[:, None]

    def turning_rates(self) -> Array:
        """Return the rates where accelerations are 0 inside of parts, (m, n).

        Those at the start of a part where they are not [m/s or rad/s].
        """
        # qdd = a + j t is 0 at t = -a / j, where qd = v + a t + j t^2 / 2 = v + a t / 2
        reverses = (self.qdd * self.last_accelerations() < 0.0) & (self.jerk != 0.0)
        when = np.where(reverses, -self.qdd / np.where(reverses, self.jerk, 1.0), 0.0)
        return self.qd[:-1] + 0.5 * when * self.qdd


class MotionTask(NamedTuple):
    """A motion that is asked for.

    Attributes:
        first: Where it begins.
        last: Where it ends.
        limits: The lower and upper limits of `velocity`, `acceleration` and `jerk`, in
            this order, shape (2, n) each.
        duration: How long it takes at least [s].
    """

    first: MotionEnds
    last: MotionEnds
    limits: dict[str, Array]
    duration: float


def _check_numbers(task: MotionTask, straight: Any) -> None:
    """Refuse limits of several motions, and options that are not what they must be.

    Raises:
        ShapeError: Limits have more than one row.
        ModelError: The duration is not finite or negative, or `straight` not a bool.
    """
    for name, limit in task.limits.items():
        if limit.ndim != 2:
            raise ShapeError(
                f"A motion has one {name} limit for each joint, of shape "
                f"({len(task.first.q)},); rows for several motions were given."
            )
    least = numbers_of("duration", task.duration)
    if least.ndim or not 0.0 <= least < np.inf:
        raise ModelError(
            f"duration is {quote(task.duration)}; it must be a finite number, at least "
            "0."
        )
    if not isinstance(straight, bool):
        raise ModelError(f"straight is True or False, not {quote(straight)}.")


def _line(task: MotionTask) -> ConstantJerks:
    """Return the motion along a line, as that of the share s of the way."""
    way = task.last.q - task.first.q
    goes = way != 0.0
    within: dict[str, Array] = {}
    for name, limit in task.limits.items():
        # of joints that go backwards, the lower limit bounds s from above
        shares = np.sort(limit[:, goes] / way[goes], axis=0)
        within[name] = np.array([[shares[0].max()], [shares[1].min()]])
    zero, one = np.zeros(1), np.ones(1)
    share = MotionTask(
        MotionEnds(zero, zero, zero), MotionEnds(one, zero, zero), within, task.duration
    )
    time, s, *derivatives = _parts_of(share, one > 0.0)
    return ConstantJerks(
        time, task.first.q + s * way, *(part * way for part in derivatives)
    )


def _row(name: str, value: Any, joints: int) -> Array:
    """Return numbers of joints, shape (n,).

    Raises:
        ShapeError: They do not fit.
        ModelError: One is not finite.
    """
    array = numbers_of(name, value)
    if array.ndim == 0 and not name.startswith("q0") and not name.startswith("q1"):
        array = np.full(joints, array)
    if array.shape != (joints,):
        raise ShapeError(
            f"{name} has the shape ({joints},), a number for each joint; an array of "
            f"shape {array.shape} was given."
        )
    if not np.isfinite(array).all():
        raise ModelError(f"A number in {name} is not finite.")
    return array


def _check(
    names: list[str],
    moving: Truths,
    last: MotionEnds,
    limits: dict[str, Array],
) -> None:
    """Refuse limits within which the end cannot be reached.

    Raises:
        ModelError: A joint must move and has a limit of 0, or neither an acceleration
            nor a jerk limit; or a value at the end is beyond its limits.
    """
    for name, (lower, upper) in limits.items():
        none = (lower == 0.0) & (upper == 0.0)
        if name == "jerk":  # it must change both ways
            none = (lower == 0.0) | (upper == 0.0)
        for k in np.flatnonzero(moving & none):
            raise ModelError(f"{quote(names[k])} must move, but its {name} limit is 0.")
    acceleration, jerk = limits["acceleration"], limits["jerk"]
    for k in np.flatnonzero(np.isinf(acceleration).any(0) & np.isinf(jerk).any(0)):
        raise ModelError(
            f"{quote(names[k])} has neither an acceleration nor a jerk limit."
        )
    for name, value in (("velocity", last.qd), ("acceleration", last.qdd)):
        lower, upper = limits[name]
        slack: Array = ROUNDING * np.abs(value)
        for k in np.flatnonzero((value < lower - slack) | (value > upper + slack)):
            raise ModelError(
                f"At the end {quote(names[k])} is to have the {name} {value[k]:g}, "
                f"which is not within its limits {lower[k]:g} to {upper[k]:g}."
            )


def _check_ways(
    names: list[str], motion: ConstantJerks, limits: dict[str, Array]
) -> None:
    """Check that a motion does not go in a direction in which a limit is 0.

    Raises:
        ModelError: It does.
    """
    turns = motion.turning_rates()
    parts = {
        "velocity": np.concatenate([motion.qd, turns]),
        "acceleration": np.concatenate([motion.qdd, motion.last_accelerations()]),
    }
    for name, values in parts.items():
        lower, upper = limits[name]
        most = np.abs(values).max(axis=0)
        below, above = (lower == 0.0), (upper == 0.0)
        goes = (below & (values.min(axis=0) < -UNUSED * most)) | (
            above & (values.max(axis=0) > UNUSED * most)
        )
        for k in np.flatnonzero(goes & ~(below & above)):
            side = "lower" if below[k] else "upper"
            raise ModelError(
                f"{quote(names[k])} needs the way in which its {side} {name} limit is "
                "0: no motion to the end is within the limits."
            )


def _parts_of(task: MotionTask, moving: Truths) -> ConstantJerks:
    """Return the motion that Ruckig finds; joints that rest may have limits of 0.

    Raises:
        ModelError: There is none, or Ruckig is not installed.
    """
    try:
        ruckig: Any = import_module("ruckig")
    except ImportError as error:
        raise ModelError(
            "Motions of limited jerk are computed by Ruckig, which is not "
            "installed. Install it: pip install armillary[ruckig]. Or follow the "
            "line with cell.time_path, whose jerk is not limited."
        ) from error
    n = len(moving)
    unit = _unit_of_time(task, moving)
    question = ruckig.InputParameter(n)
    _ask(question, task, _accepted(task, moving, unit), unit)
    trajectory = ruckig.Trajectory(n)
    try:
        result = ruckig.Ruckig(n).calculate(question, trajectory)
    except ruckig.RuckigError as error:
        raise ModelError(f"Ruckig finds no motion: {_sentence(error)}.") from error
    except ValueError as error:  # it has a number for this result, but no name
        raise ModelError(
            "Ruckig finds no motion within the limits; one of 0 may stand in its way."
        ) from error
    if result not in {ruckig.Result.Working, ruckig.Result.Finished}:
        raise ModelError(f"Ruckig finds no motion: {result.name}.")
    time, q, qd, qdd, jerks = _parts(trajectory)
    return ConstantJerks(unit * time, q, qd / unit, qdd / unit**2, jerks / unit**3)


def _accepted(task: MotionTask, moving: Truths, unit: float) -> list[Array]:
    """Return limits that Ruckig accepts, in a unit of time: none of 0.

    Those of joints that rest do not matter.
    """
    velocity, acceleration, jerk = (
        np.where(moving, limit, [[-1.0], [1.0]]) for limit in task.limits.values()
    )
    velocity, acceleration, jerk = (
        unit**power * limit
        for power, limit in ((1, _both(velocity)), (2, _both(acceleration)), (3, jerk))
    )
    if unit > 1.0:  # ramps far shorter than the motion are lost in rounding of times
        fastest = np.abs(velocity).max(axis=0)
        acceleration = np.clip(acceleration, -STEEP * fastest, STEEP * fastest)
        jerk = np.clip(jerk, -STEEP * STEEP * fastest, STEEP * STEEP * fastest)
    return [velocity, acceleration, jerk]


def _ask(question: Any, task: MotionTask, limits: list[Array], unit: float) -> None:
    """Write a task into the input of Ruckig, in a unit of time."""
    first, last = (
        [unit**power * part for power, part in enumerate(ends)]
        for ends in (task.first, task.last)
    )
    velocity, acceleration, jerk = limits
    question.current_position = first[0].tolist()
    question.current_velocity = first[1].tolist()
    question.current_acceleration = first[2].tolist()
    question.target_position = last[0].tolist()
    question.target_velocity = np.clip(last[1], *velocity).tolist()
    question.target_acceleration = np.clip(last[2], *acceleration).tolist()
    question.min_velocity, question.max_velocity = velocity.tolist()
    question.min_acceleration, question.max_acceleration = acceleration.tolist()
    question.max_jerk = np.minimum(-jerk[0], jerk[1]).tolist()
    question.minimum_duration = task.duration / unit


def _both(limit: Array) -> Array:
    """Return limits with those of 0 replaced by a small part of the opposite one."""
    # Row 0 is below the opposite row 1, and row 1 above row 0.
    return np.where(limit == 0.0, -UNUSED * limit[::-1], limit)


def _unit_of_time(task: MotionTask, moving: Truths) -> float:
    """Return the unit of time in which Ruckig computes [s], 1 unless motion is long.

    It follows from the durations T that single limits require, up to factors: of a way
    s, s = v T for a limit v of rates, s = a T^2 of accelerations, s = j T^3 of jerks.
    """
    first, last = task.first, task.last
    velocity, acceleration, jerk = (
        np.abs(limit).max(axis=0)[moving] for limit in task.limits.values()
    )
    way, change, more = (
        np.abs(b - a)[moving] for a, b in zip(first, last, strict=True)
    )
    longest = np.concatenate(
        [
            [task.duration, 0.0],
            way / velocity,
            np.sqrt(way / acceleration),
            np.cbrt(way / jerk),
            change / acceleration,
            more / jerk,
        ]
    ).max()
    return float(longest / LONG) if longest > LONG else 1.0


def _sentence(error: Exception) -> str:
    """Return what an error of Ruckig says, on one line and without its numbers."""
    text = str(error).replace("[ruckig]", "").strip()
    return text.partition("\n")[0].rstrip(": .") or "no reason is given"


def _parts(trajectory: Any) -> tuple[Array, Array, Array, Array, Array]:
    """Return a trajectory of Ruckig in parts of constant jerk.

    These are instants, then positions, rates and accelerations there, and jerks.
    """
    time = _instants(trajectory)
    lengths = np.diff(time)
    motions = [trajectory.at_time(t) for t in time]
    q, qd = (np.array([motion[order] for motion in motions]) for order in (0, 1))
    # Accelerations may jump, so they are taken inside of parts.
    early, late = (
        [trajectory.at_time(t) for t in time[:-1] + share * lengths]
        for share in (0.25, 0.75)
    )
    h = 0.25 * lengths[:, None]
    accelerations = [np.array([motion[2] for motion in side]) for side in (early, late)]
    jerk = (accelerations[1] - accelerations[0]) / np.where(h > 0.0, 2.0 * h, 1.0)
    qdd = accelerations[0] - h * jerk
    # Parts shorter than `SHORTEST` are left out, but may change rates: where a rate
    # does not fit the part after it, that of the part is taken.
    inside = np.array([motion[1] for motion in early])
    begun = inside - h * (qdd + 0.5 * h * jerk)
    is_off = np.abs(begun - qd[:-1]) > ROUNDING * np.abs(inside).max(initial=0.0)
    qd[:-1] = np.where(is_off, begun, qd[:-1])
    return time, q, qd, qdd, jerk


def _instants(trajectory: Any) -> Array:
    """Return when the jerk of a joint changes, and both ends; at least two."""
    end = float(trajectory.duration)
    times = {0.0, end}
    for profile in trajectory.profiles[0]:
        parts = *profile.brake.t, *profile.t, *profile.accel.t
        times.update(np.minimum(np.cumsum(parts), end).tolist())
    # Rounding makes parts of nearly no length.
    inner = [t for t in sorted(times) if SHORTEST * end < t < end * (1 - SHORTEST)]
    every = np.array([0.0, *inner, end])
    is_long = np.diff(every[:-1], prepend=-end) > SHORTEST * end
    return np.array([*every[:-1][is_long], end]) if end > 0.0 else np.zeros(2)
