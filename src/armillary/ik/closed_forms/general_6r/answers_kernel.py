"""From solutions of a first search to answers of an arm, as one kernel.

Each solution becomes joint positions within limits, verified on the model, behind those
before it. So a batch has no arrays of solutions, and a single call little but kernels.
"""

from __future__ import annotations

import math
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

_FIELDS = {
    "slot": "solutions",
    "q": "q_of",
    "squares": "squares_of",
    "reason": "reason_of",
    "open": "open_of",
}
_TABLE = Table("slots", tuple(index(name, of) for name, of in _FIELDS.items()))
_slots = np.arange(SLOTS)
# more than there is room for is noticed
_ROWS = {
    name: np.minimum(_slots, MOST - 1) if of[0] in "qsr" else _slots
    for name, of in _FIELDS.items()
} | {"slot": _slots}


def answers_kernel(problem: ArmProblem) -> Kernel:
    """Return the kernel of the answers to a target.

    Its inputs are those of `checked_program` but `angles`, then `solutions` of
    `first_search.py`. Outputs are `q_of` (MOST, n), `squares_of` (MOST, 2) and
    `reason_of` (MOST,), of which those that do not exist are OUT_OF_REACH, their other
    numbers NaN; and `is_settled`, 1 where each is, and there are no more than MOST.
    """
    n = len(problem.selection.inputs)
    checked = checked_program(problem)

    def none_yet(solutions: Any) -> Any:
        states = [row[STATE] for row in solutions]
        empty = [[math.nan] * n for _ in range(MOST)]
        squares = [[math.nan] * 2 for _ in range(MOST)]
        return states, empty, squares, [OUT_OF_REACH] * MOST, [0.0] * SLOTS

    def angles_of(slot: Any) -> Any:
        return [x + 0.0 for x in slot[:STATE]]

    def divided(answer: Any) -> Any:
        reason = answer[n + 2]
        is_settled = (reason == SOLVED) | (reason == SINGULAR) | (reason == LIMITS)
        parts = [x + 0.0 for x in answer]
        return parts[:n], parts[n : n + 2], parts[n + 2], select(is_settled, 0.0, 1.0)

    def settled(target: Any, chosen: Any, open_of: Any) -> Any:
        is_settled = (sum(open_of, 0.0) < 0.5) & (sum(chosen, 0.0) < MOST + 0.5)
        pose = Pose.from_matrix(target)
        for x in pose.position:
            is_settled = is_settled & (absolute(x) < math.inf)
        return select(is_settled & is_rigid(pose, target[3]), 1.0, 0.0)

    begin = "chosen q_of squares_of reason_of open_of"
    stages: tuple[Stage, ...] = (
        program(none_yet, begin, solutions=(SLOTS, NUMBERS)),
        Abreast(
            "slots",
            (
                program(angles_of, "angles", slot=(NUMBERS,)),
                checked,
                program(divided, "q squares reason open", answer=(n + 3,)),
            ),
            chosen="chosen",
            packed=True,
        ),
        program(
            settled, "is_settled", target=(4, 4), chosen=(SLOTS,), open_of=(SLOTS,)
        ),
    )
    compiled = compile_pipeline(
        Pipeline(
            "six_joints_answers",
            (*checked.inputs[:-1], Port("solutions", (SLOTS, NUMBERS))),
            (_TABLE,),
            stages,
            ("q_of", "squares_of", "reason_of", "is_settled"),
        )
    )
    return compiled({"slots": _ROWS})
