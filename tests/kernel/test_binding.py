"""The entry for single calls: what it takes, what it hands on, what it owns."""

from __future__ import annotations

import ctypes
import gc
import re
import subprocess
import sys
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from armillary.errors import ShapeError
from armillary.kernel import Kernel, binding, compile, object_layout
from armillary.kernel.fallback import new_state
from armillary.kernel.native import native_of
from armillary.trace import Program, trace

Array = npt.NDArray[Any]
Q = np.linspace(-1.0, 1.0, 7)

needs_fast_calls = pytest.mark.skipif(
    not binding.arrays_are_as_expected(), reason="arrays lie otherwise here"
)
pytestmark = needs_fast_calls


class Reading(np.ndarray):
    """A subclass of arrays."""


class Slow:
    """Stands for what gets all unusual calls, and notes them."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, Any]] = []

    def __call__(self, *args: Any, **options: Any) -> str:
        self.calls.append((args, options))
        return "slow"


Watched = tuple[Callable[..., Any], Slow]


@pytest.fixture
def watched(arm: Program) -> Watched:
    """The entry of the arm's kernel, and what it hands calls to."""
    return watch(arm, np.dtype(np.float64))


def watch(program: Program, dtype: np.dtype[Any]) -> Watched:
    native = native_of(program, dtype, None)
    slow = Slow()
    function = binding.make_function(
        native.call, dtype, slow, program.name, native.owned
    )
    return function, slow


# What is taken, and what is handed on.

PLAIN: dict[str, Array] = {
    "array": Q,
    "read-only": np.frombuffer(Q.tobytes()),
    "row of a matrix": np.tile(Q, (3, 1))[1],
    "column of one": np.asfortranarray(np.tile(Q, (3, 1)).T)[:, 1],
    "unaligned": np.frombuffer(b"." + Q.tobytes(), np.uint8)[1:].view(np.float64),
}


@pytest.mark.parametrize("case", PLAIN)
def test_plain_arrays_are_taken(watched: Watched, arm: Program, case: str):
    function, slow = watched
    result = function(PLAIN[case])
    assert slow.calls == []
    np.testing.assert_array_equal(result, compile(arm)(Q[None])[0], strict=True)


UNUSUAL: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "batch": ((np.tile(Q, (3, 1)),), {}),
    "row": ((Q[None],), {}),
    "short": ((Q[:6],), {}),
    "long": ((np.zeros(8),), {}),
    "empty": ((np.zeros(0),), {}),
    "number": ((np.float64(1.0),), {}),
    "array of no dimensions": ((np.array(1.0),), {}),
    "every second": ((np.zeros(14)[::2],), {}),
    "reversed": ((Q[::-1],), {}),
    "zero stride": ((np.broadcast_to(1.0, (7,)),), {}),
    "float32": ((Q.astype("f4"),), {}),
    "int": ((np.arange(7),), {}),
    "swapped bytes": ((Q.astype(np.dtype("f8").newbyteorder("S")),), {}),
    "subclass": ((Q.view(Reading),), {}),
    "masked": ((np.ma.array(Q),), {}),
    "list": (([0.0] * 7,), {}),
    "none": ((None,), {}),
    "text": (("home",), {}),
    "nothing": ((), {}),
    "two": ((Q, Q), {}),
    "out": ((Q,), {"out": np.zeros((4, 4))}),
    "threads": ((Q,), {"threads": 1}),
    "by name": ((), {"q": Q}),
    "one and a name": ((Q,), {"q": Q}),
}


@pytest.mark.parametrize("case", UNUSUAL)
def test_the_rest_is_handed_on_as_it_came(watched: Watched, case: str):
    args, options = UNUSUAL[case]
    function, slow = watched
    assert function(*args, **options) == "slow"
    ((given, given_options),) = slow.calls
    assert len(given) == len(args)
    assert all(a is b for a, b in zip(given, args, strict=True))
    assert given_options.keys() == options.keys()
    assert all(given_options[key] is options[key] for key in options)


def test_arrays_of_other_ranks():
    def function(a: Any, b: Any, m: Any) -> Any:
        return np.outer(np.dot(m, a), [b, 1.0])

    program = trace(function, name="ranks", a=(3,), b=(), m=(2, 3))
    entrance, slow = watch(program, np.dtype(np.float64))
    a, b, m = np.arange(3.0), np.array(2.0), np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(entrance(a, b, m), function(a, b, m))
    assert slow.calls == []
    unusual = [
        (a, b, m.T),
        (a, b, np.asfortranarray(m)),
        (a, b, m.reshape(6)),
        (a, b[None], m),
        (a, 2.0, m),
        (a, b, np.zeros((2, 4))[:, :3]),
        (a, b),
    ]
    for args in unusual:
        assert entrance(*args) == "slow"
    assert len(slow.calls) == len(unusual)


