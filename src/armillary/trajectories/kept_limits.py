"""Motions along paths that keep limits everywhere, not only at points of a grid.

Positions. A spline that passes through samples within limits may be beyond them between
two samples, most where a joint reaches a limit and stays there. It lies in the convex
hull of its control points, the values f(s[k-1], s[k], s[k+1]) of its blossom,

    p[k] = q[k] + (h[k] - h[k-1]) m[k] / 3 - h[k-1] h[k] c[k] / 6

with slopes m, curvatures c and distances h of knots. Those beyond a limit are moved
toward the polygon of samples, which is within all limits, at the same parameter
(s[k-1] + s[k] + s[k+1]) / 3, as far as limits need. All joints are moved by the same
part, so that what they do to the tool cancels as before.

Rates and accelerations. Where the path acceleration u is constant, x = s'^2 is linear
in s, and q'' x + q' u is a polynomial of degree 4 of s if q is one of degree 5: its
values at five points give its coefficients in Bernstein's basis, which bound it. A rate
whose acceleration has one sign is greatest at an end, any other is at most the mean of
both ends and half of what the greatest acceleration adds meanwhile. Intervals whose
bound is above what was found are halved until none is; both bounds fall as the square
of the length. The motion is slowed down by what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.kernel import Kernel
from armillary.kernel.kernel import shared_kernel
from armillary.spatial.ldl import inner
from armillary.spatial.polynomial import bernstein, with_derivatives
from armillary.spatial.vector import Matrix, Number, Vector
from armillary.trace import trace
from armillary.trace.functions import maximum, minimum, select, sqrt
from armillary.trajectories.motion import Motion
from armillary.trajectories.motion_parts import POWERS
from armillary.trajectories.position_limits import greatest_values

__all__ = ["BEYOND", "greatest_ratios", "limited_spline", "slowed", "spline_excess"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

BEYOND: Final = 1e-9
"""By how much positions may be beyond their limits [m or rad]."""

CLOSE: Final = 1e-10
"""How near bounds of rates and accelerations come, in parts of their limits."""

PART_OF_EXCESS: Final = 1e-3
"""How near they come to what exceeds limits, in parts of the excess."""

STILL: Final = 1e-7
"""Limits of rates and accelerations below this are taken for it."""

DEGREE: Final = 4
NODES: Final = np.linspace(0.0, 1.0, DEGREE + 1)
TO_BERNSTEIN: Final = bernstein(DEGREE) @ np.linalg.inv(
    NODES[:, None] ** np.arange(DEGREE + 1)
)
"""From values at the nodes to coefficients in Bernstein's basis."""

PARTS: Final = 4
"""In so many parts intervals in doubt are divided."""

MOST_INTERVALS: Final = 16
LEAST_PIECES: Final = 64
"""For each piece of a motion so many intervals are looked at, in the mean, at most;
less pieces than these count as so many."""


def spline_excess(curve: Array, q: Array, rows: tuple[Array, Array]) -> float:
    """Return by how much a curve is farther beyond limits than the samples on it.

    It is 0 or less where it is nowhere.

    Args:
        curve: Coefficients of its pieces, shape (k, 6, n).
        q: The samples, shape (m, n).
        rows: A and b of limits A q <= b.
    """
    A, b = rows
    if not len(b):
        return -np.inf
    allowed = max(float((q @ A.T - b).max()), 0.0)
    points = bernstein(curve.shape[1] - 1) @ curve
    if not (points @ A.T - b).max() > allowed:
        return 0.0
    sums: Array = np.einsum("kdn,mn->kmd", curve, A)
    sums[..., 0] -= b
    return greatest_values(sums.reshape(-1, curve.shape[1])) - allowed


