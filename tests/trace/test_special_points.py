"""Values, slopes and curvatures of every operation at exactly the special points.

They are compared with those beside the point, by differences with 200 digits: at a kink
or at the end of a domain all of them must be the limits from one side.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest

from armillary.kernel import compile
from armillary.trace import OPS, Op, evaluate, jvp, trace
from exact_operations import exact_operation

REALS = [op for op in OPS.values() if op.result == "real" and op.name != "select"]
ZERO, HALF_TURN = -0.0, math.pi
ALONE = [0.0, ZERO, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 1.5, 2.5, -1.5]
ALONE += [HALF_TURN, -HALF_TURN, HALF_TURN / 2, -HALF_TURN / 2]
PAIRED = [0.0, ZERO, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0]

Jet = list[float]  # value, slopes, curvatures row by row


def jet_of(op: Op, args: Sequence[Any]) -> list[Any]:
    """The value of an operation, its slopes and all second derivatives, traced."""
    value = op(*args)
    slopes = [jvp([value], [(x, 1.0)])[0] for x in args]
    curvatures = [jvp([slope], [(x, 1.0)])[0] for slope in slopes for x in args]
    return [value, *slopes, *curvatures]


@functools.cache
def programs() -> dict[str, Any]:
    return {
        op.name: trace(
            lambda q, op=op: jet_of(op, list(q)), name=op.name, q=(op.arity,)
        )
        for op in REALS
    }


@functools.cache
def kernel() -> Any:
    """All operations in one kernel, so that one compilation tests them all."""

    def everything(q: Any) -> list[Any]:
        jets = (
            evaluate(program, list(q)[: OPS[name].arity])
            for name, program in programs().items()
        )
        return [entry for jet in jets for entry in jet]

    return compile(trace(everything, q=(2,)))


def on_floats(op: Op, points: list[tuple[float, ...]]) -> np.ndarray:
    return np.array([evaluate(programs()[op.name], point) for point in points])


def on_arrays(op: Op, points: list[tuple[float, ...]]) -> np.ndarray:
    columns = [np.array(column) for column in zip(*points, strict=True)]
    with np.errstate(all="ignore"):
        jets = evaluate(
            programs()[op.name],
            columns,
            lambda thing: thing.on_arrays if isinstance(thing, Op) else thing,
        )
    return np.array([np.broadcast_to(entry, len(points)) for entry in jets]).T


def in_machine_code(op: Op, points: list[tuple[float, ...]]) -> np.ndarray:
    padded = np.array([(*point, 1.0)[:2] for point in points])
    sizes = [len(program.results) for program in programs().values()]
    starts = dict(zip(programs(), np.cumsum([0, *sizes]), strict=False))
    size = len(programs()[op.name].results)
    return kernel()(padded)[:, starts[op.name] : starts[op.name] + size]


# The same functions on numbers of many digits.

NEAR, NEARER = mpmath.mpf(10) ** -30, mpmath.mpf(10) ** -45
STEP = mpmath.mpf(10) ** -70
DIGITS = mpmath.workdps(220)
SHARES = 1, mpmath.mpf(0.37)


class Undefined(Exception):
    """There is no real number beside the point."""


def exact_value(op: Op, point: Sequence[Any]) -> Any:
    try:
        value = exact_operation(op.name)(*point)
    except (ZeroDivisionError, ValueError):
        raise Undefined from None
    if not isinstance(value, mpmath.mpf) or not mpmath.isfinite(value):
        raise Undefined
    return value


def differences(op: Op, point: Sequence[Any]) -> list[Any]:
    """The jet at a point around which the operation is smooth."""
    size = range(op.arity)

    def moved(*steps: tuple[int, int]) -> Any:
        place = list(point)
        for k, sign in steps:
            place[k] += sign * STEP
        return exact_value(op, place)

    slopes = [(moved((k, 1)) - moved((k, -1))) / (2 * STEP) for k in size]
    curvatures = []
    for i, j in itertools.product(size, size):
        corners = [a * b * moved((i, a), (j, b)) for a in (1, -1) for b in (1, -1)]
        curvatures.append(sum(corners) / (4 * STEP**2))
    return [exact_value(op, point), *slopes, *curvatures]


def limit(near: Any, nearer: Any) -> float:
    """What a number tends to, of its values at two distances."""
    if abs(near - nearer) < 1e-5 * (1 + abs(near)):
        return float(nearer)
    if abs(nearer) > 1.3 * abs(near):
        return math.copysign(math.inf, nearer)
    raise Undefined


def sides_of(op: Op, point: Sequence[float]) -> Iterator[Jet]:
    """Yield the jets that those beside a point tend to; one argument may stay."""
    exact = [mpmath.mpf(x) for x in point]
    for sides in itertools.product((0, 1, -1), repeat=op.arity):
        if any(sides):
            shares = [side * share for side, share in zip(sides, SHARES, strict=False)]
            try:
                jets = [
                    differences(
                        op, [x + s * size for x, s in zip(exact, shares, strict=True)]
                    )
                    for size in (NEAR, NEARER)
                ]
                yield [limit(*pair) for pair in zip(*jets, strict=True)]
            except Undefined:
                continue


def is_close(found: float, wanted: float, point: Sequence[float]) -> bool:
    if abs(wanted) in {math.inf, math.pi} and 0.0 in point:
        found, wanted = abs(found), abs(wanted)  # the sign of a zero is not kept
    return found == wanted or abs(found - wanted) <= 1e-12 * (1.0 + abs(wanted))


def is_jet(op: Op, point: Sequence[float], found: Jet) -> bool:
    """Tell whether slopes and curvatures are those beside a point, on one side.

    Where the value or a slope is infinite, a curvature may be NaN.
    """
    is_steep = any(map(math.isinf, found[: 1 + op.arity]))

    def fits(k: int, wanted: float) -> bool:
        if k > op.arity and is_steep and math.isnan(found[k]):
            return True
        return is_close(found[k], wanted, point)

    for jet in sides_of(op, point):
        with contextlib.suppress(Undefined):
            jet[0] = float(exact_value(op, [mpmath.mpf(x) for x in point]))
        if all(fits(k, wanted) for k, wanted in enumerate(jet)):
            return True
    return False


# Where nothing beside the point tells: there is no derivative.
NAN, INF = math.nan, math.inf
TIPS = {
    "atan2": [NAN] * 6,
    "hypot": [NAN] * 6,
    "pow": [0.0, -INF, 0.0, INF, NAN, INF],  # 1 along x, and a step along y
}


def is_right(op: Op, point: tuple[float, ...], found: Jet) -> bool:
    if op.name in TIPS and point == (0.0, 0.0):
        pairs = zip(found[1:], TIPS[op.name], strict=True)
        return all(
            math.isnan(x) if math.isnan(y) else is_close(x, y, point) for x, y in pairs
        )
    if math.isnan(found[0]):
        return not is_defined(op, point) and any(map(math.isnan, found[1:]))
    if op.name == "pow" and point[0] < 0.0:  # of whole exponents alone
        value, by_base, by_exponent, twice, *others = found
        x, y = point
        wanted = [x**y, y * x ** (y - 1), y * (y - 1) * x ** (y - 2)]
        return [value, by_base, twice] == wanted and all(
            map(math.isnan, [by_exponent, *others])
        )
    return is_jet(op, point, found)


def is_defined(op: Op, point: Sequence[float]) -> bool:
    try:
        exact_value(op, [mpmath.mpf(x) for x in point])
    except Undefined:
        return False
    return True


@pytest.mark.parametrize("op", REALS, ids=repr)
def test_derivatives_at_special_points_are_those_of_one_side(op: Op):
    points = list(
        itertools.product(ALONE if op.arity == 1 else PAIRED, repeat=op.arity)
    )
    jets = on_floats(op, points)
    with DIGITS:
        for point, jet in zip(points, jets.tolist(), strict=True):
            assert is_right(op, point, jet), (point, jet)
    for evaluator in (on_arrays, in_machine_code):
        found = evaluator(op, points)
        for point, row, jet in zip(points, found.tolist(), jets.tolist(), strict=True):
            same = [
                (math.isnan(a) and math.isnan(b)) or is_close(a, b, point)
                for a, b in zip(row, jet, strict=True)
            ]
            assert all(same), (evaluator.__name__, point, row, jet)


def test_a_kink_is_not_between_its_sides():
    """The judge above refuses a mean of both slopes, and the slopes of two sides."""
    with DIGITS:
        assert is_jet(OPS["abs"], (0.0,), [0.0, 1.0, 0.0])
        assert not is_jet(OPS["abs"], (0.0,), [0.0, 0.0, 0.0])
        assert not is_jet(OPS["pow"], (1.0, 0.0), [1.0, *[0.0] * 6])
