"""RobWork's own files: which load, what they say, and poses known from elsewhere."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import armillary
from armillary import Cell
from armillary.errors import FormatError
from armillary.formats import registry
from armillary.formats.diagnostic import Report
from armillary.formats.format import ReadOptions
from armillary.formats.robwork import FORMAT
from armillary.formats.robwork.frames import frame_names
from armillary.spatial import dh
from armillary.spatial.pose import Pose

Array = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def robwork(shared: Path) -> Path:
    folder = shared / "data" / "robwork"
    if not folder.is_dir():
        pytest.skip(f"no reference data: {folder} is absent")
    return folder


def load(robwork: Path, name: str) -> Cell:
    cell, _ = registry.read(robwork / name, folders=[robwork])
    return Cell.of(cell)


def parse(text: str) -> Cell:
    options = ReadOptions()
    return Cell.of(FORMAT.read(text.encode(), "x.xml", options, Report()))


# The whole folder

REFUSED = {
    "CollisionSetup": "a collision setup",
    "ProximitySetup": "a proximity setup",
    ".prox.xml": "a (collision|proximity) setup",
    "ModelData/XMLScenes/PA10atConveyor/SceneCollisionSetup.xml": "a collision setup",
    "testfiles/calibration/Scene/SomeCalibration.xml": "document type",
    "testfiles/calibration/SomeCalibration.xml": "duplicate attribute",
    "testfiles/calibration/SomeMeasurements.xml": "document type",
    "testfiles/calibration/TestMeasurements.xml": "a list of measurements",
    "testfiles/calibration/Scene/SomeDevice.xml": "a fragment",
    "testfiles/workcells/UR/Device.xml": "a fragment",
    "testfiles/devices/UR6855A/UR6855A.dwc.xml": "a part of a dynamic workcell",
    "testfiles/workcell_fileformat.xml": "Did you mean 'WorkCell'",
}


def reason(name: str) -> str | None:
    """Why a file must be refused, as a regular expression; None if it must load."""
    return next((words for key, words in REFUSED.items() if key in name), None)


def test_every_file_loads_or_is_refused_with_a_right_reason(robwork: Path):
    """The list is printed: `pytest -rP` shows it."""
    lines: list[str] = []
    wrong: list[str] = []
    for path in sorted(robwork.rglob("*.xml")):
        name = str(path.relative_to(robwork))
        expected = reason(name)
        try:
            cell, report = registry.read(path, folders=[robwork])
        except FormatError as error:
            lines.append(f"refused  {name}: {error.diagnostics[0].message}")
            if expected is None or not re.search(expected, str(error)):
                wrong.append(lines[-1])
            continue
        count = len(cell.joint_names)
        warnings = len(report.diagnostics)
        lines.append(f"loaded   {name}: {count} joints, {warnings} diagnostics")
        if expected is not None:
            wrong.append(lines[-1])
    print("\n".join(lines))  # noqa: T201
    assert len(lines) >= 70
    assert wrong == []


def test_loading_a_scene_takes_a_moment(robwork: Path):
    """Every file is small; none may take long."""
    cell = load(robwork, "testfiles/devices/Robotiq-2-finger-85/robotiq.wc.xml")
    assert len(cell.joint_names) == 6


# UR5e

# a, d, alpha of the UR5e as its maker gives them, and the same as the file rounds them.
PUBLISHED = (
    (0.0, 0.1625, math.pi / 2),
    (-0.425, 0.0, 0.0),
    (-0.3922, 0.0, 0.0),
    (0.0, 0.1333, math.pi / 2),
    (0.0, 0.0997, -math.pi / 2),
    (0.0, 0.0996, 0.0),
)
ROUNDED = (
    (0.0, 0.163, math.pi / 2),
    (-0.425, 0.007, 0.0),
    (-0.392, 0.0, 0.0),
    (0.0, 0.127, math.pi / 2),
    (0.0, 0.1, -math.pi / 2),
    (0.0, 0.1, 0.0),
)


def ur5e(q: Array, rows: tuple[tuple[float, float, float], ...]) -> Array:
    X = Pose.identity()
    for (a, d, alpha), theta in zip(rows, q, strict=True):
        X = X @ dh.paul(theta=theta, d=d, a=a, alpha=alpha)
    return X.matrix()


def test_ur5e_stands_as_published(robwork: Path):
    cell = load(robwork, "testfiles/devices/UR5e/UR5e.xml")
    at_zero = cell.fk("Flange")(np.zeros(6))[:3, 3]
    np.testing.assert_allclose(at_zero, [-0.817, -0.234, 0.063], atol=1e-12)
    assert cell.home.q.tolist() == [1.57, -2.4, 2.4, -1.57, -1.57, 0.0]
    home = cell.fk("Flange")(cell.home.q)[:3, 3]
    np.testing.assert_allclose(home, [0.13394, -0.17863, 0.34999], atol=1e-5)


def test_ur5e_from_robwork_isaac_and_published_agree(robwork: Path, shared: Path):
    """The file is rounded to millimetres, so that it is off by about one."""
    cell = load(robwork, "testfiles/devices/UR5e/UR5e.xml")
    isaac = armillary.load(shared / "data/isaac/ur5e.kinematic.json")
    end = isaac.frame_names[-1]
    Q = np.random.default_rng(0).uniform(-math.pi, math.pi, (200, 6))
    Q[0] = 0.3, -1.1, 0.8, 0.4, -0.7, 0.2
    ours, theirs = cell.fk("Flange")(Q), isaac.fk(end)(Q)
    published, rounded = (
        np.array([ur5e(q, rows) for q in Q]) for rows in (PUBLISHED, ROUNDED)
    )
    np.testing.assert_allclose(theirs, published, atol=1e-6)
    np.testing.assert_allclose(ours, rounded, atol=1e-12)
    error = np.abs(ours - published)[:, :3, 3]
    assert error[0].max() < 8.2e-4
    assert error.max() < 1.2e-3
    assert np.quantile(error, 0.9) < 1e-3


# Poses from RobWork's own tests

KR16 = """<WorkCell name="w">
 <Frame name="Stand"><RPY>180 0 180</RPY><Pos>2 0 1</Pos></Frame>
 <SerialDevice name="KR16">
  <Frame name="Base"/>
  <DHJoint name="J1" alpha="0" a="0" d="0" offset="0"/>
  <DHJoint name="J2" alpha="90" a="0.26" d="0" offset="0"/>
  <DHJoint name="J3" alpha="0" a="0.68" d="0" offset="0"/>
  <DHJoint name="J4" alpha="90" a="-0.035" d="-0.67" offset="0"/>
  <DHJoint name="J5" alpha="-90" a="0" d="0" offset="0"/>
  <DHJoint name="J6" alpha="90" a="0" d="0" offset="0"/>
  <Frame name="Tool"><Transform>
   0 -0.7071067811865476 -0.7071067811865476 -0.141
   -1 0 0 0
   0 0.7071067811865476 -0.7071067811865476 -0.299
  </Transform></Frame>
 </SerialDevice>
