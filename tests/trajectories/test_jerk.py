"""Paths within limits of jerk: limits hold everywhere, and nothing is much faster."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import armillary as arm
from armillary.errors import ModelError, ShapeError
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.pipeline_reference import evaluate
from armillary.trajectories import jerk_path
from armillary.trajectories.curve import (
    PathCurve,
    hermite_coefficients,
    natural_spline,
)
from armillary.trajectories.jerk_columns import GRADED
from armillary.trajectories.jerk_guess import coarser
from armillary.trajectories.jerk_knots import (
    MORE,
    closer_knots,
    knots_pipeline,
    knots_records,
)
from armillary.trajectories.timed_path import PathReason, TimedPath
from masses import with_links

Array = npt.NDArray[np.float64]

JOINTS = 3
LIMITS: dict[str, Any] = {
    "velocity": np.array([2.0, 1.0, 3.0]),
    "acceleration": np.array([8.0, 6.0, 10.0]),
    "jerk": np.array([60.0, 50.0, 90.0]),
}
DENSE = 4001


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    return arm.example("ur5e_on_oval")


@pytest.fixture(scope="module")
def names(cell: arm.Cell) -> tuple[str, ...]:
    return tuple(cell.joint_names[1 : 1 + JOINTS])


def walk(seed: int, count: int = 6) -> Array:
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.normal(size=(count, JOINTS)) * 0.5, axis=0)


def excess(timed: TimedPath) -> list[float]:
    """The greatest rate, acceleration and jerk in parts of limits, sampled densely."""
    motion = timed.motion()
    found = motion.at(np.linspace(0.0, motion.duration, DENSE))
    return [
        float((np.abs(part) / limit).max())
        for part, limit in zip(found[2:], LIMITS.values(), strict=True)
    ]


@pytest.mark.parametrize("kind", ["spline", "blend", "line", "moving"])
def test_limits_hold_between_points_of_the_grid(
    cell: arm.Cell, names: tuple[str, ...], kind: str
):
    more: dict[str, Any] = {}
    if kind == "blend":
        more = {"blend": 0.05}
    if kind == "moving":
        more = {"start": 0.4, "end": 0.3, "start_acceleration": 0.5}
    for seed in range(5):
        path = walk(seed, 2 if kind == "line" else 6)
        timed = cell.time_path(path, joints=names, **LIMITS, **more)
        assert timed.success
        assert max(excess(timed)) < 1.001
        # one of them is nearly reached
        assert max(excess(timed)) > 0.99
        ends = timed.motion().at(np.array([0.0, timed.motion().duration]))
        assert ends.q == pytest.approx(path[[0, -1]], abs=1e-12)
        if kind != "moving":
            assert np.abs(ends.qd).max() < 1e-9
            assert np.abs(ends.qdd).max() < 1e-7


@pytest.mark.parametrize("intervals", [10, 15])
def test_motions_that_are_found_again_within_tighter_limits_count(
    cell: arm.Cell, names: tuple[str, ...], intervals: int
):
    # Motions that start in motion are found again within tighter limits where they
    # exceed them between places; they were refused by what they exceed those by.
    path = np.stack([walk(seed) for seed in range(30)])
    ends: dict[str, Any] = {"start": 0.2, "end": 0.1}
    timed = cell.time_path(path, joints=names, intervals=intervals, **LIMITS, **ends)
    assert timed.success.all()
    for row in range(len(path)):
        motion = timed.motion(row)
        found = motion.at(np.linspace(0.0, motion.duration, DENSE))
        for part, limit in zip(found[2:], LIMITS.values(), strict=True):
            assert (np.abs(part) / limit).max() < 1.001


def test_given_ends_are_kept(cell: arm.Cell, names: tuple[str, ...]):
    path = walk(7)
    timed = cell.time_path(
        path, joints=names, **LIMITS, start=0.4, end=0.2, start_acceleration=0.7
    )
    slope = timed.curve.knots[0, 1]
    bend = timed.curve.knots[0, 2]
    motion = timed.motion()
    first, last = motion.at(0.0), motion.at(motion.duration)
    assert first.qd == pytest.approx(0.4 * slope, rel=1e-9)
    assert first.qdd == pytest.approx(0.7 * slope + 0.16 * bend, abs=1e-9)
    assert last.qd == pytest.approx(0.2 * timed.curve.knots[-1, 1], rel=1e-9)


def test_derivatives_are_continuous(cell: arm.Cell, names: tuple[str, ...]):
    motion = cell.time_path(walk(1), joints=names, **LIMITS).motion()
    edges = motion.times[1:-1]
    for order in (1, 2, 3):
        left, right = motion.at(edges - 1e-10), motion.at(edges + 1e-10)
        scale = np.abs(right[order]).max()
        assert left[order] == pytest.approx(right[order], abs=1e-6 * scale)
    # and each is the slope of the one before
    t = np.linspace(0.01, motion.duration - 0.01, 301)
    h = 1e-6
    before, here, after = (motion.at(t + step) for step in (-h, 0.0, h))
    assert here.qdd == pytest.approx((after.qd - before.qd) / (2.0 * h), abs=1e-4)


@pytest.mark.peers
@pytest.mark.skipif(find_spec("ruckig") is None, reason="Ruckig is not installed")
def test_lines_are_nearly_as_fast_as_those_of_ruckig(
    cell: arm.Cell, names: tuple[str, ...]
):
    for seed in range(8):
        path = walk(seed, 2)
        best = cell.point_to_point(*path, straight=True, joints=names, **LIMITS)
        timed = cell.time_path(path, joints=names, **LIMITS)
        assert 0.999 < float(timed.duration) / best.duration < 1.012


@pytest.mark.thorough
@pytest.mark.skipif(find_spec("scipy") is None, reason="SciPy is not installed")
def test_durations_are_those_of_linear_programs(cell: arm.Cell, names: tuple[str, ...]):
    from benchmarks.jerk_reference import reference_duration

    for seed in (1, 2):
        timed = cell.time_path(walk(seed), joints=names, **LIMITS)
        at, curve = timed.curve.at, timed.curve

        def derivatives(
            s: Array, at: Array = at, curve: PathCurve = curve
        ) -> tuple[Array, Array, Array]:
            knot = np.clip(np.searchsorted(at, s, side="right") - 1, 0, len(at) - 2)
            part = knot + (s - at[knot]) / np.diff(at)[knot]
            _, slope, bend = curve.evaluate((), part)
            third = np.diff(curve.knots[:, 2], axis=0) / np.diff(at)[:, None]
            return slope, bend, third[knot]

        best = reference_duration(derivatives, float(at[-1]), points=200, **LIMITS)
        assert 0.99 < float(timed.duration) / best < 1.01


def test_a_grid_of_many_waypoints_is_closer_at_bends(
    cell: arm.Cell, names: tuple[str, ...]
):
    splines = cell.time_path(
        np.stack([walk(seed) for seed in range(8)]), joints=names, acceleration=8.0
    ).curve
    parts = np.linspace(0.0, 5.0, 100)
    paths = np.stack([splines.evaluate((row,), parts)[0] for row in range(8)])

    def durations(intervals: int | None) -> Array:
        timed = cell.time_path(paths, joints=names, **LIMITS, intervals=intervals)
        assert timed.success.all()
        # points of the path are those that were given, whatever the grid is
        assert timed.curve.knots[:, :, 0] == pytest.approx(paths)
        return timed.duration

    fine, even, chosen = durations(6), durations(1), durations(None)
    assert (chosen / fine).max() < 1.008
    assert (even / fine).max() > 1.02
    alone = cell.time_path(paths[0], joints=names, **LIMITS)
    assert float(alone.duration) == pytest.approx(chosen[0], rel=1e-9)


def test_knots_are_added_between_knots_but_not_at_ends():
    curve = PathCurve(*random_curves(12))
    at, knots = np.zeros((2, 187)), np.zeros((2, 187, 3, JOINTS))
    at[:, :12], knots[:, :12] = curve.at, curve.knots
    time, speed = np.zeros((2, 195)), np.zeros((2, 195))
    inner = slice(GRADED + 1, GRADED + 11)  # the grid is divided further at both ends
    time[:, inner] = np.cumsum(np.random.default_rng(2).random((2, 10)), axis=-1)
    speed[:, inner] = 1.0 + np.random.default_rng(3).random((2, 10))
    push = np.zeros((2, 195))
    speed[0, GRADED + 6] = 0.01
    push[0, GRADED + 3] = 5.0
    time[1], speed[1] = np.nan, np.nan  # where there is no motion
    made = closer_knots((at, knots), (time, speed, push), (187, 192), 11)
    count = 11 + MORE
    closer = PathCurve(made[0][:, : count + 1], made[1][:, : count + 1])
    assert (np.diff(closer.at) > 0.0).all()
    for row in range(2):
        kept = np.isin(curve.at[row], closer.at[row])
        assert kept.all()
        at_ends = closer.at[row, [0, 1, -2, -1]]
        assert at_ends == pytest.approx(curve.at[row, [0, 1, -2, -1]], abs=0.0)
        counts, _ = np.histogram(closer.at[row, :-1], curve.at[row])
        if row == 0:
            # at the change of speed, and at that of acceleration
            assert counts[5:7].sum() > 0.3 * counts.sum()
            assert counts[2:4].sum() > 0.2 * counts.sum()
        else:
            assert np.ptp(counts[1:-1]) <= 1
    right = curve.at_parameters(closer.at)
    assert closer.knots == pytest.approx(right, rel=1e-11, abs=1e-11)


def test_machine_code_that_adds_knots_is_the_reference():
    pipeline = knots_pipeline(2, knots=12 + MORE, intervals=12 + MORE)
    kernel = compile_pipeline(pipeline, lanes=1)(knots_records(11))
    rng = np.random.default_rng(5)
    given = [rng.random((3, *port.shape)) for port in pipeline.inputs]
    given[0], given[2] = (np.cumsum(given[k], axis=-1) for k in (0, 2))
    right = evaluate(pipeline, kernel.tables, *given)
    for found, expected in zip(kernel(*given), right, strict=True):
        made = slice(12 + MORE)
        assert found[:, made] == pytest.approx(expected[:, made], rel=1e-9, abs=1e-9)


def test_a_coarser_grid_has_the_same_intervals_at_both_ends():
    for count in (2, 3, 4, 5, 12, 40):
        curve = PathCurve(*random_curves(count))
        fewer, each = coarser(curve, 1)
        assert each == 1
        assert (np.diff(fewer.at) > 0.0).all()
        assert fewer.at[:, [0, 1, -2, -1]] == pytest.approx(
            curve.at[:, [0, 1, -2, -1]], abs=0.0
        )
        assert fewer.at.shape[-1] <= max(4, 3 + count // 4)


def random_curves(count: int) -> tuple[Array, Array]:
    """Return parameters and knots of two natural splines."""
    rng = np.random.default_rng(count)
    at = np.cumsum(0.1 + rng.random((2, count)), axis=-1)
    return at, natural_spline(at, rng.normal(size=(2, count, JOINTS)))


def test_points_between_knots_are_those_of_polynomials():
    at, knots = random_curves(7)
    knots[..., 2, :] *= 1.3  # not a spline any more
    curve = PathCurve(at, knots)
    polynomials = hermite_coefficients(np.diff(at), knots)
    part = np.array([0.0, 0.25, 0.9])
    s = at[:, :-1, None] + part * np.diff(at)[..., None]
    found = curve.at_parameters(s.reshape(2, -1)).reshape(2, 6, 3, 3, JOINTS)
    for order in range(3):
        for j in range(JOINTS):
            for row, k in np.ndindex(2, 6):
                law = np.polynomial.Polynomial(polynomials[row, k, :, j]).deriv(order)
                scale = (at[row, k + 1] - at[row, k]) ** order
                expected = law(part) / scale
                assert found[row, k, :, order, j] == pytest.approx(expected, abs=1e-10)


def test_it_tends_to_the_motion_without_limits_of_jerk(
    cell: arm.Cell, names: tuple[str, ...]
):
    path = walk(3)
    limits = {**LIMITS, "jerk": 1.0}
    durations = [
        float(cell.time_path(path, joints=names, **{**limits, "jerk": j}).duration)
        for j in (20.0, 100.0, 1000.0, 1e12)
    ]
    del limits["jerk"]
    free = float(cell.time_path(path, joints=names, **limits).duration)
    assert durations == sorted(durations, reverse=True)
    assert free < durations[-2] < 1.06 * free
    assert free < durations[-1] < 1.02 * free


def test_scaling_laws(cell: arm.Cell, names: tuple[str, ...]):
    """In a unit of time k times as long all limits are powers of k times as great."""
    path = walk(4)
    once = cell.time_path(path, joints=names, **LIMITS)
    for k in (0.01, 100.0):
        scaled = {
            name: limit * k**power
            for power, (name, limit) in enumerate(LIMITS.items(), 1)
        }
        again = cell.time_path(path, joints=names, **scaled)
        assert float(again.duration) * k == pytest.approx(
            float(once.duration), rel=2e-3
        )


def test_rows_of_a_batch_are_independent(cell: arm.Cell, names: tuple[str, ...]):
    bad = walk(0)
    bad[2, 1] = np.nan
    twice = walk(0)
    twice[3] = twice[2]
    paths = np.stack([walk(0), bad, twice, np.zeros((6, JOINTS)), walk(1)])
    timed = cell.time_path(paths, joints=names, **LIMITS)
    assert [PathReason(int(k)) for k in timed.reason] == [
        PathReason.TIMED,
        PathReason.INVALID,
        PathReason.REPEATED,
        PathReason.TIMED,
        PathReason.TIMED,
    ]
    assert timed.duration[3] == 0.0
    assert np.isnan(timed.duration[1:3]).all()
    for row in (0, 4):
        alone = cell.time_path(paths[row], joints=names, **LIMITS)
        assert timed.duration[row] == pytest.approx(float(alone.duration), rel=1e-9)
    assert not timed.motion(3).at(0.0).qd.any()


def test_what_cannot_be_is_said(cell: arm.Cell, names: tuple[str, ...]):
    path = walk(0)

    def timed(**more: Any) -> TimedPath:
        return cell.time_path(path, joints=names, **{**LIMITS, **more})

    assert timed(start=50.0).reason == PathReason.START_TOO_FAST
    assert timed(end=50.0).reason == PathReason.END_TOO_FAST
    assert timed(velocity=[1.0, 0.0, 1.0]).reason == PathReason.STOPS
    path[:, 1] = 0.3  # a joint that rests may have limits of 0
    assert timed(velocity=[1.0, 0.0, 1.0]).success
    for jerk in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ModelError, match="jerk"):
            timed(jerk=jerk)
    with pytest.raises(ShapeError, match="jerk"):
        timed(jerk=[1.0, 2.0])
    with pytest.raises(ModelError, match="give its path speed"):
        timed(start_acceleration=1.0)
    with pytest.raises(ModelError, match="give jerk="):
        cell.time_path(path, joints=names, acceleration=4.0, start_acceleration=1.0)
    with pytest.raises(ShapeError, match="two waypoints or more"):
        cell.time_path(path[:1], joints=names, **LIMITS)
    with pytest.raises(ModelError, match="at most 4089 waypoints"):
        cell.time_path(np.zeros((4097, JOINTS)), joints=names, **LIMITS)


CORNERS = np.array([[0.0, 0.0], [1.0, 0.4], [0.3, 0.8]])


@pytest.mark.parametrize("seed", [7, 8, 26, 30, 50])
def test_a_joint_that_turns_back_and_forth_at_rounded_corners(
    cell: arm.Cell, names: tuple[str, ...], seed: int
):
    # The squared path speed was below 0 between places: motions took 1e94 s.
    way = np.zeros((60, JOINTS))
    way[:, 0] = np.cumsum(np.random.default_rng(seed).normal(0.0, 0.05, 60))
    smooth = cell.time_path(way, joints=names, blend=0.02, **LIMITS)
    limits = {name: LIMITS[name] for name in ("velocity", "acceleration")}
    fastest = cell.time_path(way, joints=names, blend=0.02, **limits)
    assert fastest.duration < smooth.duration < 3.0 * fastest.duration
    assert max(excess(smooth)) < 1.001


@pytest.mark.parametrize("seed", [7, 260, 501, 527])
def test_jerk_that_turns_before_an_end_of_an_interval_is_within_limits(
    cell: arm.Cell, seed: int
):
    # It exceeded limits by 0.2 to 0.6 %, between the last two samples of an interval.
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 30))
    steps = rng.normal(size=(count, 1)) * 10.0 ** rng.uniform(-1.0, 0.0)
    exponents = (-1.0, 1.0), (-1.0, 2.0), (0.0, 4.0), (-2.5, -1.0)
    names = "velocity", "acceleration", "jerk", "blend"
    drawn = [10.0 ** rng.uniform(*each) for each in exponents]
    options: dict[str, Any] = dict(zip(names, drawn, strict=True))
    path = np.cumsum(steps, axis=0)
    motion = cell.time_path(path, joints=cell.joint_names[-1:], **options).motion()
    found = motion.at(np.linspace(0.0, motion.duration, 10_001))
    for part, most in zip(found[2:], drawn[:3], strict=True):
        assert np.abs(part).max() < 1.001 * most


def test_constant_jerks_at_ends_are_within_limits_at_once(
    cell: arm.Cell, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    # Where these pieces meet the grid, jerks exceeded limits; motions were found again
    # in vain, and slowed down.
    again: list[int] = []
    find_again = jerk_path._find_again

    def counted(*given: Any) -> Any:
        again.append(int(given[-1].sum()))
        return find_again(*given)

    monkeypatch.setattr(jerk_path, "_find_again", counted)
    cell.time_path(np.stack([walk(k) for k in (1, 7, 32, 49)]), joints=names, **LIMITS)
    assert not again


@pytest.mark.parametrize("end", [0.05, 0.16, 0.2])
def test_rates_hold_between_points_of_rounded_corners(cell: arm.Cell, end: float):
    # slopes are polynomials of degree 4 there, and the end is in motion, so that all of
    # the motion cannot be slowed down
    path = np.array([[0.1928], [-0.6652], [0.2164], [0.7015]])
    limits: dict[str, Any] = {"velocity": 0.2883, "acceleration": 2.98, "jerk": 688.3}
    joint = cell.joint_names[-1:]
    motion = cell.time_path(path, joints=joint, **limits, blend=0.02, end=end).motion()
    rates = motion.at(np.linspace(0.0, motion.duration, 10 * DENSE)).qd
    assert np.abs(rates).max() < 1.001 * limits["velocity"]


@pytest.mark.parametrize(
    "ends", [{}, {"start": 0.4, "end": 0.2}], ids=["rest", "moving"]
)
def test_torques_are_limited_too(ends: dict[str, float]):
    pan_tilt = arm.example("pan_tilt")
    held = np.abs(pan_tilt.inverse_dynamics()(CORNERS, 0 * CORNERS, 0 * CORNERS))
    most = held.max(axis=0) + 0.03
    given = {"torque": most, "acceleration": np.inf, "velocity": np.inf, **ends}
    free = pan_tilt.time_path(CORNERS, **given, intervals=100)
    for jerk, at_most in ((400.0, 1.2), (1e5, 1.03)):
        timed = pan_tilt.time_path(CORNERS, **given, jerk=jerk)
        assert timed.success
        assert 0.99 < float(timed.duration / free.duration) < at_most
        found = timed.motion().sampled(dt=float(timed.duration) / DENSE)
        torques = pan_tilt.inverse_dynamics()(found.q, found.qd, found.qdd)
        use = (np.abs(torques) / most).max()
        assert 0.98 < use < 1.001
        assert np.abs(found.qddd).max() < 1.001 * jerk
    weak = pan_tilt.time_path(
        CORNERS, **{**given, "torque": 0.5 * held.max(0)}, jerk=9.0
    )
    assert weak.reason == PathReason.OVERLOADED


@pytest.mark.parametrize("options", [{"jerk": 400.0}, {"intervals": 50}], ids=str)
def test_friction_that_changes_its_sign_is_within_limits_of_torques(
    options: dict[str, Any],
):
    def rough(link: arm.Link) -> arm.Link:
        if not link.has_coordinate:
            return link
        return link.replace(dynamics=arm.JointDynamics(friction=0.02))

    cell = with_links(arm.example("pan_tilt"), rough)
    held = arm.example("pan_tilt").inverse_dynamics()(CORNERS, 0 * CORNERS, 0 * CORNERS)
    most = np.abs(held).max(axis=0) + 0.03
    timed = cell.time_path(
        CORNERS, torque=most, acceleration=np.inf, velocity=np.inf, **options
    )
    found = timed.motion().sampled(dt=float(timed.duration) / DENSE)
    assert (np.diff(np.sign(found.qd[1:-1]), axis=0) != 0.0).any()
    use = np.abs(cell.inverse_dynamics()(found.q, found.qd, found.qdd)) / most
    assert 0.98 < use[1:-1].max() < 1.001


def test_a_frame_is_limited_too():
    pan_tilt = arm.example("pan_tilt")
    paths = np.stack([CORNERS, np.zeros((3, 2))])
    timed = pan_tilt.time_path(
        paths,
        acceleration=50.0,
        jerk=400.0,
        tool="camera",
        tool_speed=0.05,
        tool_acceleration=0.2,
    )
    assert timed.success.all()
    assert timed.duration[1] == 0.0
    motion = timed.motion(0)
    h = 1e-4
    t = np.linspace(h, motion.duration - h, DENSE)
    p = [pan_tilt.fk("camera")(motion.at(t + k * h).q)[:, :3, 3] for k in (-1, 0, 1)]
    speed = np.linalg.norm(p[2] - p[0], axis=1) / (2.0 * h)
    push = np.linalg.norm(p[2] - 2.0 * p[1] + p[0], axis=1) / h**2
    assert 0.049 < speed.max() < 0.05005
    assert push.max() < 0.2002


def test_infinite_rates_and_accelerations(cell: arm.Cell, names: tuple[str, ...]):
    timed = cell.time_path(
        walk(2), joints=names, velocity=np.inf, acceleration=np.inf, jerk=50.0
    )
    assert timed.success
    assert timed.peaks().jerk.max() == pytest.approx(50.0, rel=0.01)


@pytest.mark.parametrize("blend", [None, 0.01])
def test_waypoints_that_are_equal_but_for_rounding_are_repeated(blend: float | None):
    """They made durations of minutes to weeks."""
    cell = arm.example("irb2400")
    ways = np.zeros((3, 4, 6))
    ways[:, 1], ways[:, 3] = [0.5, 0.3, 0.1, 0.2, 0.4, 0.3], [1.0, 0.2, 0.5, 0, 0, 0]
    ways[:, 2] = ways[:, 1]
    ways[:, 2, 1] += [1e-13, 1e-9, 1e-6]
    timed = cell.time_path(ways, acceleration=8.0, jerk=50.0, blend=blend)
    reasons = [PathReason.REPEATED] * 2 + [PathReason.TIMED]
    assert timed.reason.tolist() == [int(each) for each in reasons]
    assert timed.duration[2] < 4.0
    # One by one they say the same.
    for way, reason in zip(ways, reasons, strict=True):
        alone = cell.time_path(way, acceleration=8.0, jerk=50.0, blend=blend)
        assert int(alone.reason) == reason


def test_samples_of_a_motion_that_stops_are_timed():
    """They get nearer little by little, to parts of 1e-10 of the path."""
    cell = arm.example("irb2400")
    limits: dict[str, Any] = {"velocity": 1.0, "acceleration": 4.0, "jerk": 50.0}
    ways = np.array([np.zeros(6), [0.5, 0.3, 0.1, 0.2, 0.4, 0.3]])
    motion = cell.time_path(ways, **limits).motion()
    q = motion.sampled(rate=1000).q
    lines = np.linalg.norm(np.diff(q, axis=0), axis=1)
    assert lines.min() < 5e-9 * lines.sum()
    again = cell.time_path(q, **limits, intervals=1)
    assert again.success
    assert again.duration < 1.2 * motion.duration
    # A motion there and back turns once; noise turns again and again.
    there_and_back = motion.then(motion.reversed()).sampled(rate=500).q
    assert cell.time_path(there_and_back, **limits, intervals=1).success
    noise = 1e-10 * np.random.default_rng(0).standard_normal((9, 6))
    stands = np.concatenate([q, q[-1] + noise])
    assert not cell.time_path(stands, **limits, intervals=1).success
