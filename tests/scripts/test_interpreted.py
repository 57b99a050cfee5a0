"""Scripts that cannot be compiled run as Python, and say why."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import armillary as arm
from armillary.errors import NotCompiled

SCRIPT = """\
from math import *
import vcMatrix
from vcPythonKinematics import *

reach = {0: 0.1, 1: 0.2}

def OnGetJointCount():
  return 2

def OnForward(kin):
  q = kin.JointValues
  step = int(floor(q[0] / 90.0))
  m = vcMatrix.new()
  m.rotateRelZ(q[0])
  m.translateRel(500.0, 0, q[1])
  kin.Target = m
  return reach.get(step, 0.3) > 0

def OnInverse(kin):
  p = kin.Target.P
  kin.JointValues = [degrees(atan2(p.Y, p.X)), p.Z]
  return True
"""
COMPONENT = {
    "joints": [
        {"name": "J1", "min": -180, "max": 180},
        {"name": "J2", "kind": "translational"},
    ]
}
Q = np.array([[0.3, 0.2], [-1.0, 0.1]])


@pytest.fixture(name="cell", scope="module")
def cell_fixture(tmp_path_factory):
    path = tmp_path_factory.mktemp("script") / "turning.py"
    path.write_text(SCRIPT)
    return arm.Cell(manipulators=[arm.scripted(path, component=COMPONENT)])


def test_the_diagnostic_says_where_and_why(cell):
    (found,) = cell.manipulators[0].link("flange").joint.diagnostics
    assert (found.kind, found.line) == ("not-compiled", 12)
    assert found.message.startswith("turning.py:12: an int was asked of a traced")


def test_poses_and_rates(cell):
    fk, jacobian = cell.fk("flange"), cell.jacobian("flange")
    X = fk(Q)
    for q, pose in zip(Q, X, strict=True):
        turn = arm.Pose.rotation_z(q[0])
        expected = turn @ arm.Pose.translation(0.5, 0, q[1])
        assert_allclose(pose, expected.matrix(), atol=1e-12)
        assert_allclose(fk(q), pose)
    J = jacobian(Q)
    assert_allclose(J[:, :3, 0], np.cross([0, 0, 1], X[:, :3, 3]), atol=1e-8)
    assert_allclose(J[:, :, 1], np.tile([0, 0, 1, 0, 0, 0], (2, 1)), atol=1e-8)
    assert_allclose(cell.velocity("flange")(Q, Q), (J @ Q[..., None])[..., 0])
    out = np.empty((2, 4, 4))
    assert fk(Q, out=out, threads=1) is out
    assert_allclose(out, X)


def test_all_frames_of_a_state(cell):
    poses = cell.poses(arm.State(q=Q[0]))
    assert_allclose(poses["flange"], cell.fk("flange")(Q[0]))


def test_inverse_by_the_script(cell):
    ik = cell.ik("flange")
    X = cell.fk("flange")(Q)
    assert_allclose(ik(X).q, Q, atol=1e-12)
    assert_allclose(ik(X, near=Q).q, Q, atol=1e-12)
    tilted = X[0] @ arm.Pose.rotation_x(0.3).matrix()
    assert ik(tilted).reason == arm.Reason.NOT_FOUND


def test_dynamics_at_rest(cell):
    (robot,) = cell.manipulators
    box = arm.shapes.Box(size=(0.1, 0.1, 0.1)).inertia(1000.0)
    flange = robot.link("flange").replace(inertia=box)
    heavy = cell.exchange(robot.exchange(flange))
    assert_allclose(heavy.gravity_torque()(Q), [[0.0, 9.81], [0.0, 9.81]], atol=1e-8)
    turned = 0.5**2 + 0.1**2 / 6.0
    M = np.tile([[turned, 0.0], [0.0, 1.0]], (2, 1, 1))
    assert_allclose(heavy.mass_matrix()(Q), M, atol=1e-8)
    with pytest.raises(NotCompiled, match=r"turning\.py:12"):
        heavy.bias_torque()(Q, Q)


def test_what_needs_machine_code_says_so(cell):
    for ask in (
        lambda: cell.acceleration("flange")(Q, Q, Q),
        lambda: cell.ik("flange")(np.eye(4), method="numeric"),
        lambda: cell.ik("flange", rotation="")(np.eye(4)),
    ):
        with pytest.raises(NotCompiled, match=r"turning\.py:12"):
            ask()


def test_a_script_that_remembers_calls_is_not_compiled(tmp_path):
    path = tmp_path / "counting.py"
    path.write_text(
        SCRIPT.replace("  step = int(floor(q[0] / 90.0))\n", "  calls.append(1)\n")
        .replace("reach.get(step, 0.3) > 0", "True")
        .replace("500.0", "500.0 + len(calls)")
        + "\ncalls = []\n"
    )
    joint = arm.scripted(path, component=COMPONENT).link("flange").joint
    (found,) = joint.diagnostics
    assert found.kind == "not-compiled"
    assert "from call to call" in found.message


def test_an_inverse_that_remembers_calls_is_not_compiled(tmp_path):
    path = tmp_path / "counting.py"
    path.write_text(
        SCRIPT.replace("int(floor(q[0] / 90.0))", "0").replace(
            "p.Z]", "p.Z + 0.001 * len(calls)]; calls.append(1)"
        )
        + "\ncalls = []\n"
    )
    robot = arm.scripted(path, component=COMPONENT)
    assert robot.link("flange").joint.diagnostics == ()
    closed = arm.Cell(manipulators=[robot]).ik("flange").closed
    assert not closed.compiled
    assert "from call to call" in closed.why_not_compiled


CAUGHT = """
class Wrist:
  def bend(self, x):
    try:
      return acos(x / 100.0)
    except:
      return -1.0

