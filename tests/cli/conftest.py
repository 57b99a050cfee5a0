"""A small cell in a file, and the command line in this process."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import armillary as arm
from armillary.cli.main import main


class Result(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Result]


def lab() -> arm.Cell:
    """A gantry that carries a hand: a length, an angle, a follower, a free angle."""
    gantry = arm.Manipulator(
        name="gantry",
        links=[
            arm.Link(name="rail"),
            arm.Link(
                name="cart",
                parent="rail",
                joint=arm.joints.Prismatic(axis=(1, 0, 0)),
                limits=arm.Limits(lower=0.5, upper=2.0, velocity=1.5, effort=80.0),
                frames=(arm.Frame(name="plate", pose=arm.Pose.translation(0, 0, 1)),),
            ),
        ],
    )
    tip = arm.Frame(
        name="tip", pose=arm.Pose.translation(0.25, 0, 0), end_effector=True
    )
    hand = arm.Manipulator(
        name="hand",
        links=[
            arm.Link(name="palm"),
            arm.Link(
                name="finger",
                parent="palm",
                joint=arm.joints.Revolute(),
                limits=arm.Limits(lower=-math.pi, upper=math.pi),
                frames=(tip,),
            ),
            arm.Link(
                name="thumb",
                parent="palm",
                joint=arm.joints.Revolute(),
                coupling=arm.Coupling(of="finger", multiplier=-0.5, offset=0.1),
            ),
            arm.Link(name="wheel", parent="palm", joint=arm.joints.Revolute()),
        ],
    )
    return arm.Cell(
        name="lab",
        manipulators=[gantry, hand],
        mounts=[
            arm.Mount(
                manipulator="hand", on="plate", pose=arm.Pose.translation(0, 0, 0.1)
            )
        ],
    )


@pytest.fixture(scope="session")
def cell() -> arm.Cell:
    return lab()


@pytest.fixture
def file(cell: arm.Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The cell in a file of the folder in which the test runs."""
    monkeypatch.chdir(tmp_path)
    arm.save(cell, "lab.cell.json")
    return "lab.cell.json"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in this process."""

    def run(*arguments: str) -> Result:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Result(code, out, err)

    return run
