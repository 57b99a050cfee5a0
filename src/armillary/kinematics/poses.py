"""Poses of frames relative to a frame, as programs of the coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from armillary.kinematics.chains import Chains, Layout, common_ancestor, link_of
from armillary.kinematics.inputs import Inputs, program_of
from armillary.model.workcell import FrameRef
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

SHAPES: dict[str, tuple[int, ...]] = {
    "matrix": (4, 4),
    "quaternion": (7,),
    "dual_quaternion": (8,),
}


def _rows(X: Pose) -> list[tuple[tuple[Number, ...], Number]]:
    return list(zip(X.rotation, X.position, strict=True))


def poses_program(
    layout: Layout,
    frames: Sequence[FrameRef],
    relative_to: FrameRef,
    *,
    single: bool,
    form: str,
    selection: Inputs,
) -> Program:
    """Return the program q -> poses of `frames` in `relative_to`.

    Args:
        layout: What moves.
        frames: Whose poses.
        relative_to: In which frame.
        single: Whether the output is one pose, rather than a list of them.
        form: A key of `FORMS`.
        selection: Which joints are q, and what else is an input.
    """
    write = FORMS[form]

    def equations(now: Layout, q: list[Number]) -> Any:
        written = [write(X) for X in poses_of(now, q, frames, relative_to)]
        return written[0] if single else written

    output = "pose" if single else "poses"
    return program_of(equations, layout, selection, name="fk", output=output)


def poses_of(
    layout: Layout,
    q: Sequence[Number],
    frames: Sequence[FrameRef],
    relative_to: FrameRef,
) -> list[Pose]:
    """Return the poses of `frames` in `relative_to` at the whole vector q."""
    keys = [link_of(at) for at in (relative_to, *frames)]
    root = common_ancestor(layout, keys)
    chains = Chains(layout, q, root)
    if link_of(relative_to) == root and relative_to.pose.is_identity:
        return [chains.pose(at) for at in frames]
    X_AR = chains.pose(relative_to).inverse()
    return [X_AR @ chains.pose(at) for at in frames]
