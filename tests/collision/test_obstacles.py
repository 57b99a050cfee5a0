"""Obstacles of one check: answers are those of a cell that has them."""

from __future__ import annotations

import copy
import functools
import pickle

import msgspec
import numpy as np
import pytest
from scipy.spatial import cKDTree

import armillary as arm
from armillary.collision import obstacles, pair_records
from armillary.collision.check_tables import CheckTables
from armillary.errors import ModelError, UnknownName
from armillary.kernel import compiler
from armillary.kinematics.identity import digest
from armillary.shapes import (
    Box,
    Capsule,
    ConvexPolyhedron,
    Cylinder,
    HalfSpace,
    Mesh,
    Points,
    Sphere,
    Tetrahedron,
    Voxels,
)
from armillary.testing.samples import random_pose
from work import lines

Q = np.random.default_rng(0).uniform(-3.0, 3.0, (60, 3))
AWAY = arm.Pose.translation(0.0, 0.0, 9.0)


@functools.cache
def robot() -> arm.Cell:
    """Return an arm of three links on a base, and a part that it can hold."""
    links = [arm.Link(name="base", collisions=[Box(size=(0.2, 0.2, 0.2))])]
    for k in range(3):
        joint = arm.joints.Revolute(
            axis=(0, k % 2, 1 - k % 2), precursor=arm.Pose.translation(0.05, 0, 0.35)
        )
        shapes = [
            Capsule(radius=0.04, length=0.2, pose=arm.Pose.translation(0, 0, 0.1)),
            Sphere(radius=0.06),
        ]
        links.append(
            arm.Link(
                name=f"l{k}",
                parent=links[-1].name,
                joint=joint,
                collisions=shapes[: 2 - k % 2],
            )
        )
    part = arm.Manipulator(
        name="part", links=[arm.Link(name="body", collisions=[Sphere(radius=0.05)])]
    )
    cell = arm.Cell(
        manipulators=[arm.Manipulator(name="arm", links=links), part],
        mounts=[arm.Mount(manipulator="part", bolted=False, pose=AWAY)],
    )
    # The first and the last link are in no pair: obstacles have to find them.
    rules = cell.rules.exclude("arm/*", "arm/*", reason="apart")
    return cell.replace(rules=rules.include("arm/base", "arm/l1"))


def placed(rng: np.random.Generator) -> arm.Pose:
    X = random_pose(rng)
    x, y, z = rng.uniform((-0.5, -0.5, 0.2), (0.5, 0.5, 1.2)).tolist()
    return arm.Pose(X.rotation, (x, y, z))


def things(seed: int, count: int = 6) -> dict[str, list[arm.shapes.Shape]]:
    """Return obstacles of one shape or two, of several kinds."""
    rng = np.random.default_rng(seed)
    made: dict[str, list[arm.shapes.Shape]] = {}
    for k in range(count):
        size = float(rng.uniform(0.05, 0.15))
        kinds = (
            Sphere(radius=size, pose=placed(rng)),
            Box(size=(size, 2 * size, size), pose=placed(rng)),
            Capsule(radius=size, length=0.2, pose=placed(rng)),
        )
        made[f"thing{k}"] = [kinds[k % 3], kinds[0]] if k == 1 else [kinds[k % 3]]
    return made


def with_manipulators(
    cell: arm.Cell, given: dict[str, list[arm.shapes.Shape]]
) -> arm.Cell:
    """Return the cell that has obstacles, tested against what moves alone."""
    more = [
        arm.Manipulator(name=name, links=[arm.Link(name="it", collisions=shapes)])
        for name, shapes in given.items()
    ]
    mounts = [arm.Mount(manipulator=name) for name in given]
    rules = cell.rules
    for name in given:
        for other in (*given, "arm/base", "part/body"):
            rules = rules.exclude(
                f"{name}/it", f"{other}/it" if other in given else other
            )
        for link in ("l0", "l1", "l2"):
            rules = rules.include(f"{name}/it", f"arm/{link}")
    return cell.replace(
        manipulators=[*cell.manipulators, *more],
        mounts=[*cell.mounts, *mounts],
        rules=rules,
    )


