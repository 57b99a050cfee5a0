"""Times along paths: limits hold, and nothing within them is faster."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.interpolate import BPoly, CubicSpline
from scipy.optimize import minimize

import armillary as arm
from armillary.errors import ModelError, ShapeError, StateError
from armillary.kernel.pipeline_reference import evaluate
from armillary.kernel.tables import pack_all
from armillary.trajectories import hermite, kernels, pass_stages
from armillary.trajectories.curve import PathCurve, natural_spline
from armillary.trajectories.timed_path import PathReason, TimedPath

Array = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    return arm.example("ur5e_on_oval")


def two_joints(**limits: float) -> arm.Cell:
    """Two revolute joints about z."""
    links = [arm.Link(name="base")]
    for k in (1, 2):
        joint = arm.joints.Revolute(axis=(0, 0, 1))
        links.append(
            arm.Link(
                name=f"link{k}",
                parent=links[-1].name,
                joint=joint,
                limits=arm.Limits(**limits),
            )
        )
    return arm.Cell(manipulators=[arm.Manipulator(name="arm", links=links)])


def random_paths(rng: np.random.Generator, kind: str, batch: int, knots: int) -> Array:
    Q = np.cumsum(0.4 * rng.normal(size=(batch, knots, 7)), axis=1)
    if kind == "a joint rests":
        Q[..., 3] = 0.3
    if kind == "of all sizes":
        Q *= np.logspace(-6, 0, 7)
    if kind == "rounded":
        Q = np.round(Q, 1)
    if kind == "tiny":
        Q *= 1e-7
    return Q


def use_at_points(timed: TimedPath, row: tuple[int, ...]) -> tuple[Array, Array]:
    """Rates, and accelerations on both sides of each point of the grid."""
    speed, s = timed.speed[row], timed.parameter[row]
    count = timed.curve.at.shape[-1] - 1
    x, u = speed**2, np.diff(speed**2) / (2 * np.diff(s))
    parts = np.arange(len(s)) / ((len(s) - 1) // count)
    _, slope, bend = timed.curve.evaluate(row, parts)
    sides = [
        slope[side] * u[:, None] + bend[side] * x[side, None]
        for side in (slice(None, -1), slice(1, None))
    ]
    return np.abs(slope * speed[:, None]), np.abs(np.concatenate(sides))


@pytest.mark.parametrize(
    "kind", ["random", "a joint rests", "of all sizes", "rounded", "tiny"]
)
def test_limits_hold_at_all_points(cell: arm.Cell, kind: str):
    rng = np.random.default_rng(3)
    for knots in (2, 3, 5, 12):
        paths = random_paths(rng, kind, 6, knots)
        velocity, acceleration = np.exp(rng.normal(((0.0,), (1.0,)), 1.0, (2, 7)))
        timed = cell.time_path(paths, velocity=velocity, acceleration=acceleration)
        assert timed.success.all()
        for row in np.ndindex(timed.batch):
            rates, accelerations = use_at_points(timed, row)
            assert (rates <= velocity * (1 + 1e-9)).all()
            assert (accelerations <= acceleration * (1 + 1e-9)).all()
            # A limit is reached in nearly every interval.
            used = np.maximum(
                (rates / velocity).max(axis=1)[1:],
                (accelerations / acceleration).max(axis=1).reshape(2, -1).max(axis=0),
            )
            assert (used > 0.99).mean() > 0.8


def test_a_straight_line_accelerates_goes_and_brakes():
    cell = two_joints(velocity=1.0)
    timed = cell.time_path([[0.0, 0.0], [1.0, 0.3]], acceleration=4.0, intervals=8)
    assert timed.duration == pytest.approx(1.0 + 1.0 / 4.0, rel=1e-10)
    motion = timed.at([0.125, 0.625, 1.125, timed.duration])
    assert motion.q[:, 0] == pytest.approx([1 / 32, 0.5, 31 / 32, 1.0], abs=1e-9)
    assert motion.qd[:, 0] == pytest.approx([0.5, 1.0, 0.5, 0.0], abs=1e-9)
    assert motion.qdd[:3, 0] == pytest.approx([4.0, 0.0, -4.0], abs=1e-8)
    assert motion.q[:, 1] == pytest.approx(0.3 * motion.q[:, 0])


def test_without_a_velocity_limit_it_accelerates_then_brakes():
    cell = two_joints()
    timed = cell.time_path([[0.0, 0.0], [1.0, 0.3]], acceleration=4.0)
    assert timed.duration == pytest.approx(1.0, rel=1e-9)  # 2 sqrt(d / a)
    assert timed.peaks().velocity[0] == pytest.approx(2.0)


def test_without_an_acceleration_limit_it_goes_at_full_speed():
    cell = two_joints(velocity=0.5)
    timed = cell.time_path([[0.0, 0.0], [1.0, 0.3]], acceleration=np.inf)
    assert timed.duration == pytest.approx(2.0, rel=0.03)


def test_path_speeds_at_the_ends():
    cell, line = two_joints(velocity=10.0), [[0.0, 0.0], [1.0, 0.0]]
    end = np.sqrt(2 * 4.0 * 1.0)  # v^2 = 2 a d
    timed = cell.time_path(line, acceleration=4.0, end=end * (1 - 1e-8))
    assert timed.success
    assert timed.duration == pytest.approx(end / 4.0)
    assert timed.at(timed.duration).qd[0] == pytest.approx(end)
    both = cell.time_path(line, acceleration=4.0, start=1.0, end=1.0, intervals=200)
    # 1 to v over half of the way: v^2 = 1 + a d
    assert both.duration == pytest.approx(2 * (np.sqrt(5.0) - 1.0) / 4.0, rel=1e-9)
    assert both.at(0.0).qd[0] == pytest.approx(1.0)


@pytest.mark.thorough
def test_no_profile_is_faster(cell: arm.Cell):
    """The convex program of the same grid, solved by SciPy."""
    rng = np.random.default_rng(5)
    velocity, acceleration = np.full(7, 1.5), np.full(7, 6.0)
    for knots in (2, 3, 4):
        path = random_paths(rng, "random", 1, knots)[0]
        timed = cell.time_path(
            path, velocity=velocity, acceleration=acceleration, intervals=12
        )
        best = fastest(timed, velocity, acceleration)
        assert timed.duration <= best * 1.001
        assert timed.duration >= best * (1 - 1e-6)


def fastest(timed: TimedPath, velocity: Array, acceleration: Array) -> float:
    """The least time over all x >= 0 within linear constraints."""
    s, spline = (
        timed.parameter,
        CubicSpline(timed.curve.at, timed.curve.knots[:, 0], bc_type="natural"),
    )
    if len(timed.curve.at) == 2:
        chord = np.diff(timed.curve.knots[:, 0], axis=0)[0] / timed.curve.at[1]
        slope, bend = np.tile(chord, (len(s), 1)), np.zeros((len(s), 7))
    else:
        slope, bend = spline(s, 1), spline(s, 2)
    gap, inner = np.diff(s), len(s) - 2
    rows: list[Array] = []
    for k in range(len(gap)):
        for point in (k, k + 1):
            row = np.zeros((7, len(s)))
            row[:, k + 1] += slope[point] / (2 * gap[k])
            row[:, k] -= slope[point] / (2 * gap[k])
            row[:, point] += bend[point]
            rows.append(row / acceleration[:, None])
    A = np.concatenate(rows)[:, 1:-1]
    most = ((velocity / np.abs(slope)) ** 2).min(axis=1)[1:-1]

    def duration(y: Array) -> tuple[float, Array]:
        x = np.concatenate([[0.0], np.maximum(y, 1e-12) * most, [0.0]])
        root = np.sqrt(x)
        sums = root[1:] + root[:-1]
        by_root = -2 * gap / sums**2
        by_x = (by_root[1:] + by_root[:-1]) / (2 * root[1:-1])
        return float((2 * gap / sums).sum()), by_x * most

    scaled = A * most
    start = np.full(inner, 1e-3)
    found = minimize(
        duration,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(1e-9, 1.0)] * inner,
        constraints=[
            {"type": "ineq", "fun": lambda y: 1 - scaled @ y, "jac": lambda y: -scaled},
            {"type": "ineq", "fun": lambda y: 1 + scaled @ y, "jac": lambda y: scaled},
        ],
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert np.abs(scaled @ found.x).max() < 1 + 1e-7
    return float(found.fun)


def test_reversed_paths_take_as_long(cell: arm.Cell):
    rng = np.random.default_rng(7)
    paths = random_paths(rng, "random", 20, 6)
    start, end = rng.uniform(0.0, 0.1, size=(2, 20))
    options: dict[str, Any] = {
        "velocity": 1.0,
        "acceleration": 5.0,
        "intervals": 30,
    }
    there = cell.time_path(paths, start=start, end=end, **options)
    back = cell.time_path(paths[:, ::-1], start=end, end=start, **options)
    assert there.success.all()
    assert back.success.all()
    assert there.duration == pytest.approx(back.duration, rel=1e-3)


@pytest.mark.parametrize("knots", [6, 90])
def test_the_path_parameter_keeps_its_rates(cell: arm.Cell, knots: int):
    path = 0.05 * random_paths(np.random.default_rng(3), "random", 1, knots)[0]
    s = np.linspace(0.0, 2.0, knots)
    free = cell.time_path(path, at=s, acceleration=8.0)
    timed = cell.time_path(path, at=s, acceleration=8.0, path_rates=(0.3, 1.5))
    assert timed.success
    assert timed.curve.knots.shape == free.curve.knots.shape
    assert free.speed.max() > 0.3
    assert timed.speed.max() == pytest.approx(0.3, rel=1e-9)
    rates = np.diff(timed.speed) / np.diff(timed.time)
    assert np.abs(rates).max() <= 1.5 * (1.0 + 1e-6)
    _, accelerations = use_at_points(timed, ())
    assert accelerations.max() <= 8.0 * (1.0 + 1e-9)
    free = cell.time_path(path, at=s, acceleration=8.0, path_rates=(np.inf, np.inf))
    assert free.duration == cell.time_path(path, at=s, acceleration=8.0).duration
    fast = cell.time_path(path, at=s, acceleration=8.0, path_rates=(1e6, np.inf))
    assert fast.duration == pytest.approx(float(free.duration), rel=1e-9)


def test_acceleration_limits_of_the_model_are_the_default():
    slide = arm.Link(
        name="slide",
        parent="ground",
        joint=arm.joints.Prismatic(axis=(1.0, 0.0, 0.0)),
        limits=arm.Limits(lower=-5.0, upper=5.0, velocity=1.0, acceleration=2.0),
    )
    axis = arm.Manipulator(name="axis", links=[arm.Link(name="ground"), slide])
    cell = arm.Cell(manipulators=[axis])
    assert cell.acceleration_limits.tolist() == [2.0]
    given = cell.time_path([[0.0], [2.0]], acceleration=2.0)
    assert cell.time_path([[0.0], [2.0]]).duration == given.duration
    bare = arm.example("ur10_on_rail")
    with pytest.raises(ModelError, match="no acceleration limit in the model"):
        bare.time_path(np.array([[0.0] * 7, [0.1] * 7]))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("knots", [2, 5, 12, 100])
def test_one_kernel_or_piece_by_piece(cell: arm.Cell, knots: int):
    """Curves that are given by their derivatives go another way."""
    paths = random_paths(np.random.default_rng(21), "random", 4, knots)
    paths[1, 1:] = paths[1, :1]  # rests
    start, end = np.array([[0.0, 0.0, 0.0, 9.0], [0.0, 0.0, 9.0, 0.0]])
    options: dict[str, Any] = {"acceleration": 4.0, "start": start, "end": end}
    one = cell.time_path(paths, **options)
    knots_of = one.curve.knots
    other = cell.time_path(
        paths,
        at=one.curve.at,
        derivatives=(knots_of[..., 1, :], knots_of[..., 2, :]),
        **options,
    )
    names = [PathReason(int(number)).name for number in one.reason]
    assert names == ["TIMED", "TIMED", "END_TOO_FAST", "START_TOO_FAST"]
    assert other.reason.tolist() == one.reason.tolist()
    assert other.time == pytest.approx(one.time, rel=1e-9, nan_ok=True)
    assert other.speed == pytest.approx(one.speed, rel=1e-9, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("name", ["velocity", "acceleration"])
def test_limits_of_both_directions(name: str):
    """A line forth and back, each accelerated, at constant rate and braked."""
    cell = two_joints()
    limits: dict[str, Any] = {"velocity": 1.0, "acceleration": 4.0}
    limits[name] = (np.array([-0.5, -9.0]), np.array([2.0, 9.0]))
    line = np.array([[0.0, 0.0], [3.0, 0.3]])
    lines = np.stack([line, line[::-1]])
    timed = cell.time_path(lines, **limits, intervals=400)
    forth, back = timed.duration
    if name == "velocity":
        # v / a at each end, and the rest at v
        assert forth == pytest.approx(3.0 / 2.0 + 2.0 / 4.0, rel=1e-4)
        assert back == pytest.approx(3.0 / 0.5 + 0.5 / 4.0, rel=1e-4)
    else:
        # up to 1 at 2, down at 0.5: 1/2 + 1/0.5 seconds for 0.25 + 1 of the way
        assert forth == pytest.approx(0.5 + 2.0 + 1.75, rel=1e-4)
        assert back == pytest.approx(forth, rel=1e-4)
    rows = {**limits, name: tuple(np.stack([part] * 2) for part in limits[name])}
    again = cell.time_path(lines, **rows, intervals=400)
    assert again.time.tolist() == timed.time.tolist()


def test_limits_scale_time(cell: arm.Cell):
    paths = random_paths(np.random.default_rng(8), "random", 5, 6)
    slow = cell.time_path(paths, velocity=1.0, acceleration=3.0)
    fast = cell.time_path(paths, velocity=2.0, acceleration=12.0)
    assert fast.duration == pytest.approx(slow.duration / 2.0, rel=1e-9)
    larger = cell.time_path(10 * paths, velocity=10.0, acceleration=30.0)
    assert larger.duration == pytest.approx(slow.duration, rel=1e-9)


def test_the_parameter_makes_no_difference_to_a_line(cell: arm.Cell):
    line = np.array([[0.0] * 7, [1.0, -0.5, 0.2, 0.0, 0.3, 0.1, 0.9]])
    first = cell.time_path(line, acceleration=5.0)
    other = cell.time_path(line, acceleration=5.0, at=[-3.0, 1e4])
    assert other.duration == pytest.approx(float(first.duration), rel=1e-9)


def test_rows_of_a_batch_are_single_paths(cell: arm.Cell):
    rng = np.random.default_rng(9)
    paths = random_paths(rng, "random", 12, 5).reshape(3, 4, 5, 7)
    velocity = rng.uniform(0.5, 2.0, size=(4, 7))
    timed = cell.time_path(paths, velocity=velocity, acceleration=5.0)
    assert timed.batch == timed.duration.shape == (3, 4)
    motion = timed.at(np.linspace(0.0, 1.0, 5))
    assert motion.q.shape == (3, 4, 5, 7)
    peaks = timed.peaks()
    for row in np.ndindex(3, 4):
        alone = cell.time_path(paths[row], velocity=velocity[row[1]], acceleration=5.0)
        assert alone.time == pytest.approx(timed.time[row], rel=1e-12)
        assert alone.at(0.4).q == pytest.approx(timed.at(0.4).q[row])
        assert alone.peaks().acceleration == pytest.approx(peaks.acceleration[row])
        sampled = timed.sampled(rate=100, row=row)
        assert sampled.q == pytest.approx(alone.sampled(rate=100).q)


def test_a_row_may_be_an_integer_of_numpy(cell: arm.Cell):
    paths = random_paths(np.random.default_rng(4), "random", 3, 4)
    timed = cell.time_path(paths, acceleration=5.0)
    for row in np.flatnonzero(timed.success):
        assert timed.motion(row).duration == timed.motion(int(row)).duration


def test_one_path_with_many_limits(cell: arm.Cell):
    path = random_paths(np.random.default_rng(10), "random", 1, 4)[0]
    limits = np.array([[1.0], [2.0], [3.0]]) * np.ones(7)
    timed = cell.time_path(path, velocity=limits, acceleration=9.0)
    assert timed.batch == (3,)
    assert (np.diff(timed.duration) < 0.0).all()
    assert timed.at(0.5).q.shape == (3, 7)
    assert cell.time_path(np.zeros((0, 4, 7)), acceleration=1.0).batch == (0,)


def test_numpy_computes_the_same():
    rng = np.random.default_rng(11)
    paths = np.cumsum(rng.normal(size=(9, 5, 2)), axis=1)
    cell = two_joints(velocity=1.0)
    end = np.array([0.0, 0.1, 9.0] * 3)
    timed = cell.time_path(paths, acceleration=4.0, end=end, intervals=7)
    assert set(timed.summary()) == {"TIMED", "END_TOO_FAST"}

    size = kernels.SMALL
    velocity, limit, start = both(1.0, 2), both(4.0, 2), np.zeros(9)
    good = timed.success
    with np.errstate(all="ignore"):
        whole = kernels.path_pipeline(2, size)
        tables = packed(whole, kernels.path_records(4, 7))
        path = np.zeros((9, size.knots, 2))
        path[:, :5] = paths
        given = np.zeros(size.knots), 0.0
        found = evaluate(whole, tables, path, *given, velocity, limit, start, end)
    at, knots, time, speed, reason, moves = found
    assert reason.tolist() == timed.reason.tolist()
    assert moves.all()
    assert at[:, :5] == pytest.approx(timed.curve.at)
    assert knots[:, :5] == pytest.approx(timed.curve.knots, abs=1e-9)
    assert time[good, :29] == pytest.approx(timed.time[good], rel=1e-9)
    assert speed[good, :29] == pytest.approx(timed.speed[good], abs=1e-9)

    curve = np.nan_to_num(at), np.nan_to_num(knots)
    with np.errstate(all="ignore"):
        sweep = kernels.backward_pipeline(2, size)
        tables = packed(sweep, pass_stages.backward_records(4, 7))
        bounds = evaluate(sweep, tables, *curve, velocity, limit, end**2, end**2)
        assert (bounds[1][:, 0] < 0.0).tolist() == (~good).tolist()
        sweep = kernels.forward_pipeline(2, size)
        tables = packed(sweep, pass_stages.forward_records(4, 7))
        x, time, speed = evaluate(sweep, tables, *curve, limit, *bounds, 0.0, 0.0)
    assert time[good, :29] == pytest.approx(timed.time[good], rel=1e-9)
    assert speed[good, :29] == pytest.approx(timed.speed[good], abs=1e-9)
    assert x == pytest.approx(speed**2, nan_ok=True)


def both(limit: float, joints: int) -> Array:
    """A limit in both directions."""
    return np.full((2, joints), limit) * [[-1.0], [1.0]]


def packed(pipeline: Any, tables: Any) -> Any:
    return pack_all(pipeline.tables, tables, pipeline.columns, np.dtype(np.float64))


@pytest.mark.parametrize("knots", [2, 3, 4, 40, 150, 250])
def test_the_spline_is_natural(cell: arm.Cell, knots: int):
    rng = np.random.default_rng(12)
    path = random_paths(rng, "random", 1, knots)[0]
    at = np.cumsum(rng.uniform(0.1, 1.0, size=knots))
    timed = cell.time_path(path, acceleration=5.0, at=at)
    if knots == 2:
        want = CubicSpline(at, path, bc_type=((2, 0 * path[0]), (2, 0 * path[0])))
    else:
        want = CubicSpline(at, path, bc_type="natural")
    for order in range(3):
        given = timed.curve.knots[:, order]
        assert given == pytest.approx(want(at, order), rel=1e-9, abs=1e-9)
    smooth = cell.time_path(path, acceleration=5.0, jerk=1e4, at=at)
    assert smooth.curve.knots == pytest.approx(timed.curve.knots, rel=1e-9, abs=1e-9)
    parts = rng.uniform(0.0, knots - 1, size=50)
    first = parts.astype(int)
    s = at[first] + (parts - first) * np.diff(at)[first]
    for order, got in enumerate(timed.curve.evaluate((), parts)):
        assert got == pytest.approx(want(s, order), rel=1e-8, abs=1e-8)


def test_the_basis_is_that_of_hermite():
    rng = np.random.default_rng(13)
    ends = rng.normal(size=(2, 3))  # position, slope and curvature at 0 and 1
    poly = BPoly.from_derivatives([0.0, 1.0], ends)
    (qa, ma, ca), (qb, mb, cb) = ends
    r = rng.uniform(size=20)
    for order in range(3):
        H = hermite.basis(r, order)
        got = H @ [qb - qa, ma, mb, ca, cb] + (qa if order == 0 else 0.0)
        want = poly.derivative(order)(r) if order else poly(r)
        assert got == pytest.approx(want)


def test_curves_of_your_own():
    """A circle of joint positions, at the greatest constant rate but for the ends."""
    cell, s = two_joints(velocity=1.0), np.linspace(0.0, 20 * np.pi, 401)
    circle = np.stack([np.cos(s), np.sin(s)], axis=-1)
    slope = np.stack([-np.sin(s), np.cos(s)], axis=-1)
    timed = cell.time_path(
        circle, acceleration=50.0, at=s, derivatives=(slope, -circle), intervals=2
    )
    middle = np.abs(timed.parameter - 10 * np.pi) < 9 * np.pi
    speed = timed.speed[middle]
    # 1 where an axis points, sqrt(2) between
    assert speed.min() == pytest.approx(1.0, rel=1e-6)
    assert speed.max() == pytest.approx(np.sqrt(2.0), rel=1e-2)
    motion = timed.sampled(rate=50.0)
    assert np.linalg.norm(motion.q, axis=-1) == pytest.approx(1.0, abs=1e-8)
    # The derivatives of a spline give its times.
    again = cell.time_path(
        circle[:9],
        acceleration=50.0,
        at=s[:9],
        derivatives=spline_derivatives(s[:9], circle[:9]),
    )
    plain = cell.time_path(circle[:9], acceleration=50.0, at=s[:9])
    assert again.duration == pytest.approx(float(plain.duration), rel=1e-9)


def spline_derivatives(s: Array, q: Array) -> tuple[Array, Array]:
    spline = CubicSpline(s, q, bc_type="natural")
    return spline(s, 1), spline(s, 2)


def test_where_a_joint_turns_round():
    """There its rate is zero for all path speeds, and curvature alone limits them."""
    cell, s = two_joints(velocity=100.0), np.linspace(0.0, 2 * np.pi, 9)
    path = np.stack([s, np.cos(s)], axis=-1)
    derivatives = (
        np.stack([np.ones(9), -np.sin(s)], axis=-1),
        np.stack([np.zeros(9), -np.cos(s)], axis=-1),
    )
    timed = cell.time_path(
        path, acceleration=(1e9, 1.0), at=s, derivatives=derivatives, intervals=20
    )
    turn = np.argmin(np.abs(timed.parameter - np.pi))
    assert timed.speed[turn] ** 2 == pytest.approx(1.0, rel=1e-6)
    _, accelerations = use_at_points(timed, ())
    assert accelerations[:, 1].max() <= 1.0 + 1e-9


def test_motions_are_derivatives(cell: arm.Cell):
    path = random_paths(np.random.default_rng(14), "random", 1, 5)[0]
    timed = cell.time_path(path, acceleration=5.0)
    inside = (timed.time[:-1] + timed.time[1:])[3:-3] / 2
    h = 1e-6
    before, here, after = (timed.at(inside + t) for t in (-h, 0.0, h))
    assert here.qd == pytest.approx((after.q - before.q) / (2 * h), abs=1e-7)
    assert here.qdd == pytest.approx((after.qd - before.qd) / (2 * h), abs=1e-6)
    assert timed.at(timed.time[::10]).q[0] == pytest.approx(path[0])
    per_knot = (timed.time.size - 1) // 4
    assert timed.at(timed.time[::per_knot]).q == pytest.approx(path, abs=1e-9)


def test_before_and_after_it_rests(cell: arm.Cell):
    path = random_paths(np.random.default_rng(15), "random", 1, 3)[0]
    timed = cell.time_path(path, acceleration=5.0)
    motion = timed.at([-1.0, timed.duration + 1.0, np.nan])
    assert motion.q[:2] == pytest.approx(path[[0, -1]])
    assert not motion.qd[:2].any()
    assert not motion.qdd[:2].any()
    assert np.isnan(motion.qd[2]).all()
    sampled = timed.sampled(rate=125)
    assert sampled.time[-1] == timed.duration
    assert np.diff(sampled.time)[:-1] == pytest.approx(1 / 125)
    assert np.diff(sampled.time)[-1] <= 1 / 125 * (1 + 1e-9)
    assert sampled.q[[0, -1]] == pytest.approx(path[[0, -1]])


def test_peaks_between_points_fall_with_their_distance(cell: arm.Cell):
    paths = random_paths(np.random.default_rng(16), "random", 10, 6)
    excess = [
        cell.time_path(paths, velocity=50.0, acceleration=5.0, intervals=m)
        .peaks()
        .acceleration.max()
        / 5.0
        - 1.0
        for m in (10, 40)
    ]
    assert excess[0] < 0.2
    assert excess[1] < excess[0] / 8


def test_reasons(cell: arm.Cell):
    good = random_paths(np.random.default_rng(17), "random", 1, 4)[0]
    paths = np.array([good] * 6)
    paths[1, 2, 3] = np.nan
    paths[2, 2] = paths[2, 1]
    paths[3] = good[0]  # rests
    start, end = np.zeros((2, 6))
    start[4], end[5] = 1e3, 1e3
    timed = cell.time_path(paths, acceleration=5.0, start=start, end=end)
    names = [PathReason(int(number)).name for number in timed.reason]
    assert names == [
        "TIMED",
        "INVALID",
        "REPEATED",
        "TIMED",
        "START_TOO_FAST",
        "END_TOO_FAST",
    ]
    assert timed.success.tolist() == [True, False, False, True, False, False]
    assert np.isnan(timed.duration[~timed.success]).all()
    assert np.isnan(timed.at(0.1).q[~timed.success]).all()
    assert np.isnan(timed.peaks().velocity[~timed.success]).all()
    assert timed.duration[3] == 0.0
    assert timed.at(0.0).q[3] == pytest.approx(good[0])
    assert not timed.peaks().velocity[3].any()
    assert timed.sampled(rate=100, row=3).q.tolist() == [good[0].tolist()]
    alone = cell.time_path(good, acceleration=5.0)
    assert timed.duration[0] == pytest.approx(float(alone.duration))
    assert repr(alone) == f"<TimedPath: {float(alone.duration):.6g} s>"
    assert repr(timed).startswith("<TimedPath: 2 of 6 timed; 1 ")
    assert timed.summary()["REPEATED"] == 1
    with pytest.raises(StateError, match="no times: a waypoint is repeated"):
        timed.sampled(rate=100, row=2)
    with pytest.raises(StateError, match="batch of shape"):
        timed.sampled(rate=100)
    with pytest.raises(StateError, match="none is 6"):
        timed.sampled(rate=100, row=6)
    with pytest.raises(ModelError, match="The rate is a finite"):
        timed.sampled(rate=0.0, row=0)
    with pytest.raises(ShapeError, match="Instants"):
        timed.at(np.zeros((2, 3)))
    again = pickle.loads(pickle.dumps(timed))
    assert again.summary() == timed.summary()
    assert not timed.time.flags.writeable


def test_an_end_speed_that_is_too_far(cell: arm.Cell):
    line = np.array([[0.0] * 7, [0.01] * 7])
    short = cell.time_path(line, acceleration=1.0, end=1.0)
    assert short.reason == PathReason.END_TOO_FAST
    cannot_brake = cell.time_path(line, acceleration=1.0, start=1.0)
    assert cannot_brake.reason == PathReason.START_TOO_FAST


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["velocity", "acceleration"])
def test_limits_of_zero(cell: arm.Cell, name: str):
    limits = {"velocity": np.ones(7), "acceleration": np.ones(7)}
    limits[name][3] = 0.0
    path = random_paths(np.random.default_rng(18), "a joint rests", 1, 4)[0]
    still = path.copy()
    still[:, 3] = 0.3
    moves = path.copy()
    moves[:, 3] = [0.0, 0.1, 0.3, 0.2]
    assert cell.time_path(still, **limits).success
    stopped = cell.time_path(moves, **limits)
    assert stopped.reason == PathReason.STOPS
    assert repr(stopped) == "<TimedPath: stopped: limits leave no speed at a point>"


def test_fewer_joints(cell: arm.Cell):
    names = cell.joint_names[2:4]
    timed = cell.time_path([[0.0, 0.0], [1.0, 0.5]], acceleration=3.0, joints=names)
    limits = cell.velocity_limits[2:4]
    assert timed.at(0.1).q.shape == (2,)
    assert (timed.peaks().velocity <= limits * (1 + 1e-9)).all()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"path": np.zeros((3, 6))}, ShapeError, r"\(\.\.\., k, 7\)"),
        ({"path": np.zeros((1, 7))}, ShapeError, "two waypoints or more"),
        ({"path": np.zeros(7)}, ShapeError, "two waypoints or more"),
        ({"path": [[0.0] * 7, [0.0]]}, ShapeError, "unequal"),
        ({"path": [["a"] * 7] * 2}, ShapeError, "real numbers"),
        ({"velocity": np.ones(6)}, ShapeError, r"velocity is one number, or"),
        ({"acceleration": -1.0}, ModelError, "acceleration is negative or NaN"),
        ({"acceleration": np.nan}, ModelError, "acceleration is negative or NaN"),
        (
            {"velocity": np.inf, "acceleration": np.inf},
            ModelError,
            "no limit of velocity",
        ),
        ({"velocity": (np.ones(7), np.ones(7))}, ModelError, "wrong side of 0"),
        ({"velocity": (-np.ones(7), np.full(7, np.nan))}, ModelError, "or NaN"),
        ({"velocity": (-np.ones(7), np.ones(6))}, ShapeError, r"velocity\[1\] is"),
        ({"start": -1.0}, ModelError, "start is a path speed"),
        ({"end": np.nan}, ModelError, "end is a path speed"),
        ({"intervals": 1}, ModelError, "at least 2"),
        ({"intervals": 2.5}, ModelError, "whole number"),
        ({"at": [0.0, 1.0, 2.0]}, ShapeError, r"at needs the shape \(2,\)"),
        ({"derivatives": (np.ones((2, 7)),) * 2}, ModelError, "as at="),
        (
            {"derivatives": (np.ones((3, 7)),) * 2, "at": [0, 1]},
            ShapeError,
            r"derivatives\[0\] needs",
        ),
        ({"start": np.zeros(2), "end": np.zeros(3)}, ShapeError, "do not fit"),
        ({"joints": ["nobody"]}, arm.errors.UnknownName, "nobody"),
        ({"path_rates": (1.0, 1.0)}, ModelError, "give at=, too"),
        ({"path_rates": 1.0, "at": [0, 1]}, ShapeError, "path_rates= are two arrays"),
        ({"path_rates": (0.0, 1.0), "at": [0, 1]}, ModelError, "above 0, not 0.0"),
        (
            {"path_rates": (1.0, 1.0), "at": [0, 1], "torque": 1.0},
            ModelError,
            "path_rates= cannot be combined",
        ),
    ],
)
def test_what_is_refused(
    cell: arm.Cell, options: dict[str, Any], error: type[Exception], message: str
):
    given = {"path": np.array([[0.0] * 7, [1.0] * 7]), "acceleration": 1.0, **options}
    with pytest.raises(error, match=message):
        cell.time_path(given.pop("path"), **given)


def test_long_paths(cell: arm.Cell):
    path = random_paths(np.random.default_rng(19), "random", 1, 300)[0]
    timed = cell.time_path(path, acceleration=5.0)
    assert timed.success
    assert timed.time.shape == (2991,)
    rates, accelerations = use_at_points(timed, ())
    assert (rates <= cell.velocity_limits * (1 + 1e-9)).all()
    assert accelerations.max() <= 5.0 * (1 + 1e-9)


def test_curves_of_many_rows_are_those_of_each():
    rng = np.random.default_rng(0)
    at = np.cumsum(rng.uniform(0.1, 1.0, (37, 9)), axis=1)
    positions = rng.normal(size=(37, 9, 3))
    s = rng.uniform(at[:, :1], at[:, -1:], (37, 5))
    knots = natural_spline(at, positions)
    found = PathCurve(at, knots).at_parameters(s)
    for k in range(37):
        row = slice(k, k + 1)
        assert np.array_equal(natural_spline(at[row], positions[row])[0], knots[k])
        one = PathCurve(at[k], knots[k])
        assert np.array_equal(one.at_parameters(s[k]), found[k])
        # Between knots it is the cubic whose curvature is straight.
        first = np.searchsorted(at[k], s[k]) - 1
        part = (s[k] - at[k, first]) / (at[k, first + 1] - at[k, first])
        a, b = (knots[k, first + m, 2] for m in (0, 1))
        assert found[k, :, 2] == pytest.approx(a + part[:, None] * (b - a), abs=1e-9)
