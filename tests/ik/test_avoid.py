"""Inverse kinematics that avoids collisions: what is free, or the reason."""

from __future__ import annotations

import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError
from armillary.ik.reason import Reason
from armillary.shapes import Box, Capsule, Sphere

Array = np.ndarray
POSTS = (
    (Box(size=(0.3, 0.3, 2.0)), (0.9, 0.5, 0.5)),
    (Sphere(radius=0.3), (0.5, -0.9, 1.2)),
)


def with_posts(cell: arm.Cell, *posts: tuple[Any, tuple[float, ...]]) -> arm.Cell:
    """Return the cell with obstacles, each a shape at a place."""
    parts = [
        arm.Manipulator(name=f"post{k}", links=[arm.Link(name="p", collisions=[s])])
        for k, (s, _) in enumerate(posts)
    ]
    mounts = [
        arm.Mount(manipulator=part.name, pose=arm.Pose.translation(*at), bolted=False)
        for part, (_, at) in zip(parts, posts, strict=True)
    ]
    rules = cell.rules
    if rules == arm.Rules():  # only the obstacles count
        for robot in cell.manipulators:
            rules = rules.exclude(f"{robot.name}/*", f"{robot.name}/*")
    return cell.replace(
        manipulators=[*cell.manipulators, *parts],
        mounts=[*cell.mounts, *mounts],
        rules=rules,
    )


@cache
def among_posts(name: str) -> arm.Cell:
    """Return an example among the same posts, with the kernels of other tests."""
    return with_posts(arm.example(name), *POSTS)


def drawn(cell: arm.Cell, count: int, seed: int = 0) -> Array:
    """Return joint positions within limits, shape (count, n)."""
    lower, upper = np.clip(cell.limits, -3.0, 3.0)
    return np.random.default_rng(seed).uniform(
        lower, upper, (count, len(cell.joint_names))
    )


def hostile(cell: arm.Cell, count: int) -> Array:
    """Return poses of the tool, some far away, beyond limits, or none at all."""
    rng = np.random.default_rng(1)
    Q = rng.uniform(-3.1, 3.1, (count, len(cell.joint_names)))
    X = np.array(cell.fk("tool0")(Q))
    X[::10, 0, 3] += rng.uniform(0, 4, len(X[::10]))
    X[::25, :3, 3] = 40.0
    X[7::50, 0, 0] = np.nan
    return X


def reaches(cell: arm.Cell, q: Array, X: Array) -> bool:
    lower, upper = cell.limits
    apart = np.abs(cell.fk("tool0")(q) - X).max(initial=0.0)
    return bool(apart < 5e-6 and ((q >= lower) & (q <= upper)).all())


def laws_hold(cell: arm.Cell, X: Array, **options: Any) -> Any:
    """Check the answers to targets, and return them."""
    check = cell.collision()
    plain = cell.ik("tool0")(X, **options)
    found = cell.ik("tool0", avoid=check)(X, **options)
    free = found.success
    touching = found.reason == Reason.IN_COLLISION
    assert not check(found.q[free]).any()
    assert check(found.q[touching]).all()
    assert reaches(cell, found.q[free | touching], X[free | touching])
    assert found.residual[free | touching].max() < 1e-6
    # What is not reached at all has the same reason as without a check.
    assert not (touching & ~plain.success).any()
    np.testing.assert_array_equal(free | touching, plain.success)
    missed = ~plain.success
    np.testing.assert_array_equal(found.reason[missed], plain.reason[missed])
    # What touches nothing as it is remains the answer.
    kept = plain.success & ~check(np.nan_to_num(plain.q))
    np.testing.assert_array_equal(found.q[kept], plain.q[kept])
    return found


