"""Inertia and forces as a frame feels them: the operational space."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Self

from armillary.dynamics.bodies import GROUND, Bodies
from armillary.dynamics.forward import mass_solver
from armillary.dynamics.inverse import inertial_wrench, transmitted_wrenches
from armillary.dynamics.mass_matrix import mass_matrix
from armillary.dynamics.multibody import Multibody
from armillary.dynamics.sparse import add_to
from armillary.errors import ModelError, quote
from armillary.model.frame import FrameRef
from armillary.model.tree import Tree
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.ldl import LDLFactor, Rows, inner
from armillary.spatial.pose import Pose
from armillary.spatial.twist import (
    ZERO6,
    Vector6,
    add6,
    inverse_transform_twist,
    inverse_transform_wrench,
    power,
    transform_wrench,
    turn,
)
from armillary.spatial.vector import Number, transpose

__all__ = [
    "Cut",
    "TwistRows",
    "frame_pose",
    "null_space_projector",
    "operational_inertia",
    "reaction",
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


# the wrench that a frame passes on to what it carries


class Cut(NamedTuple):
    """What a frame carries.

    Attributes:
        frame: The frame.
        bodies: The bodies that are behind it, and that none of these carries.
        links: The links that are fixed to the same body as the frame.
    """

    frame: FrameRef
    bodies: tuple[int, ...]
    links: tuple[int, ...]

    @classmethod
    def at(cls, tree: Tree, bodies: Bodies, frame: str) -> Self:
        """Return what a frame carries; of a link, that and the link itself.

        frame: Its qualified name.

        Raises:
            ModelError: A loop closes around it.
        """
        at = tree.cell.frame(frame)
        links = tree.carried_by([frame])
        if at.link >= 0 and tree.is_link(frame):
            links = links | {at.link}
        _check_loops(tree, links, frame)
        holder, _ = bodies.holder(at)
        behind = [
            k
            for k, row in enumerate(bodies.rows)
            if row.link in links and row.parent == holder
        ]
        fixed = sorted(link for link in links if bodies.fixed[link][0] == holder)
        return cls(at, tuple(behind), tuple(fixed))

    def inertia(self, tree: Tree, bodies: Bodies) -> SpatialInertia:
        """Return the inertia of `links`, in the frame of their body."""
        total = SpatialInertia.zero()
        for link in self.links:
            inertia = tree.links[link].inertia
            if inertia is not None:
                pose = bodies.fixed[link][1] @ tree.links[link].primary
                total += inertia.transformed(pose)
        return total


def _check_loops(tree: Tree, links: Collection[int], frame: str) -> None:
    """Refuse loops through a cut: how they share the load is not known."""
    for placed in tree.cell.joints.placed_loops:
        if (placed.a.link in links) != (placed.b.link in links):
            raise ModelError(
                f"The wrench at {quote(frame)} is unknown: {placed.loop.label} also "
                "joins what the frame carries to the rest of the cell, and takes a "
                "part of the load. Ask for a frame that carries all of the loop, or "
                "none of it."
            )


def reaction(
    bodies: Multibody,
    cut: Cut,
    carried: SpatialInertia,
    axes: FrameRef,
    qd: Sequence[Number],
    qdd: Sequence[Number],
) -> Vector6:
    """Return the wrench [N, N m] on what is behind a cut, about its frame's origin.

    Args:
        bodies: In their configuration.
        cut: What is behind it.
        carried: The inertia of `cut.links`.
        axes: The frame in whose axes the wrench is written.
        qd: The rates of the independent coordinates.
        qdd: Their accelerations.
    """
    rates = bodies.all_rates(qd)
    motion = bodies.accelerations(rates, bodies.all_accelerations(rates, qdd))
    wrenches = transmitted_wrenches(bodies, motion)
    holder, X = bodies.bodies.holder(cut.frame)
    moved = ZERO6, bodies.ground
    if holder != GROUND:
        moved = motion.velocity[holder], motion.acceleration[holder]
    total = inertial_wrench(carried, *moved)
    for k in cut.bodies:
        total = add6(total, transform_wrench(bodies.poses[k], wrenches[k]))
    wrench = inverse_transform_wrench(X, total)
    if axes == cut.frame:
        return wrench
    R_WF = frame_pose(bodies, cut.frame).rotation
    R_WA = frame_pose(bodies, axes).rotation
    return turn(transpose(R_WA), turn(R_WF, wrench))
