"""Real roots of trigonometric polynomials, made from roots that are known."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from armillary.ik.closed_forms.general_6r.real_roots import (
    REAL_ROOTS_SCRATCH,
    REAL_ROOTS_TABLE_ROWS,
    REAL_ROOTS_TABLES,
    real_root_stages,
    sample_program,
)
from armillary.kernel import Kernel
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.trace import Port

Array = npt.NDArray[np.float64]

SAMPLES, DEGREE = 21, 8


@cache
def kernel() -> Kernel:
    """Return the kernel from samples of a polynomial to its roots."""
    names = {table.name for table in REAL_ROOTS_TABLES} - {"samples"}
    pipeline = Pipeline(
        "real_roots",
        (Port("samples_of", (SAMPLES, 2)),),
        tuple(table for table in REAL_ROOTS_TABLES if table.name in names),
        real_root_stages(sample_program())[1:],
        ("most_real", "looks_of", "ones", "twos", "is_rough"),
        scratch=tuple(x for x in REAL_ROOTS_SCRATCH if x.name != "samples_of"),
    )
    rows = {name: REAL_ROOTS_TABLE_ROWS[name] for name in names}
    return compile_pipeline(pipeline)(rows)


def roots_of(real: Array, others: Any) -> Any:
    """Return what the kernel finds of polynomials with some roots.

    Args:
        real: Angles, shape (n, k), k even.
        others: Complex ones, shape (n, 8 - k / 2); with each its conjugate is one.
    """
    t = 2.0 * np.pi * np.arange(SAMPLES) / SAMPLES
    values = np.sin(0.5 * (t - real[:, :, None])).prod(axis=1)
    values = values * np.abs(np.sin(0.5 * (t - others[:, :, None])) ** 2).prod(axis=1)
    assert real.shape[1] + 2 * others.shape[1] == 2 * DEGREE
    samples = np.stack([values, np.zeros_like(values)], axis=-1)
    return kernel()(np.ascontiguousarray(samples))


def complex_roots(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Return roots that are at least 0.05 from real ones."""
    return rng.uniform(0.0, 2.0 * np.pi, shape) + 1j * rng.uniform(0.05, 2.0, shape)


def apart(a: Array, b: Array) -> Array:
    return np.abs((a - b + np.pi) % (2.0 * np.pi) - np.pi)


@pytest.mark.parametrize("count", [0, 2, 4, 8, 12, 16])
def test_as_many_are_counted_as_there_are_and_all_are_found(count: int) -> None:
    rng = np.random.default_rng(count)
    n = 200
    # in places of their own, up to a half of each
    places = np.argsort(rng.random((n, 24)), axis=1)[:, :count]
    real = (places + 0.5 * rng.random((n, count)) + rng.random((n, 1))) * np.pi / 12.0
    others = complex_roots(rng, (n, DEGREE - count // 2))
    most, looks, ones, twos, _ = roots_of(real, others)
    np.testing.assert_array_equal(most, count)
    for k in range(n):
        sought = looks[k, : len(ones[k])][(ones[k] + twos[k]) > 0.0]
        for root in real[k]:
            assert apart(sought, root).min() < 1e-6


@pytest.mark.parametrize("gap", [0.0, 1e-9, 1e-5, 1e-3, 1e-2])
def test_pairs_count_twice(gap: float) -> None:
    rng = np.random.default_rng(7)
    n = 200
    pair = rng.uniform(0.0, 2.0 * np.pi, (n, 1)) + np.array([0.0, gap])
    real = np.concatenate([pair, pair[:, :1] + [[2.0, 4.0]]], axis=1)
    others = complex_roots(rng, (n, DEGREE - 2))
    most, looks, ones, twos, _ = roots_of(real, others)
    np.testing.assert_array_equal(most, 4)
    for k in range(n):
        one, two = (looks[k, : len(x[k])][x[k] > 0.0] for x in (ones, twos))
        near = (apart(one, pair[k, 0]) < 2e-2).sum() + 2 * (
            apart(two, pair[k, 0]) < 2e-2
        ).sum()
        assert near >= 2


@pytest.mark.parametrize("distance", [1e-7, 1e-4, 1e-2])
def test_roots_next_to_the_circle_count_unless_p_is_larger_than_its_error(
    distance: float,
) -> None:
    """Of those within the error nothing else is known."""
    rng = np.random.default_rng(3)
    n = 200
    real = rng.uniform(0.0, 1.0, (n, 1)) + np.array([0.0, 2.0])
    others = complex_roots(rng, (n, DEGREE - 1))
    others[:, 0] = real[:, 0] + 4.0 + 1j * distance
    most = roots_of(real, others)[0]
    if distance < 1e-6:
        np.testing.assert_array_equal(most, 4)
    elif distance > 1e-3:
        np.testing.assert_array_equal(most, 2)
    else:
        assert {*most} == {2.0, 4.0}


def test_clusters_are_never_counted_as_less() -> None:
    rng = np.random.default_rng(5)
    n = 400
    spread = 10.0 ** rng.uniform(-6.0, -1.0, (n, 1))
    real = rng.uniform(0.0, 6.0, (n, 1)) + spread * rng.random((n, 4))
    most, *_, is_rough = roots_of(real, complex_roots(rng, (n, DEGREE - 2)))
    assert (most >= 4).all()
    assert is_rough.any() and not is_rough.all()


def test_nothing_is_known_of_a_polynomial_that_is_nan() -> None:
    most, *_ = kernel()(np.full((1, SAMPLES, 2), np.nan))
    assert not most[0] < 16.0