def places_in(check: arm.CollisionCheck, other: arm.CollisionCheck) -> list[int]:
    """Return where the pairs of a check among obstacles are in that of a cell."""
    place = {frozenset(pair): k for k, pair in enumerate(other.pairs)}
    names = check.obstacles.names if check.obstacles else ()
    both = [{a, f"{b}/it" if b in names else b} for a, b in check.pairs]
    return [place[frozenset(pair)] for pair in both]


def assert_same(
    check: arm.CollisionCheck, other: arm.CollisionCheck, most: float = 1e-12
) -> None:
    places = places_in(check, other)
    assert sorted(places) == list(range(len(other.pairs)))
    expected = other.distances(Q)[:, places]
    np.testing.assert_allclose(check.distances(Q), expected, atol=most)
    np.testing.assert_allclose(check.distances(Q[0]), expected[0], atol=most)
    np.testing.assert_allclose(check.clearance(Q), expected.min(axis=1), atol=most)
    np.testing.assert_array_equal(check(Q), other(Q))
    assert [bool(check(q)) for q in Q] == other(Q).tolist()
    slopes = other.gradients(Q[:5])[:, places]
    np.testing.assert_allclose(check.gradients(Q[:5]), slopes, atol=1e-9)
    motions, others = (each.motion(Q[:20], Q[20:40]) for each in (check, other))
    np.testing.assert_allclose(motions.fraction, others.fraction, atol=1e-6)
    np.testing.assert_array_equal(motions.reason, others.reason)
    k = int(expected.min(axis=1).argmin())
    mine, theirs = (each.contacts(Q[k], within=0.1) for each in (check, other))
    assert len(mine) == len(theirs) > 0
    for one, same in zip(mine, theirs, strict=True):
        assert abs(one.distance - same.distance) <= most
        obstacle = one.links[1]
        if check.obstacles and obstacle in check.obstacles.names:
            assert f"{obstacle}/it" in same.links


@pytest.mark.parametrize("seed", range(3))
def test_answers_are_those_of_a_cell_with_them(seed: int) -> None:
    cell, given = robot(), things(seed)
    state = cell.home.place("arm", arm.Pose.rotation_z(0.3 * seed))
    margin = 0.02 * seed
    check = cell.collision(state, margin=margin).with_obstacles(given)
    edited = with_manipulators(cell, given)
    same = edited.home.place("arm", arm.Pose.rotation_z(0.3 * seed))
    other = edited.collision(same, margin=margin)
    assert 0 < check(Q).sum() < len(Q)
    assert_same(check, other)


def test_other_sizes_and_places_of_the_same_kinds_are_answered_as_new() -> None:
    check = robot().collision()
    for seed in range(4):
        given = things(seed)
        assert_same(
            check.with_obstacles(given), with_manipulators(robot(), given).collision()
        )


def test_any_shape_is_an_obstacle() -> None:
    rng = np.random.default_rng(5)
    corners = rng.uniform(-0.1, 0.1, (12, 3))
    given: dict[str, list[arm.shapes.Shape]] = {
        "floor": [HalfSpace(pose=arm.Pose.translation(0, 0, -0.5))],
        "hull": [ConvexPolyhedron.around(corners, pose=placed(rng))],
        "can": [Cylinder(radius=0.1, length=0.2, pose=placed(rng))],
        "shard": [
            Tetrahedron(
                corners=((0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.2)),
                pose=placed(rng),
            )
        ],
    }
    for k in range(2):
        moved = {
            name: [
                msgspec.structs.replace(
                    each, pose=arm.Pose.translation(0.1 * k, 0, 0) @ each.pose
                )
            ]
            for name, (each,) in given.items()
        }
        check = robot().collision().with_obstacles(moved)
        # Searches for distances end at another step where shapes have other numbers.
        assert_same(check, with_manipulators(robot(), moved).collision(), 1e-7)


