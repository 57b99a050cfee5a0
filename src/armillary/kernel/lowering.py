"""How each operation of the table is written in LLVM IR.

The key is the `lowering` of the operation in `trace/ops.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from armillary.kernel.block import Block, Value
from armillary.kernel.intrinsics import (
    arc,
    circular,
    exponential,
    hyperbolic,
    length,
    logarithm,
    order,
    power,
    remainder,
    root,
)

Unary = Callable[[Block, Value], Value]
Binary = Callable[[Block, Value, Value], Value]
Ternary = Callable[[Block, Value, Value, Value], Value]

UNARY: dict[str, Unary] = {
    "neg": lambda b, x: b.fneg(x),
    "sqrt": lambda b, x: b.call("sqrt", x),
    "sin": circular.sin,
    "cos": circular.cos,
    "tan": circular.tan,
    "asin": arc.asin,
    "acos": arc.acos,
    "atan": arc.atan,
    "exp": exponential.exp,
    "log": logarithm.log,
    "abs": lambda b, x: b.call("fabs", x),
    "sign": order.sign,
    "floor": lambda b, x: b.call("floor", x),
    "round": lambda b, x: b.call("rint", x),
    "sinh": hyperbolic.sinh,
    "cosh": hyperbolic.cosh,
    "tanh": hyperbolic.tanh,
    "cbrt": root.cbrt,
    "not": lambda b, x: b.truths("xor", x, b.truth(True)),
}
BINARY: dict[str, Binary] = {
    "add": lambda b, x, y: b.fadd(x, y),
    "sub": lambda b, x, y: b.fsub(x, y),
    "mul": lambda b, x, y: b.fmul(x, y),
    "div": lambda b, x, y: b.fdiv(x, y),
    "atan2": arc.atan2,
    "pow": power.power,
    "hypot": length.hypot,
    "min": order.minimum,
    "max": order.maximum,
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


def lower(b: Block, key: str, args: list[Value], *, fused: bool = False) -> Value:
    """Append the instructions of one operation and return its result.

    Args:
        b: Where they go.
        key: The `lowering` of the operation.
        args: Its arguments.
        fused: Whether a product may be rounded together with the sum it goes into.
    """
    rule = FUSED.get(key) if fused else None
    return (rule or LOWERING[key])(b, *args)
