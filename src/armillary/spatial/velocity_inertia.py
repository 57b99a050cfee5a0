"""Velocity inertias: the rate at which the inertia of moving bodies changes."""

from __future__ import annotations

from typing import NamedTuple, Self

from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.pose import Pose
from armillary.spatial.twist import Vector6, halves, scale6
from armillary.spatial.vector import (
    ZERO,
    Rows,
    Vector3,
    add,
    add_rows,
    apply,
    cross,
    multiply,
    scale,
    skew,
    subtract_rows,
    transpose,
)

__all__ = ["VelocityInertia"]


class VelocityInertia(NamedTuple):
    """The matrix B = [0, -[p]; 0, N] of moving bodies.

    B V = V x* I V, and B + B' = V x* I - I V x, the rate of the inertia.

    Attributes:
        p: Linear momentum [kg m/s].
        N: Shape (3, 3) [kg m^2/s].
    """

    p: Vector3
    N: Rows

    @classmethod
    def of(cls, inertia: SpatialInertia, V: Vector6) -> Self:
        """Return that of a body: N = tr(D) 1 - D, D = sum of m x' x^T over its mass."""
        x, y, z = (scale(0.5, row) for row in _doubled_flow(inertia, V))
        return cls(inertia.apply(V)[:3], (x, y, z))

    @classmethod
    def doubled(cls, inertia: SpatialInertia, V: Vector6) -> Self:
        """Return 2 B of a body, which takes fewer operations than B."""
        momentum = scale(2.0, inertia.apply(V)[:3])
        return cls(momentum, _doubled_flow(inertia, V))

    def __add__(self, other: Self) -> Self:  # type: ignore[override]
        """Return the sum; same frame."""
        return type(self)(add(self.p, other.p), add_rows(self.N, other.N))

    def apply(self, V: Vector6) -> Vector6:
        """Return B V."""
        return (*cross(V[3:], self.p), *apply(self.N, V[3:]))

    def apply_transposed(self, V: Vector6) -> Vector6:
        """Return B' V."""
        own = apply(transpose(self.N), V[3:])
        return (*ZERO, *add(cross(self.p, V[:3]), own))

    def transformed(self, X_AB: Pose) -> Self:
        """Return this, given in B, about the origin and in the axes of A."""
        R = X_AB.rotation
        p = apply(R, self.p)
        turned = multiply(multiply(R, self.N), transpose(R))
        return type(self)(
            p, subtract_rows(turned, multiply(skew(X_AB.position), skew(p)))
        )


def _doubled_flow(inertia: SpatialInertia, V: Vector6) -> Rows:
    """Return 2 N = 2 (v . h) 1 - 2 v h^T - tr(I) [w] + 2 [w] I of a body."""
    v, w = halves(scale6(2.0, V))
    h, I = inertia.first_moment, inertia.rotational  # noqa: E741
    spin = scale(0.5 * (I[0][0] + I[1][1] + I[2][2]), w)
    x, y, z = transpose((cross(w, I[0]), cross(w, I[1]), cross(w, I[2])))
    a, b, c = v[0] * h[0], v[1] * h[1], v[2] * h[2]
    return (
        (b + c + x[0], x[1] + spin[2] - v[0] * h[1], x[2] - spin[1] - v[0] * h[2]),
        (y[0] - spin[2] - v[1] * h[0], a + c + y[1], y[2] + spin[0] - v[1] * h[2]),
        (z[0] + spin[1] - v[2] * h[0], z[1] - spin[0] - v[2] * h[1], a + b + z[2]),
    )
