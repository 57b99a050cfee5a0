"""Limits that couple joints: what they refuse, their rows, and what is left."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import armillary as arm
from armillary.errors import ArmillaryError, ModelError, ShapeError
from armillary.model.limit_rows import LimitRows

TURN = arm.joints.Revolute(axis=(0, 0, 1))
SLIDE = arm.joints.Prismatic(axis=(1, 0, 0))
UNIT = arm.Limits(lower=-1.0, upper=1.0)


def chain(name: str = "arm", **fields: Any) -> arm.Manipulator:
    """A slide and two hinges, one that follows the first hinge, and a fixed one."""
    links = [
        arm.Link(name="base"),
        arm.Link(name="rail", parent="base", joint=SLIDE, limits=UNIT),
        arm.Link(name="j2", parent="rail", joint=TURN, limits=UNIT),
        arm.Link(name="j3", parent="j2", joint=TURN, limits=UNIT),
        arm.Link(
            name="follower",
            parent="j3",
            joint=TURN,
            coupling=arm.Coupling(of="j2", multiplier=-2.0, offset=0.25),
        ),
        arm.Link(name="plate", parent="follower"),
    ]
    return arm.Manipulator(name=name, links=links, **fields)


def limit(joints: Any, **options: Any) -> arm.CoupledLimit:
    return arm.CoupledLimit(joints=joints, **options)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"joints": {"a": 0.0, "b": 0}, "upper": 1}, "no coefficient other than 0"),
    ({"joints": {}, "upper": 1}, "no coefficient other than 0"),
    ({"joints": {"a": 1}, "lower": 2, "upper": 1}, "swapped: lower 2 is above upper 1"),
    ({"joints": {"a": 1}, "lower": 1, "upper": 1}, "give a joint a Coupling"),
    ({"joints": {"a": 1}}, "neither lower= nor upper="),
    ({"joints": {"a": 1}, "upper": np.nan}, "is NaN"),
    ({"joints": {"a": np.inf}, "upper": 1}, "not finite"),
    ({"joints": {"a": "x"}, "upper": 1}, "takes numbers for coefficients"),
    ({"joints": {"a": 1}, "lower": np.inf}, "leaves nothing"),
    ({"joints": ["a", "b"], "coefficients": [1.0], "upper": 1}, "2 joints and has 1"),
    ({"joints": ["a", "a"], "coefficients": [1, 1], "upper": 1}, "a joint twice"),
    ({"joints": {"a": 1}, "coefficients": [1.0], "upper": 1}, "leave those out"),
    ({"joints": "ab", "coefficients": [1, 1], "upper": 1}, "a list of joints"),
    ({"joints": {1: 1}, "upper": 1}, "names of joints, not 1"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_limits_nothing_or_everything_is_refused(
    options: dict[str, Any], message: str
):
    with pytest.raises(ModelError, match=message):
        arm.CoupledLimit(**options)


def test_a_limit_says_what_it_is():
    elbow = limit({"j2": 1, "j3": -0.5}, lower=-1, upper=2.5)
    assert str(elbow) == "-1 <= j2 - 0.5 j3 <= 2.5"
    assert str(limit({"j2": -1}, upper=1, name="e")) == "-j2 <= 1"
    assert elbow.label == "j2 - 0.5 j3"
    assert elbow == limit(["j2", "j3"], coefficients=[1, -0.5], lower=-1, upper=2.5)
    assert pickle.loads(pickle.dumps(elbow)) == elbow


UNFIT: list[tuple[list[arm.CoupledLimit], str]] = [
    ([limit({"j9": 1}, upper=1)], "no joint named 'j9'"),
    ([limit({"j2": 1, "plate": 1}, upper=1)], "'plate' is fixed"),
    ([limit({"follower": 1, "j2": 2}, upper=1)], "their sum is constant"),
    ([limit({"j2": 1, "j3": 1}, lower=2.5)], "leave no room within the limits"),
    ([limit({"j2": 1, "j3": 1}, lower=2.0)], "only some on the edge"),
    (
        [limit({"j2": 1, "j3": 1}, lower=0.5), limit({"j2": 1, "j3": 1}, upper=0.25)],
        "leave no room",
    ),
    ([limit({"j2": 1}, upper=0.5, name="e")] * 2, "Two coupled limits are called 'e'"),
]


@pytest.mark.parametrize(("limits", "message"), UNFIT)
def test_what_does_not_fit_a_manipulator_is_refused(
    limits: list[arm.CoupledLimit], message: str
):
    with pytest.raises(ModelError, match=message):
        chain(coupled_limits=limits)


def test_rows_are_of_q_and_followers_count_by_what_moves_them():
    # follower = 0.25 - 2 j2, so j3 - follower <= 1 says j3 + 2 j2 <= 1.25.
    made = chain(coupled_limits=[limit({"j3": 1, "follower": -1}, lower=-1, upper=1)])
    rows = made.limit_rows
    assert np.array_equal(rows.A, [[0, 2, 1], [0, -2, -1]])
    assert np.array_equal(rows.b, [1.25, 0.75])
    cell = arm.Cell(manipulators=[chain("first"), made])
    assert np.array_equal(cell.limit_rows.A[:, 3:], rows.A)
    assert not cell.limit_rows.A[:, :3].any()
    assert set(cell.limit_rows.labels) == {"arm/j3 - follower"}
    assert not cell.limit_rows.A.flags.writeable


def test_passive_joints_are_refused():
    palletiser = arm.example("palletiser").manipulators[0]
    with pytest.raises(ModelError, match="passive: loops determine it"):
        palletiser.replace(coupled_limits=[limit({"forearm": 1}, upper=1)])


def test_limits_between_manipulators_are_those_of_the_cell():
    cars = [chain("left"), chain("right")]
    apart = limit({"right/rail": 1, "left/rail": -1}, lower=0.5, name="apart")
    cell = arm.Cell(manipulators=cars, coupled_limits=[apart])
    assert np.array_equal(cell.limit_rows.A, [[1, 0, 0, -1, 0, 0]])
    assert np.array_equal(cell.limit_rows.b, [-0.5])
    assert cell.coupled_limits == (apart,)
    with pytest.raises(ModelError, match="'rail' is not unique; say 'left/rail'"):
        cell.replace(coupled_limits=[limit({"rail": 1}, upper=0)])
    # What names a manipulator goes with it; what names none of it stays.
    assert cell.remove("left").coupled_limits == ()
    assert cell.add(chain("third")).remove("third").coupled_limits == (apart,)
    with pytest.raises(ArmillaryError, match="no joint named 'left/rail'"):
        cell.exchange(arm.Manipulator(name="left", links=[arm.Link(name="base")]))


def test_home_is_within_them():
    made = chain(coupled_limits=[limit({"rail": 1, "j2": 1}, lower=1.0)])
    assert np.allclose(made.home_q, [0.5, 0.5, 0.0])
    cell = arm.Cell(manipulators=[made])
    assert cell.within_limits(cell.home.q)


@pytest.mark.parametrize("joints", [{"rail": 2.0}, {"rail": 1, "j2": 3}, {"j2": 1}])
def test_scaling_lengths_scales_them(joints: dict[str, float]):
    made = chain(coupled_limits=[limit(joints, lower=-0.7, upper=0.9)])
    large = made.scaled(10.0)
    q = np.random.default_rng(0).uniform(-1, 1, (200, 3))
    same = made.limit_rows.holds(q)
    assert 0 < same.sum() < len(q)
    assert np.array_equal(large.limit_rows.holds(q * [10, 1, 1]), same)
    cell = arm.Cell(
        manipulators=[chain()], coupled_limits=[limit(joints, lower=-0.7, upper=0.9)]
    )
    assert np.array_equal(cell.scaled(10.0).limit_rows.holds(q * [10, 1, 1]), same)


def test_states_report_them():
    made = chain(coupled_limits=[limit({"j2": 1, "j3": 1}, upper=0.5, name="elbow")])
    cell = arm.Cell(manipulators=[made])
    state = cell.home.replace(q=[0.0, 0.5, 0.25])
    (broken,) = cell.violations(state, collisions=False)
    assert (broken.kind, broken.subject) == ("coupled", "arm/elbow")
    assert (broken.value, broken.limit) == (0.75, 0.5)
    assert "j2 + j3 is 0.75, above its upper limit 0.5" in str(broken)
    assert cell.violations(state, collisions=False, tolerance=0.3) == ()
    with pytest.raises(arm.errors.StateError, match="elbow"):
        cell.home.replace(q=[0.0, 0.5, 0.25], check_limits=True)
    low = cell.home.replace(q=[0.0, -1.0, -1.0])
    assert cell.violations(low, collisions=False) == ()


def test_within_limits_is_what_states_say():
    made = chain(coupled_limits=[limit({"j2": 1, "j3": -2}, lower=-0.5, upper=0.75)])
    cell = arm.Cell(manipulators=[made])
    Q = np.random.default_rng(1).uniform(-1.2, 1.2, (300, 3))
    said = [not cell.violations(cell.home.replace(q=q), collisions=False) for q in Q]
    followers = np.abs(0.25 - 2 * Q[:, 1]) < np.inf
    assert np.array_equal(cell.within_limits(Q) & followers, said)
    assert cell.within_limits(Q.reshape(30, 10, 3)).shape == (30, 10)
    assert not cell.within_limits([np.nan, 0, 0])
    with pytest.raises(ShapeError, match=r"takes q of shape \(\.\.\., 3\)"):
        cell.within_limits(np.zeros(4))


# the polytope, by another solver of linear programs


def polytopes(count: int) -> list[tuple[LimitRows, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    made: list[tuple[LimitRows, np.ndarray, np.ndarray]] = []
    while len(made) < count:
        n, m = rng.integers(1, 7), rng.integers(1, 5)
        A = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.7)
        A = A[(A != 0.0).any(axis=1)]
        low, high = -2.0 * rng.random(n), 2.0 * rng.random(n)
        low[rng.random(n) < 0.2], high[rng.random(n) < 0.2] = -np.inf, np.inf
        stuck = (rng.random(n) < 0.1) & np.isfinite(low)
        high[stuck] = low[stuck]
        if len(A) and not stuck.all():
            b = rng.normal(size=len(A))
            made.append((LimitRows.of(A, b, ["row"] * len(A), n), low, high))
    return made


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_rows_of_any_size_are_limits(scale: float):
    """A multiple of a row is the same row, though its square is no number."""
    row = limit({"j2": scale, "j3": scale}, lower=-scale, upper=scale)
    cell = arm.Cell(manipulators=[chain(coupled_limits=[row])])
    inside, beyond = (cell.home.replace(q=[0.0, x, x]) for x in (0.4, 0.6))
    assert cell.violations(inside) == ()
    assert len(cell.violations(beyond)) == 1


def test_room_is_that_of_another_solver():
    empty = 0
    for rows, low, high in polytopes(60):
        free = low < high
        A, b = rows.A[:, free], rows.b - rows.A[:, ~free] @ low[~free]
        lengths = np.linalg.norm(A, axis=1)
        eye = np.eye(free.sum())
        G = np.vstack([A, eye, -eye])
        h = np.concatenate([b, high[free], -low[free]])
        size = np.concatenate([lengths, np.ones(2 * len(eye))])
        known = np.isfinite(h)
        found = linprog(
            np.append(np.zeros(len(eye)), -1.0),
            A_ub=np.column_stack([G, size])[known],
            b_ub=h[known],
            bounds=[(None, None)] * len(eye) + [(None, 1.0)],
        )
        radius = -found.fun if found.status == 0 else -1.0
        room = rows.room_within(low, high)
        assert (room.radius > 0.0) == (radius > 1e-9)
        empty += radius <= 1e-9
        if radius > 1e-9:
            assert abs(room.radius - radius) < 1e-8
            assert rows.holds(room.centre)
            assert ((room.centre >= low) & (room.centre <= high)).all()
    assert empty > 5


def test_reach_and_nearest_are_those_of_another_solver():
    q = np.random.default_rng(2).normal(size=(4, 6)) * 3.0
    exact = total = 0
    for rows, low, high in polytopes(40):
        n = len(low)
        if rows.room_within(low, high).radius <= 0.0:
            continue
        ends = list(zip(low, high, strict=True))
        for k, (least, most) in enumerate(np.transpose(rows.reach(low, high))):
            for sign, value in ((1.0, least), (-1.0, most)):
                found = linprog(
                    sign * np.eye(n)[k], A_ub=rows.A, b_ub=rows.b, bounds=ends
                )
                expected = sign * found.fun if found.status == 0 else -sign * np.inf
                assert value == expected or abs(value - expected) < 1e-8
        near = rows.nearest(q[:, :n], low, high)
        assert rows.holds(near).all()
        assert ((near >= low) & (near <= high)).all()
        for given, x in zip(q[:, :n], near, strict=True):
            # Of the nearest x no other point of the polytope is on the side of `given`.
            found = linprog(x - given, A_ub=rows.A, b_ub=rows.b, bounds=ends)
            gap = (x - given) @ x - found.fun if found.status == 0 else np.inf
            exact += gap < 1e-6 * (1.0 + np.linalg.norm(given - x))
            total += 1
    assert total > 60
    assert exact > 0.95 * total
