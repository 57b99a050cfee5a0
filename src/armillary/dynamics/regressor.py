"""The regressor of inertial parameters: torques as a matrix times the parameters."""

from __future__ import annotations

from collections.abc import Sequence

from armillary.dynamics.bodies import GROUND
from armillary.dynamics.multibody import Multibody
from armillary.dynamics.sparse import add_to
from armillary.spatial.ldl import Rows
from armillary.spatial.twist import (
    Vector6,
    halves,
    inverse_transform_twist,
)
from armillary.spatial.vector import Number, add, cross, dot

__all__ = ["regressor"]

COUNT = 10
"""The number of inertial parameters of a link."""


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
            whole += [bodies.zeros for _ in range(COUNT)]
            continue
        at = pose @ bodies.tree.links[link].primary
        V, A = (inverse_transform_twist(at, six[body]) for six in motion)
        forces: list[dict[int, Number]] = [{} for _ in range(COUNT)]
        for k, S in columns[body]:
            powers = _powers(inverse_transform_twist(at, S), V, A)
            for force, power in zip(forces, powers, strict=True):
                add_to(force, k, power)
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
