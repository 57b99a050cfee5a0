"""Limits that couple joints in files: kept by native ones, reported by the others."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.cli.main import main
from armillary.errors import FormatError
from armillary.formats.diagnostic import Report
from armillary.formats.native.write import write

ELBOW: dict[str, Any] = {
    "joints": ["crank", "upper_arm"],
    "coefficients": [1.0, -1.0],
    "lower": -1.0,
    "name": "elbow",
}


def native() -> dict[str, Any]:
    made = arm.example("palletiser").manipulators[0]
    made = made.replace(coupled_limits=[])
    return json.loads(write(arm.Cell(manipulators=[made]).workcell, Report()))


def with_limits(folder: Path, *limits: dict[str, Any], of_cell: bool = False) -> Path:
    record = native()
    owner = record if of_cell else record["manipulators"][0]
    owner["coupled_limits"] = list(limits)
    path = folder / "limited.cell.json"
    path.write_text(json.dumps(record, indent=1))
    return path


def test_native_files_keep_them(tmp_path: Path):
    cell = arm.load(with_limits(tmp_path, ELBOW))
    (limit,) = cell.manipulators[0].coupled_limits
    assert limit == arm.CoupledLimit(
        joints={"crank": 1, "upper_arm": -1}, lower=-1.0, name="elbow"
    )
    path = tmp_path / "cell.cell.json"
    both = cell.replace(
        coupled_limits=[arm.CoupledLimit(joints={"turret": 2}, upper=5)]
    )
    arm.save(both, path)
    assert arm.load(path) == both
    assert "Infinity" not in path.read_text()


FAULTY: list[tuple[tuple[dict[str, Any], ...], bool, str]] = [
    (({**ELBOW, "joints": ["crank", "nope"]},), False, "no joint named 'nope'"),
    (({**ELBOW, "joints": ["crank", "forearm"]},), False, "passive"),
    (({**ELBOW, "lower": 3.0},), False, "leave no room"),
    ((ELBOW, {**ELBOW, "name": "", "upper": -1.5, "lower": -2.0}), False, "no room"),
    (({**ELBOW, "joints": ["a/crank", "b"]},), True, "no joint named 'a/crank'"),
    (({**ELBOW, "coefficients": [0.0, 0.0]},), False, "other than 0"),
]


@pytest.mark.parametrize(("limits", "of_cell", "message"), FAULTY)
def test_faults_have_their_place(
    limits: tuple[dict[str, Any], ...], of_cell: bool, message: str, tmp_path: Path
):
    path = with_limits(tmp_path, *limits, of_cell=of_cell)
    with pytest.raises(FormatError, match=message) as error:
        arm.load(path)
    (fault,) = error.value.diagnostics
    assert fault.code in {"bad-coupled-limit", "bad-coupledlimit"}
    lines = path.read_text().splitlines()
    first = next(k for k, line in enumerate(lines, 1) if '"coupled_limits"' in line)
    assert fault.place.line > first


SUFFIXES = {"urdf": ".urdf", "actin": ".xml", "robwork": ".wc.xml", "isaac": ".json"}


@pytest.mark.parametrize("name", ["urdf", "actin", "robwork", "isaac"])
def test_other_formats_say_that_they_are_lost(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    (made,) = arm.example("irb2400").manipulators
    sum_of_two = arm.CoupledLimit(
        joints={"joint_2": 1, "joint_3": 1}, upper=0.8, name="elbow"
    )
    cell = arm.Cell(manipulators=[made.replace(coupled_limits=[sum_of_two])])
    with caplog.at_level(logging.WARNING, logger="armillary.formats"):
        arm.save(cell, tmp_path / f"cell{SUFFIXES[name]}", format=name)
    texts = [record.getMessage() for record in caplog.records]
    (lost,) = [text for text in texts if "lost-coupled-limit" in text]
    assert "without its coupled limit 'elbow': joint_2 + joint_3 <= 0.8" in lost
    assert not [text for text in texts if "coupled_limits" in text]


def test_the_command_line_shows_them(capsys: pytest.CaptureFixture[str]):
    path = Path(arm.__file__).parent / "cells" / "palletiser.cell.json"
    assert main(["info", str(path), "--degrees"]) == 0
    assert "elbow          crank - upper_arm  deg     -75     75" in " ".join(
        capsys.readouterr().out.split("\n")
    )
    assert main(["info", str(path), "--json"]) == 0
    (limit,) = json.loads(capsys.readouterr().out)["coupled_limits"]
    assert limit["joints"] == {"crank": 1.0, "upper_arm": -1.0}
    assert np.isclose(limit["upper"], np.radians(75))
