"""Poses of links, frames, mounts and placements are rigid, finite and plain."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from armillary.errors import ArmillaryError, ModelError
from armillary.kinematics.placement import Placement
from armillary.model.frame import Frame
from armillary.model.joints import Revolute
from armillary.model.link import Link
from armillary.model.mount import Mount
from armillary.spatial.pose import Pose
from armillary.spatial.vector import EYE
from armillary.testing.samples import random_pose

HOLDERS: dict[str, Callable[[Any], Any]] = {
    "frame 'f'": lambda pose: Frame(name="f", pose=pose).pose,
    "the primary frame of 'l'": lambda pose: Link(name="l", primary=pose).primary,
    "the mount of 'm'": lambda pose: Mount(manipulator="m", pose=pose).pose,
    "'p'": lambda pose: Placement(manipulator="p", pose=pose).pose,
    "Revolute.precursor": lambda pose: Revolute(precursor=pose).precursor,
}
NO_POSES: dict[str, tuple[Any, str]] = {
    "not finite": (Pose.translation(0, 0, math.nan), "an entry that is not finite"),
    "infinite": (Pose.translation(math.inf, 0, 0), "an entry that is not finite"),
    "sheared": (Pose(((2, 0, 0), EYE[1], EYE[2]), (0, 0, 0)), "differs from 1 by 3"),
    "mirrored": (Pose(((-1, 0, 0), EYE[1], EYE[2]), (0, 0, 0)), "a reflection"),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_what_is_not_a_pose_is_refused_by_name(name: str):
    for pose, message in NO_POSES.values():
        with pytest.raises(ArmillaryError, match=message) as caught:
            HOLDERS[name](pose)
        assert f"of {name} " in str(caught.value)


@pytest.mark.parametrize("name", [n for n in HOLDERS if n != "Revolute.precursor"])
def test_matrix_is_stored_as_the_pose_that_it_is(name: str):
    pose = random_pose(np.random.default_rng(0)).normalised()
    assert HOLDERS[name](pose.matrix()).approx_equal(pose, 0.0)
    with pytest.raises(ArmillaryError, match=f"The pose of {name} is not of numbers"):
        HOLDERS[name](np.eye(3))


def test_joint_that_is_invalid_is_refused():
    for joint in (Revolute, 3, None):
        with pytest.raises(ModelError, match="joint of link 'l' is"):
            Link(name="l", parent="a", joint=joint)  # type: ignore[arg-type]
