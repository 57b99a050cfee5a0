"""`armillary track`: the steps of a controller, from poses of a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import armillary as arm
from armillary import tasks
from armillary.cli.main import main

CELL = arm.example("ur10_on_rail")
START = np.array([0.0, 0.0, -1.2, 1.5, -1.0, -1.4, 0.3])
STEPS = 60


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
