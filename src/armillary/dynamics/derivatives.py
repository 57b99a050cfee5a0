"""Exact derivatives of inverse and forward dynamics, by recursions over bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from armillary.dynamics.derivative_recursion import DerivativeRecursion
from armillary.dynamics.forward import forward_dynamics, mass_solver
from armillary.dynamics.multibody import Multibody
from armillary.dynamics.sparse import product, total
from armillary.spatial.ldl import Rows
from armillary.spatial.vector import Number
from armillary.trace import jvp

__all__ = [
    "Derivatives",
    "forward_dynamics_derivatives",
    "inverse_dynamics_derivatives",
]


class Derivatives(NamedTuple):
    """The partial derivatives of the forces of independent coordinates, row by row.

    Attributes:
        by_q: By positions, shape (n, n) [N m/rad and the like]; of a free base, by a
            twist of it in the axes of the world.
        by_qd: By rates, shape (n, n) [N m s/rad and the like].
        by_qdd: By accelerations: the mass matrix, shape (n, n).
    """

    by_q: Rows
    by_qd: Rows
    by_qdd: Rows


def inverse_dynamics_derivatives(
    bodies: Multibody, qd: Sequence[Number], qdd: Sequence[Number]
) -> Derivatives:
    """Return the derivatives of `inverse_dynamics`.

    Args:
        bodies: In their configuration.
        qd: The rates of the independent coordinates.
        qdd: Their accelerations.
    """
    rates = bodies.all_rates(qd)
    accelerations = bodies.all_accelerations(rates, qdd)
    recursion = DerivativeRecursion(bodies, rates, accelerations)
    if not bodies.coordinates.passive:
        W, size = bodies.weights, len(bodies.indices)
        return Derivatives(*(product(W, each, W, size) for each in recursion.entries))
    return _along_loops(bodies, recursion, rates, list(zip(qd, qdd, strict=True)))


def forward_dynamics_derivatives(
    bodies: Multibody, qd: Sequence[Number], forces: Sequence[Number]
) -> tuple[Rows, Rows, Rows]:
    """Return the derivatives of accelerations, by q, qd and the forces, row by row.

    With tau(q, qd, qdd) and M = dtau/dqdd they are -M^-1 dtau/dq, -M^-1 dtau/dqd and
    M^-1, where qdd is what the forces cause.
    """
    qdd = forward_dynamics(bodies, qd, forces)
    by_q, by_qd, M = inverse_dynamics_derivatives(bodies, qd, qdd)
    solved = mass_solver(bodies, M)

    def of_all(B: Rows, sign: float) -> Rows:
        columns = [solved([sign * x for x in c]) for c in zip(*B, strict=True)]
        return [list(row) for row in zip(*columns, strict=True)]

    unit = [[float(i == j) for j in range(len(M))] for i in range(len(M))]
    return of_all(by_q, -1.0), of_all(by_qd, -1.0), of_all(unit, 1.0)


def _along_loops(
    bodies: Multibody,
    recursion: DerivativeRecursion,
    rates: Mapping[int, Number],
    motion: Sequence[tuple[Number, Number]],
) -> Derivatives:
    """Return the derivatives where passive coordinates follow as p = p(u).

    With the rates W of all coordinates y by those of u, the forces are W' tau(y). Along
    u_j, y changes by W_j, its rate by W'_j (dot) and its acceleration by W''_j, and W
    itself by p_uu; along the rate of u_j, y' changes by W_j and y'' by 2 W'_j.

    motion: The rate and acceleration of each independent coordinate.
    """
    W, size = bodies.weights, len(bodies.indices)
    keys = [(k, i) for k in bodies.coordinates.passive for i in W[k]]
    values = [W[k][i] for k, i in keys]
    bends: list[dict[tuple[int, int], Number]] = []
    for j in range(size):
        bend = bodies.rates_of(values, {k: w[j] for k, w in W.items() if j in w})
        bends.append(dict(zip(keys, bend, strict=True)))
    first = bodies.rates_of(values, rates)
    second = jvp(first, [*bodies.directions(rates), *motion])
    once: dict[int, dict[int, Number]] = {}
    twice: dict[int, dict[int, Number]] = {}
    for found, values in (once, first), (twice, second):
        for (k, i), x in zip(keys, values, strict=True):
            found.setdefault(k, {})[i] = x
    by_q, by_qd, by_qdd = recursion.entries
    doubled = {k: {i: 2.0 * x for i, x in row.items()} for k, row in once.items()}
    whole_q = total(
        product(W, by_q, W, size),
        product(W, by_qd, once, size),
        product(W, by_qdd, twice, size),
    )
    for j, bend in enumerate(bends):
        for (k, i), x in bend.items():
            whole_q[i][j] = whole_q[i][j] + x * recursion.forces.get(k, 0.0)
    whole_qd = total(product(W, by_qd, W, size), product(W, by_qdd, doubled, size))
    return Derivatives(whole_q, whole_qd, product(W, by_qdd, W, size))
