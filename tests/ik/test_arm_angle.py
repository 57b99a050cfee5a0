"""Arms of seven joints with a spherical shoulder and wrist, by arm angle."""

from __future__ import annotations

import numpy as np
import pytest

from armillary import Cell, Pose
from armillary.errors import ModelError, ShapeError
from armillary.ik.reason import Reason
from armillary.kernel.references import vectorize
from armillary.testing.samples import random_pose
from arms import ALLOWED, TAU, arm_of_axes, turned_apart

KINDS = ("straight", "offset", "skew")
LIMITS = np.radians([170, 120, 170, 120, 170, 120, 175])  # of an arm on the market
S, W = np.array([0.0, 0.0, 0.36]), np.array([0.0, 0.0, 1.18])


def seven(
    kind: str, *, seed: int = 0, miss: float = 0.0, limit: object = np.pi
) -> Cell:
    """Return an arm with S and W at given places; axes to either side at random."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    _, y, z = np.eye(3)
    axes = np.array([z, y, z, -y, z, y, z])
    elbow = np.array([0.0, 0.0, 0.78])
    base = tool = Pose.translation(0.0, 0.0, 0.126)
    if kind == "offset":
        elbow[0] = 0.045
    if kind == "skew":
        axes = rng.normal(size=(7, 3))
        for k in (0, 1, 4, 5):  # right angles in shoulder and wrist
            axes[k + 1] = np.cross(axes[k], rng.normal(size=3))
        elbow += rng.uniform(-0.2, 0.2, 3)
    if kind != "straight":
        base, tool = random_pose(rng), random_pose(rng)
        axes *= rng.choice([-1.0, 1.0], (7, 1))
    points = np.array([S, S, S, elbow, W, W + np.array([miss, 0.0, 0.0]), W])
    return arm_of_axes("RRRRRRR", axes, points, base=base, tool=tool, limit=limit)


def straight(limit: object = np.pi) -> Cell:
    return seven("straight", limit=limit)


def sample(cell: Cell, count: int = 200, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Return random q, where the tool is then, and the arm angles."""
    ik = cell.ik("tool")
    most = np.minimum(cell.limits[1], np.pi)
    q = np.random.default_rng(seed).uniform(-most, most, (count, 7))
    return q, cell.fk("tool")(q), ik.closed.arm_angle(q)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_every_branch_reaches_the_target_at_the_arm_angle(kind: str, seed: int) -> None:
    cell = seven(kind, seed=seed)
    ik = cell.ik("tool")
    assert ik.closed.family == "spherical shoulder and wrist, by arm angle"
    q, targets, angle = sample(cell, seed=seed)
    found = ik.all(targets, arm_angle=angle)
    assert found.q.shape == (200, 8, 7)
    assert found.success.all()
    assert found.complete.all()
    poses = cell.fk("tool")(found.q)
    assert np.abs(poses - targets[:, None]).max() < 1e-9
    assert np.median(np.abs(poses - targets[:, None])) < 1e-15
    assert turned_apart(found.q, q[:, None]).min(axis=1).max() < 1e-7
    apart = turned_apart(found.q[:, :, None], found.q[:, None]) + 9.0 * np.eye(8)
    assert apart.min() > 1e-6
    again = ik.closed.arm_angle(found.q) - angle[:, None]
    assert np.abs((again + np.pi) % TAU - np.pi).max() < 1e-9


def test_the_arm_angle_is_that_of_the_definition() -> None:
    cell = straight()
    q, _, angle = sample(cell)
    # axes 3 and 4 meet in the elbow, and axes 5 to 7 where link 4 begins
    elbow = cell.fk("l3")(q)[:, :3, 3]
    n = cell.fk("l4")(q)[:, :3, 3] - np.array([0.0, 0.0, 0.126]) - S
    e = elbow - np.array([0.0, 0.0, 0.126]) - S
    n /= np.linalg.norm(n, axis=1)[:, None]
    r = np.array([0.0, 0.0, 1.0]) - n[:, 2:] * n
    side = np.cross(n, r)
    wanted = np.arctan2((e * side).sum(axis=1), (e * r).sum(axis=1))
    assert np.abs((angle - wanted + np.pi) % TAU - np.pi).max() < 1e-9


def test_where_joint_3_is_at_zero_the_arm_plane_holds_axis_1() -> None:
    cell = straight()
    q, _, _ = sample(cell)
    q[:, 2] = 0.0
    assert np.abs(np.sin(cell.ik("tool").closed.arm_angle(q))).max() < 1e-9


