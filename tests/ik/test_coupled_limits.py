"""Inverse kinematics within limits that couple joints, against brute force."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import lsq_linear

import armillary as arm
from armillary.ik.reason import Reason

ELBOW = {"joint_2": 1.0, "joint_3": 1.0}


@cache
def cells() -> tuple[arm.Cell, arm.Cell]:
    """An arm of six joints with a closed form, without and with a coupled limit."""
    plain = arm.example("irb2400")
    elbow = arm.CoupledLimit(joints=ELBOW, lower=-1.2, upper=0.8)
    return plain, with_limits(plain, elbow)


def with_limits(cell: arm.Cell, *limits: arm.CoupledLimit) -> arm.Cell:
    (made,) = cell.manipulators
    return cell.exchange(made.replace(coupled_limits=limits))


@cache
def questions() -> tuple[Any, Any]:
    """Joint positions anywhere within the limits of joints, and their poses."""
    plain, _ = cells()
    q = plain.samples(120, seed=5).rows(0, 120)
    return q, plain.fk("tool0")(q)


def allowed_branches() -> Any:
    """Which targets have a branch within all limits, of those without the coupled."""
    plain, limited = cells()
    branches = plain.ik("tool0").all(questions()[1])
    return (branches.success & limited.limit_rows.holds(branches.q)).any(axis=1)


@pytest.mark.parametrize("method", ["closed", "numeric"])
def test_targets_are_solved_where_a_branch_is_allowed(method: str):
    _, limited = cells()
    _, X = questions()
    found = limited.ik("tool0")(X, method=method)
    allowed = allowed_branches()
    assert 20 < allowed.sum() < 100
    assert np.array_equal(found.success, allowed)
    assert set(found.reason[~allowed]) == {Reason.LIMITS}
    assert limited.within_limits(found.q).all()  # of misses too
    apart = np.abs(limited.fk("tool0")(found.q) - X).max(axis=(1, 2))
    assert apart[allowed].max() < 2e-6


def test_all_branches_that_break_them_have_that_reason():
    plain, limited = cells()
    _, X = questions()
    every, known = limited.ik("tool0").all(X), plain.ik("tool0").all(X)
    broken = ~limited.limit_rows.holds(known.q)
    assert np.array_equal(every.success, known.success & ~broken)
    assert (every.reason[known.success & broken] == Reason.LIMITS).all()


def test_single_targets_are_answered_as_in_a_batch():
    _, limited = cells()
    _, X = questions()
    ik = limited.ik("tool0")
    batch = ik(X[:12])
    for k in range(12):
        one = ik(X[k])
        assert one.reason == batch.reason[k]
        assert np.allclose(one.q, batch.q[k], atol=1e-9)
        assert ik.all(X[k]).count == ik.all(X).count[k]


def test_a_search_near_a_vector_slides_along_them():
    # Three joints in a plane place a point: one is free, and near is beyond a limit.
    turn = arm.joints.Revolute(axis=(0, 0, 1))
    links = [arm.Link(name="base")]
    for k in range(3):
        at = arm.Pose.translation(1.0 if k else 0.0, 0, 0)
        links.append(
            arm.Link(
                name=f"j{k + 1}",
                parent=links[-1].name,
                joint=turn.prepend(at),
                limits=arm.Limits(lower=-2.5, upper=2.5),
            )
        )
    tip = arm.Frame(name="tip", pose=arm.Pose.translation(1, 0, 0))
    links[-1] = links[-1].replace(frames=[tip])
    sum_of_all = arm.CoupledLimit(joints={"j1": 1, "j2": 1, "j3": 1}, upper=1.0)
    plain = arm.Cell(manipulators=[arm.Manipulator(name="arm", links=links)])
    cell = with_limits(plain, sum_of_all)
    q = cell.samples(3000, seed=1).rows(0, 3000)
    q = q[q.sum(axis=1) > 0.8]
    X = cell.fk("tip")(q)
    near = q + np.array([0.4, 0.6, 0.8])
    ik = cell.ik("tip", position="xy", rotation="")
    found = ik(X, near=near)
    assert found.success.all()
    assert cell.within_limits(found.q).all()
    # By hand: the direction of the last link, and two branches for each.
    phi = np.linspace(-7.5, 1.0, 4001)[:, None]
    x, y = X[:, 0, 3] - np.cos(phi), X[:, 1, 3] - np.sin(phi)
    with np.errstate(invalid="ignore"):
        bend = np.arccos((x * x + y * y - 2.0) / 2.0)
    steps = np.full(len(q), np.inf)
    at_limit = np.zeros(len(q), bool)
    for second in (bend, -bend):
        first = np.arctan2(y, x) - np.arctan2(np.sin(second), 1.0 + np.cos(second))
        known = np.stack([first, second, phi - first - second], axis=-1)
        known[..., 2] += 2 * np.pi * np.rint((near[:, 2] - known[..., 2]) / (2 * np.pi))
        allowed = (np.abs(known) <= 2.5).all(axis=-1) & (known.sum(axis=-1) <= 1.0)
        far = np.where(allowed, ((known - near) ** 2).sum(axis=-1), np.inf)
        best = far.min(axis=0)
        at_limit = np.where(best < steps, far.argmin(axis=0) > 3990, at_limit)
        steps = np.minimum(best, steps)
    got = ((found.q - near) ** 2).sum(axis=1)
    assert np.mean(got < 1.02 * steps + 1e-3) > 0.9
    assert at_limit.sum() > 10
    assert np.median(found.q[at_limit].sum(axis=1)) > 0.995
    answers = ik.all(X[:3], starts=32)
    assert cell.within_limits(answers.q[answers.success]).all()


def test_paths_keep_them():
    _, limited = cells()
    ends = limited.samples(2, seed=8).rows(0, 2)
    ends[1] = ends[0] + 0.4 * (ends[1] - ends[0])  # the polytope is convex
    X = limited.fk("tool0")(np.linspace(*ends, 30))
    path = limited.ik("tool0").path(X, start=ends[0])
    assert path.answer.success.all()
    assert limited.within_limits(path.answer.q).all()


def test_where_other_joints_are_counts():
    # Two carriages on one rail: the second arm may not pass the first.
    slide = arm.joints.Prismatic(axis=(1, 0, 0))
    far = arm.Limits(lower=-2.0, upper=2.0)
    cars = [
        arm.Manipulator(
            name=name,
            links=[
                arm.Link(name="rail"),
                arm.Link(name="car", parent="rail", joint=slide, limits=far),
            ],
        )
        for name in ("left", "right")
    ]
    apart = arm.CoupledLimit(joints={"right/car": 1, "left/car": -1}, lower=0.5)
    cell = arm.Cell(manipulators=cars, coupled_limits=[apart])
    for where, reason in ((-1.0, Reason.SOLVED), (0.4, Reason.LIMITS)):
        state = cell.home.joints({"left/car": where, "right/car": 1.0})
        ik = cell.ik("right/car", joints=["right/car"], state=state, position="x")
        found = ik(np.eye(4))
        assert found.reason == reason
        assert found.q[0] >= where + 0.5 - 1e-12 or found.success


def test_loops_keep_them():
    cell = arm.example("palletiser")
    tight = arm.CoupledLimit(
        joints={"crank": 1, "upper_arm": -1}, lower=-0.5, upper=0.4
    )
    limited = with_limits(cell, tight)
    q = cell.samples(40, seed=2).rows(0, 40)
    inside = limited.limit_rows.holds(q)
    X = cell.fk("flange")(q)
    ik = limited.ik("flange", rotation="z", axes="relative_to")
    found = ik(X)
    assert 5 < inside.sum() < 35
    assert np.array_equal(found.success, inside)  # the pose tells crank and upper arm
    assert limited.within_limits(found.q).all()


def test_rates_are_scaled_to_the_last_bit_of_the_room():
    plain, limited = cells()
    q = limited.samples(60, seed=9).rows(0, 60)
    V = np.random.default_rng(0).normal(size=(60, 6))
    step = 0.5
    d = limited.differential_ik("tool0")
    rates = d(q, V, step=step)
    assert limited.limit_rows.excess(q + step * rates.qd).max() < 1e-12
    loose = plain.differential_ik("tool0")(q, V, step=step)
    assert limited.limit_rows.excess(q + step * loose.qd).max() > 0.1
    (low, high), most = limited.limits, limited.velocity_limits
    A, b = limited.limit_rows.A, limited.limit_rows.b
    J = limited.jacobian("tool0")(q)
    stopped = 0
    for k in np.flatnonzero(np.linalg.cond(J) < 50):
        x = np.linalg.solve(J[k], V[k])
        rooms = np.concatenate(
            [
                np.minimum(most, (high - q[k]) / step) / np.maximum(x, 1e-300),
                np.minimum(most, (q[k] - low) / step) / np.maximum(-x, 1e-300),
                (b - A @ q[k]) / step / np.maximum(A @ x, 1e-300),
            ]
        )
        assert abs(min(1.0, rooms.min()) - rates.scale[k]) < 1e-6
        stopped += rooms[-len(b) :].min() < min(1.0, rooms[: -len(b)].min())
    assert stopped > 3
    for k in range(3):
        assert np.allclose(d(q[k], V[k], step=step).qd, rates.qd[k], atol=1e-9)


def test_rates_beyond_them_come_back_or_stay():
    _, limited = cells()
    q = limited.home.q.copy()
    q[1:3] = 0.6, 0.6  # the sum may be 0.8
    d = limited.differential_ik("tool0")
    for sign in (1.0, -1.0):
        V = sign * limited.jacobian("tool0")(q) @ [0, 1.0, 1.0, 0, 0, 0]
        qd = d(q, V, step=0.01).qd
        assert qd[1] + qd[2] <= 1e-9
        assert (qd[1] + qd[2] < -0.5) == (sign < 0)


def test_rates_without_limits_do_not_know_them():
    plain, limited = cells()
    q, V = plain.home.q, np.ones(6)
    both = [c.differential_ik("tool0", limits=False)(q, V).qd for c in (plain, limited)]
    assert np.array_equal(*both)
    assert lsq_linear(plain.jacobian("tool0")(q), V).success
