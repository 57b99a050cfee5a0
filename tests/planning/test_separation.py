"""Proofs that no way joins positions of two or three joints, judged by fine grids."""

from __future__ import annotations

import functools
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import ndimage

import armillary as arm
from armillary.planning import separation
from armillary.planning.region import region_of
from armillary.planning.separation import separating_pairs
from armillary.shapes import Box, Capsule, Cylinder, HalfSpace, Sphere
from ball_arm import BALL, LENGTHS, among_balls, cell_of, centres, dense, free_positions

Array = np.ndarray
SIZE, PLACE = np.array([1.6, 0.16, 2.4]), np.array([1.0, 0.0, 0.0])
LIMIT = 2.6
SELDOM = "robot/link3"
PATIENT = 60.0  # [s]; answers take milliseconds, the first on a busy machine seconds


@functools.cache
def beside_a_wall() -> arm.Planner:
    wall = Box(size=tuple(SIZE.tolist()), pose=arm.Pose.translation(*PLACE))
    cell = cell_of([wall], limit=LIMIT)
    return cell.planner(cell.collision())


@functools.cache
def among() -> arm.Planner:
    cell = among_balls()
    return cell.planner(cell.collision())


def problems(planned: arm.Planner, fixed: list[str], count: int):
    Q = free_positions(planned.check, count)
    for start, end in pairwise(Q):
        goal = end.copy()
        for name in fixed:
            k = planned.check.cell.joint_names.index(name)
            goal[k] = start[k]
        if not planned.check(goal[None])[0]:
            yield start, goal


def is_in_wall(Q: Array) -> Array:
    """Return where a ball of the arm overlaps the wall, by formulas of their own."""
    beyond = np.abs(centres(Q) - PLACE) - 0.5 * SIZE
    far = np.linalg.norm(np.maximum(beyond, 0.0), axis=-1)
    return (far < BALL).any(axis=1)


def test_a_wall_separates_two_joints():
    planned, fixed = beside_a_wall(), ["robot/link2", SELDOM]
    count = 301
    ticks = np.linspace(-LIMIT, LIMIT, count)
    separated = 0
    for start, goal in problems(planned, fixed, 16):
        plan = planned(start, goal, fixed=fixed, timeout=PATIENT)
        if plan:
            assert not planned.check(dense(plan.q, 400)).any()
        if plan.reason is not arm.PlanReason.SEPARATED:
            continue
        separated += 1
        assert plan.pairs and not len(plan.q)
        # No neighbours among samples lead there, past corners neither.
        Q = np.tile(start, (ticks.size**2, 1))
        Q[:, :2] = np.stack(np.meshgrid(ticks, ticks, indexing="ij"), -1).reshape(-1, 2)
        is_free = ~(is_in_wall(Q) | planned.check(Q))
        labels, _ = ndimage.label(is_free.reshape(count, count), np.ones((3, 3)))
        at = np.rint((np.stack([start, goal])[:, :2] + LIMIT) / (ticks[1] - ticks[0]))
        first, last = (labels[tuple(row)] for row in at.astype(int))
        assert first != last or not first
    assert separated > 2


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [1e-3, 1e2])
def test_arms_of_any_size_are_separated(monkeypatch, size: float):
    usual, fixed = beside_a_wall(), ["robot/link2", SELDOM]
    monkeypatch.setattr("ball_arm.LENGTHS", tuple(size * x for x in LENGTHS))
    monkeypatch.setattr("ball_arm.BALL", size * BALL)
    pose = arm.Pose.translation(*(size * PLACE))
    cell = cell_of([Box(size=tuple((size * SIZE).tolist()), pose=pose)], limit=LIMIT)
    scaled = cell.planner(cell.collision())
    reasons = [
        [
            planned(*ends, fixed=fixed, timeout=PATIENT).reason
            for planned in (usual, scaled)
        ]
        for ends in problems(usual, fixed, 12)
        if not scaled.check(np.stack(ends)).any()
    ]
    assert [arm.PlanReason.SEPARATED] * 2 in reasons
    assert all(one is other for one, other in reasons)


