"""Kernels that compute once what an input decides that all rows of a batch share."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from armillary.errors import ShapeError
from armillary.kernel.kernel import Kernel, shared_kernel
from armillary.trace import OPS, Program
from armillary.trace.staging import SharedProgram, StagedProgram, staged

__all__ = ["kernel_of_shared_input"]

Array = npt.NDArray[Any]

LEAST_PART: Final = 0.25
"""The part of a program's operations that an input decides, from which on it is cut."""

WORTH: Final = 100_000
"""Operations that take as long as to call two kernels in place of one."""

DECIDED: Final = "decided"


def kernel_of_shared_input(
    program: Program, name: str, *, dtype: npt.DTypeLike = np.float64
) -> Kernel:
    """Return a kernel that computes first what an input alone decides, then the rest.

    Where one row of that input is given for many rows of others, the first part is
    computed once. Other calls compute both parts for each row, in one piece of machine
    code, in which they are rounded apart, so that a row gives the same alone and in a
    batch, to the last bit. A program of which the input decides little is not cut.

    Args:
        program: What it computes.
        name: The name of the input, such as that of parameters.
        dtype: The type that it computes in.
    """
    first, *rest = staged(program, [name], DECIDED)
    is_little = not rest or _operations(first) < LEAST_PART * _operations(program)
    if is_little or not all(port.size for port in (*program.inputs, *program.outputs)):
        return shared_kernel(program, dtype=dtype)
    whole = StagedProgram.of(program, (first, rest[0]))
    place = [port.name for port in program.inputs].index(name)
    in_turn = _InTurn(whole, place, np.dtype(dtype))
    joined = shared_kernel(whole, dtype=dtype).with_flagged_rows(in_turn)
    # Of few rows that share the input both parts are as quick, in one call.
    rows = WORTH // _operations(first)
    shared = replace(in_turn, is_shared=True)
    return joined.with_batches(_SharedInput(joined, shared), rows)


def _operations(program: Program) -> int:
    return sum(step.name in OPS for step in program.instructions)


class _InTurn(msgspec.Struct, frozen=True, dict=True):
    """Calls both parts as kernels, which are compiled when they are needed.

    Attributes:
        program: Both parts.
        place: The input that the first reads.
        dtype: The type that they compute in.
        is_shared: Whether all rows share that input.
    """

    program: StagedProgram
    place: int
    dtype: np.dtype[Any]
    is_shared: bool = False

    @cached_property
    def parts(self) -> tuple[Kernel, Kernel]:
        """Return the kernels."""
        first, rest = self.program.parts
        if self.is_shared:
            name = self.program.inputs[self.place].name
            rest = SharedProgram.of(rest, {name, DECIDED})
        return (
            shared_kernel(first, dtype=self.dtype),
            shared_kernel(rest, dtype=self.dtype),
        )

    def __call__(self, *inputs: Any, out: Any = None, threads: Any = None) -> Array:
        first, rest = self.parts
        decided = first(inputs[self.place], threads=threads)
        return rest(*inputs, decided, out=out, threads=threads)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.program, self.place, self.dtype, self.is_shared)


class _SharedInput(msgspec.Struct, frozen=True):
    """The calls of such a kernel for many rows.

    Attributes:
        kernel: What computes both parts of each row.
        in_turn: What computes the first part once, for all rows.
    """

    kernel: Kernel
    in_turn: _InTurn

    def __call__(self, *inputs: Any, out: Any = None, threads: Any = None) -> Array:
        if not self._is_shared(inputs):
            return self.kernel(*inputs, out=out, threads=threads)
        try:
            return self.in_turn(*inputs, out=out, threads=threads)
        except ShapeError:
            # Says what does not fit without the numbers that are handed over.
            self.kernel(*inputs, out=out, threads=threads)
            raise

    def _is_shared(self, inputs: tuple[Any, ...]) -> bool:
        """Tell whether all rows share the input."""
        ports, place = self.in_turn.program.inputs, self.in_turn.place
        return len(inputs) == len(ports) and np.size(inputs[place]) == ports[place].size
