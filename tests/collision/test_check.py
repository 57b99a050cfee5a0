"""Collision checks of cells against every pair of shapes, one at a time."""

from __future__ import annotations

import copy
import pickle
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import armillary as arm
from armillary.collision.check import CollisionCheck
from armillary.errors import ModelError, ShapeError
from armillary.shapes import (
    Box,
    Capsule,
    ConvexPolyhedron,
    Cylinder,
    HalfSpace,
    Primitive,
    Sphere,
    distance,
)
from solids import SOLIDS, without_meshes
from strategies import cells_and_states, laws

Array = np.ndarray
EXACT = 1e-8
BESIDE = arm.Pose.translation(1, 0, 1)
KINDS = ("box", "capsule", "cone", "polyhedron")


def by_hand(cell: arm.Cell, state: arm.State, check: CollisionCheck, Q: Array) -> Any:
    """Return the distance of each pair, from poses by `fk`; shape (n, k)."""
    found = np.full((len(Q), len(check.pairs)), np.inf)
    for k, (a, b) in enumerate(check.pairs):
        for s, X_A in bodies(cell, state, a, Q):
            for t, X_B in bodies(cell, state, b, Q):
                value = distance(s, X_A, t, X_B).value
                found[:, k] = np.minimum(found[:, k], value)
    return found


def bodies(
    cell: arm.Cell, state: arm.State, name: str, Q: Array
) -> list[tuple[Any, Array]]:
    link = cell.workcell.links[cell.frame(name).link]
    X = np.array(cell.fk(name, state=state)(Q)) @ link.primary.matrix()
    return [(shape, X) for shape in link.collision_shapes]


def agree(
    cell: arm.Cell, state: arm.State, Q: Array, margin: float, **more: Any
) -> Array:
    """Compare a check with all pairs one by one, and return their distances."""
    check = cell.collision(state, margin=margin, **more)
    assert check.pairs == cell.pairs(state, **more)
    expected = by_hand(cell, state, check, Q)
    least = expected.min(axis=1, initial=np.inf)
    np.testing.assert_allclose(check.distances(Q), expected, atol=EXACT)
    np.testing.assert_allclose(check.clearance(Q), least, atol=EXACT)
    is_clear = np.abs(least - margin) > EXACT
    truths = ~(expected > margin).all(axis=1)
    np.testing.assert_array_equal(check(Q)[is_clear], truths[is_clear])
    for q, row in zip(Q[:3], expected, strict=False):
        contacts = check.contacts(q)
        pairs = list(check.pairs)
        values = [each.distance for each in contacts]
        assert values == sorted(values)
        near = {pairs[k] for k in np.flatnonzero(row < margin - EXACT)}
        most = {pairs[k] for k in np.flatnonzero(row < margin + EXACT)}
        assert near <= {each.links for each in contacts} <= most
        for each in contacts:
            assert each.distance == pytest.approx(
                row[pairs.index(each.links)], abs=EXACT
            )
            step = each.points[1] - each.points[0]
            np.testing.assert_allclose(step, each.distance * each.normal, atol=EXACT)
            np.testing.assert_allclose(np.linalg.norm(each.normal), 1.0)
    return expected


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:No pair of links of")  # of random cells
@pytest.mark.filterwarnings("ignore:The links of each of these manipulators")
@given(cells_and_states(), st.sampled_from([0.0, 0.3, 3.0]), st.integers(0, 2**32))
@laws(4)
def test_random_cells_with_attachments_and_moved_bases(
    drawn: tuple[arm.Cell, arm.State], margin: float, seed: int
):
    cell, state = without_meshes(drawn[0]), drawn[1]
    state = cell.bind(state)
    Q = np.random.default_rng(seed).uniform(-3, 3, (4, len(cell.joint_names)))
    agree(cell, state, Q, margin)
    agree(cell, state, Q, margin, rules=arm.Rules.everything())


def chain(name: str, shapes: list[tuple[Primitive, ...]]) -> arm.Manipulator:
    """Links that turn about y and z in turn, 0.5 m apart."""
    links = [arm.Link(name="base")]
    for k, each in enumerate(shapes):
        turn = arm.joints.Revolute(
            axis=(0, k % 2, 1 - k % 2), precursor=arm.Pose.translation(0.1, 0, 0.5)
        )
        links.append(
            arm.Link(
                name=f"{name}{k}",
                parent=links[-1].name,
                joint=turn,
                primary=arm.Pose.translation(0, 0.05, 0),
                collisions=each,
            )
        )
    return arm.Manipulator(name=name, links=links)


