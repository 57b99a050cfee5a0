"""The code of a `LeastWidth`: a polytope inside of a body grows, of one row at a time.

The functions here are compiled once for all pipelines; they know no body. `polytope.py`
states the method.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from armillary.kernel.builder import FunctionBuilder, Operand, Value
from armillary.kernel.machine_type import I1, I64, PTR, VOID, Type
from armillary.kernel.polytope import (
    AXES,
    FACES,
    FULL,
    PROBES,
    ROOM,
    UNPROVEN,
    margins,
)
from armillary.kernel.polytope_growth import (
    FAILED,
    FLAT,
    insert_function,
    start_function,
)
from armillary.kernel.polytope_memory import (
    Growth,
    Point,
    cross,
    dot,
    layout_of,
    less,
    unit,
)

__all__ = ["PolytopeCode", "polytope_bytes"]

TOGETHER: Final = 4
"""Most faces that are looked at together, if there are several lanes.

Of more, most would be seen by the same point. Where there is one lane, it is the lowest
face: a quarter fewer points are looked for.
"""

SCANNED: Final = 8
"""Faces that are compared at once."""

RESTARTS: Final = 2
"""How often a search begins anew where rounding left no polytope."""

COARSER: Final = 1000.0
"""By how much farther above a face points are then that see it."""

LOOKS: Final = (0.03, 1e-3)
"""How far directions of closer looks are from the best one so far, about."""

FOOT_STEPS: Final = 8
"""How many faces of a flat side are looked at for the point of the least width."""

FLAT_SIDE: Final = {64: 1e-14, 32: 1e-6}
"""By what part of the size corners of a flat side may be below it, by bits of reals."""

SPREAD: Final = 4.0
"""The square of by how much farther those are that count."""


def polytope_bytes(scalar: Type) -> int:
    """Return the memory of a search [bytes]."""
    return layout_of(scalar).bytes


class PolytopeCode:
    """The search under construction, in the function of a pipeline."""

    def __init__(self, f: FunctionBuilder, real: Type) -> None:
        """Note the functions that it calls.

        Args:
            f: The function.
            real: The type of columns: a vector with a lane for each direction.
        """
        self.f, self.real = f, real
        self.layout = layout_of(real.scalar)
        for made in (_begin(real.scalar), _advance(real.scalar), _foot(real.scalar)):
            f.needs(made)

    def write(
        self,
        memory: Value,
        given: Sequence[Value],
        columns: tuple[Value, Value],
        run: Callable[[], None],
        source: Value | None = None,
    ) -> list[Value]:
        """Write the search; return depth, axis and least, then what touches.

        Args:
            memory: Of `polytope_bytes`.
            given: The size of numbers, the least width so far, where it is, and below
                which no less is wanted.
            columns: Where directions and points are.
            run: Writes the stages.
            source: Where what points are made of is, if anything; then follows the same
                of the point of the least width, or NaN.
        """
        read = {"point": columns[1]} | ({"source": source} if source else {})
        f, real, layout = self.f, self.real, self.layout
        together = f.constant(I64, min(real.lanes, TOGETHER))
        f.call("@polytope_begin", VOID, memory, *given, together)
        count = f.variable(I64, PROBES)
        with f.forever() as rounds:
            with f.loop(count.get(), step=real.lanes) as k:
                for axis in range(3):
                    place = layout.address(memory, "direction", k + axis * ROOM)
                    value = f.load(real, place, align=real.scalar.bytes)
                    f.store(value, f.element(columns[0], real, axis))
                run()
                for name, column in read.items():
                    for axis in range(3):
                        value = f.load(real, f.element(column, real, axis))
                        place = layout.address(memory, name, k + axis * ROOM)
                        f.store(value, place, align=real.scalar.bytes)
            count.set(f.call("@polytope_advance", I64, memory, count.get()))
            rounds.leave(count.get().equals(0))
        if source:
            f.call("@polytope_foot", VOID, memory)
        touch = range(3) if source else ()
        return [
            layout.load(memory, "depth"),
            *(layout.load(memory, "axis", k) for k in range(3)),
            layout.load(memory, "least"),
            *(layout.load(memory, "touch", k) for k in touch),
        ]


def _begin(scalar: Type) -> FunctionBuilder:
    """Return @polytope_begin, which notes what is given: the first directions."""
    names = ("extent", "depth", "axis0", "axis1", "axis2", "wanted")
    more = {"memory": PTR, **dict.fromkeys(names, scalar), "together": I64}
    f = FunctionBuilder("polytope_begin", VOID, hints=("noinline",), more=more)
    f.needs(_restart(scalar))
    g = Growth(f, scalar)
    for name in ("extent", "depth", "wanted", "together"):
        g.put(f[name], name)
    for k, name in enumerate(names[2:5]):
        g.put(f[name], "axis", k)
    outside, *_ = margins(scalar.bits)
    g.put(f["extent"] * outside, "outside")
    for name in ("restarts", "looks"):
        g.put(0, name)
    g.put(-2.0, "cosine")
    f.call("@polytope_restart", VOID, g.memory)
    f.ret()
    return f


def _restart(scalar: Type) -> FunctionBuilder:
    """Return @polytope_restart(memory): the first directions, and no polytope."""
    f = FunctionBuilder("polytope_restart", VOID, hints=("noinline",), memory=PTR)
    g = Growth(f, scalar)
    for name in ("count", "faces", "frees", "tries"):
        g.put(0, name)
    g.put(-1, "best")
    g.put(math.inf, "least")
    # Faces are compared several at once, also behind the last one.
    wide = scalar.wide(SCANNED)
    with f.loop(FACES, step=SCANNED) as k:
        place = g.layout.address(g.memory, "key", k)
        f.store(f.constant(wide, math.inf), place, align=scalar.bytes)
    # Along and against some axes, and the best one so far; the rest repeats these.
    own = [g.get("axis", k) for k in range(3)]
    around: list[list[Operand]] = [list(axis) for axis in AXES]
    pair: list[list[Operand]] = [[-each for each in own], list(own)]
    looks = g.get("looks")
    with f.when(looks > 0):
        # Of a closer look, six directions around the best one.
        spread = looks.equals(1).select(f.constant(scalar, LOOKS[0]), LOOKS[1])
        for axis, value in enumerate(own):
            g.put(value, "middle", axis)
        g.put(1.0 / (spread * spread * SPREAD + 1.0).sqrt(), "cosine")
        close = [[x + spread * y for x, y in zip(own, a, strict=True)] for a in AXES]
        _put_directions(g, [*map(unit, close), *pair])
    with f.otherwise():
        for axis, value in enumerate(own):
            g.put(value, "middle", axis)
        _put_directions(g, [*around, *pair])
    f.ret()
    return f


def _put_directions(g: Growth, directions: Sequence[Sequence[Operand]]) -> None:
    """Write the first directions, over and over."""
    assert len(directions) == PROBES
    for k in range(ROOM):
        for axis, value in enumerate(directions[k % PROBES]):
            g.put(value, "direction", k + axis * ROOM)


def _advance(scalar: Type) -> FunctionBuilder:
    """Return @polytope_advance(memory, count): how many directions come next.

    It takes the points that were found in `count` directions, and chooses faces; 0 if
    the least width is known.
    """
    more = {"memory": PTR, "count": I64}
    f = FunctionBuilder("polytope_advance", I64, hints=("noinline",), more=more)
    f.needs(start_function(scalar))
    f.needs(insert_function(scalar))
    f.needs(_again(scalar))
    g = Growth(f, scalar)
    count, memory = f["count"], f["memory"]
    with f.loop(count) as k:
        normal = g.vector("direction", k)
        width = dot(normal, g.vector("point", k))
        with f.when(width < g.get("depth")):
            g.put(width, "depth")
            for axis, value in enumerate(normal):
                g.put(value, "axis", axis)
            is_across = g.get("faces") > 0
            g.put(is_across.select(g.get("face", k), -1), "best")
    with f.when(g.get("depth") < g.get("wanted")):
        g.put(0.0, "least")  # no more is wanted, nor proven
        f.ret(f.constant(I64, 0))
    with f.when(g.get("faces").equals(0)):
        # The first points: a tetrahedron of some, then the others; or other directions
        # where all are in a plane.
        more_directions = f.call("@polytope_start", I64, memory, count)
        with f.when(more_directions > 0):
            f.ret(more_directions)
        with f.when(more_directions.equals(FLAT)):
            f.ret(_ended(g))
        with f.when(more_directions.equals(FAILED)):
            f.ret(f.call("@polytope_again", I64, memory))
    with f.otherwise():
        outside = g.get("outside")
        with f.loop(count) as k:
            face, point = g.get("face", k), g.vector("point", k)
            # Insertions of other points may have removed it, and used its place.
            height = g.height(face)
            is_there = g.get("key", face).equals(math.inf) & (height < math.inf)
            with f.when(is_there):
                width = dot(g.vector("plane", face), point)
                may_be_less = height < g.enough()
                is_outside = width - height > outside
                with f.when(may_be_less & is_outside):
                    status = f.call("@polytope_insert", I64, memory, k, face)
                    _end_unless_inserted(g, status)
                with f.otherwise():
                    g.lower(height, "least")
    f.ret(_choose(g))
    return f


def _end_unless_inserted(g: Growth, status: Value) -> None:
    """Return from `advance` where a point was not inserted."""
    f = g.f
    with f.when(status.equals(UNPROVEN)):
        f.ret(f.call("@polytope_again", I64, g.memory))
    with f.when(status.equals(FULL)):
        # All faces that are left bound the width, those that were chosen, too.
        with f.loop(f["count"]) as k:
            g.lower(g.height(g.get("face", k)), "least")
        with f.loop(g.get("faces")) as face:
            g.lower(g.get("key", face), "least")
        # Many widths are about as small: only a closer look finds the least one.
        looks = g.get("looks")
        with f.when(looks.equals(len(LOOKS))):
            f.ret(_ended(g))
        with f.when(looks.equals(0)):
            g.put(g.get("least"), "proven")
        g.put(looks + 1, "looks")
        f.call("@polytope_restart", VOID, g.memory)
        f.ret(f.constant(I64, PROBES))


def _ended(g: Growth) -> Value:
    """Note what is proven; return that no directions follow."""
    with g.f.when(g.get("looks") > 0):
        g.put(g.get("proven"), "least")
    g.lower(g.get("depth"), "least")
    return g.f.constant(I64, 0)


def _again(scalar: Type) -> FunctionBuilder:
    """Return @polytope_again(memory): how many directions come after a failure."""
    f = FunctionBuilder("polytope_again", I64, hints=("noinline",), memory=PTR)
    f.needs(_restart(scalar))
    g = Growth(f, scalar)
    restarts = g.get("restarts")
    with f.when(restarts < RESTARTS):
        g.put(restarts + 1, "restarts")
        g.put(g.get("outside") * COARSER, "outside")
        f.call("@polytope_restart", VOID, g.memory)
        f.ret(f.constant(I64, PROBES))
    g.put(0.0, "least")
    f.ret(_ended(g))
    return f


def _choose(g: Growth) -> Value:
    """Write the choice of the lowest faces; return how many there are."""
    f, scalar = g.f, g.scalar
    wide, places = scalar.wide(SCANNED), I64.wide(SCANNED)
    chosen = f.variable(I64, 0)
    enough = g.enough()
    order = Value(
        f,
        "<" + ", ".join(f"i64 {k}" for k in range(SCANNED)) + ">",
        places,
    )
    with f.forever() as more:
        more.leave(chosen.get() >= g.get("together"))
        lowest, at = f.variable(wide, math.inf), f.variable(places, 0)
        with f.loop(g.get("faces"), step=SCANNED) as first:
            place = g.layout.address(g.memory, "key", first)
            keys = f.load(wide, place, align=scalar.bytes)
            is_lower = keys < lowest.get()
            lowest.set(is_lower.select(keys, lowest.get()))
            numbers = order + first.splat(SCANNED)
            at.set(is_lower.select(numbers, at.get()))
        best, face = _lowest(lowest.get(), at.get())
        # Of the faces that are left, the lowest bounds the depth.
        with f.when(~(best < enough)):
            with f.when(chosen.get().equals(0)):
                g.lower(best, "least")
                _ended(g)
            more.leave()
        k = chosen.get()
        g.put(math.inf, "key", face)
        g.put(face, "face", k)
        g.put_vector(g.vector("plane", face), "direction", k)
        chosen.set(k + 1)
    # Lanes without a face look where the first one does.
    with f.when(chosen.get() > 0):
        zero = f.constant(I64, 0)
        with f.loop(g.get("together"), chosen.get()) as k:
            g.put_vector(g.vector("direction", zero), "direction", k)
    return chosen.get()


def _lowest(values: Value, numbers: Value) -> tuple[Value, Value]:
    """Return the least value of a vector, and its number."""
    while values.type.lanes > 2:
        half = values.type.lanes // 2
        low, high = range(half), range(half, 2 * half)
        below, above = (values.shuffled(values, lanes) for lanes in (low, high))
        first, other = (numbers.shuffled(numbers, lanes) for lanes in (low, high))
        is_lower = above < below
        values = is_lower.select(above, below)
        numbers = is_lower.select(other, first)
    is_lower = values.lane(1) < values.lane(0)
    pairs = [(each.lane(1), each.lane(0)) for each in (values, numbers)]
    value, number = (is_lower.select(*pair) for pair in pairs)
    return value, number


def _foot(scalar: Type) -> FunctionBuilder:
    """Return @polytope_foot(memory): what the point of the least width is made of.

    With corners c_k of its face and the foot p = h d of the origin, r_k = c_k - p and
    n = (c_1 - c_0) x (c_2 - c_0), the weights of corners are n . (r_1 x r_2) and so on,
    over their sum n . n; the same sum of the sources of corners is left in `touch`. A
    flat side has several faces: where a weight is below 0, p is across the side of the
    face that is opposite.
    """
    f = FunctionBuilder("polytope_foot", VOID, hints=("noinline",), memory=PTR)
    g = Growth(f, scalar)
    tolerance = FLAT_SIDE[scalar.bits]
    axis = [g.get("axis", k) for k in range(3)]
    depth, small = g.get("depth"), g.get("extent") * tolerance
    foot = [each * depth for each in axis]
    for k in range(3):
        g.put(math.nan, "touch", k)
    face, steps = f.variable(I64, g.get("best")), f.variable(I64, 0)
    with f.forever() as along:
        along.leave((face.get() < 0) | (steps.get() >= FOOT_STEPS))
        numbers = [g.get("corners", face.get() * 3 + k) for k in range(3)]
        corners = [g.vector("corner", number) for number in numbers]
        for corner in corners:
            along.leave(~(dot(axis, corner) >= depth - small))
        normal = cross(less(corners[1], corners[0]), less(corners[2], corners[0]))
        arms = [less(corner, foot) for corner in corners]
        weights = [
            dot(normal, cross(arms[(k + 1) % 3], arms[(k + 2) % 3])) for k in range(3)
        ]
        # Where one is below 0 by rounding, the foot is on a side.
        least = dot(normal, normal) * -tolerance
        is_over = f.constant(I1, 1)
        for weight in weights:
            is_over = is_over & (weight > least)
        with f.when(is_over):
            positive = [(weight > 0.0).select(weight, 0.0) for weight in weights]
            total = positive[0] + positive[1] + positive[2]
            parts = [weight / total for weight in positive]

            def mean(vectors: Sequence[Point]) -> list[Value]:
                """Return the mean of vectors with these weights."""
                return [dot(parts, [v[k] for v in vectors]) for k in range(3)]

            # Of slivers the weights have few digits.
            off = less(mean(corners), foot)
            is_right = dot(off, off) <= small * small * 100.0
            sources = mean([g.vector("origin", number) for number in numbers])
            for k, value in enumerate(sources):
                g.put(is_right.select(value, math.nan), "touch", k)
            f.ret()
        is_first = (weights[0] < weights[1]) & (weights[0] < weights[2])
        zero, one = f.constant(I64, 0), f.constant(I64, 1)
        side = is_first.select(one, (weights[1] < weights[2]).select(one * 2, zero))
        face.set(g.get("beside", face.get() * 3 + side))
        steps.set(steps.get() + 1)
    f.ret()
    return f
