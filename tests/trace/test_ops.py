from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from armillary.errors import TraceError
from armillary.trace import OPS, Op

EVERY = pytest.mark.parametrize("op", OPS.values(), ids=OPS)
REALS = [op for op in OPS.values() if op.result == "real"]
EVERY_REAL = pytest.mark.parametrize("op", REALS, ids=repr)

SIZES = [0.0, 5e-324, 1e-300, 1e-8, 0.1, 0.5, 1.0, 1.5, 2.0, 3.0, math.pi, 10.0, 1e3]
SIZES += [1.0 - 2.0**-53, 1e8, 2.0**53, 1e150, 1e300, np.finfo(float).max, math.inf]
GRID = [*SIZES, *(-size for size in SIZES), math.nan]
FEW = [0.0, -0.0, 5e-324, 0.5, -1.0, 3.0, -1e300, math.inf, -math.inf, math.nan]

NAMES = """add sub mul div neg sqrt sin cos tan asin acos atan atan2 exp log pow hypot
    abs sign min max floor round sinh cosh tanh cbrt fmod lt le eq and or not select
    is_single"""


def values(op: Op, reals: list[float]) -> np.ndarray:
    """All arguments of an operation on a grid, one column a case."""
    grids = [reals if kind == "real" else [0.0, 1.0] for kind in op.args]
    return np.array(np.meshgrid(*grids)).reshape(op.arity, -1)


def arguments(op: Op, columns: np.ndarray) -> list[np.ndarray]:
    kinds = {"real": float, "truth": bool}
    return [x.astype(kinds[kind]) for x, kind in zip(columns, op.args, strict=True)]


def test_the_table_has_what_the_design_asks_for():
    assert set(OPS) == set(NAMES.split())
    assert all(op.name == name for name, op in OPS.items())


def same(x: float, y: float) -> bool:
    """Tell whether two numbers are equal, up to the sign of a zero."""
    return x == y or (math.isnan(x) and math.isnan(y))


@EVERY
def test_rows_are_complete(op: Op):
    assert op.args
    assert {*op.args, op.result} <= {"real", "truth"}
    assert len(op.partials) == (op.arity if op.result == "real" else 0)
    assert op.lowering
    assert not op.commutes or op.args[0] == op.args[1]
    assert repr(op) == f"Op({op.name})"


@EVERY
def test_float_meaning_is_numpy_meaning(op: Op):
    columns = values(op, GRID if op.arity < 3 else FEW)
    args = arguments(op, columns)
    with np.errstate(all="ignore"):
        on_arrays = np.asarray(op.on_arrays(*args))
    cases = zip(*(x.tolist() for x in args), strict=True)
    on_floats = [op.on_floats(*case) for case in cases]
    kind = {"real": float, "truth": bool}[op.result]
    assert {type(result) for result in on_floats} == {kind}
    assert on_arrays.dtype == kind
    np.testing.assert_allclose(
        np.array(on_floats, dtype=float), on_arrays.astype(float), rtol=1e-15
    )


@EVERY
def test_calling_an_operation_with_numbers_computes(op: Op):
    args = [0.5 if kind == "real" else True for kind in op.args]
    assert op(*args) == op.on_floats(*args)


@EVERY
def test_numpy_scalars_are_numbers(op: Op):
    kinds = {"real": np.float64, "truth": np.bool_}
    for case in values(op, [-1.5, 0.0, 0.5]).T.tolist():
        args = [kinds[kind](x) for kind, x in zip(op.args, case, strict=True)]
        assert same(op(*args), op(*case))


@EVERY
def test_order_is_immaterial_where_the_table_says_so(op: Op):
    if not op.commutes:
        x, y = (1.0, 2.0, True)[: op.arity], (2.0, 1.0, True)[: op.arity]
        assert op.arity != 2 or op.on_floats(*x) != op.on_floats(*y)
        return
    for x, y in values(op, FEW).T.tolist():
        assert same(op.on_floats(x, y), op.on_floats(y, x))


@pytest.mark.parametrize(
    "op", [op for op in REALS if op.name not in {"select", "pow"}], ids=repr
)
def test_nan_in_is_nan_out(op: Op):
    for case in values(op, FEW).T.tolist():
        if any(map(math.isnan, case)):
            assert math.isnan(op.on_floats(*case))


def test_nan_in_a_power_is_as_ieee_has_it():
    power = OPS["pow"].on_floats
    assert power(math.nan, 0.0) == power(1.0, math.nan) == 1.0
    assert math.isnan(power(math.nan, 1.0))
    assert math.isnan(power(2.0, math.nan))


