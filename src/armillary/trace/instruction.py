"""Instructions of a program, and many as a few bytes, read where somebody needs them.

A pickle of 12 000 named tuples takes 8 ms to read. A process that finds the code of a
program in the cache needs none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from armillary.trace.ops import type_real

__all__ = ["Instruction", "PackedSteps"]


class Instruction(NamedTuple):
    """One step: an operation of earlier steps, a constant, or an input.

    Attributes:
        name: `const`, `input`, or the name of an operation.
        args: Positions of the instructions it uses, all earlier.
        value: The number of a constant, the position of an input; else 0.
        kind: `real` or `truth`.
    """

    name: str
    args: tuple[int, ...] = ()
    value: float = 0.0
    kind: str = type_real


class PackedSteps(NamedTuple):
    """Instructions, equal for equal ones in every process.

    Attributes:
        kinds: What differs little: name, kind, how many arguments, whether it has a
            value.
        codes: For each instruction its row of `kinds`, of type `<u2`.
        args: The arguments of all, one after the other, of type `<u4`.
        values: The values of those that have one, of type `<f8`.
    """

    kinds: tuple[tuple[str, str, int, bool], ...]
    codes: bytes
    args: bytes
    values: bytes

    @classmethod
    def of(cls, steps: Sequence[Instruction]) -> PackedSteps:
        """Return instructions packed."""
        number: dict[tuple[str, str, int, bool], int] = {}
        codes: list[int] = []
        args: list[int] = []
        values: list[float] = []
        for step in steps:
            has_value = not step.args or step.value != 0.0
            kind = step.name, step.kind, len(step.args), has_value
            codes.append(number.setdefault(kind, len(number)))
            args += step.args
            if has_value:
                values.append(step.value)
        return cls(
            tuple(number),
            np.array(codes, "<u2").tobytes(),
            np.array(args, "<u4").tobytes(),
            np.array(values, "<f8").tobytes(),
        )

    def unpacked(self) -> tuple[Instruction, ...]:
        """Return the instructions."""
        codes: list[int] = np.frombuffer(self.codes, "<u2").tolist()
        args: Iterator[int] = iter(np.frombuffer(self.args, "<u4").tolist())
        values = iter(np.frombuffer(self.values, "<f8").tolist())
        steps: list[Instruction] = []
        for code in codes:
            name, kind, count, has_value = self.kinds[code]
            value = next(values) if has_value else 0.0
            steps.append(Instruction(name, tuple(islice(args, count)), value, kind))
        return tuple(steps)