def test_the_nearest_free_branch_is_taken():
    cell = among_posts("irb2400")
    check, X = cell.collision(), hostile(cell, 2000)
    for options in ({}, {"near": drawn(cell, 2000, 2)}):
        found = laws_hold(cell, X, **options)
        every = cell.ik("tool0").all(X, **options)
        near = options.get("near", np.array(cell.home.q))[..., None, :]
        free = every.success & ~check(np.nan_to_num(every.q))
        np.testing.assert_array_equal(found.success, free.any(axis=1))
        some = every.success.any(axis=1) & ~free.any(axis=1)
        np.testing.assert_array_equal(found.reason == Reason.IN_COLLISION, some)
        assert 0.05 < some.mean() < 0.6
        steps = np.where(free, ((every.q - near) ** 2).sum(axis=2), np.inf).min(axis=1)
        mine = ((found.q - near.reshape(-1, 6)) ** 2).sum(axis=1)
        rows = found.success & (found.reason != Reason.SINGULAR)
        assert (mine[rows] < steps[rows] + 1e-6).all()
        counts = found.summary()
        assert {"SOLVED", "IN_COLLISION", "OUT_OF_REACH", "LIMITS"} <= counts.keys()


def test_a_search_finds_free_answers():
    cell = among_posts("ur10_on_rail")
    check, Q = cell.collision(), drawn(cell, 400)
    found = laws_hold(cell, cell.fk("tool0")(Q))
    assert {"SOLVED", "IN_COLLISION"} == found.summary().keys()
    touching = check(cell.ik("tool0")(cell.fk("tool0")(Q)).q).mean()
    assert (found.reason == Reason.IN_COLLISION).mean() < 0.6 * touching
    near = laws_hold(cell, cell.fk("tool0")(Q), near=Q)
    is_free = ~check(Q)
    assert near.success[is_free].all()
    np.testing.assert_allclose(near.q[is_free], Q[is_free], atol=1e-5)
    laws_hold(cell, hostile(cell, 300))


def test_answers_do_not_depend_on_the_batch():
    for name in ("irb2400", "ur10_on_rail"):
        cell = among_posts(name)
        ik, Q = cell.ik("tool0", avoid=cell.collision()), drawn(cell, 40, 3)
        X = cell.fk("tool0")(Q)
        for options in ({}, {"near": Q}):
            whole = ik(X, **options)
            back = ik(X[::-1], **{k: v[::-1] for k, v in options.items()})
            np.testing.assert_array_equal(whole.q, back.q[::-1])
            np.testing.assert_array_equal(whole.reason, back.reason[::-1])
            for k in range(0, 40, 8):
                one = ik(X[k], **{name: v[k] for name, v in options.items()})
                assert one.reason == whole.reason[k]
                np.testing.assert_allclose(one.q, whole.q[k], atol=1e-6)
        assert ik(X.reshape(5, 4, 2, 4, 4)).reason.shape == (5, 4, 2)
        assert ik(X[:0]).q.shape == (0, len(cell.joint_names))


def test_all_tells_which_branches_touch():
    for name in ("irb2400", "ur10_on_rail"):
        cell = among_posts(name)
        check, X = cell.collision(), cell.fk("tool0")(drawn(cell, 50, 4))
        plain = cell.ik("tool0").all(X)
        found = cell.ik("tool0", avoid=check).all(X)
        reached = found.success | (found.reason == Reason.IN_COLLISION)
        touching = reached & check(np.nan_to_num(found.q))
        np.testing.assert_array_equal(found.reason == Reason.IN_COLLISION, touching)
        for k in range(len(X)):  # the rest are free ones that only this solver seeks
            mine, other = found.q[k, reached[k]], plain.q[k, plain.success[k]]
            off = np.abs(mine - other[:, None]).max(axis=2)
            assert (off.min(axis=1, initial=np.inf) < 1e-9).all()
            assert len(mine) <= len(other) + 1
        assert np.array_equal(found.complete, plain.complete)
        assert touching.any() and found.success.any()


def test_the_best_answer_is_free():
    for name in ("irb2400", "ur10_on_rail"):
        cell = among_posts(name)
        check, Q = cell.collision(), drawn(cell, 30, 5)
        X = cell.fk("tool0")(Q)
        ik = cell.ik("tool0", avoid=check)
        best = ik.best(X, "limits")
        assert not check(best.q[best.success]).any()
        assert reaches(cell, best.q[best.success], X[best.success])
        assert best.success.sum() >= ik(X).success.sum() - 1
        assert set(best.summary()) <= {"SOLVED", "SINGULAR", "IN_COLLISION"}


