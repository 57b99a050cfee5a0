"""Targets of arms whose bases stand elsewhere in each row: placement in one call.

The solver knows a base at one pose B. Where it is at B' = D B, all that it carries is
moved by D, at the same joint positions. With the frame F and the frame R in which its
target T is given, at the poses that the solver knows, and D_F and D_R of the bases that
carry them, D_F F = D_R R T. So F = R T' with

    T' = R^-1 D_F^-1 D_R R T,

and T' is T where one base carries both. Else R must not move with the joints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError, printable, quote
from armillary.ik.avoidance import Avoidance
from armillary.ik.problem import Goal, IKProblem
from armillary.ik.query import IKQuery
from armillary.kinematics.placement import base_matrices, check_movable
from armillary.model.frame import FrameRef
from armillary.model.link_poses import poses_of
from armillary.model.workcell import IN_WORLD, WORLD_LINK

__all__ = ["with_bases"]

Array = npt.NDArray[np.float64]


def with_bases(problem: IKProblem, query: IKQuery, bases: Any) -> IKQuery:
    """Return a query of the targets with bases at other poses.

    Args:
        problem: What is reached, and by which joints.
        query: The targets.
        bases: Poses in the world by the names of manipulators, shape (..., 4, 4), whose
            leading dimensions broadcast to the batch.

    Raises:
        ShapeError: A shape does not fit.
        UnknownName: A manipulator does not exist.
        StateError: A base is fixed.
        ModelError: Joints move a base or the frame of targets, a matrix is not a pose,
            or some directions count along axes that do not turn with the targets.
    """
    if not isinstance(bases, Mapping) or not bases:
        untyped = cast("Any", bases)
        raise ModelError(
            "bases= takes poses by the names of manipulators, such as "
            f"bases={{'ur5': X}}, not {printable(repr(untyped))}."
        )
    bases = cast("Mapping[str, Any]", bases)
    tree, cell = problem.tree, problem.tree.cell
    names = tuple(sorted(map(str, bases)))
    given = [_matrices(name, bases[name], query.batch) for name in names]
    moved: dict[int, Array] = {}
    for name, X in zip(names, given, strict=True):
        check_movable(cell, name)
        number = cell.number(name)
        at = tree.bases[number].frame
        if tree.moving_joints(tree.path(WORLD_LINK, at.link)):
            raise ModelError(
                f"Joints move the base of {quote(name)} here; place it first, as in "
                "state=state.release(...), or give its rail in bases=."
            )
        (B,) = poses_of(tree, problem.selection.rest, [at], IN_WORLD)
        B_inverse = np.asarray(B.inverse().matrix(), np.float64)
        moved[tree.base_link(number)] = X @ B_inverse
    count = len(query.targets)
    targets = np.array(query.targets)
    for k, goal in enumerate(problem.goals):
        change = _change(problem, goal, moved)
        if change is not None:
            change = np.broadcast_to(change, (count, 4, 4))
            targets[:, k] = change @ targets[:, k]
    poses = np.stack([np.broadcast_to(X, (count, 4, 4)) for X in given], axis=1)
    avoid = query.avoid
    if isinstance(avoid, Avoidance):
        avoid = avoid.with_bases(names)
    return query._replace(targets=targets, bases=poses, avoid=avoid)


def _matrices(name: str, given: Any, batch: tuple[int, ...]) -> Array:
    """Return the poses of a base, shape (4, 4) or (count, 4, 4)."""
    X = base_matrices(name, given)
    if X.ndim == 2:
        return X
    try:
        return np.broadcast_to(X, (*batch, 4, 4)).reshape(-1, 4, 4)
    except ValueError as error:
        raise ShapeError(
            f"bases= of shape {X.shape} for {quote(name)} does not fit targets of "
            f"batch {batch}."
        ) from error


def _change(problem: IKProblem, goal: Goal, moved: Mapping[int, Array]) -> Array | None:
    """Return R^-1 D_F^-1 D_R R, shape (4, 4) or (count, 4, 4); None for identity."""
    tree = problem.tree

    def carrier(frame: FrameRef) -> int | None:
        return next((k for k in tree.ancestors(frame.link) if k in moved), None)

    of_frame, of_reference = carrier(goal.frame), carrier(goal.relative_to)
    if of_frame == of_reference:
        return None
    path = tree.path(WORLD_LINK, goal.relative_to.link)
    if set(tree.moving_joints(path)) & set(problem.selection.inputs):
        raise ModelError(
            "With bases=, the frame relative_to= that targets are given in must not "
            "move with the joints that are found, unless the same base carries both."
        )
    counts = (*goal.position, *goal.rotation)
    whole = {goal.position, goal.rotation} <= {(True,) * 3, (False,) * 3}
    if not (goal.in_target or whole):
        kept = "".join(a for a, count in zip("xyz" * 2, counts, strict=True) if count)
        raise ModelError(
            f"With bases=, directions ({kept}) count along axes of relative_to=, which "
            "turn against the base: use axes='target', or let all of them count."
        )
    (R,) = poses_of(tree, problem.selection.rest, [goal.relative_to], IN_WORLD)
    R_W = np.asarray(R.matrix(), np.float64)
    change = np.eye(4)
    if of_frame is not None:
        change = np.linalg.inv(moved[of_frame]) @ change
    if of_reference is not None:
        change = change @ moved[of_reference]
    return np.linalg.inv(R_W) @ change @ R_W
