"""Machine code in this process, from the bytes of an object file.

On Linux and x86-64 the sections are placed here, without LLVM, which takes longer to
load than all else that a kernel from the cache needs. What LLVM makes for kernels has
one kind of relocation, absolute addresses, because of its code model; an object with
anything else, and those of other machines, are left to LLVM's loader.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

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
UNDEFINED: Final = 0
GLOBAL_FUNCTION: Final = 1 << 4 | 2

# movabs rax, slot; jmp [rax]; rax holds no argument. Padded to 16 bytes.
JUMP: Final = struct.Struct("<2sQ2s4s")
TO_SLOT, THROUGH_IT, TRAPS = b"\x48\xb8", b"\xff\x20", b"\xcc" * 4

FILE_HEADER: Final = struct.Struct("<16x2H20xQ12x2H")
RELOCATION: Final = np.dtype(
    [("offset", "<i8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")]
)


class Section(NamedTuple):
    """A row of an object's table of sections."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int

    def of(self, code: bytes) -> bytes:
        """Return its bytes.

        Raises:
            ValueError: The object ends before.
        """
        end = self.offset + self.size
        if end > len(code):
            raise ValueError("the object ends before its section")
        return code[self.offset : end]


class Symbol(NamedTuple):
    """A row of an object's table of symbols."""

    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


SECTION: Final = struct.Struct("<2I4Q2I2Q")
SYMBOL: Final = struct.Struct("<I2BH2Q")
WORD: Final = struct.Struct("<Q")


class Code:
    """Machine code that lives in this process as long as this object does."""

    __slots__ = ("_loaded",)

    def __init__(
        self, code: bytes, target: Target, *, is_replaceable: bool = False
    ) -> None:
        """Load the bytes of an object file.

        is_replaceable: Whether `replace` may be called. Functions then have addresses
            that lead to the code by one jump, where sections are placed here.

        Raises:
            KernelError: It cannot be loaded.
        """
        address_of: Callable[[str], int | None]
        loaded: object
        placed = _placed(code) if sys.platform == "linux" else None
        if placed is None:
            with IMPORT_LOCK:
                from armillary.kernel import jit  # imports LLVM

            loaded = jit.engine_of(code, target)
            address_of = loaded.get_function_address
        else:
            loaded, functions = placed
            if is_replaceable:
                loaded = _Jumps(loaded, functions)
                functions = loaded.functions
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

    def replace(self, other: Code) -> bool:
        """Let all calls from now on run other code; return whether they do.

        Addresses stay valid. Calls that are running end in the code that they began in,
        which stays in memory.

        other: Code with the same functions.
        """
        jumps: object = self._loaded[0]
        if not isinstance(jumps, _Jumps):
            return False  # placed by LLVM
        jumps.lead_to(other)
        return True


class _Jumps:
    """Functions of one jump each, to an address in memory that may change.

    Attributes:
        functions: Where each of them is, by its name.
    """

    def __init__(self, loaded: object, functions: dict[str, int]) -> None:
        self._leads_to = loaded, np.array(list(functions.values()), np.int64)
        self._newer: list[Code] = []
        slots: int = self._leads_to[1].ctypes.data
        room = mmap.mmap(
            -1,
            max(1, len(functions)) * JUMP.size,
            mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
        )
        base = ctypes.addressof(ctypes.c_char.from_buffer(room))
        for k in range(len(functions)):
            JUMP.pack_into(
                room, k * JUMP.size, TO_SLOT, slots + 8 * k, THROUGH_IT, TRAPS
            )
        _make_executable(base, len(room))
        self._room = room
        self.functions = {
            name: base + k * JUMP.size for k, name in enumerate(functions)
        }

    def lead_to(self, code: Code) -> None:
        """Lead to the functions of other code.

        Raises:
            KernelError: It lacks one of them.
        """
        addresses = [code.address(name) for name in self.functions]
        self._newer.append(code)
        # A word that is aligned is written at once: a jump finds the old or the new
        # address. Each is right.
        slots = self._leads_to[1]
        for k, address in enumerate(addresses):
            slots[k] = address


def _placed(code: bytes) -> tuple[mmap.mmap, dict[str, int]] | None:
    """Return memory with an object's code, and its functions; None for other objects.

    Raises:
        KernelError: The system refuses memory for code.
    """
    if not code.startswith(HEAD):
        return None
    try:
        kind, machine, start, count, _ = FILE_HEADER.unpack_from(code)
        if (kind, machine) != (RELOCATABLE, X86_64):
            return None
        rows = code[start : start + count * SECTION.size]
        sections = [Section(*row) for row in SECTION.iter_unpack(rows)]
        return _of_sections(code, sections) if len(sections) == count else None
    # Not whole, or with functions that this process does not have.
    except (IndexError, KeyError, ValueError, struct.error):
        return None


def _of_sections(
    code: bytes, sections: list[Section]
) -> tuple[mmap.mmap, dict[str, int]] | None:
    """Return what `_placed` does, for the sections of an object.

    Raises:
        IndexError, KeyError, ValueError, struct.error: See `_placed`.
    """
    # Where each section that has a place begins, one behind the other.
    starts, size = dict[int, int](), 0
    for k, section in enumerate(sections):
        # Tables for exceptions are left out: none passes through a kernel.
        if not section.flags & PLACED or section.type == UNWINDING:
            continue
        align = max(1, section.alignment)
        if section.type != PROGBITS or section.flags & WRITTEN:
            return None
        if align > mmap.PAGESIZE or align & (align - 1):
            return None
        starts[k] = -(-size // align) * align
        size = starts[k] + section.size
    if not size:
        return None
    room = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    base = ctypes.addressof(ctypes.c_char.from_buffer(room))

    (listed,) = (s for s in sections if s.type == SYMBOLS)
    symbols = [Symbol(*row) for row in SYMBOL.iter_unpack(listed.of(code))]
    texts = sections[listed.link].of(code)
    names = [texts[s.name : texts.index(b"\0", s.name)].decode() for s in symbols]
    # Addresses, of what is here; others are looked up where they are used.
    places = {
        j: base + starts[s.section] + s.value
        for j, s in enumerate(symbols)
        if s.section in starts
    }

    for k, start in starts.items():
        room[start : start + sections[k].size] = sections[k].of(code)
    for table in sections:
        if table.type != RELOCATIONS or table.info not in starts:
            continue
        rows = np.frombuffer(table.of(code), RELOCATION)
        used: list[int] = rows["symbol"].tolist()
        for j in set(used) - places.keys():
            if symbols[j].section != UNDEFINED:
                return None
            places[j] = _of_process(names[j])
        last = sections[table.info].size - 8
        at = rows["offset"]
        if (rows["type"] != ABSOLUTE_64).any() or (at < 0).any() or (at > last).any():
            return None
        words: list[int] = rows["addend"].tolist()
        for offset, j, addend in zip(at.tolist(), used, words, strict=True):
            WORD.pack_into(room, starts[table.info] + offset, places[j] + addend)

    _make_executable(base, len(room))
    return room, {
        name: places[j]
        for j, (name, s) in enumerate(zip(names, symbols, strict=True))
        if s.section in starts and s.info == GLOBAL_FUNCTION
    }


@lru_cache(maxsize=1)
def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@lru_cache
def _of_process(name: str) -> int:
    """Return where a function of C's library is.

    Raises:
        KeyError: The library has no function of this name.
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
