"""The records of the pipelines of edges; their code depends on the moving links alone.

Records of links that move are kept by the tables of a check, whatever stands around
them. For another state or other obstacles, those of what stands still are written, all
at once, into the records of a check with as many shapes of the same kinds.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias, final

import numpy as np
import numpy.typing as npt

from armillary.collision.check_kernel import codes_of, shape_records
from armillary.collision.columns import Room, records
from armillary.collision.edge_layout import (
    EdgeLayout,
    StillRecords,
)
from armillary.collision.edge_proof_stages import (
    EdgeProofColumns,
    edge_proof_pipeline,
)
from armillary.collision.edge_stages import (
    BALLS_A,
    BALLS_B,
    BALLS_NEAR_BOX,
    BALLS_NEAR_SPHERE,
    BALLS_OF_B,
    BALLS_OF_LINK,
    NEAR_BOXES,
    NEAR_SPHERES,
    OF_BOXES,
    OF_SPHERES,
    SHAPES_NEAR_BOX,
    SHAPES_NEAR_LINK,
    SHAPES_NEAR_SPHERE,
    EdgeColumns,
    edge_pipeline,
)
from armillary.collision.lengths import nearness_of
from armillary.collision.motion_kernel import PositionBox, coordinate_records
from armillary.collision.placed_pairs import PlacedPairs
from armillary.collision.precision import Precision, precision_of
from armillary.collision.volumes import (
    box_records,
    link_capsules,
    rounded_boxes,
)
from armillary.kernel.column_function import ColumnCode, ColumnFunction, native_lanes
from armillary.kernel.pipeline_records import PipelineRecords
from armillary.kernel.stages import BOXES
from armillary.kernel.tables import pack_all
from armillary.kinematics.moving_links import straight_links
from armillary.kinematics.moving_twists import moving_twists
from armillary.kinematics.speed_bounds import SpeedBounds
from armillary.model.fields import kept, kept_few
from armillary.trace import Port

__all__ = ["Nearness", "edge_columns", "edge_proof_columns"]

Array = npt.NDArray[np.float64]
Packed: TypeAlias = Mapping[str, npt.NDArray[Any]]
Tables: TypeAlias = dict[str, Mapping[str, Any]]

ROUNDINGS: Final = 2.0
"""Roundings of proofs, by those of a check."""

LARGE: Final = 1e12
"""Bounds of this size count as unknown."""

LOST: Final = 1e-5
"""By which part squares of distances may be wrong where they are differences."""

SPARE: Final = 2e-3
"""What is nearer than the margin and this is looked at, whether it touches or not [m].

