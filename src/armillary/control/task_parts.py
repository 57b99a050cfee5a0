"""The stages of a task, and the frames and rows that they are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from armillary.control import tasks
from armillary.kernel.pipeline import Stage
from armillary.kernel.tables import Field, Table
from armillary.kinematics.kernels import selection_of
from armillary.kinematics.moving_twists import MovingTwists
from armillary.kinematics.state import State
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number, Vector3, add, cross, subtract, three
from armillary.trace import Port

__all__ = [
    "POSE",
    "VECTOR",
    "PlacedFrame",
    "Records",
    "Rows",
    "TaskStages",
    "by_rows",
    "joint_indices",
    "without_others",
]

POSE: Final = (3, 4)
VECTOR: Final = (3,)

Columns = Sequence[Sequence[Number]]
Records = Mapping[str, Any]
"""Values of the fields of a table, by their names."""


def no_records(state: State) -> dict[str, Any]:
    """Return nothing: what a task reads that has no settings or tables of its own."""
    del state
    return {}


class Rows(NamedTuple):
    """The rates that a task requests: J x = wanted.

    Attributes:
        rows: J, a row for each number.
        wanted: The requested values of J x.
    """

    rows: list[list[Number]]
    wanted: list[Number]


@dataclass(frozen=True, kw_only=True)
class TaskStages:
    """The stages of a task, and the values that they read.

    Attributes:
        task: The task.
        number: Its index k in the list of tasks.
        target: The shape of its target.
        rate: The shape of the rate of its target.
        fields: The settings that it reads.
        stages: They write `rows_k` and `wanted_k`, or `diagonal_k` and `pull_k`.
        curvature: They write `curvature_k`, for each of its rows the second derivatives
            of the number whose gradient that row is, with respect to each joint twice;
            none where they are 0. They run only where a task misses what it requests.
        weights: Of its rows; none for a posture.
        settings: From a state to the values of `fields`, except `gain_k`.
        tables: Further tables.
        records: From a state to the records of `tables`, by their names.
    """

    task: tasks.Task
    number: int
    target: tuple[int, ...]
    rate: tuple[int, ...]
    fields: tuple[Field, ...]
    stages: tuple[Stage, ...]
    weights: tuple[float, ...] = ()
    curvature: tuple[Stage, ...] = ()
    settings: Callable[[State], Records] = no_records
    tables: tuple[Table, ...] = ()
    records: Callable[[State], Mapping[str, Records]] = no_records

    @property
    def port(self) -> Port:
        """Return the input that holds its target."""
        return Port(f"target_{self.number}", self.target)

    @property
    def rate_port(self) -> Port:
        """Return the input that holds the rate of its target."""
        return Port(f"target_rate_{self.number}", self.rate)


class PlacedFrame(NamedTuple):
    """A frame: its pose, and the twists at its origin."""

    pose: Pose
    origin: Vector3
    twists: Columns

    @classmethod
    def of(cls, pose: Any, twists: Any, offset: Any) -> PlacedFrame:
        """Return a frame at an offset from a link with a pose and twists."""
        link = Pose.from_matrix(pose)
        columns = [list(column) for column in zip(*twists, strict=True)]
        return cls(link @ Pose.from_matrix(offset), link.position, columns)

    def linear(self, point: Vector3) -> list[Vector3]:
        """Return the velocity of a point that is fixed to it, by each column."""
        arm = subtract(point, self.origin)
        return [add(three(c[:3]), cross(three(c[3:]), arm)) for c in self.twists]

    @property
    def angular(self) -> list[Vector3]:
        """Return its angular velocity, by each column."""
        return [three(column[3:]) for column in self.twists]


def by_rows(columns: Sequence[Vector3]) -> list[list[Number]]:
    """Return the three rows of columns."""
    return [[column[i] for column in columns] for i in range(3)]


def without_others(found: Rows, twists: MovingTwists) -> Any:
    """Return rows of the moved joints; the effect of the others is subtracted."""
    c = len(twists.joints)
    wanted = [
        w - row[c] if len(row) > c else w
        for w, row in zip(found.wanted, found.rows, strict=True)
    ]
    return [row[:c] for row in found.rows], wanted


def joint_indices(twists: MovingTwists, names: Sequence[str] | None) -> list[int]:
    """Return the indices of joints in q.

    Raises:
        UnknownName: A joint does not exist.
    """
    return list(selection_of(twists.moving.cell, names).inputs)
