"""Shapes as triangles and lines for drawing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ArmillaryError, printable, quote, shortened
from armillary.limits import DRAWN_TRIANGLES
from armillary.model.cloud import Cloud
from armillary.model.geometry.triangles import Triangles
from armillary.model.primitive import Primitive
from armillary.model.shape import Colour, Shape
from armillary.model.shapes import HalfSpace, Mesh
from armillary.model.shapes.mesh import MeshPart, MeshSource
from armillary.spatial.pose import IDENTITY
from armillary.view.kinds import FARTHEST, DrawnSurface, Lines, Texture

__all__ = ["MOST_TRIANGLES", "Sketch", "Surfaces", "decimated", "lines"]

Array = npt.NDArray[np.float64]

MOST_TRIANGLES: Final = DRAWN_TRIANGLES.most
"""Meshes of more triangles are decimated for display."""

TOLERANCE: Final = 0.01
"""How far triangles are inside round shapes, as a part of the shape's radius."""

THINNEST: Final = 1e-6
"""Shapes that are thinner than this part of their length are drawn as lines."""

FINEST_GRID: Final = 256
LONGEST_NOTE: Final = 400


class Sketch(NamedTuple):
    """What is drawn of a shape, in its own frame.

    Attributes:
        things: Surfaces and lines.
        points: Of the shape as far as it reaches [m], shape (n, 3); none of what is
            infinite or not drawn.
    """

    things: Sequence[DrawnSurface | Lines]
    points: Array


NOTHING: Final = Sketch((), np.zeros((0, 3)))


