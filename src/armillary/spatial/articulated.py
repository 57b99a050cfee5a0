"""Articulated inertias: what a body feels like whose other bodies are free to move."""

from __future__ import annotations

from typing import NamedTuple, Self

from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import Pose
from armillary.spatial.twist import Vector6
from armillary.spatial.vector import (
    Rows,
    Vector3,
    add,
    add_rows,
    apply,
    multiply,
    negate,
    scale,
    skew,
    subtract_rows,
    transpose,
)

__all__ = ["ArticulatedInertia"]


class ArticulatedInertia(NamedTuple):
    """A symmetric matrix [linear, mixed; mixed', rotational] from twists to momenta.

    Attributes:
        linear: Shape (3, 3), symmetric [kg].
        mixed: Shape (3, 3) [kg m].
        rotational: Shape (3, 3), symmetric [kg m^2].
    """

    linear: Rows
    mixed: Rows
    rotational: Rows

    @classmethod
    def of(cls, inertia: SpatialInertia) -> Self:
        """Return that of a single body, [m 1, -[h]; [h], I]."""
        m = inertia.mass
        linear = (m, 0.0, 0.0), (0.0, m, 0.0), (0.0, 0.0, m)
        return cls(linear, skew(negate(inertia.first_moment)), inertia.rotational)

    def __add__(self, other: Self) -> Self:  # type: ignore[override]
        """Return the sum; same frame."""
        pairs = zip(self, other, strict=True)
        return type(self)(*(add_rows(a, b) for a, b in pairs))

    def apply(self, V: Vector6) -> Vector6:
        """Return the momentum of a twist."""
        v, w = V[:3], V[3:]
        linear = add(apply(self.linear, v), apply(self.mixed, w))
        angular = add(apply(transpose(self.mixed), v), apply(self.rotational, w))
        return (*linear, *angular)

    def less(self, U: Vector6, W: Vector6) -> Self:
        """Return this less U W', which is symmetric."""
        u, x, v, y = U[:3], U[3:], W[:3], W[3:]
        return type(self)(
            subtract_rows(self.linear, _outer(u, v)),
            subtract_rows(self.mixed, _outer(u, y)),
            subtract_rows(self.rotational, _outer(x, y)),
        )

    def transformed(self, X_AB: Pose) -> Self:
        """Return this inertia, given in B, about the origin and in the axes of A.

        With P = [p] and all of B turned to the axes of A: M, H - M P = H + (P M)', and
        I + P H + (P H)' - P M P.
        """
        R, P = X_AB.rotation, skew(X_AB.position)
        linear, H, inertia = (multiply(multiply(R, m), transpose(R)) for m in self)
        M = _mirrored(linear)
        PM, PH = multiply(P, M), multiply(P, H)
        both = add_rows(PH, transpose(PH))
        moved = subtract_rows(add_rows(inertia, both), multiply(PM, P))
        return type(self)(M, add_rows(H, transpose(PM)), _mirrored(moved))


def _outer(a: Vector3, b: Vector3) -> Rows:
    return scale(a[0], b), scale(a[1], b), scale(a[2], b)


def _mirrored(m: Rows) -> Rows:
    """Return a symmetric matrix from its upper half."""
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = m
    return (xx, xy, xz), (xy, yy, yz), (xz, yz, zz)
