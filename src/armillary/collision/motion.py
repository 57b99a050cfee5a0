"""Motions between joint positions, proven to be free of collision or not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self, final

import numpy as np
import numpy.typing as npt

from armillary.collision.lengths import nearness_of, number_of
from armillary.collision.motion_kernel import (
    PositionBox,
    motion_code,
    motion_columns,
    motion_kernel,
)
from armillary.collision.placed_pairs import PlacedPairs
from armillary.collision.precision import double_precision
from armillary.errors import ModelError
from armillary.kernel import Kernel
from armillary.kernel.column_function import ColumnFunction, PostponedColumns
from armillary.kinematics.ending import Ending
from armillary.kinematics.moving_links import straight_links
from armillary.kinematics.speed_bounds import SpeedBounds, speeds_are_known

__all__ = ["MotionProver", "MotionReason", "Motions", "sampled"]

Array = npt.NDArray[np.float64]

LEAST_LEVEL: Final = -16
MOST_LEVEL: Final = 16
"""Levels of the boxes of joint positions within which bounds of speeds hold.

Motions in one box share a kernel; a box of level k is 2^k times that of the limits.
"""

SAMPLES: Final = 1 << 14
"""Samples of a motion that are tested together."""

MOST_SAMPLES: Final = 1 << 30
"""Samples that a motion may take."""


class MotionReason(Ending):
    """How far a motion is free of collision, and why no farther."""

    FREE = 0, "free"
    CONTACT = 1, "links touch, or come nearer than the margin"
    NOT_PROVEN = 2, "neither proven to be free nor found to touch"
    INVALID = 3, "a position is not a finite number"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Motions:
    """How far motions are free of collision; arrays are read-only.

    Attributes:
        fraction: The part of each motion that is free, shape (...): 1 where all of it
            is, else up to the first contact, or as far as it is proven.
        q: Joint positions there [m or rad], shape (..., n).
        reason: Why it ends there, as numbers of `MotionReason`, shape (...).
    """

    fraction: Array
    q: Array
    reason: npt.NDArray[np.int8]

    @classmethod
    def of(
        cls,
        Q0: Array,
        Q1: Array,
        fraction: Array,
        reason: npt.NDArray[np.int8],
        batch: tuple[int, ...],
    ) -> Self:
        """Return how far motions between rows are free, in the shape of a batch."""
        # Where a motion is free to its end, the position is that end, to the last bit.
        with np.errstate(over="ignore", invalid="ignore"):
            between = Q0 + fraction[:, None] * (Q1 - Q0)
        Q = np.where(fraction[:, None] == 1.0, Q1, between)
        motions = cls(
            fraction.reshape(batch),
            Q.reshape(*batch, Q.shape[1]),
            reason.reshape(batch),
        )
        for array in (motions.fraction, motions.q, motions.reason):
            array.flags.writeable = False
        return motions

    @property
    def free(self) -> npt.NDArray[np.bool_]:
        """Return which motions are free from end to end, shape (...)."""
        return np.asarray(self.reason == MotionReason.FREE)

    def summary(self) -> dict[str, int]:
        """Return how many motions ended how, most frequent first."""
        return MotionReason.summary(self.reason)

    def __repr__(self) -> str:
        return f"<Motions: {MotionReason.text(self.reason, self.free)}>"


@final
@dataclass(frozen=True, eq=False)
class MotionProver:
    """What proves motions of a check.

    Attributes:
        pairs: The pairs of the check.
        margin: What is nearer touches [m].
    """

    pairs: PlacedPairs
    margin: float

    def check(self) -> None:
        """Raise a `ModelError` if nothing is known of how fast links move."""
        moving, state = straight_links(self.pairs.moving.cell), self.pairs.state
        if speeds_are_known(moving, state):
            return
        raise ModelError(
            "Motions of this cell cannot be proven, because of scripts that are not "
            "compiled, or the number of its links: how fast links move is not known. "
            "Test samples of them: check.motion(q0, q1, step=0.01)."
        )

    def of_one(self, q0: Array, q1: Array) -> Motions | None:
        """Return how far the motion between two rows is free, where that is quick."""
        kernel = self._kernel_of_level(0)
        if kernel is None:
            return None
        t, touching = kernel(q0, q1).tolist()
        if t == 1.0 and not touching:
            return Motions(WHOLE, _fixed(q1.copy()), REASONS[MotionReason.FREE])
        if not t >= 0.0:  # beyond the limits, or not finite
            return None
        q = q1.copy() if t == 1.0 else q0 + t * (q1 - q0)
        return Motions(_fixed(np.array(t)), _fixed(q), REASONS[_reason(t, touching)])

    def __call__(self, Q0: Array, Q1: Array) -> tuple[Array, npt.NDArray[np.int8]]:
        """Return how far motions are free, and why: (n, joints) twice -> (n,) twice."""
        # The kernel says how far it came, and whether links touch there; NaN of motions
        # that leave the box of its bounds.
        kernel = self._kernel_of_level(0)
        nothing = np.full((len(Q0), 2), np.nan)
        how_far = nothing if kernel is None else kernel(Q0, Q1)
        rows = np.flatnonzero(np.isnan(how_far[:, 0]))
        # Others get finite positions alone: boxes of others do not exist.
        both = np.stack([Q0[rows], Q1[rows]])
        is_finite = np.isfinite(both).all(axis=(0, 2))
        if is_finite.any():
            how_far[rows[is_finite]] = self._beyond(both[:, is_finite])
        t, touching = np.ascontiguousarray(how_far.T)
        reasons = np.where(t >= 1.0, MotionReason.FREE, MotionReason.NOT_PROVEN)
        reasons[touching > 0.0] = MotionReason.CONTACT
        reasons[np.isnan(t)] = MotionReason.INVALID
        return t, reasons.astype(np.int8)

    def columns(self, lower: Array, upper: Array) -> PostponedColumns | None:
        """Return code that tells if motions are free; None without bounds.

        Of columns of both ends it gives two: 1 and 0 where a motion is free.

        Args:
            lower: Least joint positions for which it answers, shape (joints,).
            upper: Greatest.
        """
        pairs = self.pairs
        if not speeds_are_known(straight_links(pairs.moving.cell), pairs.state):
            return None
        box = PositionBox(lower, upper)
        speeds = pairs.speeds(*box, accelerations=True)
        if not pairs.have_bounds(*box, speeds):
            return None
        code = motion_code(pairs)
        pairs.called("free", *code.made_for)  # compiled now, if it must be

        def make() -> ColumnFunction:
            return motion_columns(pairs, self.margin, self.rounding, box, speeds)

        return PostponedColumns(make, code, results=2)

    def _beyond(self, ends: Array) -> Array:
        """Return how far finite motions are free beyond the box of level 0, (n, 2).

        ends: Where they begin and end, shape (2, n, joints).
        """
        how_far = np.zeros((ends.shape[1], 2))
        for rows, kernel in self._kernels(ends.min(axis=0), ends.max(axis=0)):
            how_far[rows] = kernel(*ends[:, rows])
        return how_far

    def _kernels(
        self, lower: Array, upper: Array
    ) -> Iterator[tuple[npt.NDArray[np.int64], Kernel]]:
        """Yield rows, each once, with the kernel whose bounds of speeds hold for them.

        The choice for a row depends on that row alone: the smallest box of a level that
        contains it, else its own positions.

        Args:
            lower: Least joint positions of each motion, shape (n, joints).
            upper: Greatest.
        """
        # Bounds of speeds hold in a box of joint positions, and are part of a kernel.
        # Boxes have a few sizes: so kernels are few, and small motions have good
        # bounds. What the box of level 0 contains is done already, if it has bounds.
        level = self._levels(lower, upper)
        if self._kernel_of_level(0) is not None:
            level = np.maximum(level, 1)
        # Rows beyond all boxes, or in boxes without bounds, get a kernel of their own.
        alone = level > MOST_LEVEL
        for k in np.unique(level[~alone]).tolist():
            kernel, rows = self._kernel_of_level(k), np.flatnonzero(level == k)
            if kernel is None:
                alone[rows] = True
            else:
                yield rows, kernel
        for row in np.flatnonzero(alone).tolist():
            box = PositionBox(lower[row], upper[row])
            speeds = self.pairs.speeds(*box, accelerations=True)
            yield np.array([row]), self._made(box, speeds)

    def _levels(self, lower: Array, upper: Array) -> npt.NDArray[np.int64]:
        """Return the level of the smallest box that contains each motion, (n,)."""
        # A motion that reaches r half widths from the middle needs 2^level >= r.
        first, last = self._box(0)
        middle, half = 0.5 * (first + last), 0.5 * (last - first)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            reach = np.maximum(middle - lower, upper - middle)
            parts = np.where(reach > 0.0, reach / half, 0.0).max(axis=1, initial=0.0)
            level = np.ceil(np.log2(parts))
        level = np.clip(level, LEAST_LEVEL, MOST_LEVEL + 1).astype(np.int64)
        for k in np.unique(level).tolist():  # rounding may leave a row outside
            begin, end = self._box(k)
            rows = np.flatnonzero(level == k)
            is_in = (lower[rows] >= begin) & (upper[rows] <= end)
            level[rows[~is_in.all(axis=1)]] += 1
        return level

    @cached_property
    def _known(self) -> dict[int, Kernel | None]:
        return {}

    def _kernel_of_level(self, level: int) -> Kernel | None:
        """Return the kernel for motions in the box of a level, None without bounds."""
        if level not in self._known:
            box = self._box(level)
            speeds = self.pairs.speeds(*box, accelerations=True)
            # Joints of users may have no bound of their speed in so large a box.
            is_known = self.pairs.have_bounds(*box, speeds)
            self._known[level] = self._made(box, speeds) if is_known else None
        return self._known[level]

    def _box(self, level: int) -> PositionBox:
        """Return the box of a level: that of 0, 2^level times as large."""
        # Scaled about its middle; a box of level 0 is exact, without rounding.
        lower, upper = self._limits
        if level == 0:
            return PositionBox(lower, upper)
        middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower) * 2.0**level
        return PositionBox(middle - half, middle + half)

    @cached_property
    def _limits(self) -> tuple[Array, Array]:
        """Return the box of level 0: the limits of joints, or 4 around the state."""
        moving, q = self.pairs.moving, self.pairs.state.q
        lower, upper, _ = moving.cell.joints.ranges
        n = moving.joints
        return (
            np.where(np.isfinite(lower[:n]), lower[:n], q - 4.0),
            np.where(np.isfinite(upper[:n]), upper[:n], q + 4.0),
        )

    def _made(self, box: PositionBox, speeds: SpeedBounds) -> Kernel:
        return motion_kernel(self.pairs, self.margin, self.rounding, box, speeds)

    @property
    def rounding(self) -> float:
        """Return by how much more than the margin links are apart that do not touch."""
        nearness = nearness_of(self.pairs.extent)
        return max(nearness, double_precision(self.pairs).rounding)


def _fixed(array: Array) -> Array:
    """Return an array, read-only."""
    array.flags.writeable = False
    return array


def _reason(t: float, touching: float) -> MotionReason:
    if touching:
        return MotionReason.CONTACT
    return MotionReason.FREE if t >= 1.0 else MotionReason.NOT_PROVEN


WHOLE: Final = _fixed(np.array(1.0))
REASONS: Final = {reason: np.array(reason, np.int8) for reason in MotionReason}
for _each in REASONS.values():
    _each.flags.writeable = False


def sampled(
    check: Callable[[Array], npt.NDArray[np.bool_]], Q0: Array, Q1: Array, step: Any
) -> tuple[Array, npt.NDArray[np.int8]]:
    """Return how far samples of motions are free, and why: (n,) twice.

    Sample i of a motion in m steps is q0 + (i / m) (q1 - q0), the last one q1 itself.
    The fraction is i / m of the last sample before the first that touches, or 0.

    Args:
        check: Whether links touch, (..., n) -> (...).
        Q0: Where motions begin, shape (n, joints).
        Q1: Where they end.
        step: How far joints move between samples at most [m or rad].

    Raises:
        ModelError: `step` is not above 0, or too small for a motion.
    """
    step = number_of("step", step)
    if not step > 0.0:
        raise ModelError(f"The step must be above 0, not {step!r}.")
    fraction = np.full(len(Q0), np.nan)
    reason = np.full(len(Q0), MotionReason.INVALID, np.int8)
    for k in range(len(Q0)):
        q0, q1 = Q0[k], Q1[k]
        if not (np.isfinite(q0).all() and np.isfinite(q1).all()):
            continue
        with np.errstate(over="ignore"):
            way = q1 - q0
        longest = float(np.abs(way).max(initial=0.0))
        if not longest / step <= MOST_SAMPLES:
            raise ModelError(
                f"A motion of {longest:.6g} has too many samples at a step of {step!r}."
            )
        # As many parts as the joint that moves farthest needs; none if none moves.
        parts = max(math.ceil(longest / step), int(longest > 0.0))
        reason[k], fraction[k] = MotionReason.FREE, 1.0
        # The first sample that touches ends a motion, so later blocks are not tested.
        for start in range(0, parts + 1, SAMPLES):
            samples = np.arange(start, min(start + SAMPLES, parts + 1))
            t: Array = samples / max(parts, 1)
            positions = q0 + t[:, None] * way
            positions[t == 1.0] = q1
            touching = check(positions)
            if touching.any():
                reason[k] = MotionReason.CONTACT
                last_free = max(0, start + int(np.argmax(touching)) - 1)
                fraction[k] = last_free / max(parts, 1)
                break
    return fraction, reason
