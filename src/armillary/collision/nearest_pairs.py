"""Distances, contacts and slopes of every pair of links, by native code.

The code depends on how many moving links, joints and spheres there are, and on for how
many pairs of links there is room; more of them are taken in parts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check_kernel import (
    codes_of,
    moved_records,
    shape_records,
    sphere_records,
)
from armillary.collision.check_stages import compiled
from armillary.collision.columns import (
    CONTACT,
    RECORDS_OF_SPHERES,
    CheckColumns,
    records,
)
from armillary.collision.link_twists import link_twists
from armillary.collision.nearest_stages import Measure, nearest_pipeline, result_of
from armillary.collision.numbered_pairs import NumberedPairs
from armillary.collision.pair_records import (
    Changes,
    PairRecords,
    Tables,
    placed_records,
)
from armillary.collision.placed_pairs import Called, PlacedPairs
from armillary.kernel.pipeline_kernel import CompiledPipeline
from armillary.kernel.pipeline_records import KernelByRecord
from armillary.model.fields import kept
from armillary.trace import Port

__all__ = ["NearestPairs"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

FEWEST: Final = 16
"""Room for so many pairs of links at least; it grows by factors of 4."""

MOST_CONTACTS: Final = 256
"""Most pairs whose contacts are found together; few links are near each other."""

MANY: Final = 1 << 15
"""From so many pairs on rows of a batch are measured one after the other, too, with
several pairs at once: their poses and results are more than the cache holds."""

FIRST_PAIRS: Final = 512
"""Where bodies or obstacles changed, so many distances of the new state are measured
one after the other, since what measures several at once has to be made for it."""

NEARNESS: Final = 1e-9
"""By which part of distances, and of 1 m, bounds by spheres may be wrong."""

MOST_NUMBERS: Final = 1 << 15
"""About how many numbers of results are computed together for a row."""

MOST_OF_ROW: Final = 1 << 16
"""How many numbers of a row, poses and twists with them, a kernel takes."""

DOUBLE: Final = np.dtype(np.float64)


@final
@dataclass(frozen=True, eq=False)
class NearestPairs:
    """What measures the pairs of links of a check, meshes as hulls.

    Attributes:
        pairs: The pairs.
    """

    pairs: PlacedPairs

    def distances(self, X: Array) -> Array:
        """Return the distance of each pair of links.

        X: Poses of moving links, shape (..., f, 3, 4).

        Returns:
            Distances [m], shape (..., k); NaN where the pose of a link is.
        """
        is_batch = X.ndim > 3
        if is_batch and len(self.pairs.tables.tested) < MANY:
            return self._measured("distance", X)
        # Few calls do not pay for tables of their own, where only some records change.
        pairs = self.pairs
        is_changed = pairs.moved_from is not None or pairs.before is not None
        is_new = (
            is_changed and next(self._calls) * len(pairs.tables.tested) < FIRST_PAIRS
        )
        if is_new and not is_batch:
            return self._measured("distance", X)
        numbered = self._numbered
        if numbered is None:
            return self._measured("distance", X)
        if is_batch:
            return np.array([numbered.distances(row) for row in X])
        return numbered.distances(X)

    @cached_property
    def _calls(self) -> Iterator[int]:
        """Return what counts the calls for distances in one state."""
        return count(1)

    @cached_property
    def _numbered(self) -> NumberedPairs | None:
        """Return what measures several pairs at once, None if that is not better."""
        return NumberedPairs.of(self.pairs)

    def contacts(self, X: Array, within: float) -> tuple[Indices, Array]:
        """Return the pairs of links that are near, and their contacts.

        Args:
            X: Poses of moving links, shape (f, 3, 4).
            within: Up to which distance [m].

        Returns:
            Positions in `tables.tested`, sorted, shape (p,); and the numbers of
            `CONTACT`, shape (p, 11).
        """
        # What is nearer than `beyond` is found; it has to be no less than `within`,
        # whose spheres are rounded.
        least = max(within, 0.0)
        beyond = np.array(least + NEARNESS * (1.0 + least))
        whole = self._all_contacts
        if whole is not None:
            links, numbers = None, whole(X, beyond)
            values = numbers[: len(self.pairs.tables.tested), 0]
        else:
            links = self.pairs.near(X, within)
            if not len(links):
                return links, np.zeros((0, CONTACT))
            numbers = self._measured("contact", X, beyond, which=links)
            values = numbers[:, 0]
        (near,) = (~(values > within)).nonzero()  # NaN is near
        return near if links is None else links[near], numbers.take(near, axis=0)

    @cached_property
    def _all_contacts(self) -> Callable[..., Any] | None:
        """Return what finds the contacts of all pairs at once; None for too many."""
        kernels = self._kernels("contact")
        is_whole = len(self.pairs.tables.tested) <= kernels.room
        return kernels.whole if is_whole else None

    def slopes(self, Q: Array, X: Array) -> Array:
        """Return the slopes of the distances of pairs of links by joint positions.

        Args:
            Q: Joint positions, shape (..., joints).
            X: Poses of moving links there, shape (..., f, 3, 4).

        Returns:
            Slopes [m per unit], shape (..., k, joints).
        """
        # Nothing turns where all links are fixed to the world.
        if self._twists is None:
            values = self.distances(X)
            slopes = np.zeros((*values.shape, Q.shape[-1]))
            slopes[np.isnan(values)] = np.nan
            return slopes
        twists = self._twists(Q)
        some, joints = self._slope_joints, self.pairs.moving.joints
        if some == joints:
            return self._measured("slope", X, twists)
        # The last ones are some that were computed before, too, so that one code does.
        starts = [min(k, joints - some) for k in range(0, joints, some)]
        slopes = np.empty((*Q.shape[:-1], len(self.pairs.tables.tested), joints))
        for start in starts:
            part = slice(start, start + some)
            slopes[..., part] = self._measured("slope", X, twists[..., part])
        return slopes

    def width(self, asked: Measure) -> int:
        """Return about how many numbers a row of a question takes."""
        moving = self.pairs.moving
        numbers = 12 * moving.count
        if asked == "slope":
            numbers += 6 * moving.joints * len(self._turning)
        return numbers + self._room(asked) * self._size(asked)

    def _measured(
        self, asked: Measure, *inputs: Array, which: Indices | None = None
    ) -> Array:
        """Return the results of pairs, of all by default, shape (..., k, *result)."""
        kernels, number = self._kernels(asked), len(self.pairs.tables.tested)
        behind = () if asked == "distance" else (slice(None),)
        if which is None and number <= kernels.room:
            return kernels.whole(*inputs)[(..., slice(number), *behind)]
        places = np.arange(number) if which is None else which
        results: list[Array] = []
        for start in range(0, len(places), kernels.room):
            some = places[start : start + kernels.room]
            is_one = inputs[0].ndim == 3  # poses of one row
            ask = partial(kernels.ask, some) if is_one else kernels.of(some)
            result = ask(*inputs)
            results.append(result[(..., slice(len(some)), *behind)])
        first, *more = results
        return np.concatenate(results, axis=-1 - len(behind)) if more else first

    def _size(self, asked: Measure) -> int:
        """Return how many numbers the result of a pair has."""
        if asked == "slope":
            return self._slope_joints
        return CONTACT if asked == "contact" else 1

    @cached_property
    def _slope_joints(self) -> int:
        """Return for how many joints slopes are computed together: for all, if few.

        Nearest points are found anew for each part of the joints.
        """
        moving = self.pairs.moving
        numbers = MOST_OF_ROW - MOST_NUMBERS - 12 * moving.count
        most = max(1, numbers // max(1, 6 * len(self._turning)))
        most = min(most, MOST_NUMBERS // FEWEST)
        parts = max(1, -(-moving.joints // most))
        return -(-moving.joints // parts)

    def _room(self, asked: Measure) -> int:
        """Return for how many pairs of links code is made."""
        # Powers of 4 times the least, so that few sizes are ever compiled.
        most = (
            MOST_CONTACTS
            if asked == "contact"
            else MOST_NUMBERS // max(1, self._size(asked))
        )
        room = FEWEST
        while room < min(len(self.pairs.tables.tested), most // 4 + 1):
            room *= 4
        return room

    def _kernels(self, asked: Measure) -> KernelByRecord:
        """Return the kernels of a question, with the records of all pairs."""

        def made() -> KernelByRecord:
            code, columns = self._code(asked)
            question = _NearestQuestion(code, columns, asked, self)
            pairs = self.pairs
            # Where bodies moved alone, most records are those of the last state.
            if pairs.before is None:
                known = placed_records(question, pairs).records
            else:
                known = PairRecords.of(question, pairs).records
            place, _ = result_of(columns, asked)
            return known.by_record(columns.link_pairs.name, place.name)

        return kept(self, asked, made)

    def tables(self, columns: CheckColumns, asked: Measure, called: Called) -> Tables:
        """Return all records of a question.

        Args:
            columns: Its columns.
            asked: The question.
            called: The code of pairs of shapes.
        """
        return {
            **sphere_records(columns, self.pairs),
            **shape_records(self.pairs.tables.room, self.pairs),
            columns.link_pairs.name: records(self._links(columns, asked)),
            **self._shapes(columns, called),
        }

    def _code(self, asked: Measure) -> tuple[CompiledPipeline, CheckColumns]:
        """Return the code of a question and its columns, which moving links cache."""
        moving, room, lanes = (
            self.pairs.moving,
            self.pairs.tables.room,
            self.pairs.lanes,
        )
        turning = len(self._turning) if asked == "slope" else 0
        pairs, joints = self._room(asked), self._slope_joints if turning else None

        def made() -> tuple[CompiledPipeline, CheckColumns]:
            columns = CheckColumns(moving, room, pairs, turning, joints)
            return compiled(nearest_pipeline(columns, asked), DOUBLE, lanes), columns

        key = "nearest", asked, room, pairs, turning, joints, lanes
        return kept(moving, key, made)

    # records

    def _links(self, columns: CheckColumns, asked: Measure) -> dict[Port, Any]:
        """Return the records of pairs of links."""
        tables = self.pairs.tables
        _, _, spans = tables.split
        result, _ = result_of(columns, asked)
        both = np.stack(divmod(tables.codes, len(tables.first) - 1), axis=1)
        links: dict[Port, Any] = {
            columns.link_a: both[:, 0],
            columns.link_b: both[:, 1],
            columns.link_reach: tables.radii[both].sum(axis=1),
            columns.of_spheres: spans[:, :2],
            columns.of_shapes: spans[:, 2:],
            columns.first_pair: tables.starts,
            result: np.arange(len(both)) % self._room(asked),
        }
        if asked != "slope":
            return links
        # The moving link of each link is that of its first shape; the world has none.
        rows = self.pairs.placed.rows[tables.first[:-1]][both]
        turning = np.searchsorted(self._turning, rows) * (rows > 0)
        for k in range(2):
            links[columns.link_poses[k]] = rows[:, k]
            links[columns.link_twists[k]] = turning[:, k]
        links[columns.moves] = rows > 0
        return links

    def _shapes(self, columns: CheckColumns, called: Called) -> dict[str, Any]:
        """Return the records of pairs of shapes, those of two spheres apart."""
        tables = self.pairs.tables
        of_spheres, of_shapes, _ = tables.split
        spheres, shapes = map(tables.sphere_numbers, (of_spheres, of_shapes))
        sphere_rows, shape_rows = map(tables.ordered_rows, (of_spheres, of_shapes))
        both_spheres: dict[Port, Any] = {
            columns.sphere_a: spheres[:, 0],
            columns.sphere_b: spheres[:, 1],
            columns.sphere_reach: tables.radii[spheres].sum(axis=1),
            columns.sphere_number: of_spheres,
            columns.sphere_X_A: sphere_rows[:, 0],
            columns.sphere_X_B: sphere_rows[:, 1],
            columns.sphere_distance: called.codes[of_spheres],
        }
        others: dict[Port, Any] = {
            columns.shape_a: shapes[:, 0],
            columns.shape_b: shapes[:, 1],
            columns.shape_reach: tables.radii[shapes].sum(axis=1),
            columns.X_A: shape_rows[:, 0],
            columns.X_B: shape_rows[:, 1],
            columns.shape_number: of_shapes,
            columns.shape_order: tables.orders[of_shapes],
        }
        both = tables.ordered_shapes[of_spheres].T
        in_order = tables.ordered_shapes[of_shapes]
        shape_codes = codes_of(in_order, called, of_shapes)
        return {
            columns.sphere_pairs.name: {
                **records(both_spheres),
                **dict(zip(RECORDS_OF_SPHERES, both, strict=True)),
            },
            columns.shape_pairs.name: {**records(others), **shape_codes},
        }

    # twists

    @cached_property
    def _turning(self) -> Indices:
        """Return the rows of the moving links that links of pairs move with, sorted."""
        rows = np.unique(self.pairs.placed.rows)
        return rows[rows > 0]

    @cached_property
    def _twists(self) -> Callable[[Array], Array] | None:
        """Return the function to twists of these links, see `link_twists`.

        None where there is no link, or no joint.
        """
        moving, state = self.pairs.moving, self.pairs.state
        if not (len(self._turning) and moving.joints):
            return None
        rows: list[int] = self._turning.tolist()
        names = [state.tree.name(moving.links[row]) for row in rows]
        return link_twists(state, names, moving.joints)


@final
@dataclass(frozen=True, slots=True)
class _NearestQuestion:
    """A question about each pair; see `PlacedQuestion`."""

    code: CompiledPipeline
    columns: CheckColumns
    asked: Measure
    measures: NearestPairs

    @property
    def key(self) -> Hashable:
        """Return what equal questions share."""
        return "nearest", id(self.code), self.asked

    def called(self, pairs: PlacedPairs) -> Called:
        """Return the code of pairs of shapes."""
        full = "value" if self.asked == "distance" else "all"
        return pairs.called(full, DOUBLE, self.code.native.lanes, every=True)

    def whole(self, pairs: PlacedPairs, called: Called) -> Tables:
        """Return all records."""
        return self.measures.tables(self.columns, self.asked, called)

    def places(self, pairs: PlacedPairs, spheres: Indices, shapes: Indices) -> Changes:
        """Return the numbers that change where bodies moved."""
        return moved_records(self.columns, pairs, spheres, shapes)
