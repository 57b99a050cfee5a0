"""Targets of inverse kinematics in the forms in which poses leave kernels."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.equations.poses import FORMS, READERS, SHAPES
from armillary.kernel import vectorize
from armillary.trace import Program, trace

# A matrix ends with a dimension of 4, so the last dimension tells the forms apart.
_BY_SIZE = {SHAPES[form][-1]: form for form in ("quaternion", "dual_quaternion")}


def as_matrices(targets: Any) -> npt.NDArray[np.float64]:
    """Return poses as matrices, shape (..., 4, 4), where they are not so already.

    Args:
        targets: Quaternions with origins, shape (..., 7), or dual quaternions, shape
            (..., 8), of any length and either sign; what stands for no rotation becomes
            NaN. Other shapes are returned as they are.
    """
    array = np.asarray(targets, dtype=np.float64)
    form = _BY_SIZE.get(array.shape[-1]) if array.ndim else None
    return array if form is None else np.asarray(vectorize(_reader(form), array))


@lru_cache
def _reader(form: str) -> Program:
    def equations(target: Any) -> Any:
        return FORMS["matrix"](READERS[form](target))

    return trace(equations, name="target", outputs=("pose",), target=SHAPES[form])
