"""The interpreter is the function itself on floats; NumPy computes whole columns."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from armillary.kernel import interpret, vectorize
from armillary.trace import Program, trace


@pytest.mark.parametrize("s", [-1.0, 0.0, 2.9, 3.0, 4.0, 6.2, 7.0, 9.3, 11.0, 40.0])
def test_the_interpreter_is_the_function_on_floats(s: float):
    def place(s: Any) -> Any:
        return (s, 1.0) if s < 3.0 else (np.sin(s), s % 2.0)

    x, y = interpret(trace(place, s=(), outputs=["x", "y"]), s)
    assert (float(x), float(y)) == tuple(map(float, place(s)))


def test_rows_are_computed_one_by_one(
    many: Program, draw: Callable[..., list[np.ndarray]]
):
    inputs = draw(many, (2, 1), (3,), ())
    results = interpret(many, *inputs)
    for i, j in np.ndindex(2, 3):
        row = interpret(many, inputs[0][i, 0], inputs[1][j], inputs[2])
        for all_rows, one in zip(results, row, strict=True):
            np.testing.assert_array_equal(all_rows[i, j], one, strict=True)


def test_operations_outside_their_domain_do_not_raise():
    def hazards(q: Any) -> list[Any]:
        return [
            1.0 / q[0],
            np.sqrt(q[1]),
            np.log(q[0]),
            np.exp(-1e9 * q[1]),
            q[1] % q[0],
        ]

    result = interpret(trace(hazards, q=(2,)), [0.0, -1.0])
    np.testing.assert_array_equal(result, [np.inf, np.nan, -np.inf, np.inf, np.nan])


@pytest.mark.parametrize("name", ["arm", "track", "many", "long"])
def test_numpy_agrees_with_floats(
    formulas: dict[str, Program], draw: Callable[..., list[Any]], name: str
):
    program = formulas[name]
    inputs = draw(program, (2, 3))
    found, wanted = vectorize(program, *inputs), interpret(program, *inputs)
    pairs = (
        zip(found, wanted, strict=True)
        if isinstance(found, tuple)
        else [(found, wanted)]
    )
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13)


def test_operations_outside_their_domain_do_not_warn():
    program = trace(lambda q: [1.0 / q[0], np.sqrt(q[1])], q=(2,))
    with np.errstate(all="raise"):
        result = vectorize(program, [[0.0, -1.0], [2.0, 4.0]])
    np.testing.assert_array_equal(result, [[np.inf, np.nan], [0.5, 2.0]])


def test_results_of_numpy_are_new_and_writeable():
    program = trace(lambda q: (q, np.ones(2)), q=(2,), outputs=["same", "ones"])
    q = np.arange(6.0).reshape(3, 2)
    same, ones = vectorize(program, q)
    same[...], ones[...] = 7.0, 8.0
    np.testing.assert_array_equal(q, np.arange(6.0).reshape(3, 2))


def test_columns_of_numpy_are_dropped_after_their_last_use(long: Program):
    q = np.zeros((10_000, 4))
    tracemalloc.start()
    try:
        vectorize(long, q)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The chain needs its 400 links, but not the 1200 operations on them.
    assert len(long.instructions) > 1200
    assert peak < 500 * 10_000 * 8
