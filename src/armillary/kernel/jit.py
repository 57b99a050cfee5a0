"""LLVM: IR text to code, and the loader for machines that have none of ours."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

import llvmlite.binding as llvm

from armillary.errors import KernelError
from armillary.kernel.host import Target

# Its code generator, for this machine and for LLVM's loader.
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()


def machine(target: Target, level: int = 2) -> Any:
    """Return LLVM's code generator for `target`, optimising at `level`."""
    features = target.features
    if target.vector_bits == 512:
        features += ",-prefer-256-bit"
    # In this process every address on x86 is absolute, 64 bits wide: constants and code
    # are loaded in separate maps, which may lie more than 2 GiB apart.
    is_x86 = target.triple.startswith("x86_64") and not target.is_linked
    # Programs of microcontrollers and pages are not moved.
    is_static = is_x86 or target.triple.startswith(("thumb", "wasm"))
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu,
        features=features,
        opt=level,
        reloc="static" if is_static else "pic",
        codemodel="large" if is_x86 else "small",
    )


# llvmlite admits one thread at a time with this lock, which it does not publish.
LLVM_LOCK = llvm.ffi.lib._lock._lock  # pyright: ignore[reportPrivateUsage]


@contextlib.contextmanager
def optimised(
    text: str, target: Target, *, variables: bool = False
) -> Generator[llvm.ModuleRef]:
    """Yield the parsed, checked module; the tracer has done the optimising.

    variables: Whether functions of it have variables, to be kept in registers.

    Raises:
        KernelError: LLVM refuses the text, which is a fault of ours.
    """
    # LLVM keeps all constants as long as their context: that of the process would grow
    # with each kernel. A module is closed before its context, whatever fails.
    with llvm.create_context() as context, _parsed(text, context) as module:
        module.triple = target.triple
        if variables:
            _keep_in_registers(module, target)
        yield module


def _parsed(text: str, context: llvm.ContextRef) -> llvm.ModuleRef:
    """Return a module that LLVM finds no fault with.

    Raises:
        KernelError: It finds one.
    """
    try:
        module = llvm.parse_assembly(text, context)
        try:
            module.verify()
        except RuntimeError:
            module.close()
            raise
    except RuntimeError as error:
        raise KernelError(
            f"LLVM refuses the code that was made; please report this. {error}"
        ) from error
    return module


def _keep_in_registers(module: llvm.ModuleRef, target: Target) -> None:
    """Keep variables of the functions of a module in registers."""
    options = llvm.create_pipeline_tuning_options()
    passes = llvm.create_new_module_pass_manager()
    # Steps of GPUs into their kernel, variables to registers, and empty blocks away;
    # the tracer has simplified the arithmetic, and more passes take longer than they
    # save.
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, llvm.create_pass_builder(machine(target), options))


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
    with optimised(text, target, variables=variables) as module:
        return machine(target, level).emit_object(module)


def to_assembly(
    text: str, target: Target, level: int, *, variables: bool = False
) -> str:
    """Compile LLVM IR text to assembly for `target`, for people to read, or GPUs.

    The arguments are those of `to_object`.

    Raises:
        KernelError: LLVM refuses the text, which is a fault of ours.
    """
    with optimised(text, target, variables=variables) as module:
        return machine(target, level).emit_assembly(module)


def engine_of(code: bytes, target: Target) -> llvm.ExecutionEngine:
    """Return LLVM's loader with the code of an object file, ready to run.

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
    return engine
