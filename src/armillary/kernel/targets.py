"""Machines other than this one that code can be made for, by the name that users give.

LLVM makes code for all of them here. What an instruction set lacks is a function of the
module: `standalone.py` puts those in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, final

import llvmlite.binding as llvm
import msgspec

from armillary.errors import KernelError, unknown
from armillary.kernel.host import Target, host
from armillary.kernel.machine_type import I32, I64, Type

__all__ = ["GPU", "SOURCE", "Platform", "platform_of", "target_names"]

SOURCE: Final = "c99"
"""The target that is source text, for any compiler of C99."""

GPU: Final = "ptx"
"""The target that is the assembly of GPUs, which their driver translates."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """A kind of machine, and what its code must know of it.

    Attributes:
        name: What users call it.
        machine: What LLVM must know.
        types: Bits of the reals that its instructions compute with.
        lacks: Functions of LLVM, such as `fma`, that it has no instruction for.
        address: The integer with the size of an address, C's `size_t`.
        has_pages: Whether a stack that is too small ends in a page that is guarded.
        is_wasm: Whether its code is translated again where it runs.
        is_gpu: Whether each row is a thread of its own; its code is PTX, as text.
        levels: Platforms that its code is made for, one of which is chosen where it
            runs, by number; see `levels.py`.
    """

    name: str
    machine: Target
    types: tuple[int, ...] = (64, 32)
    lacks: frozenset[str] = frozenset()
    address: Type = I64
    has_pages: bool = True
    is_wasm: bool = False
    is_gpu: bool = False
    levels: Mapping[int, Platform] = field(default_factory=dict[int, "Platform"])

    @property
    def is_windows(self) -> bool:
        """Return whether its system is Windows."""
        return "windows" in self.machine.triple

    def check_type(self, bits: int) -> None:
        """Check that it computes with reals of so many bits.

        Raises:
            KernelError: It does not.
        """
        if bits not in self.types:
            able = " or ".join(f"float{each}" for each in self.types)
            raise KernelError(
                f"The target '{self.name}' has no instructions for float{bits}; "
                f"compile for {able}."
            )


_LINUX: Final = "unknown-linux-gnu"
_PLATFORMS: Final = {
    each.name: each
    for each in (
        Platform(
            name="x86-64-v2",
            machine=Target(f"x86_64-{_LINUX}", "x86-64-v2", "", 128, is_linked=True),
            lacks=frozenset({"fma"}),
        ),
        Platform(
            name="x86-64-v3",
            machine=Target(f"x86_64-{_LINUX}", "x86-64-v3", "", 256, is_linked=True),
        ),
        Platform(
            name="x86-64-v4",
            machine=Target(f"x86_64-{_LINUX}", "x86-64-v4", "", 512, is_linked=True),
        ),
        Platform(
            name="aarch64",
            machine=Target(
                f"aarch64-{_LINUX}", "generic", "+neon", 128, is_linked=True
            ),
        ),
        # Cortex-M4 and all later ones with an FPU for float32.
        Platform(
            name="armv7em",
            machine=Target(
                "thumbv7em-none-eabihf", "cortex-m4", "", 32, is_linked=True
            ),
            types=(32,),
            lacks=frozenset({"floor", "rint", "trunc"}),
            address=I32,
            has_pages=False,
        ),
        # Cortex-M7 with an FPU for float64.
        Platform(
            name="armv7em-dp",
            machine=Target(
                "thumbv7em-none-eabihf", "cortex-m7", "", 32, is_linked=True
            ),
            address=I32,
            has_pages=False,
        ),
        Platform(
            name="wasm32",
            machine=Target(
                "wasm32-unknown-unknown", "generic", "+simd128", 128, is_linked=True
            ),
            lacks=frozenset({"fma"}),
            address=I32,
            has_pages=False,
            is_wasm=True,
        ),
        # GPUs from Volta on; the driver makes code for the one at hand.
        Platform(
            name=GPU,
            machine=Target(
                "nvptx64-nvidia-cuda", "sm_70", "+ptx64", 32, is_linked=True
            ),
            has_pages=False,
            is_gpu=True,
        ),
    )
}


_WINDOWS: Final = "pc-windows-msvc"
_X86_64: Final = {level: _PLATFORMS[f"x86-64-v{level}"] for level in (2, 3, 4)}
_PLATFORMS["x86-64"] = replace(_X86_64[2], name="x86-64", levels=_X86_64)
_OF_WINDOWS: Final = {
    level: replace(
        each,
        name=f"{each.name}-windows",
        machine=msgspec.structs.replace(each.machine, triple=f"x86_64-{_WINDOWS}"),
    )
    for level, each in _X86_64.items()
}
_PLATFORMS["x86-64-windows"] = replace(
    _OF_WINDOWS[2], name="x86-64-windows", levels=_OF_WINDOWS
)


def target_names() -> tuple[str, ...]:
    """Return the names of all targets."""
    return ("host", *_PLATFORMS, SOURCE)


@lru_cache(maxsize=32)
def platform_of(name: str) -> Platform:
    """Return the platform that users call `name`; `host` is this machine.

    Raises:
        UnknownName: No target has this name, or it is that of source text.
        KernelError: It can only be made on a machine of its kind.
    """
    if name == "host":
        here = host()
        is_old = here.triple.startswith("x86_64") and "+fma" not in here.features
        lacks = frozenset({"fma"} if is_old else ())
        return Platform(
            name=name,
            machine=msgspec.structs.replace(here, is_linked=True),
            lacks=lacks,
        )
    if name not in _PLATFORMS:
        raise unknown("target", name, target_names())
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    if _PLATFORMS[name].levels:
        if not host().triple.startswith("x86_64"):
            raise KernelError(
                f"The target '{name}' chooses its level by instructions that only "
                "machines of x86-64 can translate; compile for x86-64-v2 or x86-64-v3."
            )
        llvm.initialize_native_asmparser()
    return _PLATFORMS[name]
