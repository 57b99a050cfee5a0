"""Squares of distances are what they say, and never less."""

from __future__ import annotations

import numpy as np
import pytest

from armillary.model.speed_bound import square_distance
from armillary.spatial.pose import Pose
from armillary.testing import random_joint, random_pose
from armillary.trace import evaluate, trace
from armillary.trace.functions import cos, sin

GRID = np.linspace(-7.0, 7.0, 101)


def program_of(X: Pose, p):
    return trace(lambda q: square_distance(X, p(q)), name="square", q=())


@pytest.mark.parametrize("seed", range(30))
def test_it_is_the_square_of_the_distance(seed: int):
    random = np.random.default_rng(seed)
    joint = random_joint(random)
    program = program_of(joint.precursor, lambda q: joint.motion.pose(q).position)
    for q in GRID:
        (found,) = evaluate(program, [float(q)])
        expected = np.dot(*[joint.transform(float(q)).position] * 2)
        assert found == pytest.approx(expected, rel=1e-12)
        assert found >= expected * (1.0 - 1e-14)


def test_a_circle_about_the_origin_is_a_constant():
    X = Pose(random_pose(np.random.default_rng(0)).rotation, (0.0, 0.0, 0.0))
    program = program_of(X, lambda q: (0.3 * cos(q), -0.3 * sin(q), 0.4))
    assert program.operation_count == 0
    assert evaluate(program, [1.0]) == [0.25]


@pytest.mark.parametrize("seed", range(5))
def test_a_turned_circle_is_a_constant_but_for_rounding(seed: int):
    R = random_pose(np.random.default_rng(seed))
    X = Pose(R.rotation, (0.0, 0.0, 0.0))

    def circle(q):
        return R.rotate((0.3 * cos(q), -0.3 * sin(q), 0.4))

    program = program_of(X, circle)
    assert program.operation_count <= 8  # a sum of a constant, a sine and a cosine
    for q in GRID:
        assert evaluate(program, [float(q)]) == [pytest.approx(0.25, rel=1e-15)]


@pytest.mark.parametrize(
    "p",
    [
        lambda q: (1.0, 2.0, 3.0),
        lambda q: (0.0, 0.0, 0.0),
        lambda q: (q, -q, 2.0 * q),
        lambda q: (q - 1.0, 1.0 - q, -(q + 2.0)),
        lambda q: (q * q, q * q * q, 3.0 - q * q),
        lambda q: (sum(sin(k * q) for k in range(1, 30)), 0.0, q),
    ],
)
def test_every_form_of_sum_is_understood(p):
    X = random_pose(np.random.default_rng(1))
    program = program_of(X, p)
    for q in GRID:
        (found,) = evaluate(program, [float(q)])
        expected = np.array(X @ p(float(q)))
        assert found == pytest.approx(float(expected @ expected), rel=1e-10)
