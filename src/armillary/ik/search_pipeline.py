"""The numeric search as a pipeline: from `near`, then from fixed starts, one by one.

`kernel/search.py` answers many targets on threads, with memory that it allocates. This
one is for code that is compiled for elsewhere: it takes the same step, needs no memory
but the stack, and its time is bounded, by STARTS times STEPS.

Where joints move closed loops, passive joints are unknowns of the step, too. It may end
on another branch, so a start has several rounds, as in `loop_search.py`: loops are
closed at q on the branch, which says whether q is an answer, and gives the assembly
from which the step searches next.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import KernelError
from armillary.ik.loop_search import (
    ClosedSamples,
    loop_constants,
    loop_tolerances,
)
from armillary.ik.problem import IKProblem
from armillary.ik.query import TOLERANCE
from armillary.ik.search_step import (
    ROW_ERROR,
    all_met,
    check_program,
    largest_errors,
    row_ends,
    step_program,
)
from armillary.ik.targets import POSE_SIZE, is_rigid, pose_at
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.stages import Each, Stage, While
from armillary.kernel.tables import Table, reals
from armillary.kinematics.closing.kernel import (
    passive_records,
    passive_stages,
    passive_tables,
)
from armillary.spatial.vector import Number, Vector
from armillary.trace import Port, Program, trace
from armillary.trace.functions import select

__all__ = ["StandaloneSearch", "search_pipeline", "step_constants"]

Array = npt.NDArray[np.float64]

STARTS: Final = 24
"""Starts that are tried, `near` counted."""

STEPS: Final = 40
"""Steps from each of them."""

ROUNDS: Final = 3
"""How often loops are closed in each: before, between and after two searches."""

SEED: Final = 7

MISSES: Final = 2
"""Numbers that say what an answer misses, of a distance and of an angle."""

NO_POSE: Final = -1.0
"""What is found where the target is not a pose: nothing is sought."""

TIGHTER: Final = 1e-3
"""What goals may miss here, over what a search allows: with one more step the answers
of other machines agree."""


class StandaloneSearch(NamedTuple):
    """A search as a pipeline, and what it is given.

    Attributes:
        pipeline: Inputs `target`, the sixteen numbers of a pose, `near` (n,), then what
            is in `bound`. Outputs `answer` (n,), `errors` (2,), the squares of what is
            missed, of a distance and a sine, and `found`, 1 where they are small, and
            NO_POSE where the target is not a pose: then the others are NaN.
        tables: The starts, and stored assemblies of loops.
        bound: Inputs that the problem decides.
    """

    pipeline: Pipeline
    tables: dict[str, dict[str, Array]]
    bound: dict[str, Array]


def step_constants(problem: IKProblem) -> tuple[Array, Array]:
    """Return the constants of `step_program`, and the largest errors of an answer."""
    selection = problem.selection
    values = [np.ravel(each) for each in selection.values(problem.tree)]
    allowed, ends = largest_errors(TOLERANCE, len(problem.goals)), problem.limits
    signs, rows = np.zeros(0), row_ends(problem)
    if selection.passive:
        ends = tuple(map(np.append, ends, problem.passive_limits))
        signs = loop_constants(problem)
        allowed = loop_tolerances(problem, allowed, min(TOLERANCE))
    if len(rows):
        allowed = np.append(allowed, ROW_ERROR)
    return np.concatenate([*ends, rows, signs, *values]), allowed


def search_pipeline(problem: IKProblem) -> StandaloneSearch:
    """Return the search for a problem as a pipeline.

    Raises:
        KernelError: Joints run in Python only.
    """
    if not problem.can_search:
        raise KernelError("A joint of this search runs in Python only.")
    n = len(problem.joints)
    rng = np.random.default_rng(SEED)
    if problem.selection.passive:
        attempt, tables, bound = _closed_attempt(problem)
        records = passive_records(problem.tree.cell, problem.selection, problem.branch)
        drawn = ClosedSamples(problem, rng, STARTS).vectors[:, :n]
    else:
        attempt, tables, bound = _attempt(problem)
        records = {}
        lower, upper = problem.start_range
        drawn = rng.uniform(lower, upper, (STARTS, n))
    stages = (
        trace(
            _opened,
            name="ik_open",
            outputs=("open", "found", "answer", "errors"),
            near=(n,),
            target=(POSE_SIZE,),
        ),
        Each("starts", attempt, active="open"),
    )
    table = Table("starts", (reals("start", (n,)), reals("is_near")))
    ports = (
        Port("target", (POSE_SIZE,)),
        Port("near", (n,)),
        *(Port(name, np.shape(value)) for name, value in bound.items()),
    )
    pipeline = Pipeline(
        "ik_search", ports, (table, *tables), stages, ("answer", "errors", "found")
    )
    starts = {"start": drawn, "is_near": np.eye(len(drawn))[0]}
    return StandaloneSearch(pipeline, {"starts": starts, **records}, bound)


Attempt = tuple[tuple[Stage, ...], tuple[Table, ...], dict[str, Array]]
"""The stages of an attempt from one start, their tables, and inputs that are bound."""


def _opened(near: Vector, target: Vector) -> Any:
    rigid = is_rigid(*pose_at(target, 0))
    answer, errors = (
        [select(rigid, x, math.nan) for x in row] for row in (near, [0.0] * MISSES)
    )
    return select(rigid, 1.0, 0.0), select(rigid, 0.0, NO_POSE), answer, errors


def _chosen(near: Vector, start: Vector, is_near: Number) -> Any:
    q = [select(is_near > 0.0, x, y) for x, y in zip(near, start, strict=True)]
    return q, 1.0


def _chosen_program(n: int, going: str) -> Program:
    shapes: dict[str, tuple[int, ...]] = {"near": (n,), "start": (n,), "is_near": ()}
    return trace(_chosen, name="ik_start", outputs=("q", going), **shapes)


def _attempt(problem: IKProblem) -> Attempt:
    """Return what searches from a start, and ends where an error is small."""
    n = len(problem.joints)
    constants, allowed = step_constants(problem)
    allowed[: 2 * len(problem.goals)] *= TIGHTER**2

    def judged(missed: Vector, allowed: Vector) -> Any:
        found = select(all_met(missed, allowed), 1.0, 0.0)
        return found, 1.0 - found, 1.0 - found, missed[:MISSES]

    # The step says what its q misses, and gives the next one.
    kept = trace(list, name="ik_kept", outputs=("answer",), q=(n,))
    step = step_program(problem).renamed({"errors": "missed"})
    judge = trace(
        judged,
        name="ik_judge",
        outputs=("found", "going", "open", "errors"),
        missed=allowed.shape,
        allowed=allowed.shape,
    )
    search = While("going", (kept, step, judge), STEPS)
    bound = {"constants": constants, "allowed": allowed}
    return (_chosen_program(n, "going"), search), (), bound


def _closed_attempt(problem: IKProblem) -> Attempt:
    """Return the same where loops are closed: rounds of closing and searching.

    `left` counts rounds. In each, loops are closed at `q`, which gives `passive`. Where
    `checked` says that q does not reach the goals, the step searches from there, for q
    and passive joints together: `unknowns`.
    """
    cell, selection = problem.tree.cell, problem.selection
    n, m = len(problem.joints), len(selection.passive)
    constants, allowed = step_constants(problem)
    allowed *= TIGHTER**2
    rest = [problem.selection.rest[k] for k in selection.passive]

    def begun(going: Number) -> Number:
        return going * ROUNDS

    def judged(q: Vector, passive: Vector, checked: Vector, left: Number) -> Any:
        *errors, found = checked
        # Where loops cannot be closed the step begins with passive joints at rest.
        assembly = [
            select(x < np.inf, x, y) for x, y in zip(passive, rest, strict=True)
        ]
        left = select(found > 0.0, 0.0, left - 1.0)
        is_open = select(found > 0.0, 0.0, 1.0)
        return found, is_open, list(q), errors, [*q, *assembly], left, left

    def taken(answered: Vector, going: Number, left: Number) -> Any:
        # What does not end gives way to the next start.
        return answered[:n], select(going > 0.0, 0.0, left)

    judge = trace(
        judged,
        name="ik_judge",
        outputs=("found", "open", "answer", "errors", "unknowns", "left", "going"),
        q=(n,),
        passive=(m,),
        checked=(MISSES + 1,),
        left=(),
    )
    take = trace(
        taken,
        name="ik_taken",
        outputs=("q", "left"),
        answered=(n + m,),
        going=(),
        left=(),
    )
    rounds = (
        *passive_stages(cell, selection),
        check_program(problem).renamed({"allowed": "tolerated"}),
        judge,
        trace(list, name="ik_begun", outputs=("answered",), unknowns=(n + m,)),
        _closed_search(problem, n + m, allowed.shape),
        take,
    )
    stages = (
        _chosen_program(n, "going"),
        trace(begun, name="ik_rounds", outputs=("left",), going=()),
        While("left", rounds, ROUNDS),
    )
    values = zip(selection.shapes, selection.values(problem.tree), strict=True)
    bound = {
        **{name: np.asarray(value, np.float64) for name, value in values},
        "constants": constants,
        "allowed": allowed,
        "tolerated": largest_errors(TOLERANCE, len(problem.goals)),
        "ends": np.array(problem.passive_limits),
    }
    return stages, passive_tables(cell, selection), bound


def _closed_search(problem: IKProblem, count: int, errors: tuple[int, ...]) -> While:
    """Return the steps of a round: from `unknowns` to `answered`.

    Args:
        problem: The goals, and the joints.
        count: How many unknowns there are.
        errors: The shape of the errors of a step.
    """

    def going(missed: Vector, allowed: Vector) -> Number:
        return select(all_met(missed, allowed), 0.0, 1.0)

    kept = trace(list, name="ik_kept", outputs=("answered",), unknowns=(count,))
    step = step_program(problem).renamed({"q": "unknowns", "errors": "missed"})
    judge = trace(
        going, name="ik_going", outputs=("going",), missed=errors, allowed=errors
    )
    return While("going", (kept, step, judge), STEPS)
