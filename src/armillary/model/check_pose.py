"""Poses as the model stores them: of finite floats, and rigid."""

from __future__ import annotations

import marshal
import math
import struct
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from armillary.errors import ArmillaryError, ModelError
from armillary.spatial.pose import IDENTITY, Pose
from armillary.spatial.vector import EYE

__all__ = ["are_rigid", "is_rigid", "rigid", "rigid_matrices"]

Array = npt.NDArray[np.float64]

ROTATION_TOLERANCE: Final = 1e-6
NEXT: Final = np.array([1, 2, 0])
LAST: Final = np.array([2, 0, 1])
SQUARES: Final = np.array([[1.0], [1.0], [0.0]])
BOTTOM: Final = np.array([[0.0], [0.0], [0.0], [1.0]])


def rigid(pose: Any, name: str) -> Pose:
    """Return a pose, or a matrix of shape (4, 4), as a pose of plain finite floats.

    name: Whose pose, for messages.

    Raises:
        ModelError: It is not a pose of numbers, or sheared, scaled or reflected.
    """
    if is_rigid(pose):
        return pose
    if not (isinstance(pose, Pose) and _has_plain_floats(pose)):
        pose = _plain(pose, name)
    if not is_rigid(pose):
        _refuse(pose, name, _distortion(pose)[0])
    return pose


def is_rigid(pose: Any) -> bool:
    """Return whether something is a pose of plain finite floats, and rigid."""
    if pose is IDENTITY:
        return True
    if not (isinstance(pose, Pose) and _has_plain_floats(pose)):
        return False
    error, volume = (0.0, 1.0) if pose.rotation is EYE else _distortion(pose)
    x, y, z = pose.position
    # The difference of a number to itself is 0 only where that is finite.
    is_finite = volume - volume + x - x + y - y + z - z == 0.0
    return is_finite and error <= ROTATION_TOLERANCE and volume > 0.0


def are_rigid(X: Array, most: float = ROTATION_TOLERANCE) -> bool:
    """Return whether all matrices are rigid poses, NaN being none.

    Args:
        X: The matrices, shape (..., 4, 4).
        most: How far from orthonormal a rotation may be.
    """
    if not X.size:
        return True
    if X.shape == (4, 4):  # plain numbers are quicker than small arrays
        return _is_rigid(X.tolist(), most)
    # Two rows of length 1 across each other, and their cross product. Each entry of
    # all matrices is a row here, which NumPy adds and multiplies in one piece.
    rows = np.ascontiguousarray(X.reshape(-1, 16).T).reshape(4, 4, -1)
    x, y, z = rows[0, :3], rows[1, :3], rows[2, :3]
    with np.errstate(invalid="ignore", over="ignore"):
        across = x.take(NEXT, 0) * y.take(LAST, 0) - x.take(LAST, 0) * y.take(NEXT, 0)
        dots = np.add.reduce(rows[[0, 1, 0], :3] * rows[[0, 1, 1], :3], axis=1)
        errors = np.concatenate((dots - SQUARES, z - across, rows[3] - BOTTOM))
        is_near = np.maximum.reduce(np.abs(errors), axis=None) <= most
    return bool(is_near and np.isfinite(rows[:3, 3]).all())


def _is_rigid(X: list[list[float]], most: float) -> bool:
    """Return the same of one matrix."""
    (a, b, c, x), (d, e, f, y), (g, h, i, z), (k, m, n, w) = X
    squares = a * a + b * b + c * c - 1.0, d * d + e * e + f * f - 1.0
    dot = a * d + b * e + c * f
    across = g - (b * f - c * e), h - (c * d - a * f), i - (a * e - b * d)
    is_near = all(
        abs(error) <= most for error in (*squares, dot, *across, k, m, n, w - 1.0)
    )
    return is_near and all(map(math.isfinite, (x, y, z)))