def scan(seed: int, count: int = 4000) -> np.ndarray:
    """Return points of a wall, a pole and noise, that float32 has."""
    rng = np.random.default_rng(seed)
    wall = rng.uniform((0.5, -1.0, 0.0), (0.52, 1.0, 1.2), (count, 3))
    turn, z = rng.uniform(-np.pi, np.pi, count), rng.uniform(0.0, 1.4, count)
    x, y = rng.uniform(-0.5, -0.3, 2)
    pole = np.stack([x + 0.05 * np.cos(turn), y + 0.05 * np.sin(turn), z], axis=1)
    noise = rng.uniform((-0.8, -0.8, 0.9), (0.8, 0.8, 1.6), (40, 3))
    every = np.concatenate([wall, pole, noise])
    return every.astype(np.float32).astype(np.float64)


def least_of_points(cell: arm.Cell, points: np.ndarray) -> np.ndarray:
    """Return the distance of the links that move from points, by brute force: (n,)."""
    tree = cKDTree(points)
    along = np.linspace(-0.1, 0.1, 401)
    axis = np.stack([0 * along, 0 * along, along + 0.1], axis=1)  # of a capsule
    found: list[np.ndarray] = []
    for k in range(3):
        X = cell.fk(f"arm/l{k}")(Q)
        places = [(axis, 0.04), (np.zeros((1, 3)), 0.06)]
        for local, radius in places[: 2 - k % 2]:
            every = np.einsum("nij,kj->nki", X[:, :3, :3], local) + X[:, None, :3, 3]
            found.append(tree.query(every)[0].min(axis=1) - radius)
    return np.min(found, axis=0)


def test_a_scan_is_an_obstacle() -> None:
    # Checks without points come before and after, and one scan replaces another.
    check = robot().collision()
    alone = check.clearance(Q)
    for seed in range(3):
        points = scan(seed)
        found = check.with_obstacles({"scan": Points(points, 0.01)})
        nearest = least_of_points(robot(), points) - 0.01
        expected = np.minimum(alone, nearest)
        # Axes of capsules are samples 0.5 mm apart: too few for points beside them.
        close, wanted = (
            np.maximum(each, -0.02) for each in (found.clearance(Q), expected)
        )
        np.testing.assert_allclose(close, wanted, atol=1e-5)
        sure = np.abs(expected) > 1e-5
        assert 0 < (nearest < 0.0).sum() < len(Q)
        np.testing.assert_array_equal(found(Q)[sure], (expected < 0.0)[sure])
        np.testing.assert_array_equal(check.clearance(Q), alone)


@pytest.mark.thorough
def test_scans_stand_beside_other_obstacles() -> None:
    rng = np.random.default_rng(8)
    filled = rng.random((5, 4, 6)) < 0.3
    corners = rng.uniform(-0.1, 0.1, (12, 3))
    given = {
        **things(1, 4),
        "grid": [Voxels(filled, 0.05, pose=placed(rng)), Sphere(radius=0.05)],
        "hull": [ConvexPolyhedron.around(corners, pose=placed(rng))],
        "scan": [Points(scan(5, 800), 0.01, pose=arm.Pose.rotation_z(0.3))],
        "floor": [HalfSpace(pose=arm.Pose.translation(0, 0, -0.5))],
        "more": [Points(scan(6, 300), 0.02), Points(scan(7, 300), 0.0)],
    }
    edited = with_manipulators(robot(), given)
    for seed in range(2):
        alone = {"scan": [Points(scan(seed), 0.01)]}
        assert_same(
            robot().collision().with_obstacles(alone),
            with_manipulators(robot(), alone).collision(),
            1e-9,
        )
    check = robot().collision().with_obstacles(given)
    assert_same(check, edited.collision(), 1e-7)
    # A cell that has a cloud itself, among other shapes.
    own = {"grid": given.pop("grid")}
    assert_same(
        with_manipulators(robot(), own).collision().with_obstacles(given),
        edited.collision(),
        1e-7,
    )


def test_a_new_scan_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    check = robot().collision()

    def asked(seed: int) -> None:
        found = check.with_obstacles({"scan": Points(scan(seed, 500), 0.01)})
        found(Q[0])
        found.motion(Q[0], Q[1])

    def refuse(*given: object, **named: object) -> None:
        raise AssertionError("Another scan needs no code.")

    asked(0)
    monkeypatch.setattr(compiler, "loaded", refuse)
    monkeypatch.setattr(pair_records.PairRecords, "of", refuse)
    asked(1)


