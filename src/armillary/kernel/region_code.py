"""What regions that take several parts of a row need of the function around them."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeAlias

from armillary.kernel.builder import FunctionBuilder, Value, Variable
from armillary.kernel.machine_type import I64, Type
from armillary.kernel.memory import Struct
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.stages import Stage
from armillary.kernel.tables import Field, Table

__all__ = ["Mask", "PipelineCode", "active_rows", "each_bit", "repeat_row"]

Mask: TypeAlias = Value | None
"""Lanes that count; None for all of them."""


class PipelineCode(Protocol):
    """What a region needs of the function around it.

    Attributes:
        f: The function.
        pipeline: What it computes.
        real: The type of a vector, with a lane for each row.
        scalar: That of one number.
        bits: The integer with a bit for each lane.
        repeated: A bit for each row whose inputs are those of the row before.
        columns: The memory of columns.
        fields: The fields of records around, how records lie, and where.
        flags: Lanes that any program flagged.
        permutes: Whether `permuted_lanes` has an instruction.
    """

    f: FunctionBuilder
    pipeline: Pipeline
    real: Type
    scalar: Type
    bits: Type
    repeated: Value
    columns: dict[str, Value]
    fields: dict[str, tuple[Field, Struct, Value]]
    flags: Variable
    permutes: bool

    def memory(self, size: int, *, in_registers: bool = False) -> Value:
        """Return memory for a vector for each of some numbers."""
        ...

    def memories(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Value]:
        """Return memory for columns."""
        ...

    def records(self, table: Table) -> tuple[Value, Value]:
        """Return where the records of a table lie, and how many there are."""
        ...

    def stages(self, stages: Sequence[Stage], active: Mask) -> None:
        """Write stages."""
        ...

    def region(self, stages: Sequence[Stage], mask: Value) -> None:
        """Write stages after which lanes outside of a mask have what they had."""
        ...

    def positive(self, name: str, active: Mask) -> Value:
        """Return the lanes in which a column is above 0."""
        ...


def active_rows(code: PipelineCode, active: Mask) -> tuple[Value, Value]:
    """Return a bit for each row that counts, and for each that the one before is."""
    f, lanes = code.f, code.real.lanes
    counted = f.constant(code.bits, -1) if active is None else active.packed()
    bits = counted.to(I64, "zext") & ((1 << lanes) - 1)
    return bits, code.repeated & (bits << 1)


@contextmanager
def each_bit(f: FunctionBuilder, some: Value) -> Generator[Value]:
    """Run what follows for the position of each bit, the lowest first."""
    bits = f.variable(I64, some)
    with f.forever() as loop:
        loop.leave(bits.get().equals(0))
        yield f.count_trailing_zeros(bits.get())
        bits.set(bits.get() & (bits.get() - 1))


def repeat_row(code: PipelineCode, results: Mapping[Value, int], lane: Value) -> None:
    """Give a row the results and flags of the row before it, whose inputs it has."""
    f, lanes = code.f, code.real.lanes
    for result, size in results.items():
        with f.loop(size) as k:
            before = f.load(code.scalar, result, k * lanes + lane - 1)
            f.store(before, result, k * lanes + lane)
    flags = code.flags.get().to(I64, "zext")
    last = (flags & ((f.constant(I64, 1) << lane) >> 1)) << 1
    code.flags.set((flags | last).to(code.bits, "trunc"))
