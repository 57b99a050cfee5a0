"""The interpreter is the function itself, run on floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from armillary.kernel import interpret
from armillary.trace import Program, trace


@pytest.mark.parametrize("s", [-1.0, 0.0, 2.9, 3.0, 4.0, 6.2, 7.0, 9.3, 11.0, 40.0])
def test_it_is_the_function_on_floats(s: float):
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
