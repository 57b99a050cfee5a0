"""Rows with arguments too large for the fast formulas: right, alone, and not silent."""

from __future__ import annotations

import math
import threading
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from armillary.kernel import compile, fallback, kernel, native, vectorize
from armillary.kernel.code import Code
from armillary.kernel.host import host
from armillary.kernel.jit import to_object
from armillary.trace import Program, trace

Array = npt.NDArray[Any]
HUGE = [2.0**30 * 1.5, -1e12, 1e22, 1.7e308, 3e15]
MODULE = "armillary.kernel.native.vectorize"


@pytest.fixture(scope="module")
def waves() -> Program:
    """Outputs (2,) and () of inputs (3,) and ()."""

    def function(q: Any, s: Any) -> Any:
        return [np.sin(q[0]) + q[1], np.tan(s)], np.cos(q[2] * s)

    return trace(function, name="waves", q=(3,), s=(), outputs=["some", "more"])


@pytest.fixture(scope="module")
def sines() -> Program:
    """Sine and cosine of each of 2 numbers."""
    return trace(lambda q: [np.sin(q), np.cos(q)], name="sines", q=(2,))


def test_huge_angles_are_right(sines: Program):
    for x in HUGE:
        found = compile(sines)(np.array([[x, 1.0]]))
        np.testing.assert_allclose(found[0, 0, 0], math.sin(x), rtol=0, atol=2e-16)
        np.testing.assert_allclose(found[0, 1, 0], math.cos(x), rtol=0, atol=2e-16)


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
def test_a_huge_row_in_every_place(waves: Program, lanes: int, kind: str):
    """It is right, and its neighbours are what they are without it, to the bit."""
    fast = compile(waves, lanes=lanes, dtype=kind)
    random = np.random.default_rng(lanes)
    count = 2 * lanes + 1
    q = random.uniform(-3, 3, (count, 3)).astype(kind)
    s = random.uniform(-3, 3, count).astype(kind)
    calm = fast(q, s)
    for row in range(count):
        spoilt = q.copy()
        spoilt[row, 0] = 3e9
        wanted = vectorize(waves, spoilt, s)
        for found, exact, before in zip(fast(spoilt, s), wanted, calm, strict=True):
            np.testing.assert_array_equal(found[row], exact[row].astype(kind))
            others = np.arange(count) != row
            np.testing.assert_array_equal(found[others], before[others])


def test_single_calls_and_strides(sines: Program):
    fast = compile(sines)
    q = np.array([[x, 0.5] for x in HUGE])
    wanted = vectorize(sines, q)
    for k, row in enumerate(q):
        np.testing.assert_array_equal(fast(row), wanted[k])
        np.testing.assert_array_equal(fast(row.tolist()), wanted[k])
    np.testing.assert_array_equal(fast(np.asfortranarray(q)), wanted)
    np.testing.assert_array_equal(fast(q[::-1])[::-1], wanted)
    out = np.full((5, 4, 3), np.nan)[:, ::2, 1:]
    np.testing.assert_array_equal(fast(q, out=out), wanted)


def test_huge_rows_among_threads(sines: Program, monkeypatch: pytest.MonkeyPatch):
    fast = compile(sines)
    q = np.random.default_rng(0).uniform(-3, 3, (3001, 2))
    q[::100, 1] = 1e13
    wanted = fast(q, threads=1)
    np.testing.assert_array_equal(wanted[::100], vectorize(sines, q[::100]))
    monkeypatch.setattr(kernel, "OPERATIONS_PER_THREAD", 100)
    np.testing.assert_array_equal(fast(q, threads=3), wanted)


