"""Distance of half spaces from convex bodies: of their lowest points."""

from __future__ import annotations

from typing import Any

from armillary.collision.distance.separation import COLUMNS
from armillary.collision.distance.support import support_of
from armillary.kernel.pipeline import Stage
from armillary.model.primitive import Primitive
from armillary.spatial.pose import Pose
from armillary.spatial.vector import negate, three
from armillary.trace import trace


def half_space_stages(b: Primitive) -> tuple[Stage, ...]:
    """Return stages from the pose X of `b` in a half space to their separation."""
    aim = trace(
        _down,
        name="down",
        outputs=("to_b",),
        X=(3, 4),
    )
    height = trace(
        _height,
        name="height",
        outputs=tuple(COLUMNS),
        X=(3, 4),
        point_b=(3,),
    )
    return aim, *support_of(b, "b"), height


def _down(X: Any) -> Any:
    return negate(Pose.from_matrix(X).rotation[2])


def _height(X: Any, point_b: Any) -> Any:
    lowest = Pose.from_matrix(X) @ three(point_b)
    below = lowest[0], lowest[1], 0.0
    return lowest[2], 0.0, below, lowest, (0.0, 0.0, 1.0)
