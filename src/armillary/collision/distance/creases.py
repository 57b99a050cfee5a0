"""Directions in which the farthest point of a body jumps: creases of its support.

They are those across an edge, or across a line of a side. Those of boxes, cylinders and
cones are circles of directions, l . d = s.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from armillary.collision.distance.separation import choose
from armillary.model.primitive import Primitive
from armillary.model.shapes import (
    Box,
    Capsule,
    CircularLozenge,
    Cone,
    Cylinder,
    Ellipsoid,
    Lozenge,
    Sphere,
)
from armillary.spatial.vector import (
    Number,
    Vector3,
    add,
    cross,
    dot,
    norm,
    scale,
    subtract,
    three,
)
from armillary.trace.functions import absolute, sqrt

__all__ = [
    "AXES",
    "FLAT",
    "ROUND",
    "Crease",
    "across",
    "corners_of",
    "crease_count",
    "creases_of",
    "crossings",
    "onto",
    "unit",
]

X_AXIS: Final[Vector3] = (1.0, 0.0, 0.0)
Y_AXIS: Final[Vector3] = (0.0, 1.0, 0.0)
Z_AXIS: Final[Vector3] = (0.0, 0.0, 1.0)


class Crease(NamedTuple):
    """Directions d with l . d = s, of a unit vector l."""

    axis: Vector3
    sine: Number


AXES: Final[Mapping[type[Primitive], tuple[Vector3, ...]]] = {
    Sphere: (),
    Ellipsoid: (),
    CircularLozenge: (),
    Capsule: (Z_AXIS,),
    Cylinder: (Z_AXIS,),
    Cone: (Z_AXIS,),
    Lozenge: (X_AXIS, Y_AXIS),
    Box: (X_AXIS, Y_AXIS, Z_AXIS),
}
"""Of the creases of a kind of shapes; other kinds have other creases."""

FLAT: Final = (Box, Lozenge, Capsule)
"""Kinds whose core is a polyhedron with edges along its axes."""

ROUND: Final = (Cylinder, Cone, CircularLozenge)
"""Kinds of revolution about z, with a disc about it."""


def crease_count(shape: Primitive) -> int:
    """Return how many creases a shape has; 0 for kinds that have other ones."""
    return len(AXES.get(type(shape), ()))


def creases_of(shape: Any) -> list[Crease]:
    """Return the creases of a shape of a kind in `AXES`; its numbers may be traced."""
    sine: Number = 0.0
    if isinstance(shape, Cone):
        # Both rims are as far where bottom out - half up = top out + half up. Without a
        # length and a difference it is NaN: no direction.
        change = shape.bottom - shape.top
        sine = change / sqrt(change * change + shape.length * shape.length)
    return [Crease(axis, sine) for axis in AXES[type(shape)]]


def crossings(p: Crease, q: Crease) -> tuple[Vector3, Vector3]:
    """Return both directions that two creases share; NaN if there are none."""
    # d = a l + b m +- c n with n = l x m, of which d . l and d . m are given.
    n = cross(p.axis, q.axis)
    square = dot(n, n)
    along = dot(p.axis, q.axis)
    a = (p.sine - q.sine * along) / square
    b = (q.sine - p.sine * along) / square
    c = sqrt((1.0 - (a * p.sine + b * q.sine)) / square)
    middle = add(scale(a, p.axis), scale(b, q.axis))
    return unit(add(middle, scale(c, n))), unit(subtract(middle, scale(c, n)))


def onto(crease: Crease, d: Vector3) -> Vector3:
    """Return the direction of a crease that is nearest to one."""
    axis, sine = crease
    aside = subtract(d, scale(dot(axis, d), axis))
    out = sqrt(1.0 - sine * sine) / norm(aside)
    return add(scale(sine, axis), scale(out, aside))


def across(d: Vector3) -> tuple[Vector3, Vector3]:
    """Return two unit vectors across one, and across each other."""
    # d x X, or d x Y where d is about along x.
    is_x = absolute(d[0]) < 0.6
    u = unit(choose(is_x, (0.0, d[2], 0.0 - d[1]), (0.0 - d[2], 0.0, d[0])))
    return u, cross(d, u)


def unit(d: Vector3) -> Vector3:
    """Return d / |d|."""
    return scale(1.0 / norm(d), d)


def corners_of(shape: Any) -> list[Vector3]:
    """Return the corners of the core of a shape of a kind in `FLAT`."""
    halves: Sequence[tuple[Number, ...]]
    match shape:
        case Box():
            sizes: tuple[Number, ...] = shape.size
        case Lozenge():
            sizes = (*shape.size, 0.0)
        case _:
            sizes = (0.0, 0.0, shape.length)
    halves = [
        (0.0,) if isinstance(size, float) and size == 0.0 else (0.5 * size, -0.5 * size)
        for size in sizes
    ]
    return [three(corner) for corner in itertools.product(*halves)]
