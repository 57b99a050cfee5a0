"""Kernels that compute a batch with a faster kernel first."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from armillary.errors import ShapeError
from armillary.kernel import shared_kernel
from armillary.kernel.kernel import Kernel
from armillary.kernel.two_passes import in_two_passes
from armillary.trace import trace
from armillary.trace.functions import select


def _height(p: Any, offset: Any) -> Any:
    return p[0] + p[1] + offset


def _height_above(p: Any, offset: Any) -> Any:
    height = _height(p, offset)
    return select(height > 0.0, height, -1.0)


def _any_row() -> Kernel:
    return shared_kernel(
        trace(_height, name="height", outputs=("value",), p=(2,), offset=())
    )


def first_pass() -> Kernel:
    """Return a kernel of the rows above 0; at the top, so that it can be pickled."""
    above = trace(_height_above, name="above", outputs=("value",), p=(2,), offset=())
    return shared_kernel(above)


@pytest.fixture
def batch() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = rng.normal(size=(40, 50, 2))
    p[3, 7] = np.nan
    return p, rng.normal(size=50)


@pytest.mark.parametrize("again", [False, True])
def test_values_are_those_of_one_pass(batch: Any, again: bool):
    kernel, any_row = in_two_passes(_any_row(), first_pass), _any_row()
    if again:
        kernel = pickle.loads(pickle.dumps(kernel))
    p, offset = batch
    expected = any_row(p, offset)
    assert (expected < 0.0).any()
    assert np.isnan(expected[3, 7])
    np.testing.assert_array_equal(kernel(p, offset), expected)
    np.testing.assert_array_equal(kernel(p, 0.5, threads=2), any_row(p, 0.5))
    np.testing.assert_array_equal(kernel(p[0, :3], 0.5), any_row(p[0, :3], 0.5))
    assert kernel(p[0, 0], 0.5) == any_row(p[0, 0], 0.5)
    assert kernel(p[:0], 0.5).shape == (0, 50)


def test_only_open_rows_are_computed_again(batch: Any):
    rows: list[int] = []

    class Counted:
        lanes = 1
        spread = staticmethod(_any_row().spread)

        def __call__(self, *inputs: Any, **options: Any) -> Any:
            rows.append(len(inputs[0]))
            return _any_row()(*inputs, **options)

        def with_batches(self, compute: Any) -> Any:
            return compute

    counted: Any = Counted()
    p, offset = batch
    found = in_two_passes(counted, first_pass)(p, offset)
    assert rows == [(~(found > 0.0)).sum()]


def test_results_may_lie_where_inputs_are(batch: Any):
    kernel, any_row = in_two_passes(_any_row(), first_pass), _any_row()
    p, offset = batch
    out = np.empty((40, 50))
    assert kernel(p, offset, out=(out,)) is out
    expected = any_row(p, offset)
    np.testing.assert_array_equal(out, expected)
    kernel(p, offset, out=p[..., 0])
    np.testing.assert_array_equal(p[..., 0], expected)


def test_errors_are_those_of_kernels():
    kernel = in_two_passes(_any_row(), first_pass)
    with pytest.raises(ShapeError, match="'height' needs p of shape"):
        kernel(np.zeros((100, 3)), 0.0)
    with pytest.raises(ShapeError, match=r"out= has shape \(3,\)"):
        kernel(np.zeros((100, 2)), 0.0, out=np.empty(3))