def several_kinds() -> arm.Cell:
    """Two arms with two shapes of some kind at each link, over a floor."""
    small = [SOLIDS[kind].scaled(0.3) for kind in KINDS]
    twos = list(zip(small, small[2:] + small[:2], strict=True))
    floor = HalfSpace.below((0, 0, -0.5), (0, 0, 1))
    return arm.Cell(
        manipulators=[
            chain("a", twos),
            chain("b", twos[::-1]),
            arm.Manipulator(
                name="floor", links=[arm.Link(name="f", collisions=[floor])]
            ),
        ],
        mounts=[arm.Mount(manipulator="b", pose=arm.Pose.translation(1.5, 0.2, 0))],
        rules=arm.Rules.everything(),
    )


@pytest.mark.sampled(1)
@pytest.mark.thorough
@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_several_kinds_of_shapes(margin: float):
    cell = several_kinds()
    Q = np.random.default_rng(1).uniform(-0.4, 0.4, (20, len(cell.joint_names)))
    expected = agree(cell, cell.home, Q, margin)
    assert (expected < 0).any() and (expected > 0.1).any()


def scene() -> arm.Cell:
    """An arm of capsules and boxes beside a stand."""
    parts = [(Capsule(radius=0.05, length=0.4),), (Box(size=(0.1, 0.1, 0.4)),)]
    stand = arm.Link(name="stand", collisions=[Box(size=(0.3, 0.3, 1.0))])
    return arm.Cell(
        manipulators=[
            chain("arm", parts * 3),
            arm.Manipulator(name="fixture", links=[stand]),
        ],
        mounts=[arm.Mount(manipulator="fixture", pose=BESIDE)],
        rules=arm.Rules().exclude("arm/*", "arm/*"),
    )


def test_a_check_tells_free_from_touching():
    cell = scene()
    Q = np.random.default_rng(2).uniform(-2, 2, (500, 6))
    expected = agree(cell, cell.home, Q, 0.0).min(axis=1)
    assert 0.02 < (expected < 0).mean() < 0.98


def test_batches_of_any_shape():
    cell = scene()
    check = cell.collision()
    Q = np.random.default_rng(3).uniform(-2, 2, (3, 1, 2, 6))
    flat = Q.reshape(-1, 6)
    for ask in (check, check.clearance, check.distances):
        whole = ask(Q)
        rows = np.array([ask(q) for q in flat])
        np.testing.assert_array_equal(whole.reshape(rows.shape), rows)
        assert whole.shape[:3] == (3, 1, 2)
        assert ask(np.empty((0, 6))).shape[0] == 0
    assert np.shape(check(flat[0])) == () == np.shape(check.clearance(flat[0]))
    assert check.distances(Q).shape == (3, 1, 2, len(check.pairs))


@pytest.mark.thorough
def test_batches_of_several_blocks(monkeypatch: pytest.MonkeyPatch):
    check = several_kinds().collision()
    Q = np.random.default_rng(4).uniform(-1, 1, (50, 8))
    whole = check.distances(Q), check.clearance(Q), check(Q)
    monkeypatch.setattr("armillary.collision.check.BLOCK", 1000)
    parts = check.distances(Q), check.clearance(Q), check(Q)
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(a, b)


def test_nan_is_never_free_and_stays_in_its_row():
    cell = scene()
    check = cell.collision()
    Q = np.full((4, 6), 0.1)
    Q[1], Q[2, 5] = np.nan, np.nan
    free = check.clearance(Q)
    np.testing.assert_array_equal(np.isnan(free), [False, True, True, False])
    assert check(Q)[1:3].all()
    values = check.distances(Q)
    is_last = ["arm5" in pair[0] + pair[1] for pair in check.pairs]
    np.testing.assert_array_equal(np.isnan(values[2]), is_last)
    assert np.isnan([each.distance for each in check.contacts(Q[2])]).any()


class Root(arm.joints.Joint, frozen=True, kw_only=True):
    """A user's joint, whose pose is not known below 0."""

    unit = arm.METRE

    def pose(self, q):
        return arm.Pose.translation(0.0, 0.0, 3.0 + np.sqrt(q))


def test_unknown_poses_of_finite_positions_are_never_free():
    ball = [Sphere(radius=0.1)]
    links = [arm.Link(name="a", collisions=ball)]
    links.append(arm.Link(name="b", parent="a", joint=Root(), collisions=ball))
    cell = arm.Cell(manipulators=[arm.Manipulator(name="m", links=links)])
    check = cell.collision(rules=arm.Rules.everything())
    Q = np.array([[1.0], [-1.0], [np.inf], [-np.inf]])
    known = [True, False, False, False]
    for k in range(2):  # the second time by kernels that are there
        assert (~check(Q)).tolist() == known, k
        assert [bool(~check(q)) for q in Q] == known
        assert np.isfinite(check.clearance(Q)).tolist() == known
        assert np.isfinite(check.distances(Q)[:, 0]).tolist() == known


