"""The lifts keep the contract of joints, and do what their numbers say."""

from __future__ import annotations

import math
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest
from armillary_lifts import ParallelogramLift, ScissorLift

import armillary as arm
from armillary.testing import check_joint

DOCK = Path(__file__).parents[1] / "dock.cell.json"
LIFTS = [
    ScissorLift(beam=1.3, spread=1.2),
    ScissorLift(beam=2.0, spread=1.9, stages=3),
    ParallelogramLift(crank=0.8),
]


@pytest.mark.parametrize("lift", LIFTS, ids=repr)
def test_the_contract_of_joints(lift: arm.Joint):
    lower, upper = (0.0, 1.0) if isinstance(lift, ScissorLift) else (-4.0, 4.0)
    check_joint(lift, lower=lower, upper=upper)


def test_scissors_rise():
    lift = ScissorLift(beam=1.3, spread=1.2, stages=2)
    assert np.allclose(lift.transform(0.0).position, [0, 0, 2 * 0.5])
    assert np.allclose(lift.transform(0.7).position, [0, 0, 2 * 1.2])


def test_cranks_keep_the_table_level():
    lift = ParallelogramLift(crank=0.8)
    for q in np.linspace(-3.0, 3.0, 7):
        assert np.array_equal(lift.transform(q).matrix()[:3, :3], np.eye(3))
    assert np.allclose(lift.transform(math.pi / 2).position, [0, 0, 0.8])


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (ScissorLift, {"beam": 1.0, "spread": 1.0}),
        (ScissorLift, {"beam": 1.0, "spread": 0.5, "stages": 0}),
        (ParallelogramLift, {"crank": 0.0}),
    ],
)
def test_impossible_lifts_are_refused(kind: type[arm.Joint], given: dict[str, float]):
    with pytest.raises(arm.errors.JointError):
        kind(**given)


def test_every_joint_is_offered_under_its_tag():
    offered = {
        point.name: point.load()
        for point in entry_points(group="armillary.joints")
        if point.dist is not None and point.dist.name == "armillary-lifts"
    }
    assert offered == {kind.tag: kind for kind in (ScissorLift, ParallelogramLift)}


def test_the_dock_moves_where_this_package_is_allowed():
    dock = arm.load(DOCK, plugins=["armillary-lifts"])
    assert dock.joint_names == ("lift", "ramp")
    assert np.isclose(dock.fk("table")([0.7, 0.0])[2, 3], 2 * 1.2)
    arrived = dock.ik("lip", rotation="")(dock.fk("lip")([0.4, 0.3]))
    assert arrived.success


def test_the_dock_is_kept_where_it_is_not(tmp_path: Path):
    dock = arm.load(DOCK)
    with pytest.raises(arm.errors.JointError, match=r"plugins=\['armillary-lifts'\]"):
        dock.fk("table")
    arm.save(dock, tmp_path / "again.cell.json")
    assert (tmp_path / "again.cell.json").read_bytes() == DOCK.read_bytes()
