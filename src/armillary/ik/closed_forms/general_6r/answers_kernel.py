"""From solutions of a first search to answers of an arm, as one kernel.

Each solution becomes joint positions within limits, verified on the model, behind those
before it. So a batch has no arrays of solutions, and a single call little but kernels.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from armillary.ik.closed_forms.branch import ArmProblem
from armillary.ik.closed_forms.general_6r.first_search import NUMBERS, SLOTS, STATE
from armillary.ik.closed_forms.general_6r.solver import MOST
from armillary.ik.closed_forms.program import (
    LIMITS,
    OUT_OF_REACH,
    SINGULAR,
    SOLVED,
    checked_program,
)
from armillary.ik.targets import is_rigid
from armillary.kernel import Kernel
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.stages import Abreast, Stage, program
from armillary.kernel.tables import Table, index
from armillary.spatial.pose import Pose
from armillary.trace import Port
from armillary.trace.functions import absolute, select

__all__ = ["answers_kernel"]

_COLUMN_OF = {
    "slot": "solutions",
    "q": "q_of",
    "squares": "squares_of",
    "reason": "reason_of",
    "open": "open_of",
}
"""What is read and written for each slot of the search, and the columns of that."""

_TABLE = Table("slots", tuple(index(name, of) for name, of in _COLUMN_OF.items()))

# There is room for MOST answers. Those behind them write over the last one, and their
# target is not settled then.
_SLOTS = np.arange(SLOTS)
_ANSWERS = np.minimum(_SLOTS, MOST - 1)
_RECORDS = {
    "slot": _SLOTS,
    "q": _ANSWERS,
    "squares": _ANSWERS,
    "reason": _ANSWERS,
    "open": _SLOTS,
}


def answers_kernel(problem: ArmProblem) -> Kernel:
    """Return the kernel of the answers to a target.

    Its inputs are those of `checked_program` but `angles`, then `solutions` of
    `first_search.py`. Outputs are `q_of` (MOST, n), `squares_of` (MOST, 2) and
    `reason_of` (MOST,), of which those that do not exist are OUT_OF_REACH, their other
    numbers NaN; and `is_settled`, 1 where each is, and there are no more than MOST.

    Args:
        problem: An arm of six axes.
    """
    n = len(problem.selection.inputs)
    checked = checked_program(problem)
    solutions = Port("solutions", (SLOTS, NUMBERS))
    # Slots that hold a solution run, several in lanes; their answers come first.
    each_solution = Abreast(
        "slots",
        (
            program(_angles_of, "angles", slot=(NUMBERS,)),
            checked,
            program(partial(_parts_of, n=n), "q squares reason open", answer=(n + 3,)),
        ),
        chosen="chosen",
        packed=True,
    )
    stages: tuple[Stage, ...] = (
        program(
            partial(_no_answers, n=n),
            "chosen q_of squares_of reason_of open_of",
            solutions=solutions.shape,
        ),
        each_solution,
        program(
            _is_settled,
            "is_settled",
            target=(4, 4),
            chosen=(SLOTS,),
            open_of=(SLOTS,),
        ),
    )
    compiled = compile_pipeline(
        Pipeline(
            "six_joints_answers",
            (*checked.inputs[:-1], solutions),
            (_TABLE,),
            stages,
            ("q_of", "squares_of", "reason_of", "is_settled"),
        )
    )
    return compiled({"slots": _RECORDS})


def _no_answers(solutions: Any, *, n: int) -> Any:
    """Return which slots hold a solution, and the columns while there is no answer."""
    chosen = [slot[STATE] for slot in solutions]
    q = [[math.nan] * n for _ in range(MOST)]
    squares = [[math.nan] * 2 for _ in range(MOST)]
    return chosen, q, squares, [OUT_OF_REACH] * MOST, [0.0] * SLOTS


def _angles_of(slot: Any) -> Any:
    """Return the six joint positions of a solution; each + 0.0 is a copy."""
    return [x + 0.0 for x in slot[:STATE]]


def _parts_of(answer: Any, *, n: int) -> Any:
    """Return q, squares and reason of an answer, and 1 where others have to look at it.

    A miss, or a reason with a fraction, see `program.py`, is left to `general_form.py`.
    """
    reason = answer[n + 2]
    is_settled = (reason == SOLVED) | (reason == SINGULAR) | (reason == LIMITS)
    parts = [x + 0.0 for x in answer]  # copies
    return parts[:n], parts[n : n + 2], parts[n + 2], select(is_settled, 0.0, 1.0)


def _is_settled(target: Any, chosen: Any, open_of: Any) -> Any:
    """Return 1 where a finite rigid target has room for its answers, all settled."""
    is_settled = (sum(open_of, 0.0) < 0.5) & (sum(chosen, 0.0) < MOST + 0.5)
    pose = Pose.from_matrix(target)
    for x in pose.position:
        is_settled = is_settled & (absolute(x) < math.inf)
    return select(is_settled & is_rigid(pose, target[3]), 1.0, 0.0)
