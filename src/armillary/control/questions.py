"""What a cell is asked to be controlled; what answers is imported on first use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy.typing as npt

from armillary.forks import IMPORT_LOCK
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
    """Return a controller of a cell, which computes joint rates for tasks.

    Call it once per step with the joint positions, rates and targets of the tasks:

        control = cell.controller(
            [tasks.Frame("tool0"), tasks.Posture()], avoid=cell.collision(margin=0.01)
        )
        step = control(q, qd, [target, None])
        q, qd = step.q_next, step.qd

    The first call compiles a kernel. So do the first batch, the first obstacles, more
    than 16 or 64 of them, and the first boxes; with `torque` the dynamics are compiled,
    too. Changing the numbers of targets, obstacles, rates, limits, margins and states
    of the cell compiles nothing: they are inputs.

    Args:
        cell: The cell.
        tasks: A list of tasks, see `armillary.tasks`; or one task, whose target is then
            given without a list.
        avoid: A collision check: its pairs, and its links and obstacles, keep its
            margin. None for no collision avoidance.
        limits: Whether the position limits of the model apply.
        velocity: Maximum rates [m/s or rad/s], shape () or (n,) of all joints; by
            default those of the model.
        acceleration: Maximum accelerations [m/s^2 or rad/s^2], shape () or (n,); by
            default those of the model, which may be infinite.
        torque: Maximum torques or forces of joints [N m or N], shape () or (n,); True
            for those of the model. By default they are not limited.
        conflict: What happens where constraints do not allow the rates that tasks
            request. `bend` minimises the weighted sum of squared errors of rates, one
            priority after another, so that the motion deviates. With `slow` all tasks
            are strict priorities, tasks of equal priority in the order of the list and
            without weights. Each keeps the direction that it requests and slows down;
            see `Step.scale`.
        rate: Steps per second [1/s].
        approach: Gain of the velocity damper [1/s]: a distance d may decrease at
            approach (d - margin), and by at most half of d - margin in a step.
        damping: Singular value of the tasks below which a direction is suppressed, as
            for `differential_ik`.
        joints: Names of the joints that it moves, by default all. The others are
            assumed to continue at their rates in `qd`.
        state: The state with the attachments, moved bases and branch of closed loops;
            by default home.

    Raises:
        UnknownName: A frame, a joint or `conflict` does not exist.
        ModelError: There is no task, no joint, or more than 48; a number is out of its
            range; `avoid` is not a check of this cell and state; torques are limited,
            and no link that joints move has an inertia.
        StateError: The state is not one of this cell.
        NotCompiled: A script that cannot be compiled moves links.
    """
    with IMPORT_LOCK:
        from armillary.control.controller import controller_of
        from armillary.control.options import ControllerOptions

    options = ControllerOptions(
        limits, velocity, acceleration, torque, conflict, rate, approach, damping
    )
    return controller_of(cell, tasks, avoid, options, joints, state)
