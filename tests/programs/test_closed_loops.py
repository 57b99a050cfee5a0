"""Programs of robots with closed loops, and of robots that grip what they follow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.programs.steps import PTP, Appear, Drive, Grip, Linear, Wait, WaitFor

SIZE, SPEED, FROM = 0.05, 0.3, -0.9
DOWN = arm.Pose.rotation_x(np.pi)
FAST: Any = {"velocity": 12.0, "acceleration": 150.0}


def above(height: float) -> arm.Pose:
    return arm.Pose.translation(0, 0, SIZE / 2 + height) @ DOWN


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    (robot,) = arm.example("delta").manipulators
    belt = arm.Manipulator(
        name="belt",
        links=[
            arm.Link(name="bed"),
            arm.Link(
                name="carrier", parent="bed", joint=arm.joints.Prismatic(axis=(1, 0, 0))
            ),
        ],
    )
    shape = arm.shapes.Box(size=(SIZE, SIZE, SIZE))
    part = arm.Manipulator(
        name="part", links=[arm.Link(name="body", collisions=[shape])]
    )
    return arm.Cell(name="delta at a belt", manipulators=[robot, belt, part])


def program(beam: float = -0.5) -> arm.Program:
    across = arm.shapes.Box(
        size=(0.002, 0.4, 0.002), pose=arm.Pose.translation(beam, 0, -1.074)
    )
    at = arm.Pose.translation(FROM, 0.02, -1.074)
    body: Any = {"frame": "flange", "relative_to": "part/body"}
    return arm.Program(
        {
            "source": [
                Drive(joint="belt/carrier", speed=SPEED),
                Appear(part="part", at=at, on="belt/carrier"),
            ],
            "delta": [
                WaitFor(signal="beam"),
                PTP(to=above(0.05), **body, label="meet"),
                Linear(to=above(0.001), **body),
                Grip(part="part", by="flange", label="grip"),
                Wait(seconds=0.1, label="hold"),
                Linear(to=above(0.04), **body, label="lift"),
                PTP(to="home"),
            ],
        },
        sensors={"beam": arm.Sensor(shape=across)},
        absent=("part",),
    )


@pytest.fixture(scope="module")
def timeline(cell: arm.Cell) -> arm.Timeline:
    timeline = cell.run(program(), **FAST)
    assert timeline.success, timeline.failure
    return timeline


def test_a_beam_beside_closed_loops_is_reached_in_time(timeline: arm.Timeline):
    on, off = (change.time for change in timeline.signals[1:])
    # Its edge is 1 mm before its middle, the part's half its size ahead; while the belt
    # gains speed it loses half of that time.
    lost = 0.5 * SPEED / FAST["acceleration"]
    assert on == pytest.approx((0.4 - 0.001 - SIZE / 2) / SPEED + lost, abs=1e-9)
    assert off > timeline.span("meet").start


def test_a_robot_goes_on_with_the_belt_after_it_grips(
    cell: arm.Cell, timeline: arm.Timeline
):
    hold = timeline.span("hold")
    times = np.linspace(hold.start, hold.end, 9)[1:-1]
    x = cell.fk("flange")(timeline.at(times).q)[:, 0, 3]
    speeds = np.diff(x) / np.diff(times)
    np.testing.assert_allclose(speeds, SPEED, atol=1e-5)


def test_what_closed_loops_carry_is_proven(cell: arm.Cell):
    # A post beside the belt, which the part passes in the robot's grip, and near enough
    # to the way of the robot's flange to be nearest there.
    post = arm.Manipulator(
        name="post",
        links=[arm.Link(name="body", collisions=[arm.shapes.Sphere(radius=0.02)])],
    )
    place = arm.Pose.translation(-0.12, 0.12, -0.95)
    mount = arm.Mount(manipulator="post", pose=place)
    beside = cell.replace(
        manipulators=[*cell.manipulators, post], mounts=[*cell.mounts, mount]
    )
    timeline = beside.run(program(), **FAST)
    assert timeline.success, timeline.failure
    found = timeline.clearance()
    assert (found.sampled, found.pair) == ((), ("part/body", "post/body"))
    assert found.time > timeline.span("grip").end
    times = np.linspace(timeline.span("grip").end, timeline.duration, 20_001)
    check = timeline.recording.check(timeline.duration)
    dense = float(check.clearance(timeline.at(times).q).min())
    assert dense - 2e-5 <= found.proven <= found.distance <= dense + 1e-9


def test_a_part_that_closed_loops_carry_grazes_a_sensor(
    cell: arm.Cell, timeline: arm.Timeline
):
    """Its side touches a ball for less than 2 ms, at some metres a second."""
    grip, end = timeline.span("grip").end, timeline.duration
    times = np.linspace(grip, end, 400_001)
    X = cell.fk("flange")(timeline.at(times).q)[:, :3, 3]
    middle = X - X[0] + cell.pose("part/body", timeline.state(grip))[:3, 3]
    # Where the front of the part is at -0.2, 0.2 mm within its side.
    first = int(np.argmax(middle[:, 0] + SIZE / 2 > -0.2))
    radius = 5e-4
    centre = middle[first] + [SIZE / 2, SIZE / 2 + radius - 2e-4, 0.0]
    outside = np.maximum(np.abs(middle - centre) - SIZE / 2, 0.0)
    touches = times[np.linalg.norm(outside, axis=1) <= radius]
    assert len(touches)
    assert np.ptp(touches) < 2e-3
    ball = arm.shapes.Sphere(radius=radius, pose=arm.Pose.translation(*centre))
    base = program()
    sensors = {**base.sensors, "ball": arm.Sensor(shape=ball)}
    seen = cell.run(arm.Program(base.tasks, sensors=sensors, absent=("part",)), **FAST)
    changes = [each.time for each in seen.signals if each.signal == "ball"]
    assert changes[-2:] == pytest.approx([touches[0], touches[-1]], abs=2e-6)
    assert len(changes) == 3


class Bent(arm.joints.Joint, frozen=True, kw_only=True):
    """A hinge behind gears that change their ratio at 0.4 rad."""

    unit = arm.RADIAN

    def pose(self, q: Any) -> arm.Pose:
        angle = np.where(q < 0.4, q, 2.0 * q - 0.4)
        c, s = np.cos(angle), np.sin(angle)
        return arm.Pose(((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)), (0.0, 0.0, 0.0))


@pytest.mark.parametrize(("end", "is_proven"), [(0.39, True), (0.7, False)])
def test_loops_whose_joints_have_corners_are_sampled_and_named(
    end: float, is_proven: bool
):
    ball = arm.shapes.Sphere(radius=0.02)
    pin = arm.Frame(name="pin", pose=arm.Pose.translation(0.2, 0, 0))
    links = [
        arm.Link(name="base"),
        arm.Link(name="crank", parent="base", joint=Bent(), frames=[pin]),
        arm.Link(
            name="slider",
            parent="base",
            joint=arm.joints.Prismatic(axis=(1, 0, 0)),
            collisions=[ball],
            passive=True,
        ),
    ]
    home = arm.Posture(name="home", joints=["crank", "slider"], q=[0.1, 0.7])
    press = arm.Manipulator(
        name="press",
        links=links,
        loops=[arm.Rod("pin", "slider", length=0.5)],
        postures=[home],
        home="home",
    )
    post = arm.Manipulator(
        name="post", links=[arm.Link(name="body", collisions=[ball])]
    )
    mount = arm.Mount(manipulator="post", pose=arm.Pose.translation(0.8, 0, 0))
    cell = arm.Cell(manipulators=[press, post], mounts=[mount])
    timeline = cell.run(arm.Program({"press": [PTP(to=[end])]}), **FAST)
    assert timeline.success, timeline.failure
    found = timeline.clearance()
    assert found.is_free == is_proven
    assert found.sampled == (() if is_proven else (("post/body", "press/slider"),))
    assert ("but for 1 pairs, which were sampled" in repr(found)) != is_proven


def test_a_line_begins_where_the_tool_is(cell: arm.Cell, timeline: arm.Timeline):
    lift = timeline.span("lift")
    fk = cell.fk("flange")
    X0, X1 = (fk(timeline.at(t).q)[:3, 3] for t in (lift.start, lift.end))
    way = SPEED * (lift.end - lift.start)
    np.testing.assert_allclose(X1 - X0, [way, 0.0, 0.039], atol=1e-6)


def test_rates_never_jump_while_a_belt_is_followed(timeline: arm.Timeline):
    start, end = timeline.span("meet").start, timeline.duration
    times = np.linspace(start, end, 4000)
    rates = timeline.at(times).qd
    jumps = np.abs(np.diff(rates, axis=0)).max() / (times[1] - times[0])
    assert jumps < 1.2 * FAST["acceleration"]


def test_runs_are_equal_after_save_and_load(
    cell: arm.Cell,
    timeline: arm.Timeline,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    arm.save(cell, tmp_path / "lab.cell.json")
    program().write(tmp_path / "work.json")
    loaded = arm.load(tmp_path / "lab.cell.json")
    work = arm.Program.read(tmp_path / "work.json")
    digests = {digest(timeline)}
    for threads in ("1", "2"):
        monkeypatch.setenv("ARMILLARY_THREADS", threads)
        fresh = arm.load(tmp_path / "lab.cell.json")
        digests |= {digest(fresh.run(work, **FAST)), digest(loaded.run(work, **FAST))}
    assert len(digests) == 1


def digest(timeline: arm.Timeline) -> str:
    """All numbers of a timeline, to the last bit."""
    times = np.linspace(0.0, timeline.duration, 500)
    motions = [part.tobytes().hex() for part in timeline.at(times)]
    spans = [
        (s.task, s.name, s.start.hex(), s.end.hex(), s.waited_for, s.cause)
        for s in timeline.spans
    ]
    signals = [(c.signal, c.time.hex(), c.value) for c in timeline.signals]
    return json.dumps([motions, spans, signals])
