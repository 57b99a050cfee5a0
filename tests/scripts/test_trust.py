"""Scripts in files: they never run by themselves."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose

import armillary as arm
from armillary.cli.main import main
from armillary.errors import ScriptError, UnknownName
from armillary.limits import Limit
from armillary.scripts import isolation, trust
from armillary.scripts.mechanism import Script
from armillary.scripts.source import digest
from published_scripts import EXAMPLES, component

Q = [0.3, -0.4, 0.01, 0.2]


@pytest.fixture(autouse=True)
def own_store(tmp_path, monkeypatch):
    """A store of approvals and memories of consent of this test's own."""
    monkeypatch.delenv("ARMILLARY_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    monkeypatch.setattr(trust, "_given", set())
    monkeypatch.setattr(trust, "_isolated", set())


def stranger(folder, *, extra: str = ""):
    """A cell file with a script that nobody has approved."""
    text = (EXAMPLES / "scara.py").read_text() + f"\n# {folder}\n{extra}\n"
    script = Script(file="a.py", source=text, component=component("scara").read_text())
    names = ("J1", "J2", "J3", "J4")
    known = arm.scripted(EXAMPLES / "scara.py", component=component("scara"))
    links = [
        link if link.name != "flange" else link.replace(joint=script, inputs=names)
        for link in known.links
    ]
    path = folder / "stranger.cell.json"
    arm.save(arm.Cell(manipulators=[known.replace(links=links)]), path, lossless=True)
    return path


def test_loading_runs_nothing(tmp_path):
    mark = tmp_path / "mark"
    path = stranger(tmp_path, extra=f"open({str(mark)!r}, 'w')")
    cell = arm.load(path)
    assert "flange" in cell.tree()
    assert main(["info", str(path)]) == 0
    assert main(["check", str(path)]) == 0
    for ask in (
        lambda: cell.fk("flange")(Q),
        lambda: cell.ik("flange")(np.eye(4)),
        lambda: cell.poses(cell.home),
    ):
        with pytest.raises(ScriptError, match="armillary trust approve"):
            ask()
    assert not mark.exists()


def test_a_cell_of_a_script_is_saved_and_equal(tmp_path):
    robot = arm.scripted(EXAMPLES / "scara.py", component=component("scara"))
    cell = arm.Cell(manipulators=[robot])
    arm.save(cell, tmp_path / "a.cell.json", lossless=True)
    again = arm.load(tmp_path / "a.cell.json")
    assert again == cell
    assert_allclose(again.fk("flange")(Q), cell.fk("flange")(Q))


def test_scripts_with_other_line_ends(tmp_path, capsys):
    path = tmp_path / "b.py"
    path.write_bytes((EXAMPLES / "scara.py").read_bytes().replace(b"\n", b"\r\n"))
    arm.scripted(path, component=component("scara"))
    assert main(["trust", "approve", str(path)]) == 0
    source = path.read_bytes().decode()
    assert capsys.readouterr().out.split()[-1] == digest(source)


def test_a_script_is_shown_as_it_is_read(tmp_path, capsys):
    path = tmp_path / "c.py"
    path.write_text("def f():\n\u00a0\u00a0pass\n\tx = '\u202e'\n", "utf-8")
    main(["trust", "show", str(path)])
    lines = capsys.readouterr().out.splitlines()[-3:]
    assert lines == ["    def f():", "      pass", "            x = '\\u202e'"]


def test_the_command_line_says_how_scripts_are_read(tmp_path, capsys):
    path = tmp_path / "c.py"
    path.write_bytes((EXAMPLES / "scara.py").read_bytes())
    assert main(["info", str(path)]) == 2
    assert "with --component FILE" in capsys.readouterr().err
    with pytest.raises(arm.errors.FormatError, match=r"arm\.scripted\(path"):
        arm.load(path)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("option", [(), ("--isolated-scripts",)])
def test_the_first_kernel_of_a_script_is_measured(tmp_path, option, monkeypatch):
    path = stranger(tmp_path, extra="# measured")
    monkeypatch.setattr("armillary.cli.bench.BATCH", 10)
    monkeypatch.setattr("armillary.cli.bench.DURATION", 0.001)
    command = ["bench", str(path), "--frame", "flange", *option]
    assert main(command) == (0 if option else 2)
    main(["trust", "approve", str(path)])
    assert main(command) == 0


def test_approval_is_of_the_text(tmp_path, capsys):
    path = stranger(tmp_path)
    assert main(["trust", "show", str(path)]) == 1
    assert "not approved" in capsys.readouterr().out
    assert main(["trust", "approve", str(path)]) == 0
    assert main(["trust", "show", str(path)]) == 0
    assert arm.load(path).fk("flange")(Q).shape == (4, 4)
    changed = stranger(tmp_path, extra="# one more line")
    with pytest.raises(ScriptError, match="do not run by themselves"):
        arm.load(changed).fk("flange")(Q)
    capsys.readouterr()
    assert main(["trust", "show"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_revoking(tmp_path):
    path = stranger(tmp_path, extra="# revoked")
    source = arm.load(path).manipulators[0].link("flange").joint.source
    trust.approve(source, "a.py")
    assert main(["trust", "revoke", str(path)]) == 0
    with pytest.raises(ScriptError):
        arm.load(path).fk("flange")(Q)


def test_others_cannot_write_the_store(tmp_path):
    path = stranger(tmp_path)
    main(["trust", "approve", str(path)])
    store = tmp_path / "configuration" / "armillary" / "trusted-scripts"
    store.chmod(0o666)
    with pytest.raises(arm.errors.PluginError, match="changed by other users"):
        arm.load(path).fk("flange")(Q)


def test_approvals_at_the_same_time_are_all_kept():
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda k: trust.approve(f"# {k}", f"{k}.py"), range(40)))
    assert set(trust.approved()) == keys
    assert trust.approve("# 1", "again.py") in keys
    assert len(trust.approved()) == 40
    assert all(map(trust.revoke, keys))
    assert trust.approved() == {}


def test_without_configuration_nothing_is_approved(tmp_path, monkeypatch):
    path = stranger(tmp_path)
    main(["trust", "approve", str(path)])
    monkeypatch.setenv("ARMILLARY_CONFIG", "off")
    with pytest.raises(ScriptError):
        arm.load(path).fk("flange")(Q)
    assert main(["trust", "approve", str(path)]) == 2


def test_isolated_scripts_answer_the_same(tmp_path):
    path = stranger(tmp_path)
    cell = arm.load(path, scripts="isolated")
    plain = arm.Cell(
        manipulators=[arm.scripted(EXAMPLES / "scara.py", component=component("scara"))]
    )
    X = plain.fk("flange")(Q)
    assert np.isnan(cell.fk("flange")([np.nan, *Q[1:]])).any()
    assert_allclose(cell.fk("flange")(Q), X, atol=1e-12)
    assert_allclose(cell.jacobian("flange")(Q), plain.jacobian("flange")(Q), atol=1e-8)
    ours, theirs = (each.ik("flange").all(X) for each in (cell, plain))
    assert_allclose(ours.q, theirs.q, atol=1e-12)
    assert ours.branches == theirs.branches
    joint = cell.manipulators[0].link("flange").joint
    assert any("process of its own" in each.message for each in joint.diagnostics)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("open('elsewhere', 'w')", "Operation not permitted: 'elsewhere'"),
        ("import os; os.fork()", "Operation not permitted"),
        ("import os; os.remove('a')", "Operation not permitted: 'a'"),
        ("import os; os.kill(os.getppid(), 9)", "Operation not permitted"),
        ("raise ValueError('\\ud800' * 9_000_000)", "ValueError: [?]"),
        ("raise BaseException('odd')", "BaseException: odd"),
        ("import socket; socket.socket()", "no module socket|not permitted"),
        ("x = ' ' * (4 << 30)", "MemoryError"),
        ("eval('__import__(\"os\").listdir()')", "Operation not permitted"),
    ],
)
def test_isolated_scripts_are_contained(extra, message, tmp_path):
    cell = arm.load(stranger(tmp_path, extra=extra), scripts="isolated")
    with pytest.raises(ScriptError, match=f"a.py:[0-9]+: .*{message}"):
        cell.fk("flange")(Q)


