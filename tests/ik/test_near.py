"""Answers near a known vector: singularities, limits and paths sampled finely."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import Cell
from armillary.errors import ShapeError
from armillary.ik.nearest_search import nearest_found
from armillary.ik.query import query_of
from armillary.ik.reason import Reason
from armillary.kernel.search import SearchOptions
from arms import arm_of_axes

example = cache(arm.example)
"""The same cell each time, with the kernels of other tests."""


def _at_limits(cell: Cell, count: int) -> np.ndarray:
    """Return random q with one joint of each at a limit."""
    rng = np.random.default_rng(0)
    n = len(cell.joint_names)
    q = rng.uniform(*cell.limits, (count, n))
    ends = np.array(cell.limits)[rng.integers(2, size=count)]
    one = np.arange(count), rng.integers(n, size=count)
    q[one] = ends[one]
    return q


def test_a_singular_wrist_takes_its_free_joint_from_near() -> None:
    cell = example("irb2400")
    ik, fk = cell.ik("tool0"), cell.fk("tool0")
    q = np.random.default_rng(0).uniform(-0.9, 0.9, (50, 6))
    q[:, 4] = 0.0
    answer = ik(fk(q), near=q)
    assert (answer.reason == Reason.SINGULAR).all()
    np.testing.assert_allclose(answer.q, q, atol=1e-9)
    moved = q + 0.1 * np.eye(6)[3]
    answer = ik(fk(q), near=moved)
    np.testing.assert_allclose(answer.q[:, 3], moved[:, 3], atol=1e-9)
    np.testing.assert_allclose(fk(answer.q), fk(q), atol=1e-9)
    every = ik.all(fk(q), near=moved)
    apart = np.abs(every.q - answer.q[:, None]).max(axis=2)
    assert np.nanmin(apart, axis=1).max() < 1e-9


def test_answers_at_limits_are_verified_at_the_tolerance() -> None:
    cell = example("irb2400")
    ik, fk = cell.ik("tool0"), cell.fk("tool0")
    q = _at_limits(cell, 500)
    targets = fk(q).astype(np.float32)
    answer = ik(targets, near=q)
    assert answer.success.all()
    assert ((answer.q >= cell.limits[0]) & (answer.q <= cell.limits[1])).all()
    apart = fk(answer.q) - targets
    assert np.linalg.norm(apart[:, :3, 3], axis=1).max() < 1e-6
    assert np.abs(answer.residual[:, 0]).max() < 1e-6
    every = ik.all(targets)
    assert every.success.any(axis=1).all()
    found = every.q[every.success]
    assert ((found >= cell.limits[0]) & (found <= cell.limits[1])).all()
    beyond = every.q[every.reason == Reason.LIMITS]
    assert ((beyond < cell.limits[0]) | (beyond > cell.limits[1])).any(axis=1).all()


@pytest.mark.parametrize("shift", [1e-8, 3e-7, 5e-7])
def test_a_target_off_by_less_than_the_tolerance_is_met_at_limits(shift: float) -> None:
    """`near` itself is an answer: no other branch is as near, and none is blocked."""
    cell = example("irb2400")
    ik, fk = cell.ik("tool0"), cell.fk("tool0")
    q = _at_limits(cell, 3000)
    targets = fk(q)
    targets[:, 2, 3] += shift
    answer = ik(targets, near=q)
    assert answer.success.all()
    assert np.abs(answer.q - q).max() < 0.02
    assert ((answer.q >= cell.limits[0]) & (answer.q <= cell.limits[1])).all()
    apart = np.linalg.norm((fk(answer.q) - targets)[:, :3, 3], axis=1)
    assert apart.max() < 1e-6
    single = [ik(x, near=y).q for x, y in zip(targets[:50], q, strict=False)]
    np.testing.assert_allclose(single, answer.q[:50], atol=1e-9)


@pytest.mark.parametrize("beside", [0.0, 1e-9, 1e-6])
def test_a_servo_loop_through_two_singularities_at_once_does_not_jump(
    beside: float,
) -> None:
    """The wrist's centre is on axis 1 while axes 4 and 6 align."""
    cell = example("irb2400")
    ik, fk = cell.ik("tool0"), cell.fk("tool0")
    s = np.linspace(-1.0, 1.0, 401)[:, None]
    middle = np.array([0.3, -0.8, -0.036426543283135784, 0.4, 0.0, 0.2])
    path = middle + beside + s * np.array([0.1, 0.0, 0.3, 0.2, 0.1, 0.2])
    q, steps = path[0], []
    for target in fk(path[1:]):
        answer = ik(target, near=q)
        assert answer.success
        steps.append(np.abs(answer.q - q).max())
        q = answer.q
    assert max(steps) < 3.0 * np.abs(np.diff(path, axis=0)).max()


