"""Functions built of loops, branches and structures compute what they say."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from armillary.kernel.builder import FunctionBuilder, Value, module_text
from armillary.kernel.code import Code
from armillary.kernel.host import host
from armillary.kernel.jit import to_object
from armillary.kernel.machine_type import F64, I1, I32, I64, PTR, Type
from armillary.kernel.memory import Struct


def run(f: FunctionBuilder, *arguments: Any) -> Any:
    """Compile a function and call it: whole numbers, or addresses of arrays."""
    text = module_text([f])
    code = Code(to_object(text, host(), 1, variables=True), host())
    result = ctypes.c_double if f.result == F64 else ctypes.c_int64
    kinds = [ctypes.c_int64] * len(arguments)
    call = ctypes.CFUNCTYPE(result, *kinds)(code.address(f.name))
    return call(*[a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments])


def test_a_loop_sums_an_array():
    f = FunctionBuilder("total", F64, exported=True, numbers=PTR, count=I64)
    total = f.variable(F64, 0.0)
    with f.loop(f["count"]) as k:
        total.set(total.get() + f.load(F64, f["numbers"], k))
    f.ret(total.get())
    numbers = np.arange(10.0)
    assert run(f, numbers, 10) == 45.0
    assert run(f, numbers, 0) == 0.0


def test_loops_may_be_nested_and_count_from_anywhere():
    f = FunctionBuilder("table", I64, exported=True, rows=I64, columns=I64)
    total = f.variable(I64, 0)
    with f.loop(f["rows"], 1) as i, f.loop(f["columns"], i, step=2) as j:
        total.set(total.get() + i * 100 + j)
    f.ret(total.get())
    expected = sum(i * 100 + j for i in range(1, 5) for j in range(i, 7, 2))
    assert run(f, 5, 7) == expected


@pytest.mark.parametrize("x", range(-3, 4))
def test_branches_nest(x: int):
    f = FunctionBuilder("kind", I64, exported=True, x=I64)
    answer = f.variable(I64, 0)
    with f.when(f["x"] < 0):
        answer.set(-1)
        with f.when(f["x"].equals(-2)):
            f.ret(f.constant(I64, -20))
        with f.otherwise():
            answer.set(answer.get() * 7)
    with f.otherwise():
        with f.when(f["x"] > 1):
            answer.set(5)
        with f.otherwise(), f.when(f["x"].equals(1)):
            f.ret(f.constant(I64, 1))
    f.ret(answer.get())
    expected = {-3: -7, -2: -20, -1: -7, 0: 0, 1: 1, 2: 5, 3: 5}
    assert run(f, x) == expected[x]


def test_both_ways_of_a_branch_may_return():
    f = FunctionBuilder("sign", I64, exported=True, x=I64)
    with f.when(f["x"] < 0):
        f.ret(f.constant(I64, -1))
    with f.otherwise():
        f.ret(f.constant(I64, 1))
    assert [run(f, x) for x in (-5, 5)] == [-1, 1]


def test_an_endless_loop_is_left_and_repeated():
    f = FunctionBuilder("collatz", I64, exported=True, x=I64)
    x, steps = f.variable(I64, f["x"]), f.variable(I64, 0)
    with f.forever() as turns:
        turns.leave(x.get().equals(1))
        steps.set(steps.get() + 1)
        is_odd = (x.get() & 1).equals(1)
        with f.when(is_odd):
            x.set(x.get() * 3 + 1)
            turns.repeat()
        x.set(x.get() >> 1)
    f.ret(steps.get())
    assert run(f, 27) == 111


def test_vectors_compare_select_and_mask():
    lanes = 4
    f = FunctionBuilder("larger", I64, exported=True, x=PTR, y=PTR)
    x, y = (f.load(F64.wide(lanes), f[name], align=8) for name in ("x", "y"))
    greater = x > y
    f.store(greater.select(x, y), f["x"], align=8)
    f.ret(greater.mask())
    a, b = np.array([1.0, 5.0, np.nan, 8.0]), np.array([2.0, 3.0, 1.0, np.nan])
    assert run(f, a, b) == 0b0010
    assert a.tolist()[:3] == [2.0, 5.0, 1.0]
    assert np.isnan(a[3])


def test_comparisons_know_nan():
    cases = {
        "equals": lambda x, y: x.equals(y),
        "differs": lambda x, y: x.differs(y),
        "exceeds_or_nan": lambda x, y: x.exceeds_or_nan(y),
        "is_nan": lambda x, y: x.is_nan(),
        "not": lambda x, y: ~(x <= y),
    }
    expected = {"equals": 0, "differs": 1, "exceeds_or_nan": 1, "is_nan": 1, "not": 1}
    for name, make in cases.items():
        f = FunctionBuilder("compare", I64, exported=True, x=PTR)
        x = f.load(F64, f["x"])
        f.ret(make(x, f.constant(F64, 1.0)).to(I64, "zext"))
        assert run(f, np.array([np.nan])) == expected[name], name


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
def test_fields_of_a_structure_are_aligned_to_their_size(lanes: int):
    layout = Struct.of(
        flag=(I32, 1), reals=(F64.wide(lanes), 3), few=(I32, lanes), more=(I64, 2)
    )
    sizes = {"flag": 4, "reals": 8 * lanes, "few": 4, "more": 8}
    end = 0
    for name, offset in layout.offsets.items():
        assert offset % sizes[name] == 0
        assert offset >= end
        end = offset + layout.kinds[name].bytes
    assert layout.align == max(8, 8 * lanes)
    assert layout.bytes % layout.align == 0


def test_a_structure_is_read_and_written():
    layout = Struct.of(count=(I32, 1), numbers=(F64, 4), total=(F64, 1))
    f = FunctionBuilder("sum", F64, exported=True, base=PTR)
    base, total = f["base"], f.variable(F64, 0.0)
    count = layout.load(base, "count").to(I64, "sext")
    with f.loop(count) as k:
        total.set(total.get() + layout.load(base, "numbers", k))
        layout.store(0.0, base, "numbers", k)
    layout.store(total.get(), base, "total")
    f.ret(total.get())
    memory = np.zeros(layout.bytes // 8)
    memory[:1].view(np.int32)[0] = 3
    start = layout.offsets["numbers"] // 8
    memory[start : start + 4] = 1.0, 2.0, 3.0, 4.0
    assert run(f, memory) == 6.0
    assert memory[start:].tolist() == [0.0, 0.0, 0.0, 4.0, 6.0]


def test_values_of_different_types_do_not_mix():
    f = FunctionBuilder("wrong", I64, exported=True, x=I64, y=PTR)
    with pytest.raises(AssertionError):
        f["x"] + f.load(F64, f["y"])


def test_nothing_follows_a_return():
    f = FunctionBuilder("wrong", I64, exported=True, x=I64)
    f.ret(f["x"])
    with pytest.raises(AssertionError, match="nothing is reached"):
        f["x"] + 1


@pytest.mark.parametrize(
    ("kind", "number", "text"),
    [
        (I64, 3, "3"),
        (I1, 1, "true"),
        (PTR, 0, "null"),
        (F64, 1.0, "0x3FF0000000000000"),
        (Type("float"), 0.1, "0x3FB99999A0000000"),
        (I32.wide(4), 7, "splat (i32 7)"),
    ],
)
def test_constants(kind: Type, number: float, text: str):
    assert kind.constant(number) == text


def test_bits_are_shifted():
    f = FunctionBuilder("bits", I64, exported=True, x=I64)
    x: Value = f["x"]
    f.ret((x >> 60) ^ x.shifted_right(4) ^ ~(x << 3))
    for number in (-1, 5, -(2**62) + 9):
        bits = number % 2**64
        expected = (bits >> 60) ^ ((number >> 4) % 2**64) ^ ~(bits << 3) % 2**64
        assert run(f, number) % 2**64 == expected % 2**64


def test_what_was_made_is_shared_within_a_block_alone():
    f = FunctionBuilder("shared", F64, x=F64)
    made: list[Value] = []

    def make() -> Value:
        made.append(f["x"] + 1.0)
        return made[-1]

    assert f.once(("next", "x"), make) is f.once(("next", "x"), make)
    with f.when(f["x"] > 0.0):
        f.once(("next", "x"), make)
    f.once(("next", "x"), make)  # behind a branch that may not have been taken
    assert len(made) == 3


@pytest.mark.parametrize("how", ["flag", "limit"])
def test_flags_are_taken_before_a_block_ends(how: str):
    f = FunctionBuilder("flags", x=F64)
    if how == "flag":
        f.flag(f["x"] < 0.0)
    else:
        f.limit(f["x"], 2.0)
    with pytest.raises(AssertionError, match="not taken"):
        f.ret()
    assert f.taken_flags() is not None
    assert f.taken_flags() is None
    f.ret()


@pytest.mark.parametrize("lanes", [1, 2, 8])
def test_lanes_above_a_limit_are_flagged(lanes: int):
    real = F64.wide(lanes)
    f = FunctionBuilder("beyond", I64, exported=True, x=PTR, y=PTR)
    x, y = (f.load(real, f[name], align=8) for name in ("x", "y"))
    f.limit(abs(x), 2.0)
    f.limit(y, 3.0)
    f.flag(y < -9.0)
    flagged = f.taken_flags()
    assert flagged is not None
    f.ret(flagged.mask())
    a = np.array([1.0, -2.5, 2.0, np.nan, 0.0, 0.0, 0.0, 0.0])
    b = np.array([0.0, 0.0, 3.5, 0.0, -10.0, 3.0, np.nan, np.inf])
    assert run(f, a, b) == 0b10010110 % (1 << lanes)


def test_reals_have_the_operators_of_python():
    f = FunctionBuilder("formula", F64, exported=True, x=PTR)
    x = f.load(F64, f["x"])
    y = 1.0 - (-x) / 4.0 + 3.0 / abs(x)
    f.ret((y > 2.0).select(y.fma(2.0, x), 0.0).with_sign_of(x))
    for number in (-2.0, 8.0, -40.0):
        inner = 1.0 + number / 4.0 + 3.0 / abs(number)
        wanted = 2.0 * inner + number if inner > 2.0 else 0.0
        assert run(f, np.array([number])) == np.copysign(wanted, number)


@pytest.mark.parametrize("kind", [F64, F64.wide(4), Type("float", 8)])
def test_constants_keep_the_sign_of_zero(kind: Type):
    assert kind.constant(0.0) != kind.constant(-0.0)
    assert kind.constant(1) == kind.constant(1.0)
    assert kind.constant(float("nan")) == kind.constant(float("nan"))
