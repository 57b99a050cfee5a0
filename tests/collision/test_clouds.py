"""Checks, distances and motions of clouds, beside brute force."""

from __future__ import annotations

import functools
import math
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from scipy.spatial import cKDTree

import armillary as arm
from armillary.collision.distance import cloud
from armillary.collision.distance.ball_tree import BALLS, ball_tree
from armillary.errors import ModelError
from armillary.model import bounding_volumes
from armillary.model.cloud import Cloud
from armillary.model.primitive import Primitive
from solids import SOLIDS

Array = npt.NDArray[np.float64]
Points, Voxels = arm.shapes.Points, arm.shapes.Voxels
Sphere = arm.shapes.Sphere

RNG = np.random.default_rng(11)
SOME = RNG.normal(size=(300, 3)).astype(np.float32).astype(np.float64)
FILLED = RNG.random((5, 4, 6)) < 0.3
CLOUDS: dict[str, Cloud] = {
    "points": Points(SOME, 0.05),
    "bare points": Points(SOME[:40], 0.0),
    "one point": Points(SOME[:1], 0.1),
    "flat points": Points(SOME * (1.0, 1.0, 0.0), 0.02),
    "equal points": Points(np.ones((100, 3)), 0.02),
    "voxels": Voxels(FILLED, 0.3),
}


def some_poses(count: int, reach: float, seed: int = 3) -> Array:
    rng = np.random.default_rng(seed)
    return np.array(
        [
            arm.Pose.from_rpy(
                *rng.uniform(-3.0, 3.0, 3), rng.uniform(-reach, reach, 3)
            ).matrix()
            for _ in range(count)
        ]
    )


def by_elements(cloud: Cloud, other: Primitive, X: Array) -> Array:
    """The distance of the nearest element, each element by itself: (k,)."""
    element = cloud.element
    kernel = arm.shapes.distance_kernel(element, other)
    values: list[float] = []
    for pose in X:
        moved = np.tile(pose, (len(cloud.centres), 1, 1))
        moved[:, :3, 3] -= cloud.centres
        values.append(float(kernel(moved).min()))
    return np.array(values)


@pytest.mark.parametrize("name", CLOUDS)
def test_tree_has_all_centres_within_their_balls(name):
    centres = CLOUDS[name].centres
    tree = ball_tree(centres)

    def below(record: int) -> Array:
        balls = tree.balls[record]
        is_there = balls[3, : BALLS - 1] >= 0.0
        points, first = balls[:3, : BALLS - 1].T[is_there], balls[0, -1]
        if first < 0.0:
            return points
        parts = [below(int(first) + k) for k in np.flatnonzero(is_there).tolist()]
        for part, middle, radius in zip(
            parts, points, balls[3, : BALLS - 1][is_there], strict=True
        ):
            assert np.linalg.norm(part - middle, axis=1).max() <= radius
        return np.concatenate(parts)

    found = below(0)
    assert np.array_equal(np.unique(found, axis=0), np.unique(centres, axis=0))
    assert len(found) == len(centres)


@pytest.mark.parametrize("solid", ["box", "sphere", "capsule", "cone", "polyhedron"])
@pytest.mark.parametrize("name", ["points", "voxels", "one point"])
def test_distance_is_that_of_the_nearest_element(name, solid):
    cloud, other = CLOUDS[name], SOLIDS[solid]
    X = some_poses(12, 6.0)
    expected = by_elements(cloud, other, X)
    found = arm.shapes.distance_kernel(cloud, other, depth=False)(X)
    apart = expected > 0.0
    assert apart.sum() > 0
    assert np.allclose(found[apart], expected[apart], rtol=0.0, atol=1e-9)
    assert (found[~apart] <= 1e-9).all()
    turned = arm.shapes.distance_kernel(other, cloud)(np.linalg.inv(X))
    # Depths of two polyhedra are upper bounds, within their gap.
    assert np.allclose(turned, expected, rtol=0.0, atol=1e-6)


