"""Pairs of shapes of a cell as arrays, and their distances at many poses at once.

Pairs of the same kinds of shapes share a kernel, whose rows are pairs at poses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, Self, final

import msgspec
import numpy as np
import numpy.typing as npt

from armillary.collision.distance.columns import RECORDS, PairColumns
from armillary.collision.distance.pair_kernel import (
    SIZES_OF,
    Asked,
    ValueAsked,
    called_pipeline,
    rows_kernel,
    sphere_numbers,
)
from armillary.collision.distance.sizes import form_of, numbers_of
from armillary.collision.distance.support import hull_records
from armillary.collision.distance.table import is_listed, is_search
from armillary.errors import ModelError
from armillary.forks import IMPORT_LOCK
from armillary.kernel import Kernel, shared_kernel
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import Callees
from armillary.kernel.tables import pack_all
from armillary.model.cloud import Cloud
from armillary.model.fields import kept
from armillary.model.geometry.bounding import BoundingSphere
from armillary.model.primitive import Primitive
from armillary.model.shapes import ConvexPolyhedron, HalfSpace
from armillary.spatial.pose import Pose
from armillary.spatial.vector import (
    Matrix,
    Number,
    Vector,
    norm,
    subtract,
    three,
)
from armillary.trace import trace

__all__ = [
    "LinkShape",
    "PairKind",
    "Placed",
    "ShapePairs",
    "centre_kernel",
    "form_numbers",
    "kinds_of",
]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


ROUNDING: Final = 1e-12
"""By which part of its numbers a bound is lowered, so that rounding cannot raise it."""


LEAVE_OUT: Final = "rules.exclude(...), or allowed=... where one is an obstacle"


@dataclass(frozen=True, init=False)
class LinkShape:
    """A shape of a link; what follows from it is computed once for all tables.

    Attributes:
        shape: The shape.
        link: The qualified name of the link.
        primary: The frame of `shape.pose` in the link's frame.
    """

    shape: Primitive | Cloud
    link: str
    primary: Pose

    def __init__(self, shape: Primitive | Cloud, link: str, primary: Pose) -> None:
        """Hold a shape of a link."""
        # Very many are made, of obstacles that are there for one question.
        vars(self).update(shape=shape, link=link, primary=primary)

    @cached_property
    def form(self) -> Primitive | Cloud:
        """Return the same shape for all of its kind; see `form_of`."""
        return form_of(self.shape)

    @cached_property
    def numbers(self) -> list[Any]:
        """Return the numbers of the shape; see `numbers_of`."""
        return numbers_of(self.shape)

    @cached_property
    def around(self) -> list[float]:
        """Return a sphere around the shape in its frame; see `sphere_numbers`."""
        return sphere_numbers(self.shape)

    @cached_property
    def matrix(self) -> Array:
        """Return the frame of the shape in that of its link, shape (4, 4)."""
        return (self.primary @ self.shape.pose).matrix()

    @cached_property
    def sphere(self) -> BoundingSphere:
        """Return a sphere around the shape, in the frame of its link."""
        return _bounding_sphere(self)


FEW_MOVED: Final = 8
"""Blocks of `Placed` are written at once where more than this part of them moved."""


@final
class Placed:
    """Where shapes are, in a state; immutable, arrays are read-only.

    Where few bodies moved it holds what is new, and is written as a whole when it is
    asked for that.
    """

    __slots__ = ("_late", "_moved", "_whole", "rows")

    rows: Indices
    """The rows of the moving links that shapes move with, shape (n,)."""

    def __init__(self, rows: Indices, whole: Array) -> None:
        """Hold where shapes are, all of it in one array; see `whole`."""
        whole.flags.writeable = False
        self.rows = rows
        self._whole: Array = whole
        self._late: tuple[Placed, Indices, Array] | None = None
        self._moved: tuple[Indices, Array] | None = None

    def moved(self, which: Indices, blocks: Array) -> Self:
        """Return where shapes are after some blocks of `whole` moved.

        Args:
            which: Their positions, each once, shape (k,).
            blocks: Where they are now, shape (k, 4, 9).
        """
        # Of what is not written yet, all that moved since what is; so there are no
        # chains, and nobody holds more than one other.
        late, every, written = self._late, which, self
        made = type(self)(self.rows, self._whole)
        made._moved = which, blocks
        if late is not None:
            written, before, known = late
            if before is not which:  # the same body has moved again
                again = {*which.tolist()}
                others = [k for k, n in enumerate(before.tolist()) if n not in again]
                every = np.concatenate([before[others], which])
                blocks = np.concatenate([known[others], blocks])
        made._late = written, every, blocks
        if len(every) * FEW_MOVED > len(self._whole):
            _ = made.whole
        return made

    @property
    def whole(self) -> Array:
        """Return all of it in one array, shape (l + n, 4, 9).

        Blocks of l links come first, then those of n shapes: the frames of links in
        moving links, their own frames there, and centres of bounding spheres.
        """
        late = self._late
        if late is not None:
            written, every, blocks = late
            whole = written._whole.copy()
            whole[every] = blocks
            whole.flags.writeable = False
            # Other threads that see nothing left find it written.
            self._whole = whole
            self._late = self._moved = None
        return self._whole

    def blocks(self, which: Indices) -> Array:
        """Return some blocks of `whole`, shape (k, 4, 9)."""
        moved = self._moved
        return moved[1] if moved and moved[0] is which else self.whole.take(which, 0)

    @property
    def _of_shapes(self) -> Array:
        whole = self.whole
        return whole[len(whole) - len(self.rows) :]

    @property
    def frames(self) -> Array:
        """Return the frames of their own links in moving links, shape (n, 4, 4)."""
        return self._of_shapes[:, :, :4]

    @property
    def matrices(self) -> Array:
        """Return their own frames in those of moving links, shape (n, 3, 4)."""
        return self._of_shapes[:, :3, 4:8]

    @property
    def centres(self) -> Array:
        """Return centres of their bounding spheres there, shape (n, 3)."""
        return self._of_shapes[:, :3, 8]

    @property
    def spheres(self) -> Array:
        """Return centres of the spheres around links, then of these, (l + n, 3)."""
        return self.whole[:, :3, 8]

    @property
    def links(self) -> int:
        """Return the number of links, l."""
        return len(self._whole) - len(self.rows)

    def link_poses(self, X: Array, shape: int) -> Array:
        """Return the poses in the world of the link that has a shape.

        X: Poses of the moving link that it moves with, shape (..., 3, 4).

        Returns:
            Shape (..., 4, 4).
        """
        # Rows 0, 0, 0, 1 complete the poses, so that they can be multiplied.
        whole = np.zeros((*X.shape[:-2], 4, 4))
        whole[..., :3, :] = X
        whole[..., 3, 3] = 1.0
        return whole @ self.frames[shape]


@final
class PairKind(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Pairs of the same kinds of shapes.

    Attributes:
        pairs: Which of all pairs they are, shape (m,).
        forms: The kinds: one shape of each, in an order that is listed.
        shapes: The shapes of all pairs.
        sides: The two shapes of each pair in that order, shape (2, m).
    """

    pairs: Indices
    forms: tuple[Primitive | Cloud, Primitive | Cloud]
    shapes: tuple[LinkShape, ...]
    sides: Indices

    @property
    def is_closed_form(self) -> bool:
        """Return whether their distance is a formula, rather than an iteration."""
        a, b = self.forms
        return not is_search(a, b)

    def shifted(self, by: int) -> Self:
        """Return the same pairs, which stand that many positions later."""
        return type(self)(self.pairs + by, self.forms, self.shapes, self.sides)

    def values(
        self, placed: Placed, X: Array, rows: Any, at: Any, asked: ValueAsked
    ) -> Array:
        """Return the distance of pair `at[k]` of this kind at poses `rows[k]`."""
        values = np.empty(len(at))
        for shapes, chosen in self._alike(at):
            # A row of the kernel is a pair at a pose: poses of both links, of both
            # shapes in these, and the numbers of both shapes.
            which, at_rows = at[chosen], rows[chosen]
            sides = self.sides[:, which]
            first, second = placed.rows[sides]
            places = self._uses[1][:, which]
            numbers = [
                values[place]
                for values, place in zip(self.numbers, places, strict=True)
                if values.size
            ]
            if self.other is not None:
                numbers.append(self.around[places[self.other]])
            kernel = rows_kernel(*shapes, asked)
            links = X[at_rows, first], X[at_rows, second]
            values[chosen] = kernel(*links, *placed.matrices[sides], *numbers)
        return values

    @property
    def other(self) -> int | None:
        """Return which side the shape beside a cloud has, 0 or 1; None without any."""
        clouds = [k for k, form in enumerate(self.forms) if isinstance(form, Cloud)]
        return 1 - clouds[0] if clouds else None

    def _alike(self, at: Any) -> Iterator[tuple[tuple[Any, Any], Any]]:
        """Yield pairs that share a kernel: two shapes, and which of `at` are like them.

        The corners of polyhedra and the elements of clouds are tables, so that each has
        kernels of its own.
        """
        hulls = [isinstance(form, ConvexPolyhedron | Cloud) for form in self.forms]
        if not any(hulls):
            yield self.forms, slice(None)
            return
        # One number for each combination of polyhedra; a side without any is always 0.
        sides = [
            self.sides[k, at] if is_hull else np.zeros_like(at)
            for k, is_hull in enumerate(hulls)
        ]
        number = sides[0] * len(self.shapes) + sides[1]
        order = np.argsort(number, kind="stable")
        _, starts = np.unique(number[order], return_index=True)
        for chosen in np.split(order, starts[1:]):
            a, b = (
                self.shapes[int(side[chosen[0]])].shape if is_hull else form
                for side, is_hull, form in zip(sides, hulls, self.forms, strict=True)
            )
            yield (_corners_only(a), _corners_only(b)), chosen

    @cached_property
    def _uses(self) -> tuple[tuple[Indices, ...], Indices]:
        """Return the shapes of each side, each once, and of which each pair has which.

        The first has the positions of shapes for both sides, the second positions in
        those, shape (2, m).
        """
        uses = [np.unique(side, return_inverse=True) for side in self.sides]
        used, places = zip(*uses, strict=True)
        return used, np.stack(places)

    @cached_property
    def numbers(self) -> tuple[Array, Array]:
        """Return the numbers of the shapes of each side; (n, 0) where it has none."""
        # Those of each shape are looked up once, however many pairs it is in.
        a, b = (
            np.array([self.shapes[k].numbers for k in map(int, used)], float)
            for used in self._uses[0]
        )
        return a, b

    @cached_property
    def around(self) -> Array:
        """Return spheres around the shapes beside clouds, in their frames, (n, 4)."""
        assert self.other is not None
        used = map(int, self._uses[0][self.other])
        return np.array([self.shapes[k].around for k in used])

    def callees(self, asked: Asked, dtype: np.dtype[Any], lanes: int) -> Callees:
        """Return the code of pairs, to be called with poses of links, and shapes.

        Callers give the pose and the numbers of both shapes, so that it is the same
        wherever these are. Where no shape is a polyhedron or a cloud all pairs share
        one code.

        Args:
            asked: What it returns, as for `pair_kernel`.
            dtype: The type that callers compute in.
            lanes: How many rows they compute at once.
        """
        pipeline = called_pipeline(*self.forms, asked, are_given=True)
        if not any(isinstance(form, ConvexPolyhedron | Cloud) for form in self.forms):
            return _shared_callees(pipeline, dtype, lanes)
        constant, own = self._constant(pipeline, asked, dtype)
        spans: dict[str, Any] = {
            name: (0, len(records)) for name, records in constant.items()
        }
        for k, of_shapes in own.items():
            for table, ranges in of_shapes.items():
                spans[table] = ranges[self._uses[1][k]]
        return Callees.of(
            pipeline, {}, spans, dtype=dtype, lanes=lanes, constant=constant
        )

    def placed_callees(
        self,
        placed: Placed,
        asked: Asked,
        dtype: np.dtype[Any],
        lanes: int,
        at: Any = slice(None),
    ) -> Callees:
        """Return the code of pairs, to be called with poses of their links alone.

        Args:
            placed: Where the shapes are.
            asked: What it returns, as for `pair_kernel`.
            dtype: The type that callers compute in.
            lanes: How many rows they compute at once.
            at: Which of the pairs; by default all.
        """
        pipeline = called_pipeline(*self.forms, asked)
        constant, spans = self._constant(pipeline, asked, dtype)
        tables = self.records(placed)
        chosen: dict[str, Any] = {}
        for k, name in enumerate(SIZES_OF):
            places = self._uses[1][k, at]
            chosen[name] = ranges_of_one = np.ones((len(places), 2), np.int64)
            ranges_of_one[:, 0] = places
            for table, ranges in spans.get(k, {}).items():
                chosen[table] = ranges[places]
        for table in pipeline.tables:
            chosen.setdefault(table.name, (0, len(constant.get(table.name, ()))))
        return Callees.of(
            pipeline, tables, chosen, dtype=dtype, lanes=lanes, constant=constant
        )

    def records(self, placed: Placed) -> dict[str, Mapping[str, Any]]:
        """Return the records of `SIZES_OF`: where the shapes are, and their numbers.

        Each shape has one, whatever pairs it is in; `places` has its number.
        """
        tables: dict[str, Mapping[str, Any]] = {}
        poses = PairColumns.pose_a, PairColumns.pose_b
        numbers = PairColumns.a, PairColumns.b
        for k, name in enumerate(SIZES_OF):
            fields = {poses[k].name: placed.matrices[self._uses[0][k]]}
            if self.numbers[k].size:
                fields[numbers[k].name] = self.numbers[k]
            if k == self.other:
                fields[PairColumns.around.name] = self.around
            tables[name] = fields
        return tables

    @property
    def places(self) -> Indices:
        """Return the numbers of the `records` of both shapes of each pair, (2, m)."""
        return self._uses[1]

    def _constant(
        self, pipeline: Pipeline, asked: Asked, dtype: np.dtype[Any]
    ) -> tuple[dict[str, Array], dict[int, dict[str, Indices]]]:
        """Return `_constant_tables`, which the pairs keep."""
        key = "constant tables", asked, dtype.char
        return kept(self, key, lambda: self._constant_tables(pipeline, dtype))

    def _constant_tables(
        self, pipeline: Pipeline, dtype: np.dtype[Any]
    ) -> tuple[dict[str, Array], dict[int, dict[str, Indices]]]:
        """Return the records that are the same wherever shapes are.

        The second value has for each side of polyhedra or clouds the names of their
        tables, and the ranges of records of each of the shapes that are used.
        """
        # All pairs share the records of the search. Of the corners of all polyhedra,
        # one behind the other, a shape has a part.
        tables: dict[str, Mapping[str, Any]] = {**RECORDS}
        spans: dict[int, dict[str, Indices]] = {}
        columns = PairColumns(*self.forms)
        packed: dict[str, Any] = {}
        for k, side in enumerate(columns.sides):
            used: list[Any] = [
                self.shapes[shape].shape for shape in map(int, self._uses[0][k])
            ]
            if isinstance(side.shape, ConvexPolyhedron):
                hulls = [hull_records(s, side)[side.corners.name] for s in used]
                tables[side.hull.name] = {side.corners.name: np.concatenate(hulls)}
                spans[k] = {side.hull.name: _ranges(hulls)}
            elif k == columns.cloud:
                with IMPORT_LOCK:
                    from armillary.collision.distance.cloud import cloud_tables

                # Those of a single cloud are not copied.
                clouds = [cloud_tables(s, columns, dtype) for s in used]
                spans[k] = {}
                for name in clouds[0]:
                    parts = [each[name] for each in clouds]
                    packed[name] = (
                        parts[0] if len(parts) == 1 else np.concatenate(parts)
                    )
                    spans[k][name] = _ranges(parts)
        wanted = [
            table
            for table in pipeline.tables
            if table.name not in SIZES_OF and table.name not in packed
        ]
        given = {table.name: tables[table.name] for table in wanted}
        return {**packed, **pack_all(wanted, given, pipeline.columns, dtype)}, spans


