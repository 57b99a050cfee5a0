"""Targets of inverse kinematics in the forms in which poses leave kernels."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.errors import ShapeError, quote
from armillary.kernel import vectorize
from armillary.kinematics.poses import FORMS, READERS, SHAPES
from armillary.spatial.ldl import inner
from armillary.spatial.pose import Pose
from armillary.trace import Program, trace
from armillary.trace.functions import absolute, select, sqrt

RIGID = 1e-6  # how large r . d may be, of the lengths of r and of the whole

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


def as_reals(values: Any, name: str) -> npt.NDArray[np.float64]:
    """Return numbers, poses, or nested lists of them as an array.

    Raises:
        ShapeError: They are something else, or lists of unequal lengths.
    """
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
