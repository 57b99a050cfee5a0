"""Machine code in this process, from the bytes of an object file.

On Linux and x86-64 the sections are placed here, without LLVM, which takes longer to
load than all else that a kernel from the cache needs. What LLVM makes for kernels has
one kind of relocation, absolute addresses, because of its code model; an object with
anything else, and those of other machines, are left to LLVM's loader.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.errors import KernelError
from armillary.forks import IMPORT_LOCK
from armillary.kernel.host import Target

__all__ = ["Code"]

# Names and numbers of the System V ABI, and of its supplement for AMD64.
HEAD: Final = b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian
RELOCATABLE, X86_64 = 1, 62
PROGBITS, SYMBOLS, RELOCATIONS, UNWINDING = 1, 2, 4, 0x70000001
WRITTEN, PLACED = 1, 2
ABSOLUTE_64: Final = 1
UNDEFINED, RESERVED = 0, 0xFF00
GLOBAL_FUNCTION: Final = 1 << 4 | 2

FILE_HEADER: Final = np.dtype(
    [
        ("ident", "S16"),
        ("type", "<u2"),
        ("machine", "<u2"),
        ("skipped", "V20"),
        ("sections", "<u8"),
        ("rest", "V12"),
        ("count", "<u2"),
        ("names", "<u2"),
    ]
)
SECTION: Final = np.dtype(
    [
        ("name", "<u4"),
        ("type", "<u4"),
        ("flags", "<u8"),
        ("address", "<u8"),
        ("offset", "<u8"),
        ("size", "<u8"),
        ("link", "<u4"),
        ("info", "<u4"),
        ("alignment", "<u8"),
        ("entry", "<u8"),
    ]
)
SYMBOL: Final = np.dtype(
    [
        ("name", "<u4"),
        ("info", "u1"),
        ("other", "u1"),
        ("section", "<u2"),
        ("value", "<u8"),
        ("size", "<u8"),
    ]
)
RELOCATION: Final = np.dtype(
    [("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")]
)


class Code:
    """Machine code that lives in this process as long as this object does."""

    __slots__ = ("_loaded",)

    def __init__(self, code: bytes, target: Target) -> None:
        """Load the bytes of an object file.

        Raises:
            KernelError: It cannot be loaded.
        """
        address_of: Callable[[str], int | None]
        placed = _placed(code) if sys.platform == "linux" else None
        if placed is None:
            with IMPORT_LOCK:
                from armillary.kernel import jit  # imports LLVM

            loaded = jit.engine_of(code, target)
            address_of = loaded.get_function_address
        else:
            loaded, functions = placed
            address_of = functions.get
        # An array hides the memory from the garbage collector, which would unload the
        # code of a forgotten kernel before finalizers that may still call it.
        self._loaded: npt.NDArray[np.object_] = np.empty(2, dtype=object)
        self._loaded[0], self._loaded[1] = loaded, address_of

    def address(self, name: str) -> int:
        """Return where the function called `name` starts.

        Raises:
            KernelError: There is no such function.
        """
        address: int | None = self._loaded[1](name)
        if not address:
            raise KernelError(f"Compiled code has no function '{name}'.")
        return address


def _placed(code: bytes) -> tuple[mmap.mmap, dict[str, int]] | None:
    """Return memory with an object's code, and its functions; None for other objects.

    Raises:
        KernelError: The system refuses memory for code.
    """
    try:
        header = np.frombuffer(code, FILE_HEADER, 1)[0]
        if not code.startswith(HEAD) or (header["type"], header["machine"]) != (
            RELOCATABLE,
            X86_64,
        ):
            return None
        sections = _table(code, SECTION, header["sections"], header["count"])
        return _of_sections(code, sections)
    except (IndexError, ValueError, KeyError):  # not whole, or another kind of object
        return None


def _table(code: bytes, kind: np.dtype[Any], offset: Any, count: Any) -> Any:
    """Return rows of a table in an object; ValueError where it ends before."""
    return np.frombuffer(code, kind, int(count), int(offset))


def _of_sections(
    code: bytes, sections: npt.NDArray[np.void]
) -> tuple[mmap.mmap, dict[str, int]] | None:
    """Return what `_placed` does, for the sections of an object.

    Raises:
        IndexError, KeyError, ValueError: An object that the linker did not make.
    """
    # Where each section that has a place begins, one behind the other.
    starts, size = np.zeros(len(sections), np.int64), 0
    placed = [
        k
        for k, s in enumerate(sections)
        # Tables for exceptions are left out: none passes through a kernel.
        if int(s["flags"]) & PLACED and s["type"] != UNWINDING
    ]
    for k in placed:
        s = sections[k]
        if s["type"] != PROGBITS or int(s["flags"]) & WRITTEN:
            return None
        align = max(1, int(s["alignment"]))
        if align > mmap.PAGESIZE or align & (align - 1):
            return None
        starts[k] = -(-size // align) * align
        size = int(starts[k]) + int(s["size"])
    if not size:
        return None
    memory = np.zeros(size, np.uint8)
    for k in placed:
        start, s = int(starts[k]), sections[k]
        memory[start : start + int(s["size"])] = _table(
            code, np.dtype(np.uint8), s["offset"], s["size"]
        )

    room = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    base = ctypes.addressof(ctypes.c_char.from_buffer(room))
    (listed,) = (s for s in sections if s["type"] == SYMBOLS)
    symbols = _table(code, SYMBOL, listed["offset"], listed["size"] // SYMBOL.itemsize)
    texts = sections[listed["link"]]

    def name_of(symbol: Any) -> str:
        start = int(texts["offset"]) + int(symbol["name"])
        return code[start : code.index(b"\0", start)].decode()

    has_place = np.isin(symbols["section"], placed)
    values = symbols["value"].astype(np.int64)
    values[has_place] += base + starts[symbols["section"][has_place]]
    for table in sections[sections["type"] == RELOCATIONS]:
        k = int(table["info"])
        if k not in placed:
            continue
        rows = _table(
            code, RELOCATION, table["offset"], table["size"] // RELOCATION.itemsize
        )
        for j in np.unique(rows["symbol"]):
            if symbols["section"][j] == UNDEFINED:
                values[j] = _of_process(name_of(symbols[j]))
            elif not has_place[j]:
                return None
        ends = rows["offset"].astype(np.int64) + 8
        if np.any(rows["type"] != ABSOLUTE_64) or np.any(ends > sections[k]["size"]):
            return None
        at = starts[k] + ends[:, None] + np.arange(-8, 0)
        words = values[rows["symbol"]] + rows["addend"]
        memory[at] = words.astype("<i8").view(np.uint8).reshape(-1, 8)

    room[:size] = memory.tobytes()
    _make_executable(base, len(room))
    return room, {
        name_of(s): int(value)
        for s, value, is_here in zip(symbols, values, has_place, strict=True)
        if is_here and s["info"] == GLOBAL_FUNCTION
    }


@lru_cache(maxsize=1)
def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@lru_cache
def _of_process(name: str) -> int:
    """Return where a function of C's library is.

    Raises:
        KeyError: There is none of this name.
    """
    function = getattr(_process(), name, None)
    address = ctypes.cast(function, ctypes.c_void_p).value if function else None
    if not address:
        raise KeyError(name)
    return address


def _make_executable(address: int, size: int) -> None:
    """Make memory that holds code executable, and no longer writable.

    Raises:
        KernelError: The system refuses it.
    """
    protect = _process().mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if protect(address, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise KernelError(
            "The system refuses memory for machine code (errno "
            f"{ctypes.get_errno()}), as SELinux may; allow this program `execmem`."
        )
