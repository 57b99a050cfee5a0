"""Contacts, and slopes of distances compared with differences of distances."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import armillary as arm
from armillary.collision import link_twists, nearest_pairs
from armillary.kinematics.questions import jacobian
from armillary.shapes import (
    Box,
    Capsule,
    Cone,
    ConvexPolyhedron,
    Cylinder,
    Primitive,
    Sphere,
    distance,
)
from solids import without_meshes
from strategies import cells_and_states, laws

STEP = 1e-4


def check_slopes(check: Any, Q: np.ndarray) -> int:
    """Compare slopes where distances are smooth; return how many those are."""
    n = Q.shape[-1]
    found = check.gradients(Q)
    assert found.shape == (len(Q), len(check.pairs), n)
    steps = STEP * np.eye(n)
    far = [check.distances(Q[:, None] + k * steps) for k in (-2, -1, 1, 2)]
    slopes = (far[0] - 8 * far[1] + 8 * far[2] - far[3]) / (12 * STEP)
    one, two = (far[2] - far[1]) / (2 * STEP), (far[3] - far[0]) / (4 * STEP)
    slopes, one, two = (np.moveaxis(each, 1, -1) for each in (slopes, one, two))
    here = check.distances(Q)[..., None]
    # A depth that is an upper bound jumps, and so do distances between equal points.
    is_smooth = (np.abs(one - two) < 1e-5) & (here > 1e-3)
    error = np.abs(found - slopes)[is_smooth & ~np.isnan(slopes)]
    assert (error < 3e-5).sum() >= 0.99 * len(error), error.max()
    return int(is_smooth.sum())


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:No pair of links of")  # of random cells
@pytest.mark.filterwarnings("ignore:The links of each of these manipulators")
@given(cells_and_states(), st.integers(0, 2**32))
@laws(15)
def test_random_cells(drawn: Any, seed: int):
    cell, state = drawn
    check = without_meshes(cell).collision(state)
    rng = np.random.default_rng(seed)
    Q = rng.uniform(-1, 1, (3, len(cell.joint_names)))
    check_slopes(check, Q)


@pytest.mark.parametrize("name", ["five_bar", "ur5e_on_oval", "two_arms_positioner"])
def test_examples(name: str):
    cell = arm.example(name)
    shapes = [
        arm.shapes.Capsule(radius=0.02, length=0.1),
        arm.shapes.Box(size=(0.05, 0.04, 0.1)),
        arm.shapes.Sphere(radius=0.05),
    ]
    cell = cell.replace(
        manipulators=[
            m.replace(
                links=[
                    link.replace(collisions=[shapes[k % 3]])
                    for k, link in enumerate(m.links)
                ]
            )
            for m in cell.manipulators
        ],
        rules=arm.Rules.everything(),
    )
    Q = np.array(cell.home.q) + np.random.default_rng(0).uniform(
        -0.05, 0.05, (8, len(cell.joint_names))
    )
    assert check_slopes(cell.collision(), Q) > 20


def test_nan_stays_in_its_row():
    cell = arm.example("oval_track_cell")
    check = cell.collision()
    Q = np.tile(cell.home.q, (3, 1))
    expected = check.gradients(Q)
    Q[1] = np.nan
    found = check.gradients(Q)
    np.testing.assert_array_equal(found[[0, 2]], expected[[0, 2]])
    assert np.isnan(found[1]).any() or not len(check.pairs)


def scene(*shapes: Sequence[Primitive]) -> arm.Cell:
    """Links with some shapes each, that slide along x one after the other."""
    links = [arm.Link(name="rail")]
    for k, each in enumerate(shapes):
        links.append(
            arm.Link(
                name=f"link{k}",
                parent=links[-1].name,
                joint=arm.joints.Prismatic(
                    axis=(1, 0, 0), precursor=arm.Pose.rotation_y(0.2)
                ),
                primary=arm.Pose.translation(0.0, 0.1 * k, 0.0),
                collisions=each,
            )
        )
    robot = arm.Manipulator(name="m", links=links)
    return arm.Cell(manipulators=[robot], rules=arm.Rules.everything())


def mixed() -> list[list[Primitive]]:
    """Spheres and other shapes at the same links, of kinds in both orders."""
    ball = Sphere(name="ball", radius=0.1)
    side = Sphere(name="side", radius=0.05, pose=arm.Pose.translation(0, 0.2, 0.1))
    box = Box(name="box", size=(0.2, 0.1, 0.3), pose=arm.Pose.rotation_x(0.4))
    rod = Capsule(name="rod", radius=0.04, length=0.3)
    return [[ball, side], [box], [rod, side], [side, rod], [ball], [rod, box]]


def test_contacts_are_those_of_the_nearest_shapes():
    cell = scene(*mixed())
    check, q = cell.collision(), np.array([0.1, 0.3, 0.4, -0.2, 0.35, 0.1])
    links = {f"m/{link.name}": link for link in cell.manipulators[0].links}
    found = check.contacts(q, within=10.0)
    assert {each.links for each in found} == set(check.pairs)
    for each in found:
        a, b = (
            [
                (shape, cell.fk(name)(q) @ links[name].primary.matrix())
                for shape in links[name].collisions
            ]
            for name in each.links
        )
        pairs = [(s, t, distance(s, X, t, Y)) for s, X in a for t, Y in b]
        s, t, nearest = min(pairs, key=lambda pair: float(pair[2].value))
        assert each.shapes == (s.name, t.name)
        np.testing.assert_allclose(each.distance, nearest.value, atol=1e-12)
        np.testing.assert_allclose(each.points, nearest.points, atol=1e-9)
        np.testing.assert_allclose(each.normal, nearest.normal, atol=1e-9)
        assert not (each.points.flags.writeable or each.normal.flags.writeable)


def searched() -> list[list[Primitive]]:
    """Shapes without closed forms, several at each link."""
    pole = Cylinder(name="pole", radius=0.06, length=0.3)
    tip = Cone(name="tip", bottom=0.1, length=0.2, pose=arm.Pose.translation(0, 0.2, 0))
    points = 0.1 * np.random.default_rng(3).normal(size=(40, 3))
    hull = ConvexPolyhedron.around(points)
    aside = ConvexPolyhedron.around(points[::-1] + np.array([0.1, 0.1, 0.2]))
    rod = Capsule(name="rod", radius=0.04, length=0.3)
    return [[pole, tip], [hull], [rod, tip], [aside, pole], [tip]]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("within", [-0.02, 0.0, 0.03, 0.4])
def test_contacts_end_where_shapes_are_farther_apart(within: float):
    cell = scene(*searched())
    check, links = cell.collision(), cell.manipulators[0].links
    shapes = {f"m/{link.name}": (link, link.collisions) for link in links}
    rng, count = np.random.default_rng(5), 0
    for q in rng.uniform(-0.3, 0.3, (12, 5)):
        nearest = dict[tuple[str, str], float]()
        for names in check.pairs:
            placed = [
                [(s, cell.fk(name)(q) @ link.primary.matrix()) for s in each]
                for name, (link, each) in ((n, shapes[n]) for n in names)
            ]
            nearest[names] = min(
                float(distance(s, X, t, Y).value)
                for s, X in placed[0]
                for t, Y in placed[1]
            )
        found = {each.links: each.distance for each in check.contacts(q, within=within)}
        assert set(found) == {k for k, value in nearest.items() if value <= within}
        assert list(found.values()) == sorted(found.values())
        for name, value in found.items():
            assert value == pytest.approx(nearest[name], abs=2e-9)
        expected = [nearest[name] for name in check.pairs]
        np.testing.assert_allclose(check.distances(q), expected, rtol=0, atol=2e-9)
        count += len(found)
    assert count > 3


def calls_of(ask: Any) -> int:
    """Return how many functions of Python a call calls, the second time."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    ask()
    sys.setprofile(note)
    try:
        ask()
    finally:
        sys.setprofile(None)
    return count


