"""The code of a `LeastWidth`: a polytope inside of a body grows, of one row at a time.

The functions here are compiled once for all pipelines; they know no body. `polytope.py`
states the method.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from armillary.kernel.builder import FunctionBuilder, Operand, Value
from armillary.kernel.machine_type import I64, PTR, VOID, Type
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
from armillary.kernel.polytope_memory import Growth, dot, layout_of, unit

__all__ = ["PolytopeCode", "polytope_bytes"]

TOGETHER: Final = 4
"""Most faces that are looked at together, whatever the lanes: so results are the same.

Of more, most would be seen by the same point.
"""

SCANNED: Final = 8
"""Faces that are compared at once."""

RESTARTS: Final = 2
"""How often a search begins anew where rounding left no polytope."""

COARSER: Final = 1000.0
"""By how much farther above a face points are then that see it."""

LOOKS: Final = (0.03, 1e-3)
"""How far directions of closer looks are from the best one so far, about."""

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
        for made in (_begin(real.scalar), _advance(real.scalar)):
            f.needs(made)

    def write(
        self,
        memory: Value,
        given: Sequence[Value],
        columns: tuple[Value, Value],
        run: Callable[[], None],
    ) -> list[Value]:
        """Write the search; return depth, axis and least.

        Args:
            memory: Of `polytope_bytes`.
            given: The size of numbers, the least width so far, and where it is.
            columns: Where directions and points are.
            run: Writes the stages.
        """
        f, real, layout = self.f, self.real, self.layout
        f.call("@polytope_begin", VOID, memory, *given)
        count = f.variable(I64, PROBES)
        with f.forever() as rounds:
            with f.loop(count.get(), step=real.lanes) as k:
                for axis in range(3):
                    place = layout.address(memory, "direction", k + axis * ROOM)
                    value = f.load(real, place, align=real.scalar.bytes)
                    f.store(value, f.element(columns[0], real, axis))
                run()
                for axis in range(3):
                    value = f.load(real, f.element(columns[1], real, axis))
                    place = layout.address(memory, "point", k + axis * ROOM)
                    f.store(value, place, align=real.scalar.bytes)
            count.set(f.call("@polytope_advance", I64, memory, count.get()))
            rounds.leave(count.get().equals(0))
        return [
            layout.load(memory, "depth"),
            *(layout.load(memory, "axis", k) for k in range(3)),
            layout.load(memory, "least"),
        ]


def _begin(scalar: Type) -> FunctionBuilder:
    """Return @polytope_begin(memory, extent, depth, axis): the first directions."""
    names = ("extent", "depth", "axis0", "axis1", "axis2")
    more = {"memory": PTR, **dict.fromkeys(names, scalar)}
    f = FunctionBuilder("polytope_begin", VOID, hints=("noinline",), more=more)
    f.needs(_restart(scalar))
    g = Growth(f, scalar)
    for name in ("extent", "depth"):
        g.put(f[name], name)
    for k, name in enumerate(names[2:]):
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
                    status = f.call("@polytope_insert", I64, memory, *point, face)
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
        more.leave(chosen.get() >= TOGETHER)
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
        with f.loop(TOGETHER, chosen.get()) as k:
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
