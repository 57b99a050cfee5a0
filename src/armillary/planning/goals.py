"""Goals of planners: joint positions, or poses, whose branches are all goals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias, cast, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.errors import ModelError, ShapeError, StateError
from armillary.ik.factory import solver_of
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.ik.reason import Reason
from armillary.kinematics.kernels import Joints, selection_of
from armillary.kinematics.state import State
from armillary.model.workcell import WORLD, Workcell
from armillary.planning.plan import PlanReason
from armillary.spatial.pose import Pose

__all__ = ["FreeAxes", "Goals", "goals_of", "positions_of"]

Array = npt.NDArray[np.float64]

Given: TypeAlias = npt.ArrayLike | Pose | State | Sequence[Any]
"""What a goal may be."""

ANGLES: Final = np.linspace(-np.pi, np.pi, 12, endpoint=False)
"""Where the elbow of an arm of seven joints is tried [rad]."""

REASONS: Final = {
    Reason.OUT_OF_REACH: PlanReason.OUT_OF_REACH,
    Reason.LIMITS: PlanReason.LIMITS,
    Reason.INVALID_TARGET: PlanReason.INVALID,
}


class FreeAxes(NamedTuple):
    """Of which frame poses are, and which axes of them count; see `Cell.ik`."""

    frame: str | None = None
    relative_to: str = WORLD
    position: str = "xyz"
    rotation: str = "xyz"
    axes: str = "target"


@final
class Goals(NamedTuple):
    """Joint positions that are goals.

    Attributes:
        q: Joint positions [m or rad], shape (k, n).
        numbers: To which of the goals that were given each belongs, shape (k,).
        reason: Why there are none, if there are none.
    """

    q: Array
    numbers: npt.NDArray[np.int64]
    reason: PlanReason | None = None


def check_alike(given: Any, state: State, name: str) -> None:
    """Check that a state differs from that of a check in q and rates alone.

    Raises:
        StateError: Other parts are attached in it, other bases moved, or it is one of
            another cell.
    """
    if not isinstance(given, State):
        return
    if given.cell is not state.cell and given.cell != state.cell:
        raise StateError(f"The {name} of a plan is a state of another cell.")
    if given.placements != state.placements:
        raise StateError(
            f"In the state that is the {name} of a plan other parts are attached, or "
            "other bases moved, than in that of the check. Make the planner with "
            "cell.collision(state) of that state, or give its q."
        )


def positions_of(given: Any, state: State, name: str) -> Array:
    """Return joint positions of a start: of a state, or numbers.

    Args:
        given: What was given.
        state: The state of the check.
        name: What it is called in messages.

    Raises:
        ShapeError: They are not as many numbers as joints.
        StateError: As for `check_alike`.
    """
    n = len(state.q)
    check_alike(given, state, name)
    q = _numbers(given.q if isinstance(given, State) else given)
    if q is None or q.shape != (n,):
        what = "no array of numbers" if q is None else f"of shape {q.shape}"
        raise ShapeError(
            f"The {name} of a plan is joint positions of shape ({n},), or a state; "
            f"what was given is {what}."
        )
    return q


def goals_of(
    check: CollisionCheck,
    start: Array,
    given: Any,
    free: FreeAxes,
    fixed: Sequence[int] = (),
) -> Goals:
    """Return the joint positions that are goals.

    Args:
        check: Of which cell; attachments, moved bases and the branch of loops are those
            of its state.
        start: Where a plan starts; joints that do not move the frame stay there.
        given: What was given; see `Planner`.
        free: The frame of poses, and their axes.
        fixed: Joints that stay there, too.

    Raises:
        ShapeError: A goal has another shape.
        ModelError: A goal is a pose and there is no frame.
        StateError: A goal is a state in which other parts are attached.
        UnknownName: The frame does not exist.
    """
    n, cell, state = len(start), check.cell, check.state
    if free.frame is None and type(given) is np.ndarray and _are_rows(given, n):
        rows = np.ascontiguousarray(given.reshape(-1, n))
        return Goals(rows, np.arange(len(rows)))
    is_list = isinstance(given, list | tuple)
    for each in cast("Sequence[Any]", given if is_list else [given]):
        check_alike(each, state, "goal")
    if free.frame is not None:
        # Names count also where no goal is a pose.
        cell.frame(free.frame)
        cell.frame(free.relative_to)
    rows, poses = _sorted(given, n, free.frame is not None)
    q, numbers, reason = [r for _, r in rows], [k for k, _ in rows], None
    if poses and len(fixed) and not np.isfinite(start).all():
        return Goals(np.empty((0, n)), np.empty(0, np.int64), PlanReason.INVALID)
    if poses:
        mobile = [k for k in range(n) if k not in fixed]
        names = None
        if len(fixed):
            names = [cell.joint_names[k] for k in mobile]
            state = state.replace(q=start)
        solver = _solver(cell, state, free, names)
        # Of joints that do not move the frame, answers have the positions of the state.
        frames = [cell.frame(free.relative_to), cell.frame(str(free.frame))]
        inputs = selection_of(cell, None, None, frames).inputs
        moved = [k for k in mobile if k in inputs]
        columns = [mobile.index(k) for k in moved]
        for k, X in poses:
            found = _branches(solver, X, start[mobile])
            if not len(found) and reason is None:
                number = int(solver(X).reason)
                reason = REASONS.get(Reason(number), PlanReason.OUT_OF_REACH)
            for branch in found:
                row = start.copy()
                row[moved] = branch[columns]
                q.append(row)
                numbers.append(k)
    if not q:
        return Goals(np.empty((0, n)), np.empty(0, np.int64), reason)
    return Goals(np.ascontiguousarray(q), np.array(numbers, np.int64))


def _are_rows(given: npt.NDArray[Any], n: int) -> bool:
    """Return whether an array is joint positions, as most goals are."""
    shape = given.shape
    is_table = len(shape) in {1, 2} and shape[-1] == n
    return is_table and given.dtype == np.float64 and given.size > 0


def _numbers(given: Any) -> Array | None:
    """Return an array of floats, or None for anything else."""
    try:
        return np.ascontiguousarray(given, np.float64)
    except (TypeError, ValueError):
        return None


Numbered: TypeAlias = list[tuple[int, Array]]


def _sorted(given: Any, n: int, has_frame: bool) -> tuple[Numbered, Numbered]:
    """Return goals that are joint positions, and those that are poses, numbered."""
    whole = _one(given, n, has_frame)
    if whole is None and isinstance(given, list | tuple):
        every: list[Any] = list(given)  # pyright: ignore[reportUnknownArgumentType]
        found = [_one(each, n, has_frame) for each in every]
    else:
        found = [whole]
    rows: Numbered = []
    poses: Numbered = []
    number = 0
    if not found:
        found = [None]
    for each in found:
        if each is None:
            raise ShapeError(
                f"A goal is joint positions of shape ({n},) or (k, {n}), a pose of "
                "shape (4, 4) of a frame, or a list of these; what was given is "
                f"{_described(given)}."
            )
        is_pose, values = each
        for value in values:
            (poses if is_pose else rows).append((number, value))
            number += 1
    if poses and not has_frame:
        raise ModelError(
            "A goal is a pose: say of which frame, as in planner(q, X, frame='tool0')."
        )
    return rows, poses


def _one(given: Any, n: int, has_frame: bool) -> tuple[bool, Array] | None:
    """Return whether a goal is poses, and their or its rows; None if it is neither."""
    if isinstance(given, State):
        return False, np.asarray(given.q, float)[np.newaxis]
    if isinstance(given, Pose):
        return True, np.asarray(given.matrix(), float)[np.newaxis]
    array = _numbers(given)
    if array is None or not array.size:
        return None
    # Of four joints, four rows could be either: they are a pose where a frame is named.
    is_square = array.ndim in {2, 3} and array.shape[-2:] == (4, 4)
    if is_square and (has_frame or n != 4 or array.ndim == 3):
        return True, array.reshape(-1, 4, 4)
    if array.ndim in {1, 2} and array.shape[-1] == n:
        return False, array.reshape(-1, n)
    return None


def _described(given: Any) -> str:
    array = _numbers(given)
    return repr(given)[:60] if array is None else f"of shape {array.shape}"


def _solver(
    cell: Workcell, state: State, free: FreeAxes, joints: Joints
) -> InverseKinematics:
    assert free.frame is not None
    return solver_of(
        cell,
        free.frame,
        relative_to=free.relative_to,
        joints=joints,
        state=state,
        position=free.position,
        rotation=free.rotation,
        axes=free.axes,
    )


def _branches(solver: InverseKinematics, X: Array, start: Array) -> Array:
    """Return all branches that reach a pose, shape (k, n)."""
    if not np.isfinite(X).all():
        return np.empty((0, len(start)))
    try:
        return solver.all(X, near=start).distinct()
    except ModelError:  # the elbow of seven joints is free: some of its angles
        found = [solver.all(X, near=start, arm_angle=a).distinct() for a in ANGLES]
        return np.concatenate(found)