def test_float32_results_that_overflow_do_not_warn():
    program = trace(lambda q: [np.sin(q[0]) + 1e30 * q[1] * q[1] * q[1]], q=(2,))
    fast = compile(program, dtype="f4")
    q = np.array([[1e9, 1e10], [1e9, 0.0]], np.float32)
    found = fast(q)
    assert found[0] == np.inf
    assert found[1] == np.float32(math.sin(1e9))
    assert fast(q[0]) == np.inf


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("lanes", [1, 8])
def test_nan_and_infinity_are_not_large_numbers(
    sines: Program, monkeypatch: pytest.MonkeyPatch, lanes: int, kind: str
):
    """Their sine and cosine are NaN, as the formula says; nothing is computed again."""
    monkeypatch.setattr(MODULE, None)
    q = np.array([[np.nan, 0.25], [0.5, np.inf], [-np.inf, 1.0]], kind)
    fast = compile(sines, lanes=lanes, dtype=kind)
    wanted = np.isfinite(q)[:, None, :].repeat(2, axis=1)
    np.testing.assert_array_equal(np.isfinite(fast(q)), wanted)
    np.testing.assert_array_equal(np.isnan(fast(q)), ~wanted)
    np.testing.assert_array_equal(fast(q[1]), fast(q)[1])


def test_an_infinity_does_not_hide_a_large_number(sines: Program):
    q = np.array([[np.inf, 1e12], [1e12, -np.inf]])
    np.testing.assert_array_equal(compile(sines)(q), vectorize(sines, q))


# How they are computed.


def test_all_flagged_rows_of_a_call_are_one_pass(
    sines: Program, monkeypatch: pytest.MonkeyPatch
):
    passes: list[int] = []

    def count(program: Program, q: Array) -> Any:
        passes.append(len(q))
        return vectorize(program, q)

    monkeypatch.setattr(MODULE, count)
    q = np.random.default_rng(0).uniform(-3, 3, (1000, 2))
    q[5::10, 0] = 1e13
    fast = compile(sines)
    np.testing.assert_array_equal(fast(q)[5::10], vectorize(sines, q[5::10]))
    assert passes == [100]
    fast(q.reshape(20, 50, 2)[:, ::-1])  # NumPy calls machine code 20 times
    assert passes == [100, 100]


def outs(count: int) -> dict[str, Array]:
    """Where results of shape (count, 2, 2) may be written."""
    raw = np.zeros(count * 32 + 4, np.uint8)
    return {
        "compact": np.zeros((count, 2, 2)),
        "fortran": np.zeros((count, 2, 2), order="F"),
        "apart": np.zeros((2 * count, 3, 4))[::2, 1:, ::2],
        "backwards": np.zeros((count, 2, 2))[::-1, :, ::-1],
        "unaligned": raw[4:].view(np.float64).reshape(count, 2, 2),
    }


@pytest.mark.parametrize("layout", outs(1))
@pytest.mark.parametrize("count", [1, 9])
def test_flagged_rows_reach_any_layout(sines: Program, layout: str, count: int):
    q = np.random.default_rng(0).uniform(-3, 3, (count, 2))
    q[::3] *= 1e13
    out = outs(count)[layout]
    fast = compile(sines)
    assert fast(q, out=out) is out
    np.testing.assert_array_equal(out, fast(q))
    np.testing.assert_array_equal(out[::3], vectorize(sines, q[::3]))


@pytest.mark.parametrize("threads", [1, 3])
def test_results_over_their_inputs(threads: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kernel, "OPERATIONS_PER_THREAD", 100)
    program = trace(lambda q: [np.sin(q[1]), np.cos(q[0])], name="swap", q=(2,))
    fast = compile(program)
    q = np.random.default_rng(0).uniform(-3, 3, (1001, 2))
    q[::7, 0] *= 1e13
    wanted = fast(q)
    shifted = np.concatenate([np.zeros((1, 2)), q])
    fast(shifted[1:], out=shifted[:-1], threads=threads)
    np.testing.assert_array_equal(shifted[:-1], wanted)
    fast(q, out=q, threads=threads)
    np.testing.assert_array_equal(q, wanted)


# What goes wrong while rows are computed again is raised.