@lru_cache(maxsize=1024)
def _shared_callees(pipeline: Pipeline, dtype: np.dtype[Any], lanes: int) -> Callees:
    """Return the code of all pairs of two kinds of shapes that have no corners."""
    wanted = [table for table in pipeline.tables if table.name not in pipeline.given]
    given = {table.name: RECORDS[table.name] for table in wanted}
    spans = {
        table.name: (0, min(map(len, given[table.name].values()))) for table in wanted
    }
    return Callees.of(pipeline, given, spans, dtype=dtype, lanes=lanes)


@final
class ShapePairs(msgspec.Struct, frozen=True):
    """Pairs of shapes, numbered; arrays are read-only.

    Attributes:
        shapes: All shapes.
        pairs: The two shapes of each pair, shape (k, 2).
        kinds: The same pairs, by kinds of shapes.
        kind_of: The kind of each pair, shape (k,).
        index_of: Its index there, shape (k,).
        matrices: Frames of the shapes in those of their links, shape (n, 4, 4).
        centres: Centres of bounding spheres there, shape (n, 3).
        radii: Their radii [m], infinite for half spaces, shape (n,).
    """

    shapes: tuple[LinkShape, ...]
    pairs: Indices
    kinds: tuple[PairKind, ...]
    kind_of: Indices
    index_of: Indices
    matrices: Array
    centres: Array
    radii: Array

    @classmethod
    def of(cls, shapes: Sequence[LinkShape], pairs: Indices) -> Self:
        """Sort pairs by kinds of their shapes.

        pairs: The two shapes of each, as positions in `shapes`; shape (k, 2).

        Raises:
            ModelError: Both shapes of a pair are half spaces.
        """
        # Frames and spheres are in the frame of the link, where they are constant.
        spheres = [each.sphere for each in shapes]
        centres = np.array([s.centre for s in spheres], np.float64).reshape(-1, 3)
        radii = np.array([s.radius for s in spheres], np.float64)
        poses = [each.matrix for each in shapes]
        matrices = np.array(poses, np.float64).reshape(-1, 4, 4)
        kinds = tuple(kinds_of(tuple(shapes), pairs, form_numbers(shapes)))
        kind_of, index_of = np.zeros((2, len(pairs)), np.int64)
        for k, kind in enumerate(kinds):
            kind_of[kind.pairs] = k
            index_of[kind.pairs] = np.arange(len(kind.pairs))
        arrays = pairs, matrices, centres, radii, kind_of, index_of
        for array in arrays:
            array.flags.writeable = False
        return cls(
            tuple(shapes), pairs, kinds, kind_of, index_of, matrices, centres, radii
        )

    def of_sizes(
        self,
        shapes: tuple[LinkShape, ...],
        matrices: Array,
        centres: Array,
        radii: Array,
        kinds: int,
    ) -> Self:
        """Return the same pairs of other shapes of the same kinds.

        kinds: So many kinds come first of pairs whose shapes are the same.
        """
        same, others = self.kinds[:kinds], self.kinds[kinds:]
        made = (PairKind(k.pairs, k.forms, shapes, k.sides) for k in others)
        return type(self)(
            shapes,
            self.pairs,
            (*same, *made),
            self.kind_of,
            self.index_of,
            matrices,
            centres,
            radii,
        )

    def bounds(self, placed: Placed, X: Array, rows: Any, which: Any) -> Array:
        """Return what distances are not below: those of bounding spheres.

        Args:
            placed: Where the shapes are.
            X: Poses of moving links, shape (n, f, 3, 4).
            rows: At which of them, shape (m,).
            which: Of which pairs, shape (m,).

        Returns:
            Distances [m], shape (m,); NaN where a pose has NaN.
        """
        # Centres of all shapes at all poses, of which pairs take two each.
        P = centre_kernel()(X[:, placed.rows], placed.centres)
        a, b = self.pairs[which].T
        radii = self.radii[a] + self.radii[b]
        lowest: Array = _bound_kernel()(P[rows, a], P[rows, b], radii)
        return lowest

    def distances(
        self, placed: Placed, X: Array, rows: Any, which: Any, asked: ValueAsked
    ) -> Array:
        """Return the distances of pairs at poses; see `bounds`.

        asked: `free` leaves the depth of overlaps out.
        """
        values, kinds = np.empty(len(which)), self.kind_of[which]
        for k, kind in enumerate(self.kinds):
            chosen = np.flatnonzero(kinds == k)
            if len(chosen):
                at = self.index_of[which[chosen]]
                values[chosen] = kind.values(placed, X, rows[chosen], at, asked)
        return values


