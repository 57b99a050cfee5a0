"""Structures in memory that machine code reads and writes by the names of fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from armillary.kernel.builder import Operand, Value
from armillary.kernel.machine_type import Type

__all__ = ["Struct"]


@final
@dataclass(frozen=True, slots=True)
class Struct:
    """Fields in memory, each an array of values, at offsets that fit their alignment.

    Attributes:
        offsets: Where each field starts [bytes].
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
            align = 1 << max(0, kind.bytes - 1).bit_length()
            offsets[name] = end = -(-end // align) * align
            end += kind.bytes * count
            widest = max(widest, align)
        kinds = {name: kind for name, (kind, _) in fields.items()}
        return cls(offsets, kinds, -(-end // widest) * widest, widest)

    def address(self, base: Value, field: str, index: Operand = 0) -> Value:
        """Return where a value of a field lies."""
        start = base.function.address(base, self.offsets[field])
        if not isinstance(index, Value) and index == 0:
            return start
        return base.function.element(start, self.kinds[field], index)

    def load(self, base: Value, field: str, index: Operand = 0) -> Value:
        """Return a value of a field."""
        return base.function.load(self.kinds[field], self.address(base, field, index))

    def store(
        self, value: Operand, base: Value, field: str, index: Operand = 0
    ) -> None:
        """Write a value of a field."""
        if not isinstance(value, Value):
            value = base.function.constant(self.kinds[field], value)
        assert value.type == self.kinds[field], (field, value.type.text)
        base.function.store(value, self.address(base, field, index))
