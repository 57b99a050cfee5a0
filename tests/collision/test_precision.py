"""Checks that decide in float32, compared with distances in float64."""

from __future__ import annotations

import numpy as np
import pytest

import armillary as arm
from armillary.collision.check_stages import UNDECIDED
from armillary.shapes import Box, Capsule, Cylinder, Sphere


class Lever(arm.joints.Joint, frozen=True, kw_only=True):
    """A joint that loses digits in float32: the difference of two large numbers."""

    unit = arm.RADIAN
    far: float = 3e3

    def pose(self, q):
        c, s = np.cos(q), np.sin(q)
        x = (self.far + c) - self.far
        return arm.Pose(((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)), (x, s, 0.0))


def snake(joint: type, shape: arm.shapes.Primitive, count: int = 6) -> arm.Cell:
    """Return a chain that can touch itself."""
    links = [arm.Link(name="base", collisions=[shape])]
    for k in range(count):
        X = arm.Pose.translation(0.3, 0.0, 0.02) @ arm.Pose.rotation_x(0.4)
        links.append(
            arm.Link(
                name=f"link{k}",
                parent=links[-1].name,
                joint=joint(precursor=X),
                collisions=[shape],
            )
        )
    cell = arm.Cell(manipulators=[arm.Manipulator(name="snake", links=links)])
    return cell.replace(rules=cell.rules.include("snake/*", "snake/*"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("joint", [arm.joints.Revolute, Lever])
@pytest.mark.parametrize(
    "shape",
    [
        Sphere(radius=0.1),
        Capsule(radius=0.05, length=0.2),
        Box(size=(0.2, 0.1, 0.15)),
        Cylinder(radius=0.1, length=0.15),
    ],
)
def test_answers_are_those_of_float64(joint: type, shape: arm.shapes.Primitive):
    cell = snake(joint, shape)
    rng = np.random.default_rng(1)
    is_closed_form = not isinstance(shape, Cylinder)
    Q = rng.uniform(-3.0, 3.0, (20_000 if is_closed_form else 2_000, 6))
    clearance = cell.collision().clearance(Q)
    # Margins right at, and by 1e-9 beside, the distance of some row.
    for row in np.flatnonzero(clearance > 0.01)[:3]:
        for beside in (-1e-9, 0.0, 1e-9):
            check = cell.collision(margin=float(clearance[row]) + beside)
            np.testing.assert_array_equal(check(Q), clearance <= check.margin)
    kernel = check._kernel("touching")
    if is_closed_form:
        assert kernel.dtype == np.float32
    verdicts = kernel(Q.astype(kernel.dtype))
    assert (verdicts != UNDECIDED).mean() > 0.5


def test_rows_beyond_what_is_bounded_are_decided_in_float64():
    cell = snake(arm.joints.Revolute, Sphere(radius=0.1))
    check = cell.collision()
    Q = np.random.default_rng(2).uniform(-3.0, 3.0, (2_000, 6))
    far = Q + 2e6 * np.pi * np.arange(6)
    np.testing.assert_array_equal(check(far), check.clearance(far) <= 0.0)
    huge = np.full((3, 6), 1e300)
    assert check(huge).shape == (3,)


def test_far_from_the_origin_of_the_world():
    cell = snake(arm.joints.Revolute, Sphere(radius=0.1))
    Q = np.random.default_rng(3).uniform(-3.0, 3.0, (2_000, 6))
    near = cell.collision()(Q)
    state = cell.home.place("snake", arm.Pose.translation(1e6, -1e6, 1e3))
    check = cell.collision(state)
    is_clear = np.abs(check.clearance(Q)) > 1e-6
    assert is_clear.mean() > 0.99
    np.testing.assert_array_equal(check(Q)[is_clear], near[is_clear])


def test_one_row_is_as_a_batch():
    cell = snake(arm.joints.Revolute, Sphere(radius=0.1))
    check = cell.collision()
    Q = np.random.default_rng(4).uniform(-3.0, 3.0, (200, 6))
    together = check(Q)
    assert 0.05 < together.mean() < 0.95
    for kind in (np.float64, np.float32):
        alone = [check(q) for q in Q.astype(kind)]
        np.testing.assert_array_equal(alone, check(Q.astype(kind)))
    assert check(Q[0].tolist()) == together[0]
    assert check(np.full(6, np.nan))


def test_far_beyond_where_a_check_begins():
    cell = snake(arm.joints.Prismatic, Cylinder(radius=0.3, length=0.15))
    check = cell.collision()
    Q = np.random.default_rng(5).uniform(-300.0, 300.0, (300, 6))
    Q[::2, 1:] *= 1e-3  # near each other, and far from the origin
    least = check.distances(Q).min(axis=1)
    np.testing.assert_allclose(check.clearance(Q), least, atol=1e-9)
    np.testing.assert_array_equal(check(Q), check.clearance(Q) <= 0.0)
    assert 0.0 < check(Q).mean() < 0.95
