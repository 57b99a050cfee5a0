"""The rows of tasks of frames, from poses and twists of links."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from armillary.control import tasks
from armillary.control.columns import TINY, VECTOR, StepColumns
from armillary.control.task_stages import (
    STEP_MAKERS,
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
from armillary.errors import ModelError, quote
from armillary.kernel.arguments import numbers_of
from armillary.kinematics.kept_formulas import kept_formula
from armillary.kinematics.kernels import chosen_axes
from armillary.kinematics.moving_twists import MovingTwists
from armillary.kinematics.state import State
from armillary.spatial.ldl import inner
from armillary.spatial.pose import Pose
from armillary.spatial.rotation import log
from armillary.spatial.vector import (
    Matrix,
    Number,
    Rows,
    Vector,
    Vector3,
    add,
    apply,
    cross,
    dot,
    largest,
    multiply,
    norm,
    scale,
    subtract,
    three,
    transpose,
)
from armillary.trace import Port, Program
from armillary.trace.functions import (
    absolute,
    atan2,
    maximum,
    minimum,
    select,
    sqrt,
)

__all__ = ["MAKERS"]

FrameTask: TypeAlias = tasks.Frame | tasks.Position | tasks.AlignAxis | tasks.LookAt

NEAREST: Final = 1e-3
"""Distance to which points count that an axis is to point at, if they are nearer [m].

