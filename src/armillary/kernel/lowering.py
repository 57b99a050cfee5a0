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
    length,
    logarithm,
    order,
    power,
    remainder,
)

Rule = Callable[..., Value]

LOWERING: dict[str, Rule] = {
    "add": lambda b, x, y: b.fadd(x, y, fast=True),
    "sub": lambda b, x, y: b.fsub(x, y, fast=True),
    "mul": lambda b, x, y: b.fmul(x, y, fast=True),
    "div": lambda b, x, y: b.fdiv(x, y),
    "neg": lambda b, x: b.fneg(x, fast=True),
    "sqrt": lambda b, x: b.call("sqrt", x),
    "sin": circular.sin,
    "cos": circular.cos,
    "tan": circular.tan,
    "asin": arc.asin,
    "acos": arc.acos,
    "atan": arc.atan,
    "atan2": arc.atan2,
    "exp": exponential.exp,
    "log": logarithm.log,
    "pow": power.power,
    "hypot": length.hypot,
    "abs": lambda b, x: b.call("fabs", x),
    "sign": order.sign,
    "min": order.minimum,
    "max": order.maximum,
    "floor": lambda b, x: b.call("floor", x),
    "fmod": remainder.fmod,
    "lt": lambda b, x, y: b.fcmp("olt", x, y),
    "le": lambda b, x, y: b.fcmp("ole", x, y),
    "eq": lambda b, x, y: b.fcmp("oeq", x, y),
    "and": lambda b, x, y: b.truths("and", x, y),
    "or": lambda b, x, y: b.truths("or", x, y),
    "not": lambda b, x: b.truths("xor", x, b.truth(True)),
    "select": lambda b, truth, x, y: b.select(truth, x, y),
}


def lower(b: Block, key: str, args: list[Value]) -> Value:
    """Append the instructions of one operation and return its result."""
    return LOWERING[key](b, *args)
