"""Motions proven to be free, compared with dense samples of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.collision.motion import MotionReason
from armillary.errors import ModelError, ShapeError
from armillary.shapes import Box, Capsule, Cylinder, HalfSpace, Primitive, Sphere

Array = np.ndarray
DENSE = 500


class Wave(arm.joints.Joint, frozen=True, kw_only=True):
    """A user's joint: it turns, and goes up and down meanwhile."""

    unit = arm.RADIAN
    height: float = 0.1

    def pose(self, q):
        c, s = np.cos(q), np.sin(q)
        up = self.height * np.sin(3.0 * q)
        return arm.Pose(((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)), (0.0, 0.0, up))


def room(joint: type, shape: Primitive) -> arm.Cell:
    """Return an arm among boxes, over a floor."""
    links = [arm.Link(name="base")]
    for k in range(4):
        X = arm.Pose.translation(0.3, 0.0, 0.05) @ arm.Pose.rotation_x(0.7 * k)
        links.append(
            arm.Link(
                name=f"link{k}",
                parent=links[-1].name,
                joint=joint(precursor=X),
                collisions=[shape],
            )
        )
    rng = np.random.default_rng(0)
    things = [
        Box(size=(0.2, 0.1, 0.3), pose=arm.Pose.translation(*p))
        for p in rng.uniform(-1.0, 1.0, (8, 3))
        if np.linalg.norm(p) > 0.7
    ]
    floor = HalfSpace(pose=arm.Pose.translation(0.0, 0.0, -0.6))
    parts = [
        arm.Manipulator(
            name=f"thing{k}", links=[arm.Link(name="body", collisions=[thing])]
        )
        for k, thing in enumerate([*things, floor])
    ]
    cell = arm.Cell(manipulators=[arm.Manipulator(name="robot", links=links), *parts])
    rules = cell.rules.exclude("thing*/*", "thing*/*", reason="fixed")
    return cell.replace(rules=rules.include("robot/*", "robot/*"))


def ends(rng: np.random.Generator, count: int, n: int = 4) -> tuple[Array, Array]:
    q0 = rng.uniform(-3.0, 3.0, (count, n))
    return q0, q0 + rng.uniform(-1.5, 1.5, (count, n))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("joint", [arm.joints.Revolute, arm.joints.Prismatic, Wave])
@pytest.mark.parametrize(
    "shape",
    [
        Sphere(radius=0.1),
        Capsule(radius=0.04, length=0.2),
        Cylinder(radius=0.06, length=0.2),
    ],
)
@pytest.mark.parametrize("margin", [0.0, 0.03])
def test_no_contact_is_missed(joint: type, shape: Primitive, margin: float):
    cell = room(joint, shape)
    check = cell.collision(margin=margin)
    q0, q1 = ends(np.random.default_rng(1), 30)
    motions = check.motion(q0, q1)
    assert 0.02 < motions.free.mean() < 0.98
    assert set(motions.summary()) <= {"FREE", "CONTACT"}
    t = np.linspace(0.0, 1.0, DENSE)[:, None, None]
    clearance = check.clearance(q0 + t * (q1 - q0)) - margin
    touching = clearance <= 0.0
    first = np.where(touching.any(axis=0), t[touching.argmax(axis=0), 0, 0], np.inf)
    assert (motions.fraction <= first + 1e-9).all()
    assert not (motions.free & touching.any(axis=0)).any()
    np.testing.assert_allclose(
        motions.q, q0 + motions.fraction[:, None] * (q1 - q0), atol=1e-12
    )
    ended = motions.reason == MotionReason.CONTACT
    near = check.clearance(motions.q[ended]) - margin
    assert (near <= 1.1e-6).all()
    assert (near[motions.fraction[ended] > 0.0] > -1e-6).all()
    # It ends no earlier than where the samples come that near.
    close = (clearance <= 2e-3).argmax(axis=0) / (DENSE - 1) - 2.0 / DENSE
    assert (motions.fraction[ended] >= close[ended]).all()


