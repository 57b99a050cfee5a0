"""Inverse dynamics by the recursive Newton-Euler algorithm."""

from __future__ import annotations

from collections.abc import Sequence

from armillary.dynamics.bodies import GROUND
from armillary.dynamics.multibody import Accelerations, Multibody, joint_efforts
from armillary.dynamics.sparse import add_to
from armillary.spatial.inertia import INERTIAL, SpatialInertia
from armillary.spatial.ldl import Rows
from armillary.spatial.twist import (
    Vector6,
    add6,
    cross_wrench,
    halves,
    inverse_transform_twist,
    power,
)
from armillary.spatial.vector import Number, add, cross, dot

__all__ = [
    "inertial_wrench",
    "inverse_dynamics",
    "regressor",
    "transmitted_wrenches",
]


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


# the regressor of inertial parameters: torques as a matrix times the parameters


def regressor(
    bodies: Multibody,
    qd: Sequence[Number],
    qdd: Sequence[Number],
    links: Sequence[int],
) -> Rows:
    """Return the regressor, a row for each independent coordinate.

    Args:
        bodies: In their configuration; their inertias do not count.
        qd: The rates of the independent coordinates.
        qdd: Their accelerations.
        links: Whose parameters, ten columns each.
    """
    rates = bodies.all_rates(qd)
    motion = bodies.accelerations(rates, bodies.all_accelerations(rates, qdd))
    columns: list[list[tuple[int, Vector6]]] = []
    for parent, own, pose in zip(
        bodies.parents, bodies.columns, bodies.poses, strict=True
    ):
        above = [] if parent == GROUND else columns[parent]
        carried = [(k, inverse_transform_twist(pose, S)) for k, S in above]
        columns.append(carried + own)
    whole: list[list[Number]] = []
    for link in links:
        body, pose = bodies.bodies.fixed[link]
        if body == GROUND:
            whole += [bodies.zeros for _ in INERTIAL]
            continue
        at = pose @ bodies.tree.links[link].primary
        V, A = (inverse_transform_twist(at, six[body]) for six in motion)
        forces: list[dict[int, Number]] = [{} for _ in INERTIAL]
        for k, S in columns[body]:
            powers = _powers(inverse_transform_twist(at, S), V, A)
            for force, value in zip(forces, powers, strict=True):
                add_to(force, k, value)
        whole += map(bodies.projected, forces)
    return [list(row) for row in zip(*whole, strict=True)]


def _powers(S: Vector6, V: Vector6, A: Vector6) -> list[Number]:
    """Return S . F for unit inertial parameters, F = I A + V x* I V.

    With S = (s, t), V = (v, w), A = (a, b) and the acceleration of the origin
    c = a + w x v they are m s . c, h . (s x b + w x (w x s) + c x t) and
    t . I b + (t x w) . I w (Atkeson, An and Hollerbach, 1986, equation 15).
    """
    (s, t), (v, w), (a, b) = halves(S), halves(V), halves(A)
    c = add(a, cross(w, v))
    h = add(cross(s, b), add(cross(w, cross(w, s)), cross(c, t)))
    u = cross(t, w)

    def moment(i: int, j: int) -> Number:
        if i == j:
            return t[i] * b[i] + u[i] * w[i]
        return t[i] * b[j] + t[j] * b[i] + (u[i] * w[j] + u[j] * w[i])

    pairs = (0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)
    return [dot(s, c), *h, *(moment(i, j) for i, j in pairs)]
