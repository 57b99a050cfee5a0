"""Components in `component.rsc`: the same robots as from JSON, and hostile ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ScriptError
from armillary.scripts.resource import read_resource

SCRIPTS = Path(__file__).resolve().parents[2] / "examples" / "scripts"
HEAD = "VCMD0028040600000000COMPONENT\n"


def variable(name: str, value) -> str:
    kind, text = "rDouble", str(value)
    if isinstance(value, str):
        kind, text = "rString", f'"{value}"'
    elif isinstance(value, list):
        kind, text = "rVector", " ".join(map(str, [*value, 1]))
    elif isinstance(value, int):
        kind = "rInt"
    return (
        f'Variable "rTVariable<{kind}>"\n{{\nName "{name}"\nValue {text}\n'
        "Settings\n{\nVISIBLE\n}\n}\n"
    )


def expression(name: str, text: str) -> str:
    return (
        f'Variable "rExpressionVariable"\n{{\nName "{name}"\n'
        f'Value\n{{\nExpression "{text}"\n}}\n}}\n'
    )


def joint(name: str, kind: str, low="", high="", *, speed="", inside: str = "") -> str:
    max_speed = variable("MaxSpeed", float(speed)) if speed else ""
    return (
        f'Node "rSimLink"\n{{\nName "{name}"\nDof  "{kind}"\n{{\nName "{name}"\n'
        f"Properties\n{{\n{max_speed}}}\nJointValue 0\n"
        f'MinLimit\n{{\nExpression "{low}"\n}}\n'
        f'MaxLimit\n{{\nExpression "{high}"\n}}\n}}\n{inside}}}\n'
    )


def resource(variables: str, nodes: str, *, order=(), script: str = "") -> bytes:
    mapped = "".join(f'Joint {k} "{name}"\n' for k, name in enumerate(order))
    escaped = script.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    kinematics = (
        f'Functionality "rPythonKinematics"\n{{\nScript "{escaped}"\n}}\n'
        if script
        else ""
    )
    text = (
        f'{HEAD}Node "rSimResource"\n{{\nName "robot"\n'
        f'NodeClass \n{{\nFeature "rGeoFeature"\n{{\nName "{{"\nBlob {{ }}\n}}\n}}\n'
        f'Functionality "rSimRobotController"\n{{\nJointMap\n{{\n{mapped}}}\n}}\n'
        f'{kinematics}VariableSpace ""\n{{\n{variables}}}\n{nodes}}}\n'
    )
    return text.encode()


def scara(script: str = "") -> bytes:
    """The component of the example, which is in JSON, as a resource."""
    given = json.loads((SCRIPTS / "scara.json").read_text())
    variables = "".join(variable(*item) for item in given["properties"].items())
    nodes = ""
    for each in reversed(given["joints"]):
        nodes = joint(
            each["name"],
            each.get("kind", "rotational").capitalize(),
            each.get("min", ""),
            each.get("max", ""),
            inside=nodes,
        )
    order = [each["name"] for each in given["joints"]]
    return resource(variables, nodes, order=order, script=script)


def test_a_resource_is_the_same_robot_as_its_component_in_json(tmp_path: Path):
    script = (SCRIPTS / "scara.py").read_text()
    (tmp_path / "scara.py").write_text(script)
    wanted = arm.scripted(SCRIPTS / "scara.py", component=SCRIPTS / "scara.json")
    path = tmp_path / "component.rsc"
    path.write_bytes(scara(script))
    named = arm.scripted(tmp_path / "scara.py", component=path, name=wanted.name)
    beside = arm.scripted(tmp_path / "scara.py", name=wanted.name)
    inside = arm.scripted(path, name=wanted.name)
    q = [0.5, -0.7, 0.01, 0.3]
    expected = arm.Cell(manipulators=[wanted]).fk("flange")(q)
    for found in (named, beside, inside):
        cell = arm.Cell(manipulators=[found])
        assert cell.joint_names == ("J1", "J2", "J3", "J4")
        np.testing.assert_allclose(cell.fk("flange")(q), expected, atol=1e-15)
        np.testing.assert_array_equal(
            cell.limits, arm.Cell(manipulators=[wanted]).limits
        )


def test_limits_are_expressions_of_properties():
    steps = (
        'Variable "rTStepVariable<rInt>"\n{\nName "Drive::Stroke"\nValue 3000\n'
        "StepList\n{\nStep\n{\nValue 3000\nEnabled 1\n}\nStep\n{\nValue 4000\n}\n}\n}\n"
    )
    variables = (
        steps
        + expression("low", "-(Drive::Stroke - 500) * 2 / 4")
        + variable("HOME", "10;-90;5")
    )
    nodes = joint("B", "Rotational", "-90", "90") + joint(
        "A", "Translational", "low", "low+2000", speed="1500"
    )
    data, script = read_resource(resource(variables, nodes, order="AB"), "x.rsc")
    assert script == ""
    a, b = data.joints
    assert (a.name, a.kind, a.min, a.max) == ("A", "translational", -1250.0, 750.0)
    assert (a.home, a.speed) == (10.0, 1500.0)
    assert (b.name, b.min, b.max, b.home, b.speed) == ("B", -90.0, 90.0, -90.0, None)
    assert data.properties["Drive::Stroke"].step_values == (3000, 4000)
    assert data.properties["low"] == -1250.0


@pytest.mark.parametrize(
    "text",
    [
        "IF(a, 1, 2)",
        "__import__('os')",
        "a",
        "circular",
        "1/0",
        "(" * 500,
        "9" * 2000,
        "1e400",
        "().__class__",
        "2 ** 99999999",
    ],
)
def test_expressions_are_not_run(text: str):
    variables = expression("circular", "round") + expression("round", "circular")
    nodes = joint("A", "Rotational", text, "1")
    with pytest.warns(UserWarning, match="left out"):
        data, _ = read_resource(resource(variables, nodes), "x.rsc")
    assert (data.joints[0].min, data.joints[0].max) == (None, 1.0)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "begins with VCMD"),
        (b"PK\3\4", "begins with VCMD"),
        (HEAD.encode(), "rSimResource"),
        (HEAD.encode() + b"a\n{\n" * 300, "nested"),
        (HEAD.encode() + b"}" * 300, "rSimResource"),
        (HEAD.encode() + b'"' * 301, "rSimResource"),
    ],
)
def test_other_files_are_refused(data: bytes, why: str):
    with pytest.raises(ScriptError, match=why):
        read_resource(data, "x.rsc")


def test_a_script_without_component_or_component_without_script(tmp_path: Path):
    script = tmp_path / "scara.py"
    script.write_text((SCRIPTS / "scara.py").read_text())
    with pytest.raises(ScriptError, match=r"there is no component\.rsc beside it"):
        arm.scripted(script)
    path = tmp_path / "component.rsc"
    path.write_bytes(scara())
    with pytest.raises(ScriptError, match="no Python kinematics"):
        arm.scripted(path)
