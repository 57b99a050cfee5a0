"""Clouds of points."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import UNREADABLE_ARRAY, ModelError, ShapeError
from armillary.model.cloud import Cloud
from armillary.model.fields import kept, reduced
from armillary.model.geometry.moments import Moments
from armillary.model.geometry.triangles import Triangles
from armillary.model.primitive import Primitive
from armillary.model.shape import LARGEST
from armillary.model.shapes import pcd, ply
from armillary.model.shapes.sphere import Sphere

Array = npt.NDArray[np.float64]

STORED = np.dtype("<f4")

LONGEST_MAGIC = max(map(len, (*pcd.MAGIC, *ply.MAGIC)))

if TYPE_CHECKING:
    from armillary.model.fields import TypedField

    Data = TypedField[bytes, npt.ArrayLike]
else:
    Data = bytes


class Points(Cloud, frozen=True, tag="points", dict=True):
    """Balls of one radius around very many points, as of a camera or a scanner.

    `Points(points, radius)` takes an array of shape (n, 3), in metres; `centres` is
    that array. Coordinates are stored as numbers of 32 bits.

    Attributes:
        data: The points [m], in files as base64 of x, y, z of one after the other:
            float32, little-endian.
        radius: That of the ball around each point [m]; 0 for points alone.
    """

    data: Data
    radius: float = 0.01

    @classmethod
    def read(
        cls, path: str | PathLike[str], radius: float = 0.01, **looks: Any
    ) -> Self:
        """Return the points of a file in the format NPY, PCD or PLY.

        Of PCD and PLY files points that are marked as missing are left out, and so are
        viewpoints, faces, and all fields but x, y and z.

        Args:
            path: The file, an array of shape (n, 3) [m] or points with x, y and z.
            radius: That of the ball around each point [m].
            looks: Pose, name and colour.

        Raises:
            OSError: The file cannot be read.
            ShapeError: Its array has another shape.
            ModelError: It holds none of these, or as for `Points`.
        """
        with Path(path).open("rb") as file:
            head = file.read(LONGEST_MAGIC)
            file.seek(0)
            try:
                if head.startswith(pcd.MAGIC):
                    return cls(pcd.points_of_pcd(file.read()), radius, **looks)
                if head.startswith(ply.MAGIC):
                    return cls(ply.points_of_ply(file.read()), radius, **looks)
            except (pcd.NotPCD, ply.NotPLY) as error:
                kind = "PCD" if isinstance(error, pcd.NotPCD) else "PLY"
                raise ModelError(
                    f"'{path}' is a faulty {kind} file: {error}."
                ) from error
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except UNREADABLE_ARRAY as error:
            raise ModelError(
                f"'{path}' is not a file of NPY, PCD or PLY: {error}"
            ) from error
        return cls(array, radius, **looks)

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)

    def check(self) -> None:
        """Store the points, and check that they are numbers.

        Raises:
            ShapeError: Their array has another shape.
            ModelError: There are none, too many, or some that are not finite.
        """
        self._store_length("radius")
        given: Any = self.data
        if type(given) is bytes:
            if len(given) % (3 * STORED.itemsize):
                raise self._fault(
                    f"its data has {len(given)} bytes; three numbers of 32 bits of "
                    "each point are a multiple of 12"
                )
            self._check_count(len(given) // (3 * STORED.itemsize), "points")
            self._check_numbers(np.frombuffer(given, STORED).reshape(-1, 3))
            return
        try:
            array = np.asarray(given)
        except ValueError as error:
            raise ShapeError(f"Points have shape (n, 3): {error}.") from error
        if array.ndim != 2 or array.shape[1] != 3:
            raise ShapeError(f"Points have shape (n, 3), not {array.shape}.")
        self._check_count(len(array), "points")
        if array.dtype.kind not in "fiu":
            raise self._fault(f"its points are {array.dtype}; they must be numbers")
        self._check_numbers(array)
        self._store(data=np.ascontiguousarray(array, STORED).tobytes())

    def _check_numbers(self, array: npt.NDArray[Any]) -> None:
        is_good = (np.abs(array) <= LARGEST).all(axis=1)  # false of NaN
        if not is_good.all():
            first = int(np.argmin(is_good))
            count = len(array) - int(is_good.sum())
            raise self._fault(
                f"{count} of its {len(array)} points have coordinates that are not "
                f"finite, or larger than {LARGEST:g} m, first row {first}: "
                f"{array[first].tolist()}. Leave them out: "
                "points[np.isfinite(points).all(axis=1)]"
            )

    @property
    def centres(self) -> Array:
        """Return the points in its own frame [m], shape (n, 3); read-only."""

        def made() -> Array:
            array = np.frombuffer(self.data, STORED).astype(np.float64).reshape(-1, 3)
            array.flags.writeable = False
            return array

        return kept(self, "centres", made)

    @property
    def element(self) -> Primitive:
        """Return the ball around a point."""
        return Sphere(radius=self.radius)

    @classmethod
    def form(cls) -> Self:
        """Return a point, which stands for all clouds of points."""
        return cls(np.zeros((1, 3)), 0.0)

    @property
    def geometry(self) -> tuple[Any, ...]:
        """Return the points as they are stored."""
        return (self.data,)

    @property
    def moments(self) -> Moments:
        """Refuse to weigh it, as balls may overlap.

        Raises:
            ModelError: Always.
        """
        raise self._no_volume()

    def scaled(self, factor: float) -> Self:
        """Return the points `factor` times as far apart, and the radius as large.

        Raises:
            ModelError: `factor` is not above 0.
        """
        ball = Sphere(radius=self.radius, pose=self.pose).scaled(factor)
        return msgspec.structs.replace(
            self, data=factor * self.centres, radius=ball.radius, pose=ball.pose
        )

    def thinned(self, size: float) -> Self:
        """Return one point for each cell of a grid that has some: their mean.

        All balls of before are within `thinned.radius`, which grows by as much as
        points are away from their mean.

        size: The side of the cells [m], above 0.

        Raises:
            ModelError: The size is not above 0.
        """
        if not 0.0 < size < np.inf:
            raise ModelError(f"The side of cells is a number above 0, not {size!r}.")
        points = self.centres
        place = np.floor((points - points.min(axis=0)) / size).astype(np.int64)
        _, y, z = place.max(axis=0).tolist()
        key = (place[:, 0] * (y + 1) + place[:, 1]) * (z + 1) + place[:, 2]
        _, cell, counts = np.unique(key, return_inverse=True, return_counts=True)
        cell = cell.ravel()
        sums = [np.bincount(cell, points[:, k]) for k in range(3)]
        means = (np.stack(sums, axis=1) / counts[:, np.newaxis]).astype(STORED)
        away = np.linalg.norm(points - means[cell], axis=1)
        return msgspec.structs.replace(
            self, data=means, radius=self.radius + float(away.max())
        )

    @property
    def _drawn(self) -> Triangles:
        # An octahedron; a point alone is as large as a ball of a millimetre.
        size = self.radius or 1e-3
        corners = size * np.concatenate([np.eye(3), -np.eye(3)])
        upper = [(0, 1, 2), (1, 3, 2), (3, 4, 2), (4, 0, 2)]
        lower = [(1, 0, 5), (3, 1, 5), (4, 3, 5), (0, 4, 5)]
        return Triangles(corners, [*upper, *lower])
