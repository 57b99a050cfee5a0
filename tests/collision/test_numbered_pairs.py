"""Distances of many pairs of one state, several pairs at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import armillary as arm
from armillary.collision import nearest_pairs, numbered_pairs
from armillary.collision.check import CollisionCheck
from armillary.collision.nearest_pairs import NearestPairs
from armillary.collision.numbered_pairs import NumberedPairs
from armillary.collision.placed_pairs import PlacedPairs
from armillary.model.primitive import Primitive
from armillary.shapes import Box, Capsule, HalfSpace, Sphere, distance
from armillary.testing.samples import random_pose

OBSTACLES = 14


def scene(*more: Primitive) -> arm.Cell:
    """Return an arm of boxes and capsules among others, and further obstacles."""
    rng = np.random.default_rng(5)
    links = [arm.Link(name="base", collisions=[Box(size=(0.2, 0.3, 0.1))])]
    for k in range(5):
        pose = arm.Pose.translation(0.0, 0.02, 0.1)
        shape = Capsule(radius=0.03, length=0.2, pose=pose)
        if k % 2:
            shape = Box(size=(0.05, 0.06, 0.2), pose=pose)
        joint = arm.joints.Revolute(
            axis=(0, k % 2, 1 - k % 2), precursor=arm.Pose.translation(0.02, 0, 0.3)
        )
        name, parent = f"l{k}", links[-1].name
        links.append(
            arm.Link(name=name, parent=parent, joint=joint, collisions=[shape])
        )
    shapes: list[Primitive] = []
    for k in range(OBSTACLES):
        x, y, z = rng.uniform(0.1, 0.3, 3).tolist()
        turned = arm.Pose.rotation_z(10.0 * x) @ arm.Pose.rotation_x(10.0 * y)
        pose = arm.Pose.translation(*rng.uniform(-0.6, 0.6, 3).tolist()) @ turned
        shapes.append(
            Capsule(radius=0.1 * x, length=z, pose=pose)
            if k % 3
            else Box(size=(x, y, z), pose=pose)
        )
    things = [
        arm.Manipulator(name=f"thing{k}", links=[arm.Link(name="body", collisions=[s])])
        for k, s in enumerate([*shapes, *more])
    ]
    cell = arm.Cell(manipulators=[arm.Manipulator(name="arm", links=links), *things])
    rules = cell.rules.exclude("thing*/*", "thing*/*", reason="fixed")
    rules = rules.exclude("arm/*", "arm/*", reason="never")
    return cell.replace(rules=rules.exclude("arm/base", "thing*/*", reason="fixed"))


CELL = scene()
Q = np.random.default_rng(6).uniform(-2.0, 2.0, (20, 5))


def measured(cell: arm.Cell, q: np.ndarray) -> np.ndarray:
    """Return the distance of each pair, from the poses of its links alone."""
    state = cell.home.replace(q=q)
    shapes = {
        f"{each.name}/{link.name}": link.collisions[0]
        for each in cell.manipulators
        for link in each.links
    }
    pairs = cell.collision().pairs
    return np.array(
        [
            distance(
                shapes[a], cell.pose(a, state), shapes[b], cell.pose(b, state)
            ).value
            for a, b in pairs
        ]
    )


def test_each_pair_has_its_distance() -> None:
    cell = scene(HalfSpace(pose=arm.Pose.translation(0.0, 0.0, 0.9)))
    check = cell.collision()
    assert len(check.pairs) >= numbered_pairs.FEWEST
    for q in Q[:3]:
        found = check.distances(q)
        np.testing.assert_allclose(found, measured(cell, q), rtol=0.0, atol=1e-14)
    assert (check.distances(Q) < 0.0).any()


def test_one_call_measures_each_kind_of_pairs_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check, calls = CELL.collision(), 0
    check.distances(Q[0])
    made = NumberedPairs.of(check._placed)
    assert made is not None
    assert [len(kind.pairs) for kind in made.kinds] == [27, 33, 10]

    def refuse(*_: object) -> None:
        raise AssertionError("Pairs are measured one after the other.")

    def counted(kernel: object) -> object:
        def call(*given: object) -> object:
            nonlocal calls
            calls += 1
            return kernel(*given)  # type: ignore[operator]

        return call

    monkeypatch.setattr(NearestPairs, "_measured", refuse)
    numbered = measures(check)
    other = numbered_pairs.NumberedPairs(
        numbered.kinds,
        numbered.lock,
        numbered.links,
        tuple(map(counted, numbered.kernels)),  # type: ignore[arg-type]
    )
    monkeypatch.setitem(vars(check._measures), "_numbered", other)
    np.testing.assert_array_equal(check.distances(Q[1]), numbered.distances(X(Q[1])))
    assert calls == len(made.kinds)


def measures(check: CollisionCheck) -> NumberedPairs:
    """Return what measures the pairs of a check."""
    assert isinstance(check._measures, NearestPairs)
    assert check._measures._numbered is not None
    return check._measures._numbered


def X(q: np.ndarray) -> np.ndarray:
    """Return the poses of the moving links of the cell."""
    return CELL.collision()._placed.poses_at(q)


def test_a_call_gives_its_row_of_a_batch_to_the_bit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check = CELL.collision()
    rows = check.distances(Q)
    np.testing.assert_array_equal([check.distances(q) for q in Q], rows)
    monkeypatch.setattr(nearest_pairs, "MANY", 1)
    np.testing.assert_array_equal(check.distances(Q), rows)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_distances_of_unknown_poses_are_nan(number: float) -> None:
    check, q = CELL.collision(), Q[0].copy()
    q[3] = number
    found, known = check.distances(q), check.distances(Q[0])
    moved = [{"arm/l3", "arm/l4"} & {*pair} != set() for pair in check.pairs]
    np.testing.assert_array_equal(np.isnan(found), moved)
    assert 0 < sum(moved) < len(moved)
    np.testing.assert_array_equal(found[~np.isnan(found)], known[~np.isnan(found)])
    # Only the row of a batch that has it.
    Q2 = np.array([Q[0], q])
    np.testing.assert_array_equal(check.distances(Q2), [known, found])


def test_threads_ask_at_the_same_time() -> None:
    check = CELL.collision()
    expected = check.distances(Q)
    numbered = measures(check)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(10):
            np.testing.assert_array_equal([*pool.map(check.distances, Q)], expected)
    # As if another thread were asking.
    with numbered.lock:
        np.testing.assert_array_equal(check.distances(Q[0]), expected[0])


def test_moved_bodies_are_measured_where_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nearest_pairs, "FIRST_PAIRS", 0)
    rng = np.random.default_rng(8)
    state = CELL.home
    for k in (0, 3, 4):
        state = state.place(f"thing{k}", random_pose(rng))
        check = CELL.collision(state)
        found = check.distances(Q[k])
        assert (found != CELL.collision().distances(Q[k])).any()
        np.testing.assert_array_equal(found, check.distances(Q[k : k + 2])[0])


def test_few_calls_with_a_state_make_no_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, of, last = 0, NumberedPairs.of, CELL.collision()

    def counted(pairs: PlacedPairs) -> NumberedPairs | None:
        nonlocal made
        made += 1
        return of(pairs)

    last.distances(Q[0])
    monkeypatch.setattr(NumberedPairs, "of", counted)
    box = Box(size=(0.1, 0.1, 0.1), pose=arm.Pose.translation(0.3, 0.0, 0.5))
    rng = np.random.default_rng(4)
    states = [CELL.home.place("thing1", random_pose(rng)) for _ in range(3)]
    checks = [CELL.collision(state) for state in states]
    for check in (*checks, last.with_obstacles({"box": box})):
        expected = check.distances(Q)
        for _ in range((nearest_pairs.FIRST_PAIRS - 1) // len(check.pairs)):
            np.testing.assert_array_equal(check.distances(Q[0]), expected[0])
        assert made == 0
    # Of more calls the first makes them.
    for q, row in zip(Q[:3], checks[0].distances(Q), strict=False):
        np.testing.assert_array_equal(checks[0].distances(q), row)
        assert made == 1


@pytest.mark.parametrize("kinds", [(Box,), (Capsule, Box)])
def test_obstacles_are_measured_beside_bodies_of_the_same_kinds(
    kinds: tuple[type[Primitive], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest_pairs, "FIRST_PAIRS", 0)
    check, rng = CELL.collision(), np.random.default_rng(3)
    # The second time, obstacles have other sizes and places.
    for _ in range(2):
        obstacles: dict[str, Primitive] = {}
        for k in range(OBSTACLES):
            pose, size = random_pose(rng), float(rng.uniform(0.02, 0.2))
            is_box = kinds[k % len(kinds)] is Box
            obstacles[f"it{k}"] = (
                Box(size=(size, 0.1, 0.05), pose=pose)
                if is_box
                else Capsule(radius=0.1 * size, length=size, pose=pose)
            )
        among = check.with_obstacles(obstacles)
        found, count = among.distances(Q[0]), len(check.pairs)
        np.testing.assert_array_equal(found, among.distances(Q)[0])
        np.testing.assert_array_equal(found[:count], check.distances(Q[0]))
        state = CELL.home.replace(q=Q[0])
        links = {f"arm/{each.name}": each for each in CELL.manipulators[0].links}
        expected = [
            distance(
                links[a].collisions[0],
                CELL.pose(a, state),
                obstacles[b],
                np.eye(4),
            ).value
            for a, b in among.pairs[count:]
        ]
        np.testing.assert_allclose(found[count:], expected, rtol=0.0, atol=1e-14)


def test_pairs_of_spheres_or_of_few_links_have_code_of_their_own() -> None:
    few = CELL.replace(rules=CELL.rules.exclude("arm/*", "thing*/*", reason="few"))
    balls = scene(Sphere(radius=0.1))
    assert NumberedPairs.of(few.collision()._placed) is None
    assert NumberedPairs.of(balls.collision()._placed) is not None
    more = arm.Manipulator(
        name="ball", links=[arm.Link(name="body", collisions=[Sphere(radius=0.1)])]
    )
    both = balls.replace(manipulators=[*balls.manipulators, more])
    assert NumberedPairs.of(both.collision()._placed) is None
