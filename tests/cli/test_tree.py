"""`armillary tree`: what the cell prints of a state, in part or as a whole."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import armillary as arm

PART = arm.Manipulator(name="part", links=[arm.Link(name="block")])


def test_home(run, file: str, cell: arm.Cell):
    result = run("tree", file)
    assert (result.code, result.err) == (0, "")
    assert result.out == cell.tree() + "\n"


def test_a_joint_vector(run, file: str, cell: arm.Cell):
    result = run("tree", file, "--q", "1,90,-45", "--degrees")
    state = cell.home.replace(q=[1.0, np.pi / 2, -np.pi / 4])
    assert result.out == cell.tree(state) + "\n"


def test_a_state_in_a_file(run, file: str, cell: arm.Cell):
    larger = cell.add(PART, bolted=False)
    arm.save(larger, "larger.cell.json")
    state = larger.home.place("part", arm.Pose.translation(1, 0, 0)).grip(
        "part", by="tip"
    )
    Path("state.json").write_text(state.to_json())
    result = run("tree", "larger.cell.json", "--state", "state.json")
    assert result.out == larger.tree(state) + "\n"
    moved = run("tree", "larger.cell.json", "--state", "state.json", "--q", "1.5,0.2,0")
    assert moved.out == larger.tree(state.replace(q=[1.5, 0.2, 0.0])) + "\n"
    held = run(
        "fk", "larger.cell.json", "--frame", "block", "--relative-to", "tip",
        *("--state", "state.json", "--q", "0,1,0"),
    )  # fmt: skip
    found = np.array([float(word) for word in held.out.split()]).reshape(4, 4)
    assert np.allclose(found, larger.pose("block", state, relative_to="tip"))


@pytest.mark.parametrize("depth", range(7))
def test_depth(run, file: str, cell: arm.Cell, depth: int):
    whole = run("tree", file).out.splitlines()
    result = run("tree", file, "--depth", str(depth))
    *lines, last = result.out.splitlines()
    kept = [line.split("  ")[0].strip() for line in lines]
    if depth < 6:
        hidden = len(whole) - len(lines)
        assert last.startswith(f"... and {hidden} frame")
        assert last.endswith(f" below level {depth}")
    else:
        assert [*lines, last] == whole
    assert "world" in kept[1]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "state.json: This JSON is not a state"),
        ('{"q":[1,2]}', "state.json: The state has 2 joint positions"),
        ('{"q":[1,2,1e999]}', "state.json: "),
        ('{"q":[0,0,0],"placements":[{"manipulator":"x"}]}', "'x'"),
        ('{"q":[0,0,0],"placements":[{"manipulator":"gantry","on":"y"}]}', "'y'"),
        ('{"q":[0,0,0],"placements":[{"manipulator":"hand","on":"cart"}]}', "fixed"),
        (
            '{"q":[0,0,0],"placements":[{"manipulator":"gantry","on":"palm"}]}',
            "'gantry' is attached to itself",
        ),
        (
            '{"q":[0,0,0],"placements":[{"manipulator":"hand","on":"rail"},'
            '{"manipulator":"hand","on":"cart"}]}',
            "'hand' is twice",
        ),
    ],
)
def test_a_wrong_state_is_reported(run, file: str, text: str, why: str):
    Path("state.json").write_text(text)
    result = run("tree", file, "--state", "state.json")
    assert result.code == 2
    assert result.err.startswith("armillary: ")
    assert why in result.err


@pytest.mark.parametrize(
    "options",
    [
        ("--q", "1,2"),
        ("--state", "nowhere.json"),
        ("--depth", "-1"),
        ("--depth", "x"),
    ],
)
def test_wrong_options_are_reported(run, file: str, options: tuple[str, str]):
    assert run("tree", file, *options).code == 2


def test_vectors_of_a_file_need_the_cell_as_built(run, file: str, cell: arm.Cell):
    Path("q.csv").write_text("1,2,3\n")
    Path("state.json").write_text(cell.home.to_json())
    command = ("fk", file, "--frame", "tip", "--q-file", "q.csv")
    result = run(*command, "--state", "state.json")
    assert result.code == 2
    assert "--q-file takes the cell as it was built" in result.err


@pytest.mark.parametrize("ending", ["urdf", "kinematic.json", "wc.xml", "actin.xml"])
def test_every_format_serves_every_verb(run, tmp_path, monkeypatch, ending: str):
    monkeypatch.chdir(tmp_path)
    links = [arm.Link(name="base")]
    for k in range(3):
        axis = ((0, 0, 1), (0, 1, 0), (1, 0, 0))[k]
        joint = arm.joints.Revolute(axis=axis)
        limits = arm.Limits(lower=-1.0, upper=1.0, velocity=1.0, effort=1.0)
        links.append(
            arm.Link(name=f"l{k}", parent=links[-1].name, joint=joint, limits=limits)
        )
    robot = arm.Cell(manipulators=[arm.Manipulator(name="robot", links=links)])
    arm.save(robot, f"robot.{ending}")
    for verb in ("info", "tree", "check"):
        result = run(verb, f"robot.{ending}")
        assert result.code == 0, result.out + result.err
    result = run("convert", f"robot.{ending}", "native.cell.json")
    assert result.code == 0, result.err
    assert "l2" in run("tree", "native.cell.json").out


def test_json_has_the_pose_of_every_frame(run, file: str, cell: arm.Cell):
    result = run("tree", file, "--q", "1,2,3", "--json")
    found = {each["frame"]: each for each in json.loads(result.out)["frames"]}
    state = cell.home.replace(q=[1.0, 2.0, 3.0])
    assert {*found} == {*cell.frame_names}
    for name, each in found.items():
        assert np.allclose(each["pose"], cell.pose(name, state), atol=1e-15)
        parent = None if name == "world" else cell.parent(name, state)
        assert each["parent"] == parent


def test_json_of_the_first_levels(run, file: str):
    result = run("tree", file, "--depth", "1", "--json")
    names = [each["frame"] for each in json.loads(result.out)["frames"]]
    assert names == ["world", "gantry/rail"]
