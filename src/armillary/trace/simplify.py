"""Identities applied as nodes are made, so that no pass is needed afterwards.

A rule takes the tape and the arguments of a new node and returns the node that stands
for the result, or None where nothing simpler is known. A rule gives the very number
that the formula gives, to the last bit but for the sign of a zero: behind a `floor` or
a comparison another rounding would be another answer. The exceptions are

    0 x = 0,   0 / x = 0,   x - x = 0,   for x infinite or NaN,
    sin^2 + cos^2 = 1,   without roundings,
    x^n = x x ... x for whole n, within |n|/2 ulp.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Protocol

from armillary.trace.scalar import Node


class NodeMaker(Protocol):
    """What a rule needs: to make nodes."""

    def make(self, name: str, *nodes: Node) -> Node:
        """Return the node for an operation of nodes."""
        ...

    def constant(self, number: float) -> Node:
        """Return the node of a real constant."""
        ...

    def truth(self, value: bool) -> Node:
        """Return the node of a constant truth value."""
        ...


Rule = Callable[..., Node | None]
RULES: dict[str, Rule] = {}


def _rule(name: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        RULES[name] = function
        return function

    return register


def _has_exact_inverse(number: float) -> bool:
    """Tell whether x / number is x (1 / number) to the last bit, in float32 too.

    Of a power of two it is, where both have all their digits.
    """
    fraction, exponent = math.frexp(number)
    return abs(fraction) == 0.5 and -125 <= exponent <= 127  # 2^-126 to 2^126


# Sums. On a tape a constant is the last argument of a sum.


@_rule("add")
def _add(tape: NodeMaker, x: Node, y: Node) -> Node | None:
    if x.name == "const":
        x, y = y, x
    if y.name == "const":
        return x if y.value == 0.0 else None
    if y.name == "neg":
        return tape.make("sub", x, y.args[0])
    if x.name == "neg":
        return tape.make("sub", y, x.args[0])
    # Products of rotations are full of these.
    if _is_sine_cosine_pair(x, y):
        return tape.constant(1.0)
    return None


def _is_sine_cosine_pair(x: Node, y: Node) -> bool:
    """Recognise sin(a) sin(a) + cos(a) cos(a)."""
    if x.name != "mul" or y.name != "mul":
        return False
    a, b = x.args[0], y.args[0]
    if a is not x.args[1] or b is not y.args[1] or not (a.args and b.args):
        return False
    return {a.name, b.name} == {"sin", "cos"} and a.args[0] is b.args[0]


@_rule("sub")
def _sub(tape: NodeMaker, x: Node, y: Node) -> Node | None:
    if x is y:
        return tape.constant(0.0)
    if y.name == "const":
        return tape.make("add", x, tape.constant(-y.value))
    if y.name == "neg":
        return tape.make("add", x, y.args[0])
    if x.name == "const":
        return tape.make("neg", y) if x.value == 0.0 else None
    # Signs move outwards, to where they meet others, or a sum that takes them up.
    if x.name == "neg":  # -a - b = -(a + b)
        return tape.make("neg", tape.make("add", x.args[0], y))
    return None


@_rule("neg")
def _neg(tape: NodeMaker, x: Node) -> Node | None:
    if x.name == "neg":
        return x.args[0]
    if x.name == "sub":
        return tape.make("sub", x.args[1], x.args[0])
    # Into the constant of a product, which costs nothing.
    if x.name == "mul" and x.args[0].name == "const":
        return tape.make("mul", tape.constant(-x.args[0].value), x.args[1])
    return None


# Products. On a tape a constant is the first argument of a product.


@_rule("mul")
def _mul(tape: NodeMaker, x: Node, y: Node) -> Node | None:
    if y.name == "const":
        x, y = y, x
    if x.name == "const":
        return _scale(tape, x.value, y)
    if x.name == "neg":
        return tape.make("neg", tape.make("mul", x.args[0], y))
    if y.name == "neg":
        return tape.make("neg", tape.make("mul", x, y.args[0]))
    return None


def _scale(tape: NodeMaker, factor: float, y: Node) -> Node | None:
    if factor == 0.0:
        return tape.constant(0.0)
    if factor == 1.0:
        return y
    if factor == -1.0:
        return tape.make("neg", y)
    if y.name == "neg":
        return tape.make("mul", tape.constant(-factor), y.args[0])
    return None


@_rule("div")
def _div(tape: NodeMaker, x: Node, y: Node) -> Node | None:
    if y.name == "const" and _has_exact_inverse(y.value):
        return tape.make("mul", tape.constant(1.0 / y.value), x)
    if x.name == "const" and x.value == 0.0:
        return tape.constant(0.0)
    if x.name == "neg":
        return tape.make("neg", tape.make("div", x.args[0], y))
    if y.name == "neg":
        return tape.make("neg", tape.make("div", x, y.args[0]))
    return None


LARGEST_PRODUCT = 64


@_rule("pow")
def _pow(tape: NodeMaker, x: Node, y: Node) -> Node | None:
    """Turn whole powers into products, and a power of a half into a root."""
    if y.name != "const":
        return None
    exponent = y.value
    if exponent.is_integer() and abs(exponent) <= LARGEST_PRODUCT:
        return _whole_power(tape, x, int(exponent))
    if exponent == 0.5:
        # C's pow and sqrt differ at -infinity alone, but for the sign of a zero.
        root = tape.make("sqrt", x)
        if _is_not_negative(x):
            return root
        infinite = tape.make("eq", x, tape.constant(-math.inf))  # whose power is inf
        return tape.make("select", infinite, tape.constant(math.inf), root)
    return None


def _whole_power(tape: NodeMaker, x: Node, n: int) -> Node:
    if n < -1:
        return _inverse_power(tape, x, -n)
    if n == -1:
        return tape.make("div", tape.constant(1.0), x)
    # By squares: x^13 = x^8 x^4 x, in about 2 log2(n) products.
    result, square = tape.constant(1.0), x
    while n:
        if n & 1:
            result = tape.make("mul", result, square)
        n >>= 1
        if n:
            square = tape.make("mul", square, square)
    return result


def _inverse_power(tape: NodeMaker, x: Node, n: int) -> Node:
    """Return 1 / x^n, or (1 / x)^n where x^n leaves the range of floats."""
    one = tape.constant(1.0)
    power = _whole_power(tape, x, n)
    size = tape.make("abs", power)
    # x^n is subnormal or 0, or infinite, long before its inverse is.
    is_large_enough = tape.make("le", tape.constant(sys.float_info.min), size)
    is_finite = tape.make("lt", size, tape.constant(math.inf))
    return tape.make(
        "select",
        tape.make("and", is_large_enough, is_finite),
        tape.make("div", one, power),
        _whole_power(tape, tape.make("div", one, x), n),
    )


# Functions of one argument.


# f(-x) = -f(x) and f(-x) = f(x): so the functions of x and of -x are computed once.
def _odd(name: str) -> Rule:
    def rule(tape: NodeMaker, x: Node) -> Node | None:
        return tape.make("neg", tape.make(name, x.args[0])) if x.name == "neg" else None

    return rule


def _even(name: str) -> Rule:
    def rule(tape: NodeMaker, x: Node) -> Node | None:
        return tape.make(name, x.args[0]) if x.name == "neg" else None

    return rule


for _name in ("sin", "tan", "asin", "atan", "sign", "round", "sinh", "tanh", "cbrt"):
    RULES[_name] = _odd(_name)
for _name in ("cos", "cosh"):
    RULES[_name] = _even(_name)


@_rule("abs")
def _abs(tape: NodeMaker, x: Node) -> Node | None:
    if x.name == "neg":
        return tape.make("abs", x.args[0])
    return x if _is_not_negative(x) else None


def _is_not_negative(x: Node) -> bool:
    """Tell whether x cannot be below zero, from its last operation alone."""
    return x.name in {"abs", "sqrt", "hypot", "exp"} or _is_square(x)


def _is_square(x: Node) -> bool:
    return x.name == "mul" and x.args[0] is x.args[1]


@_rule("hypot")
def _hypot(tape: NodeMaker, x: Node, y: Node) -> Node | None:
    if x.name == "const":
        x, y = y, x
    if y.name == "const" and y.value == 0.0:
        return tape.make("abs", x)
    if x.name == "neg" or y.name == "neg":
        a, b = _without_sign(x), _without_sign(y)
        return tape.make("hypot", a, b)
    return None


def _same(tape: NodeMaker, x: Node, y: Node) -> Node | None:
    return x if x is y else None


RULES["min"] = RULES["max"] = _same


# Truth values.


@_rule("lt")
def _lt(tape: NodeMaker, x: Node, y: Node) -> Node | None:
    return tape.truth(False) if x is y else None


@_rule("and")
def _and(tape: NodeMaker, x: Node, y: Node) -> Node | None:
    if y.name == "const":
        x, y = y, x
    if x.name == "const":
        return y if x.value else x
    return x if x is y else None


@_rule("or")
def _or(tape: NodeMaker, x: Node, y: Node) -> Node | None:
    if y.name == "const":
        x, y = y, x
    if x.name == "const":
        return x if x.value else y
    return x if x is y else None


@_rule("not")
def _not(tape: NodeMaker, x: Node) -> Node | None:
    return x.args[0] if x.name == "not" else None


@_rule("select")
def _select(tape: NodeMaker, truth: Node, x: Node, y: Node) -> Node | None:
    if x is y:
        return x
    if truth.name == "const":
        return x if truth.value else y
    if truth.name == "not":
        return tape.make("select", truth.args[0], y, x)
    # A choice inside of the same choice is decided.
    if x.name == "select" and x.args[0] is truth:
        return tape.make("select", truth, x.args[1], y)
    if y.name == "select" and y.args[0] is truth:
        return tape.make("select", truth, x, y.args[2])
    if x.name == "neg" and y.name == "neg":
        return tape.make("neg", tape.make("select", truth, x.args[0], y.args[0]))
    return _select_arguments(tape, truth, x, y)


COSTLY = frozenset(
    {"sin", "cos", "tan", "asin", "acos", "atan", "exp", "log", "sqrt"}
    | {"sinh", "cosh", "tanh", "cbrt"}
)


def _select_arguments(tape: NodeMaker, truth: Node, x: Node, y: Node) -> Node | None:
    """Turn a choice of costly results, f(a) or -f(b), into f of a choice."""
    functions: list[tuple[str, bool, bool]] = []  # from the outermost inwards
    a, b = _without_sign(x), _without_sign(y)
    # Layer by layer inwards, as long as both are the same function.
    while a.name == b.name and a.name in COSTLY and a is not b:
        functions.append((a.name, a is not x, b is not y))
        x, y = a.args[0], b.args[0]
        a, b = _without_sign(x), _without_sign(y)
    if not functions:
        return None
    # Then outwards again, around the choice of arguments, with the signs.
    result = tape.make("select", truth, x, y)
    for name, x_is_negated, y_is_negated in reversed(functions):
        result = tape.make(name, result)
        if x_is_negated or y_is_negated:
            negated = tape.make("neg", result)
            pair = (
                negated if is_so else result for is_so in (x_is_negated, y_is_negated)
            )
            result = tape.make("select", truth, *pair)
    return result


def _without_sign(x: Node) -> Node:
    return x.args[0] if x.name == "neg" else x
