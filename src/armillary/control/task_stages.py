"""The stages of tasks: rows J and requested rates J x, from poses and twists.

A new kind of task is a class in `tasks`, and a function in a module beside this one
that returns its `TaskStages`; `_MAKERS` names both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from armillary.control import tasks
from armillary.control.frame_tasks import (
    of_align_axis,
    of_frame,
    of_look_at,
    of_position,
)
from armillary.control.joint_tasks import of_coupling, of_function, of_posture
from armillary.control.mass_task import of_centre_of_mass
from armillary.control.task_parts import TaskStages
from armillary.errors import ModelError
from armillary.kinematics.moving_twists import MovingTwists
from armillary.kinematics.state import State

__all__ = ["task_settings", "task_stages"]


def task_stages(task: tasks.Task, number: int, twists: MovingTwists) -> TaskStages:
    """Return the stages of a task, the k-th with k = `number`.

    Raises:
        UnknownName: It names a frame or joint that does not exist.
        ModelError: It requests nothing, or is not a task.
        TraceError: Its function is not a formula.
    """
    for kind, make in _MAKERS.items():
        if isinstance(task, kind):
            return make(task, number, twists)
    raise ModelError(
        f"A task is one of those of armillary.tasks, such as tasks.Frame('tool0'), not "
        f"a {type(task).__name__}."
    )


def task_settings(found: TaskStages, state: State, rate: float) -> dict[str, Any]:
    """Return the record of the settings of a task in a state.

    rate: Steps per second [1/s].
    """
    gain = min(found.task.gain, rate)
    values = {f"gain_{found.number}": gain, **found.settings(state)}
    return {name: [value] for name, value in values.items()}


_MAKERS: Final[Mapping[type, Any]] = {
    tasks.Frame: of_frame,
    tasks.Position: of_position,
    tasks.AlignAxis: of_align_axis,
    tasks.LookAt: of_look_at,
    tasks.Posture: of_posture,
    tasks.CentreOfMass: of_centre_of_mass,
    tasks.Coupling: of_coupling,
    tasks.Function: of_function,
}
