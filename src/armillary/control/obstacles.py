"""Obstacles that come and go: capsules and boxes that move, given with every step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError, quote
from armillary.kernel.arguments import numbers_of
from armillary.kernel.packed import Packed, Part, width_of
from armillary.model.primitive import Primitive
from armillary.model.shapes import Capsule, ConvexPolyhedron, Sphere
from armillary.spatial.pose import Pose

__all__ = [
    "CAPSULE_WIDTH",
    "BoundingCapsule",
    "BoxNumbers",
    "CapsuleNumbers",
    "Obstacles",
    "as_boxes",
    "capsule_around",
    "obstacle_numbers",
    "obstacles_of",
]

Array = npt.NDArray[np.float64]

SLOTS: Final = (16, 64, 256)
"""Room for obstacles; more of them than before compile other code."""

ROTATED: Final = 1e-6
"""How far a rotation times its transpose may be from 1."""


class CapsuleNumbers(Packed):
    """The numbers of an obstacle where all are capsules."""

    ends = Part("the ends of its segment", 2, 3, unit="m")
    velocity = Part("its velocity", 3, unit="m/s")
    radius = Part("its radius", unit="m")


class BoxNumbers(Packed):
    """The numbers of an obstacle where one is a box; all are boxes then, or rounded."""

    centre = Part("its centre", 3, unit="m")
    half = Part("half of its sides", 3, unit="m")
    velocity = Part("its velocity", 3, unit="m/s")
    radius = Part("the radius of its edges", unit="m")
    rotation = Part("its rotation", 3, 3)


CAPSULE_WIDTH: Final = CapsuleNumbers.size()
BOX_WIDTH: Final = BoxNumbers.size()


def obstacle_numbers(numbers: Any) -> CapsuleNumbers | BoxNumbers:
    """Return the numbers of obstacles by their names; their count tells the kind.

    numbers: A list of traced numbers, or an array, shape (..., 10) or (..., 19).
    """
    return (BoxNumbers if width_of(numbers) == BOX_WIDTH else CapsuleNumbers)(numbers)


@dataclass(frozen=True, eq=False)
class Obstacles:
    """Capsules in the world: all points within a radius of a segment; or boxes.

    Arrays broadcast; what has no batch holds for all rows. They are copied when they
    are first used: make new obstacles where these move. Steps of rows for which a
    number is NaN or infinite are `INVALID`.

    Attributes:
        ends: The ends of the segments [m], shape (..., k, 2, 3); equal for spheres, and
            the centres of boxes.
        radii: The radii [m], shape (..., k) or (); 0 for boxes.
        velocities: How they move [m/s], shape (..., k, 3) or (3,).
        sizes: The sides of boxes [m], shape (..., k, 3); None for capsules.
        rotations: Those of boxes, shape (..., k, 3, 3); None for capsules.
    """

    ends: Any
    radii: Any
    velocities: Any = (0.0, 0.0, 0.0)
    sizes: Any = None
    rotations: Any = None

    @classmethod
    def spheres(
        cls, centres: Any, radii: Any, velocities: Any = (0.0, 0.0, 0.0)
    ) -> Obstacles:
        """Return spheres.

        Args:
            centres: Their centres [m], shape (..., k, 3).
            radii: Their radii [m], shape (..., k) or ().
            velocities: How they move [m/s], shape (..., k, 3) or (3,).

        Raises:
            ShapeError: The centres have another shape, or a radius is below 0.
        """
        at = numbers_of("centres", centres)
        if at.ndim < 2 or at.shape[-1] != 3:
            raise ShapeError(
                f"Centres of spheres have the shape (..., k, 3), not {at.shape}."
            )
        # NaN is allowed here: it makes a step `INVALID`, as documented.
        _refuse_negative(numbers_of("radii of obstacles", radii))
        return cls(np.stack([at, at], axis=-2), radii, velocities)

    @classmethod
    def boxes(
        cls, poses: Any, sizes: Any, velocities: Any = (0.0, 0.0, 0.0)
    ) -> Obstacles:
        """Return boxes.

        Args:
            poses: The poses of their centres in the world, shape (..., k, 4, 4).
            sizes: Their sides along x, y and z [m], shape (..., k, 3) or (3,).
            velocities: How they move [m/s], shape (..., k, 3) or (3,); they do not
                turn.

        Raises:
            ShapeError: The poses or the sizes have another shape.
            ModelError: The rotation of a pose is not orthonormal.
        """
        X = numbers_of("poses", poses)
        if X.ndim < 3 or X.shape[-2:] != (4, 4):
            raise ShapeError(
                f"Poses of boxes have the shape (..., k, 4, 4), not {X.shape}."
            )
        sides = numbers_of("sizes", sizes)
        if sides.shape[-1:] != (3,):
            raise ShapeError(
                f"Sizes of boxes have the shape (..., k, 3) or (3,), not {sides.shape}."
            )
        if sides.ndim == 1:
            sides = np.broadcast_to(sides, (X.shape[-3], 3))
        R, at = X[..., :3, :3], X[..., :3, 3]
        # R R' = 1 but for rounding: scaled or sheared boxes are refused.
        if (np.abs(R @ R.swapaxes(-1, -2) - np.eye(3)) > ROTATED).any():
            raise ModelError(
                "The poses of boxes must be rigid; the rotation of one is not "
                "orthonormal. Sizes are given by sizes=."
            )
        ends = np.stack([at, at], axis=-2)
        return cls(ends, np.zeros(X.shape[-3]), velocities, sides, R)

    @classmethod
    def joined(cls, *parts: Obstacles) -> Obstacles:
        """Return all obstacles of several, in their order.

        Raises:
            ShapeError: The shapes do not fit.
        """
        given: tuple[Any, ...] = parts
        if not given or not all(isinstance(each, Obstacles) for each in given):
            raise ShapeError(
                "Obstacles are joined from one or more of them: "
                "Obstacles.joined(hand, boxes)."
            )
        # Among boxes, capsules become rounded boxes, so that all have one width.
        has_boxes = any(each.sizes is not None for each in parts)
        all_numbers = [
            as_boxes(each.numbers) if has_boxes else each.numbers for each in parts
        ]
        try:
            batch = np.broadcast_shapes(*(each.shape[:-2] for each in all_numbers))
        except ValueError:
            shapes = ", ".join(str(each.shape[:-2]) for each in all_numbers)
            raise ShapeError(
                f"Batches of obstacles do not fit together: {shapes}."
            ) from None
        whole = [np.broadcast_to(m, (*batch, *m.shape[-2:])) for m in all_numbers]
        return obstacles_of(np.concatenate(whole, axis=-2))

    def after(self, time: float) -> Obstacles:
        """Return where they are after a time [s], at constant velocities.

        Raises:
            ShapeError: The time is not a finite number, or shapes do not fit.
        """
        instant = numbers_of("time", time)
        if instant.ndim or not np.isfinite(instant):
            raise ShapeError(f"time is one finite number, not {quote(time)}.")
        # Shapes are checked before anything moves.
        _ = self.in_slots  # which checks the shapes
        moved = instant * numbers_of("velocities", self.velocities)
        return replace(self, ends=numbers_of("ends", self.ends) + moved[..., None, :])

    @property
    def numbers(self) -> Array:
        """Return what a step takes of each, shape (..., k, 10) or (..., k, 19).

        Raises:
            ShapeError: The shapes do not fit.
            ModelError: There are too many.
        """
        count, in_slots = self.in_slots
        return in_slots[..., :count, :]

    @cached_property
    def in_slots(self) -> tuple[int, Array]:
        """Return how many there are, and their numbers; those of empty slots are 0.

        Raises:
            ShapeError: The shapes do not fit.
            ModelError: There are too many.
        """
        ends = numbers_of("ends of obstacles", self.ends)
        radii = numbers_of("radii of obstacles", self.radii)
        velocities = numbers_of("velocities of obstacles", self.velocities)
        shape = ends.shape
        if len(shape) < 3 or shape[-2:] != (2, 3):
            raise ShapeError(
                "The ends of obstacles have the shape (..., k, 2, 3), two points for "
                f"each; not {shape}."
            )
        count, batch = shape[-3], shape[:-2]
        # Shapes that fit at once are by far the most frequent: they take no broadcast.
        if radii.shape != batch or velocities.shape not in {(3,), (*batch, 3)}:
            batch = _common(ends, radii, velocities)
        _refuse_negative(radii)
        if count > SLOTS[-1]:
            raise ModelError(f"There are {count} obstacles; a step takes {SLOTS[-1]}.")
        boxes = None
        if self.sizes is not None or self.rotations is not None:
            boxes = self._boxes(count)
            batch = np.broadcast_shapes(batch, boxes.half.shape[:-1])
        # Arrays have one of three lengths; empty slots are 0, and never read.
        slots = SLOTS[0] if count <= SLOTS[0] else min(s for s in SLOTS if s >= count)
        width = CAPSULE_WIDTH if boxes is None else BOX_WIDTH
        in_slots = np.zeros((*batch[:-1], slots, width))
        filled = in_slots[..., :count, :]
        if boxes is None:
            own = CapsuleNumbers(filled)
            own.ends = ends
        else:
            own = BoxNumbers(filled)
            own.centre = ends.mean(axis=-2)
            own.half, own.rotation = boxes
        own.velocity, own.radius = velocities, radii
        in_slots.setflags(write=False)
        return count, in_slots

    def _boxes(self, count: int) -> _Sides:
        """Return half of the sides of boxes and their rotations."""
        try:
            half = 0.5 * numbers_of("sizes", self.sizes)
            R = numbers_of("rotations", self.rotations)
            batch = np.broadcast_shapes((count,), half.shape[:-1], R.shape[:-2])
            sides = _Sides(
                np.broadcast_to(half, (*batch, 3)), np.broadcast_to(R, (*batch, 3, 3))
            )
        except (TypeError, ValueError):
            raise ShapeError(
                f"There are {count} boxes by their centres; their sizes have the shape "
                "(..., k, 3) and their rotations (..., k, 3, 3)."
            ) from None
        if batch[-1] != count or (half < 0.0).any():
            raise ShapeError(
                "Each box has a size, and none has a side below 0. Boxes are made by "
                "Obstacles.boxes(poses, sizes)."
            )
        return sides


class _Sides(NamedTuple):
    """Half of the sides of boxes, shape (..., k, 3), and rotations, (..., k, 3, 3)."""

    half: Array
    rotation: Array


def _refuse_negative(radii: Array) -> None:
    """Refuse radii below 0; those that are NaN make a step `INVALID`.

    Raises:
        ShapeError: One is below 0.
    """
    if (radii < 0.0).any():
        raise ShapeError(
            f"The radius of an obstacle is {radii.min(where=radii < 0.0, initial=0.0)}"
            " m; radii are 0 or more."
        )


def _common(ends: Array, radii: Array, velocities: Array) -> tuple[int, ...]:
    """Return the batch of obstacles and, last, how many there are.

    Raises:
        ShapeError: The shapes do not fit.
    """
    count = ends.shape[-3]
    try:
        batch = np.broadcast_shapes(
            ends.shape[:-2], radii.shape, velocities.shape[:-1] or (1,)
        )
    except ValueError:
        raise ShapeError(
            f"Ends {ends.shape}, radii {radii.shape} and velocities "
            f"{velocities.shape} of obstacles do not fit together."
        ) from None
    if batch[-1] != count or velocities.shape[-1:] != (3,):
        raise ShapeError(
            f"There are {count} obstacles by their ends; radii {radii.shape} and "
            f"velocities {velocities.shape} are of others."
        )
    return batch


def obstacles_of(numbers: Array) -> Obstacles:
    """Return the obstacles that have such `numbers`."""
    own = obstacle_numbers(numbers)
    if isinstance(own, CapsuleNumbers):
        return Obstacles(own.ends, own.radius, own.velocity)
    ends = np.stack([own.centre, own.centre], axis=-2)
    return Obstacles(ends, own.radius, own.velocity, 2.0 * own.half, own.rotation)


def as_boxes(numbers: Array) -> Array:
    """Return capsules as boxes of one side: shape (..., k, 19) from (..., k, 10)."""
    own = obstacle_numbers(numbers)
    if isinstance(own, BoxNumbers):
        return numbers
    a, b = own.ends[..., 0, :], own.ends[..., 1, :]
    length = np.linalg.norm(b - a, axis=-1)
    # The z axis of the box is that of the segment; any axis will do for a sphere.
    z = np.where(length[..., None] > 0.0, b - a, (0.0, 0.0, 1.0))
    z = z / np.linalg.norm(z, axis=-1, keepdims=True)
    # The axis that z is least along gives a well-conditioned x.
    aside = np.eye(3)[np.abs(z).argmin(axis=-1)]
    x = np.cross(aside, z)
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    boxes = BoxNumbers(np.zeros((*numbers.shape[:-1], BOX_WIDTH)))
    boxes.centre, boxes.half[..., 2] = 0.5 * (a + b), 0.5 * length
    boxes.velocity, boxes.radius = own.velocity, own.radius
    boxes.rotation = np.stack([x, np.cross(z, x), z], axis=-1)
    return boxes.numbers


class BoundingCapsule(NamedTuple):
    """A capsule in a frame.

    Attributes:
        a: One end of its segment [m].
        b: The other.
        radius: [m].
    """

    a: Array
    b: Array
    radius: float


def capsule_around(shape: Primitive, pose: Pose) -> BoundingCapsule | None:
    """Return a capsule around a shape, None where there is none: of a half space.

    It is exact for spheres and capsules.

    Args:
        shape: The shape.
        pose: The frame that its own pose is in, in the frame of the capsule.
    """
    # Spheres and capsules are what they are; others get a capsule around corners.
    X = pose @ shape.pose
    if isinstance(shape, Sphere):
        at = np.array(X.position)
        return BoundingCapsule(at, at, float(shape.radius))
    if isinstance(shape, Capsule):
        half = 0.5 * float(shape.length)
        ends = [np.array(X @ (0.0, 0.0, s)) for s in (-half, half)]
        return BoundingCapsule(ends[0], ends[1], float(shape.radius))
    points = _corners(shape)
    if points is None:
        return None
    placed = np.array([X @ tuple(p) for p in points.tolist()])
    return _around(placed)


def _corners(shape: Primitive) -> Array | None:
    """Return points whose hull holds a shape in its own frame; None if unbounded."""
    if isinstance(shape, ConvexPolyhedron):
        return np.array(shape.vertices, np.float64)
    try:
        lower, upper = np.array(shape.bounding_box(), np.float64)
    except NotImplementedError:
        return None
    if not np.isfinite([lower, upper]).all():
        return None
    grid = np.array(np.meshgrid(*np.stack([lower, upper], axis=1)))
    return grid.reshape(3, -1).T


def _around(points: Array) -> BoundingCapsule:
    """Return a capsule around points, about one of their principal axes or edges."""
    centre = points.mean(axis=0)
    # Principal axes of the points: one of them is near the best axis.
    _, _, axes = np.linalg.svd(points - centre, full_matrices=True)
    # The smallest of three: about each principal axis.
    capsules = [_about(points, axis) for axis in axes]
    return min(capsules, key=_volume)


def _about(points: Array, axis: Array) -> BoundingCapsule:
    """Return a capsule around points whose segment has a direction."""
    along = points @ axis
    across = points - along[:, None] * axis
    # The axis of the capsule goes through the middle of the points across it.
    middle = 0.5 * (across.min(axis=0) + across.max(axis=0))
    middle -= (middle @ axis) * axis
    # The radius holds all points across the axis; the ends hold them along it.
    distances = np.linalg.norm(across - middle, axis=1)
    radius = float(distances.max())
    # A point within the radius needs the segment only up to where the cap holds it.
    reach = np.sqrt(np.maximum(radius * radius - distances**2, 0.0))
    low, high = float((along + reach).min()), float((along - reach).max())
    # Flat across the axis: a sphere holds all points.
    if low > high:
        low = high = 0.5 * (low + high)
        at = middle + low * axis
        radius = float(np.linalg.norm(points - at, axis=1).max())
    return BoundingCapsule(
        middle + low * axis, middle + high * axis, radius * (1.0 + 1e-12)
    )


def _volume(capsule: BoundingCapsule) -> float:
    a, b, radius = capsule
    length = float(np.linalg.norm(b - a))
    return float(radius**2 * (length + 4.0 / 3.0 * radius))
