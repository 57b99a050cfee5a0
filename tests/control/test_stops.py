"""Braking while joints come to their limits, judged by the distances of real shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import tasks

MARGIN = 0.02
BALL = arm.shapes.Sphere(radius=0.1)
R = arm.RateReason


@pytest.fixture(scope="module")
def two_slides() -> arm.Cell:
    """A ball on a slide on a slide, both along x; the second one ends at -3."""
    beam = arm.joints.Prismatic(axis=(1, 0, 0))
    first = arm.Limits(lower=-9.0, upper=9.0, velocity=0.7)
    second = arm.Limits(lower=-3.0, upper=9.0, velocity=0.5)
    links = [
        arm.Link(name="ground"),
        arm.Link(name="slow", parent="ground", joint=beam, limits=first),
        arm.Link(
            name="quick", parent="slow", joint=beam, limits=second, collisions=[BALL]
        ),
    ]
    return arm.Cell(manipulators=[arm.Manipulator(name="one", links=links)])


def two_slides_motion(cell: arm.Cell, conflict: str) -> Any:
    """The slow joint goes toward a wall, the quick one away from it, up to its end."""
    control: Any = cell.controller(
        [tasks.Coupling({"slow": 1.0}), tasks.Coupling({"quick": 1.0})],
        avoid=cell.collision(margin=MARGIN),
        acceleration=[0.5, 5.0],
        rate=200.0,
        conflict=conflict,
    )
    wall = arm.Obstacles.boxes([np.eye(4)], (0.2, 5.0, 5.0))
    start = np.array([-0.3, 0.0])
    return control.simulate(start, [9.0, -9.0], 1600, obstacles=wall)


@pytest.mark.parametrize("conflict", ["bend", "slow"])
def test_a_joint_that_stops_at_its_limit_does_not_count_as_retreating(
    two_slides: arm.Cell, conflict: str
) -> None:
    motion = two_slides_motion(two_slides, conflict)
    distance = np.abs(motion.q.sum(axis=-1)) - 0.2  # of the ball and the wall
    assert distance.min() > MARGIN - 5e-4
    assert not np.isin(motion.reason, [R.PUSHED, R.INSIDE, R.BRAKING]).any()
    assert np.abs(motion.q[-1, 1] + 3.0) < 1e-3


@pytest.mark.sampled(1)
@pytest.mark.parametrize("conflict", ["bend", "slow"])
def test_obstacles_at_rest_push_nothing(conflict: str) -> None:
    cell = arm.example("scara")
    tool = cell.frame_names[-1]
    fk, check = cell.fk(tool), cell.collision(margin=MARGIN)
    lower, upper = cell.limits
    rng = np.random.default_rng(6)
    Q = rng.uniform(lower, upper, (4000, 4))
    Q = Q[check.clearance(Q) > 2 * MARGIN][:1000].reshape(4, -1, 4)
    centres = fk(Q[0])[:, None, :3, 3] + rng.uniform(-0.6, 0.6, (Q.shape[1], 2, 3))
    control: Any = cell.controller(
        [tasks.Frame(tool, gain=50.0), tasks.Posture()],
        avoid=check,
        acceleration=30.0,
        rate=500.0,
        conflict=conflict,
    )
    balls = arm.Obstacles.spheres(centres, 0.1)
    still = 0.0 * Q[0]
    free = control(Q[0], still, [fk(Q[1]), None], obstacles=balls).distance > MARGIN
    goals = np.repeat(np.stack(fk(Q[1:]), axis=1)[free], 60, axis=1)
    balls = arm.Obstacles.spheres(centres[free][:, None], 0.1)
    motion = control.simulate(Q[0][free], [goals, None], 180, obstacles=balls)
    assert motion.q.shape[0] > 150
    assert motion.distance.min() > MARGIN - 5e-4
    assert not np.isin(motion.reason, [R.PUSHED, R.INSIDE]).any()
    assert R.AVOIDING in motion.reason


def test_tasks_that_slow_down_say_that_limits_hold_them(two_slides: arm.Cell) -> None:
    control = two_slides.controller(
        tasks.Coupling({"slow": 1.0}), acceleration=5.0, conflict="slow"
    )
    step = control([0.0, 0.0], [0.1, 0.0], 5.0)
    assert step.qd[0] == pytest.approx(0.105)
    assert step.reason == R.LIMITS
    assert step.active == ("upper acceleration limit of slow",)


@pytest.mark.parametrize("conflict", ["bend", "slow"])
@pytest.mark.parametrize(
    ("q", "qd", "target", "expected"),
    [
        (0.0, 0.7, 9.0, "upper velocity"),
        (0.0, -0.7, -9.0, "lower velocity"),
        (8.999, 0.095, 9.5, "upper position"),
        (-8.999, -0.095, -9.5, "lower position"),
        (0.0, -0.3, -9.0, "lower acceleration"),
        (8.999, 0.7, 9.0, "acceleration"),
    ],
)
def test_bounds_of_rates_name_the_limit_that_they_come_from(
    two_slides: arm.Cell,
    conflict: str,
    q: float,
    qd: float,
    target: float,
    expected: str,
) -> None:
    control = two_slides.controller(
        tasks.Coupling({"slow": 1.0}, gain=50.0), acceleration=5.0, conflict=conflict
    )
    step = control([q, 0.0], [qd, 0.0], target)
    assert any(f"{expected} limit of slow" in text for text in step.active)


def test_a_joint_that_cannot_stop_brakes_and_says_so(two_slides: arm.Cell) -> None:
    control = two_slides.controller(tasks.Posture(), acceleration=5.0, rate=100.0)
    q, qd = np.array([0.0, -2.95]), np.array([0.0, -1.0])  # 0.1 m are needed
    reasons: list[int] = []
    for _ in range(60):
        step = control(q, qd, None)
        assert np.abs(step.qd - qd).max() <= 0.05 * (1.0 + 1e-12)
        is_short = q[1] - qd[1] ** 2 / 10.0 < -3.0 - 1e-3
        if is_short and qd[1] < -0.05:
            assert step.qd[1] == pytest.approx(qd[1] + 0.05)
            assert step.reason == R.BRAKING
        reasons.append(int(step.reason))
        q, qd = step.q_next, step.qd
    assert reasons.count(R.BRAKING) > 10
    assert q[1] > -3.0  # it has come back
    assert reasons[-1] != R.BRAKING


def test_pairs_that_no_joint_can_part_take_nothing() -> None:
    """Two links of a wrist turn about one axis: their distance does not change."""
    cell = arm.example("ur10_on_rail")
    q = np.array([0.0, 0.0, -1.2, 1.5, -1.0, -1.4, 0.3])
    X = cell.fk("tool0")(q)
    check = cell.collision(margin=0.05)
    names = [set(pair) for pair in check.pairs]
    distance = check.distances(q)[names.index({"ur10/wrist_1", "ur10/wrist_3"})]
    assert distance < 0.05 - 1e-3
    control = cell.controller(
        [tasks.Frame("tool0"), tasks.Posture()],
        avoid=check,
        acceleration=15.0,
        rate=500.0,
    )
    still = control.simulate(q, [X, None], 300)
    assert (still.reason == R.INSIDE).all()
    assert np.abs(still.q[:, 6] - q[6]).max() < 1e-3  # the last wrist does not spin
    assert np.abs(cell.fk("tool0")(still.q[-1]) - X).max() < 1e-3
    ball = arm.Obstacles.spheres([X[:3, 3] - [0.0, 0.0, 0.16]], 0.08)
    away = control.simulate(q, [X, None], 500, obstacles=ball)
    assert away.distance[0] < 0.03
    assert away.distance[-1] == pytest.approx(distance, abs=1e-6)  # the ball is left


@pytest.mark.parametrize("conflict", ["bend", "slow"])
def test_tasks_that_use_all_joints_name_what_blocks_them(
    two_slides: arm.Cell, conflict: str
) -> None:
    control: Any = two_slides.controller(
        tasks.Coupling({"slow": 1.0}),
        joints=["slow"],
        avoid=two_slides.collision(margin=MARGIN),
        acceleration=5.0,
        rate=200.0,
        conflict=conflict,
    )
    wall = arm.Obstacles.boxes([np.eye(4)], (0.2, 5.0, 5.0))
    motion = control.simulate([-1.0, 0.0], 9.0, 500, obstacles=wall)
    assert motion.distance[-1] == pytest.approx(MARGIN, abs=1e-3)
    assert R.SINGULAR not in motion.reason
    assert motion.reason[-1] == R.BLOCKED
    assert "one/quick, obstacle 0" in motion.active[-1]


@pytest.mark.parametrize("conflict", ["bend", "slow"])
def test_slow_obstacles_push_as_well(two_slides: arm.Cell, conflict: str) -> None:
    control: Any = two_slides.controller(
        tasks.Coupling({"slow": 1.0}),
        avoid=two_slides.collision(margin=MARGIN),
        acceleration=5.0,
        rate=100.0,
        conflict=conflict,
    )
    at = [0.2 + MARGIN + 1e-4, 0.0, 0.0]
    ball = arm.Obstacles.spheres([at], 0.1, velocities=[-1e-3, 0.0, 0.0])  # [m/s]
    motion = control.simulate([0.0, 0.0], 1.0, 50, obstacles=ball)
    is_near = motion.distance < MARGIN - 1e-6
    assert not is_near.any()
    assert (motion.reason[:3] != R.PUSHED).all()
