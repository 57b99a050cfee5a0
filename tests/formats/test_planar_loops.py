"""Planar loops in formats that hold only pins and points."""

from __future__ import annotations

from pathlib import Path

import msgspec
import mujoco
import numpy as np
import pytest

import armillary as arm
from armillary.formats import registry
from armillary.formats.planar_loops import with_pins
from armillary.model.workcell import Workcell
from armillary.spatial.pose import Pose

TIPS = {"five_bar": "five_bar/tool", "two_finger_gripper": "gripper/right_pad"}


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        ("five_bar", "mjcf.xml"),
        ("two_finger_gripper", "mjcf.xml"),
        ("two_finger_gripper", "sdf"),
    ],
)
def test_they_are_kept(name: str, ending: str, tmp_path: Path):
    cell, path = arm.example(name), tmp_path / f"a.{ending}"
    report = arm.save(cell, path)
    assert "open-loop" not in {each.code for each in report.diagnostics}
    again = arm.load(path)
    assert [j.rpartition("/")[2] for j in again.joint_names] == [
        j.rpartition("/")[2] for j in cell.joint_names
    ]
    Q = cell.home.q + np.random.default_rng(0).uniform(
        0.0, 0.2, (20, len(cell.joint_names))
    )
    there = again.fk(TIPS[name])(Q)
    assert np.abs(cell.fk(TIPS[name])(Q) - there).max() < 1e-12


def test_mujoco_holds_them_in_all_positions():
    cell = arm.example("five_bar")
    data, _ = registry.write(cell.workcell, format="mjcf")
    model = mujoco.MjModel.from_xml_string(data.decode())
    state = mujoco.MjData(model)
    names = [model.joint(k).name.rpartition("/")[2] for k in range(model.njnt)]
    assert model.neq == 1
    rng = np.random.default_rng(0)
    Q = cell.home.q + rng.uniform(0.0, 0.2, (10, 2))
    closed = cell.close_loops(Q)
    order = [*cell.joint_names, *cell.passive_names]
    for q in np.hstack([Q, closed.passive]):
        found = dict(zip(order, q, strict=True))
        state.qpos[:] = [found[each] for each in names]
        mujoco.mj_forward(model, state)
        held = state.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        assert held.sum() == 3
        assert np.abs(state.efc_pos[held]).max() < 1e-9


def _raised(cell: Workcell) -> Workcell:
    """The cell with one end of its loop above the plane of the other."""
    (manipulator,) = cell.manipulators
    frame = manipulator.links[-1].frames[0]
    raised = msgspec.structs.replace(
        frame, pose=frame.pose @ Pose.translation(0.0, 0.0, 0.01)
    )
    last = manipulator.links[-1].replace(frames=(raised,))
    links = (*manipulator.links[:-1], last)
    return cell.replace(manipulators=(manipulator.replace(links=links),))


def test_other_loops_stay_open():
    cell = _raised(arm.example("five_bar").workcell)
    assert with_pins(cell, turns=True) is cell
    _, report = registry.write(cell, format="mjcf")
    assert "open-loop" in {each.code for each in report.diagnostics}
