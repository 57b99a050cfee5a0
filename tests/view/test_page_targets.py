"""A page lets people drag each frame that joints move, the tool first."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.view.drawing import drawings
from armillary.view.page_cell import cell_data
from armillary.view.page_kinematics import kinematics_script
from armillary.view.page_targets import solver_names
from armillary.view.target_solver import reaches_poses
from javascript import run_javascript

pytest.importorskip("viser")

SOLVES = """
const cell = new PageCell(data, kinematics);
const found = targets.map(([name, pose]) => {
  cell.move(data.q);
  const q = cell.solve(name, Float64Array.from(pose));
  if (q === null || !cell.move(q)) return null;
  return Array.from(cell.frame(cell.frameCalled(name)));
});
finish(found);
"""


def hand() -> arm.Cell:
    """Two fingers of three joints each, and a thing that does not move."""
    links = [arm.Link(name="palm"), arm.Link(name="stand", parent="palm")]
    for finger, side in (("left", -0.1), ("right", 0.1)):
        parent, at = "palm", arm.Pose.translation(0, side, 0)
        for k, axis in enumerate([(0, 0, 1), (0, 1, 0), (0, 1, 0)]):
            name = f"{finger}_{k}"
            joint = arm.joints.Revolute(precursor=at, axis=axis)
            tip = [
                arm.Frame(name=f"{finger}_tip", pose=arm.Pose.translation(0.1, 0, 0))
            ]
            links.append(
                arm.Link(
                    name=name, parent=parent, joint=joint, frames=tip if k == 2 else []
                )
            )
            parent, at = name, arm.Pose.translation(0.2, 0, 0)
    return arm.Cell(manipulators=[arm.Manipulator(name="hand", links=links)])


def placed(cell: arm.Cell, q: Any, folder: Path) -> dict[str, tuple[Any, Any]]:
    """For each frame the pose at q, and where the page puts it when it is dragged."""
    work = cell.workcell
    names = solver_names(work, cell.home)
    frames = list(dict.fromkeys(names.values()))
    data = cell_data(work, cell.home, drawings(work, None), None) | {"targets": names}
    there = cell.home.replace(q=q)
    wanted = {name: cell.pose(name, there)[:3].ravel().tolist() for name in names}
    scripts = [
        (files("armillary.view") / f"page/{name}.js").read_text("utf-8")
        for name in ("pose", "cell")
    ]
    given = json.dumps(data, default=lambda each: each.tolist())
    text = "\n".join(
        [
            *scripts,
            f"const data = {given}, targets = {json.dumps(list(wanted.items()))};",
            f"const kinematics = {kinematics_script(work, cell.home, frames=frames)};",
            SOLVES,
        ]
    )
    found = run_javascript(text, folder)
    return dict(zip(wanted, zip(wanted.values(), found, strict=True), strict=True))


@pytest.mark.parametrize("make", [hand, lambda: arm.example("oval_track_cell")])
def test_each_frame_can_be_dragged(make: Any, tmp_path: Path) -> None:
    cell = make()
    found = placed(cell, np.array(cell.home.q) + 0.02, tmp_path)
    for name, (wanted, now) in found.items():
        assert now is not None, name
        is_whole = reaches_poses(cell.workcell, name)
        kept = slice(None) if is_whole else slice(3, None, 4)  # else positions
        assert np.abs(np.array(now) - wanted)[kept].max() < 1e-5, name


def test_all_that_moves_is_listed_the_tool_first() -> None:
    cell = hand()
    names = solver_names(cell.workcell, cell.home)
    assert set(names) == {
        *(f"hand/{side}_{k}" for side in ("left", "right") for k in range(3)),
        "hand/left_tip",
        "hand/right_tip",
    }
    track = arm.example("oval_track_cell")
    names = solver_names(track.workcell, track.home)
    assert next(iter(names)) == "ur5e/tool0"
    assert names["ur5e/wrist_3"] == "ur5e/tool0"  # one solver for one link
    assert "stand/table" not in names