def test_lengths_of_one_may_have_any_stride():
    program = trace(lambda q: q * 2.0, name="twice", q=(1, 3))
    entrance, slow = watch(program, np.dtype(np.float64))
    wide = np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(entrance(wide[::2][:1]), 2.0 * wide[:1])
    assert slow.calls == []


def test_float32_takes_float32():
    program = trace(lambda q: q * 2.0, name="twice", q=(3,))
    entrance, slow = watch(program, np.dtype(np.float32))
    result = entrance(np.ones(3, np.float32))
    assert (result.dtype, slow.calls) == (np.float32, [])
    assert entrance(np.ones(3)) == "slow"


def test_fast_and_slow_give_the_same_bits(formulas: dict[str, Program], draw: Any):
    for program in formulas.values():
        fast = compile(program)
        inputs = draw(program, ())
        quick = fast(*inputs)
        general = Kernel.__call__(fast, *inputs)
        if not isinstance(quick, tuple):
            quick, general = (quick,), (general,)
        for one, other in zip(quick, general, strict=True):
            np.testing.assert_array_equal(one, other, strict=True)


def test_results_are_new_arrays_of_their_own(arm: Program):
    fast = compile(arm)
    first, second = fast(Q), fast(Q)
    for result in (first, second, fast(Q.tolist())):
        assert type(result) is np.ndarray
        assert result.flags.owndata
        assert result.flags.writeable
        assert result.flags.c_contiguous
        assert result.flags.aligned
        assert result.base is None
        assert result.dtype is np.dtype(np.float64)
    first[...] = 0.0
    assert second[3, 3] == 1.0


@pytest.mark.parametrize(
    ("args", "options", "error", "said"),
    [
        ((), {}, ShapeError, "'arm' takes 1 array, q of shape (..., 7); 0 given."),
        ((Q, Q), {}, ShapeError, "'arm' takes 1 array, q of shape (..., 7); 2 given."),
        ((None,), {}, ShapeError, "an array of object was given."),
        ((Q[:6],), {}, ShapeError, "an array of shape (6,) was given."),
        ((Q,), {"out": Q}, ShapeError, "out= has shape (7,)"),
        ((), {"q": Q}, TypeError, "unexpected keyword argument 'q'"),
        ((Q,), {"treads": 1}, TypeError, "unexpected keyword argument 'treads'"),
    ],
)
def test_errors_of_the_slow_way(
    arm: Program, args: Any, options: Any, error: type[Exception], said: str
):
    fast = compile(arm)
    with pytest.raises(error, match=re.escape(said)):
        fast(*args, **options)
    assert fast(Q)[3, 3] == 1.0


def test_it_can_be_called_in_every_way(arm: Program):
    fast = compile(arm)
    wanted = fast(Q)
    ways = [
        fast.__call__(Q),
        fast(*[Q]),
        fast(*(Q,), **{}),
        next(map(fast, [Q])),
        type(fast).__call__(Q),
    ]
    for found in ways:
        np.testing.assert_array_equal(found, wanted)


# What is owned.


@pytest.mark.thorough
def test_references_do_not_leak(arm: Program):
    fast = compile(arm)
    out = np.empty((4, 4))
    watched = [Q, Q.dtype, out, fast, None, True, np.ndarray]

    def use() -> None:
        fast(Q)
        fast(Q, out=out)
        fast(Q[None])
        fast(Q, threads=1)
        for bad in (None, Q[:6]):
            with pytest.raises(ShapeError):
                fast(bad)

    def counts() -> list[int]:
        gc.collect()
        return [sys.getrefcount(x) for x in watched]

    use()
    before = counts()
    for _ in range(200):
        use()
    assert max(abs(x - y) for x, y in zip(before, counts(), strict=True)) < 20


def test_memory_does_not_leak(arm: Program):
    fast = compile(arm)

    def use(count: int) -> int:
        for _ in range(count):
            fast(Q)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = use(100)
        assert use(100_000) - before < 10_000
    finally:
        tracemalloc.stop()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["arm", "many"])
def test_a_call_outlives_its_kernel(formulas: dict[str, Program], draw: Any, name: str):
    program = formulas[name]
    fast = compile(program)
    inputs = draw(program, ())
    wanted = fast(*inputs)
    call, given, gone = fast.__call__, inputs, weakref.ref(fast)
    if name == "many":
        keeper = fast._native  # all that is left of it
        call, given = keeper.ufunc, [*inputs, new_state()]
    del fast
    gc.collect()
    assert gone() is None
    assert name == "arm" or keeper is not None
    for _ in range(3):
        junk = [np.random.default_rng(k).normal(size=50) for k in range(50)]
        for found, one in zip(call(*given), wanted, strict=True):
            np.testing.assert_array_equal(found, one)
        del junk
    if name == "arm":
        np.testing.assert_array_equal(call(inputs[0].tolist()), wanted)
        np.testing.assert_array_equal(call(np.full(7, 1e13)).shape, (4, 4))
        with pytest.raises(ShapeError, match="'arm' needs q"):
            call(None)