def test_points_and_normal_are_those_of_the_nearest_element():
    other = SOLIDS["box"]
    for shape in (CLOUDS["points"], CLOUDS["voxels"]):
        placed = msgspec.structs.replace(shape, pose=arm.Pose.rotation_x(0.4))
        X_A, X_B = some_poses(20, 0.5, seed=5), some_poses(20, 6.0, seed=6)
        for a, b, A, B in ((placed, other, X_A, X_B), (other, placed, X_B, X_A)):
            found = arm.shapes.distance(a, A, b, B)
            value = found.value[..., np.newaxis]
            step = found.points[:, 1] - found.points[:, 0]
            assert np.allclose(step, value * found.normal, rtol=0.0, atol=1e-9)
            local = np.linalg.inv(X_A @ placed.pose.matrix()) @ X_B
            expected = by_elements(shape, other, local)
            assert np.allclose(found.value, expected, rtol=0.0, atol=1e-9)


def test_half_spaces_and_clouds_have_a_distance():
    ground = arm.shapes.HalfSpace.below((0, 0, -1), (0, 0, 1))
    cloud = CLOUDS["points"]
    found = arm.shapes.distance(ground, np.eye(4), cloud, np.eye(4))
    lowest = cloud.centres[:, 2].min()
    assert found.value == pytest.approx(lowest + 1.0 - 0.05)


def test_distances_at_poses_of_nan_are_nan():
    X = some_poses(3, 2.0)
    X[1, 0, 3] = np.nan
    for asked in ({}, {"depth": False}, {"apart": False, "depth": False}):
        kernel = arm.shapes.distance_kernel(CLOUDS["points"], SOLIDS["sphere"], **asked)
        assert np.isnan(kernel(X)).tolist() == [False, True, False]


def test_two_clouds_are_refused():
    with pytest.raises(ModelError, match="Two clouds have no distance"):
        arm.shapes.distance(CLOUDS["points"], np.eye(4), CLOUDS["voxels"], np.eye(4))


# Checks


def arm_with(*shapes: arm.shapes.Primitive, limb: Any = None) -> arm.Cell:
    """An arm of three joints with balls, or other limbs, among obstacles."""
    limbs = limb or [Sphere(radius=0.08, pose=arm.Pose.translation(0.2, 0, 0))]
    links = [arm.Link(name="base")]
    for k, axis in enumerate([(0, 0, 1), (0, 1, 0), (0, 1, 0)]):
        X = arm.Pose.translation(0.4 if k else 0.0, 0, 0)
        joint = arm.joints.Revolute(axis=axis, precursor=X)
        links.append(
            arm.Link(
                name=f"link{k}",
                parent=links[-1].name,
                joint=joint,
                limits=arm.Limits(lower=-2.5, upper=2.5),
                collisions=limbs,
            )
        )
    robot = arm.Manipulator(name="robot", links=links)
    things = arm.Manipulator(
        name="scene", links=[arm.Link(name="body", collisions=list(shapes))]
    )
    cell = arm.Cell(manipulators=[robot, things])
    rules = cell.rules.exclude("robot/*", "robot/*", reason="not asked")
    rules = rules.include("robot/*", "scene/*")
    return cell.replace(rules=rules)


@functools.cache
def scanned() -> Array:
    """Points of a table and of a pillar."""
    rng = np.random.default_rng(1)
    table = rng.uniform((-1, -1, -0.4), (1, 1, -0.39), (6000, 3))
    turn, z = rng.uniform(-math.pi, math.pi, 4000), rng.uniform(-0.4, 0.6, 4000)
    pillar = [0.7 + 0.1 * np.cos(turn), 0.3 + 0.1 * np.sin(turn), z]
    both = np.concatenate([table, np.stack(pillar, axis=1)])
    return both.astype(np.float32).astype(np.float64)


CAPSULE = [arm.shapes.Capsule.between((0, 0, 0), (0.35, 0, 0), radius=0.06)]
BOX = [arm.shapes.Box(size=(0.3, 0.1, 0.08), pose=arm.Pose.translation(0.2, 0, 0))]


@functools.cache
def checked(kind: str) -> tuple[arm.Cell, Any]:
    limb = {"spheres": None, "capsules": CAPSULE, "boxes": BOX}[kind]
    cell = arm_with(Points(scanned(), 0.01), limb=limb)
    return cell, cell.collision()


def rows(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-2.0, 2.0, (count, 3))


