"""Static libraries: object files, and the archive of them that linkers read."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

__all__ = ["archive", "for_any_float_abi"]

MAGIC: Final = b"!<arch>\n"

FP_EXCEPTIONS_UNUSED: Final = bytes((21, 0))
VFP_ARGS_COMPATIBLE: Final = bytes((28, 3))
"""Attributes of objects for Arm, as Addenda to the ABI for the Arm Architecture."""


def for_any_float_abi(code: bytes) -> bytes:
    """Return an object for Arm as one that both ways of passing reals can call.

    Its functions take addresses alone. LLVM does not say how reals would be passed, and
    linkers then refuse it beside code that passes them in registers.
    """
    # An attribute that says what is so without it makes room for the other.
    head, name, attributes = code.partition(b"aeabi\0")
    return (
        head + name + attributes.replace(FP_EXCEPTIONS_UNUSED, VFP_ARGS_COMPATIBLE, 1)
    )


def archive(objects: Sequence[tuple[str, bytes]], symbols: Sequence[str]) -> bytes:
    """Return a static library as System V has it, and `ar` of GNU and LLVM.

    Args:
        objects: The name and the bytes of each object file; a name is at most 15 bytes.
        symbols: The names that the first of them exports, for the table of symbols.
    """
    # The table has the position of a member for each symbol, big-endian, then names.
    names = b"".join(name.encode() + b"\0" for name in symbols)
    size = 4 + 4 * len(symbols) + len(names)
    first = len(MAGIC) + 60 + size + size % 2
    table = struct.pack(f">{1 + len(symbols)}I", len(symbols), *[first] * len(symbols))
    members = [("", table + names), *objects]
    return MAGIC + b"".join(_member(name, data) for name, data in members)


def _member(name: str, data: bytes) -> bytes:
    # Time, owner and group are 0: the same library comes out each time.
    head = f"{name + '/':<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(data):<10}`\n"
    return head.encode() + data + b"\n" * (len(data) % 2)
