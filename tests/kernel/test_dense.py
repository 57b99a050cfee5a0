"""Linear algebra in loops, beside NumPy and beside the formulas that stages hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from armillary.errors import KernelError
from armillary.kernel.compiler import native_reals
from armillary.kernel.dense import (
    AddDiagonal,
    AddSquares,
    Clear,
    Operation,
    Shrink,
    SolveMotion,
)
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_code import pipeline_code
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.pipeline_reference import evaluate
from armillary.kernel.stages import Dense, When
from armillary.trace import Port

Array = np.ndarray
SIZES = (1, 7, 16, 17, 35)
EASE = 1e-3


def of_numpy(A: Array) -> Array:
    """Return the lower half of a matrix, row by row."""
    return A[np.tril_indices(len(A))]


def whole(packed: Array, n: int) -> Array:
    A = np.zeros((n, n))
    A[np.tril_indices(n)] = packed
    return A + np.tril(A, -1).T


def answers(
    operation: Operation,
    formula: Callable[..., Sequence[Any]],
    inputs: dict[str, Array],
    outputs: dict[str, tuple[int, ...]],
    *,
    lanes: int,
    kind: str = "float64",
) -> list[tuple[Array, ...]]:
    """Return what machine code and the reference answer; inputs have a first axis."""
    ports = tuple(Port(name, x.shape[1:]) for name, x in inputs.items())
    made = tuple(Port(name, shape) for name, shape in outputs.items())
    stage = Dense(operation, tuple(inputs), made, formula)
    pipeline = Pipeline("dense", ports, (), (stage,), tuple(outputs))
    given = [x.astype(kind) for x in inputs.values()]
    kernel = compile_pipeline(pipeline, dtype=kind, lanes=lanes)({})
    found = kernel(*given)
    listed = found if isinstance(found, tuple) else (found,)
    return [listed, evaluate(pipeline, {}, *given)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("lanes", [1, 4])
def test_squares_are_added_as_by_numpy(n: int, lanes: int) -> None:
    rng = np.random.default_rng(n)
    count, sizes = 5, (2, 19)
    J = [rng.normal(size=(count, m, n)) for m in sizes]
    w, v = (rng.normal(size=(count, sum(sizes))) for _ in range(2))
    H, g = rng.normal(size=(count, n * (n + 1) // 2)), rng.normal(size=(count, n))
    rows = np.concatenate(J, axis=1)

    def formula(H: Array, g: Array, w: Array, v: Array, *J: Array) -> Sequence[Array]:
        A = np.concatenate(J)
        return H + of_numpy(A.T @ (w[:, None] * A)), g - A.T @ (w * v)

    inputs = {"H": H, "g": g, "w": w, "v": v, "J0": J[0], "J1": J[1]}
    outputs = {"H": H.shape[1:], "g": g.shape[1:]}
    for squares, slope in answers(AddSquares(), formula, inputs, outputs, lanes=lanes):
        for k in range(count):
            A = rows[k]
            more = A.T @ np.diag(w[k]) @ A
            np.testing.assert_allclose(squares[k], H[k] + of_numpy(more), atol=1e-12)
            np.testing.assert_allclose(slope[k], g[k] - A.T @ (w[k] * v[k]), atol=1e-12)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("n", SIZES)
def test_what_is_left_free_is_that_of_numpy(n: int, lanes: int, kind: str) -> None:
    rng = np.random.default_rng(n)
    A = rng.normal(size=(5, max(1, n // 2), n))
    H = np.stack([of_numpy(a.T @ a) for a in A])
    p = rng.normal(size=(5, n))

    def formula(H: Array, p: Array) -> Sequence[Array]:
        G = whole(H, n).astype(np.float64)
        return (EASE * np.linalg.solve(G + EASE * np.eye(n), p),)

    made = answers(
        Shrink(EASE), formula, {"H": H, "p": p}, {"x": (n,)}, lanes=lanes, kind=kind
    )
    near = 1e-10 if kind == "float64" else 3e-2
    np.testing.assert_allclose(made[0][0], made[1][0], atol=near)
    # In directions of A nothing is left but e / s^2 of it.
    along = np.einsum("kij,kj->ki", A, made[0][0])
    assert np.abs(along).max() < 0.2 * np.abs(np.einsum("kij,kj->ki", A, p)).max()


@pytest.mark.parametrize("lanes", [1, 8])
def test_rows_that_a_region_leaves_alone_keep_their_numbers(lanes: int) -> None:
    n, count = 9, 21
    rng = np.random.default_rng(0)
    H, d = rng.normal(size=(count, n * (n + 1) // 2)), rng.normal(size=(count, n))
    on = np.where(rng.uniform(size=count) < 0.5, 1.0, -1.0)

    def add(H: Array, d: Array) -> Sequence[Array]:
        return (H + of_numpy(np.diag(d)),)

    port = Port("H", H.shape[1:])
    twice = Dense(AddDiagonal(), ("H", "d"), (port,), add)
    stages = (twice, When("on", (twice,)))
    inputs = port, Port("d", (n,)), Port("on", ())
    pipeline = Pipeline("diagonals", inputs, (), stages, ("H",))
    expected = H + np.stack([of_numpy(np.diag(x)) for x in d * (on + 3)[:, None] / 2])
    found = compile_pipeline(pipeline, lanes=lanes)({})(H, d, on)
    np.testing.assert_allclose(found, expected, atol=1e-14)
    np.testing.assert_allclose(evaluate(pipeline, {}, H, d, on)[0], found, atol=1e-14)


def test_what_is_cleared_is_zero_alone() -> None:
    n = 12
    stages = (
        Dense(Clear(), (), (Port("zero", (n,)),), lambda: (np.zeros(n),)),
        Dense(AddDiagonal(), ("H", "d"), (Port("H", (n * (n + 1) // 2,)),), _kept),
    )
    inputs = Port("H", (n * (n + 1) // 2,)), Port("d", (n,))
    pipeline = Pipeline("clear", inputs, (), stages, ("zero", "d"))
    d = np.arange(1.0, n + 1.0)
    zero, same = compile_pipeline(pipeline)({})(np.ones((3, n * (n + 1) // 2)), d)
    assert not zero.any()
    assert (same == d).all()


def _kept(H: Array, d: Array) -> Sequence[Array]:
    raise AssertionError("machine code needs no formula")


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("n", [3, 17])
def test_the_least_motion_is_that_of_numpy(n: int, lanes: int) -> None:
    """Rates meet the equations, and differ from those pulled to by W^-1 C' y."""
    rng = np.random.default_rng(n)
    count, m = 6, 2
    J, slots = rng.normal(size=(count, m, n)), np.zeros((count, n, n))
    counts = np.zeros((count, m + n))
    counts[:, :m] = 1.0
    slots[:, 0], counts[:, m] = rng.normal(size=(count, n)), 1.0
    wanted = counts * rng.normal(size=(count, m + n))
    free = np.ones((count, n))
    pull, metric = rng.normal(size=(count, n)), rng.uniform(1, 3, (count, n))
    pressing = counts * rng.normal(size=(count, m + n))
    small = np.full(count, 1e-13)
    inputs = {
        **{"J": J, "slots": slots, "counts": counts, "wanted": wanted, "free": free},
        **{"pull": pull, "pressing": pressing, "small": small, "metric": metric},
    }
    outputs = {
        **{"moves": (), "y": (m + n,), "x": (n,)},
        **{"toward": (n,), "pressed": (n,), "lengths": (n,)},
    }
    (found, _) = answers(SolveMotion(2, 1e-12), _zeros, inputs, outputs, lanes=lanes)
    moves, y, x, toward, pressed, lengths = found
    for k in range(count):
        C = np.concatenate([J[k], slots[k]])
        own = counts[k] > 0.0
        if own.sum() <= n:
            assert moves[k] == 1.0
            np.testing.assert_allclose(C[own] @ x[k], wanted[k][own], atol=1e-9)
            np.testing.assert_allclose(
                metric[k] * (x[k] - pull[k]), C.T @ y[k], atol=1e-9
            )
        np.testing.assert_allclose(toward[k], C.T @ y[k], atol=1e-9)
        np.testing.assert_allclose(pressed[k], C.T @ pressing[k], atol=1e-12)
        np.testing.assert_allclose(lengths[k], np.abs(C).sum(axis=0), atol=1e-12)


def _zeros(*given: Array) -> Sequence[Any]:
    *_, metric = given
    n, rows = len(metric), len(given[2])
    return 0.0, np.zeros(rows), *(np.zeros(n) for _ in range(4))


def test_code_does_not_grow_with_the_matrix() -> None:
    def lines(n: int) -> int:
        stage = Dense(Shrink(EASE), ("H", "p"), (Port("x", (n,)),), _kept)
        inputs = Port("H", (n * (n + 1) // 2,)), Port("p", (n,))
        pipeline = Pipeline("shrink", inputs, (), (stage,), ("x",))
        functions, _ = pipeline_code(pipeline, native_reals(64, 1))
        (made,) = (f for f in functions if f.name.startswith("dense"))
        return made.length

    assert lines(100) == lines(10) < 300


def test_names_are_looked_up() -> None:
    stage = Dense(Shrink(EASE), ("H", "q"), (Port("x", (2,)),), _kept)
    with pytest.raises(KernelError, match="there is no column 'q', an input of"):
        Pipeline("shrink", (Port("H", (3,)),), (), (stage,), ("x",))