# `marshal` packs all poses that are tuples of floats, and nothing else, into bytes that
# differ in those of the numbers alone. To pack many and compare the other bytes with
# those of a sample tells the types and lengths of all of them in one call.
_VERSION: Final = 2
"""Of the format of `marshal`: the last one that writes each value anew."""
_SAMPLE: Final = (
    ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6), (0.7, 0.8, 0.9)),
    (1.1, 1.2, 1.3),
)
_HEADER_SIZE: Final = len(marshal.dumps([], _VERSION))
_PACKED_SAMPLE: Final = np.frombuffer(marshal.dumps(_SAMPLE, _VERSION), np.uint8)
_NUMBER_BYTES: Final = np.concatenate(
    [
        _PACKED_SAMPLE.tobytes().index(struct.pack("<d", number)) + np.arange(8)
        for number in chain(*_SAMPLE[0], _SAMPLE[1])
    ]
)
"""Where the 12 numbers of a packed pose are."""
_OTHER_BYTES: Final = np.delete(np.arange(len(_PACKED_SAMPLE)), _NUMBER_BYTES)


def rigid_matrices(poses: Sequence[Pose]) -> Array | None:
    """Return the matrices of poses if `is_rigid` says so of all of them, else None.

    Each takes a fraction of the time of one by itself. Shape (n, 4, 4).
    """
    try:
        packed = marshal.dumps([(X.rotation, X.position) for X in poses], _VERSION)
    except ValueError:  # something that is not Python's own
        return None
    count = len(poses)
    if len(packed) != _HEADER_SIZE + count * len(_PACKED_SAMPLE):
        return None
    every = np.frombuffer(packed, np.uint8, offset=_HEADER_SIZE).reshape(count, -1)
    if (every.take(_OTHER_BYTES, axis=1) != _PACKED_SAMPLE[_OTHER_BYTES]).any():
        return None
    entries = every.take(_NUMBER_BYTES, axis=1).view("<f8")  # shape (n, 12)
    matrices = np.zeros((count, 4, 4))
    matrices[:, :3, :3] = entries[:, :9].reshape(count, 3, 3)
    matrices[:, :3, 3], matrices[:, 3, 3] = entries[:, 9:], 1.0
    # Much less than is allowed, of what differs in another way.
    return matrices if are_rigid(matrices, 0.1 * ROTATION_TOLERANCE) else None


def _plain(given: Any, name: str) -> Pose:
    try:
        if isinstance(given, Pose):
            pose = Pose.from_rotation_position(given.rotation, given.position)
        else:
            pose = Pose.from_matrix(given)
    except ArmillaryError as error:
        raise ModelError(f"The pose of {name} is not of numbers. {error}") from error
    if not pose.is_float:
        raise ModelError(f"The pose of {name} is traced; it must be of numbers.")
    return pose


def _refuse(pose: Pose, name: str, error: float) -> NoReturn:
    if not all(map(math.isfinite, pose.entries)):
        raise ModelError(f"The pose of {name} has an entry that is not finite.")
    if not error <= ROTATION_TOLERANCE:
        raise ModelError(
            f"The rotation of {name} is sheared or scaled, R R' differs from 1 by "
            f"{error:.3g}. Take the nearest rotation with Pose.normalised()."
        )
    raise ModelError(
        f"The rotation of {name} is a reflection (determinant -1). Frames are "
        "right-handed: reverse one of the axes."
    )


def _distortion(pose: Pose) -> tuple[float, float]:
    """Return the largest entry of |R R' - 1|, and the determinant; no time is lost."""
    (a, b, c), (d, e, f), (g, h, i) = pose.rotation
    error = max(
        abs(a * a + b * b + c * c - 1.0),
        abs(d * d + e * e + f * f - 1.0),
        abs(g * g + h * h + i * i - 1.0),
        abs(a * d + b * e + c * f),
        abs(a * g + b * h + c * i),
        abs(d * g + e * h + f * i),
    )
    return error, a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


def _has_plain_floats(pose: Pose) -> bool:
    rotation: object = pose.rotation
    position: object = pose.position
    if type(rotation) is not tuple or type(position) is not tuple:
        return False
    if rotation is not EYE and (
        len(pose.rotation) != 3 or {*map(type, pose.rotation)} != {tuple}
    ):
        return False
    entries = pose.entries
    return len(entries) == 12 and {*map(type, entries)} == {float}
