"""Bodies within a distance of a flat convex polygon: its sphere-swept volume."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.model.geometry.moments import Moments
from armillary.model.geometry.tessellation import half_circle, lofted, steps_around
from armillary.model.geometry.triangles import Triangles

Array = npt.NDArray[np.float64]

# int_-1^1 (1 - z^2)^(k/2) dz and int_-1^1 z^2 (1 - z^2)^(k/2) dz, for k = 0, 1, ...
SLICES = (2.0, math.pi / 2.0, 4.0 / 3.0, 3.0 * math.pi / 8.0, 16.0 / 15.0)
OUTER_SLICES = (2.0 / 3.0, math.pi / 8.0, 4.0 / 15.0)


class Polygon(NamedTuple):
    """A convex polygon in a plane.

    Attributes:
        corners: Counter-clockwise about the normal [m], shape (k, 3).
        directions: Of the edge behind each corner, length 1, shape (k, 3); also where
            the edge has no length.
        normal: Of the plane, shape (3,).
    """

    corners: Array
    directions: Array
    normal: Array

    @property
    def lengths(self) -> Array:
        """Return the length of the edge behind each corner [m], shape (k,)."""
        return np.linalg.norm(np.roll(self.corners, -1, axis=0) - self.corners, axis=1)

    @property
    def outward(self) -> Array:
        """Return the direction out of each edge, in the plane, shape (k, 3)."""
        return np.cross(self.directions, self.normal)

    @property
    def turns(self) -> Array:
        """Return by what angle the outline turns at each corner [rad], shape (k,)."""
        before = np.roll(self.directions, 1, axis=0)
        sines = np.linalg.norm(np.cross(before, self.directions), axis=1)
        return np.arctan2(sines, np.einsum("ij,ij->i", before, self.directions))

    @property
    def area(self) -> float:
        """Return the area of one side [m^2]."""
        from_first = self.corners - self.corners[0]
        fan = np.cross(from_first[1:-1], from_first[2:])
        return float(0.5 * (fan @ self.normal).sum())


def swept_area(core: Polygon, radius: float) -> float:
    """Return the area of the surface at a distance of a polygon [m^2].

    Steiner: with area A and perimeter P of the polygon, 2 A + pi P r + 4 pi r^2.
    """
    perimeter = float(core.lengths.sum())
    return 2.0 * core.area + math.pi * radius * (perimeter + 4.0 * radius)


def swept_moments(core: Polygon, radius: float) -> Moments:
    """Return the moments of the body within a distance of a polygon.

    At height z its slice is the polygon and all within s = sqrt(r^2 - z^2) of it: the
    polygon, a strip along each edge and a sector at each corner. Their moments are
    polynomials in s, so those of the body are sums of int s^k dz = r^(k+1) SLICES[k].
    """
    # The area of a slice is A + P s + pi s^2: `measure` times powers of s. Upright, the
    # second moment is int z^2 area dz, along the normal.
    perimeter = float(core.lengths.sum())
    measure = np.array([core.area, perimeter, math.pi])
    powers = radius ** np.arange(1.0, 6.0)
    volume = float(measure @ (powers[:3] * SLICES[:3]))
    first, second = _slice_moments(core)
    along = np.tensordot(powers[: len(first)] * SLICES[: len(first)], first, axes=1)
    flat = np.tensordot(powers * SLICES, second, axes=1)
    upright = measure @ (powers[2:] * OUTER_SLICES)
    n = core.normal
    return Moments.of_arrays(volume, along, flat + upright * np.outer(n, n))


def _slice_moments(core: Polygon) -> tuple[Array, Array]:
    """Return first and second moments of a slice by the powers of its distance s.

    Returns:
        The coefficients of s^0 to s^3 and s^0 to s^4, shapes (4, 3) and (5, 3, 3).
    """
    first, second = np.zeros((4, 3)), np.zeros((5, 3, 3))
    first[0], second[0] = _polygon_moments(core.corners, core.normal)
    after = np.roll(core.corners, -1, axis=0)
    before = np.roll(core.directions, 1, axis=0)
    parts = zip(
        core.corners,
        0.5 * (core.corners + after),
        core.directions,
        core.outward,
        core.lengths,
        core.turns,
        before - core.directions,  # int of the direction over the sector's angle
        strict=True,
    )
    # An edge's strip is its length by s, out along m; a corner's sector has the angle
    # `turn`, in which the direction u sums to int u = `sector`, and int_0^s t dt = s^2
    # / 2 of area, t^2 of first and t^3 of second moments.
    for p, middle, d, m, length, turn, sector in parts:
        first[1] += length * middle
        first[2] += 0.5 * (length * m + turn * p)
        first[3] += sector / 3.0
        second[1] += length * np.outer(middle, middle)
        second[1] += length**3 / 12.0 * np.outer(d, d)
        second[2] += 0.5 * (length * _both(middle, m) + turn * np.outer(p, p))
        second[3] += (length * np.outer(m, m) + _both(p, sector)) / 3.0
    # All sectors together are a disc.
    second[4] = 0.25 * math.pi * (np.eye(3) - np.outer(core.normal, core.normal))
    return first, second


def _polygon_moments(corners: Array, normal: Array) -> tuple[Array, Array]:
    """Return the first and second moments of a polygon's area.

    Those of a triangle a, b, c with s = a + b + c are A s / 3 and
    A (a a' + b b' + c c' + s s') / 12.
    """
    first, second = np.zeros(3), np.zeros((3, 3))
    a = corners[0]
    for b, c in itertools.pairwise(corners[1:]):
        area = 0.5 * float(np.cross(b - a, c - a) @ normal)
        s = a + b + c
        first += area / 3.0 * s
        second += area / 12.0 * sum(np.outer(p, p) for p in (a, b, c, s))
    return first, second


def _both(a: Array, b: Array) -> Array:
    product = np.outer(a, b)
    return product + product.T


def swept_triangles(core: Polygon, radius: float, tolerance: float) -> Triangles:
    """Return triangles with corners on the surface at a distance of a polygon.

    tolerance: The largest distance between them and the surface [m].

    Raises:
        ModelError: The tolerance is invalid, or there would be too many triangles.
    """
    steps = steps_around(radius, 0.5 * tolerance)  # corners bend both ways
    out, up = half_circle(steps, radius)
    around: list[Array] = []
    centres: list[Array] = []
    outward, inner = core.outward, np.roll(core.outward, 1, axis=0)
    ahead = np.roll(core.directions, 1, axis=0)
    # The outline's outward directions turn at corners, and each is bent into an arc
    # from -normal to normal.
    for k, turn in enumerate(core.turns):
        cuts = max(1, math.ceil(steps * turn / (2.0 * math.pi)))
        angles = np.linspace(0.0, turn, cuts + 1, dtype=np.float64).reshape(-1, 1)
        arc = np.cos(angles) * inner[k] + np.sin(angles) * ahead[k]
        arc[-1] = outward[k]  # where the edge behind has no length, arcs meet exactly
        around.append(arc)
        centres.append(np.broadcast_to(core.corners[k], arc.shape))
    directions, feet = np.vstack(around), np.vstack(centres)
    rings = (
        feet
        + out[:, np.newaxis, np.newaxis] * directions
        + up[:, np.newaxis, np.newaxis] * core.normal
    )
    return lofted(rings, tolerance)
