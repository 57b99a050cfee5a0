"""Controllers: what tasks ask for comes about, and limits and distances are kept."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import armillary as arm
from armillary import tasks
from armillary.errors import ArmillaryError, ModelError, ShapeError

RAIL = np.array([0.0, 0.0, -1.2, 1.5, -1.0, -1.4, 0.3])
MARGIN = 0.02


def run(
    control: Any, q: Any, target: Any, steps: int, obstacles: Any = None
) -> Iterator[Any]:
    qd = np.zeros_like(q)
    for _ in range(steps):
        step = control(q, qd, [target, None], obstacles=obstacles)
        yield q, qd, step
        q, qd = step.q_next, step.qd


def test_a_pose_is_reached(rail: arm.Cell) -> None:
    fk = rail.fk("tool0")
    target = fk(RAIL + np.array([0.3, 0.2, -0.2, 0.3, 0.1, 0.2, -0.4]))
    control = rail.controller(
        [tasks.Frame("tool0"), tasks.Posture()], acceleration=15.0
    )
    *_, (q, _, step) = run(control, RAIL, target, 3000)
    assert np.abs(fk(q) - target).max() < 1e-5
    assert step.reason == arm.RateReason.MET


def test_limits_of_positions_rates_and_accelerations_hold_exactly(
    rail: arm.Cell,
) -> None:
    lower, upper = rail.limits
    fk = rail.fk("tool0")
    target = fk(RAIL)
    target[0, 3] += 50.0  # far beyond the rail
    control = rail.controller([tasks.Frame("tool0"), tasks.Posture()], acceleration=3.0)
    reasons: set[int] = set()
    for _, qd, step in run(control, RAIL, target, 6000):
        assert (step.q_next >= lower).all()
        assert (step.q_next <= upper).all()
        assert (np.abs(step.qd) <= rail.velocity_limits).all()
        assert np.abs(step.qd - qd).max() <= 3e-3 * (1.0 + 1e-9)
        reasons.add(int(step.reason))
    assert arm.RateReason.LIMITS in reasons
    assert arm.RateReason.BRAKING not in reasons
    assert step.q_next[0] == pytest.approx(upper[0], abs=1e-6)


def test_an_obstacle_on_the_way_is_kept_away_from(rail: arm.Cell) -> None:
    fk, check = rail.fk("tool0"), rail.collision(margin=MARGIN)
    start = fk(RAIL)
    target = start.copy()
    target[0, 3] += 0.6
    centre = start[:3, 3] + [0.3, 0.0, 0.0]
    ball = arm.Obstacles.spheres([centre], 0.08)
    control = rail.controller(
        [tasks.Frame("tool0"), tasks.Posture()], acceleration=15.0, avoid=check
    )
    least, reasons = np.inf, set[int]()
    for _, _, step in run(control, RAIL, target, 2500, ball):
        least = min(least, float(step.distance))
        reasons.add(int(step.reason))
    assert least > MARGIN - 5e-4
    assert arm.RateReason.AVOIDING in reasons
    assert np.abs(fk(step.q_next) - target).max() < 1e-4


def test_links_in_no_pair_keep_away_from_obstacles(rail: arm.Cell) -> None:
    cell = rail.replace(rules=rail.rules.exclude("ur10/forearm", "*"))
    check = cell.collision(margin=MARGIN)
    assert len(check.pairs) < len(rail.collision().pairs)
    at = cell.fk("forearm")(RAIL)[:3, 3]
    control = cell.controller([tasks.Posture()], avoid=check)
    ball = arm.Obstacles.spheres([at], 0.01)
    step = control(RAIL, 0.0 * RAIL, [None], obstacles=ball)
    assert step.nearest == ("ur10/forearm", "obstacle 0")


@pytest.mark.thorough
def test_braking_that_turns_links_ends_before_the_margin() -> None:
    cell = arm.example("irb2400")
    fk, check = cell.fk("tool0"), cell.collision(margin=MARGIN)
    lower, upper = cell.limits
    rng = np.random.default_rng(0)
    Q = rng.uniform(0.5 * lower, 0.5 * upper, (600, 6))
    start, goal = Q[check.clearance(Q) > 2 * MARGIN][:200].reshape(2, 100, 6)
    centres = fk(start)[:, None, :3, 3] + rng.uniform(-0.8, 0.8, (100, 3, 3))
    control = cell.controller(
        tasks.Frame("tool0", speed=1.0, turn_speed=2.0),
        avoid=check,
        acceleration=10.0,
        rate=200.0,
    )
    balls = arm.Obstacles.spheres(centres, 0.1)
    free = control(start, 0.0 * start, fk(goal), obstacles=balls).distance > MARGIN
    balls = arm.Obstacles.spheres(centres[free], 0.1)
    q, target = start[free], fk(goal)[free]
    qd = np.zeros_like(q)
    for _ in range(300):
        step = control(q, qd, target, obstacles=balls)
        assert step.distance.min() > MARGIN - 5e-4
        q, qd = step.q_next, step.qd


@pytest.mark.thorough
def test_obstacles_that_are_not_finite_make_their_row_invalid(rail: arm.Cell) -> None:
    Q, T = np.tile(RAIL, (3, 1)), np.tile(rail.fk("tool0")(RAIL), (3, 1, 1))
    control = rail.controller(tasks.Frame("tool0"), avoid=rail.collision(margin=MARGIN))
    centres = np.full((3, 1, 3), 9.0)
    for bad in (np.nan, np.inf):
        centres[1, 0, 0] = bad
        found = control(Q, 0.0 * Q, T, obstacles=arm.Obstacles.spheres(centres, 0.1))
        assert found.reason.tolist() == [0, int(arm.RateReason.INVALID), 0]
    radii = np.array([[0.1], [np.nan], [0.1]])
    far = np.full((3, 1, 3), 9.0)
    found = control(Q, 0.0 * Q, T, obstacles=arm.Obstacles.spheres(far, radii))
    assert found.reason.tolist() == [0, int(arm.RateReason.INVALID), 0]


def test_a_posture_alone_says_what_limits_it(rail: arm.Cell) -> None:
    control = rail.controller(tasks.Posture(), acceleration=1e-3)
    step = control(RAIL, 0.0 * RAIL, RAIL + 0.5)
    assert step.reason == arm.RateReason.LIMITS


@pytest.mark.thorough
def test_slow_motion_keeps_its_direction_as_far_as_rates_allow(rail: arm.Cell) -> None:
    rng = np.random.default_rng(5)
    Q = RAIL + rng.uniform(-0.4, 0.4, (200, 7))
    at = rail.fk("tool0")(Q)[:, :3, 3]
    targets = at + rng.uniform(-1.0, 1.0, at.shape)
    most = 0.5 + rng.uniform(0.0, 1.0, 7)
    control = rail.controller(
        tasks.Position("tool0", gain=8.0),
        conflict="slow",
        limits=False,
        velocity=most,
        acceleration=np.inf,
        damping=1e-6,
    )
    step = control(Q, 0.0 * Q, targets)
    J = rail.jacobian("tool0")(Q)[:, :3]
    wanted = 8.0 * (targets - at)
    best = []
    for rows, v in zip(J, wanted, strict=True):
        found = linprog(
            [0.0] * 7 + [-1.0],
            A_eq=np.hstack([rows, -v[:, None]]),
            b_eq=np.zeros(3),
            bounds=[*((-x, x) for x in most), (0.0, 1.0)],
        )
        best.append(found.x[-1])
    assert np.abs(step.scale - best).max() < 1e-8
    moved = np.einsum("kij,kj->ki", J, step.qd)
    assert np.abs(moved - step.scale[:, None] * wanted).max() < 1e-8
    assert (step.scale < 1.0).sum() > 50


def test_obstacles_are_copied_when_they_are_first_used(rail: arm.Cell) -> None:
    T = rail.fk("tool0")(RAIL)
    control = rail.controller(
        [tasks.Frame("tool0"), tasks.Posture()], avoid=rail.collision(margin=MARGIN)
    )
    centres = T[None, :3, 3] + [0.5, 0.0, 0.0]
    balls = arm.Obstacles.spheres(centres, 0.05)
    before = control(RAIL, 0.0 * RAIL, [T, None], obstacles=balls)
    assert not balls.numbers.flags.writeable
    balls.ends[:] += 3.0
    after = control(RAIL, 0.0 * RAIL, [T, None], obstacles=balls)
    assert np.array_equal(before.numbers, after.numbers)


def test_a_batch_is_its_rows(rail: arm.Cell) -> None:
    rng = np.random.default_rng(1)
    Q = RAIL + rng.uniform(-0.3, 0.3, (37, 7))
    T = rail.fk("tool0")(Q + rng.uniform(-0.2, 0.2, Q.shape))
    control = rail.controller(
        tasks.Frame("tool0"), acceleration=9.0, avoid=rail.collision(margin=MARGIN)
    )
    qd = rng.uniform(-0.1, 0.1, Q.shape)
    found = control(Q, qd, T)
    for k in range(0, 37, 6):
        one = control(Q[k], qd[k], T[k])
        assert np.allclose(found.qd[k], one.qd, rtol=0.0, atol=1e-9)
        assert found.reason[k] == one.reason
        assert found.active[k] == one.active


def test_a_single_step_is_compiled_code_alone(
    rail: arm.Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    T = rail.fk("tool0")(RAIL)
    control = rail.controller([tasks.Frame("tool0"), tasks.Posture()])
    before = control(RAIL, 0.0 * RAIL, [T, None])

    def slow(*_: Any) -> None:
        raise AssertionError("Python looked at the arguments")

    monkeypatch.setattr("armillary.kernel.kernel.as_inputs", slow)
    for q in (RAIL, RAIL.tolist()):
        after = control(q, 0.0 * RAIL, [T, None])
        assert np.array_equal(before.numbers, after.numbers)
    with pytest.raises(AssertionError, match="Python looked"):
        control(RAIL.astype(object), 0.0 * RAIL, [T, None])


def test_controllers_end_with_their_last_reference(rail: arm.Cell) -> None:
    T = rail.fk("tool0")(RAIL)
    control = rail.controller(tasks.Frame("tool0"))
    control(RAIL, 0.0 * RAIL, T)
    control(RAIL[None], 0.0 * RAIL, T)
    last = weakref.ref(control)
    del control
    gc.collect()
    assert last() is None


def test_rows_with_nan_are_invalid_and_alone(rail: arm.Cell) -> None:
    Q = np.tile(RAIL, (3, 1))
    T = np.tile(rail.fk("tool0")(RAIL), (3, 1, 1))
    T[1, 0, 3] = np.nan
    step = rail.controller(tasks.Frame("tool0"))(Q, 0.0 * Q, T)
    assert step.reason.tolist() == [0, int(arm.RateReason.INVALID), 0]
    assert np.isnan(step.qd[1]).all()
    assert np.isfinite(step.qd[[0, 2]]).all()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("task", "target"),
    [
        (tasks.Position("tool0"), [0.6, 0.3, 0.9]),
        (tasks.AlignAxis("tool0"), [0.0, 1.0, -1.0]),
        (tasks.LookAt("tool0"), [2.0, 1.0, 0.3]),
        (tasks.Coupling({"elbow": 1.0, "wrist_1": 2.0}), 0.4),
        (tasks.Function(lambda q: [q[1] * q[2], q[0]]), [-0.5, 0.3]),
        (tasks.Frame("tool0", rotation="", position="xz"), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_task_ends_at_its_target(rail: arm.Cell, task: Any, target: Any) -> None:
    control = rail.controller(task, acceleration=20.0)
    fk = rail.fk("tool0")
    if target is None:
        target = fk(RAIL + 0.2)
    q, qd = RAIL, np.zeros(7)
    for _ in range(3000):
        step = control(q, qd, target)
        q, qd = step.q_next, step.qd
    X = fk(q)
    match task:
        case tasks.Position():
            error = X[:3, 3] - target
        case tasks.AlignAxis():
            error = X[:3, 2] - np.array(target) / np.linalg.norm(target)
        case tasks.LookAt():
            ray = np.array(target) - X[:3, 3]
            error = X[:3, 2] - ray / np.linalg.norm(ray)
        case tasks.Coupling():
            error = q[3] + 2.0 * q[4] - target
        case tasks.Function():
            error = np.array(task.function(q)) - target
        case _:
            error = (X - target)[[0, 2], 3]
    assert np.abs(error).max() < 1e-4


def test_bad_input_is_refused(rail: arm.Cell) -> None:
    frame = tasks.Frame("tool0")
    with pytest.raises(ModelError, match="needs a task"):
        rail.controller([])
    with pytest.raises(ModelError, match="of armillary"):
        rail.controller(["tool0"])  # type: ignore[list-item]
    with pytest.raises(ModelError, match="rate="):
        rail.controller(frame, rate=0.0)
    with pytest.raises(ArmillaryError, match="tool9"):
        rail.controller(tasks.Frame("tool9"))
    with pytest.raises(ModelError, match="collision check"):
        rail.controller(frame, avoid=True)  # type: ignore[arg-type]
    control = rail.controller([frame])
    with pytest.raises(ShapeError, match="list of 1"):
        control(RAIL, 0.0 * RAIL, np.eye(4))
    with pytest.raises(ModelError, match="avoid="):
        control(
            RAIL,
            0.0 * RAIL,
            [np.eye(4)],
            obstacles=arm.Obstacles.spheres([[0, 0, 0]], 1),
        )
