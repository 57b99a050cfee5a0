"""Depth of overlapping convex bodies: the origin is inside their difference A - B.

The depth is the least width h(d) = max w . d over unit directions d and all points w of
A - B: the distance from the origin to the plane across d that bounds A - B. It is found
by branch and bound. Directions are divided into cells between three directions d_k, of
which the farthest points w_k of A - B are known. In a cell h(d) >= max w_k . d, whose
least value is where two of these are equal on a side of the cell, or all three inside
(`direction_cell.py`). If it is not below the least width so far, the cell is done; else
h is computed there, and the cell is divided there.

The depth is therefore the least one, and what it may differ by is known. For polytopes
the search ends with the exact facet: near its normal, h is the maximum of a few
w_k . d.

EPA, the usual algorithm (van den Bergen, "Proximity queries and penetration depth
computation on 3D game objects", 2001), grows a polytope inside of A - B: it moves the
face nearest to the origin outwards, to the farthest point across it. It begins with a
tetrahedron around the origin, and replaces all faces that a new point sees. A cell here
does not depend on its neighbours: cells wait in a room of fixed size, a degenerate face
cannot end the search, and A - B may be flat. In return directions all around are
searched, also where A - B is wide; most of their cells are done at once, since the
widths in 65 directions are known before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, final

import msgspec

from armillary.collision.distance.arcs import arc_stages, has_arcs
from armillary.collision.distance.columns import WAITING, PairColumns
from armillary.collision.distance.direction_cell import (
    Subcell,
    bound_of,
    chosen,
    in_order,
)
from armillary.collision.distance.gjk import aimed, difference
from armillary.collision.distance.separation import choose, direction
from armillary.collision.distance.stationary import (
    NEWTON_RECORDS,
    NEWTON_TABLE,
    face_stage,
    newton_stages,
)
from armillary.collision.distance.support import supports
from armillary.collision.distance.tolerance import (
    GROWTH,
    LIMIT,
    PRECISION,
    TOLERANCE,
    allowed,
)
from armillary.kernel.columns import each, repeat, when
from armillary.kernel.stages import Stage
from armillary.kernel.tables import Table, reals
from armillary.spatial.vector import (
    Matrix,
    Number,
    Vector,
    Vector3,
    add,
    cross,
    dot,
    negate,
    norm,
    scale,
    subtract,
    three,
)
from armillary.trace.functions import (
    absolute,
    by_precision,
    minimum,
    select,
    sqrt,
)

__all__ = ["RECORDS", "TABLES", "depth_stages"]

RADIUS: Final = 0.05
"""Of that cell, at first."""

NEWTON_RADIUS: Final = 1e-4
"""The same where Newton's method has found the best direction."""

# Rotations by general angles; the second is the inverse of the first.
FRAMES: Final[tuple[tuple[Vector3, Vector3, Vector3], ...]] = (
    (
        (0.8893489214500944, 0.387011838132938, 0.24347552866873162),
        (-0.4201006481020959, 0.9018380933768753, 0.10101236953245588),
        (-0.18048252375161633, -0.1921194692875426, 0.9646326596901642),
    ),
    (
        (0.8893489214500944, -0.4201006481020959, -0.18048252375161633),
        (0.387011838132938, 0.9018380933768753, -0.1921194692875426),
        (0.24347552866873162, 0.10101236953245588, 0.9646326596901642),
    ),
    (
        (0.15965572792623267, 0.7149212204461465, 0.6807332055189733),
        (-0.9662155800829414, 0.25450526964923775, -0.040675797788782254),
        (-0.2023301790275731, -0.6512409049472868, 0.731401245813889),
    ),
)
"""For each search, axes that no model is likely to have faces or edges along."""


def _even(count: int) -> list[Vector3]:
    """Return directions that are about evenly apart, on a spiral."""
    directions: list[Vector3] = []
    for k in range(count):
        # Heights are evenly apart, so that each has the same area; turns are by the
        # golden angle.
        z, turn = 1.0 - (2.0 * k + 1.0) / count, k * math.pi * (3.0 - math.sqrt(5.0))
        out = math.sqrt(1.0 - z * z)
        directions.append((out * math.cos(turn), out * math.sin(turn), z))
    return directions


