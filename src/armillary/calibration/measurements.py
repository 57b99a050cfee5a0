"""What is measured of a cell, as residuals and how they change with parameters.

Each kind of measurement is a class with the joint positions of its rows. To add one,
write `_compared`: what the model says less what was measured, and the derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from armillary.calibration.board_images import BoardImages
from armillary.calibration.excitation import exciting_motion
from armillary.calibration.measurement import Compared, Measurement, as_sigma
from armillary.calibration.passive_joints import PassiveJoints
from armillary.calibration.torques import Torques
from armillary.calibration.unknown_shapes import OnPlane, OnSphere, SamePoint
from armillary.errors import ModelError
from armillary.model.mount import WORLD
from armillary.model.workcell import Workcell

__all__ = [
    "BoardImages",
    "Distances",
    "Measurement",
    "OnPlane",
    "OnSphere",
    "PassiveJoints",
    "Poses",
    "Positions",
    "SamePoint",
    "Torques",
    "exciting_motion",
]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

LARGEST_LENGTH: Final = 100.0
"""Coordinates above it [m] are taken for millimetres."""


class Positions(Measurement):
    """Positions of a frame's origin, as of a reflector that a tracker follows.

    Attributes:
        sigma: The standard deviation of each coordinate [m].
    """

    def __init__(
        self,
        frame: str,
        q: npt.ArrayLike,
        positions: npt.ArrayLike,
        *,
        sigma: float = 1e-4,
        relative_to: str = WORLD,
    ) -> None:
        """Take measured positions.

        Args:
            frame: The frame whose origin was measured.
            q: Joint positions [m or rad], shape (n, j).
            positions: Of its origin in `relative_to` [m], shape (n, 3).
            sigma: The standard deviation of each coordinate [m].
            relative_to: The frame in which they are given, such as that of a tracker.

        Raises:
            ModelError: Arrays have other shapes, or numbers that are not finite, or
                lengths look like millimetres.
        """
        super().__init__(frame, q, positions, (3,), relative_to)
        self.sigma = as_sigma(sigma, "sigma")
        _check_length(self.measured, self.label)

    @property
    def sigmas(self) -> Array:
        """Return the standard deviation of each number of a row [m]."""
        return np.full(3, self.sigma)

    def expected(
        self, cell: Workcell, names: Sequence[str], p: Array, q: Array
    ) -> Array:
        """Return the positions of the frame, shape (n, 3)."""
        return self.poses(cell, names, p, q)[:, :3, 3]

    def _compared(
        self, cell: Workcell, names: Sequence[str], p: Array, q: Array, measured: Array
    ) -> Compared:
        J = self.twists(cell, names, p, q)
        return Compared(self.expected(cell, names, p, q) - measured, J[:, :3])

    def rows(self, places: Indices) -> Positions:
        """Return the measurement of some of its rows."""
        return Positions(
            self.frame,
            self.q[places],
            self.measured[places],
            sigma=self.sigma,
            relative_to=self.relative_to,
        )


class Poses(Measurement):
    """Poses of a frame, as of a target with six degrees of freedom.

    Attributes:
        sigma: The standard deviation of each coordinate [m].
        sigma_rotation: That of the rotation about each axis [rad].
    """

    units = ("m", "m", "m", "rad", "rad", "rad")

    def __init__(
        self,
        frame: str,
        q: npt.ArrayLike,
        poses: npt.ArrayLike,
        *,
        sigma: float = 1e-4,
        sigma_rotation: float = 1e-4,
        relative_to: str = WORLD,
    ) -> None:
        """Take measured poses.

        Args:
            frame: The frame that was measured.
            q: Joint positions [m or rad], shape (n, j).
            poses: Of it in `relative_to`, shape (n, 4, 4).
            sigma: The standard deviation of each coordinate [m].
            sigma_rotation: That of the rotation about each axis [rad].
            relative_to: The frame in which they are given; for the relative poses of
                two arms a frame of the other one.

        Raises:
            ModelError: Arrays have other shapes, numbers that are not finite, or what
                is not a pose; or lengths look like millimetres.
        """
        super().__init__(frame, q, poses, (4, 4), relative_to)
        self.sigma = as_sigma(sigma, "sigma")
        self.sigma_rotation = as_sigma(sigma_rotation, "sigma_rotation")
        _check_length(self.measured[:, :3, 3], self.label)
        R = self.measured[:, :3, :3]
        off = np.abs(R @ R.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
        last = np.abs(self.measured[:, 3] - (0.0, 0.0, 0.0, 1.0)).max(axis=1)
        wrong = (off > 1e-3) | (np.linalg.det(R) < 0.0) | (last > 1e-9)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ModelError(
                f"Row {row} of {self.label} is not a pose: its rotation is scaled, "
                "sheared or reflected, or its last row not 0, 0, 0, 1. Are "
                "rows and columns, or numbers of quaternions, swapped?"
            )

    @property
    def sigmas(self) -> Array:
        """Return the standard deviation of each number of a row [m or rad]."""
        return np.repeat([self.sigma, self.sigma_rotation], 3)

    def expected(
        self, cell: Workcell, names: Sequence[str], p: Array, q: Array
    ) -> Array:
        """Return the poses of the frame, shape (n, 4, 4)."""
        return self.poses(cell, names, p, q)

    def _compared(
        self, cell: Workcell, names: Sequence[str], p: Array, q: Array, measured: Array
    ) -> Compared:
        """Return x - x_m, and the rotation vector w of R_m' R = exp [w].

        With dR = [s] R, dw = L(w) R_m' s, where L is the inverse of the left Jacobian
        of rotations: 1 - [w]/2 + b [w]^2, b = (1 - (t/2) cot(t/2)) / t^2, t = |w|
        (Barfoot, State Estimation for Robotics, section 7.1).
        """
        X, J = self.expected(cell, names, p, q), self.twists(cell, names, p, q)
        to_measured = measured[:, :3, :3].transpose(0, 2, 1)
        w = rotation_vectors(to_measured @ X[:, :3, :3])
        residuals = np.concatenate([X[:, :3, 3] - measured[:, :3, 3], w], axis=1)
        angular = _left_inverse(w) @ to_measured @ J[:, 3:]
        return Compared(residuals, np.concatenate([J[:, :3], angular], axis=1))

    def rows(self, places: Indices) -> Poses:
        """Return the measurement of some of its rows."""
        return Poses(
            self.frame,
            self.q[places],
            self.measured[places],
            sigma=self.sigma,
            sigma_rotation=self.sigma_rotation,
            relative_to=self.relative_to,
        )


class Distances(Measurement):
    """Distances of a frame's origin from that of another, as by a ball bar.

    Attributes:
        sigma: The standard deviation of each [m].
    """

    units = ("m",)

    def __init__(
        self,
        frame: str,
        q: npt.ArrayLike,
        distances: npt.ArrayLike,
        *,
        to: str = WORLD,
        sigma: float = 1e-4,
    ) -> None:
        """Take measured distances.

        Args:
            frame: The frame at one end.
            q: Joint positions [m or rad], shape (n, j).
            distances: Of the two origins [m], shape (n,).
            to: The frame at the other end.
            sigma: The standard deviation of each [m].

        Raises:
            ModelError: Arrays have other shapes, or numbers that are not finite, or
                lengths look like millimetres.
        """
        super().__init__(frame, q, distances, (), to)
        self.sigma = as_sigma(sigma, "sigma")
        if (self.measured <= 0.0).any():
            raise ModelError(f"{self.label} has a distance that is not above 0.")
        _check_length(self.measured, self.label)

    @property
    def sigmas(self) -> Array:
        """Return the standard deviation of a distance [m]."""
        return np.array([self.sigma])

    def expected(
        self, cell: Workcell, names: Sequence[str], p: Array, q: Array
    ) -> Array:
        """Return the distances, shape (n,)."""
        return np.linalg.norm(self.poses(cell, names, p, q)[:, :3, 3], axis=1)

    def _compared(
        self, cell: Workcell, names: Sequence[str], p: Array, q: Array, measured: Array
    ) -> Compared:
        x = self.poses(cell, names, p, q)[:, :3, 3]
        J = self.twists(cell, names, p, q)
        length = np.linalg.norm(x, axis=1)
        along = x / np.maximum(length, 1e-12)[:, np.newaxis]
        rates = np.einsum("ni,nik->nk", along, J[:, :3])
        return Compared((length - measured)[:, np.newaxis], rates[:, np.newaxis])

    def rows(self, places: Indices) -> Distances:
        """Return the measurement of some of its rows."""
        return Distances(
            self.frame,
            self.q[places],
            self.measured[places],
            to=self.relative_to,
            sigma=self.sigma,
        )


def _check_length(values: Array, label: str) -> None:
    largest = float(np.abs(values).max())
    if largest > LARGEST_LENGTH:
        raise ModelError(
            f"{label} has a length of {largest:g} m. If these are millimetres, divide "
            "them by 1000, or say --mm."
        )


def rotation_vectors(R: Array) -> Array:
    """Return the rotation vector of each rotation, shape (n, 3)."""
    # The largest of four forms of a quaternion has no cancellation.
    trace = np.trace(R, axis1=1, axis2=2)
    diagonal = np.diagonal(R, axis1=1, axis2=2)
    outer = np.empty((len(R), 4, 4))
    outer[:, 0, 0] = trace
    outer[:, 1:, 1:] = R + R.transpose(0, 2, 1)
    outer[:, [1, 2, 3], [1, 2, 3]] = 2.0 * diagonal - trace[:, np.newaxis]
    axial = np.stack(
        [R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]], 1
    )
    outer[:, 0, 1:] = outer[:, 1:, 0] = axial
    outer = 0.25 * (outer + np.eye(4))  # q q'
    best = np.argmax(np.diagonal(outer, axis1=1, axis2=2), axis=1)
    quaternions = outer[np.arange(len(R)), best]
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    quaternions *= np.where(quaternions[:, :1] < 0.0, -1.0, 1.0)
    sine = np.linalg.norm(quaternions[:, 1:], axis=1)
    angle = 2.0 * np.arctan2(sine, quaternions[:, 0])
    ratio = np.where(sine > 1e-9, angle / np.maximum(sine, 1e-300), 2.0)
    return quaternions[:, 1:] * ratio[:, np.newaxis]


def _left_inverse(w: Array) -> Array:
    """Return the inverse of the left Jacobian of rotations, shape (n, 3, 3)."""
    W = np.zeros((len(w), 3, 3))
    W[:, 2, 1], W[:, 1, 2] = w[:, 0], -w[:, 0]
    W[:, 0, 2], W[:, 2, 0] = w[:, 1], -w[:, 1]
    W[:, 1, 0], W[:, 0, 1] = w[:, 2], -w[:, 2]
    t: Array = np.linalg.norm(w, axis=1)
    half = 0.5 * np.maximum(t, 1e-4)
    far = (1.0 - half / np.tan(half)) / (4.0 * half * half)
    b: Array = np.where(t < 1e-3, 1.0 / 12.0 + t * t / 720.0, far)
    return np.eye(3) - 0.5 * W + b[:, np.newaxis, np.newaxis] * (W @ W)
