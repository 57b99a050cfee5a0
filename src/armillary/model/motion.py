"""A joint's motion as programs: its pose, its twist per unit rate, and that one's rate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np

from armillary.errors import ArmillaryError, JointError
from armillary.spatial.pose import Pose
from armillary.spatial.rotation import is_proper, orthonormality_error
from armillary.spatial.twist import Vector6, vector6
from armillary.spatial.vector import Number, Rows, apply, transpose
from armillary.trace import Program, Scalar, replay, tangent, trace

ORTHONORMALITY = 1e-9
SAMPLES = (0.0, 0.3, -0.4, 1.1, -2.3)


class MovingFrame(Protocol):
    """What has a motion: see `Joint`."""

    def pose(self, q: Number) -> Any:
        """Return the pose at coordinate `q`."""

    def subspace(self, q: Number) -> Any:
        """Return the twist per unit rate in closed form, or None."""


class Motion:
    """The traced motion of one joint, precursor left out.

    Each method takes a float or a traced scalar; on the latter it records.
    """

    def __init__(self, joint: MovingFrame) -> None:
        """Trace the joint's pose.

        Raises:
            JointError: `pose` cannot be traced, or what it returns is no pose.
        """
        self._name = type(joint).__name__
        self._closed_form = joint.subspace
        self._pose = self._traced(lambda q: as_pose(joint.pose(q), self._name).entries)
        self._check_rotations()

    @property
    def program(self) -> Program:
        """Return the program from q to the twelve entries of the pose."""
        return self._pose

    def pose(self, q: Number) -> Pose:
        """Return the pose at `q`."""
        return _pose_of_entries(replay(self._pose, [q]))

    def subspace(self, q: Number) -> Vector6:
        """Return S(q): the twist of M relative to F at unit rate, in M, about M."""
        return _six(replay(self._twist, [q]))

    def traced_subspace(self, q: Number) -> Vector6:
        """Return S(q) from the traced pose, also where the joint gives a closed form."""
        return _six(replay(self._traced_twist, [q]))

    def subspace_rate(self, q: Number) -> Vector6:
        """Return dS/dq."""
        return _six(replay(self._twist_rate, [q]))

    @cached_property
    def _twist(self) -> Program:
        if self._closed_form(0.0) is None:
            return self._traced_twist
        return self._traced(lambda q: vector6(self._closed_form(q)))

    @cached_property
    def _traced_twist(self) -> Program:
        return self._traced(lambda q: _twist_of(self.pose(q), q))

    @cached_property
    def _twist_rate(self) -> Program:
        return self._traced(lambda q: tangent(list(self.subspace(q)), [(q, 1.0)]))

    def _traced(self, function: Callable[[Scalar], Any]) -> Program:
        try:
            return trace(function, name=f"{self._name}.pose", q=())
        except JointError:
            raise
        except ArmillaryError as error:
            raise JointError(f"{self._name}.pose cannot be traced: {error}") from error

    def _check_rotations(self) -> None:
        """Refuse a pose that is sheared or reflected wherever it is defined."""
        poses = [self.pose(q) for q in SAMPLES]
        defined = [X for X in poses if all(map(math.isfinite, X.entries))]
        for X in defined:
            error = orthonormality_error(X.rotation)
            if error > ORTHONORMALITY:
                raise JointError(
                    f"{self._name}.pose returns no pose: its rotation is sheared or "
                    f"scaled, R R' differs from 1 by {error:.3g}."
                )
            if not is_proper(X.rotation):
                raise JointError(
                    f"{self._name}.pose returns no pose: its rotation is a reflection "
                    "(determinant -1)."
                )


@lru_cache(maxsize=4096)
def motion_of(joint: MovingFrame) -> Motion:
    """Return the motion of a joint, shared by all equal ones without a precursor."""
    return Motion(joint)


def as_pose(value: Any, name: str) -> Pose:
    """Return what a joint's `pose` returned as a Pose.

    Raises:
        JointError: It is none of the accepted forms.
    """
    if isinstance(value, Pose):
        return value
    try:
        if isinstance(value, tuple) and len(value) == 2:
            return Pose.from_rotation_position(value[0], value[1])
        return Pose.from_matrix(value)
    except (ArmillaryError, TypeError, ValueError) as error:
        raise JointError(
            f"{name}.pose must return a Pose, a 4x4 array, or a pair of rotation (3, 3) "
            f"and position (3,); it returned {_described(value)}. {error}"
        ) from error


def _described(value: Any) -> str:
    if isinstance(value, (list, tuple, np.ndarray)):
        try:
            return f"an array of shape {np.asarray(value, dtype=object).shape}"
        except ValueError:
            return "rows of unequal length"
    return f"a {type(value).__name__}"


def _twist_of(X: Pose, q: Scalar) -> list[Number]:
    """Return S = (R' p', vee(R' R')) with ' the derivative by q on the right factors."""
    rates = tangent(list(X.entries), [(q, 1.0)])
    inverse = transpose(X.rotation)
    spin = _pose_of_entries(rates).rotation
    v = apply(inverse, (rates[9], rates[10], rates[11]))
    w = (
        _row_product(inverse, spin, 2, 1),
        _row_product(inverse, spin, 0, 2),
        _row_product(inverse, spin, 1, 0),
    )
    return [*v, *w]


def _row_product(a: Rows, b: Rows, row: int, column: int) -> Number:
    return sum(a[row][k] * b[k][column] for k in range(3))


def _pose_of_entries(e: Sequence[Number]) -> Pose:
    rotation = ((e[0], e[1], e[2]), (e[3], e[4], e[5]), (e[6], e[7], e[8]))
    return Pose(rotation, (e[9], e[10], e[11]))


def _six(values: Sequence[Number]) -> Vector6:
    a, b, c, d, e, f = values
    return (a, b, c, d, e, f)
