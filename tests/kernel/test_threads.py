"""Batches shared among threads: every row once, the same bits, no deadlock."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from armillary.errors import KernelError
from armillary.kernel import compile, kernel, threads
from armillary.trace import Program, trace

Draw = Callable[..., list[np.ndarray]]


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any batch is large enough to be shared."""
    monkeypatch.setattr(kernel, "OPERATIONS_PER_THREAD", 1)


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 9, 100, 1001, 20_011])
@pytest.mark.parametrize("count", [1, 2, 3, 16])
def test_every_row_is_taken_once(length: int, count: int):
    taken = np.zeros(length, int)

    def work(rows: slice) -> None:
        taken[rows] += 1

    threads.share(length, count, work, length)
    assert (taken == 1).all()


@pytest.mark.parametrize(
    ("length", "most", "pieces"),
    [(400, 400, 8), (400, 5, 5), (400, 1, 2), (400, 0, 2), (3, 1000, 3)],
)
def test_pieces_are_not_more_than_wanted_but_for_each_thread_one(
    length: int, most: int, pieces: int
):
    found: list[slice] = []
    threads.share(length, 2, found.append, most)
    sizes = [piece.stop - piece.start for piece in found]
    assert len(sizes) == pieces
    assert max(sizes) - min(sizes) <= 1


def test_large_pieces_start_at_whole_blocks():
    found: list[slice] = []
    threads.share(100_003, 2, found.append, 8)
    found.sort(key=lambda piece: piece.start)
    assert [piece.start % threads.GRAIN for piece in found] == [0] * 8
    assert [piece.stop for piece in found] == [p.start for p in found[1:]] + [100_003]


@pytest.mark.parametrize(
    ("length", "edges"),
    [(7, [7]), (8, [8]), (18, [8, 16, 18]), (64, [*range(8, 65, 8)])],
)
def test_pieces_have_whole_blocks(length: int, edges: list[int]):
    found: list[slice] = []
    threads.share(length, 2, found.append, length, block=8)
    assert sorted(piece.stop for piece in found) == edges


def test_several_threads_take_part():
    barrier = threading.Barrier(2, timeout=300)
    met = threading.Event()

    def work(rows: slice) -> None:
        if not met.is_set():
            barrier.wait()  # only passed by two threads at a time
            met.set()

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr(threads, "_pool", lambda: pool)
        threads.share(8, 2, work, 8)
    assert met.is_set()


def test_an_error_of_any_piece_is_raised():
    for bad in range(8):

        def work(rows: slice, bad: int = bad) -> None:
            if rows.start == bad:
                raise ValueError(bad)

        with pytest.raises(ValueError, match=str(bad)):
            threads.share(8, 2, work, 8)


def test_an_error_of_another_thread_is_raised():
    caller, failed = threading.current_thread(), threading.Event()

    def work(rows: slice) -> None:
        if threading.current_thread() is caller:
            assert failed.wait(30)
            return
        failed.set()
        raise ValueError("elsewhere")

    with pytest.raises(ValueError, match="elsewhere"):
        threads.share(100, 4, work, 100)


def test_after_an_error_all_threads_stop_before_it_is_raised():
    caller, first = threading.current_thread(), threading.Event()
    begun: list[int] = []
    ended: list[int] = []

    def work(rows: slice) -> None:
        if threading.current_thread() is caller:
            assert first.wait(30)
            raise KeyboardInterrupt
        begun.append(rows.start)
        first.set()
        time.sleep(0.02)
        ended.append(rows.start)

    with pytest.raises(KeyboardInterrupt):
        threads.share(1000, 16, work, 1000)
    assert sorted(begun) == sorted(ended)
    assert len(begun) < 32  # of 64 pieces


def test_without_threads_to_be_had(monkeypatch: pytest.MonkeyPatch):
    class Exhausted:
        def submit(self, *_: Any) -> Any:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_pool", Exhausted)
    taken = np.zeros(100, int)

    def work(rows: slice) -> None:
        taken[rows] += 1

    threads.share(100, 4, work, 100)
    assert (taken == 1).all()


@pytest.mark.parametrize("value", ["1", "3", "64"])
def test_threads_of_the_environment(value: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ARMILLARY_THREADS", value)
    assert threads.default_threads() == int(value)


@pytest.mark.parametrize("value", ["0", "", "-1", "two", "1.5", "²"])
def test_bad_threads_of_the_environment(value: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ARMILLARY_THREADS", value)
    with pytest.raises(KernelError, match=r"ARMILLARY_THREADS is .* from 1 up\."):
        threads.default_threads()


def test_threads_default_to_the_processors(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("ARMILLARY_THREADS", raising=False)
    assert threads.default_threads() == threads.available_processors() >= 1


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "threads is 0; it must be at least 1"),
        (-2, "is -2"),
        ("2", "is '2'"),
        (1.5, "threads is 1.5; it must be a number"),
    ],
)
def test_bad_threads_of_a_call(arm: Program, value: Any, said: str):
    with pytest.raises(KernelError, match=said):
        compile(arm)(np.zeros((2, 7)), threads=value)