def test_a_wall_separates_three_joints():
    planned = beside_a_wall()
    reasons = [
        planned(*ends, fixed=[SELDOM], timeout=1.0).reason  # of one nothing is known
        for ends in problems(planned, [SELDOM], 16)
    ]
    assert {arm.PlanReason.SEPARATED, arm.PlanReason.FOUND} <= set(reasons)


@pytest.mark.parametrize("fixed", [["robot/link2", SELDOM], [SELDOM]])
@pytest.mark.parametrize("made", [among, beside_a_wall])
def test_what_a_way_joins_is_not_separated(made, fixed: list[str]):
    planned, found = made(), 0
    cell = planned.check.cell
    for start, goal in problems(planned, fixed, 20):
        loop = planned._ways.loop(start, goal[None], region_of(cell, start, fixed, {}))
        space = loop.ground.space
        plan = planned(start, goal, fixed=fixed, timeout=0.2)
        if plan:
            found += 1
            limits, every = (space.lower, space.upper), np.ones(len(start), bool)
            ends = start, goal[None]
            assert separating_pairs(planned.check, limits, every, *ends, 0) is None
    assert found > 3


def test_calls_and_batches_say_the_same():
    planned = beside_a_wall()
    asked = {"fixed": [SELDOM], "timeout": 4.0}
    every = list(problems(planned, [SELDOM], 8))
    found = [planned(*pair, **asked) for pair in every]
    alone = [plan for plan in found if plan.reason is not arm.PlanReason.TIMED_OUT]
    pairs = [pair for pair, plan in zip(every, found, strict=True) if plan in alone]
    starts, goals = (np.stack([pair[k] for pair in pairs]) for k in range(2))
    batch = planned.batch(starts, goals, **asked | {"timeout": 60.0}, threads=2)
    for one, plan in zip(alone, batch, strict=True):
        assert one.reason is plan.reason and np.array_equal(one.q, plan.q)
    assert arm.PlanReason.SEPARATED in {plan.reason for plan in batch}


def pinned(last: arm.Limits, *more: arm.Link, fixed: tuple = ()) -> arm.Planner:
    """Return an arm of four joints whose last link cannot pass a pin of the third.

    Args:
        last: The limits of the last joint.
        more: Links that the last one carries; all pairs with the base are tested.
        fixed: Shapes of the base.
    """
    bar = Box(size=(0.2, 0.04, 0.04), pose=arm.Pose.translation(0.1, 0.0, 0.0))
    c, s = np.cos(1.0), np.sin(1.0)
    pin = Box(size=(0.04, 0.04, 0.3), pose=arm.Pose.translation(0.15 * c, 0.15 * s, 0))
    links = [arm.Link(name="base", collisions=fixed)]
    for k in range(4):
        # The pin is fixed to the link before the bar.
        shapes = {2: [pin], 3: [bar]}.get(k, [])
        limits = last if k == 3 else arm.Limits(lower=-2.0, upper=2.0)
        tilt = arm.Pose.rotation_x(np.pi / 2) if k < 3 else arm.Pose.identity()
        joint = arm.joints.Revolute(precursor=tilt)
        links.append(
            arm.Link(
                name=f"link{k}",
                parent=links[-1].name,
                joint=joint,
                limits=limits,
                collisions=shapes,
            )
        )
    links += more
    cell = arm.Cell(manipulators=[arm.Manipulator(name="robot", links=links)])
    rules = cell.rules.include("robot/link2", "robot/link3")
    for each in more:
        rules = rules.include("robot/base", f"robot/{each.name}")
    cell = cell.replace(rules=rules)
    return cell.planner(cell.collision())