</WorkCell>"""

PUMA = """<SerialDevice name="Puma560">
  <Frame name="Base"/>
  <DHJoint name="J1" alpha="0" a="0" d="0" offset="0"/>
  <DHJoint name="J2" alpha="-90" a="0" d="0" offset="0"/>
  <DHJoint name="J3" alpha="0" a="0.4318" d="-1.15005" offset="0"/>
  <DHJoint name="J4" alpha="-90" a="0.0203" d="-0.4318" offset="0"/>
  <DHJoint name="J5" alpha="90" a="0" d="0" offset="0"/>
  <DHJoint name="J6" alpha="-90" a="0" d="0" offset="0"/>
</SerialDevice>"""


def test_kr16():
    cell = parse(KR16)
    q = np.radians([0, -60, 15, 0, 0, 0])
    X = cell.fk("Tool", relative_to="KR16/Base")(q)
    np.testing.assert_allclose(X[:3, 3], [1.16074, 0, 0.22074], atol=5e-6)
    expected = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    np.testing.assert_allclose(X[:3, :3], expected, atol=1e-12)
    base = cell.pose("KR16/Base", cell.home)
    np.testing.assert_allclose(base[:3, 3], [2, 0, 1], atol=1e-15)


def test_kr16_jacobians_of_two_frames_differ_by_the_lever():
    """The identity of RobWork's test: a screw moved from one point to another."""
    cell = parse(KR16)
    for q in np.random.default_rng(3).uniform(-2, 2, (5, 6)):
        X_6, X_T = (
            cell.fk(name, relative_to="KR16/Base")(q) for name in ("J6", "Tool")
        )
        J_6, J_T = (
            cell.jacobian(name, relative_to="KR16/Base")(q) for name in ("J6", "Tool")
        )
        lever = X_T[:3, 3] - X_6[:3, 3]
        moved = J_6[:3] + np.cross(J_6[3:].T, lever).T
        np.testing.assert_allclose(J_T[:3], moved, atol=1e-12)
        np.testing.assert_allclose(J_T[3:], J_6[3:], atol=1e-12)
        # A column is the axis z of its joint, and its lever to the tool.
        for k in range(6):
            X_k = cell.fk(f"J{k + 1}", relative_to="KR16/Base")(q)
            axis = X_k[:3, 2]
            arm = np.cross(axis, X_T[:3, 3] - X_k[:3, 3])
            np.testing.assert_allclose(J_T[:, k], [*arm, *axis], atol=1e-12)


