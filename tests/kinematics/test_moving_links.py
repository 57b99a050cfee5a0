"""Poses of the links that joints move, compared with `Cell.fk`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import armillary as arm
from armillary.kinematics.moving_links import MovingLinks, poses_of_links
from armillary.kinematics.state import bound_state
from strategies import cells_and_states, laws


def check_all_links(cell: arm.Cell, state: arm.State, Q: Any) -> None:
    moving = MovingLinks(cell.workcell)
    bound = bound_state(cell.workcell, state)
    X = poses_of_links(moving, bound)(Q)
    assert X.shape == (len(Q), moving.count, 3, 4)
    by_python = moving.interpreted(bound, Q) if not bound.passive.size else X
    np.testing.assert_allclose(by_python, X, atol=1e-9)
    for link in range(len(cell.workcell.links)):
        carrier = moving.fixed_to(bound.tree, link)
        whole = np.zeros((len(Q), 4, 4))
        whole[:, 3, 3] = 1.0
        whole[:, :3] = X[:, carrier.row]
        expected = cell.fk(bound.tree.name(link), state=state)(Q)
        np.testing.assert_allclose(whole @ carrier.pose.matrix(), expected, atol=1e-9)


@pytest.mark.thorough
@given(cells_and_states(), st.integers(0, 2**32))
@laws(8)
def test_random_cells_with_attachments_and_moved_bases(drawn: Any, seed: int):
    cell, state = drawn
    rng = np.random.default_rng(seed)
    check_all_links(cell, state, rng.uniform(-1, 1, (4, len(cell.joint_names))))


def test_closed_loops_are_closed():
    for name in ("five_bar", "two_finger_gripper"):
        cell = arm.example(name)
        Q = np.array(cell.home.q) + np.linspace(-0.02, 0.02, 7)[:, None]
        check_all_links(cell, cell.home, Q)