def test_grips_and_moved_bases_count():
    ball = arm.Link(name="body", collisions=[Sphere(radius=0.1)])
    ball_alone = arm.Manipulator(name="ball", links=[ball])
    cell = scene()
    cell = cell.replace(manipulators=[*cell.manipulators, ball_alone])
    at = arm.Pose.translation(0, 0, 5)
    state = cell.home.place("ball", at).grip("ball", by="arm5")
    Q = np.random.default_rng(5).uniform(-2, 2, (50, 6))
    gripped = agree(cell, state, Q, 0.1)
    assert ("arm/arm5", "ball/body") not in cell.collision(state).pairs
    placed = agree(cell, cell.home.place("ball", at), Q, 0.1)
    assert gripped.shape != placed.shape


def test_closed_loops_are_closed():
    cell = arm.example("delta")
    moving = cell.manipulators[0].replace(
        links=[
            link.replace(collisions=[Sphere(radius=0.02)])
            for link in cell.manipulators[0].links
        ]
    )
    cell = cell.exchange(moving).replace(rules=arm.Rules.everything())
    n = len(cell.joint_names)
    Q = np.random.default_rng(6).uniform(-0.3, 0.3, (20, n)) + cell.home.q
    expected = agree(cell, cell.home, Q, 0.0)
    assert np.isfinite(expected).all() and len(expected.T) > 3
    open_loops = np.full(n, 40.0)
    open_loops[0] = np.nan
    assert cell.collision()(open_loops)


def test_no_pair_and_no_shape():
    bare = arm.Manipulator(name="m", links=[arm.Link(name="l")])
    for cell, rules in (
        (scene(), arm.Rules.nothing()),
        (arm.Cell(manipulators=[bare]), None),
    ):
        check = cell.collision(rules=rules)
        Q = np.zeros((2, len(cell.joint_names)))
        assert not check(Q).any()
        assert np.isposinf(check.clearance(Q)).all()
        assert check.distances(Q).shape == (2, 0)
        assert check.contacts(Q[0]) == []
        assert check.motion(Q[0], Q[1]).free
    with pytest.raises(ShapeError, match="q0"):  # of no joints, where there are some
        scene().collision(rules=arm.Rules.nothing()).motion(Q[0], Q[1])


def test_far_from_the_origin_and_at_other_sizes():
    cell = scene()
    Q = np.random.default_rng(7).uniform(-2, 2, (100, 6))
    near = cell.collision().distances(Q)
    for factor in (1e-3, 1e3):
        scaled = cell.scaled(factor).collision().distances(Q)
        np.testing.assert_allclose(scaled, factor * near, atol=1e-8 * factor)
    away = arm.Pose.translation(1e6, -1e6, 1e6)
    there = cell.replace(
        mounts=[
            arm.Mount(manipulator="arm", pose=away),
            arm.Mount(manipulator="fixture", pose=away @ BESIDE),
        ]
    )
    np.testing.assert_allclose(there.collision().distances(Q), near, atol=1e-8)


def test_where_squares_of_distances_overflow():
    ball = Sphere(radius=0.1)
    up = arm.joints.Prismatic(axis=(0.6, 0.0, 0.8))
    links = [
        arm.Link(name="floor", collisions=[HalfSpace()]),
        arm.Link(name="post", parent="floor", collisions=[ball]),
        arm.Link(name="slide", parent="floor", joint=up, collisions=[ball]),
    ]
    cell = arm.Cell(manipulators=[arm.Manipulator(name="one", links=links)])
    everything = arm.Rules.everything().exclude("*/floor", "*/post", reason="fixed")
    check = cell.collision(rules=everything)
    Q = np.array([[-1e200], [1e200], [1.7e308]])
    np.testing.assert_array_equal(check(Q), [True, False, True])
    # Half spaces reach everywhere, and balls are infinitely far away, or nobody knows.
    expected = [[-0.8e200, np.inf], [0.8e200, np.inf], [np.nan, np.nan]]
    np.testing.assert_allclose(check.distances(Q), expected)
    np.testing.assert_allclose(check.clearance(Q), np.min(expected, axis=1))
    np.testing.assert_allclose(check.gradients(Q)[:2, 0], 0.8)
    assert [len(check.contacts(q)) for q in Q] == [1, 0, 2]


def test_a_shape_of_ones_own():
    class Disc(Primitive, frozen=True, kw_only=True):
        """A segment along x, rounded."""

        half: float

        def farthest(self, direction: Any) -> Any:
            return (self.half if direction[0] > 0 else -self.half), 0.0, 0.0

        @property
        def rounding(self) -> float:
            return 0.1

    one = arm.Link(name="one", collisions=[Disc(half=0.4)])
    two = arm.Link(name="two", collisions=[Cylinder(radius=0.2, length=0.4)])
    slide = arm.joints.Prismatic(axis=(1, 0, 0))
    cell = arm.Cell(
        manipulators=[
            arm.Manipulator(name="a", links=[one]),
            arm.Manipulator(
                name="b",
                links=[arm.Link(name="rail"), two.replace(parent="rail", joint=slide)],
            ),
        ]
    )
    check = cell.collision()
    np.testing.assert_allclose(check.clearance([[0.8], [1.7]]), [0.1, 1.0])
    np.testing.assert_array_equal(check([[0.69], [0.71]]), [True, False])


