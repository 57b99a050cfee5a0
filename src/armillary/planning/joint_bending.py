"""How the twist of a joint changes over its range, and where it jumps.

A joint that turns or slides has the same twist everywhere. Others bend, as a track on a
curve does, and where a straight ends and a bend begins their angular velocity jumps.
Such points are found in samples of the twist; that there are no others is then proven,
since `speed_bounds.bending` is finite only where velocities cannot jump.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.kernel import vectorize
from armillary.kinematics.speed_bounds import bending
from armillary.model.joint import Joint
from armillary.model.motion import TracedMotion
from armillary.trace import trace

__all__ = ["BendTable", "bend_table"]

Array = npt.NDArray[np.float64]

SAMPLES: Final = 257
"""Samples of a range between which jumps are looked for."""

HALVINGS: Final = 60
LEAST_JUMP: Final = 1e-6
"""Smaller steps of a twist do not count as jumps."""

WIDTH: Final = 1e-9
"""A cell around a jump reaches so far to both sides, of the size of q."""

DEPTH: Final = 3
"""So often a cell is halved in which the twist may jump for all that is known."""


class BendTable(NamedTuple):
    """Cells of the range of a joint, and a bound of how it bends in each.

    Attributes:
        edges: Where cells begin, and where the last ends, shape (m + 1,).
        bends: See `speed_bounds.bending`, infinite where velocities may jump, (m,).
    """

    edges: Array
    bends: Array

    @property
    def is_known(self) -> bool:
        """Return whether there is a bound anywhere."""
        return bool(np.isfinite(self.bends).any())

    def greatest(self, lower: Array, upper: Array) -> Array:
        """Return the greatest bound within ranges.

        Args:
            lower: Where each begins, shape (k,).
            upper: Where it ends, shape (k,).
        """
        most = np.zeros(len(lower))
        for low, high, bend in zip(
            self.edges[:-1], self.edges[1:], self.bends, strict=True
        ):
            touched = (lower <= high) & (upper >= low)
            most[touched] = np.maximum(most[touched], bend)
        # Nothing is known beyond the range, or of NaN.
        is_in = (lower >= self.edges[0]) & (upper <= self.edges[-1])
        most[~is_in] = math.inf
        return most


@lru_cache(maxsize=256)
def bend_table(joint: Joint, low: float, high: float) -> BendTable:
    """Return the bounds of a joint of one coordinate within a range."""
    cells: list[tuple[float, float]] = []
    begin = low
    for jump in _jumps(joint.motion, low, high):
        width = WIDTH * max(1.0, abs(jump))
        cells += [(begin, jump - width), (jump - width, jump + width)]
        begin = jump + width
    cells.append((begin, high))
    edges, bends = [low], list[float]()
    for first, last in cells:
        is_jump = last - first <= 4.0 * WIDTH * max(1.0, abs(last))
        for a, b, bend in (
            [(first, last, math.inf)] if is_jump else _bounded(joint, first, last)
        ):
            edges.append(b)
            bends.append(bend)
            assert a < b
    return BendTable(np.array(edges), np.array(bends))


def _bounded(
    joint: Joint, low: float, high: float, depth: int = DEPTH
) -> list[tuple[float, float, float]]:
    """Return cells with bounds, halved where a bound is missing."""
    bend = bending(joint, ((low, high),))
    if math.isfinite(bend) or depth == 0:
        return [(low, high, bend)]
    middle = 0.5 * (low + high)
    return [
        *_bounded(joint, low, middle, depth - 1),
        *_bounded(joint, middle, high, depth - 1),
    ]


def _jumps(motion: TracedMotion, low: float, high: float) -> list[float]:
    """Return where the twist seems to jump between two coordinates, ascending."""
    program = trace(motion.subspace, name="subspace", q=())

    def twists(q: Array) -> Any:
        return np.asarray(vectorize(program, q))

    q = np.linspace(low, high, SAMPLES)
    steps = np.abs(np.diff(twists(q), axis=0)).max(axis=1)
    found: list[float] = []
    for k in np.flatnonzero(steps > LEAST_JUMP).tolist():
        a, b = float(q[k]), float(q[k + 1])
        whole = steps[k]
        for _ in range(HALVINGS):
            middle = 0.5 * (a + b)
            if not a < middle < b:
                break
            x, y, z = twists(np.array([a, middle, b]))
            left, right = np.abs(y - x).max(), np.abs(z - y).max()
            a, b = (a, middle) if left >= right else (middle, b)
            whole = max(left, right)
        if whole > LEAST_JUMP and math.isfinite(whole):
            found.append(0.5 * (a + b))
    return found
