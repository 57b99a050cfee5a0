"""Energies of the bodies that joints move."""

from __future__ import annotations

from collections.abc import Sequence

from armillary.dynamics.bodies import GROUND
from armillary.dynamics.joint_efforts import joint_dynamics
from armillary.dynamics.multibody import Multibody
from armillary.spatial.twist import power
from armillary.spatial.vector import Number, dot

__all__ = ["kinetic_energy", "potential_energy"]


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
