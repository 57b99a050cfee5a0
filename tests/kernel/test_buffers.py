"""Memory of large results is used again, and never while somebody looks at it."""

from __future__ import annotations

import gc
import pickle
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from armillary.kernel import buffers, compile
from armillary.trace import trace

F8 = np.dtype(np.float64)
ROWS = buffers.SMALLEST // 8


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    gc.collect()
    buffers._cached.clear()
    yield
    buffers._cached.clear()


def kept() -> int:
    return sum(memory.nbytes for memory in buffers._cached.values())


def test_memory_is_used_again():
    first = buffers.empty((ROWS,), F8)
    address = first.ctypes.data
    assert first.flags.c_contiguous
    assert first.flags.aligned
    assert first.flags.writeable
    second = buffers.empty((ROWS,), F8)
    assert second.ctypes.data != address
    del first
    third = buffers.empty((ROWS // 4, 4), F8)
    assert third.ctypes.data == address
    assert kept() == 0


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "view",
    [
        lambda X: X[5:7],
        lambda X: X.T,
        lambda X: X.reshape(-1)[::2],
        memoryview,
        lambda X: X.view(np.int64)[0],
        lambda X: np.broadcast_to(X[3], (7, X.shape[1])),
    ],
)
def test_views_keep_the_memory(view: Any):
    array = buffers.empty((ROWS // 4, 4), F8)
    array[...] = 1.5
    part = view(array)
    wanted = np.array(part)
    del array
    gc.collect()
    other = buffers.empty((ROWS // 4, 4), F8)
    other[...] = np.nan
    np.testing.assert_array_equal(np.asarray(part), wanted)
    assert kept() == 0
    del part
    gc.collect()
    assert kept() == 8 * ROWS


def test_small_arrays_and_huge_ones_are_not_kept(monkeypatch: pytest.MonkeyPatch):
    assert buffers.empty((10,), F8).flags.owndata
    monkeypatch.setattr(buffers, "MOST", 2 * buffers.SMALLEST)
    assert buffers.empty((2 * ROWS + 1,), F8).flags.owndata
    assert kept() == 0


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(buffers, "MOST", 3 * buffers.SMALLEST)
    arrays = [buffers.empty((ROWS,), F8) for _ in range(5)]
    del arrays
    gc.collect()
    assert kept() == 3 * buffers.SMALLEST


def test_memory_that_is_far_too_large_is_left():
    large = buffers.empty((4 * ROWS,), F8)
    address = large.ctypes.data
    del large
    assert buffers.empty((ROWS,), F8).ctypes.data != address
    assert buffers.empty((3 * ROWS,), F8).ctypes.data == address


def test_many_threads():
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(20):
            array = buffers.empty((ROWS,), F8)
            array[::4096] = number
            time.sleep(0.0)
            if not (array[::4096] == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_results_of_kernels():
    kernel = compile(trace(lambda q: [q[0] + k for k in range(42)], q=(1,)))
    q = np.arange(100_000.0)[:, None]
    first = kernel(q)
    address, copy = first.ctypes.data, pickle.loads(pickle.dumps(first[:5]))
    second = kernel(q + 1.0)
    np.testing.assert_array_equal(second, first + 1.0)
    np.testing.assert_array_equal(copy, q[:5] + np.arange(42))
    del first
    third = kernel(q + 2.0)
    assert third.ctypes.data == address
    np.testing.assert_array_equal(third, second + 1.0)
