"""Working memory of an entry, on the stack where it is small, and bytes copied there.

A thread may have a stack of some 100 KiB, and long programs need megabytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from armillary.kernel.builder import FunctionBuilder, Value
from armillary.kernel.machine_type import I1, I8, I64, PTR, VOID

STACK_BYTES = 2**14
ALIGNMENT = 64  # of each part: that of a whole vector register


@dataclass(frozen=True, slots=True)
class Memory:
    """Working memory of a function.

    Attributes:
        parts: Pointers to the parts.
        heap: What must be freed; None for memory on the stack.
    """

    parts: tuple[Value, ...]
    heap: Value | None

    def release(self, free: Value) -> None:
        """Call `free`, a pointer to a function, where it is needed."""
        if self.heap is not None:
            self.heap.function.call(free.text, VOID, self.heap)


def allocate(
    f: FunctionBuilder, sizes: Sequence[int], malloc: Value, *, failed: str
) -> Memory:
    """Allocate parts of some sizes [bytes].

    Args:
        f: The function.
        sizes: Of the parts.
        malloc: A pointer to the function that allocates.
        failed: Label to continue at where there is no memory.
    """
    rooms = [-(-max(1, size) // ALIGNMENT) * ALIGNMENT for size in sizes]
    if sum(rooms) <= STACK_BYTES:
        return Memory(tuple(f.reserve(room, ALIGNMENT) for room in rooms), None)
    size = f.constant(I64, sum(rooms) + ALIGNMENT)
    heap = f.call(malloc.text, PTR, size)
    f.guard(heap.differs(0), failed)
    low = heap.to(I64, "ptrtoint") & (ALIGNMENT - 1)
    start = f.address(heap, f.constant(I64, ALIGNMENT) - low)
    parts: list[Value] = []
    for room in rooms:
        parts.append(start)
        start = f.address(start, room)
    return Memory(tuple(parts), heap)


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
