"""All answers of arms with fewer than six axes, slides, or a free axis of the tool.

Judges are poses by Rodrigues' formula, a dense search of Newton's method on them, and
the geometry of a polar arm.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import armillary as arm
from armillary.ik.reason import Reason
from arms import arm_of_axes

Array = npt.NDArray[np.float64]

POSES = 24
STARTS = 300
ONE_START = arm.SearchOptions(starts=1)
LENGTH = 0.6  # how far joints slide to either side [m]


class Axes:
    """An arm at q = 0, with poses and a search of its own."""

    def __init__(self, kinds: str, axes: Array, points: Array) -> None:
        self.slides = np.array([kind == "P" for kind in kinds])
        self.kinds, self.points = kinds, points
        self.axes = axes / np.linalg.norm(axes, axis=1)[:, None]
        self.most = np.where(self.slides, LENGTH, np.pi)

    def ik(self, rotation: str = "xyz") -> arm.InverseKinematics:
        return self.cell().ik("tool", rotation=rotation)

    def cell(self) -> arm.Cell:
        return arm_of_axes(self.kinds, self.axes, self.points, limit=self.most.tolist())

    def samples(self, seed: int, count: int = POSES) -> Array:
        n = len(self.kinds)
        return np.random.default_rng(seed).uniform(-1, 1, (count, n)) * self.most

    def frames(self, q: Array) -> tuple[Array, list[Array]]:
        """Return poses of the tool (k, 4, 4), and of each joint before it moves."""
        X = np.tile(np.eye(4), (len(q), 1, 1))
        before: list[Array] = []
        for k, (axis, point) in enumerate(zip(self.axes, self.points, strict=True)):
            before.append(X)
            Y = np.tile(np.eye(4), (len(q), 1, 1))
            if self.slides[k]:
                Y[:, :3, 3] = q[:, k, None] * axis
            else:
                x, y, z = axis
                K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
                angle = q[:, k, None, None]
                R = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
                Y[:, :3, :3], Y[:, :3, 3] = R, point - R @ point
            X = X @ Y
        home = np.eye(4)
        home[:3, 3] = self.points[-1]
        return X @ home, before

    def poses(self, q: Array) -> Array:
        return self.frames(q)[0]

    def apart(self, a: Array, b: Array) -> Array:
        """Return the largest difference of joints, whole turns left out."""
        gap = a - b
        turned = (gap + np.pi) % (2.0 * np.pi) - np.pi
        return np.abs(np.where(self.slides, gap, turned)).max(axis=-1)

    def searched(self, q: Array, X: Array, steps: int = 40) -> tuple[Array, Array]:
        """Return where damped Newton's method leads, and what it leaves, (k, 2).

        Args:
            q: Where it starts, shape (k, n).
            X: The target, shape (4, 4).
            steps: How many.
        """
        for _ in range(steps):
            Y, before = self.frames(q)
            e = np.zeros((len(q), 6))
            e[:, :3] = X[:3, 3] - Y[:, :3, 3]
            for j in range(3):
                e[:, 3:] += 0.5 * np.cross(Y[:, :3, j], X[:3, j])
            columns: list[Array] = []
            for k, B in enumerate(before):
                z = B[:, :3, :3] @ self.axes[k]
                arm_ = Y[:, :3, 3] - (B[:, :3, :3] @ self.points[k] + B[:, :3, 3])
                turn = np.concatenate([np.cross(z, arm_), z], axis=1)
                slide = np.concatenate([z, 0.0 * z], axis=1)
                columns.append(slide if self.slides[k] else turn)
            J = np.stack(columns, axis=-1)
            H = np.swapaxes(J, 1, 2) @ J
            H += (1e-13 + 1e-4 * (e**2).sum(axis=1))[:, None, None] * np.eye(
                len(before)
            )
            step = np.linalg.solve(H, np.swapaxes(J, 1, 2) @ e[..., None])[..., 0]
            q = q + np.clip(step, -0.5, 0.5)
        Y = self.poses(q)
        distance = np.linalg.norm(Y[:, :3, 3] - X[:3, 3], axis=1)
        chord = np.sqrt(0.5 * ((Y[:, :3, :3] - X[:3, :3]) ** 2).sum(axis=(1, 2)))
        return q, np.stack([distance, chord], axis=-1)

    def own_missed(self, answers: arm.Answers, q: Array) -> Array:
        gaps = self.apart(answers.q, q[:, None])
        return np.where(np.isnan(gaps), 9.0, gaps).min(axis=1)


@cache
def random_arm(kinds: str, seed: int = 0, scale: float = 0.4) -> Axes:
    rng = np.random.default_rng([seed, *map(ord, kinds)])
    n = len(kinds)
    return Axes(kinds, rng.normal(size=(n, 3)), rng.uniform(-scale, scale, (n, 3)))


@cache
def small_arm() -> Axes:
    """Return a table-top arm: a base, three parallel axes, and a roll."""
    x, y, z = np.eye(3)
    points = [[0, 0, 0.05], [0.03, 0, 0.1], [0.05, 0, 0.22], [0.18, 0, 0.22]]
    axes = np.array([z, y, y, y, x])
    return Axes("RRRRR", axes, np.array([*points, [0.24, 0, 0.22]]))


FEWER = ["RRRRR", "RRRR", "RRPRR", "small"]
ONE_SLIDE = ["PRRRRR", "RPRRRR", "RRPRRR", "RRRRRP"]
TWO_SLIDES = ["RPRPRR", "PPRRRR", "RRRRPP", "RPRRPR"]


def _arm(kinds: str) -> Axes:
    return small_arm() if kinds == "small" else random_arm(kinds)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kinds", [*FEWER, *ONE_SLIDE, *TWO_SLIDES])
def test_known_joint_positions_are_among_all_answers(kinds: str) -> None:
    axes = _arm(kinds)
    ik = axes.ik()
    q = axes.samples(1)
    X = axes.poses(q)
    answers = ik.all(X)
    assert (axes.own_missed(answers, q) < 1e-6).all()
    assert answers.complete.mean() > 0.9
    for k in range(8):
        found = answers.q[k][answers.success[k]]
        assert np.abs(axes.poses(found) - X[k]).max() < 1e-7
        gaps = axes.apart(found[:, None], found) + np.eye(len(found))
        assert gaps.min() > 1e-6
        one = ik.all(X[k])
        assert np.array_equal(one.q, answers.q[k], equal_nan=True)
        assert one.complete == answers.complete[k]
    near = ik(X, near=q)
    assert near.success.all() and axes.apart(near.q, q).max() < 1e-6


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kinds", ["RPRRRR", "RRPRRR", "RPRPRR", "RPRRPR"])
def test_a_dense_search_finds_no_other_answers(kinds: str) -> None:
    axes = random_arm(kinds, 1)
    wide = Axes(kinds, axes.axes, axes.points)
    wide.most = np.where(wide.slides, 20.0, np.pi)
    ik = wide.ik()
    rng = np.random.default_rng(2)
    for q in axes.samples(3, 3):
        (X,) = axes.poses(q[None])
        answers = ik.all(X)
        found = answers.q[answers.success]
        assert answers.complete and len(found) % 2 == 0
        starts = rng.uniform(-1, 1, (STARTS, 6)) * np.where(axes.slides, 2.0, np.pi)
        ends, left = axes.searched(starts, X)
        good = ends[left.max(axis=1) < 1e-9]
        assert len(good) > STARTS / 10
        gaps = axes.apart(good[:, None], found).min(axis=1)
        assert gaps.max() < 1e-4


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kinds", ["RRRRR", "RRRR", "small"])
def test_what_fewer_axes_do_not_reach_is_proven(kinds: str) -> None:
    """A dense search finds nothing nearer, and what is within tolerance is reached."""
    axes = _arm(kinds)
    ik = axes.ik()
    q = axes.samples(4)
    rng = np.random.default_rng(5)
    X = axes.poses(q)
    way = rng.normal(size=(POSES, 3))
    way /= np.linalg.norm(way, axis=1)[:, None]
    near, off = X.copy(), X.copy()
    near[:, :3, 3] += 5e-7 * way
    off[:, :3, 3] += rng.choice([1e-3, 0.1], POSES)[:, None] * way
    assert ik(near).success.all()
    answers = ik.all(off)
    out = answers.complete & ~answers.success.any(axis=1)
    assert (answers.reason[out] == Reason.OUT_OF_REACH).all()
    assert out.mean() > 0.9
    one = ik(off)
    assert (one.reason[out] == Reason.OUT_OF_REACH).all()
    assert np.median(one.residual[out].max(axis=1)) < 0.1
    for k in np.flatnonzero(out)[:6]:
        n = len(axes.kinds)
        starts = np.concatenate([q[k : k + 1], rng.uniform(-3, 3, (60, n))])
        _, left = axes.searched(starts, off[k])
        assert left.max(axis=1).min() > 1e-6


def along_axes(kinds: str, seed: int) -> Axes:
    """Return an arm whose axes are along x, y and z, and often parallel or meet."""
    rng = np.random.default_rng([seed, *map(ord, kinds)])
    return Axes(
        kinds, np.eye(3)[rng.integers(0, 3, 6)], 0.1 * rng.integers(0, 4, (6, 3))
    )


def own_matrix(axes: Axes, q: Array) -> Array:
    """Return Jacobians (k, 6, n) of twists at the tool."""
    Y, before = axes.frames(q)
    columns: list[Array] = []
    for k, B in enumerate(before):
        z = B[:, :3, :3] @ axes.axes[k]
        arm_ = Y[:, :3, 3] - (B[:, :3, :3] @ axes.points[k] + B[:, :3, 3])
        turn = np.concatenate([np.cross(z, arm_), z], axis=1)
        slide = np.concatenate([z, 0.0 * z], axis=1)
        columns.append(slide if axes.slides[k] else turn)
    return np.stack(columns, axis=-1)


SLIDING = [*ONE_SLIDE, *TWO_SLIDES]
SCALED = [
    *((kinds, 1.0) for kinds in SLIDING),
    *((kinds, 1e-3) for kinds in SLIDING[::2]),
    *((kinds, 100.0) for kinds in SLIDING[1::2]),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kinds", "scale"), SCALED)
def test_no_set_is_called_complete_that_is_not(kinds: str, scale: float) -> None:
    """At quarter turns, and near them, where arms along axes often are singular."""
    rng = np.random.default_rng(1)
    complete = 0
    for seed in range(4):
        axes = along_axes(kinds, seed)
        q = axes.samples(seed)
        whole = np.linalg.svd(own_matrix(axes, q))[1][:, -1].max() > 1e-9
        quarter = 0.5 * np.pi * np.round(q / (0.5 * np.pi))
        quarter += rng.choice([0.0, 1e-9, 1e-5, 1e-3], (POSES, 1)) * rng.normal(size=6)
        q[:16] = np.where(axes.slides, q, quarter)[:16]
        axes.points *= scale
        axes.most = np.where(axes.slides, scale, 1.0) * axes.most
        q *= np.where(axes.slides, scale, 1.0)
        ik = axes.ik()
        assert (ik.closed is not None) == whole  # else a pose has infinitely many
        if not whole:
            continue
        answers = ik.all(axes.poses(q), tolerance=(1e-6 * scale, 1e-6))
        gaps = axes.apart(answers.q, q[:, None])
        lost = ~(gaps < 1e-4 * max(scale, 1.0)).any(axis=1)
        assert not (lost & answers.complete).any()
        assert not lost[16:].any()
        complete += int(answers.complete[16:].sum())
    assert complete > 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("gap", [1e-9, 1e-6])
@pytest.mark.parametrize("kinds", ["PRRRRR", "RPRPRR", "RPPRRR"])
def test_axes_a_little_off_claim_no_more(kinds: str, gap: float) -> None:
    """Equal roots that all targets of the exact arm have part, and may be complex."""
    rng = np.random.default_rng(1)
    for axes in (along_axes(kinds, seed) for seed in range(8)):
        q = axes.samples(1, 60)
        if np.linalg.svd(own_matrix(axes, q))[1][:, -1].max() < 1e-9:
            continue  # a pose has infinitely many answers
        quarter = 0.5 * np.pi * np.round(q / (0.5 * np.pi))
        q[:40] = np.where(axes.slides, q, quarter)[:40]
        q += rng.choice([1e-7, 1e-5, 1e-3], (60, 1)) * rng.normal(size=6)
        off = Axes(kinds, axes.axes + gap * rng.normal(size=(6, 3)), axes.points)
        answers = off.ik().all(off.poses(q))
        lost = off.own_missed(answers, q) > 1e-4
        assert not (lost & answers.complete).any()


def rail_arm() -> Axes:
    """Return an arm on a rail, whose shoulder and elbow are parallel."""
    x, y, z = np.eye(3)
    points = [[0, 0, 0.1], [0.02, 0, 0.3], [0.05, 0.03, 0.5], [0.05, 0.01, 0.9]]
    points += [[0.4, 0.02, 0.95], [0.5, 0, 0.95]]
    return Axes("PRRRRR", np.array([x, z, y, y, x, y]), np.array(points))


def cylindrical_arm() -> Axes:
    """Return a column with a lift, a boom, and three turns at right angles."""
    x, y, z = np.eye(3)
    points = [[0, 0, 0], [0, 0, 0.5], [0.3, 0.1, 0.5], [0.6, 0.05, 0.5]]
    points += [[0.7, 0, 0.45], [0.8, 0.03, 0.5]]
    return Axes("RPPRRR", np.array([z, z, x, x, y, x]), np.array(points))


def end_slide_arm() -> Axes:
    """Return an arm with a slide at its end, of which some poses show equal roots ill.

    P is there mostly error for a part of the poses that an arm is tried at.
    """
    x, y, z = np.eye(3)
    points = 0.3 * np.random.default_rng(0).normal(size=(6, 3))
    return Axes("RRRRRP", np.array([y, x, z, z, x, z]), points)


@pytest.mark.parametrize("make", [rail_arm, cylindrical_arm, end_slide_arm])
def test_roots_that_all_targets_have_do_not_count_as_answers(
    make: Callable[[], Axes],
) -> None:
    """Where axes are parallel, or at right angles, the polynomial has four."""
    axes = make()
    q = axes.samples(3)
    answers = axes.ik().all(axes.poses(q))
    assert (axes.own_missed(answers, q) < 1e-6).all()
    assert answers.complete.mean() > 0.9


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("kinds", "free"),
    [("RRRRR", "xy"), ("RRRRR", "yz"), ("PRRRR", "yz"), ("small", "xy")],
)
def test_a_free_axis_of_the_tool(kinds: str, free: str) -> None:
    axes = _arm(kinds)
    ik = axes.ik(rotation=free)
    assert ik.closed is not None
    q = axes.samples(6)
    X = axes.poses(q)
    k = "xyz".index(({*"xyz"} - {*free}).pop())
    turn = arm.Pose.rotation_z if k == 2 else arm.Pose.rotation_x
    turned = np.array([Y @ turn(0.1 * i).matrix() for i, Y in enumerate(X)])
    answers = ik.all(turned)
    assert (axes.own_missed(answers, q) < 1e-6).all()
    assert answers.count.max() > 2
    for row in range(POSES):
        there = axes.poses(answers.q[row][answers.success[row]])
        assert np.abs(there[:, :3, k] - X[row, :3, k]).max() < 1e-7
        assert np.abs(there[:, :3, 3] - X[row, :3, 3]).max() < 1e-7
    assert ik(turned).success.all()
    if kinds != "small":
        searched = ik.all(turned[:3], method="numeric")
        for row in range(3):
            known = answers.q[row][answers.success[row]]
            for each in searched.q[row][searched.success[row]]:
                assert axes.apart(known, each).min() < 1e-3


def test_a_polar_arm_has_the_answers_of_its_geometry() -> None:
    """Two lengths, two shoulders and two wrists, as of the Stanford arm."""
    _, y, z = np.eye(3)
    points = np.array([[0, 0, 0.4], [0, 0.15, 0.4], *[[0, 0.15, 0.8]] * 4])
    polar = Axes("RRPRRR", np.array([z, y, z, z, y, z]), points)
    polar.most = np.where(polar.slides, 3.0, np.pi)
    q = polar.samples(7)
    q[:, 2] = np.random.default_rng(1).uniform(-0.2, 0.4, POSES)
    X = polar.poses(q)
    answers = polar.ik().all(X)
    assert (polar.own_missed(answers, q) < 1e-6).all()
    assert (answers.count == 8).mean() > 0.9
    centre = X[:, :3, 3] - [0, 0, 0.4]
    boom = np.sqrt((centre**2).sum(axis=1) - 0.15**2)
    for k in range(POSES):
        lengths = answers.q[k][answers.success[k]][:, 2] + 0.4
        assert np.abs(np.abs(lengths) - boom[k]).max() < 1e-9


@pytest.mark.sampled(2)
@pytest.mark.parametrize("scale", [1e-3, 100.0])
@pytest.mark.parametrize("kinds", ["RRRRR", "RRPRRR"])
def test_answers_scale_with_the_arm(kinds: str, scale: float) -> None:
    axes = random_arm(kinds)
    large = Axes(kinds, axes.axes, scale * axes.points)
    large.most = np.where(axes.slides, scale, 1.0) * axes.most
    X = axes.poses(axes.samples(8))
    Y = X.copy()
    Y[:, :3, 3] *= scale
    mine = axes.ik().all(X, tolerance=(1e-7, 1e-6))
    theirs = large.ik().all(Y, tolerance=(1e-7 * scale, 1e-6))
    assert (mine.complete == theirs.complete).mean() > 0.9
    for k in np.flatnonzero(mine.complete & theirs.complete):
        a, b = mine.q[k][mine.success[k]], theirs.q[k][theirs.success[k]]
        b = np.where(axes.slides, b / scale, b)
        assert len(a) == len(b)
        assert axes.apart(a[:, None], b).min(axis=1).max() < 1e-5


@pytest.mark.parametrize("most", [1e4, 1e6, np.inf])
def test_wide_limits_of_a_slide_do_not_measure_the_arm(most: float) -> None:
    axes = random_arm("RRPRRR", 3)
    q = axes.samples(1)
    wide = Axes(axes.kinds, axes.axes, axes.points)
    wide.most = np.where(axes.slides, most, np.pi)
    answers = wide.ik().all(axes.poses(q))
    assert (axes.own_missed(answers, q) < 1e-6).all()
    assert answers.complete.mean() > 0.9


@pytest.mark.sampled(2)
@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-8, 1e-5, 1e-3])
def test_axes_that_nearly_coincide(gap: float) -> None:
    """Two axes are nearly parallel, or a slide is along one, and two nearly meet."""
    rng = np.random.default_rng(9)
    for kinds in ("RRRRR", "RRPRRR"):
        n = len(kinds)
        axes, points = rng.normal(size=(n, 3)), rng.uniform(-0.4, 0.4, (n, 3))
        axes[2] = axes[1] + gap * rng.normal(size=3)
        points[4] = points[3] + gap * rng.normal(size=3)
        close = Axes(kinds, axes, points)
        q = close.samples(10)
        answers = close.ik().all(close.poses(q))
        lost = close.own_missed(answers, q) > 1e-4
        assert not (lost & answers.complete).any()
        assert lost.mean() < 0.1


def test_limits_narrower_than_the_tolerance_and_invalid_targets() -> None:
    axes = small_arm()
    q = axes.samples(11, 4)
    narrow = Axes(axes.kinds, axes.axes, axes.points)
    narrow.most = np.full(5, 1e-8)
    assert narrow.ik()(axes.poses(np.zeros((1, 5)))[0]).success
    assert narrow.ik()(axes.poses(q)[0]).reason == Reason.LIMITS
    X = axes.poses(q)
    X[1, 0, 3] = np.nan
    X[2, :3, :3] *= 1.2
    answers = axes.ik().all(X)
    assert answers.success[0].any() and answers.success[3].any()
    assert (answers.reason[1:3] == Reason.INVALID_TARGET).all()


def test_arms_that_leave_infinitely_many_answers_are_refused() -> None:
    x, y, z = np.eye(3)
    points = [[0, 0, 0], [0, 0, 0.3], [0.3, 0, 0.3], [0.5, 0.1, 0.3], [0.6, 0, 0.2]]
    same = Axes("RRRRR", np.array([z, z, y, x, y]), np.array(points))
    ik = same.ik()
    assert ik.closed is None
    assert "infinitely many" in ik.why_not_closed
    roll = small_arm().ik(rotation="yz")  # the last joint turns about the free axis
    assert "infinitely many" in roll.why_not_closed
    many = Axes("PPPPRR", np.eye(3)[[0, 1, 2, 0, 1, 2]], np.zeros((6, 3)))
    assert "4 joints slide" in many.ik().why_not_closed
    assert "do not slide independently" in many.ik().why_not_closed


class AllBut:
    """A check by which all joint positions touch but a few."""

    def __init__(self, cell: arm.Cell, free: Array) -> None:
        self.cell, self.state = cell.ik("tool").cell, cell.home
        self._free = free

    def __call__(self, q: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        apart = np.abs(np.asarray(q)[..., None, :] - self._free).max(axis=-1)
        return apart.min(axis=-1) > 1e-6


def test_where_what_a_search_finds_touches_all_answers_are_asked() -> None:
    axes = small_arm()
    plain = axes.ik("xy")
    X = axes.poses(axes.samples(5))
    first, every = plain(X, search_options=ONE_START), plain.all(X)
    others = every.success & (axes.apart(every.q, first.q[:, None]) > 0.1)
    rows = np.flatnonzero(others.any(axis=1))
    free = every.q[rows, others[rows].argmax(axis=1)]
    cell = axes.cell()
    check: Any = AllBut(cell, free)
    ik = cell.ik("tool", rotation="xy", avoid=check)
    found = ik(X[rows], search_options=ONE_START)
    assert len(rows) > 10
    assert found.success.all()
    assert np.abs(found.q - free).max() < 1e-6


@pytest.mark.parametrize("given", [{}, {"near": 1}, {"seed": 1}, {"explain": False}])
def test_one_target_has_the_answer_of_its_row(given: dict[str, int]) -> None:
    axes = small_arm()
    ik, q = axes.ik(), axes.samples(3, 8)
    X = axes.poses(q)
    X[::3, 0, 3] += 0.01
    near = axes.samples(4, 8)
    rows = ik(X, **{k: near if v else v for k, v in given.items()})  # type: ignore[arg-type]
    assert set(rows.reason) == {Reason.SOLVED, Reason.OUT_OF_REACH}
    for k, target in enumerate(X):
        options = {name: near[k] if v else v for name, v in given.items()}
        one = ik(target, **options)  # type: ignore[arg-type]
        assert one.reason == rows.reason[k]
        assert np.array_equal(one.q, rows.q[k])


THREE = ["Pabbbc", "aPaabc", "abbPbc", "abcPcc"]
PAIRS = ["Paabcc", "aPabcc", "abbPcc", "aabccP"]


@cache
def in_directions(pattern: str, seed: int = 0, scale: float = 1.0) -> Axes:
    """Return an arm whose axes with the same letter are parallel, and a slide.

    The slide is across its neighbours where those are pairs.
    """
    rng = np.random.default_rng([seed, *map(ord, pattern)])
    ways = {letter: rng.normal(size=3) for letter in "abc"}
    at = pattern.index("P")
    beside = ways[pattern[max(at - 1, 0)] if at else pattern[1]]
    across = np.cross(beside, rng.normal(size=3))
    ways["P"] = across if pattern in PAIRS else rng.normal(size=3)
    axes = np.array([ways[letter] for letter in pattern])
    axes *= rng.choice([-1.0, 1.0], (6, 1))
    kinds = "".join("P" if letter == "P" else "R" for letter in pattern)
    points = scale * rng.uniform(-0.4, 0.4, (6, 3))
    made = Axes(kinds, axes, points)
    made.most = np.where(made.slides, scale, 1.0) * made.most
    return made


@pytest.mark.parametrize("pattern", [*THREE, *PAIRS])
def test_turns_of_three_directions_and_a_slide_have_a_formula(pattern: str) -> None:
    """All answers of a dense search are branches, whose names say what they say."""
    axes = in_directions(pattern)
    wide = Axes(axes.kinds, axes.axes, axes.points)
    wide.most = np.where(wide.slides, 50.0, np.pi)
    ik = wide.ik()
    assert ik.closed is not None
    assert ("three parallel" in ik.closed.family) == (pattern in THREE)
    q = axes.samples(1)
    X = axes.poses(q)
    answers = ik.all(X)
    assert (axes.own_missed(answers, q) < 1e-6).all()
    assert answers.complete.mean() > 0.7
    rng = np.random.default_rng(2)
    for k in range(3):
        one = ik.all(X[k])
        assert np.array_equal(one.q, answers.q[k], equal_nan=True)
        starts = rng.uniform(-1, 1, (STARTS, 6)) * np.where(axes.slides, 2.0, np.pi)
        ends, left = axes.searched(starts, X[k])
        good = ends[left.max(axis=1) < 1e-9]
        found = answers.q[k][answers.success[k]]
        assert len(good) > STARTS / 10
        assert axes.apart(good[:, None], found).min(axis=1).max() < 1e-4
    assert _signs(axes, pattern, answers)


def _signs(axes: Axes, pattern: str, answers: arm.Answers) -> bool:
    """Return whether branches have the sign that their name says, of a triangle."""
    if pattern in PAIRS:
        return True
    rows, branches = np.nonzero(answers.success)
    _, before = axes.frames(answers.q[rows, branches])
    letter = max("abc", key=pattern.count)
    A = [
        B[:, :3, :3] @ axes.points[k] + B[:, :3, 3]
        for k, B in enumerate(before)
        if pattern[k] == letter
    ]
    first = pattern.index(letter)
    z = before[first][:, :3, :3] @ axes.axes[first]
    volume = np.einsum("ij,ij->i", z, np.cross(A[1] - A[0], A[2] - A[1]))
    is_left = np.array([answers.branches[k][1] == "left" for k in branches])
    return bool(((volume > 0.0) == is_left).all())


@pytest.mark.parametrize("scale", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("pattern", ["aPaabc", "abbPcc", "Paabcc"])
def test_formulas_of_three_directions_claim_no_more_than_holds(
    pattern: str, scale: float
) -> None:
    """At and near quarter turns along x, y, z; and within a wide tolerance."""
    made = in_directions(pattern, scale=scale)
    x, y, z = np.eye(3)
    ways = {"a": x, "b": y, "c": z, "P": z if pattern == "Paabcc" else x}
    axes = Axes(made.kinds, np.array([ways[each] for each in pattern]), made.points)
    axes.most = made.most
    ik = axes.ik()
    assert ik.closed is not None and "parallel" in ik.closed.family
    rng = np.random.default_rng(3)
    q = axes.samples(2)
    quarter = 0.5 * np.pi * np.round(q / (0.5 * np.pi))
    off = rng.choice([0.0, 1e-9, 1e-5, 1e-3], (POSES, 1)) * rng.normal(size=6)
    some = ~axes.slides & (rng.random((POSES, 6)) < 0.6)
    q = np.where(some, quarter + off, q)
    X = axes.poses(q)
    answers = ik.all(X, tolerance=(1e-6 * scale, 1e-6))
    lost = axes.own_missed(answers, q) > 1e-4 * max(scale, 1.0)
    assert not (lost & answers.complete).any()
    assert ik(X, tolerance=(1e-6 * scale, 1e-6)).success.all()
    # A pose that is off by 0.9 of the tolerance is reached within it.
    turn = arm.Pose.rotation_about(rng.normal(size=3), 9e-4).matrix()
    near = X @ turn
    near[:, 0, 3] += 9e-4 * scale
    reason = ik(near, tolerance=(1e-3 * scale, 1e-3)).reason
    assert not (reason == Reason.OUT_OF_REACH).any()


def test_arms_whose_equations_vanish_are_not_said_to_have_infinitely_many() -> None:
    """A slide behind the first turn, two parallel axes, and two that meet squarely."""
    last = np.array([0.0, 1.0, -1.0])
    ways = [[-0.225, -0.266, 0.937], [-0.788, -0.443, 0.428]]
    ways += [[0.073, -0.758, -0.649]] * 2
    points = [[0.066, -0.054, -0.332]] * 2
    points += [[-0.353, -0.169, 0.185], [-0.293, 0.149, -0.048]]
    points += [[-0.181, -0.391, -0.287]] * 2
    whole = np.array([*ways, last, np.cross(last, [0.3, 0.7, 0.2])])
    axes = Axes("RPRRRR", whole, np.array(points))
    ik = axes.ik()
    assert ik.closed is None
    assert "equations vanish" in ik.why_not_closed
    assert "infinitely many" not in ik.why_not_closed
    assert ik(axes.poses(axes.samples(1, 8))).success.all()


def test_rotations_that_an_oblique_wrist_misses_are_proven() -> None:
    x, y, z = np.eye(3)
    ways = np.array([x, y, z, z, z + 0.4 * x, z - 0.3 * y])
    axes = Axes("PPPRRR", ways, np.zeros((6, 3)))
    ik = axes.ik()
    q = axes.samples(1)
    answers = ik.all(axes.poses(q))
    assert (axes.own_missed(answers, q) < 1e-6).all()
    tilted = np.diag([1.0, -1.0, -1.0, 1.0])  # the wrist leans by some 45 degrees
    assert ik(tilted).reason == Reason.OUT_OF_REACH
    assert ik.all(tilted).complete
