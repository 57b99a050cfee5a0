"""Measurements without a measuring device: origins are on a shape, wherever it is.

Its numbers are found from the rows, too. They are eliminated: at values of parameters
they are those that fit best, and derivatives are without what they can take up
(variable projection; L. Kaufman, BIT 15, 1975). What is left out is of the size of
residuals, and 0 where the model is right.
"""

from __future__ import annotations

from abc import abstractmethod
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
from armillary.errors import ModelError
from armillary.kernel.arguments import positive_number
from armillary.model.mount import WORLD
from armillary.model.workcell import Workcell

__all__ = ["OnPlane", "OnSphere", "SamePoint"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

MOST_STEPS: Final = 50
"""Of Gauss and Newton, for a sphere; from the algebraic fit a few are needed."""


class _OnShape(Measurement):
    """Rows at which the origin of a frame is on a shape.

    Attributes:
        sigma: The standard deviation of distances from it [m].
    """

    def __init__(
        self,
        frame: str,
        q: npt.ArrayLike,
        *,
        sigma: float = 1e-4,
        relative_to: str = WORLD,
    ) -> None:
        """Take joint positions.

        Args:
            frame: The frame whose origin is on the shape, such as a probe's tip.
            q: Joint positions [m or rad], shape (n, j).
            sigma: The standard deviation of distances from it [m].
            relative_to: The frame in which the shape stands still.

        Raises:
            ModelError: `q` has another shape or numbers that are not finite, or has so
                few rows that any of them fit.
        """
        rows = numbers_in_rows(q, (-1,), "joint positions", type(self).__name__)
        nothing = np.zeros((len(rows), 0))
        super().__init__(frame, rows, nothing, (0,), relative_to)
        self.sigma = as_sigma(sigma, "sigma")
        if len(self.q) * len(self.units) <= self.unknowns:
            raise ModelError(
                f"{self.label} has {len(self.q)} rows, which always fit; it needs "
                f"{self.unknowns // len(self.units) + 1} at least."
            )

    @property
    def sigmas(self) -> Array:
        """Return the standard deviation of each residual of a row [m]."""
        return np.full(len(self.units), self.sigma)

    @abstractmethod
    def _fitted(self, x: Array) -> tuple[Array, Array, Array]:
        """Return residuals and derivatives with the shape that fits positions best.

        Args:
            x: Positions [m], shape (n, 3).

        Returns:
            Residuals (n, d); derivatives by positions (n, d, 3), and by the numbers of
            the shape (n, d, m).
        """

    def _compared(
        self, cell: Workcell, names: Sequence[str], p: Array, q: Array, measured: Array
    ) -> Compared:
        x = self.poses(cell, names, p, q)[:, :3, 3]
        if not np.isfinite(x).all():
            return Compared(
                np.full((len(q), len(self.units)), np.nan),
                np.full((len(q), len(self.units), len(p)), np.nan),
            )
        residuals, by_x, by_shape = self._fitted(x)
        rates = by_x @ self.twists(cell, names, p, q)[:, :3]
        Q = np.linalg.qr(by_shape.reshape(residuals.size, -1))[0]
        flat = rates.reshape(residuals.size, -1)
        return Compared(residuals, (flat - Q @ (Q.T @ flat)).reshape(rates.shape))

    def rates_at(
        self, cell: Workcell, names: Sequence[str], p: Array, q: Array
    ) -> Array:
        """Return the derivatives of further rows, with the shape as it is known.

        Returns:
            Shape (n, d, k), in parts of errors.
        """
        own = self.poses(cell, names, p, self.q)[:, :3, 3]
        by_x = self._directions(own, self.poses(cell, names, p, q)[:, :3, 3])
        return by_x @ self.twists(cell, names, p, q)[:, :3] / self.sigma

    @abstractmethod
    def _directions(self, own: Array, x: Array) -> Array:
        """Return the derivatives by further positions x, shape (n, d, 3)."""

    def expected(
        self, cell: Workcell, names: Sequence[str], p: Array, q: Array
    ) -> Array:
        """Return nothing for each row, shape (n, 0): nothing is read off."""
        return np.zeros((len(q), 0))

    def rows(self, places: Indices) -> Any:
        """Return the measurement of some of its rows."""
        return type(self)(
            self.frame, self.q[places], sigma=self.sigma, relative_to=self.relative_to
        )


class SamePoint(_OnShape):
    """Rows at which the origin of a frame is at one unknown point, as of a tip.

    Attributes:
        sigma: The standard deviation of each coordinate [m].
    """

    unknowns = 3

    def _fitted(self, x: Array) -> tuple[Array, Array, Array]:
        same = np.tile(np.eye(3), (len(x), 1, 1))
        return x - x.mean(axis=0), same, -same

    def _directions(self, own: Array, x: Array) -> Array:
        return np.tile(np.eye(3), (len(x), 1, 1))


class OnPlane(_OnShape):
    """Rows at which the origin of a frame is on one unknown plane, as of a table.

    Attributes:
        sigma: The standard deviation of distances from it [m].
    """

    units = ("m",)
    unknowns = 3

    def _fitted(self, x: Array) -> tuple[Array, Array, Array]:
        """Return n . (x - mean); n changes along the other axes of the points."""
        away = x - x.mean(axis=0)
        axes = np.linalg.svd(away, full_matrices=False)[2]
        axes[2] *= np.copysign(1.0, axes[2, np.argmax(np.abs(axes[2]))])
        by_shape = np.insert(away @ axes[:2].T, 2, -1.0, axis=1)
        residuals = away @ axes[2]
        return (
            residuals[:, np.newaxis],
            np.tile(axes[2], (len(x), 1, 1)),
            by_shape[:, np.newaxis],
        )

    def _directions(self, own: Array, x: Array) -> Array:
        return np.tile(self._fitted(own)[1][:1], (len(x), 1, 1))


class OnSphere(_OnShape):
    """Rows at which the origin of a frame is on one unknown sphere, as of a ball.

    Attributes:
        sigma: The standard deviation of distances from it [m].
        radius: Of the sphere [m]; unknown if None.
    """

    units = ("m",)

    def __init__(
        self,
        frame: str,
        q: npt.ArrayLike,
        *,
        radius: float | None = None,
        sigma: float = 1e-4,
        relative_to: str = WORLD,
    ) -> None:
        """Take joint positions.

        Args:
            frame: The frame whose origin is on the sphere.
            q: Joint positions [m or rad], shape (n, j).
            radius: Of the sphere [m], if it is known, as of a ball bar.
            sigma: The standard deviation of distances from it [m].
            relative_to: The frame in which the sphere stands still.

        Raises:
            ModelError: As for the others; or the radius is not above 0.
        """
        if radius is not None:
            radius = positive_number("radius= of a sphere [m]", radius)
        self.radius = radius
        self.unknowns = 4 if radius is None else 3
        super().__init__(frame, q, sigma=sigma, relative_to=relative_to)

    def _fitted(self, x: Array) -> tuple[Array, Array, Array]:
        """Return |x - c| - r, where it is least (Gauss and Newton)."""
        center, radius = self._sphere(x)
        away = x - center
        length = np.maximum(np.linalg.norm(away, axis=1), 1e-12)
        along = away / length[:, np.newaxis]
        by_shape = -along
        if self.radius is None:
            by_shape = np.insert(by_shape, 3, -1.0, axis=1)
        residuals = (length - radius)[:, np.newaxis]
        return residuals, along[:, np.newaxis], by_shape[:, np.newaxis]

    def _sphere(self, x: Array) -> tuple[Array, float]:
        # |x|^2 = 2 c . x + (r^2 - |c|^2), linear in four numbers, is the start.
        mean = x.mean(axis=0)
        away = x - mean
        linear = np.insert(2.0 * away, 3, 1.0, axis=1)
        first = _solved(linear, (away**2).sum(axis=1))
        center: Array = mean + first[:3]
        free = float(np.sqrt(max(first[3] + first[:3] @ first[:3], 0.0)))
        radius = free if self.radius is None else self.radius
        for _ in range(MOST_STEPS):
            away = x - center
            length = np.maximum(np.linalg.norm(away, axis=1), 1e-12)
            slope = np.insert(-away / length[:, np.newaxis], 3, -1.0, axis=1)
            free_ones = 4 if self.radius is None else 3
            step = _solved(slope[:, :free_ones], radius - length)
            center = center + step[:3]
            radius += float(step[3]) if self.radius is None else 0.0
            if np.abs(step).max() < 1e-14:
                break
        return center, radius

    def _directions(self, own: Array, x: Array) -> Array:
        away = x - self._sphere(own)[0]
        length = np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-12)
        return (away / length)[:, np.newaxis]

    def rows(self, places: Indices) -> OnSphere:
        """Return the measurement of some of its rows."""
        return OnSphere(
            self.frame,
            self.q[places],
            radius=self.radius,
            sigma=self.sigma,
            relative_to=self.relative_to,
        )


def _solved(matrix: Array, right: Array) -> Array:
    """Return the solution by least squares."""
    found: Any = np.linalg.lstsq(matrix, right, rcond=1e-12)
    return found[0]
