"""Reals as bits: the layout of IEEE 754, and whole numbers carried inside reals.

AVX2 has no conversion between 64-bit integers and reals and no arithmetic shift of
64-bit integers. So a whole number rides in the low bits of a large real, where an
addition rounds it and a bitcast reads it, and shifts are logical, of numbers that were
made positive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from armillary.kernel.builder import Value


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the parts of a real stand.

    Attributes:
        fraction: Stored bits of the fraction.
        bias: What the stored exponent exceeds the true one by.
    """

    fraction: int
    bias: int

    @property
    def least_normal(self) -> float:
        """Return the smallest positive number with a full fraction."""
        return 2.0 ** (1 - self.bias)

    @property
    def magic(self) -> float:
        """Return the real to which an addition leaves a whole number in its low bits.

        The half beside the leading bit takes up the borrow of negative numbers.
        """
        return 1.5 * 2.0**self.fraction

    @property
    def magic_bits(self) -> int:
        """Return the bits of `magic`."""
        return self.power_bits(self.fraction) | 1 << (self.fraction - 1)

    def power_bits(self, exponent: int) -> int:
        """Return the bits of 2**exponent."""
        return (exponent + self.bias) << self.fraction


LAYOUTS = {64: Layout(fraction=52, bias=1023), 32: Layout(fraction=23, bias=127)}


def layout(x: Value) -> Layout:
    """Return the layout of a real."""
    return LAYOUTS[x.type.bits]


def nearest_whole(x: Value, factor: float) -> tuple[Value, Value]:
    """Return k = round(x factor), |k| < 2**(fraction - 1), in two forms.

    First the bits of k + magic: `magic_bits` more than k as an integer, so the low bits
    are those of k. Then k as a real, never -0.
    """
    # The sum has the exponent of magic, whose last bit is worth 1: its rounding is to
    # the nearest whole number, of two the even one.
    magic = layout(x).magic
    shifted = x.multiply_add(factor, magic)
    return shifted.bits(), shifted - magic


WHOLE: Final = ", !whole !1"
"""What stands behind a call of `fma` whose first argument is a whole number."""


def whole_fma(k: Value, factor: float, summand: Value) -> Value:
    """Return k factor + summand, rounded once, for a whole k below 2**30 (2**16).

    Machines without the instruction need not compute it for any number:
    `standalone.py` takes parts of the factor whose products with k are exact.
    """
    return k.intrinsic("fma", factor, summand, note=WHOLE)


def real_of(n: Value, minus: Value) -> Value:
    """Return n - minus + 2**fraction for an integer 0 <= n < 2**fraction.

    `minus` is a real, usually 2**fraction and an offset.
    """
    # As the fraction of 2**fraction, whose last bit is worth 1, n is a real at once.
    form = layout(minus)
    return (n | form.power_bits(form.fraction)).from_bits() - minus


def power_of_two(biased: Value) -> Value:
    """Return 2**(biased - bias) for an integer 0 < biased <= 2 bias."""
    # The exponent's field, and a fraction of 0.
    return (biased << LAYOUTS[biased.type.bits].fraction).from_bits()


def sign_bit(x: Value) -> Value:
    """Return the integer that holds the sign of x, in its place, and nothing else."""
    return x.bits() & (-1 << (x.type.bits - 1))


def is_negative(x: Value) -> Value:
    """Return whether the sign of x is minus; that of -0 is."""
    return x.bits() < 0


def flip_sign(x: Value, sign: Value) -> Value:
    """Return x, negated where the integer `sign` has the sign's bit."""
    return (x.bits() ^ sign).from_bits()


KEPT: Final = ", !kept !1"
"""What stands behind a copy of a number by which LLVM should not change the order."""


def kept_in_place(x: Value) -> Value:
    """Return x, before the next one of these, where LLVM would hold many of them.

    For WebAssembly it counts no registers, and computes the sines of a program at once,
    which those of machines cannot hold. `standalone.py` makes what hinders it.
    """
    kind = x.type.text
    return x.function.emit(f"bitcast {kind} {x.text} to {kind}{KEPT}", x.type)