PROBE_TABLE: Final = Table(
    "probes",
    (reals(PairColumns.from_last.name), reals(PairColumns.along.name, (3,))),
)
CORNER_TABLE: Final = Table("corners", (reals(PairColumns.corner.name),))

TABLES: Final = (PROBE_TABLE, CORNER_TABLE, NEWTON_TABLE)
"""What the stages read, whatever the shapes."""

RECORDS: Final[Mapping[str, Mapping[str, Sequence[Any]]]] = {
    PROBE_TABLE.name: {
        PairColumns.from_last.name: [1.0, *[0.0] * 64],
        PairColumns.along.name: [(0.0, 0.0, 0.0), *_even(64)],
    },
    CORNER_TABLE.name: {PairColumns.corner.name: [0.0, 1.0, 2.0]},
    NEWTON_TABLE.name: NEWTON_RECORDS,
}
"""What is in those tables.

Probes are directions that are looked at first: where the distance ended, and all
around. Corners number the directions of a cell.
"""


class Support(NamedTuple):
    """The farthest points of both bodies, and what brings them together."""

    X: Matrix
    point_a: Vector
    point_b: Vector
    extent: Number


class Deepest(NamedTuple):
    """The least width so far."""

    depth: Number
    axis: Vector


class DepthState(NamedTuple):
    """What the search knows between two steps; see the columns of these names."""

    octant: Number
    axes: Matrix
    directions: Matrix
    taken: Number
    waiting: Number
    depth: Number
    axis: Vector
    middle: Vector
    radius: Number
    factor: Number
    short: Number
    least: Number
    lost: Number
    going: Number
    fresh: Number


class OpenCell(NamedTuple):
    """What is known of the cell that is divided next, besides its directions."""

    farthest: Matrix
    against: Vector
    divided: Vector


class QueueChange(NamedTuple):
    """What changes of the cells that wait."""

    pushed: Sequence[Matrix]
    move: Number


class DepthBegin(NamedTuple):
    """What there is before the first step."""

    state: DepthState
    cell: OpenCell
    later: Sequence[Matrix]


class DepthStep(NamedTuple):
    """What a step leaves."""

    state: DepthState
    cell: OpenCell
    change: QueueChange


def depth_stages(columns: PairColumns) -> tuple[Stage, ...]:
    """Return stages from what `gjk_stages` left to `depth`, `axis` and `least`.

    A depth below 0 is minus the distance of bodies that hardly touch.
    """
    # First the widths in some directions: their least is a good bound to begin with.
    stage = columns.stage
    aim = *aimed(columns, columns.against), *supports(columns)
    probe = stage(_probe, writes=columns.against), *aim, stage(_width)
    probes = each(PROBE_TABLE, *probe)

    # Then cells, one after another. Of one that waited, or an octant, the farthest
    # points are looked up first; a part of the cell before has them.
    look_up = stage(_corner, writes=columns.against), *aim
    taken = (
        each(CORNER_TABLE, *look_up, stage(_reach, writes=columns.farthest)),
        stage(_bound),
    )
    newton = newton_stages(columns)
    again = (when(columns.fresh, *newton),) if newton else ()
    search = repeat(
        columns.going,
        when(columns.taken, *taken),
        *aim,
        stage(_step),
        stage(_queued, writes=columns.later),
        *again,
        limit=LIMIT,
    )
    mirror = (
        *aimed(columns, columns.axis),
        *supports(columns),
        stage(_other_side),
    )
    # The search is repeated along other axes where a part of space was not covered.
    begin = partial(_begin, radius=NEWTON_RADIUS if newton else RADIUS)
    one = stage(begin), search, *mirror, stage(_check)
    first = *face_stage(columns), *newton
    if has_arcs(columns):
        arcs = *arc_stages(columns), when(columns.fresh, *newton)
        return stage(_nothing), probes, *first, *arcs
    return (
        stage(_nothing),
        probes,
        *first,
        repeat(columns.tries, *one, limit=len(FRAMES)),
    )