def test_branches_have_the_signs_that_their_names_say() -> None:
    cell = straight()
    ik = cell.ik("tool")
    _, targets, angle = sample(cell)
    q = ik.all(targets, arm_angle=angle).q
    poses = [cell.fk(f"l{k}")(q) for k in range(7)]
    axes = np.array([[0, 0, 1], [0, 1, 0], [0, 0, 1], [0, -1, 0]] + [[0, 0, 1]] * 3)
    axes[5] = [0, 1, 0]
    z1, z2, z3, z4, z5, z6, z7 = (
        pose[..., :3, :3] @ axis for pose, axis in zip(poses, axes, strict=True)
    )
    shoulder, elbow, wrist = (poses[k][..., :3, 3] for k in (1, 3, 5))
    quantities = (
        (z1 * np.cross(z2, z3)).sum(axis=-1),
        (z4 * np.cross(elbow - shoulder, wrist - elbow)).sum(axis=-1),
        (z5 * np.cross(z6, z7)).sum(axis=-1),
    )
    for k, quantity in enumerate(quantities):
        positive = [names[k] in {"no flip", "plus"} for names in ik.closed.branches]
        assert ((quantity > 0.0) == positive).all()


@pytest.mark.parametrize("kind", KINDS)
def test_no_branch_is_missed(kind: str) -> None:
    """Whatever a search finds is a branch at the arm angle that it happens to have."""
    cell = seven(kind)
    ik = cell.ik("tool")
    _, targets, _ = sample(cell, 5)
    targets = np.repeat(targets, 100, axis=0)
    seed = np.random.default_rng(5).uniform(-np.pi, np.pi, (500, 7))
    tight = (1e-10, 1e-10)
    searched = ik(targets, seed=seed, method="numeric", tolerance=tight)
    assert searched.success.mean() > 0.9
    q = searched.q[searched.success]
    angle = ik.closed.arm_angle(q)
    known = ik.all(targets[searched.success], arm_angle=angle).q
    assert turned_apart(known, q[:, None]).min(axis=1).max() < 1e-5
    assert len(set(turned_apart(known, q[:, None]).argmin(axis=1))) > 3


def test_out_of_reach_is_proven_for_every_arm_angle() -> None:
    ik = straight().ik("tool")
    far = np.eye(4)
    far[:3, 3] = [0.0, 0.0, 5.0]
    found = ik.all(far, arm_angle=0.3)
    assert (found.reason == Reason.OUT_OF_REACH).all()
    assert np.isnan(found.q).all()
    assert ik(far).reason == Reason.OUT_OF_REACH
    near = np.eye(4)  # the upper arm is longer by 2 cm, so W cannot come to S
    near[:3, 3] = [0.0, 0.0, 0.126 + 0.36 + 0.126 + 0.019]
    assert (ik.all(near, arm_angle=0.3).reason == Reason.OUT_OF_REACH).all()


@pytest.mark.parametrize("joint", [1, 3, 5])
def test_singular_targets_have_answers(joint: int) -> None:
    cell = straight()
    ik, fk = cell.ik("tool"), cell.fk("tool")
    q, _, _ = sample(cell)
    q[:, joint] = 0.0
    targets, angle = fk(q), ik.closed.arm_angle(q)
    found = ik.all(targets, arm_angle=angle, tolerance=(1e-6, 1e-6))
    assert found.success.any(axis=1).all()
    if joint != 3:  # a stretched elbow is the edge of reach
        assert (found.reason == Reason.SINGULAR).any(axis=1).mean() > 0.8
    error = np.abs(fk(found.q) - targets[:, None]).max(axis=(-2, -1))
    assert error[found.success].max() < 2e-6


def test_above_the_shoulder_every_arm_angle_has_its_answers() -> None:
    """S to W along axis 1: the reference is as though it leaned to z1 x z2."""
    cell = straight()
    ik, fk = cell.ik("tool"), cell.fk("tool")
    rotation = random_pose(np.random.default_rng(0)).matrix()[:3, :3]
    target = np.eye(4)
    target[:3, :3] = rotation
    target[:3, 3] = np.array([0.0, 0.0, 0.126 + 0.36 + 0.7]) + rotation[:, 2] * 0.126
    angles = np.linspace(-3.0, 3.0, 7)
    targets = np.broadcast_to(target, (7, 4, 4))
    found = ik.all(targets, arm_angle=angles)
    assert found.success.all()
    assert np.abs(fk(found.q) - target).max() < 1e-12
    assert np.abs(ik.closed.arm_angle(found.q) - angles[:, None]).max() < 1e-9
    leaning = target.copy()
    leaning[0, 3] -= 1e-9  # z1 x z2 is -x
    close = ik.all(np.broadcast_to(leaning, (7, 4, 4)), arm_angle=angles)
    assert turned_apart(close.q, found.q).max() < 1e-6