def test_one_joint_of_many_separates_them():
    planned = pinned(arm.Limits(lower=-2.8, upper=2.8))
    rng = np.random.default_rng(0)
    Q = rng.uniform(-2.0, 2.0, (8, 4))
    Q[:, 3] = np.where(np.arange(8) % 3 == 0, 2.0, -0.5)  # the pin is at 1
    assert not planned.check(Q).any()
    for start, goal in pairwise(Q):
        plan = planned(start, goal, timeout=20.0)
        is_past = (start[3] > 1.0) != (goal[3] > 1.0)
        expected = arm.PlanReason.SEPARATED if is_past else arm.PlanReason.FOUND
        assert plan.reason is expected
        if is_past:
            assert {pair.links for pair in plan.pairs} == {
                ("robot/link2", "robot/link3")
            }


@pytest.mark.parametrize("count", [2, 4])
def test_pairs_of_which_nothing_is_known_prove_nothing(count: int):
    # A half space has no end, so that nothing bounds how fast the palm turns it.
    under = HalfSpace(pose=arm.Pose.translation(0.0, 0.0, -10.0))
    palm = arm.Link(name="palm", parent="link3", collisions=[under])
    limits = arm.Limits(lower=-2.8, upper=2.8)
    planned = pinned(limits, palm, fixed=(Sphere(radius=0.05),))
    names = planned.check.cell.joint_names
    pairs = [{*pair} for pair in planned.check.pairs]
    rates = planned.check.approach_rates(*planned.check.cell.limits)
    assert np.isinf(rates[pairs.index({"robot/base", "robot/palm"})]).all()
    assert not np.isnan(rates).any()
    start, goal = np.full((2, 4), 0.3)
    start[3], goal[3], goal[2] = -0.5, 2.0, -0.4
    fixed = [] if count == len(names) else names[: len(names) - count]
    plan = planned(start, goal, fixed=fixed, timeout=30.0)
    assert plan.reason is arm.PlanReason.SEPARATED


def test_a_shallow_wall_for_a_long_link_separates(monkeypatch):
    # The tip overlaps the wall by 6 mm, however the link is rolled, and its rolling
    # moves points no farther than from its axis.
    length, width = 1.4, 0.12
    roll = arm.Link(
        name="roll",
        parent="swing",
        joint=arm.joints.Revolute(axis=(1, 0, 0)),
        limits=arm.Limits(lower=-5.2, upper=5.2),
        collisions=[
            Box(
                size=(length, width, width),
                pose=arm.Pose.translation(0.5 * length, 0.0, 0.0),
            )
        ],
    )
    swing = arm.Link(
        name="swing",
        parent="base",
        joint=arm.joints.Revolute(axis=(0, 1, 0)),
        limits=arm.Limits(lower=-1.0, upper=1.0),
    )
    hand = arm.Link(
        name="hand",
        parent="roll",
        joint=arm.joints.Revolute(axis=(0, 0, 1)),
        limits=arm.Limits(lower=-1.0, upper=1.0),
    )
    turns = [
        arm.Link(
            name=f"turn{k}",
            parent="hand",
            joint=arm.joints.Revolute(axis=(1, 0, 0)),
            limits=arm.Limits(lower=-1.0, upper=1.0),
        )
        for k in range(2)
    ]
    wall = Box(
        size=(0.2, 1.0, 0.1), pose=arm.Pose.translation(length + 0.094, 0.0, 0.0)
    )
    robot = arm.Manipulator(
        name="robot", links=[arm.Link(name="base"), swing, roll, hand, *turns]
    )
    thing = arm.Manipulator(
        name="thing", links=[arm.Link(name="base", collisions=[wall])]
    )
    cell = arm.Cell(manipulators=[robot, thing])
    check = cell.collision()
    rates = check.approach_rates(*cell.limits)[0]
    np.testing.assert_allclose(rates[1], width / np.sqrt(2), rtol=1e-4)
    rows = 0
    distances_of = type(check).distances_of

    def counted(self, pairs, Q):
        nonlocal rows
        rows += len(Q)
        return distances_of(self, pairs, Q)

    monkeypatch.setattr(type(check), "distances_of", counted)
    start, goal = np.full((2, 5), 0.1)
    start[0], goal[0], goal[1] = -0.5, 0.5, 2.0
    limited = np.ones(5, np.bool_)
    found = separating_pairs(check, cell.limits, limited, start, goal[None], 0)
    assert found is not None and found.tolist() == [0]
    assert rows < 20_000
    # Where the wall ends before the tip does there is a way.
    lower = cell.limits[0].copy()
    lower[0] = 0.3
    start[0] = 0.4
    ends = start, goal[None], 0
    assert separating_pairs(check, (lower, cell.limits[1]), limited, *ends) is None


