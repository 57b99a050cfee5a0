"""Controllers never cross limits that couple joints, and joints stop before them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import tasks
from armillary.ik.reason import RateReason
from armillary.spatial.inertia import SpatialInertia

RATE, MOST = 250.0, 8.0


@cache
def cells() -> tuple[arm.Cell, arm.Cell]:
    """A planar arm of three joints, without and with limits that couple them."""
    turn = arm.joints.Revolute(axis=(0, 0, 1))
    ends = arm.Limits(lower=-2.0, upper=2.0, velocity=3.0)
    links = [arm.Link(name="base")]
    for k in range(3):
        at = arm.Pose.translation(0.5 if k else 0.0, 0, 0)
        links.append(
            arm.Link(
                name=f"j{k + 1}",
                parent=links[-1].name,
                joint=turn.prepend(at),
                limits=ends,
            )
        )
    tip = arm.Frame(name="tip", pose=arm.Pose.translation(0.5, 0, 0))
    links[-1] = links[-1].replace(frames=[tip])
    plain = arm.Manipulator(name="arm", links=links)
    limits = [
        arm.CoupledLimit(joints={"j2": 1, "j3": 1}, lower=-1.2, upper=0.8),
        arm.CoupledLimit(
            joints={"j1": 1, "j2": -0.5, "j3": 0.3}, lower=-1, upper=1.5, name="odd"
        ),
    ]
    limited = plain.replace(coupled_limits=limits)
    return arm.Cell(manipulators=[plain]), arm.Cell(manipulators=[limited])


TIP = tasks.Position("tip", axes="xy")


@pytest.mark.parametrize(
    "conflict", ["bend", pytest.param("slow", marks=pytest.mark.thorough)]
)
def test_targets_anywhere_never_lead_beyond(conflict: str):
    plain, cell = cells()
    count = 40
    q = cell.samples(count, seed=3).rows(0, count)
    goals = plain.samples(3 * count, seed=5).rows(0, 3 * count)
    X = np.repeat(plain.fk("tip")(goals)[:, :3, 3].reshape(count, 3, 3), 60, axis=1)
    options: dict[str, Any] = {
        "conflict": conflict,
        "acceleration": MOST,
        "rate": RATE,
    }
    motion = cell.controller([TIP], **options).simulate(q, [X], 180)
    assert cell.limit_rows.excess(goals).max() > 1.0  # some are far beyond
    excess = cell.limit_rows.excess(motion.q)
    assert excess.max() < 1e-9
    assert (excess.max(axis=1) > -0.01).sum() > 4  # they come near
    assert cell.within_limits(motion.q, tolerance=1e-12).all()
    # Within all other limits, too.
    steps = np.diff(motion.qd, axis=1)
    assert np.abs(steps).max() < MOST / RATE * (1 + 1e-9)
    assert (np.abs(motion.qd) <= cell.velocity_limits).all()


def test_a_posture_beyond_is_approached_along_the_limit():
    _, cell = cells()
    goal = cell.home.q.copy()
    goal[1:] = 1.0, 0.6  # the sum may be 0.8
    start = cell.home.q
    assert cell.within_limits(start)
    control = cell.controller([tasks.Posture(gain=3.0)], acceleration=MOST, rate=RATE)
    motion = control.simulate(start, [goal], 3000)
    assert cell.limit_rows.excess(motion.q).max() < 1e-9
    end = motion.q[-1]
    # The nearest posture within: both joints give up the same, (0.2 + 0.6) / 2 less.
    assert np.allclose(end, cell.limit_rows.nearest(goal, *cell.limits), atol=2e-3)
    assert np.abs(motion.qd[-1]).max() < 1e-3
    step = control(end, motion.qd[-1], [goal])
    assert step.reason == RateReason.LIMITS
    assert "coupled limit arm/j2 + j3" in step.active


def test_rates_that_cannot_stop_in_time_are_said_to_brake():
    _, cell = cells()
    control = cell.controller([tasks.Posture()], acceleration=MOST, rate=RATE)
    q, qd = cell.home.q.copy(), np.zeros(3)
    q[1], q[2] = 0.4, 0.35
    qd[1] = 2.0  # 0.25 rad to stop from; there are 0.05
    step = control(q, qd, [cell.home.q])
    assert step.reason == RateReason.BRAKING
    assert abs(step.qd[1] - (2.0 - MOST / RATE)) < 1e-9  # maximum braking
    # Beyond a limit joints may stay or come back.
    q[2] = 0.6
    motion = control.simulate(q, [cell.home.q], 200)
    assert (np.diff(motion.q[:, 1] + motion.q[:, 2]) <= 1e-12).all()


def test_joints_that_are_not_moved_count_by_their_rates():
    _, cell = cells()
    control = cell.controller(
        [tasks.Posture()], joints=["j3"], acceleration=MOST, rate=RATE
    )
    goal = cell.home.q.copy()
    goal[2] = 0.7
    q = cell.home.q.copy()
    for _ in range(500):
        qd = control(q, np.zeros(3), [goal]).qd
        q = q + qd / RATE
    assert cell.limit_rows.excess(q) < 1e-9
    still = np.zeros(3)
    still[1] = 0.1  # joint 2 goes on, towards the limit
    at = cell.home.q.copy()
    at[1], at[2] = 0.4, 0.4 - 1e-3
    free = control(at, np.zeros(3), [goal]).qd[2]
    assert control(at, still, [goal]).qd[2] <= free


def test_limits_may_be_left_out():
    _, cell = cells()
    control = cell.controller(
        [tasks.Posture(gain=3.0)], limits=False, acceleration=MOST, rate=RATE
    )
    goal = cell.home.q.copy()
    goal[1:] = 1.0, 0.6
    motion = control.simulate(cell.home.q, [goal], 1000)
    assert cell.limit_rows.excess(motion.q).max() > 0.5


def test_torques_and_pairs_are_kept_beside_them():
    # A slide and a hinge with masses; a wall; one limit couples both joints.
    body = SpatialInertia.from_centre(2.0, (0.0, 0.0, 0.0), 0.01 * np.eye(3))
    ball = [arm.shapes.Sphere(radius=0.1)]
    ends = arm.Limits(lower=-1.0, upper=1.0, velocity=2.0, effort=60.0)
    links = [
        arm.Link(name="base"),
        arm.Link(
            name="car",
            parent="base",
            joint=arm.joints.Prismatic(axis=(1, 0, 0)),
            limits=ends,
            inertia=body,
        ),
        arm.Link(
            name="hand",
            parent="car",
            joint=arm.joints.Prismatic(axis=(0, 1, 0)),
            limits=ends,
            inertia=body,
            collisions=ball,
        ),
    ]
    both = arm.CoupledLimit(joints={"car": 1, "hand": 1}, upper=0.5)
    moved = arm.Manipulator(name="gantry", links=links, coupled_limits=[both])
    wall = arm.Manipulator(
        name="wall",
        links=[arm.Link(name="wall", collisions=[arm.shapes.Box(size=(0.1, 4, 1))])],
    )
    cell = arm.Cell().add(moved).add(wall, pose=arm.Pose.translation(1.0, 0, 0))
    control = cell.controller(
        [tasks.Posture(gain=4.0)],
        avoid=cell.collision(margin=0.02),
        torque=True,
        acceleration=10.0,
        rate=RATE,
    )
    motion = control.simulate([0.0, -0.5], [np.array([0.95, 0.9])], 1500)
    assert cell.limit_rows.excess(motion.q).max() < 1e-9
    assert cell.collision(margin=0.0199).clearance(motion.q).min() > 0.0
    assert motion.q[-1].sum() > 0.49
