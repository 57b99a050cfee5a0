"""Which level of x86-64 a machine has, by what `cpuid` and `xgetbv` would say of it."""

from __future__ import annotations

import ctypes
import platform

import msgspec
import numpy as np
import pytest

from armillary.kernel.code import Code
from armillary.kernel.host import host
from armillary.kernel.jit import to_object
from armillary.kernel.levels import CHOICE, of_levels
from armillary.kernel.standalone import StandaloneFunction, standalone_module
from armillary.kernel.targets import platform_of
from armillary.trace import trace

pytestmark = pytest.mark.skipif(
    platform.machine() not in {"x86_64", "AMD64"}, reason="needs x86-64"
)

# Intel's manual, volume 2, CPUID: bits of leaves 1, 7 and 80000001h, and of XCR0.
LAST, LEAF_1, LEAF_7, LEAF_8, KEPT = range(5)
FMA, MOVBE, OSXSAVE, AVX, F16C = (1 << k for k in (12, 22, 27, 28, 29))
BMI1, AVX2, BMI2 = (1 << k for k in (3, 5, 8))
AVX512 = [1 << k for k in (16, 17, 28, 30, 31)]
LZCNT, SSE, YMM, ZMM = 1 << 5, 1 << 1, 1 << 2, 7 << 5
SKYLAKE = (
    0x16,
    FMA | MOVBE | OSXSAVE | AVX | F16C,
    BMI1 | AVX2 | BMI2 | sum(AVX512),
    LZCNT,
    1 | SSE | YMM | ZMM,
)

SCRIPTED = """
@answers = internal global [5 x i32] zeroinitializer
define ptr @given() {
  ret ptr @answers
}
define internal i32 @answer(i64 %k) {
  %at = getelementptr i32, ptr @answers, i64 %k
  %v = load i32, ptr %at
  ret i32 %v
}
define internal i32 @level.xgetbv() {
  %v = call i32 @answer(i64 4)
  ret i32 %v
}
define internal { i32, i32, i32, i32 } @level.cpuid(i32 %leaf) {
  %a = call i32 @answer(i64 0)
  %of_1 = call i32 @answer(i64 1)
  %b = call i32 @answer(i64 2)
  %of_8 = call i32 @answer(i64 3)
  %is_1 = icmp eq i32 %leaf, 1
  %c = select i1 %is_1, i32 %of_1, i32 %of_8
  %r0 = insertvalue { i32, i32, i32, i32 } poison, i32 %a, 0
  %r1 = insertvalue { i32, i32, i32, i32 } %r0, i32 %b, 1
  %r2 = insertvalue { i32, i32, i32, i32 } %r1, i32 %c, 2
  ret { i32, i32, i32, i32 } %r2
}
define i32 @asked() {
  %v = call i32 @level.found()
  ret i32 %v
}
attributes #0 = { nounwind }
!2 = !{!"branch_weights", i32 100, i32 1}
"""


@pytest.fixture(scope="module")
def decision() -> Code:
    """The choice of a level, with a script in place of the machine's instructions."""
    return Code(to_object(CHOICE + SCRIPTED, host(), 1), host())


def without(which: int, bit: int) -> tuple[int, ...]:
    """A machine that lacks something."""
    answers = list(SKYLAKE)
    answers[which] &= ~bit
    return tuple(answers)


CASES = {
    "all": (SKYLAKE, 4),
    "old": (without(LAST, 0x10 | 1), 2),  # the last leaf is 6
    **{f"v4 bit {bit:x}": (without(LEAF_7, bit), 3) for bit in AVX512},
    "system without zmm": (without(KEPT, ZMM), 3),
    "system without half of zmm": (without(KEPT, 1 << 7), 3),
    "system without ymm": (without(KEPT, YMM), 2),
    **{
        f"v3 bit {bit:x}": (without(LEAF_1, bit), 2)
        for bit in (FMA, MOVBE, OSXSAVE, AVX, F16C)
    },
    **{f"v3 leaf 7 {bit:x}": (without(LEAF_7, bit), 2) for bit in (BMI1, AVX2, BMI2)},
    "lzcnt": (without(LEAF_8, LZCNT), 2),
}


@pytest.mark.parametrize("name", CASES)
def test_the_level_of_a_machine(decision: Code, name: str):
    answers, level = CASES[name]
    given = ctypes.CFUNCTYPE(ctypes.c_void_p)(decision.address("given"))()
    assert given is not None
    (ctypes.c_uint32 * 5).from_address(given)[:] = answers
    assert ctypes.CFUNCTYPE(ctypes.c_int)(decision.address("asked"))() == level


def test_functions_go_on_in_those_of_this_machine():
    """All levels are in one module, whose functions agree with each of them."""
    program = trace(lambda x: 1.0 / x, name="f", x=(3,))
    function = StandaloneFunction.of("f", program)
    every = platform_of("x86-64")
    text = standalone_module([function], 64, every)
    assert text == of_levels(
        {k: standalone_module([function], 64, x) for k, x in every.levels.items()},
        [x.machine for x in every.levels.values()],
    )
    here = msgspec.structs.replace(every.machine, is_linked=False)
    code = Code(to_object(text, here, 1, variables=True), here)
    x = np.arange(1.0, 61.0).reshape(20, 3)
    out = np.zeros_like(x)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 2, ctypes.c_size_t)
    rows = kind(code.address("f_rows"))
    for _ in range(2):  # the second call finds the level that is kept
        out[:] = 0.0
        assert rows(x.ctypes.data, out.ctypes.data, len(x)) == 0
        np.testing.assert_array_equal(out, 1.0 / x)
