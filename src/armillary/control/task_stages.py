"""The stages of a task: rows J and requested rates J x = v, and what they are made of.

A new kind of task is a class in `tasks.py`, and in `frame_tasks.py`, `joint_tasks.py`
or a module beside them a function that returns its `TaskStages`, with a row in `MAKERS`
of that module; `_MAKERS` of `controller.py` lists these modules.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from armillary.control import tasks
from armillary.control.columns import StepColumns
from armillary.kernel.stages import Stage
from armillary.kernel.tables import Table
from armillary.kinematics.kept_formulas import MOTION
from armillary.kinematics.kernels import selection_of
from armillary.kinematics.moving_twists import MovingTwists
from armillary.kinematics.state import State
from armillary.model.fields import kept_few
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Matrix,
    Number,
    Vector,
    Vector3,
    add,
    cross,
    subtract,
    three,
)
from armillary.trace import Port

__all__ = [
    "STEP_MAKERS",
    "Made",
    "Maker",
    "PlacedFrame",
    "Records",
    "TaskGoal",
    "TaskRows",
    "TaskStages",
    "by_rows",
    "columns_of_task",
    "firm_weights",
    "joint_indices",
    "made_once",
    "priority_levels",
    "without_others",
]

STEP_MAKERS: Final = (
    *MOTION,
    "armillary.collision",
    "armillary.collision.distance",
    "armillary.control",
    "armillary.ik",
)
"""Packages on which the formulas of a step depend."""

FIRM: Final = 1e4
"""Weight of rates that earlier levels have reached, in parts of the greatest weight."""

MOST_KEPT: Final = 64
"""Columns and stages of tasks that moving links keep."""

Made = TypeVar("Made")

Records: TypeAlias = Mapping[str, Any]
"""Values of the fields of a table, by their names."""


def no_records(state: State) -> dict[str, Any]:
    """Return nothing: what a task reads that has no settings or tables of its own."""
    del state
    return {}


class TaskRows(NamedTuple):
    """The rates that a task requests: J x = v.

    Attributes:
        rows: J, a row for each number.
        wanted: v, the requested values of J x.
    """

    rows: Matrix
    wanted: Vector


class TaskGoal(NamedTuple):
    """What a task is given.

    Attributes:
        target: Its target.
        target_rate: The derivative of that by time.
        gain: The rate at which errors decay [1/s].
    """

    target: Any
    target_rate: Any
    gain: Number


class TaskStages(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The stages of a task, and the values that they read.

    Attributes:
        task: The task.
        columns: The columns of the task, by its number in the list of tasks.
        reads: The settings that it reads, beside its gain.
        stages: They write the columns of `TaskRows`, or for a posture `diagonal` and
            `pull`.
        curvature: They write `curvature`, for each of its rows the second derivatives
            of the number whose gradient that row is, with respect to each joint twice;
            none where they are 0. They run only where a task misses what it requests.
        weights: Of its rows; none for a posture.
        settings: From a state to the values of `reads`.
        tables: Further tables.
        records: From a state to the records of `tables`, by their names.
    """

    task: tasks.Task
    columns: StepColumns
    reads: tuple[Port, ...] = ()
    stages: tuple[Stage, ...]
    weights: tuple[float, ...] = ()
    curvature: tuple[Stage, ...] = ()
    settings: Callable[[State], Records] = no_records
    tables: tuple[Table, ...] = ()
    records: Callable[[State], Mapping[str, Records]] = no_records

    @property
    def ports(self) -> tuple[Port, Port]:
        """Return the inputs that hold its target, and the rate of its target."""
        return self.columns.target(), self.columns.target_rate()


Maker: TypeAlias = Callable[[Any, int, MovingTwists], TaskStages]
"""From a task, its number and the twists of links to its stages."""


def columns_of_task(
    twists: MovingTwists, number: int, *, m: int = 0, **shapes: tuple[int, ...]
) -> StepColumns:
    """Return the columns of a task.

    Args:
        twists: Of the moving links.
        number: Its number in the list of tasks.
        m: How many rows it has.
        shapes: Those of `target` and `rate`, that of its target.
    """
    # Rows of tasks are not known yet: columns of one task have sizes of their own.
    return made_once(
        twists,
        ("columns", number, m, *shapes.items()),
        lambda: StepColumns.for_step(twists, ()).of(number, m=m, **shapes),
    )


def made_once(twists: MovingTwists, what: Hashable, make: Callable[[], Made]) -> Made:
    """Return what tasks share that differ in numbers alone, made once and kept.

    Args:
        twists: Of the moving links.
        what: What it is, by all that decides it besides the links.
        make: Makes it.
    """
    return kept_few(twists, "of tasks", what, make, MOST_KEPT)


class PlacedFrame(NamedTuple):
    """A frame: its pose, and the twists at the origin of its link."""

    pose: Pose
    origin: Vector3
    twists: Matrix

    @classmethod
    def of(cls, pose: Matrix, twists: Matrix, offset: Any) -> PlacedFrame:
        """Return a frame at an offset from a link with a pose and twists."""
        # Columns of twists, one for each joint, are easier to turn than rows.
        link = Pose.from_matrix(pose)
        columns = [list(column) for column in zip(*twists, strict=True)]
        return cls(link @ Pose.from_matrix(offset), link.position, columns)

    def linear(self, point: Vector3) -> list[Vector3]:
        """Return the velocity of a point that is fixed to it, by each column."""
        # v + w x r, with r from the origin of the link, where twists are given.
        arm = subtract(point, self.origin)
        return [add(three(c[:3]), cross(three(c[3:]), arm)) for c in self.twists]

    @property
    def angular(self) -> list[Vector3]:
        """Return its angular velocity, by each column."""
        return [three(column[3:]) for column in self.twists]


def by_rows(columns: Sequence[Vector3]) -> list[list[Number]]:
    """Return the three rows of columns."""
    return [[column[i] for column in columns] for i in range(3)]


def without_others(task: TaskRows, twists: MovingTwists) -> TaskRows:
    """Return rows of the moved joints; the effect of the others is subtracted.

    The others move at known rates, and have one column together: what these add.
    """
    # J x + (row of others) = v becomes J x = v - (row of others).
    c = len(twists.joints)
    wanted = [
        v - row[c] if len(row) > c else v
        for v, row in zip(task.wanted, task.rows, strict=True)
    ]
    return TaskRows([list(row[:c]) for row in task.rows], wanted)


def joint_indices(twists: MovingTwists, names: Sequence[str] | None) -> list[int]:
    """Return the indices of joints in q.

    Raises:
        UnknownName: A joint does not exist.
    """
    return list(selection_of(twists.moving.cell, names).inputs)


def priority_levels(tasks: Sequence[TaskStages]) -> list[int]:
    """Return the level of each row of tasks, 0 for those that come first."""
    listed = [each.task.priority for each in tasks for _ in each.weights]
    # Priorities may be any whole numbers; levels count from 0 without gaps.
    order = sorted(set(listed))
    return [order.index(priority) for priority in listed]


def firm_weights(weights: Sequence[float], levels: Sequence[int]) -> list[float]:
    """Return the weights with which rows keep what they have while others follow."""
    # Within a level weights keep their ratios; the greatest becomes FIRM times that
    # of all rows.
    most = max(weights)
    greatest: dict[int, float] = {}
    for weight, level in zip(weights, levels, strict=True):
        greatest[level] = max(weight, greatest.get(level, 0.0))
    return [
        FIRM * most * weight / greatest[level]
        for weight, level in zip(weights, levels, strict=True)
    ]
