"""The arm angle of joint positions, as a program."""

from __future__ import annotations

from typing import Any

from armillary.ik.closed_forms.branch import Question
from armillary.ik.closed_forms.subproblems import Turn
from armillary.trace import Program, trace
from armillary.trace.functions import cos, sin


def arm_angle_program(question: Question) -> Program:
    """Return the program q (n,) -> the arm angle [rad], of an arm that has one."""
    arm, family = question.closed.arm, question.closed.family
    assert family.arm_angle is not None
    formula = family.arm_angle(arm)

    def equations(q: Any) -> Any:
        angles = [d.gain * q[d.place] + d.offset for d in arm.drives]
        return formula([Turn(cos(angle), sin(angle)) for angle in angles])

    n = len(question.selection.inputs)
    return trace(equations, name="arm_angle", outputs=("arm_angle",), q=(n,))
