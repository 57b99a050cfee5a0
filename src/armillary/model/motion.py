"""A joint's motion as programs: its pose, its twist per unit rate, the rate of that."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property, lru_cache
from typing import Any, NoReturn, Protocol, cast

import numpy as np
import numpy.typing as npt

from armillary.errors import ArmillaryError, JointError
from armillary.model.special_points import (
    Rates,
    equality_points,
    rates_beside,
    sign_points,
    takes_signs,
)
from armillary.model.user_warning import warn_user
from armillary.model.values_read import values_read
from armillary.spatial.pose import Pose, pose_of_entries
from armillary.spatial.twist import Vector6, add6, scale6, six, vector6
from armillary.spatial.vector import Number, Rows, apply, transpose
from armillary.trace import Op, Program, Scalar, Traced, evaluate, jvp, trace

Array = npt.NDArray[np.float64]

ORTHONORMALITY = 1e-9
SAMPLES = np.array(
    [0.0, *(sign * 0.0071 * 2.9**k for k in range(9) for sign in (1, -1))]
)


class MovingFrame(Protocol):
    """What has a motion: see `Joint`."""

    def pose(self, q: Number) -> Any:
        """Return the pose at coordinate `q`, or at an array of several."""

    def subspace(self, q: Number) -> Any:
        """Return the twist per unit rate in closed form, or None."""


class TracedMotion:
    """The traced motion of one joint, precursor left out.

    Each method takes a float or a traced scalar for each coordinate, which is one but
    for a `Mechanism`; on traced scalars it records.

    Attributes:
        shape: Of what `pose` takes: () for one coordinate, (n,) for several.
    """

    def __init__(self, joint: MovingFrame, count: int | None = None) -> None:
        """Trace the joint's pose.

        count: Of its coordinates, where `pose` takes an array of them.

        Raises:
            JointError: `pose` cannot be traced, or what it returns is not a pose.
        """
        self._name = type(joint).__name__
        self.shape = () if count is None else (count,)
        self._closed_form = joint.subspace
        self._pose = self._traced_pose(joint)
        self._check_rotations()

    @property
    def program(self) -> Program:
        """Return the program from q to the twelve entries of the pose."""
        return self._pose

    def pose(self, *q: Number) -> Pose:
        """Return the pose at the coordinates `q`."""
        return pose_of_entries(evaluate(self._pose, q))

    def columns(self, *q: Number) -> list[Vector6]:
        """Return for each coordinate the twist of M in F at unit rate, written in M."""
        twists = evaluate(self._partial_twists if self.shape else self._twist, q)
        return [six(twists[k : k + 6]) for k in range(0, len(twists), 6)]

    def subspace(self, q: Number) -> Vector6:
        """Return S(q): the twist of M relative to F at unit rate, in M, about M."""
        return six(evaluate(self._twist, [q]))

    def given_subspace(self, q: Number) -> Vector6 | None:
        """Return S(q) where the joint gives a closed form."""
        given = self._closed_form(q)
        return None if given is None else vector6(given)

    def traced_subspace(self, q: Number) -> Vector6:
        """Return S(q) from the pose, also where the joint gives a closed form."""
        return six(evaluate(self._traced_twist, [q]))

    def subspace_rate(self, q: Number) -> Vector6:
        """Return dS/dq."""
        return six(evaluate(self._twist_rate, [q]))

    def column_rates(self, q: Sequence[Number], qd: Sequence[Number]) -> list[Vector6]:
        """Return the time derivative of each of `columns` at the rates `qd`."""
        if not self.shape:
            return [scale6(qd[0], self.subspace_rate(q[0]))]
        rates = evaluate(self._partial_twist_rates, [*q, *qd])
        return [six(rates[k : k + 6]) for k in range(0, len(rates), 6)]

    def warn_of_accelerations(self) -> None:
        """Warn as `column_rates` does, for who derives the columns otherwise."""
        if self._pose.equalities or takes_signs(self._pose):
            _ = self._partial_twist_rates if self.shape else self._twist_rate

    def column_accelerations(
        self, q: Sequence[Number], qd: Sequence[Number], qdd: Sequence[Number]
    ) -> list[Vector6]:
        """Return the second time derivative of each of `columns`."""
        if not self.shape:
            by_rate = evaluate(self._twist_curvature, [q[0]])
            steady = scale6(qd[0] * qd[0], six(by_rate))
            return [add6(steady, scale6(qdd[0], self.subspace_rate(q[0])))]
        numbers = evaluate(self._partial_twist_accelerations, [*q, *qd, *qdd])
        return [six(numbers[k : k + 6]) for k in range(0, len(numbers), 6)]

    def poses(self, q: Array) -> Array:
        """Return the poses at many coordinates.

        Args:
            q: Coordinates, shape (n,), or (n, count) where there are several.

        Returns:
            Rotations and origins, shape (n, 3, 4).
        """
        with np.errstate(all="ignore"):
            entries = evaluate(self._pose, [*q.T] if q.ndim > 1 else [q], _on_arrays)
        count = q.shape[:1]
        table = np.stack([np.broadcast_to(entry, count) for entry in entries], -1)
        rotation = table[:, :9].reshape(-1, 3, 3)
        return np.concatenate([rotation, table[:, 9:, np.newaxis]], axis=2)

    @cached_property
    def _twist(self) -> Program:
        if self.shape:
            raise JointError(
                f"{self._name} has {self.shape[0]} coordinates, so it has no single "
                "velocity, acceleration or force: ask a cell that it is in, such as "
                "cell.velocity(frame), cell.jacobian(frame) or cell.inverse_dynamics()."
            )
        made = self._traced(self._given_twist, "subspace")
        self._warn_of_rates(lambda q: evaluate(made, q), "velocity")
        return made

    def _given_twist(self, q: Scalar) -> Sequence[Number]:
        """Return the joint's closed form where it has one."""
        given = self.given_subspace(q)
        return self.traced_subspace(q) if given is None else given

    @cached_property
    def _traced_twist(self) -> Program:
        return self._traced(lambda q: _twist_of(self.pose(q), q), "pose")

    @cached_property
    def _partial_twists(self) -> Program:
        def twists(q: Any) -> list[list[Number]]:
            X = self.pose(*q)
            return [_twist_of(X, each) for each in q]

        made = self._traced(twists, "pose")
        self._warn_of_rates(lambda q: evaluate(made, q), "velocity")
        return made

    @cached_property
    def _partial_twist_rates(self) -> Program:
        def rates(q: Any, qd: Any) -> Any:
            moving = list(zip(q, qd, strict=True))
            return [jvp(list(column), moving) for column in self.columns(*q)]

        made = trace(rates, name=f"{self._name}.pose", q=self.shape, qd=self.shape)
        speeds = [math.sin(k + 1.0) for k in range(*self.shape)]
        self._warn_of_rates(lambda q: evaluate(made, [*q, *speeds]), "acceleration")
        return made

    @cached_property
    def _partial_twist_accelerations(self) -> Program:
        def rates(q: Any, qd: Any, qdd: Any) -> Any:
            moving = [*zip(q, qd, strict=True), *zip(qd, qdd, strict=True)]
            return [jvp(list(rate), moving) for rate in self.column_rates(q, qd)]

        shape = self.shape
        name = f"{self._name}.pose"
        return trace(rates, name=name, q=shape, qd=shape, qdd=shape)

    @cached_property
    def _twist_curvature(self) -> Program:
        return self._traced(
            lambda q: jvp(list(self.subspace_rate(q)), [(q, 1.0)]), "subspace"
        )

    @cached_property
    def _twist_rate(self) -> Program:
        made = self._traced(
            lambda q: jvp(list(self.subspace(q)), [(q, 1.0)]), "subspace"
        )
        self._warn_of_rates(lambda q: evaluate(made, q), "acceleration")
        return made

    def _warn_of_rates(self, rates: Rates, kind: str) -> None:
        """Warn where a branch that one coordinate alone takes has rates of its own."""
        if fault := self.fault_of_equality(rates, kind):
            warn_user(fault)

    def fault_of_equality(self, rates: Rates, kind: str) -> str:
        """Say where rates at a point of equality are not those beside it; '' if not.

        Args:
            rates: Of the coordinates.
            kind: What they are: `velocity` or `acceleration`.
        """
        for q, place in equality_points(self._pose):
            if (beside := rates_beside(rates, q)) is not None:
                difference = self._difference_at(q, kind, rates(q), beside)
                return (
                    f"{place}: {self._name} compares with == here, and {difference}. "
                    "In place of a limit at one point use a series near it, such as "
                    "numpy.sinc, or a polynomial where abs(q) < 0.1; see 'Removable "
                    "singularities' in the page on joints."
                )
        for q in sign_points(self._pose):
            if (beside := rates_beside(rates, q)) is not None:
                difference = self._difference_at(q, kind, rates(q), beside)
                return (
                    f"{self._name}.pose takes the sign of a number that is 0 at one "
                    f"point, and {difference}. Write abs(q) in place of sign(q) * q: "
                    "its derivatives there are those of one side."
                )
        return ""

    @staticmethod
    def _difference_at(
        q: Sequence[float],
        kind: str,
        here: Sequence[float],
        beside: Array,
    ) -> str:
        """Say how rates at a point differ from those beside it."""
        k = int(np.argmax(np.abs(beside - np.array(here))))
        at = ", ".join(f"{x:g}" for x in q)
        return (
            f"at q = {at} the branch of that point alone has derivatives of its own: "
            f"the {kind} per unit rate is {here[k]:.6g} there and {beside[k]:.6g} "
            "beside it"
        )

    def _traced_pose(self, joint: MovingFrame) -> Program:
        """Trace the pose, twice, for it must depend on q and the parameters alone."""
        first, second = (
            self._traced(lambda q: as_pose(joint.pose(q), self._name).entries, "pose")
            for _ in range(2)
        )
        if first.fingerprint != second.fingerprint:
            raise JointError(
                f"{self._name}.pose did something else when it was called again. It "
                "must depend on q and on the joint's parameters alone: no random "
                "numbers, no clocks, nothing kept from call to call."
            )
        return first

    def _traced(self, function: Callable[[Scalar], Any], method: str) -> Program:
        name = f"{self._name}.{method}"
        try:
            return trace(function, name=name, q=self.shape)
        except JointError:
            raise
        except ArmillaryError as error:
            raise JointError(f"{name} cannot be traced. {error}") from error

    def _check_rotations(self) -> None:
        """Refuse a pose that is sheared or reflected wherever it is defined."""
        poses = self.poses(_samples(self.shape))
        R = poses[np.isfinite(poses).all(axis=(1, 2)), :, :3]
        if not len(R):
            return
        errors = np.abs(R @ R.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
        if errors.max() > ORTHONORMALITY:
            self._refuse(
                f"its rotation is sheared or scaled, R R' differs from 1 by "
                f"{errors.max():.3g}. Write constants with all their digits, or turn "
                "by Pose.rotation_x, rotation_y, rotation_z or rotation_about"
            )
        if np.linalg.det(R).min() < 0.0:
            self._refuse("its rotation is a reflection (determinant -1)")

    def _refuse(self, reason: str) -> NoReturn:
        raise JointError(f"{self._name}.pose returns no pose: {reason}.")


def motion_of(joint: MovingFrame, count: int | None = None) -> TracedMotion:
    """Return the motion of a joint, shared by all equal ones without a precursor.

    Of two, the values that their code reads besides must be equal, too.
    """
    return _motion_of(joint, count, values_read(joint))


@lru_cache(maxsize=4096)
def _motion_of(joint: MovingFrame, count: int | None, read: Hashable) -> TracedMotion:
    return TracedMotion(joint, count)


def _samples(shape: tuple[int, ...]) -> Array:
    """Return coordinates at which rotations are checked, near zero and far from it."""
    if not shape:
        return SAMPLES
    size = len(SAMPLES), *shape
    return SAMPLES[:, None] * np.random.default_rng(0).uniform(-1.0, 1.0, size)


def as_pose(value: Any, name: str) -> Pose:
    """Return what a joint's `pose` returned as a Pose.

    Raises:
        JointError: It has none of the accepted forms.
    """
    try:
        if isinstance(value, Pose):
            if type(value.rotation) is tuple and type(value.position) is tuple:
                return value
            return Pose.from_rotation_position(value.rotation, value.position)
        if isinstance(value, (tuple, list)) and len(cast(Sequence[Any], value)) == 2:
            return Pose.from_rotation_position(value[0], value[1])
        return Pose.from_matrix(value)
    except (ArmillaryError, TypeError, ValueError) as error:
        raise JointError(
            f"{name}.pose must return a Pose, a 4x4 array, or a pair of rotation "
            f"(3, 3) and position (3,); it returned {_described(value)}. {error}"
        ) from error


def _described(value: Any) -> str:
    if value is None:
        return "None (is a return missing?)"
    if isinstance(value, (Traced, int, float)):
        return "one number"
    if isinstance(value, (list, tuple, np.ndarray)):
        try:
            return f"an array of shape {np.asarray(value, dtype=object).shape}"
        except ValueError:
            return "rows of unequal length"
    return f"a {type(value).__name__}"


def _on_arrays(thing: Op | float) -> Any:
    return thing.on_arrays if isinstance(thing, Op) else thing


def _twist_of(X: Pose, q: Scalar) -> list[Number]:
    """Return S = (R^T dp/dq, vee(R^T dR/dq))."""
    rates = jvp(list(X.entries), [(q, 1.0)])
    inverse = transpose(X.rotation)
    spin = pose_of_entries(rates).rotation
    v = apply(inverse, (rates[9], rates[10], rates[11]))
    w = (
        _row_product(inverse, spin, 2, 1),
        _row_product(inverse, spin, 0, 2),
        _row_product(inverse, spin, 1, 0),
    )
    return [*v, *w]


def _row_product(a: Rows, b: Rows, row: int, column: int) -> Number:
    return sum(a[row][k] * b[k][column] for k in range(3))
