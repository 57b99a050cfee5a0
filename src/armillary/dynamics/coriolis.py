"""The matrix of Coriolis and centrifugal forces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from armillary.dynamics.bodies import GROUND
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
from armillary.spatial.ldl import Rows
from armillary.spatial.twist import (
    Vector6,
    add6,
    cross_twist,
    power,
    transform_wrench,
)
from armillary.spatial.vector import ZERO, Number
from armillary.spatial.velocity_inertia import VelocityInertia

__all__ = ["coriolis_matrix"]


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
