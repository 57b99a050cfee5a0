"""Outputs larger than the caches are written past them, with the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from armillary.kernel import compile
from armillary.kernel.buffers import STREAM_FROM
from armillary.trace import trace

SIZE = 42


@pytest.mark.parametrize("shift", [0, 1, 4])
def test_a_large_batch_is_the_small_batches(shift: int) -> None:
    def powers(q):
        return [[q[k % 3] * (k + 1) for k in range(7)] for _ in range(6)]

    kernel = compile(trace(powers, q=(3,)))
    rows = STREAM_FROM // (SIZE * 8) + 1003
    Q = np.random.default_rng(0).normal(size=(rows, 3))
    memory = np.zeros(rows * SIZE + 8)
    start = shift + (-memory.ctypes.data // 8) % 2  # shift 0 and 4 are aligned to 16
    X = memory[start : start + rows * SIZE].reshape(rows, 6, 7)
    kernel(Q, out=X, threads=1)
    expected = np.concatenate([kernel(part) for part in np.array_split(Q, 9)])
    assert np.array_equal(X, expected)
    assert not memory[:start].any()
    assert not memory[start + rows * SIZE :].any()
