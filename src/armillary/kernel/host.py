"""The machine that code is made for, and what LLVM says of the one that we run on."""

from __future__ import annotations

import os
import platform
import sys
from functools import lru_cache

import llvmlite
import msgspec
import numpy as np

from armillary.disk_cache import cached_arrays
from armillary.errors import KernelError
from armillary.forks import IMPORT_LOCK

__all__ = ["Target", "host"]

# Vector bits by the feature that gives them, widest first.
WIDTHS = (("avx512f", 512), ("avx2", 256), ("avx", 256), ("neon", 128), ("sse2", 128))

# Fields of /proc/cpuinfo that do not change while the system runs.
TOLD = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")


class Target(msgspec.Struct, frozen=True):
    """What the compiler must know of a machine.

    Attributes:
        triple: LLVM's name of architecture and system.
        cpu: LLVM's name of the processor.
        features: Its features as LLVM's list of `+name,-name`.
        vector_bits: The width of its vector registers; 64 where it has none.
        is_linked: Whether a linker places the code, rather than this process.
    """

    triple: str
    cpu: str
    features: str
    vector_bits: int
    is_linked: bool = False

    def lanes(self, bits: int) -> int:
        """Return how many reals of `bits` bits one register holds."""
        return max(1, self.vector_bits // bits)

    @property
    def identity(self) -> str:
        """Return what compiled code depends on besides its program."""
        llvm = _host()[3]
        return (
            f"{self.triple};{self.cpu};{self.features};{self.vector_bits};"
            f"llvmlite {llvmlite.__version__};llvm {llvm}"
        )


@lru_cache(maxsize=1)
def host() -> Target:
    """Return the machine that this process runs on.

    The environment variable `ARMILLARY_VECTOR_BITS` narrows its registers, to test
    or to measure with other widths.
    """
    triple, cpu, features, _ = _host()
    # 64-bit Arm always has NEON, though LLVM does not always list it.
    has = {*features.split(","), "+neon" * triple.startswith(("aarch64", "arm64"))}
    # The widest register that the processor has.
    width = next((bits for name, bits in WIDTHS if f"+{name}" in has), 64)
    return Target(
        triple=triple, cpu=cpu, features=features, vector_bits=_narrowed(width)
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


@lru_cache(maxsize=1)
def _host() -> tuple[str, str, str, str]:
    """Return triple, processor and features of this machine, and LLVM's version.

    Loading LLVM for these takes longer than all else that a kernel from the cache
    needs, so they are kept, too, for the same processor and the same LLVM.
    """

    def asked() -> list[str]:
        # For the calls as well: a fork waits for LLVM's lock only where `jit` is there.
        with IMPORT_LOCK:
            from armillary.kernel import processor  # imports LLVM

            return list(processor.this_machine())

    parts = _known_here()
    if parts is None:
        answers = asked()
    else:
        made_by = ("armillary.kernel.host", "armillary.kernel.processor")
        answers = list(map(str, cached_arrays("host", parts, asked, made_by=made_by)))
    triple, cpu, features, version = answers
    return triple, cpu, features, version


def _known_here() -> list[str] | None:
    """Return what decides LLVM's answers; None where this is not known without it."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    library = os.path.join(os.path.dirname(llvmlite.__file__), "binding")
    library = os.path.join(library, "libllvmlite.so")
    try:
        status = os.stat(library)
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            lines: list[str] = []
            for line in file:  # of the first processor
                if not line.strip():
                    break
                if line.partition(":")[0].strip() in TOLD:
                    lines.append(line)
    except (OSError, UnicodeDecodeError):
        return None
    # An emulator may hide from programs what the file lists; NumPy asks the processor.
    import numpy._core._multiarray_umath as umath

    found: dict[str, bool] = vars(umath)["__cpu_features__"]
    if not lines:
        return None
    seen = ",".join(name for name, has in sorted(found.items()) if has)
    file = f"{library} {status.st_size} {status.st_mtime_ns}"
    return [*lines, seen, llvmlite.__version__, file, np.__version__]
