"""Types of LLVM, and how numbers of a type are written in its IR."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import final

import msgspec
from msgspec.structs import force_setattr

__all__ = [
    "F32",
    "F64",
    "I1",
    "I8",
    "I16",
    "I32",
    "I64",
    "PTR",
    "VOID",
    "Type",
    "bits_of_lanes",
    "real_of",
]

BITS = {"float": 32, "double": 64, "ptr": 64, "void": 0}
SUFFIXES = {"float": "f32", "double": "f64"}


@final
class Type(msgspec.Struct, frozen=True):
    """A type of LLVM: an integer, a real or a pointer, or a vector of them.

    Attributes:
        element: The name of what is in one lane.
        lanes: The number of lanes; a vector of one lane is a scalar.
        of_wasm: Whether it is of WebAssembly, for which some formulas are others. Code
            is right either way; integers do not say it.
        text: Its name in the IR.
        suffix: The ending of an intrinsic's name for it, such as `v4f64`.
        is_real: Whether it holds reals.
        bits: The bits of one lane; 0 of a structure.
        bytes: Its size in memory; vectors of truths are not kept there.
    """

    element: str
    lanes: int = 1
    of_wasm: bool = False
    text: str = ""
    suffix: str = ""
    is_real: bool = False
    bits: int = 0
    bytes: int = 0

    def __post_init__(self) -> None:
        """Derive what follows once: each instruction reads some of it."""
        text = suffix = self.element
        bits = BITS.get(text)
        if bits is None:
            bits = int(text[1:]) if text[1:].isdigit() else 0
        if text in SUFFIXES:
            suffix = SUFFIXES[text]
        if self.lanes > 1:
            text, suffix = f"<{self.lanes} x {text}>", f"v{self.lanes}{suffix}"
        force_setattr(self, "text", text)
        force_setattr(self, "suffix", suffix)
        force_setattr(self, "is_real", self.element in SUFFIXES)
        force_setattr(self, "bits", bits)
        force_setattr(self, "bytes", -(-bits // 8) * self.lanes)

    @property
    def scalar(self) -> Type:
        """Return the type of one lane."""
        return _type(self.element, 1, self.of_wasm)

    @property
    def integer(self) -> Type:
        """Return the type of integers with as many bits and lanes."""
        return _type(f"i{self.bits}", self.lanes)

    def wide(self, lanes: int) -> Type:
        """Return a vector of `lanes` of these."""
        return _type(self.element, lanes, self.of_wasm)

    def constant(self, number: float) -> str:
        """Return a number in the IR, the same in every lane."""
        if self.is_real:
            return _real_text(self.element, self.lanes, struct.pack("<d", number))
        if self.element == "ptr":
            text = "null"
        elif self.element == "i1":
            text = "true" if number else "false"
        else:
            text = str(int(number))
        return text if self.lanes == 1 else f"splat ({self.element} {text})"


@lru_cache(maxsize=256)
def _type(element: str, lanes: int, of_wasm: bool = False) -> Type:
    return Type(element, lanes, of_wasm)


# By the bits of a number: 0.0 equals -0.0, and NaN nothing.
@lru_cache(maxsize=4096)
def _real_text(element: str, lanes: int, double: bytes) -> str:
    """Return a real in the IR: the bits of a double, also where it is a float."""
    # LLVM writes a float as the double of the same number, which must have no more
    # digits than a float.
    if element == "float":
        (number,) = struct.unpack("<d", double)
        try:
            rounded = struct.unpack("<f", struct.pack("<f", number))[0]
        except OverflowError:
            rounded = number * float("inf")
        double = struct.pack("<d", rounded)
    text = f"0x{int.from_bytes(double, 'little'):016X}"
    return text if lanes == 1 else f"splat ({element} {text})"


I1, I8, I16, I32, I64 = (_type(f"i{bits}", 1) for bits in (1, 8, 16, 32, 64))
F32, F64, PTR, VOID = (_type(name, 1) for name in ("float", "double", "ptr", "void"))


def real_of(bits: int, lanes: int = 1, *, of_wasm: bool = False) -> Type:
    """Return the type of reals of 64 or 32 bits."""
    return _type((F64 if bits == 64 else F32).element, lanes, of_wasm)


def bits_of_lanes(lanes: int) -> Type:
    """Return the type of an integer with a bit for each lane."""
    return _type(f"i{lanes}", 1)
