"""Distances of pairs of shapes, beside coal in a Python loop: batches, one thread.

Ours takes poses (4, 4) and gives signed distances; coal is asked for the same with
`ComputeDistance`, which keeps what it can between calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

from armillary.model.primitive import Primitive
from armillary.model.shapes import (
    Box,
    Capsule,
    ConvexPolyhedron,
    Cylinder,
    Sphere,
)
from armillary.shapes import distance_kernel
from benchmarks.measure import Figure, best_times, faster

BATCH = 20_000
FEW = 2_000
HULL_SIZES = (8, 32, 100)


def figures() -> Iterator[Figure]:
    """Yield the figures of pairs of shapes."""
    ball, rod = Sphere(radius=0.1), Capsule(radius=0.1, length=0.6)
    box = Box(size=(0.4, 0.3, 0.6))
    pairs: list[tuple[Primitive, Primitive, float]] = [
        (ball, Sphere(radius=0.15), 60.0),
        (ball, rod, 60.0),
        (rod, Capsule(radius=0.15, length=0.4), 60.0),
        (ball, box, 60.0),
        (rod, box, 30.0),
        (Box(size=(0.2, 0.4, 0.5)), box, 10.0),
        (Cylinder(radius=0.1, length=0.4), box, 1.0),
        (Cylinder(radius=0.1, length=0.4), Cylinder(radius=0.2, length=0.6), 1.0),
    ]
    for a, b, at_least in pairs:
        yield pair_figure(a, b, at_least)
    yield pair_figure(*pairs[-1][:2], 3.0, depth=False)
    for size in HULL_SIZES:
        a, b = (ConvexPolyhedron.around(hull(size + k, size)) for k in range(2))
        yield pair_figure(a, b, 1.0)
        yield pair_figure(a, b, 4.0, depth=False)


def pair_figure(
    a: Primitive, b: Primitive, at_least: float, *, depth: bool = True
) -> Figure:
    """Return the line for two shapes at random poses, some of which overlap."""
    coal: Any = import_module("coal")

    X = poses(np.random.default_rng(0), BATCH, 0.9)
    kernel, out = distance_kernel(a, b, depth=depth), np.empty(BATCH)
    at = [coal.Transform3s(x[:3, :3].copy(), x[:3, 3].copy()) for x in X[:FEW]]
    here, request = coal.Transform3s(), coal.DistanceRequest()
    request.enable_signed_distance = depth
    shapes = peer_shape(a), peer_shape(b)  # coal does not keep them
    compute = coal.ComputeDistance(*shapes)
    found = np.empty(FEW)

    def peer() -> None:
        for k, there in enumerate(at):
            found[k] = compute(here, there, request, coal.DistanceResult())

    ours, theirs = best_times(lambda: kernel(X, out=out, threads=1), peer, turns=6)
    is_free = out[:FEW] > 1e-3
    assert np.abs(found - out[:FEW])[is_free].max() < 1e-4
    pair = f"{_named(a)} and {_named(b)}"
    what = f"distance, {pair}{'' if depth else ', without depth'}"
    return faster(
        what,
        ours / BATCH,
        theirs / FEW,
        at_least=at_least,
    )


def _named(shape: Primitive) -> str:
    if isinstance(shape, ConvexPolyhedron):
        return f"hull of {len(shape.vertices)}"
    return type(shape).__name__.lower()


def peer_shape(shape: Primitive) -> Any:
    """Return a shape as coal has it."""
    coal: Any = import_module("coal")

    match shape:
        case Sphere():
            return coal.Sphere(shape.radius)
        case Capsule():
            return coal.Capsule(shape.radius, shape.length)
        case Box():
            return coal.Box(*shape.size)
        case Cylinder():
            return coal.Cylinder(shape.radius, shape.length)
        case ConvexPolyhedron():
            points = coal.StdVec_Vec3s()
            points.extend(np.array(shape.vertices))
            return coal.Convex.convexHull(points, True, "Qt")
        case _:
            raise NotImplementedError(type(shape))


def hull(seed: int, count: int) -> np.ndarray:
    """Return points of an ellipsoid [m], shape (count, 3)."""
    points = np.random.default_rng(seed).normal(size=(count, 3))
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    return unit * [0.3, 0.2, 0.15]


def poses(rng: np.random.Generator, count: int, spread: float) -> np.ndarray:
    """Return random poses, shape (count, 4, 4)."""
    q, _ = np.linalg.qr(rng.normal(size=(count, 3, 3)))
    X = np.tile(np.eye(4), (count, 1, 1))
    X[:, :3, :3] = q * np.linalg.det(q)[:, None, None]
    X[:, :3, 3] = rng.uniform(-spread, spread, (count, 3))
    return X
