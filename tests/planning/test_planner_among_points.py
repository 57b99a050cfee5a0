"""Planned ways among points that a camera sees, judged by SciPy's tree of them."""

from __future__ import annotations

import functools
from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial import cKDTree

import armillary as arm
from armillary.kernel import compiler
from armillary.shapes import Box, ConvexPolyhedron, Points, Sphere, Voxels

Array = np.ndarray
UR5 = (  # behind each joint: along x and z [m], then about x by an angle
    (0.0, 0.0892, np.pi / 2),
    (-0.425, 0.0, 0.0),
    (-0.392, 0.0, 0.0),
    (0.0, 0.1093, np.pi / 2),
    (0.0, 0.0948, -np.pi / 2),
    (0.0, 0.0825, 0.0),
)
BALL = 0.06
POINT = 0.01
DENSE = 250


def balls_of(link: int) -> Array:
    """Return the centres of the balls of a link in its frame, shape (n, 3)."""
    x, z, _ = UR5[link]
    out = 0.12 if link in {1, 2} else 0.0  # the upper arm is beside the shoulder
    part = np.linspace(0.0, 1.0, 6 if x else 2)
    return np.stack([part * x, 0.0 * part, out * (link == 1) + part * z], axis=1)


def ur5(limb: str = "balls") -> arm.Manipulator:
    """Return a UR5 in balls, or other shapes around them."""
    links = [arm.Link(name="base")]
    X = arm.Pose.translation(0.0, 0.0, 0.0)
    for k, (x, z, turn) in enumerate(UR5):
        centres = balls_of(k)
        middle = centres.mean(axis=0)
        half = np.abs(centres - middle).max(axis=0) + BALL
        corners = middle + half * np.array(
            [[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)]
        )
        shapes: list[arm.shapes.Shape] = [
            Sphere(radius=BALL, pose=arm.Pose.translation(*centre))
            for centre in centres.tolist()
        ]
        if limb == "boxes":
            place = arm.Pose.translation(*middle.tolist())
            shapes = [Box(size=tuple((2.0 * half).tolist()), pose=place)]
        elif limb == "hulls":
            shapes = [ConvexPolyhedron.around(corners)]
        links.append(
            arm.Link(
                name=f"link{k}",
                parent=links[-1].name,
                joint=arm.joints.Revolute(axis=(0, 0, 1), precursor=X),
                limits=arm.Limits(lower=-3.1, upper=3.1),
                collisions=shapes,
            )
        )
        X = arm.Pose.translation(x, 0.0, z) @ arm.Pose.rotation_x(turn)
    return arm.Manipulator(name="ur5", links=links)


@functools.cache
def alone(limb: str = "balls") -> arm.Cell:
    cell = arm.Cell(manipulators=[ur5(limb)])
    return cell.replace(rules=cell.rules.exclude("ur5/*", "ur5/*", reason="not asked"))


