"""Machine code of a program or pipeline, and what a kernel needs besides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from armillary import forks
from armillary.errors import KernelError
from armillary.forks import IMPORT_LOCK
from armillary.kernel import binding
from armillary.kernel.arguments import Array, ufunc_signature
from armillary.kernel.fallback import STATE, Compute, new_state
from armillary.kernel.references import vectorize
from armillary.trace import Port, Program

if TYPE_CHECKING:
    from armillary.kernel.derivatives import Mode
    from armillary.kernel.pipeline import Pipeline
    from armillary.kernel.pipeline_reference import Called

__all__ = ["Native", "native_of", "real_type"]

_REALS = (np.dtype(np.float64), np.dtype(np.float32))
_LANES = (1, 2, 4, 8, 16)


class Native(msgspec.Struct, frozen=True, kw_only=True):
    """What a kernel is made of.

    Attributes:
        program: What it computes.
        core: The same without inputs and outputs of size 0, which NumPy cannot pass.
        operations: About how many operations a row takes.
        dtype: The type it computes in.
        lanes: The number of rows that it computes at once.
        requested: The number that was asked for; 0 for that of a register.
        ufunc: The generalised ufunc of `core`; None if that has no outputs.
        call: Address of the compiled body of a single call, 0 where there is none.
        loop: Address of the loop over rows, 0 where only the ufunc may call it.
        state: What each call copies, see `fallback`.
        tables: The records of each table of a pipeline.
        called: What calls of a pipeline run.
        flagged: Computes rows that machine code flags; None for NumPy.
        derived: Makes a derivative of a pipeline by some inputs, a `CompiledPipeline`
            that takes the same tables.
        pickled: A function and its arguments that make a kernel of it again; None
            where `compile` does.
        owned: What must live as long as any of this.
    """

    program: Program | Pipeline
    core: Program | Pipeline
    operations: int
    dtype: np.dtype[Any]
    lanes: int
    requested: int
    ufunc: Callable[..., Any] | None
    call: int
    loop: int
    state: npt.NDArray[np.int64]
    tables: Mapping[str, Array]
    called: Called | None
    flagged: Compute | None
    derived: Callable[[Mode, tuple[str, ...]], Any] | None
    pickled: tuple[Any, ...] | None
    owned: tuple[object, ...]

    def with_numpy(self) -> Compute:
        """Return the function of arrays that computes rows that machine code flags.

        It is NumPy, or `flagged`.
        """
        if self.flagged is not None:
            return self.flagged
        if isinstance(self.core, Program):
            return partial(vectorize, self.core)
        with IMPORT_LOCK:
            from armillary.kernel.pipeline_reference import evaluate

        return partial(evaluate, self.core, self.tables, called=self.called)


def real_type(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the type of reals that a kernel computes in.

    Raises:
        KernelError: There is no native code for it.
    """
    try:
        kind = np.dtype(dtype)
    except TypeError as error:
        raise KernelError(f"{dtype!r} is not a dtype; {error}.") from error
    # The one object of this type, so that arrays are compared with it by identity.
    for real in _REALS:
        if kind == real:
            return real
    raise KernelError(f"Kernels compute in float64 or float32, not in {kind}.")


def native_of(
    program: Program | Pipeline, dtype: npt.DTypeLike, lanes: int | None
) -> Native:
    """Return the machine code of a program or pipeline, whose tables are empty.

    Raises:
        KernelError: As for `compile`.
    """
    kind = real_type(dtype)
    if lanes is not None and lanes not in _LANES:
        raise KernelError(f"lanes is {lanes!r}; it must be one of {_LANES}.")
    with forks.IMPORT_LOCK:
        from armillary.kernel import compiler  # imports LLVM

    core = program
    if isinstance(program, Program):
        core = compiler.without_empty_arrays(program)
    code, real = compiler.compiled(core, kind.itemsize * 8, lanes or 0)
    ufunc, owned = None, ()
    if core.outputs:
        ufunc, owned = binding.make_ufunc(
            code.address("loop"),
            kind,
            # One input more than the program has: the state, see `ufunc_entry`.
            (len(core.inputs) + 1, len(core.outputs)),
            ufunc_signature(core, Port("state", (STATE.bytes // 8,))),
            core.name,
        )
    # Machine code takes arrays as they come: none may be left out.
    fast = core is program and binding.arrays_are_as_expected()
    return Native(
        program=program,
        core=core,
        operations=program.operation_count + 1,
        dtype=kind,
        lanes=real.lanes,
        requested=lanes or 0,
        ufunc=ufunc,
        # @call exists for one output.
        call=code.address("call") if fast and len(program.outputs) == 1 else 0,
        loop=code.address("loop") if fast else 0,
        state=new_state(),
        tables={},
        called=None,
        flagged=None,
        derived=None,
        pickled=None,
        owned=(code, *owned),
    )
