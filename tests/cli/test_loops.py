"""Closed loops on the command line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import armillary as arm
from four_bar import four_bar


@pytest.fixture
def bar(tmp_path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)
    arm.save(arm.Cell(name="bar", manipulators=[four_bar()]), "bar.cell.json")
    return "bar.cell.json"


def test_info_marks_passive_joints(run, bar: str, golden: Callable[[str, str], None]):
    result = run("info", bar)
    assert result.code == 0, result.err
    golden("info_loops.txt", result.out)


def test_tree_marks_passive_joints(run, bar: str):
    lines = run("tree", bar, "--q", "0.7").out.splitlines()
    cell = arm.load(bar)
    state = cell.home.replace(q=[0.7])
    for name, position in zip(cell.passive_names, state.passive, strict=True):
        (line,) = (each for each in lines if f"{name} (passive)" in each)
        assert f"{position:.4f}" in line
    assert sum("(passive)" in line for line in lines) == 2


def test_fk_takes_independent_joints(run, bar: str):
    cell = arm.load(bar)
    for frame in ("tip", "end"):
        result = run("fk", bar, "--frame", frame, "--q", "40", "--degrees")
        assert result.code == 0, result.err
        found = np.array([row.split() for row in result.out.splitlines()], np.float64)
        np.testing.assert_allclose(found, cell.fk(frame)([np.radians(40)]), atol=1e-11)
    result = run("fk", bar, "--frame", "tip", "--q", "1,2,3")
    assert result.code == 2
    assert "--q has 3 numbers; cell 'bar' has 1 joints: crank" in result.err


def test_states_in_files_keep_their_branch(run, bar: str, tmp_path):
    cell = arm.load(bar)
    for state in cell.branches([0.7]).values():
        (tmp_path / "state.json").write_text(state.to_json())
        result = run("fk", bar, "--frame", "tip", "--state", "state.json")
        found = np.array([row.split() for row in result.out.splitlines()], np.float64)
        np.testing.assert_allclose(found, cell.pose("tip", state), atol=1e-11)


def test_check_finds_loops_that_cannot_close(run, bar: str, tmp_path):
    path = tmp_path / bar
    text = path.read_text()
    assert run("check", bar).out == f"{bar}: 0 errors, 0 warnings\n"
    path.write_text(
        text.replace('"position": [0.3, 0.0, 0.0]', '"position": [3, 0, 0]')
    )
    result = run("check", bar)
    assert result.code == 1
    assert "error[bad-loop]: Manipulator 'bar': The loops cannot close" in result.out


def test_convert_says_which_loops_are_lost(run, bar: str):
    result = run("convert", bar, "bar.urdf")
    assert result.code == 0
    assert "warning[open-loop]: manipulator 'bar' is written with open" in result.err
