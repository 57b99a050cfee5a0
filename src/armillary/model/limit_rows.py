"""Rows A q <= b: the limits that couple joints, for a vector of coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, Self

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.forks import IMPORT_LOCK

if TYPE_CHECKING:  # few cells have such limits
    from armillary.model.linear_program import Middle

__all__ = ["LimitRows"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]

LEAST_ROOM: Final = 1e-9
"""Radius of a ball in a polytope below which it has no room [m or rad]."""

DIRECTIONS: Final = 3
"""Directions for each coordinate in which corners are looked for, beside the axes."""

MOST_PROJECTIONS: Final = 1000
"""Most projections on every row; after that rows are met by a pull to the middle."""

PULLS: Final = 26
"""Most pulls to the middle; the last ones lead there."""

CLOSE: Final = 1e-13
"""Change of a round of projections, in parts of 1 + their size, that ends them."""


class LimitRows(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Rows A q <= b that hold beside the limits of each joint; arrays are read-only.

    Attributes:
        A: Coefficients, shape (m, n).
        b: Greatest values, shape (m,).
        labels: The limit that each row is a side of.
    """

    A: Array
    b: Array
    labels: tuple[str, ...]

    @classmethod
    def of(
        cls,
        A: npt.ArrayLike,
        b: npt.ArrayLike,
        labels: Sequence[str],
        count: int,
    ) -> Self:
        """Return rows of numbers, as the attributes say.

        Args:
            A: Coefficients, shape (m, count).
            b: Greatest values, shape (m,).
            labels: What each row is called.
            count: How many coordinates q has.
        """
        ends = np.array(b, np.float64).reshape(-1)
        rows = np.array(A, np.float64).reshape(len(ends), count)
        for array in (rows, ends):
            array.flags.writeable = False
        return cls(rows, ends, tuple(labels))

    def __len__(self) -> int:
        return len(self.b)

    def __reduce__(self) -> tuple[object, ...]:
        return LimitRows.of, (self.A, self.b, self.labels, self.A.shape[1])

    @cached_property
    def joints(self) -> Truths:
        """Return which coordinates the rows are about, shape (n,)."""
        return np.asarray((self.A != 0.0).any(axis=0))

    @cached_property
    def pairs(self) -> list[tuple[list[float], float]]:
        """Return coefficients and greatest value of each row, for formulas."""
        return list(zip(self.A.tolist(), self.b.tolist(), strict=True))

    def excess(self, q: npt.ArrayLike) -> Array:
        """Return by how much q, shape (..., n), misses the row that it misses most.

        The shape is (...); it is below 0 within all rows, and NaN where q is.
        """
        given = np.asarray(q, np.float64)
        if not len(self):
            return np.full(given.shape[:-1], -np.inf)
        return np.asarray((given @ self.A.T - self.b).max(axis=-1))

    def holds(self, q: npt.ArrayLike, tolerance: float = 0.0) -> Truths:
        """Return where all rows hold, shape (...).

        Args:
            q: Coordinates, shape (..., n).
            tolerance: How far beyond a row counts as within, in its unit.
        """
        return np.asarray(self.excess(q) <= tolerance)

    def of_joints(self, chosen: Sequence[int], rest: npt.ArrayLike) -> LimitRows:
        """Return the rows of some of the coordinates, the others being constant.

        Rows in which none of them counts are left out.

        Args:
            chosen: The coordinates that remain.
            rest: All coordinates, shape (n,).
        """
        columns = list(chosen)
        kept = (self.A[:, columns] != 0.0).any(axis=1)
        others = np.array(rest, np.float64)[: self.A.shape[1]]
        others[columns] = 0.0
        b = self.b - self.A @ others
        labels = [label for label, k in zip(self.labels, kept, strict=True) if k]
        return LimitRows.of(self.A[kept][:, columns], b[kept], labels, len(columns))

    def ends(self, k: int, q: npt.ArrayLike) -> tuple[float, float]:
        """Return the least and the greatest of a coordinate, the others as they are.

        Infinite where no row ends it; the least is above the greatest where the others
        leave it no room.

        Args:
            k: The coordinate.
            q: All coordinates, shape (n,).
        """
        rows = self.of_joints([k], q)
        slopes = rows.A[:, 0]
        at = rows.b / slopes
        least = at[slopes < 0.0].max(initial=-np.inf)
        return float(least), float(at[slopes > 0.0].min(initial=np.inf))

    def others(self, chosen: Sequence[int]) -> tuple[int, ...]:
        """Return the coordinates that share rows with chosen ones, these left out."""
        columns = list(chosen)
        shared = (self.A[:, columns] != 0.0).any(axis=1)
        counts = (self.A[shared] != 0.0).any(axis=0)
        counts[columns] = False
        return tuple(np.flatnonzero(counts).tolist())

    def polytope(
        self, lower: npt.ArrayLike, upper: npt.ArrayLike
    ) -> tuple[Array, Array]:
        """Return all rows A q <= b, finite limits of joints behind these.

        Args:
            lower: Least coordinates, shape (n,).
            upper: Greatest coordinates, shape (n,).
        """
        low, high = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
        eye = np.eye(self.A.shape[1])
        up, down = np.isfinite(high), np.isfinite(low)
        return (
            np.vstack([self.A, eye[up], -eye[down]]),
            np.concatenate([self.b, high[up], -low[down]]),
        )

    def room_within(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> Middle:
        """Return the largest ball within rows and limits of joints.

        Its radius is 0 or less where there is none; joints whose limits are equal do
        not count in it.

        Args:
            lower: Least coordinates, shape (n,).
            upper: Greatest coordinates, shape (n,).
        """
        with IMPORT_LOCK:
            from armillary.model.linear_program import Middle, middle_of

        low, high = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
        moves = low < high
        centre = np.where(moves, 0.0, low)
        rows = self.of_joints(np.flatnonzero(moves).tolist(), centre)
        if len(rows) < len(self):  # some rows have none but joints that cannot move
            still = ~(self.A[:, moves] != 0.0).any(axis=1)
            missed = float((self.A[still] @ centre - self.b[still]).max())
            if missed > LEAST_ROOM:
                return Middle(centre, -missed)
        A, b = rows.polytope(low[moves], high[moves])
        if not len(b):
            return Middle(centre, 1.0)
        found, radius = middle_of(A, b)
        centre[moves] = found
        return Middle(centre, radius if radius > LEAST_ROOM else min(radius, 0.0))

    def reach(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> tuple[Array, Array]:
        """Return the least and the greatest of each coordinate that rows leave it.

        Args:
            lower: Least coordinates, shape (n,).
            upper: Greatest coordinates, shape (n,).
        """
        with IMPORT_LOCK:
            from armillary.model.linear_program import greatest

        low, high = np.array(lower, np.float64), np.array(upper, np.float64)
        centre, _ = self.room_within(low, high)
        A, b = self.polytope(low, high)
        room = np.maximum(b - A @ centre, 0.0)
        for k in np.flatnonzero(self.joints):
            way = np.eye(len(low))[k]
            high[k] = min(high[k], centre[k] + greatest(way, A, room)[0])
            low[k] = max(low[k], centre[k] - greatest(-way, A, room)[0])
        return low, high

    def corners(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> Array:
        """Return corners of the polytope in many directions, shape (k, n).

        Args:
            lower: Least coordinates, shape (n,), finite.
            upper: Greatest coordinates, shape (n,), finite.
        """
        with IMPORT_LOCK:
            from armillary.model.linear_program import greatest

        low, high = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
        n = len(low)
        centre, _ = self.room_within(low, high)
        A, b = self.polytope(low, high)
        room = np.maximum(b - A @ centre, 0.0)
        unit = np.eye(n)
        rng = np.random.default_rng(0)
        others = rng.normal(size=(DIRECTIONS * n, n)) / np.maximum(
            high - low, LEAST_ROOM
        )
        ways = np.vstack([unit, -unit, others, self.A, -self.A])
        return np.stack([centre + greatest(way, A, room)[1] for way in ways])

    def nearest(
        self, q: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike
    ) -> Array:
        """Return the q nearest to given ones within rows and limits, shape (..., n).

        They are projected on one row after the other by the method of Hildreth
        (Dykstra, J. of the American Statistical Association 78, 1983), which comes near
        the nearest point, slowly where rows are nearly parallel. What rounding and
        `MOST_PROJECTIONS` leave of rows is met by a pull to the middle of the polytope,
        so that all rows hold in any case.

        Args:
            q: Coordinates, shape (..., n).
            lower: Least coordinates, shape (n,).
            upper: Greatest coordinates, shape (n,).
        """
        inside = np.clip(q, lower, upper)
        left = ~(self.holds(inside) | np.isnan(inside).any(axis=-1))
        if not left.any():
            return inside
        A, b = self.polytope(lower, upper)
        given = np.array(np.broadcast_to(np.asarray(q, np.float64), inside.shape))
        x = given[left]
        squares = (A * A).sum(axis=1)
        shares = np.zeros((len(x), len(b)))
        for _ in range(MOST_PROJECTIONS):
            before = shares.copy()
            for k, (a, end) in enumerate(zip(A, b, strict=True)):
                # Undo the last projection on this row, then project anew.
                share = np.maximum(shares[:, k] + (x @ a - end) / squares[k], 0.0)
                x = x - (share - shares[:, k])[:, None] * a
                shares[:, k] = share
            # Points may stand still while shares change: these tell the end.
            change = np.abs(shares - before).max(initial=0.0)
            if change <= CLOSE * (1.0 + np.abs(shares).max(initial=0.0)):
                break
        inside[left] = self._pulled(np.clip(x, lower, upper), lower, upper)
        return inside

    def _pulled(self, x: Array, lower: npt.ArrayLike, upper: npt.ArrayLike) -> Array:
        """Return x moved to the middle until rows hold; they do at the middle."""
        centre, _ = self.room_within(lower, upper)
        for k in range(PULLS):  # rounding may take more than one
            values, middle = x @ self.A.T, self.A @ centre
            over = np.maximum(values - self.b, 0.0)
            way = np.maximum(values - middle, np.finfo(np.float64).tiny)
            part = np.max(over / np.maximum(way, over), axis=1)
            if not (part > 0.0).any():
                break
            least = np.finfo(np.float64).eps * 4.0**k * (part > 0.0)
            part = np.minimum(part * (1.0 + 1e-9) + least, 1.0)
            x = np.clip(x + part[:, None] * (centre - x), lower, upper)
        return x
