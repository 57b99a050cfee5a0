"""Identities applied as nodes are made, so that no pass is needed afterwards.

A rule takes the tape and the arguments of a new node and returns the node that stands
for the result, or None where nothing simpler is known. Rules may merge roundings but
never assume that a number is finite, with one exception: a product with the constant
zero is zero, and a difference of equal terms too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from armillary.trace.scalar import Node


class Tape(Protocol):
    """What a rule needs: to make nodes."""

    def make(self, name: str, *nodes: Node) -> Node:
        """Return the node for an operation of nodes."""
        ...

    def constant(self, number: float) -> Node:
        """Return the node of a real constant."""
        ...


Rule = Callable[..., Node | None]
RULES: dict[str, Rule] = {}


def _rule(name: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        RULES[name] = function
        return function

    return register


def _is(node: Node, name: str) -> bool:
    return node.name == name


@_rule("add")
def _add(tape: Tape, x: Node, y: Node) -> Node | None:
    if _is(x, "const"):
        x, y = y, x
    if _is(y, "const"):
        if y.value == 0.0:
            return x
        return _add_constant(tape, x, y)
    if _is(y, "neg"):
        return tape.make("sub", x, y.args[0])
    if _is(x, "neg"):
        return tape.make("sub", y, x.args[0])
    if _is_sine_cosine_pair(x, y):
        return tape.constant(1.0)
    return None


def _add_constant(tape: Tape, x: Node, y: Node) -> Node | None:
    if _is(x, "add") and _is(x.args[1], "const"):  # (a + 1) + 2 = a + 3
        return tape.make("add", x.args[0], tape.constant(x.args[1].value + y.value))
    return None


def _is_sine_cosine_pair(x: Node, y: Node) -> bool:
    """Recognise sin(a) sin(a) + cos(a) cos(a)."""
    if not (_is(x, "mul") and _is(y, "mul")):
        return False
    a, b = x.args[0], y.args[0]
    if a is not x.args[1] or b is not y.args[1] or not (a.args and b.args):
        return False
    return {a.name, b.name} == {"sin", "cos"} and a.args[0] is b.args[0]


@_rule("sub")
def _sub(tape: Tape, x: Node, y: Node) -> Node | None:
    if x is y:
        return tape.constant(0.0)
    if _is(y, "const"):
        return tape.make("add", x, tape.constant(-y.value))
    if _is(x, "const") and x.value == 0.0:
        return tape.make("neg", y)
    if _is(y, "neg"):
        return tape.make("add", x, y.args[0])
    if _is(x, "neg"):  # -a - b = -(a + b)
        return tape.make("neg", tape.make("add", x.args[0], y))
    return None


@_rule("mul")
def _mul(tape: Tape, x: Node, y: Node) -> Node | None:
    if _is(y, "const"):
        x, y = y, x
    if _is(x, "const"):
        return _scale(tape, x, y)
    if _is(x, "neg"):
        return tape.make("neg", tape.make("mul", x.args[0], y))
    if _is(y, "neg"):
        return tape.make("neg", tape.make("mul", x, y.args[0]))
    return None


def _scale(tape: Tape, factor: Node, y: Node) -> Node | None:
    if factor.value == 0.0:
        return tape.constant(0.0)
    if factor.value == 1.0:
        return y
    if factor.value == -1.0:
        return tape.make("neg", y)
    if _is(y, "neg"):
        return tape.make("mul", tape.constant(-factor.value), y.args[0])
    if _is(y, "mul") and _is(y.args[0], "const"):  # 2 (3 a) = 6 a
        merged = factor.value * y.args[0].value
        return tape.make("mul", tape.constant(merged), y.args[1])
    return None


@_rule("div")
def _div(tape: Tape, x: Node, y: Node) -> Node | None:
    if _is(y, "const") and y.value != 0.0:
        inverse = 1.0 / y.value
        if math.isfinite(inverse) and inverse != 0.0:
            return tape.make("mul", tape.constant(inverse), x)
    if _is(x, "const") and x.value == 0.0:
        return tape.constant(0.0)
    if _is(x, "neg"):
        return tape.make("neg", tape.make("div", x.args[0], y))
    if _is(y, "neg"):
        return tape.make("neg", tape.make("div", x, y.args[0]))
    return None


@_rule("neg")
def _neg(tape: Tape, x: Node) -> Node | None:
    if _is(x, "neg"):
        return x.args[0]
    if _is(x, "sub"):
        return tape.make("sub", x.args[1], x.args[0])
    return None


def _odd(name: str) -> Rule:
    def rule(tape: Tape, x: Node) -> Node | None:
        return tape.make("neg", tape.make(name, x.args[0])) if _is(x, "neg") else None

    return rule


def _even(name: str) -> Rule:
    def rule(tape: Tape, x: Node) -> Node | None:
        return tape.make(name, x.args[0]) if _is(x, "neg") else None

    return rule


for _name in ("sin", "tan", "asin", "atan", "sign"):
    RULES[_name] = _odd(_name)
RULES["cos"] = _even("cos")


@_rule("abs")
def _abs(tape: Tape, x: Node) -> Node | None:
    if _is(x, "neg"):
        return tape.make("abs", x.args[0])
    return x if x.name in {"abs", "sqrt", "hypot", "exp"} else None


@_rule("pow")
def _pow(tape: Tape, x: Node, y: Node) -> Node | None:
    if not _is(y, "const"):
        return None
    if y.value == 1.0:
        return x
    if y.value == 2.0:
        return tape.make("mul", x, x)
    return tape.make("sqrt", x) if y.value == 0.5 else None


def _same(tape: Tape, x: Node, y: Node) -> Node | None:
    return x if x is y else None


for _name in ("min", "max", "and", "or"):
    RULES[_name] = _same


@_rule("not")
def _not(tape: Tape, x: Node) -> Node | None:
    return x.args[0] if _is(x, "not") else None


@_rule("select")
def _select(tape: Tape, truth: Node, x: Node, y: Node) -> Node | None:
    if x is y:
        return x
    if _is(truth, "const"):
        return x if truth.value else y
    if _is(truth, "not"):
        return tape.make("select", truth.args[0], y, x)
    if _is(x, "neg") and _is(y, "neg"):
        return tape.make("neg", tape.make("select", truth, x.args[0], y.args[0]))
    shared = _select_arguments(tape, truth, x, y)
    if shared is not None:
        return shared
    if _is(x, "select") and x.args[0] is truth:
        return tape.make("select", truth, x.args[1], y)
    if _is(y, "select") and y.args[0] is truth:
        return tape.make("select", truth, x, y.args[2])
    return None


COSTLY = frozenset({"sin", "cos", "tan", "asin", "acos", "atan", "exp", "log", "sqrt"})


def _select_arguments(tape: Tape, truth: Node, x: Node, y: Node) -> Node | None:
    """Turn a choice of costly results, f(a) or -f(b), into f of a choice."""
    a, b = _without_sign(x), _without_sign(y)
    if a.name != b.name or a.name not in COSTLY:
        return None
    chosen = tape.make("select", truth, a.args[0], b.args[0])
    result = tape.make(a.name, chosen)
    if (a is x) == (b is y):
        return result if a is x else tape.make("neg", result)
    signs = tape.constant(1.0 if a is x else -1.0), tape.constant(1.0 if b is y else -1.0)
    return tape.make("mul", tape.make("select", truth, *signs), result)


def _without_sign(x: Node) -> Node:
    return x.args[0] if _is(x, "neg") else x
