"""Branches of one task, scan cycles, and planned motions beside what others move."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError
from armillary.programs import program as program_module
from armillary.programs.ending import RunReason
from armillary.programs.steps import (
    PTP,
    Call,
    Drive,
    Grip,
    Parallel,
    Planned,
    Repeat,
    Set,
    Wait,
    WaitFor,
    Zone,
)
from belt_cell import READY, TOOL, place

ROBOT = "irb2400"


def on_the_way() -> list[Parallel | Wait | PTP]:
    """A motion during which the belt starts and a signal is set."""
    beside = [
        Wait(seconds=0.2),
        Set(signal="open"),
        Drive(joint="belt/carrier", speed=1),
    ]
    late = [Wait(seconds=5.0, label="late"), Set(signal="late")]
    return [
        Wait(seconds=0.5),
        Parallel(branches=[beside, [PTP(to=READY, label="there")], late]),
        PTP(to="home", label="back"),
    ]


def test_branches_run_at_the_same_time_and_are_waited_for(cell: arm.Cell):
    tasks = {ROBOT: on_the_way(), "other": [WaitFor(signal="open"), Wait(seconds=1.0)]}
    program = arm.Program(tasks)
    assert arm.Program.from_json(program.to_json()) == program
    assert "irb2400[1][0][1]" in dict(program.walk())
    timeline = cell.run(program, acceleration=8.0)
    assert timeline.success, timeline.failure
    opened = [each for each in timeline.signals if each.time > 0.0]
    assert [(each.signal, each.time) for each in opened] == [
        ("open", 0.7),
        ("late", 5.5),
    ]
    there = timeline.span("there")
    assert there.start == 0.5
    assert there.end > 0.7
    assert timeline.span("back").start == 5.5
    # The motion is the same as without branches beside it.
    alone = cell.run(
        arm.Program({ROBOT: [PTP(to=READY, label="there")]}), acceleration=8
    )
    t = np.linspace(0.0, alone.duration, 20)
    assert np.allclose(alone.at(t).q[:, :6], timeline.at(t + 0.5).q[:, :6], atol=1e-12)
    names = [span.name for span in timeline.critical_path]
    assert names == ["Wait", "late", "Set", "back"]


def test_signals_of_branches_are_handed_over(cell: arm.Cell, tmp_path: Path):
    parallel = Parallel(
        branches=[[PTP(to=READY)], [Wait(seconds=0.2), Set(signal="o")]]
    )
    timeline = cell.run(arm.Program({ROBOT: [parallel]}), acceleration=8.0)
    path = tmp_path / "work.src"
    timeline.hand_over(ROBOT, path, outputs={"o": 7}, tolerance=1e-2)
    assert "$OUT[7]" in path.read_text()
    with pytest.raises(ModelError, match="moves nothing"):
        cell.run(arm.Program({ROBOT: []})).hand_over(ROBOT, path, tolerance=1e-2)


def test_branches_share_the_zone_of_their_task(cell: arm.Cell):
    inner = [Zone(zone="z", steps=[Wait(seconds=2.0)])]
    short = [Zone(zone="z", steps=[Wait(seconds=1.0)])]
    tasks = {"a": [Parallel(branches=[inner, short])], "b": [Wait(seconds=0.1), *short]}
    timeline = cell.run(arm.Program(tasks))
    assert timeline.success, timeline.failure
    assert timeline.duration == 3.0  # not before both branches have left


def test_one_branch_moves_joints(cell: arm.Cell):
    moves = [Call(routine="go")]
    with pytest.raises(ModelError, match=r"a\[0\]: two branches"):
        arm.Program(
            {"a": [Parallel(branches=[moves, [Repeat(count=1, steps=[PTP(to="x")])]])]},
            routines={"go": [PTP(to=READY)]},
        )
    with pytest.raises(ModelError, match="lists of steps"):
        Parallel(branches=3)
    assert cell.run(arm.Program({"a": [Parallel(branches=[])]})).duration == 0.0


def test_a_branch_that_fails_is_named(cell: arm.Cell):
    program = arm.Program(
        {ROBOT: [Parallel(branches=[[PTP(to=READY)], [Grip(part="box", by=TOOL)]])]}
    )
    timeline = cell.run(program, acceleration=8.0)
    assert timeline.failure is not None
    assert (timeline.failure.step, timeline.failure.task) == ("irb2400[0][1][0]", ROBOT)


def signals(*tasks: list[Set | Wait | WaitFor], scan: float) -> arm.Program:
    return arm.Program(dict(zip("abc", tasks, strict=False)), scan=scan)


@pytest.mark.parametrize("at", [0.0, 0.05, 0.1, 0.30000001, 0.3999])
def test_signals_are_seen_at_the_next_scan(cell: arm.Cell, at: float):
    scan = 0.1
    program = signals(
        [Wait(seconds=at), Set(signal="s"), WaitFor(signal="s")], scan=scan
    )
    assert arm.Program.from_json(program.to_json()) == program
    seen = cell.run(program).duration
    ticks = np.arange(10) * scan
    assert seen == ticks[ticks > at][0]


def test_pulses_between_scans_are_missed(cell: arm.Cell):
    pulse = [
        *(Wait(seconds=0.12), Set(signal="s")),
        *(Wait(seconds=0.05), Set(signal="s", value=False)),
    ]
    waiting = [WaitFor(signal="s")]
    assert cell.run(signals(waiting, pulse, scan=0.0)).success
    timeline = cell.run(signals(waiting, pulse, scan=0.1))
    assert timeline.reason == RunReason.NEVER
    assert "it was so at 0.12 s, and is False since" in str(timeline.failure)
    for bad in (-1.0, 1e-300, np.inf, np.nan, True):
        with pytest.raises(ModelError, match="scan="):
            signals(waiting, pulse, scan=bad)


@pytest.mark.parametrize("is_scan", [True, False])
def test_waits_beyond_the_end_of_a_run_end_it(cell: arm.Cell, is_scan: bool):
    waiting = WaitFor(signal="s", timeout=None if is_scan else 1e6)
    late = Set(signal="s") if is_scan else Set(signal="other")
    program = arm.Program(
        {"a": [waiting], "b": [Wait(seconds=1.0), late]},
        signals={"s": False},
        scan=1e9 if is_scan else 0.0,
    )
    failure = cell.run(program).failure
    assert failure is not None
    assert (failure.reason, failure.task) == (RunReason.TIMEOUT, "a")


@pytest.mark.parametrize(("y", "is_met"), [(-0.2, True), (-2.0, False)])
def test_planned_motions_are_tested_beside_what_others_move(
    cell: arm.Cell, y: float, is_met: bool
):
    others = [
        Grip(part="box", by="belt/carrier", within=9.0),
        Drive(joint="belt/carrier", speed=3.0),
    ]
    program = arm.Program({ROBOT: [Planned(to=READY)], "source": others})
    start = cell.home.place("other", place(0.9, -1.5))
    start = start.place("box", arm.Pose.translation(0.6, y, 1.4))
    timeline = cell.run(program, start, acceleration=2.0)
    assert timeline.success is not is_met
    assert (timeline.clearance().distance <= 0.0) is is_met
    if is_met:
        assert timeline.reason == RunReason.IN_COLLISION
        assert "irb2400[0]" in str(timeline.failure)
        assert "'box/body'" in str(timeline.failure)


def test_parts_that_a_part_carries_leave_with_it(cell: arm.Cell):
    steps = arm.steps
    program = arm.Program(
        {
            "a": [
                Grip(part="box", by="other/body", within=9.0),
                steps.Leave(part="other"),
                Wait(seconds=1.0),
                steps.Appear(part="box"),
                steps.Appear(part="other", on="box/body"),
            ]
        }
    )
    timeline = cell.run(program)
    assert timeline.success, timeline.failure
    assert timeline.absent(0.5) == {"box", "other"}
    away = arm.Program(
        {"a": [steps.Appear(part="box", on="other/body")]}, absent=["other", "box"]
    )
    failure = cell.run(away).failure
    assert failure is not None
    assert failure.reason == RunReason.NOT_THERE
    assert "'other', which is absent" in failure.why


@pytest.mark.parametrize(
    "steps",
    [
        [Repeat(count=10**6, steps=[Repeat(count=10**6, steps=[])])],
        [Repeat(count=10**6, steps=[Set(signal="s")])],
        [Call(routine="r0")],
    ],
    ids=["empty", "no time", "calls"],
)
def test_programs_that_do_not_end_are_bounded(
    cell: arm.Cell, steps: list[Repeat | Call], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("armillary.programs.doing.MOST_AT_ONCE", 2000)
    routines = {f"r{k}": [Call(routine=f"r{k + 1}")] * 2 for k in range(40)}
    timeline = cell.run(arm.Program(steps, routines={**routines, "r40": []}))
    assert timeline.reason == RunReason.TIMEOUT
    assert "at one instant" in str(timeline.failure)


SAID = """
import sys
sys.path[:0] = [{tests!r}, {here!r}]
import hashlib
import armillary as arm
from test_parallel import on_the_way
from belt_cell import belt_cell, place

