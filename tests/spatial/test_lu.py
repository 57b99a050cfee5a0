"""Linear systems with pivoting: NumPy is the reference, traced and on floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from armillary.kernel import compile, vectorize
from armillary.spatial.lu import LU
from armillary.trace import Program, evaluate, jvp, trace

SIZES = [1, 2, 3, 6, 9]


def solved(n: int) -> Program:
    return trace(
        lambda A, b: LU.of(A.tolist()).solve(list(b)), name="solve", A=(n, n), b=(n,)
    )


def random_systems(n: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    A = rng.normal(size=(count, n, n))
    A[::3, 0, 0] = 0.0  # no pivot where elimination begins
    A[1::3, -1, :] *= 1e-9
    return A, rng.normal(size=(count, n))


@pytest.mark.parametrize("n", SIZES)
def test_solutions_are_those_of_numpy(n: int):
    A, b = random_systems(n, 200)
    if n == 1:
        A = np.where(A == 0.0, 2.0, A)
    expected = np.linalg.solve(A, b[..., None])[..., 0]
    bound = 1e-13 * np.linalg.cond(A)[:, None] * np.abs(expected).max(1, keepdims=True)
    program = solved(n)
    for found in (compile(program)(A, b), vectorize(program, A, b)):
        assert (np.abs(found - expected) <= bound).all()
    on_floats = LU.of(A[0].tolist()).solve(b[0].tolist())
    assert np.abs(on_floats - expected[0]).max() <= bound[0].max()


@pytest.mark.parametrize("n", SIZES)
def test_a_singular_matrix_gives_no_finite_solution(n: int):
    A, b = random_systems(n, 8)
    A[:, :, 0] = 0.0
    assert not np.isfinite(compile(solved(n))(A, b)).all(1).any()
    assert not np.isfinite(LU.of(A[0].tolist()).solve(b[0].tolist())).all()


def test_rows_that_are_constant_zeros_do_not_compete():
    def formula(x: Any) -> Any:
        A = [[0.0, x[0], 0.0], [0.0, 0.0, x[1]], [x[2], 0.0, 0.0]]
        return LU.of(A).solve([1.0, 2.0, 3.0])

    program = trace(formula, x=(3,))
    assert "select" not in {step.name for step in program.instructions}
    assert evaluate(program, [2.0, 4.0, 8.0]) == [3.0 / 8.0, 0.5, 0.5]


def test_solutions_have_the_derivatives_of_differences():

    def system(t: Any) -> tuple[Any, Any]:
        A = [[0.0, t * t, 1.0], [1.0 + t, 2.0, t], [3.0 * t, t, t * t * t]]
        return A, [t, 1.0, t * t]

    def rates(t: Any) -> Any:
        A, b = system(t)
        return jvp(LU.of(A).solve(b), [(t, 1.0)])

    t = np.linspace(0.4, 2.0, 30)
    found = compile(trace(rates, t=()))(t)

    def at(s: np.ndarray) -> np.ndarray:
        zero = np.zeros_like(s)
        A, b = system(s)
        rows = [[x + zero for x in row] for row in A]
        right = np.stack([x + zero for x in b], -1)
        return np.linalg.solve(np.array(rows).transpose(2, 0, 1), right[..., None])

    h = 1e-5
    slope = (at(t + h) - at(t - h))[..., 0] / (2 * h)
    np.testing.assert_allclose(found, slope, rtol=1e-6, atol=1e-6)