def test_pairs_cost_no_calls_of_python_and_are_taken_in_parts(
    monkeypatch: pytest.MonkeyPatch,
):
    cell = scene(*mixed())
    whole, q = cell.collision(), np.array([0.1, 0.3, 0.4, -0.2, 0.35, 0.1])
    near = whole.contacts(q, within=0.3)
    assert len(whole.pairs) == 15 > len(near) > 2
    assert calls_of(lambda: whole.distances(q)) < 30
    assert calls_of(lambda: whole.gradients(q)) < 30
    assert calls_of(lambda: whole.contacts(q, within=0.3)) < 36 + 2 * len(near)

    # With room for fewer pairs than there are, answers are the same.
    for name in ("FEWEST", "MOST_CONTACTS", "MOST_NUMBERS"):
        monkeypatch.setattr(nearest_pairs, name, 4)
    parts = cell.collision()
    np.testing.assert_array_equal(parts.distances(q), whole.distances(q))
    np.testing.assert_array_equal(parts.gradients(q), whole.gradients(q))
    found = parts.contacts(q, within=0.3)
    assert list(map(str, found)) == list(map(str, near))
    q[4] = np.nan
    unknown = [np.isnan(each.distance) for each in parts.contacts(q, within=0.3)]
    assert sum(unknown) == np.isnan(whole.distances(q)).sum() > 0