def test_a_shallow_wall_all_around_an_axis_separates():
    # The arm hangs from a mast: wherever it is turned about it, it cannot be folded
    # past the mast, whose foot is 3 mm too wide; as an UR5's hulls are.
    length = 0.5
    foot = Cylinder(radius=0.2, length=0.1, pose=arm.Pose.translation(0.0, 0.0, -0.3))
    rod = Capsule(
        radius=0.05,
        length=length,
        pose=arm.Pose.translation(0.247, 0.0, -0.5 * length),
    )
    links = [arm.Link(name="base")]
    turns = [(0, 0, 1), (1, 0, 0), (0, 0, 1), (1, 0, 0), (0, 0, 1)]
    for k, axis in enumerate(turns):
        links.append(
            arm.Link(
                name=f"link{k}",
                parent=links[-1].name,
                joint=arm.joints.Revolute(axis=axis),
                limits=arm.Limits(lower=-2.0 * np.pi, upper=2.0 * np.pi),
                collisions=[rod] if k == 1 else [],
            )
        )
    robot = arm.Manipulator(name="robot", links=links)
    mast = arm.Manipulator(
        name="mast", links=[arm.Link(name="base", collisions=[foot])]
    )
    cell = arm.Cell(manipulators=[robot, mast])
    check = cell.collision()
    limited, (start, goal) = np.ones(5, np.bool_), np.full((2, 5), 0.3)
    start[:2], goal[:2] = (-2.0, -2.0), (3.0, 2.0)
    assert not check(np.stack([start, goal])).any()
    found = separating_pairs(check, cell.limits, limited, start, goal[None], 0)
    assert found is not None and found.tolist() == [0]
    # The other way round is above the mast, where nothing is.
    goal[1] = 2.0 - 2.0 * np.pi
    assert separating_pairs(check, cell.limits, limited, start, goal[None], 0) is None
    assert cell.planner(check)(start, goal, timeout=None).success


def on_slides(*boxes: tuple[float, float, float, float]) -> arm.Cell:
    """Return a ball on two slides from 0 to 1 m among boxes, given by their ends."""
    slides = [
        arm.Link(
            name=name,
            parent=parent,
            joint=arm.joints.Prismatic(axis=axis),
            limits=arm.Limits(lower=0.0, upper=1.0),
            collisions=[Sphere(radius=0.01)] if name == "y" else [],
        )
        for name, parent, axis in (("x", "base", (1, 0, 0)), ("y", "x", (0, 1, 0)))
    ]
    robot = arm.Manipulator(name="robot", links=[arm.Link(name="base"), *slides])
    shapes = [
        Box(
            size=(right - left, top - low, 0.2),
            pose=arm.Pose.translation(0.5 * (left + right), 0.5 * (low + top), 0.0),
        )
        for left, right, low, top in boxes
    ]
    things = arm.Link(name="base", collisions=shapes)
    return arm.Cell(
        manipulators=[robot, arm.Manipulator(name="things", links=[things])]
    )


