"""`armillary calibrate`: a file of measurements makes a file of a better robot."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import armillary as arm

PARAMETERS = ["upper.precursor.x", "tip.z"]
TRUTH = [0.003, -0.002]
COLUMNS = {
    "positions": "x,y,z",
    "poses": "x,y,z,qw,qx,qy,qz",
    "distances": "distance",
}


@pytest.fixture
def robot(tmp_path: Path) -> str:
    """Return a URDF of two joints that turn about axes across each other."""
    path = tmp_path / "robot.urdf"
    path.write_text(
        """<robot name="robot"><link name="base"/><link name="lower"/>
        <link name="upper"/><link name="tip"/>
        <joint name="lower" type="revolute"><parent link="base"/><child link="lower"/>
          <origin xyz="0.1 0 0.3"/><axis xyz="0 0 1"/>
          <limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
        <joint name="upper" type="revolute"><parent link="lower"/><child link="upper"/>
          <origin xyz="0.2 0 0.1"/><axis xyz="0 1 0"/>
          <limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
        <joint name="tip" type="fixed"><parent link="upper"/><child link="tip"/>
          <origin xyz="0.3 0 0.1"/></joint></robot>"""
    )
    return str(path)


def measured(cell: arm.Cell, kind: str) -> tuple[np.ndarray, np.ndarray]:
    Q = np.random.default_rng(0).uniform(-2.0, 2.0, (12, 2))
    X = cell.with_parameters(dict(zip(PARAMETERS, TRUTH, strict=True))).fk("tip")(Q)
    x = X[:, :3, 3]
    if kind == "distances":
        return Q, np.linalg.norm(x, axis=1, keepdims=True)
    if kind == "positions":
        return Q, x
    quaternions = [arm.Pose.from_matrix(each).quaternion() for each in X]
    return Q, np.concatenate([x, quaternions], axis=1)


def written(path: Path, names: str, rows: np.ndarray) -> str:
    lines = [names, *(",".join(map(repr, row)) for row in rows.tolist())]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_better_robot(run, robot: str, tmp_path: Path, kind: str):
    nominal = arm.load(robot)
    Q, values = measured(nominal, kind)
    # Joints in another order and in degrees, lengths in millimetres.
    lengths = 3 if kind == "poses" else values.shape[1]
    values[:, :lengths] *= 1e3
    rows = np.concatenate([np.degrees(Q[:, ::-1]), values], axis=1)
    csv = written(tmp_path / "m.csv", f"upper,lower,{COLUMNS[kind]}", rows)
    better = str(tmp_path / "better.urdf")
    options = ["--parameters", ",".join(PARAMETERS), "--frame", "tip", "--degrees"]
    result = run("calibrate", robot, csv, *options, "--mm", "--json", "--out", better)
    assert result.code == 0, result.err
    about = json.loads(result.out)
    found = [each["value"] for each in about["parameters"]]
    np.testing.assert_allclose(found, TRUTH, rtol=0, atol=1e-9)
    assert about["doubts"] == []
    expected = nominal.with_parameters(dict(zip(PARAMETERS, TRUTH, strict=True)))
    np.testing.assert_allclose(
        arm.load(better).fk("tip")(Q), expected.fk("tip")(Q), rtol=0, atol=1e-9
    )


def test_the_report_is_text(run, robot: str, tmp_path: Path):
    Q, values = measured(arm.load(robot), "positions")
    csv = written(tmp_path / "m.csv", "lower,upper,x,y,z", np.hstack([Q, values]))
    options = ["--parameters", "tip.z,lower.precursor.z", "--cross-validate", "3"]
    result = run("calibrate", robot, csv, "--frame", "tip", *options)
    assert result.code == 0, result.err
    assert "residuals (root mean square" in result.out
    assert "residuals of rows left out" in result.out
    # A parameter is missing, and the report says so.
    assert "parameters are missing" in result.out


@pytest.mark.parametrize(
    ("names", "more", "message"),
    [
        ("", [], "must name the columns"),
        ("lower,upper,x,y,w\n", [], "'w'"),
        ("lower,upper,x,y\n", [], "names 4 columns, lower, upper, x, y; rows have 5"),
        ("lower,upper,x,y,roll\n", [], "do not describe a pose"),
        ("lower,upper,a,b,c\n", [], "'a'"),
        ("lower,upper,x,y,z\n", ["--on", "plane"], "leave out x, y, z"),
    ],
)
def test_files_that_are_refused(
    run, robot: str, tmp_path: Path, names: str, more: list[str], message: str
):
    (tmp_path / "m.csv").write_text(names + "0.1,0.2,0.3,0.4,0.5\n")
    csv = str(tmp_path / "m.csv")
    result = run("calibrate", robot, csv, "--parameters", "tip.z", *more)
    assert result.code == 2
    assert message in result.err


def test_a_file_of_joints_alone(run, robot: str, tmp_path: Path):
    csv = written(tmp_path / "m.csv", "lower,upper", np.zeros((5, 2)))
    result = run("calibrate", robot, csv, "--parameters", "tip.z")
    assert result.code == 2
    assert "no column is what was measured" in result.err
