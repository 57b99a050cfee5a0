"""Distance of half spaces from convex bodies: of their lowest points."""

from __future__ import annotations

from typing import Any

from armillary.collision.distance.columns import PairColumns
from armillary.collision.distance.support import support_of
from armillary.kernel.stages import Stage
from armillary.spatial.pose import Pose
from armillary.spatial.vector import Matrix, Vector, Vector3, negate, three


def half_space_stages(columns: PairColumns) -> tuple[Stage, ...]:
    """Return stages from the pose X of B in a half space A to their separation."""
    # A half space is z <= 0. No iteration is needed: the depth of any convex body in it
    # is that of its lowest point.
    _, b = columns.sides
    return (
        columns.stage(_down, writes=b.to),
        *support_of(columns, b),
        columns.stage(_height, lowest=b.point, writes=columns.separation),
    )


def _down(X: Matrix) -> Vector3:
    """Return -z of the half space in the frame of B: minus the last row of R_AB."""
    return negate(Pose.from_matrix(X).rotation[2])


def _height(X: Matrix, lowest: Vector) -> Any:
    """Return how high B's lowest point is above the plane z = 0."""
    point = Pose.from_matrix(X) @ three(lowest)
    below = point[0], point[1], 0.0
    return point[2], 0.0, below, point, (0.0, 0.0, 1.0)