# Widths in single directions


class NoDepth(NamedTuple):
    """What there is before the first direction."""

    depth: Number
    axis: Vector
    least: Number
    lost: Number
    tries: Number


def _nothing(last: Vector) -> NoDepth:
    return NoDepth(math.inf, three(last), 0.0, 0.0, 1.0)


def _probe(last: Vector, from_last: Number, along: Vector) -> Vector:
    # The last v that was not 0 points out of A - B where the origin is not deep.
    outward = direction(negate(three(last)), 0.0, FRAMES[0][0])
    return negate(choose(from_last > 0.0, outward, three(along)))


class Measured(NamedTuple):
    """The farthest point of A - B in a direction, and how far it is there."""

    normal: Vector3
    point: Vector3
    width: Number
    tiny: Number
    is_less: Any


def _measured(support: Support, against: Vector, depth: Number) -> Measured:
    """Return the width in a direction, and whether it is less than the depth so far."""
    normal = negate(three(against))
    point = difference(support.X, support.point_a, support.point_b)
    width = dot(normal, point)
    tiny = by_precision(width, double=1e-13, single=1e-6) * support.extent
    return Measured(normal, point, width, tiny, width < depth - tiny)


def _width(support: Support, against: Vector, depth: Number, axis: Vector) -> Deepest:
    new = _measured(support, against, depth)
    return Deepest(
        select(new.is_less, new.width, depth),
        choose(new.is_less, new.normal, three(axis)),
    )


class OtherSide(NamedTuple):
    """What remains after a look at the other side."""

    axis: Vector
    depth: Number
    lost: Number


def _other_side(
    support: Support, axis: Vector, depth: Number, lost: Number
) -> OtherSide:
    """Look against the best direction: nearly concentric bodies are as deep there.

    If they are less deep there, the search has missed it: it is made again.
    """
    new = _measured(support, axis, depth)
    return OtherSide(
        choose(new.is_less, new.normal, three(axis)),
        select(new.is_less, new.width, depth),
        select(new.is_less, 1.0, lost),
    )


class Proven(NamedTuple):
    """What is proven of the depth, and which search follows."""

    least: Number
    tries: Number


def _check(
    depth: Number, least: Number, lost: Number, octant: Number, tries: Number
) -> Proven:
    """Return what is proven, and the number of the next search if one is needed.

    Nothing is proven unless all octants were searched. A cell that found no room may
    hold a smaller width: the next search divides space along other axes.
    """
    # Octant 9 is the last cell: all of space was searched before it.
    is_whole = octant > 8.0
    least = minimum(select(is_whole, least, 0.0), depth)
    return Proven(least, select(is_whole & (lost > 0.0), tries + 1.0, 0.0))


# The search through cells


def _begin(tries: Number, depth: Number, axis: Vector, *, radius: float) -> DepthBegin:
    """Return the columns before the first cell."""
    zero = (0.0, 0.0, 0.0)
    none = [zero] * 3
    axes = list(FRAMES[0])
    for k, frame in enumerate(FRAMES[1:]):
        axes = chosen(tries == k + 2.0, frame, axes)
    # The first octant is that around the best direction so far, so that most cells of
    # the others are left at once.
    axes = [
        scale(select(dot(three(axis), edge) < 0.0, -1.0, 1.0), edge) for edge in axes
    ]
    state = DepthState(
        octant=1.0,
        axes=axes,
        directions=axes,
        taken=1.0,
        waiting=0.0,
        depth=depth,
        axis=axis,
        middle=axis,
        radius=radius,
        factor=1.0,
        short=0.0,
        least=depth,
        lost=0.0,
        going=1.0,
        fresh=0.0,
    )
    cell = OpenCell(none, negate(three(axis)), zero)
    return DepthBegin(state, cell, [none] * WAITING)


