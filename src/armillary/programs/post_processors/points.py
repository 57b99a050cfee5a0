"""Points of a motion from which a controller, as it interpolates, makes it again.

On a piece of a motion from t to t + h, positions are a polynomial of u, the part of h,
of degree 25 at most: q(u) = sum_k c_k u^k, as q is one of r and r one of time, of
degree 5 each. A controller that interpolates by a rule I, which leaves polynomials of
its degree d as they are, deviates by

    |q - I q| <= sum_{k > d} |c_k| max_u |u^k - I u^k|

since I is linear: a true bound, which is tight for short pieces. A point of the tool
deviates by no more than the sum of this over the joints, each times the greatest speed
of the point at unit rate (`speed_bounds`). Pieces are divided until that is small.
"""

from __future__ import annotations

from math import comb
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, quote
from armillary.kinematics.closing.enclosing import (
    Stretches,
    hull,
    refined,
    with_passive,
)
from armillary.kinematics.moving_links import straight_links
from armillary.kinematics.speed_bounds import SpeedBounds, zero_product
from armillary.kinematics.state import State, branch_of
from armillary.model.workcell import IN_WORLD
from armillary.planning.frame_chain import FrameChain
from armillary.programs.post_processors.instructions import NEAR
from armillary.trajectories.curve import cubic_coefficients, hermite_coefficients
from armillary.trajectories.motion import Motion
from armillary.trajectories.motion_parts import POWERS, bounded_motion

