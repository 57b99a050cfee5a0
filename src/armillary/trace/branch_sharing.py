"""Let two branches share their costly functions, for only one of them is taken.

Where one branch computes sin(a) and the other sin(b), both compute sin(c), with c = a
on the one and c = b on the other. So a formula with branches costs as much as its
dearest branch, not as the sum of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from armillary.trace.scalar import Node, reachable
from armillary.trace.simplify import COSTLY, NodeMaker

SHARED = COSTLY | {"atan2", "pow", "fmod"}
MOST_SHARED = 64


def shared(
    tape: NodeMaker, truth: Node, yes: list[Node], no: list[Node]
) -> tuple[list[Node], list[Node]]:
    """Return the results of two branches with their costly functions in common.

    Args:
        tape: What they are recorded on.
        truth: Where it holds, the first branch is taken, else the second.
        yes: The results of the first branch.
        no: The results of the second branch.
    """
    # What the question needs is computed before the choice, and not to be changed.
    known = _cone([truth], {})
    for _ in range(MOST_SHARED):
        ours, theirs = _cone(yes, known), _cone(no, known)
        pair = _first_pair(_costly(ours, theirs), _costly(theirs, ours))
        if pair is None:
            break
        # The arguments of the pair become one choice, and both branches use the
        # function of it.
        args = [
            tape.make("select", truth, a, b)
            for a, b in zip(pair[0].args, pair[1].args, strict=True)
        ]
        yes = _with_arguments(tape, yes, ours, pair[0], args)
        no = _with_arguments(tape, no, theirs, pair[1], args)
    return yes, no


def _cone(results: Sequence[Node], known: dict[int, Node]) -> dict[int, Node]:
    """Return what `results` are computed from, without what is known, in order."""
    return {node.index: node for node in reachable(results, known)}


def _costly(nodes: dict[int, Node], others: dict[int, Node]) -> list[Node]:
    """Return the costly functions of one branch that the other does not have."""
    return [
        node
        for index, node in nodes.items()
        if node.name in SHARED and index not in others
    ]


def _first_pair(ours: list[Node], theirs: list[Node]) -> tuple[Node, Node] | None:
    """Return the first function of one branch and its like of the other."""
    likes: dict[str, Node] = {}
    # The first of each kind stays: functions are paired in the order in which they are
    # recorded, which is that of similar formulas.
    for node in reversed(theirs):
        likes[_kind(node)] = node
    for node in ours:
        if _kind(node) in likes:
            return node, likes[_kind(node)]
    return None


def _kind(node: Node) -> str:
    """Return what is computed: sine and cosine of one angle come at one price."""
    return "cos" if node.name == "sin" else node.name


def _with_arguments(
    tape: NodeMaker,
    results: list[Node],
    nodes: dict[int, Node],
    function: Node,
    args: list[Node],
) -> list[Node]:
    """Return `results` computed with other arguments of one function."""
    changed: dict[int, Node] = {}
    for index, node in nodes.items():
        if _kind(node) == _kind(function) and _are_same(node.args, function.args):
            changed[index] = tape.make(node.name, *args)
        elif any(arg.index in changed for arg in node.args):
            new = (changed.get(arg.index, arg) for arg in node.args)
            changed[index] = tape.make(node.name, *new)
    return [changed.get(node.index, node) for node in results]


def _are_same(x: Sequence[Node], y: Sequence[Node]) -> bool:
    return len(x) == len(y) and all(a is b for a, b in zip(x, y, strict=True))
