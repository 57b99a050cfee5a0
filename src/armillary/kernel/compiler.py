"""Program to code in memory: from the cache on disk, or through LLVM."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.resources import files

from armillary.kernel import cache
from armillary.kernel.block import Shape
from armillary.kernel.emit import emit_block
from armillary.kernel.entry import emit_call, emit_loop
from armillary.kernel.native import Code, to_assembly, to_object
from armillary.kernel.segments import LENGTH
from armillary.kernel.target import Target, host
from armillary.trace import Program


def module_text(program: Program, shape: Shape) -> str:
    """Return the LLVM IR of a kernel: its block and its entries."""
    parts = [emit_block(program, shape), emit_loop(program, shape)]
    if len(program.outputs) == 1:
        parts.append(emit_call(program, shape))
    return "\n\n".join(parts) + "\n"


def assembly_text(program: Program, shape: Shape) -> str:
    """Return the machine code of a kernel as assembly."""
    return to_assembly(module_text(program, shape), host(), level_of(program))


def native_shape(bits: int, lanes: int = 0) -> Shape:
    """Return the shape of values on this machine; `lanes` 0 fills a register."""
    return Shape(bits, lanes or host().lanes(bits))


def level_of(program: Program) -> int:
    """Return how hard code generation tries: long programs would take too long."""
    return 2 if len(program.instructions) <= 2 * LENGTH else 1


def compiled(program: Program, bits: int, lanes: int = 0) -> tuple[Code, Shape]:
    """Return code for `program` and the shape of the values that it works on."""
    target = host()
    shape = native_shape(bits, lanes)
    key = _key(program, shape, target)
    code = cache.load(key)
    if code is None:
        code = to_object(module_text(program, shape), target, level_of(program))
        cache.store(key, code)
    return Code(code, target), shape


def _key(program: Program, shape: Shape, target: Target) -> str:
    parts = program.fingerprint, str(shape), target.identity, emitter_fingerprint()
    return hashlib.sha256("|".join(parts).encode()).hexdigest()


@lru_cache(maxsize=1)
def emitter_fingerprint() -> str:
    """Return a digest of the source of this layer, which shapes all code it makes."""
    digest = hashlib.sha256()
    folder = files("armillary.kernel")
    for part in (folder, folder / "intrinsics"):
        for file in sorted(part.iterdir(), key=lambda entry: entry.name):
            if file.name.endswith(".py"):
                digest.update(file.read_bytes())
    return digest.hexdigest()
