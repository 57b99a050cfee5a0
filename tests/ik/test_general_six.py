"""All answers of any arm of six revolute joints, judged by formulas of their own."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import mpmath
import numpy as np
import numpy.typing as npt
import pytest

import armillary as arm
from armillary.ik.closed_forms.general_6r.geometry import axes_of, turned
from armillary.ik.closed_forms.general_6r.solver import SixAxesSolver
from armillary.ik.closed_forms.screw_axes import Chain, ScrewAxis
from armillary.ik.reason import Reason
from arms import arm_of_axes, turned_apart

Array = npt.NDArray[np.float64]

POSES = 60
FOUND = 1e-7


class Axes:
    """Six axes at q = 0, with a product of exponentials of its own."""

    def __init__(self, axes: Array, points: Array) -> None:
        self.axes = axes / np.linalg.norm(axes, axis=1)[:, None]
        self.points = points

    def cell(self, **options: object) -> arm.Cell:
        return arm_of_axes("R" * 6, self.axes, self.points, **options)  # type: ignore[arg-type]

    @property
    def end(self) -> Array:
        """Return where the tool is at q = 0: at the point of the last axis."""
        return self.points[5]

    def poses(self, q: Array) -> Array:
        """Return poses (k, 4, 4) of the tool at q (k, 6), by Rodrigues' formula."""
        X = np.tile(np.eye(4), (len(q), 1, 1))
        for k, (axis, point) in enumerate(zip(self.axes, self.points, strict=True)):
            x, y, z = axis
            K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
            angle = q[:, k, None, None]
            R = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
            Y = np.tile(np.eye(4), (len(q), 1, 1))
            Y[:, :3, :3], Y[:, :3, 3] = R, point - R @ point
            X = X @ Y
        home = np.eye(4)
        home[:3, 3] = self.end
        return X @ home

    @property
    def solver(self) -> SixAxesSolver:
        home = np.eye(4)
        home[:3, 3] = self.end
        screws = [
            ScrewAxis(k, True, axis, point, 1.0)
            for k, (axis, point) in enumerate(zip(self.axes, self.points, strict=True))
        ]
        return SixAxesSolver(axes_of(Chain(tuple(screws), home, tuple(range(1, 7)))))


def random_axes(seed: int, scale: float = 1.0) -> Axes:
    rng = np.random.default_rng(seed)
    return Axes(rng.normal(size=(6, 3)), scale * rng.uniform(-0.5, 0.5, (6, 3)))


@cache
def crx() -> Axes:
    """Return the axes of a cobot with an offset wrist: roots are double there."""
    x, y, z = np.eye(3)
    axes = np.array([z, y, -y, -x, -y, -x])
    points = [0, 0, 0.2], [0, 0, 0.25], [0, 0, 0.79], [0, 0, 0.79]
    return Axes(axes, np.array([*points, [0.54, 0, 0.79], [0.7, -0.15, 0.79]]))


@cache
def parallel() -> Axes:
    """Return three nearly parallel axes and a wrist of no kind (YAM)."""
    x, y, z = np.eye(3)
    axes = np.array([z, y, y, y, z, x])
    points = [0, 0, 0.1], [0.02, 0, 0.15], [0.28, 0, 0.15], [0.05, 0, 0.2]
    return Axes(axes, np.array([*points, [0.12, 0.04, 0.2], [0.2, 0.0, 0.23]]))


ARMS = {
    "random 1": random_axes(1),
    "random 2": random_axes(2),
    "random, 1 mm": random_axes(3, 1e-3),
    "random, 100 m": random_axes(4, 100.0),
    "offset wrist": crx(),
    "three parallel": parallel(),
}


def own_missed(answers: arm.Answers, q: Array) -> Array:
    """Return how far the nearest answer is from the joint positions of each pose."""
    return np.nanmin(turned_apart(answers.q, q[:, np.newaxis]), axis=1)


@pytest.mark.parametrize("name", ARMS)
def test_all_answers_reach_and_the_known_one_is_among_them(name: str) -> None:
    axes = ARMS[name]
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (POSES, 6))
    X = axes.poses(q)
    ik = axes.cell().ik("tool")
    assert ik.closed is not None and ik.closed.family == "six revolute joints"
    size = np.abs(axes.points).max()
    answers = ik.all(X, tolerance=(1e-9 * size, 1e-9))
    assert own_missed(answers, q).max() < FOUND
    assert (answers.count % 2 == 0).all()
    assert answers.count.max() > 2
    for k in range(POSES):
        found = answers.q[k][answers.success[k]]
        apart = np.abs(axes.poses(found) - X[k])
        apart[:, :3, 3] /= size
        assert apart.max() < 1e-11
        gaps = turned_apart(found[:, None], found) + np.eye(len(found))
        assert gaps.min() > 1e-5


