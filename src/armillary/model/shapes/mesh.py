"""Meshes in files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.model.fields import ThreeFloats, default
from armillary.model.geometry.triangles import Triangles
from armillary.model.shape import Colour, Shape

if TYPE_CHECKING:
    from armillary.model.shapes.convex_polyhedron import ConvexPolyhedron


class Mesh(Shape, frozen=True, kw_only=True, tag="mesh"):
    """Triangles in a file, which is read only when they are asked for.

    Attributes:
        file: The reference as the model's file gives it.
        scale: Factors along x, y, z; below 0 where the file is mirrored.
    """

    file: str
    scale: ThreeFloats = default((1.0, 1.0, 1.0))

    def check(self) -> None:
        """Check that there is a reference, and the factors."""
        if not self.file.strip():
            raise self._fault("it names no file")
        items = self._items(self.scale, "scale", 3)
        scale = tuple(self._coordinate(item, "scale") for item in items)
        msgspec.structs.force_setattr(self, "scale", scale)


class MeshTexture(NamedTuple):
    """An image on triangles.

    Attributes:
        uv: Where each corner of each triangle is in the image, as parts of its width
            and height from its upper left corner; outside [0, 1] it repeats. Shape
            (m, 3, 2).
        image: A file in the format PNG or JPEG.
    """

    uv: npt.NDArray[np.float64]
    image: bytes


class MeshPart(NamedTuple):
    """Triangles of one colour or with one image.

    Attributes:
        triangles: In the frame of the file [m], equal corners made one.
        colour: Red, green, blue and opacity in [0, 1], None where the file has none.
        texture: The image, if any, whose colours are multiplied with that one.
        lost: Why an image that the file names is not here.
        whole: How many triangles the file has, where these are fewer for display.
    """

    triangles: Triangles
    colour: Colour | None
    texture: MeshTexture | None = None
    lost: str = ""
    whole: int | None = None

    def scaled(self, factors: tuple[float, float, float]) -> MeshPart:
        """Return them stretched along x, y, z, as `Triangles.scaled` does."""
        texture = self.texture
        if texture is not None and np.prod(np.sign(factors)) < 0.0:
            texture = texture._replace(uv=texture.uv[:, ::-1])
        return self._replace(triangles=self.triangles.scaled(factors), texture=texture)


class MeshSource(Protocol):
    """What reads meshes for a cell: `armillary.formats.mesh.MeshFiles`."""

    def triangles(self, mesh: Mesh) -> Triangles | None:
        """Return the triangles of a mesh in its own frame [m]; None without its file.

        Raises:
            FormatError: The file may not be read, or is faulty.
        """
        ...

    def parts(self, mesh: Mesh) -> Sequence[MeshPart] | None:
        """Return the triangles of a mesh by colours and images.

        Raises:
            FormatError: As for `triangles`.
        """
        ...

    def hull(self, mesh: Mesh) -> ConvexPolyhedron | None:
        """Return a polyhedron around a mesh, with its name, pose and colour.

        Raises:
            FormatError: As for `triangles`.
            ModelError: There is none, as without SciPy.
        """
        ...
