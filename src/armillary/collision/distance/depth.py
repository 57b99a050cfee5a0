"""Depth of overlapping convex bodies: the origin is inside their difference A - B.

The depth is the least width h(d) over unit directions d, the distance from the origin
to the plane across d that bounds A - B. It is found by branch and bound. Directions are
divided into cells between three directions d_k, of which the farthest points w_k of
A - B are known. In a cell h(d) >= max w_k . d, whose least value is where two of
these are equal on a side of the cell, or all three inside. If it is not below the least
width so far, the cell is done; else h is computed there, and the cell is divided
there.

The depth is therefore the least one, and what it may differ by is known. For polytopes
the search ends with the exact facet: near its normal, h is the maximum of a few
w_k . d.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from armillary.collision.distance.direction_cell import (
    Part,
    bound_of,
    chosen,
    in_order,
)
from armillary.collision.distance.gjk import aim, difference
from armillary.collision.distance.separation import choose, direction
from armillary.collision.distance.support import support_of
from armillary.kernel.pipeline import Each, Stage, When, While
from armillary.kernel.tables import Table, reals
from armillary.model.primitive import Primitive
from armillary.spatial.vector import (
    Number,
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
from armillary.trace import trace
from armillary.trace.functions import (
    absolute,
    by_precision,
    maximum,
    minimum,
    select,
    sqrt,
)

__all__ = ["RECORDS", "TABLES", "depth_stages"]

LIMIT: Final = 4000
"""Most directions; polytopes of few corners take about 30, round bodies 150."""

ROOM: Final = 16
"""Cells that can wait."""

TOLERANCE: Final = 1e-9
"""Of the size: cells that cannot be better by more are left."""

GROWTH: Final = 1.005
"""Of the tolerance with each direction: bodies may be as deep all around an axis."""

PRECISION: Final = 1e-10
"""The same for the last cell, around the best direction."""

RADIUS: Final = 0.05
"""Of that cell, at first."""

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

PROBE_TABLE: Final = Table("probes", (reals("from_last"), reals("along", (3,))))


def _even(count: int) -> list[Vector3]:
    """Return directions that are about evenly apart, on a spiral."""
    found: list[Vector3] = []
    for k in range(count):
        z, turn = 1.0 - (2.0 * k + 1.0) / count, k * math.pi * (3.0 - math.sqrt(5.0))
        out = math.sqrt(1.0 - z * z)
        found.append((out * math.cos(turn), out * math.sin(turn), z))
    return found


PROBES: Final[Mapping[str, Sequence[Any]]] = {
    "from_last": [1.0, *[0.0] * 64],
    "along": [(0.0, 0.0, 0.0), *_even(64)],
}
"""Directions that are looked at first: where the distance ended, and all around."""

SEARCH: Final = {
    "octant": (),  # how many were taken, then one more for the last cell
    "axes": (3, 3),  # around the first one, with signs
    "directions": (3, 3),  # of the cell, of length 1
    "taken": (),  # 1 if the cell was taken from those that wait
    "later": (ROOM, 3, 3),  # directions of cells that wait, the last one first
    "waiting": (),  # how many
    "depth": (),
    "axis": (3,),
    "middle": (3,),  # of the last cell
    "radius": (),
    "factor": (),  # of the tolerance
    "short": (),  # 1 if there was no room for a part of the last cell
    "least": (),  # the depth is proven not to be below
    "lost": (),  # 1 if there was no room for a cell
    "going": (),
}
CELL: Final = {
    "farthest": (3, 3),  # points of A - B along the directions of the cell
    "against": (3,),  # minus the direction in which the cell is divided
    "divided": (3,),  # 1 for those that are replaced there
}
CORNER_TABLE: Final = Table("corners", (reals("corner"),))

TABLES: Final = (PROBE_TABLE, CORNER_TABLE)
"""What the stages read, whatever the shapes."""

RECORDS: Final[Mapping[str, Mapping[str, Sequence[Any]]]] = {
    "probes": PROBES,
    "corners": {"corner": [0.0, 1.0, 2.0]},
}
"""What is in those tables."""


def depth_stages(a: Primitive, b: Primitive) -> tuple[Stage, ...]:
    """Return stages from what `gjk_stages` left to `depth`, `axis` and `least`.

    A depth below 0 is minus the distance of bodies that hardly touch.
    """
    nothing = trace(
        _nothing,
        name="no_depth",
        outputs=("depth", "axis", "least", "lost", "tries"),
        last=(3,),
    )
    probe = trace(
        _probe,
        name="probe",
        outputs=("against",),
        last=(3,),
        from_last=(),
        along=(3,),
    )
    place = {"X": (3, 4), "point_a": (3,), "point_b": (3,), "extent": ()}
    found = {"against": (3,), "depth": (), "axis": (3,)}
    width = trace(_width, name="width", outputs=("depth", "axis"), **place, **found)
    begin = trace(
        _begin,
        name="octants",
        outputs=tuple(SEARCH | CELL),
        tries=(),
        depth=(),
        axis=(3,),
    )
    turn = trace(
        _corner, name="corner", outputs=("against",), directions=(3, 3), corner=()
    )
    reach = trace(
        _reach,
        name="reach",
        outputs=("farthest",),
        corner=(),
        farthest=(3, 3),
        **place,
    )
    cell = {"directions": (3, 3), "farthest": (3, 3), "extent": ()}
    bound = trace(_bound, name="bound", outputs=("against", "divided"), **cell)
    step = trace(
        _step, name="divide", outputs=tuple(SEARCH | CELL), **place, **CELL, **SEARCH
    )
    farthest = aim("against"), *support_of(a, "a"), *support_of(b, "b")
    taken = Each("corners", (turn, *farthest, reach)), bound
    search = While("going", (When("taken", taken), *farthest, step), LIMIT)
    behind = {"axis": (3,), "depth": (), "lost": ()}
    other = trace(
        _other, name="other_side", outputs=("axis", "depth", "lost"), **place, **behind
    )
    mirror = aim("axis"), *support_of(a, "a"), *support_of(b, "b"), other
    proven = {"depth": (), "least": (), "lost": (), "octant": (), "tries": ()}
    check = trace(_check, name="check", outputs=("least", "tries"), **proven)
    return (
        nothing,
        Each("probes", (probe, *farthest, width)),
        While("tries", (begin, search, *mirror, check), len(FRAMES)),
    )


def _nothing(last: Any) -> Any:
    return math.inf, three(last), 0.0, 0.0, 1.0


def _probe(last: Any, from_last: Any, along: Any) -> Any:
    outward = direction(negate(three(last)), 0.0, FRAMES[0][0])
    return negate(choose(from_last > 0.0, outward, three(along)))


def _width(X: Any, point_a: Any, point_b: Any, extent: Any, *columns: Any) -> Any:
    against, depth, axis = columns
    normal = negate(three(against))
    width = dot(normal, difference(X, point_a, point_b))
    is_less = width < depth - _tiny(width, extent)
    return select(is_less, width, depth), choose(is_less, normal, three(axis))


def _tiny(width: Number, extent: Number) -> Number:
    return by_precision(width, double=1e-13, single=1e-6) * extent


def _begin(tries: Any, depth: Any, axis: Any) -> Any:
    """Return the columns before the first cell."""
    zero = (0.0, 0.0, 0.0)
    none = [zero] * 3
    axes = list(FRAMES[0])
    for k, frame in enumerate(FRAMES[1:]):
        axes = chosen(tries == k + 2.0, frame, axes)
    axes = [
        scale(select(dot(three(axis), each) < 0.0, -1.0, 1.0), each) for each in axes
    ]
    search = (
        1.0,
        axes,
        axes,
        1.0,
        [none] * ROOM,
        0.0,
        depth,
        axis,
        axis,
        RADIUS,
        1.0,
        0.0,
        depth,
        0.0,
        1.0,
    )
    return *search, none, negate(three(axis)), zero


def _corner(directions: Any, corner: Any) -> Any:
    found = three(directions[0])
    for k in (1, 2):
        found = choose(corner == float(k), three(directions[k]), found)
    return negate(found)


def _reach(corner: Any, farthest: Any, X: Any, *places: Any) -> Any:
    w = difference(X, *places[:2])
    return [
        choose(corner == float(k), w, three(point)) for k, point in enumerate(farthest)
    ]


def _bound(directions: Any, farthest: Any, extent: Any) -> Any:
    cell = [three(each) for each in directions], [three(each) for each in farthest]
    bound = bound_of(*cell, extent)
    return negate(bound.at), bound.divided


def _step(X: Any, point_a: Any, point_b: Any, extent: Any, *columns: Any) -> Any:
    """Divide the cell by the direction of a new point, and choose the next cell."""
    old_farthest, against, divided, octant, axes, old_directions, *rest = columns
    _, old_later, waiting, depth, axis, middle, radius, factor, *ends = rest
    short, least, lost, _ = ends
    normal, w = negate(three(against)), difference(X, point_a, point_b)
    width = dot(normal, w)
    tiny = _tiny(width, extent)
    is_less = width < depth - tiny
    depth, axis = select(is_less, width, depth), choose(is_less, normal, three(axis))

    directions = [three(each) for each in old_directions]
    farthest = [three(each) for each in old_farthest]
    parts: list[Part] = []
    for k in range(3):
        ends = [normal if i == k else each for i, each in enumerate(directions)]
        corners = [w if i == k else each for i, each in enumerate(farthest)]
        bound = bound_of(ends, corners, extent)
        value = select(divided[k] > 0.0, bound.least, math.inf)
        parts.append(Part(value, ends, corners, bound))
    part, *others = in_order(parts)
    is_last = octant > 8.0
    # A shallow depth is to be as exact for its size.
    precise = by_precision(width, double=PRECISION, single=1e-5) * extent
    shallow = minimum(TOLERANCE * extent, 1e-3 * depth)
    allowed = maximum(factor * shallow, precise)
    enough = depth - allowed
    is_open = part.least < enough
    least = select(is_open | is_last, least, minimum(least, part.least))

    # Other parts wait; if this one is done, take a cell that waits, or an octant.
    later = [[three(each) for each in cell] for cell in old_later]
    has_room = waiting < ROOM - 1.0
    is_waiting = waiting > 0.0
    is_taken = ~is_open & is_waiting
    radius = select(~is_open & ~is_waiting & (short > 0.0), 0.3 * radius, radius)
    fresh = chosen(octant < 8.0, _octant(octant, axes), _around(axis, radius))
    taken = chosen(is_waiting, later[0], fresh)
    above = [later[1:] + later[-1:], later]
    later = [chosen(is_taken, p, q) for p, q in zip(*above, strict=True)]
    waiting = select(is_taken, waiting - 1.0, waiting)
    for other in others:
        is_other = is_open & (other.least < enough)
        is_kept = is_other & has_room
        is_lost = is_other & ~has_room
        lost = select(is_lost & ~is_last, 1.0, lost)
        short = select(is_lost & is_last, 1.0, short)
        least = select(is_kept | is_last, least, minimum(least, other.least))
        above = [other.directions, *later[:-1]]
        later = [chosen(is_kept, p, q) for p, q in zip(above, later, strict=True)]
        waiting = select(is_kept, waiting + 1.0, waiting)
    is_over = ~is_open & ~is_waiting
    away = subtract(axis, three(middle))
    is_still = dot(away, away) < 0.1 * radius * radius
    goes_on = ~(is_over & is_last & is_still & (short == 0.0))
    search = (
        select(is_over & ~is_last, octant + 1.0, octant),
        [three(each) for each in axes],
        chosen(is_open, part.directions, taken),
        select(is_open, 0.0, 1.0),
        later,
        waiting,
        depth,
        axis,
        choose(is_over, axis, three(middle)),
        radius,
        select(
            is_over & ~is_last & (octant > 7.0), PRECISION / TOLERANCE, GROWTH * factor
        ),
        select(is_over, 0.0, short),
        least,
        lost,
        select(goes_on, 1.0, 0.0),
    )
    return *search, part.farthest, negate(part.bound.at), part.bound.divided


def _other(X: Any, point_a: Any, point_b: Any, extent: Any, *columns: Any) -> Any:
    """Look against the best direction: nearly concentric bodies are as deep there."""
    axis, depth, lost = columns
    normal = negate(three(axis))
    width = dot(normal, difference(X, point_a, point_b))
    is_less = width < depth - _tiny(width, extent)
    return (
        choose(is_less, normal, three(axis)),
        select(is_less, width, depth),
        select(is_less, 1.0, lost),
    )


def _check(depth: Any, least: Any, lost: Any, octant: Any, tries: Any) -> Any:
    """Return what is proven, and the number of the next search if one is needed."""
    is_whole = octant > 8.0
    least = minimum(select(is_whole, least, 0.0), depth)
    return least, select(is_whole & (lost > 0.0), tries + 1.0, 0.0)


def _around(axis: Vector3, radius: Number) -> list[Vector3]:
    """Return three directions around one."""
    is_x = absolute(axis[0]) < 0.6
    aside = choose(is_x, cross(axis, (1.0, 0.0, 0.0)), cross(axis, (0.0, 1.0, 0.0)))
    u = scale(radius / norm(aside), aside)
    v = cross(axis, u)
    found: list[Vector3] = []
    for k in range(3):
        angle = 2.0 * math.pi * k / 3.0
        out = add(scale(math.cos(angle), u), scale(math.sin(angle), v))
        found.append(scale(1.0 / sqrt(1.0 + radius * radius), add(axis, out)))
    return found


def _octant(number: Number, axes: Any) -> list[Vector3]:
    """Return the directions around an octant, 0 to 7."""
    rest, directions = number, list[Vector3]()
    for k in range(3):
        size = float(4 >> k)
        is_other = rest >= size
        rest = select(is_other, rest - size, rest)
        directions.append(scale(select(is_other, -1.0, 1.0), three(axes[k])))
    return directions
