"""The code of a `LeastWidth`: a polytope inside of a body grows, of one row at a time.

The functions here are compiled once for all pipelines; they know no body. `polytope.py`
states the method.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from armillary.kernel.builder import FunctionBuilder, Operand, Value
from armillary.kernel.machine_type import I1, I16, I64, PTR, VOID, Type
from armillary.kernel.memory import Struct
from armillary.kernel.polytope import (
    AXES,
    FACES,
    FULL,
    POINTS,
    PROBES,
    ROOM,
    UNPROVEN,
    margins,
)

__all__ = ["PolytopeCode", "polytope_bytes"]

SCANNED: Final = 8
"""Faces that are compared at once."""

TRIES: Final = 3
"""Sets of directions that are looked at before a body counts as flat."""

FLAT: Final = -1
"""The body is flat."""

FAILED: Final = -2
"""The first points are no polytope."""

RESTARTS: Final = 2
"""How often a search begins anew where rounding left no polytope."""

COARSER: Final = 1000.0
"""By how much farther above a face points are then that see it."""

LOOKS: Final = (0.03, 1e-3)
"""How far directions of closer looks are from the best one so far, about."""

SPREAD: Final = 4.0
"""The square of by how much farther those are that count."""

Point = Sequence[Value]


def _layout(scalar: Type) -> Struct:
    """Return how the memory of a search is laid out."""
    return Struct.of(
        # Directions that are looked at next, and the farthest points there: first all
        # first coordinates.
        direction=(scalar, 3 * ROOM),
        point=(scalar, 3 * ROOM),
        face=(I64, ROOM),  # that each direction is across
        # The polytope. Faces that are gone have an infinite height; the key of one
        # that is to be looked at is its height, of others it is infinite.
        corner=(scalar, 3 * POINTS),
        normal=(scalar, 3 * FACES),
        height=(scalar, FACES),
        key=(scalar, FACES),
        corners=(I16, 3 * FACES),  # of faces, against the clock as seen from outside
        beside=(I16, 3 * FACES),  # the face across the side that begins at a corner
        # What an insertion works with: faces that are seen, then the sides around
        # them: where these begin, end, the face behind, and the new face.
        seen=(I16, FACES),
        begins=(I16, FACES),
        ends=(I16, FACES),
        behind=(I16, FACES),
        place=(I16, FACES),
        leaving=(I16, POINTS),  # the side that begins at a corner
        free=(I16, FACES),
        count=(I64, 1),
        faces=(I64, 1),
        frees=(I64, 1),
        tries=(I64, 1),
        # The least width, where it is, and what is proven.
        depth=(scalar, 1),
        axis=(scalar, 3),
        least=(scalar, 1),
        extent=(scalar, 1),
        inside=(scalar, 3),  # a point in the first tetrahedron
        outside=(scalar, 1),  # how far a point is above a face that it sees
        restarts=(I64, 1),
        # Where only faces across directions near one are looked at: how often that was
        # done, the direction, its least cosine, and what was proven before.
        looks=(I64, 1),
        middle=(scalar, 3),
        cosine=(scalar, 1),
        proven=(scalar, 1),
    )


def polytope_bytes(scalar: Type) -> int:
    """Return the memory of a search [bytes]."""
    return _layout(scalar).bytes


class PolytopeCode:
    """The search under construction, in the function of a pipeline."""

    def __init__(self, f: FunctionBuilder, real: Type) -> None:
        """Note the functions that it calls.

        Args:
            f: The function.
            real: The type of columns: a vector with a lane for each direction.
        """
        self.f, self.real = f, real
        self.layout = _layout(real.scalar)
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
        most = f.constant(I64, min(real.lanes, 4))
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
            count.set(f.call("@polytope_advance", I64, memory, count.get(), most))
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
    g = _Growth(f, scalar)
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


class _Growth:
    """A function on the memory of a search, under construction."""

    def __init__(self, f: FunctionBuilder, scalar: Type) -> None:
        self.f, self.scalar = f, scalar
        self.layout, self.memory = _layout(scalar), f["memory"]

    def get(self, field: str, index: Operand = 0) -> Value:
        """Return a number; of whole numbers one of 64 bits."""
        value = self.layout.load(self.memory, field, index)
        return value.to(I64, "sext") if value.type == I16 else value

    def put(self, value: Operand, field: str, index: Operand = 0) -> None:
        """Write a number."""
        if isinstance(value, Value) and self.layout.kinds[field] == I16:
            value = value.to(I16, "trunc")
        self.layout.store(value, self.memory, field, index)

    def vector(self, field: str, index: Value, size: int) -> list[Value]:
        """Return a vector of a field that has `size` numbers for each coordinate."""
        return [self.get(field, index + axis * size) for axis in range(3)]

    def put_vector(
        self, vector: Sequence[Operand], field: str, index: Value, size: int
    ) -> None:
        """Write a vector."""
        for axis, value in enumerate(vector):
            self.put(value, field, index + axis * size)

    def enough(self) -> Value:
        """Return the height from which on faces need not be looked at."""
        extent = self.get("extent")
        tolerance, precise = (extent * part for part in margins(self.scalar.bits)[1:])
        depth = self.get("depth")
        shallow = depth * 1e-3
        allowed = (shallow < tolerance).select(shallow, tolerance)
        return depth - (allowed > precise).select(allowed, precise)

    def lower(self, value: Value, field: str) -> None:
        """Take a smaller number."""
        old = self.get(field)
        self.put((value < old).select(value, old), field)


def _restart(scalar: Type) -> FunctionBuilder:
    """Return @polytope_restart(memory): the first directions, and no polytope."""
    f = FunctionBuilder("polytope_restart", VOID, hints=("noinline",), memory=PTR)
    g = _Growth(f, scalar)
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
        _put_directions(g, [*map(_unit, close), *pair])
    with f.otherwise():
        for axis, value in enumerate(own):
            g.put(value, "middle", axis)
        _put_directions(g, [*around, *pair])
    f.ret()
    return f


def _put_directions(g: _Growth, directions: Sequence[Sequence[Operand]]) -> None:
    """Write the first directions, over and over."""
    assert len(directions) == PROBES
    for k in range(ROOM):
        for axis, value in enumerate(directions[k % PROBES]):
            g.put(value, "direction", k + axis * ROOM)


def _unit(a: Point) -> list[Value]:
    length = _dot(a, a).sqrt()
    return [each / length for each in a]


def _dot(a: Point, b: Point) -> Value:
    total = a[0].contracted("fmul", b[0])
    for x, y in zip(a[1:], b[1:], strict=True):
        total = x.contracted("fmul", y).contracted("fadd", total)
    return total


def _less(a: Point, b: Point) -> list[Value]:
    return [x - y for x, y in zip(a, b, strict=True)]


def _cross(a: Point, b: Point) -> list[Value]:
    return [
        a[i].contracted("fmul", b[j]).contracted("fsub", a[j].contracted("fmul", b[i]))
        for i, j in ((1, 2), (2, 0), (0, 1))
    ]


def _advance(scalar: Type) -> FunctionBuilder:
    """Return @polytope_advance(memory, count, most): how many directions come next.

    It takes the points that were found in `count` directions, and chooses at most so
    many faces; 0 if the least width is known.
    """
    more = {"memory": PTR, "count": I64, "most": I64}
    f = FunctionBuilder("polytope_advance", I64, hints=("noinline",), more=more)
    f.needs(_start(scalar))
    f.needs(_insert(scalar))
    f.needs(_again(scalar))
    g = _Growth(f, scalar)
    count, memory = f["count"], f["memory"]
    with f.loop(count) as k:
        normal = g.vector("direction", k, ROOM)
        width = _dot(normal, g.vector("point", k, ROOM))
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
            face, point = g.get("face", k), g.vector("point", k, ROOM)
            # Insertions of other points may have removed it, and used its place.
            height = g.get("height", face)
            is_there = g.get("key", face).equals(math.inf) & (height < math.inf)
            with f.when(is_there):
                width = _dot(g.vector("normal", face, FACES), point)
                may_be_less = height < g.enough()
                is_outside = width - height > outside
                with f.when(may_be_less & is_outside):
                    status = f.call("@polytope_insert", I64, memory, *point, face)
                    _end_unless_inserted(g, status)
                with f.otherwise():
                    g.lower(height, "least")
    f.ret(_choose(g))
    return f


def _end_unless_inserted(g: _Growth, status: Value) -> None:
    """Return from `advance` where a point was not inserted."""
    f = g.f
    with f.when(status.equals(UNPROVEN)):
        f.ret(f.call("@polytope_again", I64, g.memory))
    with f.when(status.equals(FULL)):
        # All faces that are left bound the width, those that were chosen, too.
        with f.loop(f["count"]) as k:
            g.lower(g.get("height", g.get("face", k)), "least")
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


def _ended(g: _Growth) -> Value:
    """Note what is proven; return that no directions follow."""
    with g.f.when(g.get("looks") > 0):
        g.put(g.get("proven"), "least")
    g.lower(g.get("depth"), "least")
    return g.f.constant(I64, 0)


def _again(scalar: Type) -> FunctionBuilder:
    """Return @polytope_again(memory): how many directions come after a failure."""
    f = FunctionBuilder("polytope_again", I64, hints=("noinline",), memory=PTR)
    f.needs(_restart(scalar))
    g = _Growth(f, scalar)
    restarts = g.get("restarts")
    with f.when(restarts < RESTARTS):
        g.put(restarts + 1, "restarts")
        g.put(g.get("outside") * COARSER, "outside")
        f.call("@polytope_restart", VOID, g.memory)
        f.ret(f.constant(I64, PROBES))
    g.put(0.0, "least")
    f.ret(_ended(g))
    return f


def _choose(g: _Growth) -> Value:
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
        more.leave(chosen.get() >= f["most"])
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
        g.put_vector(g.vector("normal", face, FACES), "direction", k, ROOM)
        chosen.set(k + 1)
    # Lanes without a face look where the first one does.
    with f.when(chosen.get() > 0):
        zero = f.constant(I64, 0)
        with f.loop(f["most"], chosen.get()) as k:
            g.put_vector(g.vector("direction", zero, ROOM), "direction", k, ROOM)
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


def _set_plane(
    g: _Growth, face: Value, corners: Sequence[Value], beside: Point | None = None
) -> None:
    """Write a face with its plane, whose normal may be that of one beside it."""
    points = [g.vector("corner", corner, POINTS) for corner in corners]
    normal = _cross(_less(points[1], points[0]), _less(points[2], points[0]))
    scaled = 1.0 / _dot(normal, normal).sqrt()
    unit = [each * scaled for each in normal]
    if beside is not None:
        # Of corners that are nearly on a line, rounding may turn the face inside out.
        inside = [g.get("inside", axis) for axis in range(3)]
        is_out = _dot(unit, _less(points[0], inside)) > 0.0  # false of NaN
        unit = [is_out.select(x, y) for x, y in zip(unit, beside, strict=True)]
    # The least of the three, which differ by rounding.
    height = _dot(unit, points[0])
    for point in points[1:]:
        other = _dot(unit, point)
        height = (other < height).select(other, height)
    g.put_vector(unit, "normal", face, FACES)
    g.put(height, "height", face)
    is_near = _dot(unit, [g.get("middle", k) for k in range(3)]) > g.get("cosine")
    g.put(is_near.select(height, math.inf), "key", face)
    for k, corner in enumerate(corners):
        g.put(corner, "corners", face * 3 + k)


def _insert(scalar: Type) -> FunctionBuilder:
    """Return @polytope_insert(memory, x, y, z, face): a point that sees a face.

    It returns 0; or `FULL`, or `UNPROVEN` where rounding left no polytope.
    """
    more = {"memory": PTR, **dict.fromkeys("xyz", scalar), "face": I64}
    f = FunctionBuilder("polytope_insert", I64, hints=("noinline",), more=more)
    g = _Growth(f, scalar)
    point = [f[name] for name in "xyz"]
    outside = g.get("outside")
    corner = g.get("count")
    with f.when(corner >= POINTS):
        f.ret(f.constant(I64, FULL))
    # Faces that it sees, from the first one on through their sides, and the sides
    # around them.
    seen, sides = f.variable(I64, 1), f.variable(I64, 0)
    g.put(f["face"], "seen", 0)
    for field in ("height", "key"):
        g.put(math.inf, field, f["face"])
    looked = f.variable(I64, 0)
    with f.forever() as through:
        through.leave(looked.get() >= seen.get())
        face = g.get("seen", looked.get())
        looked.set(looked.get() + 1)
        for k in range(3):
            other = g.get("beside", face * 3 + k)
            height = g.get("height", other)
            is_new = height < math.inf  # else it is one of those that are seen
            above = _dot(g.vector("normal", other, FACES), point) - height
            with f.when(is_new & (above > outside)):
                g.put(other, "seen", seen.get())
                seen.set(seen.get() + 1)
                for field in ("height", "key"):
                    g.put(math.inf, field, other)
            with f.otherwise(), f.when(is_new):
                n = sides.get()
                begin = g.get("corners", face * 3 + k)
                g.put(begin, "begins", n)
                g.put(g.get("corners", face * 3 + (k + 1) % 3), "ends", n)
                g.put(other, "behind", n)
                g.put(n, "leaving", begin)
                sides.set(n + 1)
    # A place for a new face at each side: first those of the faces that go.
    n = sides.get()
    with f.loop(seen.get()) as k:
        g.put(g.get("seen", k), "free", g.get("frees"))
        g.put(g.get("frees") + 1, "frees")
    room = FACES - g.get("faces") + g.get("frees")
    with f.when((n > room) | (n < 3)):
        f.ret(f.constant(I64, UNPROVEN))
    with f.loop(n) as k:
        frees = g.get("frees")
        with f.when(frees > 0):
            g.put(g.get("free", frees - 1), "place", k)
            g.put(frees - 1, "frees")
        with f.otherwise():
            faces = g.get("faces")
            g.put(faces, "place", k)
            g.put(faces + 1, "faces")
    g.put_vector(point, "corner", corner, POINTS)
    g.put(corner + 1, "count")
    is_whole = f.variable(I1, 1)
    with f.loop(n) as k:
        begin, end, behind = (g.get(name, k) for name in ("begins", "ends", "behind"))
        place = g.get("place", k)
        beside = g.vector("normal", behind, FACES)
        _set_plane(g, place, (begin, end, corner), beside)
        g.put(behind, "beside", place * 3)
        # The side that begins where this one ends; sides are one loop around.
        following = g.get("leaving", end)
        is_side = (following >= 0) & (following < n)
        following = is_side.select(following, 0)
        is_next = is_side & g.get("begins", following).equals(end)
        is_whole.set(is_whole.get() & is_next)
        other = g.get("place", following)
        g.put(other, "beside", place * 3 + 1)
        g.put(place, "beside", other * 3 + 2)
        # Behind, the same side begins where it ends here.
        is_first, is_second = (
            g.get("corners", behind * 3 + each).equals(end) for each in range(2)
        )
        side = is_first.select(f.constant(I64, 0), is_second.select(f.constant(I64, 1), 2))
        g.put(place, "beside", behind * 3 + side)
    # Around once: a second loop, or two that touch, would leave sides out.
    at, steps = f.variable(I64, 0), f.variable(I64, 0)
    with f.forever() as around:
        around.leave((steps.get() > n) | ~is_whole.get())
        at.set(g.get("leaving", g.get("ends", at.get())))
        steps.set(steps.get() + 1)
        around.leave(at.get().equals(0))
    is_whole.set(is_whole.get() & steps.get().equals(n))
    f.ret(is_whole.get().select(f.constant(I64, 0), UNPROVEN))
    return f


def _start(scalar: Type) -> FunctionBuilder:
    """Return @polytope_start(memory, count): the first points become a polytope.

    It returns 0; or how many further directions are to be looked at; or `FLAT` where
    the body is, or `FAILED` where rounding left no polytope.
    """
    more = {"memory": PTR, "count": I64}
    f = FunctionBuilder("polytope_start", I64, hints=("noinline",), more=more)
    f.needs(_insert(scalar))
    g = _Growth(f, scalar)
    outside = g.get("outside")
    # Points of all tries are corners so far.
    with f.loop(f["count"]) as k:
        n = g.get("count")
        g.put_vector(g.vector("point", k, ROOM), "corner", n, POINTS)
        g.put(n + 1, "count")
    total = g.get("count")

    def corner(k: Value) -> list[Value]:
        return g.vector("corner", k, POINTS)

    def farthest(measure: Callable[[Point], Value]) -> tuple[Value, Value]:
        """Return the point of the largest measure, and that."""
        best, size = f.variable(I64, 0), f.variable(scalar, 0.0)
        with f.loop(total) as k:
            value = measure(_less(corner(k), first))
            with f.when(value > size.get()):
                best.set(k)
                size.set(value)
        return best.get(), size.get()

    # The farthest points from the first one, from the line through both, and from the
    # plane through three.
    zero = f.constant(I64, 0)
    first = corner(zero)
    b, _ = farthest(lambda e: _dot(e, e))
    side = _less(corner(b), first)

    def from_line(e: Point) -> Value:
        across = _cross(side, e)
        return _dot(across, across)

    c, area = farthest(from_line)
    plane = _cross(side, _less(corner(c), first))
    d, volume = farthest(lambda e: abs(_dot(plane, e)))
    is_line = ~(area > outside * outside * _dot(side, side))
    is_flat = is_line | ~(volume > outside * 4.0 * area.sqrt())
    with f.when(is_flat):
        tries = g.get("tries")
        g.put(tries + 1, "tries")
        with f.when(tries >= TRIES - 1):
            f.ret(f.constant(I64, FLAT))
        # Across what is known, on both sides.
        is_x = abs(side[0]) < _dot(side, side).sqrt() * 0.6
        zeros = first[0].constant(0.0)
        ones = first[0].constant(1.0)
        beside = [is_x.select(ones, zeros), is_x.select(zeros, ones), zeros]
        aside = _cross(side, beside)
        across = [is_line.select(x, y) for x, y in zip(aside, plane, strict=True)]
        length = _dot(across, across).sqrt()
        with f.when(~(length > 0.0)):
            f.ret(f.constant(I64, FLAT))
        unit = [each / length for each in across]
        with f.loop(ROOM, step=2) as k:
            g.put_vector(unit, "direction", k, ROOM)
            g.put_vector([-each for each in unit], "direction", k + 1, ROOM)
        f.ret(f.constant(I64, 2))
    # Seen from outside corners are against the clock: the fourth is behind the first
    # three. Points are kept apart, as the four become corners 0 to 3.
    is_before = _dot(plane, _less(corner(d), first)) > 0.0
    b, c = is_before.select(c, b), is_before.select(b, c)
    chosen = [zero, b, c, d]
    points = [corner(k) for k in chosen]
    with f.loop(total) as k:
        is_used = zero.equals(k)
        for other in chosen[1:]:
            is_used = is_used | other.equals(k)
        value = is_used.select(f.constant(scalar, math.nan), corner(k)[0])
        g.put_vector([value, *corner(k)[1:]], "point", k, ROOM)
    for k, point in enumerate(points):
        g.put_vector(point, "corner", f.constant(I64, k), POINTS)
    g.put(4, "count")
    g.put(4, "faces")
    for axis, (x, *others) in enumerate(zip(*points, strict=True)):
        g.put((x + others[0] + others[1] + others[2]) * 0.25, "inside", axis)
    corners = (0, 1, 2), (0, 3, 1), (1, 3, 2), (2, 3, 0)
    beside_of = (1, 2, 3), (3, 2, 0), (1, 3, 0), (2, 1, 0)
    for face, (ends, others) in enumerate(zip(corners, beside_of, strict=True)):
        number = f.constant(I64, face)
        _set_plane(g, number, [f.constant(I64, end) for end in ends])
        for k, other in enumerate(others):
            g.put(f.constant(I64, other), "beside", face * 3 + k)
    # The others, each from the face that it is farthest above.
    with f.loop(total) as k:
        point = g.vector("point", k, ROOM)
        above, face = f.variable(scalar, 0.0), f.variable(I64, -1)
        above.set(outside)
        with f.loop(g.get("faces")) as each:
            value = _dot(g.vector("normal", each, FACES), point) - g.get("height", each)
            with f.when(value > above.get()):
                above.set(value)
                face.set(each)
        with f.when(face.get() >= 0):
            status = f.call("@polytope_insert", I64, f["memory"], *point, face.get())
            with f.when(status.differs(0)):
                f.ret(f.constant(I64, FAILED))
    f.ret(zero)
    return f

