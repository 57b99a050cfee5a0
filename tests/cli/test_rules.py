"""`armillary rules`: pairs that need no test, printed and written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import armillary as arm
from armillary.shapes import Sphere


@pytest.fixture
def robot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A row of balls in a URDF; the last one reaches two links back."""
    monkeypatch.chdir(tmp_path)
    links = [arm.Link(name="l0", collisions=[Sphere(radius=0.05)])]
    for k in (1, 2, 3, 4):
        links.append(
            arm.Link(
                name=f"l{k}",
                parent=f"l{k - 1}",
                joint=arm.joints.Revolute(precursor=arm.Pose.translation(0.2, 0, 0)),
                limits=arm.Limits(lower=-1.0, upper=1.0, velocity=1.0, effort=1.0),
                collisions=[Sphere(radius=0.05 if k < 4 else 0.37)],
            )
        )
    cell = arm.Cell(manipulators=[arm.Manipulator(name="row", links=links)])
    arm.save(cell, "row.urdf")
    return "row.urdf"


def test_pairs_are_printed_and_written(run, robot: str):
    result = run("rules", robot, "--samples", "300", "--out", "row.srdf")
    assert result.code == 0
    assert result.err.endswith("row.srdf: written\n")
    lines = [line.split() for line in result.out.splitlines()]
    reasons = {(a, b): reason for reason, a, b in lines[1:-3]}
    assert reasons["row/l0", "row/l1"] == "adjacent"
    assert reasons["row/l2", "row/l4"] == "default"
    assert reasons["row/l0", "row/l2"] == "never"
    assert result.out.splitlines()[-1] == f"{10 - len(reasons)} pairs tested of 5 links"
    text = Path("row.srdf").read_text()
    assert '<disable_collisions link1="l0" link2="l2" reason="Never"/>' in text
    # The SRDF alone now decides, and the same pairs are left.
    cell = arm.load(robot, srdf="row.srdf")
    assert len(cell.pairs(cell.home)) == 10 - len(reasons)
    told = run("collide", robot, "--srdf", "row.srdf")
    assert told.out.startswith(f"{10 - len(reasons)} pairs tested")
    assert "row.srdf lies beside it: load with --srdf 'row.srdf'" in (
        run("check", robot).out
    )


def test_json_and_other_samples(run, robot: str):
    first = run("rules", robot, "--samples", "50", "--json")
    found = json.loads(first.out)
    assert sorted(found) == ["cell", "tested", "untested"]
    assert len(found["tested"]) + len(found["untested"]) == 10
    assert {"links": ["row/l0", "row/l1"], "reason": "adjacent"} in found["untested"]
    still = run("rules", robot, "--samples", "5", "--within", "to_l1=0:0", "--json")
    assert still.code == 2
    assert "to_l1" in still.err


def test_bad_numbers(run, robot: str):
    for given in (("--samples", "0"), ("--seed", "-1"), ("--within", "l1")):
        assert run("rules", robot, *given).code == 2
