"""Programs printed as JavaScript, for pages that compute without Python.

A program becomes one function of its inputs and then its outputs, each a
`Float64Array` of the port's size, row by row; it fills the outputs and allocates
nothing. Each operation is a row of `RULES`, whose key is its `lowering` in
`trace/ops.py`, as `lowering.py` is for machine code. The text of `LIBRARY` must stand
before, once.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.trace import OPS, Instruction, Program
from armillary.trace.ops import type_truth

__all__ = ["LIBRARY", "literal", "literals", "program_function"]

RULES: Final[dict[str, str]] = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "neg": "-{}",
    "sqrt": "Math.sqrt({})",
    "sin": "Math.sin({})",
    "cos": "Math.cos({})",
    "tan": "Math.tan({})",
    "asin": "Math.asin({})",
    "acos": "Math.acos({})",
    "atan": "Math.atan({})",
    "atan2": "Math.atan2({}, {})",
    "exp": "Math.exp({})",
    "log": "Math.log({})",
    "pow": "power({}, {})",
    "hypot": "hypotenuse({}, {})",
    "abs": "Math.abs({})",
    "sign": "Math.sign({})",
    "min": "Math.min({}, {})",
    "max": "Math.max({}, {})",
    "floor": "Math.floor({})",
    "round": "nearestEven({})",
    "sinh": "Math.sinh({})",
    "cosh": "Math.cosh({})",
    "tanh": "Math.tanh({})",
    "cbrt": "Math.cbrt({})",
    "fmod": "{} % {}",
    "lt": "{} < {}",
    "le": "{} <= {}",
    "eq": "{} === {}",
    "and": "{} && {}",
    "or": "{} || {}",
    "not": "!{}",
    "is_single": "false",
    "select": "{} ? {} : {}",
}
"""The expression of each operation, of arguments that are names or literals."""

LIBRARY: Final = """\
function power(x, y) { // 1 for a base of 1, and of -1 with an infinite exponent
  return x === 1 || (x === -1 && Math.abs(y) === Infinity) ? 1 : Math.pow(x, y);
}
function hypotenuse(x, y) { // NaN beside an infinity, too
  const a = Math.abs(x), b = Math.abs(y), most = Math.max(a, b);
  if (most === 0 || most === Infinity) return most;
  const ratio = Math.min(a, b) / most;
  return most * Math.sqrt(1 + ratio * ratio);
}
function nearestEven(x) {
  const above = Math.round(x);
  return above - x === 0.5 && above % 2 !== 0 ? above - 1 : above;
}
function records(text, count, size) { // float64, base64, as one array for each record
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const all = new Float64Array(bytes.buffer);
  const one = (_, k) => all.subarray(k * size, (k + 1) * size);
  return Array.from({ length: count }, one);
}
function chosen(at, count) { // the position of a record; `count` where there is none
  return Number.isNaN(at) || count === 0
    ? count
    : Math.floor(Math.min(Math.max(at, 0), count - 1));
}
"""
"""Functions that printed code calls."""


def program_function(program: Program, name: str) -> str:
    """Return a program as the text of a JavaScript function.

    An array may be both an input and an output: outputs are written last.

    Args:
        program: What to print.
        name: The name of the function, a JavaScript identifier.
    """
    scalars = [
        f"a{number}[{k}]"
        for number, port in enumerate(program.inputs)
        for k in range(port.size)
    ]
    shown: list[str] = []
    lines: list[str] = []
    for k, step in enumerate(program.instructions):
        if step.name == "const":
            shown.append(_constant(step))
            continue
        shown.append(f"v{k}")
        value = scalars[int(step.value)] if step.name == "input" else ""
        value = value or RULES[OPS[step.name].lowering].format(
            *(shown[arg] for arg in step.args)
        )
        lines.append(f"  const v{k} = {value};")
    results = iter(program.results)
    lines += [
        f"  r{number}[{k}] = {shown[next(results)]};"
        for number, port in enumerate(program.outputs)
        for k in range(port.size)
    ]
    arguments = [f"a{k}" for k in range(len(program.inputs))]
    arguments += [f"r{k}" for k in range(len(program.outputs))]
    head = f"function {name}({', '.join(arguments)}) {{"
    return "\n".join([head, *lines, "}"])


def literal(number: float) -> str:
    """Return a number as JavaScript writes it."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0.0 else "-Infinity"
    return repr(float(number))


def literals(numbers: npt.ArrayLike) -> str:
    """Return numbers as JavaScript writes them, row by row, separated by commas."""
    flat = np.ravel(np.asarray(numbers, np.float64))
    return ", ".join(map(literal, flat.tolist()))


def _constant(step: Instruction) -> str:
    if step.kind == type_truth:
        return "true" if step.value else "false"
    text = literal(step.value)
    return f"({text})" if text.startswith("-") else text
