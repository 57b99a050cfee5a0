"""How a frame has to move to reach a target: a screw displacement."""

from __future__ import annotations

from typing import Any

from armillary.kinematics.inputs import Inputs, program_of
from armillary.kinematics.poses import READERS, SHAPES, poses_of
from armillary.model.frame import FrameRef
from armillary.model.tree import Tree
from armillary.spatial import dual_quaternion as dual
from armillary.spatial.vector import Number
from armillary.trace import Program


def pose_error_program(
    tree: Tree,
    frame: FrameRef,
    relative_to: FrameRef,
    selection: Inputs,
    *,
    form: str,
) -> Program:
    """Return the program q, target -> V with X_target = X(q) exp(V), shape (6,).

    V is the logarithm of the dual quaternion X(q)* X_target, so that a target's sign
    does not matter; it is written in the axes of `frame`.
    """

    def equations(now: Tree, q: list[Number], target: Any) -> Any:
        (X,) = poses_of(now, q, [frame], relative_to)
        wanted = READERS[form](target)
        return dual.screw_between(dual.from_pose(X), dual.from_pose(wanted))

    return program_of(
        equations,
        tree,
        selection,
        name="pose_error",
        output="twist",
        target=SHAPES[form],
    )
