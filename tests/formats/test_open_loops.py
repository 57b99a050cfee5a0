"""Formats without closed loops: what they leave open is said, and which joints move."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

import armillary as arm
from armillary import Closure
from armillary.errors import FormatError
from armillary.formats import registry, robwork
from armillary.formats.diagnostic import Report
from armillary.formats.open_loops import report_open_loops
from four_bar import four_bar, linked_arms


def losses(cell: arm.Cell, format: str) -> tuple[str, list[str]]:
    data, report = registry.write(cell.workcell, format=format)
    found = [d.message for d in report.diagnostics if d.code == "open-loop"]
    return data.decode(), found


@pytest.mark.parametrize("format", ["urdf", "isaac", "actin", "robwork"])
def test_open_loops_are_said(format: str):
    cell = arm.Cell(manipulators=[four_bar()])
    _, (found,) = losses(cell, format)
    assert found == (
        "manipulator 'bar' is written with open loops: the Closure of 'tip' and "
        "'end'; 'coupler', 'rocker', which followed, move by themselves"
    )
    with pytest.raises(FormatError, match="open-loop"):
        registry.write(cell.workcell, format=format, lossless=True)
    free = arm.Cell(manipulators=[four_bar(loops=[])])
    assert losses(free, format)[1] == []


@pytest.mark.parametrize("format", ["urdf", "actin", "robwork"])
def test_open_loops_between_manipulators_are_said(format: str):
    _, (found,) = losses(linked_arms(), format)
    assert found.startswith("cell 'cell' is written with open loops: the Closure of")
    assert found.endswith(
        "'drive/coupler', 'swing/rocker', which followed, move by themselves"
    )


def test_passive_joints_become_joints_in_urdf(tmp_path):
    path = tmp_path / "x.urdf"
    cell = arm.Cell(manipulators=[four_bar()])
    arm.save(cell, path)
    opened = arm.load(path)
    assert opened.joint_names == (*cell.joint_names, *cell.passive_names)
    state = cell.home.replace(q=[0.7])
    for frame in ("tip", "end"):
        np.testing.assert_allclose(
            opened.fk(frame)(state.positions), cell.pose(frame, state), atol=1e-12
        )


def test_actin_holds_where_loops_are_closed(tmp_path):
    """A posture only says where the search for closed loops begins."""
    guess = arm.Posture(name="start", joints=["crank", "rocker"], q=[0.4, 1.5])
    bar = four_bar(postures=[guess], home="start")
    for cell in (arm.Cell(manipulators=[bar]), linked_arms()):
        path = tmp_path / "x.actin.xml"
        arm.save(cell, path)
        opened = arm.load(path)
        at = dict(zip(opened.joint_names, opened.home.q, strict=True))
        names = (*cell.joint_names, *cell.passive_names)
        closed = dict(zip(names, cell.home.positions, strict=True))
        assert at == pytest.approx(closed, abs=1e-15)
        tip, end = (opened.pose(name, opened.home)[:3, 3] for name in ("tip", "end"))
        np.testing.assert_allclose(tip, end, atol=1e-9)


# RobWork: closed where all axes of the ends of legs coincide


def reread(text: str) -> arm.Cell:
    workcell = robwork.FORMAT.read(
        text.encode(), "x.wc.xml", registry.ReadOptions(), Report()
    )
    return arm.Cell.of(workcell)


def hinged(**changes) -> arm.Manipulator:
    """The four-bar with a hinge at the end, so that all axes coincide."""
    bar = four_bar()
    pin = arm.Link(
        name="pin",
        parent="rocker",
        joint=arm.joints.Revolute(precursor=arm.Pose.translation(0.2, 0, 0)),
        passive=True,
    )
    rocker = msgspec.structs.replace(bar.links[3], frames=())
    parts = {
        "links": [*bar.links[:3], rocker, pin],
        "loops": [Closure("tip", "pin", "xyz", "xyz")],
    }
    return msgspec.structs.replace(bar, **{**parts, **changes})


def same_motion(one: arm.Cell, other: arm.Cell) -> None:
    assert other.joint_names == one.joint_names
    assert set(other.passive_names) == set(one.passive_names)
    Q = np.random.default_rng(1).uniform(-3, 3, (50, len(one.joint_names)))
    for frame in ("tip", "rocker"):
        np.testing.assert_allclose(other.fk(frame)(Q), one.fk(frame)(Q), atol=1e-9)


def test_a_parallel_device_is_written_where_all_legs_meet():
    cell = arm.Cell(manipulators=[hinged()])
    text, found = losses(cell, "robwork")
    assert found == []
    assert "<ParallelDevice" in text
    assert "<Junction" not in text
    assert text.count('state="Passive"') == 3
    same_motion(cell, reread(text))
    # What nothing marks as passive is, since loops determine it.
    links = [msgspec.structs.replace(k, passive=False) for k in hinged().links]
    text, found = losses(arm.Cell(manipulators=[hinged(links=links)]), "robwork")
    assert text.count('state="Passive"') == 3


def test_open_loops_start_where_they_were_closed():
    """Passive joints are active then, so that Home can hold them."""
    cell = arm.Cell(manipulators=[four_bar()])
    text, _ = losses(cell, "robwork")
    assert "<ParallelDevice" not in text
    assert 'state="Passive"' not in text
    opened = reread(text)
    assert set(opened.joint_names) == {*cell.joint_names, *cell.passive_names}
    for frame in ("tip", "end"):
        np.testing.assert_allclose(
            opened.pose(frame, opened.home), cell.pose(frame, cell.home), atol=1e-12
        )
    linked = linked_arms()
    opened = reread(losses(linked, "robwork")[0])
    np.testing.assert_allclose(
        opened.pose("end", opened.home), linked.pose("end", linked.home), atol=1e-9
    )


@pytest.mark.thorough
@pytest.mark.parametrize("control", ["finger", "distance"])
def test_the_robotiq_gripper_comes_back(shared: Path, control: str):
    folder = shared / "data/robwork/testfiles/devices/Robotiq-2-finger-85"
    if not folder.is_dir():
        pytest.skip(f"no reference data: {folder} is absent")
    cell = arm.Cell.of(registry.read(folder / f"robotiq_{control}_control.xml")[0])
    text, found = losses(cell, "robwork")
    assert found == []
    assert text.count("<Junction>") == {"finger": 2, "distance": 3}[control]
    again = reread(text)
    assert again.joint_names == cell.joint_names
    assert set(again.passive_names) == set(cell.passive_names)
    assert again.manipulators[0].loops == cell.manipulators[0].loops
    assert losses(again, "robwork")[0] == text
    near = np.array(cell.home.q) + np.random.default_rng(2).uniform(-0.01, 0.0, (20, 3))
    for frame in ("LeftMotorEnd", "RightMotorEnd"):
        np.testing.assert_allclose(
            again.fk(frame)(near), cell.fk(frame)(near), atol=1e-9
        )
    # Without its loops it is a tree.
    bare = cell.manipulators[0].replace(loops=[])
    text, found = losses(arm.Cell(manipulators=[bare]), "robwork")
    assert found == []
    assert "<TreeDevice" in text
    assert "Junction" not in text


def test_loops_that_are_written_are_not_said_to_be_open():
    cell = arm.example("two_finger_gripper").workcell
    report = Report()
    report_open_loops(cell, report, is_written=lambda owner, place: place == 0)
    (found,) = report.diagnostics
    assert found.message == (
        "manipulator 'gripper' is written with open loops: the Closure of 'left_pin' "
        "and 'left_end'; 'right_finger', 'right_inner', 'left_finger', 'left_inner', "
        "which followed, follow only the other 1"
    )
