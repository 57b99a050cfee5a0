"""A joint under test: where it is looked at."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.errors import JointError
from armillary.model.joint import Joint
from armillary.model.parameters import is_numeric, numbers_of
from armillary.model.unit import Unit
from armillary.model.upper_bound import choices, edges

Array = npt.NDArray[np.float64]

LARGEST_STEP: Final = 0.02  # of the range
SMALLEST_STEP: Final = 5e-4
LEAST_SIZE: Final = 1e-3
TRIES: Final = 40
GRID: Final = 400


@dataclass(frozen=True, eq=False)
class Subject:
    """A joint and the coordinates at which its laws are tested.

    Attributes:
        joint: The joint.
        lower: Least coordinate [unit of the joint].
        upper: Greatest coordinate.
        is_given: Whether the caller gave the range, so that all of it must be good.
        grid: Coordinates all over the range, ends included, rising.
        edges: Neighbouring coordinates between which choices change, shape (m, 2).
        q: Coordinates at which the motion is smooth, shape (n,).
        step: How far it is smooth on both sides of each, shape (n,).
        random: Seeded numbers.
        round_trip: Saves and loads a joint.
    """

    joint: Joint
    lower: float
    upper: float
    is_given: bool
    grid: Array
    edges: Array
    q: Array
    step: Array
    random: np.random.Generator
    round_trip: Callable[[Joint], Joint]

    def placements(self, q: Array) -> Array:
        """Return X_FM at each coordinate, shape (n, 4, 4)."""
        moved = np.tile(np.eye(4), (len(q), 1, 1))
        moved[:, :3] = self.joint.motion.poses(q)
        return self.joint.precursor.matrix() @ moved

    @cached_property
    def size(self) -> float:
        """Return how far from the origin the motion goes over the grid [m]."""
        distance = np.linalg.norm(self.placements(self.grid)[:, :3, 3], axis=1)
        return float(np.nanmax(distance, initial=0.0))


def subject_of(
    joint: Joint,
    lower: float | None,
    upper: float | None,
    samples: int,
    random: np.random.Generator,
    round_trip: Callable[[Joint], Joint],
) -> Subject:
    """Choose the range and the samples for a joint.

    Raises:
        JointError: The range is empty, or the motion is not smooth anywhere in it.
    """
    low, high = _range(joint, lower, upper)
    grid = np.linspace(low, high, GRID)
    is_given = lower is not None and upper is not None
    if not is_given:
        defined = np.isfinite(joint.motion.poses(grid)).all(axis=(1, 2))
        if not defined.any():
            raise JointError(
                f"{type(joint).__name__}.pose is not defined anywhere in "
                f"[{low:g}, {high:g}]; give lower= and upper=."
            )
        grid = grid[defined]
    changes = edges(joint.motion.program, grid)
    q, step = _smooth_samples(joint, grid, changes, samples, random)
    return Subject(
        joint, low, high, is_given, grid, changes, q, step, random, round_trip
    )


def _range(
    joint: Joint, lower: float | None, upper: float | None
) -> tuple[float, float]:
    """Return a finite range, in order, where the caller leaves it open."""
    low = -math.inf if lower is None else float(lower)
    high = math.inf if upper is None else float(upper)
    low, high = min(low, high), max(low, high)
    width = natural_range(joint)
    if math.isinf(low):
        low = high - 2.0 * width if math.isfinite(high) else -width
    if math.isinf(high):
        high = low + 2.0 * width
    if not low < high:
        raise JointError(f"A joint cannot be checked over the range [{low}, {high}].")
    return low, high


def natural_range(joint: Joint) -> float:
    """Return a coordinate so large that all of the motion shows below it."""
    if joint.period is not None:
        return float(joint.period)
    if joint.unit is Unit.RADIAN:
        return 2.0 * math.pi
    names = [name for name in joint.__struct_fields__ if name != "precursor"]
    values = tuple(getattr(joint, name) for name in names)
    sizes = [abs(number) for number in numbers_of(tuple(filter(is_numeric, values)))]
    return 3.0 * max([LEAST_SIZE, *sizes]) if sizes else 3.0


def _smooth_samples(
    joint: Joint,
    grid: Array,
    changes: Array,
    samples: int,
    random: np.random.Generator,
) -> tuple[Array, Array]:
    """Return random coordinates and how far to both sides the motion is smooth."""
    low, high = float(grid[0]), float(grid[-1])
    width = high - low
    breaks = np.array([low, high, *changes[:, 0]])
    ranges: list[tuple[float, float]] = []
    for _ in range(TRIES * samples):
        if len(ranges) == samples:
            break
        q = random.uniform(low, high)
        step = min(LARGEST_STEP * width, 0.9 * float(np.abs(breaks - q).min()))
        if step > SMALLEST_STEP * width and _is_smooth(joint, q, step):
            ranges.append((q, step))
    if not ranges:
        raise JointError(
            f"{type(joint).__name__}.pose is nowhere defined and smooth in "
            f"[{low:g}, {high:g}]."
        )
    array = np.array(ranges)
    return array[:, 0], array[:, 1]


def _is_smooth(joint: Joint, q: float, step: float) -> bool:
    """Tell whether no choice changes around `q` and all poses there are defined."""
    around = q + step * np.linspace(-1.0, 1.0, 9)
    decided = choices(joint.motion.program, around)
    defined = np.isfinite(joint.motion.poses(around)).all()
    return bool(defined) and bool((decided == decided[0]).all())