def arm_with_elbow() -> arm.Cell:
    """Return an arm of seven joints with a spherical shoulder and wrist, and shapes."""
    y, z = (0, 1, 0), (0, 0, 1)
    axes, heights = (z, y, z, y, z, y, z), (0, 0.3, 0, 0.4, 0, 0.4, 0)
    links = [arm.Link(name="base")]
    for k, (axis, height) in enumerate(zip(axes, heights, strict=True)):
        at = arm.Pose.translation(0, 0, height)
        joint = arm.joints.Revolute(axis=axis, precursor=at)
        upper = Capsule(radius=0.05, length=0.2, pose=arm.Pose.translation(0, 0, 0.2))
        links.append(
            arm.Link(
                name=f"l{k}",
                parent=links[-1].name,
                joint=joint,
                limits=arm.Limits(lower=-2.9, upper=2.9),
                collisions=[upper] if k in (2, 4) else [],
            )
        )
    end = arm.joints.Fixed(precursor=arm.Pose.translation(0, 0, 0.1))
    links.append(arm.Link(name="tool0", parent="l6", joint=end))
    cell = arm.Cell(manipulators=[arm.Manipulator(name="arm", links=links)])
    return with_posts(cell, (Sphere(radius=0.2), (0.25, 0.35, 0.7)))


def test_a_free_elbow_moves_out_of_the_way():
    cell = arm_with_elbow()
    ik, check = cell.ik("tool0"), cell.collision()
    assert ik.closed is not None and ik.closed.arm_angle is not None
    Q = drawn(cell, 500, 6)
    X = cell.fk("tool0")(Q)
    free = laws_hold(cell, X)
    avoiding = cell.ik("tool0", avoid=check)
    kept = avoiding(X, arm_angle=0.3)
    assert (np.abs(ik.closed.arm_angle(kept.q[kept.success]) - 0.3) < 1e-6).all()
    assert not check(kept.q[kept.success]).any()
    blocked = kept.reason == Reason.IN_COLLISION
    assert blocked.sum() > 20
    assert free.success[blocked].mean() > 0.4
    near = avoiding(X, near=Q)
    is_free = ~check(Q)
    assert near.success[is_free].all()
    np.testing.assert_allclose(near.q[is_free], Q[is_free], atol=1e-5)


class Planar(arm.ClosedForm):
    """Two links of 1 and 0.7 m, and a third axis."""

    branches = ("left", "right")

    def forward(self, q: Any) -> Any:
        X = arm.Pose.identity()
        for angle, length in zip(q, (1.0, 0.7, 0.2), strict=True):
            X = X @ arm.Pose.rotation_z(angle) @ arm.Pose.translation(length, 0, 0)
        return X

    def inverse(self, pose: Any) -> Any:
        (c, _, _), (s, _, _), _ = pose.rotation
        x, y = pose.position[0] - 0.2 * c, pose.position[1] - 0.2 * s
        cosine = (x * x + y * y - 1.49) / 1.4
        if abs(cosine) > 1:
            return None
        return [
            self.branch(x, y, np.arctan2(s, c), sign * np.arccos(cosine))
            for sign in (1, -1)
        ]

    def branch(self, x: Any, y: Any, total: Any, q1: Any) -> Any:
        q0 = np.arctan2(y, x) - np.arctan2(0.7 * np.sin(q1), 1 + 0.7 * np.cos(q1))
        return q0, q1, total - q0 - q1


