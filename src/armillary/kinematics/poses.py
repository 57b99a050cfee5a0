"""Poses of frames relative to a frame, as programs of the coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from armillary.kinematics.inputs import Inputs, program_of
from armillary.model.frame import FrameRef
from armillary.model.link_poses import poses_of
from armillary.model.tree import Tree
from armillary.spatial import dual_quaternion
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number
from armillary.trace import Program

FORMS: dict[str, Callable[[Pose], Any]] = {
    "matrix": lambda X: [*([*r, p] for r, p in _rows(X)), [0.0, 0.0, 0.0, 1.0]],
    "quaternion": lambda X: [*X.quaternion(), *X.position],
    "dual_quaternion": lambda X: list(dual_quaternion.from_pose(X)),
}
"""How a pose leaves a program: (4, 4), (7,) as wxyz xyz, (8,) real part first."""

READERS: dict[str, Callable[[Any], Pose]] = {
    "matrix": Pose.from_matrix,
    "quaternion": lambda numbers: Pose.from_quaternion(numbers[:4], numbers[4:]),
    "dual_quaternion": lambda numbers: dual_quaternion.to_pose(tuple(numbers)),
}
"""How a pose comes into a program; quaternions of any length and either sign."""

MOST_COMPILED: Final = 1_000
"""Frames of a program; for more of them compiling takes longer than it saves."""

SHAPES: dict[str, tuple[int, ...]] = {
    "matrix": (4, 4),
    "quaternion": (7,),
    "dual_quaternion": (8,),
}


def _rows(X: Pose) -> list[tuple[tuple[Number, ...], Number]]:
    return list(zip(X.rotation, X.position, strict=True))


def poses_program(
    tree: Tree,
    frames: Sequence[FrameRef],
    relative_to: FrameRef,
    *,
    single: bool,
    form: str,
    selection: Inputs,
    name: str = "fk",
) -> Program:
    """Return the program q -> poses of `frames` in `relative_to`.

    Args:
        tree: What moves.
        frames: Whose poses.
        relative_to: In which frame.
        single: Whether the output is one pose, rather than a list of them.
        form: A key of `FORMS`.
        selection: Which joints are q, and what else is an input.
        name: Of the program.
    """
    write = FORMS[form]

    def equations(now: Tree, q: list[Number]) -> Any:
        written = [write(X) for X in poses_of(now, q, frames, relative_to)]
        return written[0] if single else written

    output = "pose" if single else "poses"
    return program_of(equations, tree, selection, name=name, output=output)


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
        return dual_quaternion.screw_between(
            dual_quaternion.from_pose(X), dual_quaternion.from_pose(wanted)
        )

    return program_of(
        equations,
        tree,
        selection,
        name="pose_error",
        output="twist",
        target=SHAPES[form],
    )
