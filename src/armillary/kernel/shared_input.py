"""Kernels that compute once what an input decides that all rows of a batch share."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

import msgspec
import numpy.typing as npt

from armillary.errors import ShapeError
from armillary.kernel.kernel import Kernel, shared_kernel
from armillary.trace import OPS, Program
from armillary.trace.staging import staged

__all__ = ["with_shared_input"]

Array = npt.NDArray[Any]

LEAST_PART: Final = 0.25
"""The part of a program's operations that an input decides, from which on it is cut."""

DECIDED: Final = "decided"


def with_shared_input(kernel: Kernel, name: str) -> Kernel:
    """Return a kernel that computes first what an input alone decides, then the rest.

    Where one row of that input is given for many rows of others, the first part is
    computed once. Calls of all sizes compute both parts, so that a row gives the same
    alone and in a batch, to the last bit: products and sums on both sides of the cut
    are rounded apart. A program of which the input decides little is not cut.

    Args:
        kernel: Of a Program.
        name: The name of the input, such as that of parameters.
    """
    first, *rest = staged(kernel.program, [name], DECIDED)
    if not rest or _operations(first) < LEAST_PART * _operations(kernel.program):
        return kernel
    names = [port.name for port in kernel.program.inputs]
    compute: Callable[..., Array] = _SharedInput(kernel, names.index(name))
    return kernel.with_batches(compute, single_rows=True)


def _operations(program: Program) -> int:
    return sum(step.name in OPS for step in program.instructions)


class _SharedInput(msgspec.Struct, frozen=True, dict=True):
    """The calls of such a kernel; its two parts are compiled when they are needed.

    Attributes:
        kernel: What it computes, as one program.
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
        first, rest = self._parts
        try:
            if out is None and threads is None:  # the quick entry of a single row
                return rest(*inputs, first(inputs[self.place]))
            decided = first(inputs[self.place], threads=threads)
            return rest(*inputs, decided, out=out, threads=threads)
        except (IndexError, ShapeError):
            # Says what does not fit without the numbers that are handed over.
            self.kernel(*inputs, out=out, threads=threads)
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kernel, self.place)
