"""Arms with more joints than a pose needs, some of them given."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary import Cell, Pose
from armillary.errors import ModelError, ShapeError, UnknownName
from armillary.ik import general_form
from armillary.ik.free_joint import FreeJoint, free_joint
from armillary.ik.query import query_of
from armillary.ik.reason import Reason
from arms import TAU, arm_of_axes, turned_apart

X, Y, Z = np.eye(3)


def franka(*, tool: Pose | None = None, limit: Any = np.pi) -> Cell:
    """Return the arm of a Panda or FR3 by its data sheet: an offset wrist."""
    axes = np.array([Z, Y, Z, -Y, Z, -Y, -Z])
    x = [0.0, 0.0, 0.0, 0.0825, 0.0, 0.0, 0.088]
    z = [0.333, 0.333, 0.649, 0.649, 1.033, 1.033, 1.033]
    points = np.column_stack([x, np.zeros(7), z])
    tool = tool or Pose.translation(0.0, 0.0, -0.107)
    return arm_of_axes("RRRRRRR", axes, points, tool=tool, limit=limit)


def any_seven(seed: int = 0) -> Cell:
    """Return an arm of seven axes anywhere."""
    rng = np.random.default_rng(seed)
    axes, points = rng.normal(size=(7, 3)), rng.uniform(-0.4, 0.4, (7, 3))
    return arm_of_axes("RRRRRRR", axes, points, tool=Pose.translation(0.1, 0.0, 0.2))


def own_error(answers: arm.Answers, q: np.ndarray) -> float:
    """Return how far the joint positions that poses were made from are from answers."""
    return float(np.nanmin(turned_apart(answers.q, q[:, None]), axis=1).max())


def test_a_given_last_joint_leaves_a_closed_form_of_an_offset_wrist() -> None:
    cell = franka()
    ik = cell.ik("tool")
    assert ik.closed is None
    form = ik.closed_given("l6")
    assert form.family == "spherical wrist, axes 1 and 2 meeting"
    assert form.joints == ("l6",)
    assert len(form.choices) == 3
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (500, 7))
    targets = cell.fk("tool")(q)
    found = ik.all(targets, redundancy={"l6": q[:, 6]})
    assert found.q.shape == (500, 8, 7)
    assert found.branches == form.branches
    assert found.complete.all()
    assert own_error(found, q) < 1e-6
    given = np.broadcast_to(q[:, None, 6], found.success.shape)
    assert (found.q[..., 6] == given)[found.success].all()
    poses = cell.fk("tool")(found.q)
    assert np.abs(poses - targets[:, None])[found.success].max() < 1e-9


@pytest.mark.parametrize("make", [franka, any_seven])
def test_a_dense_search_finds_no_other_answer(make: type) -> None:
    """Newton's method, from many random starts, on the poses alone."""
    cell = make()
    fk, rng = cell.fk("tool"), np.random.default_rng(3)
    q = rng.uniform(-np.pi, np.pi, (2, 7))
    targets = fk(q)
    found = cell.ik("tool").all(targets, redundancy={"l6": q[:, 6]})
    for target, given, answers, ok in zip(
        targets, q[:, 6], found.q, found.success, strict=True
    ):
        at = rng.uniform(-np.pi, np.pi, (600, 7))
        at[:, 6] = given
        for _ in range(25):
            apart = (target[:3] - fk(at)[:, :3]).reshape(len(at), 12)
            slopes = np.empty((len(at), 12, 6))
            for k in range(6):
                step = 1e-6 * np.eye(7)[k]
                change = fk(at + step) - fk(at - step)
                slopes[:, :, k] = change[:, :3].reshape(len(at), 12) / 2e-6
            moves = np.linalg.pinv(slopes, rcond=1e-9) @ apart[..., None]
            at[:, :6] += np.clip(moves[..., 0], -0.5, 0.5)
        reached = at[np.abs(fk(at) - target).max(axis=(1, 2)) < 1e-9]
        gaps = turned_apart(answers[ok], reached[:, None])
        assert len(reached) > 50
        assert gaps.min(axis=1).max() < 1e-5  # each is one of ours
        assert gaps.min(axis=0).max() < 1e-5  # and each of ours is reached


