"""A WebAssembly object as a module that runs by itself, without a linker.

LLVM writes an object as if its data began at address 0, with all indices right for the
object alone. So it becomes a module when what it imports, the memory and the pointer to
the stack, is defined, and its functions are exported. The sections are those of the
WebAssembly Core Specification 2.0, 5.5; names of symbols are in the section `linking`,
see Linking.md of tool-conventions.

Exports are the functions, `memory`, and `heap_base`, the first address behind data and
stack, from which callers have memory for arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

from armillary.errors import KernelError

__all__ = ["wasm_module"]

HEAD: Final = b"\0asm\x01\0\0\0"
CUSTOM, IMPORT, MEMORY, GLOBAL, EXPORT, DATA_COUNT, CODE, DATA = (
    0,
    2,
    5,
    6,
    7,
    12,
    10,
    11,
)
"""Numbers of sections."""

SYMBOLS: Final = 8  # the part of `linking` that is the table of symbols
UNDEFINED, EXPLICIT_NAME = 0x10, 0x40  # flags of symbols
I32_TYPE, CONSTANT, VARIABLE = 0x7F, 0, 1
I32_CONST, END = 0x41, 0x0B
STACK_BYTES: Final = 2**20
PAGE: Final = 2**16


def wasm_module(code: bytes, functions: Sequence[str]) -> bytes:
    """Return an object of WebAssembly as a module.

    Args:
        code: The object file, as LLVM makes it.
        functions: The names of the functions that it exports.

    Raises:
        KernelError: It needs what is not in it.
    """
    assert code.startswith(HEAD), "WebAssembly begins otherwise"
    sections = list(_sections(code))
    _check_imports(sections)
    # Memory: data, then the stack, which grows down from `stack`, then the heap.
    end = _end_of_data(sections)
    stack = -(-end // 16) * 16 + STACK_BYTES
    indices = _functions(sections)
    globals_ = [
        _constant(I32_TYPE, VARIABLE, stack),
        _constant(I32_TYPE, CONSTANT, stack),
    ]
    exports = [_named(name) + b"\0" + _leb(indices[name]) for name in functions]
    exports += [_named("memory") + b"\x02\0", _named("heap_base") + b"\x03\x01"]
    made = {
        MEMORY: [b"\0" + _leb(-(-stack // PAGE))],
        GLOBAL: globals_,
        EXPORT: exports,
    }
    kept = {number: data for number, data in sections if number not in (CUSTOM, IMPORT)}
    kept.update({number: _vector(items) for number, items in made.items()})
    # The count of data comes before code, all others in the order of their numbers.
    order = sorted(kept, key=lambda n: CODE - 0.5 if n == DATA_COUNT else n)
    parts = [bytes([n]) + _leb(len(kept[n])) + kept[n] for n in order]
    return HEAD + b"".join(parts)


@final
@dataclass(slots=True)
class _ObjectBytes:
    """Bytes that are read in turn."""

    data: bytes
    at: int = 0

    def leb(self) -> int:
        """Return the next number, in LEB128."""
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def taken(self, count: int) -> bytes:
        """Return the next bytes."""
        self.at += count
        return self.data[self.at - count : self.at]

    def name(self) -> str:
        """Return the next text."""
        return self.taken(self.leb()).decode()


def _sections(code: bytes) -> Iterator[tuple[int, bytes]]:
    reader = _ObjectBytes(code, len(HEAD))
    while reader.at < len(code):
        number = reader.taken(1)[0]
        yield number, reader.taken(reader.leb())


def _check_imports(sections: Sequence[tuple[int, bytes]]) -> None:
    """Check that an object imports memory and the pointer to the stack, at most.

    Raises:
        KernelError: It needs a function, or another global.
    """
    globals_ = 0
    for number, data in sections:
        if number != IMPORT:
            continue
        reader = _ObjectBytes(data)
        for _ in range(reader.leb()):
            reader.name()
            name, kind = reader.name(), reader.taken(1)[0]
            if kind == 2:  # memory: flags and limits
                if reader.leb() & 1:
                    reader.leb()
                reader.leb()
            elif kind == 3 and name == "__stack_pointer" and not globals_:
                reader.taken(2)
                globals_ += 1
            else:
                raise KernelError(
                    f"The code needs '{name}', which a WebAssembly module of its own "
                    "does not have."
                )


def _end_of_data(sections: Sequence[tuple[int, bytes]]) -> int:
    """Return the first address behind the data."""
    end = 0
    for number, data in sections:
        if number != DATA:
            continue
        reader = _ObjectBytes(data)
        for _ in range(reader.leb()):
            reader.leb()  # active, in memory 0
            assert reader.taken(1)[0] == I32_CONST
            start = reader.leb()
            # Signed numbers have a sign bit; addresses are small and positive.
            reader.taken(1)
            size = reader.leb()
            reader.taken(size)
            end = max(end, start + size)
    return end


def _functions(sections: Sequence[tuple[int, bytes]]) -> dict[str, int]:
    """Return the indices of functions by name, from the table of symbols."""
    found: dict[str, int] = {}
    for number, data in sections:
        reader = _ObjectBytes(data)
        if number != CUSTOM or reader.name() != "linking":
            continue
        reader.leb()  # version
        while reader.at < len(data):
            kind, size = reader.taken(1)[0], reader.leb()
            part = _ObjectBytes(reader.taken(size))
            if kind == SYMBOLS:
                found.update(_symbols(part))
    return found


def _symbols(part: _ObjectBytes) -> Iterator[tuple[str, int]]:
    """Yield the name and index of each function of a table of symbols."""
    for _ in range(part.leb()):
        kind, flags = part.taken(1)[0], part.leb()
        is_named = not flags & UNDEFINED or flags & EXPLICIT_NAME
        if kind == 1:  # data
            part.name()
            if not flags & UNDEFINED:
                for _ in ("segment", "offset", "size"):
                    part.leb()
        elif kind == 3:  # a section
            part.leb()
        else:
            index = part.leb()
            name = part.name() if is_named else ""
            if kind == 0 and name:
                yield name, index


def _leb(value: int, last: int = 0x7F) -> bytes:
    """Return a number that is not negative, by seven bits a byte, the lowest first.

    last: The largest last byte; 0x3F where its upper bit is that of a sign.
    """
    made = bytearray()
    while value > last:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def _named(text: str) -> bytes:
    return _leb(len(text.encode())) + text.encode()


def _constant(kind: int, access: int, value: int) -> bytes:
    return bytes([kind, access, I32_CONST]) + _leb(value, 0x3F) + bytes([END])


def _vector(items: Sequence[bytes]) -> bytes:
    return _leb(len(items)) + b"".join(items)