def test_a_scan_and_a_cloud_on_a_moving_link_are_refused() -> None:
    cell = robot()
    held = arm.Link(name="body", collisions=[Points(np.eye(3), 0.01)])
    part = cell.manipulators[1].replace(links=[held])
    cell = cell.replace(manipulators=[cell.manipulators[0], part])
    grip = cell.home.attach("part", "arm/l2")
    check = cell.collision(grip)
    given = {"scan": Points(scan(0, 100), 0.01)}
    with pytest.raises(ModelError, match=r"'part/body' and 'scan'.*allowed"):
        check.with_obstacles(given)
    found = check.with_obstacles(given, allowed=[("scan", "part/body")])
    assert ("part/body", "scan") not in found.pairs


def test_gripped_parts_are_tested_too() -> None:
    cell, given = robot(), things(1)
    grip = cell.home.attach("part", "arm/l2", pose=arm.Pose.translation(0, 0, 0.3))
    alone, held = (cell.collision(s).with_obstacles(given) for s in (None, grip))
    assert not [
        pair for pair in alone.pairs if "part/body" in pair and pair[1] in given
    ]
    assert len([pair for pair in held.pairs if pair[0] == "part/body"]) >= len(given)
    ball = cell.fk("arm/l2", state=grip)(Q) @ np.array([0, 0, 0.3, 1.0])
    pair = held.pairs.links.index("thing0"), held.pairs.links.index("part/body")
    k = held.pairs.indices.tolist().index([pair[1], pair[0]])
    (sphere,) = given["thing0"]
    gap = np.linalg.norm(ball[:, :3] - sphere.pose.position, axis=1)
    np.testing.assert_allclose(
        held.distances(Q)[:, k], gap - sphere.radius - 0.05, atol=1e-12
    )


def test_pairs_that_may_touch_are_left_out() -> None:
    given = things(2)
    whole = robot().collision().with_obstacles(given)
    check = whole.with_obstacles(
        given, allowed=[("thing0", "arm/l1"), ("thing3", "l2")]
    )
    gone = set(whole.pairs) - set(check.pairs)
    assert gone == {("arm/l1", "thing0"), ("arm/l2", "thing3")}
    assert ("arm/l1", "thing0") not in check.pairs
    assert ("arm/l0", "thing0") in check.pairs
    assert ("thing0", "arm/l0") in check.pairs
    assert ("arm/base", "arm/l1") in check.pairs
    kept = [whole.pairs[:].index(pair) for pair in check.pairs]
    np.testing.assert_array_equal(check.distances(Q), whole.distances(Q)[:, kept])
    why = check.pairs.why
    assert "may touch" in str(why("arm/l1", "thing0"))
    assert why("thing0", "l0").tested
    assert not why("thing0", "thing1").tested
    assert not why("arm/base", "thing1").tested
    assert why("arm/base", "arm/l1").tested


def test_a_robot_without_pairs_is_tested_against_obstacles() -> None:
    cell = robot()
    cell = cell.replace(rules=cell.rules.exclude("*", "*", reason="alone"))
    check = cell.collision()
    assert not len(check.pairs)
    given = things(3)
    expected = robot().collision().with_obstacles(given)
    theirs = [k for k, pair in enumerate(expected.pairs) if pair[1] in given]
    found = check.with_obstacles(given)
    assert list(found.pairs) == [expected.pairs[k] for k in theirs]
    np.testing.assert_array_equal(found.distances(Q), expected.distances(Q)[:, theirs])
    assert (found(Q) == (expected.distances(Q)[:, theirs].min(axis=1) <= 0.0)).all()


def test_nothing_is_compiled_or_sorted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    check = robot().collision()
    for seed in range(2):
        first = check.with_obstacles(things(seed))
        first(Q[0])
        first.motion(Q[0], Q[1])

    def refuse(*given: object, **named: object) -> None:
        raise AssertionError("Obstacles of the same kinds need none of this.")

    monkeypatch.setattr(compiler, "loaded", refuse)
    monkeypatch.setattr(pair_records.PairRecords, "of", refuse)
    monkeypatch.setattr(CheckTables, "of", refuse)
    monkeypatch.setattr(obstacles, "_layout", refuse)
    monkeypatch.setattr(pair_records.PipelineRecords, "extended", refuse)
    found = check.with_obstacles(things(7))
    found(Q[0])
    found.motion(Q[0], Q[1])


