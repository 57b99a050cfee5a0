"""Mass properties of several bodies."""

from __future__ import annotations

from collections.abc import Iterable

from armillary.errors import ModelError, quote
from armillary.model.primitive import Primitive
from armillary.model.shape import Shape
from armillary.spatial.inertia import SpatialInertia


def inertia_of(shapes: Iterable[Shape], density: float) -> SpatialInertia:
    """Return the inertia of shapes of one link, about its primary frame's origin.

    density: [kg/m^3], above 0.

    Raises:
        ModelError: A shape is a mesh, whose triangles are in a file, or infinite; or
            the density is none.
    """
    total = SpatialInertia.zero()
    for shape in shapes:
        if not isinstance(shape, Primitive):
            raise ModelError(
                f"The {type(shape).__name__} {quote(shape.name)} has no inertia "
                "without its triangles: read them, and add their own "
                ".inertia(density).transformed(shape.pose)."
            )
        total += shape.inertia(density)
    return total