def test_where_a_motion_ends_the_links_are_contacts():
    check = room(arm.joints.Revolute, Sphere(radius=0.1)).collision()
    q0, q1 = ends(np.random.default_rng(2), 50)
    motions = check.motion(q0, q1)
    for q in motions.q[motions.reason == MotionReason.CONTACT][:5]:
        nearest = check.contacts(q, within=2e-6)[0]
        assert nearest.distance == pytest.approx(check.clearance(q), abs=1e-12)


def test_motions_back_and_in_parts_are_as_free():
    check = room(arm.joints.Revolute, Capsule(radius=0.04, length=0.2)).collision()
    q0, q1 = ends(np.random.default_rng(3), 200)
    free = check.motion(q0, q1).free
    np.testing.assert_array_equal(check.motion(q1, q0).free, free)
    middle = 0.5 * (q0 + q1)
    parts = check.motion(q0, middle).free & check.motion(middle, q1).free
    np.testing.assert_array_equal(parts, free)


def test_batches_are_broadcast():
    check = room(arm.joints.Revolute, Sphere(radius=0.1)).collision()
    q0, q1 = ends(np.random.default_rng(4), 6)
    motions = check.motion(q0[:2, None], q1[None, :3])
    assert motions.fraction.shape == (2, 3)
    assert motions.q.shape == (2, 3, 4)
    for i in range(2):
        for j in range(3):
            one = check.motion(q0[i], q1[j])
            assert one.fraction.shape == ()
            assert one.fraction == motions.fraction[i, j]
            assert one.reason == motions.reason[i, j]
    assert "free" in repr(motions)
    assert check.motion(np.zeros((0, 4)), q1[0]).fraction.shape == (0,)
    with pytest.raises(ShapeError, match="q1"):
        check.motion(q0, q1[:, :3])


def test_a_motion_that_does_not_move():
    check = room(arm.joints.Revolute, Sphere(radius=0.1)).collision()
    Q, _ = ends(np.random.default_rng(5), 50)
    np.testing.assert_array_equal(check.motion(Q, Q).free, ~check(Q))


def test_what_is_not_finite_is_invalid_and_stays_in_its_row():
    check = room(arm.joints.Revolute, Sphere(radius=0.1)).collision()
    q0, q1 = ends(np.random.default_rng(6), 4)
    expected = check.motion(q0, q1)
    q0[1, 2], q1[3, 0] = np.nan, np.inf
    found = check.motion(q0, q1)
    assert (found.reason[[1, 3]] == MotionReason.INVALID).all()
    np.testing.assert_array_equal(found.fraction[[0, 2]], expected.fraction[[0, 2]])
    assert np.isnan(found.fraction[[1, 3]]).all()


def test_samples_are_taken_only_if_asked_for():
    cell = room(arm.joints.Revolute, Sphere(radius=0.1))
    check = cell.collision()
    q0, q1 = ends(np.random.default_rng(7), 20)
    proven, tested = check.motion(q0, q1), check.motion(q0, q1, step=0.01)
    parts = np.ceil(np.abs(q1 - q0).max(axis=1) / 0.01)
    assert (tested.fraction + 1.0 / parts >= proven.fraction - 1e-9).all()
    np.testing.assert_array_equal(tested.free | ~proven.free, np.ones(20, np.bool_))
    with pytest.raises(ModelError, match="above 0"):
        check.motion(q0, q1, step=0.0)


