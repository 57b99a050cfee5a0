"""CRC-32C, the checksum that the Zarr codec `crc32c` puts behind a chunk.

A cyclic redundancy check is the remainder of the data, as a polynomial over GF(2),
divided by a polynomial of degree 32: here that of Castagnoli, 0x1EDC6F41, with bits in
reversed order and inverted at both ends; RFC 3720, section 12.1. It differs for data
that differ in up to 32 consecutive bits. Python has no such function, and a loop in
Python is far too slow for gigabytes, so it is written in LLVM's language and compiled
as kernels are.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.forks import IMPORT_LOCK

__all__ = ["SIZE", "as_bytes", "compiled", "crc32c"]

SIZE: Final = 4
"""Bytes of a checksum."""

POLYNOMIAL: Final = 0x82F63B78  # 0x1EDC6F41 with its bits reversed
WORD: Final = 8  # bytes that are taken at once

# `of_word` and `of_byte` continue a remainder by eight bytes or one. SSE 4.2 has
# instructions for this polynomial.
INSTRUCTION: Final = """
declare i64 @llvm.x86.sse42.crc32.64.64(i64, i64)
declare i32 @llvm.x86.sse42.crc32.32.8(i32, i8)

define private i32 @of_word(i32 %crc, i64 %word) {
  %wide = zext i32 %crc to i64
  %next = call i64 @llvm.x86.sse42.crc32.64.64(i64 %wide, i64 %word)
  %found = trunc i64 %next to i32
  ret i32 %found
}

define private i32 @of_byte(i32 %crc, i8 %byte) {
  %found = call i32 @llvm.x86.sse42.crc32.32.8(i32 %crc, i8 %byte)
  ret i32 %found
}
"""

# Whole words, then the bytes that are left. The remainder is inverted before and after
# all bytes; so a checksum that is inverted again, `before`, is the remainder to go on
# with, and for no bytes it is 0.
LOOP: Final = """
define i32 @crc32c(ptr %data, i64 %size, i32 %before) {
start:
  %first = xor i32 %before, -1
  %words_end = and i64 %size, -8
  br label %words

words:
  %at = phi i64 [ 0, %start ], [ %at_next, %word ]
  %crc = phi i32 [ %first, %start ], [ %crc_next, %word ]
  %is_word = icmp ult i64 %at, %words_end
  br i1 %is_word, label %word, label %bytes

word:
  %word_at = getelementptr i8, ptr %data, i64 %at
  %value = load i64, ptr %word_at, align 1
  %crc_next = call i32 @of_word(i32 %crc, i64 %value)
  %at_next = add i64 %at, 8
  br label %words

bytes:
  %place = phi i64 [ %at, %words ], [ %place_next, %byte ]
  %sum = phi i32 [ %crc, %words ], [ %sum_next, %byte ]
  %is_byte = icmp ult i64 %place, %size
  br i1 %is_byte, label %byte, label %end

byte:
  %byte_at = getelementptr i8, ptr %data, i64 %place
  %letter = load i8, ptr %byte_at
  %sum_next = call i32 @of_byte(i32 %sum, i8 %letter)
  %place_next = add i64 %place, 1
  br label %bytes

end:
  %found = xor i32 %sum, -1
  ret i32 %found
}
"""


def crc32c(data: Any, before: int = 0) -> int:
    """Return the checksum of bytes.

    Args:
        data: A buffer of contiguous bytes, such as an array of uint8.
        before: The checksum of the bytes before these; 0 where there are none.
    """
    array: npt.NDArray[np.uint8] = np.frombuffer(data, np.uint8)
    _, function = compiled()
    return function(array.ctypes.data, array.size, before)


def as_bytes(checksum: int) -> bytes:
    """Return a checksum as it is written behind a chunk."""
    return checksum.to_bytes(SIZE, "little")


@lru_cache(maxsize=2)
def compiled(has_instruction: bool | None = None) -> tuple[object, Any]:
    """Return the code, and its function, which is valid while the code is kept.

    A call of the function releases the interpreter's lock.

    has_instruction: Whether to use the instruction of the processor; by default if it
        has one.
    """
    with IMPORT_LOCK:
        from armillary.kernel import compiler
        from armillary.kernel.host import host

    machine = host()
    if has_instruction is None:
        is_x86 = machine.triple.startswith("x86_64")
        has_instruction = is_x86 and "+sse4.2" in machine.features.split(",")
    text = (INSTRUCTION if has_instruction else _of_tables()) + LOOP
    key = compiler.key_of("crc32c", text, machine.identity)
    code = compiler.loaded(key, machine, lambda: text, 2)
    prototype = ctypes.CFUNCTYPE(
        ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32
    )
    return code, prototype(code.address("crc32c"))


def _of_tables() -> str:
    """Return the functions for processors without the instruction.

    Let T_k[b] be the remainder of byte b followed by k zero bytes. Remainders are
    linear over GF(2), where sums are exclusive ors. So that of a word is the sum of
    those of its bytes, T_7[b_0] + ... + T_0[b_7], after the remainder so far has been
    added to its first four bytes; Kounavis and Berry, A Systematic Approach to Building
    High Performance Software-based CRC Generators (2005).
    """
    tables = "\n".join(
        f"@table_{k} = private constant [256 x i32] "
        f"[{', '.join(f'i32 {value}' for value in row)}]"
        for k, row in enumerate(_tables())
    )
    lines: list[str] = []
    sums = ["0"]
    for k in range(WORD):
        lines += [
            f"  %shifted_{k} = lshr i64 %mixed, {8 * k}",
            f"  %byte_{k} = and i64 %shifted_{k}, 255",
            f"  %place_{k} = getelementptr [256 x i32], ptr @table_{WORD - 1 - k}, "
            f"i64 0, i64 %byte_{k}",
            f"  %part_{k} = load i32, ptr %place_{k}",
            f"  %sum_{k} = xor i32 {sums[-1]}, %part_{k}",
        ]
        sums.append(f"%sum_{k}")
    body = "\n".join(lines)
    return f"""
{tables}

define private i32 @of_word(i32 %crc, i64 %word) {{
  %wide = zext i32 %crc to i64
  %mixed = xor i64 %wide, %word
{body}
  ret i32 {sums[-1]}
}}

define private i32 @of_byte(i32 %crc, i8 %byte) {{
  %wide = zext i8 %byte to i32
  %mixed = xor i32 %crc, %wide
  %low = and i32 %mixed, 255
  %index = zext i32 %low to i64
  %place = getelementptr [256 x i32], ptr @table_0, i64 0, i64 %index
  %part = load i32, ptr %place
  %rest = lshr i32 %crc, 8
  %found = xor i32 %rest, %part
  ret i32 %found
}}
"""


def _tables() -> list[list[int]]:
    """Return T_0 to T_7 of `_of_tables`."""
    # T_0: divide a byte bit by bit; with reversed bits, the lowest comes first.
    row = list(range(256))
    for _ in range(8):
        row = [(value >> 1) ^ (POLYNOMIAL if value & 1 else 0) for value in row]
    tables = [row]
    # T_k from T_(k-1): one zero byte more.
    for _ in range(WORD - 1):
        tables.append([(value >> 8) ^ row[value & 255] for value in tables[-1]])
    return tables
