"""Exact derivatives of inverse and forward dynamics, by recursions over bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from armillary.dynamics.derivative_recursion import DerivativeRecursion, Entries
from armillary.dynamics.forward import elimination_order, forward_dynamics
from armillary.dynamics.multibody import Multibody
from armillary.spatial.ldl import LDLFactor, Rows
from armillary.spatial.vector import Number
from armillary.trace import Traced, jvp

__all__ = [
    "Derivatives",
    "forward_dynamics_derivatives",
    "inverse_dynamics_derivatives",
]


class Derivatives(NamedTuple):
    """The partial derivatives of the forces of independent coordinates, row by row.

    Attributes:
        by_q: By positions; of a free base, by a twist of it in the axes of the world.
        by_qd: By rates.
        by_qdd: By accelerations: the mass matrix.
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
        place = {k: i for i, k in enumerate(bodies.coordinates.independent)}
        ones = {k: {i: 1.0} for k, i in place.items()}
        count = len(place)
        return Derivatives(
            *(_product(ones, each, ones, count) for each in recursion.entries)
        )
    return _along_loops(bodies, recursion, rates, list(zip(qd, qdd, strict=True)))


def forward_dynamics_derivatives(
    bodies: Multibody, qd: Sequence[Number], forces: Sequence[Number]
) -> Derivatives:
    """Return the derivatives of accelerations, by q, qd and the forces.

    With tau(q, qd, qdd) and M = dtau/dqdd they are -M^-1 dtau/dq, -M^-1 dtau/dqd and
    M^-1, where qdd is what the forces cause.
    """
    qdd = forward_dynamics(bodies, qd, forces)
    by_q, by_qd, M = inverse_dynamics_derivatives(bodies, qd, qdd)
    order = elimination_order(bodies)
    factor = LDLFactor.of_regular([[M[i][j] for j in order] for i in order])

    def solved(column: Sequence[Number]) -> list[Number]:
        x = dict(zip(order, factor.solve([column[i] for i in order]), strict=True))
        return [x[i] for i in range(len(order))]

    def of_all(B: Rows, sign: float) -> Rows:
        columns = [solved([sign * x for x in c]) for c in zip(*B, strict=True)]
        return [list(row) for row in zip(*columns, strict=True)]

    unit = [[float(i == j) for j in range(len(M))] for i in range(len(M))]
    return Derivatives(of_all(by_q, -1.0), of_all(by_qd, -1.0), of_all(unit, 1.0))


Weights = Mapping[int, Mapping[int, Number]]
"""A matrix, sparse: for each coordinate numbers by places of independent ones."""


def _product(left: Weights, entries: Entries, right: Weights, size: int) -> Rows:
    """Return left' E right."""
    found: Rows = [[0.0] * size for _ in range(size)]
    for (k, m), entry in entries.items():
        for j, y in right.get(m, {}).items():
            moved = entry * y
            for i, x in left.get(k, {}).items():
                found[i][j] = found[i][j] + x * moved
    return found


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
    place = {k: i for i, k in enumerate(bodies.coordinates.independent)}
    size = len(place)
    W: dict[int, dict[int, Number]] = {k: {i: 1.0} for k, i in place.items()}
    for k, through in bodies.passive_rates.items():
        W[k] = {place[j]: x for j, x in through.items() if j in place}
    keys = [(k, i) for k in bodies.coordinates.passive for i in W[k]]
    values = [W[k][i] for k, i in keys]
    sparse: list[dict[int, dict[int, Number]]] = [{}, {}]
    bends: list[dict[tuple[int, int], Number]] = []
    q = bodies.q
    for j in range(size):
        seeds = [
            (q[k], w[j]) for k, w in W.items() if j in w and isinstance(q[k], Traced)
        ]
        bends.append(dict(zip(keys, jvp(values, seeds), strict=True)))
    moving = [(q[k], rate) for k, rate in rates.items() if isinstance(q[k], Traced)]
    first = jvp(values, moving)
    moving += [pair for pair in motion if isinstance(pair[0], Traced)]
    for which, found in enumerate((first, jvp(first, moving))):
        for (k, i), x in zip(keys, found, strict=True):
            sparse[which].setdefault(k, {})[i] = x
    by_q, by_qd, by_qdd = recursion.entries
    turns, second = sparse
    twice = {k: {i: 2.0 * x for i, x in row.items()} for k, row in turns.items()}
    whole_q = _sum(
        _product(W, by_q, W, size),
        _product(W, by_qd, turns, size),
        _product(W, by_qdd, second, size),
    )
    for j, bend in enumerate(bends):
        for (k, i), x in bend.items():
            whole_q[i][j] = whole_q[i][j] + x * recursion.forces.get(k, 0.0)
    whole_qd = _sum(_product(W, by_qd, W, size), _product(W, by_qdd, twice, size))
    return Derivatives(whole_q, whole_qd, _product(W, by_qdd, W, size))


def _sum(first: Rows, *more: Rows) -> Rows:
    """Return the sum of matrices."""
    for other in more:
        first = [
            [x + y for x, y in zip(*rows, strict=True)]
            for rows in zip(first, other, strict=True)
        ]
    return first
