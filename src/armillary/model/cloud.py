"""Clouds: shapes of very many equal bodies, each at a place of its own."""

from __future__ import annotations

from typing import Any, Self

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.limits import CLOUD_ELEMENTS, DRAWN_ELEMENTS
from armillary.model.geometry.bounding import BoundingBox, BoundingSphere, box_around
from armillary.model.geometry.moments import Moments
from armillary.model.geometry.triangles import Triangles
from armillary.model.primitive import MILLIMETRE, Primitive
from armillary.model.shape import Shape
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import IDENTITY, Pose

__all__ = ["Cloud"]

Array = npt.NDArray[np.float64]


class Cloud(Shape, frozen=True):
    """A body made of very many equal convex bodies: the elements.

    Elements have the axes of the cloud's frame. It is the union of them, so that it
    need not be convex; its distance from another shape is that of the nearest element,
    and where the other shape overlaps it, that of the deepest one.
    """

    # What a kind of cloud defines.

    @property
    def centres(self) -> Array:
        """Return the centres of its elements in its own frame [m], shape (n, 3)."""
        raise NotImplementedError

    @property
    def element(self) -> Primitive:
        """Return one element, at the origin."""
        raise NotImplementedError

    @classmethod
    def form(cls) -> Self:
        """Return one cloud for all of its kind, of one element."""
        raise NotImplementedError

    @property
    def geometry(self) -> tuple[Any, ...]:
        """Return what decides where the centres are, hashable."""
        raise NotImplementedError

    @property
    def moments(self) -> Moments:
        """Return the moments of its volume, in its own frame.

        Raises:
            ModelError: Its elements overlap, so that it has no volume that is known.
        """
        raise NotImplementedError

    # What follows.

    @property
    def volume(self) -> float:
        """Return its volume [m^3].

        Raises:
            ModelError: As for `moments`.
        """
        return self.moments.volume

    def inertia(self, density: float) -> SpatialInertia:
        """Return its inertia about the origin of the link's primary frame.

        density: [kg/m^3], above 0.

        Raises:
            ModelError: As for `moments`, or the density is invalid.
        """
        return self.moments.inertia(density).transformed(self.pose)

    @property
    def bounding_sphere(self) -> BoundingSphere:
        """Return a sphere around it, in its own frame; there may be smaller ones."""
        # The smallest sphere around a million points takes longer than their tree.
        lower, upper = (np.array(corner) for corner in self._box)
        middle = 0.5 * (lower + upper)
        reach = self.centres - middle
        square = float(np.einsum("ij,ij->i", reach, reach).max())
        own = self.element.bounding_sphere.radius
        x, y, z = middle.tolist()
        return BoundingSphere((x, y, z), float(np.sqrt(square)) + own)

    @property
    def _box(self) -> BoundingBox:
        """Return the box around the centres."""
        return box_around(self.centres)

    def bounding_box(self, X_AS: Pose = IDENTITY) -> BoundingBox:
        """Return the smallest box around it along the axes of a frame.

        X_AS: The pose of its own frame S in that frame A: by default A is S; with
            `shape.pose` it is the link's primary frame.
        """
        R, p = np.array(X_AS.rotation), np.array(X_AS.position)
        lower, upper = box_around(self.centres @ R.T)
        own_lower, own_upper = self.element.bounding_box(
            Pose(X_AS.rotation, (0.0, 0.0, 0.0))
        )
        return BoundingBox(
            tuple((np.array(lower) + own_lower + p).tolist()),
            tuple((np.array(upper) + own_upper + p).tolist()),
        )

    def triangles(self, tolerance: float = MILLIMETRE) -> Triangles:
        """Return triangles for drawing, of at most some of its elements; in its frame.

        tolerance: The largest distance between them and the surface of an element [m];
            elements have at least twenty triangles if they are round.
        """
        del tolerance  # very many small bodies are drawn coarsely
        centres, body = self.centres, self._drawn
        some = centres[:: self._step]
        corners = len(body.vertices)
        vertices = (some[:, np.newaxis] + body.vertices).reshape(-1, 3)
        first = corners * np.arange(len(some))[:, np.newaxis, np.newaxis]
        return Triangles(vertices, (first + body.faces).reshape(-1, 3))

    @property
    def drawn_count(self) -> int:
        """Return how many of its elements `triangles` shows."""
        return -(-len(self.centres) // self._step)

    @property
    def _step(self) -> int:
        return -(-len(self.centres) // DRAWN_ELEMENTS.most)

    @property
    def _drawn(self) -> Triangles:
        """Return the triangles of an element."""
        element = self.element
        return element.triangles(0.3 * element.bounding_sphere.radius)

    def __repr__(self) -> str:
        """Return a short line: its numbers are too many."""
        own = [n for n in self.__struct_fields__ if n != "data"]
        defaults = {"name": "", "pose": IDENTITY, "colour": None}
        shown = [
            f"{name}={getattr(self, name)!r}"
            for name in own
            if name not in defaults or getattr(self, name) != defaults[name]
        ]
        count = f"{len(self.centres)} bodies"
        return f"<{type(self).__name__} of {', '.join([count, *shown])}>"

    # What subclasses store and check.

    def _store(self, **fields: Any) -> None:
        for name, value in fields.items():
            msgspec.structs.force_setattr(self, name, value)

    def _check_count(self, count: int, what: str) -> None:
        if not count:
            raise self._fault(f"it has no {what}")
        if count > CLOUD_ELEMENTS.most:
            raise self._fault(
                f"it has {count} {what}: {CLOUD_ELEMENTS.excess(count)}; leave out "
                "what is out of reach, or make it coarser: Points.thinned or "
                "Voxels.around"
            )

    def _no_volume(self) -> ModelError:
        return self._fault(
            "its balls may overlap, so that it has no volume that is known, and no "
            "inertia; Voxels.around(points, size=...) has"
        )