def _corner(directions: Matrix, corner: Number) -> Vector:
    """Return minus the direction of a number."""
    aim = three(directions[0])
    for k in (1, 2):
        aim = choose(corner == float(k), three(directions[k]), aim)
    return negate(aim)


def _reach(corner: Number, farthest: Matrix, support: Support) -> Matrix:
    """Return the farthest points with that in the direction of a number."""
    w = difference(support.X, support.point_a, support.point_b)
    return [
        choose(corner == float(k), w, three(point)) for k, point in enumerate(farthest)
    ]


class Divide(NamedTuple):
    """Where a cell is divided."""

    against: Vector
    divided: Vector


def _bound(directions: Matrix, farthest: Matrix, extent: Number) -> Divide:
    bound = bound_of(list(map(three, directions)), list(map(three, farthest)), extent)
    return Divide(negate(bound.at), bound.divided)


def _step(
    support: Support, cell: OpenCell, state: DepthState, later: Sequence[Matrix]
) -> DepthStep:
    """Divide the cell by the direction of a new point, and choose the next cell."""
    new = _measured(support, cell.against, state.depth)
    depth = select(new.is_less, new.width, state.depth)
    axis = choose(new.is_less, new.normal, three(state.axis))
    tolerance = allowed(new.width, state.depth, state.factor, support.extent)
    is_fresh = new.width < state.depth - tolerance
    part, *others = _parts(cell, state.directions, new, support.extent)

    # A part whose bound is not below `enough` cannot be better by more than is allowed.
    # `least` is the least of the bounds of what is left so: what is proven.
    is_last = state.octant > 8.0
    enough = depth - allowed(new.width, depth, state.factor, support.extent)
    is_open = part.least < enough
    least = select(is_open | is_last, state.least, minimum(state.least, part.least))

    # If this part is done, a cell that waits is taken, else an octant. Behind the last
    # octant follows the last cell, around the axis; it shrinks as long as parts of it
    # find no room.
    queue = Queue(state.waiting, state.lost, state.short, least)
    has_room = queue.waiting < WAITING - 1.0
    is_waiting = queue.waiting > 0.0
    is_taken = ~is_open & is_waiting
    radius = state.radius
    radius = select(~is_open & ~is_waiting & (queue.short > 0.0), 0.3 * radius, radius)
    fresh = chosen(
        state.octant < 8.0, _octant(state.octant, state.axes), _around(axis, radius)
    )
    taken = chosen(is_waiting, list(map(three, later[0])), fresh)
    queue = queue.without_first(is_taken)
    pushed, move = [others[0].directions] * 2, select(is_taken, -1.0, 0.0)
    for other in others:
        is_other = is_open & (other.least < enough)
        queue = queue.with_cell(other, is_other, has_room, is_last)
        is_kept = is_other & has_room
        pushed[0] = chosen(is_kept, other.directions, pushed[0])
        move = select(is_kept, move + 1.0, move)

    # The search ends when the last cell is done and has hardly moved the axis.
    is_over = ~is_open & ~is_waiting
    away = subtract(axis, three(state.middle))
    is_still = dot(away, away) < 0.1 * radius * radius
    ends = is_over & is_last & is_still & (queue.short == 0.0)
    following = DepthState(
        octant=select(is_over & ~is_last, state.octant + 1.0, state.octant),
        axes=list(map(three, state.axes)),
        directions=chosen(is_open, part.directions, taken),
        taken=select(is_open, 0.0, 1.0),
        waiting=queue.waiting,
        depth=depth,
        axis=axis,
        middle=choose(is_over, axis, three(state.middle)),
        radius=radius,
        factor=select(
            is_over & ~is_last & (state.octant > 7.0),
            PRECISION / TOLERANCE,
            GROWTH * state.factor,
        ),
        short=select(is_over, 0.0, queue.short),
        least=queue.least,
        lost=queue.lost,
        going=select(ends, 0.0, 1.0),
        fresh=select(is_fresh, 1.0, 0.0),
    )
    next_cell = OpenCell(part.farthest, negate(part.bound.at), part.bound.divided)
    return DepthStep(following, next_cell, QueueChange(pushed, move))


