"""A program of one operation of the table, for whatever translates programs."""

from __future__ import annotations

from typing import Any

from armillary.trace import OPS, Program, trace
from armillary.trace.functions import select


def one_operation(name: str) -> Program:
    """A program of one operation; truths are 1 or 0, and given as numbers above 0."""
    op = OPS[name]

    def formula(*numbers: Any) -> Any:
        pairs = zip(numbers, op.args, strict=True)
        result = op(*(x > 0.0 if kind == "truth" else x for x, kind in pairs))
        return select(result, 1.0, 0.0) if op.result == "truth" else result

    shapes: dict[str, Any] = {f"x{k}": () for k in range(op.arity)}
    return trace(formula, name=name, **shapes)
