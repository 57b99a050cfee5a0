"""Kernels that compute once what an input decides that all rows of a batch share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.kernel.kernel import Kernel, shared_kernel
from armillary.trace.staging import staged

__all__ = ["with_shared_input"]

Array = npt.NDArray[Any]

BLOCKS: Final = 64
"""Batches of fewer blocks of rows are computed by one kernel, which is compiled."""

DECIDED: Final = "decided"


def with_shared_input(kernel: Kernel, name: str) -> Kernel:
    """Return a kernel that computes once what an input alone decides of a batch.

    It does so where one row of that input is given for many rows of others; other calls
    are those of `kernel`, from which results may differ in the last digit.

    Args:
        kernel: Of a Program.
        name: The name of the input, such as that of parameters.
    """
    if len(staged(kernel.program, [name], DECIDED)) == 1:
        return kernel
    names = [port.name for port in kernel.program.inputs]
    compute: Callable[..., Array] = _SharedInput(kernel, names.index(name))
    return kernel.with_batches(compute)


@dataclass(frozen=True)
class _SharedInput:
    """The calls of such a kernel; its two parts are compiled when they are needed.

    Attributes:
        kernel: What computes other calls.
        place: Which of its inputs rows share.
    """

    kernel: Kernel
    place: int

    @cached_property
    def _parts(self) -> tuple[Kernel, Kernel]:
        program, dtype = self.kernel.program, self.kernel.dtype
        first, rest = staged(program, [program.inputs[self.place].name], DECIDED)
        return shared_kernel(first, dtype=dtype), shared_kernel(rest, dtype=dtype)

    def __call__(self, *inputs: Any, out: Any = None, threads: Any = None) -> Array:
        if not self._is_shared(inputs):
            return self.kernel(*inputs, out=out, threads=threads)
        first, rest = self._parts
        return rest(*inputs, first(inputs[self.place]), out=out, threads=threads)

    def _is_shared(self, inputs: tuple[Any, ...]) -> bool:
        """Return whether one row of the input stands beside many of another."""
        ports, least = self.kernel.program.inputs, BLOCKS * self.kernel.lanes
        if len(inputs) != len(ports) or np.ndim(inputs[self.place]) != 1:
            return False
        pairs = zip(inputs, ports, strict=True)
        return any(np.size(x) >= least * port.size > 0 for x, port in pairs)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kernel, self.place)
