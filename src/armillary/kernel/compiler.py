"""Program or pipeline to code in memory: from the cache on disk, or through LLVM."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from armillary import disk_cache
from armillary.digests import hasher
from armillary.disk_cache import source_digest
from armillary.errors import KernelError
from armillary.forks import IMPORT_LOCK
from armillary.kernel.arguments import MAX_ARRAYS, MAX_DIMENSIONS, described
from armillary.kernel.code import Code
from armillary.kernel.host import Target, host
from armillary.kernel.machine_type import Type, real_of
from armillary.kernel.partition import LENGTH
from armillary.trace import Port, Program

if TYPE_CHECKING:
    from armillary.kernel.pipeline import Pipeline

# Fewer lanes are used where a block of rows would take more than the first number of
# bytes, and one row may take no more than the second.
BUFFER_BYTES = 2**20
MAX_ROW_BYTES = 2**19


def kernel_text(program: Program | Pipeline, real: Type, features: str = "") -> str:
    """Return the LLVM IR of a kernel: its block and its entries.

    Args:
        program: What it computes.
        real: The values that it works on: a vector with a lane for each row.
        features: Of the machine, which pipelines may use beyond what LLVM does.
    """
    # What makes code is imported where the cache has none; a fork waits for it.
    with IMPORT_LOCK:
        from armillary.kernel.builder import module_text
        from armillary.kernel.emit import emit_block
        from armillary.kernel.fastcall_entry import fastcall_entry
        from armillary.kernel.ufunc_entry import ufunc_entry

    has_tables = not isinstance(program, Program)
    if isinstance(program, Program):
        functions, scratch = emit_block(program, real)
    else:
        with IMPORT_LOCK:
            from armillary.kernel.pipeline_code import pipeline_code  # few need it

        functions, scratch = pipeline_code(program, real, features=features)
    functions += ufunc_entry(program, real, scratch, has_tables=has_tables)
    if len(program.outputs) == 1:
        entry = fastcall_entry(program, real, scratch, has_tables=has_tables)
        functions.append(entry)
    return module_text(functions)


def column_text(pipeline: Pipeline, real: Type) -> str:
    """Return the LLVM IR of a pipeline that others call."""
    with IMPORT_LOCK:
        from armillary.kernel.builder import module_text
        from armillary.kernel.pipeline_code import column_code

    return module_text(column_code(pipeline, real))


def assembly_text(program: Program, real: Type) -> str:
    """Return the machine code of a kernel as assembly."""
    with IMPORT_LOCK:
        from armillary.kernel.jit import to_assembly  # imports LLVM

    return to_assembly(kernel_text(program, real), host(), level_of(program))


def native_reals(bits: int, lanes: int = 0) -> Type:
    """Return the type of vectors on this machine; `lanes` 0 fills a register."""
    return real_of(bits, lanes or host().lanes(bits))


def level_of(program: Program | Pipeline) -> int:
    """Return how hard code generation tries: long programs would take too long."""
    # Level 2 is for what fits in two segments, see `partition`.
    parts = [program] if isinstance(program, Program) else program.programs
    length = sum(part.length for part in parts)
    return 2 if length <= 2 * LENGTH else 1


def without_empty_arrays(program: Program) -> Program:
    """Return a program without the inputs and outputs of size 0.

    It has at least one input, which may be a number that it does not use: NumPy finds
    the batch by the inputs.
    """
    inputs = tuple(port for port in program.inputs if port.size)
    outputs = tuple(port for port in program.outputs if port.size)
    if outputs and (inputs, outputs) == (program.inputs, program.outputs):
        return program
    return replace(program, inputs=inputs or (Port("nothing", ()),), outputs=outputs)


def compiled(
    program: Program | Pipeline, bits: int, lanes: int = 0
) -> tuple[Code, Type]:
    """Return code for `program` and the type of the vectors that it works on.

    Raises:
        KernelError: Its arrays are too many, too large, or have too many dimensions.
    """
    target = host()
    real = with_small_buffers(program, native_reals(bits, lanes))
    key = key_of(program.fingerprint, real.text, target.identity)
    code = loaded(
        key,
        target,
        lambda: kernel_text(program, real, target.features),
        level_of(program),
        variables=not isinstance(program, Program),
    )
    return code, real


def compiled_columns(pipeline: Pipeline, bits: int, lanes: int) -> Code:
    """Return code of a pipeline whose rows are columns, for so many lanes."""
    target, real = host(), real_of(bits, lanes)
    key = key_of("columns", pipeline.fingerprint, real.text, target.identity)
    return loaded(
        key,
        target,
        lambda: column_text(pipeline, real),
        level_of(pipeline),
        variables=True,
    )


@lru_cache(maxsize=1)
def general_code() -> Code:
    """Return the code of the general way into all kernels."""
    target = host()
    key = key_of("general entry", target.identity)

    def text() -> str:
        with IMPORT_LOCK:
            from armillary.kernel.builder import module_text
            from armillary.kernel.general_entry import general_entry

        return module_text(general_entry())

    return loaded(key, target, text, 2, variables=True)


def loaded(
    key: str,
    target: Target,
    text: Callable[[], str],
    level: int,
    *,
    variables: bool = False,
) -> Code:
    """Return the code kept under `key`, or made of `text` where none can be loaded.

    Of long code that may be a draft, see `draft.py`.

    level, variables: As for `to_object`.
    """
    # Code that cannot be loaded, say that of another LLVM under the same key, is made
    # again.
    stored = disk_cache.load(key)
    if stored is not None:
        with contextlib.suppress(KernelError):  # made anew below
            return Code(stored, target)
    with IMPORT_LOCK:
        from armillary.kernel import draft

    kept = draft.load(key)
    is_found = kept is not None
    if kept is None:
        with IMPORT_LOCK:
            from armillary.kernel.jit import to_object  # imports LLVM

        whole = text()
        if level and draft.is_long(whole):
            with IMPORT_LOCK:
                from armillary.kernel.contraction import with_contraction_decided

            whole = with_contraction_decided(whole)
            kept = draft.make(key, whole, target, level, variables=variables)
        if kept is None:
            made = to_object(whole, target, level, variables=variables)
            disk_cache.store(key, made)
            return Code(made, target)
    code = Code(kept, target, is_replaceable=True)
    draft.improve(key, code, target, to_the_end=is_found)
    return code


def with_small_buffers(program: Program | Pipeline, real: Type) -> Type:
    """Return `real`, with fewer lanes where a block of rows takes too much memory.

    Raises:
        KernelError: No number of lanes will do.
    """
    ports = (*program.inputs, *program.outputs)
    if len(ports) > MAX_ARRAYS:
        raise KernelError(
            f"'{program.name}' has {len(ports)} inputs and outputs; a kernel takes at "
            f"most {MAX_ARRAYS}. Join some of them in one array."
        )
    for port in ports:
        if len(port.shape) > MAX_DIMENSIONS:
            raise KernelError(
                f"'{program.name}' has {described(port)}; a kernel takes at most "
                f"{MAX_DIMENSIONS} dimensions besides the batch. Join some of them."
            )
    row_bytes = sum(port.size for port in ports) * real.scalar.bytes
    if row_bytes > MAX_ROW_BYTES:
        raise KernelError(
            f"'{program.name}' reads and writes {row_bytes} bytes for one row of its "
            f"batch; a kernel takes at most {MAX_ROW_BYTES}. Split its outputs among "
            "several programs."
        )
    # Half the lanes until the compact rows of a block, of all arrays, fit in buffers.
    lanes = real.lanes
    while lanes > 1 and lanes * row_bytes > BUFFER_BYTES:
        lanes //= 2
    return real.wide(lanes)


def key_of(*parts: str) -> str:
    """Return the key of code that depends on `parts`, and on how code is made."""
    whole = "|".join((*parts, emitter_fingerprint()))
    return hasher(whole.encode()).hexdigest()


@lru_cache(maxsize=1)
def emitter_fingerprint() -> str:
    """Return a digest of the source of this layer, which shapes all code it makes."""
    # Any change of a source makes new code: what it does to the code is not known.
    source = source_digest(("armillary.kernel", "armillary.kernel.intrinsics"))
    if source is None:
        raise KernelError("The files of the package armillary.kernel cannot be read.")
    return hasher(source).hexdigest()
