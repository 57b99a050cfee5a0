"""Forward dynamics, by factors of the mass matrix or by articulated bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from armillary.dynamics.bodies import GROUND
from armillary.dynamics.inverse import inverse_dynamics
from armillary.dynamics.mass_matrix import mass_matrix
from armillary.dynamics.multibody import Multibody, joint_dynamics, joint_efforts
from armillary.dynamics.sparse import add_to
from armillary.spatial.articulated import ArticulatedInertia
from armillary.spatial.ldl import SINGULAR, LDLFactor, Rows
from armillary.spatial.twist import (
    Vector6,
    add6,
    cross_wrench,
    inverse_transform_twist,
    power,
    scale6,
    six,
    transform_wrench,
)
from armillary.spatial.vector import Number

__all__ = [
    "by_articulated_bodies",
    "by_mass_matrix",
    "forward_dynamics",
    "mass_solver",
    "massless",
]


def forward_dynamics(
    bodies: Multibody, qd: Sequence[Number], forces: Sequence[Number]
) -> list[Number]:
    """Return the accelerations of the independent coordinates, by the faster method.

    They are NaN where the mass matrix is singular.
    """
    if prefers_articulated(bodies):
        return by_articulated_bodies(bodies, qd, forces)
    return by_mass_matrix(bodies, qd, forces)


def prefers_articulated(bodies: Multibody) -> bool:
    """Return whether articulated bodies take fewer operations than the mass matrix.

    Each coordinate must move one body alone.
    """
    moving = [k for columns in bodies.columns for k, _ in columns]
    if sorted(moving) != sorted(bodies.coordinates.independent):
        return False
    depth: list[int] = []
    for body in bodies.rows:
        above = 0 if body.parent == GROUND else depth[body.parent]
        depth.append(above + len(body.drives))
    # The mass matrix walks each coordinate down to the ground and is then factored,
    # with about the square of the depth; articulated bodies take the same for each.
    return sum(k * (WALK + k) for k in depth) > STEP * len(moving)


WALK, STEP = 40.0, 380.0
"""Operations of a wrench on its way down past a joint, of an articulated body."""


def by_mass_matrix(
    bodies: Multibody, qd: Sequence[Number], forces: Sequence[Number]
) -> list[Number]:
    """Return H^-1 (forces - bias), with the mass matrix H."""
    bias = inverse_dynamics(bodies, qd, bodies.zeros)
    solved = mass_solver(bodies, mass_matrix(bodies))
    return solved([force - x for force, x in zip(forces, bias, strict=True)])


def mass_solver(
    bodies: Multibody, H: Rows
) -> Callable[[Sequence[Number]], list[Number]]:
    """Return what gives x with H x = b, where H is the mass matrix.

    It is factored from the leaves on, so that no entry becomes non-zero that joins
    coordinates of different branches (Featherstone, Rigid Body Dynamics Algorithms,
    section 6.5). x is NaN where it is singular.
    """
    order = elimination_order(bodies)
    factor = LDLFactor.of_regular([[H[i][j] for j in order] for i in order])

    def solved(b: Sequence[Number]) -> list[Number]:
        x = dict(zip(order, factor.solve([b[i] for i in order]), strict=True))
        return [x[i] for i in range(len(order))]

    return solved


def elimination_order(bodies: Multibody) -> list[int]:
    """Return the numbers of independent coordinates, those of leaves first."""
    indices = bodies.indices
    order: dict[int, None] = {}
    for body in reversed(bodies.rows):
        for drive in reversed(body.drives):
            if drive.of in indices:
                order[indices[drive.of]] = None
    return [*order, *(i for i in indices.values() if i not in order)]


def massless(bodies: Multibody) -> set[int]:
    """Return the independent coordinates whose acceleration takes no force, of floats.

    They are those at which the mass matrix, eliminated from the leaves on, has a pivot
    of zero. Where it is NaN, since a joint has no pose there, nothing is known of it.
    """
    order = elimination_order(bodies)
    whole = np.array(mass_matrix(bodies), dtype=np.float64)
    H = whole.reshape(len(order), len(order))[np.ix_(order, order)]
    # Elimination: a pivot that nearly vanishes beside its own diagonal entry belongs to
    # a coordinate along which no mass moves, given the ones before.
    diagonal = H.diagonal().copy()
    coordinates: set[int] = set()
    for k, i in enumerate(order):
        if H[k, k] <= SINGULAR * diagonal[k]:
            coordinates.add(bodies.coordinates.independent[i])
            continue
        row = H[k, k + 1 :]
        H[k + 1 :, k + 1 :] -= np.outer(row, row) / H[k, k]
    return coordinates


class _Elimination(NamedTuple):
    """The joint of a body in the articulated body algorithm.

    Attributes:
        momenta: U = I^A S, for each of its coordinates.
        factor: Of D = S' U, with the inertias of motors.
        left: u = tau - S' p^A, the forces that are left for acceleration.
    """

    momenta: list[Vector6]
    factor: LDLFactor
    left: list[Number]

    def through_joint(
        self, inertia: ArticulatedInertia, wrench: Vector6, product: Vector6
    ) -> tuple[ArticulatedInertia, Vector6]:
        """Return what the parent feels through the joint, as it gives way.

        I^a = I^A - U D^-1 U', p^a = p^A + I^a c + U D^-1 u.

        Args:
            inertia: I^A.
            wrench: p^A.
            product: c.
        """
        U, factor, left = self
        solved = [factor.solve(entries) for entries in zip(*U, strict=True)]
        for force, row in zip(U, zip(*solved, strict=True), strict=True):
            inertia = inertia.less(force, six(row))
        wrench = add6(wrench, inertia.apply(product))
        for x, force in zip(factor.solve(left), U, strict=True):
            wrench = add6(wrench, scale6(x, force))
        return inertia, wrench


def by_articulated_bodies(
    bodies: Multibody, qd: Sequence[Number], forces: Sequence[Number]
) -> list[Number]:
    """Return the accelerations by the articulated body algorithm.

    Featherstone, Rigid Body Dynamics Algorithms, table 7.1, for joints of any number
    of coordinates. Each coordinate must move one body alone.
    """
    rates = bodies.all_rates(qd)
    V = bodies.velocities(rates)
    rows, count = bodies.rows, len(bodies.rows)
    # Per body: its inertia I^A, which grows by what it carries; c = V x J + S' q'; and
    # p^A = V x* I V, the wrench at rest of its joints.
    inertias = [ArticulatedInertia.of(each) for each in bodies.inertias]
    products = [bodies.velocity_product(k, V[k], rates) for k in range(count)]
    wrenches = [
        cross_wrench(v, inertia.apply(v))
        for v, inertia in zip(V, bodies.inertias, strict=True)
    ]
    own = joint_efforts(bodies, rates, {})
    given = dict(zip(bodies.coordinates.independent, forces, strict=True))
    armatures: dict[int, Number] = {}
    for drive, dynamics in joint_dynamics(bodies):
        add_to(armatures, drive.of, drive.multiplier**2 * dynamics.armature)
    steps: list[_Elimination] = []
    # From the leaves: U = I^A S, D = S' U with the motors' inertia, u = tau - S' p^A.
    for k in reversed(range(count)):
        articulated, S = inertias[k], bodies.columns[k]
        U = [articulated.apply(column) for _, column in S]
        D = [[power(a, F) for F in U] for _, a in S]
        for c, (m, _) in enumerate(S):
            D[c][c] = D[c][c] + armatures.get(m, 0.0)
        factor = LDLFactor.of_regular(D)
        left = [
            given[m] - own.get(m, 0.0) - power(column, wrenches[k]) for m, column in S
        ]
        step = _Elimination(U, factor, left)
        steps.append(step)
        parent = rows[k].parent
        if parent == GROUND:
            continue
        felt, wrench = step.through_joint(articulated, wrenches[k], products[k])
        inertias[parent] += felt.transformed(bodies.poses[k])
        carried = transform_wrench(bodies.poses[k], wrench)
        wrenches[parent] = add6(wrenches[parent], carried)
    A: list[Vector6] = []
    accelerations: dict[int, Number] = {}
    # From the ground: a = X a_parent + c, q'' = D^-1 (u - U' a), A = a + S q''.
    for k, (momenta, factor, left) in enumerate(reversed(steps)):
        parent = bodies.ground if rows[k].parent == GROUND else A[rows[k].parent]
        a = add6(inverse_transform_twist(bodies.poses[k], parent), products[k])
        x = factor.solve([u - power(a, F) for u, F in zip(left, momenta, strict=True)])
        for (m, column), value in zip(bodies.columns[k], x, strict=True):
            accelerations[m] = value
            a = add6(a, scale6(value, column))
        A.append(a)
    return [accelerations[k] for k in bodies.coordinates.independent]