def test_values_and_targets_broadcast() -> None:
    cell = franka()
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (3, 7))
    targets, values = cell.fk("tool")(q), np.linspace(-2.0, 2.0, 5)
    ik = cell.ik("tool")
    grid = ik.all(targets[:, None], redundancy={"l6": values})
    assert grid.q.shape == (3, 5, 8, 7)
    for k, value in enumerate(values):
        alone = ik.all(targets, redundancy={"l6": value})
        assert np.array_equal(grid.q[:, k], alone.q, equal_nan=True)
    assert ik.all(targets[0], redundancy={"l6": values}).q.shape == (5, 8, 7)
    assert ik(targets[0], redundancy={"l6": values}).q.shape == (5, 7)
    with pytest.raises(ShapeError, match="must broadcast"):
        ik.all(targets, redundancy={"l6": values})


def test_one_target_has_the_answers_of_its_row() -> None:
    for cell in (franka(), any_seven()):
        ik = cell.ik("tool")
        q = np.random.default_rng(1).uniform(-2.0, 2.0, (20, 7))
        targets = cell.fk("tool")(q)
        rows = ik.all(targets, redundancy={"l6": q[:, 6]})
        nearest = ik(targets, redundancy={"l6": q[:, 6]}, near=q)
        assert turned_apart(nearest.q, q).max() < 1e-6
        for k, target in enumerate(targets):
            one = ik.all(target, redundancy={"l6": q[k, 6]})
            assert np.array_equal(one.q, rows.q[k], equal_nan=True)
            single = ik(target, redundancy={"l6": q[k, 6]}, near=q[k])
            assert np.array_equal(single.q, nearest.q[k])


def test_a_track_is_given_as_a_state_would_give_it() -> None:
    cell = arm.example("ur5e_on_oval")
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (3, 7))
    targets = cell.fk("tool0")(q)
    found = cell.ik("tool0").all(targets, redundancy={"cart": q[:, 0]})
    assert own_error(found, q) < 1e-5
    for k, target in enumerate(targets):
        state = cell.home.replace(q=q[k])
        standing = cell.ik("tool0", joints=cell.joint_names[1:], state=state)
        expected = standing.all(target)
        assert found.branches == expected.branches
        assert np.array_equal(found.success[k], expected.success)
        ok = expected.success
        assert turned_apart(found.q[k, ok, 1:], expected.q[ok]).max() < 1e-9


def test_a_joint_between_the_others_may_be_given() -> None:
    cell = any_seven()
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (4, 7))
    q[2:, 2] = q[:2, 2]  # two values, in turn
    found = cell.ik("tool").all(cell.fk("tool")(q), redundancy={"l2": q[:, 2]})
    assert found.branches == ()
    assert own_error(found, q) < 1e-6
    assert (
        np.abs(cell.fk("tool")(found.q) - cell.fk("tool")(q)[:, None])[
            found.success
        ].max()
        < 1e-9
    )