@pytest.fixture(scope="module")
def closed() -> tuple[arm.Cell, Any]:
    """A five-bar with balls on its forearms, between two posts, and its check."""
    (robot,) = arm.example("five_bar").manipulators
    tip = Sphere(radius=0.02, pose=arm.Pose.translation(0.15, 0, 0))
    links = [
        link.replace(collisions=[tip]) if link.passive else link for link in robot.links
    ]
    body = arm.Link(name="body", collisions=[Sphere(radius=0.05)])
    posts = [arm.Manipulator(name=name, links=[body]) for name in ("left", "right")]
    mounts = [
        arm.Mount(manipulator="left", pose=arm.Pose.translation(-0.2, 0.28, 0.0)),
        arm.Mount(manipulator="right", pose=arm.Pose.translation(0.24, 0.28, 0.0)),
    ]
    rules = arm.Rules.actin().exclude("five_bar/*", "five_bar/*")
    moved = robot.replace(links=links)
    cell = arm.Cell(manipulators=[moved, *posts], mounts=mounts, rules=rules)
    return cell, cell.collision(margin=0.002)


def test_motions_of_closed_loops_beside_dense_samples(closed: tuple[arm.Cell, Any]):
    cell, check = closed
    lower, upper = cell.limits
    Q = np.random.default_rng(11).uniform(lower, upper, (400, 2))
    Q = Q[~check(Q)]
    q0, q1 = Q[:20], Q[20:40]
    found = check.motion(q0, q1)
    t = np.linspace(0.0, 1.0, 3001)
    for k in range(20):
        way = q0[k] + t[:, None] * (q1[k] - q0[k])
        distances = check.clearance(way)
        near = np.isnan(distances) | (distances <= check.margin + 1e-6)
        first = t[near.argmax()] if near.any() else np.inf
        assert found.fraction[k] <= first
        if found.reason[k] == MotionReason.CONTACT:
            assert check.clearance(found.q[k]) <= check.margin + 1e-6
            assert first - found.fraction[k] <= 2.0 / 3000
        elif found.reason[k] == MotionReason.NOT_PROVEN:
            # Only where loops do not close does a proof end without contact.
            assert np.isnan(distances[near.argmax()])
            assert first - found.fraction[k] < 1e-2
    assert {*found.reason.tolist()} == {0, 1, 2}


def test_motions_of_closed_loops_are_answered_alone(closed: tuple[arm.Cell, Any]):
    cell, check = closed
    q0 = np.array(cell.home.q)
    q1 = q0 + np.array([[0.1, -0.1], [0.0, 0.0], [np.nan, 0.0]])
    found = check.motion(q0, q1)
    assert found.reason.tolist() == [0, 0, 3]
    for k in range(3):
        alone = check.motion(q0, q1[k])
        assert (alone.fraction, alone.reason) == pytest.approx(
            (found.fraction[k], found.reason[k]), nan_ok=True
        )


def test_far_beyond_the_limits_of_joints():
    check = room(arm.joints.Prismatic, Sphere(radius=0.1)).collision()
    q0 = np.zeros(4)
    q1 = np.array([0.0, 0.0, 0.0, 50.0])
    motion = check.motion(q0, q1)
    t = np.linspace(0.0, 1.0, 20_000)[:, None]
    touching = check(q0 + t * (q1 - q0))
    assert motion.free == (not touching.any())
    if touching.any():
        assert motion.fraction <= t[touching.argmax()]


class Scissors(arm.joints.Joint, frozen=True, kw_only=True):
    """A table on crossed beams: infinitely fast where they lie flat, unknown beyond."""

    unit = arm.METRE

    def pose(self, q):
        return arm.Pose.translation(0.0, 0.0, np.sqrt(1.0 - q * q))


def lift() -> arm.Cell:
    ball = Sphere(radius=0.1)
    table = arm.Link(name="table", parent="ground", joint=Scissors(), collisions=[ball])
    ground = arm.Link(name="ground", collisions=[ball])
    cell = arm.Cell(manipulators=[arm.Manipulator(name="lift", links=[ground, table])])
    return cell.replace(rules=arm.Rules.everything())


def test_bounds_are_those_of_the_positions_that_motions_pass():
    motions = lift().collision().motion([[-0.5], [0.2]], [[0.5], [0.995]])
    assert motions.free.tolist() == [True, False]
    assert motions.reason[1] == MotionReason.CONTACT
    assert motions.q[1] == pytest.approx(np.sqrt(1.0 - 0.2**2), abs=1e-5)


