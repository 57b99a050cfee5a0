"""Motions: derivatives, operations, files, states on the way, and who takes them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.errors import (
    FormatError,
    ModelError,
    ShapeError,
    StateError,
    UnknownName,
)
from armillary.trajectories.curve import PathCurve
from armillary.trajectories.motion_parts import bounded_motion
from armillary.view.motion import motion_of


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    return arm.example("ur5e_on_oval")


@pytest.fixture(scope="module")
def motion(cell: arm.Cell) -> arm.Motion:
    rng = np.random.default_rng(0)
    path = np.cumsum(rng.normal(size=(5, 7)) * 0.3, axis=0)
    return cell.time_path(path, acceleration=8.0).motion()


def test_derivatives_are_slopes(motion: arm.Motion):
    t = np.random.default_rng(1).uniform(0.01, motion.duration - 0.01, 200)
    errors: list[list[float]] = []
    for h in (1e-4, 5e-5):
        before, here, after = (motion.at(t + step) for step in (-h, 0.0, h))
        errors.append(
            [
                float(np.median(np.abs((b - a) / (2.0 * h) - slope)))
                for a, b, slope in zip(before[1:4], after[1:4], here[2:], strict=True)
            ]
        )
    coarse, fine = np.array(errors)
    assert (fine < 0.3 * coarse + 1e-7).all()  # as h squared


def test_it_follows_the_curve(cell: arm.Cell):
    path = np.cumsum(np.random.default_rng(2).normal(size=(4, 7)), axis=0)
    timed = cell.time_path(path, acceleration=8.0)
    motion = timed.motion()
    assert motion.times == pytest.approx(timed.time)
    parts = (timed.parameter - timed.curve.at[0]) / timed.curve.at[-1]
    q = timed.curve.evaluate((), _knot_parts(timed.curve, parts * timed.curve.at[-1]))
    assert motion.q == pytest.approx(q[0], abs=1e-12)
    assert motion.qd == pytest.approx(q[1] * timed.speed[:, None], abs=1e-9)


def _knot_parts(curve: PathCurve, s: Any) -> Any:
    at = curve.at
    knot = np.clip(np.searchsorted(at, s, side="right") - 1, 0, len(at) - 2)
    return knot + (s - at[knot]) / np.diff(at)[knot]


def test_numbers_and_arrays_agree(motion: arm.Motion):
    times = np.concatenate([motion.times, [-1.0, motion.duration + 1.0, 0.123]])
    many = motion.at(times.reshape(-1, 1))
    assert many.q.shape == (len(times), 1, 7)
    for k, time in enumerate(times.tolist()):
        one = motion.at(time)
        for a, b in zip(one[1:], many[1:], strict=True):
            assert a == pytest.approx(b[k, 0], rel=1e-12, abs=1e-9)
    assert np.isnan(motion.at([np.nan, 0.1]).q[0]).all()
    with pytest.raises(ShapeError, match="time"):
        motion.at("soon")  # type: ignore[arg-type]


def test_samples(motion: arm.Motion):
    by_rate, by_step = motion.sampled(rate=100.0), motion.sampled(dt=0.01)
    assert by_rate.time == pytest.approx(by_step.time)
    assert by_rate.time[-1] == motion.duration
    assert len(motion.sampled(count=11).time) == 11
    for bad in ({}, {"rate": 1.0, "dt": 1.0}, {"rate": 0.0}, {"dt": -1.0}):
        with pytest.raises(ModelError):
            motion.sampled(**bad)
    with pytest.raises(ModelError, match="count"):
        motion.sampled(count=1)


def test_backwards(motion: arm.Motion):
    t = np.linspace(0.0, motion.duration, 301)
    there, back = motion.at(t), motion.reversed().at(motion.duration - t)
    for sign, a, b in zip((1, -1, 1), there[1:4], back[1:4], strict=True):
        assert sign * a[1:-1] == pytest.approx(b[1:-1], abs=1e-9)
    again = motion.reversed().reversed()
    assert again.at(t).q == pytest.approx(there.q, abs=1e-12)


def test_slower(motion: arm.Motion):
    slow = motion.marked("half", 0.5 * motion.duration).stretched(3.0 * motion.duration)
    assert slow.duration == 3.0 * motion.duration
    assert slow.markers[0].time == pytest.approx(0.5 * slow.duration)
    t = np.linspace(0.0, motion.duration, 101)[1:-1]
    for power, a, b in zip(
        range(4), motion.at(t)[1:], slow.at(3.0 * t)[1:], strict=True
    ):
        assert b == pytest.approx(a / 3.0**power, rel=1e-6, abs=1e-9)
    with pytest.raises(ModelError, match="shortest time within its limits"):
        motion.stretched(0.5 * motion.duration)
    for bad in (0.0, np.nan, np.inf, "long"):
        with pytest.raises(ModelError, match="duration"):
            motion.stretched(bad)  # type: ignore[arg-type]


def test_one_after_another(motion: arm.Motion):
    back = motion.reversed()
    both = motion.then(back)
    assert both.duration == pytest.approx(2.0 * motion.duration)
    waits = motion.marked("end", motion.duration).then(
        back.marked("go", 0.0), pause=2.0
    )
    assert waits.duration == pytest.approx(both.duration + 2.0)
    assert [m.time for m in waits.markers] == pytest.approx(
        [motion.duration, motion.duration + 2.0]
    )
    assert not waits.at(motion.duration + 1.0).qd.any()
    assert waits.at(motion.duration + 1.0).q == pytest.approx(motion.q[-1])
    assert waits.at(waits.duration).q == pytest.approx(motion.q[0])
    with pytest.raises(ModelError, match="do not meet: their positions"):
        motion.then(motion)
    with pytest.raises(ModelError, match="accelerations"):
        motion.then(motion.reversed().stretched(3.0 * motion.duration), smooth=True)
    with pytest.raises(ModelError, match="pause"):
        motion.then(back, pause=-1.0)


@pytest.mark.parametrize("ending", ["json", "npz"])
def test_files_hold_all_of_it(
    motion: arm.Motion, cell: arm.Cell, tmp_path: Path, ending: str
):
    path = tmp_path / f"motion.{ending}"
    marked = motion.marked("tool on", 0.25)
    marked.write(path)
    read = arm.Motion.read(path)
    for name in ("times", "law", "curve", "piece"):
        assert getattr(read, name).tolist() == getattr(marked, name).tolist()
    assert read.markers == marked.markers
    assert read.joint_names == marked.joint_names
    assert read.units == ("m", *["rad"] * 6)
    assert read.digest == motion.digest
    with pytest.raises(StateError, match="has no cell"):
        read.state(0.1)
    assert read.bound(cell).state(0.3) == motion.state(0.3)
    with pytest.raises(StateError, match="another content"):
        read.bound(arm.example("pan_tilt"))
    with pytest.raises(ModelError, match="rate="):
        marked.write(path, rate=10.0)


@pytest.mark.parametrize("ending", ["csv", "npy"])
def test_files_of_samples(cell: arm.Cell, tmp_path: Path, ending: str):
    # without jumps of accelerations, so that polynomials through samples are near
    path = np.array([[0.0] * 7, [0.3] * 7])
    t = np.linspace(0.0, 1.0, 40)[:, None]
    s = t**3 * (10.0 - 15.0 * t + 6.0 * t * t)
    sd, sdd = 30.0 * t**2 * (1.0 - t) ** 2, 60.0 * t * (1.0 - t) * (1.0 - 2.0 * t)
    motion = arm.Motion.through(
        t[:, 0], s * path[1], sd * path[1], sdd * path[1], start=cell.home
    )
    file = tmp_path / f"motion.{ending}"
    for rate in (None, 50.0):
        motion.write(file, rate=rate)
        read = arm.Motion.read(file).bound(cell)
        assert read.joint_names == motion.joint_names
        at = np.linspace(0.0, 1.0, 77)
        for a, b in zip(read.at(at)[1:4], motion.at(at)[1:4], strict=True):
            assert a == pytest.approx(b, abs=1e-4)
    if ending == "csv":
        head = file.read_text().splitlines()[0].split(",")
        assert head[:3] == ["time [s]", "q:track/cart [m]", "q:ur5e/shoulder_pan [rad]"]
        assert head[-1] == "qddd:ur5e/wrist_3 [rad/s^3]"


def test_parts_that_do_not_fit():
    parts = {"times": [0.0, 1.0], "law": np.zeros((1, 6)), "piece": [0]}
    parts |= {"curve": np.zeros((1, 6, 2)), "joint_names": ()}
    unnamed = arm.Motion(**parts)
    for piece in (-1, 1):
        with pytest.raises(ModelError, match="another piece"):
            arm.Motion(**{**parts, "piece": [piece]})
    for name, value in (("times", [0.0]), ("law", np.zeros((2, 6))), ("piece", [])):
        with pytest.raises(ShapeError, match="has times of shape"):
            arm.Motion(**{**parts, name: value})
    three = arm.Motion(**{**parts, "curve": np.zeros((1, 6, 3))})
    with pytest.raises(ShapeError, match="have 2 and 3"):
        unnamed.then(three)


def test_faulty_files(motion: arm.Motion, tmp_path: Path):
    path = tmp_path / "motion.json"
    motion.write(path)
    whole = json.loads(path.read_text())
    for change in (
        {"kind": "song"},
        {"times": whole["times"][:-1]},
        {"times": [float(len(whole["times"]) - k) for k in range(len(whole["times"]))]},
        {"piece": [99] * len(whole["piece"])},
        {"curve": [[["x"]]]},
        {"joint_names": ["a"]},
        {"markers": [{"name": "x"}]},
        {"markers": [{"name": "x", "time": 1e9}]},
        {"attachments": [{"part": "x", "time": float("nan"), "by": None}]},
        {"joint_names": ["a"] * len(whole["joint_names"])},
        {"units": ["rad"]},
        {"start": 5},
    ):
        path.write_text(json.dumps({**whole, **change}))
        with pytest.raises(FormatError, match="holds no motion"):
            arm.Motion.read(path)
    for ending, text in (
        ("json", "[1]"),
        ("json", "{"),
        ("csv", "a,b\n1,2\n"),
        ("csv", ""),
        ("csv", "time [s],q:a,qd:a,qdd:a,qddd:a\n0,0,0,0,0\n0,1,0,0,0\n"),
        ("csv", "time [s],q:a,qd:a,qdd:a,qddd:a\n0,0,0,nan,0\n1,1,0,0,0\n"),
        ("npy", "no"),
        ("npz", "no"),
        ("csv", "time [s],q:a,qd:a,qdd:a,qddd:a\n0," + "1" * 200_000),
        ("npy", "\x93NUMPY\x01\0\x09\0{'descr': "),
    ):
        faulty = tmp_path / f"faulty.{ending}"
        faulty.write_text(text, "latin-1")
        with pytest.raises(FormatError, match="holds no motion"):
            arm.Motion.read(faulty)
    with pytest.raises(FormatError, match="No such file"):
        arm.Motion.read(tmp_path / "nothing.json")
    with pytest.raises(UnknownName, match="format of motions"):
        motion.write(tmp_path / "motion.txt")


def test_parts_are_gripped_on_the_way():
    cell = arm.example("oval_track_cell")
    part, tool, stand = "part", "gripper/tcp", "stand/place"
    q0 = np.array(cell.home.q)
    q1 = q0 + 0.2
    motion = cell.time_path(np.stack([q0, q1]), acceleration=2.0, velocity=1.0).motion()
    end = motion.duration
    carried = motion.gripping(part, by=tool, time=0.5 * end)
    brief = carried.releasing(part, time=0.5 * end)  # both at one instant
    assert brief.reversed().state(end).parent(part) == stand
    assert [e.by is None for e in brief.reversed().reversed().attachments] == [0, 1]
    assert carried.state(0.4 * end).parent(part) == stand
    assert carried.state(0.6 * end).parent(part) == tool
    let_go = carried.releasing(part, time=0.75 * end)
    assert let_go.state(end).parent(part) == "world"
    held = cell.home.replace(q=motion.at(0.5 * end).q).grip(part, by=tool, replace=True)
    moved = held.replace(q=motion.at(0.75 * end).q).release(part)
    (frame, *_) = [name for name in cell.frame_names if name.startswith("part/")]
    X = cell.fk(frame, state=let_go.state(end))(q1)
    assert pytest.approx(cell.fk(frame, state=moved)(q1), abs=1e-9) == X
    back = let_go.reversed()
    assert [event.by for event in back.attachments] == [tool, stand]
    assert back.state(0.3 * end).parent(part) == tool
    first = cell.fk(frame)(q0)
    last = cell.fk(frame, state=back.state(end))(q0)
    assert last == pytest.approx(first, abs=1e-9)
    for bad in (-1.0, end + 1.0, np.nan):
        with pytest.raises(ModelError, match="An instant of this motion"):
            motion.gripping(part, by=tool, time=bad)
    with pytest.raises(StateError, match="not attached"):
        carried.releasing(part, time=0.6 * end).releasing(part, time=0.7 * end)
    with pytest.raises(UnknownName):
        motion.gripping("nothing", by=tool, time=0.1)


def test_the_viewer_and_dynamics_take_it(tmp_path: Path):
    cell = arm.example("pan_tilt")
    motion = cell.time_path([[0.0, 0.0], [1.0, 0.4]], acceleration=4.0).motion()
    played = motion_of(cell.home, motion, times=None, rate=None)
    assert played.times[-1] == motion.duration
    assert played.state(3).q == pytest.approx(motion.at(float(played.times[3])).q)
    fast = motion_of(cell.home, motion, times=None, rate=200.0)
    assert len(fast.times) > 5 * len(played.times)
    along = motion.sampled(rate=50.0)
    torque = cell.inverse_dynamics()(along.q, along.qd, along.qdd)
    assert torque.shape == (len(along.time), 2)
    # what moves under these torques is the motion again, so recordings become motions
    run = cell.simulate(
        cell.home.replace(q=motion.q[0]),
        torque=lambda t, q, qd: np.zeros(2),
        dt=1e-3,
        steps=200,
    )
    made = arm.Motion.of(run)
    assert made.at(run.time).q == pytest.approx(run.q, abs=1e-12)
    assert made.at(run.time).qd == pytest.approx(run.qd, abs=1e-9)
    few = cell.time_path([[0.0], [0.5]], acceleration=4.0, joints=[cell.joint_names[1]])
    assert few.motion().state(0.2).q[0] == cell.home.q[0]


def test_samples_and_recordings_become_motions(motion: arm.Motion, cell: arm.Cell):
    samples = motion.sampled(rate=2000.0)
    made = arm.Motion.of(samples, start=cell.home)
    assert arm.Motion.of(made) is made
    t = np.linspace(0.0, motion.duration, 57)
    assert made.at(t).q == pytest.approx(motion.at(t).q, abs=1e-5)
    with pytest.raises(ShapeError, match="is made of"):
        arm.Motion.of(3)
    with pytest.raises(ShapeError, match="choose one"):
        arm.Motion.of(samples._replace(q=samples.q[None]))
    with pytest.raises(ModelError, match="ascend"):
        arm.Motion.through([0.0, 0.0], np.zeros((2, 7)), np.zeros((2, 7)))
    with pytest.raises(ModelError, match="not finite"):
        arm.Motion.through([0.0, np.nan], np.zeros((2, 7)), np.zeros((2, 7)))
    with pytest.raises(ShapeError, match="two samples"):
        arm.Motion.through([0.0], np.zeros((1, 7)), np.zeros((1, 7)))
    cubic = arm.Motion.through([0.0, 2.0], np.eye(2), np.zeros((2, 2)))
    assert cubic.at(1.0).q == pytest.approx([0.5, 0.5])


def test_pickles_and_repr(motion: arm.Motion):
    motion.at(0.1)
    again = pickle.loads(pickle.dumps(motion))
    assert again.at(0.3).q.tolist() == motion.at(0.3).q.tolist()
    assert repr(motion) == f"<Motion: {motion.duration:.6g} s, 7 joints>"
    with pytest.raises(ValueError, match="read-only"):
        motion.q[0] = 1.0


def test_polynomials_are_bounded_in_intervals():
    """Positions, rates and their changes of random motions beside dense samples."""
    rng = np.random.default_rng(3)
    times = np.array([0.0, 0.7, 1.9, 2.4])
    law = rng.normal(size=(3, 6)) * 0.5 ** np.arange(6)
    curve = rng.normal(size=(2, 6, 4))
    piece = np.array([0, 1, 0])
    motion = arm.Motion(times=times, law=law, curve=curve, piece=piece, joint_names=())
    middle = np.array([0.2, 0.65, 1.0, 1.85, 2.2, 2.3999])
    half = np.array([0.2, 0.05, 0.25, 1e-6, 0.19, 1e-4])
    q, reach, rate, spread = bounded_motion(times, law, curve, piece, middle, half)
    inner = middle[:, None] + half[:, None] * np.linspace(-1.0, 1.0, 401)[1:-1]
    found = motion.at(inner)
    for values, about, most in ((found.q, q, reach), (found.qd, rate, spread)):
        away = np.abs(values - about[:, None]).max(axis=1)
        assert (away <= most + 1e-12).all()
    # Over short intervals little is lost.
    short = half < 1e-3
    away = np.abs(found.q - q[:, None]).max(axis=1)
    assert (reach[short] <= 1.01 * away[short] / 0.995).all()
