"""The axis along which two bodies are farthest apart.

Two convex polyhedra are apart if and only if there is a gap between their shadows along
the normal of a face or along the product of two edges (the separating axis theorem).
Where all shadows overlap, the least overlap is the depth, along its axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from armillary.collision.distance.separation import choose
from armillary.spatial.vector import Number, Vector3, scale
from armillary.trace.functions import absolute, by_precision, maximum, select, sqrt

__all__ = ["Gap", "Widest", "toward", "widest"]

Gap: TypeAlias = tuple[Number, Vector3]
"""How far apart two bodies are along an axis, and the axis from A to B, a unit vector;
minus the depth where they overlap."""


class Widest:
    """The widest gap along axes of any length.

    A gap g along an axis w is g / |w| wide. Of two, that with the larger g |g| / |w|^2
    is wider, so that only one root and one quotient are taken, of the last one.
    """

    def __init__(self) -> None:
        """Begin with none, which is infinitely deep."""
        self._signed: Number = -1.0
        self._square: Number = 0.0
        self._axis: Vector3 = (0.0, 0.0, 0.0)

    def offer(
        self, along: Number, reach: Number, square: Number, axis: Vector3
    ) -> None:
        """Compare an axis, unless it is nearly 0.

        Args:
            along: From the middle of A to that of B, along the axis.
            reach: How far A and B reach along it, together.
            square: Of the length of the axis, about 1 or 0.
            axis: The axis.
        """
        gap = absolute(along) - reach
        # Compared as g |g| / |w|^2 > best / best square, multiplied by both squares.
        # Products of parallel edges are rounding, and no axis.
        signed = gap * absolute(gap)
        is_wider = square > by_precision(square, double=1e-20, single=1e-8)
        is_wider &= signed * self._square > self._signed * square
        self._axis = choose(is_wider, scale(_sign(along), axis), self._axis)
        self._signed = select(is_wider, signed, self._signed)
        self._square = select(is_wider, square, self._square)

    @property
    def found(self) -> Gap:
        """Return the width of the gap, minus the depth at overlaps, and its axis."""
        # g / |w| = +-sqrt(|g |g|| / |w|^2), with the sign of g.
        width = sqrt(absolute(self._signed) / self._square)
        width = select(self._signed < 0.0, 0.0 - width, width)
        return width, scale(1.0 / sqrt(self._square), self._axis)


def widest(faces: Sequence[Gap], others: Sequence[Gap]) -> Gap:
    """Return the widest gap; NaN where one of a face is.

    Args:
        faces: Along the normals of faces of A, for which all numbers of a pose count.
        others: Along other axes.
    """
    # `maximum` hands NaN on, and `select` drops that of other axes, as edges that are
    # parallel have.
    width, axis = faces[0]
    for other, unit in faces[1:]:
        axis = choose(other > width, unit, axis)
        width = maximum(other, width)
    for other, unit in others:
        axis = choose(other > width, unit, axis)
        width = select(other > width, other, width)
    return width, axis


def toward(along: Number, reach: Number, unit: Vector3) -> Gap:
    """Return the width of a gap along a unit axis, and the axis from A to B."""
    return absolute(along) - reach, scale(_sign(along), unit)


def _sign(x: Number) -> Number:
    return select(x < 0.0, -1.0, 1.0)
