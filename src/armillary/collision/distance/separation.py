"""What the formula of a pair of shapes returns, and the vectors that formulas share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from armillary.spatial.pose import Pose
from armillary.spatial.vector import Number, Vector3, add, dot, scale
from armillary.trace.functions import by_precision, maximum, select, sqrt


class Separation(NamedTuple):
    """How far apart two bodies A and B are, in the frame of A.

    on_b - on_a = value normal.

    Attributes:
        value: Distance [m]; below 0 where they overlap, minus the depth.
        on_a: The point of A that is nearest to B, or deepest in it.
        on_b: The same of B.
        normal: Unit vector from A to B: B moved by -value along it touches A.
    """

    value: Number
    on_a: Vector3
    on_b: Vector3
    normal: Vector3

    def rounded(self, radius_a: Number, radius_b: Number) -> Separation:
        """Return the separation of both bodies grown by radii [m].

        The depth of convex bodies grows by the radii, too: it is the distance of the
        origin from the boundary of A - B, which moves outwards by their sum.
        """
        return Separation(
            self.value - (radius_a + radius_b),
            add(self.on_a, scale(radius_a, self.normal)),
            add(self.on_b, scale(0.0 - radius_b, self.normal)),
            self.normal,
        )


Formula: TypeAlias = Callable[[Any, Any, Pose], Separation]
"""Separation of the cores of shapes a and b, with the pose of b in a; the sizes of the
shapes and the pose are traced."""

GapFormula: TypeAlias = Callable[[Any, Any, Pose], Number]
"""The same, but only minus the depth, or where cores are apart a number above 0 that is
not above their distance. Shapes with such a formula have no radii."""


def clamp(x: Number, half: Number) -> Number:
    """Return the number in [-half, half] that is nearest to `x`; NaN where `x` is.

    Minimum and maximum would look for NaN in both of their arguments.
    """
    least = 0.0 - half
    above = select(least > x, least, x)
    return select(half < above, half, above)


def choose(truth: Any, a: Sequence[Number], b: Sequence[Number]) -> Any:
    """Return the numbers `a` where `truth` holds and `b` elsewhere."""
    return tuple(select(truth, x, y) for x, y in zip(a, b, strict=True))


def direction(d: Vector3, extent: Number, otherwise: Vector3) -> Vector3:
    """Return d / |d|, or another direction if `d` is only rounding.

    So normals stay unit vectors where bodies touch, and where numbers are so small that
    their squares vanish.

    Args:
        d: Of any length.
        extent: Size of the numbers that `d` is a difference of.
        otherwise: A unit vector.
    """
    # `least` is the rounding of a difference of numbers of that size; below `smallest`
    # 1 / |d| would be infinite. Where `choose` drops it, the root is that of 1.
    square = dot(d, d)
    least = by_precision(square, double=1e-12, single=1e-5) * extent
    smallest = by_precision(square, double=1e-280, single=1e-36)
    is_far = square > maximum(least * least, smallest)
    factor = 1.0 / sqrt(select(is_far, square, 1.0))
    return choose(is_far, scale(factor, d), otherwise)


def are_apart(lower: Number, extent: Number) -> Any:
    """Tell whether a bound of the distance is more than rounding."""
    return lower > by_precision(lower, double=1e-15, single=1e-6) * extent
