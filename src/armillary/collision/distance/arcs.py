"""Depth of polyhedra with few edges in bodies of revolution: a search of arcs.

Where the width h(d) of A - B is least among directions near by, its boundary bends
less than a ball of that radius, or has a face or a crease (`stationary.py`). A corner
of a box does not bend, and a rim or a side of a cylinder or cone bends along one
direction. So h is least nowhere but on creases, and at the axis of a disc:

- where two creases cross, and at the axis: a list of directions;
- on the crease of the round body, along which that reaches as far everywhere: against
  the part across its axis of a corner of the polyhedron, again a list;
- on the creases of the polyhedron: all directions across an edge. These circles are
  divided into arcs, as all directions are into cells in `depth.py`, by the same bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from armillary.collision.distance.columns import ARCS, PairColumns
from armillary.collision.distance.creases import FLAT, ROUND, unit
from armillary.collision.distance.direction_cell import MARGIN, chosen
from armillary.collision.distance.separation import choose
from armillary.collision.distance.stationary import Pair
from armillary.collision.distance.tolerance import GROWTH, LIMIT, allowed
from armillary.kernel.columns import repeat
from armillary.kernel.stages import Stage
from armillary.spatial.vector import (
    Matrix,
    Number,
    Vector,
    Vector3,
    add,
    cross,
    dot,
    norm,
    scale,
    subtract,
    three,
)
from armillary.trace.functions import by_precision, maximum, minimum, select

__all__ = ["arc_stages", "has_arcs"]

TURNS: Final = 8
"""Arcs that a circle is divided into at first."""

START: Final[Vector3] = (0.38, 0.85, 0.36)
"""A direction that no edge of a model is likely to have."""


def has_arcs(columns: PairColumns) -> bool:
    """Return whether arcs are enough for the shapes of some columns."""
    a, b = map(type, columns.shapes)
    return (a in FLAT and b in ROUND) or (a in ROUND and b in FLAT)


def arc_stages(columns: PairColumns) -> tuple[Stage, ...]:
    """Return stages from `depth` and `axis` to the least width along those creases."""
    pair = ArcSearch(columns)
    numbers: Any = columns.numbers
    begin = columns.stage(pair.begun, **numbers)
    step = columns.stage(pair.step, **numbers)
    return begin, repeat(columns.going, step, limit=LIMIT)


class ArcState(NamedTuple):
    """What the search knows between two steps; see the columns of these names."""

    arc: Matrix
    base: Matrix
    probe: Vector
    turn: Number
    opening: Number
    arcs: Sequence[Matrix]
    waiting: Number
    depth: Number
    axis: Vector
    factor: Number
    least: Number
    going: Number
    fresh: Number


class Arc(NamedTuple):
    """An arc between two directions: its bound, where it is divided, and both ends."""

    least: Number
    rows: list[Vector3]


class ArcSearch:
    """The formulas of two shapes."""

    def __init__(self, columns: PairColumns) -> None:
        """Set the shapes."""
        self._pair = Pair(columns)
        self._is_a = type(columns.shapes[0]) in FLAT

    def begun(
        self, X: Matrix, depth: Number, axis: Vector, a: Vector = (), b: Vector = ()
    ) -> ArcState:
        """Return the columns before the first arc."""
        none = [(0.0, 0.0, 0.0)] * 5
        edge = self._edges(X, a, b)[0]
        return ArcState(
            arc=none,
            base=none[:2],
            probe=_first_of(edge),
            turn=0.0,
            opening=1.0,
            arcs=[none] * ARCS,
            waiting=0.0,
            depth=depth,
            axis=axis,
            factor=1.0,
            least=depth,
            going=1.0,
            fresh=0.0,
        )

    def step(
        self,
        X: Matrix,
        extent: Number,
        state: ArcState,
        a: Vector = (),
        b: Vector = (),
    ) -> ArcState:
        """Divide the arc at a direction, or begin another one, and choose the next."""
        edges = self._edges(X, a, b)
        n = three(state.probe)
        w = self._pair.farthest(X, a, b)(n)
        width = dot(n, w)
        tolerance = allowed(width, state.depth, state.factor, extent)
        is_fresh = width < state.depth - tolerance
        is_less = width < state.depth
        depth = select(is_less, width, state.depth)
        axis = choose(is_less, n, three(state.axis))

        # Both parts of a divided arc; a new one is the second, and the first is empty.
        # The first direction on a circle is the begin of the first arc.
        is_new, turn = state.opening > 0.0, state.turn
        is_first = _begins(turn, len(edges))
        base = list(map(three, state.base))
        _, d_l, w_l, d_r, w_r = map(three, state.arc)
        begin = chosen(is_new, base, [n, w])
        end = chosen(is_new, [n, w], [d_r, w_r])
        left = _bound(d_l, w_l, n, w, extent)
        right = _bound(begin[0], begin[1], end[0], end[1], extent)
        left = Arc(select(is_new, math.inf, left.least), left.rows)
        right = Arc(select(is_new & is_first, math.inf, right.least), right.rows)
        base = chosen(is_new, [n, w], base)
        is_left = left.least < right.least
        near = chosen(is_left, left.rows, right.rows)
        far = chosen(is_left, right.rows, left.rows)
        near_least = select(is_left, left.least, right.least)
        far_least = select(is_left, right.least, left.least)

        # The part with the less bound goes on if it may be better, the other waits.
        enough = depth - tolerance
        is_open = near_least < enough
        is_other = is_open & (far_least < enough)
        is_kept = is_other & (state.waiting < float(ARCS))
        least = select(is_open, state.least, minimum(state.least, near_least))
        least = select(is_kept, least, minimum(least, far_least))
        waits = [list(map(three, arc)) for arc in state.arcs]
        is_taken = ~is_open & (state.waiting > 0.0)
        arc = chosen(is_open, near, waits[0])
        above, behind = [far, *waits[:-1]], [*waits[1:], waits[-1]]
        waits = [
            chosen(is_kept, p, chosen(is_taken, q, r))
            for p, q, r in zip(above, behind, waits, strict=True)
        ]
        waiting = state.waiting
        waiting = select(is_kept, waiting + 1.0, waiting)
        waiting = select(is_taken, waiting - 1.0, waiting)

        # Where nothing waits, the next arc on a circle is begun.
        opens = ~is_open & ~is_taken
        turn = select(opens, turn + 1.0, turn)
        probe = choose(opens, _next_of(edges, base[0], turn), arc[0])
        goes_on = ~opens | (turn < float(len(edges) * (TURNS + 1)))
        return ArcState(
            arc=arc,
            base=base,
            probe=probe,
            turn=turn,
            opening=select(opens, 1.0, 0.0),
            arcs=waits,
            waiting=waiting,
            depth=depth,
            axis=axis,
            factor=GROWTH * state.factor,
            least=minimum(least, depth),
            going=select(goes_on, 1.0, 0.0),
            fresh=select(is_fresh, 1.0, state.fresh),
        )

    def _edges(self, X: Matrix, a: Vector, b: Vector) -> list[Vector3]:
        creases = self._pair.creases(X, a, b)[0 if self._is_a else 1]
        return [crease.axis for crease in creases]


def _first_of(edge: Vector3) -> Vector3:
    return unit(cross(edge, START))


def _next_of(edges: Sequence[Vector3], base: Vector3, turn: Number) -> Vector3:
    """Return the next direction around an edge, or the first one around the next."""
    edge = edges[0]
    for k, other in enumerate(edges[1:], 1):
        edge = choose(turn >= float(k * (TURNS + 1)), other, edge)
    angle = 2.0 * math.pi / TURNS
    turned = add(
        scale(math.cos(angle), base), scale(math.sin(angle), cross(edge, base))
    )
    return choose(_begins(turn, len(edges)), _first_of(edge), turned)


def _begins(turn: Number, count: int) -> Any:
    """Return whether a number is that of the first direction on one of some circles."""
    is_first = turn == 0.0
    for k in range(1, count):
        is_first |= turn == float(k * (TURNS + 1))
    return is_first


def _bound(
    d_l: Vector3, w_l: Vector3, d_r: Vector3, w_r: Vector3, extent: Number
) -> Arc:
    """Return an arc with its bound, which is infinite if the least is at an end."""
    # As on a side of a cell (`direction_cell.py`).
    at_begin, at_end = dot(w_l, d_l), dot(w_r, d_r)
    across = dot(w_l, d_r)
    before, behind = at_begin - dot(w_r, d_l), at_end - across
    change = before + behind
    same = by_precision(change, double=1e-15, single=1e-7) * extent
    is_between = change > same
    t = before / select(is_between, change, 1.0)
    side = subtract(d_r, d_l)
    value = (at_begin + t * (across - at_begin)) / norm(add(d_l, scale(t, side)))
    t = minimum(maximum(t, MARGIN), 1.0 - MARGIN)
    at = unit(add(d_l, scale(t, side)))
    return Arc(select(is_between, value, math.inf), [at, d_l, w_l, d_r, w_r])
