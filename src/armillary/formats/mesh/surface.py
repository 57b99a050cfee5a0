"""The parts of a mesh: checked, counted, and cut into triangles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np
import numpy.typing as npt

from armillary.errors import FormatError, quote
from armillary.formats.diagnostic import Place, Report, fault
from armillary.formats.mesh.images import Image, reason
from armillary.formats.mesh.polygons import triangulate
from armillary.limits import MESH_FACES, MESH_PARTS, MESH_VERTICES
from armillary.model.geometry.triangles import Triangles
from armillary.model.shape import LARGEST, Colour
from armillary.model.shapes.mesh import MeshPart, MeshTexture

__all__ = ["MeshSurface"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


class _SurfacePart(NamedTuple):
    """Triangles of one look.

    Attributes:
        vertices: Shape (n, 3).
        faces: Shape (m, 3).
        colour: Where the file has one.
        image: Where the file names one.
        uv: Where each vertex is in the image, as in `MeshTexture`, shape (n, 2).
    """

    vertices: Array
    faces: Indices
    colour: Colour | None
    image: Image | None
    uv: Array | None


@final
class MeshSurface:
    """Collect the parts of one mesh, each with its own corners.

    path: The name of the file in messages.
    report: Takes notes of what is left out or doubtful.
    part: The name of the part that is meant, empty for all of the file.
    budget: What this mesh may cost, by the limits of the report.
    """

    def __init__(self, path: str, report: Report, part: str = "") -> None:
        self.path = path
        self.report = report
        self.part = part
        self._names: dict[str, None] = {}
        self.budget = report.budget.renewed()
        self._parts: list[_SurfacePart] = []
        self._vertex_count = 0
        self._face_count = 0

    def takes(self, *names: str) -> bool:
        """Return whether to add what has these names in the file, or none."""
        if self.part:
            self._names.update(dict.fromkeys(filter(None, names)))
        return not self.part or self.part in names

    def check_part(self) -> None:
        """Check that the file has the part that is meant.

        Raises:
            FormatError: It has none of that name.
        """
        if self.part and self.part not in self._names:
            raise fault(
                Place(self.path),
                "reference-missing",
                f"there is no part {quote(self.part)} in this file",
                hint=self.report.hint(self.part, self._names),
            )

    def centre(self) -> None:
        """Move everything so that the middle of its box is at the origin."""
        corners = [each.vertices[each.faces.ravel()] for each in self._parts]
        points = np.vstack([*corners, np.zeros((0, 3))])
        if len(points):
            middle = (points.min(axis=0) + points.max(axis=0)) / 2.0
            self._parts = [
                each._replace(vertices=each.vertices - middle) for each in self._parts
            ]

    def check_counts(
        self, vertices: int, faces: int, place: Place, *, parts: int = 0
    ) -> None:
        """Check how much a file announces, before it is read.

        Raises:
            FormatError: They are too many.
        """
        self.budget.check(MESH_VERTICES, self._vertex_count + vertices, place)
        self.budget.check(MESH_FACES, self._face_count + faces, place)
        self.budget.check(MESH_PARTS, len(self._parts) + parts, place)

    def add(
        self,
        vertices: Array,
        corners: Indices,
        sizes: Indices | int = 3,
        *,
        place: Place | None = None,
        matrix: Array | None = None,
        colour: Sequence[float] | None = None,
        image: Image | None = None,
        uv: Array | None = None,
    ) -> None:
        """Add polygons, cut into triangles.

        Args:
            vertices: Shape (n, 3).
            corners: Vertices of all polygons, one after the other, from 0, any shape.
            sizes: How many corners each polygon has, shape (p,), or one number for all.
            place: Where they stand, for messages.
            matrix: Pose and scale in the file's frame, shape (4, 4).
            colour: Red, green, blue and perhaps opacity, shape (3,) or (4,).
            image: On the polygons; the same object for all that share it.
            uv: Where each vertex is in the image, as in `MeshTexture`, shape (n, 2).

        Raises:
            FormatError: A vertex is not finite, a corner or polygon is faulty, or there
                are too many.
        """
        place = place or Place(self.path)
        corners = np.asarray(corners, dtype=np.int64).ravel()
        if isinstance(sizes, int):
            sizes = np.full(len(corners) // sizes, sizes, dtype=np.int64)
        corners, sizes = self._with_area(corners, sizes, place)
        self._check(vertices, corners, sizes, place)
        if matrix is not None:
            vertices = vertices @ matrix[:3, :3].T + matrix[:3, 3]
        faces, crossed = triangulate(vertices, corners, sizes, place, self.budget)
        if crossed:
            self.report.warning(
                place,
                "crossing-polygon",
                f"{crossed} polygons cross themselves; their triangles may overlap",
                hint="Export triangles.",
            )
        if matrix is not None and np.linalg.det(matrix[:3, :3]) < 0.0:  # mirrored
            faces = faces[:, ::-1]
        self._vertex_count += len(vertices)
        self._face_count += len(faces)
        self._parts.append(_SurfacePart(vertices, faces, _colour(colour), image, uv))

    def _with_area(
        self, corners: Indices, sizes: Indices, place: Place
    ) -> tuple[Indices, Indices]:
        """Return the polygons of at least three corners; the others bound nothing."""
        short = sizes < 3
        if not short.any() or sizes.sum() != len(corners):
            return corners, sizes
        message = f"{np.count_nonzero(short)} polygons have fewer than 3 corners"
        self.report.warning(place, "bad-polygon", f"{message}, and are left out")
        return corners[np.repeat(~short, sizes)], sizes[~short]

    def _check(
        self, vertices: Array, corners: Indices, sizes: Indices, place: Place
    ) -> None:
        if sizes.sum() != len(corners):
            raise fault(
                place,
                "wrong-count",
                f"{len(corners)} corners do not make {len(sizes)} polygons",
            )
        faces = len(corners) - 2 * len(sizes)
        self.check_counts(len(vertices), faces, place, parts=1)
        with np.errstate(invalid="ignore"):
            is_good = (np.abs(vertices) <= LARGEST).all(axis=1)
        if not is_good.all():
            row = int(np.argmin(is_good))
            raise fault(
                place,
                "bad-number",
                f"vertex {row + 1} is {vertices[row].tolist()}, which is not finite "
                "or too far away",
            )
        is_there = (corners >= 0) & (corners < len(vertices))
        if not is_there.all():
            wrong = int(corners[np.argmin(is_there)])
            raise fault(
                place,
                "bad-index",
                f"there is no vertex {wrong}; there are {len(vertices)}, counted "
                "from 0",
            )

    def triangles(self) -> Triangles:
        """Return all parts as one surface, equal corners made one.

        Raises:
            FormatError: There are no triangles, or all have shrunk to nothing.
        """
        if self._parts:
            welded = self._welded(self._parts)
            if len(welded.faces):
                return welded
        raise fault(
            Place(self.path),
            "empty-mesh",
            "there are no triangles in this file",
            hint="Was the right thing exported?",
        )

    def parts(self) -> tuple[MeshPart, ...]:
        """Return the triangles of each colour and image, in the order of the file.

        Raises:
            FormatError: There are no triangles, or all have shrunk to nothing.
        """
        looks = dict.fromkeys((part.colour, part.image) for part in self._parts)
        parts = [
            self._part([p for p in self._parts if (p.colour, p.image) == look])
            for look in looks
        ]
        return tuple(part for part in parts if len(part.triangles.faces)) or (
            MeshPart(self.triangles(), None),
        )

    def _part(self, parts: list[_SurfacePart]) -> MeshPart:
        """Return parts of one look as one, with their image if it can be shown."""
        colour, image = parts[0].colour, parts[0].image
        triangles, texture, lost = self._welded(parts), None, ""
        if image is not None and len(triangles.faces):
            try:
                data = image.data()
                texture = MeshTexture(_uv_of_corners(parts, image.place), data)
            except FormatError as error:
                lost = reason(error)
        return MeshPart(triangles, colour, texture, lost)

    @staticmethod
    def _welded(parts: list[_SurfacePart]) -> Triangles:
        # Faces count vertices of their own part; those of all parts are put in a row.
        starts = np.cumsum([0, *(len(part.vertices) for part in parts[:-1])])
        faces = [part.faces + start for part, start in zip(parts, starts, strict=True)]
        vertices = np.vstack([part.vertices for part in parts])
        return Triangles(vertices, np.vstack(faces)).welded()


def _uv_of_corners(parts: list[_SurfacePart], place: Place) -> Array:
    """Return where the corners of triangles that `welded` keeps are in an image.

    Raises:
        FormatError: The file does not say it of all.
    """
    places: list[Array] = []
    for part in parts:
        if part.uv is None or not np.isfinite(part.uv).all():
            message = "the places of corners in an image are missing or not finite"
            raise fault(place, "unsupported-image", message)
        # `welded` leaves out triangles with two equal corners, and so does this.
        a, b, c = np.moveaxis(part.vertices[part.faces], 1, 0)
        pairs = ((a, b), (b, c), (c, a))
        has_area = np.all([(one != two).any(axis=1) for one, two in pairs], axis=0)
        places.append(part.uv[part.faces[has_area]])
    return np.concatenate(places)


def _colour(given: Sequence[float] | None) -> Colour | None:
    """Return four numbers in [0, 1], or None where some are outside."""
    if given is None or len(given) not in {3, 4}:
        return None
    red, green, blue, opacity = (*map(float, given), 1.0)[:4]
    if not all(0.0 <= each <= 1.0 for each in (red, green, blue, opacity)):
        return None
    return red, green, blue, opacity