cell = belt_cell()
beam = arm.shapes.Box(size=(0.4, 0.002, 0.002), pose=arm.Pose.translation(0.9, 0, 0.45))
program = arm.Program(
    {{
        "irb2400": on_the_way(),
        "source": [arm.steps.Grip(part="box", by="belt/carrier", within=9.0)],
        "looks": [arm.steps.WaitFor(signal="beam")],
    }},
    sensors={{"beam": arm.Sensor(shape=beam)}},
)
timeline = cell.run(program, cell.home.place("box", place(0.9, -0.5)), acceleration=8.0)
assert timeline.success, timeline.failure
values = timeline.sampled(100.0)
text = repr([(s.task, s.place, s.start, s.end, s.cause) for s in timeline.spans])
data = text.encode() + values.q.tobytes() + values.qd.tobytes()
print(hashlib.sha256(data + repr(timeline.signals).encode()).hexdigest())
"""


def test_processes_with_other_seeds_and_threads_give_the_same_timeline():
    here = Path(__file__).parent
    code = SAID.format(tests=str(here.parent), here=str(here))
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "ARMILLARY_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, threads in (("1", "1"), ("2", "2"))
    }
    assert len(said) == 1


def test_branches_in_branches_are_looked_at_once(monkeypatch: pytest.MonkeyPatch):
    # All below each was looked through again: a file of 15 kB took 4 s.
    asked = [0]
    found = program_module.moving_branches

    def counted(*given: Any) -> list[int]:
        asked[0] += 1
        return found(*given)

    monkeypatch.setattr(program_module, "moving_branches", counted)
    inner: Any = [Wait(seconds=0.1)]
    for _ in range(50):
        inner = [Parallel(branches=[inner, [Set(signal="on")]])]
    arm.Program({"all": inner})
    assert asked[0] <= 2 * 50
