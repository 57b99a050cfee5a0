"""The host of scripts: every event, every style of output, and faults with lines."""

# ruff: noqa: E501

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import jsonschema
import msgspec
import numpy as np
import pytest
from numpy.testing import assert_allclose

import armillary as arm
from armillary.errors import ScriptError
from armillary.scripts.component import ComponentData, component_of
from armillary.scripts.host import Host
from armillary.scripts.source import prepared
from published_scripts import EXAMPLES

HEAD = """\
from vcPythonKinematics import *
import vcMatrix, vcVector
from math import *
def OnGetJointCount(): return 2
"""
FORWARD = """
def OnForward(kin):
  m = vcMatrix.new()
  m.rotateRelZ(kin.JointValues[0])
  m.translateRel(100, 0, kin.JointValues[1])
  kin.Target = m
  return True
"""
INVERSE = """
def OnInverse(kin):
  p = kin.Target.P
  kin.JointValues = [degrees(atan2(p.Y, p.X)), p.Z]
  return True
"""
JOINTS = [
    {"name": "J1", "min": -170, "max": 170},
    {"name": "J2", "kind": "translational", "min": -50, "max": 50},
]


def host(*parts: str, head: str = HEAD, **component: object) -> Host:
    data, _ = component_of({"name": "c", "joints": JOINTS, **component})
    return Host(prepared(head + "".join(parts), "s.py"), data)


def values(given: Host, *joints: float) -> list[list[float] | None]:
    found = given.solutions(given.forward(joints))
    return [each and list(each.values) for each in found]


def test_order_of_events():
    text = "log = []\n" + "".join(
        f"def {name}({args}): log.append('{name}'); return {result}\n"
        for name, args, result in (
            ("OnFinalize", "", None),
            ("OnRebuild", "", None),
            ("OnInitKinObject", "kin", None),
            ("OnConstrainParams", "kin", True),
        )
    )
    forward = FORWARD.replace(
        "def OnForward(kin):", "def OnForward(kin):\n  log.append('OnForward')"
    )
    made = host(text, forward, INVERSE)
    log = made._runner._space["log"]
    assert log == [
        "OnFinalize",
        "OnRebuild",
        "OnInitKinObject",
        "OnConstrainParams",
        "OnForward",
    ]


def test_default_names():
    made = host(FORWARD, INVERSE)
    assert [joint.name for joint in made.joints] == ["J1", "J2"]
    assert made.configurations == (("only",),)


@pytest.mark.parametrize(
    "body",
    [
        "kin.JointValues = [a, p.Z]",
        "kin.JointValues = (a, p.Z)",
        "kin.Solutions = [(VC_SOLUTION_REACHABLE, [a, p.Z])]",
        "kin.Solutions = ([VC_SOLUTION_REACHABLE, (a, p.Z)],)",
        "kin.moveJointTo(0, a); kin.moveJointTo(1, p.Z)",
    ],
)
def test_styles_of_output(body):
    text = f"\ndef OnInverse(kin):\n  p = kin.Target.P\n  a = degrees(atan2(p.Y, p.X))\n  {body}\n  return True\n"
    made = host(FORWARD, text)
    assert_allclose(values(made, 30, 20), [[30, 20]], atol=1e-12)


def test_false_means_nothing():
    made = host(FORWARD, "\ndef OnInverse(kin): return False\n")
    assert values(made, 30, 20) == [None]
    forward = FORWARD.replace("return True", "return kin.JointValues[1] < 40")
    X = host(forward, INVERSE).forward([30, 45])
    assert np.isnan(X.entries).all()


CONFIGURED = """
words = ["UP", "DOWN"]
def OnInitKinObject(kin):
  p = kin.createProperty(VC_STRING, "Elbow", VC_PROPERTY_STEP)
  p.StepValues = words
  p.Value = words[0]
def OnInverse(kin):
  p = kin.Target.P
  sign = 1 if kin.Elbow == "UP" else -1
  kin.JointValues = [degrees(atan2(p.Y, p.X)) , sign * p.Z]
  return True
"""
EVENTS = """
def OnGetConfigurationCount(): return 2
def OnGetCurrentConfiguration({0}): return words.index(kept.Elbow)
def OnSetCurrentConfiguration({1}index): kept.Elbow = words[index]
"""


def test_step_values_are_the_configurations():
    made = host(FORWARD, CONFIGURED)
    assert made.configurations == (("UP",), ("DOWN",))
    assert_allclose(values(made, 30, 20), [[30, 20], [30, -20]], atol=1e-12)


