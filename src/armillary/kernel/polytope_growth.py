"""The code of a polytope that grows by points: those that see a face, and the first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from armillary.kernel.builder import FunctionBuilder, Value
from armillary.kernel.machine_type import I1, I64, PTR, Type
from armillary.kernel.polytope import FACES, FULL, POINTS, ROOM, UNPROVEN
from armillary.kernel.polytope_memory import Growth, Point, cross, dot, less, unit

__all__ = ["FAILED", "FLAT", "insert_function", "start_function"]

TRIES: Final = 3
"""Sets of directions that are looked at before a body counts as flat."""

FLAT: Final = -1
"""The body is flat."""

FAILED: Final = -2
"""Rounding left nothing with an inside."""


def insert_function(scalar: Type) -> FunctionBuilder:
    """Return @polytope_insert(memory, number, face): a point that sees a face.

    It returns 0; or `FULL`, or `UNPROVEN` where rounding left no polytope.
    """
    more = {"memory": PTR, "number": I64, "face": I64}
    f = FunctionBuilder("polytope_insert", I64, hints=("noinline",), more=more)
    g = Growth(f, scalar)
    point = g.vector("point", f["number"])
    corner = g.get("count")
    with f.when(corner >= POINTS):
        f.ret(f.constant(I64, FULL))
    seen, sides = _look(g, point)
    # A place for a new face at each side: first those of the faces that go.
    with f.loop(seen) as k:
        g.put(g.get("seen", k), "free", g.get("frees"))
        g.put(g.get("frees") + 1, "frees")
    room = FACES - g.get("faces") + g.get("frees")
    with f.when((sides > room) | (sides < 3)):
        f.ret(f.constant(I64, UNPROVEN))
    with f.loop(sides) as k:
        frees = g.get("frees")
        with f.when(frees > 0):
            g.put(g.get("free", frees - 1), "place", k)
            g.put(frees - 1, "frees")
        with f.otherwise():
            faces = g.get("faces")
            g.put(faces, "place", k)
            g.put(faces + 1, "faces")
    g.put_corner(f["number"], corner)
    g.put(corner + 1, "count")
    is_whole = _close(g, sides, corner)
    f.ret(is_whole.select(f.constant(I64, 0), UNPROVEN))
    return f


def _look(g: Growth, point: Point) -> tuple[Value, Value]:
    """Write which faces a point sees, and the sides around; return how many of both."""
    f, outside = g.f, g.get("outside")
    # From the first one on through their sides.
    seen, sides = f.variable(I64, 1), f.variable(I64, 0)
    g.put(f["face"], "seen", 0)
    g.put_height(math.inf, f["face"])
    g.put(math.inf, "key", f["face"])
    looked = f.variable(I64, 0)
    with f.forever() as through:
        through.leave(looked.get() >= seen.get())
        face = g.get("seen", looked.get())
        looked.set(looked.get() + 1)
        for k in range(3):
            other = g.get("beside", face * 3 + k)
            height = g.height(other)
            is_new = height < math.inf  # else it is one of those that are seen
            above = dot(g.vector("plane", other), point) - height
            with f.when(is_new & (above > outside)):
                g.put(other, "seen", seen.get())
                seen.set(seen.get() + 1)
                g.put_height(math.inf, other)
                g.put(math.inf, "key", other)
            with f.otherwise(), f.when(is_new):
                n = sides.get()
                begin = g.get("corners", face * 3 + k)
                g.put(begin, "begins", n)
                g.put(g.get("corners", face * 3 + (k + 1) % 3), "ends", n)
                g.put(other, "behind", n)
                g.put(n, "leaving", begin)
                sides.set(n + 1)
    return seen.get(), sides.get()


def _close(g: Growth, n: Value, corner: Value) -> Value:
    """Write the faces between n sides and a new corner; return whether they close."""
    f = g.f
    is_whole = f.variable(I1, 1)
    with f.loop(n) as k:
        begin, end, behind = (g.get(name, k) for name in ("begins", "ends", "behind"))
        place = g.get("place", k)
        beside = g.vector("plane", behind)
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
        side = is_first.select(
            f.constant(I64, 0), is_second.select(f.constant(I64, 1), 2)
        )
        g.put(place, "beside", behind * 3 + side)
    # Around once: a second loop, or two that touch, would leave sides out.
    at, steps = f.variable(I64, 0), f.variable(I64, 0)
    with f.forever() as around:
        around.leave((steps.get() > n) | ~is_whole.get())
        at.set(g.get("leaving", g.get("ends", at.get())))
        steps.set(steps.get() + 1)
        around.leave(at.get().equals(0))
    return is_whole.get() & steps.get().equals(n)


def start_function(scalar: Type) -> FunctionBuilder:
    """Return @polytope_start(memory, count): the first points become a polytope.

    It returns 0; or how many further directions are to be looked at; or `FLAT` where
    the body is, or `FAILED` where rounding left no polytope.
    """
    more = {"memory": PTR, "count": I64}
    f = FunctionBuilder("polytope_start", I64, hints=("noinline",), more=more)
    f.needs(insert_function(scalar))
    g = Growth(f, scalar)
    outside = g.get("outside")
    # Points of all tries are corners so far.
    with f.loop(f["count"]) as k:
        n = g.get("count")
        g.put_corner(k, n)
        g.put(n + 1, "count")
    total = g.get("count")

    def corner(k: Value) -> list[Value]:
        return g.vector("corner", k)

    def farthest(measure: Callable[[Point], Value]) -> tuple[Value, Value]:
        """Return the point of the largest measure, and that."""
        best, size = f.variable(I64, 0), f.variable(scalar, 0.0)
        with f.loop(total) as k:
            value = measure(less(corner(k), first))
            with f.when(value > size.get()):
                best.set(k)
                size.set(value)
        return best.get(), size.get()

    # The farthest points from the first one, from the line through both, and from the
    # plane through three.
    zero = f.constant(I64, 0)
    first = corner(zero)
    b, _ = farthest(lambda e: dot(e, e))
    side = less(corner(b), first)

    def from_line(e: Point) -> Value:
        across = cross(side, e)
        return dot(across, across)

    c, area = farthest(from_line)
    plane = cross(side, less(corner(c), first))
    d, volume = farthest(lambda e: abs(dot(plane, e)))
    is_line = ~(area > outside * outside * dot(side, side))
    is_flat = is_line | ~(volume > outside * 4.0 * area.sqrt())
    with f.when(is_flat):
        tries = g.get("tries")
        g.put(tries + 1, "tries")
        with f.when(tries >= TRIES - 1):
            f.ret(f.constant(I64, FLAT))
        aside = _across(side)
        across = [is_line.select(x, y) for x, y in zip(aside, plane, strict=True)]
        with f.when(~(dot(across, across) > 0.0)):
            f.ret(f.constant(I64, FLAT))
        # Across what is known, on both sides.
        way = unit(across)
        with f.loop(ROOM, step=2) as k:
            g.put_vector(way, "direction", k)
            g.put_vector([-each for each in way], "direction", k + 1)
        f.ret(f.constant(I64, 2))
    # Seen from outside, corners are counterclockwise: the fourth is behind the first
    # three.
    is_before = dot(plane, less(corner(d), first)) > 0.0
    b, c = is_before.select(c, b), is_before.select(b, c)
    _put_tetrahedron(g, [zero, b, c, d], total)
    status = _insert_others(g, total)
    f.ret(status.equals(0).select(status, FAILED))
    return f


def _across(side: Point) -> list[Value]:
    """Return a vector across one."""
    is_x = abs(side[0]) < dot(side, side).sqrt() * 0.6
    zero, one = (side[0].constant(number) for number in (0.0, 1.0))
    return cross(side, [is_x.select(one, zero), is_x.select(zero, one), zero])


def _put_tetrahedron(g: Growth, chosen: Sequence[Value], total: Value) -> None:
    """Make four of some points corners; the others are kept apart."""
    f, scalar = g.f, g.scalar
    points = [g.vector("corner", k) for k in chosen]
    origins = [g.vector("origin", k) for k in chosen]
    with f.loop(total) as k:
        is_used = f.constant(I1, 0)
        for other in chosen:
            is_used = is_used | other.equals(k)
        x, *rest = g.vector("corner", k)
        x = is_used.select(f.constant(scalar, math.nan), x)
        g.put_vector([x, *rest], "point", k)
        g.put_vector(g.vector("origin", k), "source", k)
    for k, (point, origin) in enumerate(zip(points, origins, strict=True)):
        g.put_vector(point, "corner", f.constant(I64, k))
        g.put_vector(origin, "origin", f.constant(I64, k))
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


def _insert_others(g: Growth, total: Value) -> Value:
    """Insert points, each from the face that it is farthest above; return a status."""
    f, scalar, outside = g.f, g.scalar, g.get("outside")
    status = f.variable(I64, 0)
    with f.loop(total) as k:
        point = g.vector("point", k)
        above, face = f.variable(scalar, 0.0), f.variable(I64, -1)
        above.set(outside)
        face.set(-1)
        with f.loop(g.get("faces")) as each:
            height = g.height(each)
            value = dot(g.vector("plane", each), point) - height
            with f.when(value > above.get()):
                above.set(value)
                face.set(each)
        with f.when((face.get() >= 0) & status.get().equals(0)):
            where = face.get()
            status.set(f.call("@polytope_insert", I64, f["memory"], k, where))
    return status.get()


def _set_plane(
    g: Growth, face: Value, corners: Sequence[Value], beside: Point | None = None
) -> None:
    """Write a face with its plane, whose normal may be that of one beside it."""
    points = [g.vector("corner", corner) for corner in corners]
    normal = cross(less(points[1], points[0]), less(points[2], points[0]))
    scaled = 1.0 / dot(normal, normal).sqrt()
    unit = [each * scaled for each in normal]
    if beside is not None:
        # Of corners that are nearly on a line, rounding may turn the face inside out.
        inside = [g.get("inside", axis) for axis in range(3)]
        is_out = dot(unit, less(points[0], inside)) > 0.0  # false of NaN
        unit = [is_out.select(x, y) for x, y in zip(unit, beside, strict=True)]
    # The least of the three, which differ by rounding.
    height = dot(unit, points[0])
    for point in points[1:]:
        other = dot(unit, point)
        height = (other < height).select(other, height)
    g.put_vector(unit, "plane", face)
    g.put_height(height, face)
    is_near = dot(unit, [g.get("middle", k) for k in range(3)]) > g.get("cosine")
    g.put(is_near.select(height, math.inf), "key", face)
    for k, corner in enumerate(corners):
        g.put(corner, "corners", face * 3 + k)
