"""The rows of a task of the centre of mass."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from armillary.control import tasks
from armillary.control.columns import VECTOR
from armillary.control.task_stages import (
    Maker,
    PlacedFrame,
    Records,
    TaskGoal,
    TaskRows,
    TaskStages,
    by_rows,
    columns_of_task,
    made_once,
    without_others,
)
from armillary.errors import ModelError
from armillary.kernel.columns import each
from armillary.kernel.stages import Stage
from armillary.kinematics.kernels import chosen_axes
from armillary.kinematics.moving_twists import MovingTwists
from armillary.kinematics.state import State
from armillary.spatial.vector import Matrix, Number, Vector, cross, three

__all__ = ["MAKERS"]

MASSES: Final = "masses"
"""The table with a record for each moving link that has a mass."""


def _mass_records(twists: MovingTwists, state: State) -> Mapping[str, Records]:
    """Return the records of the masses of links, those fixed to another with that.

    Raises:
        ModelError: No moving link has a mass.
    """
    cell = twists.moving.cell
    mass: dict[int, float] = {}
    moment: dict[int, Any] = {}
    # Links that do not move against each other become one mass, with one centre.
    for k, link in enumerate(cell.links):
        if link.inertia is None:
            continue
        row, pose = twists.moving.fixed_to(state.tree, k)
        own = float(link.inertia.mass)
        frame = pose @ link.primary
        # m c, rotated and moved to the frame of the moving link.
        turned = np.array(frame.rotate(link.inertia.first_moment))
        mass[row] = mass.get(row, 0.0) + own
        moment[row] = moment.get(row, 0.0) + turned + own * np.array(frame.position)
    # The first row is the world: what is fixed does not change the velocity.
    rows = [row for row in sorted(mass) if row and mass[row] > 0.0]
    if not rows:
        raise ModelError(
            "No moving link of this cell has a mass, so that it has no centre of mass; "
            "give links an inertia=."
        )
    # Shares add up to 1, so that the sum over links is the centre of mass.
    total = sum(mass[row] for row in rows)
    records = {
        "mass_pose": np.array(rows),
        "mass_twists": np.array(rows),
        "share": np.array([mass[row] / total for row in rows]),
        "mass_centre": np.array([moment[row] / mass[row] for row in rows]),
    }
    return {MASSES: records}


class LinkMass(NamedTuple):
    """The link that a mass moves with, its part of all mass, and where it is."""

    mass_pose: Matrix
    mass_twists: Matrix
    share: Number
    mass_centre: Vector


class CentreOfMasses(NamedTuple):
    """The sum over masses: where their centre is, and its velocity per unit rate."""

    centre: Vector
    centre_rates: Matrix


def _of_centre_of_mass(
    task: tasks.CentreOfMass, k: int, twists: MovingTwists
) -> TaskStages:
    """Return the stages of a task of the centre of mass, the k-th."""
    axes = chosen_axes(task.axes, "axes")
    chosen = [i for i in range(3) if axes[i]]
    if not chosen:
        raise ModelError(
            "A CentreOfMass task requests no coordinate: axes= is empty. Name some, "
            "such as axes='xy'."
        )
    # The sum over links is a loop over a table, so that states add payloads without
    # compiling.
    columns = columns_of_task(twists, k, m=len(chosen), target=VECTOR, rate=VECTOR)
    table, bends = columns.table(MASSES, *columns.group(LinkMass)), columns.bends()
    no_bends = partial(_no_bends, width=twists.columns)
    end = partial(_curvature, chosen=chosen, c=len(twists.joints))

    def made() -> tuple[tuple[Stage, ...], tuple[Stage, ...]]:
        rows = (
            columns.stage(partial(_begin, width=twists.columns)),
            each(table, columns.stage(_add_mass)),
            columns.stage(partial(_end, chosen=chosen, twists=twists)),
        )
        curvature = (
            columns.stage(no_bends, writes=bends),
            each(table, columns.stage(_add_bends, writes=bends)),
            columns.stage(end, writes=columns.curvature()),
        )
        return rows, curvature

    stages, curvature = made_once(twists, ("centre of mass", k, axes), made)
    return TaskStages(
        task=task,
        columns=columns,
        stages=stages,
        weights=(task.weight,) * len(chosen),
        curvature=curvature,
        tables=(table,),
        records=partial(_mass_records, twists),
    )


def _begin(gain: Number, *, width: int) -> CentreOfMasses:
    del gain
    return CentreOfMasses([0.0] * 3, [[0.0] * width for _ in range(3)])


def _add_mass(mass: LinkMass, total: CentreOfMasses) -> CentreOfMasses:
    """Return the centre of mass, sum_i share_i p_i, with one more link."""
    # The mass at p moves as a point of its link.
    link = PlacedFrame.of(mass.mass_pose, mass.mass_twists, np.eye(4)[:3])
    p = link.pose @ three(mass.mass_centre)
    return CentreOfMasses(
        [a + mass.share * b for a, b in zip(total.centre, p, strict=True)],
        _plus(total.centre_rates, mass.share, by_rows(link.linear(p))),
    )


def _plus(total: Matrix, share: Number, rows: Matrix) -> Matrix:
    return [
        [a + share * b for a, b in zip(old, new, strict=True)]
        for old, new in zip(total, rows, strict=True)
    ]


def _end(
    total: CentreOfMasses, goal: TaskGoal, *, chosen: list[int], twists: MovingTwists
) -> TaskRows:
    target, rate, gain = goal
    # Axes are those of the world.
    wanted = [rate[i] + gain * (target[i] - total.centre[i]) for i in chosen]
    task = TaskRows([list(total.centre_rates[i]) for i in chosen], wanted)
    return without_others(task, twists)


def _no_bends(gain: Number, *, width: int) -> Matrix:
    del gain
    return [[0.0] * width for _ in range(3)]


def _add_bends(mass: LinkMass, bends: Matrix) -> Matrix:
    """Return the second derivatives, sum_i share_i w x v, with one more link.

    w x v is that of each point, as in `frame_tasks.py`.
    """
    link = PlacedFrame.of(mass.mass_pose, mass.mass_twists, np.eye(4)[:3])
    moves = link.linear(link.pose @ three(mass.mass_centre))
    turned = [cross(w, v) for w, v in zip(link.angular, moves, strict=True)]
    return _plus(bends, mass.share, by_rows(turned))


def _curvature(bends: Matrix, *, chosen: list[int], c: int) -> Matrix:
    return [list(bends[i][:c]) for i in chosen]


MAKERS: Final[Mapping[type, Maker]] = {tasks.CentreOfMass: _of_centre_of_mass}
