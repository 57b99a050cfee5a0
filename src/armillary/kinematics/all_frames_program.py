"""The poses of all frames of a cell, with the free bases as inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from armillary.kinematics.poses import LinkPoses
from armillary.model.frame import FrameRef
from armillary.model.tree import Base, Tree
from armillary.model.workcell import WORLD_LINK, Workcell
from armillary.spatial.pose import Pose
from armillary.trace import Program, trace

Survey = Callable[..., list[Any]]


def survey_of(
    cell: Workcell, frames: Sequence[FrameRef], free: Sequence[int]
) -> Survey:
    """Return the function q, bases -> poses in the world, shape (k, 4, 4).

    It takes and gives floats, or traced scalars.

    Args:
        cell: What there is.
        frames: Whose poses.
        free: The manipulators whose base poses in the world are inputs, in order.
    """

    def survey(q: Sequence[Any], bases: Any = ()) -> list[Any]:
        changes = {
            k: Base(FrameRef(WORLD_LINK, Pose.from_matrix(base)))
            for k, base in zip(free, bases, strict=True)
        }
        poses = LinkPoses(Tree.of(cell).attached(changes), q, WORLD_LINK)
        return [poses.pose(at).matrix() for at in frames]

    return survey


def survey_program(
    cell: Workcell, frames: Sequence[FrameRef], free: Sequence[int]
) -> Program:
    """Return `survey_of` as a program, of q alone where there are no free bases."""
    inputs: dict[str, tuple[int, ...]] = {"q": (len(cell.joint_names),)}
    if free:
        inputs["bases"] = (len(free), 4, 4)
    survey = survey_of(cell, frames, free)
    return trace(survey, name="survey", outputs=("poses",), **inputs)


def product_program() -> Program:
    """Return the program X_AB, X_BC -> X_AC = X_AB X_BC of matrices."""

    def product(left: Any, right: Any) -> Any:
        return (Pose.from_matrix(left) @ Pose.from_matrix(right)).matrix()

    return trace(product, outputs=("X_AC",), X_AB=(4, 4), X_BC=(4, 4))
