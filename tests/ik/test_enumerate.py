"""All answers that a search finds: each once, beside restarts of SciPy's solver."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import least_squares

import armillary as arm
from armillary.ik.all_answers import search_all
from armillary.ik.method import Candidates
from armillary.ik.query import IKQuery, query_of
from arms import arm_of_axes, turned_apart

Array = npt.NDArray[np.float64]

STARTS = 25  # of SciPy's solver; each branch is found by several of them


class Chain:
    """Six axes of no simple form, with forward kinematics of its own."""

    def __init__(self, size: float, limit: float = np.inf) -> None:
        rng = np.random.default_rng(3)
        self.steps = rng.uniform(-0.3, 0.3, (6, 3)) * size
        axes = rng.normal(size=(6, 3))
        self.axes = axes / np.linalg.norm(axes, axis=1)[:, None]
        self.q = rng.uniform(-2.0, 2.0, 6)
        self.size = np.linalg.norm(self.steps, axis=1).sum()
        self.limit = limit

    @property
    def cell(self) -> arm.Cell:
        links = [arm.Link(name="base")]
        limits = arm.Limits(lower=-self.limit, upper=self.limit)
        for k, (axis, step) in enumerate(zip(self.axes, self.steps, strict=True)):
            joint = arm.joints.Revolute(
                axis=tuple(axis), precursor=arm.Pose.translation(*step)
            )
            parent = links[-1].name
            links.append(
                arm.Link(name=f"l{k}", parent=parent, joint=joint, limits=limits)
            )
        return arm.Cell(manipulators=[arm.Manipulator(name="chain", links=links)])

    def pose(self, q: Array) -> tuple[Array, Array]:
        """Return rotation and position of the last link, by Rodrigues' formula."""
        R, p = np.eye(3), np.zeros(3)
        for (x, y, z), step, angle in zip(self.axes, self.steps, q, strict=True):
            K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
            p = p + R @ step
            R = R @ (np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K)
        return R, p

    def off(self, q: Array) -> Array:
        """Return what q misses of the target, lengths as parts of the size."""
        (R, p), (R0, p0) = self.pose(q), self.pose(self.q)
        return np.append((R - R0).ravel(), (p - p0) / self.size)

    def branches(self) -> Array:
        """Return the answers that restarts of SciPy's solver find."""
        found: list[Array] = []
        for start in np.random.default_rng(0).uniform(-np.pi, np.pi, (STARTS, 6)):
            end = least_squares(self.off, start, xtol=1e-14, ftol=1e-14, gtol=1e-14)
            if np.abs(end.fun).max() < 1e-7 and all(
                turned_apart(end.x, other) > 1e-3 for other in found
            ):
                found.append(end.x)
        return np.array(found)


@cache
def searched(size: float, limit: float = np.inf) -> tuple[Chain, arm.Cell, Array]:
    chain = Chain(size, limit)
    cell = chain.cell
    return chain, cell, cell.fk("l5")(chain.q)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [1.0, 1e-3])
def test_each_answer_is_listed_once(size: float) -> None:
    """Also on an arm of 1 mm, for which the tolerances are a thousandth of its size."""
    chain, cell, target = searched(size)
    answers = cell.ik("l5").all(target, method="numeric")
    q = answers.q[answers.success]
    for k, one in enumerate(q):
        assert np.abs(chain.off(one)).max() < 1e-5
        assert (turned_apart(one, np.delete(q, k, axis=0)) > 1e-3).all()
    branches = chain.branches()
    assert len(branches) >= 2
    assert all(turned_apart(q, branch).min() < 1e-4 for branch in branches)
    assert len(answers.distinct()) == len(q)


def test_the_answer_of_a_call_is_among_all() -> None:
    _, cell, target = searched(1.0)
    ik = cell.ik("l5")
    some = cell.fk("l5")(np.random.default_rng(1).uniform(-3, 3, (40, 6)))
    called = ik(some, method="numeric")
    answers = ik.all(some, starts=1, method="numeric")
    off = turned_apart(called.q[:, None], answers.q)
    assert called.success.all()
    assert np.nanmin(off, axis=1).max() == 0.0
    near = np.full(6, 20.0)
    nearest = ik(target, near=near, method="numeric")
    answers = ik.all(target, near=near, method="numeric")
    assert np.abs(nearest.q - answers.q[answers.success]).max(axis=1).min() == 0.0


