"""The tape: every operation of one trace, each distinct one once."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from armillary.trace.ops import OPS, Op, type_real, type_truth
from armillary.trace.scalar import Node, Scalar, TracedBool
from armillary.trace.simplify import RULES
from armillary.trace.source_location import fault, is_called, users_own

Array = npt.NDArray[Any]

NODE_LIMIT = 1_000_000


class Tape:
    """Record operations, sharing equal ones and simplifying as they come."""

    def __init__(self, limit: int = NODE_LIMIT) -> None:
        """Start empty; `limit` bounds the number of nodes."""
        self.nodes: list[Node] = []
        self.limit = limit
        self.decision: Callable[[TracedBool], bool] = _no_paths
        self.compared_by_calls: set[int] = set()
        self.equalities: dict[int, str] = {}  # where the user's code compares with ==
        self._known: dict[tuple[Any, ...], Node] = {}
        self._constants: dict[float, Node] = {}

    def input(self, position: int) -> Node:
        """Return the node of input number `position`."""
        return self._leaf(("input", position), Scalar, float(position))

    def constant(self, number: float) -> Node:
        """Return the node of a real constant; there is one zero and one NaN."""
        node = self._constants.get(number)
        if node is not None:
            return node
        if math.isnan(number):
            return self._leaf(("const", "nan"), Scalar, math.nan)
        # -0.0 becomes 0.0, which it equals as a key of a dict.
        number = float(number) + 0.0
        self._constants[number] = node = self._leaf(("const", number), Scalar, number)
        return node

    def truth(self, value: bool) -> Node:
        """Return the node of a constant truth value."""
        return self._leaf(("const", "yes" if value else "no"), TracedBool, float(value))

    def record(self, op: Op, args: Sequence[Any]) -> Node:
        """Return the node for `op` of `args`, numbers among them lifted.

        Raises:
            TraceError: An argument is not a number, or belongs to another trace.
        """
        kinds = op.args
        if len(args) != len(kinds):
            raise fault(f"'{op.name}' takes {op.arity} arguments, {len(args)} given.")
        nodes: list[Node] = []
        for arg, kind in zip(args, kinds):  # noqa: B905  # as many: checked above
            if isinstance(arg, Node) and arg.tape is self and arg.kind is kind:
                nodes.append(arg)
            elif type(arg) is float and kind is type_real:
                nodes.append(self.constant(arg))
            else:
                nodes.append(self.lift(arg, kind))
        return self._record(op, nodes)

    def note_comparison(self, truth: Any) -> None:
        """Remember a comparison that `numpy.maximum` or the like makes by itself."""
        if is_called():
            self.compared_by_calls.add(truth.index)

    def note_equality(self, truth: Any) -> None:
        """Remember where the user's code asks whether two numbers are equal."""
        place = users_own()
        if place:
            node = truth.args[0] if truth.name == "not" else truth
            self.equalities.setdefault(node.index, place)

    def decide(self, truth: TracedBool) -> bool:
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
                raise fault(
                    "a traced scalar of another trace was used. A traced function must "
                    "compute from its own arguments alone; do not keep traced scalars "
                    "between calls."
                )
            return value if value.kind == kind else self._converted(value)
        number = _number(value)
        return (
            self.truth(number != 0.0) if kind == type_truth else self.constant(number)
        )

    def _converted(self, node: Node) -> Node:
        if isinstance(node, TracedBool):
            return self.make("select", node, self.constant(1.0), self.constant(0.0))
        return self.make("not", self.make("eq", node, self.constant(0.0)))

    def _record(self, op: Op, nodes: Sequence[Node]) -> Node:
        for node in nodes:
            if node.name != "const":
                break
        else:
            # All arguments are constants.
            if not op.depends_on_type:
                return self._folded(op, nodes)
        name = op.name
        # Simplified first, then shared: equal formulas may be written in different
        # ways.
        rule = RULES.get(name)
        if rule is not None:
            simpler = rule(self, *nodes)
            if simpler is not None:
                return simpler
        if len(nodes) == 2:
            x, y = nodes
            # x + y and y + x are one node.
            if op.commutes and _come_in_wrong_order(name, x, y):
                nodes = x, y = y, x
            key = (name, x.index, y.index)
        else:
            key = (name, *[node.index for node in nodes])
        known = self._known.get(key)
        if known is not None:
            return known
        kind = TracedBool if op.result == type_truth else Scalar
        return self._append(key, kind, tuple(nodes), 0.0)

    def _folded(self, op: Op, constants: Sequence[Node]) -> Node:
        """Return the constant that an operation of constants is."""
        result = op.on_floats(*[node.value for node in constants])
        is_truth = op.result == type_truth
        return self.truth(result) if is_truth else self.constant(result)

    def _leaf(self, key: tuple[Any, ...], kind: type[Node], value: float) -> Node:
        known = self._known.get(key)
        return self._append(key, kind, (), value) if known is None else known

    def _append(
        self,
        key: tuple[Any, ...],
        kind: type[Node],
        args: tuple[Node, ...],
        value: float,
    ) -> Node:
        index = len(self.nodes)
        if index >= self.limit:
            raise fault(
                f"the trace has more than {self.limit} operations: the function loops "
                "without end on a traced value, and should be bound by plain numbers, "
                "or is too large to be compiled."
            )
        node = kind(self, key[0], args, value, index)
        self.nodes.append(node)
        self._known[key] = node
        return node


def _no_paths(truth: TracedBool) -> bool:
    raise fault(
        "a traced truth value was asked for its answer outside of trace(); use "
        "armillary.trace.functions.select."
    )


def _come_in_wrong_order(name: str, x: Node, y: Node) -> bool:
    """Tell whether to swap: a constant comes last in sums, else first."""
    if x.name == "const":
        return name == "add"
    if y.name == "const":
        return name != "add"
    return x.index > y.index


def _number(value: Any) -> float:
    """Return a plain number as a float.

    Raises:
        TraceError: It is not a number.
    """
    if type(value) is float:
        return value
    if isinstance(value, np.ndarray) and cast("Array", value).shape == ():
        value = cast("Array", value).item()
    if isinstance(value, (numbers.Real, np.bool_)):
        try:
            return float(cast("Any", value))
        except OverflowError as error:
            raise fault("a number beyond the range of floats was used.") from error
    if isinstance(value, numbers.Complex):
        raise fault(
            f"a traced scalar was combined with the complex number {value!r}, but is "
            "real. Compute real and imaginary parts apart."
        )
    raise fault(f"a traced scalar was combined with {value!r}, which is not a number.")
