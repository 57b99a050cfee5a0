"""What a controller minimises, and within which bounds, computed by NumPy alone.

Arms of capsules: distances are those of segments, their slopes are from Jacobians of
the nearest points, bounds of rates from sums over the steps of braking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import armillary as arm
from armillary.shapes import Capsule

Array = npt.NDArray[np.float64]
Rod = tuple[str, Any, Any, float]

AWAY = 0.1
"""Speed at which pairs nearer than the margin are pushed apart [m/s]."""

FLAT = 0.05
"""Slope of a distance below which they are pushed apart slower [m]."""


@dataclass(frozen=True)
class CapsuleCell:
    """A cell whose shapes are capsules.

    Attributes:
        cell: The cell.
        rods: Link, both ends and radius of each capsule [m].
    """

    cell: arm.Cell
    rods: Sequence[Rod]

    @classmethod
    def of(cls, cell: arm.Cell) -> CapsuleCell:
        """Return the capsules of a cell; there are no other shapes in it."""
        rods: list[Rod] = []
        for manipulator in cell.manipulators:
            prefix = f"{manipulator.name}/" if len(cell.manipulators) > 1 else ""
            for link in manipulator.links:
                for shape in link.collisions:
                    assert isinstance(shape, Capsule)
                    X = link.primary @ shape.pose
                    half = 0.5 * float(shape.length)
                    a, b = (np.array(X @ (0.0, 0.0, s)) for s in (-half, half))
                    rods.append((prefix + link.name, a, b, float(shape.radius)))
        return cls(cell, rods)

    def pairs(self, check: Any) -> list[tuple[int, int]]:
        """Return the capsules that a check tests, by their places in `rods`."""
        of: dict[str, list[int]] = {}
        for k, (link, *_) in enumerate(self.rods):
            of.setdefault(link.split("/")[-1], []).append(k)
            of.setdefault(link, []).append(k) if "/" in link else None
        return [
            each
            for a, b in check.pairs
            for each in product(of[_known(of, a)], of[_known(of, b)])
        ]

    def gaps(
        self,
        Q: Array,
        pairs: Sequence[tuple[int, int]],
        obstacles: Array | None = None,
    ) -> list[Gaps]:
        """Return how distances change in each row.

        They are those of pairs of links, then of moving links and obstacles.

        Args:
            Q: Joint positions, shape (rows, n).
            pairs: Which capsules.
            obstacles: Both ends, velocity and radius of each, shape (rows, k, 10).
        """
        rods: list[Any] = []
        for link, a, b, _ in self.rods:
            X, J = self.cell.fk(link)(Q), self.cell.jacobian(link)(Q)
            ends = (X[:, :3, :3] @ each + X[:, :3, 3] for each in (a, b))
            rods.append((*ends, J, X[:, :3, 3]))
        others = np.zeros((len(Q), 0, 10)) if obstacles is None else obstacles
        return [
            self._gaps([[part[k] for part in rod] for rod in rods], pairs, others[k])
            for k in range(len(Q))
        ]

    def _gaps(self, at: Any, pairs: Any, obstacles: Array) -> Gaps:
        found: list[tuple[float, Array, float]] = []
        for i, j in pairs:
            (a, b, Ja, oa), (p, r, Jb, ob) = at[i], at[j]
            x, y = nearest_points(a, b, p, r)
            length = float(np.linalg.norm(y - x))
            n = (y - x) / max(length, 1e-300)
            slope = n @ (_point(Jb, y - ob) - _point(Ja, x - oa))
            found.append((length - self.rods[i][3] - self.rods[j][3], slope, 0.0))
        for (a, b, J, o), (*_, radius) in zip(at, self.rods, strict=True):
            for each in obstacles if J.any() else ():
                x, y = nearest_points(a, b, each[:3], each[3:6])
                length = float(np.linalg.norm(x - y))
                n = (x - y) / max(length, 1e-300)
                drift = -float(n @ each[6:9])
                found.append((length - radius - each[9], n @ _point(J, x - o), drift))
        return Gaps(*map(np.array, zip(*found, strict=True)))


class Gaps(NamedTuple):
    """Distances [m], their slopes, and how they change by themselves [m/s]."""

    values: Array
    slopes: Array
    drifts: Array


def _known(of: dict[str, list[int]], name: str) -> str:
    return name if name in of else name.rsplit("/", maxsplit=1)[-1]


def _point(J: Array, lever: Array) -> Array:
    """Return the Jacobian of a point at a lever from the origin of a link."""
    return J[:3] + np.cross(J[3:].T, lever).T


def nearest_points(a: Array, b: Array, p: Array, q: Array) -> tuple[Array, Array]:
    """Return the nearest points of two segments, the best of all that may be."""
    u, v, w = b - a, q - p, a - p
    found = []
    M = np.array([[u @ u, -u @ v], [-u @ v, v @ v]])
    if np.linalg.det(M) > 1e-12 * (u @ u) * (v @ v) > 0.0:
        s, t = np.linalg.solve(M, [-u @ w, v @ w])
        if 0.0 <= s <= 1.0 and 0.0 <= t <= 1.0:
            found.append((a + s * u, p + t * v))
    for x in (a, b):
        t = np.clip(v @ (x - p) / max(v @ v, 1e-300), 0.0, 1.0)
        found.append((x, p + t * v))
    for y in (p, q):
        s = np.clip(u @ (y - a) / max(u @ u, 1e-300), 0.0, 1.0)
        found.append((a + s * u, y))
    return min(found, key=lambda pair: float(np.linalg.norm(pair[0] - pair[1])))


def fastest(room: Array, a: Array, dt: float) -> Array:
    """Return the greatest rates from which braking steps stop within a room."""
    room = np.maximum(room, 0.0)

    def way(v: Array) -> Array:
        m = np.floor(v / (a * dt))
        return dt * ((m + 1.0) * v - 0.5 * a * dt * m * (m + 1.0))

    low, high = np.zeros_like(room), room / dt + a * dt
    for _ in range(80):
        middle = 0.5 * (low + high)
        fits = way(middle) <= room
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return low


def rate_limits(
    q: Array, qd: Array, limits: Any, velocity: Array, a: Array, dt: float
) -> tuple[Array, Array]:
    """Return the least and greatest rates of a step."""
    lower, upper = limits
    least = np.maximum(-velocity, -fastest(q - lower, a, dt))
    most = np.minimum(velocity, fastest(upper - q, a, dt))
    change = a * dt
    return np.clip(least, qd - change, qd + change), np.clip(
        most, qd - change, qd + change
    )


def approach_bounds(
    gaps: Gaps, qd: Array, a: Array, dt: float, margin: float, approach: float
) -> Array:
    """Return how fast distances may change at least, without what they do alone."""
    braking = (np.abs(qd) / a).max()
    pace = min(approach, 0.5 / dt, 1.0 / (0.5 * (braking + dt) + dt))
    room = gaps.values - margin - 0.5 * braking * np.maximum(-gaps.drifts, 0.0)
    square = (gaps.slopes**2).sum(axis=-1)
    away = np.minimum(-pace * room, AWAY) * square / (square + FLAT**2)
    least = np.where(room < 0.0, away, -pace * room)
    return least - gaps.drifts
