"""The numeric search as a pipeline: from `near`, then from fixed starts, one by one.

`kernel/search.py` answers many targets on threads, with memory that it allocates. This
one is for code that is compiled for elsewhere: it takes the same step, needs no memory
but the stack, and its time is bounded, by STARTS times STEPS.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import KernelError
from armillary.ik.loop_search import loop_constants, loop_tolerances
from armillary.ik.problem import IKProblem
from armillary.ik.query import TOLERANCE
from armillary.ik.search_step import (
    ROW_ERROR,
    largest_errors,
    row_ends,
    step_program,
)
from armillary.ik.targets import POSE_SIZE
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.stages import Each, While
from armillary.kernel.tables import Table, reals
from armillary.spatial.vector import Number, Vector
from armillary.trace import Port, trace
from armillary.trace.functions import select

__all__ = ["StandaloneSearch", "search_pipeline", "step_constants"]

Array = npt.NDArray[np.float64]

STARTS: Final = 24
"""Starts that are tried, `near` counted."""

STEPS: Final = 40
"""Steps from each of them."""

SEED: Final = 7

TIGHTER: Final = 1e-3
"""What goals may miss here, over what a search allows: with one more step the answers
of other machines agree."""


class StandaloneSearch(NamedTuple):
    """A search as a pipeline, and what it is given.

    Attributes:
        pipeline: Inputs `target`, the sixteen numbers of a pose, `near` (n,), then what
            is in `bound`. Outputs `answer` (n,), `errors` (2,), the squares of what is
            missed, of a distance and a sine, and `found`, 1 where they are small.
        tables: The starts.
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
        KernelError: Loops must be closed meanwhile, or joints run in Python only.
    """
    if problem.selection.passive:
        raise KernelError(
            "The search for joint positions closes loops as it goes, which is not "
            "compiled for elsewhere. Compile fk and jacobian, and search there."
        )
    if not problem.can_search:
        raise KernelError("A joint of this search runs in Python only.")
    step = step_program(problem)
    n = len(problem.joints)
    constants, allowed = step_constants(problem)

    def chosen(near: Vector, start: Vector, is_near: Number) -> Any:
        q = [select(is_near > 0.0, x, y) for x, y in zip(near, start, strict=True)]
        return q, 1.0

    def judged(errors: Vector, allowed: Vector) -> Any:
        is_met: Any = True
        for error, most in zip(errors, allowed, strict=True):
            is_met = is_met & (error <= most)
        found = select(is_met, 1.0, 0.0)
        return found, 1.0 - found, 1.0 - found

    def opened(near: Vector) -> Any:
        return 1.0, 0.0, list(near), [0.0] * len(allowed)

    size = len(allowed)
    stages = (
        trace(
            opened,
            name="ik_open",
            outputs=("open", "found", "answer", "errors"),
            near=(n,),
        ),
        Each(
            "starts",
            (
                trace(
                    chosen,
                    name="ik_start",
                    outputs=("q", "going"),
                    near=(n,),
                    start=(n,),
                    is_near=(),
                ),
                While(
                    "going",
                    (
                        # The step says what its q misses, and gives the next one.
                        trace(list, name="ik_kept", outputs=("answer",), q=(n,)),
                        step,
                        trace(
                            judged,
                            name="ik_judge",
                            outputs=("found", "going", "open"),
                            errors=(size,),
                            allowed=(size,),
                        ),
                    ),
                    STEPS,
                ),
            ),
            active="open",
        ),
    )
    table = Table("starts", (reals("start", (n,)), reals("is_near")))
    ports = (
        Port("target", (POSE_SIZE,)),
        Port("near", (n,)),
        Port("constants", constants.shape),
        Port("allowed", allowed.shape),
    )
    pipeline = Pipeline(
        "ik_search", ports, (table,), stages, ("answer", "errors", "found")
    )
    lower, upper = problem.start_range
    drawn = np.random.default_rng(SEED).uniform(lower, upper, (STARTS, n))
    tables = {"starts": {"start": drawn, "is_near": np.eye(STARTS)[0]}}
    allowed[: 2 * len(problem.goals)] *= TIGHTER**2
    bound = {"constants": constants, "allowed": allowed}
    return StandaloneSearch(pipeline, tables, bound)