@pytest.mark.parametrize("make", [any_seven, franka])
def test_values_of_a_joint_between_the_others_share_kernels(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another value is another arm, of which the axes are inputs."""
    cell, made = make(), list[str]()
    program = general_form.checked_program

    def counted(arm: Any) -> Any:
        made.append(arm.closed.family.name)
        return program(arm)

    monkeypatch.setattr(general_form, "checked_program", counted)
    q = np.random.default_rng(1).uniform(-2.0, 2.0, (12, 7))
    ik, targets = cell.ik("tool"), cell.fk("tool")(q)
    found = ik.all(targets, redundancy={"l2": q[:, 2]})
    assert 0 < len(made) <= 4  # axes that are written with other signs are others
    assert own_error(found, q) < 1e-6
    poses = cell.fk("tool")(found.q[found.success])
    wanted = np.broadcast_to(targets[:, None], (*found.success.shape, 4, 4))
    np.testing.assert_allclose(poses, wanted[found.success], atol=1e-9)
    others = [f"l{j}" for j in range(7) if j != 2]
    for k in range(2):  # the arm that is left, by itself
        state = cell.home.replace(q=q[k])
        alone = cell.ik("tool", joints=others, state=state).all(targets[k])
        some = found.q[k][found.success[k]][:, [0, 1, 3, 4, 5, 6]]
        assert len(some) == alone.success.sum()
        apart = turned_apart(some[:, None], alone.q[alone.success][None])
        assert apart.min(axis=0).max() < 1e-6


def test_limits_that_couple_a_given_joint_are_those_of_its_value() -> None:
    plain = any_seven(4)
    coupled = arm.CoupledLimit(joints={"l2": 1.0, "l4": 1.0}, lower=-1.0, upper=1.0)
    (made,) = plain.manipulators
    cell = plain.exchange(made.replace(coupled_limits=(coupled,)))
    q = cell.samples(6, seed=5).rows(0, 6)
    X, given = cell.fk("tool")(q), {"l2": q[:, 2]}
    found = cell.ik("tool").all(X, redundancy=given)
    assert own_error(found, q) < 1e-6
    every = plain.ik("tool").all(X, redundancy=given)
    holds = every.success & cell.limit_rows.holds(every.q)
    assert (every.success & ~holds).any()
    assert cell.within_limits(found.q[found.success]).all()
    assert np.array_equal(found.success.sum(axis=1), holds.sum(axis=1))


def test_a_slide_that_some_values_put_along_its_neighbour_is_found() -> None:
    """Such a slide changes places with the turn, which its kernels know."""
    rng = np.random.default_rng(0)
    axes, points = rng.normal(size=(7, 3)), rng.uniform(-0.4, 0.4, (7, 3))
    axes[2] = axes[0]
    cell = arm_of_axes("RRPRRRR", axes, points)
    q = rng.uniform(-1.0, 1.0, (4, 7))
    q[::2, 1] = 0.0
    found = cell.ik("tool").all(cell.fk("tool")(q), redundancy={"l1": q[:, 1]})
    assert own_error(found, q) < 1e-6
    assert found.complete.all()


def test_a_value_that_leaves_a_simpler_arm_has_its_formula() -> None:
    """With joint 3 of a Panda at zero, three axes are parallel."""
    cell = franka()
    q = np.random.default_rng(2).uniform(-2.0, 2.0, (6, 7))
    q[:4, 2] = 0.0
    found = cell.ik("tool").all(cell.fk("tool")(q), redundancy={"l2": q[:, 2]})
    assert own_error(found, q) < 1e-6
    assert found.complete[:4].all()


def test_several_joints_may_be_given() -> None:
    axes = np.array([X, Z, Y, Z, -Y, Z, -Y, -Z])
    seven = franka()
    points = np.zeros((8, 3))
    x, z = [0.0, 0.0, 0.0, 0.0825, 0.0, 0.0, 0.088], [0.333, 0.333, 0.649, 0.649]
    points[1:, 0], points[1:, 2] = x, [*z, 1.033, 1.033, 1.033]
    cell = arm_of_axes("PRRRRRRR", axes, points)
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (50, 8))
    ik = cell.ik("tool")
    given = {"l7": q[:, 7], "l0": q[:, 0]}
    found = ik.all(cell.fk("tool")(q), redundancy=given)
    assert own_error(found, q) < 1e-6
    assert (
        ik.closed_given("l7", "l0").family == seven.ik("tool").closed_given("l6").family
    )


def test_limits_of_given_and_other_joints_hold() -> None:
    cell = franka(limit=[2.8, 1.7, 2.8, 2.0, 2.8, 2.0, 2.8])
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (100, 7)) * cell.limits[1]
    targets = cell.fk("tool")(q)
    ik = cell.ik("tool")
    found = ik.all(targets, redundancy={"l6": q[:, 6]})
    assert (np.abs(found.q[found.success]) <= cell.limits[1]).all()
    assert (found.reason == Reason.LIMITS).any()
    beyond = ik.all(targets, redundancy={"l6": 3.0})
    assert not beyond.success.any()
    assert (beyond.reason == Reason.LIMITS).any()
    answer = ik(targets, redundancy={"l6": 3.0})
    assert set(answer.summary()) <= {"LIMITS", "OUT_OF_REACH"}
    assert (np.abs(answer.q) <= cell.limits[1]).all()


def test_answers_at_limits_are_verified_where_the_tool_is() -> None:
    """A tool of 5 m turns an error of the rotation into one of the position."""
    cell = franka(tool=Pose.translation(5.0, 0.0, 0.0), limit=2.0)
    rng = np.random.default_rng(0)
    q = rng.uniform(-2.0, 2.0, (400, 7))
    q[:, 4] = 2.0 + rng.uniform(-1e-6, 1e-6, 400)  # at and beyond a limit
    targets = cell.fk("tool")(q)
    found = cell.ik("tool").all(targets, redundancy={"l6": q[:, 6]})
    poses = cell.fk("tool")(found.q)
    miss = np.linalg.norm((poses - targets[:, None])[..., :3, 3], axis=-1)
    assert (found.q[..., 4] == 2.0).any()
    assert miss[found.success].max() <= 1e-6
    assert np.allclose(miss[found.success], found.residual[found.success][:, 0])


def test_a_call_keeps_the_given_joint_and_searches_nothing() -> None:
    cell = franka()
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (30, 7))
    targets = cell.fk("tool")(q)
    targets[0, 0, 3] = 9.0
    ik = cell.ik("tool")
    answer = ik(targets, redundancy={"l6": 0.3}, near=q)
    assert (answer.q[answer.success][:, 6] == 0.3).all()
    assert answer.reason[0] == Reason.OUT_OF_REACH
    every = ik.all(targets, redundancy={"l6": 0.3}, near=q)
    steps = ((every.q - q[:, None]) ** 2).sum(axis=2)
    least = np.where(every.success, steps, np.inf).min(axis=1)
    assert np.array_equal(answer.success, np.isfinite(least))
    ok = answer.success
    assert np.allclose(((answer.q - q) ** 2).sum(axis=1)[ok], least[ok])
    best = ik.best(targets[1:], lambda q: q[3] ** 2, redundancy={"l6": 0.3})
    least = np.where(every.success, every.q[..., 3] ** 2, np.inf).min(axis=1)[1:]
    assert np.allclose((best.q[:, 3] ** 2)[best.success], least[best.success])


def test_a_path_keeps_the_given_joint() -> None:
    cell = franka()
    q = np.linspace([0.1, 0.5, 0.2, -1.5, 0.3, 1.4, 0.2], 7 * [0.6], 100)
    path = cell.ik("tool").path(
        cell.fk("tool")(q), start=q[0], redundancy={"l6": q[:, 6]}
    )
    assert not path.jumps.size
    assert turned_apart(path.answer.q, q).max() < 1e-6


def test_answers_that_touch_are_marked() -> None:
    cell = arm.example("oval_track_cell")
    check = cell.collision()
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (40, len(cell.joint_names)))
    ik = cell.ik("tcp", avoid=check)
    given = cell.joint_names[0]
    found = ik.all(cell.fk("tcp")(q), redundancy={given: q[:, 0]})
    touching = found.reason == Reason.IN_COLLISION
    assert touching.any()
    assert check(found.q[touching]).all()
    assert not check(found.q[found.success]).any()


def test_what_cannot_be_given_is_refused() -> None:
    cell = franka()
    target = cell.fk("tool")(np.zeros(7))
    ik = cell.ik("tool")
    with pytest.raises(UnknownName, match="l8"):
        ik.all(target, redundancy={"l8": 0.0})
    with pytest.raises(ModelError, match="by the names of joints"):
        ik.all(target, redundancy={})
    with pytest.raises(ModelError, match="by the names of joints"):
        wrong: Any = [0.0]
        ik(target, redundancy=wrong)
    with pytest.raises(ModelError, match="exclude each other"):
        ik.all(target, redundancy={"l6": 0.0}, method="numeric")
    with pytest.raises(ModelError, match="exclude each other"):
        ik.all(target, redundancy={"l6": 0.0}, arm_angle=0.0)
    with pytest.raises(ShapeError, match="finite"):
        ik.all(target, redundancy={"l6": np.nan})
    with pytest.raises(ModelError, match="not among the joints"):
        cell.ik("tool", joints=cell.joint_names[:6]).all(target, redundancy={"l6": 0.0})
    bad = target.copy()
    bad[0, 0] = np.nan
    found = ik.all(bad, redundancy={"l6": 0.0})
    assert (found.reason == Reason.INVALID_TARGET).all()


def test_whole_turns_of_a_given_joint_are_kept() -> None:
    cell = franka(limit=7.0)
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (5, 7))
    turned = q[:, 6] + TAU
    found = cell.ik("tool").all(cell.fk("tool")(q), redundancy={"l6": turned})
    assert (found.q[..., 6] == turned[:, None])[found.success].all()
    assert own_error(found, q) < 1e-6


def test_far_from_near_no_branch_at_any_value_is_much_nearer() -> None:
    cell = franka(limit=2.8)
    rng = np.random.default_rng(6)
    q, near = rng.uniform(-2.8, 2.8, (2, 12, 7))
    targets = cell.fk("tool")(q)
    ik = cell.ik("tool")
    found = ik(targets, near=near)
    assert found.success.all()
    values = np.linspace(-2.8, 2.8, 281)
    every = ik.all(targets[:, None], redundancy={"l6": values}, near=near[:, None])
    steps = np.sqrt(((every.q - near[:, None, None]) ** 2).sum(axis=3))
    least = np.where(every.success, steps, np.inf).min(axis=(1, 2))
    assert (np.linalg.norm(found.q - near, axis=1) < 1.2 * least).all()


def eight() -> Cell:
    rng = np.random.default_rng(4)
    axes, points = rng.normal(size=(8, 3)), rng.uniform(-0.4, 0.4, (8, 3))
    return arm_of_axes("R" * 8, axes, points, tool=Pose.translation(0.1, 0.0, 0.2))


@pytest.mark.parametrize("given", [("l6", "l7"), ("l1", "l0")])
def test_several_joints_outside_of_the_others_share_one_form(given: Any) -> None:
    cell = eight()
    ik, q = cell.ik("tool"), np.random.default_rng(0).uniform(-2.0, 2.0, (6, 8))
    values = {name: q[:, int(name[1:])] for name in given}
    found = ik.all(cell.fk("tool")(q), redundancy=values)
    assert len(found.branches) == 16  # of each value another arm has no names
    assert own_error(found, q) < 1e-6
    poses = cell.fk("tool")(found.q[found.success])
    targets = np.repeat(cell.fk("tool")(q), found.count, axis=0)
    assert np.abs(poses - targets).max() < 1e-9
    assert ik.branch(q, redundancy=given).shape == (6, 1)


def test_a_joint_behind_a_free_axis_makes_another_arm() -> None:
    """The free axis is that of the tool, which the given joint turns."""
    rng = np.random.default_rng(2)
    axes, points = rng.normal(size=(6, 3)), rng.uniform(-0.4, 0.4, (6, 3))
    cell = arm_of_axes("RRRRRR", axes, points, tool=Pose.translation(0.1, 0.0, 0.2))
    ik, q = cell.ik("tool", rotation="xy"), rng.uniform(-2.0, 2.0, (8, 6))
    q[:, 5] = 0.4
    targets = cell.fk("tool")(q)
    for name, place in (("l5", 5), ("l0", 0)):
        found = ik.all(targets, redundancy={name: q[:, place]})
        assert own_error(found, q) < 1e-6
        rows, _ = np.nonzero(found.success)
        apart = cell.fk("tool")(found.q[found.success]) - targets[rows]
        assert np.abs(apart[:, :3, 2:]).max() < 1e-7
    with pytest.raises(ModelError, match="fewer joints than six"):
        ik.branch(q, redundancy=["l0"])


def test_a_joint_behind_a_point_makes_another_arm() -> None:
    axes = np.array([Z, Y, Y, X])
    points = [[0.0, 0.0, 0.1], [0.1, 0.0, 0.2], [0.1, 0.0, 0.5], [0.3, 0.0, 0.5]]
    tool = Pose.translation(0.2, 0.1, 0.05)
    cell = arm_of_axes("RRRR", axes, points, tool=tool)
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (20, 4))
    q[:, 3] = 0.7
    targets = cell.fk("tool")(q)[:, :3, 3]
    found = cell.ik("tool", rotation="").all(targets, redundancy={"l3": 0.7})
    assert own_error(found, q) < 1e-6
    rows, _ = np.nonzero(found.success)
    apart = cell.fk("tool")(found.q[found.success])[:, :3, 3] - targets[rows]
    assert np.abs(apart).max() < 1e-9


def test_fewer_joints_than_six_are_left() -> None:
    cell = franka()
    ik, q = cell.ik("tool"), np.random.default_rng(0).uniform(-2.0, 2.0, (5, 7))
    targets = cell.fk("tool")(q)
    targets[0, 0, 3] += 0.01
    given = {"l6": q[:, 6], "l5": q[:, 5]}
    every = ik.all(targets, redundancy=given)
    near = ik(targets, redundancy=given, near=q)
    apart = turned_apart(every.q[1:], q[1:, None])
    assert np.nanmin(apart, axis=1).max() < 1e-6
    assert near.reason.tolist() == [Reason.OUT_OF_REACH] + 4 * [Reason.SOLVED]
    assert turned_apart(near.q[1:], q[1:]).max() < 1e-6
    for k, target in enumerate(targets):
        given = {"l6": q[k, 6], "l5": q[k, 5]}
        one = ik.all(target, redundancy=given)
        assert np.array_equal(one.q, every.q[k], equal_nan=True)
        assert np.array_equal(ik(target, redundancy=given, near=q[k]).q, near.q[k])
    path = np.linspace(q[1], q[1] + 0.1, 40)
    found = ik.path(
        cell.fk("tool")(path),
        start=path[0],
        redundancy={"l6": path[:, 6], "l5": path[:, 5]},
    )
    assert not found.jumps.size
    assert turned_apart(found.answer.q, path).max() < 1e-6


def test_joints_are_given_once_and_one_is_left() -> None:
    cell = franka()
    ik, target = cell.ik("tool"), cell.fk("tool")(np.zeros(7))
    with pytest.raises(ModelError, match="gives 'l6' twice"):
        ik.all(target, redundancy={"l6": 0.0, "arm/l6": 0.1})
    with pytest.raises(ModelError, match="gives every joint"):
        ik.all(target, redundancy=dict.fromkeys(cell.joint_names, 0.0))


def test_given_joints_and_moved_bases_go_together() -> None:
    cell = Cell().add(franka().manipulators[0], bolted=False)
    ik, q = cell.ik("tool"), np.linspace(7 * [0.3], 7 * [0.6], 30)
    bases = np.array([Pose.translation(0.01 * k, 0.0, 0.0).matrix() for k in range(30)])
    targets = bases @ cell.fk("tool")(q)
    moved = {"arm": bases}
    every = ik.all(targets, redundancy={"l6": q[:, 6]}, bases=moved)
    assert own_error(every, q) < 1e-6
    grid = ik.all(
        targets[:, None], redundancy={"l6": q[:3, 6]}, bases={"arm": bases[:, None]}
    )
    assert np.array_equal(grid.q[1, 1], every.q[1], equal_nan=True)
    path = ik.path(targets, start=q[0], redundancy={"l6": q[:, 6]}, bases=moved)
    assert not path.jumps.size
    assert turned_apart(path.answer.q, q).max() < 1e-6


@pytest.mark.parametrize(("kinds", "chosen"), [("PRRRRRR", "l0"), ("RRRPRRR", None)])
def test_a_joint_is_given_that_leaves_none_that_slides(
    kinds: str, chosen: str | None
) -> None:
    """The form of six of which some slide takes too long for a way through all."""
    rng = np.random.default_rng(0)
    axes, points = rng.normal(size=(7, 3)), rng.uniform(-0.4, 0.4, (7, 3))
    ik = arm_of_axes(kinds, axes, points).ik("tool")
    free = free_joint(ik._problem)
    assert (free and free._form.joints[0]) == chosen


def test_values_without_an_answer_are_ordered_by_what_is_beyond_limits() -> None:
    """So a search among them is led to the few that have one."""
    limit = np.array([2.9, 1.7, 2.9, 2.9, 1e-3, 3.0, 2.9])
    cell = franka(limit=limit)
    ik = cell.ik("tool")
    rng = np.random.default_rng(0)
    q, near = rng.uniform(-limit, limit, (2, 50, 7))
    values = np.linspace(-2.9, 2.9, 201)[None, :, None] + np.zeros((50, 1, 1))
    targets = cell.fk("tool")(q)
    query = query_of(ik._problem, targets, near=near)
    rows = ik.closed_given("l6").rows(query, values)
    excess = np.maximum(np.abs(rows[..., :7]) - limit, 0.0).sum(axis=2)
    blocked = rows[..., 9] == Reason.LIMITS
    assert blocked.sum() > 1000
    steps = ((rows[..., :7] - near[:, None]) ** 2).sum(axis=2)
    for k in range(50):
        order = np.argsort(rows[k, blocked[k], -1])
        assert (np.diff(excess[k, blocked[k]][order]) > -1e-3).all()
    answered = rows[..., 9] == Reason.SOLVED
    np.testing.assert_allclose(rows[..., -1][answered], steps[answered], rtol=1e-12)
    assert ik(targets, near=near).success.all()


@pytest.mark.parametrize("seed", [8, 16, 19, 38])
def test_a_way_goes_on_where_branches_meet_between_its_layers(seed: int) -> None:
    """The given joint turns back there: at values beyond, only others are left."""
    cell = franka(limit=2.6)
    ik, (low, high) = cell.ik("tool"), cell.limits
    rng = np.random.default_rng(seed)
    turns = 0.6 * rng.uniform(0.3, 1.5, (7, 3))
    begin, size = rng.random((7, 3)), rng.uniform(0.2, 1.0, (7, 3))
    at = np.linspace(0.0, 1.0, 600)[:, None, None]
    wave = (size * np.sin(TAU * (turns * at + begin))).sum(axis=2)
    least, greatest = wave.min(axis=0), wave.max(axis=0)
    wave = (2.0 * wave - least - greatest) / (greatest - least)
    half = 0.5 * (high - low) * rng.uniform(0.3, 0.95, 7)
    q = rng.uniform(low + half, high - half) + half * wave
    query = query_of(ik.numeric.problem, cell.fk("tool")(q))
    free = free_joint(ik.numeric.problem)
    assert free is not None
    most = np.full(q.shape, 0.5)
    way = free.way(query, ik.numeric.local, q, q[0], most, np.ones(7))
    assert way.success.all()
    assert np.abs(np.diff(way.q[:, 0], axis=0)).max() < 0.3  # 0.9 and more before


def test_where_a_jump_is_left_layers_are_at_most_at_twice_as_many_poses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A target far from the one before needs a jump, whatever is searched."""
    cell = franka()
    ik, densities = cell.ik("tool"), list[int]()
    way = FreeJoint.way

    def noted(self: FreeJoint, *args: Any) -> Any:
        densities.append(args[-1])
        return way(self, *args)

    monkeypatch.setattr(FreeJoint, "way", noted)
    q = np.linspace(0.3, 0.4, 40)[:, None] * np.array([1, 1, 1, -3, 1, 4, 1])
    targets = np.array(cell.fk("tool")(q))
    targets[20:, :3, 3] += [0.0, -0.35, 0.1]
    path = ik.path(targets, start=q[0], largest_step=0.05)
    assert path.jumps.size
    assert densities[-1] == 2
    assert sum(densities) <= 5


SEVEN = {
    "offset wrist": lambda: (franka(limit=2.6), "tool", "l6"),
    "offset tool": lambda: (
        franka(tool=Pose.translation(0.1, 0.2, -0.1), limit=2.0),
        "tool",
        "l6",
    ),
    "track": lambda: (arm.example("ur5e_on_oval"), "tool0", "track/cart"),
}


@pytest.mark.parametrize("name", SEVEN)
def test_the_nearest_of_a_given_joint_is_the_nearest_of_all(name: str) -> None:
    """One kernel picks it, of branches that another one writes."""
    cell, frame, given = SEVEN[name]()
    ik, rng = cell.ik(frame), np.random.default_rng(0)
    low, high = (np.clip(ends, -6.0, 6.0) for ends in cell.limits)
    q, near = rng.uniform(low, high, (2, 400, 7))
    targets, k = cell.fk(frame)(q), ik.joints.index(given)
    options: dict[str, Any] = {"near": near, "redundancy": {given: near[:, k]}}
    answer, every = ik(targets, **options), ik.all(targets, **options)
    steps = ((every.q - near[:, None]) ** 2).sum(axis=2)
    steps[~every.success] = np.inf
    assert 20 < answer.success.sum() < 400
    np.testing.assert_array_equal(answer.success, np.isfinite(steps).any(axis=1))
    some = answer.success
    found = ((answer.q - near) ** 2).sum(axis=1)
    np.testing.assert_allclose(found[some], steps.min(axis=1)[some], rtol=1e-7)
    np.testing.assert_array_equal(answer.q[some, k], near[some, k])
    np.testing.assert_allclose(cell.fk(frame)(answer.q[some]), targets[some], atol=2e-6)
    assert (answer.residual[some] < 1e-6).all()


@pytest.mark.parametrize("name", SEVEN)
def test_far_from_near_the_nearest_is_sought_at_many_values(name: str) -> None:
    """As near as all branches at 200 values, with few exceptions."""
    cell, frame, given = SEVEN[name]()
    ik, rng = cell.ik(frame), np.random.default_rng(1)
    low, high = (np.clip(ends, -3.0, 3.0) for ends in cell.limits)
    q, near = rng.uniform(low, high, (2, 60, 7))
    targets, k = cell.fk(frame)(q), ik.joints.index(given)
    answer = ik(targets, near=near)
    assert answer.success.all()
    steps = ((answer.q - near) ** 2).sum(axis=1)
    values = np.linspace(low[k], high[k], 200)
    options: dict[str, Any] = {"near": near[:, None], "redundancy": {given: values}}
    every = ik.all(targets[:, None], **options)
    others = ((every.q - near[:, None, None]) ** 2).sum(axis=3)
    others[~every.success] = np.inf
    least = others.min(axis=(1, 2))
    assert (steps > 1.001 * least).sum() <= 2
    assert steps.mean() < np.minimum(least, 30.0).mean()


def test_an_answer_far_from_near_costs_few_calls() -> None:
    """Of Python and of NumPy; three rounds of some 40 operations each, before."""
    cell = franka()
    ik, q = cell.ik("tool"), np.random.default_rng(2).uniform(-2.0, 2.0, (2, 7))
    target, count = np.ascontiguousarray(cell.fk("tool")(q[0])), 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    ik(target, near=q[1])
    sys.setprofile(note)
    try:
        answer = ik(target, near=q[1])
    finally:
        sys.setprofile(None)
    assert answer.success
    assert count < 200  # 1130 before


@pytest.mark.parametrize("far", [3.0, 1e6])
def test_targets_farther_than_the_arm_is_long_are_out_of_reach(far: float) -> None:
    """Where the formula leaves a doubt, as of a wrist that is free, length decides."""
    axes = np.array([Z, Y, Z, -Y, Z, Y, Z])
    z = [0.36, 0.36, 0.36, 0.78, 1.18, 1.18, 1.18]
    points = np.column_stack([np.zeros((7, 2)), z])
    cell = arm_of_axes("RRRRRRR", axes, points, tool=Pose.translation(0.0, 0.0, 0.1))
    ik = cell.ik("tool")
    q = np.random.default_rng(3).uniform(-1.0, 1.0, (20, 7))
    targets = np.array(cell.fk("tool")(q))
    targets[:, :3, 3] += far * np.array([0.6, 0.64, 0.48])
    answer = ik(targets, redundancy={"l0": 0.3})
    assert answer.summary() == {"OUT_OF_REACH": 20}
    every = ik.all(targets, redundancy={"l0": 0.3})
    assert (every.reason == Reason.OUT_OF_REACH).all()
    assert every.complete.all()
    one = ik.all(targets[0], redundancy={"l0": 0.3})
    assert (one.reason == every.reason[0]).all()


def test_a_stretched_arm_reaches_what_the_tolerance_allows() -> None:
    """Beyond the bound of lengths by less than the tolerance is not out of reach."""
    axes, points = np.array([Z, Y, Z, -Y, Z, Y, Z]), np.zeros((7, 3))
    points[3:, 2], points[4:, 2] = 0.4, 0.8
    cell = arm_of_axes("RRRRRRR", axes, points)
    target = np.array(cell.fk("tool")(np.zeros(7)))
    target[2, 3] += 5e-4
    ik = cell.ik("tool")
    answer = ik(target, redundancy={"l0": 0.3}, tolerance=(1e-3, 1e-3))
    assert answer.reason != Reason.OUT_OF_REACH
    target[2, 3] += 1e-3
    answer = ik(target, redundancy={"l0": 0.3}, tolerance=(1e-3, 1e-3))
    assert answer.reason == Reason.OUT_OF_REACH
