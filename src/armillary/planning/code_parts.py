"""What the parts of the code of a planner share."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from armillary.kernel.builder import FunctionBuilder, Operand, Value
from armillary.kernel.machine_type import F64, I64, PTR, VOID, Type
from armillary.planning.layout import CALL, SETUP, TREE

__all__ = [
    "FAR",
    "PartOfLoop",
    "call",
    "copy_reals",
    "counted",
    "downwards",
    "function",
    "move_points",
]


FAR: Final = 1e18
"""Positions of nodes that are not there; their squares are numbers of 32 bits."""


def function(name: str, result: Type = VOID, **more: Type) -> FunctionBuilder:
    """Begin a function that gets setup, memory and problem, and more parameters."""
    return FunctionBuilder(name, result, more={"s": PTR, "w": PTR, "c": PTR, **more})


def counted(f: FunctionBuilder, field: str, more: Operand = 1) -> None:
    """Add to a count of the problem."""
    CALL.store(CALL.load(f["c"], field) + more, f["c"], field)


def call(f: FunctionBuilder, name: str, result: Type, *more: Value) -> Value:
    """Call another of these functions."""
    return f.call(f"@{name}", result, f["s"], f["w"], f["c"], *more)


@contextmanager
def downwards(f: FunctionBuilder, first: Value, last: Operand) -> Generator[Value]:
    """Run what follows for each integer from `first` down to `last`."""
    count = first - last + 1
    with f.loop(count) as k:
        yield first - k


def copy_reals(f: FunctionBuilder, source: Value, to: Value, count: Value) -> None:
    """Copy reals of 64 bits, the first one first."""
    with f.loop(count) as j:
        f.store(f.load(F64, source, j), to, j)


def move_points(
    f: FunctionBuilder, path: Value, span: tuple[Value, Value], to: Value
) -> None:
    """Move way points, from the first to before the last of a span."""
    n, (first, end) = SETUP.load(f["s"], "n"), span

    def move(k: Value) -> None:
        source = f.element(path, F64, k * n)
        copy_reals(f, source, f.element(path, F64, (k + (to - first)) * n), n)

    # What is written over is moved before.
    with f.when(to < first), f.loop(end, first) as k:
        move(k)
    with f.when(to > first), downwards(f, end - 1, first) as k:
        move(k)


@dataclass(frozen=True)
class PartOfLoop:
    """Some functions of the loop.

    Attributes:
        real: The vectors of the check, which are those of trees.
        prover_lanes: Lanes of the prover, which computes in 64 bits.
    """

    real: Type
    prover_lanes: int

    @property
    def one(self) -> Type:
        """Return the type of a number of a tree."""
        return self.real.scalar

    @property
    def lanes(self) -> int:
        """Return how many joint positions the check takes at once."""
        return self.real.lanes

    def narrow(self, x: Value) -> Value:
        """Return a real of 64 bits as a number of a tree."""
        return x if self.one == F64 else x.to(self.one, "fptrunc")

    def wide(self, x: Value) -> Value:
        """Return a number of a tree as a real of 64 bits."""
        return x if self.one == F64 else x.to(F64, "fpext")

    def place(
        self, f: FunctionBuilder, tree: Value, k: Value, n: Value
    ) -> tuple[Value, Value]:
        """Return where the block of a node lies, and its lane there."""
        shift = self.lanes.bit_length() - 1
        block = f.element(TREE.load(tree, "x"), self.real, (k >> shift) * n)
        return block, k & (self.lanes - 1)

    def get(self, f: FunctionBuilder, tree: Value, k: Value, to: Value) -> None:
        """Write the weighted position of a node."""
        n = SETUP.load(f["s"], "n")
        block, lane = self.place(f, tree, k, n)
        with f.loop(n) as j:
            f.store(f.load(self.one, block, j * self.lanes + lane), to, j)

    def node_row(
        self, f: FunctionBuilder, tree: Value, k: Value, x: Value, to: Value
    ) -> None:
        """Write the joint positions of a node: of a root, to the last bit.

        x: Room for its weighted position.
        """
        n = SETUP.load(f["s"], "n")
        parent = f.load(I64, TREE.load(tree, "parent"), k)
        with f.when(parent < 0):
            root = f.constant(I64, -1) - parent
            copy_reals(f, f.element(TREE.load(tree, "roots"), F64, root * n), to, n)
        with f.otherwise():
            self.get(f, tree, k, x)
            call(f, "position", VOID, x, to)
