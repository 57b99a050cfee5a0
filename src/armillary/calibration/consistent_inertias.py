"""Inertias that rigid bodies can have, as near to measurements as possible.

Ten numbers are the inertia of a body if its pseudo-inertia is positive definite,

    P = [S, h; h', m],    S = tr(I) / 2 1 - I,

with mass m, first moment h and rotational inertia I about the origin (Wensing, Kim and
Slotine, IEEE RA-L 3 (2018), equation 10). Torques decide only some combinations of
them. Of all inertias that explain torques alike, those are taken that are nearest to
the nominal ones by the divergence of normal distributions of the mass,

    d(P, P0) = tr(P P0^-1) - log det(P P0^-1) - 4

(Lee, Wensing and Park, IEEE T-RO 36 (2020), equation 16), which is infinite where P is
singular: what is minimised is convex, and every step stays within.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from armillary.model.cell_parameters import CellParameter
from armillary.spatial.inertia import INERTIAL, SpatialInertia

__all__ = ["complete_inertias", "consistent"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

LEAST_WEIGHT: Final = 1e-4
"""Of the divergence, beside half the squares of residuals in their errors.

These are the errors stated, or those that residuals have where they are larger: with
torques that no body causes, as of swapped columns, inertias would become singular.
"""
STEPS: Final = 50
ENOUGH: Final = 1e-9
"""The square of a Newton step, in the norm of the second derivative, that ends it."""
MOST: Final = 0.9
"""How much of the way to a singular pseudo-inertia a step may go."""
FLAT: Final = 1e-3
"""The least ratio of nominal moments: points and plates are made a little thicker."""
UNKNOWN: Final = (1.0, 0.1)
"""Mass [kg] and radius [m] of the ball that stands for an unknown inertia."""


def complete_inertias(parameters: Sequence[CellParameter]) -> list[Indices]:
    """Return where the ten numbers of a link are, for each link that has all of them.

    They are in the order of `INERTIAL`.
    """
    places: dict[Any, dict[str, int]] = {}
    for k, each in enumerate(parameters):
        if each.component in INERTIAL:
            places.setdefault(each.path, {})[each.component] = k
    return [
        np.array([found[name] for name in INERTIAL])
        for found in places.values()
        if len(found) == len(INERTIAL)
    ]


def consistent(
    rates: Array, residuals: Array, p: Array, start: Array, bodies: Sequence[Indices]
) -> Array:
    """Return parameters whose inertias bodies can have, near to the least squares.

    What is minimised is |r + J x|^2 / 2 + w sum d(P, P0) over changes x of parameters.

    Args:
        rates: J, derivatives of residuals by parameters, shape (m, k).
        residuals: r, at p, shape (m,).
        p: Values of the parameters, shape (k,).
        start: Nominal ones, shape (k,).
        bodies: Where the numbers of each inertia are.
    """
    nominal = [_definite(_pseudo(start[each])) for each in bodies]
    x = np.zeros(len(p))
    for each, P0 in zip(bodies, nominal, strict=True):
        x[each] = _numbers(P0) - p[each]
    # Only the triangle of many rows is needed.
    Q, R = np.linalg.qr(rates)
    r = Q.T @ residuals
    # From a weight with which nominal inertias are nearly best, along the best ones of
    # lesser weights: Newton's method takes few steps from each to the next.
    rest = max(float(residuals @ residuals - r @ r), 0.0)
    cost = float(((r + R @ x) ** 2).sum())
    weight, least = max(cost, 1.0), 0.0
    while weight > least:
        least = LEAST_WEIGHT * max((rest + cost) / len(rates), 1.0)
        weight = max(0.1 * weight, least)
        x = _nearest(R, r, x, p, bodies, nominal, weight)
        cost = float(((r + R @ x) ** 2).sum())
    return p + x


def _nearest(
    R: Array,
    r: Array,
    x: Array,
    p: Array,
    bodies: Sequence[Indices],
    nominal: Sequence[Array],
    weight: float,
) -> Array:
    """Return the minimum for one weight, by Newton's method from x on.

    With P = L L' and F_i = L^-1 E_i L^-T, E_i being dP/dx_i, the second derivative of
    d(P, P0) is F'F and the first F (L' P0^-1 L - 1). So a step is a least squares
    problem.
    """

    def value(at: Array) -> float:
        total = 0.5 * float(((r + R @ at) ** 2).sum())
        for each, P0 in zip(bodies, nominal, strict=True):
            P = _pseudo((p + at)[each])
            try:
                np.linalg.cholesky(P)
            except np.linalg.LinAlgError:  # singular but for rounding
                return np.inf
            ratio = np.linalg.solve(P0, P)
            total += weight * float(np.trace(ratio) - np.linalg.slogdet(ratio)[1] - 4.0)
        return total

    root = np.sqrt(weight)
    now = value(x)
    for _ in range(STEPS):
        blocks, targets = [R], [-(r + R @ x)]
        inverses: list[Array] = []
        for each, P0 in zip(bodies, nominal, strict=True):
            L: Array = np.linalg.cholesky(_pseudo((p + x)[each])).astype(np.float64)
            inverse: Array = np.linalg.inv(L).astype(np.float64)
            inverses.append(inverse)
            F = np.zeros((16, len(x)))
            F[:, each] = (inverse @ BASIS @ inverse.T).reshape(10, 16).T
            blocks.append(root * F)
            pull = np.eye(4) - L.T @ np.linalg.solve(P0, L)
            targets.append(root * pull.ravel())
        A, b = np.concatenate(blocks), np.concatenate(targets)
        lengths = np.linalg.norm(A, axis=0)
        scale = np.where(lengths > 0.0, lengths, 1.0)
        step = np.linalg.lstsq(A / scale, b, rcond=None)[0] / scale
        size = float(((A @ step) ** 2).sum())
        if size < ENOUGH * weight:
            break
        # A step goes most of the way to where a P is singular, at most. The sum may
        # curve more than it does here: shorter ones, until it falls.
        share = 1.0
        for each, inverse in zip(bodies, inverses, strict=True):
            change = inverse @ _pseudo(step[each]) @ inverse.T
            share = min(share, MOST / max(-float(np.linalg.eigvalsh(change)[0]), MOST))
        while share > 1e-10 and not value(x + share * step) < now - 0.1 * share * size:
            share *= 0.5
        if share <= 1e-10:
            break
        x = x + share * step
        now = value(x)
    return x


def _pseudo(numbers: Array) -> Array:
    """Return the pseudo-inertia of ten numbers, shape (4, 4)."""
    return np.tensordot(numbers, BASIS, 1)


def _numbers(P: Array) -> Array:
    """Return the ten numbers of a pseudo-inertia."""
    S: Any = P[:3, :3]
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = S.tolist()
    inertia = SpatialInertia.from_second_moment(
        P[3, 3], P[:3, 3], (xx, yy, zz, xy, xz, yz)
    )
    return np.array(inertia.parameters, np.float64)


def _basis() -> Array:
    """Return the pseudo-inertia of each number alone, shape (10, 4, 4)."""
    matrices: list[Array] = []
    for unit in np.eye(len(INERTIAL)):
        inertia = SpatialInertia.from_parameters(unit.tolist())
        rotational = np.array(inertia.rotational, np.float64)
        P = np.zeros((4, 4))
        P[:3, :3] = 0.5 * np.trace(rotational) * np.eye(3) - rotational
        P[:3, 3] = P[3, :3] = inertia.first_moment
        P[3, 3] = inertia.mass
        matrices.append(P)
    return np.array(matrices)


BASIS: Final = _basis()


def _definite(P: Array) -> Array:
    """Return a pseudo-inertia that bodies of some thickness have, near to another."""
    if not P[3, 3] > 0.0:
        mass, radius = UNKNOWN
        return np.diag([*[0.2 * mass * radius**2] * 3, mass])
    centre = P[:3, 3] / P[3, 3]
    # About the centre of mass, the second moments along principal axes.
    moments, axes = np.linalg.eigh(P[:3, :3] - P[3, 3] * np.outer(centre, centre))
    largest = max(float(moments[-1]), 1e-6 * P[3, 3])
    moments = np.maximum(moments, FLAT * largest)
    S = axes * moments @ axes.T + P[3, 3] * np.outer(centre, centre)
    return np.block([[S, P[:3, 3:]], [P[3:, :3], P[3:, 3:]]])