def _ranges(parts: Sequence[Any]) -> Indices:
    """Return the ranges of parts that follow each other, shape (n, 2)."""
    counts = np.array([len(part) for part in parts], np.int64)
    return np.stack([np.cumsum(counts) - counts, counts], axis=1)


def form_numbers(shapes: Sequence[LinkShape]) -> Indices:
    """Return a number for each shape, the same for all of a kind; shape (n,)."""
    numbers: dict[Primitive | Cloud, int] = {}
    forms = (numbers.setdefault(each.form, len(numbers)) for each in shapes)
    return np.fromiter(forms, np.int64, len(shapes))


def kinds_of(
    shapes: tuple[LinkShape, ...], pairs: Indices, form: Indices
) -> Iterator[PairKind]:
    """Yield the kinds of pairs of shapes.

    Args:
        shapes: The shapes.
        pairs: The two shapes of each pair, shape (k, 2).
        form: The `form_numbers` of the shapes, shape (n,).

    Raises:
        ModelError: Both shapes of a pair are half spaces, or clouds.
    """
    if not len(pairs):
        return
    # Pairs are sorted by the numbers of both kinds of shapes, the smaller one first;
    # those with equal numbers are one kind of pairs, whose sides are then exchanged if
    # the other order is listed.
    is_ordered = form[pairs[:, :1]] <= form[pairs[:, 1:]]
    ordered = np.where(is_ordered, pairs, pairs[:, ::-1])
    number = form[ordered[:, 0]] * (int(form.max()) + 1) + form[ordered[:, 1]]
    order = np.argsort(number, kind="stable")
    ends = np.flatnonzero(np.diff(number[order])) + 1
    for which in np.split(order, ends):
        sides = ordered[which].T
        one, other = (int(side[0]) for side in sides)
        kinds = shapes[one].form, shapes[other].form
        if isinstance(kinds[0], HalfSpace) and isinstance(kinds[1], HalfSpace):
            raise ModelError(
                "Two half spaces have no distance: those of "
                f"'{shapes[one].link}' and '{shapes[other].link}'. "
                f"Leave this pair out: {LEAVE_OUT}."
            )
        if isinstance(kinds[0], Cloud) and isinstance(kinds[1], Cloud):
            raise ModelError(
                "Two clouds have no distance: those of "
                f"'{shapes[one].link}' and '{shapes[other].link}'. "
                f"Leave this pair out: {LEAVE_OUT}."
            )
        if not is_listed(*kinds):
            sides, kinds = sides[::-1], (kinds[1], kinds[0])
        yield PairKind(which, kinds, shapes, sides)


