"""LLVM: the machine that it makes code for, IR text to code, code into this process."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt

from armillary.errors import KernelError

# Vector bits by the feature that gives them, widest first.
WIDTHS = (("avx512f", 512), ("avx2", 256), ("avx", 256), ("neon", 128), ("sse2", 128))


@dataclass(frozen=True, slots=True)
class Target:
    """What the compiler must know of a machine.

    Attributes:
        triple: LLVM's name of architecture and system.
        cpu: LLVM's name of the processor.
        features: Its features as LLVM's list of `+name,-name`.
        vector_bits: The width of its vector registers; 64 where it has none.
    """

    triple: str
    cpu: str
    features: str
    vector_bits: int

    def lanes(self, bits: int) -> int:
        """Return how many reals of `bits` bits one register holds."""
        return max(1, self.vector_bits // bits)

    @property
    def identity(self) -> str:
        """Return what compiled code depends on besides its program."""
        return (
            f"{self.triple};{self.cpu};{self.features};{self.vector_bits};"
            f"llvmlite {llvmlite.__version__};llvm {llvm.llvm_version_info}"
        )


@lru_cache(maxsize=1)
def host() -> Target:
    """Return the machine that this process runs on.

    The environment variable `ARMILLARY_VECTOR_BITS` narrows its registers, to test
    or to measure with other widths.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features: dict[str, bool] = dict(llvm.get_host_cpu_features())
    # 64-bit Arm always has NEON, though LLVM does not always list it.
    triple = str(llvm.get_default_triple())
    if triple.startswith(("aarch64", "arm64")):
        features.setdefault("neon", True)
    # The widest register that the processor has.
    width = next((bits for name, bits in WIDTHS if features.get(name)), 64)
    return Target(
        triple=triple,
        cpu=str(llvm.get_host_cpu_name()),
        features=str(llvm.get_host_cpu_features().flatten()),
        vector_bits=_narrowed(width),
    )


def _narrowed(width: int) -> int:
    value = os.environ.get("ARMILLARY_VECTOR_BITS")
    if value is None:
        return width
    if value not in {"64", "128", "256", "512"}:
        raise KernelError(
            f"ARMILLARY_VECTOR_BITS is {value!r}; it takes 64, 128, 256 or 512."
        )
    return int(value)


def machine(target: Target, level: int = 2) -> Any:
    """Return LLVM's code generator for `target`, optimising at `level`."""
    features = target.features
    if target.vector_bits == 512:
        features += ",-prefer-256-bit"
    # On x86 every address is absolute, 64 bits wide: constants and code are loaded in
    # separate maps, which may lie more than 2 GiB apart.
    is_x86 = target.triple.startswith("x86_64")
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu,
        features=features,
        opt=level,
        reloc="static" if is_x86 else "pic",
        codemodel="large" if is_x86 else "small",
    )


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
        # Variables to registers, and empty blocks away; the tracer has simplified the
        # arithmetic, and more passes take longer than they save.
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
