"""What tasks ask of rates, as stages: rows J and wanted J x, from poses and twists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from armillary.control import tasks
from armillary.control.frame_tasks import of_axis, of_frame, of_position, of_view
from armillary.control.joint_tasks import of_coupling, of_function, of_posture
from armillary.control.mass_task import of_mass
from armillary.control.task_parts import (
    TaskStages,
    joint_indices,
)
from armillary.errors import ModelError
from armillary.kinematics.moving_twists import MovingTwists
from armillary.kinematics.state import State
from armillary.spatial.pose import Pose

__all__ = ["task_records", "task_stages"]


def task_stages(task: tasks.Task, number: int, twists: MovingTwists) -> TaskStages:
    """Return the stages of a task.

    Raises:
        UnknownName: It names a frame or joint that does not exist.
        ModelError: It asks for nothing, or is not a task.
        TraceError: Its function is not a formula.
    """
    for kind, make in _MAKERS.items():
        if isinstance(task, kind):
            return make(task, number, twists)
    raise ModelError(
        f"A task is one of those of armillary.tasks, such as tasks.Frame('tool0'), not "
        f"a {type(task).__name__}."
    )


def task_records(
    found: TaskStages, twists: MovingTwists, state: State, rate: float
) -> dict[str, Any]:
    """Return what settings hold for a task in a state.

    rate: Steps per second [1/s].
    """
    task, k = found.task, found.number
    records: dict[str, Any] = {f"gain_{k}": [min(task.gain, rate)]}
    if isinstance(task, (tasks.Frame, tasks.Position, tasks.AlignAxis, tasks.LookAt)):
        for name, frame in (("", task.frame), ("base_", task.relative_to)):
            row, offset = _fixed(twists, state, frame)
            records[f"{name}pose_{k}"] = [row]
            records[f"{name}twists_{k}"] = [row]
            records[f"{name}offset_{k}"] = [offset.matrix()[:3]]
    if isinstance(task, tasks.Frame):
        records[f"most_{k}"] = [[task.speed, task.turn_speed]]
    elif isinstance(task, tasks.Position):
        records[f"most_{k}"] = [[task.speed, 0.0]]
    elif isinstance(task, (tasks.AlignAxis, tasks.LookAt)):
        axis = np.asarray(task.axis, np.float64)
        records[f"axis_{k}"] = [axis / np.linalg.norm(axis)]
    elif isinstance(task, tasks.Posture):
        chosen = joint_indices(twists, task.joints)
        counts = [task.weight * (j in chosen) for j in twists.joints]
        records[f"counts_{k}"] = [counts]
    elif isinstance(task, tasks.Coupling):
        factors = np.zeros(twists.moving.joints)
        for name, factor in task.factors.items():
            factors[joint_indices(twists, (name,))] = factor
        records[f"factors_{k}"] = [factors]
    return {
        name: value
        for name, value in records.items()
        if name in {field.name for field in found.fields}
    }


def _fixed(twists: MovingTwists, state: State, name: str) -> tuple[int, Pose]:
    at = twists.moving.cell.frame(name)
    row, pose = twists.moving.fixed_to(state.tree, at.link)
    return row, pose @ at.pose


_MAKERS: Final[Mapping[type, Any]] = {
    tasks.Frame: of_frame,
    tasks.Position: of_position,
    tasks.AlignAxis: of_axis,
    tasks.LookAt: of_view,
    tasks.Posture: of_posture,
    tasks.CentreOfMass: of_mass,
    tasks.Coupling: of_coupling,
    tasks.Function: of_function,
}
