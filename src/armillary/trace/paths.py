"""Branches in traced code: run the function once for every answer, join by selects."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from armillary.errors import ArmillaryError, TraceError
from armillary.trace.scalar import Node, Truth
from armillary.trace.tape import Tape

PATH_LIMIT = 512
DECISION_LIMIT = 256

Flat = list[Any]


class _Explorer:
    """Answer the truth values of one run: first as planned, then with yes."""

    def __init__(self, planned: list[tuple[Truth, bool]], name: str) -> None:
        self.decisions: list[tuple[Truth, bool]] = []
        self.answers: dict[int, bool] = {}
        self.planned = planned
        self.name = name

    def __call__(self, truth: Truth) -> bool:
        known = self.answers.get(truth.index)
        if known is not None:
            return known
        step = len(self.decisions)
        if step >= DECISION_LIMIT:
            raise TraceError(
                f"'{self.name}' asked for more than {DECISION_LIMIT} answers of "
                f"traced values on one path, last at {_users_line()}. A loop must not "
                "end on a traced value; bound it by plain numbers."
            )
        answer = True
        if step < len(self.planned):
            expected, answer = self.planned[step]
            if expected is not truth:
                raise TraceError(
                    f"'{self.name}' did something else when it was run again "
                    f"({_users_line()}): it must depend on its arguments alone."
                )
        self.decisions.append((truth, answer))
        self.answers[truth.index] = answer
        return answer


def explore(tape: Tape, function: Callable[[], Flat], name: str) -> Flat:
    """Return the flat outputs of `function`, joined over all its branches.

    Args:
        tape: Where `function` records.
        function: Called once for each path; returns equally many numbers or scalars.
        name: What messages call it.

    Raises:
        TraceError: Too many paths, an exception on one of them, unequal outputs.
    """
    runs: list[tuple[list[tuple[Truth, bool]], Flat]] = []
    planned: list[tuple[Truth, bool]] = []
    while True:
        explorer = _Explorer(planned, name)
        outputs = _run(tape, function, explorer)
        runs.append((explorer.decisions, outputs))
        planned = _next_plan(explorer.decisions)
        if not planned:
            return _join(tape, runs, name)
        if len(runs) >= PATH_LIMIT:
            raise TraceError(
                f"'{name}' branches on traced values in more than {PATH_LIMIT} ways; "
                "use numpy.where or armillary.trace.functions.select in place of some "
                "of its ifs."
            )


def _run(tape: Tape, function: Callable[[], Flat], explorer: _Explorer) -> Flat:
    before, tape.decision = tape.decision, explorer
    try:
        return function()
    except ArmillaryError:
        raise
    except RecursionError as error:
        raise TraceError(
            f"'{explorer.name}' recurses without end while it is traced."
        ) from error
    except Exception as error:
        raise TraceError(
            f"'{explorer.name}' raised {type(error).__name__}: {error} "
            f"({_raising_line(error)}){_described(explorer.decisions)}."
        ) from error
    finally:
        tape.decision = before


def _next_plan(decisions: list[tuple[Truth, bool]]) -> list[tuple[Truth, bool]]:
    """Return the decisions with the last yes turned to no, nothing after it."""
    for step in range(len(decisions) - 1, -1, -1):
        truth, answer = decisions[step]
        if answer:
            return [*decisions[:step], (truth, False)]
    return []


def _join(
    tape: Tape, runs: list[tuple[list[tuple[Truth, bool]], Flat]], name: str
) -> Flat:
    """Fold the runs, which come in depth-first order, from the deepest branch up."""
    stack: list[tuple[list[tuple[Truth, bool]], Flat]] = []
    for run in runs:
        stack.append(run)
        while len(stack) > 1 and _are_siblings(stack[-2][0], stack[-1][0]):
            decisions, no = stack.pop()
            _, yes = stack.pop()
            stack.append((decisions[:-1], _select(tape, decisions[-1][0], yes, no, name)))
    assert len(stack) == 1 and not stack[0][0]
    return stack[0][1]


def _are_siblings(yes: list[tuple[Truth, bool]], no: list[tuple[Truth, bool]]) -> bool:
    return (
        len(yes) == len(no) > 0
        and yes[-1][0] is no[-1][0]
        and yes[-1][1]
        and not no[-1][1]
    )


def _select(tape: Tape, truth: Node, yes: Flat, no: Flat, name: str) -> Flat:
    if len(yes) != len(no):
        raise TraceError(
            f"'{name}' returns {len(yes)} numbers on one branch and {len(no)} on "
            "another; all branches must return the same shape."
        )
    return [
        tape.make("select", truth, tape.lift(a, "real"), tape.lift(b, "real"))
        for a, b in zip(yes, no, strict=True)
    ]


def _described(decisions: list[tuple[Truth, bool]]) -> str:
    if not decisions:
        return ""
    count = len(decisions)
    return (
        f" on a path of {count} branch{'es' if count > 1 else ''}; every branch is "
        "run while tracing, so none may raise"
    )


def _users_line() -> str:
    """Return file and line of the innermost caller outside of this package."""
    frame = sys._getframe(1)
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith("armillary."):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return "an unknown line"


def _raising_line(error: BaseException) -> str:
    trace = error.__traceback__
    place = "an unknown line"
    while trace is not None:
        if not trace.tb_frame.f_globals.get("__name__", "").startswith("armillary."):
            place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