@pytest.mark.parametrize(("get", "put"), [("", ""), ("kin", "kin, ")])
def test_both_arities_of_the_configuration_events(get, put):
    keep = CONFIGURED.replace(
        "def OnInitKinObject(kin):",
        "def OnInitKinObject(kin):\n  global kept\n  kept = kin",
    )
    made = host(FORWARD, keep, EVENTS.format(get, put))
    assert made.configurations == (("UP",), ("DOWN",))
    assert_allclose(values(made, 30, 20), [[30, 20], [30, -20]], atol=1e-12)


def test_solutions_without_names_are_counted():
    text = """
def OnInverse(kin):
  p = kin.Target.P
  kin.Solutions = [(VC_SOLUTION_REACHABLE, [k, p.Z]) for k in range(3)]
  return True
"""
    made = host(FORWARD, text)
    assert made.configurations == tuple((f"configuration {k}",) for k in (1, 2, 3))
    fewer = host(
        FORWARD,
        CONFIGURED.replace(
            "kin.JointValues = [degrees(atan2(p.Y, p.X)) , sign * p.Z]",
            "kin.Solutions = [(VC_SOLUTION_SINGULARITY, [0, p.Z])]",
        ),
    )
    found = fewer.solutions(fewer.forward([30, 20]))
    assert found[0].warning == 2
    assert found[1] is None


def test_helper_and_external_joints():
    text = """
def OnGetKinematicJointCount(): return 1
def OnGetSecondaryJointCount(): return 1
def OnGetSecondaryJointName(index): return "E%d" % (index + 1)
def OnUpdateSecondaryJoints(kin):
  kin.SecondaryJointValues = [kin.Target.P.Z]
  return True
def OnForward(kin):
  m = vcMatrix.new()
  m.rotateRelZ(kin.JointValues[0])
  m.translateRel(100, 0, kin.SecondaryJointValues[0])
  kin.Target = m
  return True
"""
    external = [{"name": "E1", "kind": "translational", "min": -10, "max": 10}]
    made = host(text, INVERSE, external_joints=external)
    assert made.kinematic_count == 1
    assert [joint.name for joint in made.secondary] == ["E1"]
    assert_allclose(values(made, 30, 0, 7), [[30, 7, 7]], atol=1e-12)
    assert made.limits == [(-170, 170), (-50, 50), (-10, 10)]


def test_limits_of_constrain_and_relax(tmp_path):
    text = (
        HEAD
        + FORWARD
        + INVERSE
        + """
def OnConstrainParams(kin):
  kin.JointMinLimits = [-90, -20]
  kin.JointMaxLimits = [90, 20]
  return True
def OnRelaxParams(kin): return {0}
"""
    )
    for agrees, relaxed, expected in (
        (True, False, [90, 0.02]),
        (True, True, [math.inf, math.inf]),
        (False, True, [170, 0.05]),
    ):
        path = tmp_path / f"s{agrees}{relaxed}.py"
        path.write_text(text.format(agrees))
        robot = arm.scripted(path, component={"joints": JOINTS}, relaxed=relaxed)
        upper = arm.Cell(manipulators=[robot]).limits[1] * [180 / math.pi, 1]
        assert_allclose(upper, expected)


def test_calculate_target():
    base, tool = arm.Pose.translation(1, 0, 0), arm.Pose.rotation_x(0.3)
    full = arm.Pose.translation(0, 2, 0)
    plain = host(FORWARD, INVERSE)
    assert plain.target(full, base, tool).approx_equal(
        base @ full @ tool.inverse(), 1e-12
    )
    back = plain.target(full, base, tool, inverted=True)
    assert back.approx_equal((tool @ full @ base.inverse()).inverse(), 1e-12)
    text = """
def OnCalculateTarget(fullTarget, baseFrame, toolFrame, targetInverted):
  m = vcMatrix.new()
  m.P = fullTarget.P
  return m
"""
    made = host(FORWARD, INVERSE, text)
    assert made.target(full, base, tool).approx_equal(full, 1e-12)


