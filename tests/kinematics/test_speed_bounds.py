"""Bounds of speeds of links, compared with steps of `Cell.fk`."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import armillary as arm
from armillary.kinematics.moving_links import MovingLinks, poses_of_links
from armillary.kinematics.speed_bounds import SpeedBounds
from armillary.kinematics.state import bound_state
from strategies import cells_and_states, laws


@given(cells_and_states(), st.integers(0, 2**32))
@laws(15)
def test_no_point_moves_faster(drawn: Any, seed: int):
    cell, state = drawn
    moving = MovingLinks(cell.workcell)
    bound = bound_state(cell.workcell, state)
    n, rng = moving.joints, np.random.default_rng(seed)
    lower, upper = np.sort(rng.uniform(-2, 2, (2, n)), axis=0)
    speeds = SpeedBounds.of(moving, bound.tree, lower, upper)
    Q0, Q1 = rng.uniform(lower, upper, (2, 20, n))
    where = poses_of_links(moving, bound)
    X0, X1 = where(Q0), where(Q1)
    for _ in range(5):
        pair = rng.integers(moving.count, size=2)
        points = rng.normal(size=(2, 3))
        levers = np.linalg.norm(points, axis=1)
        W = speeds.between(pair[None], levers[None])[0]
        far = [np.linalg.norm(between(X, pair, points), axis=1) for X in (X0, X1)]
        way = np.abs(Q1 - Q0) @ W
        assert (np.abs(far[1] - far[0]) <= way * (1 + 1e-9) + 1e-9).all()


def between(X: Any, pair: Any, points: Any) -> Any:
    a, b = (
        X[:, row, :, :3] @ point + X[:, row, :, 3]
        for row, point in zip(pair, points, strict=True)
    )
    return a - b


def test_bounds_of_a_chain_are_its_levers():
    links = [arm.Link(name="base")]
    for k, length in enumerate((0.0, 1.0, 0.5)):
        X = arm.Pose.translation(length, 0.0, 0.0)
        turn = arm.joints.Revolute(precursor=X)
        links.append(arm.Link(name=f"link{k}", parent=links[-1].name, joint=turn))
    cell = arm.Cell(manipulators=[arm.Manipulator(name="arm", links=links)])
    moving = MovingLinks(cell.workcell)
    limits = np.full(3, -3.0), np.full(3, 3.0)
    speeds = SpeedBounds.of(moving, bound_state(cell.workcell, cell.home).tree, *limits)
    found = speeds.between(np.array([[3, 0], [3, 1], [2, 3]]), np.full((3, 2), 0.1))
    expected = [[1.6, 0.6, 0.1], [0.0, 0.6, 0.1], [0.0, 0.0, 0.1]]
    np.testing.assert_allclose(found, expected)
    assert speeds.depth == 3


def test_what_loops_move_has_no_bound():
    cell = arm.example("five_bar")
    moving = MovingLinks(cell.workcell)
    limits = np.full((2, moving.joints), 3.0) * [[-1.0], [1.0]]
    tree = bound_state(cell.workcell, cell.home).tree
    speeds = SpeedBounds.of(moving, tree, *limits)
    for row, link in enumerate(moving.links[1:], start=1):
        found = speeds.between(np.array([[row, 0]]), np.full((1, 2), 0.1))
        follows = any(drive.of >= moving.joints for drive in tree.drives[link])
        assert np.isinf(found).all() == follows
    assert np.isinf(speeds.angular).any()