# Derivatives.


def partials(op: Op, args: Sequence[float]) -> tuple[float, ...]:
    return tuple(partial(*args) for partial in op.partials)


INSIDE = {
    "sqrt": [(0.3, 3.0)],
    "log": [(0.3, 3.0)],
    "asin": [(-0.8, 0.8)],
    "acos": [(-0.8, 0.8)],
    "tan": [(-1.2, 1.2)],
    "div": [(-2.0, 2.0), (0.5, 2.0)],
    "pow": [(0.5, 2.0), (-3.0, 3.0)],
    "fmod": [(-5.0, 5.0), (0.5, 1.5)],
}
H = 1e-2


def is_near_a_kink(op: Op, case: tuple[float, ...]) -> bool:
    """Tell whether a step of H from the point may cross a kink or a step."""
    x, y = case[0], case[-1]
    if op.name in {"abs", "sign"}:
        return abs(x) < 4 * H
    if op.name in {"min", "max"}:
        return abs(x - y) < 4 * H
    if op.name == "round":
        return abs(x - math.floor(x) - 0.5) < 4 * H
    if op.name == "cbrt":
        return abs(x) < 0.3
    if op.name == "floor":
        return abs(x - round(x)) < 4 * H
    if op.name == "fmod":
        quotient = x / y
        return abs(quotient - round(quotient)) < 30 * H
    return op.name in {"atan2", "hypot"} and math.hypot(x, y) < 0.3


def points(op: Op, count: int) -> list[tuple[float, ...]]:
    rng = np.random.default_rng(sum(map(ord, op.name)))
    ranges = INSIDE.get(op.name, [(-2.0, 2.0)] * op.arity)
    found: list[tuple[float, ...]] = []
    while len(found) < count:
        case = tuple(float(rng.uniform(*range_)) for range_ in ranges)
        if op.name == "select":
            case = (float(rng.integers(2)), *case[1:])
        if not is_near_a_kink(op, case):
            found.append(case)
    return found


@EVERY_REAL
def test_the_error_of_a_difference_quotient_falls_as_h_squared(op: Op):
    for case in points(op, 100):
        exact = partials(op, case)
        for k, kind in enumerate(op.args):
            if kind == "truth":
                assert exact[k] == 0.0
                continue

            def error(h: float, k=k, case=case, slope=exact[k]) -> float:
                up = op.on_floats(*case[:k], case[k] + h, *case[k + 1 :])
                down = op.on_floats(*case[:k], case[k] - h, *case[k + 1 :])
                return abs((up - down) / (2 * h) - slope)

            coarse, fine = error(H), error(H / 2)
            assert fine <= 0.3 * coarse + 1e-11, (op, case, k, coarse, fine)


@EVERY_REAL
def test_partials_are_total(op: Op):
    for case in values(op, FEW).T.tolist():
        slopes = partials(op, case)
        assert {type(slope) for slope in slopes} == {float}
        if op.name == "select" or any(x != 0 and not 1e-9 < abs(x) < 10 for x in case):
            continue  # squares may overflow or vanish
        if op.name == "pow" and case[0] < 0.0:
            slopes = slopes[:1]  # for no other exponent nearby is there a power
        value = op.on_floats(*case)
        at_a_tip = op.name in {"atan2", "hypot"} and case[0] == case[1] == 0.0
        if math.isnan(value) or at_a_tip:
            assert any(map(math.isnan, slopes)), (case, slopes)
        elif math.isfinite(value):
            assert not any(map(math.isnan, slopes)), (case, slopes)


@pytest.mark.parametrize("op", [op for op in REALS if op.choice], ids=repr)
def test_a_choice_picks_what_the_operation_returns(op: Op):
    for case in values(op, FEW).T.tolist():
        if op.name == "select" or not any(map(math.isnan, case)):
            assert op.choice is not None
            picked = OPS["select"].on_floats(*op.choice(*case))
            assert same(picked, op.on_floats(*case))


def test_powers_have_a_slope_at_zero():
    by_base, by_exponent = partials(OPS["pow"], (0.0, 2.5))
    assert (by_base, by_exponent) == (0.0, 0.0)
    assert partials(OPS["pow"], (0.0, 0.0))[0] == 0.0


def test_a_wrong_number_of_arguments_is_refused_while_tracing():
    from armillary.trace.tape import Tape

    with pytest.raises(TraceError, match="'atan2' takes 2 arguments, 1 given"):
        OPS["atan2"](Tape().input(0))
