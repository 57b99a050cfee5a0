"""The kernels of a cell, each made once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from armillary.kernel import Kernel, shared_kernel
from armillary.model.workcell import Workcell
from armillary.trace import Program

__all__ = ["kernel_of"]


def kernel_of(
    cell: Workcell,
    key: Any,
    make: Callable[[], Program],
    dtype: npt.DTypeLike = np.float64,
) -> Kernel:
    """Return the kernel of a question to a cell, which keeps it.

    key: Equal for equal questions, `dtype` among them.
    """
    known: dict[Any, Kernel] = vars(cell).setdefault("kernels", {})
    kernel = known.get(key)
    if kernel is None:
        kernel = known.setdefault(key, shared_kernel(make(), dtype=dtype))
    return kernel