wrist = Wrist()
"""


def test_what_a_script_catches_is_never_compiled(tmp_path):
    path = tmp_path / "caught.py"
    text = SCRIPT.replace("reach = {0: 0.1, 1: 0.2}", CAUGHT)
    text = text.replace("  step = int(floor(q[0] / 90.0))\n", "")
    text = text.replace("q[1])", "wrist.bend(q[1]))")
    path.write_text(text.replace("reach.get(step, 0.3) > 0", "True"))
    robot = arm.scripted(path, component=COMPONENT)
    (found,) = robot.link("flange").joint.diagnostics
    assert (found.kind, found.line) == ("not-compiled", 8)
    assert "a try statement cannot be traced" in found.message
    fk = arm.Cell(manipulators=[robot]).fk("flange")
    heights = fk([[0.3, 0.05], [0.3, 0.2]])[:, 2, 3]
    assert_allclose(heights, [np.pi / 3 * 1e-3, -1e-3], atol=1e-15)


def test_joints_that_are_not_finite_do_not_reach_the_script(cell):
    assert np.isnan(cell.fk("flange")([np.nan, 0.1])).any()  # int(nan) raises
    X = cell.fk("flange")([[np.inf, 0.1], [0.3, 0.2]])
    assert np.isnan(X[0]).any()
    assert np.isfinite(X[1]).all()


DIVIDED = """\
from vcPythonKinematics import *
import vcMatrix
def OnGetJointCount(): return 1
def OnForward(kin):
  m = vcMatrix.new()
  try:
    m.translateAbs(1 / kin.JointValues[0], 0, 0)
  except ZeroDivisionError:
    m.translateAbs(7, 0, 0)
  kin.Target = m
  return True
def OnInverse(kin):
  try:
    kin.JointValues = [1 / kin.Target.P.X + OFF]
  except ZeroDivisionError:
    kin.JointValues = [5]
  return True
OFF = 0.0
"""
SLIDE = {"joints": [{"name": "J1", "kind": "translational", "min": -9, "max": 9}]}


def test_a_script_that_divides_by_zero_catches_the_error(tmp_path):
    path = tmp_path / "divided.py"
    path.write_text(DIVIDED)
    cell = arm.Cell(manipulators=[arm.scripted(path, component=SLIDE)])
    found = cell.fk("flange")([[0.0], [0.002]])[:, 0, 3]
    assert_allclose(found, [0.007, 0.0005])
    joint = cell.manipulators[0].link("flange").joint
    assert joint.transform(np.zeros(1)).position == (0.007, 0.0, 0.0)
    assert joint.inverse(arm.Pose.from_matrix(np.eye(4))) == [[0.005]]


def test_an_inverse_of_few_digits_hints_at_the_tolerance(tmp_path):
    path = tmp_path / "rough.py"
    path.write_text(DIVIDED.replace("OFF = 0.0", "OFF = 0.01"))
    cell = arm.Cell(manipulators=[arm.scripted(path, component=SLIDE)])
    X = arm.Pose.translation(0.001, 0, 0).matrix()
    for found in (cell.ik("flange").all(X), cell.ik("flange")(X)):
        assert "within 1e-05 m and 0 rad of the target, but not within tol" in repr(
            found
        )
    assert cell.ik("flange").all(X, tolerance=(1e-4, 1e-3)).success.all()
