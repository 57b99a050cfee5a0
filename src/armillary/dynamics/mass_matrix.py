"""The mass matrix by the composite rigid body algorithm."""

from __future__ import annotations

from collections.abc import Iterable

from armillary.dynamics.bodies import GROUND
from armillary.dynamics.joint_efforts import joint_dynamics
from armillary.dynamics.multibody import Multibody
from armillary.dynamics.sparse import Entries, add_to
from armillary.spatial.ldl import Rows
from armillary.spatial.twist import Vector6, power, transform_wrench
from armillary.spatial.vector import Number

__all__ = ["entries_of", "mass_matrix"]


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
    found: Entries = {}
    inertias, rows = bodies.composites, bodies.rows
    columns = bodies.columns

    def put(k: int, m: int, value: Number) -> None:
        add_to(found, (k, m) if k <= m else (m, k), value)

    def put_with(others: Iterable[tuple[int, Vector6]], m: int, force: Vector6) -> None:
        for other, column in others:
            value = power(column, force)
            put(m, other, 2.0 * value if m == other else value)

    for drive, dynamics in joint_dynamics(bodies):
        put(drive.of, drive.of, drive.multiplier**2 * dynamics.armature)
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
    return found
