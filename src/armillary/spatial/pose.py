"""Poses: where one frame is in another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, overload

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError
from armillary.spatial import quaternion as quat
from armillary.spatial import rotation as rot
from armillary.spatial.euler import fixed_xyz, rows_from_fixed_xyz
from armillary.spatial.vector import (
    EYE,
    ZERO,
    Number,
    Rows,
    Vector3,
    add,
    apply,
    are_floats,
    largest,
    multiply,
    negate,
    number,
    rows,
    scale,
    snap_rows,
    subtract,
    transpose,
    vector,
)

TOLERANCE: Final = 1e-6


class Pose(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The pose X_AB of a frame B in a frame A; maps coordinates in B to those in A.

    Its static methods make plain floats of any numbers; the fields themselves are
    taken as they are.

    Attributes:
        rotation: R_AB, three rows.
        position: p_AB, the origin of B in A [m].
    """

    rotation: Rows
    position: Vector3

    @staticmethod
    def identity() -> Pose:
        """Return the pose of a frame in itself."""
        return IDENTITY

    @staticmethod
    def translation(x: Number, y: Number, z: Number) -> Pose:
        """Return the pose at (x, y, z) [m] with the same axes."""
        return Pose(EYE, (number(x), number(y), number(z)))

    @staticmethod
    def rotation_x(angle: Number) -> Pose:
        """Return the pose turned by `angle` [rad] about x."""
        return Pose(rot.about_x(number(angle)), ZERO)

    @staticmethod
    def rotation_y(angle: Number) -> Pose:
        """Return the pose turned by `angle` [rad] about y."""
        return Pose(rot.about_y(number(angle)), ZERO)

    @staticmethod
    def rotation_z(angle: Number) -> Pose:
        """Return the pose turned by `angle` [rad] about z."""
        return Pose(rot.about_z(number(angle)), ZERO)

    @staticmethod
    def rotation_about(axis: Any, angle: Number) -> Pose:
        """Return the pose turned by `angle` [rad] about `axis`, shape (3,), any length.

        Raises:
            ShapeError: `axis` is not three numbers.
            ModelError: `axis` is zero or not finite.
        """
        return Pose(rot.about_axis(vector(axis), number(angle)), ZERO)

    @staticmethod
    def from_rotation_position(rotation: Any, position: Any = ZERO) -> Pose:
        """Return the pose of a rotation, which is not checked, and a position.

        Args:
            rotation: Shape (3, 3).
            position: Of the origin [m], shape (3,).

        Raises:
            ShapeError: A shape differs.
        """
        return Pose(rows(rotation), vector(position))

    @staticmethod
    def from_matrix(matrix: Any, *, tolerance: float = TOLERANCE) -> Pose:
        """Return the pose of a matrix, shape (4, 4) or (3, 4).

        Args:
            matrix: Rotation and origin [m]; numbers are checked, traced scalars not.
            tolerance: Largest error of an entry of R R' - 1 and of the last row.

        Raises:
            ShapeError: The shape differs, or an entry is not a number.
            ModelError: It is not finite, sheared, scaled or reflected.
        """
        if type(matrix) is np.ndarray and matrix.dtype == np.float64:
            pose = _plain_pose(matrix, tolerance)
            if pose is not None:
                return pose
        try:
            array = np.asarray(matrix, dtype=object)
        except ValueError as error:
            raise ShapeError("A pose's rows have unequal lengths.") from error
        if array.shape not in {(4, 4), (3, 4)}:
            raise ShapeError(f"A pose has shape (4, 4) or (3, 4), not {array.shape}.")
        pose = Pose(rows(array[:3, :3]), vector(array[:3, 3]))
        last = [number(value) for value in array[3:].flat]
        _check(pose, last, tolerance)
        return pose

    @staticmethod
    def from_quaternion(wxyz: Any, position: Any = ZERO) -> Pose:
        """Return the pose of a quaternion and a position.

        Args:
            wxyz: A quaternion of any length, w first, shape (4,).
            position: Of the origin [m], shape (3,).

        Raises:
            ShapeError: A shape differs.
            ModelError: The quaternion is zero or not finite.
        """
        rotation = quat.rows_from_quaternion(quat.quaternion(wxyz))
        return Pose(snap_rows(rotation), vector(position))

    @staticmethod
    def from_rpy(
        roll: Number, pitch: Number, yaw: Number, position: Any = ZERO
    ) -> Pose:
        """Return the pose Rz(yaw) Ry(pitch) Rx(roll) [rad] at a position [m], (3,).

        Raises:
            ShapeError: A shape differs.
        """
        rotation = rows_from_fixed_xyz(number(roll), number(pitch), number(yaw))
        return Pose(rotation, vector(position))

    def rpy(self) -> Vector3:
        """Return roll, pitch and yaw [rad]: the rotation is Rz(yaw) Ry(pitch) Rx(roll).

        Pitch is within [-pi/2, pi/2], the others within [-pi, pi]. Where pitch is a
        right angle (gimbal lock, to 1e-14) roll and yaw turn about one axis: yaw is 0
        there and roll their difference, or sum. `from_rpy` always gives the rotation.
        """
        return fixed_xyz(self.rotation)

    @overload
    def __matmul__(self, other: Pose) -> Pose: ...

    @overload
    def __matmul__(self, other: Sequence[Any] | npt.NDArray[Any]) -> Any: ...

    def __matmul__(self, other: Any) -> Any:
        """Return X_AC = X_AB X_BC, or the point p_A = X_AB p_B of shape (3,).

        Where X_BC is an array, shape (..., 4, 4), X_AC is one of the same shape.
        """
        if isinstance(other, Pose):
            return Pose(
                multiply(self.rotation, other.rotation),
                add(apply(self.rotation, other.position), self.position),
            )
        if np.shape(other)[-2:] == (4, 4):
            return self.matrix() @ np.asarray(other)
        return add(apply(self.rotation, vector(other)), self.position)

    def inverse(self) -> Pose:
        """Return X_BA."""
        rotation = transpose(self.rotation)
        return Pose(rotation, negate(apply(rotation, self.position)))

    def rotate(self, direction: Any) -> Vector3:
        """Return a direction, shape (3,), given in B, in the axes of A."""
        return apply(self.rotation, vector(direction))

    def matrix(self) -> npt.NDArray[Any]:
        """Return a new 4x4 array, of float64, or of objects where it is traced."""
        lines = [(*row, p) for row, p in zip(self.rotation, self.position, strict=True)]
        dtype = np.float64 if self.is_float else object
        return np.array([*lines, (0.0, 0.0, 0.0, 1.0)], dtype=dtype)

    def __array__(
        self, dtype: Any = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """Return `matrix()`: a pose may stand wherever an array of one is taken."""
        return self.matrix() if dtype is None else self.matrix().astype(dtype)

    def quaternion(self) -> quat.Quaternion:
        """Return the rotation as w, x, y, z, of length 1, with w >= 0."""
        return quat.quaternion_from_rows(self.rotation)

    def scaled(self, factor: Number) -> Pose:
        """Return the pose with its origin `factor` times as far away."""
        return Pose(self.rotation, scale(factor, self.position))

    def normalised(self) -> Pose:
        """Return the pose with the nearest true rotation; traced ones stay as they are.

        Rounding in files and in long products leaves rotations slightly sheared.
        """
        if not self.is_float:
            return self
        return Pose(rot.nearest_rotation(self.rotation), self.position)

    def approx_equal(self, other: Pose, tolerance: float) -> bool:
        """Return whether the entries of `other` differ by at most `tolerance`."""
        pairs = zip(self.entries, other.entries, strict=True)
        return largest(a - b for a, b in pairs) <= tolerance

    @property
    def entries(self) -> tuple[Number, ...]:
        """Return the nine entries of the rotation, then the three of the origin."""
        x, y, z = self.rotation
        return (*x, *y, *z, *self.position)

    @property
    def is_float(self) -> bool:
        """Return whether nothing in it is traced."""
        return are_floats(self.entries)

    @property
    def is_identity(self) -> bool:
        """Return whether it is exactly the identity; never where anything is traced."""
        return self.is_float and self == IDENTITY


IDENTITY: Final = Pose(EYE, ZERO)


def pose_from(X: Any) -> Pose:
    """Return a pose as it is, a matrix as the pose that it is.

    X: A `Pose`, or shape (4, 4) or (3, 4).

    Raises:
        ShapeError: The shape differs, or an entry is not a number.
        ModelError: It is not finite, sheared, scaled or reflected.
    """
    return X if isinstance(X, Pose) else Pose.from_matrix(X)


def pose_of_entries(entries: Sequence[Number]) -> Pose:
    """Return the pose of the twelve numbers in `Pose.entries`, not checked."""
    a, b, c, d, e, f, g, h, i, x, y, z = entries
    return Pose(((a, b, c), (d, e, f), (g, h, i)), (x, y, z))


def pose_of_matrix(matrix: npt.NDArray[np.float64]) -> Pose:
    """Return the pose of a matrix of floats, shape (4, 4), not checked."""
    (a, b, c, x), (d, e, f, y), (g, h, i, z), _ = matrix.tolist()
    return Pose(((a, b, c), (d, e, f), (g, h, i)), (x, y, z))


def matrices_of(poses: Sequence[Pose]) -> npt.NDArray[np.float64]:
    """Return the matrices of poses of floats, shape (n, 4, 4)."""
    # One flat list of numbers becomes an array sooner than nested ones.
    flat: list[Any] = []
    for X in poses:
        (a, b, c), (d, e, f), (g, h, i) = X.rotation
        x, y, z = X.position
        flat += (a, b, c, x, d, e, f, y, g, h, i, z, 0.0, 0.0, 0.0, 1.0)
    return np.fromiter(flat, np.float64, len(flat)).reshape(-1, 4, 4)


def _plain_pose(matrix: Any, tolerance: float) -> Pose | None:
    """Return the pose of a matrix of floats; None where it is not surely one."""
    if matrix.shape != (4, 4):
        return None
    pose = pose_of_matrix(matrix)
    is_pose = (
        matrix[3].tolist() == [0.0, 0.0, 0.0, 1.0]
        and all(map(math.isfinite, pose.entries))
        and rot.orthonormality_error(pose.rotation) <= tolerance
        and rot.is_proper(pose.rotation)
    )
    return pose if is_pose else None


def _check(pose: Pose, last: list[Number], tolerance: float) -> None:
    """Refuse floats that are not a pose."""
    for value in (*pose.entries, *last):
        if isinstance(value, float) and not abs(value) < np.inf:
            raise ModelError(f"A pose has an entry {value}; all must be finite.")
    if last and are_floats(last):
        error = largest(subtract(vector(last[:3]), ZERO))
        if max(error, abs(last[3] - 1.0)) > tolerance:
            raise ModelError(f"A pose ends with the row 0 0 0 1, not {last}.")
    if not are_floats(pose.entries[:9]):
        return
    error = rot.orthonormality_error(pose.rotation)
    if error > tolerance:
        raise ModelError(
            "The rotation of a pose is sheared or scaled: R R' differs from 1 by "
            f"{error:.3g}, more than {tolerance:.3g}. If that is rounding, raise "
            "tolerance= and take the nearest rotation with Pose.normalised()."
        )
    if not rot.is_proper(pose.rotation):
        raise ModelError(
            "The rotation of a pose is a reflection (determinant -1): a frame is "
            "right-handed. Swap or reverse one axis."
        )
