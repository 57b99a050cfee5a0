"""Laws of a joint's motion: it is rigid, continuous, and its derivatives are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.errors import JointError
from armillary.model.motion import as_pose
from armillary.model.special_points import Rates, rates_beside
from armillary.spatial.twist import adjoint
from armillary.testing.differences import (
    Descent,
    descent,
    first_difference,
    second_difference,
)
from armillary.testing.laws import TOLERANCE, require_equal, row
from armillary.testing.subject import Subject

Array = npt.NDArray[np.float64]


def rigid(subject: Subject) -> None:
    """Check that every pose of the range is one: defined, orthonormal, right-handed."""
    X = subject.placements(subject.grid)
    bad = ~np.isfinite(X).all(axis=(1, 2))
    if bad.any():
        raise JointError(f"the pose is not defined at {_at(subject.grid[bad])}.")
    R = X[:, :3, :3]
    error = np.abs(R @ R.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
    if error.max() > TOLERANCE:
        k = int(error.argmax())
        raise JointError(
            f"the rotation is sheared or scaled at {_at(subject.grid[k:])}: R R' "
            f"differs from 1 by {error[k]:.3g}."
        )
    if (np.linalg.det(R) < 0.0).any():
        raise JointError("the rotation is a reflection.")


def precursor(subject: Subject) -> None:
    """Check X_FM = precursor pose(q)."""
    for q, X in zip(subject.q, subject.placements(subject.q), strict=True):
        placed = subject.joint.transform(float(q)).matrix()
        require_equal(placed, X, f"transform({q:.6g})", "precursor @ pose(q)")


def plain(subject: Subject) -> None:
    """Check that the pose of a float is the pose of the traced scalar."""
    name = type(subject.joint).__name__
    for q, X in zip(subject.q, subject.joint.motion.poses(subject.q), strict=True):
        direct: Any = subject.joint.pose(float(q))
        written = as_pose(direct, name).matrix()[:3]
        require_equal(written, X, f"pose({q:.6g}) of a float", "what was traced")


def continuous(subject: Subject) -> None:
    """Check that the pose does not jump where choices change."""
    for sides in subject.edges:
        before, after = subject.placements(sides)
        if not (np.isfinite(before).all() and np.isfinite(after).all()):
            continue
        jump = np.abs(after - before)
        if jump.max() > TOLERANCE * (1.0 + subject.size):
            raise JointError(
                f"the pose jumps at q = {sides[1]:.9g}, its origin by "
                f"{jump[:3, 3].max():.3g} m and its axes by {jump[:3, :3].max():.3g}."
            )


def velocity(subject: Subject) -> None:
    """Check the twist of M relative to F, written in M, against differences."""
    # Any rate but 0, which would hide a velocity that does not grow with it.
    rates = subject.random.uniform(0.5, 2.0, len(subject.q))
    claim = np.array(
        [
            subject.joint.velocity(float(q), float(qd))
            for q, qd in zip(subject.q, rates, strict=True)
        ]
    )
    X = subject.placements(subject.q)

    def numeric(step: Array) -> Array:
        dX = first_difference(subject.placements, subject.q, step)
        return _in_outer_axes(X, dX) * rates[:, np.newaxis]

    _judge(subject, claim, numeric, order=1)


def acceleration(subject: Subject) -> None:
    """Check the derivative of the velocities, taken in F, against differences.

    The coordinate moves as q(t) = q + qd t + qdd t^2 / 2.
    """
    rates = subject.random.uniform(0.5, 1.0, len(subject.q))
    # Steps of time: the coordinate must stay where the motion is smooth.
    step = 0.5 * subject.step
    bends = subject.random.uniform(-1.0, 1.0, len(subject.q)) / (1.0 + step)
    claim = np.array(
        [
            subject.joint.acceleration(float(q), float(qd), float(qdd))
            for q, qd, qdd in zip(subject.q, rates, bends, strict=True)
        ]
    )
    X = subject.placements(subject.q)

    def numeric(step: Array) -> Array:
        # Differences in time along q(t), whose second derivative at t = 0 is the
        # acceleration.
        def moved(t: Array) -> Array:
            return subject.placements(subject.q + rates * t + 0.5 * bends * t**2)

        ddX = second_difference(moved, np.zeros_like(subject.q), step)
        return _in_outer_axes(X, ddX)

    _judge(subject, claim, numeric, order=2, step=step)


def subspace(subject: Subject) -> None:
    """Check that the closed form of the subspace is what follows from the pose."""
    motion = subject.joint.motion
    for q in map(float, subject.q):
        written = np.array(motion.subspace(q))
        traced = np.array(motion.traced_subspace(q))
        require_equal(
            written, traced, f"subspace({q:.6g})", "the derivative of the pose", 1e-6
        )
        unit = subject.joint.velocity(q, 1.0)
        require_equal(unit, written, f"velocity({q:.6g}, 1)", "the subspace")


def special_points(subject: Subject) -> None:
    """Check that pose and derivatives at special points are those beside, on one side.

    These points are 0, those at which a comparison with `==` holds, and those at which
    choices change.
    """
    motion = subject.joint.motion
    kinds: dict[str, Rates] = {
        "pose": lambda q: motion.pose(*q).entries,
        "velocity": lambda q: motion.subspace(*q),
        "acceleration": lambda q: motion.subspace_rate(*q),
    }
    for kind, rates in kinds.items():
        # A comparison with == hides the derivative of the other branch from tracing.
        if kind != "pose" and (fault := motion.fault_of_equality(rates, kind)):
            raise JointError(fault)
        for q in {0.0, *subject.edges.flat}:
            if subject.lower <= q <= subject.upper:
                _check_point(float(q), kind, rates)


def _check_point(q: float, kind: str, rates: Rates) -> None:
    here = np.array(rates([q]))
    if kind == "pose" and not np.isfinite(here).all():
        near = [rates([q + h]) for h in (1e-6, -1e-6)]
        if np.isfinite(near).all():
            raise JointError(
                f"the pose is not defined at q = {q:.9g}, but on both sides of it: use "
                "a series near this point, such as numpy.sinc."
            )
    beside = rates_beside(rates, [q])
    if beside is not None:
        raise JointError(
            f"the {kind} at q = {q:.9g} is that of neither side: {row(here)} there and "
            f"{row(beside)} beside it."
        )


def period(subject: Subject) -> None:
    """Check that the pose repeats after the period."""
    step = subject.joint.period
    if step is None:
        return
    if not 0.0 < step < float("inf"):
        raise JointError(f"the period is {step}; it must be a number above 0, or None.")
    now = subject.placements(subject.q)
    for laps in (1.0, -3.0):
        later = subject.placements(subject.q + laps * step)
        for q, X, Y in zip(subject.q, now, later, strict=True):
            require_equal(
                Y, X, f"the pose at {q:.6g} + {laps:g} periods", f"that at {q:.6g}"
            )


MOTION_LAWS: dict[str, Callable[[Subject], None]] = {
    "rigid": rigid,
    "precursor": precursor,
    "plain floats": plain,
    "continuous": continuous,
    "velocity": velocity,
    "acceleration": acceleration,
    "subspace": subspace,
    "special points": special_points,
    "period": period,
}


def _in_outer_axes(X: Array, dX: Array) -> Array:
    """Return R' p* and vee(skew part of R* R') in M, * any derivative, shape (n, 6)."""
    back = X[:, :3, :3].transpose(0, 2, 1)
    linear = np.einsum("nij,nj->ni", back, dX[:, :3, 3])
    # R* R^T is skew for an exact derivative; of a difference the rest is its error,
    # which is left out by taking the skew part.
    turn = dX[:, :3, :3] @ back  # in F
    skew = 0.5 * (turn - turn.transpose(0, 2, 1))
    angular = np.stack([skew[:, 2, 1], skew[:, 0, 2], skew[:, 1, 0]], axis=1)
    return np.concatenate([linear, np.einsum("nij,nj->ni", back, angular)], axis=1)


def _judge(
    subject: Subject,
    claim: Array,
    numeric: Callable[[Array], Array],
    *,
    order: int,
    step: Array | None = None,
) -> None:
    """Refuse a claimed derivative whose distance from differences does not fall."""
    step = subject.step if step is None else step
    # What rounding does depends on how large the numbers are that are subtracted.
    magnitude = np.abs(subject.placements(subject.q)).max(axis=(1, 2)) + subject.size
    measured = descent(claim, numeric, step, magnitude, order=order)
    if measured.is_quadratic:
        return
    k = measured.worst
    finest = numeric(step / 2.0 ** (len(measured.errors) - 1))[k]
    raise JointError(
        f"at q = {subject.q[k]:.6g} it is {row(claim[k])}, but differences of the "
        f"pose give {row(finest)}, linear then angular, in the axes of the outer "
        f"frame. "
        f"{_reason(subject, measured, claim[k], finest)}"
    )


def _reason(subject: Subject, found: Descent, claim: Array, finest: Array) -> str:
    """Say what is likely to be wrong."""
    k = found.worst
    R = subject.placements(subject.q[k : k + 1])[0, :3, :3]
    moving = subject.joint.motion.poses(subject.q[k : k + 1])[0, :, :3]
    # The most frequent mistake: the right vectors in the axes of another frame.
    for axes, name in ((R, "the inner frame"), (moving, "the precursor's frame")):
        turned = np.concatenate([axes @ finest[:3], axes @ finest[3:]])
        if np.abs(turned - claim).max() < 1e-3 * (np.abs(claim).max() + 1e-12):
            return f"It is written in the axes of {name}."
    shown = ", ".join(f"{error:.2g}" for error in found.visible)
    return f"The largest relative errors at halved steps, {shown}, do not fall as h^2."


def _at(q: Array) -> str:
    return f"q = {q[0]:.6g}" if q.ndim else f"q = {q:.6g}"


# forces


MOST_SAMPLES: Final = 4


def torque(subject: Subject) -> None:
    """Check that joint force times rate is the power of the wrench."""
    for q in map(float, subject.q[:MOST_SAMPLES]):
        wrench = subject.random.normal(size=6)
        rate = float(subject.random.uniform(0.5, 2.0))
        joint_power = subject.joint.torque_to_exert(q, wrench.tolist()) * rate
        power = float(subject.joint.velocity(q, rate) @ wrench)
        require_equal(joint_power, power, f"torque_to_exert({q:.6g})", "the power")


def inertia(subject: Subject) -> None:
    """Check the force of a unit of acceleration, and the inertia seen through it.

    Through the joint nothing is felt of a motion along it; nothing is gained, and what
    is felt across the joint stays.
    """
    for q in map(float, subject.q[:MOST_SAMPLES]):
        root = subject.random.normal(size=(6, 6))
        matrix = root @ root.T + np.eye(6)
        S = subject.joint.velocity(q, 1.0)
        unit = subject.joint.unit_acceleration_torque(q, matrix)
        name = f"unit_acceleration_torque({q:.6g})"
        require_equal(unit, float(S @ matrix @ S), name, "S' I S")
        _check_articulated(subject, q, matrix, S)


def _check_articulated(subject: Subject, q: float, matrix: Array, S: Array) -> None:
    through = subject.joint.articulated_inertia(q, matrix)
    size = float(np.abs(through).max())
    name = f"articulated_inertia({q:.6g})"
    carry = np.array(adjoint(subject.joint.transform(q)), dtype=np.float64)
    whole = np.linalg.inv(carry).T @ matrix @ np.linalg.inv(carry)
    gained = float(np.linalg.eigvalsh(through - whole).max())
    felt = float(np.abs(through @ (carry @ S)).max())
    skew = float(np.abs(through - through.T).max())
    rank = np.linalg.matrix_rank(whole - through, tol=1e-7 * float(np.abs(whole).max()))
    if max(gained, felt, skew) > 1e-7 * (1.0 + size) or rank > 1:
        raise JointError(
            f"{name} is not I - I S S' I / (S' I S), carried to F: along the joint "
            f"{felt:.3g} is felt, {gained:.3g} is gained, and it is unsymmetric by "
            f"{skew:.3g}."
        )


FORCE_LAWS: dict[str, Callable[[Subject], None]] = {
    "torque": torque,
    "inertia": inertia,
}
