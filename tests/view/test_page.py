"""Where a page puts links and frames is where Python does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.view.drawing import drawings
from armillary.view.motion import motion_of
from armillary.view.page import cell_data
from armillary.view.page_kinematics import kinematics_script
from javascript import run_javascript

pytest.importorskip("viser")

SCRIPTS = ("pose", "cell", "playback")
SAMPLES = """
const arrays = data.motion;
for (const key of ["times", "q", "poses"]) {
  if (key in arrays) arrays[key] = Float64Array.from(arrays[key].flat(Infinity));
}
const cell = new PageCell(data, kinematics);
const playback = new Playback(arrays, cell);
const shown = () => data.frames.map((each) => cell.frame(each));
const found = order.map((k) => (playback.show(arrays.times[k]), shown()));
cell.move(q);
finish([found, shown()]);
"""


def _lists(value: Any) -> Any:
    return value.tolist()


def poses_in_page(
    states: Sequence[arm.State], order: Sequence[int], q: Any, folder: Path
) -> list[np.ndarray]:
    """Poses of all frames at samples of a motion, and after a move to q."""
    cell = states[0].cell
    motion = motion_of(states[0], list(states), times=None, rate=1.0)
    data = cell_data(cell, states[0], drawings(cell, None), motion)
    parts = [(files("armillary.view") / f"page/{s}.js").read_text() for s in SCRIPTS]
    given = {"data": data, "order": list(order), "q": list(q)}
    text = "\n".join(
        [
            *parts,
            *(
                f"const {k} = {json.dumps(v, default=_lists)};"
                for k, v in given.items()
            ),
            f"const kinematics = {kinematics_script(cell, states[0])};",
            SAMPLES,
        ]
    )
    played, moved = run_javascript(text, folder)
    return [np.array(each, np.float64) for each in (*played, moved)]


def poses_in_python(cell: arm.Cell, state: arm.State) -> np.ndarray:
    found = cell.poses(state)
    return np.array([found[name][:3].ravel() for name in cell.frame_names])


def check(cell: arm.Cell, states: Sequence[arm.State], folder: Path) -> None:
    order = [*reversed(range(len(states))), 0]
    q = 0.5 * (np.array(states[0].q) + states[-1].q) + 0.125
    wanted = [states[k] for k in order] + [states[0].replace(q=q)]
    found = poses_in_page(states, order, q, folder)
    for page, state in zip(found, wanted, strict=True):
        np.testing.assert_allclose(page, poses_in_python(cell, state), 0.0, 1e-12)


def test_parts_follow_attachments_that_change_in_a_motion(tmp_path: Path) -> None:
    cell = arm.example("oval_track_cell")
    start = cell.home
    held = start.grip("part", by="tcp")
    away = held.replace(q=np.array(start.q) + 0.25)
    left = away.release("part").replace(q=start.q)
    moved = left.place("track", arm.Pose.translation(0.5, 0.25, 0.0))
    check(cell, [start, held, away, left, moved], tmp_path)
    check(cell, [held, left, moved, away], tmp_path)


def test_what_is_attached_to_a_part_follows_it(tmp_path: Path) -> None:
    tray = arm.Manipulator(name="tray", links=[arm.Link(name="plate")])
    cup = arm.Manipulator(
        name="cup",
        links=[
            arm.Link(name="body"),
            arm.Link(
                name="lid",
                parent="body",
                joint=arm.joints.Revolute(axis=(1, 0, 0)),
            ),
            arm.Link(name="handle", parent="body", joint=arm.joints.Fixed()),
        ],
    )
    robot = arm.example("scara").manipulators[0]
    cell = arm.Cell(
        manipulators=[robot, tray, cup],
        mounts=[arm.Mount(manipulator=each, bolted=False) for each in ("tray", "cup")],
    )
    high = arm.Pose.translation(0.0, 0.0, 0.5)
    start = cell.home.attach("cup", "tray/plate", pose=high)
    lifted = start.attach("tray", "scara/tool0", pose=high)
    away = lifted.replace(q=np.array(start.q) + 0.125).release("cup")
    check(cell, [start, lifted, away], tmp_path)
