"""On which side of a plane through three points others lie, without rounding."""

from __future__ import annotations

from functools import cached_property
from typing import Any, final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# Shewchuk, "Adaptive Precision Floating-Point Arithmetic" (1997), table 9: the error of
# the determinant is below (7 + 56 e) e times that of absolute values, e = 2^-53.
ERROR = 8.0 * 2.0**-53
TINY = 1e-300
# Below this many points a loop is faster than arrays.
FEW = 24

Face = tuple[int, int, int]


@final
class Orientation:
    """The sides of planes through points, decided exactly.

    Floats decide where they can be sure; elsewhere the same determinant is computed in
    whole numbers, which every float is a multiple of a power of two of.

    points: Shape (n, 3).
    """

    def __init__(self, points: Array) -> None:
        size = float(np.abs(points).max(initial=0.0))
        # A power of two changes no digit, and keeps products in the range of floats.
        self._points = points * 2.0 ** -np.frexp(size)[1] if size else points
        self._listed: list[list[float]] = self._points.tolist()

    def heights(self, face: Face, of: Indices) -> Array:
        """Return how far points are above a plane; the signs are exact.

        Args:
            face: Three points, counter-clockwise from above.
            of: Which points, shape (k,).

        Returns:
            Above 0 where a point is strictly above, 0 in the plane, in units that are
            the same for all points and one face; shape (k,).
        """
        if len(of) < FEW:
            return np.array([self.height(face, k) for k in of.tolist()])
        a, b, c = (self._points[k] for k in face)
        p = self._points[of]
        heights, sizes = _determinants((a - p).T, (b - p).T, (c - p).T)
        doubt = ERROR * sizes + TINY
        for k in np.flatnonzero(np.abs(heights) <= doubt):
            heights[k] = self._exact(face, int(of[k]), float(doubt[k]))
        return heights

    def height(self, face: Face, of: int) -> float:
        """Return how far one point is above a plane; the sign is exact."""
        px, py, pz = self._listed[of]
        a, b, c = (
            (x - px, y - py, z - pz) for x, y, z in (self._listed[k] for k in face)
        )
        height, size = _determinants(a, b, c)
        doubt = ERROR * size + TINY
        return height if abs(height) > doubt else self._exact(face, of, doubt)

    def _exact(self, face: Face, of: int, doubt: float) -> float:
        """Return a number with the sign of one height, and no larger than the doubt."""
        px, py, pz = self._whole[of]
        a, b, c = (
            (x - px, y - py, z - pz) for x, y, z in (self._whole[k] for k in face)
        )
        height, _ = _determinants(a, b, c)
        return 0.0 if height == 0 else (doubt if height > 0 else -doubt)

    @cached_property
    def _whole(self) -> list[list[int]]:
        """Return the coordinates as whole numbers of a common unit."""
        ratios = [[x.as_integer_ratio() for x in p] for p in self._listed]
        unit = max(ratio[1] for point in ratios for ratio in point)
        return [[n * (unit // d) for n, d in point] for point in ratios]


def _determinants(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """Return -det(a, b, c), and the same of absolute values with all terms added."""
    ax, ay, az = a
    bx, by, bz = b
    cx, cy, cz = c
    x0, x1, y0, y1, z0, z1 = by * cz, bz * cy, bz * cx, bx * cz, bx * cy, by * cx
    height = ax * (x1 - x0) + ay * (y1 - y0) + az * (z1 - z0)
    size = (
        abs(ax) * (abs(x0) + abs(x1))
        + abs(ay) * (abs(y0) + abs(y1))
        + abs(az) * (abs(z0) + abs(z1))
    )
    return height, size
