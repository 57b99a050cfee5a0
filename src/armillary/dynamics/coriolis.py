"""The matrix of Coriolis and centrifugal forces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

from armillary.dynamics.bodies import GROUND
from armillary.dynamics.derivative_recursion import doubled_flow
from armillary.dynamics.mass_matrix import entries_of
from armillary.dynamics.multibody import Multibody
from armillary.dynamics.sparse import (
    Entries,
    Weights,
    add_to,
    both_halves,
    product,
    total,
)
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.ldl import Rows
from armillary.spatial.pose import Pose
from armillary.spatial.twist import (
    Vector6,
    add6,
    cross_twist,
    power,
    transform_wrench,
)
from armillary.spatial.vector import (
    ZERO,
    Number,
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
from armillary.spatial.vector import Rows as Rows3

__all__ = ["coriolis_matrix"]


class VelocityInertia(NamedTuple):
    """The matrix B = [0, -[p]; 0, N] of moving bodies.

    B V = V x* I V, and B + B' = V x* I - I V x, the rate of the inertia.

    Attributes:
        p: Linear momentum [kg m/s].
        N: Shape (3, 3) [kg m^2/s].
    """

    p: Vector3
    N: Rows3

    @classmethod
    def of(cls, inertia: SpatialInertia, V: Vector6) -> Self:
        """Return that of a body: N = tr(D) 1 - D, D = sum of m x' x^T over its mass."""
        x, y, z = (scale(0.5, row) for row in doubled_flow(inertia, V))
        return cls(inertia.apply(V)[:3], (x, y, z))

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


def coriolis_matrix(bodies: Multibody, qd: Sequence[Number]) -> Rows:
    """Return the matrix C with C qd the forces of motion, row by row, shape (n, n).

    Echeandia and Wensing, Numerical Methods to Compute the Coriolis Matrix and
    Christoffel Symbols for Rigid-Body Systems (2021), algorithm 1, for joints whose
    columns depend on coordinates. Where coordinates follow others as p = p(u), it is
    W' (M W' + C W), W' being here the time derivative of W, the rates of all
    coordinates by those of the independent ones.

    Args:
        bodies: In their configuration.
        qd: The rates of the independent coordinates.
    """
    rates = bodies.all_rates(qd)
    W, size = bodies.weights, len(bodies.indices)
    C = product(W, _entries_of(bodies, rates), W, size)
    if not bodies.coordinates.passive:
        return C
    M, changes = both_halves(entries_of(bodies)), _rates_of_weights(bodies, rates)
    return total(C, product(W, M, changes, size))


def _entries_of(bodies: Multibody, rates: Mapping[int, Number]) -> Entries:
    """Return the entries by all coordinates."""
    found: Entries = {}
    rows, V = bodies.rows, bodies.velocities(rates)
    columns = [_moving_columns(bodies, k, V[k], rates) for k in range(len(rows))]
    changing = [
        *(VelocityInertia.of(*each) for each in zip(bodies.inertias, V, strict=True)),
        VelocityInertia(ZERO, (ZERO, ZERO, ZERO)),
    ]
    for k in reversed(range(len(rows))):
        inertia, B = bodies.composites[k], changing[k]
        for each in columns[k]:
            caused = add6(inertia.apply(each.rate), B.apply(each.column))
            momentum = inertia.apply(each.column)
            turned = B.apply_transposed(each.column)
            for other in columns[k]:
                add_to(found, (other.of, each.of), power(other.column, caused))
            above = k
            while rows[above].parent != GROUND:
                X = bodies.poses[above]
                caused = transform_wrench(X, caused)
                momentum = transform_wrench(X, momentum)
                turned = transform_wrench(X, turned)
                above = rows[above].parent
                for other in columns[above]:
                    add_to(found, (other.of, each.of), power(other.column, caused))
                    back = power(other.rate, momentum) + power(other.column, turned)
                    add_to(found, (each.of, other.of), back)
        changing[rows[k].parent] += B.transformed(bodies.poses[k])
    return found


class _Moving(NamedTuple):
    """A coordinate, its column in a body's frame, and the rate of that in the world."""

    of: int
    column: Vector6
    rate: Vector6


def _moving_columns(
    bodies: Multibody, k: int, V: Vector6, rates: Mapping[int, Number]
) -> list[_Moving]:
    changes = bodies.column_rates(k, rates)
    return [
        _Moving(m, S, add6(cross_twist(V, S), change))
        for (m, S), change in zip(bodies.columns[k], changes, strict=True)
    ]


def _rates_of_weights(bodies: Multibody, rates: Mapping[int, Number]) -> Weights:
    """Return the time derivatives of `Multibody.weights` that are not constant."""
    found: dict[int, Mapping[int, Number]] = {}
    for k in bodies.coordinates.passive:
        own = bodies.weights[k]
        found[k] = dict(zip(own, bodies.rates_of([*own.values()], rates), strict=True))
    return found
