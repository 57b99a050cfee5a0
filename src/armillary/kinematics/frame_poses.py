"""The poses of all frames in one state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from armillary.model.workcell import WORLD, Workcell

Array = npt.NDArray[np.float64]


class Poses(Mapping[str, Array]):
    """The pose of every frame in the world, each computed once; arrays are read-only.

    Keys are `manipulator/frame`, or bare names while they are unique. Poses at many
    joint positions have their leading shape in front.
    """

    def __init__(
        self, cell: Workcell, rows: Mapping[str, int], matrices: Array
    ) -> None:
        """Hold the poses `matrices`, (..., k, 4, 4), of the frames named in `rows`."""
        self._cell = cell
        self._rows = rows
        self._matrices = matrices

    def __getitem__(self, name: str) -> Array:
        """Return the pose of a frame in the world, shape (..., 4, 4).

        Raises:
            UnknownName: There is no such frame.
            ModelError: The bare name is not unique.
        """
        row = self._rows.get(name)
        if row is None:
            if name == WORLD:
                return np.broadcast_to(np.eye(4), (*self._matrices.shape[:-3], 4, 4))
            row = self._rows[self._cell.qualified(name)]
        return self._matrices[..., row, :, :]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def relative(self, frame: str, to: str) -> Array:
        """Return the pose of `frame` in the frame `to`, shape (..., 4, 4)."""
        pose: Array = np.linalg.solve(self[to], self[frame]).astype(np.float64)
        return pose
