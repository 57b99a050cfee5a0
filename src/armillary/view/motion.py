"""Motions to play: joint positions, states or a trajectory, with their times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, cast, final, runtime_checkable

import numpy as np
import numpy.typing as npt

from armillary.control.obstacles import as_boxes
from armillary.control.simulation import ControlledMotion
from armillary.dynamics.trajectory import Trajectory
from armillary.errors import ModelError, ShapeError
from armillary.kinematics.all_frames import poses
from armillary.kinematics.state import State, bound_state
from armillary.model.end_effectors import default_frame, end_effectors
from armillary.model.shape import Colour
from armillary.model.shapes import Box, Capsule, Sphere
from armillary.trajectories.motion import Motion
from armillary.trajectories.motion_parts import Samples, sample_times
from armillary.view.chart import Chart
from armillary.view.kinds import FARTHEST, DrawnSurface
from armillary.view.surfaces import TOLERANCE

__all__ = ["Playable", "PlayedMotion", "motion_of", "trace_of"]

Array = npt.NDArray[np.float64]

MOST_TRACED: Final = 500
"""Instants of a motion that its trace goes through, or all there are."""
RATE: Final = 30.0  # samples a second, where nothing is said
OBSTACLE_COLOUR: Final[Colour] = (0.86, 0.27, 0.22, 0.75)
THIN: Final = 1e-9
"""Boxes that are thinner than this part of their length are drawn as capsules."""


@final
@dataclass(frozen=True, eq=False, slots=True)
class MovingObstacles:
    """Shapes that move.

    Attributes:
        surfaces: One for each; where its size changes, of the greatest.
        poses: Where they are at each instant, shape (instants, k, 4, 4).
    """

    surfaces: tuple[DrawnSurface, ...]
    poses: Array


NOTHING: Final = MovingObstacles((), np.zeros((1, 0, 4, 4)))


def obstacles_of_motion(motion: ControlledMotion) -> MovingObstacles:
    """Return what a controller avoided, at each instant of a motion without a batch."""
    count = len(motion.time) - 1
    avoided = [motion.obstacles(k) for k in range(count)]
    known = [each for each in avoided if each is not None]
    if not known:
        return NOTHING
    known.append(known[-1].after(float(motion.time[-1] - motion.time[-2])))
    numbers = np.stack([as_boxes(each.numbers) for each in known])
    numbers = np.where(np.isfinite(numbers), numbers, FARTHEST)
    X = np.zeros((*numbers.shape[:2], 4, 4))
    X[..., :3, :3] = numbers[..., 10:].reshape(*numbers.shape[:2], 3, 3)
    X[..., :3, 3] = numbers[..., :3].clip(-FARTHEST, FARTHEST)
    X[..., 3, 3] = 1.0
    sizes, radii = 2.0 * numbers[..., 3:6].max(axis=0), numbers[..., 9].max(axis=0)
    surfaces = [_surface(size, float(r)) for size, r in zip(sizes, radii, strict=True)]
    return MovingObstacles(tuple(surfaces), X)


def _surface(size: Array, radius: float) -> DrawnSurface:
    shape: Any
    if size[:2].max() > THIN * size[2]:
        shape = Box(size=tuple((size + 2.0 * radius).tolist()))
    elif size[2] > 0.0:
        shape = Capsule(radius=radius, length=float(size[2]))
    else:
        shape = Sphere(radius=radius)
    triangles = shape.triangles(TOLERANCE * max(radius, 0.1 * float(size.max())))
    vertices = triangles.vertices.astype(np.float32)
    return DrawnSurface(vertices, triangles.faces.astype(np.uint32), OBSTACLE_COLOUR)


@final
@dataclass(frozen=True, slots=True)
class PlayedMotion:
    """States at instants.

    Attributes:
        times: Instants [s], ascending, shape (k,).
        state: From the number of an instant to the state.
        obstacles: What was avoided, if the motion is that of a controller.
        absent: From the number of an instant to the manipulators that are not there.
        make_charts: Makes `charts`, which takes far longer than the states.
    """

    times: Array
    state: Callable[[int], State]
    obstacles: MovingObstacles = NOTHING
    absent: Callable[[int], frozenset[str]] = lambda k: frozenset()
    make_charts: Callable[[], tuple[Chart, ...]] = tuple[Chart, ...]

    @property
    def charts(self) -> tuple[Chart, ...]:
        """Return what is shown below the scene; the first one is of this motion."""
        return self.make_charts()

    def at(self, time: float) -> State:
        """Return the state at the last instant that is not after a time."""
        return self.state(self.instant(time))

    def instant(self, time: float) -> int:
        """Return the number of the last instant that is not after a time."""
        k = int(np.searchsorted(self.times, time, side="right")) - 1
        return min(max(k, 0), len(self.times) - 1)


@runtime_checkable
class Playable(Protocol):
    """What makes a `PlayedMotion` of itself, such as the timeline of a program."""

    @property
    def duration(self) -> float:
        """Return how long it takes [s]."""
        ...

    def played(self, *, rate: float = RATE) -> PlayedMotion:
        """Return states at instants, so many a second."""
        ...


def trace_of(motion: PlayedMotion) -> npt.NDArray[np.float32]:
    """Return lines along which end effectors move in a motion, shape (k, 2, 3).

    They are those of manipulators with joints; else the one frame that is meant where
    nobody names one.
    """
    last = len(motion.times) - 1
    count = min(last + 1, MOST_TRACED)
    states = [motion.state(k) for k in np.linspace(0, last, count).astype(int).tolist()]
    cell = states[0].cell
    moving = [each for each in cell.manipulators if each.joint_names]
    frames = [name for each in moving for name in end_effectors(each)]
    frames = frames or [default_frame(cell)]
    placed = [poses(cell, state) for state in states]
    points = np.array([[each[frame][:3, 3] for frame in frames] for each in placed])
    lines = np.stack([points[:-1], points[1:]], axis=2).reshape(-1, 2, 3)
    has_moved = (lines[:, 0] != lines[:, 1]).any(axis=1)
    return lines[has_moved].astype(np.float32)


def motion_of(
    start: State, motion: Any, *, times: npt.ArrayLike | None, rate: float | None
) -> PlayedMotion:
    """Return the motion that was given in one of its forms.

    Args:
        start: What joint positions leave open: attachments, bases.
        motion: A `Motion`, joint positions, shape (k, n) [m or rad], a list of states,
            a `Trajectory`, a `ControlledMotion`, `Samples` of a path, or what makes a
            `PlayedMotion` of itself, as a timeline does.
        times: Instants [s], ascending, shape (k,).
        rate: Samples a second, where there are no times.

    Raises:
        ShapeError: The shape of the positions or the times does not fit.
        ModelError: A number is not finite, times do not ascend, both times and a rate
            are given, or the rate is not above 0.
        StateError: A state is not one of this cell.
    """
    if isinstance(motion, Playable | PlayedMotion):
        return _of_playable(start, motion, times, rate)
    if isinstance(motion, Motion):
        return _of_motion(motion.bound(start), times, rate)
    if isinstance(motion, Trajectory):
        if motion.batch:
            raise ShapeError(
                f"A trajectory of the batch {motion.batch} shows many motions; choose "
                "one of them."
            )
        if times is None and rate is None:
            times = motion.time
        return PlayedMotion(_instants(len(motion.time), times, rate), motion.state)
    if isinstance(motion, ControlledMotion | Samples):
        if motion.q.ndim != 2:
            raise ShapeError(
                f"A motion of the batch {motion.q.shape[:-2]} is of many cells; choose "
                "one of them, such as motion.row(0), or timed.sampled(rate=, row=0)."
            )
        if times is None and rate is None:
            times = motion.time
        played = motion_of(start, motion.q, times=times, rate=rate)
        if isinstance(motion, Samples):
            return played
        return replace(played, obstacles=obstacles_of_motion(motion))
    if isinstance(motion, Sequence) and motion and isinstance(motion[0], State):
        states = [bound_state(start.cell, each) for each in cast(Any, motion)]
        return PlayedMotion(_instants(len(states), times, rate), states.__getitem__)
    return _of_positions(start, motion, times, rate)


def _of_playable(
    start: State,
    motion: Playable | PlayedMotion,
    times: npt.ArrayLike | None,
    rate: float | None,
) -> PlayedMotion:
    if times is not None or (rate is not None and isinstance(motion, PlayedMotion)):
        raise ModelError("What is played here has its own times: leave out times=.")
    if isinstance(motion, Playable):
        motion = motion.played(rate=RATE if rate is None else rate)
    bound_state(start.cell, motion.state(0))
    return motion


def _of_positions(
    start: State, motion: Any, times: npt.ArrayLike | None, rate: float | None
) -> PlayedMotion:
    try:
        Q = np.array(motion, dtype=np.float64)  # which nobody else changes
    except (TypeError, ValueError) as error:
        raise ShapeError(
            "A motion is a Motion, an array of joint positions, a list of states, a "
            f"Trajectory, a ControlledMotion or Samples: {error}."
        ) from error
    if Q.ndim != 2 or Q.shape[1] != len(start.q) or not len(Q):
        raise ShapeError(
            f"A motion has the shape (k, {len(start.q)}): a row of joint positions for "
            f"each instant; this one has {Q.shape}."
        )
    if not np.isfinite(Q).all():
        row = int(np.argmin(np.isfinite(Q).all(axis=1)))
        raise ModelError(f"Row {row} of the motion holds a number that is not finite.")
    return PlayedMotion(
        _instants(len(Q), times, rate), lambda k: start.replace(q=Q[k].tolist())
    )


def _of_motion(
    motion: Motion, times: npt.ArrayLike | None, rate: float | None
) -> PlayedMotion:
    if times is None:
        times = sample_times(motion.duration, RATE if rate is None else rate)
        rate = None
    instants = _instants(np.size(times), times, rate)
    return PlayedMotion(instants, lambda k: motion.state(float(instants[k])))


def _instants(count: int, times: npt.ArrayLike | None, rate: float | None) -> Array:
    if times is None:
        rate = RATE if rate is None else rate
        if not 0.0 < rate < np.inf:
            raise ModelError(f"The rate must be a number above 0, not {rate!r}.")
        with np.errstate(over="ignore"):
            times = np.arange(count) / rate
    elif rate is not None:
        raise ModelError("Give times or a rate, not both.")
    instants = np.array(times, dtype=np.float64)
    if instants.shape != (count,):
        raise ShapeError(
            f"There are {count} instants; times have the shape {instants.shape}."
        )
    if not (np.isfinite(instants).all() and (np.diff(instants) >= 0.0).all()):
        raise ModelError("Times must be finite and must not decrease.")
    return instants
