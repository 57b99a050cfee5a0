"""xacro: macros, packages and arguments; and programs that want more than that."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path

import pytest

import armillary as arm
from armillary import confined_process
from armillary.errors import FormatError, ModelError
from armillary.formats.diagnostic import Budget
from armillary.formats.paths import Roots
from armillary.formats.registry import read
from armillary.limits import Limit

expand = importlib.import_module("armillary.formats.xacro.expand")

HEAD = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
ROBOT = f"""{HEAD}
  <xacro:arg name="count" default="2"/>
  <xacro:include filename="$(find parts)/urdf/segment.xacro"/>
  <link name="l0"/>
  <xacro:segment k="1"/>
  <xacro:if value="${{int('$(arg count)') > 1}}"><xacro:segment k="2"/></xacro:if>
</robot>"""
SEGMENT = f"""{HEAD}
  <xacro:include filename="names.xacro"/>
  <xacro:macro name="segment" params="k">
    <link name="l${{k}}"/>
    <joint name="${{prefix}}${{k}}" type="revolute">
      <parent link="l${{k - 1}}"/><child link="l${{k}}"/>
      <origin xyz="0 0 ${{0.5 * k}}"/><axis xyz="0 0 1"/>
      <limit lower="${{-pi}}" upper="${{radians(90)}}" effort="1" velocity="1"/>
    </joint>
  </xacro:macro>