@pytest.mark.parametrize("kind", ["spherical wrist", "three parallel"])
def test_arms_with_a_formula_have_the_same_answers(kind: str) -> None:
    """The formulas of families are independent of the eliminant."""
    x, y, z = np.eye(3)
    axes = np.array([z, y, y, x, y, x] if kind[0] == "s" else [z, y, y, y, z, y])
    points = np.array([[0, 0, 0.3], [0.1, 0, 0.3], [0.1, 0, 0.8], *[[0.5, 0, 0.9]] * 3])
    if kind[0] == "t":
        points[3:] = [0.6, 0, 0.3], [0.6, 0.1, 0.3], [0.6, 0.1, 0.2]
        points[2] = 0.45, 0, 0.3
    arm6 = Axes(axes, points)
    ik = arm6.cell().ik("tool")
    assert ik.closed is not None and ik.closed.family != "six revolute joints"
    q = np.random.default_rng(1).uniform(-np.pi, np.pi, (POSES, 6))
    X = arm6.poses(q)
    formula = ik.all(X)
    solver = arm6.solver
    inner = np.linalg.inv(solver.arm.base.matrix().astype(float)) @ X
    inner = inner @ np.linalg.inv(solver.arm.tool.matrix().astype(float))
    inner[:, :3, 3] /= solver.arm.scale
    found = solver.solve(inner)
    for k in range(POSES):
        expected = formula.distinct(k)
        mine = found.angles[found.rows == k]
        assert len(mine) == len(expected)
        gaps = turned_apart(mine[:, None], expected)
        assert gaps.min(axis=1).max() < 1e-6 > gaps.min(axis=0).max()


@pytest.mark.parametrize("gap", [1e-12, 1e-9, 1e-6, 1e-3])
def test_nearly_parallel_and_nearly_meeting_axes(gap: float) -> None:
    rng = np.random.default_rng(5)
    axes, points = rng.normal(size=(6, 3)), rng.uniform(-0.5, 0.5, (6, 3))
    axes[2] = axes[1] + gap * rng.normal(size=3)
    points[4] = points[3] + gap * rng.normal(size=3)
    arm6 = Axes(axes, points)
    q = rng.uniform(-np.pi, np.pi, (POSES, 6))
    answers = arm6.cell().ik("tool").all(arm6.poses(q))
    assert own_missed(answers, q).max() < 1e-5


def test_a_close_pair_of_answers_to_thirty_digits() -> None:
    """Near a singularity both answers are there, each as exact as doubles allow."""
    axes = random_axes(8)
    rng = np.random.default_rng(2)
    q = rng.uniform(-np.pi, np.pi, 6)
    for _ in range(30):  # to a singularity of the arm, by Newton's method on det J
        h = 1e-6
        det = [_determinant(axes, q + h * d) for d in (0 * np.eye(6)[1], np.eye(6)[1])]
        q[1] -= np.clip(det[0] * h / (det[1] - det[0]), -0.3, 0.3)
    assert abs(_determinant(axes, q)) < 1e-9
    q = q + 1e-3 * rng.normal(size=6)
    X = axes.poses(q[None])
    answers = axes.cell().ik("tool").all(X[0])
    found = answers.q[answers.success]
    assert len(found) % 2 == 0
    near = turned_apart(found, q)
    assert (near < 0.1).sum() == 2
    for start in found[near < 0.1]:
        exact = _sharp(axes, X[0], start)
        assert np.abs(exact - start).max() < 1e-9


def _determinant(axes: Axes, q: Array) -> float:
    h = 1e-5
    steps = np.concatenate([q + h * np.eye(6), q - h * np.eye(6)])
    X = axes.poses(steps)
    d = (X[:6] - X[6:]) / (2 * h)
    W = d[:, :3, :3] @ axes.poses(q[None])[0, :3, :3].T
    spin = np.stack([W[:, 2, 1], W[:, 0, 2], W[:, 1, 0]], axis=-1)
    return float(np.linalg.det(np.concatenate([d[:, :3, 3], spin], axis=1)))


