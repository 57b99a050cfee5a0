"""The three evaluators agree: Python floats, NumPy, machine code.

Each must lie in an interval that is computed with the program: every operation widens
it by its rounding, sums by that of their terms in any order. So a program may cancel,
branch and overflow as it likes; where nothing is known, nothing is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import numpy.typing as npt
import pytest

from armillary.kernel import compile, interpret, vectorize
from armillary.trace import OPS, Interval, Op, Program, trace
from armillary.trace.program import evaluate

Array = npt.NDArray[Any]
BATCHES = [(), (0,), (1,), (3,), (4,), (5,), (3, 1, 2)]
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23}
# Beyond these the rest of a row is not asked: numbers that overflow in another order.
LARGEST = {"float64": 1e250, "float32": 1e30}
TINY = {"float64": 2.0**-1060, "float32": 2.0**-140}


@dataclass(frozen=True)
class Widening:
    """The meaning of operations on intervals, with roundings of one type of real."""

    kind: str

    def __call__(self, thing: Op | float) -> Any:
        if isinstance(thing, Op):
            return self._operation(thing)
        if math.isnan(thing):
            return Interval(-math.inf, math.inf, undefined=True)
        return self._widened(Interval(thing, thing), abs(thing))

    def _operation(self, op: Op) -> Callable[..., Interval]:
        def enclose(*args: Interval) -> Interval:
            result = op.on_intervals(*args)
            if op.result == "truth" or op.name in {"floor", "sign"}:
                return result
            size = _size(result)
            if op.name in {"add", "sub"}:
                size = max(size, *map(_size, args))
            return self._widened(result, size)

        return enclose

    def _widened(self, x: Interval, size: float) -> Interval:
        if size > LARGEST[self.kind]:
            return Interval(-math.inf, math.inf, undefined=True)
        margin = 16.0 * EPSILON[self.kind] * size + TINY[self.kind]
        return Interval(x.low - margin, x.high + margin, x.undefined)


def _size(x: Interval) -> float:
    return max(abs(x.low), abs(x.high))


def enclosures(program: Program, rows: Array, kind: str) -> list[list[Interval]]:
    """The interval of each output scalar, for each row of input scalars."""
    meaning = Widening(kind)
    return [
        evaluate(program, [Interval(float(x), float(x)) for x in row], meaning)
        for row in rows
    ]


def check(
    program: Program, inputs: Array, kind: str = "float64", **options: Any
) -> int:
    """Compare the evaluators row by row and return how many scalars were compared."""
    wanted = enclosures(program, inputs, kind)
    kernel = compile(program, dtype=kind, **options)
    found = {
        "floats": _flat(interpret(program, inputs)),
        "NumPy": _flat(vectorize(program, inputs)),
        "LLVM": _flat(kernel(inputs.astype(kind))),
        "LLVM, one call": np.array([_flat(kernel(r))[0] for r in inputs.astype(kind)]),
    }
    count = 0
    for row, intervals in enumerate(wanted):
        for scalar, interval in enumerate(intervals):
            if interval.undefined or not math.isfinite(interval.width):
                continue
            count += 1
            for who, numbers in found.items():
                number = float(numbers[row, scalar])
                assert interval.contains(number), (
                    f"{who}: output {scalar} of {inputs[row]} is {number}, not in "
                    f"{interval}\n{program}"
                )
    return count


def _flat(results: Any) -> Array:
    """All output scalars of each row."""
    arrays = results if isinstance(results, tuple) else (results,)
    count = arrays[0].shape[0] if arrays[0].ndim > 1 else 1
    return np.concatenate([array.reshape(count, -1) for array in arrays], axis=1)


# Random programs.

NAMES = sorted(OPS)
INPUTS = 4


@dataclass(frozen=True)
class Step:
    """One operation of what was computed before; `branch` asks `if`."""

    name: str
    picks: tuple[int, int, int]


@st.composite
def recipes(draw: st.DrawFn) -> list[Step]:
    number = st.integers(0, 40)
    steps = st.builds(Step, st.sampled_from(NAMES), st.tuples(number, number, number))
    branches = st.builds(Step, st.just("branch"), st.tuples(number, number, number))
    recipe = draw(st.lists(steps, min_size=1, max_size=24))
    for branch in draw(st.lists(branches, max_size=3)):
        recipe.insert(branch.picks[0] % len(recipe), branch)
    return recipe


def follow(recipe: list[Step], q: Any) -> list[Any]:
    """Compute what a recipe says, and return its last results, an input, a constant."""
    reals, truths = [*q, 0.5, -2.0], [q[0] < q[1]]
    for step in recipe:
        a, b, c = step.picks
        x, y = reals[a % len(reals)], reals[b % len(reals)]
        truth = truths[c % len(truths)]
        if step.name == "branch":
            reals.append(x + 1.0 if truth else y)
            continue
        op = OPS[step.name]
        if op.args[0] == "real":
            args = (x, y)
        else:
            args = (truth, x, y) if op.arity == 3 else (truth, truths[a % len(truths)])
        result = op(*args[: op.arity])
        (truths if op.result == "truth" else reals).append(result)
    return [*reals[-3:], q[1], 0.25]


def samples(seed: int) -> Array:
    """Rows of inputs of several sizes, also whole numbers and equal ones."""
    random = np.random.default_rng(seed)
    rows = random.uniform(-3.0, 3.0, (11, INPUTS))
    rows[3] = random.uniform(-1.0, 1.0, INPUTS)
    rows[4] *= 1e-7
    rows[5] *= 1e4
    rows[6] = random.integers(-2, 3, INPUTS)
    rows[7] = rows[7, 0]
    rows[8] *= 1e11  # beyond the fast sine
    return rows


@pytest.mark.thorough
@hypothesis.settings(max_examples=60)
@hypothesis.given(recipe=recipes(), seed=st.integers(0, 1000))
def test_random_programs(recipe: list[Step], seed: int):
    program = trace(lambda q: follow(recipe, q), name="random", q=(INPUTS,))
    check(program, samples(seed))


@hypothesis.settings(max_examples=25)
@hypothesis.given(recipe=recipes(), seed=st.integers(0, 1000))
def test_random_programs_in_float32(recipe: list[Step], seed: int):
    program = trace(lambda q: follow(recipe, q), name="random", q=(INPUTS,))
    rows = samples(seed).astype(np.float32).astype(np.float64)
    check(program, rows, "float32")


def test_most_of_what_random_programs_give_is_compared():
    compared, all_scalars = 0, 0
    random = np.random.default_rng(7)
    for seed in range(10):
        recipe = [
            Step(str(random.choice(NAMES)), tuple(map(int, random.integers(0, 40, 3))))
            for _ in range(12)
        ]
        program = trace(lambda q, r=recipe: follow(r, q), name="random", q=(INPUTS,))
        rows = samples(seed)
        compared += check(program, rows)
        all_scalars += len(rows) * len(program.results)
    assert compared > 0.8 * all_scalars


def everything(q: Any) -> list[Any]:
    """Every operation of the table, of arguments where it has a value."""
    x, y = q[0], q[1]
    small = 0.3 * x
    truth = OPS["lt"](x, y)
    args: dict[str, tuple[Any, ...]] = {
        "asin": (small,),
        "acos": (small,),
        "log": (OPS["abs"](x),),
        "sqrt": (OPS["abs"](y),),
        "pow": (OPS["abs"](x) + 0.5, y),
        "not": (truth,),
        "and": (truth, OPS["le"](x, 1.0)),
        "or": (truth, OPS["le"](x, 1.0)),
        "select": (truth, x, y),
    }
    results = [
        op(*args.get(name, (x, y)[: op.arity])) for name, op in sorted(OPS.items())
    ]
    # A bare `not` would only swap what the choice below picks from.
    always = OPS["le"](y, 100.0)
    return [np.where(r & always, 1.0, 0.0) if _is_truth(r) else r for r in results]


def _is_truth(x: Any) -> bool:
    return getattr(x, "kind", "real") == "truth"


@pytest.fixture(scope="module")
def table() -> Program:
    return trace(everything, name="everything", q=(2,))


def test_every_operation_is_in_the_table_program(table: Program):
    assert {step.name for step in table.instructions} >= OPS.keys()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
def test_every_operation_on_every_number_of_lanes(
    table: Program, lanes: int, kind: str
):
    random = np.random.default_rng(lanes)
    rows = random.uniform(-3.0, 3.0, (2 * lanes + 1, 2)).astype(kind)
    count = check(table, rows.astype(np.float64), kind, lanes=lanes)
    assert count > 0.95 * len(rows) * len(table.results)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", ["arm", "track", "many", "long"])
@pytest.mark.parametrize("batch", BATCHES, ids=str)
def test_every_batch(
    formulas: dict[str, Program], draw: Any, name: str, batch: tuple[int, ...]
):
    program = formulas[name]
    inputs = draw(program, batch)
    wanted = interpret(program, *inputs)
    for results in (vectorize(program, *inputs), compile(program)(*inputs)):
        assert isinstance(results, tuple) == isinstance(wanted, tuple)
        pairs = zip(_tuple(results), _tuple(wanted), program.outputs, strict=True)
        for result, expected, port in pairs:
            assert result.shape == expected.shape == (*batch, *port.shape)
            assert result.dtype == np.float64
            np.testing.assert_allclose(result, expected, rtol=0, atol=2e-13)


def _tuple(results: Any) -> tuple[Array, ...]:
    return results if isinstance(results, tuple) else (results,)