__all__ = ["CUBIC", "LINEAR", "QUINTIC", "MotionPoints", "levers_of", "points_of"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

LINEAR: Final = 1
"""Joints move straight, each at a constant rate, from point to point."""
CUBIC: Final = 3
"""Joints move by polynomials of degree 3: positions and rates at both ends."""
QUINTIC: Final = 5
"""Joints move by polynomials of degree 5: positions, rates, accelerations at both."""

TERMS: Final = (POWERS - 1) ** 2 + 1
MOST_POINTS: Final = 200_000
"""Points of a program, at most."""
APART: Final = 1e-3
"""How far joints of a controller may be from the motion where the bound of the tool's
deviation counts [m or rad]: speeds of the tool are bounded so far around it."""

SHORTEST: Final = 1e-4
"""Parts of a motion in which loops are not proven to move on are not halved below
this [s]."""

ROOM: Final = 1.001
"""By how much the greatest of samples of a polynomial is raised to be a bound."""


class MotionPoints(NamedTuple):
    """A motion as a controller interpolates it.

    Attributes:
        times: When each of the m pieces begins, and when the last one ends, (m + 1,).
        pieces: Coefficients of the part of each, from 0 to 1, shape (m, 6, n).
        deviation: A bound of how far that is from the motion: the tool [m], or joints
            [m or rad].
    """

    times: Array
    pieces: Array
    deviation: float

    @property
    def q(self) -> Array:
        """Return the positions at all times, shape (m + 1, n)."""
        return np.concatenate([self.pieces[:, 0], self.pieces[-1:].sum(axis=1)])


def levers_of(motion: Motion, state: State, tool: str) -> Array:
    """Return bounds of the speed of a frame, for unit rates of joints, shape (n,).

    They hold where joints are within `APART` of the motion.

    Args:
        motion: Which joints move, and how far.
        state: The others, and what is attached.
        tool: The frame [m/s for 1 m/s or 1 rad/s].

    Raises:
        UnknownName: There is no such frame or joint.
        ModelError: Nothing is known of how fast joints move the frame.
    """
    cell = state.cell
    moving = straight_links(cell)
    places = np.array([cell.joint(name) for name in motion.joint_names])
    lower, upper, sensitive = _around(motion, state, places)
    levers = np.full(len(places), np.inf)
    if moving.is_compiled:
        speeds = SpeedBounds.of(moving, state.tree, lower, upper)
        ends = cell.frame(tool), IN_WORLD
        chain = FrameChain.between(moving, state.tree, speeds, ends)
        levers = zero_product(chain.linear @ chain.rates, sensitive).sum(axis=1)
    if not np.isfinite(levers).all():
        raise ModelError(
            f"It is not known how fast joints move {quote(tool)}: Python code moves "
            "it, or a closed loop comes so near to a singularity that it is not proven "
            "how it moves on. Leave out tool=; then tolerance= is that of each joint."
        )
    return levers


def _around(
    motion: Motion, state: State, places: Indices
) -> tuple[Array, Array, Array]:
    """Return where all joints are beside a motion, and how fast for unit rates.

    Of those that closed loops move both are proven, by stretches of the motion.

    Args:
        motion: The motion of n joints.
        state: The others.
        places: Their places in q, shape (n,).

    Returns:
        Least and greatest positions of the joints of q, then of the passive ones, shape
        (N,) each; how fast they are at most for unit rates of each joint of the motion,
        shape (n, N), infinite where nothing is proven.
    """
    rest, branch = np.array(state.q), branch_of(state)
    units = np.eye(len(rest))[places]

    def at(times: Array) -> Array:
        q = rest[None].repeat(len(times), axis=0)
        q[:, places] = motion.at(times).q
        return q

    def stretches(a: Array, b: Array) -> Stretches:
        middle, half = 0.5 * (a + b), 0.5 * (b - a)
        polynomials = motion.times, motion.law, motion.curve, motion.piece
        own = bounded_motion(*polynomials, middle, half)
        still = np.zeros((len(a), len(rest)))
        whole = Stretches(rest + still, still, *(still.copy() for _ in range(2)))
        whole.q[:, places], whole.reach[:, places] = own.q, own.reach + APART
        return whole

    times, found = refined(branch, motion.times, at, stretches, SHORTEST)
    lower, upper = hull(found)
    if branch is None:
        return lower, upper, units
    fastest: list[Array] = []
    given = stretches(times[:-1], times[1:])
    for unit in units:
        one = given._replace(rate=np.broadcast_to(unit, given.q.shape))
        fastest.append(with_passive(branch, one).fastest.max(axis=0))
    return lower, upper, np.stack(fastest)


def points_of(
    motion: Motion,
    begin: float,
    end: float,
    *,
    cuts: Array,
    degree: int,
    levers: Array | None,
    tolerance: float,
) -> MotionPoints:
    """Return points of a part of a motion.

    Args:
        motion: The motion.
        begin: When the part begins [s].
        end: When it ends [s].
        cuts: Instants at which there must be points, up to `NEAR` [s].
        degree: How the controller interpolates: `LINEAR`, `CUBIC` or `QUINTIC`.
        levers: Of the tool, see `levers_of`; None for the greatest of the joints.
        tolerance: How far the tool, or a joint, may be from the motion [m or rad].

    Raises:
        ModelError: That takes too many points.
    """
    inner = motion.times[(motion.times > begin) & (motion.times < end)]
    known = np.concatenate([[begin, end], inner])
    is_new = (np.abs(cuts[:, None] - known) > NEAR).all(axis=1)
    times = np.unique(np.concatenate([known, cuts[is_new]]))
    done: list[tuple[Array, Array, Array]] = []
    a, b = times[:-1], times[1:]
    while len(a):
        full = _composed(motion, a, b)
        short = _interpolated(full, degree)
        apart = np.einsum("k,mkn->mn", LEFT[degree], np.abs(full))
        bound = apart.max(axis=1) if levers is None else apart @ levers
        if levers is not None:
            bound = np.maximum(bound, tolerance / APART * apart.max(axis=1))
        is_fine = bound <= tolerance
        done.append((a[is_fine], short[is_fine], bound[is_fine]))
        a, b, bound = a[~is_fine], b[~is_fine], bound[~is_fine]
        parts = np.ceil((ROOM * bound / tolerance) ** (1.0 / (degree + 1)))
        parts = np.maximum(parts, 2.0)
        if not parts.sum() + sum(len(each) for each, _, _ in done) <= MOST_POINTS:
            raise ModelError(
                f"This motion takes more than {MOST_POINTS} points to keep a tolerance "
                f"of {tolerance:g}: give a greater tolerance=."
            )
        a, b = _divided(a, b, parts.astype(np.int64))
    begins, pieces, bounds = (np.concatenate(part) for part in zip(*done, strict=True))
    order = np.argsort(begins)
    return MotionPoints(
        np.append(begins[order], end), pieces[order], float(bounds.max())
    )


def _divided(a: Array, b: Array, parts: Indices) -> tuple[Array, Array]:
    """Return intervals divided into so many equal parts, in any order."""
    which = np.repeat(np.arange(len(a)), parts)
    number = np.arange(len(which)) - np.repeat(np.cumsum(parts) - parts, parts)
    h = (b - a)[which] / parts[which]
    last = number + 1 == parts[which]
    return a[which] + number * h, np.where(last, b[which], a[which] + (number + 1) * h)


def _composed(motion: Motion, a: Array, b: Array) -> Array:
    """Return q of the part of an interval, (m, 26, n), within a piece of the motion."""
    at = np.searchsorted(motion.times, 0.5 * (a + b), side="right") - 1
    since, h = a - motion.times[at], b - a
    way = np.einsum("mi,mik->mk", motion.law[at], _shift(since))
    way *= h[:, None] ** np.arange(POWERS)
    curve = np.einsum("mik,min->mkn", _shift(way[:, 0]), motion.curve[motion.piece[at]])
    # Horner's rule, of polynomials
    found = curve[:, -1:]
    for k in reversed(range(POWERS - 1)):
        found = _times(found, way)
        found[:, 0] += curve[:, k]
    return found


def _shift(at: Array) -> Array:
    """Return the matrices from powers of x to those of x - at, shape (m, 6, 6)."""
    made = np.zeros((len(at), POWERS, POWERS))
    for i in range(POWERS):
        for k in range(i + 1):
            made[:, i, k] = comb(i, k) * at ** (i - k)
    return made


def _times(found: Array, way: Array) -> Array:
    """Return the products of polynomials (m, j, n) with sum_{k > 0} way_k u^k."""
    m, terms, n = found.shape
    made = np.zeros((m, terms + POWERS - 1, n))
    for k in range(1, POWERS):
        made[:, k : k + terms] += found * way[:, k, None, None]
    return made


def _interpolated(full: Array, degree: int) -> Array:
    """Return what controllers make of polynomials (m, 26, n), (m, 6, n)."""
    if degree == LINEAR:
        short = full[:, :POWERS].copy()
        short[:, 1], short[:, 2:] = full[:, 1:].sum(axis=1), 0.0
        return short
    k: Array = np.arange(full.shape[1], dtype=np.float64)
    last = [full.sum(axis=1), np.einsum("k,mkn->mn", k, full)]
    last.append(np.einsum("k,mkn->mn", k * (k - 1.0), full))
    first = [full[:, 0], full[:, 1], 2.0 * full[:, 2]]
    knots = np.stack([np.stack(first, axis=1), np.stack(last, axis=1)], axis=1)
    h = np.ones((len(full), 1))
    if degree == CUBIC:
        return cubic_coefficients(h, knots[:, :, 0], knots[:, :, 1])[:, 0]
    return hermite_coefficients(h, knots)[:, 0]


def _left(degree: int) -> Array:
    """Return how much at most of each power of u an interpolation misses, (26,)."""
    u = np.linspace(0.0, 1.0, 2001)[:, None]
    short = _interpolated(np.eye(TERMS)[:, :, None], degree)[..., 0]
    kept = u ** np.arange(POWERS) @ short.T
    missed: Array = ROOM * np.abs(u ** np.arange(TERMS) - kept).max(axis=0)
    missed[: degree + 1] = 0.0
    return missed


LEFT: Final = {degree: _left(degree) for degree in (LINEAR, CUBIC, QUINTIC)}