def test_threads_share_a_check():
    check = scene().collision()
    Q = np.random.default_rng(8).uniform(-2, 2, (200, 6))
    expected, found = check.distances(Q), {}

    def ask(k: int) -> None:
        found[k] = check.distances(Q)

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        np.testing.assert_array_equal(found[k], expected)


def answers(check: CollisionCheck, Q: Array) -> tuple[Array, Array]:
    """Return what another process is asked for."""
    return check(Q), check.distances(Q)


@pytest.mark.thorough
def test_a_check_survives_another_process():
    ball = arm.Link(name="body", collisions=[Sphere(radius=0.1)])
    part = arm.Manipulator(name="ball", links=[ball])
    cell = scene().replace(manipulators=[*scene().manipulators, part])
    state = cell.home.joints({"arm0": 0.5}).attach("ball", "arm3")
    check = cell.collision(state, rules=arm.Rules.everything(), margin=0.05)
    again = pickle.loads(pickle.dumps(check))
    assert (again.cell, again.margin) == (check.cell, check.margin)
    assert (again.rules, again.pairs) == (check.rules, check.pairs)
    assert again.state == check.state
    assert copy.copy(check) is check is copy.deepcopy(check)
    Q = np.random.default_rng(9).uniform(-2, 2, (50, 6))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = pool.submit(answers, check, Q).result()
    for here, there in zip(answers(check, Q), found, strict=True):
        np.testing.assert_array_equal(here, there)


def test_a_check_of_another_branch_survives():
    cell = arm.example("five_bar")
    (robot,) = cell.manipulators
    ball = Sphere(radius=0.01, pose=arm.Pose.translation(0.1, 0.05, 0))
    balls = [each.replace(collisions=[ball]) for each in robot.links]
    cell = cell.exchange(robot.replace(links=balls))
    other = cell.branches()["2"]
    Q = np.random.default_rng(10).uniform(-0.1, 0.1, (20, 2)) + cell.home.q
    checks = [
        cell.collision(state, rules=arm.Rules.everything())
        for state in (cell.home, other)
    ]
    here, there = (check.distances(Q) for check in checks)
    assert np.isfinite(here).all() and not np.allclose(here, there)
    for check, values in zip(checks, (here, there), strict=True):
        again = pickle.loads(pickle.dumps(check))
        np.testing.assert_allclose(again.distances(Q), values, atol=1e-9)


def two(*shapes: Any) -> arm.Cell:
    """A cell of movable parts, each with a shape."""
    return arm.Cell(
        manipulators=[
            arm.Manipulator(name=f"m{k}", links=[arm.Link(name="l", collisions=[s])])
            for k, s in enumerate(shapes)
        ]
    )


def test_what_cannot_be_tested_is_refused():
    with pytest.raises(ModelError, match=r"half spaces .*'m0/l' and 'm1/l'"):
        two(HalfSpace(), HalfSpace()).collision()
    unknown: Any = "0.1"
    for margin in (-0.1, np.nan, np.inf, unknown):
        with pytest.raises(ModelError, match="margin must be"):
            scene().collision(margin=margin)
    with pytest.raises(ModelError, match=r"rules= takes arm\.Rules"):
        scene().collision(rules=unknown)
    check = scene().collision()
    q = np.zeros(len(check.cell.joint_names))
    with pytest.raises(ModelError, match="distance must be a number, not nan"):
        check.contacts(q, within=np.nan)
    assert len(check.contacts(q, within=1e300)) == len(check.pairs)
    check = scene().collision()
    with pytest.raises(ShapeError, match=r"needs q of shape \(\.\.\., 6\)"):
        check([0.0])
    with pytest.raises(ShapeError, match="contacts are of one q"):
        check.contacts(np.zeros((2, 6)))


def test_hulls_of_many_sizes():
    clouds = [np.random.default_rng(k).normal(size=(9 + k, 3)) for k in range(3)]
    hulls = [ConvexPolyhedron.around(cloud) for cloud in clouds]
    cell = two(*hulls, Sphere(radius=0.5))
    states = [
        cell.home.place("m1", arm.Pose.translation(x, 0, 0)).place(
            "m2", arm.Pose.translation(0, 2 * x, x)
        )
        for x in (0.0, 2.0, 5.0)
    ]
    for state in states:
        agree(cell, state, np.zeros((1, 0)), 0.1)
