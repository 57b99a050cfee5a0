"""The rows of tasks of frames, from poses and twists of links."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

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
from armillary.errors import ModelError, quote
from armillary.kernel.arguments import numbers_of
from armillary.kernel.pipeline import program
from armillary.kernel.tables import Field, index, reals
from armillary.kinematics.kernels import chosen_axes
from armillary.kinematics.moving_links import POSES
from armillary.kinematics.moving_twists import TWISTS, MovingTwists
from armillary.kinematics.state import State
from armillary.spatial.ldl import inner
from armillary.spatial.pose import Pose
from armillary.spatial.rotation import log
from armillary.spatial.vector import (
    Number,
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
from armillary.trace.functions import (
    absolute,
    atan2,
    maximum,
    minimum,
    select,
    sqrt,
)

__all__ = ["of_align_axis", "of_frame", "of_look_at", "of_position"]

TINY: Final = 1e-300

NEAREST: Final = 1e-3
"""Distance to which points count that an axis is to point at, if they are nearer [m].

Directions to nearer ones change too fast with the motion of joints.
"""

OPPOSITE: Final = 1e-9
"""Sine of the angle to the opposite direction below which any way to turn will do."""


def _placed_fields(k: int) -> tuple[Field, ...]:
    return tuple(
        field
        for name in ("", "base_")
        for field in (
            index(f"{name}pose_{k}", POSES),
            index(f"{name}twists_{k}", TWISTS),
            reals(f"{name}offset_{k}", POSE),
        )
    )


def _placed(task: Any, k: int, twists: MovingTwists, state: State) -> Records:
    """Return the values of `_placed_fields` in a state."""
    found: dict[str, Any] = {}
    for name, frame in (("", task.frame), ("base_", task.relative_to)):
        at = twists.moving.cell.frame(frame)
        row, pose = twists.moving.fixed_to(state.tree, at.link)
        found[f"{name}pose_{k}"] = row
        found[f"{name}twists_{k}"] = row
        found[f"{name}offset_{k}"] = (pose @ at.pose).matrix()[:3]
    return found


def _relative(a: Sequence[Vector3], b: Sequence[Vector3]) -> list[Vector3]:
    return [subtract(x, y) for x, y in zip(a, b, strict=True)]


def of_frame(task: Any, k: int, twists: MovingTwists) -> TaskStages:
    """Return the stages of a task of a pose, the k-th."""
    position = chosen_axes(task.position, "position")
    rotation = chosen_axes(task.rotation, "rotation")
    if not any(position + rotation):
        raise ModelError(
            "A Frame task requests no coordinate: position= and rotation= are both "
            "empty. Name axes, such as position='xyz'."
        )
    axes = task.relative_to if task.axes is None else task.axes
    if not (isinstance(axes, str) and axes in {task.frame, task.relative_to}):
        raise ModelError(
            f"axes= of a task is its frame, {quote(task.frame)}, or what it is "
            f"relative to, {quote(task.relative_to)}; not {quote(axes)}."
        )
    in_frame = axes == task.frame

    def rows(
        frame: PlacedFrame,
        base: PlacedFrame,
        target: Any,
        rate: Any,
        gain: Any,
        most: Any,
    ) -> Rows:
        goal = base.pose @ Pose.from_matrix(target)
        R = (frame if in_frame else base).pose.rotation
        found = Rows([], [])
        if any(position):
            at, to = frame.pose.position, goal.position
            moves = _relative(frame.linear(at), base.linear(to))
            pull = _Pull(subtract(to, at), base.pose.rotate(rate[:3]), gain, most[0])
            _add(found, moves, pull, R, position)
        if any(rotation):
            turn = multiply(goal.rotation, transpose(frame.pose.rotation))
            moves = _relative(frame.angular, base.angular)
            pull = _Pull(log(turn), base.pose.rotate(rate[3:]), gain, most[1])
            _add(found, moves, pull, R, rotation)
        return found

    def bends(frame: PlacedFrame, base: PlacedFrame, target: Any, *_: Any) -> Any:
        to = (base.pose @ Pose.from_matrix(target)).position
        R = (frame if in_frame else base).pose.rotation
        found = _curved(frame, base, frame.pose.position, to, R, position)
        # Rotations are left out: at the nearest orientation joints can still turn it.
        return [*found, *([0.0] * len(frame.twists) for _ in range(sum(rotation)))]

    given = {f"most_{k}": (task.speed, task.turn_speed)}
    weights = (task.weight,) * sum(position)
    weights += (task.weight * task.rotation_weight,) * sum(rotation)
    shapes = (4, 4), (6,)
    return _stages_of_frames(task, k, twists, (rows, bends), shapes, given, weights)


def of_position(task: tasks.Position, k: int, twists: MovingTwists) -> TaskStages:
    """Return the stages of a task of a position, the k-th."""
    chosen = chosen_axes(task.axes, "axes")
    if not any(chosen):
        raise ModelError(
            "A Position task requests no coordinate: axes= is empty. Name some, such "
            "as axes='z'."
        )

    def rows(
        frame: PlacedFrame,
        base: PlacedFrame,
        target: Any,
        rate: Any,
        gain: Any,
        most: Any,
    ) -> Rows:
        at, to = frame.pose.position, base.pose @ three(target)
        moves = _relative(frame.linear(at), base.linear(to))
        found = Rows([], [])
        pull = _Pull(subtract(to, at), base.pose.rotate(rate), gain, most[0])
        _add(found, moves, pull, base.pose.rotation, chosen)
        return found

    def bends(frame: PlacedFrame, base: PlacedFrame, target: Any, *_: Any) -> Any:
        at, to = frame.pose.position, base.pose @ three(target)
        return _curved(frame, base, at, to, base.pose.rotation, chosen)

    given = {f"most_{k}": (task.speed, 0.0)}
    weights = (task.weight,) * sum(chosen)
    shapes = VECTOR, VECTOR
    return _stages_of_frames(task, k, twists, (rows, bends), shapes, given, weights)


def of_align_axis(task: tasks.AlignAxis, k: int, twists: MovingTwists) -> TaskStages:
    """Return the stages of a task of a direction, the k-th."""

    def rows(
        frame: PlacedFrame,
        base: PlacedFrame,
        target: Any,
        rate: Any,
        gain: Any,
        axis: Any,
    ) -> Rows:
        a = frame.pose.rotate(axis)
        greatest = largest(target)
        part = scale(1.0 / greatest, three(target))  # NaN where there is no direction
        length = norm(part)
        to = base.pose.rotate(scale(1.0 / length, part))
        length = greatest * length
        turns = scale(1.0 / length, _across(base.pose.rotate(rate), to))
        moves = [cross(w, a) for w in _relative(frame.angular, base.angular)]
        wanted = add(scale(gain, _turn(a, to)), _carried(turns, to, a))
        return Rows(by_rows(moves), list(wanted))

    return _of_direction(task, k, twists, rows)


def of_look_at(task: tasks.LookAt, k: int, twists: MovingTwists) -> TaskStages:
    """Return the stages of a task to look at a point, the k-th."""

    def rows(
        frame: PlacedFrame,
        base: PlacedFrame,
        target: Any,
        rate: Any,
        gain: Any,
        axis: Any,
    ) -> Rows:
        a, at = frame.pose.rotate(axis), frame.pose.position
        to = base.pose @ three(target)
        ray = subtract(to, at)
        length = sqrt(maximum(dot(ray, ray), NEAREST * NEAREST))
        d = scale(1.0 / length, ray)
        moves: list[Vector3] = []
        slides = _relative(base.linear(to), frame.linear(at))
        for w, v in zip(frame.angular, slides, strict=True):
            turn = _carried(scale(1.0 / length, _across(v, d)), d, a)
            moves.append(subtract(cross(w, a), turn))
        turns = scale(1.0 / length, _across(base.pose.rotate(rate), d))
        wanted = add(scale(gain, _turn(a, d)), _carried(turns, d, a))
        return Rows(by_rows(moves), list(wanted))

    return _of_direction(task, k, twists, rows)


def _of_direction(task: Any, k: int, twists: MovingTwists, rows: Any) -> TaskStages:
    axis = numbers_of("axis=", task.axis)
    if axis.shape != VECTOR or not (np.isfinite(axis).all() and axis.any()):
        raise ModelError(
            f"axis= is three finite numbers that are not all 0, not {task.axis!r}."
        )

    def bends(frame: PlacedFrame, base: PlacedFrame, *given: Any) -> Any:
        a = frame.pose.rotate(given[-1])
        turns = _relative(frame.angular, base.angular)
        return by_rows([cross(w, cross(w, a)) for w in turns])

    weights = (task.weight,) * 3
    given = {f"axis_{k}": axis / np.linalg.norm(axis)}
    shapes = VECTOR, VECTOR
    return _stages_of_frames(task, k, twists, (rows, bends), shapes, given, weights)


def _stages_of_frames(
    task: Any,
    k: int,
    twists: MovingTwists,
    formulas: tuple[Any, Any],
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    given: Mapping[str, Any],
    weights: tuple[float, ...],
) -> TaskStages:
    """Return the stages of a task of a frame.

    Args:
        task: The task.
        k: Its number.
        twists: Of the moving links.
        formulas: Of its rows, and of their second derivatives. They take the frame,
            what it is relative to, the target, its rate, the gain, and `given`.
        shapes: Those of the target and of its rate.
        given: Further settings that it reads, with their values.
        weights: Of its rows.
    """
    target, rate = shapes
    cell = twists.moving.cell
    for name in (task.frame, task.relative_to):
        cell.frame(name)
    V = (6, twists.columns)
    more = {name: np.shape(value) for name, value in given.items()}
    inputs: dict[str, tuple[int, ...]] = {}
    for name in ("", "base_"):
        inputs |= {
            f"{name}pose_{k}": POSE,
            f"{name}twists_{k}": V,
            f"{name}offset_{k}": POSE,
        }
    inputs |= {f"target_{k}": target, f"target_rate_{k}": rate}
    inputs |= {f"gain_{k}": (), **more}

    rows, bends = formulas
    c = len(twists.joints)

    def equations(*values: Any) -> Any:
        frame, base = PlacedFrame.of(*values[:3]), PlacedFrame.of(*values[3:6])
        return without_others(rows(frame, base, *values[6:]), twists)

    def second(*values: Any) -> Any:
        frame, base = PlacedFrame.of(*values[:3]), PlacedFrame.of(*values[3:6])
        return [list(row[:c]) for row in bends(frame, base, *values[6:])]

    made = program(equations, f"rows_{k} wanted_{k}", **inputs)
    fields = (*_placed_fields(k), reals(f"gain_{k}"))
    fields += tuple(reals(name, shape) for name, shape in more.items())
    return TaskStages(
        task=task,
        number=k,
        target=target,
        rate=rate,
        fields=fields,
        stages=(made,),
        weights=weights,
        curvature=(program(second, f"curvature_{k}", **inputs),),
        settings=lambda state: {**_placed(task, k, twists, state), **given},
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


def _add(
    found: Rows,
    moves: Sequence[Vector3],
    pull: _Pull,
    axes: Any,
    chosen: Sequence[bool],
) -> None:
    """Add rows of a vector, in some of its coordinates along axes."""
    back = transpose(axes)
    error, rate = apply(back, pull.error), apply(back, pull.rate)
    parts = [x if counts else 0.0 for x, counts in zip(error, chosen, strict=True)]
    length = sqrt(maximum(inner(parts, parts), TINY))
    pace = minimum(pull.gain, pull.most / length)
    columns = [apply(back, move) for move in moves]
    for i, counts in enumerate(chosen):
        if counts:
            found.rows.append([column[i] for column in columns])
            found.wanted.append(pace * error[i] + rate[i])


def _curved(
    frame: PlacedFrame,
    base: PlacedFrame,
    at: Vector3,
    to: Vector3,
    axes: Any,
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
    moves = _relative(frame.linear(at), base.linear(to))
    turns = _relative(frame.angular, base.angular)
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
    across = _across(to, a)
    sine, cosine = sqrt(maximum(dot(across, across), TINY)), dot(to, a)
    is_opposite = select(cosine < 0.0, select(sine < OPPOSITE, 1.0, 0.0), 0.0) > 0.0
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
    part = dot(rate, end) / maximum(1.0 + dot(start, end), OPPOSITE * OPPOSITE)
    return subtract(rate, scale(part, add(start, end)))
