"""The code of compiled questions: an object and a library, or source text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from armillary.kernel.c_source import c_source
from armillary.kernel.gpu_entry import THREADS
from armillary.kernel.jit import to_assembly, to_object
from armillary.kernel.object_file import archive, for_any_float_abi
from armillary.kernel.stack_use import stack_use
from armillary.kernel.standalone import (
    StandaloneFunction,
    software_fma,
    standalone_module,
)
from armillary.kernel.targets import SOURCE, platform_of
from armillary.kernel.wasm_module import wasm_module
from armillary.portable.asked import Asked
from armillary.portable.header import Signature

__all__ = ["code_files"]

LEVEL = 2
"""How hard LLVM's code generation tries."""


def code_files(
    name: str, asked: Sequence[Asked], bits: int, target: str
) -> tuple[dict[str, bytes], list[Signature]]:
    """Return the files of code for a target, and the functions in it.

    Args:
        name: What names begin with.
        asked: What is compiled.
        bits: Of the reals that it computes in.
        target: The name of the target.

    Raises:
        UnknownName: No target has this name.
        KernelError: The target lacks the type, or a question cannot be compiled.
    """
    functions = [
        StandaloneFunction.of(
            f"{name}_{each.name}",
            each.kernel.computation,
            bound=each.bound,
            tables=each.kernel.tables,
            callees=each.kernel.callees,
        )
        for each in asked
    ]
    signatures = [
        Signature.of(each.name, question, each.inputs, each.computation.outputs)
        for each, question in zip(functions, asked, strict=True)
    ]
    if target == SOURCE:
        return {f"{name}.c": _source(functions, signatures, bits)}, signatures
    platform = platform_of(target)
    module = standalone_module(functions, bits, platform)
    if platform.is_gpu:
        text = to_assembly(module, platform.machine, LEVEL, variables=True)
        return {f"{name}.ptx": f"{_of_threads(signatures)}{text}".encode()}, signatures
    # Where stacks are small, nothing would say that there is too little.
    used = stack_use(module)
    signatures = [
        replace(each, stack=max(used[key] for key in each.prototypes()))
        for each in signatures
    ]
    code = to_object(module, platform.machine, LEVEL, variables=True)
    if "eabi" in platform.machine.triple:
        code = for_any_float_abi(code)
    exported = [key for each in signatures for key in each.prototypes()]
    library = archive([("code.o", code)], exported)
    files = {f"{name}.o": code, f"lib{name}.a": library}
    if platform.is_windows:
        files = {f"{name}.obj": code, f"{name}.lib": library}
    if platform.is_wasm:
        files[f"{name}.wasm"] = wasm_module(code, exported)
    return files, signatures


def _of_threads(signatures: Sequence[Signature]) -> str:
    """Return what the kernels of a GPU compute, as comments of PTX."""
    lines = [
        "Each kernel takes addresses on the GPU of inputs, then of results, whose rows",
        "follow each other; then, in 64 bits each, the number of rows, and for each",
        "input how many numbers it is from a row to the next: its size, or 0 where all",
        "rows share it. Each thread computes a row: start as many threads, or more, in",
        f"blocks of {THREADS}, of one dimension.",
    ]
    for each in signatures:
        lines += ["", f"{each.name}, arrays of {each.real}", *each.description]
    return "".join(f"// {line}".rstrip() + "\n" for line in lines)


def _source(
    functions: Sequence[StandaloneFunction],
    signatures: Sequence[Signature],
    bits: int,
) -> bytes:
    """Return the C99 source, whose rows are computed one by one."""
    module = standalone_module(functions, bits, None)
    prototypes = {
        key: each for one in signatures for key, each in one.prototypes().items()
    }
    fma = "exact_fma" if bits == 64 else "exact_fmaf"
    return c_source(
        module, prototypes, {fma: software_fma(fma, f"f{bits}").text}
    ).encode()
