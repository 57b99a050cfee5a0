"""Joint positions projected onto constraints of frames, by machine code.

The damped step of inverse kinematics is repeated until nothing is missed. It takes the
shortest way, keeps limits, and leaves joints out that stand at one. What targets, boxes
and limits are is a record that the code reads, so that other constraints of the same
kinds compile nothing. The loop of planners calls it for columns, as it calls checks;
`Projector` does so for rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from armillary.ik.problem import IKProblem
from armillary.ik.search_step import (
    ROW_ERROR,
    all_met,
    largest_errors,
    row_ends,
    step_program,
)
from armillary.kernel.column_function import (
    ColumnCode,
    ColumnFunction,
    RowFunction,
    columns_in_python,
    native_lanes,
    numbers_at,
)
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.stages import At, While
from armillary.kernel.tables import Table, reals
from armillary.spatial.vector import Vector
from armillary.trace import Port, trace
from armillary.trace.functions import select

__all__ = ["Projector", "ProjectorNumbers", "projector_in_python", "projector_of"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

SNUG: Final = 1e-9
"""Projected positions have errors below this [m, rad]."""

STEPS: Final = 24
"""The most steps."""

F64: Final = np.dtype(np.float64)


class ProjectorNumbers(NamedTuple):
    """What a projector reads.

    Attributes:
        targets: Poses of goals, shape (k, 4, 4).
        boxes: Least and greatest positions for goals that have a box, shape (b, 2, 3);
            not infinite.
        lower: Least positions of the joints that move [m or rad], shape (m,).
        upper: Greatest.
    """

    targets: Array
    boxes: Array
    lower: Array
    upper: Array


@final
class Projector:
    """Projects rows of joint positions.

    Attributes:
        columns: The machine code: of columns q the columns of what they become, and one
            that is above 0 where constraints are missed still.
    """

    def __init__(self, columns: ColumnFunction, n: int) -> None:
        """Take machine code for n joints."""
        self.columns = columns
        self._rows = RowFunction(columns, (n,), (n, 1))

    def __call__(self, Q: Array) -> tuple[Array, Truths]:
        """Return what rows become, and which satisfy the constraints.

        Args:
            Q: Joint positions [m or rad], shape (k, n).
        """
        rows, missed = self._rows(Q)
        return rows, ~(missed[:, 0] > 0.0)


def projector_of(
    problem: IKProblem, numbers: ProjectorNumbers, n: int
) -> Projector | None:
    """Return what projects onto goals; None where Python has to.

    Args:
        problem: The goals, which frames are to reach all at once, and the joints.
        numbers: Targets, boxes and limits.
        n: How many joints the cell has.
    """
    if problem.selection.passive or not problem.can_search:
        return None
    pipeline = problem.once(("projector", n), partial(_pipeline, n))
    ends = row_ends(problem)
    allowed = largest_errors((SNUG, SNUG), len(problem.goals))
    if len(ends):
        allowed = np.append(allowed, ROW_ERROR)
    limits = numbers.lower, numbers.upper, ends
    constants = np.concatenate([*limits, *map(np.ravel, problem.values)])
    target = np.append(numbers.targets.ravel(), numbers.boxes.ravel())
    record = {
        "target": target[np.newaxis],
        "constants": constants[np.newaxis],
        "allowed": allowed[np.newaxis],
    }
    code = ColumnCode(pipeline, F64, native_lanes(F64))
    return Projector(code({"constraints": record}), n)


def _pipeline(n: int, problem: IKProblem) -> Pipeline:
    """Return the projection of positions of n joints as a pipeline."""
    step = step_program(problem)
    inputs = problem.selection.inputs
    shapes = {port.name: port.shape for port in (*step.inputs, *step.outputs)}

    def start(given: Vector) -> Any:
        return list(given), [given[k] for k in inputs], 1.0, 0.0

    def kept(given: Vector, q: Vector) -> Any:
        after = dict(zip(inputs, q, strict=True))
        return [after.get(k, x) for k, x in enumerate(given)]

    def judged(errors: Vector, allowed: Vector) -> Any:
        return select(all_met(errors, allowed), 0.0, 1.0)

    size = shapes["errors"]
    stages = (
        trace(
            start,
            name="projection",
            outputs=("reached", "q", "missed", "first"),
            given=(n,),
        ),
        At(
            "constraints",
            (
                While(
                    "missed",
                    (
                        # The step says what its q misses, and gives the next one.
                        trace(
                            kept,
                            name="reached",
                            outputs=("reached",),
                            given=(n,),
                            q=(len(inputs),),
                        ),
                        step,
                        trace(
                            judged,
                            name="missed",
                            outputs=("missed",),
                            errors=size,
                            allowed=size,
                        ),
                    ),
                    STEPS,
                ),
            ),
            "first",
        ),
    )
    fields = [reals(x, shapes[x]) for x in ("target", "constants")]
    table = Table("constraints", (*fields, reals("allowed", size)))
    ports = (Port("given", (n,)),)
    return Pipeline("projection", ports, (table,), stages, ("reached", "missed"))


def projector_in_python(
    project: Callable[[Array], tuple[Array, Truths]], n: int
) -> ColumnFunction:
    """Return a projection in Python as the native loop calls it.

    It serves closed loops, and joints that run in Python only.

    Args:
        project: Of rows (k, n) what they become, and which are projected, (k,).
        n: Joints.
    """
    lanes = native_lanes(F64)

    def run(given: int, reached: int, missed: int, tables: int, active: int) -> int:
        off = numbers_at(missed, (lanes,))
        off[:] = 1.0  # where the projection raises
        columns, found = (numbers_at(at, (n, lanes)) for at in (given, reached))
        rows, is_there = project(np.ascontiguousarray(columns.T))
        found[:], off[:] = rows.T, np.where(is_there, 0.0, 1.0)
        return 0

    return columns_in_python(run, 4, (F64, lanes))