def expected_distances(cell: arm.Cell, Q: Array, radius: float = 0.01) -> Array:
    """Distances of each limb from the points, by a tree of points: (n, 3)."""
    tree, found = cKDTree(scanned()), []
    for k in range(3):
        X = cell.fk(f"link{k}")(Q)
        (limb,) = cell.manipulators[0].links[k + 1].collisions
        if isinstance(limb, Sphere):
            centres = X[:, :3, :3] @ np.array([0.2, 0, 0]) + X[:, :3, 3]
            found.append(tree.query(centres)[0] - limb.radius - radius)
            continue
        local = np.einsum(
            "nji,nkj->nki", X[:, :3, :3], scanned() - X[:, np.newaxis, :3, 3]
        )
        if isinstance(limb, arm.shapes.Capsule):
            local[..., 0] -= np.clip(local[..., 0], 0.0, 0.35)
            apart = np.linalg.norm(local, axis=-1) - 0.06
        else:
            beyond = np.abs(local - (0.2, 0, 0)) - (0.15, 0.05, 0.04)
            outside = np.linalg.norm(np.maximum(beyond, 0.0), axis=-1)
            apart = np.where((beyond < 0).all(-1), beyond.max(-1), outside)
        found.append(apart.min(axis=1) - radius)
    return np.stack(found, axis=1)


@pytest.mark.parametrize("kind", ["spheres", "capsules", "boxes"])
def test_checks_and_distances_agree_with_brute_force(kind):
    cell, check = checked(kind)
    Q = rows(400 if kind == "spheres" else 60)
    expected = expected_distances(cell, Q)
    least = expected.min(axis=1)
    touching = check(Q)
    assert 0.1 < touching.mean() < 0.9
    assert touching.tolist() == (least <= 1e-6).tolist()
    assert [bool(check(q)) for q in Q[:5]] == touching[:5].tolist()
    assert np.allclose(check.clearance(Q), least, rtol=0.0, atol=1e-9)
    names = [tuple(pair) for pair in check.pairs]
    order = [k for k in range(3) for pair in names if f"robot/link{k}" in pair]
    distances = check.distances(Q)
    assert np.allclose(distances[:, : len(order)].min(axis=1), least, atol=1e-9)


def test_margins_are_exact():
    cell, _ = checked("spheres")
    Q = rows(300, seed=2)
    least = expected_distances(cell, Q).min(axis=1)
    for margin in (0.003, 0.1, 0.5):
        found = cell.collision(margin=margin)(Q)
        near = np.abs(least - margin) < 2e-6
        assert (found == (least <= margin))[~near].all()


def test_many_rows_near_the_surface_agree():
    # Rows at which a ball is within a millimetre of touching: bounds decide none.
    cell, check = checked("spheres")
    Q = rows(3000, seed=4)
    least = expected_distances(cell, Q).min(axis=1)
    close = np.abs(least) < 0.004
    assert close.sum() > 20
    assert check(Q[close]).tolist() == (least[close] <= 1e-6).tolist()


@pytest.mark.thorough
def test_contacts_and_gradients_are_those_of_the_nearest_point():
    cell, check = checked("capsules")
    Q = rows(300, seed=6)
    apart = expected_distances(cell, Q).min(axis=1)
    q = Q[int(np.argmin(np.where(apart > 0.02, apart, np.inf)))]
    contact, *_ = check.contacts(q, within=1.0)
    least = expected_distances(cell, q[np.newaxis]).min()
    assert contact.distance == pytest.approx(least, abs=1e-9)
    gradients, step = check.gradients(q), 1e-6
    for joint in range(3):
        move = np.zeros(3)
        move[joint] = step
        slope = (check.distances(q + move) - check.distances(q - move)) / (2 * step)
        assert np.allclose(gradients[:, joint], slope, rtol=0.0, atol=1e-5)


@pytest.mark.parametrize("kind", ["spheres", "boxes"])
def test_motions_are_proven_up_to_where_they_touch(kind):
    _, check = checked(kind)
    Q = rows(60, seed=8)
    start = Q[~check(Q)][:12]
    goal = rows(len(start), seed=9)
    found = check.motion(start, goal)
    is_free = found.fraction == 1.0
    assert 0 < is_free.sum() < len(start)
    t = np.linspace(0.0, 1.0, 2001)[:, np.newaxis]
    for k, (q0, q1) in enumerate(zip(start, goal, strict=True)):
        touching = check(q0 + t * (q1 - q0))
        if is_free[k]:
            assert not touching.any()
        else:
            # It stops just before the first sample that touches, which a step may miss.
            first = t[int(np.argmax(touching)), 0] if touching.any() else 1.0
            assert found.fraction[k] <= first
            assert abs(check.clearance(found.q[k])) < 1e-5


