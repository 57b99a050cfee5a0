"""Shapes, and the distance of two of them.

`distance(a, X_A, b, X_B)` gives value, points and normal for one pair of poses or many;
`distance_kernel(a, b)` the value alone, faster. `bounding_spheres` and `convex_parts`
are around any body. A subclass of `Primitive` with a method
`farthest(direction)` is a convex shape of your own.
"""

from __future__ import annotations

from armillary.collision.distance.pair import Distance, distance, distance_kernel
from armillary.model import shapes
from armillary.model.bounding_volumes import (
    BoundingSpheres,
    bounding_spheres,
    convex_parts,
)
from armillary.model.primitive import Primitive
from armillary.model.shapes import *  # noqa: F403

__all__ = [
    "BoundingSpheres",
    "Distance",
    "Primitive",
    "bounding_spheres",
    "convex_parts",
    "distance",
    "distance_kernel",
]
__all__ += shapes.__all__
