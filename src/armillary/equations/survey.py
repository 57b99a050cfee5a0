"""The poses of all frames of a cell, with the free bases as inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from armillary.equations.chain import WORLD_KEY, Chains, Layout
from armillary.model.workcell import FrameAt, Workcell
from armillary.spatial.pose import Pose
from armillary.trace import Program, trace


def survey_program(
    cell: Workcell, frames: Sequence[FrameAt], free: Sequence[int]
) -> Program:
    """Return the program q, bases -> poses in the world, shape (k, 4, 4).

    Args:
        cell: What there is.
        frames: Whose poses.
        free: The manipulators whose base poses in the world are inputs, in order.
    """

    def equations(q: Sequence[Any], bases: Any) -> Any:
        supports = list(cell.supports)
        for k, base in zip(free, bases, strict=True):
            supports[k] = FrameAt(*WORLD_KEY, Pose.from_matrix(base))
        chains = Chains(Layout(cell, tuple(supports)), q, WORLD_KEY)
        return [chains.pose(at).matrix() for at in frames]

    return trace(
        equations,
        name="survey",
        outputs=("poses",),
        q=(len(cell.joint_names),),
        bases=(len(free), 4, 4),
    )
