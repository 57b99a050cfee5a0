"""Planners whose scene changes: what they know is that of a cell edited in full."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import armillary as arm
from armillary.collision import pair_records
from armillary.collision.edge_layout import EdgeLayout
from armillary.kernel import compiler
from armillary.kernel.column_function import ColumnFunction
from armillary.kernel.tables import Table
from armillary.planning import way_search
from armillary.shapes import Box, Capsule, Cylinder, Primitive, Sphere
from armillary.testing.samples import random_pose
from ball_arm import among_balls, free_positions
from column_calls import called
from work import lines

Array = np.ndarray
LINKS = 3
NAMES = tuple(f"arm/l{k}" for k in range(LINKS))
START, GOAL = np.array([-1.4, 0.2, 0.1]), np.array([1.4, -0.2, 0.2])


def robot() -> arm.Manipulator:
    """Return an arm of balls and a capsule."""
    links = [arm.Link(name="base", collisions=[Box(size=(0.2, 0.2, 0.2))])]
    for k in range(LINKS):
        joint = arm.joints.Revolute(
            axis=(0, k % 2, 1 - k % 2), precursor=arm.Pose.translation(0.25, 0, 0.1)
        )
        shapes: list[Primitive] = [
            Sphere(radius=0.06, pose=arm.Pose.translation(0.1, 0, 0)),
            Sphere(radius=0.06, pose=arm.Pose.translation(0.2, 0, 0)),
            Capsule(radius=0.04, length=0.1),
        ]
        links.append(
            arm.Link(
                name=f"l{k}",
                parent=links[-1].name,
                joint=joint,
                limits=arm.Limits(lower=-3.0, upper=3.0),
                collisions=shapes[: 3 - k % 2],
            )
        )
    return arm.Manipulator(name="arm", links=links)


def new_cell() -> arm.Cell:
    """Return the arm and three boxes that states move, as a cell that knows nothing."""
    boxes = [
        arm.Manipulator(
            name=f"box{k}",
            links=[arm.Link(name="body", collisions=[Box(size=(0.1, 0.2, 0.15))])],
        )
        for k in range(3)
    ]
    away = [arm.Pose.translation(0.2 * k, 3.0, 0.0) for k in range(3)]
    mounts = [
        arm.Mount(manipulator=f"box{k}", bolted=False, pose=X)
        for k, X in enumerate(away)
    ]
    cell = arm.Cell(manipulators=[robot(), *boxes], mounts=mounts)
    rules = cell.rules.exclude("box*/*", "box*/*", reason="apart")
    return cell.replace(rules=rules.include("arm/base", "arm/l2"))


@functools.cache
def cell() -> arm.Cell:
    return new_cell()


def near(rng: np.random.Generator) -> arm.Pose:
    at = rng.uniform((-0.9, -0.9, -0.5), (0.9, 0.9, 0.9))
    return arm.Pose(random_pose(rng).rotation, tuple(at.tolist()))


def things(
    rng: np.random.Generator, count: int, kinds: int = 3
) -> dict[str, Primitive]:
    """Return obstacles, of so many kinds in turn."""
    made: dict[str, Primitive] = {}
    for k in range(count):
        size, X = float(rng.uniform(0.05, 0.15)), near(rng)
        made[f"thing{k}"] = (
            Box(size=(size, 2 * size, size), pose=X),
            Sphere(radius=size, pose=X),
            Capsule(radius=size, length=0.2, pose=X),
            Cylinder(radius=size, length=0.1, pose=X),
        )[k % kinds]
    return made


STEPS = 14
COUNTS = ((0, 3), (6, 3), (6, 3), (6, 1), (3, 4))
"""How many obstacles a scene has, and of how many kinds."""


def state_at(cell: arm.Cell, step: int) -> arm.State:
    """Return the state of a cell with the arm and boxes after some changes."""
    rng, state = np.random.default_rng(1), cell.home
    for k in range(step + 1):
        if k == 4:
            state = state.place("arm", arm.Pose.rotation_z(0.4))
        elif k == 7:
            state = state.attach("box1", "arm/l2", pose=arm.Pose.translation(0.4, 0, 0))
        elif k == 10:
            state = state.release("box1")
        else:
            names = [f"box{i}" for i in range(3) if f"box{i}" not in state.attachments]
            state = state.place_all({name: near(rng) for name in names[: 1 + k % 2]})
    return state


def obstacles_at(step: int) -> dict[str, Primitive]:
    return things(np.random.default_rng(step), *COUNTS[step % len(COUNTS)])


def check_at(cell: arm.Cell, step: int) -> arm.CollisionCheck:
    """Return the check of a step; obstacles are around the cell."""
    check = cell.collision(state_at(cell, step), margin=0.01 * (step % 3 == 0))
    given = obstacles_at(step)
    return check.with_obstacles(given) if given else check


def edited_at(step: int) -> arm.CollisionCheck:
    """Return the same of a cell that has the obstacles as links."""
    made, given = new_cell(), obstacles_at(step)
    for name, shape in given.items():
        link = arm.Link(name="it", collisions=[shape])
        made = made.add(arm.Manipulator(name=name, links=[link]))
    state = state_at(made, step)
    held = [f"{name}/body" for name in state.attachments]
    still = ["arm/base", *(f"{name}/it" for name in given)]
    still += [f"box{k}/body" for k in range(3) if f"box{k}/body" not in held]
    rules = made.rules
    for name in given:
        for other in still:
            if other != f"{name}/it":
                rules = rules.exclude(f"{name}/it", other, reason="both stand")
        for link in (*NAMES, *held):
            rules = rules.include(f"{name}/it", link)
    made = made.replace(rules=rules)
    return made.collision(state_at(made, step), margin=0.01 * (step % 3 == 0))


def codes_of(check: arm.CollisionCheck) -> list[ColumnFunction]:
    lower, upper = check.cell.limits
    proofs = check.motion_columns(lower, upper)
    found = (
        check.edge_columns(pad=1e-3),
        check.edge_columns(),
        proofs and proofs.now(),
        check.edge_proof_columns(lower, upper),
    )
    assert found[0] and found[1] and found[2]
    return [code for code in found if code is not None]


def numbers_of(code: ColumnFunction) -> dict[tuple[str, str], Array]:
    """Return all that the records of code have, but for addresses."""
    return {
        (name, field): records[field]
        for name, records in code.records.items()
        for field in records.dtype.names or ()
        if field != "distance"
    }


def test_records_are_those_of_a_cell_that_knows_nothing() -> None:
    for step in range(STEPS):  # each changes the scene of the step before
        codes, others = (
            codes_of(check_at(each, step)) for each in (cell(), new_cell())
        )
        for code, other in zip(codes, others, strict=True):
            mine, theirs = numbers_of(code), numbers_of(other)
            assert list(mine) == list(theirs)
            for key, values in mine.items():
                name = f"{key} in step {step}"
                np.testing.assert_array_equal(values, theirs[key], err_msg=name)


def test_records_after_a_part_was_turned_in_its_grip() -> None:
    # The sphere around it stays where it is; the capsule does not.
    for angle in (0.0, 1.5):
        X = arm.Pose.translation(0.4, 0, 0) @ arm.Pose.rotation_x(angle)
        codes, others = (
            codes_of(each.collision(each.home.attach("box1", "arm/l2", pose=X)))
            for each in (cell(), new_cell())
        )
        for code, other in zip(codes, others, strict=True):
            theirs = numbers_of(other)
            for key, values in numbers_of(code).items():
                np.testing.assert_array_equal(values, theirs[key], err_msg=str(key))


@pytest.mark.parametrize("step", range(0, STEPS, 2))
def test_verdicts_are_those_of_a_cell_with_the_obstacles(step: int) -> None:
    check, other = check_at(cell(), step), edited_at(step)
    wide, tight, _, *quick = codes_of(check)
    rng = np.random.default_rng(step)
    for _ in range(30):
        Q = rng.uniform(-3.0, 3.0, LINKS) + rng.normal(0.0, 0.02, (tight.lanes, LINKS))
        gap = other.clearance(Q).min() - other.margin
        for code, more in ((wide, 1e-3), (tight, 0.0)):
            if abs(gap - more) > 1e-4:  # else rounding decides
                found = bool((called(code, Q) > 0.0).any())
                assert found == (gap < more)
    t = np.linspace(-1.0, 1.0, 41)[:, None]
    for _ in range(20 * len(quick)):
        q, way = rng.uniform(-2.5, 2.5, LINKS), rng.normal(0.0, 1.0, LINKS)
        half = rng.uniform(0.0, 0.05)
        parts = q, way, np.array([half])
        rows = [np.tile(each, (quick[0].lanes, 1)) for each in parts]
        if called(quick[0], *rows)[0] == 0.0:
            assert other.clearance(q + half * t * way).min() > other.margin


def test_ways_and_timed_ways_are_free_in_each_scene() -> None:
    found = 0
    for step in range(1, STEPS, 2):
        check, other = check_at(cell(), step), edited_at(step)
        if other(START) or other(GOAL):
            continue
        plan = cell().planner(check)(START, GOAL, timeout=None)
        if not plan.success:  # as many samples as are allowed
            continue
        found += 1
        assert plan.proven
        assert other.motion(plan.q[:-1], plan.q[1:]).free.all()
        motion = plan.timed(velocity=1.0, acceleration=4.0)
        q = motion.at(np.linspace(0.0, motion.duration, 200)).q
        assert not other(q).any()
    assert found >= 3


def test_another_scene_packs_and_sorts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    check = cell().collision()
    # A busy machine would ask for distances, of which nothing is known.
    monkeypatch.setattr(way_search, "TIME_BEFORE_PROOF", 3600 * 10**9)

    def planned(seed: int, count: int = 6) -> arm.Plan:
        given = things(np.random.default_rng(seed), count)
        return cell().planner(check.with_obstacles(given))(START, GOAL, timeout=None)

    planned(0)

    def refuse(*given: object, **named: object) -> None:
        raise AssertionError("Other obstacles of the same kinds need none of this.")

    monkeypatch.setattr(compiler, "loaded", refuse)
    monkeypatch.setattr(Table, "pack", refuse)
    monkeypatch.setattr(Table, "extended", refuse)
    monkeypatch.setattr(EdgeLayout, "_made", refuse)
    monkeypatch.setattr(pair_records.PairRecords, "of", refuse)
    planned(1)
    with pytest.raises(AssertionError):
        planned(2, 7)


def test_the_work_of_a_scene_is_that_of_its_obstacles() -> None:
    other = robot()
    two = new_cell().add(arm.Manipulator(name="other", links=other.links))
    two = two.replace(rules=two.rules.include_self("other"))
    counts: list[int] = []
    for each, count in ((cell(), 6), (two, 6), (cell(), 24)):
        check = each.collision()
        first, second = (things(np.random.default_rng(k), count) for k in range(2))
        codes_of(check.with_obstacles(first))
        counts.append(lines(lambda c=check, o=second: codes_of(c.with_obstacles(o))))
    assert counts[1] < 1.1 * counts[0]  # whatever pairs of links there are
    assert (counts[2] - counts[0]) / 18 < 64  # to read an obstacle
    assert counts[0] < 3300


def test_provers_make_their_records_when_they_are_called():
    check = among_balls().collision()
    lower, upper = check.cell.limits
    later = check.motion_columns(lower, upper)
    assert later is not None
    lanes = later.function.lanes
    rng = np.random.default_rng(0)
    Q = free_positions(check, 4 * lanes + 1)
    seen = set()
    for k in range(4):
        A, B = (Q[k * lanes + j : (k + 1) * lanes + j] for j in range(2))
        B = A + rng.uniform(0.1, 1.0, (lanes, 1)) * (B - A)
        assert (later.made is None) == (k == 0)
        fraction, touching = called(later.function, A, B, results=2)
        is_free = (fraction >= 1.0) & (touching == 0.0)
        assert (is_free == check.motion(A, B).free).all()
        seen.update(is_free.tolist())
    assert seen == {True, False}


def test_loops_call_provers_themselves_once_their_records_are_there():
    planned = among_balls().planner(among_balls().collision())
    start, goal = free_positions(planned.check, 2)
    plan = planned(start, goal, timeout=None)
    loop = planned._ways.loop(start, goal[np.newaxis])
    assert loop.tests.later is not None
    made = loop.tests.later.now()
    assert loop.ready is loop.ready and loop.ready.tests.prover is made
    assert {made.address, made.tables} <= {*loop.ready.words.tolist()}
    assert np.array_equal(planned(start, goal, timeout=None).q, plan.q)