def test_slopes_of_many_links_are_computed_in_parts():
    """Twists of so many links by so many joints are more than a kernel returns."""
    count = 110
    rng = np.random.default_rng(9)
    links = [arm.Link(name="base")]
    for k in range(count):
        axis = rng.normal(size=3)
        joint = arm.joints.Prismatic(
            axis=tuple((axis / np.linalg.norm(axis)).tolist()),
            precursor=arm.Pose.translation(*rng.uniform(-5.0, 5.0, 3).tolist()),
        )
        ball = Sphere(name="ball", radius=0.01)
        links.append(
            arm.Link(name=f"l{k}", parent="base", joint=joint, collisions=[ball])
        )
    robot = arm.Manipulator(name="m", links=links)
    check = arm.Cell(manipulators=[robot], rules=arm.Rules.everything()).collision()
    Q = rng.uniform(-0.5, 0.5, (2, count))
    found = check.gradients(Q)
    assert found.shape == (2, count * (count - 1) // 2, count)
    np.testing.assert_array_equal(check.gradients(Q[0]), found[0])

    # A ball moves along its axis: the slope is that part of it along the normal.
    axes = np.array([link.joint.axis for link in links[1:]])  # type: ignore[union-attr]
    starts = np.array([link.joint.precursor.position for link in links[1:]])  # type: ignore[union-attr]
    for q, slopes in zip(Q, found, strict=True):
        centres = starts + q[:, np.newaxis] * axes
        a, b = np.array(
            [[int(name.removeprefix("m/l")) for name in pair] for pair in check.pairs]
        ).T
        n = centres[b] - centres[a]
        n /= np.linalg.norm(n, axis=1, keepdims=True)
        expected, rows = np.zeros_like(slopes), np.arange(len(a))
        expected[rows, b] = (n * axes[b]).sum(axis=1)
        expected[rows, a] = -(n * axes[a]).sum(axis=1)
        np.testing.assert_allclose(slopes, expected, rtol=0.0, atol=1e-12)


def test_slopes_in_parts_are_the_same(monkeypatch: pytest.MonkeyPatch):
    cell = scene(*mixed())
    Q = np.random.default_rng(2).uniform(-0.3, 0.3, (3, 6))
    whole = cell.collision().gradients(Q)
    made: list[int] = []

    def counted(cell: Any, frames: Sequence[str], **options: Any) -> Any:
        made.append(len(frames))
        return jacobian(cell, frames, **options)

    monkeypatch.setattr(link_twists, "jacobian", counted)
    monkeypatch.setattr(link_twists, "MOST_NUMBERS", 80)  # of two links
    # Poses of seven links, results, and twists of six links by some joints.
    numbers = nearest_pairs.MOST_NUMBERS + 12 * 7
    for joints, parts in ((1, 1), (3, 3), (4, 3), (5, 3), (6, 6)):
        monkeypatch.setattr(nearest_pairs, "MOST_OF_ROW", numbers + 36 * joints)
        check = cell.collision()
        assert check._measures._slope_joints == parts  # type: ignore[union-attr]
        np.testing.assert_array_equal(check.gradients(Q), whole)
        np.testing.assert_array_equal(check.gradients(Q[1]), whole[1])
    assert made[:3] == [2, 2, 2]


def test_hulls_cost_no_calls_of_python():
    clouds = [np.random.default_rng(k).normal(size=(9 + k, 3)) for k in range(5)]
    hulls = [[ConvexPolyhedron.around(0.1 * cloud)] for cloud in clouds]
    check, q = scene(*hulls).collision(), np.zeros(5)
    assert len(check.pairs) == 10
    assert calls_of(lambda: check.distances(q)) < 30
