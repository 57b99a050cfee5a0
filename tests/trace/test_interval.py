from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from armillary.trace import OPS, Interval, Op, interval
from armillary.trace.interval import ALWAYS, EVERYTHING, MAYBE, NEVER

MATHEMATICS = [op for op in OPS.values() if set(op.args) == {"real"}]
EVERY = pytest.mark.parametrize("op", MATHEMATICS, ids=repr)

CASES, SAMPLES = 250, 24
SPECIAL = [0.0, 1.0, -1.0, 2.0, -3.0, math.pi / 2, -math.pi, 1e-300, 1e9, -1e300, 700.0]


def random_end(rng: np.random.Generator) -> float:
    kind = rng.integers(5)
    if kind == 0:
        return float(rng.choice(SPECIAL))
    if kind == 1:
        return float(rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-12, 12))
    return float(rng.normal(0.0, (1.0, 4.0, 30.0)[kind - 2]))


def random_interval(rng: np.random.Generator) -> Interval:
    low, high = sorted([random_end(rng), random_end(rng)])
    kind = rng.integers(12)
    if kind == 0:
        low = -math.inf
    if kind in {0, 1}:
        high = math.inf if kind else high
    if kind == 2:
        high = low
    if kind == 3:
        high = low + abs(low) * 1e-6
    return Interval(low, high)


