"""What a cell is asked to be controlled; what answers is imported on first use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy.typing as npt

from armillary.kinematics.kernels import Joints
from armillary.kinematics.state import State
from armillary.model.workcell import Workcell

if TYPE_CHECKING:
    from armillary.collision.check import CollisionCheck
    from armillary.control.controller import Controller
    from armillary.control.tasks import Task

__all__ = ["controller"]


def controller(  # noqa: PLR0913
    cell: Workcell,
    tasks: Sequence[Task] | Task,
    *,
    avoid: CollisionCheck | None = None,
    limits: bool = True,
    velocity: npt.ArrayLike | None = None,
    acceleration: npt.ArrayLike | None = None,
    torque: npt.ArrayLike | bool | None = None,
    conflict: Literal["bend", "slow"] = "bend",
    rate: float = 1000.0,
    approach: float = 20.0,
    damping: float = 0.01,
    joints: Joints = None,
    state: State | None = None,
) -> Controller:
    """Return the controller of a cell: tasks and constraints in, joint motion out.

    Call it once a step with where the cell is and the targets of the tasks:

        control = cell.controller(
            [tasks.Frame("tool0"), tasks.Posture()], avoid=cell.collision(margin=0.01)
        )
        step = control(q, qd, [target, None])
        q, qd = step.q_next, step.qd

    The first call compiles one kernel. Targets, obstacles, rates, limits, margins and
    states of the cell are numbers in it, so that others of them compile nothing.

    Args:
        cell: What moves.
        tasks: What the motion is to achieve, see `armillary.tasks`.
        avoid: A collision check. Its pairs are kept apart by its margin, and obstacles
            from its links. None to avoid nothing.
        limits: Whether joints keep their limits of position.
        velocity: Greatest rates [m/s or rad/s], shape () or (n,) of all joints; by
            default those of the model.
        acceleration: Greatest changes of rates [m/s^2 or rad/s^2], shape () or (n,); by
            default those of the model, which may be without limit.
        torque: Greatest torques or forces of joints [N m or N], shape () or (n,); True
            for those of the model. By default they are not limited.
        conflict: What happens where constraints do not allow what tasks ask for. With
            `bend` the sum of weights times squared errors of rates is least, of tasks
            of one priority after those of another: motion bends around what is in its
            way. With `slow` all tasks are strict priorities, equal ones in their order
            whatever their weights, each followed as far as constraints allow in the
            direction that it asks for; see `Step.scale`.
        rate: Steps per second [1/s].
        approach: Which part of the room between a distance and the margin may be lost
            per second [1/s], at most half of it in a step.
        damping: Singular values below which a direction is given up, as for
            `differential_ik`.
        joints: Names of the joints that it moves, by default all. The others move as
            `qd` says, which is taken into account.
        state: Whose attachments, moved bases and branch of closed loops count.

    Raises:
        UnknownName: A frame, a joint or `conflict` does not exist.
        ModelError: There is no task, no joint, or more than 48; a number is out of its
            range; `avoid` is not a check of this cell and state; torques are limited,
            and no link that joints move has an inertia.
        StateError: The state is not one of this cell.
        NotCompiled: A script that cannot be compiled moves links.
    """
    from armillary.control.controller import controller_of
    from armillary.control.options import Options

    options = Options(
        limits, velocity, acceleration, torque, conflict, rate, approach, damping
    )
    return controller_of(cell, tasks, avoid, options, joints, state)