def test_unknown_poses_are_not_proven():
    check = lift().collision()
    motions = check.motion([[1.5], [0.5]], [[1.5], [1.5]])
    assert (motions.reason == MotionReason.NOT_PROVEN).all()
    assert not motions.free.any()


def test_infinite_positions_are_invalid_without_a_warning():
    check = room(arm.joints.Revolute, Sphere(radius=0.1)).collision()
    q = np.array([np.inf, 0.0, 0.0, 0.0])
    for options in ({}, {"step": 0.1}):
        motions = check.motion([q, np.zeros(4)], [q, q], **options)
        assert (motions.reason == MotionReason.INVALID).all()
        assert np.isnan(motions.fraction).all()


def passing_a_box(size: float) -> arm.Cell:
    """Return a ball on a slide that passes a box by a thousandth of its way."""
    slide = arm.Link(
        name="ball",
        parent="base",
        joint=arm.joints.Prismatic(axis=(1.0, 0.0, 0.0)),
        limits=arm.Limits(lower=-size, upper=size),
        collisions=[Sphere(radius=0.1 * size)],
    )
    robot = arm.Manipulator(name="robot", links=[arm.Link(name="base"), slide])
    above = arm.Pose.translation(0.0, 0.0, 0.201 * size)
    box = Box(size=(0.2 * size,) * 3, pose=above)
    thing = arm.Manipulator(
        name="thing", links=[arm.Link(name="body", collisions=[box])]
    )
    return arm.Cell(manipulators=[robot, thing])


@pytest.mark.parametrize("size", [100.0, 1.0, 1e-3, 1e-6])
def test_cells_of_any_size_are_as_free(size: float):
    cell = passing_a_box(size)
    check = cell.collision()
    ends = np.array([[-0.9], [0.9]]) * size
    assert check.motion(*ends).free
    plan = cell.planner(check, resolution=max(0.1 * size, 1e-6))(*ends)
    assert plan.proven and len(plan.q) == 2
    # As near as that it touches, with a margin.
    margin = 0.0011 * size
    met = cell.collision(margin=margin).motion(*ends)
    assert met.reason == MotionReason.CONTACT
    assert 0.4 < met.fraction < 0.5


def test_free_motions_end_at_their_ends():
    check = room(arm.joints.Revolute, Sphere(radius=0.1)).collision()
    q0, q1 = ends(np.random.default_rng(6), 200)
    motions = check.motion(q0, q1)
    assert np.array_equal(motions.q[motions.free], q1[motions.free])


@pytest.mark.parametrize("step", [0.0, np.nan, "0.1", 1e-300])
def test_invalid_steps_are_refused(step: float):
    check = room(arm.joints.Revolute, Sphere(radius=0.1)).collision()
    with pytest.raises(ModelError, match="step"):
        check.motion(np.zeros(4), np.ones(4), step=step)


def test_samples_include_both_ends():
    check = lift().collision()
    assert check.motion([0.0], [0.995], step=np.inf).reason == MotionReason.CONTACT
    assert check.motion([0.995], [0.0], step=np.inf).reason == MotionReason.CONTACT
    assert check.motion([0.0], [0.9], step=5.0).free


def test_each_row_is_answered_as_if_it_were_alone():
    # Within the limits, beyond them, where speeds are infinite, and far beyond.
    check = lift().collision()
    q0 = np.array([[0.1], [0.5], [-0.9], [0.0], [0.2], [-7.0]])
    q1 = np.array([[-0.2], [0.6], [-0.5], [2.0], [0.995], [9.0]])
    some = check.motion(q0[:3], q1[:3])
    every = check.motion(q0, q1)
    assert some.free.all()
    for name in ("fraction", "q", "reason"):
        np.testing.assert_array_equal(getattr(some, name), getattr(every, name)[:3])
        alone = [getattr(check.motion(a, b), name) for a, b in zip(q0, q1, strict=True)]
        np.testing.assert_array_equal(getattr(every, name), np.stack(alone))


