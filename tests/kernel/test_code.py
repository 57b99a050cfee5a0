"""Objects placed without LLVM: the same code, and nothing that is not understood."""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import disk_cache
from armillary.errors import KernelError
from armillary.kernel import code as loader
from armillary.kernel import compile, jit, processor
from armillary.kernel import host as machines
from armillary.kernel.code import Code
from armillary.kernel.host import host
from armillary.trace import trace

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not host().triple.startswith("x86_64"),
    reason="LLVM loads the code of other machines",
)

# Constants in a section of their own, another function, and one of C's library.
TEXT = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal double @half(double %x) noinline {
  %y = fmul double %x, 5.0e-01
  ret double %y
}

define void @run(ptr %to, ptr %from, i64 %n) {
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %n, i1 false)
  %x = load double, ptr %from
  %y = call double @half(double %x)
  %z = fadd double %y, 1.0e+01
  store double %z, ptr %to
  ret void
}
"""


def object_of(text: str) -> bytes:
    return jit.to_object(text, host(), 2)


def answer(address: int) -> list[float]:
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    x, y = np.array([3.0, 4.0, 5.0]), np.zeros(3)
    kind(address)(y.ctypes.data, x.ctypes.data, x.nbytes)
    return y.tolist()


def test_code_does_what_llvm_makes_of_it():
    code = object_of(TEXT)
    assert loader._placed(code) is not None
    placed = Code(code, host())  # its memory is freed with it
    assert answer(placed.address("run")) == [11.5, 4.0, 5.0]
    engine = jit.engine_of(code, host())
    assert answer(engine.get_function_address("run")) == [11.5, 4.0, 5.0]


def test_internal_functions_have_no_address():
    with pytest.raises(KernelError, match="no function 'half'"):
        Code(object_of(TEXT), host()).address("half")


def test_an_object_that_ends_early_is_not_placed():
    code = object_of(TEXT)
    for n in range(0, len(code), 7):
        assert loader._placed(code[:n]) is None


@pytest.mark.parametrize(
    "text",
    [
        "@x = global double 1.0\ndefine double @f() {\n"
        "  %y = load double, ptr @x\n  store double %y, ptr @x\n  ret double %y\n}",
        "declare void @absent_everywhere()\n"
        "define void @f() {\n  call void @absent_everywhere()\n  ret void\n}",
    ],
    ids=["variables", "unknown-function"],
)
def test_what_kernels_do_not_have_is_left_to_llvm(text: str):
    assert loader._placed(object_of(text)) is None


def test_other_relocations_are_left_to_llvm():
    code = bytearray(object_of(TEXT))
    _, _, start, count, _ = loader.FILE_HEADER.unpack_from(code)
    rows = code[start : start + count * loader.SECTION.size]
    sections = [loader.Section(*row) for row in loader.SECTION.iter_unpack(rows)]
    changed = 0
    for table in sections:
        on = sections[table.info]
        if table.type == loader.RELOCATIONS and on.type != loader.UNWINDING:
            code[table.offset + 8] = 2  # relative to where it stands
            changed += 1
    assert changed
    assert loader._placed(bytes(code)) is None


def test_the_code_cannot_be_written():
    code = Code(object_of(TEXT), host())
    address = code.address("run")
    lines = Path("/proc/self/maps").read_text().splitlines()
    (rights,) = (
        line.split()[1]
        for line in lines
        for low, high in [line.split()[0].split("-")]
        if int(low, 16) <= address < int(high, 16)
    )
    assert rights == "r-xp"


ASK = """
import sys
import armillary as arm
cell = arm.example("scara")
q = cell.home.q
print(cell.fk("tool0")(q).tolist(), cell.ik("tool0")(cell.fk("tool0")(q)).q.tolist())
print("llvmlite.binding" in sys.modules)
"""


def test_a_process_that_finds_all_in_the_cache_does_without_llvm(tmp_path: Path):
    said = [
        subprocess.run(
            [sys.executable, "-c", ASK],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "ARMILLARY_CACHE": str(tmp_path / "cache")},
        ).stdout.splitlines()
        for _ in range(2)
    ]
    assert said[0][:-1] == said[1][:-1]
    assert [lines[-1] for lines in said] == ["True", "False"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of each test's own."""
    monkeypatch.setenv("ARMILLARY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def doubled(size: int) -> Callable[..., Any]:
    return compile(trace(lambda q: q + q, name="doubled", q=(size,)))


def test_a_cache_that_disappears_between_two_calls(place: Path):
    first = doubled(2)
    assert list(place.iterdir())
    shutil.rmtree(place)
    for size in (2, 3):  # the second is compiled, and kept in a folder made anew
        np.testing.assert_array_equal(doubled(size)(np.ones(size)), np.full(size, 2.0))
    np.testing.assert_array_equal(first(np.ones(2)), [2.0, 2.0])
    assert list(place.iterdir())


def test_functions_that_outlive_their_cell():
    cell = arm.example("scara")
    q = cell.home.q + 0.1
    asked = cell.fk("tool0"), cell.jacobian("tool0"), cell.ik("tool0")
    X, J = asked[0](q), asked[1](q)
    found = asked[2](X).q
    fk, jacobian, ik = asked
    del cell, asked
    gc.collect()
    np.testing.assert_array_equal(fk(q), X)
    np.testing.assert_array_equal(jacobian(q), J)
    np.testing.assert_array_equal(ik(X).q, found)


# What LLVM says of the machine.


@pytest.fixture
def asked(place: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often LLVM was asked, with an empty cache."""
    times: list[int] = []
    real = processor.this_machine

    def counted() -> tuple[str, str, str, str]:
        times.append(1)
        return real()

    monkeypatch.setattr(processor, "this_machine", counted)
    return times


def test_llvm_is_asked_once(asked: list[int]):
    answers = {machines._host.__wrapped__() for _ in range(3)}
    assert answers == {processor.this_machine()}
    assert len(asked) == 2


def test_llvm_is_asked_again_on_another_machine(
    asked: list[int], monkeypatch: pytest.MonkeyPatch
):
    import numpy._core._multiarray_umath as umath

    machines._host.__wrapped__()
    hidden = {**vars(umath)["__cpu_features__"], "AVX2": False, "SSE2": False}
    monkeypatch.setattr(umath, "__cpu_features__", hidden)
    machines._host.__wrapped__()
    assert len(asked) == 2


def test_without_a_cache_llvm_is_asked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ARMILLARY_CACHE", "off")
    assert disk_cache.folder() is None
    assert machines._host.__wrapped__() == processor.this_machine()


def test_code_is_replaced_where_it_is():
    def of(number: float, name: str = "run") -> Code:
        text = TEXT.replace("1.0e+01", f"{number:e}").replace("@run", f"@{name}")
        made = jit.to_object(text, host(), 2)
        return Code(made, host(), is_replaceable=True)

    code, other = of(10.0), of(20.0)
    address = code.address("run")
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    function, x, y = run(address), np.array([3.0]), np.zeros(1)

    def result() -> float:
        function(y.ctypes.data, x.ctypes.data, 8)
        return float(y[0])

    assert result() == 11.5
    assert code.replace(other)
    del other
    gc.collect()
    assert code.address("run") == address
    assert result() == 21.5
    with pytest.raises(KernelError, match="has no function 'run'"):
        code.replace(of(30.0, "walk"))
    assert result() == 21.5
    fixed = Code(jit.to_object(TEXT, host(), 2), host())
    assert not fixed.replace(code)
