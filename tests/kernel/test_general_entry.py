"""All forms of a call: machine code gives what the Python way gives, or its errors."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from armillary.kernel import (
    Kernel,
    binding,
    compile,
    general_binding,
    object_layout,
)
from armillary.kernel.kernel import OPERATIONS_PER_THREAD, _general
from armillary.trace import Program, trace

Array = npt.NDArray[Any]
Form = tuple[tuple[Any, ...], dict[str, Any]]
Q = np.linspace(-1.0, 1.0, 7)
MANY = np.random.default_rng(5).normal(size=(11, 7))

pytestmark = pytest.mark.skipif(
    not binding.arrays_are_as_expected(), reason="arrays lie otherwise here"
)


@pytest.mark.parametrize(
    ("name", "elsewhere"),
    [
        ("COUNT", 8),
        ("LIST_ITEMS", 40),
        ("NUMBER", 8),
        ("TYPE_NUMBER", 24),
        ("HALF", 22),
        ("ALIGNED", 0x200),
    ],
)
def test_other_layouts_are_noticed(
    name: str, elsewhere: int, monkeypatch: pytest.MonkeyPatch
):
    assert general_binding._lie_as_expected()
    monkeypatch.setattr(object_layout, name, elsewhere)
    assert not general_binding._lie_as_expected()


class Reading(np.ndarray):
    """A subclass of arrays."""


class Slow:
    """The Python way, which counts the calls that it gets."""

    def __init__(self, fast: Kernel) -> None:
        self.fast, self.calls = fast, 0

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.calls += 1
        return Kernel.__call__(self.fast, *args, **options)


def watch(program: Program, dtype: Any = np.float64) -> tuple[Any, Slow]:
    """Return the general entry of a kernel, and what it hands calls to."""
    fast = compile(program, dtype=dtype)
    slow = Slow(fast)
    return _general(fast._native, slow, None), slow


def shifted(array: Array) -> Array:
    """Return the same numbers at addresses that are not for numbers."""
    at = np.frombuffer(bytearray(b"." + array.tobytes()), np.uint8)[1:]
    return at.view(array.dtype).reshape(array.shape)


def swapped(array: Array) -> Array:
    return array.astype(array.dtype.newbyteorder("S"))


def read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


def room(*batch: int) -> Array:
    return np.full((*batch, 4, 4), -7.0)


# Forms that machine code takes, and forms that it hands on, a call for each.
TAKEN: dict[str, Any] = {
    "row": lambda: ((Q,), {}),
    "out": lambda: ((Q,), {"out": room()}),
    "out and threads": lambda: ((Q,), {"out": room(), "threads": 3}),
    "threads and no out": lambda: ((Q,), {"threads": None, "out": None}),
    "tuple of one": lambda: ((Q,), {"out": (room(),)}),
    "row of a larger out": lambda: ((Q,), {"out": room(3)[1]}),
    "batch of one": lambda: ((Q[None],), {}),
    "batch": lambda: ((MANY,), {}),
    "batch, out": lambda: ((MANY,), {"out": room(11)}),
    "two dimensions": lambda: ((MANY[:10].reshape(2, 5, 7),), {"out": room(2, 5)}),
    "every second row": lambda: ((MANY[::2],), {}),
    "backwards": lambda: ((MANY[::-1, ::-1],), {}),
    "Fortran's order": lambda: ((np.asfortranarray(MANY),), {"out": room(11)}),
    "strided, two dimensions": lambda: ((np.zeros((2, 5, 9))[..., 1:8],), {}),
    "broadcast": lambda: ((np.broadcast_to(Q, (5, 7)),), {}),
    "every second": lambda: ((np.arange(14.0)[::2],), {}),
    "list": lambda: ((Q.tolist(),), {"out": room()}),
    "tuple": lambda: ((tuple(Q),), {}),
    "whole numbers": lambda: (([1, 2.5, -3, 20, 0, np.float64(0.5), -0.0],), {}),
    "float32": lambda: ((MANY.astype("f4"),), {"threads": 1}),
    "float16": lambda: ((MANY.astype("f2"),), {}),
    "int64": lambda: ((np.arange(7) - 3,), {}),
    "uint64": lambda: ((np.arange(7, dtype="u8"),), {}),
    "bool": lambda: ((Q > 0,), {}),
    "swapped bytes": lambda: ((swapped(MANY),), {}),
    "NaN": lambda: (([np.nan, np.inf, *Q[2:].tolist()],), {}),
    "overlap by neither": lambda: ((MANY[:5].copy(),), {"out": room(5)}),
}
HANDED_ON: dict[str, Any] = {
    "no rows": lambda: ((MANY[:0],), {}),
    "unaligned": lambda: ((shifted(MANY),), {}),
    "unaligned out": lambda: ((Q,), {"out": shifted(room())}),
    "subclass": lambda: ((Q.view(Reading),), {}),
    "masked": lambda: ((np.ma.array(Q, mask=Q > 0),), {}),
    "text": lambda: ((["1.0"] * 7,), {}),
    "none": lambda: (([None] * 7,), {}),
    "large numbers": lambda: (([2**70] * 7,), {}),
    "truths": lambda: (([True] * 7,), {}),
    "long double": lambda: ((Q.astype(np.longdouble),), {}),
    "complex": lambda: ((Q.astype(complex),), {}),
    "object": lambda: ((Q.astype(object),), {}),
    "dates": lambda: ((np.zeros(7, "M8[s]"),), {}),
    "short list": lambda: (([0.0] * 6,), {}),
    "nested": lambda: ((MANY.tolist(),), {}),
    "short": lambda: ((Q[:6],), {}),
    "number": lambda: ((1.0,), {}),
    "no number of them": lambda: ((), {}),
    "two": lambda: ((Q, Q), {}),
    "batch of gaps": lambda: ((np.zeros((3, 4, 7))[:, :2],), {}),
    "threads 0": lambda: ((Q,), {"threads": 0}),
    "threads True": lambda: ((Q,), {"threads": True}),
    "threads 1.5": lambda: ((Q,), {"threads": 1.5}),
    "threads of NumPy": lambda: ((Q,), {"threads": np.int64(1)}),
    "threads, many": lambda: ((Q,), {"threads": 2**70}),
    "threads -2**70": lambda: ((Q,), {"threads": -(2**70)}),
    "another word": lambda: ((Q,), {"outs": room()}),
    "by name": lambda: ((), {"q": Q}),
    "out of another shape": lambda: ((Q,), {"out": np.zeros((4, 3))}),
    "out without batch": lambda: ((MANY,), {"out": room()}),
    "out of a larger batch": lambda: ((MANY,), {"out": room(12)}),
    "out with batch": lambda: ((Q,), {"out": room(1)}),
    "out of float32": lambda: ((Q,), {"out": room().astype("f4")}),
    "out swapped": lambda: ((Q,), {"out": swapped(room())}),
    "out read-only": lambda: ((Q,), {"out": read_only(room())}),
    "out strided": lambda: ((MANY,), {"out": np.zeros((11, 8, 4))[:, ::2]}),
    "out in Fortran's order": lambda: ((Q,), {"out": np.asfortranarray(room())}),
    "out a subclass": lambda: ((Q,), {"out": room().view(Reading)}),
    "out a list": lambda: ((Q,), {"out": room().tolist()}),
    "out of two": lambda: ((Q,), {"out": (room(), room())}),
    "out of none": lambda: ((Q,), {"out": (None,)}),
    "out an empty tuple": lambda: ((Q,), {"out": ()}),
}


def answered(call: Any, form: Form) -> Any:
    """Return what a call gives: arrays, or the text of its error; and `out`."""
    args, options = form
    try:
        result = call(*args, **options)
    except Exception as error:
        return type(error), str(error)
    out = options.get("out")
    if isinstance(out, np.ndarray):
        assert result is out
    elif out is not None and len(out) == 1 and out[0] is not None:
        assert result is out[0]
    return result


def same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    elif isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()
    else:
        assert one == other


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", [*TAKEN, *HANDED_ON])
def test_each_form_gives_what_python_gives(arm: Program, name: str, dtype: Any):
    make = TAKEN.get(name) or HANDED_ON[name]
    entry, slow = watch(arm, dtype)
    found = answered(entry, make())
    same(found, answered(lambda *a, **k: Kernel.__call__(slow.fast, *a, **k), make()))
    if dtype is np.float64:
        assert slow.calls == (name in HANDED_ON)
    elif name in {"row", "batch", "batch of one", "threads and no out"}:
        assert slow.calls == 0
    # Through the entry of single calls, too.
    same(found, answered(slow.fast, make()))


@pytest.mark.parametrize("start", [0, 3, 4, 5, 8, 15, 16])
@pytest.mark.parametrize("step", [1, -1, 2])
def test_results_that_overlap_are_handed_on(start: int, step: int):
    entry, slow = watch(trace(lambda q: q * 2.0, name="twice", q=(4,)))

    def call(function: Any) -> tuple[Array, Array]:
        memory = np.arange(32.0)
        rows = memory[4:16].reshape(3, 4)[::step]  # at most 4 to 16
        out = memory[start : start + 4 * len(rows)].reshape(rows.shape)
        return function(rows, out=out), memory

    same(call(entry), call(lambda *a, **k: Kernel.__call__(slow.fast, *a, **k)))
    size = 12 if abs(step) == 1 else 8
    assert slow.calls == (start + size > 4 and start < 16)


def test_large_whole_numbers_are_rounded_as_numpy_does():
    entry, slow = watch(trace(lambda q: q + 0.0, name="same", q=(4,)))
    for numbers in (
        [2**53 + 1, -(2**60) - 1, 2**63 - 1, -(2**63)],
        [2**53 + 1, 0.5, -(2**63), 1e300],
    ):
        given = np.array(numbers)
        for form in (numbers, tuple(numbers), given, given.astype(np.float64)):
            same(entry(form), np.asarray(numbers, np.float64))
    assert slow.calls == 0


@pytest.mark.parametrize(
    ("number", "calls"),
    [
        *((x, 1) for x in (1e300, 1e-300, 1e-40, 3.5e38)),
        *((x, 0) for x in (0.0, -0.0, np.inf, np.nan, 3.4e38, 1.2e-38, 1.0 / 3.0)),
    ],
)
def test_numbers_are_shortened_as_numpy_does(number: float, calls: int):
    entry, slow = watch(trace(lambda q: q + 0.0, name="same", q=(3,)), np.float32)
    q = np.array([1.0, number, -2.0])
    with np.errstate(all="ignore"):
        same(entry(q), Kernel.__call__(slow.fast, q.astype(np.float32)))
    assert slow.calls == calls


def test_several_inputs_and_results(many: Program):
    entry, slow = watch(many)
    rng = np.random.default_rng(3)
    a, b, m = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=(6, 2, 3))

    def places(*batch: int) -> tuple[Array, ...]:
        return tuple(np.zeros((*batch, *port.shape)) for port in many.outputs)

    taken: list[Form] = [
        ((a[0], b[0], m[0]), {}),
        ((a[0], 0.5, m[0]), {}),
        ((a[0].tolist(), 3, m), {}),
        ((a, b, m), {"threads": 2}),
        ((a[0], b, m[0].T.copy().T), {"out": places(6)}),
        ((a, b[0], m[:, ::-1]), {}),
    ]
    handed: list[Form] = [
        ((a[:1], b, m), {}),
        ((a[:5], b, m), {}),
        ((a, b, m[0].tolist()), {}),
        ((a, b, m), {"out": places(6)[:4]}),
        ((a, b, m), {"out": list(places(6))}),
        ((a, b, m), {"out": (*places(6)[:4], None)}),
        ((a, b, m), {"out": (*places(6)[:3], a, places(6)[4])}),
    ]
    for forms, calls in ((taken, 0), (handed, 1)):
        for form in forms:
            slow.calls = 0
            found = answered(entry, form)
            assert slow.calls == calls, form
            python = answered(lambda *x, **k: Kernel.__call__(slow.fast, *x, **k), form)
            same(found, python)
    out = places(6)
    assert all(x is y for x, y in zip(entry(a, b, m, out=out), out, strict=True))
    # Two results in one place.
    program = trace(lambda q: (q, q * 2.0), name="two", q=(2,), outputs=["x", "y"])
    entry, slow = watch(program)
    place = np.zeros(3)
    entry(np.ones(2), out=(place[:2], place[1:]))
    assert slow.calls == 1


def test_rows_beyond_the_fast_formulas_are_computed_again(arm: Program):
    entry, slow = watch(arm)
    far = MANY.copy()
    far[3, 2] = 1e13
    for q, options in ((far, {}), (far, {"out": room(11)}), (far[3], {})):
        slow.calls = 0
        same(entry(q, **options), Kernel.__call__(slow.fast, q))
        assert slow.calls == 1


def test_large_batches_are_for_threads(arm: Program):
    entry, slow = watch(arm)
    most = (2 * OPERATIONS_PER_THREAD - 1) // slow.fast._native.operations
    most = min(most, (2**24 - 1) // 128)
    Q = np.broadcast_to(MANY[0], (most, 7))
    out = entry(Q, threads=1)
    assert slow.calls == 0
    same(out[-1], slow.fast(MANY[0]))
    assert entry(np.broadcast_to(MANY[0], (most + 1, 7)), threads=1).shape[0] > most
    assert slow.calls == 1


def test_nothing_leaks(many: Program, arm: Program):
    fast, several = compile(arm), compile(many)
    out, listed, single = room(), Q.tolist(), np.float32(Q)
    inputs = np.zeros((2, 3)), 1.5, np.zeros((2, 3))
    tuples = several(*inputs)
    watched = [Q, Q.dtype, single.dtype, out, listed, tuples, None, "out", *tuples]

    def use() -> None:
        fast(Q, out=out, threads=1)
        fast(listed)
        fast(single, out=(out,))
        several(*inputs)
        several(*inputs, out=tuples)
        with pytest.raises(TypeError):
            fast(single, **{"outs": out})

    def counts() -> list[int]:
        gc.collect()
        return [sys.getrefcount(x) for x in watched]

    use()
    before = counts()
    for _ in range(100):
        use()
    assert max(abs(x - y) for x, y in zip(before, counts(), strict=True)) < 20


def test_plain_rows_alone(arm: Program, many: Program):
    single = compile(arm).for_plain_rows()
    same(single(Q), compile(arm)(Q))
    for args, options in (((Q[None],), {}), ((Q.tolist(),), {}), ((Q[:3],), {})):
        assert single(*args, **options) is None
    assert single(Q, out=room()) is None
    assert single(np.full(7, 1e13)) is None  # beyond the fast formulas
    assert compile(many).for_plain_rows()(np.ones(3), np.array(1.0)) is None