def test_scripts_run_isolated_only_where_the_kernel_confines_them(
    tmp_path, monkeypatch
):
    code = "import platform; platform.machine = str\n" + isolation.CODE
    command = (isolation.COMMAND[0], code, *isolation.COMMAND[2:])
    monkeypatch.setattr(isolation, "COMMAND", command)
    mark = tmp_path / "mark"
    path = stranger(tmp_path, extra=f"open({str(mark)!r}, 'w')")
    cell = arm.load(path, scripts="isolated")
    with pytest.raises(ScriptError, match="do not run isolated here"):
        cell.fk("flange")(Q)
    assert not mark.exists()


def test_isolated_scripts_end_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr(isolation, "SCRIPT_START", Limit(2, "it takes {} s", ""))
    cell = arm.load(stranger(tmp_path, extra="while True: pass"), scripts="isolated")
    with pytest.raises(ScriptError, match="took more than 2 s"):
        cell.fk("flange")(Q)


def test_choices_of_scripts(tmp_path):
    with pytest.raises(UnknownName, match="choice of scripts"):
        arm.load(stranger(tmp_path), scripts="all")


def test_components_of_files_are_checked(tmp_path):
    path = stranger(tmp_path)
    data = json.loads(path.read_text())
    data["manipulators"][0]["links"][-1]["joint"]["component"] = "{"
    path.write_text(json.dumps(data))
    with pytest.raises(arm.errors.FormatError, match="component of the script"):
        arm.load(path)


def test_names_of_scripts_cannot_draw_on_a_terminal(tmp_path):
    path = stranger(tmp_path)
    data = json.loads(path.read_text())
    data["manipulators"][0]["links"][-1]["joint"]["file"] = "a\x1b[2J.py"
    path.write_text(json.dumps(data))
    with pytest.raises(arm.errors.FormatError, match="one line"):
        arm.load(path)
    loud = "raise ValueError('\\x1b[2J')"
    cell = arm.load(stranger(tmp_path, extra=loud), scripts="isolated")
    with pytest.raises(ScriptError) as caught:
        cell.fk("flange")(Q)
    assert str(caught.value).isprintable()
