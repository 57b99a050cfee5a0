"""What a controller avoided, drawn beside a cell while its motion is played."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from armillary.control.obstacles import as_boxes
from armillary.control.simulation import ControlledMotion
from armillary.model.shape import Colour
from armillary.model.shapes import Box, Capsule, Sphere
from armillary.view.kinds import FARTHEST, Surface
from armillary.view.surfaces import TOLERANCE

__all__ = ["NOTHING", "MovingObstacles", "obstacles_of_motion"]

Array = npt.NDArray[np.float64]

COLOUR: Final[Colour] = (0.86, 0.27, 0.22, 0.75)
THIN: Final = 1e-9
"""Boxes that are thinner than this part of their length are drawn as capsules."""


@final
@dataclass(frozen=True, eq=False, slots=True)
class MovingObstacles:
    """Shapes that move.

    Attributes:
        surfaces: One for each; where its size changes, of the greatest.
        poses: Where they are at each instant, shape (instants, k, 4, 4).
    """

    surfaces: tuple[Surface, ...]
    poses: Array


NOTHING: Final = MovingObstacles((), np.zeros((1, 0, 4, 4)))


def obstacles_of_motion(motion: ControlledMotion) -> MovingObstacles:
    """Return what a controller avoided, at each instant of a motion without a batch."""
    count = len(motion.time) - 1
    given = [motion.obstacles(k) for k in range(count)]
    known = [each for each in given if each is not None]
    if not known:
        return NOTHING
    known.append(known[-1].after(float(motion.time[-1] - motion.time[-2])))
    numbers = np.stack([as_boxes(each.numbers) for each in known])
    numbers = np.where(np.isfinite(numbers), numbers, FARTHEST)
    X = np.zeros((*numbers.shape[:2], 4, 4))
    X[..., :3, :3] = numbers[..., 10:].reshape(*numbers.shape[:2], 3, 3)
    X[..., :3, 3] = numbers[..., :3].clip(-FARTHEST, FARTHEST)
    X[..., 3, 3] = 1.0
    sizes, radii = 2.0 * numbers[..., 3:6].max(axis=0), numbers[..., 9].max(axis=0)
    surfaces = [_surface(size, float(r)) for size, r in zip(sizes, radii, strict=True)]
    return MovingObstacles(tuple(surfaces), X)


def _surface(size: Array, radius: float) -> Surface:
    shape: Any
    if size[:2].max() > THIN * size[2]:
        shape = Box(size=tuple((size + 2.0 * radius).tolist()))
    elif size[2] > 0.0:
        shape = Capsule(radius=radius, length=float(size[2]))
    else:
        shape = Sphere(radius=radius)
    triangles = shape.triangles(TOLERANCE * max(radius, 0.1 * float(size.max())))
    vertices = triangles.vertices.astype(np.float32)
    return Surface(vertices, triangles.faces.astype(np.uint32), COLOUR)
