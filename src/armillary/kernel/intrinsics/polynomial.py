"""Long polynomials in half the time of Horner's rule."""

from __future__ import annotations

from collections.abc import Sequence

from armillary.kernel.vector_builder import Value, VectorBuilder


def paired(b: VectorBuilder, x: Value, coefficients: Sequence[float]) -> Value:
    """Return sum_k coefficients[k] x^k as e(x^2) + x o(x^2), two chains side by side.

    One product more than `VectorBuilder.polynomial`; worth it from some ten
    coefficients on.
    """
    square = b.fmul(x, x)
    even = b.polynomial(square, coefficients[0::2])
    odd = b.polynomial(square, coefficients[1::2])
    return b.fma(odd, x, even)
