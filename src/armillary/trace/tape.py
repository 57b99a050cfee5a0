"""The tape: every operation of one trace, each distinct one once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from armillary.errors import TraceError
from armillary.trace.ops import OPS, Op, type_truth
from armillary.trace.scalar import Node, Scalar, Truth
from armillary.trace.simplify import RULES

NODE_LIMIT = 4_000_000


class Tape:
    """Record operations, sharing equal ones and simplifying as they come."""

    def __init__(self, limit: int = NODE_LIMIT) -> None:
        """Start empty; `limit` bounds the number of nodes."""
        self.nodes: list[Node] = []
        self.limit = limit
        self.decision: Callable[[Truth], bool] = _no_paths
        self._known: dict[tuple[Any, ...], Node] = {}
        self._constants: dict[float | str, Node] = {}

    def input(self, position: int) -> Node:
        """Return the node of input number `position`."""
        return self._append(("input", position), "input", (), float(position))

    def constant(self, number: float) -> Node:
        """Return the node of a real constant."""
        number = float(number) + 0.0  # one zero is enough
        node = self._constants.get(number)
        if node is None:
            key = "nan" if number != number else number
            node = self._constants.get(key)
            if node is None:
                node = self._append(("const", key), "const", (), number)
                self._constants[key] = node
        return node

    def truth(self, value: bool) -> Node:
        """Return the node of a constant truth value."""
        return self._append(("true", value), "const", (), float(value), truth=True)

    def record(self, op: Op, args: Sequence[Any]) -> Node:
        """Return the node for `op` of `args`, numbers among them lifted.

        Raises:
            TraceError: An argument is no number, or belongs to another trace.
        """
        if len(args) != op.arity:
            raise TraceError(
                f"'{op.name}' takes {op.arity} arguments, {len(args)} given."
            )
        nodes = [
            self.lift(arg, kind) for arg, kind in zip(args, op.args, strict=True)
        ]
        return self._record(op, nodes)

    def decide(self, truth: Truth) -> bool:
        """Return the answer of `truth` on the path being explored.

        Raises:
            TraceError: Nobody explores paths, or there are too many.
        """
        return self.decision(truth)

    def make(self, name: str, *nodes: Node) -> Node:
        """Return the node for the operation called `name` of nodes of this tape."""
        return self._record(OPS[name], nodes)

    def lift(self, value: Any, kind: str) -> Node:
        """Return `value` as a node of this tape and of the wanted kind.

        Raises:
            TraceError: It cannot be one.
        """
        if isinstance(value, Node):
            if value.tape is not self:
                raise TraceError(
                    "A traced scalar of another trace was used. A joint's function "
                    "must compute from its own arguments alone; do not keep traced "
                    "scalars between calls."
                )
            if isinstance(value, Truth) and kind != type_truth:
                return self.make(
                    "select", value, self.constant(1.0), self.constant(0.0)
                )
            if kind == type_truth and not isinstance(value, Truth):
                zero = self.constant(0.0)
                return self.make("not", self.make("eq", value, zero))
            return value
        if kind == type_truth:
            return self.truth(bool(value))
        return self.constant(_number(value))

    def _record(self, op: Op, nodes: Sequence[Node]) -> Node:
        if all(node.name == "const" for node in nodes):
            result = op.on_floats(*(node.value for node in nodes))
            return (
                self.truth(result)
                if op.result == type_truth
                else self.constant(result)
            )
        rule = RULES.get(op.name)
        if rule is not None:
            simpler = rule(self, *nodes)
            if simpler is not None:
                return simpler
        if op.commutes:  # a constant comes last in sums, first in products
            const_rank = math.inf if op.name == "add" else -1.0
            if _rank(nodes[0], const_rank) > _rank(nodes[1], const_rank):
                nodes = (nodes[1], nodes[0])
        key = (op.name, *[node.index for node in nodes])
        known = self._known.get(key)
        if known is not None:
            return known
        return self._append(
            key, op.name, tuple(nodes), 0.0, truth=op.result == type_truth
        )

    def _append(
        self,
        key: tuple[Any, ...],
        name: str,
        args: tuple[Node, ...],
        value: float,
        *,
        truth: bool = False,
    ) -> Node:
        node = self._known.get(key)
        if node is not None:
            return node
        if len(self.nodes) >= self.limit:
            raise TraceError(
                f"The trace has more than {self.limit} operations: the function "
                "probably loops without end on a traced value. Bound the loop by "
                "plain numbers."
            )
        kind = Truth if truth else Scalar
        node = kind(self, name, args, value, len(self.nodes))
        self.nodes.append(node)
        self._known[key] = node
        return node


def _no_paths(truth: Truth) -> bool:
    raise TraceError(
        "A traced truth value was asked for its answer outside of trace(); use "
        "armillary.trace.functions.select."
    )


def _rank(node: Node, const_rank: float) -> float:
    return const_rank if node.name == "const" else node.index


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise TraceError(
            f"A traced scalar was combined with {value!r}, which is no number."
        ) from error
