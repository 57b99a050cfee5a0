"""Reals as bits: the layout of IEEE 754, and whole numbers carried inside reals.

AVX2 has no conversion between 64-bit integers and reals and no arithmetic shift of
64-bit integers. So a whole number rides in the low bits of a large real, where an
addition rounds it and a bitcast reads it, and shifts are logical, of numbers that were
made positive.
"""

from __future__ import annotations

from dataclasses import dataclass

from armillary.kernel.vector_builder import Value, VectorBuilder


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


def layout(b: VectorBuilder) -> Layout:
    """Return the layout of the block's reals."""
    return LAYOUTS[b.shape.bits]


def nearest_whole(b: VectorBuilder, x: Value, factor: float) -> tuple[Value, Value]:
    """Return k = round(x factor), |k| < 2**(fraction - 1), in two forms.

    First the bits of k + magic: `magic_bits` more than k as an integer, so the low bits
    are those of k. Then k as a real, never -0.
    """
    magic = b.real(layout(b).magic)
    shifted = b.fma(x, b.real(factor), magic)
    return b.bits(shifted), b.fsub(shifted, magic)


def real_of(b: VectorBuilder, n: Value, minus: Value) -> Value:
    """Return n - minus + 2**fraction for an integer 0 <= n < 2**fraction.

    `minus` is a real, usually 2**fraction and an offset.
    """
    carrier = b.integer(layout(b).power_bits(layout(b).fraction))
    return b.fsub(b.from_bits(b.integers("or", n, carrier)), minus)


def power_of_two(b: VectorBuilder, biased: Value) -> Value:
    """Return 2**(biased - bias) for an integer 0 < biased <= 2 bias."""
    return b.from_bits(b.integers("shl", biased, b.integer(layout(b).fraction)))


def sign_bit(b: VectorBuilder, x: Value) -> Value:
    """Return the integer that holds the sign of x, in its place, and nothing else."""
    mask = b.integer(-1 << (b.shape.bits - 1))
    return b.integers("and", b.bits(x), mask)


def is_negative(b: VectorBuilder, x: Value) -> Value:
    """Return whether the sign of x is minus; that of -0 is."""
    return b.icmp("slt", b.bits(x), b.integer(0))


def flip_sign(b: VectorBuilder, x: Value, sign: Value) -> Value:
    """Return x, negated where the integer `sign` has the sign's bit."""
    return b.from_bits(b.integers("xor", b.bits(x), sign))


def select_zero(b: VectorBuilder, truth: Value, n: Value) -> Value:
    """Return the integer 0 where `truth` holds, else n."""
    return b.select(truth, b.integer(0), n, kind="integer")
