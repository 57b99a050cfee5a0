"""The distance of a capsule of a link from an obstacle."""

from __future__ import annotations

from typing import NamedTuple

from armillary.collision.distance.capsule import segment_segment, slab_segment
from armillary.collision.distance.separation import direction
from armillary.control.columns import WorldCapsule
from armillary.control.obstacles import CapsuleNumbers, obstacle_numbers
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Matrix,
    Number,
    Vector,
    Vector3,
    add,
    norm,
    scale,
    subtract,
    three,
)

__all__ = ["CapsuleEnds", "ObstacleGap", "gap_to_obstacle", "placed_capsule"]


class CapsuleEnds(NamedTuple):
    """The ends of the segment of a capsule in the world [m]."""

    end_a: Vector
    end_b: Vector


def placed_capsule(
    capsule_pose: Matrix, capsule_a: Vector, capsule_b: Vector
) -> CapsuleEnds:
    """Return the ends of a capsule of a link in the world [m]."""
    X = Pose.from_matrix(capsule_pose)
    return CapsuleEnds(X @ three(capsule_a), X @ three(capsule_b))


class ObstacleGap(NamedTuple):
    """How far a capsule of a link is from an obstacle.

    Attributes:
        value: Their distance [m].
        point: The nearest point of the segment of the link.
        normal: A unit vector from the obstacle to the link.
    """

    value: Number
    point: Vector3
    normal: Vector3


def gap_to_obstacle(capsule: WorldCapsule, obstacle: Vector) -> ObstacleGap:
    """Return how far a capsule is from an obstacle.

    obstacle: Its numbers, as in `Obstacles.numbers`.
    """
    numbers, radius = obstacle_numbers(obstacle), capsule.capsule_radius
    own = _Segment.of(three(capsule.end_a), three(capsule.end_b))
    # Boxes have more numbers than capsules; both kinds share no code.
    if isinstance(numbers, CapsuleNumbers):
        p, q = map(three, numbers.ends)
        other = _Segment.of(p, q)
        frame = Pose.translation(*other.middle)
        apart = segment_segment(
            other.unit,
            other.half,
            subtract(own.middle, other.middle),
            own.unit,
            own.half,
        )
    else:
        # In the frame of the box the nearest points are those of a slab and a segment.
        R, centre = numbers.rotation, numbers.centre
        frame = Pose.from_matrix([[*R[i], centre[i]] for i in range(3)])
        to_box = frame.inverse()
        apart = slab_segment(
            numbers.half, to_box @ own.middle, to_box.rotate(own.unit), own.half
        )
    value = apart.value - radius - numbers.radius
    return ObstacleGap(value, frame @ apart.on_b, frame.rotate(apart.normal))


class _Segment(NamedTuple):
    """A segment: its middle, its direction, z for a point, and half of its length."""

    middle: Vector3
    unit: Vector3
    half: Number

    @classmethod
    def of(cls, a: Vector3, b: Vector3) -> _Segment:
        """Return the segment between two points."""
        along = subtract(b, a)
        unit = direction(along, 0.0, (0.0, 0.0, 1.0))
        return cls(scale(0.5, add(a, b)), unit, 0.5 * norm(along))