def test_puma():
    cell = parse(PUMA)
    X = cell.fk("J6")(np.full(6, math.pi / 8))
    np.testing.assert_allclose(X[:3, 3], [1.104018, -0.787506, 0.125732], atol=5e-7)
    expected = [
        [0.448823, -0.073823, -0.890566],
        [-0.550328, -0.808012, -0.210372],
        [-0.704057, 0.584523, -0.403281],
    ]
    np.testing.assert_allclose(X[:3, :3], expected, atol=5e-7)


def test_fixed_frames_add_up():
    chain = "".join(
        f'<Frame name="{n}"><RPY/><Pos>{x} {x + 1} {x + 2}</Pos></Frame>'
        for n, x in (("a", 1), ("b", 2), ("c", 3))
    )
    cell = parse(f'<SerialDevice name="d"><Frame name="B"/>{chain}</SerialDevice>')
    assert cell.pose("c", cell.home)[:3, 3].tolist() == [6, 9, 12]


# Grippers and hands


def test_pg70_fingers_move_apart_by_the_same(robwork: Path):
    cell = load(robwork, "ModelData/XMLDevices/PG70/PG70.xml")
    assert cell.joint_names == ("RightFinger",)
    for q in (0.0, 0.01, 0.035):
        state = cell.home.replace(q=[q])
        left, right = (cell.pose(f"TCP{s}", state)[:3, 3] for s in ("Left", "Right"))
        np.testing.assert_allclose(left, [0, 0.0045 + q, 0.093], atol=1e-15)
        np.testing.assert_allclose(right, [0, -0.0045 - q, 0.093], atol=1e-15)
    lower, upper = cell.limits
    assert (lower[0], upper[0]) == (0, 0.035)


def test_fanuc_keeps_its_forearm_level(robwork: Path):
    """Joint 3 counts from the horizontal: the dependent joint takes joint 2 back."""
    cell = load(robwork, "ModelData/XMLDevices/Fanuc-LRM200i/fanuc_lrm200i.xml")
    assert cell.joint_names == tuple(f"Joint{k}" for k in range(1, 7))
    at_rest = cell.fk("Joint3")(np.zeros(6))
    for bend in (-1.0, 0.3, 2.0):
        bent = cell.fk("Joint3")([0, bend, 0, 0, 0, 0])
        np.testing.assert_allclose(bent[:3, :3], at_rest[:3, :3], atol=1e-14)
        assert np.linalg.norm(bent[:3, 3] - at_rest[:3, 3]) > 0.05


def test_two_fingers_of_the_schunk_hand_are_mirror_images(robwork: Path):
    cell = load(robwork, "ModelData/XMLDevices/SchunkHand/SchunkHand_udep.xml")
    fingers = [f"f{k}.Joint{j}" for k in (1, 2, 3) for j in (2, 3)]
    assert sorted(cell.joint_names) == sorted([*fingers, "F2Joint1"])
    bends = {name: 0.4 if name.endswith("2") else -0.7 for name in fingers}
    for spread in (0.0, 0.5, 1.5):
        state = cell.home.joints({**bends, "F2Joint1": spread})
        two, three = (
            cell.pose(f"f{k}.TCP", state, relative_to="Base")[:3, 3] for k in (2, 3)
        )
        np.testing.assert_allclose(two, three * [1, -1, 1], atol=1e-15)
        assert two[1] > 0