def test_a_slide_at_its_limit_answers_as_far_as_the_tolerance() -> None:
    cell = example("scara")
    frame = cell.manipulators[-1].links[-1].name
    ik, fk = cell.ik(frame), cell.fk(frame)
    q = np.array([0.3, 0.8, cell.limits[1][2], 0.2])
    target = fk(q)
    for missed, reason in ((1e-8, "SOLVED"), (9e-7, "SOLVED"), (2e-6, "LIMITS")):
        target[2, 3] = fk(q)[2, 3] + missed
        answer = ik(target, near=q)
        assert Reason(int(answer.reason)).name == reason
        np.testing.assert_allclose(answer.q, q, atol=1e-12)
        np.testing.assert_allclose(answer.residual[0], missed, rtol=1e-6)
        assert ik.all(target, near=q).success.any() == (reason == "SOLVED")
    assert ik(target, near=q, tolerance=(1e-5, 1e-6)).success


def test_near_beyond_limits_is_brought_inside() -> None:
    cell = example("irb2400")
    ik, fk = cell.ik("tool0"), cell.fk("tool0")
    q = np.random.default_rng(0).uniform(-0.9, 0.9, (100, 6))
    for near in (10.0, -10.0, 1e6):
        wanted = np.clip(np.full(6, near), *cell.limits)
        answer = ik(fk(q), near=np.full(6, near))
        assert answer.success.all()
        assert np.array_equal(answer.q, ik(fk(q), near=wanted).q)
    X, numeric = fk(q[:20]), {"method": "numeric"}
    for near in (10.0, -10.0):
        wanted = np.clip(np.full(6, near), *cell.limits)
        answer = ik(X, near=np.full(6, near), **numeric)
        assert np.array_equal(answer.q, ik(X, near=wanted, **numeric).q)


@pytest.mark.parametrize("method", ["closed", "numeric"])
def test_near_must_be_numbers(method: str) -> None:
    ik = example("irb2400").ik("tool0")
    near = np.zeros((2, 6))
    near[1, 3] = np.nan
    with pytest.raises(ShapeError, match="near must contain joint positions, but 1 of"):
        ik(np.eye(4)[None].repeat(2, axis=0), near=near, method=method)


LIMITS = np.radians([170, 120, 170, 120, 170, 120, 175])


def _iiwa(limit: float | np.ndarray = LIMITS) -> Cell:
    _, y, z = np.eye(3)
    points = np.outer([0.36, 0.36, 0.36, 0.78, 1.18, 1.18, 1.18], z)
    return arm_of_axes("RRRRRRR", [z, y, z, -y, z, y, z], points, limit=limit)


CELLS = {
    "irb2400": (lambda: example("irb2400"), "tool0", 6),
    "ur10": (lambda: example("ur10_on_rail"), "tool0", 6),
    "scara": (lambda: example("scara"), None, 4),
    "iiwa": (cache(_iiwa), "tool", 7),
    "oval": (lambda: example("ur5e_on_oval"), "tool0", 7),
}


