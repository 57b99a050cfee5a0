"""Postures as states: by bare names, by those of manipulators, and `home`."""

from __future__ import annotations

import numpy as np
import pytest

import armillary as arm
from armillary.errors import UnknownName
from armillary.kinematics.postures import in_posture, posture_names

CELL = arm.example("two_arms_positioner")


def test_a_bare_name_is_that_of_all_manipulators_that_have_one():
    state = CELL.home.replace(q=np.full(14, 0.1))
    upright = in_posture(state, "upright")
    names = CELL.joint_names
    for side in ("left", "right"):
        manipulator = CELL.manipulators[CELL.index[side]]
        posture = manipulator.posture("upright")
        for joint, q in zip(posture.joints, posture.q, strict=True):
            assert upright.q[names.index(f"{side}/{joint}")] == q
    others = [k for k, name in enumerate(names) if name.startswith("positioner")]
    assert (upright.q[others] == 0.1).all()


def test_a_name_with_that_of_its_manipulator_moves_it_alone():
    state = CELL.home.replace(q=np.full(14, 0.1))
    left = in_posture(state, "left/upright")
    moved = {
        name
        for name, a, b in zip(CELL.joint_names, left.q, state.q, strict=True)
        if a != b
    }
    assert moved
    assert all(name.startswith("left/") for name in moved)


def test_home_is_where_the_cell_starts_or_a_posture_of_that_name():
    bare = arm.example("five_bar")
    moved = bare.home.replace(q=[0.1, 0.2])
    assert in_posture(moved, "home").q.tolist() == bare.home.q.tolist()
    assert posture_names(bare.workcell)[0] == "home"
    state = CELL.home.replace(q=np.full(14, 0.1))
    at_home = in_posture(state, "home").q
    names = [
        m.name for m in CELL.manipulators if any(p.name == "home" for p in m.postures)
    ]
    for name, q, start in zip(CELL.joint_names, at_home, CELL.home.q, strict=True):
        assert q == (start if name.partition("/")[0] in names else 0.1)


def test_an_unknown_posture_is_named_with_those_that_exist():
    with pytest.raises(UnknownName, match=r"'uprite'.*left/upright"):
        in_posture(CELL.home, "uprite")