ROBOTIQ = "testfiles/devices/Robotiq-2-finger-85/robotiq_{}_control.xml"
FINGER = (
    "LeftMotor.MotorJoint",
    "LeftPassive.PassiveJoint",
    "RightPassive.PassiveJoint",
)
DISTANCE = tuple(
    f"Distance.{name}"
    for name in ("DistanceAngle1", "FingerDistance", "DistanceAngle2")
)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("control", "active", "rows"), [("finger", FINGER, 12), ("distance", DISTANCE, 18)]
)
def test_loops_of_the_robotiq_gripper_are_closed(
    robwork: Path, control: str, active: tuple[str, ...], rows: int
):
    cell, report = registry.read(robwork / ROBOTIQ.format(control))
    assert {d.code for d in report.diagnostics} <= {"missing-mesh"}
    whole = Cell.of(cell)
    assert cell.joint_names == active  # RobWork's q: the joints that are active
    links = cell.manipulators[0].links
    assert set(cell.passive_names) == {
        link.coordinate for link in links if link.passive and link.coupling is None
    }
    mobility = whole.mobility()
    assert (mobility.found, mobility.free) == ((), ())
    # The loops are planar: half of their equations follow from the other half.
    assert (mobility.equations, mobility.redundant) == (rows, rows // 2)
    limits = zip(cell.joints.all_names, *cell.joints.ranges[:2], strict=True)
    for name, lower, upper in limits:
        own = cell.manipulators[0].link(name).limits
        assert lower >= own.lower
        assert upper <= own.upper
    Q = np.random.default_rng(0).uniform(*cell.limits, (1000, 3))
    Q[0] = cell.home_q
    closed = whole.close_loops(Q).success
    assert closed[0]
    assert closed.sum() > 300
    pairs = [(f"{side}MotorEnd", f"{side}PassiveEnd") for side in ("Left", "Right")]
    if control == "distance":
        pairs.append(("DistanceEnd", "RightPassiveEnd"))
    X = whole.fk([name for pair in pairs for name in pair])(Q)
    np.testing.assert_allclose(X[:, ::2], X[:, 1::2], atol=1e-9)
    # Nothing that a loop moves has a pose where that loop is open.
    assert (np.isfinite(X).all(axis=(1, 2, 3)) == closed).all()


def test_fingers_of_the_robotiq_gripper_close_to_the_distance(robwork: Path):
    cell = load(robwork, ROBOTIQ.format("distance"))
    for distance in (0.085, 0.05, 0.0):
        state = cell.home.replace(q=[0.0, distance, 0.0])
        left, right = (cell.pose(f"{s}MotorEnd", state) for s in ("Left", "Right"))
        assert np.linalg.norm(left[:3, 3] - right[:3, 3]) == pytest.approx(distance)
        # The fingers stay parallel, and the gripper symmetric.
        np.testing.assert_allclose(left[:3, 1], right[:3, 1], atol=1e-9)
        np.testing.assert_allclose(left[0, 3], -right[0, 3], atol=1e-9)


# Scenes


def test_gripper_rides_on_the_tool_plate(robwork: Path):
    cell = load(robwork, "ModelData/XMLScenes/PA10atConveyor/Scene.xml")
    mounts = {m.manipulator: (m.on, m.bolted) for m in cell.mounts}
    assert mounts == {
        "environment": ("world", True),
        "PA10": ("environment/RobotBase", True),
        "ToolPlate": ("PA10/Joint7", True),
        "PG70": ("ToolPlate/ToolPlate", True),
        "Target": ("environment/RobotBase", False),
    }
    q = np.random.default_rng(5).uniform(-1, 1, 8)
    X_7, X_G = cell.fk(["PA10/Joint7", "PG70/Base"])(q)
    np.testing.assert_allclose(X_7[:3, 3] + 0.085 * X_7[:3, 2], X_G[:3, 3], atol=1e-14)


def test_boxes_on_the_table_are_right_handed_and_free(robwork: Path):
    name = "ModelData/XMLScenes/RobotOnTable/Scene.xml"
    cell, report = registry.read(robwork / name, folders=[robwork])
    codes = [d.code for d in report.diagnostics]
    assert codes.count("left-handed") == 2
    box = Cell.of(cell)
    np.testing.assert_array_equal(
        box.pose("m_box", box.home),
        [[1, 0, 0, 0.4], [0, 1, 0, 0.4], [0, 0, 1, 0.05], [0, 0, 0, 1]],
    )
    held = box.home.grip("m_box", by="UR-6-85-5-A/TCP")
    assert held.attachments == {"m_box": "UR-6-85-5-A/TCP"}


def test_files_of_a_scene_need_permission(robwork: Path):
    with pytest.raises(FormatError, match=r"reference-outside.*folders=\["):
        registry.read(robwork / "ModelData/XMLScenes/PA10atConveyor/Scene.xml")


def test_serialized_scene_is_the_scene_it_comes_from(robwork: Path):
    folder = "testfiles/workcells/simple_wc"
    a = load(robwork, f"{folder}/SimpleWorkcell.wc.xml")
    b = load(robwork, f"{folder}/SimpleWorkcellSerialized.wc.xml")
    assert set(a.frame_names) == set(b.frame_names)
    q = np.random.default_rng(6).uniform(-1.5, 1.5, 7)
    for name in a.frame_names:
        X, Y = (c.pose(name, c.home.replace(q=q)) for c in (a, b))
        np.testing.assert_allclose(X, Y, atol=1e-12)
    np.testing.assert_allclose(a.limits, b.limits, rtol=1e-15)


# Names


def test_frame_names_of_both_worlds(robwork: Path):
    cell = load(robwork, "ModelData/XMLScenes/RobotWithHand/Workcell.xml")
    names = frame_names(cell.workcell)
    assert set(names.values()) == set(cell.frame_names) - {"environment/WORLD"}
    assert names["WORLD"] == "world"
    assert names["SchunkHand.f1.Joint2"] == "SchunkHand/f1.Joint2"
    assert names["handBase"] == "handBase/handBase"
    assert names["fanucBase"] == "environment/fanucBase"
