"""Cells of directions, and how little a convex body can reach in them.

A cell is all directions between three, d_k, of which the farthest points w_k of the
body are known. Any direction d reaches max w_k . d at least. In a cell the least value
of that is at one of its d_k, or where two are equal on a side, or all three inside:
w . d is least at the ends of every arc of directions on which it is above 0.

Where all three are equal, d is across the plane through the w_k: a face of the polytope
that EPA would grow, and the bound is the distance of that plane from the origin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from armillary.collision.distance.separation import choose
from armillary.spatial.vector import (
    Number,
    Vector3,
    add,
    cross,
    dot,
    norm,
    scale,
    subtract,
)
from armillary.trace.functions import (
    by_precision,
    maximum,
    minimum,
    select,
    sqrt,
)

__all__ = ["Bound", "Subcell", "bound_of", "chosen", "in_order"]

MARGIN: Final = 0.05
"""A cell is not divided nearer to its directions, as a part of the way."""


class Bound(NamedTuple):
    """The least value of max w_k . d in a cell.

    Attributes:
        least: The value; infinite if it is at a direction of the cell.
        at: Where, of length 1.
        divided: 1 for each direction that is replaced if the cell is divided there.
    """

    least: Number
    at: Vector3
    divided: tuple[Number, Number, Number]


class Subcell(NamedTuple):
    """A cell that another one is divided into; `least` is infinite if it is empty."""

    least: Number
    directions: list[Vector3]
    farthest: list[Vector3]
    bound: Bound


def bound_of(
    normals: Sequence[Vector3], points: Sequence[Vector3], extent: Number
) -> Bound:
    """Return the bound of the cell between directions d_k with farthest points w_k."""
    # The bound at the d_k themselves is known: h(d_k) = w_k . d_k, not below the depth.
    along = [[dot(w, d) for d in normals] for w in points]
    least, at = math.inf, normals[0]
    divided: Any = (0.0, 0.0, 0.0)
    same = by_precision(along[0][0], double=1e-15, single=1e-7) * extent
    for i, j in ((0, 1), (1, 2), (2, 0)):
        # On the side d = d_i + t (d_j - d_i) both are linear in t, and equal at
        #     t = (w_i.d_i - w_j.d_i) / (w_i.d_i - w_j.d_i + w_j.d_j - w_i.d_j),
        # of which both parts are at least 0, as w_i is farthest in d_i. They are equal
        # all along if both points are as far. The value is that of d / |d|.
        before, behind = along[i][i] - along[j][i], along[j][j] - along[i][j]
        change = before + behind
        is_between = change > same
        t = before / select(is_between, change, 1.0)
        side = subtract(normals[j], normals[i])
        value = along[i][i] + t * (along[i][j] - along[i][i])
        value = value / norm(add(normals[i], scale(t, side)))
        # The cell is not divided next to its corners, or parts would become slivers.
        t = minimum(maximum(t, MARGIN), 1.0 - MARGIN)
        here = add(normals[i], scale(t, side))
        is_less = is_between & (value < least)
        least = select(is_less, value, least)
        at = choose(is_less, here, at)
        ends = tuple(float(k in {i, j}) for k in range(3))
        divided = choose(is_less, ends, divided)
    # All three are equal along n = (w_1 - w_0) x (w_2 - w_0), at n . w_0 / |n|. That n
    # is in the cell, or -n is, if it is a sum of the d_k with shares of one sign, which
    # by Cramer's rule are n . (d_j x d_k) over the triple product of the d_k.
    u, v = subtract(points[1], points[0]), subtract(points[2], points[0])
    plane = cross(u, v)
    area, height = dot(plane, plane), dot(plane, points[0])
    flat = by_precision(area, double=1e-20, single=1e-9) * dot(u, u) * dot(v, v)
    a, b, c = normals
    shares = [dot(plane, cross(p, q)) for p, q in ((b, c), (c, a), (a, b))]
    total = shares[0] + shares[1] + shares[2]
    shares = [share / total for share in shares]
    smallest = minimum(minimum(shares[0], shares[1]), shares[2])
    is_inside = (area > flat) & (smallest > 0.0)
    # Where the sum of the shares and the triple product differ in sign, it is -n.
    is_against = total * dot(a, cross(b, c)) < 0.0
    value = height / sqrt(select(area > flat, area, 1.0))
    value = select(is_against, 0.0 - value, value)
    is_less = is_inside & (value < least)
    here = (0.0, 0.0, 0.0)
    for share, normal in zip(shares, normals, strict=True):
        here = add(here, scale(maximum(share, MARGIN), normal))
    at = choose(is_less, here, at)
    return Bound(
        select(is_less, value, least),
        scale(1.0 / norm(at), at),
        choose(is_less, (1.0, 1.0, 1.0), divided),
    )


def in_order(parts: Sequence[Subcell]) -> list[Subcell]:
    """Return parts with the least one first."""
    # Each of the others is exchanged with the first if it is less: the rest may be in
    # any order.
    first, *others = parts
    for k, other in enumerate(others):
        is_less = other.least < first.least
        first, others[k] = (
            _smaller_of(is_less, other, first),
            _smaller_of(is_less, first, other),
        )
    return [first, *others]


def _smaller_of(truth: Any, p: Subcell, q: Subcell) -> Subcell:
    bound = Bound(
        select(truth, p.bound.least, q.bound.least),
        choose(truth, p.bound.at, q.bound.at),
        choose(truth, p.bound.divided, q.bound.divided),
    )
    return Subcell(
        select(truth, p.least, q.least),
        chosen(truth, p.directions, q.directions),
        chosen(truth, p.farthest, q.farthest),
        bound,
    )


def chosen(truth: Any, p: Sequence[Vector3], q: Sequence[Vector3]) -> list[Vector3]:
    """Return the vectors `p` where `truth` holds and `q` elsewhere."""
    return [choose(truth, x, y) for x, y in zip(p, q, strict=True)]
