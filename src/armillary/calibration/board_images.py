"""Points of a board in pictures of a camera, of which nobody knows where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.calibration.measurement import (
    Compared,
    Measurement,
    as_sigma,
    numbers_in_rows,
)
from armillary.errors import ModelError, quote
from armillary.model.workcell import Workcell

__all__ = ["BoardImages"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

LARGEST_BOARD: Final = 5.0
"""Boards that are wider [m] are taken for ones in millimetres."""


class BoardImages(Measurement):
    """Points of a flat board as a camera sees them, such as corners of a chessboard.

    A point x = (x, y, z) in the camera, z along its view, x to the right and y down, is
    at the pixel (fx x / z + cx, fy y / z + cy): without distortion.

    Attributes:
        board: The points in the frame of the board [m], shape (k, 3).
        camera: fx, fy, cx and cy [pixels].
        sigma: The standard deviation of each coordinate [pixels].
    """

    def __init__(
        self,
        frame: str,
        q: npt.ArrayLike,
        pixels: npt.ArrayLike,
        *,
        board: npt.ArrayLike,
        camera: Sequence[float],
        relative_to: str,
        sigma: float = 0.5,
    ) -> None:
        """Take pixels that were found in pictures.

        Args:
            frame: The frame of the board.
            q: Joint positions at each picture [m or rad], shape (n, j).
            pixels: Of the points of the board, undistorted, shape (n, k, 2).
            board: The points in the frame of the board [m], shape (k, 3), with z = 0.
            camera: fx, fy, cx and cy [pixels].
            relative_to: The frame of the camera.
            sigma: The standard deviation of each coordinate [pixels].

        Raises:
            ModelError: Arrays have other shapes, numbers that are not finite, or points
                that are not on a plane z = 0, or all but one of them on one line.
        """
        points = numbers_in_rows(board, (3,), "points", f"board {quote(frame)}")
        super().__init__(frame, q, pixels, (len(points), 2), relative_to)
        size = float(np.ptp(points, axis=0).max())
        flat = points[:, :2] / (size or 1.0)
        if (
            np.abs(points[:, 2]).max() > 0.0
            or np.linalg.matrix_rank(_plane_rows(flat, flat), tol=1e-6) < 8
        ):
            raise ModelError(
                f"The board of {self.label} needs points with z = 0, of which four or "
                "more have no three on one line."
            )
        if size > LARGEST_BOARD:
            raise ModelError(
                f"The board of {self.label} is {size:g} m wide. If these are "
                "millimetres, divide them by 1000."
            )
        try:
            numbers = np.array([float(each) for each in camera])
        except (TypeError, ValueError):
            numbers = np.zeros(0)
        if numbers.shape != (4,) or not (
            np.isfinite(numbers).all() and (numbers[:2] > 0.0).all()
        ):
            raise ModelError(
                f"camera= of {self.label} are fx, fy, cx and cy in pixels, the first "
                f"two above 0; not {quote(camera)}."
            )
        self.board, self.camera = points, tuple(numbers.tolist())
        self.sigma = as_sigma(sigma, "sigma")
        self.units = ("pixel",) * (2 * len(points))

    @property
    def sigmas(self) -> Array:
        """Return the standard deviation of each coordinate [pixels]."""
        return np.full(len(self.units), self.sigma)

    def expected(
        self, cell: Workcell, names: Sequence[str], p: Array, q: Array
    ) -> Array:
        """Return the pixels of the points, shape (n, k, 2)."""
        return self._projected(self._seen(cell, names, p, q)[0])

    def _seen(
        self, cell: Workcell, names: Sequence[str], p: Array, q: Array
    ) -> tuple[Array, Array]:
        """Return the points in the camera, and from the origin of the board on."""
        X = self.poses(cell, names, p, q)
        arms = self.board @ X[:, :3, :3].transpose(0, 2, 1)
        return arms + X[:, np.newaxis, :3, 3], arms

    def _projected(self, points: Array) -> Array:
        fx, fy, cx, cy = self.camera
        return points[..., :2] / points[..., 2:] * (fx, fy) + (cx, cy)

    def _compared(
        self, cell: Workcell, names: Sequence[str], p: Array, q: Array, measured: Array
    ) -> Compared:
        """Return u - u_m, and du = f (dx - x dz / z) / z, with dx = v + w x r."""
        points, arms = self._seen(cell, names, p, q)
        J = self.twists(cell, names, p, q)[:, np.newaxis]  # (n, 1, 6, parameters)
        moved = J[:, :, :3] + np.cross(J[:, :, 3:], arms[..., np.newaxis], axis=2)
        z = points[..., 2, np.newaxis, np.newaxis]
        along = points[..., :2, np.newaxis] / z * moved[..., 2:, :]
        focal = np.array(self.camera[:2])[:, np.newaxis]
        rates = focal * (moved[..., :2, :] - along) / z
        residuals = self._projected(points) - measured
        n = len(q)
        return Compared(residuals.reshape(n, -1), rates.reshape(n, -1, len(p)))

    def board_poses(self) -> Array:
        """Return poses of the board in the camera, of each picture, (n, 4, 4).

        Of a plane pixels are H (x, y, 1) up to a factor, with K^-1 H = (r1, r2, t)
        (Zhang, IEEE T-PAMI 22 (2000), section 2.2).
        """
        fx, fy, cx, cy = self.camera
        poses = np.tile(np.eye(4), (len(self), 1, 1))
        for pose, pixels in zip(poses, self.measured, strict=True):
            rows = _plane_rows(self.board[:, :2], (pixels - (cx, cy)) / (fx, fy))
            found: Any = np.linalg.svd(rows)[2][-1].reshape(3, 3)
            # Columns of length 1, and the board in front of the camera.
            lengths = np.linalg.norm(found[:, :2], axis=0)
            H = found * np.sign(found[2, 2]) / np.sqrt(lengths.prod())
            R = np.column_stack([H[:, 0], H[:, 1], np.cross(H[:, 0], H[:, 1])])
            U, _, V = np.linalg.svd(R)
            pose[:3, :3], pose[:3, 3] = U @ V, H[:, 2]
        return poses

    def rows(self, places: Indices) -> BoardImages:
        """Return the measurement of some of its rows."""
        return BoardImages(
            self.frame,
            self.q[places],
            self.measured[places],
            board=self.board,
            camera=self.camera,
            relative_to=self.relative_to,
            sigma=self.sigma,
        )


def _plane_rows(points: Array, images: Array) -> Array:
    """Return rows that are 0 times the numbers of H, where H takes points to images.

    Args:
        points: On a plane, shape (k, 2).
        images: (u, v) with H (x, y, 1) = s (u, v, 1), shape (k, 2).
    """
    flat = np.concatenate([points, np.ones((len(points), 1))], axis=1)
    zero = np.zeros_like(flat)
    u, v = images[:, :1], images[:, 1:]
    return np.concatenate(
        [
            np.concatenate([flat, zero, -u * flat], axis=1),
            np.concatenate([zero, flat, -v * flat], axis=1),
        ]
    )