@lru_cache(maxsize=1024)  # to make a polyhedron checks all its corners
def _corners_only(shape: Any) -> Any:
    """Return the same for all polyhedra with the same corners."""
    if isinstance(shape, ConvexPolyhedron):
        return ConvexPolyhedron(vertices=shape.vertices)
    return shape


def _bounding_sphere(of: LinkShape) -> BoundingSphere:
    """Return a sphere around a shape, in the frame of its link."""
    *centre, radius = of.around
    if not math.isfinite(radius):
        return BoundingSphere((0.0, 0.0, 0.0), math.inf)
    return BoundingSphere(of.primary @ (of.shape.pose @ three(centre)), radius)


@lru_cache(maxsize=1)
def centre_kernel() -> Kernel:
    """Return the kernel from poses, and centres in these frames, to the world."""

    def centre(X: Matrix, centre: Vector) -> Vector:
        return Pose.from_matrix(X) @ three(centre)

    return shared_kernel(
        trace(centre, name="centre", outputs=("p",), X=(3, 4), centre=(3,))
    )


@lru_cache(maxsize=1)
def _bound_kernel() -> Kernel:
    # A bound must not exceed the distance: it is lowered by its rounding.
    def bound(p: Vector, q: Vector, radii: Number) -> Number:
        p, q = three(p), three(q)
        size = norm(p) + norm(q) + radii
        return norm(subtract(p, q)) - radii - ROUNDING * size

    return shared_kernel(
        trace(bound, name="bound", outputs=("value",), p=(3,), q=(3,), radii=())
    )
