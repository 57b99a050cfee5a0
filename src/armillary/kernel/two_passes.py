"""Kernels whose rare, slow rows make up blocks of their own.

A block of rows ends with its slowest row. Where few rows take much longer than the
others, they would make most blocks slow. So a faster kernel computes a batch first;
the rows that it leaves open are then gathered and computed together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast, final

import numpy as np
import numpy.typing as npt

from armillary.kernel.kernel import Kernel

__all__ = ["in_two_passes"]

Array = npt.NDArray[Any]

BLOCKS: Final = 4
"""Batches of fewer blocks are computed at once."""


def in_two_passes(kernel: Kernel, first: Callable[[], Kernel]) -> Kernel:
    """Return a kernel of one number a row that computes open rows together.

    Args:
        kernel: What computes any row.
        first: Returns a kernel with the same inputs, called for each large batch. Where
            its result is above 0, it is that of `kernel`. Pickled with the kernel.
    """
    return kernel.with_batches(_Batches(kernel, first))


@final
@dataclass(frozen=True, slots=True)
class _Batches:
    kernel: Kernel
    first: Callable[[], Kernel]

    def __call__(self, *inputs: Any, out: Any = None, threads: Any = None) -> Array:
        kernel = self.kernel
        arrays, batch = kernel.spread(inputs)
        is_small = math.prod(batch) < BLOCKS * kernel.lanes
        if is_small or _shares_memory(out, arrays):
            return kernel(*arrays, out=out, threads=threads)
        found = self.first()(*arrays, out=out, threads=threads)
        is_open = ~(found > 0.0)
        if is_open.any():
            rows = (array[is_open] for array in arrays)
            found[is_open] = kernel(*rows, threads=threads)
        return found


def _shares_memory(out: Any, arrays: Sequence[Array]) -> bool:
    results = cast("tuple[Any, ...]", out) if isinstance(out, tuple) else (out,)
    return any(
        isinstance(result, np.ndarray)
        and np.may_share_memory(cast("Array", result), array)
        for result in results
        for array in arrays
    )