@pytest.mark.parametrize("gap", [3e-4, 1e-3, 3e-3, 1e-2])
def test_what_starts_beside_a_box_is_not_separated(monkeypatch, gap: float):
    # The box of positions that the start is in has its middle in an obstacle, and the
    # hole in the wall is narrower than boxes are.
    half = 0.01 + gap
    cell = on_slides(
        (0.1, 0.3, 0.3, 0.7),
        (0.58, 0.62, -0.1, 0.4 - half),
        (0.58, 0.62, 0.4 + half, 1.1),
    )
    check = cell.collision()
    assert check.motion((0.5, 0.4), (0.7, 0.4)).free
    limited, goal = np.ones(2, np.bool_), np.array([[0.9, 0.7]])
    for cells in (1 << 10, 1 << 12, 1 << 14):
        monkeypatch.setattr("armillary.planning.separation.CELLS", cells)
        for rows in (100, 300, 600):
            monkeypatch.setattr("armillary.planning.separation.ROWS_FOR_ALL", rows)
            for y in np.linspace(0.31, 0.69, 9):
                start = np.array([0.31 + 1e-5, y])
                ends = start, goal, 0
                assert separating_pairs(check, cell.limits, limited, *ends) is None


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_boxes_that_are_reached_are_those_of_one_component(axes: int):
    rng = np.random.default_rng(axes)
    for _ in range(200):
        shape = tuple(rng.integers(1, 14, axes).tolist())
        is_open = rng.random(shape) < rng.uniform(0.3, 1.0)
        start = tuple(int(rng.integers(count)) for count in shape)
        labels, _ = ndimage.label(is_open)
        wanted = is_open & (labels == labels[start]) & is_open[start]
        np.testing.assert_array_equal(separation._reached(is_open, start), wanted)


def test_no_deeper_wall_is_sought_when_time_is_over(monkeypatch):
    # Depths on a fine grid of an UR5's first joints took three times the timeout.
    cell = on_slides((0.58, 0.62, -0.1, 0.38), (0.58, 0.62, 0.42, 1.1))
    check, module = cell.collision(), separation
    over: list[bool] = []
    wall, reached = module._wall, module._reached
    sought: list[int] = []

    def late(*given: Any) -> Any:
        over.append(True)
        return wall(*given)

    def counted(*given: Any) -> Any:
        sought.append(len(over))
        return reached(*given)

    monkeypatch.setattr(module, "ROWS_FOR_ALL", 100)
    monkeypatch.setattr(module, "_wall", late)
    monkeypatch.setattr(module, "_reached", counted)
    monkeypatch.setattr(module, "is_over", lambda deadline: deadline > 0 and over)
    ends = np.array([0.3, 0.7]), np.array([[0.9, 0.7]])
    limited = np.ones(2, np.bool_)
    assert separating_pairs(check, cell.limits, limited, *ends, 1) is None
    assert over and sought and not sum(sought)


def test_of_joints_without_limits_nothing_is_said():
    planned = pinned(arm.Limits())
    start, goal = np.zeros(4), np.array([1.0, -1.0, 0.5, 2.0])
    plan = planned(start, goal, timeout=0.5)
    assert plan.reason in {arm.PlanReason.TIMED_OUT, arm.PlanReason.NOT_FOUND}
    turned = goal - [0.0, 0.0, 0.0, 2 * np.pi]
    assert planned(start, [goal, turned], timeout=20.0).goal == 1


def test_problems_without_a_way_leave_the_others_their_time():
    planned = pinned(arm.Limits(lower=-2.8, upper=2.8))
    starts = np.random.default_rng(1).uniform(-2.0, 2.0, (40, 4))
    goals = starts[::-1].copy()
    starts[:, 3], goals[:, 3] = -0.5, 0.2
    goals[:4, 3] = 2.0
    plans = planned.batch(starts, goals, timeout=60.0, threads=1)
    found = [plan.reason for plan in plans]
    assert found == [arm.PlanReason.SEPARATED] * 4 + [arm.PlanReason.FOUND] * 36


@pytest.mark.parametrize("soon", [10_000 * 2**k for k in range(8)])
def test_ways_that_a_batch_finds_late_are_those_of_calls(monkeypatch, soon: int):
    monkeypatch.setattr("armillary.planning.way_search.TIME_BEFORE_PROOF", soon)
    planned = among()
    every = list(problems(planned, [], 24))
    alone = [planned(*pair) for pair in every]
    assert all(alone)
    batch = planned.batch(*map(np.stack, zip(*every, strict=True)), threads=1)
    assert all(
        np.array_equal(one.q, plan.q) for one, plan in zip(alone, batch, strict=True)
    )