</robot>"""
NAMES = f'{HEAD}<xacro:property name="prefix" value="joint_"/></robot>'


@pytest.fixture
def robot(tmp_path: Path) -> Path:
    """A robot whose macros are in another package."""
    parts = tmp_path / "elsewhere" / "parts"
    (parts / "urdf").mkdir(parents=True)
    (parts / "package.xml").write_text("<package><name>parts</name></package>")
    (parts / "urdf" / "segment.xacro").write_text(SEGMENT)
    (parts / "urdf" / "names.xacro").write_text(NAMES)
    path = tmp_path / "robot" / "robot.urdf.xacro"
    path.parent.mkdir()
    path.write_text(ROBOT)
    return path


def packages(robot: Path) -> dict[str, Path]:
    return {"parts": robot.parents[1] / "elsewhere" / "parts"}


def faults(folder: Path, body: str, **options: object) -> str:
    path = folder / "x.xacro"
    path.write_text(f'{HEAD}<link name="a"/>{body}</robot>')
    with pytest.raises(FormatError) as caught:
        arm.load(path, **options)  # type: ignore[arg-type]
    return str(caught.value)


def test_macros_includes_and_expressions(robot: Path):
    cell = arm.load(robot, packages=packages(robot))
    assert cell.joint_names == ("joint_1", "joint_2")
    assert cell.fk("l2")([0.0, 0.0])[2, 3] == pytest.approx(1.5)
    assert cell.limits[1] == pytest.approx([1.5707963267948966] * 2)


def test_arguments(robot: Path):
    cell = arm.load(robot, packages=packages(robot), arguments={"count": "1"})
    assert cell.joint_names == ("joint_1",)


def test_a_missing_argument_is_asked_for(tmp_path: Path, capsys):
    found = faults(tmp_path, '<xacro:if value="$(arg size)"/>')
    assert "Give its value: arguments={'size': ...}." in found
    from armillary.cli.main import main

    assert main(["info", str(tmp_path / "x.xacro")]) != 0
    assert "Give its value: --argument size=VALUE." in capsys.readouterr().err


def test_a_package_is_found_as_in_references(robot: Path, monkeypatch):
    with pytest.raises(FormatError, match=r"package 'parts' is not known.*packages="):
        arm.load(robot)
    folder = robot.parents[1] / "elsewhere"
    assert len(arm.load(robot, folders=[folder]).joint_names) == 2
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(folder))
    assert len(arm.load(robot).joint_names) == 2


def test_only_the_name_or_the_caller_runs_it(robot: Path, tmp_path: Path):
    plain = tmp_path / "robot.urdf"
    plain.write_text(ROBOT)
    for each in (plain, tmp_path / "robot.xml"):
        each.write_text(ROBOT)
        try:
            cell, _ = read(each, packages=packages(robot))
        except FormatError as error:
            assert "xacro" in str(error)
        else:
            assert not cell.manipulators[0].joint_names
    cell, _ = read(plain, packages=packages(robot), format="xacro")
    assert cell.manipulators[0].joint_names == ("joint_1", "joint_2")


def test_arguments_are_for_xacro(tmp_path: Path):
    (tmp_path / "r.urdf").write_text('<robot name="r"><link name="a"/></robot>')
    with pytest.raises(ModelError, match="arguments= is for xacro files"):
        arm.load(tmp_path / "r.urdf", arguments={"a": "1"})


def test_diagnostics_name_the_file(tmp_path: Path):
    found = faults(
        tmp_path,
        '<joint name="j" type="revolut"><parent link="a"/><child link="a"/></joint>',
    )
    assert "x.xacro (expanded):" in found
    assert "error[unknown-joint-type]" in found


def test_the_library_is_named(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert "pip install armillary[xacro]" in faults(tmp_path, "")


def test_warnings_of_xacro_are_reported(tmp_path: Path):
    path = tmp_path / "x.xacro"
    body = '<link name="a"/></robot>'
    path.write_text(f'{HEAD}<xacro:include filename="no*.xacro"/>{body}')
    _, report = read(path)
    assert "warning[xacro-warning]" in str(report.diagnostics[0])
    path.write_text(f'{HEAD}<xacro:include filename="/etc/*.conf"/>{body}')
    _, report = read(path)
    assert any(
        "'/etc' may not be read, and was left out" in str(found)
        for found in report.diagnostics
    )


HOSTILE = {
    "environment": ('<link name="$(env HOME)"/>', "'HOME' is not set"),
    "a file by YAML": (
        "<link name=\"${xacro.load_yaml('/etc/hostname')}\"/>",
        "'/etc/hostname' when evaluating expression",
    ),
    "a file by include": (
        '<xacro:include filename="/etc/passwd"/>',
        "outside of the folders that may be read: '/etc/passwd'. If it is trusted, "
        "allow its folder: folders=['/etc'].",
    ),
    "a file by a link": (
        '<xacro:include filename="link.xacro"/>',
        "outside of the folders that may be read",
    ),
    "recursion": (
        '<xacro:macro name="m"><xacro:m/></xacro:macro><xacro:m/>',
        "recursion depth exceeded",
    ),
    "memory": ('<link name="${len(list(range(10**10)))}"/>', "MemoryError"),
    "time": (
        '<link name="${len([1 for a in range(10**9) for b in range(10**9)])}"/>',
        "it takes more than 2 s, or 1024 MiB",
    ),
    "no name": ('<link name="${nope}"/>', "name 'nope' is not defined"),
    "no end": ('<link name="${"/>', "invalid expression: ${"),
    "no argument": (
        '<link name="$(arg nope)"/>',
        "Undefined substitution argument nope",
    ),
    "no file": ('<xacro:include filename="nope.xacro"/>', "nope.xacro"),
    "no XML": ("<link", "not well-formed"),
    "in a macro": (
        '<xacro:macro name="m"><link name="${nope}"/></xacro:macro><xacro:m/>',
        "in macro 'm'",
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", HOSTILE)
def test_what_expressions_may_not_read_or_take(tmp_path: Path, name: str, monkeypatch):
    if name == "time":
        monkeypatch.setattr(expand, "XACRO_SECONDS", Limit(2, "it takes {} s", ""))
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "link.xacro").symlink_to(tmp_path / "secret")
    body, why = HOSTILE[name]
    found = faults(tmp_path / "model", body)
    assert "x.xacro: error[xacro-error]" in found
    assert why in found
    assert found.count(why) == 1
    assert sorted(os.listdir(tmp_path)) == ["model", "secret"]
    assert (tmp_path / "model" / "x.xacro").read_text().startswith(HEAD)


# Expressions that reach the module `os`, whose names are keys here.
REACHED = (
    "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == "
    "'_wrap_close'][0].__init__.__globals__"
)
ATTACKS = {
    "a program": "['system']('echo x > mark')",
    "a process": "['fork']()",
    "a file written": "['open']('mark', 65, 511)",
    "a file read": "['read'](({os})['open']('../secret', 0), 9)",
    "a file removed": "['unlink']('../secret')",
    "a folder listed": "['listdir']('..')",
    "a signal": "['kill'](({os})['getppid'](), 9)",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_programs_that_reach_the_system_can_do_nothing(tmp_path: Path, name: str):
    (tmp_path / "secret").write_text("hidden")
    (tmp_path / "model").mkdir()
    attack = f"(lambda: {REACHED}{ATTACKS[name].format(os=REACHED)})()"
    path = tmp_path / "model" / "x.xacro"
    path.write_text(f"""{HEAD}<link name="a ${{{attack}}}"/></robot>""")
    try:
        found = " ".join(arm.load(path).frame_names)
    except FormatError as error:
        found = str(error)
        assert "Operation not permitted" in found
    else:
        assert name == "a program"
        assert "a 32512" in found  # the status where there is no process
    assert "hidden" not in found
    assert sorted(os.listdir(tmp_path)) == ["model", "secret"]
    assert os.listdir(tmp_path / "model") == ["x.xacro"]
    assert (tmp_path / "secret").read_text() == "hidden"


def test_elsewhere_an_audit_hook_refuses_what_the_kernel_does_here(
    robot: Path, tmp_path: Path, monkeypatch
):
    elsewhere = tmp_path / "confined_process.py"
    text = Path(confined_process.__file__).read_text("utf-8")
    elsewhere.write_text(text + "\n_MACHINES = {}\n", "utf-8")
    monkeypatch.setattr(confined_process, "__file__", str(elsewhere))
    assert len(arm.load(robot, packages=packages(robot)).joint_names) == 2
    attack = f"(lambda: {REACHED}['system']('echo x > mark'))()"
    assert "may not do this: os.system" in faults(tmp_path, f'<a b="${{{attack}}}"/>')
    assert not (tmp_path / "mark").exists()


def test_patterns_match_as_those_of_the_shell(tmp_path: Path):
    (tmp_path / "x.d" / "y").mkdir(parents=True)
    for name in ("x.d/1.xacro", "x.d/2.xacro", "x.d/.3.xacro", "x.d/y/4.xacro"):
        link = name[-7]
        (tmp_path / name).write_text(f'{HEAD}<link name="l{link}"/></robot>')
    path = tmp_path / "a.xacro"
    for pattern, links in ("x.?/*.xacro", "12"), ("*/y/[0-9].xacro", "4"):
        path.write_text(f'{HEAD}<xacro:include filename="{pattern}"/></robot>')
        try:
            found = str(arm.load(path).frame_names)
        except FormatError as error:  # several roots
            found = str(error)
        assert [k for k in "1234" if f"l{k}" in found] == list(links)


def test_the_command_line(robot: Path, capsys):
    from armillary.cli.main import main

    package = f"parts={packages(robot)['parts']}"
    code = main(["info", str(robot), "--package", package, "--argument", "count:=1"])
    assert code == 0
    out = capsys.readouterr().out
    assert "joint_1" in out
    assert "joint_2" not in out


def test_it_runs_without_the_current_folder_on_the_path(tmp_path: Path, monkeypatch):
    """A file named as a module beside the robot is not imported."""
    (tmp_path / "yaml.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    path = tmp_path / "x.xacro"
    path.write_text(f'{HEAD}<link name="a"/></robot>')
    assert arm.load(path).frame_names
    assert "yaml" not in sys.modules or sys.modules["yaml"].__file__ != "yaml.py"


LINES = {
    "no text": b'{"urdf": "\xff"}',
    "too deep": b'{"x": ' + 5_000 * b"[",
    "no path": b'{"match": "."}',
    "a long path": b'{"match": "/' + 300_000 * b"a/" + b'"}',
    "a long file": b'{"read": "/' + 300_000 * b"a/" + b'"}',
}


@pytest.mark.parametrize("name", LINES)
def test_lines_that_a_program_makes_up_are_faults_of_the_file(
    tmp_path: Path, monkeypatch, name: str
):
    counted: list[str] = []
    realpath = os.path.realpath
    monkeypatch.setattr(
        confined_process.ConfinedProcess, "ask", lambda *_, **__: LINES[name]
    )
    monkeypatch.setattr(
        os.path, "realpath", lambda path: counted.append(str(path)) or realpath(path)
    )
    assert "xacro-error" in faults(tmp_path, "")
    assert all(len(path) < 5_000 for path in counted)


def test_what_is_elsewhere_is_not_said(tmp_path: Path):
    files = expand._Files(str(tmp_path / "x.xacro"), str(tmp_path), Roots(), Budget())
    (tmp_path / "there").touch()
    assert files.matches(str(tmp_path / "there"))["result"]
    assert files.matches("/etc/passwd")["result"] == []