def test_results_outlive_their_kernel(arm: Program):
    fast = compile(arm)
    one, batch = fast(Q), fast(np.tile(Q, (5, 1)))
    kept = one.copy()
    del fast
    gc.collect()
    np.testing.assert_array_equal(one, kept)
    np.testing.assert_array_equal(batch[4], kept)


def test_kernels_are_freed(arm: Program, many: Program):
    for program in (arm, many):
        fast = compile(program)
        code = weakref.ref(fast._native.owned[0]._loaded[0])
        kind = weakref.ref(type(fast))
        del fast
        gc.collect()
        assert code() is None
        assert kind() is None


BEGIN = """
import gc, os, sys
import numpy as np
from armillary.kernel import compile
from armillary.trace import trace

def function(q):
    return [np.sin(q[0]), q[1]]
"""

FINALIZER = """
class Holder:
    def __init__(self):
        self.kernel = compile(trace(function, name="held", q=(2,)))
        both = trace(lambda q: (q[0], q[1]), name="both", q=(2,), outputs=["x", "y"])
        self.several = compile(both)
        self.itself = self

    def __del__(self):
        # The collector may have been at what belongs to the kernel already.
        for _ in range(3):
            assert self.kernel(np.array([0.5, 2.0]))[1] == 2.0
            assert self.kernel(np.array([[0.5, 2.0]]))[0, 1] == 2.0
            assert self.several(0.5 * np.ones((3, 2)))[1][2] == 0.5
        print("called")

for _ in range(20):
    Holder()
gc.collect()
Holder()
"""

MANY = """
program = trace(function, name="again", q=(2,))

def use(count):
    for k in range(count):
        kernel = compile(program)
        assert kernel(np.array([0.5, k]))[1] == k
        assert kernel(np.array([[0.5, k]]))[0, 1] == k
    del kernel
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

before = use(50)
grown = use(300) - before
assert grown < 3_000_000, grown
"""


def run(text: str) -> str:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-W", "error", "-c", BEGIN + text],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_finalizers_may_call_kernels():
    assert run(FINALIZER) == "called\n" * 21


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted otherwise")
def test_hundreds_of_kernels_come_and_go():
    run(MANY)


# Where arrays lie otherwise, the ufunc does all.


@pytest.mark.parametrize(
    ("name", "elsewhere"),
    [
        ("DATA", 24),
        ("NDIM", 28),
        ("DESCRIPTION", 48),
        ("DATA", 400),
        ("STRIDES", 32),
        ("DIMENSIONS", 40),
    ],
)
def test_other_layouts_are_noticed(
    name: str, elsewhere: int, monkeypatch: pytest.MonkeyPatch
):
    assert binding._lies_as_expected()
    monkeypatch.setattr(object_layout, name, elsewhere)
    assert not binding._lies_as_expected()


@pytest.mark.parametrize(
    "change",
    [
        lambda patch: patch.setattr(sys.implementation, "name", "other"),
        lambda patch: patch.setattr(
            sys, "_is_gil_enabled", lambda: False, raising=False
        ),
        lambda patch: patch.setattr(binding, "_KNOWN_ABI", 0x3000000),
        lambda patch: patch.setattr(ctypes, "sizeof", lambda _: 4),
        lambda patch: patch.setattr(binding, "_lies_as_expected", lambda: False),
    ],
)
def test_other_interpreters_are_noticed(
    change: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
):
    assert binding.arrays_are_as_expected.__wrapped__()
    change(monkeypatch)
    assert not binding.arrays_are_as_expected.__wrapped__()


def test_without_fast_calls_all_is_the_same(
    arm: Program, monkeypatch: pytest.MonkeyPatch
):
    fast = compile(arm)
    monkeypatch.setattr(binding, "arrays_are_as_expected", lambda: False)
    plain = compile(arm)
    assert type(plain).__call__ is Kernel.__call__
    assert type(fast).__call__ is not Kernel.__call__
    np.testing.assert_array_equal(plain(Q), fast(Q), strict=True)
    assert repr(plain) == repr(fast)
    with pytest.raises(ShapeError, match="'arm' takes 1 array"):
        plain()


def test_what_leads_back_to_a_function_is_freed_with_it(arm: Program) -> None:
    call, slow = watch(arm, np.dtype(np.float64))
    slow.calls.append((call, None))
    gone = weakref.ref(slow)
    del call, slow
    gc.collect()
    assert gone() is None


def test_the_collector_frees_no_definition_before_its_function(arm: Program) -> None:
    # Python reads the definition of a builtin function when it frees the function. What
    # the collector sees of a cycle is cleared in any order.
    call, _ = watch(arm, np.dtype(np.float64))
    others = binding.function_for_tables(call, 0, (), lambda: call)
    for function in (call, others):
        assert not gc.is_tracked(function.__self__)  # type: ignore[attr-defined]
