"""Working memory of an entry: on the stack where it is small, else on the heap.

A thread may have a stack of some 100 KiB, and long programs need megabytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from armillary.kernel.text import Text

STACK_BYTES = 2**14
ALIGNMENT = 64  # of each part: that of a whole vector register

# For every function that works on vectors. LLVM touches each page of a large frame in
# turn, so that a stack that is too small ends in its guard page and never beyond it. It
# also aligns the frame, without which spilled registers of 64 bytes cross cache lines.
ATTRIBUTES = 'attributes #0 = { "probe-stack"="inline-asm" "stackrealign" }'


@dataclass(frozen=True, slots=True)
class Memory:
    """Working memory of a function.

    Attributes:
        parts: Pointers to the parts.
        heap: What must be freed; empty for memory on the stack.
    """

    parts: tuple[str, ...]
    heap: str

    def free(self, t: Text, free: str) -> None:
        """Append the call of `free`, a pointer to a function, where it is needed."""
        if self.heap:
            t.do(f"call void {free}(ptr {self.heap})")


def allocate(t: Text, sizes: Sequence[int], malloc: str, failed: str) -> Memory:
    """Append the allocation of parts of some sizes [bytes].

    Args:
        t: The function.
        sizes: Of the parts.
        malloc: A pointer to the function that allocates.
        failed: Label to continue at where there is no memory.
    """
    rooms = [-(-max(1, size) // ALIGNMENT) * ALIGNMENT for size in sizes]
    if sum(rooms) <= STACK_BYTES:
        parts = [t.alloca(f"i8, i64 {room}, align {ALIGNMENT}") for room in rooms]
        return Memory(tuple(parts), "")
    heap = t.name(f"call ptr {malloc}(i64 {sum(rooms) + ALIGNMENT})")
    t.branch(t.name(f"icmp ne ptr {heap}, null"), otherwise=failed)
    address = t.name(f"ptrtoint ptr {heap} to i64")
    low = t.name(f"and i64 {address}, {ALIGNMENT - 1}")
    start = t.name(f"sub i64 {ALIGNMENT}, {low}")
    parts: list[str] = []
    for room in rooms:
        parts.append(t.name(f"getelementptr i8, ptr {heap}, i64 {start}"))
        start = t.name(f"add i64 {start}, {room}")
    return Memory(tuple(parts), heap)