# Here the free motion comes close to a singular pose that the path keeps away from.
DRIFTS = {("iiwa", "xy", 0)}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("rotation", ["xyz", "xy", ""])
@pytest.mark.parametrize("name", CELLS)
def test_a_servo_loop_steps_as_its_path_does(
    name: str, rotation: str, seed: int
) -> None:
    """Joint paths through a singular wrist, and along a limit, sampled finely."""
    make, frame, count = CELLS[name]
    cell = make()
    frame = frame or cell.manipulators[-1].links[-1].name
    joints = list(cell.joint_names[-count:])
    ik = cell.ik(frame, joints=joints, rotation=rotation)
    low, high = (limit[-count:] for limit in cell.limits)
    rng = np.random.default_rng(seed)
    inner, outer = np.clip(low, -2.6, 2.6), np.clip(high, -2.6, 2.6)
    span = outer - inner
    middle = rng.uniform(inner + 0.15 * span, outer - 0.15 * span)
    size = 0.2 * np.minimum(1.0, span / 3.0)
    t = np.linspace(0.0, 1.0, 400)[:, None]
    turn = 2.0 * np.pi * (t * rng.uniform(0.5, 1.2, count) + rng.random(count))
    path = middle + size * rng.uniform(0.4, 1.0, count) * np.sin(turn)
    if seed % 2 == 0 and count > 4:
        path[:, -2] = 0.16 * np.sin(3.0 * np.pi * t[:, 0])
    else:
        k = rng.integers(count)
        way = np.maximum(0.0, np.sin(2.0 * np.pi * t[:, 0]))
        path[:, k] = np.minimum(high[k], 9.0) - 0.6 * size[k] * way
    path = np.clip(path, low, high)
    q, steps = path[0], []
    for target in cell.fk(frame, joints=joints)(path[1:]):
        answer = ik(target, near=q)
        assert answer.success
        steps.append(np.abs(answer.q - q).max())
        q = answer.q
    most = np.abs(np.diff(path, axis=0)).max()
    assert max(steps) <= (5.0 if (name, rotation, seed) in DRIFTS else 3.0) * most


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(1, 3))
@pytest.mark.parametrize(
    ("name", "k", "end"), [("ur10", 3, 1), ("ur10", 3, 0), ("irb2400", 5, 0)]
)
def test_a_joint_at_its_limit_does_not_turn_where_the_wrist_is_singular(
    name: str, k: int, end: int, seed: int
) -> None:
    """A closed form takes one joint from near there, and another may not follow."""
    make, frame, count = CELLS[name]
    cell = make()
    joints = list(cell.joint_names[-count:])
    ik = cell.ik(frame, joints=joints)
    low, high = (limit[-count:] for limit in cell.limits)
    rng = np.random.default_rng(seed)
    inner, outer = np.clip(low, -2.6, 2.6), np.clip(high, -2.6, 2.6)
    span = outer - inner
    middle = rng.uniform(inner + 0.15 * span, outer - 0.15 * span)
    size = 0.2 * np.minimum(1.0, span / 3.0)
    t = np.linspace(0.0, 1.0, 400)[:, None]
    turn = 2.0 * np.pi * (t * rng.uniform(0.5, 1.2, count) + rng.random(count))
    path = middle + size * rng.uniform(0.4, 1.0, count) * np.sin(turn)
    path[:, 4] = 0.16 * np.sin(3.0 * np.pi * t[:, 0])
    inward = 0.1 * np.maximum(0.0, np.sin(2.0 * np.pi * t[:, 0]))
    path[:, k] = high[k] - inward if end else low[k] + inward
    most = np.abs(np.diff(path, axis=0)).max()
    q = path[0]
    for target in cell.fk(frame, joints=joints)(path[1:]):
        answer = ik(target, near=q)
        assert answer.success
        assert np.abs(answer.q - q).max() <= 3.0 * most
        q = answer.q


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rotation", ["xyz", ""])
@pytest.mark.parametrize("name", ["ur10", "oval"])
def test_a_search_gives_the_nearest_of_many_answers(name: str, rotation: str) -> None:
    make, frame, count = CELLS[name]
    cell = make()
    joints = list(cell.joint_names[-count:])
    ik = cell.ik(frame, joints=joints, rotation=rotation).numeric
    low, high = (np.clip(limit[-count:], -3.1, 3.1) for limit in cell.limits)
    rng = np.random.default_rng(0)
    q, near = rng.uniform(low, high, (2, 50, count))
    targets = cell.fk(frame, joints=joints)(q)
    answer = ik(targets, near=near)
    assert answer.success.all()
    found = np.linalg.norm(answer.q - near, axis=1)
    best = np.full(50, np.inf)
    for _ in range(40):
        other = ik(targets, seed=rng.uniform(low, high, near.shape))
        apart = np.linalg.norm(other.q - near, axis=1)
        best = np.minimum(best, np.where(other.success, apart, np.inf))
    assert (found <= 1.3 * best).mean() >= 0.9
    whole = answer.q - 2.0 * np.pi * np.sign(answer.q - near)
    allowed = (whole >= cell.limits[0][-count:]) & (whole <= cell.limits[1][-count:])
    turns = allowed & (np.abs(answer.q - near) > np.pi + 1e-9)
    assert not turns[:, -6:].any()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["irb2400", "ur10", "iiwa", "oval"])
