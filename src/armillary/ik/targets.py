"""Targets of inverse kinematics in the forms in which poses leave kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.errors import ShapeError, quote
from armillary.kernel import vectorize
from armillary.kernel.arguments import refuse_gpu
from armillary.kinematics.poses import FORMS, READERS, SHAPES
from armillary.spatial.ldl import inner
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number, cross, dot, subtract
from armillary.trace import Program, trace
from armillary.trace.functions import absolute, select, sqrt

POSE_SIZE = 16  # numbers of a target for one goal
# How far from orthonormal a rotation may be; and how large r . d of a dual quaternion,
# of the lengths of r and of the whole.
RIGID = 1e-6

# A matrix ends with a dimension of 4, so the last dimension tells the forms apart.
_BY_SIZE = {SHAPES[form][-1]: form for form in ("quaternion", "dual_quaternion")}


def as_matrices(targets: Any) -> npt.NDArray[np.float64]:
    """Return poses as matrices, shape (..., 4, 4), where they are not so already.

    Args:
        targets: Quaternions with origins, shape (..., 7), or dual quaternions, shape
            (..., 8), of any length and either sign; what stands for no pose becomes
            NaN. Other shapes are returned as they are.

    Raises:
        ShapeError: They are not numbers, or lists of unequal lengths.
    """
    array = as_reals(targets, "targets")
    form = _BY_SIZE.get(array.shape[-1]) if array.ndim else None
    return array if form is None else np.asarray(vectorize(_reader(form), array))


def at_positions(positions: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return poses at positions (..., 3), not rotated, shape (..., 4, 4)."""
    poses = np.broadcast_to(np.eye(4), (*positions.shape[:-1], 4, 4)).copy()
    poses[..., :3, 3] = positions
    return poses


def as_reals(values: Any, name: str) -> npt.NDArray[np.float64]:
    """Return numbers, poses, or nested lists of them as an array.

    Raises:
        ShapeError: They are something else, or lists of unequal lengths.
    """
    refuse_gpu(name, values)
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        text = f"{name} must be an array of numbers, not {quote(values)}: {error}"
        raise ShapeError(text) from error


def as_joints(values: Any, name: str, n: int) -> npt.NDArray[np.float64]:
    """Return joint vectors as an array, shape (..., n).

    Raises:
        ShapeError: They have another shape.
    """
    array = as_reals(values, name)
    if array.shape[-1:] != (n,):
        raise ShapeError(
            f"{name} needs shape (..., {n}); an array of shape {array.shape} was given."
        )
    return array


def is_rigid(X: Pose, last: Sequence[Number]) -> Any:
    """Return whether a matrix is a rigid pose, to RIGID.

    Its rotation is orthonormal and right-handed, and all of it is finite.

    Args:
        X: The first three rows.
        last: The last row, which is 0 0 0 1.
    """
    # Rows a and b of length 1 and at right angles, and c = a x b.
    a, b, c = X.rotation
    lengths = dot(a, a) - 1.0, dot(b, b) - 1.0, dot(a, b)
    offs = *lengths, *subtract(cross(a, b), c), *last[:3], last[3] - 1.0
    good: Any = True
    for off in offs:
        good = good & (absolute(off) < RIGID)
    for x in X.position:
        good = good & (absolute(x) < math.inf)
    return good


@lru_cache
def rigid_program(goals: int) -> Program:
    """Return the program target -> 1 where all of it are rigid poses, else 0.

    Args:
        goals: How many poses the target holds, sixteen numbers each, row by row.
    """

    def equations(target: Sequence[Number]) -> Number:
        good: Any = True
        for k in range(goals):
            X, last = pose_at(target, k)
            good = good & is_rigid(X, last)
        return select(good, 1.0, 0.0)

    return trace(equations, name="ik_guard", target=(POSE_SIZE * goals,))


def pose_at(numbers: Sequence[Number], k: int) -> tuple[Pose, Sequence[Number]]:
    """Return the k-th pose of a target, and the last row of its matrix."""
    numbers = numbers[POSE_SIZE * k : POSE_SIZE * (k + 1)]
    *rows, last = (numbers[i : i + 4] for i in range(0, POSE_SIZE, 4))
    return Pose.from_matrix(rows), last


@lru_cache
def _reader(form: str) -> Program:
    def equations(target: Any) -> Any:
        X = READERS[form](target)
        if form != "dual_quaternion":
            return FORMS["matrix"](X)
        # r . d is 0 for a pose of any length |r|; else the numbers are sheared.
        real, dual = target[:4], target[4:]
        size = inner(real, real)
        off = inner(real, dual)
        most = RIGID * sqrt(size * (size + inner(dual, dual)))
        pose = select(absolute(off) <= most, 1.0, math.nan)
        x, y, z = (pose * p for p in X.position)
        return FORMS["matrix"](Pose(X.rotation, (x, y, z)))

    return trace(equations, name="target", outputs=("pose",), target=SHAPES[form])