def _sharp(axes: Axes, X: Array, start: Array) -> Array:
    """Return the root of the pose near a start, by mpmath in 30 digits."""
    with mpmath.workdps(30):

        def pose(*q: mpmath.mpf) -> mpmath.matrix:
            Y = mpmath.eye(4)
            for axis, point, angle in zip(axes.axes, axes.points, q, strict=True):
                x, y, z = (mpmath.mpf(float(a)) for a in axis)
                K = mpmath.matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])
                length = x * x + y * y + z * z
                R = mpmath.eye(3) + mpmath.sin(angle) * K
                R += (1 - mpmath.cos(angle)) * (K * K) / length
                p = mpmath.matrix([mpmath.mpf(float(a)) for a in point])
                shift = p - R * p
                step = mpmath.eye(4)
                for i in range(3):
                    step[i, 3] = shift[i]
                    for j in range(3):
                        step[i, j] = R[i, j]
                Y = Y * step
            return Y

        def off(*q: mpmath.mpf) -> list[mpmath.mpf]:
            Y = pose(*q)
            end = [*(mpmath.mpf(float(a)) for a in axes.end), 1]
            p = Y * mpmath.matrix(end)
            R = mpmath.matrix(X[:3, :3].tolist())
            turn = [
                sum(Y[i, c] * R[j, c] - Y[j, c] * R[i, c] for c in range(3))
                for i, j in ((2, 1), (0, 2), (1, 0))
            ]
            return [*(p[i] - mpmath.mpf(float(X[i, 3])) for i in range(3)), *turn]

        root = mpmath.findroot(off, start.tolist(), tol=1e-24, verify=False)
        return np.array([float(x) for x in root])


def test_limits_reasons_and_whole_turns() -> None:
    axes = crx()
    ik = axes.cell(limit=2.0 * np.pi).ik("tool")
    q = np.random.default_rng(3).uniform(-np.pi, np.pi, (POSES, 6))
    X = axes.poses(q)
    far = q + 2.0 * np.pi * np.where(q > 0.0, -1.0, 1.0)
    near = ik(X, near=far)
    assert near.success.all()
    assert np.abs(near.q - far).max() < 1e-6
    # limits that hold one answer only
    tight = axes.cell(limit=(np.abs(q[0]) + 1e-3).tolist()).ik("tool")
    answers = tight.all(X[0])
    assert answers.count >= 1
    assert (answers.reason[~np.isnan(answers.q[:, 0])] != Reason.OUT_OF_REACH).all()
    assert (np.abs(answers.q[answers.success]) <= np.abs(q[0]) + 1e-3).all()
    narrow = axes.cell(limit=1e-3).ik("tool")
    assert narrow(X[0]).reason == Reason.LIMITS
    away = X.copy()
    away[:, :3, 3] += 5.0
    out = ik.all(away)
    assert out.complete.all()
    assert (out.reason == Reason.OUT_OF_REACH).all() and np.isnan(out.q).all()
    broken = X[:3].copy()
    broken[1, 0, 0] = np.nan
    broken[2, :3, :3] *= 1.1
    reason = ik.all(broken).reason
    assert reason[0, 0] == Reason.SOLVED
    assert (reason[1:] == Reason.INVALID_TARGET).all()


@pytest.mark.parametrize("name", ["random 1", "offset wrist", "three parallel"])
def test_one_target_has_the_answers_of_its_row(name: str) -> None:
    axes = ARMS[name]
    ik = axes.cell().ik("tool")
    X = axes.poses(np.random.default_rng(4).uniform(-np.pi, np.pi, (20, 6)))
    rows, nothing = ik.all(X), ik.all(X[:0])
    assert nothing.q.shape == (0, 16, 6)
    for k in range(20):
        one = ik.all(X[k])
        assert np.array_equal(one.q, rows.q[k], equal_nan=True)
        assert np.array_equal(one.reason, rows.reason[k])
    path = ik.path(axes.poses(np.linspace(0.1, 0.4, 40)[:, None] * np.ones(6)))
    assert path.answer.success.all() and not path.jumps.size


class Cam(arm.Joint):
    """A joint of a user: it turns about a line, two radians for each unit."""

    unit = arm.RADIAN

    def pose(self, q):
        there = arm.Pose.translation(0.1, 0.0, 0.0)
        return there @ arm.Pose.rotation_z(2.0 * q) @ there.inverse()


