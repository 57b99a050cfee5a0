"""Which products are rounded with the sum they go into, decided in the text.

A product and its sum that are marked `contract` may be rounded once. LLVM decides it
while it selects instructions, by what stands in the same basic block, and levels of
code generation cut blocks differently. Where code of two levels must give the same
bits, it is decided before.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

__all__ = ["with_contraction_decided"]

MARK: Final = "contract nsz "
NAME: Final = re.compile(r"%[\w.]+")
MARKED: Final = re.compile(
    r"  (?P<name>%[\w.]+) = (?P<what>f\w+) contract nsz (?P<type><[^>]*>|\w+) "
    r"(?P<operands>.*)"
)


def with_contraction_decided(text: str) -> str:
    """Return IR in which no rounding and no sign of a zero is left to LLVM.

    A product that is used once, by a marked sum or difference, is computed with it by
    `fmuladd`: rounded once on machines with such an instruction.
    """
    needed = dict[str, str]()
    # Names of values are those of a function.
    functions = [_decided(part, needed) for part in text.split("\ndefine ")]
    missing = (line for line in needed.values() if line not in text)
    return "\n".join([*missing, "\ndefine ".join(functions)])


def _decided(function: str, needed: dict[str, str]) -> str:
    """Return a function without marks; add to the declarations that it needs."""
    if MARK not in function:
        return function
    count = Counter(NAME.findall(function))
    products = dict[str, tuple[str, str]]()
    lines: list[str] = []
    for line in function.split("\n"):
        found = MARKED.fullmatch(line) if MARK in line else None
        if found is None:
            lines.append(line)
            continue
        name, what, kind, operands = found.groups()
        a, b = _operands(operands)
        if what == "fmul":
            if count[name] == 2:  # where it is made, and where it is used
                products[name] = a, b
        elif a in products or b in products:
            lines += _fused(name, what, kind, (a, b), products)
            full = _intrinsic(kind)
            needed[full] = f"declare {kind} {full}({kind}, {kind}, {kind})"
            continue
        lines.append(line.replace(MARK, "", 1))
    return "\n".join(lines)


def _operands(text: str) -> tuple[str, str]:
    """Return two operands, of which one may be a vector of constants, with commas."""
    first, _, second = text.partition(", ")
    if first[0] != "%":
        first, _, second = text.rpartition(", ")
    return first, second


def _fused(
    name: str,
    what: str,
    kind: str,
    operands: tuple[str, str],
    products: dict[str, tuple[str, str]],
) -> list[str]:
    """Return the lines of a sum or difference with a product; the product is unused."""
    a, b = operands
    negated = ""
    if a in products:  # x y + b, x y - b
        (x, y), rest = products[a], b
        if what == "fsub":
            negated, rest = rest, f"{name}.n"
    else:  # a + x y, a - x y
        (x, y), rest = products[b], a
        if what == "fsub":
            negated, x = x, f"{name}.n"
    lines = [f"  {name}.n = fneg {kind} {negated}"] if negated else []
    full = _intrinsic(kind)
    lines.append(
        f"  {name} = call {kind} {full}({kind} {x}, {kind} {y}, {kind} {rest})"
    )
    return lines


def _intrinsic(kind: str) -> str:
    """Return the name of `fmuladd` of a type such as `<4 x double>`."""
    scalar = kind.strip("<>").rpartition(" ")[2]
    lanes = kind[1:].partition(" ")[0] if kind[0] == "<" else ""
    bits = "64" if scalar == "double" else "32"
    return f"@llvm.fmuladd.{f'v{lanes}' if lanes else ''}f{bits}"