def numbers_in(x: Interval, rng: np.random.Generator, count: int) -> np.ndarray:
    """Finite numbers of an interval: its ends, evenly spread, and near to the ends."""
    low, high = max(x.low, -1e305), min(x.high, 1e305)
    even = rng.uniform(0.0, 1.0, count)
    share = np.concatenate([[0.0, 1.0], even, 10.0 ** rng.uniform(-300, 0, count // 3)])
    found = np.concatenate([low + share * (high / 2 - low / 2) * 2])
    found = np.concatenate([found, high - 10.0 ** rng.uniform(-9, 3, count // 3)])
    return np.clip(found, low, high)


EXACT = {"neg", "abs", "sign", "min", "max", "floor", "round", "fmod", "lt", "le", "eq"}
FOUR_ULP = 1.0 + 4.0 * np.array([[-1.0], [0.0], [1.0]]) * 2.0**-52


def seed(op: Op) -> int:
    return sum(map(ord, op.name))


@EVERY
def test_an_enclosure_holds_all_results(op: Op):
    rng = np.random.default_rng(seed(op))
    for _ in range(CASES):
        ranges = [random_interval(rng) for _ in op.args]
        enclosure = op.on_intervals(*ranges)
        args = [numbers_in(x, rng, SAMPLES) for x in ranges]
        args = [args[0], *(rng.permutation(x) for x in args[1:])]
        with np.errstate(all="ignore"):
            results = np.asarray(op.on_arrays(*args), dtype=float)
        if op.name not in EXACT:  # a native function may be wrong by four ulp
            with np.errstate(over="ignore"):
                results = results * FOUR_ULP
        if op.name in {"sin", "cos"}:
            results = np.clip(results, -1.0, 1.0)
        inside = (enclosure.low <= results) & (results <= enclosure.high)
        nans = np.isnan(results)
        assert np.all(inside | nans), (op, ranges, enclosure, results)
        assert enclosure.undefined or not nans.any(), (op, ranges, enclosure)


@EVERY
def test_the_enclosure_of_one_number_is_narrow(op: Op):
    rng = np.random.default_rng(seed(op))
    for _ in range(200):
        args = [float(rng.uniform(0.1, 0.9)) for _ in op.args]
        enclosure = op.on_intervals(*(Interval(x, x) for x in args))
        result = float(op.on_floats(*args))
        assert enclosure.contains(result)
        assert op.depends_on_type or enclosure.width <= 1e-14 * max(1.0, abs(result))
        assert not enclosure.undefined


# Where each function is continuous; elsewhere an enclosure may be wide.
TIGHT = {
    "sqrt": [(0.0, 9.0)],
    "log": [(1e-3, 9.0)],
    "asin": [(-1.0, 1.0)],
    "acos": [(-1.0, 1.0)],
    "tan": [(-1.5, 1.5)],
    "div": [(-3.0, 3.0), (0.2, 3.0)],
    "pow": [(0.1, 3.0), (-2.0, 2.0)],
    "atan2": [(0.1, 3.0), (-3.0, 3.0)],
    "fmod": [(7.1, 8.9), (2.0, 2.0)],
    "exp": [(-3.0, 3.0)],
}
REAL = [op for op in MATHEMATICS if op.result == "real"]


@pytest.mark.parametrize("op", REAL, ids=repr)
def test_an_enclosure_is_tight(op: Op):
    rng = np.random.default_rng(seed(op))
    domain = TIGHT.get(op.name, [(-7.0, 7.0)] * op.arity)
    for _ in range(60):
        ranges = [Interval(*sorted(rng.uniform(*ends, 2))) for ends in domain]
        if op.name == "fmod":
            ranges[0] = Interval(*sorted(rng.uniform(6.0, 7.9, 2)))
        grid = [
            np.linspace(x.low, x.high, 400 if op.arity == 1 else 60) for x in ranges
        ]
        if op.name == "hypot":  # its least value is where an argument is zero
            grid = [np.append(g, np.clip(0.0, g[0], g[-1])) for g in grid]
        results = op.on_arrays(*np.meshgrid(*grid))
        enclosure = op.on_intervals(*ranges)
        spread = float(np.max(results) - np.min(results))
        assert enclosure.width <= 1.02 * spread + 1e-3 * (spread > 0) + 1e-12


def test_everything_stays_an_enclosure():
    for op in REAL:
        enclosure = op.on_intervals(*[EVERYTHING] * op.arity)
        assert enclosure.low < enclosure.high, op
    assert OPS["sin"].on_intervals(EVERYTHING) == Interval(-1.0, 1.0)
    assert OPS["abs"].on_intervals(EVERYTHING) == Interval(0.0, math.inf)
    assert OPS["hypot"].on_intervals(EVERYTHING, EVERYTHING) == Interval(0.0, math.inf)
    atan = OPS["atan"].on_intervals(EVERYTHING)
    assert atan.low == pytest.approx(-math.pi / 2)
    assert atan.high == pytest.approx(math.pi / 2)
    assert OPS["exp"].on_intervals(EVERYTHING) == Interval(0.0, math.inf)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_the_top_of_a_wave_far_out_is_not_missed(name: str):
    rng = np.random.default_rng(9)
    op, shift = OPS[name], {"sin": math.pi / 2, "cos": 0.0}[name]
    for turns in 10.0 ** rng.uniform(0.0, 12.0, 300) * rng.choice([-1.0, 1.0], 300):
        x = round(turns) * 2.0 * math.pi + shift
        size = abs(x) * 2.0**-50
        enclosure = op.on_intervals(Interval(x - size, x + size))
        assert enclosure.contains(op.on_floats(x))
        found = op.on_arrays(np.linspace(x - size, x + size, 9))
        assert enclosure.low <= np.min(found) <= np.max(found) <= enclosure.high


def test_results_that_overflow_are_bounded():
    huge = Interval(1e308, 1.7e308)
    for enclosure in (
        interval.add(huge, huge),
        interval.mul(huge, huge),
        interval.exp(Interval(800.0, 900.0)),
        interval.hypot(huge, huge),
    ):
        assert enclosure.high == math.inf
        assert math.isfinite(enclosure.low)
    assert interval.neg(interval.add(huge, huge)).low == -math.inf
    assert interval.exp(Interval(709.5, 800.0)).contains(math.exp(709.5))


def test_a_square_is_not_negative_but_a_product_may_be():
    x, y = Interval(-1.0, 2.0), Interval(-1.0, 2.0)
    assert interval.mul(x, x).low == 0.0
    assert interval.mul(x, y).low == pytest.approx(-2.0)


def test_results_without_a_number_are_reported():
    x = Interval(-1.0, 4.0)
    assert interval.sqrt(x) == Interval(0.0, interval.sqrt(x).high, undefined=True)
    assert interval.log(x).undefined
    assert interval.asin(x).undefined
    assert interval.acos(x).undefined
    assert interval.power(x, x).undefined
    assert interval.fmod(x, x).undefined
    assert interval.div(x, x).undefined
    assert interval.div(Interval(1.0, 2.0), x).undefined
    assert interval.log(Interval(0.0, 1.0)).undefined
    assert interval.power(Interval(0.0, 1.0), x).undefined
    assert not interval.power(Interval(0.0, 1.0), Interval(0.0, 1.0)).undefined
    assert not interval.div(x, Interval(1.0, 2.0)).undefined
    assert interval.sqrt(Interval(-2.0, -1.0)).undefined
    assert interval.exactly(math.nan).undefined
    assert interval.exactly(2.0) == Interval(2.0, 2.0)
    assert interval.outward(math.nan, 1.0).undefined


@EVERY
def test_no_number_in_is_not_a_number_out(op: Op):
    """The result of NaN is NaN, or for a comparison false: never surely true."""
    unknown = Interval(0.25, 0.5, undefined=True)
    for k in range(op.arity):
        args = [Interval(0.75, 0.75)] * op.arity
        args[k] = unknown
        enclosure = op.on_intervals(*args)
        assert enclosure != ALWAYS if op.result == "truth" else enclosure.undefined


@pytest.mark.parametrize(
    ("name", "x", "y", "expected"),
    [
        ("lt", (0, 1), (2, 3), ALWAYS),
        ("lt", (0, 1), (1, 3), MAYBE),
        ("lt", (1, 2), (0, 1), NEVER),
        ("le", (0, 1), (1, 3), ALWAYS),
        ("le", (1, 2), (0, 1), MAYBE),
        ("le", (2, 3), (0, 1), NEVER),
        ("eq", (1, 1), (1, 1), ALWAYS),
        ("eq", (1, 2), (1, 1), MAYBE),
        ("eq", (1, 2), (3, 4), NEVER),
    ],
)
def test_comparisons(name, x, y, expected):
    assert OPS[name].on_intervals(Interval(*x), Interval(*y)) == expected


TRUTHS = {NEVER: [False], ALWAYS: [True], MAYBE: [False, True]}


@pytest.mark.parametrize("name", ["and", "or", "not"])
def test_logic_of_what_may_be(name):
    op = OPS[name]
    for (x, may_x), (y, may_y) in itertools.product(TRUTHS.items(), repeat=2):
        args, answers = [x, y][: op.arity], set()
        for a, b in itertools.product(may_x, may_y):
            answers.add(float(op.on_floats(*[a, b][: op.arity])))
        assert op.on_intervals(*args) == Interval(min(answers), max(answers))


def test_a_choice():
    x, y = Interval(0.0, 1.0), Interval(5.0, 6.0, undefined=True)
    assert interval.select(ALWAYS, x, y) is x
    assert interval.select(NEVER, x, y) is y
    assert interval.select(MAYBE, x, y) == Interval(0.0, 6.0, undefined=True)


def test_width_and_contents():
    assert Interval(1.0, 3.0).width == 2.0
    assert EVERYTHING.width == math.inf
    assert Interval(1.0, 1.0).width == Interval(math.inf, math.inf).width == 0.0
    assert Interval(1.0, 3.0).contains(3.0)
    assert not Interval(1.0, 3.0).contains(math.nan)
