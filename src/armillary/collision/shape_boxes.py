"""Boxes around shapes, which show of most pairs that they are apart.

The distance of two convex shapes is at least the gap between their shadows on any axis.
Of boxes around them the axes of both are tried: in a frame with the axes u_i of one,
whose halves are h_i, a box with axes w_j and halves g_j at t leaves the gap

    |t . u_i| - h_i - sum_j g_j |w_j . u_i|.

(Gottschalk, Lin and Manocha, "OBBTree", 1996, which tries nine more.) An iteration that
looks for nearest points takes ten times as long and more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from armillary.kernel.columns import Column, Columns
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Matrix, Number, Vector, dot, subtract, three
from armillary.trace import Port
from armillary.trace.functions import absolute, maximum

__all__ = ["BoxColumns", "BoxPair", "gap_of_boxes"]


class BoxPair(NamedTuple):
    """The boxes around two shapes, each in the frame of its moving link.

    Attributes:
        X_A: Pose of the moving link of one shape.
        X_B: That of the other.
        box_centre_a: Centre of the box around the one [m].
        box_axes_a: Its axes, in rows.
        box_half_a: Half of its edges [m].
        box_centre_b: The same of the other.
        box_axes_b: The same.
        box_half_b: The same.
        box_rounding: What the edges of both are rounded by, and roundings add [m].
    """

    X_A: Matrix
    X_B: Matrix
    box_centre_a: Vector
    box_axes_a: Matrix
    box_half_a: Vector
    box_centre_b: Vector
    box_axes_b: Matrix
    box_half_b: Vector
    box_rounding: Number


class BoxColumns(Columns):
    """The fields of boxes, for the columns of pipelines that compare them."""

    box_centre_a = Column("centre of the box around one shape", 3, unit="m")
    box_axes_a = Column("its axes, in rows", 3, 3)
    box_half_a = Column("half of its edges", 3, unit="m")
    box_centre_b = Column("centre of the box around the other shape", 3, unit="m")
    box_axes_b = Column("its axes, in rows", 3, 3)
    box_half_b = Column("half of its edges", 3, unit="m")
    box_rounding = Column("what their edges are rounded by", unit="m")
    boxes_meet = Column("above 0 where boxes around two shapes may meet")

    @property
    def boxes(self) -> tuple[Port, ...]:
        """Return the fields of a pair of shapes."""
        return (
            *(self.box_centre_a, self.box_axes_a, self.box_half_a),
            *(self.box_centre_b, self.box_axes_b, self.box_half_b),
            self.box_rounding,
        )


def gap_of_boxes(pair: BoxPair) -> Number:
    """Return a distance that two shapes have at least; it may be below 0."""
    X, Y = Pose.from_matrix(pair.X_A), Pose.from_matrix(pair.X_B)
    U = [X.rotate(three(axis)) for axis in pair.box_axes_a]
    W = [Y.rotate(three(axis)) for axis in pair.box_axes_b]
    t = subtract(X @ three(pair.box_centre_a), Y @ three(pair.box_centre_b))
    R = [[absolute(dot(u, w)) for w in W] for u in U]
    h, g = list(pair.box_half_a), list(pair.box_half_b)

    def reach(halves: Sequence[Number], turned: Sequence[Number]) -> Number:
        return sum((a * b for a, b in zip(halves, turned, strict=True)), 0.0)

    gaps: list[Any] = [absolute(dot(t, U[i])) - h[i] - reach(g, R[i]) for i in range(3)]
    gaps += [
        absolute(dot(t, W[j])) - g[j] - reach(h, [row[j] for row in R])
        for j in range(3)
    ]
    most = gaps[0]
    for gap in gaps[1:]:
        most = maximum(most, gap)
    return most - pair.box_rounding
