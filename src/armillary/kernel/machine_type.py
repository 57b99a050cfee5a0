"""Types of LLVM, and how numbers of a type are written in its IR."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

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
    "real_of",
]

SIZES = {
    **{"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8},
    **{"float": 4, "double": 8, "ptr": 8, "void": 0},
}


@dataclass(frozen=True, slots=True)
class Type:
    """A type of LLVM: an integer, a real or a pointer, or a vector of them."""

    element: str
    lanes: int = 1

    @property
    def text(self) -> str:
        """Return its name in the IR."""
        return self.element if self.lanes == 1 else f"<{self.lanes} x {self.element}>"

    @property
    def suffix(self) -> str:
        """Return the ending of an intrinsic's name for it, such as `v4f64`."""
        name = {"float": "f32", "double": "f64"}.get(self.element, self.element)
        return name if self.lanes == 1 else f"v{self.lanes}{name}"

    @property
    def bytes(self) -> int:
        """Return its size in memory; vectors of truths are not kept there."""
        return SIZES[self.element] * self.lanes

    @property
    def is_real(self) -> bool:
        """Return whether it holds reals."""
        return self.element in {"float", "double"}

    def wide(self, lanes: int) -> Type:
        """Return a vector of `lanes` of these."""
        return replace(self, lanes=lanes)

    def constant(self, number: float) -> str:
        """Return a number in the IR, the same in every lane."""
        if self.element == "ptr":
            text = "null"
        elif self.element == "i1":
            text = "true" if number else "false"
        elif self.is_real:
            bits = struct.unpack("<Q", struct.pack("<d", self._rounded(number)))[0]
            text = f"0x{bits:016X}"
        else:
            text = str(int(number))
        return text if self.lanes == 1 else f"splat ({self.element} {text})"

    def _rounded(self, number: float) -> float:
        if self.element == "double":
            return number
        try:
            return float(struct.unpack("<f", struct.pack("<f", number))[0])
        except OverflowError:
            return number * float("inf")


I1, I8, I16, I32, I64 = (Type(f"i{bits}") for bits in (1, 8, 16, 32, 64))
F32, F64, PTR, VOID = Type("float"), Type("double"), Type("ptr"), Type("void")


def real_of(bits: int) -> Type:
    """Return the type of a real of 64 or 32 bits."""
    return F64 if bits == 64 else F32
