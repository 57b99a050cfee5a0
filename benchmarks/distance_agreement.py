"""Distances of random pairs of shapes against judges that share no code with them.

Shapes are known to the judges by their support functions alone, in closed form:

- normal and points are right if the plane across the normal separates the shapes by the
  distance, or after they are moved by the depth, and the points are in the shapes and
  as far apart; a distance is right then;
- a depth is right if no other direction separates the shapes with less: 400 are tried,
  and the best ones improved by smaller and smaller steps;
- of polytopes, the depth is also compared with the least one over normals of faces and
  products of edges; of half spaces, with the lowest point.

`ARMILLARY_POSES` says how many poses each pair has, 2000 by default.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from armillary.model.primitive import Primitive
from armillary.model.shapes import (
    Box,
    Capsule,
    CircularLozenge,
    Cone,
    Cylinder,
    Ellipsoid,
    HalfSpace,
    Lozenge,
    Sphere,
    Tetrahedron,
    TriangularLozenge,
)
from armillary.shapes import Distance, distance
from benchmarks.measure import fewer

Array = np.ndarray
Rng = np.random.Generator

TOLERANCE = 1e-9
"""Of the size of the shapes and of their distance."""

SIZES = 8
"""Pairs of sizes that the poses of a pair of kinds are divided into."""

CORNERS = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.1], [0.2, 1.0, 0.0], [0.1, 0.2, 1.2]])


def report() -> Iterator[str]:
    """Yield a line for each pair of kinds of shapes."""
    count = int(os.environ.get("ARMILLARY_POSES", fewer(2000)))
    for number, kinds in enumerate(pairs()):
        rng = np.random.default_rng(number)
        found = sum(
            (tally(kinds, rng, count // SIZES) for _ in range(SIZES)), np.zeros(5)
        )
        poses, overlaps, wrong, unproven, false_free = found.astype(int)
        yield (
            f"{kinds[0]} and {kinds[1]}: {poses} poses, {overlaps} overlap, "
            f"{wrong} wrong, {unproven} with a wrong normal or point, "
            f"{false_free} wrongly free"
        )


def pairs() -> list[tuple[str, str]]:
    """Return the pairs of kinds that have a distance."""
    both = itertools.combinations_with_replacement(KINDS, 2)
    return [pair for pair in both if pair != ("half space", "half space")]


def tally(kinds: tuple[str, str], rng: Rng, count: int) -> Array:
    """Return how many poses two random shapes have, how many overlap or fail."""
    a, b = (KINDS[kind](rng.uniform(0.05, 1.0, 3), rng) for kind in kinds)
    X = poses(rng, a, b, count)
    found = distance(a, np.eye(4), b, X)
    counts = [each.sum() for each in judge(a, b, X, found)]
    return np.array([len(X), (found.value < 0.0).sum(), *counts])


# The shapes, of three lengths, and how far they reach in unit directions (..., 3).

KINDS: dict[str, Callable[[Array, Rng], Primitive]] = {
    "sphere": lambda s, rng: Sphere(radius=s[0]),
    "capsule": lambda s, rng: Capsule(radius=some(s[0], rng), length=s[1]),
    "lozenge": lambda s, rng: Lozenge(size=s[:2], radius=some(s[2], rng)),
    "circular lozenge": lambda s, rng: CircularLozenge(
        disc=s[0], radius=some(s[1], rng)
    ),
    "triangular lozenge": lambda s, rng: TriangularLozenge(
        corners=CORNERS[:3] * s, radius=some(s[2], rng)
    ),
    "box": lambda s, rng: Box(size=(s[0], s[1], some(s[2], rng))),
    "cylinder": lambda s, rng: Cylinder(radius=s[0], length=some(s[1], rng)),
    "cone": lambda s, rng: Cone(bottom=s[0], top=some(s[1], rng), length=s[2]),
    "ellipsoid": lambda s, rng: Ellipsoid(radii=s),
    "tetrahedron": lambda s, rng: Tetrahedron(corners=CORNERS * s),
    "half space": lambda s, rng: HalfSpace(),
}


def some(length: float, rng: Rng) -> float:
    """Return a length, or 0 in one of four cases."""
    return length * float(rng.random() > 0.25)


def reach(shape: Any, d: Array) -> Array:  # noqa: PLR0911
    """Return max p . d over the points of a shape [m]."""
    out = np.hypot(d[..., 0], d[..., 1])
    match shape:
        case Sphere():
            return np.full(d.shape[:-1], shape.radius)
        case Capsule():
            return shape.radius + 0.5 * shape.length * np.abs(d[..., 2])
        case Lozenge():
            return shape.radius + 0.5 * np.abs(d[..., :2]) @ np.array(shape.size)
        case CircularLozenge():
            return shape.radius + shape.disc * out
        case TriangularLozenge():
            return shape.radius + (d @ np.array(shape.corners).T).max(axis=-1)
        case Box():
            return 0.5 * np.abs(d) @ np.array(shape.size)
        case Cylinder():
            return shape.radius * out + 0.5 * shape.length * np.abs(d[..., 2])
        case Cone():
            rise = 0.5 * shape.length * d[..., 2]
            return np.maximum(shape.bottom * out - rise, shape.top * out + rise)
        case Ellipsoid():
            return np.linalg.norm(d * shape.radii, axis=-1)
        case Tetrahedron():
            return (d @ np.array(shape.corners).T).max(axis=-1)
        case _:
            raise NotImplementedError(type(shape))


def features(shape: Any) -> tuple[Array, Array] | None:
    """Return normals of faces and directions of edges, (n, 3), if there are few."""
    axes = np.eye(3)
    match shape:
        case Sphere():
            return np.empty((0, 3)), np.empty((0, 3))
        case Capsule():
            return np.empty((0, 3)), axes[2:]
        case Lozenge():
            return axes[2:], axes[:2]
        case Box():
            return axes, axes
        case TriangularLozenge() | Tetrahedron():
            corners = np.array(shape.corners)
            edges = np.array([q - p for p, q in itertools.combinations(corners, 2)])
            sides = itertools.combinations(corners, 3)
            return np.array([np.cross(q - p, r - p) for p, q, r in sides]), edges
        case _:
            return None


# Poses of b in a.


def poses(rng: Rng, a: Primitive, b: Primitive, count: int) -> Array:
    """Return poses (n, 4, 4): general, parallel, nearly concentric, far, touching."""
    size = extent(a) + extent(b)
    X = np.tile(np.eye(4), (count, 1, 1))
    q, _ = np.linalg.qr(rng.normal(size=(count, 3, 3)))
    X[:, :3, :3] = q * np.linalg.det(q)[:, None, None]
    X[:, :3, 3] = rng.uniform(-0.7, 0.7, (count, 3)) * size
    kind = rng.integers(0, 10, count)
    is_parallel = kind >= 7
    turns = quarter_turns()
    X[is_parallel, :3, :3] = turns[rng.integers(0, 24, is_parallel.sum())]
    is_near = kind == 6
    X[is_near, :3, 3] *= 10.0 ** rng.uniform(-12, -1, (is_near.sum(), 1))
    X[kind == 7, :3, 3] = 0.1 * size * rng.integers(-5, 6, ((kind == 7).sum(), 3))
    X[kind == 5, :3, 3] *= 1e3
    touch = np.flatnonzero((kind == 4) | (kind == 8))
    found = distance(a, np.eye(4), b, X[touch])
    shift = 10.0 ** rng.uniform(-12, -2, len(touch)) * rng.choice(
        [-1, 0, 1], len(touch)
    )
    X[touch, :3, 3] -= (found.value - shift * size)[:, None] * found.normal
    return X


def quarter_turns() -> Array:
    """Return the rotations that map axes to axes, shape (24, 3, 3)."""
    signed = (
        np.diag(signs)[list(order)]
        for order in itertools.permutations(range(3))
        for signs in itertools.product((1.0, -1.0), repeat=3)
    )
    return np.array([turn for turn in signed if np.linalg.det(turn) > 0.0])


def extent(shape: Primitive) -> float:
    """Return about the size of a shape [m]; of a half space, 1."""
    if isinstance(shape, HalfSpace):
        return 1.0
    return shape.bounding_sphere.radius + float(
        np.linalg.norm(shape.bounding_sphere.centre)
    )


# The judges.


def judge(
    a: Primitive, b: Primitive, X: Array, found: Distance
) -> tuple[Array, Array, Array]:
    """Return which poses have wrong values, wrong normals or points, or false space."""
    size = extent(a) + extent(b) + np.linalg.norm(X[:, :3, 3], axis=1)
    allowed = TOLERANCE * size
    if isinstance(b, HalfSpace):
        X, a, b = np.linalg.inv(X), b, a
        down = -X[:, 2, :3]
        exact = X[:, 2, 3] - reach(b, down)
        wrong = ~(np.abs(found.value - exact) <= allowed)
        return wrong, wrong, wrong & (found.value > 0.0) & (exact < 0.0)
    width = width_along(a, b, X, found.normal[:, None])[:, 0]
    unproven = ~(np.abs(width + found.value) <= allowed)
    step = found.points[:, 1] - found.points[:, 0]
    off = np.linalg.norm(step - found.value[:, None] * found.normal, axis=1)
    unproven |= ~(off <= 3.0 * allowed)
    unproven |= outside(a, found.points[:, 0]) > 3.0 * allowed
    back = np.einsum("nij,ni->nj", X[:, :3, :3], found.points[:, 1] - X[:, :3, 3])
    unproven |= outside(b, back) > 3.0 * allowed
    doubtful = np.flatnonzero(unproven | (found.value < 0.0))
    wrong, false_free = np.zeros((2, len(X)), bool)
    for some in np.array_split(doubtful, len(doubtful) // 500 + 1):
        least = least_width(a, b, X[some], found.normal[some])
        wrong[some] = ~(np.abs(least + found.value[some]) <= allowed[some])
        false_free[some] = (found.value[some] > allowed[some]) & (least > 0.0)
    return wrong, unproven, false_free


def outside(shape: Primitive, points: Array) -> Array:
    """Return how far points (n, 3) are beyond a shape in some directions [m]."""
    return (points @ AROUND.T - reach(shape, AROUND)).max(axis=1)


def width_along(a: Primitive, b: Primitive, X: Array, d: Array) -> Array:
    """Return how far b must move along directions (n, m, 3) to leave a [m]."""
    back = -np.einsum("nij,nmi->nmj", X[:, :3, :3], d)
    centre = np.einsum("ni,nmi->nm", X[:, :3, 3], d)
    return reach(a, d) + reach(b, back) - centre


def least_width(a: Primitive, b: Primitive, X: Array, normal: Array) -> Array:
    """Return the least width (n,) that is found, from a normal or anywhere."""
    tried = np.broadcast_to(AROUND, (len(X), *AROUND.shape))
    width = width_along(a, b, X, tried)
    best = np.argsort(width, axis=1)[:, :6]
    d = np.concatenate(
        [normal[:, None], np.take_along_axis(tried, best[:, :, None], axis=1)], axis=1
    )
    exact = separating_axes(a, b, X)
    least = exact.min(axis=1, initial=np.inf)
    width = width_along(a, b, X, d)
    rng = np.random.default_rng(1)
    step = 0.1
    while step > 1e-9:
        for _ in range(3):
            other = d + step * rng.normal(size=d.shape)
            other /= np.linalg.norm(other, axis=2, keepdims=True)
            there = width_along(a, b, X, other)
            is_less = there < width
            width = np.where(is_less, there, width)
            d = np.where(is_less[:, :, None], other, d)
        step *= 0.7
    return np.minimum(least, width.min(axis=1))


def separating_axes(a: Primitive, b: Primitive, X: Array) -> Array:
    """Return the widths along normals of faces and products of edges, (n, m)."""
    of_a, of_b = features(a), features(b)
    if of_a is None or of_b is None:
        return np.empty((len(X), 0))
    faces_b, edges_b = (np.einsum("nij,mj->nmi", X[:, :3, :3], d) for d in of_b)
    faces_a = np.broadcast_to(of_a[0], (len(X), *of_a[0].shape))
    products = np.cross(of_a[1][None, :, None], edges_b[:, None])
    d = np.concatenate(
        [
            faces_a,
            faces_b,
            products.reshape(len(X), products.shape[1] * products.shape[2], 3),
        ],
        axis=1,
    )
    length = np.linalg.norm(d, axis=2)
    is_good = length > 1e-7
    unit = d / np.where(is_good, length, 1.0)[:, :, None]
    both = np.concatenate([unit, -unit], axis=1)
    width = width_along(a, b, X, both)
    return np.where(np.concatenate([is_good, is_good], axis=1), width, np.inf)


def _around(count: int) -> Array:
    directions = np.random.default_rng(0).normal(size=(count, 3))
    directions = np.concatenate([directions, np.eye(3), -np.eye(3)])
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


AROUND = _around(394)
