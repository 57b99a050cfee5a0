"""Exact derivatives, forward mode: more scalars on the same tape."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from armillary.trace.ops import ABS, ADD, AND, EQ, LT, MUL, NOT, OPS, OR, SELECT
from armillary.trace.scalar import Node, reachable
from armillary.trace.source_location import fault


def jvp(results: Sequence[Any], seeds: Iterable[tuple[Node, Any]]) -> list[Any]:
    """Return the derivative of each of `results` along a direction.

    With results y(x) and seeds (x_i, v_i) it is sum_i dy/dx_i v_i; with one seed
    (x, 1) it is dy/dx. At a kink it is the derivative of one side; that of |x| at 0 is
    1. Steps, of `sign`, `floor` and remainders, count for nothing. Where a choice
    (`if`, `minimum`, `clip`) picks what does not move, the derivative is 0, also of a
    function that is infinitely steep there; so it is where a factor stays 0. Where a
    derivative is infinite, a further one may be NaN; those of `hypot` and `atan2` at
    the origin are, and that of a negative base's power by an exponent that moves; of
    0**0 it is infinite.

    Args:
        results: Scalars, or plain numbers, whose derivative is zero.
        seeds: Nodes and the rate of each; what lies below a seed stays constant.

    Raises:
        TraceError: Results and seeds are not of one trace.
    """
    rates: dict[int, Rate] = {}
    tapes: set[int] = set()
    for node, rate in seeds:
        rates[node.index] = Rate(rate)
        tapes.add(id(node.tape))
    nodes = [node for node in results if isinstance(node, Node)]
    tapes.update(id(node.tape) for node in nodes)
    if len(tapes) > 1:
        raise fault("results and seeds of a derivative are of different traces.")
    # Arguments first, so that their rates are known. Nodes below a seed have no rate,
    # and stay constant.
    for node in reachable(nodes):
        if node.args and node.index not in rates:
            rate = _rate(node, rates)
            if rate is not None:
                rates[node.index] = rate
    return [
        _of(node, rates).value if isinstance(node, Node) else 0.0 for node in results
    ]


class Rate(NamedTuple):
    """The rate of a node.

    Attributes:
        value: The rate.
        moves: Where it counts, a truth; elsewhere a choice picked what does not move.
        is_steep: Whether an exponential is in it, which may overflow.
    """

    value: Any
    moves: Any = True
    is_steep: bool = False


_STILL = Rate(0.0, False)

# Their partial derivatives may be infinite or NaN where they have a value.
SINGULAR = frozenset(
    {"sqrt", "asin", "acos", "log", "pow", "hypot", "atan2", "div", "cbrt"}
)
STEPS = frozenset({"floor", "round", "sign"})
STEEP = frozenset({"exp", "sinh", "cosh", "pow"})


def _of(node: Node, rates: dict[int, Rate]) -> Rate:
    if node.name == "const" and math.isnan(node.value):
        return Rate(math.nan)
    return rates.get(node.index, _STILL)


def _rate(node: Node, rates: dict[int, Rate]) -> Rate | None:
    """Return the rate of a result by the chain rule, None where it does not move."""
    op, args = OPS[node.name], node.args
    if not op.partials or all(arg.index not in rates for arg in args):
        return None
    if op.choice is not None:
        return _rate_of_choice(node, op.choice, rates)
    total: Any = None
    for arg, partial in zip(args, op.partials, strict=True):
        rate = rates.get(arg.index)
        if rate is not None:
            # The chain rule: the sum of df/dx_i times the rate of x_i.
            term = MUL(rate.value, partial(*args))
            if rate.moves is not True and op.name in SINGULAR:
                term = SELECT(rate.moves, term, 0.0)  # 0 times infinity is 0
            if rate.is_steep and op.name == "div" and arg is not args[0]:
                term = _over_infinity(arg, term, partial(*args))
            total = term if total is None else ADD(total, term)
    return Rate(total, *motion(node, rates))


def motion(node: Node, rates: dict[int, Rate]) -> tuple[Any, bool]:
    """Return where a result moves, and whether it is steep; see `Rate`.

    rates: Of its arguments; those that stay constant have none.
    """
    op, args = OPS[node.name], node.args
    if op.choice is not None:
        truth, x, y = op.choice(*args)
        first, second = _of(x, rates), _of(y, rates)
        moves = first.moves
        if moves is not second.moves:
            moves = either(both(truth, first.moves), both(NOT(truth), second.moves))
        return moves, first.is_steep or second.is_steep
    is_steep = op.name in STEEP or any(_of(arg, rates).is_steep for arg in args)
    return _moves(node, rates), is_steep


def _over_infinity(divisor: Node, term: Any, partial: Any) -> Any:
    """Return the rate of a quotient by its divisor, 0 where that has overflowed.

    There the partial derivative is 0 or NaN, and the rate of the divisor infinite.
    """
    return SELECT(LT(ABS(divisor), math.inf), term, partial)


def _moves(node: Node, rates: dict[int, Rate]) -> Any:
    """Return where a result moves: where an argument does.

    A factor or a dividend that stays zero makes a result that stays zero. So does an
    exponential that has underflowed.
    """
    x, *more = node.args
    moves = _of(x, rates).moves
    if node.name in STEPS:
        return False
    if node.name == "exp":
        return both(NOT(EQ(node, 0.0)), moves)
    if not more or x is more[0]:
        return moves
    (y,) = more
    first, second = moves, _of(y, rates).moves
    # Both move under the same condition, most often everywhere.
    if first is second:
        return first
    if node.name == "mul":
        first = both(first, _leaves_zero(y, node, rates))
    if node.name in {"mul", "div"}:
        second = both(second, _leaves_zero(x, node, rates))
    return either(first, second)


def _leaves_zero(x: Node, result: Node, rates: dict[int, Rate]) -> Any:
    """Return False where x stays zero, and with it a product or quotient of x."""
    rate = rates.get(x.index)
    moves = not _is_mask(x) if rate is None else rate.moves
    if moves is True:
        return True
    return either(moves, NOT(AND(EQ(x, 0.0), EQ(result, 0.0))))


def _is_mask(x: Node) -> bool:
    """Recognise a truth value in arithmetic, as in (q > 0) * q, and products of it."""
    if x.name == "select":
        return {arg.value for arg in x.args[1:] if arg.name == "const"} == {0.0, 1.0}
    return x.name == "mul" and all(y.name == "const" or _is_mask(y) for y in x.args)


def _rate_of_choice(
    node: Node, choice: Callable[..., tuple[Any, Any, Any]], rates: dict[int, Rate]
) -> Rate:
    truth, x, y = choice(*node.args)
    first, second = _of(x, rates), _of(y, rates)
    value = SELECT(truth, first.value, second.value)
    # `minimum` of NaN is NaN, whose rate is NaN; a comparison of NaN chose the second
    # argument.
    if may_choose_nan(node):
        value = SELECT(EQ(node, node), value, math.nan)
    return Rate(value, *motion(node, rates))


def may_choose_nan(node: Node) -> bool:
    """Tell whether NaN among the arguments of a choice is what it gives."""
    return node.name != "select" and node.args[0].name != "const"


def either(x: Any, y: Any) -> Any:
    """Return `x or y` of truths that are plain or traced."""
    if x is True or y is True:
        return True
    if x is False:
        return y
    return x if y is False else OR(x, y)


def both(x: Any, y: Any) -> Any:
    """Return `x and y` of truths that are plain or traced."""
    if y is True:
        return x
    return False if y is False else AND(x, y)
