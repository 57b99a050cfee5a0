"""The machine that code is made for: its name, its features, its vector width."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import llvmlite
import llvmlite.binding as llvm

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
