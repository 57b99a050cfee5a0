"""Distances of pairs of shapes, beside coal and MuJoCo: batches, one thread.

Ours takes poses (4, 4) and gives signed distances. A batch of 8 000 poses takes 1 MiB,
which the second cache of a processor holds; larger ones wait for memory, as the last
figure shows. coal is asked for the same with `ComputeDistance`, which keeps what it can
between calls: from Python, and in a loop of C++. MuJoCo is asked in a loop of C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from armillary.model.primitive import Primitive
from armillary.model.shapes import (
    Box,
    Capsule,
    Cone,
    ConvexPolyhedron,
    Cylinder,
    Ellipsoid,
    Sphere,
)
from armillary.shapes import distance_kernel
from benchmarks.measure import Figure, best_times, faster
from benchmarks.peer_loops import NotThere, coal_loop, mujoco_loop

BATCH = 8_000
LARGE = 100_000
FEW = 2_000
TURN = 1e-3
"""Time for which we are called again and again, so that poses are in the cache [s]."""
HULL_SIZES = (8, 32, 100)

Task = Callable[[], Any]


def figures() -> Iterator[Figure]:
    """Yield the figures of pairs of shapes."""
    ball, rod = Sphere(radius=0.1), Capsule(radius=0.1, length=0.6)
    box = Box(size=(0.4, 0.3, 0.6))
    boxes, tube = (Box(size=(0.2, 0.4, 0.5)), box), Cylinder(radius=0.1, length=0.4)
    tubes = tube, Cylinder(radius=0.2, length=0.6)
    cone = Cone(bottom=0.2, length=0.5)
    balls = ball, Sphere(radius=0.15)
    egg = Ellipsoid(radii=(0.1, 0.2, 0.3))
    pairs: list[tuple[Primitive, Primitive, float, float]] = [
        (*balls, 100.0, 5.0),
        (ball, rod, 100.0, 5.0),
        (rod, Capsule(radius=0.15, length=0.4), 100.0, 5.0),
        (ball, box, 100.0, 5.0),
        (rod, box, 60.0, 25.0),
        (*boxes, 12.0, 6.0),
        (tube, box, 3.0, 1.5),
        (cone, box, 3.0, 1.5),
        (*tubes, 1.0, 0.5),
        (cone, tube, 1.0, 0.5),
        (rod, tube, 3.0, 1.5),
        (egg, egg, 3.0, 1.5),
        (egg, box, 3.0, 1.5),
    ]
    for a, b, python, native in pairs:
        yield from pair_figures(a, b, python, native)
    yield from pair_figures(*boxes, 120.0, 60.0, apart=False)
    yield from pair_figures(*tubes, 3.0, 1.0, depth=False)
    yield from pair_figures(*tubes, 8.0, 5.0, depth=False, apart=False)
    for size in HULL_SIZES:
        a, b = (ConvexPolyhedron.around(hull(size + k, size)) for k in range(2))
        yield from pair_figures(a, b, 1.0, 0.5)
        yield from pair_figures(a, b, 4.0, 5.0, depth=False)
        yield from pair_figures(a, b, 12.0, 8.0, depth=False, apart=False)
    yield from pair_figures(*balls, 60.0, 3.0, count=LARGE)


def pair_figures(
    a: Primitive,
    b: Primitive,
    python: float,
    native: float,
    *,
    depth: bool = True,
    apart: bool = True,
    count: int = BATCH,
) -> Iterator[Figure]:
    """Yield a line per peer for two shapes at random poses, some of which overlap.

    Args:
        a: The first.
        b: The second.
        python: What is asked for beside coal from Python.
        native: The same beside coal in C++; half of it beside MuJoCo.
        depth: As for `distance_kernel`.
        apart: The same; coal is asked whether they collide where neither counts.
        count: Poses of a batch.
    """
    X = poses(np.random.default_rng(0), count, 0.9)
    kernel = distance_kernel(a, b, depth=depth, apart=apart)
    out = np.empty(count)
    few = X[:FEW]
    question = "signed" if depth else "distance" if apart else "collision"
    makers: dict[str, tuple[float, Callable[[], Task]]] = {
        "coal, from Python": (python, lambda: _from_python(a, b, few, question)),
        "coal, in C++": (native, lambda: coal_loop(a, b, few, question)),
    }
    if depth and not isinstance(a, ConvexPolyhedron):
        makers["MuJoCo, in C"] = 0.5 * native, lambda: mujoco_loop(a, b, few)
    peers: dict[str, tuple[float, Task]] = {}
    missing: dict[str, str] = {}
    for name, (at_least, maker) in makers.items():
        try:
            peers[name] = at_least, maker()
        except NotThere as error:
            missing[name] = str(error)

    def once() -> None:
        kernel(X, out=out, threads=1)

    repeats = max(1, round(TURN / best_times(once, turns=2)[0]))

    def ours() -> None:
        for _ in range(repeats):
            once()

    first, *times = best_times(ours, *(task for _, task in peers.values()), turns=24)
    what = f"distance, {_named(a)} and {_named(b)}{_without(depth, apart, count)}"
    for (name, (at_least, task)), time in zip(peers.items(), times, strict=True):
        _compare(task(), out[:FEW], apart)
        mine = first / repeats / count
        yield faster(f"{what}; {name}", mine, time / FEW, at_least=at_least)
    for name, reason in missing.items():
        yield Figure(f"{what}; {name}", "", "", "", f"left out: {reason}", True)


def _compare(theirs: np.ndarray, ours: np.ndarray, apart: bool) -> None:
    is_free = theirs > 1e-3
    if apart:
        assert np.abs(theirs - ours)[is_free].max() < 1e-3
    assert (ours[is_free] > 0.0).all()
    assert (ours[theirs < -1e-3] > 0.0).sum() <= 0.001 * len(ours)


def _from_python(a: Primitive, b: Primitive, X: np.ndarray, question: str) -> Task:
    coal: Any = import_module("coal")
    at = [coal.Transform3s(x[:3, :3].copy(), x[:3, 3].copy()) for x in X]
    here, found = coal.Transform3s(), np.empty(len(X))
    shapes = peer_shape(a), peer_shape(b)  # coal does not keep them
    if question == "collision":
        collide, asked = coal.ComputeCollision(*shapes), coal.CollisionRequest()

        def collisions() -> np.ndarray:
            for k, there in enumerate(at):
                truth = collide(here, there, asked, coal.CollisionResult())
                found[k] = -1.0 if truth else 1.0
            return found

        collisions.shapes = shapes  # pyright: ignore[reportFunctionMemberAccess]
        return collisions
    compute, request = coal.ComputeDistance(*shapes), coal.DistanceRequest()
    request.enable_signed_distance = question == "signed"

    def distances() -> np.ndarray:
        for k, there in enumerate(at):
            found[k] = compute(here, there, request, coal.DistanceResult())
        return found

    distances.shapes = shapes  # pyright: ignore[reportFunctionMemberAccess]
    return distances


def _named(shape: Primitive) -> str:
    if isinstance(shape, ConvexPolyhedron):
        return f"hull of {len(shape.vertices)}"
    return type(shape).__name__.lower()


def _without(depth: bool, apart: bool, count: int) -> str:
    words = [] if depth else ["without depth"]
    words += [] if apart else ["without distance"]
    words += [] if count == BATCH else [f"batch of {count}"]
    return "".join(f", {word}" for word in words)


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
        case Cone(top=0.0):
            return coal.Cone(shape.bottom, shape.length)
        case Ellipsoid():
            return coal.Ellipsoid(*shape.radii)
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