@pytest.mark.parametrize("closed", [Planar(), None])
def test_elbows_of_planar_arms_and_forms_of_ones_own(closed: Planar | None):
    along = arm.Pose.rotation_y(np.pi / 2)
    links = [arm.Link(name="base")]
    for k, x in enumerate((0.0, 1.0, 0.7)):
        joint = arm.joints.Revolute(precursor=arm.Pose.translation(x, 0, 0))
        middle = arm.Pose.translation((1.0, 0.7, 0.2)[k] / 2, 0, 0)
        shape = Capsule(radius=0.03, length=0.1, pose=middle @ along)
        links.append(
            arm.Link(
                name=f"l{k}", parent=links[-1].name, joint=joint, collisions=[shape]
            )
        )
    tip = arm.joints.Fixed(precursor=arm.Pose.translation(0.2, 0, 0))
    links.append(arm.Link(name="tool0", parent="l2", joint=tip))
    cell = arm.Cell(manipulators=[arm.Manipulator(name="arm", links=links)])
    cell = with_posts(cell, (Sphere(radius=0.2), (0.6, 0.6, 0.0)))
    check, Q = cell.collision(), drawn(cell, 500, 7)
    X = cell.fk("tool0")(Q)
    ik = cell.ik("tool0", closed=closed, avoid=check)
    every = cell.ik("tool0", closed=closed).all(X)
    free = every.success & ~check(every.q)
    for near in (None, Q):
        found = ik(X, near=near)
        np.testing.assert_array_equal(found.success, free.any(axis=1))
        assert (found.reason[~found.success] == Reason.IN_COLLISION).all()
        assert not check(found.q[found.success]).any()
    assert 0.02 < (~found.success).mean() < 0.5


def test_other_joints_are_where_the_state_has_them():
    """The right arm stands in the way of the left one, or it does not."""
    cell = arm.example("two_arms_positioner")
    left = [name for name in cell.joint_names if name.startswith("left/")]
    right = [k for k, name in enumerate(cell.joint_names) if name.startswith("right/")]
    Q = np.tile(cell.home.q, (300, 1))
    columns = [cell.joint_names.index(name) for name in left]
    Q[:, columns] = cell.device("left").posture("work")
    Q[:, columns] += np.random.default_rng(8).uniform(-0.7, 0.7, (300, len(left)))
    X = cell.fk("left/tool0")(Q)
    between = arm.Rules.nothing().include("left/*", "right/*")
    verdicts = []
    for pose in ("work", "upright"):
        q = np.array(cell.home.q)
        q[right] = cell.device("right").posture(pose)
        state = cell.home.replace(q=q)
        check = cell.collision(state, rules=between, margin=0.6)
        ik = cell.ik("left/tool0", joints=left, state=state, avoid=check)
        found = ik(X)
        whole = np.tile(q, (len(X), 1))
        whole[:, columns] = found.q  # the right arm is where it is
        np.testing.assert_array_equal(check(whole[found.success]), False)
        touching = found.reason == Reason.IN_COLLISION
        np.testing.assert_array_equal(check(whole[touching]), True)
        verdicts.append(found.success)
        device = cell.device(joints=left, ends="left/tool0", state=state)
        again = device.ik(relative_to="world", avoid=check)(X)
        np.testing.assert_array_equal(again.reason, found.reason)
    assert (verdicts[0] != verdicts[1]).any()


def test_grips_count_and_other_states_are_refused():
    cell = with_posts(arm.example("irb2400"), (Box(size=(0.1, 0.1, 0.6)), (9, 9, 9)))
    at_tool = arm.Pose.translation(0, 0, 0.3)
    gripped = cell.home.attach("post0", "tool0", pose=at_tool)
    check = cell.collision(gripped)
    X = cell.fk("tool0")(drawn(cell, 300, 9))
    found = cell.ik("tool0", state=gripped, avoid=check)(X)
    alone = cell.ik("tool0", avoid=cell.collision())(X)
    assert found.success.sum() < alone.success.sum()
    assert not check(found.q[found.success]).any()
    moved = gripped.replace(q=np.full(6, 0.1))
    assert cell.ik("tool0", state=moved, avoid=check)(X).success.any()
    with pytest.raises(ModelError, match=r"another state: 'post0' is on .*tool0' in"):
        cell.ik("tool0", avoid=check)
    with pytest.raises(ModelError, match="another state"):
        cell.ik("tool0", state=gripped, avoid=cell.collision())
    other = arm.example("irb2400")
    with pytest.raises(ModelError, match="of another cell, 'irb2400'"):
        cell.ik("tool0", avoid=other.collision())
    with pytest.raises(ModelError, match=r"avoid= takes a collision check, such as"):
        cell.ik("tool0", avoid=True)  # type: ignore[arg-type]


