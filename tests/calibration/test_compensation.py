"""Tables for controllers: with them the robot is where the nominal one would be."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.calibration.compensation import correction_table, dh_table, target_table
from armillary.errors import ModelError, UnknownName


def pair(example: str = "irb2400") -> tuple[arm.Cell, arm.Cell]:
    """Return a nominal cell, and one whose joints are a little off."""
    cell = arm.example(example)
    names = list(cell.parameters([f"{x}.precursor" for x in cell.joint_names[-6:]]))
    p = np.random.default_rng(0).normal(0.0, 1e-3, len(names))
    return cell, cell.with_parameters(dict(zip(names, p, strict=True)))


def test_corrected_joints_and_targets_are_where_they_shall_be(tmp_path: Path) -> None:
    cell, real = pair()
    axes = {"joint_2": np.linspace(0.0, 0.5, 6), "joint_3": np.linspace(0.0, 0.4, 5)}
    q = np.full(6, 0.6)
    table = correction_table(cell, real, "tool0", axes, q=q)
    finer = {name: np.linspace(x[0], x[-1], 2 * len(x)) for name, x in axes.items()}
    assert correction_table(cell, real, "tool0", finer, q=q).error < 0.4 * table.error
    on = np.array([0.6, 0.1, 0.2, 0.6, 0.6, 0.6])
    fk, real_fk = cell.fk("tool0"), real.fk("tool0")
    np.testing.assert_allclose(real_fk(table.at(on)), fk(on), atol=1e-9)
    rng = np.random.default_rng(1)
    rows = np.tile(q, (50, 1))
    rows[:, 1:3] = rng.uniform(0.0, 0.4, (50, 2))
    off = np.linalg.norm((real_fk(table.at(rows)) - fk(rows))[:, :3, 3], axis=1)
    before = np.linalg.norm((real_fk(rows) - fk(rows))[:, :3, 3], axis=1)
    assert off.max() <= 1.5 * table.error < 0.05 * before.min()
    # A controller that solves the nominal robot for the target moves the joints there.
    solved = cell.ik("tool0")(table.target(rows), near=rows).q
    shift = np.linalg.norm((real_fk(solved) - fk(rows))[:, :3, 3], axis=1)
    assert shift.max() <= 1.5 * table.error
    table.write(tmp_path / "table.csv")
    with (tmp_path / "table.csv").open() as file:
        head, *lines = csv.reader(file)
    assert head[:3] == ["joint_2", "joint_3", "d_joint_1"]
    numbers = np.array(lines, float)
    assert numbers.shape == (30, 8)
    np.testing.assert_array_equal(
        numbers[:, 2:].reshape(table.corrections.shape), table.corrections
    )


def turned(row: Any, q: float) -> arm.Pose:
    about = arm.Pose.rotation_z(row.theta + row.sign * q)
    tilt = arm.Pose.rotation_x(row.alpha)
    return about @ arm.Pose.translation(row.a, 0.0, row.d) @ tilt


@pytest.mark.parametrize("example", ["irb2400", "ur5e_on_oval"])
def test_the_table_of_an_arm_is_the_arm(example: str, tmp_path: Path) -> None:
    _, real = pair(example)
    base = "base" if example == "irb2400" else "ur5e/base"
    table = dh_table(real, "tool0", relative_to=base)
    assert len(table.rows) == 6
    for q in np.random.default_rng(2).uniform(-1.0, 1.0, (4, len(real.joint_names))):
        pose = table.base
        for row in table.rows:
            pose = pose @ turned(row, q[real.joint(row.joint)])
        pose = pose @ table.tool
        wanted = real.fk("tool0", relative_to=base)(q)
        np.testing.assert_allclose(pose.matrix(), wanted, atol=1e-9)
    table.write(tmp_path / "dh.csv")
    with (tmp_path / "dh.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["joint"] for row in rows[1:-1]] == [row.joint for row in table.rows]
    assert float(rows[2]["alpha"]) == table.rows[1].alpha
    assert float(rows[-1]["x"]) == table.tool.position[0]


def test_what_is_refused() -> None:
    cell, real = pair()
    with pytest.raises(ModelError, match="ascending"):
        correction_table(cell, real, "tool0", {"joint_1": [0.0, 0.0]})
    with pytest.raises(ModelError, match="one axis at least"):
        correction_table(cell, real, "tool0", {})
    with pytest.raises(ModelError, match="Joints may be too few"):
        flat = arm.example("pan_tilt")
        moved = flat.with_parameters({"tilt.precursor.rx": 0.01})
        correction_table(flat, moved, "tool0", {"pan": [0.0, 0.1]})
    with pytest.raises(ModelError, match="no table"):
        dh_table(arm.example("ur5e_on_oval"), "tool0")
    with pytest.raises(ModelError, match="fewer than two turn"):
        dh_table(cell, "link_1")
    axes = {"joint_2": [0.0, 0.1]}
    with pytest.raises(ModelError, match="by their names"):
        correction_table(cell, real, "tool0", ["joint_2"])  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="a joint twice"):
        both = {**axes, "irb2400/joint_2": [0.0, 0.1]}
        correction_table(cell, real, "tool0", both)
    with pytest.raises(ModelError, match="q= are not finite"):
        correction_table(cell, real, "tool0", axes, q=np.full(6, np.nan))
    table = correction_table(cell, real, "tool0", axes, q=np.full(6, 0.3))
    with pytest.raises(ModelError, match=r"not \(5,\)"):
        table.at(np.zeros(5))


def test_targets_for_a_controller_that_takes_poses(tmp_path: Any) -> None:
    cell = arm.example("irb2400")
    names = list(cell.parameters(["joint_2.precursor", "joint_5.precursor"]))
    p = np.random.default_rng(0).normal(0.0, 1e-3, len(names))
    real = cell.with_parameters(dict(zip(names, p, strict=True)))
    near = np.array([0.2, 0.3, 0.1, 0.4, 0.6, 0.2])
    X = cell.fk("tool0")(near)
    grid = {
        "x": X[0, 3] + np.linspace(-0.1, 0.1, 5),
        "z": X[2, 3] + np.linspace(-0.1, 0.1, 5),
    }
    table = target_table(cell, real, "tool0", grid, near=near)
    wanted = np.tile(X, (2, 1, 1))
    wanted[:, :3, 3] += [[0.03, 0.0, 0.04], [-0.07, 0.0, -0.02]]
    q = cell.ik("tool0")(table.at(wanted), near=near).q
    off = np.abs(real.fk("tool0")(q) - wanted).max()
    before = np.abs(
        real.fk("tool0")(cell.ik("tool0")(wanted, near=near).q) - wanted
    ).max()
    assert off < 0.02 * before
    assert table.error < 2e-5
    table.write(tmp_path / "t.csv")
    head, *lines = (tmp_path / "t.csv").read_text().splitlines()
    assert head == "x,z,d_x,d_y,d_z,d_rx,d_ry,d_rz"
    assert len(lines) == 25
    with pytest.raises(ModelError, match="does not reach"):
        target_table(cell, real, "tool0", {"x": [1.0, 9.0]}, near=near)
    with pytest.raises(UnknownName, match=r"'jaw'.*'yaw'"):
        target_table(cell, real, "tool0", {"jaw": [0.0, 0.1]})
    with pytest.raises(ModelError, match=r"\(\.\.\., 4, 4\)"):
        table.at(np.zeros(3))