def test_forward_kin_and_the_component():
    text = """
size = getComponent().Size
def OnInverse(kin):
  comp = getComponent()
  assert comp.getProperty("None") is None
  assert comp.getProperty("Kinematics::L1").Value == 7
  assert comp.getProperty("Mode").StepValues == ["a", "b"]
  comp.Mode = "b"
  assert comp.Size.X == size.X
  comp.Size.X = 99
  assert comp.Size.X == 1
  m = forwardKin([10, 0])
  kin.JointValues = [degrees(atan2(m.P.Y, m.P.X)), m.P.Z]
  return True
"""
    properties = {
        "Size": [1, 2, 3],
        "Kinematics::L1": 7,
        "Mode": {"value": "a", "step_values": ["a", "b"]},
    }
    made = host(FORWARD, text, properties=properties)
    assert_allclose(values(made, 30, 20), [[10, 0]], atol=1e-12)


def test_old_scripts_run():
    text = """
def OnNearestConfig(kin): return True
def OnResolveJoints(kin): return True
DEBUG = True
def OnInverse(kin):
\tif DEBUG: print "target", kin.Target.P.X,
        print ("a", 1)
        print
\tfor k in xrange(2):
\t\tprint "%d" % k; x = 1
\tp = kin.Target.P
\tkin.JointValues = [degrees(atan2(p.Y, p.X)), p.Z]
\treturn True
"""
    made = host(FORWARD, text.replace(" print (", "\u00a0print ("))
    assert_allclose(values(made, 30, 20), [[30, 20]], atol=1e-12)
    assert {each.kind for each in made.diagnostics} == {
        "no-break-space",
        "tabs",
        "print-statement",
    }


def test_values_are_copies():
    text = INVERSE.replace(
        "  p = kin.Target.P",
        """
  kin.JointValues[0] = 99
  kin.Target.translateRel(1, 1, 1)
  assert kin.JointValues[0] == 0
  p = kin.Target.P
  kin.JointValues.append(3)
  assert len(kin.JointValues) == kin.JointCount == 2
  assert kin.JointsRotational == [True, False]
  kin.CustomData = {"k": 1}
  assert kin.CustomData["k"] == 1
""",
    )
    assert_allclose(values(host(FORWARD, text), 30, 20), [[30, 20]], atol=1e-12)


FAULTS = {
    FORWARD + INVERSE + "return 3": r"s\.py:17: 'return' outside function",
    FORWARD + INVERSE + "# a\x85b \u2028 c\f d\n1 / 0": r"s\.py:18: .*ZeroDivision",
    "def OnForward(kin: return True": r"s\.py:5: .*(never closed|invalid syntax)",
    FORWARD: r"does not define OnInverse",
    FORWARD.replace("OnForward", "Onforward")
    + INVERSE: "does not define OnForward. It defines Onforward",
    FORWARD
    + INVERSE
    + "def OnGetConfigurationCount(): return 1": "cannot do without OnGetCurrentConfiguration and OnSet",
    FORWARD.replace("  return True", "")
    + INVERSE: r"s\.py:6: OnForward returned None \(is a return missing\?\)",
    FORWARD.replace("return True", "return 'yes'")
    + INVERSE: "returned 'yes'; it must return True or False",
    FORWARD.replace("kin.Target = m", "kin.Target = 3")
    + INVERSE: r"s\.py:10: OnForward: Target must be a vcMatrix, not 3 in: kin\.Target = 3",
    FORWARD.replace("kin.Target = m", "pass")
    + INVERSE: "without setting kinobj.Target",
    FORWARD.replace("kin.Target = m", "m.N = m.N * 3; kin.Target = m")
    + INVERSE: r"s\.py:6: .* not unit vectors at right angles; uniform\(\) makes",
    FORWARD.replace("100", "comp.L1")
    + INVERSE: "NameError: name 'comp' is not defined",
    FORWARD.replace("100", "getComponent().L1")
    + INVERSE: "component 'c' has no property 'L1'",
    FORWARD
    + INVERSE
    + "import nothing_of_this_name": r"s\.py:17: the script: ModuleNotFoundError",
    FORWARD
    + INVERSE
    + "import vcRobot": r"no module vcRobot; a script may import vcPy",
    FORWARD
    + INVERSE
    + "x = "
    + "-" * 100_000
    + "1": "s.py: cannot be parsed: its expr",
    FORWARD + INVERSE + "raise BaseException('odd')": r"s\.py:17: .*BaseException: odd",
    FORWARD.replace("(kin)", "()")
    + INVERSE: r"s\.py:6: OnForward: TypeError: .*takes 0",
    FORWARD
    + INVERSE
    + "def OnInitKinObject(kin): kin.createProperty(VC_REAL, 'C').StepValues = 7": "StepValues of property 'C' must be a list, not 7",
    FORWARD + INVERSE + "getSimulation()": "getSimulation is not offered here",
    FORWARD + INVERSE + "x = 1 + getApplication().Time": r"s\.py:17: .*has no numbers",
    FORWARD
    + INVERSE
    + "x = getComponent().findBehaviour('S').Value < 2": "put such a number into a property",
    FORWARD + INVERSE + "OnRebuild = 3": "OnRebuild is not a function",
    FORWARD
    + INVERSE
    + "def OnGetJointName(index): return index": "returned 0; it must return a text",
    FORWARD + INVERSE + "def OnFinalize(): OnFinalize()": "recurses without end",
    FORWARD
    + INVERSE
    + "def OnInitKinObject(kin): kin.Speed = 3": "has no 'Speed'; create the property",
}


