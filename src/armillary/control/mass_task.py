"""The rows of a task of the centre of mass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from armillary.control import tasks
from armillary.control.task_parts import (
    POSE,
    VECTOR,
    PlacedFrame,
    Records,
    Rows,
    TaskStages,
    by_rows,
    without_others,
)
from armillary.errors import ModelError
from armillary.kernel.pipeline import Each, Stage, program
from armillary.kernel.tables import Table, index, reals
from armillary.kinematics.kernels import chosen_axes
from armillary.kinematics.moving_links import POSES
from armillary.kinematics.moving_twists import TWISTS, MovingTwists
from armillary.kinematics.state import State
from armillary.spatial.vector import cross, three

__all__ = ["of_centre_of_mass"]

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
    for k, link in enumerate(cell.links):
        if link.inertia is None:
            continue
        row, pose = twists.moving.fixed_to(state.tree, k)
        own = float(link.inertia.mass)
        frame = pose @ link.primary
        turned = np.array(frame.rotate(link.inertia.first_moment))
        mass[row] = mass.get(row, 0.0) + own
        moment[row] = moment.get(row, 0.0) + turned + own * np.array(frame.position)
    rows = [row for row in sorted(mass) if row and mass[row] > 0.0]
    if not rows:
        raise ModelError(
            "No moving link of this cell has a mass, so that it has no centre of mass; "
            "give links an inertia=."
        )
    total = sum(mass[row] for row in rows)
    records = {
        "mass_pose": np.array(rows),
        "mass_twists": np.array(rows),
        "share": np.array([mass[row] / total for row in rows]),
        "mass_centre": np.array([moment[row] / mass[row] for row in rows]),
    }
    return {MASSES: records}


def of_centre_of_mass(
    task: tasks.CentreOfMass, k: int, twists: MovingTwists
) -> TaskStages:
    """Return the stages of a task of the centre of mass, the k-th."""
    chosen = chosen_axes(task.axes, "axes")
    if not any(chosen):
        raise ModelError(
            "A CentreOfMass task requests no coordinate: axes= is empty. Name some, "
            "such as axes='xy'."
        )
    C = twists.columns

    def begin(gain: Any) -> Any:
        return [0.0] * 3, [[0.0] * C for _ in range(3)]

    def gather(
        mass_pose: Any,
        mass_twists: Any,
        share: Any,
        mass_centre: Any,
        centre: Any,
        moves: Any,
    ) -> Any:
        at = PlacedFrame.of(mass_pose, mass_twists, np.eye(4)[:3])
        p = at.pose @ three(mass_centre)
        rows = by_rows(at.linear(p))
        return (
            [a + share * b for a, b in zip(centre, p, strict=True)],
            [
                [a + share * b for a, b in zip(old, new, strict=True)]
                for old, new in zip(moves, rows, strict=True)
            ],
        )

    def end(centre: Any, moves: Any, target: Any, rate: Any, gain: Any) -> Any:
        kept = [i for i in range(3) if chosen[i]]
        found = Rows(
            [list(moves[i]) for i in kept],
            [rate[i] + gain * (target[i] - centre[i]) for i in kept],
        )
        return without_others(found, twists)

    sums = {f"centre_{k}": VECTOR, f"moves_{k}": (3, C)}
    record = {
        "mass_pose": POSE,
        "mass_twists": (6, C),
        "share": (),
        "mass_centre": VECTOR,
    }
    names = " ".join(sums)
    last = {**sums, f"target_{k}": VECTOR, f"target_rate_{k}": VECTOR, f"gain_{k}": ()}
    table = Table(
        MASSES,
        (
            index("mass_pose", POSES),
            index("mass_twists", TWISTS),
            reals("share"),
            reals("mass_centre", VECTOR),
        ),
    )
    return TaskStages(
        task=task,
        number=k,
        target=VECTOR,
        rate=VECTOR,
        fields=(reals(f"gain_{k}"),),
        stages=(
            program(begin, names, **{f"gain_{k}": ()}),
            Each(MASSES, (program(gather, names, **record, **sums),)),
            program(end, f"rows_{k} wanted_{k}", **last),
        ),
        weights=(task.weight,) * sum(chosen),
        curvature=_curvature(k, twists, chosen, record),
        tables=(table,),
        records=partial(_mass_records, twists),
    )


def _curvature(
    k: int,
    twists: MovingTwists,
    chosen: Sequence[bool],
    record: Mapping[str, tuple[int, ...]],
) -> tuple[Stage, ...]:
    """Return the stages that write the second derivatives of the centre of mass.

    Those of each mass are w x v, as in `frame_tasks.py`, weighted by its share.

    Args:
        k: The number of the task.
        twists: Of the moving links.
        chosen: Which of x, y and z count.
        record: The fields of masses.
    """

    def begin(gain: Any) -> Any:
        return [[0.0] * twists.columns for _ in range(3)]

    def gather(
        mass_pose: Any, mass_twists: Any, share: Any, mass_centre: Any, bends: Any
    ) -> Any:
        at = PlacedFrame.of(mass_pose, mass_twists, np.eye(4)[:3])
        moves = at.linear(at.pose @ three(mass_centre))
        turned = [cross(w, v) for w, v in zip(at.angular, moves, strict=True)]
        return [
            [a + share * b for a, b in zip(old, new, strict=True)]
            for old, new in zip(bends, by_rows(turned), strict=True)
        ]

    def end(bends: Any) -> Any:
        return [list(bends[i][: len(twists.joints)]) for i in range(3) if chosen[i]]

    name, bends = f"bends_{k}", {f"bends_{k}": (3, twists.columns)}
    return (
        program(begin, name, **{f"gain_{k}": ()}),
        Each(MASSES, (program(gather, name, **record, **bends),)),
        program(end, f"curvature_{k}", **bends),
    )
