"""Inverse dynamics by the recursive Newton-Euler algorithm."""

from __future__ import annotations

from collections.abc import Sequence

from armillary.dynamics.joint_efforts import joint_efforts
from armillary.dynamics.multibody import Accelerations, Multibody
from armillary.dynamics.sparse import add_to
from armillary.spatial.inertia import SpatialInertia
from armillary.spatial.twist import (
    Vector6,
    add6,
    cross_wrench,
    power,
)
from armillary.spatial.vector import Number

__all__ = ["inertial_wrench", "inverse_dynamics", "transmitted_wrenches"]


def inverse_dynamics(
    bodies: Multibody, qd: Sequence[Number], qdd: Sequence[Number]
) -> list[Number]:
    """Return the forces of the independent coordinates, shape (n,) [N m or N].

    Featherstone, Rigid Body Dynamics Algorithms, table 5.1, in the frames of bodies.

    Args:
        bodies: In their configuration.
        qd: The rates of the independent coordinates, shape (n,) [rad/s or m/s].
        qdd: Their accelerations, shape (n,) [rad/s^2 or m/s^2].
    """
    rates = bodies.all_rates(qd)
    accelerations = bodies.all_accelerations(rates, qdd)
    motion = bodies.accelerations(rates, accelerations)
    *wrenches, _ = transmitted_wrenches(bodies, motion)
    forces = joint_efforts(bodies, rates, accelerations)
    for columns, F in zip(bodies.columns, wrenches, strict=True):
        for k, column in columns:
            add_to(forces, k, power(column, F))
    return bodies.projected(forces)


def transmitted_wrenches(bodies: Multibody, motion: Accelerations) -> list[Vector6]:
    """Return the wrench [N, N m] that each body needs from the one that carries it.

    It is about the origin of the body's frame, and written there. The last is that of
    all, in the world.
    """
    own = [
        inertial_wrench(inertia, V, A)
        for inertia, V, A in zip(bodies.inertias, *motion, strict=True)
    ]
    return bodies.gathered(own)


def inertial_wrench(inertia: SpatialInertia, V: Vector6, A: Vector6) -> Vector6:
    """Return the wrench I A + V x* I V that a body needs [N, N m].

    Args:
        inertia: I, about the origin of a frame of the body.
        V: Its twist there [m/s, rad/s].
        A: The rate of that, the spatial acceleration [m/s^2, rad/s^2].
    """
    return add6(inertia.apply(A), cross_wrench(V, inertia.apply(V)))
