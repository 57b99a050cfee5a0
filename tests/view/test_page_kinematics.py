"""Poses that a page computes are those that Python does."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.kinematics.moving_links import moving_links, poses_of_links
from armillary.view.drawing import drawings
from armillary.view.page import cell_data
from armillary.view.page_kinematics import kinematics_script, solver_names
from armillary.view.target_solver import reaches_poses
from arms import arm_of_axes
from javascript import calls, run_javascript

COUNT = 100


def within_limits(cell: arm.Cell, count: int) -> np.ndarray:
    lower, upper = cell.limits
    lower, upper = np.maximum(lower, -np.pi), np.minimum(upper, np.pi)
    return np.random.default_rng(0).uniform(lower, upper, (count, len(lower)))


@pytest.mark.parametrize("name", arm.example_names())
def test_poses_of_examples(name: str, tmp_path: Path):
    cell = arm.example(name)
    state = cell.home
    moving = moving_links(state.cell)
    script = kinematics_script(state.cell, state)
    if not moving.is_compiled:
        given = run_javascript(f"finish([({script}).reason]);", tmp_path)
        assert "Python only" in given[0]
        return
    q = within_limits(cell, COUNT)
    wanted = poses_of_links(moving, state)(q)
    calling = calls("k.poses", [12 * moving.count], [[row] for row in q.tolist()])
    text = f"const k = {script};\nfinish([k.links, k.q, {calling}]);"
    links, home, found = run_javascript(text, tmp_path)
    assert links == list(moving.links)
    assert home == list(state.q)
    poses = np.array(found).reshape(wanted.shape)
    closed = np.isfinite(wanted).all(axis=(1, 2, 3))
    assert closed.mean() > 0.1
    np.testing.assert_array_equal(np.isnan(poses), np.isnan(wanted))
    np.testing.assert_allclose(poses[closed], wanted[closed], 0.0, 1e-12)


# Inverse kinematics that a page computes reaches targets, by the nearest branch.


TARGETS = 40


def samples(cell: arm.Cell, seed: int) -> np.ndarray:
    """Joint positions well within limits, for loops near home."""
    lower, upper = (np.clip(each, -3.0, 3.0) for each in cell.limits)
    middle, half = (lower + upper) / 2.0, (upper - lower) / 2.0
    rng = np.random.default_rng(seed)
    return middle + rng.uniform(-0.9, 0.9, (TARGETS, len(lower))) * half


def solved(
    cell: arm.Cell,
    frame: str,
    targets: np.ndarray,
    near: np.ndarray,
    folder: Path,
    *,
    state: arm.State | None = None,
    closed: arm.ClosedForm | None = None,
) -> tuple[str, np.ndarray]:
    """The family of a frame's form, and what the page finds: NaN where it does not."""
    state = state or cell.home
    forms = {} if closed is None else {frame: closed}
    script = kinematics_script(state.cell, state, frames=[frame], closed=forms)
    rows = [
        [X.ravel().tolist(), q.tolist()] for X, q in zip(targets, near, strict=True)
    ]
    solve = "(X, q, out) => { if (!ik.solve(X, q, out)) out.fill(NaN); }"
    calling = calls(solve, [near.shape[1]], rows)
    text = f"const ik = ({script}).ik['{frame}'];\nfinish([ik.family, {calling}]);"
    family, found = run_javascript(text, folder)
    return family, np.array(found)[:, 0]


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        ("irb2400", "tool0"),
        ("oval_track_cell", "tool0"),
        ("ur5e_on_oval", "tool0"),
        ("scara", "tool0"),
        ("ur10_on_rail", "tool0"),
        ("delta", "platform"),
        ("stewart", "roll"),
    ],
)
def test_examples(name: str, frame: str, tmp_path: Path):
    cell = arm.example(name)
    q, fk, ik = samples(cell, 0), cell.fk(frame), cell.ik(frame)
    near = q + 0.05 * np.random.default_rng(2).standard_normal(q.shape)
    near = np.clip(near, *cell.limits)
    targets = fk(q)
    usable = np.isfinite(targets).all(axis=(1, 2))
    q, near, targets = q[usable], near[usable], targets[usable]
    family, found = solved(cell, frame, targets, near, tmp_path)
    met = np.isfinite(found).all(axis=1)
    assert met.mean() > 0.9
    bound = 1e-9 if family else 2e-6
    np.testing.assert_allclose(fk(found[met]), targets[met], 0.0, bound)
    theirs = ik(targets, near=near)
    steps = ((found - near) ** 2).sum(axis=1)[met]
    wanted = ((theirs.q - near) ** 2).sum(axis=1)[met]
    if family:
        np.testing.assert_allclose(steps, wanted, 1e-6, 1e-9)
    else:  # what is searched for is near, not nearest
        assert (steps <= 1.1 * wanted + 1e-4).all()


