"""Tasks scaled by bounds and inequalities: linear programs are the judge."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.optimize import linprog

from armillary.ik.scaled_rates import RateColumns, rate_stages
from armillary.kernel.columns import index_field, number_field
from armillary.kernel.kernel import Kernel
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.pipeline_reference import evaluate
from armillary.kernel.tables import Table
from armillary.trace import Port

Array = np.ndarray
RESULTS = "x", "scales", "finished", "slots", "pressures", "held"
DAMPING = 1e-4


class Problems(NamedTuple):
    """Tasks and what limits them, shape (count, ...)."""

    J: Array
    v: Array
    r: Array
    low: Array
    high: Array
    A: Array
    b: Array


def kernel_of(
    sizes: Sequence[int], n: int, k: int, null: bool = False, limit: int = 100
) -> Kernel:
    """Return the kernel of tasks of these sizes for n rates and k rows."""
    return _kernel(tuple(sizes), n, k, null, limit)


@lru_cache
def _kernel(sizes: tuple[int, ...], n: int, k: int, null: bool, limit: int) -> Kernel:
    columns = RateColumns(**RateColumns.sizes_of(n, sizes))
    table = Table(
        "rows",
        (index_field(columns.row, "rows"), number_field(columns.row_number)),
    )
    stages = rate_stages(columns, sizes, table, null=null, limit=limit)
    problem = (
        columns.task_rows,
        columns.task_wanted,
        columns.metric,
        columns.begin_rates,
        columns.low,
        columns.high,
        columns.damping,
        columns.sharp,
    )
    rows = Port("rows", (k, n + 1))
    inputs = (*problem, rows, columns.null) if null else (*problem, rows)
    pipeline = Pipeline("scaled", inputs, (table,), stages, RESULTS)
    records = {"row": np.arange(k), "row_number": np.arange(k, dtype=float)}
    return compile_pipeline(pipeline)({"rows": records})


def inputs_of(p: Problems, null: bool, rest: Array | None = None) -> list[Array]:
    """Return the inputs of a kernel, all with one row for each problem."""
    count, n = p.low.shape
    ones = np.ones(count)
    given = [
        p.J,
        p.v,
        np.ones((count, n)),
        np.zeros((count, n)) if rest is None else rest,
        p.low,
        p.high,
        DAMPING * ones,
        ones,
        np.concatenate([p.A, p.b[..., None]], axis=-1),
    ]
    return [*given, p.r] if null else given


def random_problems(count: int, m: int, n: int, k: int, seed: int = 0) -> Problems:
    """Return problems in general position; at rest all limits hold."""
    random = np.random.default_rng(seed)
    size = random.choice([0.3, 1.0, 3.0], size=(count, 1))
    return Problems(
        J=random.normal(size=(count, m, n)),
        v=random.normal(size=(count, m)) * size,
        r=random.normal(size=(count, n)),
        low=-random.uniform(0.2, 2.0, (count, n)),
        high=random.uniform(0.2, 2.0, (count, n)),
        A=random.normal(size=(count, k, n)),
        b=-random.exponential(0.5, (count, k)),
    )


def degenerate_problems(count: int, m: int, n: int, k: int, seed: int = 0) -> Problems:
    """Return problems whose rows depend on each other, on bounds and on tasks."""
    p = random_problems(count, m, n, k, seed)
    random = np.random.default_rng(seed + 1000)
    for i in range(count):
        A, b = p.A[i], p.b[i]
        for j in range(1, k):
            other, another = random.integers(j, size=2)
            joint, sign = random.integers(n), random.choice([-1.0, 1.0])
            match random.integers(16):
                case 0 | 1:  # the same, perhaps longer
                    factor = random.choice([0.5, 1.0, 3.0])
                    A[j], b[j] = factor * A[other], factor * b[other]
                case 2:  # the other side of a row
                    A[j] = -A[other]
                case 3:
                    A[j] = 0.0
                case 4 | 5:  # a bound
                    A[j] = 0.0
                    A[j, joint] = sign
                    b[j] = p.low[i, joint] if sign > 0 else -p.high[i, joint]
                case 6:
                    A[j] = np.round(A[j])
                case 7:  # through the same edge
                    A[j] = A[other] + A[another]
                    b[j] = b[other] + b[another]
                case 8:  # against the task
                    A[j] = sign * p.J[i, random.integers(m)]
                case _:
                    pass
        b[random.uniform(size=k) < 0.2] = 0.0
        p.low[i, random.uniform(size=n) < 0.1] = 0.0
        p.high[i, random.uniform(size=n) < 0.1] = 0.0
        if random.uniform() < 0.2:
            p.J[i], p.v[i] = np.round(p.J[i]), np.round(p.v[i])
        if random.uniform() < 0.1 and m > 1:
            p.J[i, -1] = p.J[i, 0]
    return p


KINDS = {"random": random_problems, "degenerate": degenerate_problems}


def filtered(J: Array, v: Array) -> Array:
    """Return what damping leaves of a task that is wanted."""
    S = J @ J.T
    M = DAMPING * np.linalg.inv(S + DAMPING * np.eye(len(S)))
    return v - np.linalg.matrix_power(M, 8) @ v


def best(cost: Array, p: Problems, i: int, **equal: Any) -> Array:
    """Return x, and a scale behind it, with the least cost within the limits."""
    n = p.low.shape[1]
    extra = len(cost) - n
    A = np.hstack([-p.A[i], np.zeros((len(p.b[i]), extra))])
    bounds = [*zip(p.low[i], p.high[i], strict=True), *([(0.0, 1.0)] * extra)]
    options = dict.fromkeys(
        ("primal_feasibility_tolerance", "dual_feasibility_tolerance"), 1e-10
    )
    found = linprog(cost, A_ub=A, b_ub=-p.b[i], bounds=bounds, options=options, **equal)
    assert found.status == 0
    return np.asarray(found.x)


def greatest_scale(p: Problems, i: int) -> float:
    """Return the greatest t with J x = t b within the limits."""
    J, n = p.J[i], p.low.shape[1]
    wanted = filtered(J, p.v[i])
    cost = np.append(np.zeros(n), -1.0)
    equal = {"A_eq": np.hstack([J, -wanted[:, None]]), "b_eq": np.zeros(len(J))}
    return float(best(cost, p, i, **equal)[-1])


def check_limits(p: Problems, x: Array) -> None:
    """Check that bounds hold as they are, and rows but for rounding."""
    assert (x >= p.low).all()
    assert (x <= p.high).all()
    size = np.abs(p.A).sum(-1) * np.maximum(np.abs(x).max(-1), 1.0)[:, None]
    missed = p.b - np.einsum("ckn,cn->ck", p.A, x)
    assert (missed <= 1e-12 * size).all()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("m", "n", "k"), [(6, 7, 35), (3, 7, 20)])
def test_scales_are_those_of_a_linear_program(
    kind: str, m: int, n: int, k: int
) -> None:
    p = KINDS[kind](1000, m, n, k)
    x, scales, finished, *_ = kernel_of((m,), n, k)(*inputs_of(p, False))
    check_limits(p, x)
    some = range(0, len(x), 6)
    wanted = np.array([greatest_scale(p, i) for i in some])
    wrong = np.abs(scales[some, 0] - wanted) > 1e-9
    assert not (wrong & (finished[some] > 0)).any()
    assert (finished > 0).mean() >= 0.999
    assert (wanted < 1.0).mean() > 0.3


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_comes_nearest_to_given_rates(kind: str) -> None:
    m, n, k = 3, 7, 20
    p = KINDS[kind](300, m, n, k)
    x, scales, finished, *_ = kernel_of((m,), n, k, null=True)(*inputs_of(p, True))
    check_limits(p, x)
    assert (finished > 0).mean() >= 0.995
    for i in np.flatnonzero(finished > 0)[::2].tolist():
        # x is best where no motion within the limits leads down the gradient.
        slope, J = x[i] - p.r[i], p.J[i]
        achieved = scales[i, 0] * filtered(J, p.v[i])
        assert np.abs(J @ x[i] - achieved).max() < 1e-9
        if np.linalg.svd(J)[1][-1] < 1e-9:
            continue  # the linear program finds no x for rows that contradict by 1e-16
        held = {"A_eq": J, "b_eq": J @ x[i]}
        assert slope @ best(slope, p, i, **held) > slope @ x[i] - 1e-8


@pytest.mark.sampled(1)
@pytest.mark.parametrize("limit", [1, 2, 4, 7])
def test_limits_hold_wherever_it_is_cut_short(limit: int) -> None:
    m, n, k = 3, 7, 20
    p = degenerate_problems(500, m, n, k, seed=limit)
    kernel = kernel_of((m,), n, k, null=True, limit=limit)
    x, _, finished, *_ = kernel(*inputs_of(p, True))
    check_limits(p, x)
    assert (finished == 0).any() or limit > 4


@pytest.mark.thorough
def test_lower_tasks_are_scaled_where_higher_ones_hold() -> None:
    n, k = 7, 12
    p = random_problems(200, 5, n, k)
    x, scales, finished, *_ = kernel_of((3, 2), n, k)(*inputs_of(p, False))
    check_limits(p, x)
    assert (finished > 0).all()
    first = p._replace(J=p.J[:, :3], v=p.v[:, :3])
    alone, scale, *_ = kernel_of((3,), n, k)(*inputs_of(first, False))
    np.testing.assert_allclose(scales[:, :1], scale, atol=1e-12)
    before = np.einsum("cmn,cn->cm", p.J, alone)
    achieved = np.einsum("cmn,cn->cm", p.J, x)
    np.testing.assert_allclose(achieved[:, :3], before[:, :3], atol=1e-9)
    for i in range(len(x)):
        # The second is followed from what the first finds to what is left of it.
        high, low = p.J[i, :3], p.J[i, 3:]
        inside = low @ (np.eye(n) - np.linalg.pinv(high) @ high)
        change = filtered(inside, p.v[i, 3:] - before[i, 3:])
        equal = {
            "A_eq": np.hstack([p.J[i], -np.append(np.zeros(3), change)[:, None]]),
            "b_eq": before[i],
        }
        wanted = best(np.append(np.zeros(n), -1.0), p, i, **equal)[-1]
        assert abs(scales[i, 1] - wanted) < 1e-7


def test_the_way_begins_where_limits_hold() -> None:
    m, n, k = 6, 7, 10
    p = random_problems(200, m, n, k)
    rest = np.random.default_rng(7).normal(size=(200, n))
    held = np.einsum("ckn,cn->ck", p.A, rest)
    at_rest = p._replace(
        v=p.v + np.einsum("cmn,cn->cm", p.J, rest),
        low=p.low + rest,
        high=p.high + rest,
        b=p.b + held,
    )
    kernel = kernel_of((m,), n, k)
    x, scales, *_ = kernel(*inputs_of(p, False))
    moved, same, *_ = kernel(*inputs_of(at_rest, False, rest))
    np.testing.assert_allclose(moved - rest, x, atol=1e-9)
    np.testing.assert_allclose(same, scales, atol=1e-9)
    # A row that does not hold at rest gets no worse.
    broken = at_rest._replace(b=np.maximum(at_rest.b, held + 0.1))
    x = kernel(*inputs_of(broken, False, rest))[0]
    assert (np.einsum("ckn,cn->ck", p.A, x) >= held - 1e-11).all()


def test_rows_that_hold_are_named() -> None:
    p = random_problems(300, 6, 7, 10)
    x, scales, _, slots, pressures, held = kernel_of((6,), 7, 10)(*inputs_of(p, False))
    short = scales[:, 0] < 1.0
    assert short.any()
    for i in np.flatnonzero(short).tolist():
        numbers = slots[i][slots[i] >= 0].astype(int)
        assert len(numbers) + np.count_nonzero(held[i]) > 0
        missed = p.A[i, numbers] @ x[i] - p.b[i, numbers]
        assert np.abs(missed).max(initial=0.0) < 1e-9
        assert (pressures[i] >= 0.0).all()


def test_native_code_and_numpy_agree() -> None:
    p = degenerate_problems(40, 3, 5, 6)
    kernel = kernel_of((3,), 5, 6, null=True)
    given = inputs_of(p, True)
    native: Any = kernel._native
    wanted = evaluate(native.core, native.tables, *given)
    for a, b in zip(kernel(*given), wanted, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)
    single = kernel(*(each[3] for each in given))
    for a, b in zip(single, kernel(*given), strict=True):
        np.testing.assert_array_equal(a, b[3])
