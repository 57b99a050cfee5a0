"""Paths: no jump where none is needed, the fewest where some are, each of them told."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, ShapeError
from armillary.ik.inverse_kinematics import InverseKinematics
from armillary.ik.method import Candidates
from armillary.ik.path import Path, best_of, judged, measure_of
from armillary.ik.path_graph import WholeTurns, through
from armillary.ik.path_planner import ROUNDS, PathPlanner, evened
from armillary.ik.query import IKQuery, query_of
from armillary.ik.reason import Reason
from arms import TAU, arm_of_axes

LARGEST = 0.5


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    return arm.example("ur5e_on_oval")


@pytest.fixture(scope="module")
def ik(cell: arm.Cell):
    return cell.ik("tool0", joints=list(cell.joint_names[1:]))


def _way(cell: arm.Cell, a: list[float], b: list[float], count: int) -> np.ndarray:
    u = np.linspace(0.0, 1.0, count)[:, None]
    q = np.array(a) * (1.0 - u) + np.array(b) * u
    return cell.fk("tool0", joints=list(cell.joint_names[1:]))(q)


def test_a_motion_of_joints_is_followed_from_anywhere(cell: arm.Cell, ik):
    rng = np.random.default_rng(0)
    for _ in range(5):
        a = rng.uniform(-1.5, 1.5, 6)
        targets = _way(cell, a.tolist(), (a + rng.uniform(-0.6, 0.6, 6)).tolist(), 200)
        path = ik.path(targets)
        assert path.answer.success.all()
        assert path.jumps.size == 0
        assert path.largest_step < 0.2


def test_a_straight_wrist_on_the_way_is_passed(cell: arm.Cell, ik):
    """There the closed form has no single answer; the way goes on all the same."""
    a = [0.3, -1.2, 1.4, -1.0, -0.4, 0.2]
    b = [0.3, -1.2, 1.4, -1.0, 0.4, 0.2]
    targets = _way(cell, a, b, 201)
    path = ik.path(targets, start=a)
    assert path.answer.success.all()
    assert path.jumps.size == 0


def test_a_start_far_from_the_first_pose_counts_as_a_jump(cell: arm.Cell, ik):
    a = [0.3, -1.2, 1.4, -1.0, 0.9, 0.2]
    targets = _way(cell, a, a, 3)
    assert list(ik.path(targets, start=a).jumps) == []
    far = [a[0] + 2.0, *a[1:]]
    assert list(ik.path(targets, start=far).jumps) == [0]


def test_rows_that_fail_are_reported_and_the_way_goes_on(cell: arm.Cell, ik):
    a = [0.3, -1.2, 1.4, -1.0, 0.9, 0.2]
    targets = _way(cell, a, [0.5, -1.0, 1.2, -0.8, 1.1, 0.4], 40)
    targets[7, 0, 0] = math.nan
    targets[20, :3, 3] = 50.0
    path = ik.path(targets, start=a)
    assert path.answer.reason[7] == Reason.INVALID_TARGET
    assert path.answer.reason[20] == Reason.OUT_OF_REACH
    assert np.delete(path.answer.success, [7, 20]).all()
    good = np.delete(path.answer.q, [7, 20], axis=0)
    assert np.abs(np.diff(good, axis=0)).max() < 0.1


@pytest.mark.parametrize("method", [None, "closed", "numeric"])
def test_an_empty_path_is_empty(ik, method: str | None):
    path = ik.path(np.zeros((0, 4, 4)), method=method)
    assert path.answer.q.shape == (0, 6)
    assert path.jumps.size == 0


def test_a_path_is_one_sequence(ik):
    with pytest.raises(ShapeError, match="one sequence"):
        ik.path(np.tile(np.eye(4), (2, 3, 1, 1)))


def _planner(ik: InverseKinematics, query: IKQuery) -> PathPlanner:
    shape = len(query.targets), len(ik.joints)
    return PathPlanner((), ik.numeric, query, *measure_of(LARGEST, None, shape))


# limits of each joint, and weights


def test_a_limit_of_a_joint_at_a_pose_makes_a_jump_there(cell: arm.Cell, ik):
    """Limits that the motion just keeps are no jumps; one that it does not is one."""
    q = np.linspace(
        [0.3, -1.2, 1.4, -1.0, 0.9, 0.5], [0.9, -1.0, 1.1, -0.6, 1.3, 0.0], 60
    )
    targets = cell.fk("tool0", joints=list(cell.joint_names[1:]))(q)
    rates, times = np.abs(q[-1] - q[0]) * 1.01, np.linspace(0.0, 1.0, 60)
    limits = rates * np.diff(times, prepend=-1.0 / 59)[:, None]
    for largest in (limits, limits[0]):
        assert ik.path(targets, start=q[0], largest_step=largest).jumps.size == 0
    limits[17, 3] *= 0.9
    assert ik.path(targets, start=q[0], largest_step=limits).jumps.tolist() == [17]


@pytest.mark.parametrize("seed", range(4))
def test_no_way_within_limits_of_joints_has_a_smaller_weighted_sum(seed: int):
    rng = np.random.default_rng(seed)
    count, branches = 5, 3
    q = rng.uniform(-0.7, 0.7, (count, branches, 2))
    most = rng.uniform(0.2, 1.2, (count, 2))
    weights = np.array([1.0, rng.uniform(0.1, 1.0)])
    start = q[0, 0]

    def cost(way: np.ndarray) -> tuple[int, float]:
        steps = np.abs(np.diff(way, axis=0, prepend=start[None]))
        jumps = (steps > most).any(axis=1)
        sizes = (steps * weights).max(axis=1)
        return int(jumps.sum()), float((sizes[~jumps] ** 2).sum())

    success = np.ones((count, branches), np.bool_)
    found = through(_layers(q, success), _no_turns(2), most, start, weights)
    ways = itertools.product(range(branches), repeat=count)
    least = min(cost(q[np.arange(count), list(way)]) for way in ways)
    got = cost(found.q[:, 0])
    assert got[0] == least[0]
    assert got[1] == pytest.approx(least[1], abs=1e-4)


def test_a_weight_leaves_a_motion_to_other_joints(cell: arm.Cell):
    """The cart has no need to move as far as where the poses come from."""
    ik, u = cell.ik("tool0"), np.linspace(0.0, 1.0, 60)[:, None]
    q = np.array([0.0, 0.3, -1.2, 1.4, -1.0, 0.9, 0.5]) + u * 0.3
    targets, weights = cell.fk("tool0")(q), np.array([10.0, *np.ones(6)])
    plain, weighted = (ik.path(targets, start=q[0], weights=w) for w in (None, weights))
    assert weighted.answer.success.all()
    assert weighted.jumps.size == 0
    moved, less = (np.abs(np.diff(p.answer.q[:, 0])).sum() for p in (plain, weighted))
    assert less < 0.7 * moved


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"largest_step": np.ones(5)}, "one for each of 6 joints"),
        ({"largest_step": [0.5, 0.5, 0.0, 0.5, 0.5, 0.5]}, "above 0"),
        ({"largest_step": np.nan}, "above 0"),
        ({"weights": np.ones(5)}, "6"),
        ({"weights": -np.ones(6)}, "above 0"),
    ],
)
def test_steps_and_weights_must_fit(cell: arm.Cell, ik, given: dict, text: str):
    targets = _way(cell, [0.1] * 6, [0.2] * 6, 3)
    with pytest.raises(ShapeError, match=text):
        ik.path(targets, **given)


# the way through layers


def _layers(q: np.ndarray, success: np.ndarray) -> Candidates:
    reason = np.where(success, 0, 1).astype(np.int8)
    return Candidates(q=q, reason=reason, residual=np.zeros((*success.shape, 2)))


def _no_turns(n: int) -> WholeTurns:
    far = np.full(n, 9.0)
    return WholeTurns(np.zeros(n, np.bool_), (-far, far), np.zeros(n))


def _cost(way: np.ndarray, start: np.ndarray | None) -> tuple[int, float]:
    came = way[:1] if start is None else start[None]
    steps = np.abs(np.diff(way, axis=0, prepend=came)).max(axis=1)
    jumps = steps > LARGEST
    return int(jumps.sum()), float((steps[~jumps] ** 2).sum())


@pytest.mark.sampled(8)
@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_no_way_through_the_answers_is_better(seed: int, begun: bool):
    """All ways of a short path are compared, also those that must jump."""
    rng = np.random.default_rng(seed)
    count, branches = 6, 3
    spread = 0.6 if seed % 2 else 1.2
    q = rng.uniform(-1.0, 1.0, (count, branches, 2)) * spread
    success = rng.uniform(size=(count, branches)) < 0.7
    success[rng.integers(count)] = True
    start = q[0, 0] if begun else None
    found = through(_layers(q, success), _no_turns(2), LARGEST, start)
    some = [k for k in range(count) if success[k].any()]
    assert found.success[:, 0].tolist() == success.any(axis=1).tolist()
    missed = [k for k in range(count) if k not in some]
    assert (found.q[missed, 0] == q[missed, 0]).all()
    ways = itertools.product(*(np.flatnonzero(success[k]) for k in some))
    least = min(_cost(q[some, list(way)], start) for way in ways)
    got = _cost(found.q[some, 0], start)
    assert got[0] == least[0]
    assert got[1] == pytest.approx(least[1], abs=1e-4)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_no_choice_of_turns_is_better(seed: int, begun: bool):
    """Each answer stands for several, whole turns apart, as far as limits allow."""
    rng = np.random.default_rng(seed)
    lower, upper = np.array([-6.0, -1.0, -4.0]), np.array([6.5, 1.0, 3.5])
    turning = np.array([True, False, True])
    count = 5
    drift = np.cumsum(rng.uniform(-0.9, 2.2, (count, 1, 3)), axis=0)
    q = (drift + rng.uniform(-0.3, 0.3, (count, 2, 3)) + np.pi) % TAU - np.pi
    q[..., 1] = rng.uniform(-0.4, 0.4, (count, 2))
    success = np.ones((count, 2), np.bool_)
    start = rng.uniform(lower, upper) if begun else None
    turns = WholeTurns(turning, (lower, upper), np.zeros(3))
    found = through(_layers(q, success), turns, LARGEST, start).q[:, 0]
    assert ((found >= lower) & (found <= upper)).all()
    whole = (found[:, None] - q) / TAU
    assert (np.abs(whole - np.round(whole)).max(axis=2).min(axis=1) < 1e-12).all()
    every = []
    for answers in q:
        options = [
            answer + TAU * np.array([a, 0, b])
            for answer in answers
            for a in range(-2, 3)
            for b in range(-2, 3)
        ]
        every.append([x for x in options if (x >= lower).all() and (x <= upper).all()])
    # the least by dynamic programming over pairs, jumps and squares told apart
    costs = [(0, 0.0) if start is None else _cost(x[None], start) for x in every[0]]
    for before, now in itertools.pairwise(every):
        costs = [
            min(
                (jumps + _cost(x[None], y)[0], squares + _cost(x[None], y)[1])
                for (jumps, squares), y in zip(costs, before, strict=True)
            )
            for x in now
        ]
    got, least = _cost(found, start), min(costs)
    assert got[0] == least[0]
    assert got[1] == pytest.approx(least[1], abs=1e-4)


@pytest.mark.parametrize("start", [0.25, 2.0, 2.0 - TAU])
def test_neighbouring_answers_may_go_on_in_different_turns(start: float):
    """Turns are counted from the lower limit: one answer passes it, one does not."""
    q = np.array([[[0.25], [2.0]], [[0.3], [2.05]]])  # the limit is at 0.283 + 2 pi k
    turns = WholeTurns(
        np.array([True]), (np.full(1, -6.0), np.full(1, 6.0)), np.zeros(1)
    )
    success = np.ones((2, 2), np.bool_)
    found = through(_layers(q, success), turns, LARGEST, np.array([start]))
    assert found.q[:, 0, 0] == pytest.approx([start, start + 0.05])


def test_a_joint_without_limits_is_not_turned_back():
    angle = np.linspace(0.0, 30.0, 200)
    q = np.stack([(angle + np.pi) % TAU - np.pi, np.zeros(200)], axis=1)[:, None]
    endless = np.full(2, np.inf)
    turns = WholeTurns(np.array([True, False]), (-endless, endless), np.zeros(2))
    success = np.ones((200, 1), np.bool_)
    found = through(_layers(q, success), turns, LARGEST, np.array([TAU, 0.0]))
    assert found.q[:, 0, 0] == pytest.approx(angle + TAU)


def test_turns_beyond_those_that_are_kept_are_near_the_start():
    limit = np.array([100.0])
    start = np.array([50.0])
    turns = WholeTurns(np.array([True]), (-limit, limit), start)
    answer = np.array([[[0.3]]])
    found = through(_layers(answer, np.array([[True]])), turns, LARGEST, start)
    assert abs(found.q[0, 0, 0] - 50.0) <= np.pi
    assert (found.q[0, 0, 0] - 0.3) / TAU == pytest.approx(8.0)


# what makes a path better than another


def _answer(q: np.ndarray, missed: tuple[int, ...] = ()) -> Candidates:
    reason = np.zeros(len(q), np.int8)
    reason[list(missed)] = Reason.NOT_FOUND
    return Candidates(q=q[:, None], reason=reason, residual=np.zeros((len(q), 2)))


def _step_by_step(ik, X: np.ndarray, start: np.ndarray) -> Path:
    way = ik.numeric.follow(query_of(ik.numeric.problem, X), start)
    return judged(way, LARGEST, start)


def test_jumps_are_steps_beyond_the_largest_and_misses():
    q = np.array([[0.0, 0.0], [0.5, 0.1], [0.5, -0.41], [0.6, -0.3], [0.7, -0.2]])
    path = judged(_answer(q, missed=(3,)), 0.5)
    assert path.jumps.tolist() == [2, 3]
    assert path.largest_step == pytest.approx(0.5)  # of the steps to 1 and 4
    assert judged(_answer(q), 0.5, np.array([0.6, 0.0])).jumps.tolist() == [0, 2]
    assert judged(_answer(q[:1]), 0.5).largest_step == 0.0


def test_fewer_jumps_count_more_than_small_steps():
    jumps = judged(_answer(np.array([[0.0], [0.01], [0.8]])), 0.5)
    large = judged(_answer(np.array([[0.0], [0.4], [0.8]])), 0.5)
    even = judged(_answer(np.array([[0.0], [0.2], [0.4]])), 0.5)
    assert best_of([jumps, large]) is large
    assert best_of([large, even, jumps]) is even


def test_a_step_that_stands_out_is_a_jump():
    """However small it is, if its target moves no farther than others."""
    q = np.cumsum([0.0, 0.01, 0.01, 0.06, 0.01, 0.02, 0.05, 0.05])[:, None]
    assert judged(_answer(q), LARGEST).jumps.tolist() == [3]
    moves = np.array([0.0, 1.0, 1.0, 6.0, 1.0, 1.0, 1.0, 1.0])
    assert judged(_answer(q), LARGEST, moves=moves).jumps.size == 0
    assert judged(_answer(q), LARGEST, moves=1e-9 * moves).jumps.size == 0
    assert judged(_answer(q[:2]), LARGEST).jumps.size == 0
    back = judged(_answer(q[::-1].copy()), LARGEST)
    assert back.jumps.tolist() == [len(q) - 3]


# what targets leave free


def test_a_free_arm_need_not_jump(cell: arm.Cell):
    """Following alone turns the arm until it jumps, though the motion asked for exists.

    The track and all joints move as evenly as that does, from corner to corner.
    """
    count, (lower, upper) = 100, np.clip(cell.limits, -2.9, 2.9)
    rng = np.random.default_rng(99)
    corners = rng.uniform(lower, upper, (5, 7))
    way = np.cumsum(np.diff(corners, axis=0, prepend=corners[:1]) * 0.4, axis=0)
    corners = np.clip(corners[0] + way, lower, upper)
    u = np.linspace(0.0, 4.0, count)
    q = np.stack([np.interp(u, np.arange(5), x) for x in corners.T], axis=1)
    ik, X = cell.ik("tool0"), cell.fk("tool0")(q)
    assert _step_by_step(ik, X, q[0]).jumps.size
    path = ik.path(X, start=q[0])
    steps = np.abs(np.diff(path.answer.q, axis=0, prepend=q[:1])).max(axis=1)
    assert path.jumps.size == 0
    assert steps.max() == path.largest_step
    assert steps.max() < 3.0 * np.abs(np.diff(q, axis=0)).max()
    assert np.abs(cell.fk("tool0")(path.answer.q) - X).max() < 5e-6


@pytest.fixture(scope="module")
def planar() -> arm.Cell:
    """Return an arm of four joints in a plane."""
    axes, points = np.tile([0, 0, 1], (4, 1)), np.outer(range(4), [0.4, 0, 0])
    tool = arm.Pose.translation(0.4, 0, 0)
    return arm_of_axes("RRRR", axes, points, tool=tool)


def test_a_large_step_alone_is_not_planned(
    planar: arm.Cell, monkeypatch: pytest.MonkeyPatch
):
    """That takes long where there is no arm angle."""
    ik = planar.ik("tool", position="xy", rotation="")
    u = np.cumsum([0.0, *[0.01] * 9, 1.0, *[0.01] * 9])[:, None]
    q = np.array([0.2, 0.5, 0.7, 0.4]) + u * np.array([0.3, 0.2, -0.3, 0.2])
    query = query_of(ik.numeric.problem, planar.fk("tool")(q))
    monkeypatch.setattr(PathPlanner, "plan", lambda *_: pytest.fail("planned"))
    path = _planner(ik, query).follow(q[0])
    assert path.is_uneven
    assert not path.jumps.size


@pytest.mark.parametrize("missed", [(), (9,)])
def test_sudden_motions_are_spread_over_targets(
    planar: arm.Cell, missed: tuple[int, ...]
):
    """The arm jumps between two ways to hold its tip; a target may be out of reach."""
    cell, count = planar, 80
    ik = cell.ik("tool", position="xy", rotation="")
    u = np.linspace(0.0, 1.0, count)[:, None]
    q = np.array([0.2, 0.5, 0.7, 0.4]) + u * np.array([0.3, 0.2, -0.3, 0.2])
    X = cell.fk("tool")(q)
    other = ik.numeric(X, near=q + 0.3 * np.sin(np.arange(4)))
    q[count // 2 :] = other.q[count // 2 :]
    X[list(missed), 0, 3] = 50.0
    query = query_of(ik.numeric.problem, X)
    sudden = judged(_answer(q, missed), LARGEST)
    assert sudden.jumps.tolist() == [*missed, count // 2]
    calls = []

    def local(query):
        calls.append(query)
        return ik.numeric.local(query)

    judge = functools.partial(judged, largest_step=LARGEST)
    even = evened(sudden, query, local, judge, LARGEST)
    assert even.jumps.tolist() == [*missed]
    found = even.answer.success
    assert np.flatnonzero(~found).tolist() == [*missed]
    assert np.abs(cell.fk("tool")(even.answer.q) - X)[found, :2, 3].max() < 5e-6
    assert np.abs(even.answer.q[[0, -1]] - q[[0, -1]]).max() < 1e-6
    before, after = (np.diff(way.answer.q, axis=0) for way in (sudden, even))
    assert np.abs(after).max() < 0.2 * np.abs(before).max()
    assert len(calls) <= 2 * ROUNDS * np.log2(count)


def test_targets_without_an_answer_stay_as_they_are(cell: arm.Cell):
    q = np.linspace(0.0, 0.4, 40)[:, None] * np.ones(7)
    X = cell.fk("tool0")(q)
    X[20, :3, 3] = 50.0
    ik = cell.ik("tool0")
    way = ik.numeric.follow(query_of(ik.numeric.problem, X), q[0])
    path = judged(way, LARGEST)
    judge = functools.partial(judged, largest_step=LARGEST)
    query = query_of(ik.numeric.problem, X)
    even = evened(path, query, ik.numeric.local, judge, LARGEST)
    assert even.answer.reason[20] == path.answer.reason[20] == Reason.OUT_OF_REACH
    assert np.array_equal(even.answer.q[20], path.answer.q[20])
    assert np.array_equal(even.answer.success, path.answer.success)


def test_ways_begin_at_both_ends_and_at_the_largest_steps(cell: arm.Cell):
    ik = cell.ik("tool0")
    query = query_of(ik.numeric.problem, np.tile(np.eye(4), (9, 1, 1)))
    planner = _planner(ik, query)
    q = np.cumsum([0.0, 0.1, 0.5, 0.1, 0.3, 0.2, 0.4, 0.1, 0.6])[:, None]
    assert planner._origins(q) == [0, 8, 2, 6, 4]
    assert planner._origins(q[:1]) == [0]
    assert planner._origins(q[:0]) == []


def test_after_its_time_a_path_is_not_planned(
    cell: arm.Cell, monkeypatch: pytest.MonkeyPatch
):
    """It jumps, and would be planned through all answers; the way so far is kept."""
    ik = cell.ik("tool0")
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (30, 7))
    X = cell.fk("tool0")(q)
    query = query_of(ik.numeric.problem, X)
    calls = []
    follow, local = ik.numeric.follow, ik.numeric.local

    def followed(query, *arguments):
        calls.append("follow")
        return follow(query._replace(deadline=0), *arguments)

    monkeypatch.setattr(ik.numeric, "follow", followed)
    monkeypatch.setattr(ik.numeric, "local", lambda query: calls.append("local"))
    late = _planner(ik, query._replace(deadline=1)).follow(q[0])
    assert calls == ["follow"]
    assert late.jumps.size
    assert late.answer.success.any()
    monkeypatch.setattr(ik.numeric, "local", local)
    _planner(ik, query).follow(q[0])
    assert len(calls) > 10


# redundant arms with a closed form by arm angle

LIMITS = np.radians([170, 120, 170, 120, 170, 120, 175])


@pytest.fixture(scope="module")
def seven() -> arm.Cell:
    """Return an arm with spherical shoulder and wrist, and the limits of an iiwa."""
    x, y, z = np.eye(3)
    heights = np.array([0.36, 0.36, 0.36, 0.78, 1.18, 1.18, 1.18])
    points = np.outer(heights, z)
    axes = [z, y, z, -y, z, y, z]
    tool = arm.Pose.translation(*(0.126 * z + 0.0 * x))
    return arm_of_axes("RRRRRRR", axes, points, tool=tool, limit=LIMITS)


def _line(seven: arm.Cell, seed: int, count: int = 150) -> np.ndarray:
    """Return joint positions of a motion that reaches from limit to limit."""
    a, b = np.random.default_rng(seed).uniform(-1.0, 1.0, (2, 7)) * LIMITS
    return a + (b - a) * np.linspace(0.0, 1.0, count)[:, None]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", [None, "closed", "numeric"])
@pytest.mark.parametrize("begun", [True, False])
def test_arms_with_an_arm_angle_follow_paths(
    seven: arm.Cell, begun: bool, method: str | None
):
    ik = seven.ik("tool")
    q = 0.5 * _line(seven, 1)
    X = seven.fk("tool")(q)
    path = ik.path(X, start=q[0] if begun else None, method=method)
    assert path.answer.success.all()
    assert path.jumps.size == 0
    assert np.abs(seven.fk("tool")(path.answer.q) - X).max() < 5e-6
    if begun:
        assert np.abs(path.answer.q[0] - q[0]).max() < LARGEST


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", [0, 3, 8])
def test_the_elbow_is_planned_ahead_of_limits(seven: arm.Cell, seed: int):
    """The search alone runs into limits where the elbow could have kept away."""
    ik = seven.ik("tool")
    q = _line(seven, seed, count=300)
    X = seven.fk("tool")(q)
    assert _step_by_step(ik, X, q[0]).jumps.size
    path = ik.path(X, start=q[0])
    assert path.answer.success.all()
    assert path.jumps.size == 0
    assert (np.abs(path.answer.q) <= LIMITS + 1e-12).all()
    assert np.abs(seven.fk("tool")(path.answer.q) - X).max() < 5e-6


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", [2, 3, 5, 15, 17, 26, 29])
def test_an_elbow_that_drifts_to_a_singularity_is_planned(seven: arm.Cell, seed: int):
    """Following alone speeds up there by degrees, so that no step stands out."""
    ik = seven.ik("tool")
    a, b = np.random.default_rng(seed).uniform(-1.0, 1.0, (2, 7))
    X = seven.fk("tool")(np.linspace(a, b, 100))
    alone = _step_by_step(ik, X, a)
    assert not alone.jumps.size
    path = ik.path(X, start=a)
    assert not path.jumps.size
    assert path.largest_step < 0.5 * alone.largest_step
    assert path.cost <= alone.cost


def test_a_given_arm_angle_is_kept_along_a_path(seven: arm.Cell):
    ik = seven.ik("tool")
    q = 0.5 * _line(seven, 2)
    X, angle = seven.fk("tool")(q), ik.closed.arm_angle(q)
    path = ik.path(X, start=q[0], arm_angle=angle)
    assert path.jumps.size == 0
    assert np.abs(path.answer.q - q).max() < 1e-6
    fixed = ik.path(X, arm_angle=0.3)
    solved = fixed.answer.q[fixed.answer.success]
    assert len(solved) > 20
    assert ik.closed.arm_angle(solved) == pytest.approx(0.3, abs=1e-9)


def test_what_a_path_cannot_use_is_refused(cell: arm.Cell, ik, seven: arm.Cell):
    X = _way(cell, [0.3] * 6, [0.4] * 6, 5)
    with pytest.raises(ModelError, match="arm angle"):
        ik.path(X, arm_angle=0.0)
    with pytest.raises(ModelError, match="arm angle"):
        seven.ik("tool").path(X, arm_angle=0.0, method="numeric")
    with pytest.raises(ModelError, match="no closed form"):
        cell.ik("tool0").path(X, method="closed")
    with pytest.raises(ShapeError, match="timeout"):
        ik.path(X, timeout=-1.0)


# whole turns, and arms without a closed form


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", [None, "closed"])
@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize(
    ("joint", "first", "last"), [(5, 5.0, -5.0), (0, -4.5, 4.9), (4, 0.5, 3.5)]
)
def test_a_joint_may_turn_more_than_once(
    cell: arm.Cell,
    ik,
    joint: int,
    first: float,
    last: float,
    begun: bool,
    method: str | None,
):
    """A path that begins in the wrong turn meets a limit on the way."""
    a = [0.3, -1.2, 1.4, -1.0, 0.9, 0.2]
    b = a.copy()
    a[joint], b[joint] = first, last
    count = 800
    X = _way(cell, a, b, count)
    path = ik.path(X, start=a if begun else None, method=method)
    assert path.answer.success.all()
    if method is None or joint != 4:  # a straight wrist has no branch that goes on
        assert path.jumps.size == 0
        assert path.largest_step < 2.0 * abs(last - first) / count


def _offset_wrist() -> arm.Cell:
    """Return an arm of six joints whose wrist has an offset: no closed form."""
    x, y, z = np.eye(3)
    points = [0 * x, 0.245 * z, 0.955 * z, 0.2 * x + 0.955 * z]
    points += [0.54 * x + 0.955 * z, 0.7 * x - 0.15 * y + 0.955 * z]
    limit = np.radians([190, 180, 270, 190, 180, 190])
    tool = arm.Pose.translation(0.1, 0.0, 0.0)
    return arm_of_axes("RRRRRR", [z, y, -y, x, -y, x], points, tool=tool, limit=limit)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", ["numeric", None])
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_several_ways_of_an_offset_wrist_are_compared(seed: int, method: str | None):
    wrist = _offset_wrist()
    ik = wrist.ik("tool")
    a, b = np.random.default_rng(100 + seed).uniform(-1, 1, (2, 6)) * wrist.limits[1]
    X = wrist.fk("tool")(a + (b - a) * np.linspace(0.0, 1.0, 400)[:, None])
    path = ik.path(X, method=method)
    assert path.answer.success.all()
    assert path.jumps.size == 0
    assert np.abs(wrist.fk("tool")(path.answer.q) - X).max() < 5e-6


def test_a_path_in_time_is_the_best_so_far(seven: arm.Cell):
    ik = seven.ik("tool")
    q = _line(seven, 0, count=300)
    X = seven.fk("tool")(q)
    ik.path(X[:5], start=q[0])
    path = ik.path(X, start=q[0], timeout=1e-5)
    assert path.answer.q.shape == (300, 7)
    assert (path.answer.reason == Reason.TIMEOUT).any()
