"""What is made of a timeline: reports, charts, and programs for controllers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, UnknownName
from armillary.programs.clearance import Clearance
from armillary.programs.ending import RunReason
from armillary.programs.loads import Loads
from armillary.programs.report import CycleReport
from armillary.programs.steps import (
    PTP,
    Appear,
    Grip,
    Leave,
    Linear,
    Release,
    Set,
    Wait,
    WaitFor,
    Zone,
)
from belt_cell import READY, TOOL, above, place
from controllers import play_krl, play_rapid

ROBOT = "irb2400"
AWAY = (0.4, 0.2, 0.3, 0.0, 1.0, 0.3)
WAITED = 1.0  # for how long the robot waits for the signal at least [s]


def run(cell: arm.Cell, tasks: Any, **options: Any) -> arm.Timeline:
    start = cell.home.place("box", place(0.9, 1.2)).place("other", place(0.9, 1.5))
    return cell.run(arm.Program(tasks, **options), start, acceleration=8.0)


@pytest.fixture(scope="module")
def timeline(cell: arm.Cell) -> arm.Timeline:
    made = run(
        cell,
        {
            ROBOT: [
                PTP(to=READY),
                Grip(part="box", by=TOOL, within=9.0),
                WaitFor(signal="ready"),
                Set(signal="glue"),
                PTP(to=AWAY, label="away"),
                Wait(seconds=0.25),
                Release(part="box"),
                PTP(to=READY),
            ],
            "source": [
                Wait(seconds=2.0),
                Set(signal="ready"),
                Appear(part="other", at=place(0.9, 1.5)),
                Wait(seconds=5.0),
                Leave(part="other"),
            ],
        },
        absent=["other"],
    )
    assert made.success, made.failure
    return made


# Reports


def test_a_report_says_what_happened(timeline: arm.Timeline, tmp_path: Path):
    path = tmp_path / "cell.txt"
    path.write_bytes(b"abc")
    report = timeline.report(title="Glue", files=[path])
    assert (report.title, report.cycle_time) == ("Glue", timeline.duration)
    waits = [(step.manipulator, step.waits) for step in report.steps if step.waits]
    ((task, (wait,)),) = waits
    began = timeline.span(f"{ROBOT}[0]").end
    assert (task, wait.what) == (ROBOT, "signal 'ready'")
    assert (wait.start, wait.end) == (began, 2.0)
    critical = {step.name for step in report.steps if step.is_critical}
    path_names = {span.name for span in timeline.critical_path}
    assert critical == path_names
    assert {each.name: each.changes for each in report.signals} == {
        "glue": ((0.0, 0.0), (2.0, 1.0)),
        "ready": ((0.0, 0.0), (2.0, 1.0)),
    }
    (least,) = report.clearances
    check = timeline.recording.check(least.time)
    at = timeline.at(least.time).q
    assert least.distance == pytest.approx(float(check.clearance(at)), abs=1e-9)
    box, other = report.parts
    assert (box.name, box.grips, box.start, box.end) == ("box", 1, "world", "world")
    assert (other.start, other.end) == ("absent", "absent")
    loads = {load.joint: load for load in report.loads}
    assert loads["irb2400/joint_2"].peak == timeline.loads().peak[1]
    (use,) = (each for each in report.uses if each.manipulator == ROBOT)
    assert use.waiting == pytest.approx(2.0 - began)
    assert report.plan is not None
    drawn = {outline.manipulator for outline in report.plan.outlines}
    assert "box" in drawn and "other" not in drawn
    assert [each.size for each in report.files] == [3]
    content = msgspec.json.encode(report)
    assert msgspec.json.decode(content, type=CycleReport) == report
    assert "irb2400/joint_2" in report.html


def test_what_is_not_proven_stands_in_json():
    kind = Clearance
    given = kind(distance=0.5, proven=min(-np.inf, 1.0) - 1.0, time=2.0)
    assert msgspec.json.decode(msgspec.json.encode(given), type=kind) == given
    assert b"proven" not in msgspec.json.encode(given)
    assert not given.is_free


def test_a_run_that_fails_is_reported():
    scara = arm.example("scara")
    alone = scara.replace(rules=scara.rules.exclude("*", "*"))
    never = WaitFor(signal="never")
    program = arm.Program([Wait(seconds=1.0), never], signals={"never": False})
    made = alone.run(program)
    assert not made.success
    report = made.report()
    assert "program[1]" in report.notes[0]
    assert not report.clearances
    with pytest.raises(ModelError, match="run failed"):
        made.hand_over("program", "never.src")


# What is seen


def test_what_is_played_is_the_timeline(timeline: arm.Timeline):
    played = timeline.played(rate=10.0, beside=[timeline])
    assert {2.0, 7.0} <= set(played.times.tolist())  # the part comes and leaves
    k = played.instant(2.0)
    assert played.absent(k - 1) == {"other"} and not played.absent(k)
    state = played.state(k)
    assert state.q.tolist() == timeline.state(2.0).q.tolist()
    assert state.cell is timeline.cell
    assert len(played.charts) == 2
    assert played.charts[0].steps == timeline.chart().steps


def test_contacts_and_loads_are_marked(cell: arm.Cell):
    down = Linear(to=above(0.9, 0.3, 0.35), frame=TOOL)  # into the belt
    start = [PTP(to=above(0.9, 0.3, 0.6), frame=TOOL)]
    made = run(cell, {ROBOT: [*start, down]})
    assert made.success, made.failure
    marks = made.marks(rate=200.0)
    (first, *_) = (mark for mark in marks if "touch" in mark.what)
    assert "'belt/bed'" in first.what
    check = made.recording.check(0.0)
    before, after = made.at([first.time - 0.01, first.time]).q
    assert check.clearance(before) > 0.0 >= check.clearance(after)
    loads = made.loads()
    beyond = sum(loads.use > 1.0)
    assert sum("of its limit" in mark.what for mark in marks) == beyond


def test_no_load_uses_nothing_of_an_effort_limit_of_zero():
    """Files write an effort limit of 0 where they know none: 0 / 0 was NaN."""
    n = 4
    loads = Loads(
        joints=tuple("abcd"),
        peak=np.array([0.0, 3.0, 3.0, 3.0]),
        when=np.zeros(n),
        rms=np.zeros(n),
        limit=np.array([0.0, 0.0, np.inf, 6.0]),
        power=0.0,
        energy=0.0,
        braking=0.0,
    )
    assert loads.use.tolist() == [0.0, np.inf, 0.0, 0.5]


# Handing over


def test_a_task_becomes_a_program(timeline: arm.Timeline, tmp_path: Path):
    path = tmp_path / "glue.src"
    done = timeline.hand_over(
        ROBOT,
        path,
        tolerance=1e-5,
        inputs={"ready": 4},
        outputs={"glue": 1, "closed": 2},
        grips={TOOL: "closed"},
    )
    played = play_krl(path)
    began = timeline.span(f"{ROBOT}[0]").end
    waited = 2.0 - began
    assert waited > WAITED
    away = timeline.span(f"{ROBOT}[5]").end - waited
    us = 1e-6
    assert played.events == [
        (pytest.approx(began, abs=us), "$OUT[2]=TRUE"),
        (pytest.approx(began, abs=us), "WAIT FOR $IN[4]"),
        (pytest.approx(began, abs=us), "$OUT[1]=TRUE"),
        (pytest.approx(away, abs=us), "$OUT[2]=FALSE"),
    ]
    end = timeline.span(f"{ROBOT}[7]").end - waited
    assert done.duration == pytest.approx(end, abs=us)
    times = np.linspace(0.0, end, 2001)
    of_timeline = np.where(times < began, times, times + waited)
    wanted = timeline.at(of_timeline).q[:, :6]
    assert np.abs(played.at(times) - wanted).max() < 1e-5


def test_rapid_stops_where_signals_are_set_at_rest(
    timeline: arm.Timeline, tmp_path: Path
):
    """Grips and signals between two motions were refused, as if the robot moved."""
    ports = {
        "inputs": {"ready": "diReady"},
        "outputs": {"glue": "doGlue", "closed": "doClosed"},
        "grips": {TOOL: "closed"},
        "tolerance": 1e-4,
    }
    path = tmp_path / "glue.mod"
    timeline.hand_over(ROBOT, path, **ports)
    played = play_rapid(path)
    began = timeline.span(f"{ROBOT}[0]").end
    away = timeline.span(f"{ROBOT}[5]").end - (2.0 - began)
    us = 1e-6
    assert played.events == [
        (pytest.approx(began, abs=us), "SetDO doClosed,1"),
        (pytest.approx(began, abs=us), "WaitDI diReady,1"),
        (pytest.approx(began, abs=us), "SetDO doGlue,1"),
        (pytest.approx(away, abs=us), "SetDO doClosed,0"),
    ]
    # The controller runs ahead of points that it flies by: each has a stop before it.
    lines = path.read_text().splitlines()
    for k, line in enumerate(lines):
        if "SetDO" in line and "MoveAbsJ" in lines[k - 1]:
            assert ",fine," in lines[k - 1]


def test_instructions_are_the_steps_of_the_task(timeline: arm.Timeline):
    with pytest.raises(ModelError, match="add Set, WaitFor or Wait"):
        timeline.hand_over(ROBOT, "never.src", instructions=[])


def test_steps_of_one_instant_keep_their_order(cell: arm.Cell, tmp_path: Path):
    # The clock of the program is a difference of sums, rounded: two waits between
    # which no time passes were in the other order for some durations.
    rng = np.random.default_rng(0)
    path = tmp_path / "a.json"
    for _ in range(20):
        work, source, wanted = list[Any](), list[Any](), list[bool]()
        for k in range(4):
            value = k % 2 == 0
            work += [PTP(to=READY if value else AWAY), WaitFor(signal="s", value=value)]
            source += [
                Wait(seconds=rng.uniform(2.0, 4.0)),
                Set(signal="s", value=value),
            ]
            wanted.append(value)
        work += [WaitFor(signal="s", value=False), WaitFor(signal="o", value=False)]
        tasks = {ROBOT: work, "source": source}
        made = run(cell, tasks, signals={"o": False})
        ports = {"s": 1, "o": 2}
        made.hand_over(ROBOT, path, inputs=ports, tolerance=1e-2)
        done = json.loads(path.read_text())["instructions"]
        says = [(each["signal"], each.get("value", True)) for each in done]
        expected = [*(("s", value) for value in wanted), ("s", False), ("o", False)]
        assert says == expected


def test_a_part_that_is_handed_on_leaves_its_gripper(cell: arm.Cell, tmp_path: Path):
    made = run(
        cell,
        {
            ROBOT: [
                PTP(to=READY),
                Grip(part="box", by=TOOL, within=9.0),
                Release(part="box", onto="belt/carrier"),
            ]
        },
    )
    assert [each.by for each in made.motion(ROBOT).attachments] == [
        TOOL,
        "belt/carrier",
    ]
    path = tmp_path / "on.src"
    options: Any = {"tolerance": 1e-3, "outputs": {"closed": 2}}
    with pytest.raises(UnknownName, match="belt/carrier"):
        made.hand_over(ROBOT, path, grips={TOOL: "closed"}, **options)
    grips = {TOOL: "closed", "belt/carrier": None}
    made.hand_over(ROBOT, path, grips=grips, **options)
    says = [text for _, text in play_krl(path).events]
    assert says == ["$OUT[2]=TRUE", "$OUT[2]=FALSE"]


def test_a_tool_may_hold_a_part_from_the_start(cell: arm.Cell, tmp_path: Path):
    """A robot could not put down what the state has in its gripper."""
    held = cell.home.attach("box", TOOL, replace=True)
    path, options = tmp_path / "on.src", {"tolerance": 1e-3, "outputs": {"closed": 2}}
    for onto in ("world", "belt/carrier"):
        release = Release(part="box", onto=onto)
        work = [PTP(to=READY), release, PTP(to=AWAY)]
        made = cell.run(arm.Program({ROBOT: work}), held, acceleration=8.0)
        assert made.success, made.failure
        grips = {TOOL: "closed", "belt/carrier": None}
        made.hand_over(ROBOT, path, grips=grips, **options)
        assert [text for _, text in play_krl(path).events] == ["$OUT[2]=FALSE"]
        twice = cell.run(arm.Program({ROBOT: [release] * 2}), held, acceleration=8.0)
        assert twice.reason == RunReason.NOT_HELD
        assert "a Grip comes before" in str(twice.failure)
    free = run(cell, {ROBOT: [Release(part="box")]})
    assert free.reason == RunReason.NOT_HELD


def test_what_another_tool_holds_from_the_start_is_taken():
    """A second gripper took the part, which both then had."""
    cell = arm.example("two_arms_positioner")
    bolt = arm.Link(name="body", collisions=[arm.shapes.Box(size=(0.5, 0.04, 0.04))])
    cell = cell.add(arm.Manipulator(name="bolt", links=[bolt]), bolted=False)
    held = cell.home.attach("bolt", "left/tool0", replace=True)
    grip = Grip(part="bolt", by="right/tool0", within=9.0)
    to_right = Release(part="bolt", onto="right/tool0")
    for others in ({"left": [Wait(seconds=1.0)]}, {}):
        tasks: Any = {"right": [grip], **others}
        taken = cell.run(arm.Program(tasks), held, acceleration=8.0)
        assert taken.reason == RunReason.TAKEN
        assert "Release(part='bolt'" in str(taken.failure)
        # It is handed over as the message says.
        handed = cell.run(
            arm.Program({"right": [to_right], **others}), held, acceleration=8.0
        )
        assert handed.success, handed.failure
    again = Grip(part="bolt", by="left/tool0", within=9.0)
    own = cell.run(arm.Program({"left": [again]}), held, acceleration=8.0)
    assert own.success, own.failure
    # What lies on a frame that is no tool is gripped from there.
    on = cell.home.attach("bolt", "left/base", replace=True)
    lies = cell.run(arm.Program({"right": [grip]}), on, acceleration=8.0)
    assert lies.success, lies.failure


def test_who_takes_a_part_lets_the_other_gripper_go(tmp_path: Path):
    # Its own program has no step that opens it.
    cell = arm.example("two_arms_positioner")
    bolt = arm.Link(name="body", collisions=[arm.shapes.Box(size=(0.5, 0.04, 0.04))])
    cell = cell.add(arm.Manipulator(name="bolt", links=[bolt]), bolted=False)
    far: Any = {"within": 9.0}
    move = PTP(to=[0.1, 0.0, 0.0, 0.0, 1.0, 0.0])
    tasks = {
        "left": [
            Grip(part="bolt", by="left/tcp", **far),
            move,
            Set(signal="offered"),
            WaitFor(signal="taken"),
        ],
        "right": [
            WaitFor(signal="offered"),
            move,
            Release(part="bolt", onto="right/tcp"),
            Set(signal="taken"),
            Release(part="bolt"),
        ],
    }
    made = cell.run(arm.Program(tasks), acceleration=8.0)
    assert made.success, made.failure
    path = tmp_path / "a.src"
    options: Any = {
        "tolerance": 1e-2,
        "outputs": {"offered": 1, "taken": 1, "left": 2, "right": 3},
        "inputs": {"offered": 5, "taken": 5},
    }
    grips = {"right/tcp": "right"}
    with pytest.raises(UnknownName, match="left/tcp"):
        made.hand_over("right", path, grips=grips, **options)
    grips |= {"left/tcp": "left"}
    made.hand_over("right", path, grips=grips, **options)
    assert [text for _, text in play_krl(path).events] == [
        "WAIT FOR $IN[5]",
        "$OUT[3]=TRUE",
        "$OUT[2]=FALSE",
        "$OUT[1]=TRUE",
        "$OUT[3]=FALSE",
    ]
    made.hand_over("left", path, grips={"left/tcp": "left"}, **options)
    says = [text for _, text in play_krl(path).events]
    assert says == ["$OUT[2]=TRUE", "$OUT[1]=TRUE", "WAIT FOR $IN[5]"]


@pytest.mark.parametrize("message", ["True or False", "is shared with 'b'"])
def test_what_no_controller_knows_is_refused(
    cell: arm.Cell, tmp_path: Path, message: str
):
    go = PTP(to=READY)
    tasks = {
        "True or False": {ROBOT: [go, Set(signal="speed", value=3)]},
        "is shared with 'b'": {
            ROBOT: [Zone(zone="press", steps=[go])],
            "b": [Zone(zone="press", steps=[Wait(seconds=1.0)])],
        },
    }
    with pytest.raises(ModelError, match=message):
        run(cell, tasks[message]).hand_over(ROBOT, tmp_path / "a.src")
    assert not list(tmp_path.iterdir())
