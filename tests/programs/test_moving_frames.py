"""Conveyors and turntables: sensors, motions that meet them, and follow them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.programs.ending import Impossible, RunReason
from armillary.programs.following import FollowedWay
from armillary.programs.mover import PEAK, Mover
from armillary.programs.steps import (
    PTP,
    Appear,
    Drive,
    Grip,
    Leave,
    Linear,
    Release,
    Set,
    Wait,
    WaitFor,
)
from armillary.programs.tracks import JointValues
from belt_cell import HEIGHT, READY, SIDE, TOOL, above, place
from controllers import play_krl
from rotations import rotation

ROBOT = "irb2400"
FAST = {"acceleration": 8.0}
SPEED = 0.25
ON_BOX = arm.Pose.translation(0, 0, SIDE / 2) @ arm.Pose.rotation_y(np.pi)
ABOVE_BOX = arm.Pose.translation(0, 0, 0.15) @ arm.Pose.rotation_y(np.pi)


def beam(y: float) -> arm.Sensor:
    """A light barrier across the conveyor."""
    where = arm.Pose.translation(0.9, y, HEIGHT + SIDE / 2)
    return arm.Sensor(shape=arm.shapes.Box(size=(0.4, 0.002, 0.002), pose=where))


def picking(y: float, *more: Any, speed: float = SPEED) -> arm.Program:
    """A box comes along the conveyor and is taken once it is at a beam."""
    return arm.Program(
        {
            "source": [
                Drive(joint="belt/carrier", speed=speed),
                Appear(part="box", at=place(0.9, -1.5), on="belt/carrier"),
                WaitFor(signal="beam"),
                Set(signal="come"),
                *more,
            ],
            ROBOT: [
                PTP(to=READY),
                WaitFor(signal="come"),
                PTP(to=ABOVE_BOX, frame=TOOL, relative_to="box/body", label="meet"),
                Linear(to=ON_BOX, frame=TOOL, relative_to="box/body", label="down"),
                Wait(seconds=0.3),
                Grip(part="box", by=TOOL),
                PTP(to=READY, label="away"),
            ],
        },
        sensors={"beam": beam(y)},
        absent=["box"],
    )


def test_a_beam_farther_on_is_reached_later(cell: arm.Cell):
    ends = []
    for y in (-0.5, -0.25):
        timeline = cell.run(picking(y), **FAST)
        assert timeline.success, timeline.failure
        (seen,) = [c.time for c in timeline.signals if c.signal == "beam" and c.value]
        way = y - 0.001 - (-1.5 + SIDE / 2)
        ramp = SPEED / FAST["acceleration"]
        assert seen == pytest.approx(way / SPEED + 0.5 * ramp, abs=1e-12)
        (gone,) = [
            c.time
            for c in timeline.signals
            if c.signal == "beam" and not c.value and c.time
        ]
        assert gone - seen == pytest.approx((SIDE + 0.002) / SPEED, abs=1e-12)
        ends.append(timeline.span("Set").start)
    assert ends[1] - ends[0] == pytest.approx(1.0, abs=1e-12)


def test_the_tool_meets_and_follows_a_box(cell: arm.Cell):
    timeline = cell.run(picking(-0.5), **FAST)
    assert timeline.success, timeline.failure
    down, away = timeline.span("down"), timeline.span("away")
    fk = cell.fk(TOOL, relative_to="box/body", state=timeline.state(down.end))
    times = np.linspace(down.end, away.start - 1e-9, 200)
    poses = fk(timeline.at(times).q)
    assert np.abs(poses - np.asarray(ON_BOX.matrix())).max() < 1e-6
    # On the way down it is on the line, above the box.
    times = np.linspace(down.start, down.end, 200)
    on_way = fk(timeline.at(times).q)
    assert np.abs(on_way[:, :2, 3]).max() < 1e-6
    assert (np.diff(on_way[:, 2, 3]) < 1e-9).all()
    # Joints never jump, and keep their limits.
    t = np.linspace(0.0, timeline.duration, 20_001)
    values = timeline.at(t)
    h = t[1] - t[0]
    mean = 0.5 * (values.qd[1:] + values.qd[:-1])
    assert np.abs(np.diff(values.q, axis=0) - h * mean).max() < 1e-6
    assert (np.abs(values.qd[:, :6]) <= cell.velocity_limits[:6] + 1e-3).all()
    assert np.abs(values.qdd[:, :6]).max() <= 8.0 * 1.01
    # The box is on the conveyor until it is gripped, and in the hand afterwards.
    before = timeline.state(timeline.span("Grip").start - 1e-6)
    after = timeline.state(timeline.duration)
    assert before.attachments == {"box": "belt/carrier"}
    assert after.attachments == {"box": TOOL}


def test_a_conveyor_that_stops_is_followed(cell: arm.Cell):
    for delay in (0.1, 1.0, 1.6):  # while it is met, on the way down, while waiting
        stop = Drive(joint="belt/carrier", speed=0.0, acceleration=2.0)
        timeline = cell.run(picking(-0.5, Wait(seconds=delay), stop), **FAST)
        assert timeline.success, (delay, timeline.failure)
        away = timeline.span("away")
        state = timeline.state(away.start - 1e-6)
        pose = cell.fk(TOOL, relative_to="box/body", state=state)(state.q)
        assert np.abs(pose - np.asarray(ON_BOX.matrix())).max() < 1e-5


def test_conveyors_that_outrun_the_robot(cell: arm.Cell):
    timeline = cell.run(picking(-0.5, speed=9.0), **FAST)
    assert not timeline.success
    # The box is in reach at first, so that it is not the reach that is short.
    assert timeline.reason == RunReason.OUTRUN
    assert timeline.failure is not None
    assert timeline.failure.step == f"{ROBOT}[2]"
    assert "no motion of up to 32 s" in str(timeline.failure)


def test_a_frame_is_met_where_one_polynomial_is_beyond_limits():
    """It was refused: all polynomials of degree 5 swing beyond limits of positions."""
    (robot,) = arm.example("irb2400").manipulators
    plate = arm.Link(
        name="plate", parent="foot", joint=arm.joints.Revolute(axis=(0, 0, 1))
    )
    table = arm.Manipulator(name="table", links=[arm.Link(name="foot"), plate])
    cell = arm.Cell(manipulators=[robot, table])
    start = cell.home.place("table", arm.Pose.translation(1.0, 0.0, 0.5))
    above = arm.Pose.translation(1.2, 0.0, 0.75) @ arm.Pose.rotation_y(np.pi)
    spin = "table/plate"
    tasks: Any = {
        "turn": [
            Drive(joint=spin, speed=0.5),
            Wait(seconds=3.0),
            Drive(joint=spin, speed=0.2),
        ],
        ROBOT: [Wait(seconds=0.5), PTP(to=above, frame=TOOL, relative_to=spin)],
    }
    timeline = cell.run(arm.Program(tasks), start, acceleration=8.0)
    assert timeline.success, timeline.failure
    met, end = timeline.span("PTP").end, timeline.duration
    values = timeline.at(np.linspace(0.0, end, 20_001))
    lower, upper = (np.asarray(limits)[:6] for limits in cell.limits)
    assert (values.q[:, :6] >= lower - 1e-8).all()
    assert (values.q[:, :6] <= upper + 1e-8).all()
    assert (np.abs(values.qd[:, :6]) <= cell.velocity_limits[:6] * (1 + 1e-5)).all()
    assert np.abs(values.qdd[:, :6]).max() <= 8.0 * 1.01
    # The tool stands still relative to the plate from then on.
    fk = cell.fk(TOOL, relative_to=spin, state=start)
    poses = fk(timeline.at(np.linspace(met, end, 200)).q)
    assert np.abs(poses - np.asarray(above.matrix())).max() < 1e-5


def test_lines_in_a_moving_frame_need_a_robot_that_follows(cell: arm.Cell):
    program = arm.Program(
        {
            "source": [
                Appear(part="box", at=place(0.9, -0.5), on="belt/carrier"),
                Drive(joint="belt/carrier", speed=0.1),
            ],
            ROBOT: [Linear(to=ON_BOX, frame=TOOL, relative_to="box/body")],
        },
        absent=["box"],
    )
    timeline = cell.run(program, **FAST)
    assert timeline.reason == RunReason.OUTRUN
    assert "PTP" in str(timeline.failure)


def test_robots_follow_after_the_end_of_their_task(cell: arm.Cell):
    # They stopped at once when their task ended and others went on.
    meet = PTP(to=ABOVE_BOX, frame=TOOL, relative_to="box/body")

    def run(seconds: float) -> arm.Timeline:
        drives = [
            Appear(part="box", at=place(0.9, -0.4), on="belt/carrier"),
            Drive(joint="belt/carrier", speed=SPEED, acceleration=1.0),
            Wait(seconds=1.5),
            Drive(joint="belt/carrier", speed=0.5 * SPEED, acceleration=1.0),
            Wait(seconds=seconds),
        ]
        tasks = {"source": drives, ROBOT: [meet]}
        return cell.run(arm.Program(tasks, absent=["box"]), **FAST)

    timeline = run(1.0)
    assert timeline.success, timeline.failure
    end, times = timeline.span("PTP").end, np.linspace(0.0, timeline.duration, 20_001)
    assert end < 1.0
    values, h = timeline.at(times), times[1]
    mean = 0.5 * (values.qd[1:] + values.qd[:-1])
    assert np.abs(np.diff(values.q, axis=0) - h * mean).max() < 1e-7
    fk = cell.fk(TOOL, relative_to="box/body", state=timeline.state(end))
    poses = fk(values.q[times >= end])
    assert np.abs(poses - np.asarray(ABOVE_BOX.matrix())).max() < 1e-5
    # It is carried out of reach in the end, which says what to do.
    failure = run(30.0).failure
    assert failure is not None and failure.task == ROBOT
    assert "let a PTP be the last step" in failure.why


def test_what_a_robot_follows_after_its_task_is_not_handed_over(
    cell: arm.Cell, tmp_path: Path
):
    tasks = {
        "source": [
            Appear(part="box", at=place(0.9, -0.4), on="belt/carrier"),
            Drive(joint="belt/carrier", speed=SPEED),
            Set(signal="come"),
            Wait(seconds=3.0),
        ],
        ROBOT: [
            PTP(to=READY),
            WaitFor(signal="come"),
            PTP(to=ABOVE_BOX, frame=TOOL, relative_to="box/body", label="meet"),
            Wait(seconds=0.7),
        ],
    }
    timeline = cell.run(arm.Program(tasks, absent=["box"]), **FAST)
    assert timeline.success, timeline.failure
    end = max(span.end for span in timeline.spans if span.task == ROBOT)
    assert end < timeline.duration - 0.5
    path = tmp_path / "meet.src"
    timeline.hand_over(ROBOT, path, tolerance=1e-4, inputs={"come": 1})
    played = play_krl(path)
    assert played.times[-1] == pytest.approx(end, abs=1e-6)
    wanted = timeline.at(played.times).q[:, :6]
    assert np.abs(played.q - wanted).max() < 1e-4


def test_a_frame_that_another_robot_moves_is_followed():
    # Its next motion was not seen until half a second later.
    (robot,) = arm.example("irb2400").manipulators
    other = robot.replace(name="leader")
    cell = arm.Cell(
        name="two",
        manipulators=[robot, other],
        mounts=[
            arm.Mount(
                manipulator="leader",
                pose=arm.Pose.translation(2.2, 0, 0) @ arm.Pose.rotation_z(np.pi),
            )
        ],
    )
    ready, turned = [0.0, 0.2, 0.3, 0.0, 1.0, 0.0], [0.3, 0.2, 0.3, 0.0, 1.0, 0.0]
    X = cell.pose("irb2400/tool0", cell.home.replace(q=[*ready, *ready]))
    L = cell.pose("leader/tool0", cell.home.replace(q=[*ready, *ready]))
    beside = np.linalg.solve(L, X)
    slow: Any = {"speed": 0.05, "acceleration": 0.1}
    leader = [
        PTP(to=ready),
        Set(signal="go"),
        PTP(to=turned, **slow),
        PTP(to=ready, **slow),
        PTP(to=turned, **slow),
    ]
    follower = [
        PTP(to=ready),
        WaitFor(signal="go"),
        Wait(seconds=0.2),
        PTP(to=beside, frame="irb2400/tool0", relative_to="leader/tool0", label="meet"),
        Wait(seconds=2.0),
    ]
    for tasks in (
        {"leader": leader, "irb2400": follower},
        {"irb2400": follower, "leader": leader},
    ):
        timeline = cell.run(arm.Program(tasks), **FAST)
        assert timeline.success, timeline.failure
        times = np.linspace(timeline.span("meet").end, timeline.duration, 500)
        fk: Any = cell.fk("irb2400/tool0", relative_to="leader/tool0")
        poses = fk(timeline.at(times).q)
        assert np.abs(poses - beside).max() < 1e-4


def test_a_part_is_put_on_a_conveyor_that_moves(cell: arm.Cell):
    # It is carried by what the robot follows, so that lines relative to it go on.
    on_belt = arm.Pose.translation(0.9, -0.2, HEIGHT + SIDE / 2 + 0.001)
    start = cell.home.place("box", place(0.2, -0.9))
    program = arm.Program(
        {
            "source": [Drive(joint="belt/carrier", speed=SPEED)],
            ROBOT: [
                PTP(to=ON_BOX, frame=TOOL, relative_to="box/body"),
                Grip(part="box", by=TOOL),
                Linear(
                    to=arm.Pose.translation(0, 0, 0.1) @ place(0.2, -0.9),
                    frame="box/body",
                ),
                PTP(
                    to=arm.Pose.translation(0, 0, 0.1) @ on_belt,
                    frame="box/body",
                    relative_to="belt/carrier",
                ),
                Linear(to=on_belt, frame="box/body", relative_to="belt/carrier"),
                Release(part="box", onto="belt/carrier"),
                Linear(to=ABOVE_BOX, frame=TOOL, relative_to="box/body", label="up"),
                Wait(seconds=0.2),
            ],
        },
    )
    timeline = cell.run(program, start, **FAST)
    assert timeline.success, timeline.failure
    up, end = timeline.span("up"), timeline.duration
    fk = cell.fk(TOOL, relative_to="box/body", state=timeline.state(end))
    on_way = fk(timeline.at(np.linspace(up.start, up.end, 100)).q)
    assert np.abs(on_way[:, :2, 3]).max() < 1e-6
    stays = fk(timeline.at(np.linspace(up.end, end, 100)).q)
    assert np.abs(stays - np.asarray(ABOVE_BOX.matrix())).max() < 1e-6
    moved = [cell.pose("box/body", timeline.state(t))[1, 3] for t in (up.start, end)]
    assert moved[1] - moved[0] == pytest.approx(SPEED * (end - up.start), abs=1e-9)


def test_drives_ramp_and_stop_at_limits(cell: arm.Cell):
    program = arm.Program(
        [
            Drive(joint="belt/carrier", speed=1.0, acceleration=2.0),
            Wait(seconds=1.0),
            Drive(joint="belt/carrier", speed=-1.0, acceleration=4.0),
            Wait(seconds=1.0),
        ]
    )
    timeline = cell.run(program)
    q = timeline.at(np.array([0.5, 1.0, 1.25, 1.5, 2.0])).q[:, 6]
    assert q == pytest.approx([0.25, 0.75, 0.875, 0.75, 0.25], abs=1e-12)
    values = timeline.at(1.5)
    assert values.qd[6] == pytest.approx(-1.0)


def test_parts_that_leave_are_not_seen(cell: arm.Cell):
    program = arm.Program(
        {
            "a": [
                Appear(part="box", at=place(0.9, -0.5)),
                Wait(seconds=1.0),
                Leave(part="box"),
                Wait(seconds=1.0),
                Appear(part="other", at=place(0.9, -0.5)),
                Wait(seconds=1.0),
            ],
        },
        sensors={"beam": beam(-0.5)},
        absent=["box", "other"],
    )
    timeline = cell.run(program)
    seen = [(c.time, c.value) for c in timeline.signals]
    assert seen == [(0.0, False), (0.0, True), (1.0, False), (2.0, True)]
    assert timeline.absent(0.5) == {"other"}
    assert timeline.absent(1.5) == {"box", "other"}


def test_a_turntable_turns_parts_past_a_sensor(cell: arm.Cell):
    table = arm.Manipulator(
        name="turntable",
        links=[
            arm.Link(name="foot"),
            arm.Link(
                name="plate", parent="foot", joint=arm.joints.Revolute(axis=(0, 0, 1))
            ),
        ],
    )
    ball = arm.Manipulator(
        name="ball",
        links=[arm.Link(name="body", collisions=[arm.shapes.Sphere(radius=0.1)])],
    )
    turning = arm.Cell(manipulators=[table, ball])
    eye = arm.shapes.Sphere(radius=0.05, pose=arm.Pose.translation(0, 1, 0))
    program = arm.Program(
        {
            "a": [
                Appear(
                    part="ball", at=arm.Pose.translation(1, 0, 0), on="turntable/plate"
                ),
                Drive(joint="turntable/plate", speed=0.5),
                Wait(seconds=20.0),
            ]
        },
        sensors={"eye": arm.Sensor(shape=eye)},
        absent=["ball"],
    )
    timeline = turning.run(program)
    # Spheres touch where the chord between their middles is the sum of their radii.
    near = 2.0 * np.arcsin(0.5 * 0.15)
    turn = 2.0 * np.pi
    angles = [np.pi / 2 - near, np.pi / 2 + near]
    angles += [angle + turn for angle in angles]
    times = [c.time for c in timeline.signals[1:]]
    expected = [angle / 0.5 for angle in angles if angle / 0.5 < 20.0]
    assert times == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("speed", [1e-6, 1e-7, 1e-9, 1e-15])
@pytest.mark.parametrize("along", [None, 1e-6])
def test_frames_and_lines_may_be_as_slow_as_they_are(
    cell: arm.Cell, speed: float, along: float | None
):
    # Below 1e-7 m/s a robot seemed to rest that follows, and was refused; lines had a
    # sample every 10 ms, however long they took.
    body = "box/body"
    program = arm.Program(
        {
            "source": [
                Drive(joint="belt/carrier", speed=speed),
                Appear(part="box", at=place(0.9, -0.4), on="belt/carrier"),
            ],
            ROBOT: [
                PTP(to=ABOVE_BOX, frame=TOOL, relative_to=body),
                Linear(to=ON_BOX, frame=TOOL, relative_to=body, speed=along),
                Grip(part="box", by=TOOL),
            ],
        },
        absent=["box"],
    )
    timeline = cell.run(program, timeout=1e9, **FAST)
    assert timeline.success, timeline.failure
    line = timeline.span("Linear")
    state = timeline.state(line.end)
    X = cell.fk(TOOL, relative_to=body, state=state)
    times = np.linspace(line.start, line.end, 101)
    poses = X(timeline.at(times).q)
    assert np.abs(poses[-1] - np.asarray(ON_BOX.matrix())).max() < 1e-8
    assert np.abs(poses[:, :2, 3]).max() < 1e-6
    if along:
        way = 0.15 - SIDE / 2
        assert line.end - line.start == pytest.approx(PEAK * way / along, rel=1e-9)
        tracks = {track.name: track for track in timeline.recording.tracks}
        pieces = [len(piece.motion.law) for piece in tracks[ROBOT].pieces]
        assert max(pieces) <= 4096


def test_no_longer_way_is_tried_where_the_frame_itself_is_too_fast(
    monkeypatch: pytest.MonkeyPatch,
):
    # Each of 24 trials could take 50 times as long as the one before.
    tried: list[float] = []

    def motion(way: FollowedWay, values: Any, start: float, end: float) -> Any:
        tried.append(end - start)
        return None, 1.5

    monkeypatch.setattr(FollowedWay, "motion", motion)
    monkeypatch.setattr(FollowedWay, "_shortest", lambda way, values: 0.5)
    nothing: Any = None
    way = FollowedWay(
        *(nothing, nothing, 0.0, nothing, 0.1),
        key=(),
        speed=np.inf,
        acceleration=np.inf,
    )
    with pytest.raises(Impossible, match="faster"):
        way.slowed(nothing)
    assert max(tried) <= 1000.0 * tried[0]


def test_a_conveyor_that_stops_at_once_starts_again_from_rest():
    """It began with the speed that it had before it stopped."""
    bed, carrier = arm.Link(name="bed"), arm.joints.Prismatic(axis=(0.0, 1.0, 0.0))
    links = [bed, arm.Link(name="carrier", parent="bed", joint=carrier)]
    cell = arm.Cell(manipulators=[arm.Manipulator(name="belt", links=links)])
    program = arm.Program(
        {
            "source": [
                Drive(joint="belt/carrier", speed=1.0),
                Wait(seconds=0.5),
                Drive(joint="belt/carrier", speed=0.0),
                Drive(joint="belt/carrier", speed=-2.0, acceleration=4.0),
                Wait(seconds=1.0),
            ]
        }
    )
    timeline = cell.run(program)
    assert timeline.success, timeline.failure
    # 0.5 m, then -a t^2 / 2 for half a second, and half a second of -2 m/s.
    q = timeline.at([0.5, 0.6, 1.0, 1.5]).q[:, 0]
    assert q == pytest.approx([0.5, 0.48, 0.0, -1.0], abs=1e-12)


def test_a_redundant_arm_follows_a_turntable_that_it_met():
    """It was refused: joints met it at other rates than those that follow it have."""
    rail = arm.example("ur10_on_rail")
    plate = arm.Link(
        name="plate", parent="foot", joint=arm.joints.Revolute(axis=(0, 0, 1))
    )
    table = arm.Manipulator(name="table", links=[arm.Link(name="foot"), plate])
    cell = arm.Cell(manipulators=[*rail.manipulators, table], mounts=rail.mounts)
    start = cell.home.place("table", arm.Pose.translation(0.9, 0.3, 0.3))
    spin = "table/plate"
    high, low = above(0.3, 0.0, 0.29), above(0.3, 0.0, 0.07)
    tasks: Any = {
        "turn": [
            Drive(joint=spin, speed=0.4),
            Wait(seconds=1.0),
            Drive(joint=spin, speed=-0.3, acceleration=1.0),
        ],
        "arm": [
            Wait(seconds=0.2),
            PTP(to=high, frame="tool0", relative_to=spin, label="meet"),
            Linear(to=low, frame="tool0", relative_to=spin, speed=0.2, label="down"),
            Wait(seconds=0.2, label="stay"),
        ],
    }
    program = arm.Program(tasks, joints={"arm": list(rail.joint_names)})
    timeline = cell.run(program, start, acceleration=5.0)
    assert timeline.success, timeline.failure
    values = timeline.at(np.linspace(0.0, timeline.duration, 20_001))
    n = len(rail.joint_names)
    assert np.abs(values.qdd[:, :n]).max() <= 5.0 * (1 + 1e-6)
    assert (np.abs(values.qd[:, :n]) <= cell.velocity_limits[:n] * (1 + 1e-6)).all()
    # It arrives, and stays, within 1e-9 of a pose.
    fk = cell.fk("tool0", relative_to=spin, state=start)
    down, stay = timeline.span("down"), timeline.span("stay")
    for first, last, pose in (
        (down.start, down.start, high),
        (stay.start, stay.end, low),
    ):
        poses = fk(timeline.at(np.linspace(first, last, 200)).q)
        assert np.abs(poses - np.asarray(pose.matrix())).max() < 1e-8


def test_where_a_way_is_not_followed_is_said():
    """Near its singular pose a wrist turns by half a turn within a step."""
    cell = arm.example("irb2400")
    fk, solver = cell.fk("tool0"), cell.ik("tool0")
    unlimited = np.array([[-np.inf] * 6, [np.inf] * 6])
    mover = Mover(solver, np.array(cell.limits), unlimited, unlimited)
    tilt = np.eye(4)
    tilt[:3, :3] = rotation(np.array([1e-3, 0.0, 0.0]))

    def way(s: np.ndarray) -> np.ndarray:
        Q = np.tile([0.0, 0.2, 0.1, 0.0, 0.3, 0.0], (len(s), 1))
        Q[:, 4] -= s
        return fk(Q) @ tilt

    followed = FollowedWay(
        mover,
        lambda times: np.tile(np.eye(4), (len(times), 1, 1)),
        2.0,
        way,
        0.6,
        key=(),
        speed=0.5,
        acceleration=1e9,
    )
    start = solver(way(np.zeros(1))[0], near=[0.0, 0.2, 0.1, 0.0, 0.3, 0.0]).q
    said = r"the way at [23]\.\d+ s: only by a jump .*, by \d\.\d+ of 'joint_[46]'"
    with pytest.raises(Impossible, match=said):
        followed.motion(JointValues(start, 0 * start, 0 * start), 2.0, 4.25)