@pytest.mark.parametrize("text", FAULTS)
def test_faults_name_the_line(text):
    with pytest.raises(ScriptError, match=FAULTS[text]):
        host(text)


INVERSE_FAULTS = {
    "kin.JointValues = [1]": "JointValues must be 2 numbers, not 1",
    "kin.JointValues = 'ab'": "must be a list of 2 numbers, not 'ab'",
    "kin.JointValues = [1, float('nan')]": r"JointValues\[1\] is nan",
    "kin.JointValues = [1, 'x']": r"JointValues\[1\] must be a number, not 'x'",
    "kin.Solutions = [1]": r"Solutions\[0\] must be a warning and joint values",
    "kin.Solutions = [('bad', [1, 2])]": r"warning of Solutions\[0\]",
    "kin.Solutions = [(4, [1, 2])]": r"warning of Solutions\[0\]",
    "kin.Solutions = [(float('nan'), [1, 2])]": r"warning of Solutions\[0\]",
    "kin.Solutions = [(0, [1, 2, 3])]": r"Solutions\[0\] must be 2 numbers, not 3",
    "kin.moveJointTo(2, 0)": "There is no joint 2; there are 2",
    "pass": "without setting kinobj.Solutions",
    "kin.Nothing": "has no 'Nothing'",
    "forwardKin([1])": "forwardKin takes 2 values, not 1",
}


@pytest.mark.parametrize("line", INVERSE_FAULTS)
def test_faults_of_inverse(line):
    text = f"\ndef OnInverse(kin):\n  {line}\n  return True\n"
    with pytest.raises(ScriptError, match=r"s\.py:1[34]: .*" + INVERSE_FAULTS[line]):
        values(
            host(
                FORWARD,
                text,
                "\ndef OnGetConfigurationCount(): return 1\ndef OnGetCurrentConfiguration(): return 0\ndef OnSetCurrentConfiguration(k): pass\n",
            ),
            1,
            2,
        )


def test_step_values_refuse_others():
    with pytest.raises(
        ScriptError, match="'Elbow' cannot be 'LEFT'; its step values are 'UP', 'DOWN'"
    ):
        host(FORWARD, CONFIGURED.replace("p.Value = words[0]", "p.Value = 'LEFT'"))


COMPONENTS = {
    '{"joints": [{"name": "J1"}]}': "has a joint 'J2', but the joints of its component have none",
    '{"joints": [{"name": "J1"}, {"name": "j2"}]}': "Did you mean 'j2'",
    '{"joints": [{"name": "J1"}, {"name": "J2"}, {"name": "J3"}]}': "not in the script: 'J3'",
    '{"joints": [{"name": "J1", "kind": "turning"}]}': "is not a component: Invalid enum value 'turning'",
    '{"joints": [{"name": "J1", "min": 3, "max": 2}]}': "min 3 above max 2",
    '{"joint": []}': "unknown field `joint`",
    "{": "is not JSON",
    '{"properties": {"K": 1, "L": [1, 2]}}': "length 3, got 2 - at `$.properties['L']`",
    '{"joints": [{"name": "J1"}, {"name": "J1"}]}': "has two joints named 'J1'",
    '{"properties": {"L": {"value": 3, "step_values": [1, 2]}}}': "value 3; its step_values are 1, 2",
    "[" * 100_000: "is not JSON",
}


@pytest.mark.parametrize("text", COMPONENTS)
def test_faults_of_components(text, tmp_path):
    (tmp_path / "c.json").write_text(text)
    (tmp_path / "s.py").write_text(HEAD + FORWARD + INVERSE)
    with pytest.raises(ScriptError, match=re.escape(COMPONENTS[text])):
        arm.scripted(tmp_path / "s.py", component=tmp_path / "c.json")


