"""Pairs of links of a cell in a state: their shapes, where these are, how far apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.collision.check_tables import BlocksOnBases, CheckTables
from armillary.collision.distance.pair_kernel import Asked, ValueAsked
from armillary.collision.link_levers import link_levers
from armillary.collision.shape_pairs import LinkShape, Placed
from armillary.collision.tested_shapes import tables_of_shapes
from armillary.forks import IMPORT_LOCK
from armillary.kernel.pipeline_kernel import Callees
from armillary.kinematics.moving_links import (
    MovingLinks,
    moving_links,
    poses_of_links,
)
from armillary.kinematics.speed_bounds import SpeedBounds, speeds_within
from armillary.kinematics.state import State
from armillary.model.distinct_numbers import distinct_numbers
from armillary.model.fields import kept, kept_few
from armillary.model.link_pairs import Pairs
from armillary.model.shapes import Sphere
from armillary.model.shapes.mesh import MeshSource
from armillary.model.workcell import Workcell

if TYPE_CHECKING:
    from armillary.collision.broad_phase import BroadPhase
    from armillary.collision.distance.pair import Distance
    from armillary.collision.exact import ExactMeshes

__all__ = ["Called", "PlacedPairs", "rounded_up"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

BLOCK: Final = 1 << 18
"""Pairs of shapes whose spheres are compared at once."""


AT_ORIGIN: Final = np.concatenate([np.eye(4), np.zeros((4, 4)), np.eye(4)[:, 3:]], 1)
"""What `Placed.whole` has of a link at the origin, whose centre is there, too."""


def rounded_up(bound: float) -> float:
    """Return a number that is not below a finite one, by one of four steps to 2^k."""
    mantissa, exponent = math.frexp(bound)
    return math.ldexp(math.ceil(8.0 * mantissa), exponent - 3)


class Called(NamedTuple):
    """The code of the distances of pairs of shapes.

    Attributes:
        callees: What is called.
        codes: Of each pair of shapes, shape (k, 2); 0 for those that have none.
    """

    callees: Sequence[Callees]
    codes: Indices


@final
class PlacedPairs(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Pairs of links with their shapes, and where these are in a state.

    Poses of f moving links, `X`, are those of `poses`.

    Attributes:
        tables: The shapes, and their pairs.
        placed: Where the shapes are in the links that move.
        moving: The moving links of the cell.
        state: The state whose attachments and moved bases are used.
        triangles: What treats meshes by their triangles; by their hulls if None.
    """

    tables: CheckTables
    placed: Placed
    moving: MovingLinks
    state: State
    triangles: ExactMeshes | None = None

    @classmethod
    def of(
        cls,
        cell: Workcell,
        state: State,
        tables: CheckTables,
        meshes: MeshSource | None,
        *,
        exact: bool,
    ) -> Self:
        """Return where the shapes of tables of a cell are in a state.

        Args:
            cell: The cell that has the links.
            state: The state, which attaches bases as that of the tables does.
            tables: The tables; see `tables_of`.
            meshes: What reads meshes.
            exact: Whether meshes are treated by their triangles, else by their hulls.

        Raises:
            ModelError: A mesh cannot be read; or coal is not installed and `exact`
                needs it.
        """
        # States differ from the last one in a few bodies; tables keep that.
        before: dict[str, Self] = kept(tables, "last placed", dict[str, Self])
        last = before.get("last")
        if last is not None:
            now = last.moved(state)
        else:
            triangles: ExactMeshes | None = None
            if exact:
                with IMPORT_LOCK:
                    from armillary.collision.exact import ExactMeshes

                triangles = ExactMeshes.of(cell, tables, meshes)
            moving = moving_links(cell)
            placed = tables.placed(moving, state.tree)
            now = cls(tables, placed, moving, state, triangles)
        before["last"] = now
        return now

    def extended(self, tables: CheckTables) -> Self:
        """Return these pairs with those of obstacles in the world behind them.

        tables: Tables that extend these.
        """
        own, n = len(self.tables.first) - 1, len(self.tables.pairs.shapes)
        count = len(tables.first) - 1
        # Obstacles are where they are in the world: links, then shapes; see `Placed`.
        whole = np.empty((len(tables.centres), 4, 9))
        whole[:own], whole[count : count + n] = (
            self.placed.whole[:own],
            self.placed.whole[own:],
        )
        whole[own:count] = whole[count + n :] = AT_ORIGIN
        whole[own:count, :3, 8] = tables.centres[own:count]
        whole[count + n :, :3, 8] = tables.pairs.centres[n:]
        whole[count + n :, :, 4:8] = tables.pairs.matrices[n:]
        placed = Placed(tables.shape_rows, whole)
        made = type(self)(tables, placed, self.moving, self.state)
        known = vars(made)
        known["moving_centres"] = self.moving_centres
        reaches = tables.reaches(whole[own:count, :3, 8], slice(own, count))
        known["reaches"] = np.concatenate([self.reaches, reaches])
        known["before"] = self
        return made

    @cached_property
    def before(self) -> Self | None:
        """Return the pairs that these begin with, if those of obstacles follow."""
        return None

    def moved(self, state: State) -> Self:
        """Return the same pairs in a state that attaches the same.

        What does not depend on the bodies that moved is taken over.
        """
        tables, moving, tree = self.tables, self.moving, state.tree
        bases, before = moving.base_frames(tree), self._base_frames
        # The truths of the 16 numbers of a base are two words.
        words = (bases.ravel() != before.ravel()).view(np.uint64)
        differ: list[int] = (words[::2] | words[1::2]).nonzero()[0].tolist()
        moved = tables.blocks_on(differ)
        placed = tables.replaced(self.placed, bases, moved)
        made = type(self)(tables, placed, moving, state, self.triangles)
        known = vars(made)
        known["_base_frames"] = bases
        known["moved_from"] = self.placed, moved
        known["before"] = None
        known["pose_key"] = pose_key = moving.pose_key(state)
        if moved.stand:
            # They stand in the world: what moves is as it was.
            known["moving_centres"] = self.moving_centres
        if state.q is self.state.q and pose_key == self.pose_key:
            known["_poses_in_state"] = self._poses_in_state
            known["reaches"] = reaches = self.reaches.copy()
            links = moved.which[: moved.links]
            centres = placed.blocks(moved.which)[: moved.links, :3, 8]
            rows = None if moved.stand else moved.rows[: moved.links]
            reaches[links] = made._reaches_of(links, rows, centres)
        return made

    @cached_property
    def _base_frames(self) -> Array:
        """Return where movable bases are, see `MovingLinks.base_frames`."""
        return self.moving.base_frames(self.state.tree)

    @cached_property
    def moved_from(self) -> tuple[Placed, BlocksOnBases] | None:
        """Return where shapes were in the state before, and what moved since."""
        return None

    @classmethod
    def of_shapes(
        cls,
        cell: Workcell,
        state: State,
        pairs: Pairs,
        shapes: dict[int, list[LinkShape]],
    ) -> Self:
        """Return pairs of links with these shapes; no warning, and nothing is cached.

        shapes: The shapes of their links, as `shapes_of_links` returns them.

        Raises:
            ModelError: Both shapes of a pair are half spaces.
        """
        moving = moving_links(cell)
        tables = tables_of_shapes(pairs, shapes, moving, state.tree)
        placed = tables.placed(moving, state.tree)
        return cls(tables, placed, moving, state)

    def poses(self, Q: Array) -> Array:
        """Return the poses of moving links [m]: (n, joints) -> (n, f, 3, 4)."""
        return self._poses(Q)

    def poses_at(self, q: Array) -> Array:
        """Return the same for one row: (joints,) -> (f, 3, 4)."""
        # A compiled kernel takes one row without detours.
        if self.moving.is_compiled and self.moving.count > 1:
            return self._poses(q)
        return self.poses(q[np.newaxis])[0]

    @cached_property
    def _poses(self) -> Callable[[Array], Array]:
        return poses_of_links(self.moving, self.state)

    @cached_property
    def extent(self) -> float:
        """Return about how far from the world's origin shapes are [m].

        It is rounded up to one of four steps to the next power of 2, so that it stays
        where bodies move a little.
        """
        return rounded_up(float(np.maximum.reduce(self.reaches, initial=0.0)))

    @cached_property
    def reaches(self) -> Array:
        """Return how far from the world's origin links are, shape (l,) [m]."""
        return self.reaches_at(self.state.q, self.placed.spheres)

    def reaches_at(self, q: Array, centres: Array) -> Array:
        """Return the same of other positions of joints, and of bodies in the world.

        Args:
            q: Joint positions, shape (joints,).
            centres: Centres of all spheres in their moving links, shape (l + n, 3).
        """
        rows = self.tables.fixed.rows
        links, X = np.arange(len(rows)), self._poses_where(q)
        return self._reaches_of(links, rows, centres[: len(rows)], X)

    def _reaches_of(
        self,
        links: Indices,
        rows: Indices | None,
        centres: Array,
        poses: Array | None = None,
    ) -> Array:
        """Return the same of some links, shape (k,).

        Args:
            links: Their numbers, shape (k,).
            rows: The rows of the moving links that they move with, shape (k,); None if
                that is the world.
            centres: Centres of the spheres around them there, shape (k, 3).
            poses: Those of moving links, if they are not those of the state.
        """
        if rows is not None:
            X = (self._poses_in_state if poses is None else poses)[0][rows]
            centres = np.einsum("kij,kj->ki", X[:, :, :3], centres) + X[:, :, 3]
        return self.tables.reaches(centres, links)

    @cached_property
    def moving_centres(self) -> bytes:
        """Return where the shapes that are not fixed to the world are in their links.

        They are written as bytes, to be compared.
        """
        return self.placed.centres[self.placed.rows > 0].tobytes()

    @property
    def decides(self) -> Hashable:
        """Return what decides how exact a check is, see `precision_of`."""
        # Shapes that are fixed in the world do not count, but for the extent.
        return self.pose_key, self.extent, self.moving_centres

    @cached_property
    def pose_key(self) -> Hashable:
        """Return what decides where moving links are, see `MovingLinks.pose_key`."""
        return self.moving.pose_key(self.state)

    @cached_property
    def _poses_in_state(self) -> Array:
        """Return the poses of moving links in the state, shape (1, f, 3, 4)."""
        return self._poses_where(self.state.q)

    def _poses_where(self, q: Array) -> Array:
        """Return the same at other positions of joints."""
        key = self.pose_key, q.tobytes()
        return kept_few(
            self.moving, "poses in states", key, lambda: self.poses_at(q)[np.newaxis]
        )

    def near(self, X: Array, within: float) -> Indices:
        """Return the pairs of links whose spheres are near, or NaN.

        Args:
            X: Poses of moving links, shape (f, 3, 4).
            within: How near [m].

        Returns:
            Positions in `tables.tested`, sorted, shape (p,).
        """
        return self._broad_phase.near(X, *self._around, within)

    @cached_property
    def _broad_phase(self) -> BroadPhase:
        with IMPORT_LOCK:
            from armillary.collision.broad_phase import BroadPhase

        return BroadPhase.of(self.tables)

    @cached_property
    def _around(self) -> tuple[Indices, Array]:
        """Return the moving links of spheres around links, and their centres there."""
        rows, centres = self.tables.spheres(self.placed)
        count = len(self.tables.first) - 1
        return rows[:count], centres[:count]

    def speeds(
        self, lower: Array, upper: Array, *, accelerations: bool = False
    ) -> SpeedBounds:
        """Return how fast links may move while joints are within limits.

        Args:
            lower: Least joint positions for which it holds, shape (joints,).
            upper: Greatest.
            accelerations: Whether bounds of accelerations are wanted, too.
        """
        return speeds_within(
            self.moving, self.state, lower, upper, accelerations=accelerations
        )

    def levers(
        self, lower: Array, upper: Array, speeds: SpeedBounds
    ) -> tuple[Array, Array]:
        """Return what `link_levers` does, for the `speeds` within limits."""
        # What stands still has none, wherever it is, and of whatever size.
        key = lower.tobytes(), upper.tobytes(), self.pose_key, self.moving_centres

        def made() -> tuple[Array, Array]:
            if self.before is None:
                return link_levers(self.tables, speeds, self.placed)
            # Links approach obstacles as they move in the world, where these stand.
            alone, together = self.before.levers(lower, upper, speeds)
            obstacles = len(self.tables.fixed.rows) - len(alone)
            links = self.tables.links[len(together) :, 0]
            still = np.zeros((obstacles, alone.shape[1]))
            return (
                np.concatenate([alone, still]),
                np.concatenate([together, alone[links]]),
            )

        return kept_few(self.tables.layout or self.tables, "levers", key, made)

    def have_bounds(self, lower: Array, upper: Array, speeds: SpeedBounds) -> bool:
        """Return whether `levers` of pairs are finite."""
        key = lower.tobytes(), upper.tobytes(), self.pose_key, self.moving_centres

        def made() -> bool:
            _, together = self.levers(lower, upper, speeds)
            return bool(np.isfinite(together).all())

        return kept_few(self.tables.layout or self.tables, "have bounds", key, made)

    @property
    def lanes(self) -> int | None:
        """Return how many rows code that measures distances computes at once."""
        # Searches for distances end after different numbers of steps: rows that are
        # computed at once would all wait for the longest.
        return None if self.tables.are_formulas else 1

    def called(
        self, asked: Asked, dtype: np.dtype[Any], lanes: int, *, every: bool = False
    ) -> Called:
        """Return the code of the distances of pairs of shapes.

        It is the same wherever bodies are, so that tables keep it.

        Args:
            asked: What it returns, as for `pair_kernel`.
            dtype: The type that callers compute in.
            lanes: How many rows they compute at once.
            every: Whether all pairs are asked for, else those of `of_shapes`; others of
                the same kinds have code, too.
        """

        def made() -> Called:
            pairs = self.tables.pairs
            callees: list[Callees] = []
            codes = np.zeros((len(pairs.pairs), 2), np.int64)
            used = range(len(pairs.kinds))
            if not every:
                used = distinct_numbers(pairs.kind_of[self.tables.of_shapes]).tolist()
            for kind in map(pairs.kinds.__getitem__, used):
                code = kind.callees(asked, dtype, lanes)
                codes[kind.pairs] = code.codes
                callees.append(code)
            return Called(callees, codes)

        def more() -> Called:
            # The code of the pairs of links, and that of kinds of pairs with obstacles.
            assert self.before is not None
            pairs = self.tables.pairs
            known = self.before.called(asked, dtype, lanes, every=every)
            kinds = len(self.before.tables.pairs.kinds)
            callees = [*known.callees]
            codes = np.zeros((len(pairs.pairs), 2), np.int64)
            codes[: len(known.codes)] = known.codes
            for kind in pairs.kinds[kinds:]:
                if every or not all(isinstance(form, Sphere) for form in kind.forms):
                    code = kind.callees(asked, dtype, lanes)
                    codes[kind.pairs] = code.codes
                    callees.append(code)
            return Called(callees, codes)

        key = "called", asked, dtype.char, lanes, every
        owner = self.tables.layout or self.tables
        return kept(owner, key, made if self.before is None else more)

    # Distances, computed without a pipeline

    def bounds(self, X: Array, rows: Indices, which: Indices) -> Array:
        """Return what distances are not below, by spheres; see `values`."""
        return self.tables.pairs.bounds(self.placed, X, rows, which)

    def values(self, X: Array, rows: Indices, which: Indices) -> Array:
        """Return the distances of pairs of shapes.

        Args:
            X: Poses of moving links, shape (n, f, 3, 4).
            rows: At which of them, shape (m,).
            which: Of which pairs, shape (m,).

        Returns:
            Distances [m], shape (m,); NaN where a pose has NaN.
        """
        if self.triangles:
            return self.triangles.values(self.placed, X, rows, which)
        values = self.tables.pairs.distances(self.placed, X, rows, which, "value")
        # A distance may be known though a pose has NaN, as that of a sphere that turns.
        return np.where(np.isnan(self.bounds(X, rows, which)), np.nan, values)

    def all_values(self, X: Array) -> Array:
        """Return the distances of all pairs of shapes: (n, f, 3, 4) -> (n, k)."""
        return self._values_of(X, np.arange(len(self.tables.pairs.pairs)))

    def distances(self, X: Array, links: Indices) -> Array:
        """Return the distances of some pairs of links.

        Args:
            X: Poses of moving links, shape (n, f, 3, 4).
            links: Which pairs, as positions in `tables.tested`, shape (p,).

        Returns:
            Distances [m], shape (n, p); NaN where a pose has NaN.
        """
        if not len(links):
            return np.empty((len(X), 0))
        shapes, starts = self.tables.shapes_of(links)
        values = self._values_of(X, shapes)
        return np.asarray(np.minimum.reduceat(values, starts, axis=1))

    def _values_of(self, X: Array, shapes: Indices) -> Array:
        # Rows of the kernels are all pairs of the first pose, then of the next.
        rows = np.repeat(np.arange(len(X)), len(shapes))
        values = self.values(X, rows, np.tile(shapes, len(X)))
        return values.reshape(len(X), len(shapes))

    def least(self, X: Array, enough: float | None = None) -> Array:
        """Return the least distance of all pairs, or only on which side of `enough`.

        That is by triangles, which there must be.
        """
        assert self.triangles is not None
        return self.triangles.least(self.placed, X, enough)

    @cached_property
    def constant(self) -> float:
        """Return the least distance of the pairs of shapes that move together [m].

        The pair with the least bound comes first; others follow if they may be nearer.
        The depth of some pairs is an upper bound, so all that may overlap are wanted.
        """
        if self.before is not None:  # obstacles move together with nothing
            return self.before.constant
        together = self.tables.together
        if not len(together):
            return np.inf
        X = self._poses_in_state
        rows = np.zeros_like(together)
        bounds = self.bounds(X, rows, together)
        order = np.argsort(bounds)
        least = np.inf
        for which in (order[:1], order[1:]):
            near = which[bounds[which] < max(least, 0.0)] if len(which) else which
            values = self.values(X, rows[near], together[near])
            least = min(least, values.min(initial=np.inf))
        return float(least)

    def are_apart(self, margin: float) -> bool:
        """Return whether shapes that move together are farther apart than a margin [m].

        Their distances are not computed where spheres around them tell it.
        """
        if self.before is not None:
            return self.before.are_apart(margin)
        if not len(self.tables.together):
            return True

        def made() -> bool:
            gaps = self.tables.gaps_together(self.placed)
            return bool(gaps.min() > max(margin, 0.0)) or self.constant > margin

        return kept(self, ("apart", margin), made)

    def link_poses(self, X: Array, rows: Any, shape: int) -> Array:
        """Return the poses of the link that has a shape, at rows: (n, f, 3, 4)."""
        return self.placed.link_poses(X[rows, self.placed.rows[shape]], shape)

    def nearest(self, X: Array, rows: Any, pair: int) -> Distance:
        """Return the distance of a pair of shapes with points and normal.

        Args:
            X: Poses of moving links, shape (n, f, 3, 4).
            rows: At which of them; the result has the shape of this.
            pair: The pair.
        """
        # Shapes are posed in primary frames, and these in the links.
        table = self.tables.pairs
        sides: list[int] = table.pairs[pair].tolist()
        a, b = (table.shapes[k] for k in sides)
        X_A, X_B = (
            self.link_poses(X, rows, k) @ table.shapes[k].primary.matrix()
            for k in sides
        )
        if self.triangles and self.triangles.has_mesh[pair]:
            return self.triangles.nearest(pair, X_A, X_B)
        with IMPORT_LOCK:
            from armillary.collision.distance.pair import distance

        return distance(a.shape, X_A, b.shape, X_B)

    def touching(self, X: Array, within: float, which: Indices | None = None) -> Truths:
        """Return which pairs of links are at most a distance apart, meshes as hulls.

        Args:
            X: Poses of moving links, shape (n, f, 3, 4).
            within: The distance [m].
            which: Which pairs, as positions in `tables.tested`, shape (k,); by
                default all.

        Returns:
            Truths, shape (n, k); False where a pose is NaN.
        """
        links = np.arange(len(self.tables.tested)) if which is None else which
        if not len(links):
            return np.zeros((len(X), 0), np.bool_)
        shapes, starts = self.tables.shapes_of(links)
        asked: ValueAsked = "touch" if within == 0.0 else "free"
        are_touching = np.zeros((len(X), len(shapes)), np.bool_)
        step = max(1, BLOCK // len(shapes))
        # All rows with all pairs, in blocks. Spheres are compared first; shapes only
        # where these are near. Links touch if one of their pairs of shapes does.
        for start in range(0, len(X), step):
            some = X[start : start + step]
            rows = np.repeat(np.arange(len(some)), len(shapes))
            tiled = np.tile(shapes, len(some))
            near = np.flatnonzero(self.bounds(some, rows, tiled) <= within)
            values = self.tables.pairs.distances(
                self.placed, some, rows[near], tiled[near], asked
            )
            part = are_touching[start : start + step].reshape(-1)
            part[near] = values <= within
        return np.asarray(np.logical_or.reduceat(are_touching, starts, axis=1))
