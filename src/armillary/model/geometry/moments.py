"""Moments of volume: what a body of uniform density weighs, and where."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from armillary.errors import ModelError
from armillary.spatial.inertia import SpatialInertia

Array = npt.NDArray[np.float64]
Six = tuple[float, float, float, float, float, float]


class Moments(NamedTuple):
    """The integrals of 1, x and x x' over a body, in one frame.

    Attributes:
        volume: [m^3].
        first: Of x, y, z [m^4].
        second: Of x x, y y, z z, x y, x z, y z [m^5].
    """

    volume: float
    first: tuple[float, float, float]
    second: Six

    @classmethod
    def symmetric(cls, volume: float, xx: float, yy: float, zz: float) -> Moments:
        """Return the moments of a body that three planes of the frame halve."""
        return cls(volume, (0.0, 0.0, 0.0), (xx, yy, zz, 0.0, 0.0, 0.0))

    @classmethod
    def of_arrays(cls, volume: float, first: Array, second: Array) -> Moments:
        """Return the moments of arrays, shapes (3,) and (3, 3), as plain floats."""
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = second.tolist()
        x, y, z = first.tolist()
        return cls(float(volume), (x, y, z), (xx, yy, zz, xy, xz, yz))

    def inertia(self, density: float) -> SpatialInertia:
        """Return the inertia of the body about the frame's origin.

        density: [kg/m^3], above 0.

        Raises:
            ModelError: The density is invalid, or the inertia too large for a double.
        """
        rho = float(density)
        if not 0.0 < rho < math.inf:
            raise ModelError(f"A density is a number above 0, not {rho!r} kg/m^3.")
        first = [rho * moment for moment in self.first]
        second = [rho * moment for moment in self.second]
        inertia = SpatialInertia.from_second_moment(rho * self.volume, first, second)
        check_finite(inertia)
        return inertia


def check_finite(inertia: SpatialInertia) -> None:
    """Refuse an inertia of floats that has outgrown them.

    Raises:
        ModelError: An entry is not finite.
    """
    rows = inertia.rotational
    numbers = (inertia.mass, *inertia.first_moment, *rows[0], *rows[1], *rows[2])
    if not all(map(math.isfinite, numbers)):
        raise ModelError("The inertia is too large for a double.")


def moments_of_surface(corners: Array) -> Moments:
    """Return the moments of the body inside a closed surface of triangles.

    Each triangle makes a tetrahedron with the middle of the corners, and counts below
    zero where its outside faces that middle (divergence theorem): with corners a, b, c
    and s = a + b + c, V = a . (b x c) / 6, int x = V s / 4,
    int x x' = V (a a' + b b' + c c' + s s') / 20.

    corners: Counter-clockwise from outside [m], shape (m, 3, 3).
    """
    middle = corners.reshape(-1, 3).mean(axis=0)
    a, b, c = np.moveaxis(corners - middle, 1, 0)
    volumes = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0
    s = a + b + c
    outer = sum(np.einsum("n,ni,nj->ij", volumes, p, p) for p in (a, b, c, s))
    return _shifted(volumes.sum(), volumes @ s / 4.0, np.asarray(outer) / 20.0, middle)


def _shifted(volume: float, first: Array, second: Array, by: Array) -> Moments:
    """Return moments about a point that lies at `by` from the frame's origin."""
    cross = np.outer(first, by)
    moved = second + cross + cross.T + volume * np.outer(by, by)
    return Moments.of_arrays(volume, first + volume * by, moved)
