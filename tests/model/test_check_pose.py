"""Poses of floats, checked one by one and together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.errors import StateError
from armillary.model.check_pose import are_rigid, is_rigid, rigid_matrices
from armillary.spatial.pose import matrices_of
from armillary.spatial.vector import EYE
from armillary.testing.samples import random_pose

RNG = np.random.default_rng(0)
GOOD = [random_pose(RNG) for _ in range(20)]
X, Y, Z = GOOD[0].rotation

BAD: list[arm.Pose] = [
    arm.Pose(EYE, (0.0, float("nan"), 0.0)),
    arm.Pose(EYE, (0.0, float("inf"), 0.0)),
    arm.Pose((X, Y, tuple(2.0 * z for z in Z)), (0.0, 0.0, 0.0)),
    arm.Pose((X, Y, tuple(-z for z in Z)), (0.0, 0.0, 0.0)),
    arm.Pose((X, Y, (Z[0] + 3e-6, Z[1], Z[2])), (0.0, 0.0, 0.0)),
    arm.Pose(((float("nan"),) * 3, Y, Z), (0.0, 0.0, 0.0)),
    arm.Pose((X, Y, (*Z[:2], float("nan"))), (0.0, 0.0, 0.0)),
]


@pytest.mark.parametrize("bad", BAD)
def test_one_bad_pose_among_others_is_found(bad: arm.Pose) -> None:
    assert all(map(is_rigid, GOOD))
    np.testing.assert_array_equal(rigid_matrices(GOOD), matrices_of(GOOD))
    poses = [*GOOD[:7], bad, *GOOD[7:]]
    assert not is_rigid(bad)
    assert rigid_matrices(poses) is None


@pytest.mark.parametrize(
    "pose",
    [
        arm.Pose(tuple(map(list, (X, Y, Z))), (0.0, 0.0, 0.0)),  # type: ignore[arg-type]
        arm.Pose((X, Y, Z), np.zeros(3)),  # type: ignore[arg-type]
        arm.Pose((X, Y, Z), (0, 0, 0)),
        arm.Pose((X, Y, Z), tuple(np.zeros(3))),  # type: ignore[arg-type]
    ],
)
def test_only_plain_floats_pass(pose: Any) -> None:
    assert not is_rigid(pose)
    poses = [*GOOD, pose]
    assert rigid_matrices(poses) is None


@pytest.mark.parametrize("size", [0.0, 1e-7, 9e-7, 1.1e-6, 1e-5])
def test_matrices_are_rigid_together_where_each_is(size: float) -> None:
    matrices, rng = matrices_of(GOOD), np.random.default_rng(1)
    off = size * rng.choice([-1.0, 0.0, 1.0], (200, 20, 4, 4), p=[0.02, 0.96, 0.02])
    verdicts = [[are_rigid(X) for X in each] for each in matrices + off]
    assert [all(each) for each in verdicts] == [
        are_rigid(each) for each in matrices + off
    ]
    assert are_rigid(matrices + off) == np.all(verdicts)
    for bad in (np.nan, np.inf):
        for k in range(16):
            matrices = matrices_of(GOOD)
            matrices[3].flat[k] = bad
            assert not are_rigid(matrices)
            assert not are_rigid(matrices[3])


def boxes(count: int) -> arm.Cell:
    names = [f"box{k}" for k in range(count)]
    return arm.Cell(
        manipulators=[
            arm.Manipulator(name=name, links=[arm.Link(name="it")]) for name in names
        ]
    )


def test_bases_that_are_placed_together_stand_where_each_would() -> None:
    cell = boxes(12)
    poses: dict[str, Any] = {f"box{k}": X for k, X in enumerate(GOOD[:12])}
    # Negative zeros, whole numbers and matrices, too.
    poses["box3"] = arm.Pose(EYE, (-0.0, 1.0, -0.0))
    poses["box5"] = arm.Pose(EYE, (1, 2, 3))
    poses["box7"] = GOOD[15].matrix()
    for some in (poses, dict(list(poses.items())[:3]), {"box0": GOOD[1]}):
        one_by_one = cell.home
        for name, X_WB in some.items():
            one_by_one = one_by_one.place(name, X_WB)
        together = cell.home.place_all(some)
        assert together == one_by_one
        assert together.to_json() == one_by_one.to_json()
        for name in some:
            np.testing.assert_array_equal(
                cell.pose(f"{name}/it", together), cell.pose(f"{name}/it", one_by_one)
            )
        np.testing.assert_array_equal(
            together.tree.base_matrices, one_by_one.tree.base_matrices
        )


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_pose_is_refused_with_its_name(bad: arm.Pose) -> None:
    poses = {f"box{k}": X for k, X in enumerate(GOOD[:12])}
    with pytest.raises(StateError, match="'box4'"):
        boxes(12).home.place_all({**poses, "box4": bad})
