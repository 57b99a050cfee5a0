"""Poses that a page computes are those that Python does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import armillary as arm
from armillary.kinematics.moving_links import moving_links, poses_of_links
from armillary.view.page_kinematics import kinematics_script
from javascript import calls, run_javascript

COUNT = 100


def within_limits(cell: arm.Cell, count: int) -> np.ndarray:
    lower, upper = cell.limits
    lower, upper = np.maximum(lower, -np.pi), np.minimum(upper, np.pi)
    return np.random.default_rng(0).uniform(lower, upper, (count, len(lower)))


@pytest.mark.parametrize("name", arm.example_names())
def test_poses_of_examples(name: str, tmp_path: Path):
    cell = arm.example(name)
    state = cell.home
    moving = moving_links(state.cell)
    script = kinematics_script(state.cell, state)
    if not moving.is_compiled:
        given = run_javascript(f"finish([({script}).reason]);", tmp_path)
        assert "Python only" in given[0]
        return
    q = within_limits(cell, COUNT)
    wanted = poses_of_links(moving, state)(q)
    calling = calls("k.poses", [12 * moving.count], [[row] for row in q.tolist()])
    text = f"const k = {script};\nfinish([k.links, k.q, {calling}]);"
    links, home, found = run_javascript(text, tmp_path)
    assert links == list(moving.links)
    assert home == list(state.q)
    poses = np.array(found).reshape(wanted.shape)
    closed = np.isfinite(wanted).all(axis=(1, 2, 3))
    assert closed.mean() > 0.1
    np.testing.assert_array_equal(np.isnan(poses), np.isnan(wanted))
    np.testing.assert_allclose(poses[closed], wanted[closed], 0.0, 1e-12)
