"""Branches in traced code: run the function once for every answer, join by selects."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from armillary.errors import ArmillaryError, TraceError
from armillary.trace import source_location
from armillary.trace.branch_sharing import shared
from armillary.trace.contradiction import is_contradiction
from armillary.trace.ops import type_real
from armillary.trace.scalar import TracedBool, reachable
from armillary.trace.source_location import fault
from armillary.trace.tape import Tape

PATH_LIMIT = 512
DECISION_LIMIT = 256
QUESTION_LIMIT = 1_000_000
SHARING_LIMIT = 64  # of paths; looking for what more of them share takes too long

NUMPYS_WORDS = (
    r"\bufunc\b|unorderable types|Cannot cast .* from dtype\('O'\)|"
    r"^'(float|int)' object has no attribute"
)

Flat = list[Any]
Decision = tuple[TracedBool, bool]


class _Path(msgspec.Struct, frozen=True):
    """What was answered on one path, and what came out at its end.

    Attributes:
        decisions: The answers.
        outputs: What the function returned; None where it raised and no number gives
            these answers, so that all it returns is NaN.
    """

    decisions: list[Decision]
    outputs: Flat | None

    @property
    def is_last(self) -> bool:
        """Return whether there are no further paths."""
        return not any(answer for _, answer in self.decisions)


class _Explorer(msgspec.Struct):
    """Answer the truth values of one run: first as planned, then with yes."""

    name: str
    defined: str
    planned: list[Decision]
    places: dict[int, str]  # where each truth value was first asked for
    forced: list[TracedBool] | None = None  # gets questions that earlier answers decide
    decisions: list[Decision] = msgspec.field(default_factory=list[Decision])
    answers: dict[int, bool] = msgspec.field(default_factory=dict[int, bool])
    questions: int = 0

    def __call__(self, truth: TracedBool) -> bool:
        known = self.answers.get(truth.index)
        return self._decide(truth) if known is None else self._repeat(known)

    def _decide(self, truth: TracedBool) -> bool:
        step = len(self.decisions)
        is_planned = step < len(self.planned) and self.planned[step][0] is truth
        # Planned answers were asked before, on an earlier path, and found open.
        if self.forced is not None and not is_planned:
            answer = _implied(self.decisions, truth)
            if answer is not None:
                self.forced.append(truth)
                self.answers[truth.index] = answer
                return answer
        if step >= DECISION_LIMIT:
            raise fault(
                f"'{self.name}' asked for more than {DECISION_LIMIT} answers of traced "
                "values on one path. A loop must not end on a traced value; bound it "
                "by plain numbers."
            )
        answer = True
        if step < len(self.planned):
            expected, answer = self.planned[step]
            if expected is not truth:
                raise _changed(self.name)
        elif truth.index not in self.places:
            self.places[truth.index] = source_location.running()
        self.decisions.append((truth, answer))
        self.answers[truth.index] = answer
        return answer

    def _repeat(self, answer: bool) -> bool:
        self.questions += 1
        if self.questions > QUESTION_LIMIT:
            raise fault(
                f"'{self.name}' asks for the same answer again and again: it loops "
                "without end on a traced value. Bound the loop by plain numbers."
            )
        return answer


def explore(
    tape: Tape,
    function: Callable[[], Any],
    name: str,
    defined: str = "",
    flat: Callable[[Any], Flat] = list,
) -> Flat:
    """Return the flat outputs of `function`, joined over all its branches.

    Args:
        tape: The tape that `function` records on.
        function: Called once for each path.
        name: What messages call it.
        defined: The `file:line` of its definition, for messages.
        flat: Returns the numbers or scalars in what it returned, equally many for each
            path.

    Raises:
        TraceError: Too many paths, an exception on one of them, unequal outputs.
    """

    def start(planned: list[Decision], forced: list[TracedBool] | None) -> _Path:
        explorer = _Explorer(name, defined, planned, places, forced)
        return _Path(explorer.decisions, _run(tape, function, flat, explorer))

    # Answers that follow from earlier ones are only left out where there are too many
    # paths: for that takes time, and the outputs need a check for NaN.
    places: dict[int, str] = {}
    runs = _runs(start, None)
    if runs[-1].is_last:
        return _join(tape, runs, name)
    if _are_all_possible(runs):
        raise _too_many(runs, places, name)
    forced: list[TracedBool] = []
    runs = _runs(start, forced)
    if not runs[-1].is_last:
        raise _too_many(runs, places, name)
    return _nan_of_nan(tape, forced, _join(tape, runs, name))


def _runs(start: Callable[..., _Path], forced: list[TracedBool] | None) -> list[_Path]:
    """Return the runs of all paths, or of as many as are allowed.

    forced: Gets the questions that earlier answers decide, which are then no branches;
        None where all are asked.
    """
    # Depth first: each path answers as the one before up to its last yes, and no there;
    # then yes to all that is new.
    runs = [start([], forced)]
    while not runs[-1].is_last and len(runs) < PATH_LIMIT:
        runs.append(start(_next_plan(runs[-1].decisions), forced))
    return runs


def _are_all_possible(runs: list[_Path]) -> bool:
    """Return whether numbers take the paths of all runs, and a further one.

    Then leaving out what no number takes would not make them few enough.
    """
    last = runs[-1].decisions
    further = (
        [*last[:step], (truth, False)]
        for step, (truth, answer) in enumerate(last)
        if answer
    )
    is_more = any(not is_contradiction(path) for path in further)
    return is_more and not any(is_contradiction(run.decisions) for run in runs)


def _implied(decisions: list[Decision], truth: TracedBool) -> bool | None:
    """Return the answer that follows from earlier ones, None where both are open.

    It holds for numbers; of NaN all comparisons are false.
    """
    for answer in (True, False):
        if is_contradiction([*decisions, (truth, answer)]):
            return not answer
    return None


def _nan_of_nan(tape: Tape, forced: list[TracedBool], outputs: Flat) -> Flat:
    """Return outputs that are NaN where an input of a forced answer is NaN.

    There the forced answers, which hold for numbers alone, may be wrong.
    """
    inputs = [node for node in reachable(forced) if node.name == "input"]
    for x in inputs:
        nan = tape.constant(math.nan)
        outputs = [
            tape.make("select", tape.make("eq", x, x), tape.lift(out, type_real), nan)
            for out in outputs
        ]
    return outputs


def _run(
    tape: Tape,
    function: Callable[[], Any],
    flat: Callable[[Any], Flat],
    explorer: _Explorer,
) -> Flat | None:
    before, tape.decision = tape.decision, explorer
    has_returned = False
    try:
        with source_location.watched() as faults:
            returned = function()
        if faults:  # the function caught it, and went on with something else
            raise faults[0]
        has_returned = True
        outputs = flat(returned)
    except Exception as error:
        # No number comes here: what the function does, an error included, does not
        # matter.
        if is_contradiction(explorer.decisions):
            return None
        if isinstance(error, TraceError) and has_returned and explorer.decisions:
            path = _described(explorer.decisions, explorer.places)
            raise TraceError(f"{error} It does so where {path}.") from error
        if isinstance(error, ArmillaryError):
            raise
        if isinstance(error, RecursionError):
            raise fault(
                f"'{explorer.name}' recurses without end while it is traced, or nests "
                "operations too deeply.",
                source_location.raised(error) or explorer.defined,
            ) from error
        raise _raised(error, explorer) from error
    finally:
        tape.decision = before
    # It did not ask again what it asked before.
    if len(explorer.decisions) < len(explorer.planned):
        raise _changed(explorer.name, explorer.defined)
    return outputs


def _next_plan(decisions: list[Decision]) -> list[Decision]:
    """Return the decisions with the last yes turned to no, nothing after it."""
    for step in range(len(decisions) - 1, -1, -1):
        truth, answer = decisions[step]
        if answer:
            return [*decisions[:step], (truth, False)]
    return []


def _join(tape: Tape, runs: list[_Path], name: str) -> Flat:
    """Fold the runs, which come in depth-first order, from the deepest branch up."""
    share = len(runs) <= SHARING_LIMIT
    stack: list[_Path] = []
    for run in runs:
        stack.append(run)
        # Two paths that part at their last answer become one that ends before it, which
        # may be the sibling of another.
        while len(stack) > 1 and _are_siblings(stack[-2], stack[-1]):
            no, yes = stack.pop(), stack.pop()
            joined = _joined(tape, yes, no, name, share=share)
            stack.append(_Path(no.decisions[:-1], joined))
    (run,) = stack
    assert run.outputs is not None and not run.decisions
    return run.outputs


def _are_siblings(yes: _Path, no: _Path) -> bool:
    """Tell whether two paths are the answers to one question; they come in order."""
    return (
        len(yes.decisions) == len(no.decisions) > 0
        and yes.decisions[-1][1]
        and not no.decisions[-1][1]
    )


def _joined(
    tape: Tape, yes: _Path, no: _Path, name: str, *, share: bool
) -> Flat | None:
    """Return the outputs of two runs that part at their last answer, in one."""
    if yes.outputs is None and no.outputs is None:
        return None
    # A path that raised, and that no number takes, is taken by NaN alone.
    nothing = [math.nan] * len(yes.outputs or no.outputs or ())
    yes_outputs = nothing if yes.outputs is None else yes.outputs
    no_outputs = nothing if no.outputs is None else no.outputs
    if len(yes_outputs) != len(no_outputs):
        raise TraceError(
            f"'{name}' returns {len(yes_outputs)} numbers on one branch and "
            f"{len(no_outputs)} on another; all branches must return the same shape."
        )
    truth = no.decisions[-1][0]
    first = [tape.lift(value, type_real) for value in yes_outputs]
    second = [tape.lift(value, type_real) for value in no_outputs]
    if share:
        first, second = shared(tape, truth, first, second)
    pairs = zip(first, second, strict=True)
    outputs: Flat = [tape.make("select", truth, a, b) for a, b in pairs]
    # The user's own `if` means what Python's does, NaN included.
    if truth.index not in tape.compared_by_calls:
        return outputs
    return _with_nan(tape, truth, outputs, first, second)


def _with_nan(
    tape: Tape, truth: TracedBool, outputs: Flat, first: Flat, second: Flat
) -> Flat:
    """Return outputs that are NaN where a comparison of NaN chose between two.

    NumPy's `maximum`, `sort` and the like give NaN for NaN, but of object arrays they
    know no more than what is larger.
    """
    x, y = truth.args
    number = tape.make("or", tape.make("le", x, y), tape.make("le", y, x))
    nan = tape.constant(math.nan)
    return [
        a if a is b else tape.make("select", number, result, nan)
        for result, a, b in zip(outputs, first, second, strict=True)
    ]


def _raised(error: Exception, explorer: _Explorer) -> TraceError:
    message = f"'{explorer.name}' raised {type(error).__name__}: {error}."
    if isinstance(error, (TypeError, AttributeError)) and re.search(
        NUMPYS_WORDS, str(error)
    ):
        message += (
            " NumPy cannot take this function of arrays that hold traced scalars, or "
            "traced scalars beside numbers: take it of single scalars, or write it out."
        )
    if explorer.decisions:
        path = _described(explorer.decisions, explorer.places)
        message += (
            f" It did so where {path}. Every branch is run while tracing, so none may "
            "raise."
        )
    return fault(message, source_location.raised(error) or explorer.defined)


def _described(decisions: Sequence[Decision], places: dict[int, str]) -> str:
    """Return the last few answers of a path in words."""
    shown = [
        f"the condition at {places[truth.index]} is {'true' if answer else 'false'}"
        for truth, answer in decisions[-3:]
    ]
    return " and ".join(shown)


def _too_many(runs: list[_Path], places: dict[int, str], name: str) -> TraceError:
    asked = {truth.index for run in runs for truth, _ in run.decisions}
    ((busiest, _),) = Counter(places[index] for index in asked).most_common(1)
    return fault(
        f"'{name}' branches on traced values in more than {PATH_LIMIT} ways, most of "
        "them here; use numpy.where or armillary.trace.functions.select in place of "
        "some of its ifs.",
        busiest,
    )


def _changed(name: str, where: str | None = None) -> TraceError:
    return fault(
        f"'{name}' did something else when it was run again for another branch. It "
        "must depend on its arguments alone: no random numbers, no memory of calls.",
        where,
    )