def test_motions_far_beyond_the_limits_are_shared_and_as_if_alone():
    check = room(arm.joints.Prismatic, Sphere(radius=0.1)).collision()
    rng = np.random.default_rng(8)
    q0 = rng.uniform(-1.0, 1.0, (24, 4)) * 10.0 ** rng.uniform(-1, 3, (24, 1))
    q1 = q0 + rng.uniform(-1.0, 1.0, (24, 4))
    motions = check.motion(q0, q1)
    alone = [check.motion(a, b) for a, b in zip(q0, q1, strict=True)]
    np.testing.assert_array_equal(motions.fraction, [each.fraction for each in alone])
    assert len(check._prover._known) < 24


def test_samples_end_at_the_last_free_one():
    check = lift().collision()
    step, q0, q1 = 0.01, np.array([0.0]), np.array([0.999])
    parts = 100
    samples = q0 + (np.arange(parts + 1) / parts)[:, None] * (q1 - q0)
    samples[-1] = q1
    first = int(np.argmax(check(samples)))
    assert first > 1
    motion = check.motion(q0, q1, step=step)
    assert motion.reason == MotionReason.CONTACT
    assert motion.fraction == (first - 1) / parts
    np.testing.assert_array_equal(motion.q, samples[first - 1])
    assert not check(motion.q)
    touching = check.motion(q1, q0, step=step)
    assert touching.fraction == 0.0
    np.testing.assert_array_equal(touching.q, q1)


class Ramp(arm.joints.Joint, frozen=True, kw_only=True):
    """A user's joint of straight pieces: its speed jumps, so that it has no bend."""

    unit = arm.METRE

    def pose(self, q):
        return arm.Pose.translation(
            np.interp(q, [-30.0, 0.0, 30.0], [-30.0, 0.0, 15.0]), 0.0, 0.0
        )


def ball_on(joint: arm.Joint, at: float, gap: float) -> arm.Cell:
    """Return a ball at x = `at` of a joint, and one `gap` beside its way at x = 1."""
    one = Sphere(radius=0.1, pose=arm.Pose.translation(at, 0.0, 0.0))
    other = Sphere(radius=0.1, pose=arm.Pose.translation(1.0, 0.0, 0.2 + gap))
    ground = arm.Link(name="ground", collisions=[other])
    link = arm.Link(name="ball", parent="ground", joint=joint, collisions=[one])
    cell = arm.Cell(manipulators=[arm.Manipulator(name="one", links=[ground, link])])
    return cell.replace(rules=arm.Rules.everything())


SLIDE, TURN = arm.joints.Prismatic(axis=(1.0, 0.0, 0.0)), arm.joints.Revolute()


@pytest.mark.parametrize(
    ("joint", "at", "gap", "ends", "first"),
    [
        (SLIDE, 0.0, 3e-6, (-3.0, 2.0), None),  # a near miss
        (SLIDE, 0.0, 3e-7, (-3.0, 2.0), 1.0),  # so near that it counts
        (SLIDE, 0.0, -1e-5, (-3.0, 2.0), 1.0),  # a touch
        (SLIDE, 0.0, -0.2, (0.0, 0.8), 0.8),  # up to the last point
        (SLIDE, 0.0, -0.2, (0.8, 0.0), 0.8),  # from the first point on
        (SLIDE, 0.0, -0.2, (0.7999, -1.0), None),
        (SLIDE, 0.0, 0.1, (-4e3, 4e3), None),  # far beyond the box of its bounds
        (SLIDE, 0.0, -0.1, (-4e3, 4e3), 1.0 - 0.03**0.5),
        (Ramp(), 0.0, -0.2, (-3.0, 3.0), 1.6),
        (Ramp(), 0.0, 1e-3, (-3.0, 5.0), None),
        (TURN, 1.0, 1e-5, (0.2, 9.0 * np.pi), None),  # past it four times
        (TURN, 1.0, -0.2, (0.3, 7.0), 2.0 * np.pi - 2.0 * np.arcsin(0.1)),
    ],
)
def test_first_contacts_of_balls(
    joint: arm.Joint, at: float, gap: float, ends: tuple[float, float], first: float
):
    check = ball_on(joint, at, gap).collision()
    a, b = (np.array([x]) for x in ends)
    motion, batch = check.motion(a, b), check.motion([a, a], [b, a])
    assert batch.fraction[0] == motion.fraction
    if first is None:
        assert motion.reason == MotionReason.FREE
        np.testing.assert_array_equal(motion.q, b)
        return
    assert motion.reason == MotionReason.CONTACT
    # Balls that graze each other are within 1e-6 m of touching for a while.
    early = 1e-5 if abs(gap) > 0.05 else 0.01
    way = (first - float(motion.q[0])) * np.sign(b - a)[0]
    assert -1e-7 <= way <= early
    assert -1e-9 <= check.clearance(motion.q) <= 1.1e-6