def _queued(change: QueueChange, later: Sequence[Matrix]) -> list[list[Vector3]]:
    """Return the cells that wait, the last one first, after a step."""
    # A program of its own, cell by cell: the numbers of all cells are many more than
    # registers.
    is_two, is_one, is_taken = change.move > 1.5, change.move > 0.5, change.move < -0.5
    cells = [list(map(three, cell)) for cell in (*change.pushed, *later, later[-1])]
    return [
        chosen(is_two, two, chosen(is_one, one, chosen(is_taken, taken, same)))
        for two, one, same, taken in zip(
            cells, [cells[0], *cells[2:]], cells[2:], cells[3:], strict=False
        )
    ]


def _parts(cell: OpenCell, old: Matrix, new: Measured, extent: Number) -> list[Subcell]:
    """Return the cells that a new direction divides one into, the least one first.

    The new direction takes the place of each of the three in turn; where it is on a
    side, the part between it and the ends of that side is empty.
    """
    # All three are computed, though two are enough where a side is divided: rows of a
    # batch differ in that.
    directions, farthest = list(map(three, old)), list(map(three, cell.farthest))
    parts: list[Subcell] = []
    for k in range(3):
        ends = [new.normal if i == k else d for i, d in enumerate(directions)]
        points = [new.point if i == k else w for i, w in enumerate(farthest)]
        bound = bound_of(ends, points, extent)
        value = select(cell.divided[k] > 0.0, bound.least, math.inf)
        parts.append(Subcell(value, ends, points, bound))
    return in_order(parts)


@final
class Queue(msgspec.Struct, frozen=True):
    """How many cells wait, and what is proven without them."""

    waiting: Number
    lost: Number
    short: Number
    least: Number

    def without_first(self, is_taken: Any) -> Queue:
        """Return the queue without the cell that waited last, if it is taken."""
        waiting = select(is_taken, self.waiting - 1.0, self.waiting)
        return Queue(waiting, self.lost, self.short, self.least)

    def with_cell(
        self, cell: Subcell, is_other: Any, has_room: Any, is_last: Any
    ) -> Queue:
        """Return the queue with a cell in front, if it is to wait and finds room.

        A cell without room is lost, unless it is a part of the last one, which is
        searched again in a smaller form. The depth is proven no farther than the least
        bound of cells that do not wait.
        """
        is_kept = is_other & has_room
        is_lost = is_other & ~has_room
        lost = select(is_lost & ~is_last, 1.0, self.lost)
        short = select(is_lost & is_last, 1.0, self.short)
        least = select(is_kept | is_last, self.least, minimum(self.least, cell.least))
        waiting = select(is_kept, self.waiting + 1.0, self.waiting)
        return Queue(waiting, lost, short, least)


def _around(axis: Vector3, radius: Number) -> list[Vector3]:
    """Return three directions around one."""
    # u and v are across the axis, of length `radius`; the three directions are 120
    # degrees apart on a cone around it whose half angle has that tangent.
    is_x = absolute(axis[0]) < 0.6
    aside = choose(is_x, cross(axis, (1.0, 0.0, 0.0)), cross(axis, (0.0, 1.0, 0.0)))
    u = scale(radius / norm(aside), aside)
    v = cross(axis, u)
    directions: list[Vector3] = []
    for k in range(3):
        angle = 2.0 * math.pi * k / 3.0
        out = add(scale(math.cos(angle), u), scale(math.sin(angle), v))
        directions.append(scale(1.0 / sqrt(1.0 + radius * radius), add(axis, out)))
    return directions


def _octant(number: Number, axes: Any) -> list[Vector3]:
    """Return the directions around an octant, 0 to 7."""
    # The binary digits of the number are the signs of the axes.
    rest, directions = number, list[Vector3]()
    for k in range(3):
        size = float(4 >> k)
        is_other = rest >= size
        rest = select(is_other, rest - size, rest)
        directions.append(scale(select(is_other, -1.0, 1.0), three(axes[k])))
    return directions