def scan(seed: int = 0, count: int = 20_000) -> Array:
    """Return points of a table and of four poles on it, that float32 has."""
    rng = np.random.default_rng(seed)
    table = rng.uniform((-1.2, -1.2, -0.12), (1.2, 1.2, -0.11), (count // 2, 3))
    each = count // 8
    found = [table]
    for x, y in ((0.5, 0.3), (-0.5, 0.35), (0.35, -0.5), (-0.4, -0.45)):
        turn = rng.uniform(-np.pi, np.pi, each)
        z = rng.uniform(-0.1, 0.7, each)
        pole = x + 0.05 * np.cos(turn), y + 0.05 * np.sin(turn), z
        found.append(np.stack(pole, axis=1))
    return np.concatenate(found).astype(np.float32).astype(np.float64)


def centres(Q: Array) -> Array:
    """Return the centres of all balls by a formula of its own: (n, 6) -> (n, k, 3)."""
    X, found = np.tile(np.eye(4), (len(Q), 1, 1)), []
    for k, (x, z, turn) in enumerate(UR5):
        joint = np.tile(np.eye(4), (len(Q), 1, 1))
        c, s = np.cos(Q[:, k]), np.sin(Q[:, k])
        joint[:, 0, 0], joint[:, 0, 1] = c, -s
        joint[:, 1, 0], joint[:, 1, 1] = s, c
        X = X @ joint
        local = balls_of(k)
        found.append(np.einsum("nij,kj->nki", X[:, :3, :3], local) + X[:, None, :3, 3])
        behind = np.eye(4)
        c, s = np.cos(turn), np.sin(turn)
        behind[1:3, 1:3] = (c, -s), (s, c)
        behind[:3, 3] = x, 0.0, z
        X = X @ behind
    return np.concatenate(found, axis=1)


def gaps(Q: Array, points: Array, most: float = 0.1) -> Array:
    """Return how far the balls of the arm are from points: (n, 6) -> (n,).

    It is infinite where that is more than `most`.
    """
    apart, _ = cKDTree(points).query(
        centres(Q), distance_upper_bound=most + BALL + POINT
    )
    return apart.min(axis=1) - BALL - POINT


def dense(q: Array, count: int = DENSE) -> Array:
    """Return samples of each motion of a way."""
    t = np.linspace(0.0, 1.0, count)[:, None]
    return np.concatenate([a + t * (b - a) for a, b in pairwise(q)])


def problems(points: Array, count: int, seed: int = 0) -> list[tuple[Array, Array]]:
    """Return starts and goals between which a straight motion touches points."""
    Q = np.random.default_rng(seed).uniform(-2.5, 2.5, (60 * count + 60, 6))
    free = Q[gaps(Q, points) > 0.02]
    found: list[tuple[Array, Array]] = []
    for start, goal in pairwise(free):
        if gaps(dense(np.stack([start, goal]), 50), points).min() < 0.0:
            found.append((start, goal))
            if len(found) == count:
                return found
    raise AssertionError(f"There are {len(found)} problems of {count}.")


def with_points(cell: arm.Cell, points: Array) -> arm.Cell:
    """Return the cell that has the points as a part of its own."""
    scene = arm.Link(name="seen", collisions=[Points(points, POINT)])
    made = cell.add(arm.Manipulator(name="scene", links=[scene]))
    return made.replace(rules=made.rules.include("ur5/link*", "scene/seen"))


@pytest.mark.parametrize("where", ["obstacle", "cell"])
def test_ways_touch_no_point(where: str) -> None:
    points = scan()
    cell = alone() if where == "obstacle" else with_points(alone(), points)
    check = cell.collision()
    if where == "obstacle":
        check = check.with_obstacles({"scan": Points(points, POINT)})
    Q = np.random.default_rng(4).uniform(-2.5, 2.5, (100, 6))
    np.testing.assert_allclose(check.clearance(Q), gaps(Q, points, np.inf), atol=1e-9)
    planner = cell.planner(check)
    for start, goal in problems(points, 4):
        plan = planner(start, goal, seed=1, timeout=None)
        assert plan.success and plan.proven
        assert (plan.q[0] == start).all() and (plan.q[-1] == goal).all()
        assert gaps(dense(plan.q), points).min() > 0.0
        assert check.motion(plan.q[:-1], plan.q[1:]).free.all()
        assert len(plan.q) > 2
    touching = Q[gaps(Q, points) < -0.01][0]
    assert planner(touching, goal).reason is arm.PlanReason.START_TOUCHES


def test_another_scan_compiles_nothing_and_counts_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check = alone().collision()
    first = check.with_obstacles({"scan": Points(scan(), POINT)})
    start, goal = problems(scan(), 1)[0]
    assert alone().planner(first)(start, goal, timeout=None).success

    def refuse(*given: object, **named: object) -> None:
        raise AssertionError("Another scan needs no code.")

    monkeypatch.setattr(compiler, "loaded", refuse)
    moved = scan() @ np.diag((-1.0, -1.0, 1.0)) + (0.1, -0.05, 0.0)
    now = moved.astype(np.float32).astype(np.float64)
    planner = alone().planner(check.with_obstacles({"scan": Points(now, POINT)}))
    for start, goal in problems(now, 2, seed=2):
        plan = planner(start, goal, timeout=None)
        assert plan.success and plan.proven
        assert gaps(dense(plan.q), now).min() > 0.0


@pytest.mark.thorough
@pytest.mark.parametrize("limb", ["boxes", "hulls"])
@pytest.mark.parametrize("kind", ["points", "voxels"])
def test_arms_of_other_shapes_touch_nothing(limb: str, kind: str) -> None:
    # Boxes and hulls are around the balls, and cells around points.
    points = scan(1)
    cloud = Points(points, POINT)
    if kind == "voxels":
        cloud = Voxels.around(points, size=0.03)
    check = alone(limb).collision().with_obstacles({"scan": cloud})
    planner = alone(limb).planner(check)
    Q = np.random.default_rng(3).uniform(-2.5, 2.5, (300, 6))
    least = check.clearance(Q)
    free = Q[least > 0.01]
    assert (gaps(free, points) > -POINT).all()
    for start, goal in pairwise(free[:4]):
        plan = planner(start, goal, seed=1, timeout=None)
        assert plan.success and plan.proven
        apart = gaps(dense(plan.q), points)
        assert (apart + (POINT if kind == "voxels" else 0.0)).min() > 0.0
        assert not check(dense(plan.q)).any()