def test_limits_hold_and_the_elbow_turns_where_they_need_it() -> None:
    cell = straight(LIMITS)
    q, targets, angle = sample(cell, 2000)
    ik = cell.ik("tool")
    answer = ik(targets)
    assert answer.success.all()
    assert (np.abs(answer.q) <= LIMITS).all()
    assert np.abs(cell.fk("tool")(answer.q) - targets).max() < 3e-6
    home = float(ik.closed.arm_angle(np.zeros(7)))
    kept = ik.all(targets, arm_angle=home)
    assert 0.1 < kept.success.any(axis=1).mean() < 0.999
    steps = np.where(kept.success, (kept.q**2).sum(axis=-1), np.inf).min(axis=1)
    some = np.isfinite(steps)
    assert np.allclose((answer.q[some] ** 2).sum(axis=-1), steps[some])
    # where that angle is blocked, it is the nearest answer at 15 others
    blocked = targets[~some][:200]
    least = np.full(len(blocked), np.inf)
    for turn in np.arange(1, 16) * 2.0 * np.pi / 16:
        every = ik.all(blocked, arm_angle=home + turn)
        steps = np.where(every.success, (every.q**2).sum(axis=-1), np.inf)
        least = np.minimum(least, steps.min(axis=1))
    assert np.isfinite(least).mean() > 0.9
    steps = (answer.q[~some][:200] ** 2).sum(axis=-1)
    np.testing.assert_allclose(steps[least < np.inf], least[least < np.inf])
    assert np.abs(ik(targets, near=q).q - q).max() < 1e-7
    given = ik(targets, arm_angle=angle)
    assert given.success.all()
    assert np.abs(ik.closed.arm_angle(given.q) - angle).max() < 1e-9


def test_a_given_arm_angle_is_never_left() -> None:
    ik = straight(LIMITS).ik("tool")
    _, targets, _ = sample(straight(LIMITS), 500)
    answer = ik(targets, arm_angle=1.0)
    assert set(answer.reason.tolist()) == {Reason.SOLVED, Reason.LIMITS}
    met = answer.success
    assert np.abs(ik.closed.arm_angle(answer.q[met]) - 1.0).max() < 1e-9


def test_rows_that_are_not_finite_fail_alone() -> None:
    cell = straight()
    ik = cell.ik("tool")
    _, targets, angle = sample(cell, 4)
    targets[1, 0, 3] = np.nan
    angle[2] = np.nan
    angle[3] = np.inf
    found = ik.all(targets, arm_angle=angle)
    assert (found.reason[1:] == Reason.INVALID_TARGET).all()
    assert found.success[0].all()
    assert np.isnan(found.q[1:]).all()
    assert list(ik(targets, arm_angle=angle).success) == [True, False, False, False]


@pytest.mark.parametrize("beyond", [np.inf, 4.0])
def test_near_is_taken_within_limits(beyond: float) -> None:
    """No answer has the arm angle of what is beyond them; of infinity there is none."""
    cell = straight(LIMITS)
    _, X, _ = sample(cell, 8)
    ends = np.where(np.arange(7) % 2 == 0, LIMITS, 0.3)
    near = np.where(np.arange(7) % 2 == 0, beyond, 0.3)
    ik = cell.ik("tool")
    found, wanted = ik(X, near=near), ik(X, near=ends)
    assert found.success.all()
    np.testing.assert_array_equal(found.q, wanted.q)
    single = [ik(target, near=near) for target in X]
    np.testing.assert_array_equal([one.q for one in single], wanted.q)


def test_the_need_of_an_arm_angle_is_reported() -> None:
    ik = straight().ik("tool")
    with pytest.raises(ModelError, match=r"infinitely many ways.*arm_angle=0\.0"):
        ik.all(np.eye(4))
    with pytest.raises(ShapeError, match=r"arm_angle of shape \(3,\) does not fit"):
        ik.all(np.eye(4), arm_angle=[1.0, 2.0, 3.0])
    with pytest.raises(ModelError, match="method='numeric' was asked for"):
        ik(np.eye(4), arm_angle=0.0, method="numeric")


def test_an_arm_next_to_the_family_is_reported_how_far_it_is_off() -> None:
    ik = seven("straight", miss=2e-3).ik("tool")
    assert ik.closed is None
    assert ik.why_not_closed == "axes 5, 6 and 7 miss one point by 2 mm"
    with pytest.raises(ModelError, match="Only a closed form takes an arm angle: axes"):
        ik(np.eye(4), arm_angle=0.0)


@pytest.mark.parametrize("first", [0, 1, 4, 5])
def test_angles_next_to_right_ones_are_reported(first: int) -> None:
    x, y, z = np.eye(3)
    axes = np.array([z, y, z, -y, z, y, z])
    axes[first if first in {0, 4} else first + 1] += 1e-3 * (x + y)
    points = [S, S, S, (0.0, 0.0, 0.78), W, W, W]
    why = arm_of_axes("RRRRRRR", axes, points).ik("tool").why_not_closed
    assert "do not meet at right angles, by 0.0573 degrees" in why


def test_native_code_agrees() -> None:
    cell = seven("skew")
    _, targets, angle = sample(cell, 20)
    program = cell.ik("tool").closed.program
    found = vectorize(program, targets, ALLOWED, angle)[0]
    assert np.abs(found - cell.ik("tool").all(targets, arm_angle=angle).q).max() < 1e-9