Code that counts what is nearly touching then shares the records of what stands still
with that which does not.
"""

FEWEST_LINKS: Final = 32
"""Room for so many links that move at least; more of them compile other code."""

FEWEST_BALLS: Final = 64
"""The same for spherical shapes that move."""

MANY: Final = 10
"""With more obstacles those near a link are found many at once."""


class Nearness(NamedTuple):
    """What touches.

    Attributes:
        margin: That of the check [m].
        more: What is nearer than the margin and this touches [m].
    """

    margin: float
    more: float

    @property
    def touching(self) -> float:
        """Return below which distance shapes touch [m]."""
        return self.margin + self.more

    @property
    def looked_at(self) -> float:
        """Return below which distance they are looked at [m]."""
        return self.margin + max(self.more, SPARE)


def edge_columns(
    pairs: PlacedPairs, margin: float, *, pad: float, certain: bool
) -> ColumnFunction:
    """Return the code that tells if links touch at any row; see `edge_stages`.

    Args:
        pairs: The pairs of a check, whose poses are compiled.
        margin: What is nearer touches [m].
        pad: By how much farther links touch, too [m].
        certain: Whether what rounding decides touches.

    Raises:
        KernelError: As for `compile_pipeline`.
    """
    precision = precision_of(pairs)
    # Whether shapes overlap takes less time than how far they are apart.
    if not pairs.tables.are_formulas:
        pad = 0.0
    near = Nearness(margin, precision.rounding if certain else pad)
    lanes = native_lanes(precision.dtype)
    moving, room = pairs.moving, _room(pairs)
    pipeline = kept(moving, ("edges", room), lambda: edge_pipeline(moving, room))
    columns = kept(moving, ("edge columns", room), lambda: EdgeColumns(moving, room))
    code = ColumnCode(pipeline, precision.dtype, lanes)
    return _EdgeRecords(pairs, columns, code, room, near, precision).function()


def edge_proof_columns(
    pairs: PlacedPairs, margin: float, box: PositionBox
) -> ColumnFunction | None:
    """Return code that proves pieces of motions; see `edge_proof_stages`.

    It is None where it would prove nothing: where roundings or speeds have no bounds
    for these joint positions, or shapes are searched for their nearest points, which
    takes so long that other proofs are as fast.

    Args:
        pairs: The pairs of a check.
        margin: What is nearer touches [m], roundings not counted.
        box: The joint positions for which it is asked.

    Raises:
        KernelError: As for `compile_pipeline`.
    """
    precision = precision_of(pairs)
    rates = _Rates.of(pairs, precision, box) if pairs.tables.are_formulas else None
    if rates is None:
        return None
    moving, room = straight_links(pairs.moving.cell), _room(pairs)
    pipeline = kept(moving, ("proofs", room), lambda: edge_proof_pipeline(moving, room))
    columns = kept(
        moving, ("proof columns", room), lambda: EdgeProofColumns(moving, room)
    )
    # Positions, rates and what is between them are rounded.
    nearness = nearness_of(pairs.extent) + ROUNDINGS * precision.rounding
    near = Nearness(margin, nearness)
    code = ColumnCode(pipeline, precision.dtype, native_lanes(precision.dtype))
    return _EdgeRecords(pairs, columns, code, room, near, precision, rates).function()


def _room(pairs: PlacedPairs) -> Room:
    """Return what code is made for: links that move, and their spherical shapes."""
    layout = EdgeLayout.of(pairs.tables)
    # One more stands for all that stands still.
    links, balls = FEWEST_LINKS, FEWEST_BALLS
    while links <= len(layout.moving.links):
        links *= 4
    while balls < len(layout.moving.balls):
        balls *= 4
    # Comparing many obstacles at once takes other code.
    has_many = len(layout.spheres.shapes) + len(layout.boxes.shapes) > MANY
    room = pairs.tables.room
    return room._replace(spheres=links, balls=balls, has_many=has_many)


class _Rates(NamedTuple):
    """How fast links move, for proofs.

    Attributes:
        box: The joint positions for which it holds.
        speeds: Bounds of speeds.
        levers: How fast each link moves for unit rates, shape (l, c).
    """

    box: PositionBox
    speeds: SpeedBounds
    levers: Array

    @classmethod
    def of(
        cls, pairs: PlacedPairs, precision: Precision, box: PositionBox
    ) -> _Rates | None:
        """Return them; None where they, or roundings, have no bounds."""
        alone = pairs.before or pairs
        where = tuple(each.tobytes() for each in box)
        key = where, precision.most_q.tobytes(), alone.pose_key, alone.moving_centres

        def made() -> _Rates | None:
            most_q = np.maximum(np.abs(box.lower), np.abs(box.upper))
            if not (most_q <= precision.most_q).all():
                return None
            speeds = alone.speeds(*box, accelerations=True)
            levers, _ = alone.levers(*box, speeds)
            bounds = levers, speeds.angular, speeds.bending
            if not all((np.abs(each) < LARGE).all() for each in bounds):
                return None
            return cls(box, speeds, levers)

        return kept_few(alone.tables, "rates", key, made)


@final
@dataclass(frozen=True, eq=False)
class _EdgeRecords:
    """The records of a check.

    Attributes:
        pairs: The pairs of the check.
        columns: The columns of the code.
        code: The code.
        room: What it is made for.
        near: What touches.
        precision: How far distances are wrong.
        rates: How fast links move; None where that is not asked.
    """

    pairs: PlacedPairs
    columns: EdgeColumns
    code: ColumnCode
    room: Room
    near: Nearness
    precision: Precision
    rates: _Rates | None = None

    def function(self) -> ColumnFunction:
        """Return the code with its records."""
        known, pairs, columns = self._like, self.pairs, self.columns
        if known.pairs is pairs:
            return known.function
        # What stands still is elsewhere, or of another size; shapes, too.
        made = {**self._still, columns.shapes.name: self._shapes(known)}
        if len(self._layout.still):
            table = columns.shape_pairs
            mates = records(self._mates(len(self._layout.still)))
            made[table.name] = table.with_numbers(
                known.function.records[table.name], mates
            )
        return known.function.with_numbers(made)

    def _shapes(self, known: _Known) -> npt.NDArray[Any]:
        """Return the records of shapes, which all code of a type shares."""
        pairs, table, part = self.pairs, self.columns.shapes, self.pairs.tables.part

        def written() -> npt.NDArray[Any]:
            given: dict[str, Any] = {
                self.columns.shape_pose.name: pairs.placed.matrices
            }
            if part.shapes:  # others are of the same sizes
                name = self.columns.shape_numbers.name
                given[name] = pairs.tables.padded(self.room)[part.shapes :]
            return table.with_numbers(known.function.records[table.name], given)

        return kept(pairs, ("shapes of edges", self.code.dtype.char, table), written)

    @cached_property
    def _layout(self) -> EdgeLayout:
        return EdgeLayout.of(self.pairs.tables)

    @property
    def _like(self) -> _Known:
        """Return records that differ from these by what stands still alone."""
        pairs, columns = self.pairs, self.columns
        owner = pairs.tables.layout or pairs.tables

        def made() -> _Known:
            called = pairs.called(self._asked, *self.code.made_for)
            tables: Tables = {
                columns.links.name: self._links(),
                columns.shape_pairs.name: self._shape_pairs(called),
                **shape_records(self.room, pairs),
            }
            packed = {**self._moving(), **self._still}
            every = PipelineRecords.of(self.code, tables, called.callees, packed)
            return _Known(pairs, every.function())

        return kept_few(owner, "edge records", (self._key, self._asked), made)

    @property
    def _asked(self) -> Any:
        """Return what is asked of the code of pairs of shapes."""
        return "touch" if self.near.touching == 0.0 else "free"

    @cached_property
    def _key(self) -> Hashable:
        """Return what decides the records of links that move, and their shapes."""
        pairs, rates = self.pairs, self.rates
        box = rates and tuple(each.tobytes() for each in rates.box)
        most = self.precision.rounding, self.precision.most_extent
        # Where attached links are turned, too: capsules are around their shapes.
        turned = pairs.placed.whole[self._layout.moving.links, :3, :4].tobytes()
        where = pairs.pose_key, pairs.moving_centres, turned
        code = self.code.dtype.char, self.code.lanes, self.room
        return (type(self.columns), code, self.near, most, where, box)

    # what moves

    def _moving(self) -> Packed:
        """Return the records of links that move, packed; see `_moving_tables`."""
        pairs = self.pairs.before or self.pairs

        def made() -> Packed:
            # Code that is called has records of its own, in other tables.
            tables = self._moving_tables(pairs)
            every = self.code.pipeline.tables
            some = [table for table in every if table.name in tables]
            name = self.columns.shape_pairs.name
            beside = {name: np.empty(len(self._pairs_of_links.called))}
            counted = [*some, self.columns.shape_pairs]
            columns, dtype = self.code.pipeline.columns, self.code.dtype
            packed = pack_all(counted, tables, columns, dtype, beside)
            return {table.name: packed[table.name] for table in some}

        return kept_few(pairs.tables, "edges of links", self._key, made)

    @property
    def _pairs_of_links(self) -> Any:
        return self._layout.moving.pairs

    def _moving_tables(self, pairs: PlacedPairs) -> Tables:
        """Return the records of spherical shapes, and of pairs of links.

        pairs: The pairs of the check without obstacles.
        """
        columns, layout = self.columns, self._layout.moving
        tables, touching = pairs.tables, self.near.touching
        balls = layout.balls
        rows, centres = layout.rows[balls], pairs.placed.centres[balls]
        radii = tables.pairs.radii[balls]
        own: dict[Port, Any] = {
            columns.ball_pose: rows,
            columns.ball_centre: centres,
            columns.ball_radius: radii + touching,
            columns.ball_point: np.arange(len(balls)),
        }
        other: dict[Port, Any] = {
            columns.other_point: np.arange(len(balls)),
            columns.other_radius: radii,
        }
        a, b, spans, _ = layout.pairs
        both: dict[Port, Any] = {
            columns.pair_a: layout.places[a],
            columns.pair_b: layout.places[b],
            columns.pair_reach: tables.radii[a] + tables.radii[b] + touching,
            columns.pair_filled_a: layout.places[a],
            columns.pair_filled_b: layout.places[b],
            **self._capsules(pairs, a, b),
        }
        more: Tables = {}
        if isinstance(columns, EdgeProofColumns):
            assert self.rates is not None
            owners = layout.places[layout.owner[balls]]
            own |= {columns.ball_twist: rows, columns.ball_bounds: owners}
            own[columns.ball_grown] = np.arange(len(balls))
            other[columns.other_grown] = np.arange(len(balls))
            both[columns.pair_grown_a] = layout.places[a]
            both[columns.pair_grown_b] = layout.places[b]
            both[columns.pair_twist] = layout.moving_rows[b]
            both[columns.pair_bounds] = layout.places[b]
            _, speeds, levers = self.rates
            more = {
                **moving_twists(straight_links(pairs.moving.cell)).records(pairs.state),
                **coordinate_records(columns, speeds, levers),
            }
        else:
            more = {**pairs.moving.records(pairs.state)}
        return {
            **more,
            columns.own_balls.name: records(own),
            columns.other_balls.name: records(other),
            columns.link_pairs.name: {
                **records(both),
                BALLS_A: layout.ball_spans[a],
                BALLS_B: layout.ball_spans[b],
                BALLS_OF_B: layout.ball_spans[b],
                SHAPES_NEAR_LINK: spans,
            },
        }

    def _capsules(self, pairs: PlacedPairs, a: Any, b: Any) -> dict[Port, Any]:
        """Return the fields of capsules around the second links of pairs.

        Args:
            pairs: The pairs of the check without obstacles.
            a: The first link of each pair, shape (p,).
            b: The second.
        """
        columns, frames = self.columns, pairs.placed.whole[b, :3, :4]
        capsules, radii = link_capsules(pairs.tables), pairs.tables.radii
        ends = capsules.ends[b] @ frames[:, :, :3].transpose(0, 2, 1)
        ends += frames[:, np.newaxis, :, 3]
        squares = ((ends[:, 1] - ends[:, 0]) ** 2).sum(axis=1)
        scale = np.divide(1.0, squares, out=np.zeros(len(b)), where=squares > 1e-12)
        return {
            columns.pair_pose: self._layout.moving.moving_rows[b],
            columns.pair_ends: ends,
            columns.pair_scale: scale,
            columns.pair_radius: capsules.radii[b],
            columns.pair_near: radii[a] + capsules.radii[b] + self.near.touching,
        }

    def _links(self) -> Mapping[str, Any]:
        """Return the records of links that move."""
        pairs, columns, layout = self.pairs, self.columns, self._layout
        links = layout.moving.links
        rows = layout.moving.tables.fixed.rows[links]
        record: dict[Port, Any] = {
            columns.link_pose: rows,
            columns.link_centre: pairs.placed.spheres[links],
            columns.link_radius: pairs.tables.radii[links] + self.near.touching,
            columns.link_ball: np.arange(len(links)),
            columns.link_filled: np.arange(len(links)),
        }
        spans = {
            BALLS_OF_LINK: layout.moving.ball_spans[links],
            OF_SPHERES: layout.spheres.of_links,
            OF_BOXES: layout.boxes.of_links,
            NEAR_SPHERES: layout.spheres.blocks,
            NEAR_BOXES: layout.boxes.blocks,
        }
        if not isinstance(columns, EdgeProofColumns):
            return {**records(record), **spans}
        # What stands still comes first, behind the numbers of all links: it does not
        # move.
        assert self.rates is not None
        numbers = np.append(len(links), np.arange(len(links)))
        record[columns.link_twist] = rows
        record[columns.link_levers] = self.rates.levers[links]
        every = {
            name: np.concatenate([np.zeros((1, *values.shape[1:]), int), values])
            for name, values in (records(record) | spans).items()
        }
        own = columns.link_ball, columns.link_filled
        for port in (*own, columns.link_bounds, columns.link_grown):
            every[port.name] = numbers
        most = np.full(len(numbers), self.precision.most_extent)
        return {**every, columns.most_reach.name: most}

    # pairs of shapes whose code is called

    def _shape_pairs(self, called: Any) -> Mapping[str, Any]:
        """Return the records of pairs of shapes.

        called: The code of all pairs.
        """
        pairs, columns, layout = self.pairs, self.columns, self._layout
        tables, (a, b) = pairs.tables, layout.sides.T
        rows, order, touching = pairs.placed.rows, layout.called, self.near.touching
        plenty = touching + 2.0 * self.precision.rounding
        turned = tables.ordered_rows(order)
        record: dict[Port, Any] = {
            columns.shape_link: rows[a],
            columns.shape_centre: pairs.placed.centres[a],
            columns.shape_radius: tables.pairs.radii[a],
            columns.mate_link: rows[b],
            columns.X_A: turned[:, 0],
            columns.X_B: turned[:, 1],
            columns.enough: np.full(len(order), touching),
            columns.plenty: np.full(len(order), plenty),
            **self._mates(len(b)),
        }
        if isinstance(columns, EdgeProofColumns):
            moving = layout.moving
            places = np.full(len(rows), len(moving.links))
            places[: len(moving.owner)] = moving.places[moving.owner]
            record[columns.shape_bounds] = places[a]
            record[columns.mate_bounds] = places[b]
        both = tables.ordered_shapes[order]
        return {**records(record), **codes_of(both, called, order)}

    def _mates(self, count: int) -> dict[Port, Any]:
        """Return the spheres around the second shapes of pairs, and boxes around both.

        count: Of how many pairs; they are the last ones.
        """
        columns, pairs, layout = self.columns, self.pairs, self._layout
        first = len(layout.called) - count
        shapes = layout.sides[first:, 1]
        both = pairs.tables.ordered_shapes[layout.called[first:]]
        boxes = box_records(columns, pairs, both)
        boxes[columns.box_rounding] += self.near.touching
        return {
            columns.mate_centre: pairs.placed.centres.take(shapes, axis=0),
            columns.mate_radius: pairs.tables.pairs.radii.take(shapes),
            **boxes,
        }

    # what stands still

    @property
    def _still(self) -> Packed:
        """Return the records of what stands still, packed.

        They are the same for all code of a type, whether it proves or not.
        """
        most, dtype = self.near.looked_at, self.code.dtype
        layout, columns, owner = self._layout, self.columns, self.pairs.tables
        tables = columns.spheres, columns.still_boxes
        ranges = columns.ranges_of_spheres, columns.ranges_of_boxes
        parts = layout.spheres, layout.boxes
        makers = self._spheres, self._boxes

        def made() -> Packed:
            key = "still records", dtype.char
            # Ranges do not depend on sizes and places: they are checked once.
            known: Packed = kept_few(owner.layout or owner, *key, packed)
            now = {table.name: known[table.name] for table in (*tables, *ranges)}
            for make, of, *two in zip(makers, parts, tables, ranges, strict=True):
                if len(of.shapes):
                    for table, numbers in zip(two, make(most), strict=True):
                        given = records(numbers)
                        now[table.name] = table.with_numbers(known[table.name], given)
            return now

        def packed() -> Packed:
            balls = BALLS_NEAR_SPHERE, BALLS_NEAR_BOX
            called = SHAPES_NEAR_SPHERE, SHAPES_NEAR_BOX
            whole: Tables = {}
            for k, (make, of) in enumerate(zip(makers, parts, strict=True)):
                numbers, blocks = map(records, make(most))
                spans = {balls[k]: of.balls, called[k]: of.called}
                whole |= {tables[k].name: numbers | spans, ranges[k].name: blocks}
            beside = {
                columns.own_balls.name: np.empty(len(layout.moving.balls)),
                columns.shape_pairs.name: np.empty(len(layout.called)),
            }
            every = *tables, *ranges, columns.own_balls, columns.shape_pairs
            return pack_all(every, whole, {}, dtype, beside)

        return kept_few(self.pairs, "still records", (most, dtype.char), made)

    def _spheres(self, most: float) -> tuple[dict[Port, Any], dict[Port, Any]]:
        """Return the numbers of what stands still and lies in a sphere, and of blocks.

        most: What is nearer is near [m].
        """
        columns, pairs, of = self.columns, self.pairs, self._layout.spheres
        centres = pairs.placed.centres.take(of.shapes, axis=0)
        radii = pairs.tables.pairs.radii.take(of.shapes)
        numbers: dict[Port, Any] = {
            columns.still_rest: self._rests(of, centres, radii, most),
            columns.still_centre: centres.take(of.at, axis=0),
            columns.still_radius: radii.take(of.at),
        }
        blocks = _blocks(of, centres, radii[:, np.newaxis])
        return numbers, {columns.sphere_ranges: blocks}

    def _boxes(self, most: float) -> tuple[dict[Port, Any], dict[Port, Any]]:
        """Return those of what lies in a rounded box.

        most: What is nearer is near [m].
        """
        columns, pairs, of = self.columns, self.pairs, self._layout.boxes
        at, own = of.at, rounded_boxes(pairs.tables).take(of.shapes, axis=0)
        X = pairs.placed.matrices.take(of.shapes, axis=0)
        half, radii = own[:, 3:6], own[:, 6]
        # Most boxes are around the origins of their frames.
        centres = X[:, :, 3]
        if own[:, :3].any():
            centres = centres + np.einsum("nij,nj->ni", X[:, :, :3], own[:, :3])
        reach = np.sqrt(np.einsum("ni,ni->n", half, half)) + radii
        numbers: dict[Port, Any] = {
            columns.box_reach: reach.take(at),
            columns.box_rest: self._rests(of, centres, reach, most),
            columns.box_centre: centres.take(at, axis=0),
            columns.box_axes: X[:, :, :3].transpose(0, 2, 1).take(at, axis=0),
            columns.box_half: half.take(at, axis=0),
            columns.box_radius: radii.take(at),
        }
        # Half of the edges of the boxes around them, along the axes of the world.
        halves = np.einsum("nij,nj->ni", np.abs(X[:, :, :3]), half)
        halves += radii[:, np.newaxis]
        return numbers, {columns.box_ranges: _blocks(of, centres, halves)}

    def _rests(
        self, of: StillRecords, centres: Array, radii: Array, most: float
    ) -> Array:
        """Return the numbers by which spheres that stand still are near links.

        Args:
            of: Their records.
            centres: The centre of each, shape (s, 3).
            radii: Their radii [m].
            most: What is nearer is near [m].
        """
        reach = self.pairs.tables.radii.take(of.links) + (radii + most).take(of.at)
        near = reach * reach
        # Of squares some digits are lost: what is a little farther is near, too.
        squares = np.einsum("ni,ni->n", centres, centres)
        rests: Array = near + LOST * near + (LOST - (1.0 - LOST) * squares).take(of.at)
        return rests


def _blocks(of: StillRecords, centres: Array, halves: Array) -> Array:
    """Return the records of `NearRecords`: (s, 3), (s, 3) -> (k, 6, BOXES).

    Args:
        of: The records of obstacles.
        centres: Of the box around each shape.
        halves: Half of its edges.
    """
    halves = halves + LOST * (np.abs(centres) + halves + 1.0)  # what roundings add
    made = np.full((int(of.blocks[:, 1].sum()) * BOXES, 6), np.inf)
    made[:, 3:] = -np.inf  # boxes that nothing meets
    every = np.concatenate([centres - halves, centres + halves], axis=1)
    made[of.in_blocks] = every.take(of.of_blocks, axis=0)
    return made.reshape(-1, BOXES, 6).swapaxes(1, 2)


class _Known(NamedTuple):
    """Code with its records, and the pairs that they were made for."""

    pairs: PlacedPairs
    function: ColumnFunction