def limited_spline(
    at: Array, knots: Array, rows: tuple[Array, Array]
) -> tuple[Array, Array, Array]:
    """Return a spline whose control points are within limits.

    Args:
        at: Parameters of samples, ascending, shape (k,).
        knots: Position, slope and curvature of the spline through them, (k, 3, n).
        rows: A and b of limits A q <= b, within which samples are.

    Returns:
        Positions, slopes and curvatures at the samples, shape (k, n) each.
    """
    q, m, c = np.moveaxis(knots, 1, 0)
    h = np.diff(at)[:, None]
    a, b = h[:-1], h[1:]
    inner = q[1:-1] + (b - a) / 3.0 * m[1:-1] - a * b / 6.0 * c[1:-1]
    second, last = q[0] + h[0] * m[0] / 3.0, q[-1] - h[-1] * m[-1] / 3.0
    points = np.vstack([q[:1], second, inner, last, q[-1:]])
    # Ends are knots four times.
    s = np.concatenate([at[[0, 0, 0]], at, at[[-1, -1, -1]]])
    where = (s[1:-3] + s[2:-2] + s[3:-1]) / 3.0
    by_joint: list[Array] = [np.interp(where, at, each) for each in q.T]
    polygon = np.stack(by_joint, axis=1)
    outer, least = (each @ rows[0].T - rows[1] for each in (points, polygon))
    beyond = outer > np.maximum(least, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(beyond, (outer - np.maximum(least, 0.0)) / (outer - least), 0)
    part = parts.max(axis=1)[:, None]
    points = (1.0 - part) * points + part * polygon
    # Blossoms f(s[k], s[k], s[k-1]), f(s[k], s[k], s[k+1]) and f(s[k], s[k], s[k]).
    k = np.arange(3, len(at) + 3)
    with np.errstate(invalid="ignore"):
        before = ((s[k] - s[k - 2]) / (s[k + 1] - s[k - 2]))[:, None]
        after = ((s[k] - s[k - 1]) / (s[k + 2] - s[k - 1]))[:, None]
        middle = ((s[k] - s[k - 1]) / (s[k + 1] - s[k - 1]))[:, None]
    left = points[:-2] + before * (points[1:-1] - points[:-2])
    right = points[1:-1] + after * (points[2:] - points[1:-1])
    q = left + middle * (right - left)
    q[[0, -1]] = points[[0, -1]]
    right[0], left[-1] = points[1], points[-2]
    slopes, bends = np.empty_like(q), np.empty_like(q)
    slopes[:-1] = 3.0 * (right[:-1] - q[:-1]) / h
    slopes[-1] = 3.0 * (q[-1] - left[-1]) / h[-1]
    bends[:-1] = 6.0 * (q[:-1] - 2.0 * right[:-1] + left[1:]) / (h * h)
    bends[-1] = 6.0 * (q[-1] - 2.0 * left[-1] + right[-2]) / (h[-1] * h[-1])
    return q, slopes, bends


def slowed(
    motions: Sequence[Motion], velocity: Array, acceleration: Array
) -> list[Motion]:
    """Return motions that keep limits at all instants, slower where they did not.

    Args:
        motions: Motions of the same joints, with constant path accelerations.
        velocity: Least and greatest rates, shape (2, n).
        acceleration: Least and greatest accelerations, shape (2, n).
    """
    ratios = greatest_ratios(motions, velocity, acceleration).tolist()
    return [
        motion if ratio <= 1.0 + CLOSE else motion.stretched(motion.duration * ratio)
        for motion, ratio in zip(motions, ratios, strict=True)
    ]


class _Intervals(NamedTuple):
    """Parts of pieces of motions, k of them.

    Attributes:
        law: The law of the piece that each is a part of, shape (k, 6).
        curve: What that is on, shape (k, 6, n).
        step: How long the piece takes [s], shape (k,).
        begin: Where each begins, in parts of the way along the piece, shape (k,).
        end: Where it ends.
        motion: The motion that each is a part of, shape (k,).
    """

    law: Array
    curve: Array
    step: Array
    begin: Array
    end: Array
    motion: Indices

    @classmethod
    def of(cls, motions: Sequence[Motion]) -> _Intervals:
        """Return all pieces of motions."""
        counts = [len(each.law) for each in motions]
        law = np.concatenate([each.law for each in motions])
        curve = np.concatenate([each.curve[each.piece] for each in motions])
        step = np.concatenate([np.diff(each.times) for each in motions])
        ends = np.zeros(len(law)), np.ones(len(law))
        return cls(law, curve, step, *ends, np.repeat(np.arange(len(counts)), counts))

    def divided(self, chosen: npt.NDArray[np.bool_]) -> _Intervals:
        """Return `PARTS` parts of some."""
        begin, end = self.begin[chosen], self.end[chosen]
        edges = begin + (end - begin) * np.linspace(0.0, 1.0, PARTS + 1)[:, None]
        return _Intervals(
            np.concatenate([self.law[chosen]] * PARTS),
            np.concatenate([self.curve[chosen]] * PARTS),
            np.tile(self.step[chosen], PARTS),
            edges[:-1].ravel(),
            edges[1:].ravel(),
            np.tile(self.motion[chosen], PARTS),
        )


def _ratio_bounds(
    law: Vector,
    curve: Matrix,
    step: Number,
    begin: Number,
    end: Number,
    rates: Matrix,
    bends: Matrix,
) -> tuple[Number, Number]:
    """Return what ratios of a part of a piece to limits are at least and at most.

    Args:
        law: As in `_Intervals`, shape (6,).
        curve: The same, shape (6, n).
        step: The same [s].
        begin: The same.
        end: The same.
        rates: One over greatest and least rates, shape (2, n).
        bends: One over greatest and least accelerations, shape (2, n).
    """
    # r'^2 = x is linear in r, r'' = u: q'' = q_rr x + q_r u, at even parts of r.
    first, u = law[1], 2.0 * law[2]
    last = first + u * step
    way = 0.5 * step * (first + last)
    least_x, more = first * first, last * last - first * first
    parts = [begin + (end - begin) * node for node in NODES.tolist()]
    x = [maximum(least_x + more * part, 0.0) for part in parts]
    r = [law[0] + way * part for part in parts]
    speed = [sqrt(x[0]), sqrt(x[-1])]
    both = speed[0] + speed[1]
    takes = 2.0 * (end - begin) * way / select(both > 0.0, both, 1.0)
    least: list[Number] = []
    most: list[Number] = []
    for k, row in enumerate(zip(*curve, strict=True)):
        _, slopes, curvatures = zip(
            *(with_derivatives(row, at, 3) for at in r), strict=True
        )
        values: list[Number] = [
            c * square + slope * u
            for c, square, slope in zip(curvatures, x, slopes, strict=True)
        ]
        points: list[Number] = [inner(each, values) for each in TO_BERNSTEIN.tolist()]
        high, low = reduce(maximum, points), reduce(minimum, points)
        a, b = slopes[0] * speed[0], slopes[-1] * speed[1]
        # Of one sign, what adds to the rate is all at one end.
        reach = 0.5 * takes * maximum(high, -low)
        middle: Number = 0.5 * (a + b)
        turns = (low < 0.0) & (high > 0.0)
        ends = maximum(a, b), minimum(a, b)
        top = select(turns, maximum(middle + reach, ends[0]), ends[0])
        bottom = select(turns, minimum(middle - reach, ends[1]), ends[1])
        least += [ends[0] * rates[0][k], ends[1] * rates[1][k]]
        most += [top * rates[0][k], bottom * rates[1][k]]
        of = reduce(maximum, values), reduce(minimum, values)
        for found, (above, below) in ((least, of), (most, (high, low))):
            ratio = maximum(above * bends[0][k], below * bends[1][k])
            found.append(sqrt(maximum(ratio, 0.0)))
    return reduce(maximum, least), reduce(maximum, most)


@lru_cache(maxsize=64)
def _bounds(joints: int) -> Kernel:
    """Return the kernel of what ratios of a piece to limits are at least and at most.

    joints: How many there are.
    """
    program = trace(
        _ratio_bounds,
        name="ratios_to_limits",
        outputs=("least", "most"),
        law=(POWERS,),
        curve=(POWERS, joints),
        step=(),
        begin=(),
        end=(),
        rates=(2, joints),
        bends=(2, joints),
    )
    return shared_kernel(program)


def greatest_ratios(
    motions: Sequence[Motion], velocity: Array, acceleration: Array
) -> Array:
    """Return by how much motions exceed limits at most, 1 where these are kept, (k,).

    It is the greatest ratio to limits of rates, and the square root of that of
    accelerations: a motion that takes so many times as long keeps limits.

    Args:
        motions: Motions of the same joints, k of them, with constant path
            accelerations.
        velocity: Least and greatest rates, shape (2, n).
        acceleration: Least and greatest accelerations, shape (2, n).
    """
    inverse = [
        1.0 / np.stack([np.maximum(each[1], STILL), np.minimum(each[0], -STILL)])
        for each in (velocity, acceleration)
    ]
    of = _Intervals.of(motions)
    assert not of.law[:, 3:].any()  # path accelerations are constant
    kernel, most = _bounds(of.curve.shape[-1]), np.ones(len(motions))
    given_up = np.zeros(len(motions))
    room = MOST_INTERVALS * np.maximum(np.bincount(of.motion), LEAST_PIECES)
    while True:
        found: Any = kernel(*of[:-1], *inverse)
        lowest, highest = found
        np.maximum.at(most, of.motion, lowest)
        enough = most + np.maximum(CLOSE, PART_OF_EXCESS * (most - 1.0))
        room -= np.bincount(of.motion, minlength=len(motions))
        left: npt.NDArray[np.bool_] = highest > enough[of.motion]
        # Where rounding is more than `CLOSE`, dividing does not help: the bound holds.
        too_many = left & (room[of.motion] < 0)
        np.maximum.at(given_up, of.motion[too_many], highest[too_many])
        left &= ~too_many
        if not left.any():
            kept = np.where(most > 1.0 + CLOSE, enough, 1.0)
            return np.maximum(kept, given_up)
        of = of.divided(left)
