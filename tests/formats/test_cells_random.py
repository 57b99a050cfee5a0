"""Laws of files, tried on random cells: what is written is what is read."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armillary import Cell
from armillary.formats.actin import FORMAT as ACTIN
from armillary.formats.diagnostic import Report
from armillary.formats.format import Format, ReadOptions
from armillary.formats.native import FORMAT as NATIVE
from armillary.formats.robwork import FORMAT as ROBWORK
from armillary.formats.sdf import FORMAT as SDF
from armillary.formats.urdf import FORMAT as URDF
from armillary.model.link_poses import poses_of
from armillary.model.mount import WORLD
from armillary.model.workcell import Workcell
from strategies import TURNING_OR_SLIDING, cells, laws, manipulators, vectors


def written(format: Format, cell: Workcell) -> bytes:
    return format.write(cell, Report())


def read(format: Format, data: bytes) -> Cell:
    return Cell.of(format.read(data, "lab", ReadOptions(), Report()))


def exactly(value: object) -> str:
    """A text that differs where values do, be it in the sign of a zero."""
    return repr(msgspec.to_builtins(value))


@laws(15)
@given(cells())
def test_native_files_hold_everything(cell: Cell) -> None:
    report = Report()
    data = NATIVE.write(cell.workcell, report)
    assert report.diagnostics == ()
    back = read(NATIVE, data)
    assert back == cell
    assert exactly(back.workcell) == exactly(cell.workcell)
    assert written(NATIVE, back.workcell) == data
    assert np.array_equal(back.home.q, cell.home.q)
    assert list(back.pairs(back.home)) == list(cell.pairs(cell.home))


def poses(cell: Cell, q: dict[str, float], names: list[str]) -> Any:
    """The poses of frames in the world at joint positions by name, by Python alone."""
    state = cell.home.joints(q)
    frames = [cell.frame(name) for name in names]
    world = cell.frame(WORLD)
    return [X.matrix() for X in poses_of(state.tree, state.q, frames, world)]


@laws(15)
@given(cells(TURNING_OR_SLIDING), st.data())
def test_urdf_to_native_to_urdf_keeps_the_kinematics(
    cell: Cell, data: st.DataObject
) -> None:
    first = read(
        URDF, written(URDF, cell.workcell)
    )  # one robot, with names `cart/link0`
    native = read(NATIVE, written(NATIVE, first.workcell))
    assert native == first
    last = read(URDF, written(URDF, native.workcell))
    assert last.joint_names == first.joint_names
    assert set(first.joint_names) == set(cell.joint_names)

    q = dict(zip(cell.joint_names, data.draw(vectors(cell)), strict=True))
    frames = list(cell.frame_names[1:])
    expected = poses(cell, q, frames)
    for robot in (first, last):
        (name,) = robot.index
        found = poses(robot, q, [f"{name}/{frame}" for frame in frames])
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(last.limits, first.limits)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("format", [ACTIN, ROBWORK], ids=lambda format: format.name)
@laws(20)
@given(cells(TURNING_OR_SLIDING), st.data())
def test_other_files_of_cells_keep_the_kinematics(
    format: Format, cell: Cell, data: st.DataObject
) -> None:
    back = read(format, written(format, cell.workcell))
    assert set(back.joint_names) == set(cell.joint_names)
    q = dict(zip(cell.joint_names, data.draw(vectors(cell)), strict=True))
    frames = [name for name in cell.frame_names if name in back.frame_names]
    devices = [m for m in cell.manipulators if m.joint_names]  # parts may be renamed
    assert {f"{m.name}/{name}" for m in devices for name in m.frame_refs} <= set(frames)
    expected = poses(cell, q, frames)
    np.testing.assert_allclose(poses(back, q, frames), expected, rtol=0, atol=1e-12)


@laws(15)
@given(manipulators("robot", TURNING_OR_SLIDING), st.data())
def test_one_robot_keeps_its_names(robot: Any, data: st.DataObject) -> None:
    cell = Cell(name="robot", manipulators=(robot,))
    back = read(URDF, written(URDF, cell.workcell))
    assert back.joint_names == cell.joint_names
    assert set(cell.frame_names) <= set(back.frame_names)
    q = dict(zip(cell.joint_names, data.draw(vectors(cell)), strict=True))
    names = list(cell.frame_names[1:])
    expected = poses(cell, q, names)
    np.testing.assert_allclose(poses(back, q, names), expected, rtol=0, atol=1e-12)


@laws(15)
@given(cells(TURNING_OR_SLIDING), st.data())
def test_sdf_keeps_the_kinematics_of_cells(cell: Cell, data: st.DataObject) -> None:
    # In SDF what stands free on something that moves does not move with it.
    mounts = [msgspec.structs.replace(m, bolted=True) for m in cell.workcell.mounts]
    cell = Cell.of(cell.workcell.replace(mounts=mounts))
    back = read(SDF, written(SDF, cell.workcell))
    assert set(back.index) == set(cell.index)
    assert set(back.joint_names) == set(cell.joint_names)
    q = dict(zip(cell.joint_names, data.draw(vectors(cell)), strict=True))
    frames = list(cell.frame_names[1:])
    expected, found = (poses(each, q, frames) for each in (cell, back))
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-9)
