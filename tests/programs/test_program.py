"""Programs as data: what steps take, JSON, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import armillary as arm
from armillary.errors import FormatError, ModelError, ShapeError, UnknownName
from armillary.programs.steps import (
    PTP,
    Appear,
    Call,
    Drive,
    Grip,
    Leave,
    Linear,
    Planned,
    Release,
    Repeat,
    Set,
    Wait,
    WaitFor,
    Zone,
)

X = arm.Pose.translation(0.1, 0.2, 0.3)


def every_step() -> list[Any]:
    """One step of each kind, with options."""
    arc = arm.Arc(to=np.asarray(X.matrix()), through=[0.2, 0.1, 0.3])
    return [
        PTP(to=np.zeros(3)),
        PTP(to=[[0.0, 1.0], X, "home"], frame="tool0", blend=0.1, speed=0.5),
        PTP(to=np.ones((2, 3))),
        Planned(to=np.asarray(X.matrix()), frame="tool0", margin=0.01, seed=3),
        Linear(to=[X, arc], frame="tool0", speed=0.2, relative_to="belt/carrier"),
        Linear(to=X, frame="tool0", label="down"),
        Grip(part="box", by="tool0"),
        Release(part="box", onto="table/top"),
        Appear(part="box", at=X, on="belt/carrier"),
        Leave(part="box"),
        Wait(seconds=0.5),
        WaitFor(signal="ready", value=3, timeout=2.0),
        Set(signal="ready", value=3),
        Drive(joint="belt/carrier", speed=-0.1, acceleration=1.0),
        Zone(zone="press", steps=[Repeat(count=2, steps=[Call(routine="pick")])]),
    ]


def program() -> arm.Program:
    beam = arm.Sensor(shape=arm.shapes.Box(size=(0.1, 0.1, 0.1)), parts=("box",))
    return arm.Program(
        {"robot": every_step(), "belt": []},
        joints={"robot": ["a", "b"]},
        routines={"pick": [Set(signal="ready", value="x")]},
        signals={"other": True},
        sensors={"beam": beam},
        absent=["box"],
    )


def test_programs_are_values():
    one, other = program(), program()
    assert one == other
    assert arm.Program.from_json(one.to_json()) == one
    assert arm.Program.from_json(one.to_json()).to_json() == one.to_json()
    assert "PTP" in one.to_json()
    assert [type(step).__name__ for _, step in one.walk()][:2] == ["PTP", "PTP"]
    assert dict(one.walk())["robot[14][0][0]"] == Call(routine="pick")
    assert repr(one) == "<Program: robot, belt, 18 steps>"


def test_files(tmp_path: Path):
    path = tmp_path / "pick.program.json"
    program().write(path)
    assert arm.Program.read(path) == program()
    path.write_text("{}")
    with pytest.raises(FormatError, match=r'pick\.program\.json: .* no "kind"'):
        arm.Program.read(path)
    with pytest.raises(FormatError, match="No such file"):
        arm.Program.read(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"PTP"', '"PTPs"', "PTPs"),
        ('"zone": "press"', '"zone": 3', "Expected `str`"),
        ('"speed": 0.5', '"speed": 5.0', "speed= is a number"),
        ('"seconds": 0.5', '"seconds": -1.0', "seconds="),
        ('"version": 1', '"version": 9', "version"),
        ('"signal": "ready"', '"signal": "none"', "'none'"),
        ('"routine": "pick"', '"routine": "pack"', "'pack'"),
        ('"label": "down"', '"labels": "down"', "labels"),
        ("{", "[", "JSON"),
    ],
)
def test_damaged_files_are_refused(old: str, new: str, message: str):
    text = program().to_json()
    assert old in text
    with pytest.raises(FormatError, match=message):
        arm.Program.from_json(text.replace(old, new, 1))


def test_deep_files_are_refused():
    deep = '{"step": "Repeat", "count": 1, "steps": [' * 5000
    text = '{"kind": "armillary program", "version": 1, "tasks": {"a": [' + deep
    with pytest.raises(FormatError):
        arm.Program.from_json(text)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: PTP(to=[]), ModelError, "empty"),
        (lambda: PTP(to=3), ShapeError, "joint positions"),
        (lambda: PTP(to=[0.0, np.nan]), ShapeError, "finite"),
        (lambda: PTP(to=X), ModelError, 'frame="tool0"'),
        (lambda: PTP(to=2 * np.eye(4), frame="tool0"), ModelError, "PTP"),
        (lambda: PTP(to=[0.0], speed=0.0), ModelError, "speed="),
        (lambda: PTP(to=[0.0], acceleration=1.5), ModelError, "acceleration="),
        (lambda: Planned(to=[X, X], frame="a"), ModelError, "one target"),
        (lambda: Linear(to=[], frame="a"), ModelError, "no targets"),
        (lambda: Linear(to=X, frame="a", speed=0.0), ModelError, "speed="),
        (lambda: Repeat(count=2_000_000, steps=[]), ModelError, "count="),
        (lambda: Repeat(count=2, steps=["a"]), ModelError, "arm.steps"),
        (lambda: Zone(zone="a", steps="b"), ModelError, "list"),
        (lambda: Drive(joint="a", speed=np.inf), ModelError, "speed="),
        (lambda: Wait(seconds="1"), ModelError, "seconds="),
        (
            lambda: arm.Program([], sensors=cast(Any, {"a": 3})),
            ModelError,
            "is a Sensor, such",
        ),
        (lambda: arm.Sensor(shape=cast(Any, 3)), ModelError, "not 3"),
        (lambda: arm.Program([WaitFor(signal="a")]), UnknownName, "'a'"),
        (lambda: arm.Program([Call(routine="a")]), UnknownName, "'a'"),
        (lambda: arm.Program([], joints={"b": ()}), UnknownName, "'b'"),
        (
            lambda: arm.Program([], routines={"a": [Call(routine="a")]}),
            ModelError,
            "'a' calls 'a'",
        ),
    ],
)
def test_what_makes_no_step_is_refused(make: Any, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        make()
