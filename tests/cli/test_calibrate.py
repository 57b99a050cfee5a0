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


def test_what_to_measure_next(run, robot: str, tmp_path: Path):
    """In the units and columns of the file, of candidates or of free samples."""
    Q, values = measured(arm.load(robot), "positions")
    rows = np.hstack([np.degrees(Q[:, ::-1]), 1e3 * values])
    csv = written(tmp_path / "m.csv", "upper,lower,x,y,z", rows)
    near = written(tmp_path / "near.csv", "lower,upper", np.array([[1.0, 2], [50, 60]]))
    options = ["--parameters", "tip,lower", "--frame", "tip", "--degrees", "--mm"]
    result = run("calibrate", robot, csv, *options, "--next", "3")
    assert result.code == 0, result.err
    *_, names, a, b, c = result.out.splitlines()
    assert names == "upper,lower"
    chosen = np.array([each.split(",") for each in (a, b, c)], float)
    assert 57.3 < np.abs(chosen).max() < 172.0
    options += ["--next", "2", "--candidates", near, "--json"]
    result = run("calibrate", robot, csv, *options)
    about = json.loads(result.out)["next_poses"]
    assert about["joints"] == ["upper", "lower"]
    np.testing.assert_allclose(sorted(about["rows"]), [[2.0, 1.0], [60.0, 50.0]])


def test_a_robot_somewhere_in_the_room_of_a_tracker(run, robot: str, tmp_path: Path):
    """The robot is not mounted, and its joints do not take up where it stands."""
    nominal = arm.load(robot)
    where = arm.Pose.from_rpy(0.2, -0.1, 2.0, (-2.0, 1.0, 0.5)).matrix()
    Q, values = measured(nominal, "positions")
    x = values @ where[:3, :3].T + where[:3, 3]
    csv = written(tmp_path / "m.csv", "lower,upper,x,y,z", np.hstack([Q, x]))
    options = ["--parameters", "lower,upper.precursor,tip,robot.mount"]
    better, picture = str(tmp_path / "better.urdf"), str(tmp_path / "p.svg")
    options += ["--frame", "tip", "--out", better, "--plot", picture]
    result = run("calibrate", robot, csv, *options)
    assert result.code == 0, result.err
    assert "robot.mount: -2.000000, 1.000000, 0.500000, 11.4592, -5.7296," in result.out
    cell = arm.load(better)
    np.testing.assert_allclose(cell.fk("tip")(Q)[:, :3, 3], x, rtol=0, atol=1e-8)
    found = cell.fk("lower")(np.zeros(2))
    np.testing.assert_allclose(
        np.linalg.inv(cell.fk("base")(np.zeros(2))) @ found,
        nominal.fk("lower")(np.zeros(2)),
        atol=1e-8,
    )
    assert "<svg" in Path(picture).read_text()
    result = run("calibrate", robot, csv, *options[:-1], str(tmp_path / "p.xyz"))
    assert result.code == 2
    assert "ends in one of" in result.err


def test_a_reflector_on_a_link_without_a_frame(run, robot: str, tmp_path: Path):
    """What is found is written, also where nothing can be said about contacts."""
    text = Path(robot).read_text()
    mesh = '<collision><geometry><mesh filename="lost.stl"/></geometry></collision>'
    for name in ("base", "lower", "upper"):
        old = f'<link name="{name}"/>'
        text = text.replace(old, f'<link name="{name}">{mesh}</link>')
    Path(robot).write_text(text)
    nominal = arm.load(robot)
    Q = np.random.default_rng(0).uniform(-2.0, 2.0, (12, 2))
    at = np.array([0.05, -0.02, 0.3, 1.0])
    x = (nominal.fk("upper")(Q) @ at)[:, :3]
    csv = written(tmp_path / "m.csv", "lower,upper,x,y,z", np.hstack([Q, x]))
    better = str(tmp_path / "better.urdf")
    options = ["--parameters", "lower.precursor.x", "--frame", "upper", "--next", "2"]
    result = run(
        "calibrate", robot, csv, *options, "--reflector", "ball", "--out", better
    )
    assert result.code == 0, result.err
    assert "was not checked" in result.err
    assert len(result.out.split("measure next:")[1].split()) == 3
    found = arm.load(better).fk("ball")(Q)[:, :3, 3]
    np.testing.assert_allclose(found, x, rtol=0, atol=1e-8)
    result = run("calibrate", robot, csv, *options, "--reflector", "tip")
    assert result.code == 2
    assert "'tip'" in result.err


def test_friction_from_torques(run, robot: str, tmp_path: Path):
    masses = {"upper.inertia.m": 2.0, "upper.inertia.h_x": 0.2}
    masses |= {f"upper.inertia.I_{axis}": 0.3 for axis in ("xx", "yy", "zz")}
    cell = arm.load(robot).with_parameters(masses)
    robot = str(tmp_path / "heavy.urdf")
    arm.save(cell, robot)
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 20, 2))
    real = cell.with_parameters({"upper.dynamics.friction": 0.5})
    torques = real.inverse_dynamics()(q, qd, qdd)
    rows = np.hstack([np.arange(20.0)[:, None], *np.degrees([q, qd, qdd])])
    columns = [f"{k}:{j} [rad]" for k in ("q", "qd", "qdd") for j in ("upper", "lower")]
    swapped = rows[:, [0, 2, 1, 4, 3, 6, 5]]
    table = np.hstack([swapped, torques])
    names = ",".join(["time [s]", *columns, "torque:lower", "torque:upper [N m]"])
    csv = written(tmp_path / "m.csv", names, table)
    options = ["--parameters", "upper.dynamics.friction", "--degrees", "--json"]
    result = run("calibrate", robot, csv, *options)
    assert result.code == 0, result.err
    (found,) = json.loads(result.out)["parameters"]
    assert found["value"] == pytest.approx(0.5, abs=1e-9)
    for head, message in (
        (names.replace("qdd:upper", "qddd:upper"), "no column qdd:upper"),
        (names.replace("qdd:upper", "qdd:lower"), "there twice"),
        (names.replace("time [s]", "x"), "not a column of a motion"),
    ):
        csv = written(tmp_path / "m.csv", head, table)
        result = run("calibrate", robot, csv, *options)
        assert result.code == 2
        assert message in result.err