def test_answers_near_a_vector_meet_fine_tolerances(name: str) -> None:
    """The pull to the vector does not keep the error from vanishing."""
    make, frame, count = CELLS[name]
    cell = make()
    joints = list(cell.joint_names[-count:])
    ik = cell.ik(frame, joints=joints).numeric
    low, high = (np.clip(limit[-count:], -2.5, 2.5) for limit in cell.limits)
    rng = np.random.default_rng(0)
    q = rng.uniform(low, high, (200, count))
    near = np.clip(q + rng.uniform(-0.05, 0.05, q.shape), low, high)
    targets = cell.fk(frame, joints=joints)(q)
    answer = ik(targets, near=near, tolerance=(1e-10, 1e-10))
    assert answer.success.mean() >= 0.99
    assert (answer.reason != Reason.LIMITS).all()
    ordinary = ik(targets, near=near)
    moved = np.linalg.norm(answer.q - near, axis=1)[answer.success]
    least = np.linalg.norm(ordinary.q - near, axis=1)[answer.success]
    assert (moved <= 1.01 * least + 1e-4).mean() >= 0.99


def test_what_is_found_without_a_vector_is_found_near_one() -> None:
    """Next to a stretched elbow the pull to the vector may keep errors alive."""
    cell = _iiwa()
    ik = cell.ik("tool").numeric
    low, high = (np.clip(limit, -2.5, 2.5) for limit in cell.limits)
    rng = np.random.default_rng(0)
    near = rng.uniform(low, high, (4000, 7))
    near[:, 3] = rng.uniform(-1e-3, 1e-3, 4000)
    targets = cell.fk("tool")(near + rng.uniform(-0.01, 0.01, near.shape))
    found, drawn = ik(targets).success, ik(targets, near=near).success
    assert found.mean() > 0.99
    assert drawn[found].all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ["closed", "numeric"])
@pytest.mark.parametrize("far", [1e5, -1e7, 1e12])
def test_answers_near_a_far_vector_reach_the_target(far: float, method: str) -> None:
    """Whole turns end where their rounding would be seen."""
    cell = _iiwa(limit=np.inf)
    ik, fk = cell.ik("tool"), cell.fk("tool")
    targets = fk(np.random.default_rng(0).uniform(-2.0, 2.0, (20, 7)))
    answer = ik(targets, near=np.full(7, far), method=method, tolerance=(1e-7, 1e-7))
    assert answer.success.all()
    apart = np.linalg.norm((fk(answer.q) - targets)[:, :3, 3], axis=1)
    np.testing.assert_allclose(answer.residual[:, 0], apart, atol=2e-9)
    assert np.abs(answer.q).min() > 0.99 * min(abs(far), 2.0**20)


def test_an_answer_that_whole_turns_bring_within_limits_is_solved() -> None:
    cell = example("ur10_on_rail")
    joints = list(cell.joint_names[-6:])
    ik = cell.ik("tool0", joints=joints)
    rng = np.random.default_rng(0)
    q = rng.uniform(3.5, 6.0, (20, 6)) * rng.choice([-1.0, 1.0], (20, 6))
    q[:, 2] = rng.uniform(0.3, 2.5, 20)
    targets = cell.fk("tool0", joints=joints)(q)
    brief = SearchOptions(starts=1, steps=1)
    answer = ik.numeric(targets, seed=np.zeros((20, 6)), search_options=brief)
    assert (answer.reason == Reason.SOLVED).mean() > 0.9
    np.testing.assert_allclose(
        cell.fk("tool0", joints=joints)(answer.q[answer.success]),
        targets[answer.success],
        atol=5e-6,
    )


