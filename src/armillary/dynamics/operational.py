"""Inertia and forces as a frame feels them: the operational space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from armillary.dynamics.bodies import GROUND
from armillary.dynamics.forward import mass_solver
from armillary.dynamics.mass_matrix import mass_matrix
from armillary.dynamics.multibody import Multibody
from armillary.dynamics.sparse import add_to
from armillary.errors import ModelError
from armillary.model.frame import FrameRef
from armillary.spatial.ldl import LDLFactor, Rows, inner
from armillary.spatial.pose import Pose
from armillary.spatial.twist import (
    Vector6,
    add6,
    inverse_transform_twist,
    power,
    turn,
)
from armillary.spatial.vector import Number, transpose

__all__ = [
    "TwistRows",
    "frame_pose",
    "null_space_projector",
    "operational_inertia",
    "torques_of_wrench",
]


class TwistRows(NamedTuple):
    """Which numbers of a frame's twist count.

    Attributes:
        frame: Whose twist; the linear part is that of its origin.
        axes: The frame in whose axes it is written.
        kept: Which of its six numbers count.
    """

    frame: FrameRef
    axes: FrameRef
    kept: tuple[bool, ...] = (True,) * 6


def frame_pose(bodies: Multibody, at: FrameRef) -> Pose:
    """Return the pose of a frame in the world."""
    body, pose = bodies.bodies.holder(at)
    return pose if body == GROUND else bodies.world_poses[body] @ pose


def jacobian(bodies: Multibody, task: TwistRows) -> Rows:
    """Return the rows of the Jacobian that count, by independent coordinates."""
    columns = _columns(bodies, task)
    return [
        bodies.projected({k: column[row] for k, column in columns.items()})
        for row in range(6)
        if task.kept[row]
    ]


def _columns(bodies: Multibody, task: TwistRows) -> dict[int, Vector6]:
    """Return the twist of a frame per unit rate of each coordinate as if alone."""
    body, pose = bodies.bodies.holder(task.frame)
    in_frame: dict[int, Vector6] = {}
    while body != GROUND:
        for k, column in bodies.columns[body]:
            own = inverse_transform_twist(pose, column)
            in_frame[k] = add6(in_frame[k], own) if k in in_frame else own
        pose = bodies.poses[body] @ pose
        body = bodies.rows[body].parent
    if task.axes == task.frame:
        return in_frame
    R_WA = frame_pose(bodies, task.axes).rotation
    return {
        k: turn(transpose(R_WA), turn(pose.rotation, V)) for k, V in in_frame.items()
    }


def torques_of_wrench(
    bodies: Multibody, tasks: Sequence[TwistRows], wrenches: Sequence[Vector6]
) -> list[Number]:
    """Return the sum of J' F, the forces of coordinates that wrenches are worth."""
    total: dict[int, Number] = {}
    for task, F in zip(tasks, wrenches, strict=True):
        for k, column in _columns(bodies, task).items():
            add_to(total, k, power(column, F))
    return bodies.projected(total)


class _Solved(NamedTuple):
    """J, M^-1 J' row by row as (M^-1 J')', and factors of J M^-1 J'."""

    J: Rows
    through: Rows
    factor: LDLFactor


def _is_moving(column: Sequence[Number]) -> bool:
    return not all(isinstance(x, float) and x == 0.0 for x in column)


def _solved(bodies: Multibody, task: TwistRows) -> _Solved:
    J = jacobian(bodies, task)
    moving = sum(map(_is_moving, zip(*J, strict=True)))
    if not moving:
        raise ModelError(
            "None of the joints moves the frame, so that it has no operational inertia "
            "here. Choose a frame that they move."
        )
    if moving < len(J):
        raise ModelError(
            f"{moving} of the joints move the frame, so that its twist cannot have "
            f"{len(J)} independent numbers. Choose {moving} of them at most, such as "
            "position='xyz', rotation=''."
        )
    through = list(map(mass_solver(bodies, mass_matrix(bodies)), J))
    return _Solved(
        J, through, LDLFactor.of_regular([[inner(a, b) for b in through] for a in J])
    )


def operational_inertia(bodies: Multibody, task: TwistRows) -> Rows:
    """Return (J M^-1 J')^-1, NaN where it is singular."""
    factor = _solved(bodies, task).factor
    size = sum(task.kept)
    return [
        factor.solve([1.0 if i == k else 0.0 for i in range(size)]) for k in range(size)
    ]


def null_space_projector(bodies: Multibody, task: TwistRows) -> Rows:
    """Return 1 - J' (J M^-1 J')^-1 J M^-1, NaN where it is singular."""
    J, through, factor = _solved(bodies, task)
    columns = [factor.solve(each) for each in zip(*through, strict=True)]
    n = len(columns)
    return [
        [
            (1.0 if i == k else 0.0) - inner([row[i] for row in J], columns[k])
            for k in range(n)
        ]
        for i in range(n)
    ]
