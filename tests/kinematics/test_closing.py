"""Closed loops by laws: closed, on one branch, with right derivatives.

What is right is computed without armillary, in `tests/linkages.py`.
"""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest

import armillary as arm
from armillary.model.loops import home
from linkages import (
    FAMILIES,
    Gap,
    Linkage,
    Part,
    bennett,
    followed,
    four_bar,
    frame,
    turned,
)

ROWS = 60
STEPS = 150
REACH = {"chain": 0.3, "3-RRR": 0.6}
SEED = 11  # of the linkages, which all laws share


@cache
def shared_cell(family: str) -> tuple[Linkage, arm.Cell]:
    """Return a linkage and its cell, whose kernels all laws share."""
    linkage = FAMILIES[family](np.random.default_rng(SEED))
    return linkage, linkage.cell()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_said_to_be_closed_is(family: str) -> None:
    """The gaps by NumPy are below 1e-12 wherever loops are said to be closed."""
    random = np.random.default_rng(1)
    linkage, cell = shared_cell(family)
    assert list(cell.joint_names) == list(linkage.driven)
    Q = random.uniform(-np.pi, np.pi, (ROWS, len(cell.joint_names)))
    found = cell.close_loops(Q)
    q, passive = Q[found.success], found.passive[found.success]
    joints = dict(zip(cell.joint_names, q.T, strict=True))
    joints |= dict(zip(cell.passive_names, passive.T, strict=True))
    assert np.abs(linkage.gaps_at(joints)).max(initial=0.0) < 1e-12
    assert found.residual[found.success].max(initial=0.0) < 1e-11
    poses = linkage.poses(joints)
    by_cell = cell.fk([*poses])(Q)[found.success]
    for k, (name, X) in enumerate(poses.items()):
        assert np.abs(by_cell[:, k] - X).max(initial=0.0) < 1e-11, name


@pytest.mark.sampled(1)
@pytest.mark.parametrize("family", [f for f in FAMILIES if f != "Bennett"])
def test_the_branch_is_that_of_the_way_from_home(family: str) -> None:
    """Where tiny steps from home arrive, so do kernels, and at the same assembly.

    Rows next to a fold are left out: the steps are not tiny enough there.
    """
    random = np.random.default_rng(SEED)
    FAMILIES[family](random)  # the rows are those after it
    linkage, cell = shared_cell(family)
    names, passive = cell.joint_names, cell.passive_names
    reach = REACH.get(family, np.pi)
    lower, upper = np.clip(cell.limits, -reach, reach)
    Q = random.uniform(lower, upper, (ROWS, len(names)))
    with np.errstate(all="ignore"):
        expected = followed(linkage, names, passive, Q, STEPS)
    arrived = np.isfinite(expected).all(axis=1)
    assert arrived.sum() > ROWS // 20
    found = cell.close_loops(Q)
    assert (found.success >= arrived).mean() > 0.98
    both = arrived & found.success
    apart = np.abs(turned(linkage, passive, found.passive - expected)[both]).max(axis=1)
    assert (apart < 1e-8).mean() > 0.98
    assert (apart[apart >= 1e-8] > 1e-3).all()


