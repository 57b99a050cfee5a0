"""LLVM IR text to machine code, and machine code into this process."""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from armillary.errors import KernelError
from armillary.kernel.target import Target, machine

# llvmlite admits one thread at a time with this lock, which it does not publish.
LLVM_LOCK = llvm.ffi.lib._lock._lock  # pyright: ignore[reportPrivateUsage]


def optimised(text: str, target: Target, *, variables: bool = False) -> llvm.ModuleRef:
    """Return the parsed, checked module; the tracer has done the optimising.

    variables: Whether functions of it have variables, to be kept in registers.

    Raises:
        KernelError: LLVM refuses the text, which is a fault of ours.
    """
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise KernelError(
            f"LLVM refuses the code that was made; please report this. {error}"
        ) from error
    module.triple = target.triple
    if variables:
        options = llvm.create_pipeline_tuning_options()
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.run(module, llvm.create_pass_builder(machine(target), options))
    return module


def to_object(
    text: str, target: Target, level: int, *, variables: bool = False
) -> bytes:
    """Compile LLVM IR text to the bytes of an object file for `target`.

    Args:
        text: The IR.
        target: Machine to compile for.
        level: How hard code generation tries, 0 to 3.
        variables: As for `optimised`.

    Raises:
        KernelError: LLVM refuses the text, which is a fault of ours.
    """
    module = optimised(text, target, variables=variables)
    return machine(target, level).emit_object(module)


def to_assembly(text: str, target: Target, level: int) -> str:
    """Compile LLVM IR text to assembly for `target`, for people to read.

    Raises:
        KernelError: LLVM refuses the text, which is a fault of ours.
    """
    return machine(target, level).emit_assembly(optimised(text, target))


class Code:
    """Machine code that lives in this process as long as this object does."""

    __slots__ = ("_engine",)

    def __init__(self, code: bytes, target: Target) -> None:
        """Load the bytes of an object file.

        Raises:
            KernelError: LLVM cannot load them.
        """
        empty = llvm.parse_assembly("")
        empty.triple = target.triple
        try:
            engine = llvm.create_mcjit_compiler(empty, machine(target))
            engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            engine.finalize_object()
        except RuntimeError as error:
            raise KernelError(f"LLVM cannot load compiled code: {error}") from error
        # An array hides the engine from the garbage collector, which would unload the
        # code of a forgotten kernel before finalizers that may still call it.
        self._engine: npt.NDArray[np.object_] = np.array([engine], dtype=object)

    def address(self, name: str) -> int:
        """Return where the function called `name` starts.

        Raises:
            KernelError: There is no such function.
        """
        engine: llvm.ExecutionEngine = self._engine[0]
        address = engine.get_function_address(name)
        if address == 0:
            raise KernelError(f"Compiled code has no function '{name}'.")
        return address