class Surfaces:
    """Make what is drawn of shapes, once for equal shapes.

    meshes: What reads meshes, if anything does.
    size: Returns that of the cell [m], for what is infinite or has no size.
    """

    def __init__(self, meshes: MeshSource | None, size: Callable[[], float]) -> None:
        self._meshes = meshes
        self._size = size
        self._known: dict[Shape, Sketch] = {}
        self.notes: dict[str, None] = {}

    def of(
        self, shape: Shape, otherwise: Colour, *, own_colours: bool = True
    ) -> Sketch:
        """Return what is drawn of a shape.

        Args:
            shape: A shape of a link.
            otherwise: The colour where neither the shape nor its file says one.
            own_colours: Whether these count.
        """
        colour = (shape.colour or otherwise) if own_colours else otherwise
        # A mesh without a colour of its own has those of its file.
        own_colour = shape.colour if own_colours and isinstance(shape, Mesh) else colour
        # Shapes that look alike are made once, whatever their names and poses.
        bare = msgspec.structs.replace(shape, name="", pose=IDENTITY, colour=own_colour)
        if bare not in self._known:
            try:
                self._known[bare] = self._made(bare, shape, colour)
            except ArmillaryError as error:
                self._note(f"{_called(shape)} is not drawn. {error}")
                self._known[bare] = NOTHING
        return self._known[bare]

    def _note(self, text: str) -> None:
        self.notes[printable(shortened(text, longest=LONGEST_NOTE))] = None

    def _made(self, bare: Shape, shape: Shape, colour: Colour) -> Sketch:
        match bare:
            case Mesh():
                return self._of_mesh(bare, shape, colour)
            case HalfSpace():
                return Sketch(self._of_half_space(colour), NOTHING.points)
            case Primitive():
                return self._of_primitive(bare, colour)
            case Cloud():
                return self._of_cloud(bare, shape, colour)
            case _:
                self._note(f"{_called(shape)} is of no kind that is drawn.")
                return NOTHING

    def _of_primitive(self, shape: Primitive, colour: Colour) -> Sketch:
        centre, radius = shape.bounding_sphere
        # A point has no surface, so three short lines mark it.
        if radius == 0.0:
            cross = _cross(0.02 * self._size(), colour)
            return Sketch([cross], np.array([centre], np.float64))
        triangles = shape.triangles(TOLERANCE * radius)
        if not len(triangles.faces):  # a line along one of its axes
            ends = np.array(shape.bounding_box(), np.float64)
            return Sketch([lines([ends], colour, width=3.0)], ends)
        return Sketch([_drawn(triangles, colour)], triangles.vertices)

    def _of_cloud(self, cloud: Cloud, shape: Shape, colour: Colour) -> Sketch:
        triangles = cloud.triangles()
        count, drawn = len(cloud.centres), cloud.drawn_count
        if drawn < count:
            self._note(f"{_called(shape)} is drawn with {drawn} of its {count} bodies.")
        return Sketch([_drawn(triangles, colour)], triangles.vertices)

    def _of_mesh(self, mesh: Mesh, shape: Shape, colour: Colour) -> Sketch:
        parts = None if self._meshes is None else self._meshes.parts(mesh)
        if parts is None:
            self._note(f"{_called(shape)} is not drawn: its file is missing.")
            return NOTHING
        # Those of the whole mesh: a decimated one may be smaller.
        points = np.concatenate([part.triangles.vertices for part in parts])
        count = sum(len(part.triangles.faces) for part in parts)
        whole = sum(part.whole or len(part.triangles.faces) for part in parts)
        lost = {part.lost for part in parts if part.lost}
        if count > MOST_TRIANGLES and any(part.texture for part in parts):
            lost.add("it has too many triangles")
        for why in sorted(lost):
            self._note(f"The texture of {_called(shape)} is not shown: {why}.")
        if count > MOST_TRIANGLES:
            # Each part keeps its share of the triangles that browsers can draw.
            parts = [
                MeshPart(decimated(part.triangles, share), part.colour)
                for part in parts
                if (share := MOST_TRIANGLES * len(part.triangles.faces) // count)
            ]
        left = sum(len(part.triangles.faces) for part in parts)
        if left < whole:
            self._note(
                f"{_called(shape)} is drawn with {left} of its {whole} triangles."
            )
        looks = [_look(part, colour) for part in parts if len(part.triangles.faces)]
        return Sketch(looks, points)

    def _of_half_space(self, colour: Colour) -> Sequence[DrawnSurface | Lines]:
        """Return a square of its plane, with its edge and its normal."""
        a = max(self._size(), 1.0)
        corners = np.array([(-a, -a, 0), (a, -a, 0), (a, a, 0), (-a, a, 0)])
        edge = np.stack([corners, np.roll(corners, -1, axis=0)], axis=1)
        normal = np.array([[(0.0, 0.0, 0.0), (0.0, 0.0, 0.1 * a)]])
        square = Triangles(corners, [(0, 1, 2), (0, 2, 3)])
        return [
            _surface(square, colour),
            lines(np.concatenate([edge, normal]), colour),
        ]


def lines(points: npt.ArrayLike, colour: Colour, *, width: float = 2.0) -> Lines:
    """Return lines between points [m], shape (k, 2, 3)."""
    near = np.clip(points, -FARTHEST, FARTHEST)
    return Lines(near.astype(np.float32), colour, width)


def _drawn(triangles: Triangles, colour: Colour) -> DrawnSurface | Lines:
    """Return the surface, or the line that it is where it has no width."""
    points = triangles.vertices
    # The point farthest from any point, and that farthest from it, are the ends of a
    # line if the surface has no width.
    start = points[np.argmax(np.linalg.norm(points - points[0], axis=1))]
    end = points[np.argmax(np.linalg.norm(points - start, axis=1))]
    length = float(np.linalg.norm(end - start))
    if triangles.area <= THINNEST * length**2:
        return lines([(start, end)], colour, width=3.0)
    return _surface(triangles, colour)


def decimated(triangles: Triangles, most: int) -> Triangles:
    """Return about as many triangles as asked for, never more, for display.

    The vertices in each cell of a grid become one of them (vertex clustering: Rossignac
    and Borrel, "Multi-resolution 3D approximations for rendering complex scenes",
    1993), on coarser grids until few enough triangles are left.

    most: How many triangles may be left, at least 1.
    """
    points, faces = triangles.vertices, triangles.faces
    lower = points.min(axis=0)
    size = float((points.max(axis=0) - lower).max())
    cells = float(FINEST_GRID)
    while len(faces) > most:
        # Number the cell of the grid of each vertex: three digits to the base
        # FINEST_GRID + 1.
        place = ((points - lower) * (cells / size)).astype(np.int64)
        key = (place[:, 0] * (FINEST_GRID + 1) + place[:, 1]) * (FINEST_GRID + 1)
        _, first, number = np.unique(
            key + place[:, 2], return_index=True, return_inverse=True
        )
        points, faces = points[first], number.ravel()[faces]
        a, b, c = faces.T
        # Triangles with two corners in one cell have collapsed to a line or a point.
        faces = faces[(a != b) & (b != c) & (c != a)]
        # The number of triangles grows with the square of the number of cells along a
        # side; at least a tenth coarser, so that it ends.
        cells *= min(0.9, np.sqrt(most / max(len(faces), 1)))
    return Triangles(points, faces)


def _look(part: MeshPart, otherwise: Colour) -> DrawnSurface:
    """Return a part of a mesh with its colour or image."""
    if part.texture is None:
        return _surface(part.triangles, part.colour or otherwise)
    # Corners of neighbouring triangles may have different places in the image, so none
    # is shared.
    uv = part.texture.uv.reshape(-1, 2).astype(np.float32)
    numbers = np.arange(len(uv), dtype=np.uint32).reshape(-1, 3)
    return DrawnSurface(
        part.triangles.corners.reshape(-1, 3).astype(np.float32),
        numbers,
        part.colour or (1.0, 1.0, 1.0, 1.0),
        Texture(uv, part.texture.image),
    )


def _surface(triangles: Triangles, colour: Colour) -> DrawnSurface:
    return DrawnSurface(
        triangles.vertices.astype(np.float32),
        triangles.faces.astype(np.uint32),
        colour,
    )


def _cross(length: float, colour: Colour) -> Lines:
    """Return three short lines through a point."""
    ends = length * np.eye(3)
    return lines(np.stack([-ends, ends], axis=1), colour, width=3.0)


def _called(shape: Shape) -> str:
    name = shape.name or (shape.file if isinstance(shape, Mesh) else "")
    kind = type(shape).__name__
    return f"{kind} {quote(name)}" if name else f"A {kind} without a name"