@pytest.mark.parametrize("method", ["closed", "numeric"])
def test_the_residual_of_missed_targets_is_their_true_distance_and_angle(
    method: str,
) -> None:
    cell = example("irb2400")
    ik, fk = cell.ik("tool0"), cell.fk("tool0")
    q = np.random.default_rng(0).uniform(*cell.limits, (40, 6))
    targets = fk(q)
    targets[:, :3, 3] *= 3.0
    brief = SearchOptions(starts=2)
    answer = ik(targets, near=np.zeros(6), method=method, search_options=brief)
    missed = ~answer.success
    assert missed.sum() > 10
    apart = fk(answer.q)[:, :3, :3].mT @ targets[:, :3, :3]
    cosine = 0.5 * (np.trace(apart, axis1=1, axis2=2) - 1.0)
    angle = np.arccos(np.clip(cosine, -1.0, 1.0))
    distance = np.linalg.norm((fk(answer.q) - targets)[:, :3, 3], axis=1)
    np.testing.assert_allclose(answer.residual[missed, 0], distance[missed], rtol=1e-6)
    np.testing.assert_allclose(answer.residual[missed, 1], angle[missed], atol=1e-5)
    assert method == "closed" or (angle[missed] > 0.5 * np.pi).any()


def test_blocked_arm_angles_give_way_to_the_nearest_other() -> None:
    cell = _iiwa()
    ik, fk = cell.ik("tool"), cell.fk("tool")
    rng = np.random.default_rng(0)
    low, high = cell.limits
    q, near = rng.uniform(low, high, (2, 200, 7))
    targets, angle = fk(q), ik.closed.arm_angle(near)
    given = ik.all(targets, arm_angle=angle, near=near)
    blocked = ~given.success.any(axis=1)
    assert blocked.sum() > 20
    answer = ik(targets, near=near)
    assert answer.success.all()
    found = ((answer.q - near) ** 2).sum(axis=1)
    for k in range(1, 16):
        other = ik.all(targets, arm_angle=angle + k * np.pi / 8.0, near=near)
        steps = np.where(other.success, ((other.q - near[:, None]) ** 2).sum(2), np.inf)
        assert (found <= steps.min(axis=1) + 1e-9)[blocked].all()
    kept = ik(targets[blocked], near=near[blocked], arm_angle=angle[blocked])
    assert (kept.reason == Reason.LIMITS).mean() > 0.9
    assert not kept.success.any()


@pytest.mark.parametrize("k", [0, 1, 2, 4, 5, 6])
def test_a_joint_at_its_limit_leaves_the_rest_to_the_others(k: int) -> None:
    """Without an active set about half of these starts get stuck."""
    cell = _iiwa()
    ik, (low, high) = cell.ik("tool").numeric, cell.limits
    rng = np.random.default_rng(0)
    q = rng.uniform(0.9 * low, 0.9 * high, (200, 7))
    q[:, k] = np.where(np.arange(200) % 2, low[k], high[k])
    seed = np.clip(q + rng.uniform(-0.3, 0.3, q.shape), low, high)
    seed[:, k] = q[:, k]
    once = SearchOptions(steps=40, stale_from=40, starts=1)
    targets = cell.fk("tool")(q)
    answer = ik(targets, seed=seed, search_options=once, explain=False)
    assert answer.success.mean() > 0.95
    assert ik.local(query_of(ik.problem, targets, near=seed)).success.mean() > 0.95


