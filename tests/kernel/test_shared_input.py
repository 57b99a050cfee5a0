"""What an input decides alone is computed once for a batch that shares it."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from armillary.errors import ShapeError
from armillary.kernel import compile
from armillary.kernel.shared_input import BLOCKS, with_shared_input
from armillary.trace import trace
from work import lines


def formula(x: Any, p: Any) -> Any:
    decided = np.sin(p[0]) * np.cos(p[1]) + np.sin(p[2]) * np.cos(p[0])
    return [x[0] * decided, x[1] + np.exp(p[1]), p[2]]


@pytest.fixture(scope="module")
def kernels() -> tuple[Any, Any]:
    plain = compile(trace(formula, name="f", x=(2,), p=(3,)))
    return plain, with_shared_input(plain, "p")


@pytest.mark.parametrize("rows", [1, 5, 8 * BLOCKS, 5000])
@pytest.mark.parametrize("is_shared", [True, False])
def test_results_are_those_of_the_kernel(kernels: Any, rows: int, is_shared: bool):
    plain, shared = kernels
    rng = np.random.default_rng(0)
    x, p = rng.normal(size=(rows, 2)), rng.normal(size=3 if is_shared else (rows, 3))
    expected = plain(x, p)
    np.testing.assert_allclose(shared(x, p), expected, rtol=1e-15, atol=1e-15)
    out = np.empty((rows, 3))
    assert shared(x, p, out=out, threads=1) is out
    np.testing.assert_allclose(out, expected, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(
        pickle.loads(pickle.dumps(shared))(x, p), expected, rtol=1e-15, atol=1e-15
    )
    assert copy.copy(shared) is shared


def test_the_part_that_rows_share_is_computed_once(kernels: Any) -> None:
    _, shared = kernels
    compute = shared.__reduce__()[1][1]
    first, rest = compute._parts
    assert {step.name for step in first.program.instructions} >= {"sin", "cos", "exp"}
    assert not {step.name for step in rest.program.instructions} & {"sin", "exp"}
    x, p = np.ones((20_000, 2)), np.ones(3)
    assert lines(lambda: compute(x, p)) < 500


def test_bad_input_is_that_of_the_kernel(kernels: Any) -> None:
    plain, shared = kernels
    for inputs in ((np.ones((5000, 2)), np.ones(4)), (np.ones((5000, 3)), np.ones(3))):
        messages = []
        for kernel in (plain, shared):
            with pytest.raises(ShapeError) as caught:
                kernel(*inputs)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


def test_nothing_is_cut_where_nothing_is_decided() -> None:
    kernel = compile(trace(lambda x, p: x * p, name="g", x=(), p=()))
    assert with_shared_input(kernel, "p") is kernel
