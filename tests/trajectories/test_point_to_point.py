"""Motions of limited jerk: limits hold, ends are reached, nothing simple is faster."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, ShapeError, UnknownName

pytest.importorskip("ruckig", reason="Ruckig is not installed (the extra 'ruckig')")


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    return arm.example("ur5e_on_oval")


def limits_of(rng: np.random.Generator) -> dict[str, Any]:
    velocity, acceleration, jerk = np.exp(
        rng.normal(((0.0,), (1.0,), (2.0,)), 1, (3, 7))
    )
    return {"velocity": velocity, "acceleration": acceleration, "jerk": jerk}


@pytest.mark.parametrize("kind", ["at rest", "moving", "one rests", "tiny"])
def test_limits_hold_and_ends_are_reached(cell: arm.Cell, kind: str):
    rng = np.random.default_rng(1)
    for _ in range(20):
        limits = limits_of(rng)
        q0, q1 = rng.normal(size=(2, 7)) * (1e-6 if kind == "tiny" else 1.0)
        ends: dict[str, Any] = {}
        if kind == "moving":
            ends = {
                "qd0": 0.5 * rng.uniform(-1, 1, 7) * limits["velocity"],
                "qd1": 0.5 * rng.uniform(-1, 1, 7) * limits["velocity"],
                "qdd0": 0.1 * rng.uniform(-1, 1, 7) * limits["acceleration"],
            }
        if kind == "one rests":
            q1[3] = q0[3]
            limits["velocity"][3] = limits["jerk"][3] = 0.0
        motion = cell.point_to_point(q0, q1, **limits, **ends)
        first, last = motion.at(0.0), motion.at(motion.duration)
        assert first.q == pytest.approx(q0, abs=1e-9)
        assert last.q == pytest.approx(q1, abs=1e-9)
        assert first.qd == pytest.approx(ends.get("qd0", np.zeros(7)), abs=1e-8)
        assert last.qd == pytest.approx(ends.get("qd1", np.zeros(7)), abs=1e-8)
        assert first.qdd == pytest.approx(ends.get("qdd0", np.zeros(7)), abs=1e-7)
        peaks = motion.peaks()
        assert (peaks.velocity <= limits["velocity"] * (1 + 1e-7) + 1e-9).all()
        assert (peaks.acceleration <= limits["acceleration"] * (1 + 1e-7)).all()
        assert (np.abs(motion.qddd) <= limits["jerk"] * (1 + 1e-5) + 1e-7).all()


def test_it_is_continuous_and_its_rates_are_derivatives(cell: arm.Cell):
    rng = np.random.default_rng(2)
    motion = cell.point_to_point(*rng.normal(size=(2, 7)), **limits_of(rng))
    h = 1e-6
    t = rng.uniform(h, motion.duration - h, 200)
    before, here, after = (motion.at(t + step) for step in (-h, 0.0, h))
    assert here.qd == pytest.approx((after.q - before.q) / (2 * h), abs=1e-6)
    edges = motion.times[1:-1]
    for part in ("q", "qd", "qdd"):
        left, right = (getattr(motion.at(edges + x), part) for x in (-1e-12, 1e-12))
        assert left == pytest.approx(right, abs=1e-8)


def test_the_duration_is_the_known_one(cell: arm.Cell):
    """A joint alone: v / a + a / j + d / v where each limit is reached."""
    q1 = np.zeros(7)
    q1[2] = 3.0
    motion = cell.point_to_point(
        np.zeros(7), q1, velocity=1.0, acceleration=2.0, jerk=10.0
    )
    assert motion.duration == pytest.approx(1.0 / 2.0 + 2.0 / 10.0 + 3.0 / 1.0)
    # Neither the rate nor the acceleration: 4 (d / 2 / j) ^ (1/3)
    short = cell.point_to_point(
        np.zeros(7), q1, velocity=1e3, acceleration=1e3, jerk=10.0
    )
    assert short.duration == pytest.approx(4.0 * (3.0 / 2.0 / 10.0) ** (1.0 / 3.0))


def test_it_tends_to_the_line_without_jerk_limits(cell: arm.Cell):
    rng = np.random.default_rng(3)
    line = rng.normal(size=(2, 7))
    timed = cell.time_path(line, velocity=1.0, acceleration=4.0, intervals=1000)
    durations = [
        cell.point_to_point(*line, velocity=1.0, acceleration=4.0, jerk=j).duration
        for j in (10.0, 100.0, 1e5, np.inf)
    ]
    assert durations == sorted(durations, reverse=True)
    assert durations[-1] == pytest.approx(float(timed.duration), rel=1e-4)


def test_straight_lines(cell: arm.Cell):
    rng = np.random.default_rng(4)
    q0, q1 = rng.normal(size=(2, 7))
    limits = limits_of(rng)
    motion = cell.point_to_point(q0, q1, straight=True, **limits)
    q = motion.sampled(rate=200.0).q
    shares = (q - q0) / (q1 - q0)
    assert shares == pytest.approx(np.tile(shares[:, :1], 7), abs=1e-7)
    assert q[-1] == pytest.approx(q1, abs=1e-12)
    peaks = motion.peaks()
    assert (peaks.velocity <= limits["velocity"] * (1 + 1e-9)).all()
    assert (peaks.acceleration <= limits["acceleration"] * (1 + 1e-9)).all()
    assert (np.abs(motion.qddd) <= limits["jerk"] * (1 + 1e-6)).all()
    apart = cell.point_to_point(q0, q1, **limits)
    assert motion.duration >= apart.duration * (1 - 1e-9)
    one = {"velocity": 1.0, "acceleration": 4.0, "jerk": 50.0}  # the farthest leads
    assert cell.point_to_point(q0, q1, straight=True, **one).duration == pytest.approx(
        cell.point_to_point(q0, q1, **one).duration
    )
    with pytest.raises(ModelError, match="begins and ends at rest"):
        cell.point_to_point(q0, q1, straight=True, qd0=0.1, **limits)


def test_limits_of_both_directions(cell: arm.Cell):
    q = np.zeros((2, 7))
    q[1, 0] = 2.0
    limits: dict[str, Any] = {
        "velocity": (np.full(7, -0.5), np.ones(7)),
        "acceleration": 4.0,
        "jerk": 100.0,
    }
    forth = cell.point_to_point(q[0], q[1], **limits)
    back = cell.point_to_point(q[1], q[0], **limits)
    assert forth.peaks().velocity[0] == pytest.approx(1.0)
    assert back.peaks().velocity[0] == pytest.approx(0.5)


def test_samples_and_rests(cell: arm.Cell):
    q0, q1 = np.zeros(7), np.ones(7)
    motion = cell.point_to_point(
        q0, q1, acceleration=4.0, jerk=50.0, qd1=np.full(7, 0.1)
    )
    found = motion.at([-1.0, motion.duration + 1.0, np.nan])
    assert found.q[:2] == pytest.approx(np.stack([q0, q1]))
    assert not found.qd[:2].any()
    assert np.isnan(found.q[2]).all()
    samples = motion.sampled(rate=125.0)
    assert samples.time[-1] == motion.duration
    assert samples.q.shape == (len(samples.time), 7)
    assert np.diff(samples.time)[:-1] == pytest.approx(1 / 125.0)
    again = pickle.loads(pickle.dumps(motion))
    assert again.at(0.3).q.tolist() == motion.at(0.3).q.tolist()
    assert repr(motion) == f"<Motion: {motion.duration:.6g} s, 7 joints>"
    longer = cell.point_to_point(q0, q1, acceleration=4.0, jerk=50.0, duration=9.0)
    assert longer.duration == pytest.approx(9.0)
    nowhere = cell.point_to_point(q0, q0, acceleration=4.0, jerk=50.0)
    assert nowhere.duration == 0.0
    assert nowhere.at(0.0).q == pytest.approx(q0)
    assert not nowhere.peaks().velocity.any()
    with pytest.raises(ModelError, match="The rate is a finite"):
        motion.sampled(rate=-1.0)
    with pytest.raises(ShapeError, match="time needs real numbers"):
        motion.at("soon")  # type: ignore[arg-type]


def test_fewer_joints(cell: arm.Cell):
    names = cell.joint_names[3:5]
    motion = cell.point_to_point(
        [0.0, 0.0], [1.0, -1.0], acceleration=4.0, jerk=50.0, joints=names
    )
    assert motion.at(0.2).q.shape == (2,)
    assert (motion.peaks().velocity <= cell.velocity_limits[3:5] * (1 + 1e-9)).all()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"q0": np.zeros(6)}, ShapeError, r"q0 has the shape \(7,\)"),
        ({"q1": 1.0}, ShapeError, r"q1 has the shape \(7,\)"),
        ({"q1": np.full(7, np.nan)}, ModelError, "q1 is not finite"),
        ({"qd0": np.inf}, ModelError, "qd0 is not finite"),
        ({"jerk": -1.0}, ModelError, "jerk is negative or NaN"),
        ({"jerk": 0.0}, ModelError, "must move, but its jerk limit is 0"),
        ({"velocity": 0.0}, ModelError, "must move, but its velocity limit is 0"),
        ({"velocity": np.ones((3, 7))}, ShapeError, "one velocity limit for each"),
        (
            {"acceleration": np.inf, "jerk": np.inf},
            ModelError,
            "neither an acceleration nor a jerk",
        ),
        ({"qd1": 50.0}, ModelError, "to have the velocity 50, which is not within"),
        ({"qdd1": -9.0}, ModelError, "to have the acceleration -9"),
        ({"acceleration": None}, ModelError, "no acceleration limit in the model"),
        ({"duration": -1.0}, ModelError, "duration is -1.0"),
        ({"q1": np.full(7, 1e12)}, ModelError, "Ruckig finds no motion"),
        ({"joints": ["nobody"]}, UnknownName, "nobody"),
    ],
)
def test_what_is_refused(
    cell: arm.Cell, options: dict[str, Any], error: type[Exception], message: str
):
    given = {"q0": np.zeros(7), "q1": np.ones(7), "acceleration": 2.0, "jerk": 10.0}
    given |= options
    with pytest.raises(error, match=message):
        cell.point_to_point(given.pop("q0"), given.pop("q1"), **given)


def test_without_ruckig(cell: arm.Cell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ruckig", None)
    with pytest.raises(ModelError, match=r"pip install armillary\[ruckig\]"):
        cell.point_to_point(np.zeros(7), np.ones(7), acceleration=2.0, jerk=10.0)


@pytest.mark.parametrize("straight", [False, True])
@pytest.mark.parametrize("speed", [1e-3, 1e-5, 1e-8])
def test_long_motions_take_as_long_as_their_greatest_rate(
    cell: arm.Cell, speed: float, straight: bool
) -> None:
    q1 = np.linspace(0.2, 1.0, 7)
    motion = cell.point_to_point(
        np.zeros(7),
        q1,
        velocity=speed,
        acceleration=0.5,
        jerk=2.0,
        straight=straight,
    )
    ramp = 2.0 * np.sqrt(speed / 2.0)  # jerk up and down, no limit of acceleration
    assert motion.duration == pytest.approx(1.0 / speed + ramp, rel=1e-5)
    half = motion.at(0.5 * motion.duration)
    assert half.q == pytest.approx(0.5 * q1, abs=1e-6)
    assert half.qd[-1] == pytest.approx(speed, rel=1e-6)
    assert motion.at(motion.duration).q == pytest.approx(q1, abs=1e-9)


def test_a_duration_may_be_long(cell: arm.Cell) -> None:
    limits = {"velocity": 1.0, "acceleration": 1.0, "jerk": 1.0}
    motion = cell.point_to_point(np.zeros(7), np.ones(7), duration=1e6, **limits)
    assert motion.duration == pytest.approx(1e6)
    assert motion.at(1e6).q == pytest.approx(np.ones(7), abs=1e-9)


@pytest.mark.parametrize("straight", [False, True])
def test_a_limit_of_0_the_other_way_is_not_needed(
    cell: arm.Cell, straight: bool
) -> None:
    none, one = np.zeros(7), np.ones(7)
    limits = {"acceleration": 2.0, "jerk": 10.0, "straight": straight}
    forward = cell.point_to_point(none, one, velocity=(none, one), **limits)
    both = cell.point_to_point(none, one, velocity=one, **limits)
    assert forward.duration == pytest.approx(both.duration)
    assert forward.qd.min() >= 0.0
    back = cell.point_to_point(one, none, velocity=(-one, none), **limits)
    assert back.duration == pytest.approx(both.duration)
    with pytest.raises(ModelError, match=r"limit is 0|one of 0 may stand in its way"):
        cell.point_to_point(one, none, velocity=(none, one), **limits)
    with pytest.raises(ModelError, match="lower acceleration limit is 0"):
        cell.point_to_point(
            none, one, velocity=1.0, acceleration=(none, one), jerk=10.0
        )