Directions to nearer ones change too fast with the motion of joints.
"""

OPPOSITE: Final = 1e-9
"""Sine of the angle to the opposite direction below which any way to turn will do."""


class LinkFrame(NamedTuple):
    """The link of a frame, its twists, and where the frame is in it."""

    pose: Matrix
    twists: Matrix
    offset: Matrix


class BaseFrame(NamedTuple):
    """The same of the frame that a task is relative to."""

    base_pose: Matrix
    base_twists: Matrix
    base_offset: Matrix


class FrameGoal(NamedTuple):
    """What the formulas of a task of a frame are given.

    Attributes:
        frame: The frame.
        base: What it is relative to.
        goal: The target, its rate and the gain.
        setting: Greatest speeds, or the axis in the frame.
    """

    frame: PlacedFrame
    base: PlacedFrame
    goal: TaskGoal
    setting: Vector


def _placed(
    task: FrameTask, columns: StepColumns, twists: MovingTwists, state: State
) -> Records:
    """Return the values of the settings `LinkFrame` and `BaseFrame` in a state."""
    values: list[Any] = []
    for name in (task.frame, task.relative_to):
        frame = twists.moving.cell.frame(name)
        # What a frame is fixed to depends on attachments: a row of moving links,
        # and its pose in that link.
        row, pose = twists.moving.fixed_to(state.tree, frame.link)
        values += [row, row, (pose @ frame.pose).matrix()[:3]]
    ports = columns.group(LinkFrame, BaseFrame)
    return dict(zip((port.name for port in ports), values, strict=True))


def _relative(a: Sequence[Vector3], b: Sequence[Vector3]) -> list[Vector3]:
    return [subtract(x, y) for x, y in zip(a, b, strict=True)]


def _of_frame(task: tasks.Frame, k: int, twists: MovingTwists) -> TaskStages:
    """Return the stages of a task of a pose, the k-th."""
    position = chosen_axes(task.position, "position")
    rotation = chosen_axes(task.rotation, "rotation")
    if not any(position + rotation):
        raise ModelError(
            "A Frame task requests no coordinate: position= and rotation= are both "
            "empty. Name axes, such as position='xyz'."
        )
    axes: Any = task.relative_to if task.axes is None else task.axes
    if not (isinstance(axes, str) and axes in {task.frame, task.relative_to}):
        raise ModelError(
            f"axes= of a task is its frame, {quote(task.frame)}, or what it is "
            f"relative to, {quote(task.relative_to)}; not {quote(axes)}."
        )
    # Coordinates are chosen along the axes of the frame, or of what it is relative to.
    in_frame = axes == task.frame

    def rows(given: FrameGoal) -> TaskRows:
        frame, base, (target, rate, gain), most = given
        desired = base.pose @ Pose.from_matrix(target)
        # Rows and errors are written in these axes, of which some are chosen.
        R = (frame if in_frame else base).pose.rotation
        request = _Request.empty()
        if any(position):
            # The target moves with the base: velocities are relative to that point.
            at, to = frame.pose.position, desired.position
            moves = _relative(frame.linear(at), base.linear(to))
            pull = _Pull(subtract(to, at), base.pose.rotate(rate[:3]), gain, most[0])
            request.add(moves, pull, R, position)
        if any(rotation):
            # The rotation from the frame to its target, as a vector: axis times angle.
            turn = multiply(desired.rotation, transpose(frame.pose.rotation))
            moves = _relative(frame.angular, base.angular)
            pull = _Pull(log(turn), base.pose.rotate(rate[3:]), gain, most[1])
            request.add(moves, pull, R, rotation)
        return request.task

    def bends(given: FrameGoal) -> Matrix:
        frame, base, goal, _ = given
        # Only the position bends: see `_curved`.
        to = (base.pose @ Pose.from_matrix(goal.target)).position
        R = (frame if in_frame else base).pose.rotation
        bent = _curved(frame, base, frame.pose.position, to, R, position)
        # Rotations are left out: at the nearest orientation joints can still turn it.
        return [*bent, *([0.0] * len(frame.twists) for _ in range(sum(rotation)))]

    weights = (task.weight,) * sum(position)
    # 1 rad counts as much as sqrt(rotation_weight) m.
    weights += (task.weight * task.rotation_weight,) * sum(rotation)
    columns = columns_of_task(twists, k, m=len(weights), target=(4, 4), rate=(6,))
    speeds = _Setting(columns.most(), (task.speed, task.turn_speed))
    formulas = _Formulas(("pose", position, rotation, in_frame), rows, bends)
    return _stages_of_frames(task, columns, twists, formulas, speeds, weights)


def _of_position(task: tasks.Position, k: int, twists: MovingTwists) -> TaskStages:
    """Return the stages of a task of a position, the k-th."""
    chosen = chosen_axes(task.axes, "axes")
    if not any(chosen):
        raise ModelError(
            "A Position task requests no coordinate: axes= is empty. Name some, such "
            "as axes='z'."
        )

    def rows(given: FrameGoal) -> TaskRows:
        frame, base, (target, rate, gain), most = given
        # J is the velocity of the frame relative to the target that the base carries.
        at, to = frame.pose.position, base.pose @ three(target)
        moves = _relative(frame.linear(at), base.linear(to))
        request = _Request.empty()
        pull = _Pull(subtract(to, at), base.pose.rotate(rate), gain, most[0])
        request.add(moves, pull, base.pose.rotation, chosen)
        return request.task

    def bends(given: FrameGoal) -> Matrix:
        frame, base, goal, _ = given
        at, to = frame.pose.position, base.pose @ three(goal.target)
        return _curved(frame, base, at, to, base.pose.rotation, chosen)

    weights = (task.weight,) * sum(chosen)
    columns = columns_of_task(twists, k, m=len(weights), target=VECTOR, rate=VECTOR)
    speeds = _Setting(columns.most(), (task.speed, 0.0))
    formulas = _Formulas(("position", chosen), rows, bends)
    return _stages_of_frames(task, columns, twists, formulas, speeds, weights)


def _of_align_axis(task: tasks.AlignAxis, k: int, twists: MovingTwists) -> TaskStages:
    """Return the stages of a task of a direction, the k-th."""

    def rows(given: FrameGoal) -> TaskRows:
        frame, base, (target, rate, gain), axis = given
        a = frame.pose.rotate(axis)
        # Divided by the greatest entry first, so that squares do not overflow.
        greatest = largest(target)
        part = scale(1.0 / greatest, three(target))  # NaN where there is no direction
        length = norm(part)
        to = base.pose.rotate(scale(1.0 / length, part))
        length = greatest * length
        # The target is a direction of any length: only its rate across it turns it.
        turns = scale(1.0 / length, _across(base.pose.rotate(rate), to))
        moves = [cross(w, a) for w in _relative(frame.angular, base.angular)]
        # Turn towards the target, and with it where that turns.
        wanted = add(scale(gain, _turn(a, to)), _carried(turns, to, a))
        return TaskRows(by_rows(moves), list(wanted))

    return _of_direction("axis", task, k, twists, rows)


def _of_look_at(task: tasks.LookAt, k: int, twists: MovingTwists) -> TaskStages:
    """Return the stages of a task to look at a point, the k-th."""

    def rows(given: FrameGoal) -> TaskRows:
        frame, base, (target, rate, gain), axis = given
        a, at = frame.pose.rotate(axis), frame.pose.position
        to = base.pose @ three(target)
        # Nearer points count as NEAREST away: the rate of a direction is v / distance.
        ray = subtract(to, at)
        length = sqrt(maximum(dot(ray, ray), NEAREST * NEAREST))
        d = scale(1.0 / length, ray)
        moves: list[Vector3] = []
        # The velocity of the target as the frame sees it, by each joint.
        slides = _relative(base.linear(to), frame.linear(at))
        for w, v in zip(frame.angular, slides, strict=True):
            # The direction to the target turns as the frame and the base move;
            # carried to the axis it is subtracted from the turning of that.
            turn = _carried(scale(1.0 / length, _across(v, d)), d, a)
            moves.append(subtract(cross(w, a), turn))
        turns = scale(1.0 / length, _across(base.pose.rotate(rate), d))
        wanted = add(scale(gain, _turn(a, d)), _carried(turns, d, a))
        return TaskRows(by_rows(moves), list(wanted))

    return _of_direction("look at", task, k, twists, rows)


def _of_direction(
    what: str,
    task: tasks.AlignAxis | tasks.LookAt,
    k: int,
    twists: MovingTwists,
    rows: Callable[[FrameGoal], TaskRows],
) -> TaskStages:
    # Checked here, as formulas cannot raise errors for numbers.
    axis = numbers_of("axis=", task.axis)
    if axis.shape != VECTOR or not (np.isfinite(axis).all() and axis.any()):
        raise ModelError(
            f"axis= is three finite numbers that are not all 0, not {task.axis!r}."
        )

    def bends(given: FrameGoal) -> Matrix:
        frame, base, _, axis = given
        # The second derivative of a direction on a circle about w: w x (w x a).
        a = frame.pose.rotate(axis)
        turns = _relative(frame.angular, base.angular)
        return by_rows([cross(w, cross(w, a)) for w in turns])

    columns = columns_of_task(twists, k, m=3, target=VECTOR, rate=VECTOR)
    unit = _Setting(columns.axis(), axis / np.linalg.norm(axis))
    weights = (task.weight,) * 3
    formulas = _Formulas((what,), rows, bends)
    return _stages_of_frames(task, columns, twists, formulas, unit, weights)


class _Setting(NamedTuple):
    """A setting that the formulas of a task read, with its value."""

    port: Port
    value: Any


class _Formulas(NamedTuple):
    """The formulas of a task.

    Attributes:
        decided_by: What they differ by: the kind of task, and its options.
        rows: From what the task is given to its rows.
        bends: To their second derivatives.
    """

    decided_by: tuple[Any, ...]
    rows: Callable[[FrameGoal], TaskRows]
    bends: Callable[[FrameGoal], Matrix]


def _stages_of_frames(
    task: FrameTask,
    columns: StepColumns,
    twists: MovingTwists,
    formulas: _Formulas,
    setting: _Setting,
    weights: tuple[float, ...],
) -> TaskStages:
    """Return the stages of a task of a frame.

    Args:
        task: The task.
        columns: Its columns.
        twists: Of the moving links.
        formulas: Its formulas.
        setting: What these read beside the goal.
        weights: Of its rows.
    """
    cell = twists.moving.cell
    # Unknown names are refused before anything is traced.
    for name in (task.frame, task.relative_to):
        cell.frame(name)
    _, rows, bends = formulas
    c = len(twists.joints)

    def request(
        frame: LinkFrame, base: BaseFrame, goal: TaskGoal, setting: Vector
    ) -> TaskRows:
        # Link, then the frame in it; twists are those of the link.
        placed = PlacedFrame.of(*frame), PlacedFrame.of(*base)
        return without_others(rows(FrameGoal(*placed, goal, setting)), twists)

    def curvature(
        frame: LinkFrame, base: BaseFrame, goal: TaskGoal, setting: Vector
    ) -> Matrix:
        placed = PlacedFrame.of(*frame), PlacedFrame.of(*base)
        # Other joints do not bend rows: their rates are given.
        return [list(row[:c]) for row in bends(FrameGoal(*placed, goal, setting))]

    read = {"setting": setting.port}

    def made() -> tuple[Program, Program]:
        second = columns.stage(curvature, writes=columns.curvature(), **read)
        return columns.stage(request, **read), second

    sizes = columns.number, *sorted(columns.sizes.items())
    parts = *formulas.decided_by, twists.joints, twists.others, *sizes, setting.port
    first, second = made_once(
        twists,
        parts,
        lambda: kept_formula("frame task", parts, made, made_by=STEP_MAKERS),
    )
    return TaskStages(
        task=task,
        columns=columns,
        reads=(*columns.group(LinkFrame, BaseFrame), setting.port),
        stages=(first,),
        weights=weights,
        curvature=(second,),
        settings=lambda state: {
            **_placed(task, columns, twists, state),
            setting.port.name: setting.value,
        },
    )


class _Pull(NamedTuple):
    """How a vector is to change.

    Attributes:
        error: What is missing.
        rate: How fast its target changes.
        gain: How fast the error is to fade [1/s].
        most: The greatest rate that the error asks for.
    """

    error: Vector3
    rate: Vector3
    gain: Number
    most: Number


class _Request(NamedTuple):
    """The rows of a task, and what they are to be, while they are collected."""

    rows: list[list[Number]]
    wanted: list[Number]

    @classmethod
    def empty(cls) -> _Request:
        """Return no rows."""
        return cls([], [])

    @property
    def task(self) -> TaskRows:
        """Return them all."""
        return TaskRows(*self)

    def add(
        self, moves: Sequence[Vector3], pull: _Pull, axes: Rows, chosen: Sequence[bool]
    ) -> None:
        """Add rows of a vector, in some of its coordinates along axes.

        The error fades at the gain, but not faster than its greatest rate: both are
        those of the coordinates that count.
        """
        back = transpose(axes)
        error, rate = apply(back, pull.error), apply(back, pull.rate)
        parts = [x if counts else 0.0 for x, counts in zip(error, chosen, strict=True)]
        # The speed that the error asks for is bounded as a whole, not axis by axis, so
        # that the direction is kept.
        length = sqrt(maximum(inner(parts, parts), TINY))
        pace = minimum(pull.gain, pull.most / length)
        columns = [apply(back, move) for move in moves]
        for i, counts in enumerate(chosen):
            if counts:
                self.rows.append([column[i] for column in columns])
                self.wanted.append(pace * error[i] + rate[i])


def _curved(
    frame: PlacedFrame,
    base: PlacedFrame,
    at: Vector3,
    to: Vector3,
    axes: Rows,
    chosen: Sequence[bool],
) -> list[list[Number]]:
    """Return the second derivative of a position by each joint, in rows of `axes`.

    A joint with the twist (w, v) moves the point on a circle, with the acceleration
    w x v per unit rate; a joint that slides has w = 0. The rows are d^2 f_k / dq_j^2.

    Args:
        frame: Of the task.
        base: What it is relative to.
        at: The point, in the world [m].
        to: Its target, which moves with the base, in the world [m].
        axes: In which the position is written.
        chosen: Which of x, y and z count.
    """
    # w x v for each joint, of the motion relative to the base.
    moves = _relative(frame.linear(at), base.linear(to))
    turns = _relative(frame.angular, base.angular)
    # From the world to the axes that coordinates are chosen in.
    back = transpose(axes)
    bent = [apply(back, cross(w, v)) for w, v in zip(turns, moves, strict=True)]
    rows = by_rows(bent)
    return [row for row, counts in zip(rows, chosen, strict=True) if counts]


def _across(v: Vector3, d: Vector3) -> Vector3:
    """Return the part of v that is perpendicular to the unit vector d."""
    return subtract(v, scale(dot(v, d), d))


def _turn(a: Vector3, to: Vector3) -> Vector3:
    """Return the rate of a unit vector that turns it toward another one.

    Its length is the angle between them [rad]. It is perpendicular to a, as the rate of
    a direction is.
    """
    # The angle from sine and cosine is exact for small and for large ones.
    across = _across(to, a)
    sine, cosine = sqrt(maximum(dot(across, across), TINY)), dot(to, a)
    is_opposite = select(cosine < 0.0, select(sine < OPPOSITE, 1.0, 0.0), 0.0) > 0.0
    # From the opposite direction every way is as long: one that is across the axis.
    is_along = absolute(a[0]) > 0.7
    other = cross(a, (select(is_along, 0.0, 1.0), select(is_along, 1.0, 0.0), 0.0))
    some = scale(math.pi / sqrt(dot(other, other)), other)
    way = scale(atan2(sine, cosine) / sine, across)
    x, y, z = (select(is_opposite, u, v) for u, v in zip(some, way, strict=True))
    return x, y, z


def _carried(rate: Vector3, start: Vector3, end: Vector3) -> Vector3:
    """Return the rate of a unit vector after parallel transport to another direction.

    That is along the arc between them. It changes the angle between the two as it did
    at the start.
    """
    # Parallel transport along the arc: r - (r.e)(s + e) / (1 + s.e).
    part = dot(rate, end) / maximum(1.0 + dot(start, end), OPPOSITE * OPPOSITE)
    return subtract(rate, scale(part, add(start, end)))


MAKERS: Final[Mapping[type, Maker]] = {
    tasks.Frame: _of_frame,
    tasks.Position: _of_position,
    tasks.AlignAxis: _of_align_axis,
    tasks.LookAt: _of_look_at,
}
