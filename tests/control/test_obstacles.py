"""Obstacles of a step: how far links are from them, and that they keep away."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import tasks
from armillary.errors import ModelError, ShapeError

START = np.array([0.0, 0.0, -1.2, 1.5, -1.0, -1.4, 0.3])
MARGIN = 0.02
COUNT = 500
CAPSULE = arm.shapes.Capsule(radius=0.07, length=0.5)


@pytest.fixture(scope="module")
def capsule() -> arm.Cell:
    """A capsule about z, which is moved along x."""
    beam = arm.joints.Prismatic(axis=(1, 0, 0))
    body = arm.Link(name="body", parent="ground", joint=beam, collisions=[CAPSULE])
    links = [arm.Link(name="ground"), body]
    return arm.Cell(manipulators=[arm.Manipulator(name="one", links=links)])


def random_poses(rng: np.random.Generator, count: int) -> Any:
    found = np.tile(np.eye(4), (count, 1, 1))
    for X in found:
        Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
        Q = Q * np.sign(np.diag(R))
        X[:3, :3] = Q * np.linalg.det(Q)
        X[:3, 3] = rng.uniform(-0.8, 0.8, 3)
    return found


def distances(cell: arm.Cell, obstacles: arm.Obstacles) -> Any:
    control = cell.controller(tasks.Posture(), avoid=cell.collision())
    q = np.zeros((COUNT, 1))
    return control(q, q, q, obstacles=obstacles).distance


def test_distances_of_boxes_are_exact(capsule: arm.Cell) -> None:
    rng = np.random.default_rng(1)
    X = random_poses(rng, COUNT)
    X[: COUNT // 5, :3, :3] = np.eye(3)  # the capsule is parallel to edges
    size = (0.2, 0.5, 0.9)
    found = distances(capsule, arm.Obstacles.boxes(X[:, None], size))
    box = arm.shapes.Box(size=size)
    wanted = arm.shapes.distance(CAPSULE, np.eye(4), box, X).value
    assert (wanted < -0.1).any()
    assert (wanted > 0.1).any()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


def test_joined_obstacles_are_those_of_all_parts(capsule: arm.Cell) -> None:
    rng = np.random.default_rng(2)
    ends = rng.uniform(-0.8, 0.8, (COUNT, 1, 2, 3))
    ends[::7, :, 1] = ends[::7, :, 0]
    ends[1::7, :, 1] = ends[1::7, :, 0] + [0.0, 0.0, 0.3]  # parallel to the capsule
    rods = arm.Obstacles(ends, 0.05, velocities=[0.1, 0.2, 0.3])
    boxes = arm.Obstacles.boxes(random_poses(rng, COUNT)[:, None], (0.1, 0.2, 0.3))
    both = arm.Obstacles.joined(rods, boxes)
    apart = np.minimum(distances(capsule, rods), distances(capsule, boxes))
    found = distances(capsule, both)
    is_apart = apart > 0.0  # capsules do not say how deep they are in each other
    assert is_apart.mean() > 0.5
    np.testing.assert_allclose(found[is_apart], apart[is_apart], rtol=0, atol=1e-12)
    assert (found[~is_apart] <= 0.0).all()
    assert np.array_equal(both.after(2.0).numbers[..., 0, :3], both_ahead(rods, 2.0))


def both_ahead(rods: arm.Obstacles, time: float) -> Any:
    """The middles of capsules after a time."""
    return rods.ends.mean(axis=2)[:, 0] + time * np.array([0.1, 0.2, 0.3])


def test_a_box_that_moves_is_kept_away_from() -> None:
    rail = arm.example("ur10_on_rail")
    fk = rail.fk("tool0")
    target = fk(START)
    control = rail.controller(
        [tasks.Frame("tool0"), tasks.Posture()],
        avoid=rail.collision(margin=MARGIN),
        acceleration=15.0,
        rate=250.0,
    )
    X = np.eye(4)
    X[:3, :3] = arm.Pose.rotation_z(0.4).matrix()[:3, :3]
    X[:3, 3] = target[:3, 3] + [0.0, 0.6, -0.1]
    box = arm.Obstacles.boxes([X], (0.3, 0.3, 0.3), velocities=[0.0, -0.25, 0.0])
    motion = control.simulate(START, [target, None], 700, obstacles=box)
    assert motion.distance.min() > MARGIN - 5e-4
    assert {arm.RateReason.AVOIDING, arm.RateReason.MET} <= set(motion.reason.tolist())
    assert arm.RateReason.PUSHED not in motion.reason
    away = np.linalg.norm(fk(motion.q)[:, :3, 3] - target[:3, 3], axis=1)
    assert away.max() > 0.1


def test_obstacles_that_do_not_fit_are_refused(capsule: arm.Cell) -> None:
    eye = np.eye(4)
    with pytest.raises(ShapeError, match=r"\(\.\.\., k, 4, 4\), not \(4, 4\)"):
        arm.Obstacles.boxes(eye, (1, 1, 1))
    with pytest.raises(ShapeError, match=r"or \(3,\), not \(2,\)"):
        arm.Obstacles.boxes([eye], (1, 1))
    with pytest.raises(ModelError, match="not orthonormal"):
        arm.Obstacles.boxes([2.0 * eye], (1, 1, 1))
    with pytest.raises(ShapeError, match="none has a side below 0"):
        distances(capsule, arm.Obstacles.boxes([eye], (1, 1, -1)))
    with pytest.raises(ShapeError, match="1 boxes by their centres"):
        distances(capsule, arm.Obstacles([[[0, 0, 0]] * 2], 0.1, sizes=[[1, 1, 1]]))
    with pytest.raises(ShapeError, match="one or more"):
        arm.Obstacles.joined()
    rows = [arm.Obstacles.spheres(np.zeros((n, 1, 3)), 0.1) for n in (2, 3)]
    with pytest.raises(ShapeError, match=r"do not fit together: \(2,\), \(3,\)"):
        arm.Obstacles.joined(*rows)


def test_batches_without_rows_take_obstacles() -> None:
    found = arm.Obstacles(np.zeros((0, 3, 2, 3)), np.zeros((0, 3)))
    assert found.numbers.shape == (0, 3, 10)
