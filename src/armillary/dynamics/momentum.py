"""The centre of mass of all bodies, its motion, and their momentum."""

from __future__ import annotations

from collections.abc import Sequence

from armillary.dynamics.bodies import GROUND
from armillary.dynamics.multibody import Multibody, joint_dynamics
from armillary.spatial.ldl import Rows
from armillary.spatial.pose import Pose
from armillary.spatial.twist import Vector6, inverse_transform_wrench, power
from armillary.spatial.vector import EYE, ZERO, Number, Vector3, add, apply, dot

__all__ = [
    "centre_of_mass",
    "centre_of_mass_jacobian",
    "kinetic_energy",
    "momentum",
    "potential_energy",
]


# energies of the bodies that joints move


def kinetic_energy(bodies: Multibody, qd: Sequence[Number]) -> Number:
    """Return the sum of V . (I V) / 2, and of I n^2 q'^2 / 2 of motors [J]."""
    rates = bodies.all_rates(qd)
    total: Number = 0.0
    for inertia, V in zip(bodies.inertias, bodies.velocities(rates), strict=True):
        total = total + power(V, inertia.apply(V))
    for drive, dynamics in joint_dynamics(bodies):
        rate = drive.multiplier * rates.get(drive.of, 0.0)
        total = total + dynamics.armature * (rate * rate)
    return 0.5 * total


def potential_energy(bodies: Multibody) -> Number:
    """Return minus the sum of m g . c, and that of k (q - rest)^2 / 2 of springs [J].

    c is the centre of mass in the world, g the acceleration of falling bodies.
    """
    total = 0.0 - dot(bodies.gravity, bodies.composites[GROUND].first_moment)
    for drive, dynamics in joint_dynamics(bodies):
        stretch = drive.at(bodies.q) - dynamics.rest
        total = total + 0.5 * dynamics.stiffness * (stretch * stretch)
    return total


# the centre of mass of all bodies, its motion, and their momentum


def centre_of_mass(bodies: Multibody) -> Vector3:
    """Return the centre of mass of all bodies, in the world [m]."""
    return bodies.composites[GROUND].centre()


def centre_of_mass_jacobian(bodies: Multibody) -> Rows:
    """Return the velocity of the centre of mass [m/s] per unit rate, shape (3, n).

    With the first moment h and the mass m of a body and all that it carries, a column
    (v, w) of its joint adds (m v + w x h) to the momentum of the whole.
    """
    moved: dict[int, Vector3] = {}
    *inertias, _ = bodies.composites
    for inertia, X_WB, columns in zip(
        inertias, bodies.world_poses, bodies.columns, strict=True
    ):
        for k, column in columns:
            carried = apply(X_WB.rotation, inertia.apply(column)[:3])
            moved[k] = add(moved.get(k, ZERO), carried)
    mass = bodies.composites[GROUND].mass
    return [
        [x / mass for x in bodies.projected({k: each[i] for k, each in moved.items()})]
        for i in range(3)
    ]


def momentum(bodies: Multibody, qd: Sequence[Number], about: Vector3 | None) -> Vector6:
    """Return the linear [kg m/s] and angular momentum [kg m^2/s], in the world's axes.

    Args:
        bodies: In their configuration.
        qd: The rates of the independent coordinates.
        about: The point in the world that the angular one is about; the centre of mass
            by default.
    """
    velocities = bodies.velocities(bodies.all_rates(qd))
    own = [
        inertia.apply(V) for inertia, V in zip(bodies.inertias, velocities, strict=True)
    ]
    total = bodies.gathered(own)[GROUND]
    point = centre_of_mass(bodies) if about is None else about
    return inverse_transform_wrench(Pose(EYE, point), total)
