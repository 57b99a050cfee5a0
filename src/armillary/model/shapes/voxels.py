"""Grids of which some cells are occupied."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError, ShapeError
from armillary.limits import GRID_CELLS
from armillary.model.cloud import Cloud
from armillary.model.fields import kept, reduced
from armillary.model.geometry.moments import Moments
from armillary.model.primitive import Primitive
from armillary.model.shapes.box import Box
from armillary.spatial.pose import Pose

Array = npt.NDArray[np.float64]

if TYPE_CHECKING:
    from armillary.model.fields import TypedField

    Data = TypedField[bytes, npt.ArrayLike]
else:
    Data = bytes


class Voxels(Cloud, frozen=True, tag="voxels", dict=True):
    """The occupied cells of a grid of cubes.

    `Voxels(occupied, size)` takes truths of shape (x, y, z). Cell i, j, k reaches from
    i, j, k times the size to i + 1, j + 1, k + 1 times the size along the axes of its
    own frame, whose origin is so a corner of the grid.

    Attributes:
        data: Which cells are occupied, in files as base64 of a bit for each: z counts
            fastest, the lowest bit of a byte is the first.
        size: The side of a cell [m], above 0.
        counts: How many cells there are along x, y and z.
    """

    data: Data
    size: float = 0.05
    counts: tuple[int, int, int] = (0, 0, 0)

    @classmethod
    def around(
        cls,
        points: npt.ArrayLike,
        *,
        size: float,
        pose: Pose | None = None,
        **looks: Any,
    ) -> Self:
        """Return the cells of a grid that points are in.

        Args:
            points: [m], shape (n, 3).
            size: The side of a cell [m], above 0.
            pose: The frame that the points are in; by default the link's primary frame.
            looks: Name and colour.

        Raises:
            ShapeError: The shape differs.
            ModelError: There are none, or some are not finite; or the grid has too many
                cells.
        """
        given = np.asarray(points, dtype=np.float64)
        if given.ndim != 2 or given.shape[1] != 3:
            raise ShapeError(f"Points have shape (n, 3), not {given.shape}.")
        if not len(given):
            raise ModelError("Voxels are around points; here is none.")
        if not np.isfinite(given).all():
            rows = np.flatnonzero(~np.isfinite(given).all(axis=1))
            raise ModelError(
                f"{len(rows)} of {len(given)} points are not finite, first row "
                f"{int(rows[0])}. Leave them out."
            )
        if not 0.0 < size < math.inf:
            raise ModelError(f"The side of cells is a number above 0, not {size!r}.")
        place = np.floor(given / size)
        lower = place.min(axis=0)
        sides = place.max(axis=0) - lower + 1.0
        _check_cells(sides.tolist())
        place = (place - lower).astype(np.int64)
        occupied = np.zeros(sides.astype(np.int64), np.bool_)
        occupied[tuple(place.T)] = True
        at = Pose.translation(*(size * lower).tolist())
        return cls(occupied, size, pose=at if pose is None else pose @ at, **looks)

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)

    def check(self) -> None:
        """Store which cells are occupied.

        Raises:
            ShapeError: They are not truths of shape (x, y, z).
            ModelError: None is occupied, or there are too many.
        """
        self._store_length("size")
        if self.size == 0.0:
            raise self._fault("its cells have no size")
        given: Any = self.data
        if type(given) is bytes:
            self._check_bits(given)
        else:
            array = np.asarray(given)
            if array.ndim != 3 or array.dtype.kind != "b":
                raise ShapeError(
                    "Which cells are occupied are truths of shape (x, y, z), not "
                    f"{array.dtype} of {array.shape}."
                )
            if tuple(self.counts) not in {(0, 0, 0), array.shape}:
                raise self._fault(f"its counts are {self.counts}, not {array.shape}")
            _check_cells(array.shape)
            bits = np.packbits(array.ravel(), bitorder="little").tobytes()
            self._store(data=bits, counts=tuple(map(int, array.shape)))
        self._check_count(int(np.count_nonzero(self.occupied)), "occupied cells")

    def _check_bits(self, bits: bytes) -> None:
        counts: Any = self.counts
        if len(counts) != 3 or not all(isinstance(n, int) and n > 0 for n in counts):
            raise self._fault(f"its counts are {counts}; each must be at least 1")
        _check_cells(counts)
        wanted = -(-math.prod(counts) // 8)
        if len(bits) != wanted:
            raise self._fault(
                f"its data has {len(bits)} bytes; {counts} cells have {wanted}"
            )
        self._store(counts=tuple(counts))

    @property
    def occupied(self) -> npt.NDArray[np.bool_]:
        """Return which cells are occupied, shape (x, y, z)."""
        bits = np.frombuffer(self.data, np.uint8)
        count = math.prod(self.counts)
        every = np.unpackbits(bits, count=count, bitorder="little")
        return every.reshape(self.counts).view(np.bool_)

    @property
    def centres(self) -> Array:
        """Return the centres of occupied cells in its own frame [m], shape (n, 3)."""

        def made() -> Array:
            places = np.argwhere(self.occupied)
            array: Array = float(self.size) * (places.astype(np.float64) + 0.5)
            array.flags.writeable = False
            return array

        return kept(self, "centres", made)

    @property
    def element(self) -> Primitive:
        """Return a cell about the origin."""
        return Box(size=(self.size,) * 3)

    @classmethod
    def form(cls) -> Self:
        """Return a cell, which stands for all grids."""
        return cls(np.ones((1, 1, 1), np.bool_), 1.0)

    @property
    def geometry(self) -> tuple[Any, ...]:
        """Return which cells are occupied, and how large they are."""
        return self.data, self.size, self.counts

    @property
    def moments(self) -> Moments:
        """Return the moments of the volume of occupied cells."""
        # Those of a cube about its centre, and of all of it at its centre.
        volume, at = self.size**3, self.centres
        own = len(at) * volume * self.size**2 / 12.0 * np.eye(3)
        return Moments.of_arrays(
            len(at) * volume, volume * at.sum(axis=0), own + volume * (at.T @ at)
        )

    def scaled(self, factor: float) -> Self:
        """Return cells `factor` times as large.

        Raises:
            ModelError: `factor` is not above 0.
        """
        cell = Box(size=(self.size,) * 3, pose=self.pose).scaled(factor)
        return msgspec.structs.replace(self, size=cell.size[0], pose=cell.pose)


def _check_cells(counts: Any) -> None:
    count = math.prod(counts)
    if count > GRID_CELLS.most:
        shown = " x ".join(f"{n:.0f}" for n in counts)
        raise ModelError(
            f"Of {shown} cells: {GRID_CELLS.excess()}; take larger cells, or leave out "
            "what is out of reach."
        )