def test_clouds_move_with_what_they_are_attached_to():
    scan = Points(scanned(), 0.01)
    cell = arm_with(scan)
    X = arm.Pose.from_rpy(0.2, -0.3, 0.9, (0.1, 0.2, 0.1))
    moved = cell.collision(cell.home.place("scene", X))
    same = arm_with(Points(scanned() @ np.array(X.rotation).T + X.position, 0.01))
    Q = rows(300, seed=10)
    least = same.collision().clearance(Q)
    sure = np.abs(least) > 1e-6
    assert (moved(Q) == (least <= 0.0))[sure].all()
    assert np.allclose(moved.clearance(Q), least, rtol=0.0, atol=1e-6)


def test_voxels_are_checked_as_boxes():
    place = arm.Pose.translation(0.3, -0.4, -0.5)
    cloud = Voxels(FILLED, 0.2, pose=place)
    boxes = [
        arm.shapes.Box(size=(0.2,) * 3, pose=place @ arm.Pose.translation(*centre))
        for centre in cloud.centres.tolist()
    ]
    Q = rows(300, seed=12)
    for limb in (None, CAPSULE):
        one, many = (arm_with(*x, limb=limb) for x in ([cloud], boxes))
        least = many.collision().clearance(Q)
        found = one.collision()
        assert (found(Q) == (least <= 1e-6)).all()
        apart = least > 0.0
        assert np.allclose(found.clearance(Q)[apart], least[apart], atol=1e-9)


def test_two_clouds_of_a_pair_are_refused_by_name():
    cell = arm_with(Points(scanned()[:50], 0.01), limb=[Points(np.eye(3), 0.01)])
    with pytest.raises(ModelError, match="Two clouds have no distance: those of"):
        cell.collision()(np.zeros(3))


def test_several_clouds_are_kept_apart():
    near, far = Points(scanned()[:5000], 0.01), Points(scanned()[5000:], 0.01)
    both = arm_with(near, far).collision()
    _, whole = checked("spheres")
    Q = rows(200, seed=13)
    assert (both(Q) == whole(Q)).all()
    assert np.allclose(both.clearance(Q), whole.clearance(Q), rtol=0.0, atol=1e-9)


def test_points_of_the_robot_itself_are_found():
    cell, _ = checked("capsules")
    q = np.array([0.3, 0.5, -0.4])
    state = cell.home.replace(q=q)
    rng = np.random.default_rng(0)
    points = rng.uniform((-0.2, -0.3, -0.4), (1.2, 0.5, 0.3), (3000, 3))
    points[5] = np.nan
    own = cell.own_points(points, manipulators="robot", state=state, margin=0.02)
    expected = np.zeros(len(points), np.bool_)
    for k in range(3):
        X = cell.pose(f"link{k}", state)
        local = (points - X[:3, 3]) @ X[:3, :3]
        local[:, 0] -= np.clip(local[:, 0], 0.0, 0.35)
        with np.errstate(invalid="ignore"):
            expected |= np.linalg.norm(local, axis=1) <= 0.08
    assert own.sum() > 10
    assert own.tolist() == expected.tolist()
    rest = arm_with(Points(points[~own & np.isfinite(points).all(axis=1)], 0.0))
    assert not rest.collision()(q)


def test_bounding_spheres_leave_clouds_as_they_are(monkeypatch):
    monkeypatch.setattr(bounding_volumes, "ROUND", 5e-3)  # fewer triangles
    cell, _ = checked("spheres")
    bounded = cell.with_collisions("spheres", count=1)
    assert (
        bounded.manipulators[1].links[0].collisions
        == cell.manipulators[1].links[0].collisions
    )
    assert isinstance(bounded.manipulators[0].links[1].collisions[0], Sphere)


def test_what_a_cloud_is_made_of_is_kept_for_all_its_places(monkeypatch):
    made: list[int] = []

    def counted(centres: Array) -> Any:
        made.append(len(centres))
        return ball_tree(centres)

    monkeypatch.setattr(cloud, "ball_tree", counted)
    points = np.random.default_rng(5).uniform(-1.0, 1.0, (321, 3))
    for radius, x in ((0.01, 0.0), (0.02, 0.0), (0.02, 0.3)):
        shape = Points(points, radius, pose=arm.Pose.translation(x, 0.0, 0.0))
        arm_with(shape).collision()(np.zeros(3))
    assert made == [321]
