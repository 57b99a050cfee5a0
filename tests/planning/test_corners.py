"""Rounded corners of ways: curves within their bounds, and free as is asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.planning.corners import LINES, _lines, free_blends, timed_way
from armillary.shapes import Sphere
from armillary.trajectories.blends import blended
from armillary.trajectories.curve import hermite_coefficients

MARGIN = 0.02
TOOL, POST = 0.05, 0.1
LIMITS: dict[str, Any] = {"velocity": 1.0, "acceleration": 3.0}


def gantry(post: tuple[float, float]) -> arm.Cell:
    """A ball that slides along x and y, and another that is in the way."""
    slide: dict[str, Any] = {"limits": arm.Limits(lower=-5.0, upper=5.0)}
    links = [
        arm.Link(name="base"),
        arm.Link(
            name="x",
            parent="base",
            joint=arm.joints.Prismatic(axis=(1, 0, 0)),
            **slide,
        ),
        arm.Link(
            name="y",
            parent="x",
            joint=arm.joints.Prismatic(axis=(0, 1, 0)),
            collisions=[Sphere(radius=TOOL)],
            **slide,
        ),
    ]
    at = arm.Pose.translation(*post, 0.0)
    ball = arm.Link(name="ball", collisions=[Sphere(radius=POST, pose=at)])
    return arm.Cell(
        manipulators=[
            arm.Manipulator(name="gantry", links=links),
            arm.Manipulator(name="post", links=[ball]),
        ]
    )


@pytest.mark.parametrize("n", [2, 3, 7])
def test_curves_are_those_that_are_timed_and_keep_their_bounds(n: int):
    rng = np.random.default_rng(n)
    way = rng.normal(size=(6, n))
    deviations = rng.uniform(0.01, 0.4, 4)
    starts, ends, off = _lines(way, deviations)
    curve = blended(way, deviations).curve
    parts = hermite_coefficients(np.diff(curve.at), curve.knots)[1::2]
    powers = np.linspace(0.0, 1.0, 100 * LINES + 1)[:, None] ** np.arange(6)
    for k, part in enumerate(parts):
        q = powers @ part
        assert np.abs(q[::100] - [*starts[k], ends[k][-1]]).max() < 1e-12
        for line in range(LINES):
            some = q[100 * line : 100 * line + 101]
            t = np.linspace(0.0, 1.0, 101)[:, None]
            apart = np.abs(some - starts[k][line] - t * (ends[k] - starts[k])[line])
            assert (apart.max(axis=0) <= off[k] * (1.0 + 1e-9) + 1e-15).all()
        # In the middle it is 3/16 d |w - u| from the corner, as was asked or less.
        middle = np.abs(q[50 * LINES] - way[k + 1]).max()
        assert middle <= deviations[k] * (1.0 + 1e-9)
        assert np.isclose(middle, 0.5 * LINES**2 * off[k].max())


def distance(q: np.ndarray, post: tuple[float, float]) -> float:
    """The least distance of the two balls, by what their centres are."""
    return float(np.linalg.norm(q - np.array(post), axis=1).min()) - TOOL - POST


@pytest.mark.parametrize("inside", [0.16, 0.19, 0.22])
def test_curves_are_halved_until_they_are_free(inside: float):
    # The post is inside the corner, so the rounder it is, the nearer it comes.
    post = (1.0 - inside, inside)
    cell = gantry(post)
    check = cell.collision(margin=MARGIN)
    way = np.array([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)])
    lines = check.motion(way[:-1], way[1:]).free.all()
    assert lines == (inside > POST + TOOL + MARGIN)
    if not lines:
        return
    (blend,) = free_blends(check, way, 0.3)
    assert 0.0 <= blend < 0.3
    q = timed_way(check, way, 0.3, LIMITS).sampled(rate=2000).q
    assert distance(q, post) > MARGIN - 1e-9
    # Twice the curve comes too near: no more was given away than by halving.
    wider = cell.time_path(way, blend=max(2.0 * blend, 0.02), **LIMITS)
    assert distance(wider.sampled(rate=2000).q, post) < MARGIN + 6e-3


def test_obstacles_count_at_corners():
    post = (0.02, 0.02)
    way = np.array([[-1.0, 0.3], [0.3, 0.3], [0.3, -1.0]])
    ball = Sphere(radius=POST, pose=arm.Pose.translation(*post, 0.0))
    cell = gantry((4.0, 4.0))
    among = cell.collision(margin=MARGIN).with_obstacles({"ball": [ball]})
    found = free_blends(among, way, 2.0)
    linked = free_blends(gantry(post).collision(margin=MARGIN), way, 2.0)
    assert found == pytest.approx(linked) and 0.0 < found[0] < 0.2
    assert free_blends(cell.collision(margin=MARGIN), way, 2.0)[0] > 0.2
    motion = timed_way(among, way, 2.0, LIMITS)
    assert distance(motion.sampled(count=4000).q, post) > MARGIN


def test_corners_cost_time_where_motions_rest():
    cell = gantry((3.0, 3.0))
    check = cell.collision(margin=MARGIN)
    way = np.array([(0.0, 0.0), (0.5, 0.0), (1.0, 0.0), (1.0, 1.0), (2.0, 1.5)])
    rests = timed_way(check, way, 0.0, LIMITS)
    round_ones = timed_way(check, way, 0.1, LIMITS)
    smooth = timed_way(check, way, 0.1, {**LIMITS, "jerk": 30.0})
    assert round_ones.duration < smooth.duration < rests.duration
    blends = free_blends(check, way[[0, 2, 3, 4]], 0.1)
    assert ((blends > 0.08) & (blends <= 0.1)).all()
    for motion in (rests, round_ones, smooth):
        samples = motion.sampled(rate=500)
        assert np.allclose(samples.q[[0, -1]], way[[0, -1]], rtol=0, atol=1e-12)
        assert np.abs(samples.qd).max() <= 1.0 + 2e-3
        assert np.abs(samples.qdd).max() <= 3.0 * 1.01
        assert motion.state(0.1).cell is cell.workcell
    # At a corner it rests; on the straight line from 0 to 1 it does not.
    speed = np.linalg.norm(rests.sampled(rate=1000).qd, axis=1)
    where = rests.sampled(rate=1000).q
    at_corner = np.abs(where - way[3]).sum(axis=1) < 1e-3
    in_line = np.abs(where - way[1]).sum(axis=1) < 0.05
    assert speed[at_corner].min() < 0.1
    assert speed[in_line].min() > 0.5


def test_a_way_of_no_length_takes_no_time():
    cell = gantry((3.0, 3.0))
    q = np.zeros((2, 2))
    motion = timed_way(cell.collision(), q, 0.1, LIMITS)
    assert motion.duration == 0.0
    assert motion.at(0.0).q.tolist() == [0.0, 0.0]
