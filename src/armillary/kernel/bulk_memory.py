"""Bytes copied and cleared by LLVM's own functions."""

from __future__ import annotations

from armillary.kernel.builder import Value
from armillary.kernel.machine_type import I1, I8, I64, VOID

__all__ = ["clear_bytes", "copy_bytes"]


def copy_bytes(to: Value, source: Value, size: int) -> None:
    """Copy `size` bytes between addresses that do not overlap."""
    f, name = to.function, "@llvm.memcpy.p0.p0.i64"
    f.declared[name] = f"declare void {name}(ptr, ptr, i64, i1)"
    f.call(name, VOID, to, source, f.constant(I64, size), f.constant(I1, 0))


def clear_bytes(to: Value, size: int) -> None:
    """Set `size` bytes to 0."""
    f, name = to.function, "@llvm.memset.p0.i64"
    f.declared[name] = f"declare void {name}(ptr, i8, i64, i1)"
    f.call(name, VOID, to, f.constant(I8, 0), f.constant(I64, size), f.constant(I1, 0))
