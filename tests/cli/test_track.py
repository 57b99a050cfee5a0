"""`armillary track`: the steps of a controller, from poses of a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import tasks
from armillary.cli.main import main

CELL = arm.example("ur10_on_rail")
START = np.array([0.0, 0.0, -1.2, 1.5, -1.0, -1.4, 0.3])
STEPS = 60


@pytest.mark.thorough
def test_it_writes_the_motion_of_a_controller(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arm.save(CELL, tmp_path / "cell.cell.json")
    poses = np.tile(CELL.fk("tool0")(START), (STEPS, 1, 1))
    poses[:, 0, 3] += np.linspace(0.0, 0.1, STEPS)
    np.save(tmp_path / "poses.npy", poses)
    given = ["track", str(tmp_path / "cell.cell.json"), "--frame", "tool0"]
    given += ["--targets", str(tmp_path / "poses.npy"), "--rate", "200"]
    given += ["--acceleration", "15", "--avoid", "0.02"]
    given += ["--q", ",".join(map(str, START)), "--out", str(tmp_path / "q.npy")]
    assert main(given) == 0
    state = CELL.home.replace(q=START)
    control = CELL.controller(
        [tasks.Frame("tool0"), tasks.Posture()],
        avoid=CELL.collision(state, margin=0.02),
        acceleration=15.0,
        rate=200.0,
        state=state,
    )
    motion = control.simulate(START, [poses, None], STEPS)
    assert np.array_equal(np.load(tmp_path / "q.npy"), motion.q[1:])
    assert "least distance" in capsys.readouterr().out

    poses[7] = np.nan
    np.save(tmp_path / "poses.npy", poses)
    assert main(given) == 1
    assert "not finite" in capsys.readouterr().out


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What every command begins with: the cell, a frame, poses along x, a start."""
    monkeypatch.chdir(tmp_path)
    arm.save(CELL, "cell.cell.json")
    poses = np.tile(CELL.fk("tool0")(START), (STEPS, 1, 1))
    poses[:, 0, 3] += np.linspace(0.0, 0.05, STEPS)
    np.save("poses.npy", poses)
    q = ",".join(map(str, START))
    given = ["track", "cell.cell.json", "--frame", "tool0", "--targets", "poses.npy"]
    return [*given, "--rate", "100", "--acceleration", "15", "--q", q]


def printed(capsys: pytest.CaptureFixture[str], given: list[str]) -> Any:
    assert main([*given, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_json_says_how_steps_ended(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = printed(capsys, [*files, "--avoid", "0.02"])
    assert found["frame"] == "ur10/tool0"
    assert found["steps"] == sum(found["reasons"].values()) == STEPS
    assert found["least_distance"] > 0.02
    assert 0.0 < found["off"] < 0.02
    assert found["changes"][0]["step"] == 0
    assert {each["reason"] for each in found["changes"]} == set(found["reasons"])
    assert printed(capsys, files)["least_distance"] is None


def test_coordinates_that_do_not_count_are_free(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    first = CELL.fk("tool0")(START)[:3, 3]
    wanted = first + np.array([0.0, 0.02, 0.3])
    np.savetxt("points.csv", np.tile(wanted, (STEPS, 1)), delimiter=",")
    given = [*files[:5], "points.csv", *files[6:], "--out", "q.npy"]
    given += ["--rotation", "none", "--position", "xy", "--axes", "relative_to"]
    assert printed(capsys, given)["off"] < 1e-4
    last = CELL.fk("tool0")(np.load("q.npy")[-1])[:3, 3]
    assert np.abs(last - first - [0.0, 0.02, 0.0])[:2].max() < 1e-4
    assert abs(last[2] - first[2]) < 0.1
    assert main([*given[:-6], "--joints", "track/carriage"]) == 2
    assert "--rotation none" in capsys.readouterr().err


def test_only_named_joints_move(files: list[str]) -> None:
    given = [*files, "--joints", "track/carriage", "--position", "x"]
    assert main([*given, "--rotation", "none", "--out", "q.npy"]) == 0
    moved = np.load("q.npy") - START
    assert np.abs(moved[:, 1:]).max() == 0.0
    assert moved[-1, 0] > 0.03


def test_obstacles_of_a_file_are_avoided(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    at = CELL.fk("tool0")(START)[:3, 3] + [0.2, 0.0, 0.0]
    ends = np.array([[*at, *at, 0.1]])
    np.savetxt("still.csv", ends, delimiter=",")
    given = [*files, "--avoid", "0.02", "--obstacles"]
    still = printed(capsys, [*given, "still.csv"])
    assert "AVOIDING" in still["reasons"] or "BLOCKED" in still["reasons"]
    assert any("obstacle 0" in text for c in still["changes"] for text in c["active"])
    moving = np.tile(ends, (STEPS, 1, 1))
    moving[:, 0, :6] += np.tile([0.01, 0.0, 0.0], 2) * np.arange(STEPS)[:, None]
    np.save("moving.npy", moving)
    assert "MET" in printed(capsys, [*given, "moving.npy"])["reasons"]
    np.save("short.npy", moving[:-1])
    np.save("none.npy", moving[0, :0])
    wrong = {"short.npy": f"({STEPS}, k, 7)", "poses.npy": "7 numbers"}
    wrong["none.npy"] = "there are no capsules"
    for name, text in wrong.items():
        assert main([*given, name]) == 2
        assert text in capsys.readouterr().err
    assert main([*files, "--obstacles", "still.csv"]) == 2
    assert "--avoid" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (["--targets", "none.npy"], "none.npy"),
        (["--rate", "0"], "rate"),
        (["--frame", "tool"], "tool0"),
        (["--joints", "elbo"], "elbow"),
        (["--position", "w"], "position"),
    ],
)
def test_wrong_requests_are_failures(
    files: list[str], capsys: pytest.CaptureFixture[str], changed: list[str], text: str
) -> None:
    assert main([*files, *changed]) == 2
    assert text in capsys.readouterr().err