def failing(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize("error", [MemoryError("full"), KeyboardInterrupt()])
def test_errors_are_raised(
    sines: Program, monkeypatch: pytest.MonkeyPatch, error: BaseException
):
    fast = compile(sines)
    q = np.full((9, 2), 1e13)
    with monkeypatch.context() as patch:
        patch.setattr(MODULE, failing(error))
        with pytest.raises(type(error)) as raised:
            fast(q)
        assert raised.value is error
        out = np.zeros((9, 2, 2))
        with pytest.raises(type(error)):
            fast(q, out=out)
        assert np.isnan(out).all()
    np.testing.assert_array_equal(fast(q), vectorize(sines, q))


def test_after_an_error_nothing_more_is_tried(
    sines: Program, monkeypatch: pytest.MonkeyPatch
):
    tried: list[int] = []

    def fail(*_: Any) -> Any:
        tried.append(1)
        raise KeyboardInterrupt

    monkeypatch.setattr(MODULE, fail)
    with pytest.raises(KeyboardInterrupt):
        compile(sines)(np.full((10_000, 2), 1e13))
    assert len(tried) == 1


def test_after_an_error_other_threads_give_up(
    sines: Program, monkeypatch: pytest.MonkeyPatch
):
    """A thread looks before each chunk whether another has failed."""
    monkeypatch.setattr(kernel, "OPERATIONS_PER_THREAD", 100)
    monkeypatch.setattr(fallback, "CHUNK", 10)
    main, tried = threading.get_ident(), []

    def fail(program: Program, q: Array) -> Any:
        tried.append(1)
        if threading.get_ident() == main:
            raise KeyboardInterrupt
        time.sleep(0.01)
        return vectorize(program, q)

    monkeypatch.setattr(MODULE, fail)
    with pytest.raises(KeyboardInterrupt):
        compile(sines)(np.full((10_000, 2), 1e13), threads=2)
    assert len(tried) < 100


def test_errors_in_other_threads_are_raised(
    sines: Program, monkeypatch: pytest.MonkeyPatch
):
    fast = compile(sines)
    q = np.full((999, 2), 1e13)
    with monkeypatch.context() as patch:
        patch.setattr(kernel, "OPERATIONS_PER_THREAD", 100)
        patch.setattr(MODULE, failing(MemoryError("full")))
        with pytest.raises(MemoryError, match="full"):
            fast(q, threads=3)
    np.testing.assert_array_equal(fast(q, threads=3), vectorize(sines, q))


@pytest.mark.parametrize("error", [MemoryError("full"), KeyboardInterrupt()])
def test_errors_of_single_calls_are_raised(
    sines: Program, monkeypatch: pytest.MonkeyPatch, error: BaseException
):
    fast = compile(sines)
    with monkeypatch.context() as patch:
        patch.setattr(MODULE, failing(error))
        with pytest.raises(type(error)):
            fast(np.full(2, 1e13))
    np.testing.assert_array_equal(
        fast(np.full((1, 2), 1e13))[0], fast(np.full(2, 1e13))
    )


def test_memory_of_records_is_freed(sines: Program):
    fast = compile(sines)
    q = np.full((50_000, 2), 1e13)
    fast(q[:10])
    tracemalloc.start()
    try:
        for _ in range(3):
            fast(q)
        left, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left < 100_000
    assert most > 50_000 * 24  # the records were seen


@pytest.mark.parametrize("word", ["malloc", "realloc"])
def test_memory_that_runs_out(
    sines: Program, monkeypatch: pytest.MonkeyPatch, word: str
):
    null = Code(to_object("define ptr @null() { ret ptr null }", host(), 2), host())
    state = fallback.new_state()
    state[fallback.STATE.offsets[word] // 8] = null.address("null")
    many = trace(lambda q: [np.sin(q[0]) + k for k in range(400)], q=(1,))
    program = sines if word == "realloc" else many
    q = np.full((9, *program.inputs[0].shape), 1e13)
    with monkeypatch.context() as patch:
        patch.setattr(native, "new_state", state.copy)
        fast = compile(program, lanes=8)
    with pytest.raises(MemoryError, match="no memory for a kernel"):
        fast(q)
    fast = compile(program, lanes=8)
    np.testing.assert_array_equal(fast(q), vectorize(program, q))
