"""How each operation of the table is written in LLVM IR.

The key is the `lowering` of the operation in `trace/ops.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from armillary.kernel.intrinsics import (
    exponential,
    hyperbolic,
    hypot,
    inverse_trig,
    logarithm,
    minmax,
    power,
    remainder,
    root,
    trig,
)
from armillary.kernel.vector_builder import LaneType, Outlined, Value, VectorBuilder

Unary = Callable[[VectorBuilder, Value], Value]
Binary = Callable[[VectorBuilder, Value, Value], Value]
Ternary = Callable[[VectorBuilder, Value, Value, Value], Value]

UNARY: dict[str, Unary] = {
    "neg": lambda b, x: b.fneg(x),
    "sqrt": lambda b, x: b.call("sqrt", x),
    "sin": trig.sin,
    "cos": trig.cos,
    "tan": trig.tan,
    "asin": inverse_trig.asin,
    "acos": inverse_trig.acos,
    "atan": inverse_trig.atan,
    "exp": exponential.exp,
    "log": logarithm.log,
    "abs": lambda b, x: b.call("fabs", x),
    "sign": minmax.sign,
    "floor": lambda b, x: b.call("floor", x),
    "round": lambda b, x: b.call("rint", x),
    "sinh": hyperbolic.sinh,
    "cosh": hyperbolic.cosh,
    "tanh": hyperbolic.tanh,
    "cbrt": root.cbrt,
    "not": lambda b, x: b.truths("xor", x, b.truth(True)),
    "is_single": lambda b, x: b.truth(b.shape.bits == 32),
}
BINARY: dict[str, Binary] = {
    "add": lambda b, x, y: b.fadd(x, y),
    "sub": lambda b, x, y: b.fsub(x, y),
    "mul": lambda b, x, y: b.fmul(x, y),
    "div": lambda b, x, y: b.fdiv(x, y),
    "atan2": inverse_trig.atan2,
    "pow": power.power,
    "hypot": hypot.hypot,
    "min": minmax.minimum,
    "max": minmax.maximum,
    "fmod": remainder.fmod,
    "lt": lambda b, x, y: b.fcmp("olt", x, y),
    "le": lambda b, x, y: b.fcmp("ole", x, y),
    "eq": lambda b, x, y: b.fcmp("oeq", x, y),
    "and": lambda b, x, y: b.truths("and", x, y),
    "or": lambda b, x, y: b.truths("or", x, y),
}
TERNARY: dict[str, Ternary] = {
    "select": lambda b, truth, x, y: b.select(truth, x, y),
}
LOWERING: dict[str, Callable[..., Value]] = {**UNARY, **BINARY, **TERNARY}
FUSED: dict[str, Binary] = {
    "add": lambda b, x, y: b.fadd(x, y, fused=True),
    "sub": lambda b, x, y: b.fsub(x, y, fused=True),
    "mul": lambda b, x, y: b.fmul(x, y, fused=True),
}


# Operations of many instructions.
LONG = frozenset({"sin", "cos", "tan", "asin", "acos", "atan", "exp", "log"}) | {
    *("atan2", "pow", "hypot", "fmod")
}


@lru_cache
def length_of(key: str) -> int:
    """Return about how many instructions an operation is."""
    if key not in LONG:
        return 1
    b = VectorBuilder(LaneType(64, 4))
    lower(b, key, ["%x"] if key in UNARY else ["%x", "%y"])
    return len(b.lines)


@lru_cache
def _outlined(shape: LaneType, key: str) -> Outlined:
    """Return the function of a long operation; sine and cosine are one."""
    if key in {"sin", "cos"}:
        return Outlined.of(shape, "sincos", 1, trig.sincos)

    def alone(b: VectorBuilder, *args: Value) -> list[Value]:
        return [LOWERING[key](b, *args)]

    return Outlined.of(shape, key, 1 if key in UNARY else 2, alone)


def lower(
    b: VectorBuilder, key: str, args: list[Value], *, fused: bool = False
) -> Value:
    """Append the instructions of one operation and return its result.

    Args:
        b: Where they go.
        key: The `lowering` of the operation.
        args: Its arguments.
        fused: Whether a product may be rounded together with the sum it goes into.
    """
    if b.outlined and key in LONG:
        found = b.outlined_call(_outlined(b.shape, key), args)
        return found[1] if key == "cos" else found[0]
    rule = FUSED.get(key) if fused else None
    return (rule or LOWERING[key])(b, *args)
