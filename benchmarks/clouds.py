"""Checks of clouds of points, beside those of the shapes that the points are of.

A million points on the surfaces of 20 spheres, beside the check with the 20 spheres
themselves: the same rows touch, so that both do the same. SciPy's tree of points is
beside single distances, and says whether these agree.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from scipy.spatial import cKDTree

import armillary as arm
from armillary.collision.distance import cloud as cloud_module
from benchmarks.collisions import cell_with, obstacles, random_q
from benchmarks.measure import Figure, best_times, cheaper, faster, within

COUNT = 1_000_000
ROWS, FEW = 20_000, 300


def surface_points(count: int) -> np.ndarray:
    """Return points on the surfaces of 20 spheres, shape (count, 3)."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(20, count // 20, 3))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    spheres = obstacles("spheres", 20)
    parts = [
        np.array(sphere.pose.position) + sphere.radius * outwards
        for sphere, outwards in zip(spheres, directions, strict=True)
    ]
    return np.concatenate(parts)


def figures() -> Iterator[Figure]:
    """Yield the figures of clouds."""
    points = surface_points(COUNT)
    spheres = cell_with(obstacles("spheres", 20)).collision()
    cloud = arm.shapes.Points(points, 0.0)
    # Code is compiled once for all clouds.
    cell_with([arm.shapes.Points(points[:5000], 0.0)]).collision()(np.zeros(7))
    check = cell_with([cloud]).collision()
    yield from build_figures(cloud, points)
    yield from check_figures(check, spheres, points)
    yield from other_figures(check, spheres)


def build_figures(cloud: arm.shapes.Points, points: np.ndarray) -> Iterator[Figure]:
    """Yield how long the tree and the grid of a cloud take."""

    def build() -> None:
        for kept in (
            cloud_module._tree,
            cloud_module._grid,
            cloud_module._tree_records,
            cloud_module._cell_records,
        ):
            kept.cache_clear()
        elements = cloud_module.CloudElements.of(cloud)
        cloud_module._tree_records(elements, np.dtype(np.float32))
        cloud_module._cell_records(elements, np.dtype(np.float32))

    ours, peer = best_times(
        build, lambda: cKDTree(points), turns=3, clock=time.process_time
    )
    yield cheaper("a cloud of 1e6 points, built; SciPy's tree", ours, peer, at_most=3)


def check_figures(
    check: arm.CollisionCheck, spheres: arm.CollisionCheck, points: np.ndarray
) -> Iterator[Figure]:
    """Yield the time of rows of a batch and of single calls."""
    Q, few = random_q(ROWS), random_q(FEW)
    touching, expected = check(Q), spheres(Q)
    # Points have gaps: only rows that nearly touch may differ.
    assert (touching & ~expected).sum() == 0
    assert np.abs(spheres.clearance(Q[touching != expected])).max(initial=0) < 1e-3
    kernels = [each._kernel("touching") for each in (check, spheres)]
    rows = Q.astype(kernels[0].dtype)
    out = np.empty(len(Q), rows.dtype)
    ours, theirs, one, other = best_times(
        lambda: kernels[0](rows, out=out, threads=1),
        lambda: kernels[1](rows, out=out, threads=1),
        lambda: [check(q) for q in few],
        lambda: [spheres(q) for q in few],
        turns=20,
        clock=time.process_time,
    )
    title = "arm in 59 spheres against 1e6 points; 20 spheres"
    yield cheaper(f"{title}, kernel", ours / ROWS, theirs / ROWS, at_most=3)
    yield cheaper(f"{title}, check(q)", one / FEW, other / FEW, at_most=3)
    # A tree of SciPy, asked for the nearest point of each sphere of the arm.
    tree = cKDTree(points)
    X = np.random.default_rng(1).uniform(points.min(0), points.max(0), (50, 3))
    ball = arm.shapes.distance_kernel(
        arm.shapes.Points(points, 0.0), arm.shapes.Sphere(radius=0.0)
    )
    poses = np.tile(np.eye(4), (len(X), 1, 1))
    poses[:, :3, 3] = X
    assert np.abs(ball(poses) - tree.query(X.astype(float))[0]).max() < 1e-6
    mine, peer = best_times(lambda: ball(poses), lambda: tree.query(X), turns=5)
    what = "nearest of 1e6 points, of 50; SciPy's tree"
    yield faster(what, mine / len(X), peer / len(X), at_least=1)


def other_figures(
    check: arm.CollisionCheck, spheres: arm.CollisionCheck
) -> Iterator[Figure]:
    """Yield the time of distances, contacts and proven motions."""
    Q, goals = random_q(FEW), random_q(FEW, seed=1)
    q = Q[0]
    tasks = {
        "distances(Q)": lambda each: each.distances(Q),
        "clearance(Q)": lambda each: each.clearance(Q),
        "contacts(q)": lambda each: each.contacts(q, within=0.1),
        "motion(Q, Q)": lambda each: each.motion(Q, goals),
    }
    for what, task in tasks.items():
        ours, theirs = best_times(
            lambda: task(check),  # noqa: B023
            lambda: task(spheres),  # noqa: B023
            turns=5,
            clock=time.process_time,
        )
        count = 1 if what == "contacts(q)" else FEW
        title = f"arm in 59 spheres against 1e6 points, {what}"
        yield within(title, ours / count, at_most=1e-3, peer=theirs / count)
