"""Memory of machine code: structures, and the room that an entry works in.

A `Struct` gives names to what lies in memory. Small room is on the stack: a thread may
have one of some 100 KiB, and long programs need megabytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast, final

import msgspec

from armillary.kernel.machine_type import I1, I8, I64, PTR, VOID, Type

if TYPE_CHECKING:  # code that was compiled earlier needs structures, and no builder
    from armillary.kernel.builder import FunctionBuilder, Operand, Value

__all__ = ["Memory", "Struct", "allocate", "clear_bytes", "copy_bytes"]


@final
class Struct(msgspec.Struct, frozen=True):
    """Fields in memory, each an array of values, at offsets that fit their alignment.

    Attributes:
        offsets: The offset of each field [bytes].
        kinds: The type of its values.
        bytes: The size of the whole.
        align: What its address must be a multiple of [bytes].
    """

    offsets: Mapping[str, int]
    kinds: Mapping[str, Type]
    bytes: int
    align: int

    @classmethod
    def of(cls, **fields: tuple[Type, int]) -> Struct:
        """Lay out fields in order: for each the type of its values, and how many."""
        offsets: dict[str, int] = {}
        end, widest = 0, 1
        for name, (kind, count) in fields.items():
            # The size of a value, rounded up to a power of two: vectors are loaded
            # whole.
            align = 1 << max(0, kind.bytes - 1).bit_length()
            offsets[name] = end = -(-end // align) * align
            end += kind.bytes * count
            widest = max(widest, align)
        kinds = {name: kind for name, (kind, _) in fields.items()}
        return cls(offsets, kinds, -(-end // widest) * widest, widest)

    def address(self, base: Value, field: str, index: Operand = 0) -> Value:
        """Return where a value of a field lies."""
        start = base.function.address(base, self.offsets[field])
        if isinstance(index, int) and index == 0:
            return start
        return base.function.element(start, self.kinds[field], index)

    def load(self, base: Value, field: str, index: Operand = 0) -> Value:
        """Return a value of a field."""
        return base.function.load(self.kinds[field], self.address(base, field, index))

    def store(
        self, value: Operand, base: Value, field: str, index: Operand = 0
    ) -> None:
        """Write a value of a field."""
        if not isinstance(value, type(base)):
            value = base.function.constant(self.kinds[field], cast("float", value))
        assert value.type == self.kinds[field], (field, value.type.text)
        base.function.store(value, self.address(base, field, index))


# Working memory

STACK_BYTES = 2**14  # as much of a stack as an entry may take
ALIGNMENT = 64  # of each part: that of a whole vector register


class Memory(msgspec.Struct, frozen=True):
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
        sizes: The sizes of the parts.
        malloc: A pointer to the function that allocates.
        failed: Label to continue at where there is no memory.
    """
    # A multiple of the alignment for each part; an empty one has an address, too.
    rooms = [-(-max(1, size) // ALIGNMENT) * ALIGNMENT for size in sizes]
    if sum(rooms) <= STACK_BYTES:
        return Memory(tuple(f.reserve(room, ALIGNMENT) for room in rooms), None)
    size = f.constant(I64, sum(rooms) + ALIGNMENT)
    heap = f.call(malloc.text, PTR, size)
    f.guard(heap.differs(0), failed)
    # malloc aligns to 16 bytes at least; the first part starts at the next multiple of
    # 64, for which there is room.
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
