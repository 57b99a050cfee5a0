"""Rare, slow rows of a batch in blocks of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, cast, final

import msgspec
import numpy as np

from armillary.kernel.arguments import Array
from armillary.kernel.kernel import Kernel

__all__ = ["in_two_passes"]

BLOCKS: Final = 4
"""Batches of fewer blocks are computed in one pass."""


def in_two_passes(kernel: Kernel, first: Callable[[], Kernel]) -> Kernel:
    """Return a kernel of one number a row that computes open rows together.

    A block of rows ends with its slowest row. Where few rows take much longer than the
    others, they would make most blocks slow. So a faster kernel computes a batch first;
    the rows that it leaves open are then gathered and computed together.

    Args:
        kernel: What computes any row.
        first: Returns a kernel with the same inputs, called for each large batch. Where
            its result is above 0, it is that of `kernel`. Pickled with the kernel.
    """
    return kernel.with_batches(_TwoPasses(kernel, first))


@final
class _TwoPasses(msgspec.Struct, frozen=True):
    kernel: Kernel
    first: Callable[[], Kernel]

    def __call__(self, *inputs: Any, out: Any = None, threads: Any = None) -> Array:
        kernel = self.kernel
        arrays, batch = kernel.spread(inputs)
        is_small = math.prod(batch) < BLOCKS * kernel.lanes
        if is_small or _shares_memory(out, arrays):
            return kernel(*arrays, out=out, threads=threads)
        result = self.first()(*arrays, out=out, threads=threads)
        is_open = ~(result > 0.0)  # NaN, too
        if is_open.any():
            # The open rows alone, gathered to whole blocks.
            rows = (array[is_open] for array in arrays)
            result[is_open] = kernel(*rows, threads=threads)
        return result


def _shares_memory(out: Any, arrays: Sequence[Array]) -> bool:
    results = cast("tuple[Any, ...]", out) if isinstance(out, tuple) else (out,)
    return any(
        isinstance(result, np.ndarray)
        and np.may_share_memory(cast("Array", result), array)
        for result in results
        for array in arrays
    )
