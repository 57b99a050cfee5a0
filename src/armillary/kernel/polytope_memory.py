"""The memory of the search for the least width of a body, and code that works on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from armillary.kernel.builder import FunctionBuilder, Operand, Value
from armillary.kernel.machine_type import I16, I64, Type
from armillary.kernel.memory import Struct
from armillary.kernel.polytope import FACES, POINTS, ROOM, margins

__all__ = ["Growth", "Point", "cross", "dot", "layout_of", "less", "unit"]

Point: TypeAlias = Sequence[Value]

STAGED: Final = "direction", "point", "source"
"""Fields that stages read and write in lanes."""

ROW: Final = 4
"""Numbers of a corner or a plane, which so are in one cache line."""


def layout_of(scalar: Type) -> Struct:
    """Return how the memory of a search is laid out."""
    return Struct.of(
        # Directions that are looked at next, and the farthest points there: first all
        # first coordinates.
        direction=(scalar, 3 * ROOM),
        point=(scalar, 3 * ROOM),
        source=(scalar, 3 * ROOM),  # what each of these is made of
        face=(I64, ROOM),  # that each direction is across
        # The polytope. Faces that are gone have an infinite height; the key of one
        # that is to be looked at is its height, of others it is infinite.
        # What belongs to one is together: of arrays for each coordinate, of a power of
        # two, all places would differ by 4 KiB, and a load would wait for each store.
        corner=(scalar, ROW * POINTS),
        origin=(scalar, ROW * POINTS),  # the source of each corner
        plane=(scalar, ROW * FACES),  # its normal, and its height
        key=(scalar, FACES),
        corners=(I16, 3 * FACES),  # of faces, counterclockwise from outside
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
        best=(I64, 1),  # the face across which the width was found, or -1
        touch=(scalar, 3),  # the source of the point of the least width, or NaN
        extent=(scalar, 1),
        inside=(scalar, 3),  # a point in the first tetrahedron
        outside=(scalar, 1),  # how far a point is above a face that it sees
        wanted=(scalar, 1),  # a width below it will do
        together=(I64, 1),  # how many faces are looked at at most
        restarts=(I64, 1),
        # Where only faces across directions near one are looked at: how often that was
        # done, the direction, its least cosine, and what was proven before.
        looks=(I64, 1),
        middle=(scalar, 3),
        cosine=(scalar, 1),
        proven=(scalar, 1),
    )


class Growth:
    """A function on the memory of a search, under construction."""

    def __init__(self, f: FunctionBuilder, scalar: Type) -> None:
        """Take the function, which has the memory as a parameter."""
        self.f, self.scalar = f, scalar
        self.layout, self.memory = layout_of(scalar), f["memory"]

    def get(self, field: str, index: Operand = 0) -> Value:
        """Return a number; of whole numbers one of 64 bits."""
        value = self.layout.load(self.memory, field, index)
        return value.to(I64, "sext") if value.type == I16 else value

    def put(self, value: Operand, field: str, index: Operand = 0) -> None:
        """Write a number."""
        if isinstance(value, Value) and self.layout.kinds[field] == I16:
            value = value.to(I16, "trunc")
        self.layout.store(value, self.memory, field, index)

    def vector(self, field: str, index: Value) -> list[Value]:
        """Return a point, a direction, or the normal of a plane."""
        return [self.get(field, place) for place in _places(field, index)]

    def put_vector(self, vector: Sequence[Operand], field: str, index: Value) -> None:
        """Write one."""
        for value, place in zip(vector, _places(field, index), strict=True):
            self.put(value, field, place)

    def put_corner(self, number: Value, corner: Value) -> None:
        """Let the point of a direction be a corner."""
        self.put_vector(self.vector("point", number), "corner", corner)
        self.put_vector(self.vector("source", number), "origin", corner)

    def height(self, face: Value) -> Value:
        """Return the height of a face."""
        return self.get("plane", face * ROW + 3)

    def put_height(self, value: Operand, face: Value) -> None:
        """Write the height of a face."""
        self.put(value, "plane", face * ROW + 3)

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


def _places(field: str, index: Value) -> list[Value]:
    """Return where the coordinates of a vector are."""
    if field in STAGED:
        return [index + axis * ROOM for axis in range(3)]
    return [index * ROW + axis for axis in range(3)]


def unit(a: Point) -> list[Value]:
    """Return a / |a|."""
    length = dot(a, a).sqrt()
    return [each / length for each in a]


def dot(a: Point, b: Point) -> Value:
    """Return the inner product; products and sums may be rounded as one."""
    total = a[0].contracted("fmul", b[0])
    for x, y in zip(a[1:], b[1:], strict=True):
        total = x.contracted("fmul", y).contracted("fadd", total)
    return total


def less(a: Point, b: Point) -> list[Value]:
    """Return a - b."""
    return [x - y for x, y in zip(a, b, strict=True)]


def cross(a: Point, b: Point) -> list[Value]:
    """Return a x b, rounded likewise."""
    return [
        a[i].contracted("fmul", b[j]).contracted("fsub", a[j].contracted("fmul", b[i]))
        for i, j in ((1, 2), (2, 0), (0, 1))
    ]