def test_branches_and_turns_far_from_home(tmp_path: Path):
    cell = arm.example("irb2400")
    q = samples(cell, 3)
    near, targets = samples(cell, 4), cell.fk("tool0")(q)
    _, found = solved(cell, "tool0", targets, near, tmp_path)
    theirs = cell.ik("tool0")(targets, near=near, method="closed")
    assert theirs.success.all()
    steps = ((found - near) ** 2).sum(axis=1)
    wanted = ((theirs.q - near) ** 2).sum(axis=1)
    assert (steps >= wanted - 1e-9).all()
    assert np.mean(np.isclose(steps, wanted)) > 0.8
    np.testing.assert_allclose(cell.fk("tool0")(found), targets, 0.0, 1e-9)


@pytest.mark.parametrize(
    ("name", "frame"), [("irb2400", "tool0"), ("delta", "platform")]
)
def test_targets_out_of_reach_have_no_answer(name: str, frame: str, tmp_path: Path):
    cell = arm.example(name)
    q = np.array([cell.home.q])
    targets = cell.fk(frame)(q)
    targets[:, 0, 3] += 10.0
    _, found = solved(cell, frame, targets, q, tmp_path)
    assert np.isnan(found).all()


def test_a_base_that_a_state_has_moved(tmp_path: Path):
    part = arm.example("irb2400").manipulators[0]
    cell = arm.Cell(name="moved").add(part, bolted=False)
    pose = arm.Pose.translation(0.4, -1.0, 0.5) @ arm.Pose.rotation_y(0.3)
    state = cell.home.place(part.name, pose)
    q = samples(cell, 5)
    targets = cell.fk("tool0", state=state)(q)
    family, found = solved(cell, "tool0", targets, q, tmp_path, state=state)
    assert family
    np.testing.assert_allclose(found, q, 0.0, 1e-6)


def test_arms_of_seven_joints_keep_their_arm_angle(tmp_path: Path):
    z, y = (0.0, 0.0, 1.0), (0.0, 1.0, 0.0)
    heights = (0.3, 0.3, 0.7, 0.7, 1.1, 1.1, 1.2)
    points = [(0.0, 0.0, height) for height in heights]
    cell = arm_of_axes("RRRRRRR", [z, y, z, y, z, y, z], points, limit=2.0)
    q = samples(cell, 6)
    targets = cell.fk("tool")(q)
    family, found = solved(cell, "tool", targets, q, tmp_path)
    assert family
    np.testing.assert_allclose(found, q, 0.0, 1e-6)
    near = samples(cell, 7)
    _, found = solved(cell, "tool", targets, near, tmp_path)
    met = np.isfinite(found).all(axis=1)
    assert met.mean() > 0.8
    np.testing.assert_allclose(cell.fk("tool")(found[met]), targets[met], 0.0, 2e-6)
    assert (np.abs(found[met]) <= 2.0).all()


class Rotary(arm.ClosedForm):
    """A turntable with a slide along its x axis, of two signs."""

    branches = ("out", "in")

    def inverse(self, pose: Any) -> Any:
        x, y, _ = pose.position
        length = np.sqrt(x * x + y * y)
        angle = np.arctan2(y, x)
        return [(angle, length), (angle + np.pi, -length)]


def test_closed_forms_of_the_user(tmp_path: Path):
    z, x = (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)
    cell = arm_of_axes("RP", [z, x], np.zeros((2, 3)), limit=[6.0, 1.0])
    q = samples(cell, 8)
    targets = cell.fk("tool")(q)
    family, found = solved(cell, "tool", targets, q, tmp_path, closed=Rotary())
    assert family == "Rotary"
    np.testing.assert_allclose(found, q, 0.0, 1e-9)


# A page lets people drag each frame that joints move, the tool first.


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
