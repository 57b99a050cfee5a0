"""LLVM's text to code in memory; what LLVM refuses is told."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import weakref
from collections.abc import Callable
from functools import partialmethod

import llvmlite.binding as llvm
import pytest

from armillary.errors import KernelError
from armillary.kernel.code import Code
from armillary.kernel.host import host
from armillary.kernel.jit import to_assembly, to_object

TWICE = """
define double @twice(double %x) {
  %y = fadd double %x, %x
  ret double %y
}
"""

REFUSED = [
    "define double @twice(double %x) { ret i32 0 }",
    "this is no LLVM IR",
    "define void @f() {\n  call void @g()\n  ret void\n}",
    TWICE.replace("%y = fadd double %x, %x", "%y = fadd double %z, %x"),
    TWICE.replace("ret double %y", "ret double %z\n  %z = fadd double %x, %x"),
]


def function(code: Code) -> ctypes._CFuncPtr:
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(code.address("twice"))


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_text_becomes_code(level: int):
    code = Code(to_object(TWICE, host(), level), host())
    assert function(code)(1.5) == 3.0
    assert "twice:" in to_assembly(TWICE, host(), level)


@pytest.mark.parametrize("text", REFUSED)
def test_text_that_llvm_refuses(text: str):
    with pytest.raises(KernelError, match=r"LLVM refuses .* please report this\. .+"):
        to_object(text, host(), 2)


def test_functions_that_are_not_there():
    code = Code(to_object(TWICE, host(), 2), host())
    with pytest.raises(KernelError, match="Compiled code has no function 'thrice'"):
        code.address("thrice")


def test_codes_do_not_disturb_each_other():
    codes = [
        Code(to_object(TWICE.replace("%x, %x", f"%x, {k}.0"), host(), 2), host())
        for k in range(20)
    ]
    functions = [function(code) for code in codes]
    del codes[::2]
    gc.collect()
    assert [f(1.0) for f in functions[1::2]] == [1.0 + k for k in range(1, 20, 2)]


def test_code_is_freed():
    code = Code(to_object(TWICE, host(), 2), host())
    engine = weakref.ref(code._loaded[0])
    del code
    gc.collect()
    assert engine() is None


@pytest.mark.parametrize("text", [TWICE, *REFUSED])
def test_a_text_is_forgotten_with_its_constants(
    text: str, monkeypatch: pytest.MonkeyPatch
):
    # LLVM keeps constants as long as the context, and the module is gone before that.
    closed: list[str] = []

    def close(ref: llvm.ffi.ObjectRef, dispose: Callable[..., None]) -> None:
        closed.append(type(ref).__name__)
        dispose(ref)

    for kind in (llvm.ModuleRef, llvm.context.ContextRef):
        dispose = kind._dispose
        monkeypatch.setattr(kind, "_dispose", partialmethod(close, dispose))
    refused = contextlib.nullcontext() if text == TWICE else pytest.raises(KernelError)
    with refused:
        to_object(text, host(), 0)
    assert closed == ["ModuleRef", "ContextRef"]