def test_joints_of_users_that_turn_about_a_line() -> None:
    rng = np.random.default_rng(6)
    links = [arm.Link(name="base")]
    for k in range(6):
        there = arm.Pose.from_rpy(*rng.uniform(-1, 1, 3), rng.uniform(-0.4, 0.4, 3))
        joint = Cam(precursor=there)
        limits = arm.Limits(lower=-1.5, upper=1.5)
        parent = links[-1].name
        links.append(arm.Link(name=f"l{k}", parent=parent, joint=joint, limits=limits))
    cell = arm.Cell(manipulators=[arm.Manipulator(name="cams", links=links)])
    ik = cell.ik("l5")
    assert ik.closed is not None and ik.closed.family == "six revolute joints"
    q = rng.uniform(-1.5, 1.5, (POSES, 6))
    near = ik(cell.fk("l5")(q), near=q)
    assert near.success.all() and np.abs(near.q - q).max() < 1e-6


def test_arms_that_leave_infinitely_many_answers_are_refused() -> None:
    rng = np.random.default_rng(7)
    axes, points = rng.normal(size=(6, 3)), np.zeros((6, 3))
    ik = Axes(axes, points).cell().ik("tool")
    assert ik.closed is None
    assert "meet in one point" in ik.why_not_closed
    points = rng.normal(size=(6, 3))
    axes[3] = axes[1]  # 2 and 4 on one line, 3 parallel: 2, 3, 4 move nothing together
    axes[2], axes[4] = axes[1], axes[1]
    ik = Axes(axes, points).cell().ik("tool")
    assert ik.closed is None
    assert "infinitely many" in ik.why_not_closed


def test_neighbours_are_different_arms() -> None:
    """Arms share their code, not their constants."""
    kinds = [ARMS["random 1"], ARMS["random 2"]]
    q = np.full((1, 6), 0.3)
    for one, other in pairwise([*kinds, *kinds]):
        assert own_missed(one.cell().ik("tool").all(one.poses(q)), q).max() < FOUND
        answers = one.cell().ik("tool").all(other.poses(q))
        assert np.nanmin(np.append(turned_apart(answers.q, q[:, None]), 9.0)) > 1e-3


@pytest.mark.parametrize("name", ["offset wrist", "three parallel"])
def test_a_target_on_singular_sets_is_never_said_to_be_out_of_reach(name: str) -> None:
    """Where solutions form curves, the determinant vanishes for every angle."""
    axes = ARMS[name]
    rng = np.random.default_rng(1)
    q = rng.choice([0.0, 0.5, 1.0, -0.5], (150, 6)) * np.pi
    q += rng.choice([0.0, 1e-9, 1e-5, 1e-3], (150, 1)) * rng.normal(size=(150, 6))
    X = axes.poses(q)
    ik = axes.cell(limit=2.0 * np.pi).ik("tool")
    answers = ik.all(X)
    own = turned_apart(answers.q, q[:, None])
    own = np.nanmin(np.append(own, np.full((150, 1), 9.0), axis=1), axis=1)
    assert not (answers.complete & (own > 1e-3)).any()
    assert (answers.success.any(axis=1) | ~answers.complete).all()
    assert ik(X).success.all()


@pytest.mark.parametrize("name", ["random 1", "offset wrist", "three parallel"])
def test_solutions_are_no_more_than_roots_that_may_be_real(name: str) -> None:
    """Both orders bound their number, at random poses and near singular sets."""
    axes = ARMS[name]
    solver = axes.solver
    rng = np.random.default_rng(6)
    q = rng.uniform(-np.pi, np.pi, (200, 6))
    q[100:] = rng.choice([0.0, 0.5, 1.0, -0.5], (100, 6)) * np.pi
    q[100:] += 1e-3 * rng.normal(size=(100, 6))
    links = solver.arm.scaled
    inner = np.broadcast_to(np.eye(4), (200, 4, 4))
    for k in range(6):
        inner = inner @ turned(q[:, k])
        inner = inner @ links[k] if k < 5 else inner
    inner = np.ascontiguousarray(inner)
    solved = solver.solve(inner)
    counts = np.bincount(solved.rows, minlength=200)
    real = [order.roots(inner)[3] for order in vars(solver)["_orders"]]
    sure = ~solved.unsure  # others may hold copies that have not converged
    assert (counts <= np.minimum(*real))[sure].all()
    assert (counts[sure] % 2 == 0).all()
    assert sure[:100].mean() > 0.95 and sure[100:].mean() > 0.3


