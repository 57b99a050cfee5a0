"""The question `cell.line`: a tool on lines and arcs; its targets and options."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from armillary.collision.check import CollisionCheck
from armillary.errors import ArmillaryError, ModelError, ShapeError, quote
from armillary.ik.factory import solver_of
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.ik.query import as_vectors, check_tolerance
from armillary.ik.targets import as_matrices
from armillary.kernel.arguments import positive_number
from armillary.kinematics.kernels import Joints
from armillary.kinematics.state import State
from armillary.model.mount import WORLD
from armillary.model.workcell import Workcell
from armillary.planning.cartesian_path import CartesianPath, Tool
from armillary.planning.constraint import rotation_directions
from armillary.planning.follower import ToolFollower
from armillary.planning.refining import MOST_SAMPLES, Refiner
from armillary.planning.segments import Arc, Line, Segment, length_of
from armillary.planning.tool_curve import (
    Blend,
    Directions,
    PlannedCurve,
    ToolCurve,
    joined_curves,
    planned_curve,
)

__all__ = ["WantedCurve", "line", "lines_of"]

Array = npt.NDArray[np.float64]
Tolerance = tuple[float, float]

TOLERANCE: Final[Tolerance] = (1e-5, 1e-4)
"""How far the tool may be from its curve, if nothing is said [m, rad]."""

LEAST_TOLERANCE: Final = 1e-9
"""Inverse kinematics leaves less than this by a part [m, rad]."""

LONGEST: Final = 1000.0
LONGEST_TURN: Final = 10000.0
"""The longest curve [m], and how far the tool may turn on it [rad]."""

SAME_POSE: Final = 1e-6
"""A first target that is so near to where the tool starts is left out [m, rad]."""


def line(  # noqa: PLR0913
    cell: Workcell,
    frame: str,
    targets: Any,
    *,
    start: Any = None,
    blend: float = 0.0,
    blend_deviation: float | None = None,
    relative_to: str = WORLD,
    joints: Joints = None,
    state: State | None = None,
    rotation: str = "xyz",
    tolerance: Tolerance = TOLERANCE,
    step: float | None = None,
    check: CollisionCheck | None = None,
) -> CartesianPath:
    """Return joint positions along which a frame follows lines and arcs.

    Between samples the joints move straight; samples are as near as needed so that the
    frame is proven to be within the tolerance of the curve everywhere. Joints that the
    frame leaves free, and external axes, move smoothly, as `ik.path` has them.

    Args:
        cell: What has the frame.
        frame: The frame that moves, a tool.
        targets: What it follows: poses (k, 4, 4), or as quaternions (k, 7), or
            positions (k, 3), each at the end of a straight line, or a list of these,
            `arm.Line` and `arm.Arc`. Without `start` the first is the pose that it
            begins at.
        start: Joint positions to begin at, shape (n,) or a state, on whose branch the
            path stays. By default the branch with the smoothest path is chosen.
        blend: How far from corners blends begin [m]; 0 for none, so that the tool must
            stop there. Segments may have their own.
        blend_deviation: In place of `blend`, how far from corners blends may pass [m];
            they are as large as that and their segments allow.
        relative_to: The frame in which targets are given; it may be moved by joints,
            such as those of a positioner.
        joints: Names of the n joints that may move, in the order of q; the others stay
            at home, or as in `state`. By default all.
        state: Whose attachments, moved bases and other joints count.
        rotation: About which of the tool's axes its rotation counts, as for `Cell.ik`:
            all; two, so that it may spin about the third; or none.
        tolerance: How far from the curve the frame may be [m, rad].
        step: The largest distance of samples [m]; by default the tolerance decides.
        check: A check such as `cell.collision(state)`, of the same state: the path ends
            where its links touch, see `Planner.along`.

    Returns:
        The path; where it cannot be followed to its end, as far as it can, with a
        reason.

    Raises:
        UnknownName: A frame or joint does not exist.
        ShapeError: An array does not fit.
        ModelError: Targets make no curve: there is one point alone, a segment has no
            length, points of an arc are on a line, or blends do not fit; the check is
            of another cell or state; or `rotation` names one axis alone.
    """
    directions = rotation_directions(rotation)
    check_tolerance(tolerance)
    if min(tolerance) < LEAST_TOLERANCE:
        raise ModelError(
            f"Tolerances below {LEAST_TOLERANCE:.0e} are lost in rounding; "
            f"{tolerance} was given."
        )
    solver = solver_of(
        cell,
        frame,
        relative_to=relative_to,
        joints=joints,
        state=state,
        rotation=rotation,
    )
    tool = Tool(cell, frame, relative_to, solver.joints, state, directions)
    if check is not None:
        tool.accept(check)
    blends = Blend(length_of("blend", blend), None)
    if blend_deviation is not None:
        blends = blends._replace(
            deviation=length_of("blend_deviation", blend_deviation)
        )
    most = math.inf if step is None else positive_number("step=", step)
    options: Any = {"tolerance": tolerance, "step": most, "check": check}
    came = None if start is None else _start(solver, start)
    (path,) = lines_of(solver, tool, [WantedCurve(targets, came, blends)], **options)
    if isinstance(path, ArmillaryError):
        raise path
    return path


class WantedCurve(NamedTuple):
    """A curve that a tool is to follow.

    Attributes:
        targets: What it follows, as for `line`.
        start: Joint positions to begin at, shape (n,); None for any.
        blend: How corners are blended where segments do not say.
    """

    targets: Any
    start: Array | None
    blend: Blend


def lines_of(
    solver: InverseKinematics,
    tool: Tool,
    asked: Sequence[WantedCurve],
    *,
    tolerance: Tolerance = TOLERANCE,
    step: float = math.inf,
    check: CollisionCheck | None = None,
) -> list[CartesianPath | ArmillaryError]:
    """Return the paths along several curves at once, each as if it were alone.

    Args:
        solver: Inverse kinematics of the tool.
        tool: What follows them.
        asked: The curves.
        tolerance: As for `line`.
        step: As for `line`.
        check: As for `line`.

    Returns:
        For each the path, or what `line` raises for it.
    """
    found: list[Any] = [None] * len(asked)
    curves: list[PlannedCurve] = []
    numbers: list[tuple[int, list[int]]] = []
    for k, (each, first) in enumerate(zip(asked, _firsts(solver, asked), strict=True)):
        try:
            curve, own = _curve(each, first, tool.directions)
        except (ModelError, ShapeError) as error:
            found[k] = error
            continue
        curves.append(curve)
        numbers.append((k, own))
    refiner = Refiner(solver, tool, tolerance, step)
    followers: list[ToolFollower] = []
    places: list[int] = []
    for curve, (k, own) in zip(
        joined_curves(curves) if curves else (), numbers, strict=True
    ):
        try:
            _check_size(curve, step)
        except ModelError as error:
            found[k] = error
            continue
        followers.append(ToolFollower(refiner, tool, curve, asked[k].start, own))
        places.append(k)
    for k, path in zip(places, ToolFollower.paths(followers, check), strict=True):
        found[k] = path
    return found


def _firsts(
    solver: InverseKinematics, asked: Sequence[WantedCurve]
) -> Iterator[Array | None]:
    """Yield the pose that each curve begins at, None where its targets say."""
    starts = [each.start for each in asked if each.start is not None]
    if not starts:
        poses = iter(())
    elif len(starts) == 1:
        poses = iter(solver.numeric.problem.fk(starts[0]))
    else:
        poses = iter(solver.numeric.problem.fk(np.stack(starts))[:, 0])
    for each in asked:
        yield None if each.start is None else np.asarray(next(poses))


def _start(solver: InverseKinematics, given: Any) -> Array:
    """Return the joint positions that a path begins at, shape (n,).

    Raises:
        ShapeError: They have another shape, or are not finite.
    """
    if isinstance(given, State):
        problem = solver.numeric.problem
        given = given.bound(problem.tree.cell).q[list(problem.selection.inputs)]
    start = as_vectors(given, "start", len(solver.joints), ())
    if start.ndim != 1 or not np.isfinite(start).all():
        raise ShapeError(
            f"start= needs {len(solver.joints)} finite joint positions, not "
            f"{quote(given)}."
        )
    return start


def _curve(
    asked: WantedCurve, first: Array | None, directions: Directions
) -> tuple[PlannedCurve, list[int]]:
    """Return the curve, and which target each of its segments leads to.

    Args:
        asked: Its targets.
        first: The pose that it begins at, shape (4, 4); None where targets say.
        directions: Which axes of the tool have directions that count.

    Raises:
        ShapeError: Targets have another shape.
        ModelError: They make no curve.
    """
    segments = _segments(asked.targets)
    numbers = list(range(len(segments)))
    if first is None:
        opening = segments[0] if segments else None
        if not isinstance(opening, Line) or opening.to.shape != (4, 4):
            raise ModelError(
                "Without start=, the first target is the pose that the path begins at: "
                "give a pose (4, 4) there, or start= with joint positions."
            )
        first = np.asarray(opening.to)
        segments, numbers = segments[1:], numbers[1:]
    elif segments and _is_at(segments[0], first, directions):
        segments, numbers = segments[1:], numbers[1:]
    if not segments:
        raise ModelError(
            "A path of one point leads nowhere: give at least one target besides its "
            "start."
        )
    pairs = zip(numbers, segments, strict=True)
    names = [f"Target {k} ({type(each).__name__})" for k, each in pairs]
    return planned_curve(first, segments, names, asked.blend, directions), numbers


def _check_size(curve: ToolCurve, step: float) -> None:
    """Refuse a curve that has too many samples.

    Raises:
        ModelError: It has.
    """
    turns = float(curve.way.sum())
    if curve.length > LONGEST or turns > LONGEST_TURN:
        raise ModelError(
            f"This curve is {curve.length:.6g} m long and turns the tool by "
            f"{turns:.6g} rad; the most is {LONGEST:.6g} m and {LONGEST_TURN:.6g} rad. "
            "Lengths are in metres, angles in radians."
        )
    if curve.length / step > MOST_SAMPLES:
        raise ModelError(
            f"A step of {step:.6g} m makes more than {MOST_SAMPLES} samples of "
            f"{curve.length:.6g} m."
        )


def _is_at(segment: Segment, X: Array, directions: Directions) -> bool:
    """Return whether a segment is a line that ends where the tool is."""
    if not isinstance(segment, Line) or segment.to.shape != (4, 4):
        return False
    apart = np.abs(segment.to - X)[:, [*directions, 3]]
    return bool(apart.max() <= SAME_POSE)


def _segments(targets: Any) -> list[Segment]:
    """Return targets as segments.

    Raises:
        ShapeError: One has another shape.
        ModelError: One is not finite, or no rigid pose.
    """
    if isinstance(targets, Line | Arc):
        return [targets]
    if not (isinstance(targets, list | tuple) and _is_mixed(targets)):
        places = as_matrices(targets)
        core = 1 if places.shape[-1:] == (3,) else 2
        if places.ndim == core:
            places = places[None]
        if places.ndim != core + 1 or places.shape[-core:] not in {(3,), (4, 4)}:
            raise ShapeError(
                "Targets are poses (k, 4, 4), (k, 7) or (k, 8), positions (k, 3), or a "
                "list of such and of arm.Line and arm.Arc; an array of shape "
                f"{np.shape(cast('Any', targets))} was given."
            )
        targets = places
    segments: list[Segment] = []
    for k, each in enumerate(cast("Any", targets)):
        if isinstance(each, Line | Arc):
            segments.append(each)
            continue
        try:
            segments.append(Line(each))
        except (ShapeError, ModelError) as error:
            text = str(error).replace("to=", "it")
            raise type(error)(f"Target {k}: {text}") from error
    return segments


def _is_mixed(targets: Any) -> bool:
    """Return whether some targets are segments, or of different shapes."""
    if any(isinstance(each, Line | Arc) for each in targets):
        return True
    try:
        return len({np.shape(each) for each in targets}) > 1
    except ValueError:  # one has rows of unequal length
        return False