def test_the_work_does_not_grow_with_the_pairs_of_the_cell() -> None:
    counts: list[int] = []
    for links in (3, 9):
        cell = robot()
        arms = [
            arm.Manipulator(name=f"other{k}", links=cell.manipulators[0].links)
            for k in range(links // 3)
        ]
        rules = cell.rules
        for each in arms:
            rules = rules.include_self(each.name)
        cell = cell.replace(manipulators=[*cell.manipulators, *arms], rules=rules)
        check = cell.collision()
        q = np.zeros(len(check.state.q))
        for seed in range(2):
            check.with_obstacles(things(seed))(q)
        given = things(5)
        counts.append(lines(lambda c=check, q=q, o=given: c.with_obstacles(o)(q)))
    assert counts[1] < 1.2 * counts[0]
    assert counts[1] < 2500


def test_a_check_keeps_what_it_is_among() -> None:
    given = things(4)
    check = robot().collision(margin=0.01).with_obstacles(given)
    assert check.obstacles is not None
    assert check.obstacles.names == tuple(given)
    assert copy.deepcopy(check) is check
    sent = pickle.loads(pickle.dumps(check))
    np.testing.assert_array_equal(sent.distances(Q), check.distances(Q))
    assert sent.margin == 0.01
    assert digest(sent) == digest(check)
    fewer = check.with_obstacles({"thing0": given["thing0"]})
    assert digest(fewer) != digest(check)
    assert {b for _, b in fewer.pairs} & {*given} == {"thing0"}
    none = check.with_obstacles({})
    assert list(none.pairs) == list(robot().collision().pairs)
    np.testing.assert_array_equal(none(Q), robot().collision(margin=0.01)(Q))


@pytest.mark.parametrize(
    ("given", "allowed", "message"),
    [
        ([Sphere(radius=0.1)], (), "by name"),
        ({"": Sphere(radius=0.1)}, (), "text"),
        ({"a": 3.0}, (), "shape"),
        ({"a": []}, (), "shape"),
        ({"a": [Sphere(radius=0.1), None]}, (), "shape"),
        ({"arm/l1": Sphere(radius=0.1)}, (), "name of a link"),
        ({"a": Mesh(file="a.stl")}, (), "mesh"),
        ({"a": Sphere(radius=0.1)}, [("b", "arm/l1")], "'b'"),
        ({"a": Sphere(radius=0.1)}, [("a", "arm/l9")], "l9"),
        ({"a": Sphere(radius=0.1)}, ("a", "arm/l1"), "takes pairs of an obstacle"),
        ({"a": Sphere(radius=0.1)}, None, "takes pairs of an obstacle"),
    ],
)
def test_bad_obstacles_are_refused(given, allowed, message: str) -> None:
    check = robot().collision()
    with pytest.raises((ModelError, UnknownName), match=message):
        check.with_obstacles(given, allowed=allowed)


def test_violations_name_obstacles() -> None:
    cell, given = robot(), things(1)
    check = cell.collision().with_obstacles(given)
    q = Q[int(check.clearance(Q).argmin())]
    state = cell.home.replace(q=q)
    expected = [each.links for each in check.contacts(q)]
    found = cell.violations(state, obstacles=given)
    assert [each.links for each in found if each.kind == "collision"] == expected
    assert any(obstacle in given for _, obstacle in expected)
    # Without pairs of links, too; an obstacle that cannot be read is named.
    alone = cell.replace(rules=cell.rules.exclude("*", "*", reason="alone"))
    found = alone.violations(alone.home.replace(q=q), obstacles=given)
    assert [each.links for each in found] == [e for e in expected if e[1] in given]
    (untested,) = alone.violations(alone.home, obstacles={"a": Mesh(file="a.stl")})
    assert untested.kind == "untested"
    assert "a.stl" in str(untested)


def test_triangles_are_refused() -> None:
    with pytest.raises(ModelError, match="triangles"):
        robot().collision(exact=True).with_obstacles({"a": Sphere(radius=0.1)})
