"""Broad phase of one state: the pairs of links whose spheres are near each other."""

from __future__ import annotations

from functools import cached_property
from typing import Final, Self, final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.collision.check_tables import CheckTables

__all__ = ["BroadPhase"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

ROUNDING: Final = 1e-5
"""By which part of squares of lengths spheres are taken to be larger than they are.

A sum of six products in float32, of at most twice these squares, is wrong by less.
"""

FARTHEST: Final = 1e150
"""No shapes are farther apart than this, whose square is a number [m]."""

BLOCK: Final = 40_000
"""Pairs of links that are looked at together: so few that BLAS takes one thread."""

MOST_WHOLE: Final = 2048
"""Most links of which it is known by a byte for each pair whether that is tested."""

SIGNS: Final = np.array([1.0, 1.0, 1.0, -1.0])
OTHERS: Final = [0, 1, 2, 3, 5, 4]
FACTORS: Final = np.array([[-2.0]] * 4 + [[1.0]] * 2, np.float32)
"""What is summed up for s, and made of p, r, s, 1 for the other link of a pair."""


@final
class BroadPhase(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The spheres around links, and which pairs of links are tested.

    Attributes:
        radii: Of the spheres [m], shape (l,).
        codes: i l + j for both links of each pair, i < j, sorted, shape (k,).
        places: Where the pairs of these codes are among all, shape (k,).
        tested: A bit for each i and j, row by row, shape (l, l / 8).
    """

    radii: Array
    codes: Indices
    places: Indices
    tested: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, tables: CheckTables) -> Self:
        """Return the broad phase of the pairs of a check."""
        count = len(tables.first) - 1
        tested = np.zeros((count, -(-count // 8)), np.uint8)
        i, j = np.divmod(tables.codes, max(1, count))
        np.bitwise_or.at(tested, (i, j // 8), (128 >> j % 8).astype(np.uint8))
        order = np.argsort(tables.codes, kind="stable")
        return cls(tables.radii[:count], tables.codes[order], order, tested)

    def near(self, P: Array, within: float) -> Indices:
        """Return the pairs whose spheres are near, or NaN.

        Args:
            P: Centres of the spheres around links [m], shape (l, 3).
            within: How near [m]; below 0 it counts as 0, since spheres say nothing of
                the depth of what is in them.

        Returns:
            Positions of the pairs, sorted, shape (p,).
        """
        # With s = |p|^2 - r^2 of each sphere, two are near where
        # |p - q|^2 - (r_p + r_q)^2 = s_p + s_q - 2 (p . q + r_p r_q) is not above 0:
        # one product of matrices for a block of links and those from it on. In float32
        # it loses digits, of coordinates from the middle; `s` allows for that.
        count = len(P)
        numbers = np.empty((6, count))  # p, r, s, 1
        larger = 0.5 * min(max(within, 0.0), FARTHEST)
        widest = self._widest + larger
        found: list[Indices] = []
        step = max(1, BLOCK // max(1, count))
        with np.errstate(invalid="ignore", over="ignore"):  # half spaces, NaN
            total, known = P.sum(axis=0), P
            if not np.isfinite(total).all():
                known = P[np.isfinite(P).all(axis=1)]
                total = known.sum(axis=0)
            middle = total / max(1, len(known))
            np.subtract(P.T, middle[:, np.newaxis], out=numbers[:3])
            apart = numbers[:3] if known is P else known - middle
            most = max(apart.max(initial=0.0), -apart.min(initial=0.0))
            numbers[3], numbers[5] = self.radii + larger, 1.0
            lost = ROUNDING * (3.0 * most * most + widest * widest)
            numbers[4] = SIGNS @ np.square(numbers[:4]) - lost
            rounded = numbers.astype(np.float32)
            rows, columns = rounded.T, rounded[OTHERS] * FACTORS  # -2 p, -2 r, 1, s
            for start in range(0, count, step):
                is_apart = rows[start : start + step] @ columns[:, start:] > 0.0
                # NaN is near: it is not apart.
                is_near = self._tested(start, start + step) > is_apart
                at = np.flatnonzero(is_near)
                if len(at):  # from i - start and j - start to i count + j
                    at += (at // (count - start)) * start + start * (count + 1)
                    found.append(at)
        if not found:
            return np.empty(0, np.int64)
        return np.sort(self.places[np.searchsorted(self.codes, np.concatenate(found))])

    def _tested(self, start: int, end: int) -> npt.NDArray[np.bool_]:
        """Return which pairs of some links and those from the first on are tested."""
        if self.whole is not None:
            return self.whole[start:end, start:]
        return self._unpacked(start, end)[:, start:]

    @cached_property
    def _widest(self) -> float:
        """Return the largest radius that is not infinite [m]."""
        return float(self.radii[np.isfinite(self.radii)].max(initial=0.0))

    @cached_property
    def whole(self) -> npt.NDArray[np.bool_] | None:
        """Return which pairs are tested, shape (l, l), where that takes little room."""
        count = len(self.radii)
        return self._unpacked(0, count) if count <= MOST_WHOLE else None

    def _unpacked(self, start: int, end: int) -> npt.NDArray[np.bool_]:
        bits = np.unpackbits(self.tested[start:end], axis=1, count=len(self.radii))
        return bits.view(np.bool_)