def test_singular_targets_have_the_answers_of_their_rows() -> None:
    """Points of curves are chosen, and copies dropped, for each target alone."""
    axes = crx()
    rng = np.random.default_rng(0)
    q = rng.uniform(-np.pi, np.pi, (80, 6))
    q[:40] = 0.5 * np.pi * np.round(q[:40] / (0.5 * np.pi))
    q[40:, 2], q[40:, 4] = 0.5 * np.pi * rng.integers(-1, 2, 40), 0.0
    X = axes.poses(q)
    ik = axes.cell().ik("tool")
    together, answers = ik(X), ik.all(X)
    for k in range(0, len(X), 2):
        assert np.array_equal(ik(X[k]).q, together.q[k], equal_nan=True)
        assert np.array_equal(ik.all(X[k]).q, answers.q[k], equal_nan=True)


@pytest.mark.parametrize("turns", [[-1, -1, -1, 1, 0, 0], [0, 1, -1, -1, 0.3, 0]])
def test_a_curve_that_shares_one_root_is_not_taken_for_one_answer(
    turns: list[float],
) -> None:
    """Where the vectors that eliminate an angle vanish, any angle belongs to a root."""
    axes = crx()
    q = 0.5 * np.pi * np.array([turns])
    answers = axes.cell().ik("tool").all(axes.poses(q))
    assert abs(_determinant(axes, q[0])) < 1e-9
    assert not answers.complete.any()


def test_each_target_says_whether_its_answers_are_all() -> None:
    """A doubtful target changes nothing for the others of its batch."""
    axes = crx()
    rng = np.random.default_rng(2)
    q = rng.uniform(-np.pi, np.pi, (12, 6))
    q[4] = [0.0, 0.0, np.pi / 2, 0.0, 0.0, 0.0]
    X = axes.poses(q)
    X[7] = np.nan
    X[9, :3, 3] += 5.0
    ik = axes.cell(limit=np.pi).ik("tool")
    answers = ik.all(X)
    assert answers.complete.shape == (12,)
    assert np.flatnonzero(~answers.complete).tolist() == [4]
    assert "infinitely many" in answers.why_incomplete(4)
    assert answers.why_incomplete(0) == ""
    together = ik(X, near=q)
    for k in range(12):
        one = ik.all(X[k])
        assert one.complete.shape == ()
        assert one.complete == answers.complete[k]
        assert one.why_incomplete() == answers.why_incomplete(k)
        alone = ik(X[k], near=q[k])
        assert np.array_equal(alone.q, together.q[k], equal_nan=True)
        assert alone.reason == together.reason[k]
    searched = ik.all(X[:2], method="numeric", starts=2)
    assert not searched.complete.any()
    assert "search" in searched.why_incomplete(1)


DOOSAN_AXES = [(0, 0, 1), *[(2.04e-4, 1, -2.04e-4)] * 2, (2.04e-4, 0, 1)]
DOOSAN_AXES += [(2.04e-4, 1, -2.04e-4), (2.04e-4, 0, 1)]
DOOSAN_POINTS = [
    (0, 0, 0.1345),
    (0, 0.0062, 0.1345),
    (0, 0.006284, 0.5455),
    (7.5e-5, 0.006359, 0.9135),
    (7.5e-5, 0.006359, 0.9135),
    (1e-4, 0.006383, 1.0345),
]
"""The arm of a Doosan M0609; right angles of its file are rounded."""


def test_no_answer_is_lost_next_to_quarter_turns_of_a_doosan() -> None:
    """There roots of both orders are inexact, and displaced targets miss some."""
    cell = arm_of_axes("RRRRRR", np.array(DOOSAN_AXES), np.array(DOOSAN_POINTS))
    ik, rng, shape = cell.ik("tool"), np.random.default_rng(2), (3000, 6)
    q = rng.integers(-1, 3, shape) * np.pi / 2 + 1e-3 * rng.normal(size=shape)
    size = np.linalg.svd(cell.jacobian("tool")(q))[1]
    q = q[(size[:, -1] > 1.5e-4) & (size.prod(axis=1) > 1e-8)]
    answers = ik.all(cell.fk("tool")(q))
    own = np.nanmin(turned_apart(answers.q, q[:, None]), axis=1)
    assert len(q) > 1500
    assert (own < 1e-4).all()  # two of these were not found
