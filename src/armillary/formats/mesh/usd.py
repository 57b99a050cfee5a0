"""Meshes in stages of USD.

A reference `stage.usd#/path` means the meshes of a prim and of all below it, in the
axes of that prim but for its scale and in the units of the stage made metres;
`stage.usd#/path|/link` in those of another prim, without its scale and with z up. All
meshes of a stage are read at once.
"""

from __future__ import annotations

import base64

import numpy as np
import numpy.typing as npt

from armillary.errors import quote
from armillary.formats.diagnostic import Place, Report, fault
from armillary.formats.mesh.surface import MeshSurface
from armillary.formats.paths import Files
from armillary.formats.usd.process import MeshRecord, stage_meshes
from armillary.formats.usd.scene import Affine, StagePrims

__all__ = ["StageMeshes"]

Indices = npt.NDArray[np.int64]


class StageMeshes:
    """The meshes of a stage.

    Raises:
        FormatError: The file cannot be read, or is faulty.
    """

    def __init__(self, path: str, roots: Files, report: Report) -> None:
        self._path = path
        self._report = report
        stage, self._meshes = stage_meshes(path, roots, report)
        self._scene = StagePrims(stage, path, report)

    def surface(self, inside: str) -> MeshSurface:
        """Return what is below a prim.

        inside: What a reference names; the whole stage if it is empty.

        Raises:
            FormatError: There is no such prim, or a mesh is faulty.
        """
        prim, _, frame = inside.partition("|")
        place = Place(self._path)
        surface = MeshSurface(self._path, self._report)
        for each in filter(None, (prim, frame)):
            if each not in self._scene.prims:
                raise fault(
                    place,
                    "reference-missing",
                    f"there is no prim {quote(each)} in this stage",
                    hint=self._report.hint(each, self._scene.prims),
                )
        to_frame = self._back(prim, frame)
        below = f"{prim.rstrip('/')}/"
        for path, record in self._meshes.items():
            if path == prim or path.startswith(below):
                affine = to_frame.then(self._scene.affine(path))
                if path == prim and not frame:
                    affine = Affine(self._scene.metres * np.eye(3), np.zeros(3))
                self._add(surface, record, affine, Place(self._path))
        return surface

    def _back(self, prim: str, frame: str) -> Affine:
        """Return the map from the world to the axes that a reference means."""
        scene = self._scene
        if frame or not prim:
            inverse = scene.pose(frame).inverse()
            return Affine(np.array(inverse.rotation), np.array(inverse.position))
        affine = scene.affine(prim)
        inverse = np.linalg.inv(affine.matrix).astype(np.float64) * scene.metres
        return Affine(inverse, -inverse @ affine.origin)

    def _add(
        self, surface: MeshSurface, record: MeshRecord, affine: Affine, place: Place
    ) -> None:
        """Add the polygons of a mesh to a surface, by their colours."""
        points = _array(record.points, "<f4", place).astype(float)
        corners = _array(record.corners, "<i4", place).astype(np.int64)
        sizes = _array(record.sizes, "<i4", place).astype(np.int64)
        if len(points) % 3 or sizes.min(initial=0) < 0 or sizes.sum() != len(corners):
            raise fault(
                place,
                "wrong-count",
                f"the corners of mesh <{record.mesh}> do not make its polygons",
            )
        surface.check_counts(len(points) // 3, len(corners), place)
        looks = _looks(record, len(sizes), place)
        starts = np.cumsum(sizes) - sizes
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = affine.matrix, affine.origin
        for colour, chosen in looks:
            own = sizes[chosen]
            ends = np.cumsum(own)
            # The corners of chosen polygons, those of each in a row.
            within = np.arange(ends[-1] if len(own) else 0)
            begins = np.repeat(starts[chosen] - (ends - own), own)
            places = within + begins
            if record.left:
                places = np.repeat(2 * starts[chosen] + own - 1, own) - places
            surface.add(
                points.reshape(-1, 3),
                corners[places],
                own,
                place=place,
                matrix=matrix,
                colour=colour,
            )


def _array(text: str, kind: str, place: Place) -> npt.NDArray[np.float64]:
    """Return numbers of a process, which is not trusted."""
    try:
        return np.frombuffer(base64.b64decode(text, validate=True), dtype=kind)
    except ValueError:
        raise fault(place, "usd-failed", "the numbers of a mesh are broken") from None


def _looks(
    record: MeshRecord, count: int, place: Place
) -> list[tuple[tuple[float, ...] | None, Indices]]:
    """Return the polygons of each colour: of subsets, of polygons, or all of none."""
    kept = np.ones(count, dtype=bool)
    holes = _array(record.holes, "<i4", place)
    kept[holes[(holes >= 0) & (holes < count)].astype(np.int64)] = False
    left = kept.copy()
    looks: list[tuple[tuple[float, ...] | None, Indices]] = []
    for faces, colour in record.subsets:
        own = _array(faces, "<i4", place).astype(np.int64)
        own = own[(own >= 0) & (own < count)]
        own = own[left[own]]
        left[own] = False
        if len(own):
            looks.append((colour, own))
    if record.colours and not looks:
        colours = _array(record.colours, "<f4", place).reshape(-1, 3)
        opaque = _array(record.opacities, "<f4", place)
        if len(opaque) != len(colours):
            opaque = np.ones(len(colours))
        rows = np.column_stack([colours, opaque])[:count]
        found, which = np.unique(rows, axis=0, return_inverse=True)
        for k, row in enumerate(found.tolist()):
            looks.append((tuple(row), np.flatnonzero((which == k) & kept[: len(rows)])))
        return looks
    rest = np.flatnonzero(left)
    if len(rest) or not looks:
        looks.append((None, rest))
    return looks
