"""Random values are what they should be, and the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from armillary.model.joint import Joint
from armillary.model.joints import JOINT_TYPES
from armillary.spatial.rotation import is_proper, orthonormality_error
from armillary.testing import random_direction, random_joint, random_pose


def test_the_same_seed_gives_the_same_values():
    for draw in (random_direction, random_pose, random_joint):
        first, second = (draw(np.random.default_rng(3)) for _ in range(2))
        assert first == second
        assert draw(np.random.default_rng(4)) != first


def test_poses_are_poses_within_reach():
    random = np.random.default_rng(0)
    for _ in range(100):
        X = random_pose(random, reach=0.5)
        assert orthonormality_error(X.rotation) < 1e-15
        assert is_proper(X.rotation)
        assert max(map(abs, X.position)) <= 0.5


def test_rotations_lean_nowhere():
    random = np.random.default_rng(0)
    mean = np.mean([random_pose(random).rotation for _ in range(4000)], axis=0)
    assert np.abs(mean).max() < 0.05


@pytest.mark.parametrize("kind", sorted(JOINT_TYPES))
def test_every_kind_can_be_drawn(kind: str):
    joint = random_joint(np.random.default_rng(0), kind)
    assert type(joint) is JOINT_TYPES[kind]
    assert not joint.precursor.is_identity
    bare = random_joint(np.random.default_rng(0), kind, with_precursor=False)
    assert bare.precursor.is_identity


def test_unnamed_joints_move():
    random = np.random.default_rng(0)
    kinds: set[type[Joint]] = {type(random_joint(random)) for _ in range(100)}
    assert kinds == set(JOINT_TYPES.values()) - {
        JOINT_TYPES["Fixed"],
        JOINT_TYPES["FourBarSlider"],
    }
