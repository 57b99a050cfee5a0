"""Motions between joint positions, proven to be free of collision or not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check_tables import CheckTables
from armillary.collision.lengths import number_of
from armillary.collision.precision import double_precision
from armillary.collision.shape_pairs import Placed
from armillary.errors import ModelError
from armillary.kernel import Kernel
from armillary.kinematics.ending import Ending
from armillary.kinematics.moving_links import MovingLinks
from armillary.kinematics.speed_bounds import SpeedBounds, speeds_are_known
from armillary.kinematics.state import State

__all__ = ["MotionProver", "MotionReason", "Motions", "sampled"]

Array = npt.NDArray[np.float64]

NEARNESS: Final = 1e-6
"""Links that come nearer than the margin and this touch [m]."""


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
        with np.errstate(over="ignore", invalid="ignore"):
            between = Q0 + fraction[:, None] * (Q1 - Q0)
        Q = np.where(fraction[:, None] == 1.0, Q1, between)
        found = cls(
            fraction.reshape(batch),
            Q.reshape(*batch, Q.shape[1]),
            reason.reshape(batch),
        )
        for array in (found.fraction, found.q, found.reason):
            array.flags.writeable = False
        return found

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
        tables: The pairs.
        moving: The moving links of the cell.
        state: What they are attached to.
        placed: Where shapes are.
        margin: What is nearer touches [m].
        extent: About the largest coordinate of shapes [m].
    """

    tables: CheckTables
    moving: MovingLinks
    state: State
    placed: Placed
    margin: float
    extent: float

    def check(self) -> None:
        """Raise a `ModelError` if nothing is known of how fast links move."""
        if speeds_are_known(self.moving, self.state):
            return
        why = "closed loops" if self.state.passive else "scripts that are not compiled"
        raise ModelError(
            f"Motions of this cell cannot be proven, because of {why}: how fast links "
            "move is not known. Test samples of them: check.motion(q0, q1, step=0.01)."
        )

    def __call__(self, Q0: Array, Q1: Array) -> tuple[Array, npt.NDArray[np.int8]]:
        """Return how far motions are free, and why: (n, joints) twice -> (n,) twice."""
        both = np.stack([Q0, Q1])
        is_finite = np.isfinite(both).all(axis=(0, 2))
        reason = np.full(len(Q0), MotionReason.INVALID, np.int8)
        fraction = np.full(len(Q0), np.nan)
        if is_finite.any():
            fraction[is_finite], reason[is_finite] = self._proven(both[:, is_finite])
        return fraction, reason

    def _proven(self, ends: Array) -> tuple[Array, npt.NDArray[np.int8]]:
        """Return how far finite motions are free, and why: (2, n, joints)."""
        lower, upper = ends.min(axis=(0, 1)), ends.max(axis=(0, 1))
        usual = self._usual
        is_usual = (lower >= usual[0]).all() and (upper <= usual[1]).all()
        if is_usual and np.isfinite(self._usual_rates).all():
            kernel = self._usual_kernel
        else:
            kernel = self._made(self._rates(lower, upper))
        t, touching = kernel(*ends)
        reason = np.where(
            touching > 0.0,
            MotionReason.CONTACT,
            np.where(t >= 1.0, MotionReason.FREE, MotionReason.NOT_PROVEN),
        ).astype(np.int8)
        return t, reason

    @cached_property
    def _usual(self) -> tuple[Array, Array]:
        lower, upper, _ = self.moving.cell.joints.ranges
        n, q = self.moving.joints, np.array(self.state.q)
        return (
            np.where(np.isfinite(lower[:n]), lower[:n], q - 4.0),
            np.where(np.isfinite(upper[:n]), upper[:n], q + 4.0),
        )

    @cached_property
    def _usual_rates(self) -> Array:
        return self._rates(*self._usual)

    @cached_property
    def _usual_kernel(self) -> Kernel:
        return self._made(self._usual_rates)

    def _rates(self, lower: Array, upper: Array) -> Array:
        speeds = SpeedBounds.of(self.moving, self.state.tree, lower, upper)
        return self.tables.rates(speeds, self.placed)

    def _made(self, rates: Array) -> Kernel:
        precision = double_precision(self.moving, self.extent)
        return self.tables.kernel(
            self.moving,
            self.state,
            self.placed,
            "motion",
            self.margin,
            precision._replace(
                rounding=max(NEARNESS, precision.rounding), most_extent=np.inf
            ),
            rates,
        )


def sampled(
    check: Callable[[Array], npt.NDArray[np.bool_]], Q0: Array, Q1: Array, step: Any
) -> tuple[Array, npt.NDArray[np.int8]]:
    """Return how far samples of motions are free, and why: (n,) twice.

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
        parts = max(math.ceil(longest / step), int(longest > 0.0))
        reason[k], fraction[k] = MotionReason.FREE, 1.0
        for start in range(0, parts + 1, SAMPLES):
            samples = np.arange(start, min(start + SAMPLES, parts + 1))
            t: Array = samples / max(parts, 1)
            positions = q0 + t[:, None] * way
            positions[t == 1.0] = q1
            touching = check(positions)
            if touching.any():
                reason[k] = MotionReason.CONTACT
                fraction[k] = t[np.argmax(touching)]
                break
    return fraction, reason