# Kernels.


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("name", ["arm", "track", "many", "long"])
@pytest.mark.parametrize("batch", [(1,), (2,), (103,), (1, 50), (2, 40, 3), (0,)])
def test_shared_batches_are_the_same_to_the_bit(
    formulas: dict[str, Program], draw: Draw, name: str, batch: tuple[int, ...]
):
    program = formulas[name]
    fast = compile(program)
    inputs = draw(program, batch)
    wanted = _tuple(fast(*inputs, threads=1))
    for count in (2, 3, 8):
        for found, one in zip(
            _tuple(fast(*inputs, threads=count)), wanted, strict=True
        ):
            np.testing.assert_array_equal(found, one, strict=True)


@pytest.mark.usefixtures("eager")
def test_shared_batches_broadcast(many: Program, draw: Draw):
    fast = compile(many)
    inputs = draw(many, (3, 1), (40,), ())
    wanted = fast(*inputs, threads=1)
    for found, one in zip(fast(*inputs, threads=4), wanted, strict=True):
        np.testing.assert_array_equal(found, one, strict=True)


@pytest.mark.usefixtures("eager")
def test_shared_batches_with_an_empty_input():
    program = trace(lambda none, q: np.sin(q), none=(0,), q=(3,))
    q = np.random.default_rng(0).normal(size=(50, 3))
    found = compile(program)(np.zeros((50, 0)), q, threads=4)
    np.testing.assert_array_equal(found, compile(program)([], q, threads=1))


@pytest.mark.usefixtures("eager")
def test_shared_batches_do_not_read_what_they_wrote():
    program = trace(lambda q: [q[1], q[0] + 1, q[2]], q=(3,))
    fast = compile(program)
    memory = np.random.default_rng(0).normal(size=(2001, 3))
    wanted = fast(memory[:2000], threads=1)
    there = memory.copy()
    np.testing.assert_array_equal(fast(there[:2000], out=there[1:], threads=4), wanted)
    there = memory[:2000].copy()
    fast(there, out=there[::-1], threads=4)
    np.testing.assert_array_equal(there[::-1], wanted)


@pytest.mark.usefixtures("eager")
def test_shared_batches_into_strides(arm: Program, draw: Draw):
    (q,) = draw(arm, (64,))
    out = np.full((128, 8, 8), np.nan)[::2, ::2, 1::2]
    compile(arm)(q, out=out, threads=4)
    np.testing.assert_array_equal(out, compile(arm)(q, threads=1))


def _tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def test_many_threads_call_one_kernel(arm: Program, draw: Draw):
    fast = compile(arm)
    (rows,) = draw(arm, (32,))
    rows[::5, 3] = 1e13  # these are computed again, in Python
    wanted = fast(rows, threads=1)
    barrier = threading.Barrier(32)
    wrong: list[int] = []

    def work(k: int) -> None:
        q, block = rows[k].copy(), np.tile(rows[k], (9, 1))
        barrier.wait()
        for _ in range(20):
            good = np.array_equal(fast(q), wanted[k])
            good &= bool((fast(block) == wanted[k]).all())
            good &= np.array_equal(fast(q.tolist()), wanted[k])
            if not good:
                wrong.append(k)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(32)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


@pytest.mark.usefixtures("eager")
def test_many_threads_share_batches_at_once(arm: Program, draw: Draw):
    """More callers than the pool has threads; none waits for another's."""
    fast = compile(arm)
    (q,) = draw(arm, (300,))
    wanted = fast(q, threads=1)
    with ThreadPoolExecutor(12) as callers:
        results = list(callers.map(lambda _: fast(q, threads=4), range(36)))
    for found in results:
        np.testing.assert_array_equal(found, wanted)


# Processes that fork, end, or count their memory.

BEGIN = """
import os, sys
import numpy as np
from armillary.kernel import compile, kernel
from armillary.trace import trace

def function(q):
    turns = [np.sin(q[k]) * np.cos(q[k] + 0.5 * k) for k in range(7)]
    return np.outer(turns[:4], turns[3:])

fast = compile(trace(function, name="arm", q=(7,)))
"""

FORK = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # to fork with threads
kernel.OPERATIONS_PER_THREAD = 100
q = np.random.default_rng(0).normal(size=(2000, 7))
wanted = fast(q, threads=4)
child = os.fork()
same = np.array_equal(fast(q, threads=4), wanted)
if child == 0:
    os._exit(0 if same and np.array_equal(fast(q[0]), wanted[0]) else 1)
assert same
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

AT_EXIT = """
import atexit
kernel.OPERATIONS_PER_THREAD = 100
q = np.random.default_rng(0).normal(size=(2000, 7))
wanted = fast(q, threads=1)

@atexit.register
def last():
    print(int(not np.array_equal(fast(q, threads=4), wanted)))

if len(sys.argv) > 1:
    fast(q, threads=4)
"""

MEMORY = """
import resource
q = np.random.default_rng(0).normal(size=(1_000_000, 7))
out = np.ones((1_000_000, 4, 4))
columns = q.T.copy().T
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
fast(q, out=out)
fast(q[::-1], out=out)
fast(columns, out=out.transpose(0, 2, 1))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 // 10**6)
"""


def printed(text: str, *args: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + text, *args],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return int(done.stdout)


@pytest.mark.skipif(not hasattr(threads.os, "fork"), reason="processes do not fork")
def test_a_forked_process_has_threads_of_its_own():
    assert printed(FORK) == 0


@pytest.mark.parametrize("args", [[], ["used before"]])
def test_batches_while_the_interpreter_ends(args: list[str]):
    assert printed(AT_EXIT, *args) == 0


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted otherwise")
def test_a_million_rows_need_little_more_than_their_arrays():
    assert printed(MEMORY) < 25