def balls_on(cell: arm.Cell, radius: float) -> arm.Cell:
    (robot,) = cell.manipulators
    ball = [Sphere(radius=radius)]
    return cell.exchange(
        robot.replace(links=[link.replace(collisions=ball) for link in robot.links])
    )


@pytest.mark.parametrize("method", [None, "numeric"])
@pytest.mark.parametrize(
    ("name", "frame", "at"),
    [("five_bar", "tool", (0.05, 0.25, 0)), ("delta", "flange", (0.1, 0.1, -0.6))],
)
def test_closed_loops(name: str, frame: str, at: tuple[float, ...], method: str | None):
    radius = {"five_bar": 0.06, "delta": 0.1}[name]
    cell = with_posts(balls_on(arm.example(name), 0.03), (Sphere(radius=radius), at))
    check = cell.collision()
    lower, upper = np.clip(cell.limits, -1.5, 1.5)
    Q = np.random.default_rng(10).uniform(lower, upper, (2000, len(lower)))
    X = cell.fk(frame)(Q)
    known = np.isfinite(X).all(axis=(1, 2))
    X, Q = X[known][:200], Q[known][:200]
    plain = cell.ik(frame, rotation="")(X, method=method)
    found = cell.ik(frame, rotation="", avoid=check)(X, method=method)
    assert not check(found.q[found.success]).any()
    touching = found.reason == Reason.IN_COLLISION
    assert touching.any() and found.success.any()
    assert check(found.q[touching]).all()
    np.testing.assert_array_equal(found.success | touching, plain.success)
    ends = cell.fk(frame)(found.q[found.success])
    np.testing.assert_allclose(ends[:, :3, 3], X[found.success, :3, 3], atol=2e-6)


def test_checks_of_other_branches_are_refused():
    cell = with_posts(balls_on(arm.example("five_bar"), 0.01))
    other = cell.branches()["2"]
    check = cell.collision(other)
    cell.ik("tool", rotation="", state=other, avoid=check)
    with pytest.raises(ModelError, match="loops are on other branches"):
        cell.ik("tool", rotation="", avoid=check)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["irb2400", "ur10_on_rail"])
def test_paths_change_the_branch_where_they_must(name: str):
    post = Box(size=(0.2, 0.2, 0.6)), (0.5, 0.3, 1.0)
    cell = with_posts(arm.example(name), post)
    check = cell.collision()
    ik, plain = cell.ik("tool0", avoid=check), cell.ik("tool0")
    rng = np.random.default_rng(11)
    saved = 0
    for _ in range(6):
        a, b = drawn(cell, 2, int(rng.integers(1 << 30)))
        b = a + np.clip(b - a, -0.8, 0.8)
        X = cell.fk("tool0")(np.linspace(a, b, 60))
        path = ik.path(X)
        success = path.answer.success
        assert not check(path.answer.q[success]).any()
        assert set(np.flatnonzero(~success)) <= set(path.jumps)
        saved += int((check(plain.path(X).answer.q) & success).sum())
    assert saved > 0


def test_a_solver_that_avoids_survives_pickling():
    cell = among_posts("irb2400")
    ik = cell.ik("tool0", avoid=cell.collision(margin=0.02))
    X = cell.fk("tool0")(drawn(cell, 50, 12))
    again = pickle.loads(pickle.dumps(ik))
    np.testing.assert_array_equal(again(X).q, ik(X).q)
    np.testing.assert_array_equal(again(X).reason, ik(X).reason)
    assert cell.ik("tool0").avoid is None
    assert cell.ik("tool0")(X).success.all()


def test_a_deadline_ends_the_search_for_free_answers():
    cell = among_posts("ur10_on_rail")
    ik = cell.ik("tool0", avoid=cell.collision())
    X = cell.fk("tool0")(drawn(cell, 2000, 13))
    ik(X[:50])
    found = ik(X, timeout=1e-6)
    whole = ik(X)
    assert found.success.sum() < whole.success.sum()
    assert not ik.avoid(found.q[found.success]).any()