def test_loops_that_cannot_close_are_refused_after_few_evaluations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All random starts of the search advance together, one evaluation a step."""
    calls = 0
    evaluate = home.ScaledRows.at

    def counted(self: home.ScaledRows, q: np.ndarray) -> object:
        nonlocal calls
        calls += 1
        return evaluate(self, q)

    monkeypatch.setattr(home.ScaledRows, "at", counted)
    (platform,) = arm.example("stewart").manipulators
    too_long = arm.Rod("foot1", "ball1", length=9.0)
    with pytest.raises(arm.errors.ModelError, match="cannot close at home"):
        platform.replace(loops=(too_long, *platform.loops[1:]))
    # One start of many takes up to 80 steps; there are 65.
    assert calls < 4 * home.STEPS


def test_a_bennett_linkage_turns_round() -> None:
    """Three of its five equations follow from the others, not always the same three."""
    linkage = bennett(np.random.default_rng(2))
    cell = linkage.cell()
    assert cell.mobility().redundant == 3
    found = cell.close_loops(np.linspace(-np.pi, np.pi, 500)[:, None])
    assert found.success.all()
    steps = turned(linkage, cell.passive_names, np.diff(found.passive, axis=0))
    assert np.abs(steps).max() < 0.2


def parallelogram(*, offset: float | None = None) -> Linkage:
    """Return a parallelogram; with a third bar at a distance from the plane of two."""
    c, s = 0.2 * np.cos(0.7), 0.2 * np.sin(0.7)
    parts = [
        Part("crank", "ground", "R", frame([0, 0, 0])),
        Part("coupler", "crank", "R", frame([c, s, 0])),
        Part("rocker", "ground", "R", frame([0.5, 0, 0])),
    ]
    gaps = [Gap("coupler", "rocker", frame([0.5 + c, s, 0]), "xy")]
    if offset is not None:
        parts.append(Part("bar", "ground", "R", frame([0.2, offset, 0])))
        gaps.append(Gap("coupler", "bar", frame([0.2 + c, offset + s, 0]), "xy"))
    return Linkage(parts, gaps, ["crank"])


TURN = np.linspace(-np.pi, np.pi, 1001)[:, None]


def test_a_parallelogram_stops_where_it_is_flat() -> None:
    """Beyond it might be a parallelogram or not: the joints do not say."""
    cell = parallelogram().cell()
    found = cell.close_loops(TURN)
    angle = TURN[:, 0] + 0.7
    before = (angle > 0.01) & (angle < np.pi - 0.01)
    assert found.success[before].all()
    assert not found.success[(angle < 0.0) | (angle > np.pi)].any()
    assert np.abs(found.passive[before, 1] - TURN[before, 0]).max() < 1e-12


@pytest.mark.sampled(1)
@pytest.mark.parametrize("offset", [0.0, 0.1, -0.3])
def test_a_parallelogram_with_a_third_bar_turns_round(offset: float) -> None:
    """One of four equations follows from the others, not always the same one."""
    cell = parallelogram(offset=offset).cell()
    assert cell.mobility().redundant == 1
    fk = cell.fk("rocker")
    X = fk(TURN)[:, :3, :3] @ fk([0.0])[:3, :3].T
    assert np.abs(X[:, 0, 0] - np.cos(TURN[:, 0])).max() < 1e-9
    assert np.abs(X[:, 1, 0] - np.sin(TURN[:, 0])).max() < 1e-9


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ratio", [0.5, -0.5, 2.0 / 3.0, 3.0])
def test_a_crank_behind_a_gear_turns_many_times(ratio: float) -> None:
    """The grid covers the turns of the motor after which the crank is where it was."""
    linkage = four_bar(np.random.default_rng(2))
    alone = linkage.cell()
    plain = linkage.manipulator()
    ground, crank, *rest = plain.links
    motor = arm.Link(name="motor", parent="ground", joint=arm.joints.Revolute())
    geared = arm.Link(
        name="crank",
        parent="ground",
        joint=crank.joint,
        frames=crank.frames,
        coupling=arm.Coupling(of="motor", multiplier=ratio),
    )
    cell = arm.Cell(
        manipulators=[
            arm.Manipulator(
                name="geared", links=[ground, motor, geared, *rest], loops=plain.loops
            )
        ]
    )
    q = np.array([[0.05], [0.1], [6.3], [1000.0], [-777.0], [12.6]])
    expected = alone.fk("rocker")(ratio * q)
    np.testing.assert_allclose(cell.fk("rocker")(q), expected, atol=1e-9)
    assert np.isfinite(expected[0]).all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("family", FAMILIES)
def test_derivatives_are_slopes(family: str) -> None:
    """Jacobians and accelerations agree with differences of the eighth order."""
    random = np.random.default_rng(7)
    _, cell = shared_cell(family)
    count = len(cell.joint_names)
    Q = random.uniform(-0.02, 0.02, (6, count))
    qd = random.uniform(-1.0, 1.0, (6, count))
    link = cell.passive_names[-1]
    fk, jacobian = cell.fk(link), cell.jacobian(link)
    weights = np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280])
    h = 2e-3

    def slope(of):
        steps = [of(Q + k * h * qd) - of(Q - k * h * qd) for k in (1, 2, 3, 4)]
        return np.tensordot(weights, np.array(steps), 1) / h

    twist = np.einsum("nij,nj->ni", jacobian(Q), qd)
    size = 1.0 + np.abs(twist).max()
    moving = slope(lambda q: fk(q)[:, :3, 3])
    assert np.abs(moving - twist[:, :3]).max() < 1e-9 * size
    R, Rd = fk(Q)[:, :3, :3], slope(lambda q: fk(q)[:, :3, :3])
    W = Rd @ R.swapaxes(1, 2)
    omega = np.stack([W[:, 2, 1], W[:, 0, 2], W[:, 1, 0]], axis=1)
    assert np.abs(omega - twist[:, 3:]).max() < 1e-9 * size
    bias = cell.bias_acceleration(link)(Q, qd)
    changes = slope(lambda q: np.einsum("nij,nj->ni", jacobian(q), qd))
    assert np.abs(bias - changes).max() < 1e-8 * (1.0 + np.abs(bias).max())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("family", ["four-bar", "delta", "Bennett", "six-bar"])
def test_batches_pickles_and_threads_agree(family: str) -> None:
    """Rows do not depend on their number, a copy of the cell, or the thread."""
    random = np.random.default_rng(5)
    _, cell = shared_cell(family)
    link = cell.passive_names[-1]
    Q = random.uniform(-2.0, 2.0, (67, len(cell.joint_names)))
    Q[13] = np.nan
    fk = cell.fk(link)
    X = fk(Q)
    assert np.isnan(X[13]).any()
    copied = pickle.loads(pickle.dumps(cell)).fk(link)
    np.testing.assert_array_equal(copied(Q), X)
    with ThreadPoolExecutor(4) as pool:
        for other in pool.map(lambda _: fk(Q, threads=2), range(4)):
            np.testing.assert_array_equal(other, X)
    for k in range(len(Q)):
        np.testing.assert_allclose(fk(Q[k]), X[k], atol=1e-9)
    for k in (1, 5, 16, 33):
        np.testing.assert_allclose(fk(Q[:k]), X[:k], atol=1e-9)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [1e-3, 1e2])
def test_size_does_not_matter(size: float) -> None:
    """A linkage of a millimetre closes where that of 100 m does."""
    small = four_bar(np.random.default_rng(0), 0.3).cell()
    scaled = small.scaled(size / 0.3)
    q = np.linspace(-np.pi, np.pi, 400)[:, None]
    one, other = small.close_loops(q), scaled.close_loops(q)
    assert (one.success != other.success).sum() <= 2
    both = one.success & other.success
    np.testing.assert_allclose(one.passive[both], other.passive[both], atol=1e-6)