def test_of_whole_turns_the_nearest_is_listed() -> None:
    _, cell, target = searched(1.0, 3.0 * np.pi)
    ik = cell.ik("l5")
    zero = ik.all(target, method="numeric")
    assert np.nanmax(np.abs(zero.q)) <= np.pi
    near = np.array([6.0, -6.0, 0.0, 6.0, -6.0, 7.0])
    there = ik.all(target, near=near, method="numeric")
    within = np.abs(there.q[there.success]) <= 3.0 * np.pi
    assert within.all()
    assert there.count == zero.count
    off = np.abs(there.q - near)[there.success]
    at_limits = np.abs(there.q[there.success] + np.sign(near) * 2 * np.pi) > 3 * np.pi
    assert ((off <= np.pi) | at_limits).all()
    assert (turned_apart(zero.q[zero.success][:, None], there.q) < 1e-5).any(1).all()


def test_wide_tolerances_leave_no_copies() -> None:
    _, cell, target = searched(1.0)
    ik = cell.ik("l5")
    fine = ik.all(target, method="numeric")
    wide = ik.all(target, tolerance=(1e-2, 1e-2), method="numeric")
    assert fine.count == wide.count
    off = turned_apart(fine.q[fine.success][:, None], wide.q[wide.success])
    assert off.min(axis=1).max() < 1e-4


def test_starts_lie_within_limits_that_exclude_zero() -> None:
    """A search finds what the closed form does, of a slide from 5 m to 25 m."""
    kinds, axes = "PRR", np.eye(3)[[0, 2, 2]]
    points = [(0, 0, 0), (0, 0, 0), (0.8, 0, 0)]
    cell = arm_of_axes(kinds, axes, points, tool=arm.Pose.translation(0.3, 0, 0))
    base, *links, tool = cell.manipulators[0].links
    ranges = (5.0, 25.0), (3.5, 9.0), (-3.0, 3.0)
    links = [
        link.replace(limits=arm.Limits(lower=lower, upper=upper))
        for link, (lower, upper) in zip(links, ranges, strict=True)
    ]
    robot = cell.manipulators[0].replace(links=[base, *links, tool])
    cell = arm.Cell(manipulators=[robot])
    rng = np.random.default_rng(0)
    q = np.stack([rng.uniform(*ends, 40) for ends in ranges], axis=1)
    ik, X = cell.ik("tool"), cell.fk("tool")(q)
    proven, found = ik.all(X), ik.all(X, method="numeric")
    assert np.array_equal(found.count, proven.count)
    assert set(proven.count.tolist()) == {1, 2}


def test_after_its_time_nothing_more_is_sought() -> None:
    """What a call answers is all; so are targets near which more starts would be."""
    _, cell, target = searched(1.0)
    ik = cell.ik("l5")
    targets = np.tile(target, (3, 1, 1))
    query = query_of(ik.numeric.problem, targets)
    asked, late = ik.numeric._found(query), query._replace(deadline=1)
    sought = []

    def search(query: IKQuery) -> Candidates:
        sought.append(len(query.targets))
        return ik.numeric._found(query._replace(deadline=0))

    found = search_all(asked, search, late, ik.numeric.problem)
    assert sum(sought) == 0
    assert found.success.sum(axis=1).tolist() == [1, 1, 1]
    search_all(asked, search, query, ik.numeric.problem)
    assert sum(sought) == 3 * query.starts


class Twice(arm.ClosedForm):
    """A single joint that turns, and whose answer is given once more by a turn less."""

    branches = ("one", "other")

    def forward(self, q):
        return arm.Pose.rotation_z(q[0])

    def inverse(self, pose):
        (c, _, _), (s, _, _), _ = pose.rotation
        angle = np.arctan2(s, c)
        return [(angle,), (angle - 2.0 * np.pi,)]


def test_distinct_answers_differ_by_more_than_turns() -> None:
    cell = arm_of_axes("R", [(0, 0, 1)], [(0, 0, 0)], limit=10.0)
    answers = cell.ik("tool", closed=Twice()).all(cell.fk("tool")([np.pi]))
    assert np.abs(answers.q[..., 0]) == pytest.approx(np.pi)
    assert len(answers.distinct()) == 1


def test_answers_include_that_of_a_call_where_limits_are_vast() -> None:
    """Slides of a base that goes any far, as files write it: few starts lead near."""
    axes = np.eye(3)[[2, 0, 2, 1]]
    points = [(0, 0, 0), (0, 0, 0), (0, 0, 0.3), (0.2, 0, 0.3)]
    tool = arm.Pose.translation(0.0, 0.0, 0.4)
    vast = [1e6, 1e6, 2.9, 1.7]
    cell = arm_of_axes("RPRR", axes, points, tool=tool, limit=vast)
    rng = np.random.default_rng(0)
    targets = cell.fk("tool")(rng.uniform(-1.5, 1.5, (20, 4)))
    ik = cell.ik("tool", rotation="")
    every, one = ik.all(targets), ik(targets)
    assert one.success.all()
    assert every.success.any(axis=1).all()
