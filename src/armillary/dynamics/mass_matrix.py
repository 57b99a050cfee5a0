"""The mass matrix by the composite rigid body algorithm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from armillary.dynamics.bodies import GROUND
from armillary.dynamics.multibody import Multibody, joint_dynamics
from armillary.dynamics.sparse import (
    Entries,
    Weights,
    add_to,
    both_halves,
    product,
    total,
)
from armillary.spatial.inertia import VelocityInertia
from armillary.spatial.ldl import Rows
from armillary.spatial.twist import (
    Vector6,
    add6,
    cross_twist,
    power,
    transform_wrench,
)
from armillary.spatial.vector import ZERO, Number

__all__ = ["coriolis_matrix", "mass_matrix"]


def mass_matrix(bodies: Multibody) -> Rows:
    """Return the mass matrix of the independent coordinates, row by row, shape (n, n).

    Featherstone, Rigid Body Dynamics Algorithms, table 6.2; where coordinates follow
    others as p = p(u), W' M W with the rates W of all by those of the independent ones.
    """
    H: Rows = [[0.0] * len(bodies.indices) for _ in bodies.indices]
    weights = bodies.weights
    for (k, m), entry in entries_of(bodies).items():
        for i, by in weights.get(k, {}).items():
            for j, other in weights.get(m, {}).items():
                H[i][j] = H[i][j] + by * (entry * other)
                if k != m:
                    H[j][i] = H[j][i] + by * (entry * other)
    return H


def entries_of(bodies: Multibody) -> Entries:
    """Return the entries by all coordinates, on and above the diagonal."""
    entries: Entries = {}
    inertias, rows = bodies.composites, bodies.rows
    columns = bodies.columns

    def put(k: int, m: int, value: Number) -> None:
        add_to(entries, (k, m) if k <= m else (m, k), value)

    def put_with(others: Iterable[tuple[int, Vector6]], m: int, force: Vector6) -> None:
        for other, column in others:
            value = power(column, force)
            put(m, other, 2.0 * value if m == other else value)

    for drive, dynamics in joint_dynamics(bodies):
        put(drive.of, drive.of, drive.multiplier**2 * dynamics.armature)
    # H_mn = S_n' X* I^c S_m: the force that carries composite body k along its column
    # m, walked down to each column n on the way to the ground.
    for k in reversed(range(len(rows))):
        for c, (m, column) in enumerate(columns[k]):
            force = inertias[k].apply(column)
            put(m, m, power(column, force))
            put_with(columns[k][:c], m, force)
            above = k
            while rows[above].parent != GROUND:
                force = transform_wrench(bodies.poses[above], force)
                above = rows[above].parent
                put_with(columns[above], m, force)
    return entries


# the matrix of Coriolis and centrifugal forces


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
    # C for all coordinates is projected on the independent ones, as M is.
    W, size = bodies.weights, len(bodies.indices)
    C = product(W, _entries_of(bodies, rates), W, size)
    if not bodies.coordinates.passive:
        return C
    M, changes = both_halves(entries_of(bodies)), _rates_of_weights(bodies, rates)
    return total(C, product(W, M, changes, size))


def _entries_of(bodies: Multibody, rates: Mapping[int, Number]) -> Entries:
    """Return the entries by all coordinates."""
    entries: Entries = {}
    rows, V = bodies.rows, bodies.velocities(rates)
    columns = [_moving_columns(bodies, k, V[k], rates) for k in range(len(rows))]
    # B of a body and all behind it, in its frame; the last is that of the ground.
    changing = [
        *(VelocityInertia.of(*each) for each in zip(bodies.inertias, V, strict=True)),
        VelocityInertia(ZERO, (ZERO, ZERO, ZERO)),
    ]
    for k in reversed(range(len(rows))):
        inertia, B = bodies.composites[k], changing[k]
        for each in columns[k]:
            # C_ij = S_i . (I^c S_j' + B S_j), with S' the rate of a column, for both
            # orders of a coordinate of body k and one below it: `caused` has the column
            # here, `momentum` and `turned` the row. All three are walked down to the
            # ground.
            caused = add6(inertia.apply(each.rate), B.apply(each.column))
            momentum = inertia.apply(each.column)
            turned = B.apply_transposed(each.column)
            for other in columns[k]:
                add_to(entries, (other.of, each.of), power(other.column, caused))
            above = k
            while rows[above].parent != GROUND:
                X = bodies.poses[above]
                caused = transform_wrench(X, caused)
                momentum = transform_wrench(X, momentum)
                turned = transform_wrench(X, turned)
                above = rows[above].parent
                for other in columns[above]:
                    add_to(entries, (other.of, each.of), power(other.column, caused))
                    back = power(other.rate, momentum) + power(other.column, turned)
                    add_to(entries, (each.of, other.of), back)
        changing[rows[k].parent] += B.transformed(bodies.poses[k])
    return entries


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
    changes: dict[int, Mapping[int, Number]] = {}
    for k in bodies.coordinates.passive:
        own = bodies.weights[k]
        changes[k] = dict(
            zip(own, bodies.rates_of([*own.values()], rates), strict=True)
        )
    return changes
