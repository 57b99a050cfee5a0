"""Inverse kinematics that a page computes reaches targets, by the nearest branch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.view.page_kinematics import kinematics_script
from arms import arm_of_axes
from javascript import calls, run_javascript

COUNT = 40


def samples(cell: arm.Cell, seed: int) -> np.ndarray:
    """Joint positions well within limits, for loops near home."""
    lower, upper = (np.clip(each, -3.0, 3.0) for each in cell.limits)
    middle, half = (lower + upper) / 2.0, (upper - lower) / 2.0
    rng = np.random.default_rng(seed)
    return middle + rng.uniform(-0.9, 0.9, (COUNT, len(lower))) * half


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
