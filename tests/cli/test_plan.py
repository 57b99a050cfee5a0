"""`armillary plan`: ways around a crate, written as motions, or why there are none."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from controllers import play_krl

SIDE = [0.35, 0.5, 0.3, 0.0, 0.7, 0.0]
OTHER = [-0.35, 0.5, 0.3, 0.0, 0.7, 0.0]


def blocked() -> arm.Cell:
    """An arm that must lift over a crate to get from one side to the other."""
    shape = arm.shapes.Box(size=(0.9, 0.2, 1.0), pose=arm.Pose.translation(0, 0, 0.5))
    crate = arm.Manipulator(
        name="crate", links=[arm.Link(name="body", collisions=[shape])]
    )
    at = arm.Pose.translation(1.3, 0.0, 0.0)
    return arm.example("irb2400").add(crate, pose=at)


CELL = blocked()
CHECK = CELL.collision()


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    arm.save(CELL, "cell.cell.json")
    return "cell.cell.json"


def text(q: list[float]) -> str:
    return ",".join(map(str, q))


def dense(way: np.ndarray) -> np.ndarray:
    t = np.linspace(0.0, 1.0, 400)[:, None]
    return np.concatenate([a + t * (b - a) for a, b in pairwise(way)])


def test_it_prints_a_way_around_what_is_between(run: Any, file: str):
    assert CHECK(dense(np.array([SIDE, OTHER]))).any()
    result = run("plan", file, "--from", text(SIDE), "--to", text(OTHER))
    assert result.code == 0
    first, empty, *rows = result.out.splitlines()
    assert f"{len(rows)} way points" in first
    assert "proven" in first
    assert not empty
    way = np.array([[float(each) for each in row.split(",")] for row in rows])
    assert way[0].tolist() == SIDE
    assert way[-1].tolist() == OTHER
    assert len(way) > 2
    assert not CHECK(dense(way)).any()


def test_it_writes_a_motion_that_keeps_to_the_way(run: Any, file: str):
    given = ["plan", file, "--from", text(SIDE), "--to", text(OTHER), "--json"]
    result = run(*given, "--acceleration", "4", "--out", "motion.json")
    assert result.code == 0
    about = json.loads(result.out)
    motion = arm.Motion.read("motion.json").bound(CELL)
    assert about["duration"] == pytest.approx(motion.duration)
    samples = motion.sampled(rate=500)
    assert not CHECK(samples.q).any()
    assert np.allclose(samples.q[0], SIDE, rtol=0, atol=1e-12)
    assert np.allclose(samples.q[-1], OTHER, rtol=0, atol=1e-9)
    assert np.abs(samples.qdd).max() < 4.0 * 1.01
    # A file of samples holds the same.
    assert (
        run(*given, "--acceleration", "4", "--out", "m.csv", "--rate", "50").code == 0
    )
    read = arm.Motion.read("m.csv")
    assert read.duration == pytest.approx(motion.duration)
    assert np.abs(read.at(0.5).q - motion.at(0.5).q).max() < 1e-4


def test_programs_for_controllers_are_written(run: Any, file: str):
    given = ["plan", file, "--from", "folded", "--to", "home", "--acceleration", "4"]
    tool = ["--frame", "tool0", "--tolerance", "1e-4"]
    assert run(*given, "--out", "fold.src", *tool).code == 0
    played = play_krl(Path("fold.src"))
    assert played.q[-1] == pytest.approx(CELL.home.q, abs=1e-6)
    assert run(*given, "--out", "fold.mod", "--external", "joint_9").code == 2


def test_it_goes_to_poses_and_postures(run: Any, file: str):
    X = CELL.fk("tool0")(OTHER)
    pose = ",".join(f"{x!r}" for x in X.ravel().tolist())
    result = run("plan", file, "--from", text(SIDE), "--pose", pose, "--json")
    found = np.array(json.loads(result.out)["q"])
    assert np.abs(CELL.fk("tool0")(found[-1]) - X).max() < 1e-5
    assert not CHECK(dense(found)).any()
    result = run("plan", file, "--from", "folded", "--to", "home", "--json")
    found = np.array(json.loads(result.out)["q"])
    assert found[-1].tolist() == CELL.home.q.tolist()
    posture = CELL.manipulators[0].posture("folded")
    assert found[0].tolist() == list(posture.q)


def test_it_says_why_there_is_no_way(run: Any, file: str):
    inside = [0.0, 0.6, 0.2, 0.0, 0.6, 0.0]
    assert CHECK(inside)
    result = run("plan", file, "--from", text(inside), "--to", "home")
    assert result.code == 1
    assert "links touch at the start" in result.out
    assert "crate/body" in result.out
    result = run("plan", file, "--to", text(inside), "--json")
    about = json.loads(result.out)
    assert (result.code, about["reason"], about["q"]) == (1, "GOAL_TOUCHES", [])
    assert any("crate/body" in each["links"] for each in about["touching"])
    result = run("plan", file, "--to", "0,0,0,0,0,99", "--out", "none.json")
    assert result.code == 1
    assert "joint_6" in result.out
    assert not Path("none.json").exists()
    result = run("plan", file, "--pose", "9,0,0,0,0,0")
    assert result.code == 1
    assert "--position" in result.out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--to", "nowhere"], "no posture named 'nowhere'"),
        (["--to", "1,2"], "--to has 2 numbers"),
        (["--from", "1,2", "--to", "home"], "--from has 2 numbers"),
        (["--to", "folded", "--out", "motion.npy"], "acceleration"),
        (["--to", "home", "--timeout", "nan"], "timeout"),
        (["--to", ","], "--to has 0 numbers"),
        ([], "one of the arguments --to --pose is required"),
        (["--to", "home", "--out", "motion.txt"], "does not end in"),
    ],
)
def test_what_cannot_be_asked_is_reported(
    run: Any, file: str, given: list[str], said: str
):
    result = run("plan", file, *given)
    assert result.code == 2
    assert said in result.err


def test_what_is_asked_is_read_before_links_are_tested(
    run: Any, file: str, monkeypatch: pytest.MonkeyPatch
):
    """A misspelled posture is reported at once, and alone."""

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("meshes are read")

    monkeypatch.setattr("armillary.cli.plan.collision_check", refused)
    for asked in (["--to", "hom"], ["--pose", "1,2"]):
        result = run("plan", file, *asked)
        assert result.code == 2
        assert result.err.startswith("armillary: ")
