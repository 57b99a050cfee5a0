"""Slopes of distances, compared with differences of distances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import armillary as arm
from solids import without_meshes
from strategies import cells_and_states, laws

STEP = 1e-4


def check_slopes(check: Any, Q: np.ndarray) -> int:
    """Compare slopes where distances are smooth; return how many those are."""
    n = Q.shape[-1]
    found = check.gradients(Q)
    assert found.shape == (len(Q), len(check.pairs), n)
    steps = STEP * np.eye(n)
    far = [check.distances(Q[:, None] + k * steps) for k in (-2, -1, 1, 2)]
    slopes = (far[0] - 8 * far[1] + 8 * far[2] - far[3]) / (12 * STEP)
    one, two = (far[2] - far[1]) / (2 * STEP), (far[3] - far[0]) / (4 * STEP)
    slopes, one, two = (np.moveaxis(each, 1, -1) for each in (slopes, one, two))
    here = check.distances(Q)[..., None]
    # A depth that is an upper bound jumps, and so do distances between equal points.
    is_smooth = (np.abs(one - two) < 1e-5) & (here > 1e-3)
    error = np.abs(found - slopes)[is_smooth & ~np.isnan(slopes)]
    assert (error < 3e-5).sum() >= 0.99 * len(error), error.max()
    return int(is_smooth.sum())


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:No pair of links of")  # of random cells
@given(cells_and_states(), st.integers(0, 2**32))
@laws(15)
def test_random_cells(drawn: Any, seed: int):
    cell, state = drawn
    check = without_meshes(cell).collision(state)
    rng = np.random.default_rng(seed)
    Q = rng.uniform(-1, 1, (3, len(cell.joint_names)))
    check_slopes(check, Q)


@pytest.mark.parametrize("name", ["five_bar", "ur5e_on_oval", "two_arms_positioner"])
def test_examples(name: str):
    cell = arm.example(name)
    shapes = [
        arm.shapes.Capsule(radius=0.02, length=0.1),
        arm.shapes.Box(size=(0.05, 0.04, 0.1)),
        arm.shapes.Sphere(radius=0.05),
    ]
    cell = cell.replace(
        manipulators=[
            m.replace(
                links=[
                    link.replace(collisions=[shapes[k % 3]])
                    for k, link in enumerate(m.links)
                ]
            )
            for m in cell.manipulators
        ],
        rules=arm.Rules.everything(),
    )
    Q = np.array(cell.home.q) + np.random.default_rng(0).uniform(
        -0.05, 0.05, (8, len(cell.joint_names))
    )
    assert check_slopes(cell.collision(), Q) > 20


def test_nan_stays_in_its_row():
    cell = arm.example("oval_track_cell")
    check = cell.collision()
    Q = np.tile(cell.home.q, (3, 1))
    expected = check.gradients(Q)
    Q[1] = np.nan
    found = check.gradients(Q)
    np.testing.assert_array_equal(found[[0, 2]], expected[[0, 2]])
    assert np.isnan(found[1]).any() or not len(check.pairs)
