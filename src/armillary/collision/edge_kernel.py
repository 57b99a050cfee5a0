"""The records of the pipeline of edges; its code depends on the moving links alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from armillary.collision.check_kernel import codes_of, shape_records
from armillary.collision.columns import Room, records
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
from armillary.collision.motion_kernel import PositionBox, coordinate_records
from armillary.collision.placed_pairs import PlacedPairs
from armillary.collision.precision import Precision
from armillary.collision.volumes import (
    RoundedBox,
    box_records,
    link_capsules,
    rounded_box,
)
from armillary.kernel.pipeline import BOXES
from armillary.kernel.pipeline_kernel import ColumnFunction, native_lanes
from armillary.kinematics.moving_links import straight_links
from armillary.kinematics.moving_twists import moving_twists
from armillary.model.fields import kept
from armillary.model.shapes import Sphere
from armillary.trace import Port

__all__ = ["edge_columns", "edge_proof_columns"]

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Tables: TypeAlias = dict[str, Mapping[str, Any]]

ROUNDINGS: Final = 2.0
"""Roundings of proofs, by those of a check."""

LARGE: Final = 1e12
"""Bounds of this size count as unknown."""

LOST: Final = 1e-5
"""By which part squares of distances may be wrong where they are differences."""

FEWEST_LINKS: Final = 32
"""Room for so many links at least; more of them compile other code."""

MANY: Final = 10
"""With more obstacles those near a link are found many at once."""

FEW: Final = 8
"""So many obstacles of a link are compared one by one."""

FEWEST_BALLS: Final = 64
"""The same for spherical shapes."""


def edge_columns(
    pairs: PlacedPairs, touching: float, precision: Precision, lanes: int
) -> ColumnFunction:
    """Return the code that tells if links touch at any row; see `edge_stages`.

    Args:
        pairs: The pairs of a check, whose poses are compiled.
        touching: What is nearer touches [m].
        precision: In which type it decides.
        lanes: Rows that are computed at once.

    Raises:
        KernelError: As for `compile_pipeline`.
    """
    pairs = pairs.whole
    moving, room = pairs.moving, _room(pairs)
    pipeline = kept(moving, ("edges", room), lambda: edge_pipeline(moving, room))
    columns = EdgeColumns(moving, room)
    made = _EdgeRecords(pairs, columns, room, touching, precision, lanes)
    return ColumnFunction.compiled(
        pipeline, made.tables(), made.callees, dtype=precision.dtype, lanes=lanes
    )


def edge_proof_columns(
    pairs: PlacedPairs, touching: float, precision: Precision, box: PositionBox
) -> ColumnFunction | None:
    """Return code that proves pieces of motions; see `edge_proof_stages`.

    It is None where it would prove nothing: where roundings or speeds have no bounds
    for these joint positions, or shapes are searched for their nearest points, which
    takes so long that other proofs are as fast.

    Args:
        pairs: The pairs of a check.
        touching: What is nearer touches [m], roundings not counted.
        precision: In which type it decides, and how far that is wrong.
        box: The joint positions for which it is asked.

    Raises:
        KernelError: As for `compile_pipeline`.
    """
    pairs = pairs.whole
    moving = straight_links(pairs.moving.cell)
    most_q = np.maximum(np.abs(box.lower), np.abs(box.upper))
    if not (most_q <= precision.most_q).all():
        return None
    if not all(kind.is_closed_form for kind in pairs.tables.pairs.kinds):
        return None
    speeds = pairs.speeds(*box, accelerations=True)
    levers, _ = pairs.levers(*box, speeds)
    bounds = (levers, speeds.angular, speeds.bending)
    if not all((np.abs(each) < LARGE).all() for each in bounds):
        return None
    room = _room(pairs)
    pipeline = kept(moving, ("proofs", room), lambda: edge_proof_pipeline(moving, room))
    # Positions, rates and what is between them are rounded.
    touching += ROUNDINGS * precision.rounding
    lanes = native_lanes(precision.dtype)
    columns = EdgeProofColumns(moving, room)
    made = _EdgeRecords(pairs, columns, room, touching, precision, lanes)
    tables = {
        **made.tables(),
        **made.moving(columns, precision, levers),
        **moving_twists(moving).records(pairs.state),
        **coordinate_records(columns, speeds, levers),
    }
    return ColumnFunction.compiled(
        pipeline, tables, made.callees, dtype=precision.dtype, lanes=lanes
    )


def _room(pairs: PlacedPairs) -> Room:
    """Return what code is made for: of spheres, those around links, and some more."""
    links, balls = FEWEST_LINKS, FEWEST_BALLS
    while links <= len(pairs.tables.first):
        links *= 4
    count = sum(type(each.shape) is Sphere for each in pairs.tables.pairs.shapes)
    while balls < count:
        balls *= 4
    # Comparing many obstacles at once takes other code.
    shapes = pairs.tables.pairs
    is_still = (pairs.placed.rows[shapes.pairs] == 0).any(axis=1)
    still = np.unique(shapes.pairs[is_still])
    has_many = len(still) > MANY
    return pairs.tables.room._replace(spheres=links, balls=balls, has_many=has_many)


class _EdgeRecords:
    """The records of a check, under construction."""

    def __init__(
        self,
        pairs: PlacedPairs,
        columns: EdgeColumns,
        room: Room,
        touching: float,
        precision: Precision,
        lanes: int,
    ) -> None:
        tables, placed = pairs.tables, pairs.placed
        self.pairs, self.columns, self.touching = pairs, columns, touching
        self.room, self.rounding = room, precision.rounding
        self.lanes, self.dtype = lanes, precision.dtype
        self.shapes = [each.shape for each in tables.pairs.shapes]
        self.rows, self.radii = placed.rows, tables.pairs.radii
        self.owner = np.repeat(np.arange(len(tables.first) - 1), np.diff(tables.first))
        self.is_ball = np.array([type(x) is Sphere for x in self.shapes], np.bool_)
        self.link_rows, self.centres = tables.spheres(placed)
        self.count = len(tables.first) - 1
        # Spherical shapes have records, those of a link together.
        self.balls = np.flatnonzero(self.is_ball & (self.rows > 0))
        of_balls = self.owner[self.balls]
        numbers = np.arange(self.count)
        first = np.searchsorted(of_balls, numbers)
        last = np.searchsorted(of_balls, numbers, side="right")
        self.ball_spans = np.stack([first, last - first], axis=1)
        self.callees: list[Any] = []
        self.order = np.empty(0, np.int64)
        self.made: Tables = {}

    def tables(self) -> Tables:
        """Return the records of all tables."""
        pairs, columns = self.pairs, self.columns
        each = pairs.tables.pairs.pairs
        moves = np.sort(
            np.concatenate([pairs.tables.of_spheres, pairs.tables.of_shapes])
        )
        sides = each[moves]
        is_still = self.rows[sides] == 0
        of_still = is_still.any(axis=1)
        # The side that stands still comes second; of pairs that both move, as they are.
        turned = is_still[:, 0]
        sides[turned] = sides[turned, ::-1]
        called: list[Indices] = []  # pairs of shapes whose code is called, in order
        still = self._still(moves[of_still], sides[of_still], called)
        links = self._link_pairs(moves[~of_still], sides[~of_still], called)
        self.order = np.concatenate([np.empty(0, np.int64), *called])
        self.made = {
            **pairs.moving.records(pairs.state),
            **still,
            **links,
            **self._balls(),
            **shape_records(self.room, pairs),
            columns.shape_pairs.name: self._called(self.order),
        }
        return self.made

    def _still(self, which: Indices, sides: Indices, called: list[Indices]) -> Tables:
        """Return the records of links, and of what stands still near them."""
        columns, pairs = self.columns, self.pairs
        rows = self.link_rows[: self.count]
        moving = np.flatnonzero(rows > 0)
        # Links that most joints move come first.
        moving = moving[np.argsort(-rows[moving], kind="stable")]
        spheres: list[tuple[Any, ...]] = []
        boxes: list[tuple[Any, ...]] = []
        of_spheres, of_boxes = (np.zeros((len(moving), 2), np.int64) for _ in range(2))
        by_link = self._by_link(sides)
        bounds: dict[int, RoundedBox | None] = {}
        at = sum(map(len, called))
        for k, link in enumerate(moving.tolist()):
            begin = len(spheres), len(boxes)
            for group in by_link.get(link, ()):
                shape = int(sides[group[0], 1])
                if shape not in bounds:
                    bounds[shape] = rounded_box(self.shapes[shape])
                box = bounds[shape]
                is_exact = self.is_ball[shape] if box is None else box.is_shape
                # Spheres of the link need no code if it is as it is described here.
                if is_exact:
                    balls = self.ball_spans[link]
                    others = group[~self.is_ball[sides[group, 0]]]
                else:
                    balls, others = np.zeros(2, np.int64), group
                called.append(which[others])
                spans = balls, (at, len(others))
                at += len(others)
                if box is None:
                    centre = pairs.placed.centres[shape]
                    radius = self.radii[shape] + self.touching
                    near = self._near(link, centre, radius)
                    spheres.append((*near, centre, radius, *spans))
                else:
                    X = pairs.placed.matrices[shape]
                    centre = X[:, :3] @ box.centre + X[:, 3]
                    radius = box.radius + self.touching
                    reach = float(np.linalg.norm(box.half)) + radius
                    near = *self._near(link, centre, reach), reach
                    boxes.append((*near, centre, X[:, :3].T, box.half, radius, *spans))
            of_spheres[k] = begin[0], len(spheres) - begin[0]
            of_boxes[k] = begin[1], len(boxes) - begin[1]
        record: dict[Port, Any] = {
            columns.link_pose: rows[moving],
            columns.link_centre: self.centres[moving],
            columns.link_radius: pairs.tables.radii[moving],
            columns.link_ball: moving,
            columns.link_filled: moving,
        }
        sphere_ports = (
            columns.still_twice,
            columns.still_rest,
            columns.still_centre,
            columns.still_radius,
        )
        box_ports = (
            columns.box_twice,
            columns.box_rest,
            columns.box_reach,
            columns.box_centre,
            columns.box_axes,
            columns.box_half,
            columns.box_radius,
        )
        still: Tables = {
            columns.spheres.name: _listed(
                spheres, sphere_ports, (BALLS_NEAR_SPHERE, SHAPES_NEAR_SPHERE)
            ),
            columns.still_boxes.name: _listed(
                boxes, box_ports, (BALLS_NEAR_BOX, SHAPES_NEAR_BOX)
            ),
        }
        near_spheres, sphere_ranges, near_boxes, box_ranges = self._ranges(
            still, of_spheres, of_boxes
        )
        return {
            columns.links.name: {
                **records(record),
                BALLS_OF_LINK: self.ball_spans[moving],
                OF_SPHERES: of_spheres,
                OF_BOXES: of_boxes,
                NEAR_SPHERES: near_spheres,
                NEAR_BOXES: near_boxes,
            },
            columns.ranges_of_spheres.name: {columns.sphere_ranges.name: sphere_ranges},
            columns.ranges_of_boxes.name: {columns.box_ranges.name: box_ranges},
            **still,
        }

    def _by_link(self, sides: Indices) -> dict[int, list[Indices]]:
        """Return the pairs of each link, those with the same obstacle together."""
        link_of = self.owner[sides[:, 0]]
        # Pairs of a link, those with the same shape that stands still together.
        order = np.lexsort((sides[:, 0], sides[:, 1], link_of))
        keys = np.stack([link_of[order], sides[order, 1]], axis=1)
        is_first = np.append(True, (keys[1:] != keys[:-1]).any(axis=1))[: len(keys)]
        groups = np.split(order, np.flatnonzero(is_first)[1:]) if len(order) else []
        by_link: dict[int, list[Indices]] = {}
        for group in groups:
            by_link.setdefault(int(link_of[group[0]]), []).append(group)
        return by_link

    def _ranges(
        self, still: Tables, of_spheres: Indices, of_boxes: Indices
    ) -> tuple[Indices, Array, Indices, Array]:
        """Return which records of `NearRecords` links have, and these, twice."""
        columns = self.columns
        spheres, boxes = (
            still[each.name] for each in (columns.spheres, columns.still_boxes)
        )
        radii = spheres[columns.still_radius.name][:, np.newaxis]
        axes = np.abs(boxes[columns.box_axes.name]).swapaxes(-1, -2)
        halves = (axes @ boxes[columns.box_half.name][..., np.newaxis])[..., 0]
        halves = halves + boxes[columns.box_radius.name][:, np.newaxis]
        centres = spheres[columns.still_centre.name], boxes[columns.box_centre.name]
        return (
            *_near_ranges(centres[0], np.repeat(radii, 3, axis=1), of_spheres),
            *_near_ranges(centres[1], halves, of_boxes),
        )

    def _near(self, link: int, centre: Array, radius: float) -> tuple[Array, float]:
        """Return the numbers by which a sphere that stands still is near a link."""
        # Of squares some digits are lost: what is a little farther is near, too.
        reach = self.pairs.tables.radii[link] + radius
        square = float(centre @ centre)
        near = reach**2 + LOST * (reach**2 + square + 1.0)
        return 2.0 * centre, near - square

    def _link_pairs(
        self, which: Indices, sides: Indices, called: list[Indices]
    ) -> Tables:
        """Return the records of pairs of links that both move."""
        columns, radii = self.columns, self.pairs.tables.radii
        links: Indices = self.owner[sides]
        order = np.lexsort((links[:, 1], links[:, 0]))
        both, is_first = links[order], np.ones(len(order), np.bool_)
        is_first[1:] = (both[1:] != both[:-1]).any(axis=1)
        groups: list[Indices] = []
        if len(order):
            groups += np.split(order, np.flatnonzero(is_first)[1:])
        a: Indices
        b: Indices
        a, b = both[is_first].T
        # Those between links that most joints move come first.
        rows = self.link_rows[: self.count]
        ranks = np.argsort(-(rows[a] + rows[b]), kind="stable")
        a, b = a[ranks], b[ranks]
        # Spheres of the first are compared with the sphere around the second.
        is_turned = self.ball_spans[a, 1] > self.ball_spans[b, 1]
        a, b = np.where(is_turned, b, a), np.where(is_turned, a, b)
        at = sum(map(len, called))
        spans = np.zeros((len(ranks), 2), np.int64)
        for k, rank in enumerate(ranks.tolist()):
            group: Indices = groups[int(rank)]
            others: Indices = group[~self.is_ball[sides[group]].all(axis=1)]
            called.append(which[others])
            spans[k] = at, len(others)
            at += len(others)
        record: dict[Port, Any] = {
            columns.pair_a: a,
            columns.pair_b: b,
            columns.pair_reach: radii[a] + radii[b] + self.touching,
            **self._capsules(a, b),
            columns.pair_filled_a: a,
            columns.pair_filled_b: b,
        }
        return {
            columns.link_pairs.name: {
                **records(record),
                BALLS_A: self.ball_spans[a],
                BALLS_B: self.ball_spans[b],
                BALLS_OF_B: self.ball_spans[b],
                SHAPES_NEAR_LINK: spans,
            }
        }

    def _capsules(self, a: Indices, b: Indices) -> dict[Port, Any]:
        """Return the fields of capsules around the second links of pairs."""
        columns, placed = self.columns, self.pairs.placed
        capsules = link_capsules(self.pairs.tables)
        frames = placed.whole[b, :3, :4]
        ends = capsules.ends[b] @ frames[:, :, :3].transpose(0, 2, 1)
        ends += frames[:, np.newaxis, :, 3]
        squares = ((ends[:, 1] - ends[:, 0]) ** 2).sum(axis=1)
        scale = np.divide(1.0, squares, out=np.zeros(len(b)), where=squares > 1e-12)
        radii = capsules.radii[b] + self.touching
        return {
            columns.pair_pose: self.link_rows[b],
            columns.pair_ends: ends,
            columns.pair_scale: scale,
            columns.pair_radius: radii,
            columns.pair_near: self.pairs.tables.radii[a] + radii,
        }

    def moving(
        self, columns: EdgeProofColumns, precision: Precision, levers: Array
    ) -> Tables:
        """Return the tables whose records say how links move, too.

        levers: How fast links move for unit rates, shape (l, c).
        """
        tables = self.made
        table = tables[columns.links.name]
        links = {name: np.asarray(values) for name, values in table.items()}
        rows, of_links = (
            links[port.name] for port in (columns.link_pose, columns.link_ball)
        )
        # What stands still comes first, behind the numbers of all links: it does not
        # move.
        numbers = np.concatenate([[self.count], of_links])
        every = {
            name: np.concatenate([np.zeros((1, *values.shape[1:]), int), values])
            for name, values in links.items()
        }
        every[columns.link_ball.name] = numbers
        every[columns.link_filled.name] = numbers
        zeros = np.zeros((1, levers.shape[1]))
        more: dict[Port, Any] = {
            columns.link_twist: np.concatenate([[0], rows]),
            columns.link_levers: np.concatenate([zeros, levers[of_links]]),
            columns.link_bounds: numbers,
            columns.link_grown: numbers,
            columns.most_reach: np.full(len(numbers), precision.most_extent),
        }
        owners = self.owner[self.balls]
        own: dict[Port, Any] = {
            columns.ball_twist: self.rows[self.balls],
            columns.ball_bounds: owners,
            columns.ball_grown: np.arange(len(owners)),
        }
        other: dict[Port, Any] = {columns.other_grown: np.arange(len(owners))}
        pairs = tables[columns.link_pairs.name]
        both: dict[Port, Any] = {
            columns.pair_grown_a: pairs[columns.pair_a.name],
            columns.pair_grown_b: pairs[columns.pair_b.name],
            columns.pair_twist: pairs[columns.pair_pose.name],
            columns.pair_bounds: pairs[columns.pair_b.name],
        }
        moves = np.where(self.rows > 0, self.owner, self.count)
        a, b = self.pairs.tables.pairs.pairs[self.order].T
        shapes: dict[Port, Any] = {
            columns.shape_bounds: moves[a],
            columns.mate_bounds: moves[b],
        }
        added = {
            columns.own_balls.name: own,
            columns.other_balls.name: other,
            columns.link_pairs.name: both,
            columns.shape_pairs.name: shapes,
        }
        return {
            columns.links.name: {**every, **records(more)},
            **{name: {**tables[name], **records(each)} for name, each in added.items()},
        }

    def _balls(self) -> Tables:
        """Return the records of spherical shapes, for both sides of pairs."""
        columns, balls = self.columns, self.balls
        rows, centres = self.rows[balls], self.pairs.placed.centres[balls]
        own: dict[Port, Any] = {
            columns.ball_pose: rows,
            columns.ball_centre: centres,
            columns.ball_radius: self.radii[balls],
            columns.ball_point: np.arange(len(balls)),
        }
        other: dict[Port, Any] = {
            columns.other_point: np.arange(len(balls)),
            columns.other_radius: self.radii[balls] + self.touching,
        }
        return {
            columns.own_balls.name: records(own),
            columns.other_balls.name: records(other),
        }

    def _called(self, order: Indices) -> Mapping[str, Any]:
        """Return the records of pairs of shapes whose code is called.

        order: Positions in the pairs of shapes.
        """
        columns, pairs = self.columns, self.pairs
        asked = "touch" if self.touching == 0.0 else "free"
        called = pairs.called(asked, self.dtype, self.lanes)
        self.callees += called.callees
        a, b = pairs.tables.pairs.pairs[order].T
        turned = pairs.tables.ordered_rows(order)
        record: dict[Port, Any] = {
            columns.shape_link: self.rows[a],
            columns.shape_centre: pairs.placed.centres[a],
            columns.shape_radius: self.radii[a],
            columns.mate_link: self.rows[b],
            columns.mate_centre: pairs.placed.centres[b],
            columns.mate_radius: self.radii[b] + self.touching,
            columns.X_A: turned[:, 0],
            columns.X_B: turned[:, 1],
            columns.enough: np.full(len(order), self.touching),
            columns.plenty: np.full(len(order), self.touching + 2.0 * self.rounding),
        }
        both = pairs.tables.ordered_shapes[order]
        record |= box_records(columns, pairs, both)
        record[columns.box_rounding] += self.touching
        return {**records(record), **codes_of(both, called, order)}


def _near_ranges(
    centres: Array, halves: Array, spans: Indices
) -> tuple[Indices, Array]:
    """Return the records of `NearRecords`, and which are those of each link.

    Args:
        centres: Of the box around each obstacle, shape (n, 3).
        halves: Half of its edges, shape (n, 3).
        spans: The first obstacle and the count of each link, shape (links, 2).
    """
    halves = halves + LOST * (np.abs(centres) + halves + 1.0)  # what roundings add
    every = np.concatenate([centres - halves, centres + halves], axis=1)
    blocks = np.where(spans[:, 1] <= FEW, 0, -(-spans[:, 1] // BOXES))
    first = np.cumsum(blocks) - blocks
    made = np.full((int(blocks.sum()), BOXES, 6), np.inf)
    made[..., 3:] = -np.inf  # boxes that nothing meets
    for (start, count), at in zip(spans.tolist(), first.tolist(), strict=True):
        if count > FEW:
            rows = made[at : at - (-count // BOXES)].reshape(-1, 6)
            rows[:count] = every[start : start + count]
    return np.stack([first, blocks], axis=1), made.swapaxes(1, 2)


def _listed(
    rows: list[tuple[Any, ...]], ports: tuple[Port, ...], spans: tuple[str, str]
) -> dict[str, Any]:
    """Return the records of a table from its rows."""
    names = *(port.name for port in ports), *spans
    shapes = *(port.shape for port in ports), (2,), (2,)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return {
        name: np.array(column, float if k < len(ports) else np.int64).reshape(
            len(rows), *shape
        )
        for k, (name, column, shape) in enumerate(
            zip(names, columns, shapes, strict=True)
        )
    }
