"""Runs: when steps happen, what waits for what, and what cannot be done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, StateError, UnknownName
from armillary.programs.ending import RunReason
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
from belt_cell import HEIGHT, READY, SIDE, TOOL, above, place

ROBOT = "irb2400"
FAST = {"acceleration": 8.0}


def run(cell: arm.Cell, tasks: Any, **options: Any) -> arm.Timeline:
    return cell.run(arm.Program(tasks, **options), **FAST)


def ended(timeline: arm.Timeline) -> dict[str, float]:
    assert timeline.success, timeline.failure
    return {span.place: span.end for span in timeline.spans}


def test_motion_between_points_is_the_trapezium(cell: arm.Cell):
    home = np.asarray(cell.home.q[:6])
    q = home + np.array([0.5, 0, 0, 0, 0, 0.1])
    timeline = run(cell, {ROBOT: [PTP(to=q), PTP(to=home, speed=0.2)]})
    a, w = 8.0, 0.2 * cell.velocity_limits[0]
    there, back = 2 * np.sqrt(0.5 / a), 0.5 / w + w / a
    assert timeline.duration == pytest.approx(there + back, abs=1e-12)
    t = np.linspace(0.0, timeline.duration, 2001)
    values = timeline.at(t)
    assert (np.abs(values.qd) <= cell.velocity_limits + 1e-9).all()
    assert np.abs(values.qdd).max() == pytest.approx(a)
    slopes = np.gradient(values.q[:, 0], t)
    assert np.abs(slopes - values.qd[:, 0]).max() < 0.01
    assert np.allclose(timeline.state(there).q[:6], q)
    assert timeline.state(timeline.duration + 9).q[:6] == pytest.approx(home)


@pytest.mark.parametrize(
    "fails",
    [Grip(part="box", by=TOOL), WaitFor(signal="never", timeout=0.5)],
    ids=["at once", "later"],
)
def test_critical_path_ends_with_the_step_that_failed(cell: arm.Cell, fails: Any):
    home = np.asarray(cell.home.q[:6])
    far = PTP(to=home + 1.0, speed=0.01)
    tasks = {ROBOT: [far], "b": [Wait(seconds=1.0), fails]}
    timeline = run(cell, tasks, signals={"never": False})
    assert timeline.failure is not None
    assert timeline.failure.step == "b[1]"
    # The motion of the robot was cut off at the same instant.
    assert timeline.spans[0].end == timeline.duration
    path = [span.place for span in timeline.critical_path]
    assert path == ["b[0]", "b[1]"]


def test_tasks_wait_for_signals_and_times(cell: arm.Cell):
    timeline = run(
        cell,
        {
            "a": [Wait(seconds=2.0), Set(signal="go"), Wait(seconds=1.0)],
            "b": [WaitFor(signal="go", value=True), Wait(seconds=5.0)],
            "c": [WaitFor(signal="go", value=False), Repeat(count=3, steps=WAITS)],
        },
    )
    assert ended(timeline) | {} == {
        "a[0]": 2.0,
        "a[1]": 2.0,
        "a[2]": 3.0,
        "b[0]": 2.0,
        "b[1]": 7.0,
        "c[0]": 0.0,
        "c[1][0]": 1.5,
    }
    assert timeline.signal("go", 1.9) is False
    assert timeline.signal("go", 2.0) is True
    path = [span.place for span in timeline.critical_path]
    assert path == ["a[0]", "a[1]", "b[1]"]
    assert timeline.span("b[0]").waited_for == "signal 'go'"


WAITS = [Wait(seconds=0.5)]


def test_zones_admit_one_task_after_the_other(cell: arm.Cell):
    inside = Zone(zone="press", steps=[Wait(seconds=1.0)])
    timeline = run(cell, {"a": [inside], "b": [inside], "c": [inside, inside]})
    ends = ended(timeline)
    assert (ends["a[0][0]"], ends["b[0][0]"], ends["c[1][0]"]) == (1.0, 2.0, 4.0)
    assert timeline.span("c[0]").waited_for == "zone 'press'"
    path = [span.place for span in timeline.critical_path]
    assert path == ["a[0]", "a[0][0]", "b[0][0]", "c[0][0]", "c[1]", "c[1][0]"]


def test_routines_are_called(cell: arm.Cell):
    program = arm.Program(
        {"a": [Call(routine="twice")]},
        routines={"twice": [Call(routine="once")] * 2, "once": [Wait(seconds=0.25)]},
    )
    timeline = cell.run(program)
    assert timeline.duration == 0.5
    places = [span.place for span in timeline.spans]
    assert places[0] == "a[0] > routine twice[0] > routine once[0]"


def test_parts_are_gripped_carried_and_released(cell: arm.Cell):
    high = HEIGHT + SIDE + 0.001
    start = cell.home.place("box", place(0.9, -0.2)).place("other", place(0.9, 1.5))
    program = arm.Program(
        {
            ROBOT: [
                PTP(to=READY),
                PTP(to=above(0.9, -0.2, high + 0.2), frame=TOOL),
                Linear(to=above(0.9, -0.2, high), frame=TOOL, speed=0.5),
                Grip(part="box", by=TOOL),
                Linear(to=above(0.9, -0.2, high + 0.2), frame=TOOL),
                PTP(to=above(0.2, -0.9, high + 0.2), frame=TOOL),
                Linear(to=above(0.2, -0.9, high), frame=TOOL),
                Release(part="box"),
                PTP(to=READY),
            ]
        }
    )
    timeline = cell.run(program, start, **FAST)
    assert timeline.success, timeline.failure
    end = timeline.state(timeline.duration)
    assert end.attachments == {}
    assert cell.fk("box/body", state=end)(end.q)[:3, 3] == pytest.approx(
        [0.2, -0.9, high - SIDE / 2], abs=1e-6
    )
    grip = timeline.span("Grip").start
    assert timeline.state(grip - 1e-9).attachments == {}
    assert timeline.state(grip).attachments == {"box": TOOL}
    # A part that is released does not move while it is carried no more.
    times = np.linspace(grip, timeline.span("Release").start, 50)
    poses = [
        cell.fk("box/body", relative_to=TOOL, state=s)(s.q)
        for s in map(timeline.state, times.tolist())
    ]
    assert np.abs(np.diff(poses, axis=0)).max() < 1e-12


def test_the_same_timeline_twice_and_from_a_file(cell: arm.Cell):
    program = arm.Program({ROBOT: [PTP(to=READY), Linear(to=LOWER, frame=TOOL)]})
    again = arm.Program.from_json(program.to_json())
    one, other = (cell.run(each, **FAST) for each in (program, again))
    fresh = arm.Cell.of(cell.workcell.replace(name="another")).run(program, **FAST)
    t = np.linspace(0.0, one.duration, 301)
    for timeline in (other, fresh):
        assert timeline.duration == one.duration
        assert np.array_equal(timeline.at(t).q, one.at(t).q)


LOWER = above(0.9, 0.3, 0.6)


def test_blends_and_planned_motions(cell: arm.Cell):
    q = np.array([0.9, 0.3, 0.2, 0.1, 0.9, 0.2])
    stops = run(cell, {ROBOT: [PTP(to=[READY, q, 0.5 * q])]})
    blended = run(cell, {ROBOT: [PTP(to=[READY, q, 0.5 * q], blend=0.1)]})
    assert blended.success
    assert blended.duration < stops.duration
    start = cell.home.place("box", place(0.9, -0.2)).place("other", place(0.9, 1.5))
    check = cell.collision(start)
    program = arm.Program({ROBOT: [Planned(to=LOWER, frame=TOOL)]})
    planned = cell.run(program, start, **FAST)
    assert planned.success, planned.failure
    end = planned.state(planned.duration)
    assert np.allclose(
        cell.fk(TOOL, state=end)(end.q), np.asarray(LOWER.matrix()), atol=1e-6
    )
    wall = {"wall": arm.shapes.Box(size=(4.0, 4.0, 4.0))}
    blocked = cell.run(program, start, check=check.with_obstacles(wall), **FAST)
    assert blocked.reason == RunReason.NO_WAY
    assert "wall" in str(blocked.failure)


@pytest.mark.parametrize(
    ("tasks", "options", "reason", "words"),
    [
        (
            {
                "a": [Zone(zone="x", steps=[WAITS[0], Zone(zone="y", steps=[])])],
                "b": [Zone(zone="y", steps=[WAITS[0], Zone(zone="x", steps=[])])],
            },
            {},
            RunReason.DEADLOCK,
            ["'a' waits for the zone 'y' of 'b'", "'b' waits for the zone 'x' of 'a'"],
        ),
        (
            {
                "a": [WaitFor(signal="p"), Set(signal="q")],
                "b": [WaitFor(signal="q"), Set(signal="p")],
            },
            {},
            RunReason.DEADLOCK,
            ["'p'", "'b'"],
        ),
        ({"a": [WaitFor(signal="p")]}, {"signals": {"p": 1}}, RunReason.NEVER, ["'p'"]),
        (
            {"a": [WaitFor(signal="p", timeout=2.0)], "b": [Wait(seconds=9.0)]},
            {"signals": {"p": False}},
            RunReason.TIMEOUT,
            ["a[0] at 2 s", "'p'"],
        ),
        ({"a": [Wait(seconds=5000.0)]}, {}, RunReason.TIMEOUT, ["3600"]),
        (
            {"a": [Repeat(count=9, steps=[Repeat(count=200_000, steps=WAITS)])]},
            {},
            RunReason.TIMEOUT,
            ["3600"],
        ),
        (
            {ROBOT: [PTP(to=above(5.0, 0.0, 0.0), frame=TOOL)]},
            {},
            RunReason.OUT_OF_REACH,
            ["irb2400[0]", "irb2400/tool0"],
        ),
        ({ROBOT: [PTP(to=[9.0] * 6)]}, {}, RunReason.LIMITS, ["'irb2400/joint_3'"]),
        (
            {ROBOT: [PTP(to=READY), Linear(to=above(3, 0, 1), frame=TOOL)]},
            {},
            None,
            ["irb2400[1]"],
        ),
        ({"a": [PTP(to=[0.0])]}, {}, RunReason.LIMITS, ["moves no joint"]),
        ({"a": [Grip(part="box", by=TOOL)]}, {}, RunReason.NOT_THERE, ["'box'", "m "]),
        (
            {"a": [Grip(part="box", by=TOOL)]},
            {"absent": ["box"]},
            RunReason.NOT_THERE,
            ["absent"],
        ),
        (
            {"a": [Grip(part="box", by=TOOL, within=9.0), Grip(part="box", by=TOOL)]},
            {},
            RunReason.TAKEN,
            ["Release(part='box'"],
        ),
        ({"a": [Release(part="box")]}, {}, RunReason.NOT_HELD, ["'box'"]),
        ({"a": [Appear(part="box")]}, {}, RunReason.TAKEN, ["there already"]),
        ({"a": [Leave(part="box")] * 2}, {}, RunReason.NOT_THERE, ["absent"]),
    ],
)
def test_what_cannot_be_done_is_named(
    cell: arm.Cell,
    tasks: Any,
    options: Any,
    reason: RunReason | None,
    words: list[str],
):
    timeline = run(cell, tasks, **options)
    assert not timeline.success
    if reason is not None:
        assert timeline.reason == reason, timeline.failure
    for word in words:
        assert word in str(timeline.failure)
    assert timeline.duration == timeline.failure.time
    timeline.state(timeline.duration)


@pytest.mark.parametrize(
    ("tasks", "options", "error", "words"),
    [
        ({"a": [Drive(joint="none", speed=1.0)]}, {}, UnknownName, r"a\[0\]: .*none"),
        ({"a": [Grip(part="bax", by=TOOL)]}, {}, UnknownName, "box"),
        ({"a": [Grip(part="box", by="bax")]}, {}, UnknownName, "bax"),
        ({"a": [Leave(part="table")]}, {}, StateError, "table"),
        ({ROBOT: [PTP(to=[0.0])]}, {}, ModelError, "6 joints"),
        ({ROBOT: [PTP(to="none")]}, {}, UnknownName, "none"),
        (
            {"a": [PTP(to=READY)], "b": []},
            {"joints": {"a": ["irb2400/joint_1"], "b": ["irb2400/joint_1"]}},
            ModelError,
            "both move",
        ),
        (
            {"belt": [Drive(joint="belt/carrier", speed=1.0)]},
            {"joints": {"belt": ["belt/carrier"]}},
            ModelError,
            "driven",
        ),
    ],
)
def test_programs_that_do_not_fit_a_cell(
    cell: arm.Cell, tasks: Any, options: Any, error: type[Exception], words: str
):
    with pytest.raises(error, match=words):
        run(cell, tasks, **options)


def test_accelerations_are_needed(cell: arm.Cell):
    program = arm.Program({ROBOT: [PTP(to=READY)]})
    with pytest.raises(ModelError, match="acceleration"):
        cell.run(program)
    by_name = dict.fromkeys(cell.joint_names[:6], 5.0)
    assert cell.run(program, acceleration=by_name).success
    with pytest.raises(ModelError, match="acceleration= is above 0"):
        cell.run(program, acceleration=-1.0)
    with pytest.raises(ModelError, match=r"arm\.Program"):
        cell.run([PTP(to=READY)])  # type: ignore[arg-type]


def test_hand_over_between_grippers(cell: arm.Cell):
    timeline = run(
        cell,
        {
            ROBOT: [
                Grip(part="box", by=TOOL, within=9.0),
                Release(part="box", onto="irb2400/link_3"),
                Release(part="box", onto="belt/carrier"),
                Drive(joint="belt/carrier", speed=0.5),
                Wait(seconds=2.0),
                Drive(joint="belt/carrier", speed=0.0),
                Wait(seconds=2.0),
            ]
        },
    )
    assert timeline.success, timeline.failure
    assert timeline.state(0.0).attachments == {"box": "belt/carrier"}
    moved = timeline.at(4.0).q - timeline.at(0.0).q
    assert moved[6] == pytest.approx(1.0)


def test_rates_are_marked_against_limits_of_the_run(cell: arm.Cell):
    home = np.asarray(cell.home.q[:6])
    joint = cell.joint_names[0]
    fastest = 2.0 * float(cell.velocity_limits[0])
    step = PTP(to=home + np.array([2.0, 0, 0, 0, 0, 0]))
    program = arm.Program({ROBOT: [step]})
    timeline = cell.run(program, velocity={joint: fastest}, acceleration=50.0)
    assert timeline.at(0.5 * timeline.duration).qd[0] == pytest.approx(fastest)
    assert not [mark for mark in timeline.marks() if "rate" in mark.what]
    slower = replace(timeline.recording, velocity=0.5 * timeline.recording.velocity)
    marks = replace(timeline, recording=slower).marks()
    (mark,) = (mark for mark in marks if "rate" in mark.what)
    assert mark.what.startswith(f"the rate of '{joint}' is {0.5 * fastest:.4g} beyond")


def test_what_no_joint_of_a_task_moves_is_refused(cell: arm.Cell):
    # The message of inverse kinematics says to pass a state, which programs have not.
    for frame in ("box/body", "world", "belt/bed"):
        program = arm.Program({ROBOT: [PTP(to=np.eye(4), frame=frame)]})
        with pytest.raises(ModelError, match="after a Grip") as raised:
            cell.run(program, acceleration=8.0)
        assert "irb2400[0] at 0 s: no joint of the task 'irb2400'" in str(raised.value)
        assert "state" not in str(raised.value)
