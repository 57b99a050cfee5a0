"""`armillary run`: times of a cycle, tests of it, and what cannot be done."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import armillary as arm
from armillary.programs.steps import PTP, Linear, Set, WaitFor
from belt_cell import READY, TOOL, above, belt_cell, place


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    cell = belt_cell()
    arm.save(cell, "cell.cell.json")
    start = cell.home.place("box", place(0.9, -0.2)).place("other", place(0.9, 1.5))
    Path("start.json").write_text(start.to_json())
    down = Linear(to=above(0.9, 0.3, 0.6), frame=TOOL, label="down")
    arm.Program(
        {
            "irb2400": [PTP(to=READY), down, Set(signal="go")],
            "b": [WaitFor(signal="go")],
        }
    ).write("work.json")
    return ["cell.cell.json", "work.json", "--state", "start.json"]


def test_it_prints_when_steps_begin_and_end(run: Any, files: list[str]):
    result = run("run", *files, "--acceleration", "8")
    assert result.code == 0
    assert "irb2400[1]" in result.out
    assert "down" in result.out
    assert "waited for signal 'go'" in result.out
    result = run("run", *files, "--acceleration", "8", "--json")
    found = json.loads(result.out)
    ends = {step["place"]: step["end"] for step in found["steps"]}
    assert found["duration"] == ends["b[0]"] == ends["irb2400[1]"]
    assert found["success"]


def test_a_cycle_becomes_an_animation(run: Any, files: list[str]):
    pytest.importorskip("pxr")
    given = ["run", *files, "--acceleration", "8", "--animation"]
    assert run(*given, "cycle.usda").code == 0
    assert "timeSamples" in Path("cycle.usda").read_text()
    result = run(*given, "cycle.urdf")
    assert result.code == 2
    assert "A rate is for formats that sample a motion" in result.err


def test_tests_of_a_cycle(run: Any, files: list[str]):
    given = ["run", *files, "--acceleration", "8"]
    kept = ["--at-most", "10", "--clearance", "0.0005", "--efforts"]
    result = run(*given, *kept)
    assert result.code == 0, result.out
    assert "least distance" in result.out
    result = run(*given, "--at-most", "0.1")
    assert result.code == 1
    assert "longer than 0.1 s" in result.out
    result = run(*given, "--clearance", "9")
    assert result.code == 1
    assert "come as near as" in result.out


def test_what_cannot_be_done_is_printed(run: Any, files: list[str]):
    arm.Program({"irb2400": [PTP(to=[9.0] * 6)]}).write("work.json")
    result = run("run", *files, "--acceleration", "8")
    assert result.code == 1
    assert "irb2400[0] at 0 s" in result.out
    Path("work.json").write_text("{}")
    result = run("run", *files)
    assert result.code == 2
    assert "work.json" in result.err
    result = run("run", files[0], "none.json")
    assert result.code == 2
    assert "No such file" in result.err


def test_it_writes_a_report(run: Any, files: list[str]):
    result = run("run", *files, "--acceleration", "8", "--report", "out.html")
    assert result.code == 0
    page = Path("out.html").read_text()
    assert "down" in page and "irb2400/joint_1" in page
    assert hashlib.sha256(Path("work.json").read_bytes()).hexdigest() in page