def test_faults_of_paths(tmp_path):
    with pytest.raises(ScriptError, match="cannot be read: No such file"):
        arm.scripted(tmp_path / "s.py", component={"joints": JOINTS})
    with pytest.raises(ScriptError, match="cannot be read: No such file"):
        arm.scripted(tmp_path / "s.py", component=tmp_path / "c.json")


SCHEMA = (
    Path(__file__).resolve().parents[2] / "docs" / "schema" / "component.schema.json"
)


def test_the_published_schema_is_that_of_the_code(request):
    schema = msgspec.json.format(json.dumps(msgspec.json.schema(ComponentData)))
    if request.config.getoption("--update"):
        SCHEMA.write_text(schema + "\n", encoding="utf-8")
    assert SCHEMA.read_text("utf-8") == schema + "\n"
    check = jsonschema.Draft202012Validator(json.loads(schema)).validate
    for path in EXAMPLES.glob("*.json"):
        check(json.loads(path.read_text()))


def test_components_are_written_as_they_are_read():
    data, _ = component_of(
        {
            "name": "c",
            "joints": JOINTS,
            "properties": {"L": [1, 2, 3], "s": "x", "k": 2},
        }
    )
    again, _ = component_of(json.loads(data.text()))
    assert isinstance(again, ComponentData)
    assert again == data


def test_lines_are_counted_as_python_does():
    text = (
        HEAD + FORWARD + INVERSE + "note = 'a\x0cb\u2028c'\nraise ValueError(note[1])\n"
    )
    with pytest.raises(ScriptError, match=r"s\.py:18: the script: ValueError"):
        host("", head=text.replace("\n", "\r\n"))


def test_components_of_other_kinds(tmp_path):
    (tmp_path / "c.json").write_text("\ufeff" + json.dumps({"name": "c"}))
    assert component_of(tmp_path / "c.json")[0].name == "c"
    for given in (None, 3, []):
        with pytest.raises(ScriptError, match="a mapping or the path of a JSON file"):
            component_of(given)
    with pytest.raises(ScriptError, match="Property 'L' of component '' is nan"):
        component_of({"properties": {"L": math.nan}})


def test_print_is_kept_out_of_results(capsys):
    host(
        "from __future__ import division\n",
        HEAD,
        "print('made')\n",
        FORWARD,
        INVERSE,
        head="",
    )
    assert capsys.readouterr() == ("", "made\n")


def test_what_an_application_does_is_left_out():
    calls = """
component = getComponent()
def OnFinalize():
  application = getApplication()
  application.messageBox('hello', 'title')
  for each in application.Components: each.update()
  servo = component.findBehaviour('Servo')
  servo.Enabled = True
  if servo: servo.move(3, speed=2)
  made = component.createProperty(VC_REAL, 'Lift', VC_PROPERTY_LIMIT)
  made.Value = made.Value + 4.0
  component.createProperty(VC_REAL, 'Reach').Value
  component.update()
"""
    forward = FORWARD.replace("translateRel(100, 0", "translateRel(component.Reach, 0")
    forward = forward.replace(
        "kin.JointValues[1])", "kin.JointValues[1] + component.Lift)"
    )
    made = host(calls, forward, INVERSE, properties={"Reach": 30.0})
    assert_allclose(made.forward([0.0, 5.0]).position, [0.03, 0, 0.009])


def test_a_script_that_has_no_pose_anywhere_is_nan():
    made = host("def OnForward(kin): return False\n", INVERSE)
    assert np.isnan(made.forward([0.0, 0.0]).position).all()
    assert made.configurations == (("only",),)


def test_solvers_ask_for_the_calculated_target():
    event = """
def OnCalculateTarget(full, base, tool, inverted):
  m = vcMatrix.new(base * full * tool)
  p = m.P
  m.P = vcVector.new(p.X, p.Y, min(p.Z, 20.0))
  return m
"""
    made = host(FORWARD, INVERSE, event)
    (found,) = made.solutions(arm.Pose.translation(0.1, 0, 0.045))
    assert_allclose(found.values, [0.0, 20.0])
    (kept,) = made.solutions(arm.Pose.translation(0.1, 0, 0.005))
    assert_allclose(kept.values, [0.0, 5.0])
    wrong = "def OnCalculateTarget(f, b, t, i): return f.P\n"
    with pytest.raises(ScriptError, match="OnCalculateTarget returned"):
        host(FORWARD, INVERSE, wrong).solutions(arm.Pose.translation(0.1, 0, 0))