def test_a_joint_at_its_limit_that_must_leave_it_for_another_does() -> None:
    """One stands at its limit and another comes to one, which draws the first back.

    Both were kept at their limits, and the answer found was a turn of the elbow away.
    """
    turns = np.radians([170, 120, 170, 120, 170, 120, 175])
    axes = np.array([[0, 0, 1], [0, 1, 0], [0, 0, 1], [0, -1, 0]] + [[0, 0, 1]] * 3)
    axes[5] = 0, 1, 0
    points = np.zeros((7, 3))
    points[:, 2] = 0.36, 0.36, 0.36, 0.78, 1.18, 1.18, 1.18
    tool = arm.Pose.translation(0.0, 0.0, 0.126)
    cell = arm_of_axes("RRRRRRR", axes, points, tool=tool, limit=turns)
    near = np.array([-2.96132, 0.70692, -1.28963, 1.15243, 0.0, -1.39083, 1.55412])
    near[4] = turns[4]
    own = near + np.array([0, 0.01206, 0.01844, 0.0015, -0.00026, 0.00093, 0.00156])
    own[0] = -turns[0]
    target, ik = cell.fk("tool")(own), cell.ik("tool")
    for given in (target, target[None]):
        answer = ik(given, near=near)
        assert np.abs(answer.q - near).max() < 0.02
        np.testing.assert_allclose(cell.fk("tool")(answer.q), given, atol=2e-6)


def test_a_target_within_the_tolerance_of_limits_is_solved() -> None:
    """The joints that are not at limits make up for what the other may not do."""
    cell = example("irb2400")
    ik, fk = cell.ik("tool0"), cell.fk("tool0")
    q = _at_limits(cell, 1000)
    X = fk(q)
    off = np.random.default_rng(1).normal(size=(1000, 3))
    X[:, :3, 3] += 3e-7 * off / np.linalg.norm(off, axis=1)[:, None]
    found = ik(X)
    assert set(np.unique(found.reason)) <= {Reason.SOLVED, Reason.LIMITS}
    assert (found.reason == Reason.LIMITS).sum() <= 10  # of 25 without a local search
    solved = found.q[found.success]
    assert (np.clip(solved, *cell.limits) == solved).all()
    left = np.linalg.norm(fk(solved)[:, :3, 3] - X[found.success, :3, 3], axis=1)
    assert left.max() <= 1e-6


# how much is searched


def test_a_servo_step_is_one_search() -> None:
    """Whatever is within 0.5 of `near` is taken at once, of many targets as of one."""
    cell = example("irb2400")
    ik = cell.ik("tool0")
    problem = ik.numeric.problem
    q = np.random.default_rng(0).uniform(0.2, 0.8, (20, 6))
    rows = cell.fk("tool0")(q).reshape(20, 16)
    asked = []

    def search(rows: np.ndarray, options: Any, seeds: np.ndarray) -> Any:
        asked.append(len(rows))
        plan = ik.numeric._plan(query_of(problem, rows.reshape(-1, 4, 4)), options)
        both = np.concatenate([rows, seeds], axis=1)
        return ik.numeric._search(True)(both, plan, seeds=seeds)

    found = nearest_found(search, rows, q + 0.01, problem, 0, 1e-6)
    assert found.failures == 0
    assert asked == [20]
    far = q + 0.01
    far[3] += 1.5
    nearest_found(search, rows, far, problem, 0, 1e-6)
    assert asked[1:3] == [20, 20]  # the starts around one of them


def test_what_the_tolerance_allows_is_not_out_of_reach_where_a_search_misses() -> None:
    """A stretched arm is shorter than the target is far, by less than that."""
    axes, points = np.eye(3)[[2, 1, 2, 1, 2, 1, 2]], np.zeros((7, 3))
    points[3:, 2], points[4:, 2] = 0.4, 0.8
    cell = arm_of_axes("RRRRRRR", axes, points)
    target = np.array(cell.fk("tool")(np.zeros(7)))
    target[2, 3] += 5e-4
    ik = cell.ik("tool")
    once = arm.SearchOptions(starts=1, steps=2)
    wide = {"tolerance": (1e-3, 1e-3), "search_options": once}
    rng = np.random.default_rng(0)
    for seed in rng.uniform(-3.0, 3.0, (20, 7)):
        for start in ({"seed": seed}, {"near": seed}):
            answer = ik(target, method="numeric", **start, **wide)
            assert answer.reason != arm.Reason.OUT_OF_REACH
    assert ik(target).reason == arm.Reason.OUT_OF_REACH
