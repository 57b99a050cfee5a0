"""True upper bounds of how fast a joint moves and turns its outer frame."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.model.motion import TracedMotion
from armillary.model.upper_bound import Box, Height, upper_bound
from armillary.spatial.pose import Pose
from armillary.spatial.twist import Vector6, six
from armillary.spatial.vector import (
    Number,
    Vector3,
    add,
    apply,
    cross,
    dot,
    norm,
    transpose,
)
from armillary.trace import Scalar, jvp, trace

GAPS: Final = [1e-3] * 40 + [1e-2] * 60 + [5e-2] * 900  # of squares
GAPS_OF_SEVERAL: Final = [2e-2] * 64
GAPS_OF_ACCELERATIONS: Final = [2e-2] * 16 + [0.5] * 32
Speeds = tuple[float, float]

# the square of a distance, written so that what turns about the origin stays still
#
# |R' t + p|^2 is the square of |t + R p|. Each component is a constant and a sum of
# multiples of other scalars, b_i + sum_k a_ik n_k, so that it is
#
# |b|^2 + 2 sum_k (b . a_k) n_k + sum_kl (a_k . a_l) n_k n_l.
#
# On a circle, however it lies, n are a sine and a cosine, the products of unlike ones
# cancel, and sin^2 + cos^2 is 1: nothing is left that intervals could blow up.

Array = npt.NDArray[np.float64]

ROUNDING: Final = 1e-14
MOST_TERMS: Final = 16

# a true upper bound of how far a joint moves its outer frame

DISTANCE_GAPS: Final = [1e-9] * 150 + [1e-5] * 150 + [1e-3] * 900


def largest_distance(
    motion: TracedMotion, precursor: Pose, low: float, high: float
) -> float:
    """Return an upper bound of |p_FM(q)| for q in [low, high] [m].

    It is mostly within 1e-9 relative of the largest distance, and within 1e-5 or 1e-3
    where the distance hardly changes. Over infinite ranges it may be looser, or
    infinite.
    """
    height = _distance_height(motion, precursor)
    return math.sqrt(max(0.0, upper_bound(height, ((low, high),), DISTANCE_GAPS)))


@lru_cache(maxsize=1024)
def _distance_height(motion: TracedMotion, precursor: Pose) -> Height:
    """Return the square of the distance, traced once for all ranges."""

    def height(q: Any) -> Any:
        return square_distance(precursor, motion.pose(q).position)

    return Height(height)


# true upper bounds of how fast a joint moves and turns its outer frame


def square_distance(X: Pose, p: Vector3) -> Number:
    """Return |X p|^2, or by rounding a little more, of a constant X and a traced p."""
    return sum_of_squares(add(apply(transpose(X.rotation), X.position), p))


def sum_of_squares(u: Sequence[Number]) -> Number:
    """Return u . u, or by rounding a little more, of traced numbers."""
    terms: dict[int, Scalar] = {}
    sums = [_multiples(component, terms) for component in u]
    if len(terms) > MOST_TERMS:
        return sum((x * x for x in u), 0.0)
    base = np.array([constant for constant, _ in sums])
    A = np.array([[row.get(k, 0.0) for k in terms] for _, row in sums])
    nodes = list(terms.values())
    total: Number = float(base @ base)
    for node, weight in zip(nodes, 2.0 * base @ A, strict=True):
        total = total + float(weight) * node
    return total + _quadratic(A.T @ A, nodes)


def _multiples(x: Number, terms: dict[int, Scalar]) -> tuple[float, dict[int, float]]:
    """Return the constant and the factors of a sum, by the index of what they scale.

    terms: Gets what is scaled, by its index.
    """
    constant, factors = 0.0, dict[int, float]()
    waiting: list[tuple[Any, float]] = [(x, 1.0)]
    while waiting:
        node, factor = waiting.pop()
        match node:
            case Scalar(name="const"):
                constant += factor * node.value
            case Scalar(name="neg"):
                waiting.append((node.args[0], -factor))
            case Scalar(name="add"):
                waiting += [(arg, factor) for arg in node.args]
            case Scalar(name="sub"):
                waiting += [(node.args[0], factor), (node.args[1], -factor)]
            case Scalar(name="mul") if node.args[0].name == "const":
                waiting.append((node.args[1], factor * node.args[0].value))
            case Scalar():
                terms[node.index] = node
                factors[node.index] = factors.get(node.index, 0.0) + factor
            case _:
                constant += factor * float(node)
    return constant, factors


def _quadratic(G: Array, nodes: list[Scalar]) -> Number:
    """Return sum_kl G_kl n_k n_l, with what rounding left behind moved to squares.

    2 |n_k n_l| <= n_k^2 + n_l^2, and a square's factor may be raised to another's.
    """
    size = np.sqrt(np.diag(G))
    is_small = np.abs(G) <= ROUNDING * np.outer(size, size)
    squares = np.diag(G) + np.where(is_small, np.abs(G), 0.0).sum(axis=1)
    products: list[Number] = [
        2.0 * float(G[row, column]) * (nodes[row] * nodes[column])
        for row, column in np.argwhere(np.triu(~is_small, 1)).tolist()
    ]
    by_factor: dict[float, Number] = {}
    last = 0.0
    for k in np.argsort(-squares).tolist():
        if not last * (1.0 - ROUNDING) <= squares[k] <= last:
            last = float(squares[k])
        by_factor[last] = by_factor.get(last, 0.0) + nodes[k] * nodes[k]
    products += [factor * square for factor, square in by_factor.items()]
    return sum(products, 0.0)


# true upper bounds of how fast a joint moves and turns its outer frame


@lru_cache(maxsize=4096)
def largest_speeds(motion: TracedMotion, box: Box) -> tuple[Speeds, ...]:
    """Return upper bounds of |v| and |w| per unit rate of each coordinate, over a box.

    Those of one coordinate are mostly within 5e-4 relative of the largest speeds. A
    bound is infinite where the pose jumps, or may jump and that cannot be decided.

    Args:
        motion: The motion.
        box: The range of each coordinate.

    Returns:
        Linear [m per unit], then angular [rad per unit], for each coordinate.
    """
    gaps = GAPS_OF_SEVERAL if motion.shape else GAPS
    speeds: list[Speeds] = []
    for heights in _heights(motion):
        linear, angular = (
            max(0.0, upper_bound(height, box, gaps)) for height in heights
        )
        speeds.append((math.sqrt(linear), math.sqrt(angular)))
    return tuple(speeds)


@lru_cache(maxsize=1024)
def _heights(motion: TracedMotion) -> list[tuple[Height, Height]]:
    """Return the squares of both speeds for each coordinate."""
    count = math.prod(motion.shape)
    return [(_height_of(motion, k, 0), _height_of(motion, k, 1)) for k in range(count)]


def _height_of(motion: TracedMotion, k: int, part: int) -> Height:
    def height(q: Any) -> Number:
        return _square_speeds(motion, q, k)[part]

    def moved(q: Any) -> Any:
        X = motion.pose(*q) if motion.shape else motion.pose(q)
        return X.rotation if part else X.position

    return Height(height, motion.shape, smooth=trace(moved, q=motion.shape))


def _square_speeds(motion: TracedMotion, q: Any, k: int) -> tuple[Number, Number]:
    """Return v . v and w . w at unit rate of the k-th coordinate.

    From a pose they are p' . p' and the sum of the squares of R', halved: turning does
    not change the former, and R' = R [w]x has the squares of [w]x.
    """
    if not motion.shape:
        given = motion.given_subspace(q)
        if given is not None:
            return sum_of_squares(given[:3]), sum_of_squares(given[3:])
    X = motion.pose(*q) if motion.shape else motion.pose(q)
    seed = q[k] if motion.shape else q
    rates = jvp(list(X.entries), [(seed, 1.0)])
    return sum_of_squares(rates[9:]), 0.5 * sum_of_squares(rates[:9])


# true upper bounds of how fast the velocity of what a joint moves changes


@lru_cache(maxsize=4096)
def largest_accelerations(motion: TracedMotion, low: float, high: float) -> Speeds:
    """Return upper bounds of |p''| and |R''| for q in [low, high], at unit rate of q.

    p is the position of M in F, and R its rotation; a point that is fixed to M, at r
    from its origin, is accelerated by no more than |p''| + |R''| |r|. A bound is
    infinite where a velocity jumps, or may jump and that cannot be decided.

    Args:
        motion: A motion of one coordinate.
        low: Least coordinate.
        high: Greatest.
    """
    steady = steady_twist(motion)
    if steady is not None:
        # R' = R [w] and p' = R v of a constant twist: R'' = R [w]^2, p'' = R (w x v).
        v, w = steady[:3], steady[3:]
        more = 1.0 + ROUNDING
        return more * norm(cross(w, v)), more * dot(w, w)
    linear, angular = (
        max(0.0, upper_bound(height, ((low, high),), GAPS_OF_ACCELERATIONS))
        for height in _acceleration_heights(motion)
    )
    return math.sqrt(linear), math.sqrt(angular)


def is_steady(motion: TracedMotion) -> bool:
    """Return whether the twist of a motion of one coordinate is the same everywhere."""
    return steady_twist(motion) is not None


@lru_cache(maxsize=1024)
def steady_twist(motion: TracedMotion) -> Vector6 | None:
    """Return the twist per unit rate, in M, where that is the same everywhere."""
    program = trace(motion.subspace, name="subspace", q=())
    last = [program.instructions[k] for k in program.results]
    if not all(step.name == "const" for step in last):
        return None
    return six([step.value for step in last])


@lru_cache(maxsize=1024)
def _acceleration_heights(motion: TracedMotion) -> tuple[Height, Height]:
    """Return |p''|^2, and the sum of squares of R'': no less than |R''|^2."""

    def rates(q: Any, part: slice) -> list[Number]:
        return jvp(list(motion.pose(q).entries), [(q, 1.0)])[part]

    def height_of(part: slice) -> Height:
        def height(q: Any) -> Number:
            return sum_of_squares(jvp(rates(q, part), [(q, 1.0)]))

        def velocity(q: Any) -> list[Number]:
            return rates(q, part)

        # Where velocities jump there is no bound.
        return Height(height, smooth=trace(velocity, q=()))

    return height_of(slice(9, 12)), height_of(slice(9))