class Eased(arm.joints.Joint, frozen=True, kw_only=True):
    """It turns infinitely fast where it begins."""

    unit = arm.RADIAN

    def pose(self, q):
        return arm.Pose.rotation_z(np.sqrt(q))


def test_the_unknown_speed_of_what_carries_both_links_hides_no_contact():
    ball = Sphere(radius=0.05, pose=arm.Pose.translation(1.0, 0.0, 0.0))
    names, joints = ("ground", "table", "arm"), (None, Eased(), TURN)
    table, turned = (
        arm.Link(name=names[k], parent=names[k - 1], joint=joints[k], collisions=[ball])
        for k in (1, 2)
    )
    links = [arm.Link(name="ground"), table, turned]
    cell = arm.Cell(manipulators=[arm.Manipulator(name="one", links=links)])
    check = cell.replace(rules=arm.Rules.everything()).collision()
    q0 = np.random.default_rng(0).uniform((0.5, -4.0), (1.0, -1.0), (400, 2))
    # Of powers of 2 sums of huge numbers are without rounding: nothing is left of them.
    motions = check.motion(q0, q0 + np.array([1.0, 8.0]))
    assert (motions.reason == MotionReason.CONTACT).all()
    assert (check.clearance(motions.q) > -1e-9).all()


def test_parts_that_are_gripped_move_along():
    cell = room(arm.joints.Revolute, Sphere(radius=0.1))
    state = cell.home.attach(
        "thing1", "robot/link3", pose=arm.Pose.translation(0, 0.3, 0)
    )
    q0, q1 = ends(np.random.default_rng(9), 40)
    for margin in (0.0, 0.02):
        check = cell.collision(state, margin=margin)
        motions = check.motion(q0, q1)
        t = np.linspace(0.0, 1.0, 200)[:, None, None] * motions.fraction[:, None]
        clearance = check.clearance(q0 + t * (q1 - q0)) - margin
        assert 0.02 < motions.free.mean() < 0.98
        assert clearance[:, motions.fraction > 0.0].min() > -1e-9
        ended = motions.reason == MotionReason.CONTACT
        assert (check.clearance(motions.q[ended]) - margin <= 1.1e-6).all()


def test_one_motion_calls_one_kernel(monkeypatch: pytest.MonkeyPatch):
    # Two rows of floats go to the kernel as they are; nothing else is computed.
    check = room(arm.joints.Revolute, Sphere(radius=0.1)).collision()
    q0, q1 = ends(np.random.default_rng(4), 8)
    expected = check.motion(q0, q1)
    monkeypatch.setattr(type(check), "_rows", None)
    monkeypatch.setattr(type(check._prover), "_levels", None)
    for k in range(len(q0)):
        q1[k] = np.clip(q1[k], -3.9, 3.9)  # within the box around home
        motion = check.motion(q0[k], q1[k])
        assert not motion.q.flags.writeable
        assert not np.may_share_memory(motion.q, q1)
    np.testing.assert_array_equal(motion.reason.shape, expected.reason.shape[1:])
