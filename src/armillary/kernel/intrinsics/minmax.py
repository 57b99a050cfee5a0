"""Sign, minimum and maximum, with NaN in giving NaN out."""

from __future__ import annotations

from armillary.kernel.vector_builder import Value, VectorBuilder


def sign(b: VectorBuilder, x: Value) -> Value:
    """Return -1, 0 or 1 by the sign of x; exact."""
    unit = b.call("copysign", b.real(1.0), x)
    # Neither 0 nor NaN has a sign; adding 0 makes -0 to 0.
    rest = b.fadd(x, b.real(0.0))
    return b.select(b.fcmp("one", x, b.real(0.0)), unit, rest)


def minimum(b: VectorBuilder, x: Value, y: Value) -> Value:
    """Return the smaller of x and y; exact."""
    return _pick(b, "olt", x, y)


def maximum(b: VectorBuilder, x: Value, y: Value) -> Value:
    """Return the larger of x and y; exact."""
    return _pick(b, "ogt", x, y)


def _pick(b: VectorBuilder, relation: str, x: Value, y: Value) -> Value:
    # The first select is one instruction of x86 and gives y where either is NaN. Where
    # x is a constant, LLVM leaves the second one out.
    if not y.startswith("%"):
        x, y = y, x
    picked = b.select(b.fcmp(relation, x, y), x, y)
    return b.select(b.fcmp("uno", x, x), x, picked)


def at_most(b: VectorBuilder, x: Value, limit: float) -> Value:
    """Return x, or the limit where x is larger; NaN stays."""
    bound = b.real(limit)
    return b.select(b.fcmp("olt", bound, x), bound, x)


def at_least(b: VectorBuilder, x: Value, limit: float) -> Value:
    """Return x, or the limit where x is smaller; NaN stays."""
    bound = b.real(limit)
    return b.select(b.fcmp("ogt", bound, x), bound, x)
