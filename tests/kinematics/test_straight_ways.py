"""Kernels, states and an independent march agree where straight ways from home lead."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import armillary as arm
from armillary.errors import StateError
from armillary.kernel.references import vectorize
from armillary.kinematics.closing.solver import LoopReason
from armillary.kinematics.closing.stages import block_programs
from four_bar import four_bar as bar
from linkages import FAMILIES, FREE, followed, turned

EVERY = {**FAMILIES, **FREE}
ROWS, STEPS = 30, 60
NEAR = 0.3  # of the ball around home in which nothing is singular


def free(family: str, seed: int):
    """Return a linkage whose driven joints turn freely."""
    return replace(EVERY[family](np.random.default_rng(seed)), limits={})


def compare(linkage, Q, steps):
    """Assert that rows end where tiny steps do; return which did arrive."""
    cell = linkage.cell()
    names, passive = cell.joint_names, cell.passive_names
    with np.errstate(all="ignore"):
        expected = followed(linkage, names, passive, Q, steps)
    arrived = np.isfinite(expected).all(axis=1)
    found = cell.close_loops(Q)
    both = arrived & found.success
    apart = turned(linkage, passive, found.passive - expected)[both]
    assert np.abs(apart).max(initial=0.0) < 1e-6
    far = np.linalg.norm(Q, axis=1)
    radius = far[~arrived].min(initial=np.inf)
    assert found.success[far < NEAR * radius].all()
    assert (found.success >= arrived).mean() > 0.98  # the others are next to a fold
    return cell, found, arrived


@pytest.mark.sampled(2)
@pytest.mark.parametrize("family", ["five-bar", "3-RRR", *FREE])
def test_joints_that_turn_freely_follow_straight_ways(family: str) -> None:
    """From one to six inputs: no other assembly, none left out near home."""
    linkage = free(family, 100)
    count = len(linkage.driven)
    rng = np.random.default_rng(1)
    Q = rng.uniform(-1.0, 1.0, (ROWS, count)) * rng.uniform(0.0, 2.5, (ROWS, 1))
    cell, found, arrived = compare(linkage, Q, STEPS)
    assert arrived.sum() > ROWS // 10
    link = cell.passive_names[-1]
    poses = cell.fk(link)(Q)
    for q, X, closed in zip(Q[:12], poses, found.success, strict=False):
        try:
            state = cell.home.replace(q=q)
        except StateError:
            assert not closed
            continue
        np.testing.assert_allclose(X, cell.pose(link, state), atol=1e-8)
        assert state.branch == "home"


def test_where_one_linkage_of_two_is_blocked_states_go_around() -> None:
    linkage, q = free("five-bar", 100), [0.07, 2.7]
    (bar,) = linkage.cell().manipulators
    names = linkage.cell().joint_names, linkage.cell().passive_names
    with np.errstate(all="ignore"):
        straight = followed(linkage, *names, np.array([q]), STEPS)
    assert np.isnan(straight).any()
    pair = [bar.replace(name="left"), bar.replace(name="right")]
    cell = arm.Cell(manipulators=pair)
    state = cell.home.replace(q=[*q, 0.0, 0.0])
    assert state.branch == "home"
    closed = cell.close_loops(state.q)
    np.testing.assert_allclose(closed.passive, state.passive, atol=1e-8)


def three_arms(home: list[float]) -> arm.Cell:
    """Return a planar 3-RRR whose motors turn freely."""

    def hinge(x: float, y: float) -> arm.Joint:
        return arm.joints.Revolute(precursor=arm.Pose.translation(x, y, 0))

    angles = 2.0 * np.pi * np.arange(3) / 3.0
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    end = arm.Pose.translation(0.7, 0, 0)
    links = [arm.Link(name="base")]
    for k, (x, y) in enumerate(around):
        links.append(arm.Link(name=f"m{k}", parent="base", joint=hinge(x, y)))
        links.append(
            arm.Link(
                name=f"f{k}",
                parent=f"m{k}",
                joint=hinge(0.7, 0),
                passive=True,
                frames=[arm.Frame(name=f"e{k}", pose=end)],
            )
        )
    corners = 0.25 * (around - around[0])
    frames = [
        arm.Frame(name=f"c{k}", pose=arm.Pose.translation(*corners[k], 0))
        for k in (1, 2)
    ]
    links.append(
        arm.Link(
            name="plate", parent="f0", joint=hinge(0.7, 0), passive=True, frames=frames
        )
    )
    posture = arm.Posture(name="home", joints=[link.name for link in links[1:]], q=home)
    loops = [arm.Closure(f"c{k}", f"e{k}", position="xy") for k in (1, 2)]
    return arm.Cell(
        manipulators=[
            arm.Manipulator(
                name="rrr", links=links, loops=loops, postures=[posture], home="home"
            )
        ]
    )


def test_a_step_beside_home_closes() -> None:
    """It was on another branch, said the table: its neighbours had come around."""
    t = 2.0 * np.pi * np.arange(3) / 3.0
    home = [*np.ravel([[a + np.pi - 0.6, 1.0074] for a in t]), -0.8985]
    cell = three_arms(home)
    rng = np.random.default_rng(0)
    Q = cell.home.q + rng.uniform(-0.02, 0.02, (200, 3))
    at = cell.fk("plate")(Q)[:, :2, 3]
    assert np.isfinite(at).all()
    assert (
        np.linalg.norm(at - cell.pose("plate", cell.home)[:2, 3], axis=1).max() < 0.05
    )


def test_a_kernel_and_a_state_are_on_the_same_sheet() -> None:
    """The way of 2000 Newton steps ends at (-0.0607, 0.0944)."""
    home = [2.3981685625286087, 1.1418738410708933, 4.5854874536013535]
    home += [1.1422200555891868, 6.772806344674099, 0.8634490235688586]
    cell = three_arms([*home, -1.050628226489218])
    q = [2.3463525318243823, 4.960152159402165, 7.366453306303397]
    state = cell.home.replace(q=q)
    assert state.branch == "home"
    expected = [-0.06070003, 0.09436936]
    for X in (
        cell.fk("plate")(q),
        cell.fk("plate", state=state)(q),
        cell.pose("plate", state),
    ):
        np.testing.assert_allclose(X[:2, 3], expected, atol=1e-7)


def test_joints_between_limits_do_not_go_around() -> None:
    """A crank that stops before a whole turn comes back the way that it went."""
    limits = arm.Limits(lower=-2.9, upper=2.9)
    plain = bar()
    crank = plain.links[1].replace(limits=limits)
    links = [plain.links[0], crank, *plain.links[2:]]
    posture = arm.Posture(name="away", joints=["crank"], q=[-2.8])
    cell = arm.Cell(
        manipulators=[plain.replace(links=links, postures=[posture], home="away")]
    )
    state = cell.home.replace(q=[2.8])
    march = cell.home
    for q in np.linspace(-2.8, 2.8, 60):
        march = march.replace(q=[q])
    np.testing.assert_allclose(state.passive, march.passive, atol=1e-9)
    np.testing.assert_allclose(cell.fk("rocker")([2.8]), cell.pose("rocker", state))
    assert cell.home.replace(q=[2.8 - 2.0 * np.pi]).branch == "home"


def test_batches_on_another_branch_are_on_it() -> None:
    """Every question of many q takes the branch of its state."""
    cell = arm.Cell(manipulators=[bar()])
    home, other = cell.branches([0.4]).values()
    Q = np.linspace(0.2, 0.8, 5)[:, None]
    for state in (home, other):
        poses = cell.poses(state, q=Q)
        for k, q in enumerate(Q):
            moved = cell.pose("rocker", state.replace(q=q))
            np.testing.assert_allclose(poses["rocker"][k], moved, atol=1e-9)
    apart = cell.poses(home, q=Q)["rocker"] - cell.poses(other, q=Q)["rocker"]
    assert np.abs(apart).max() > 0.1


def steps_of_walk(cell: arm.Cell, q: list[float]) -> int:
    """Return how many steps of Newton's method a walk from home takes."""
    programs = block_programs(cell.workcell, 0)
    home = np.array(cell.workcell.joints.home)
    u0, p0 = home[list(programs.block.inputs)], home[list(programs.block.unknowns)]
    j0, reciprocal = vectorize(programs.implicit, u0, p0)
    started = vectorize(programs.walk_start, np.array(q), u0, p0, j0, reciprocal)
    p, u_good, p_good, way, reciprocal, part, last, going = started
    count = 0
    while going > 0.0 and count < 1000:
        (stage,) = programs.walk
        p, u_good, p_good, way, part, last, going = vectorize(
            stage.stages[0], np.array(q), p, u_good, p_good, way, reciprocal, part, last
        )
        count += 1
    assert going == 0.0
    return count


def test_walks_take_few_steps() -> None:
    """Parts grow as far as Newton's method allows, and three steps end each."""
    cell = arm.Cell(manipulators=[bar()])
    assert steps_of_walk(cell, [0.1]) <= 3
    assert steps_of_walk(cell, [3.0]) <= 4 * math.ceil(3.0 / 0.3)


# Why loops are not closed


def stretched(size: float) -> arm.Cell:
    """Return arms of 0.3 and 0.2 whose end a slide moves; they reach 0.1 to 0.5."""

    def hinge(x: float) -> arm.Joint:
        return arm.joints.Revolute(precursor=arm.Pose.translation(size * x, 0, 0))

    end = arm.Frame(name="end", pose=arm.Pose.translation(0.2 * size, 0, 0))
    slide = arm.joints.Prismatic(axis=(1, 0, 0))
    links = [
        arm.Link(name="base"),
        arm.Link(
            name="slide", parent="base", joint=slide, frames=[arm.Frame(name="pin")]
        ),
        arm.Link(name="upper", parent="base", joint=hinge(0), passive=True),
        arm.Link(
            name="fore", parent="upper", joint=hinge(0.3), passive=True, frames=[end]
        ),
    ]
    home = arm.Posture(
        name="home", joints=["slide", "upper", "fore"], q=[0.4 * size, 0.5, -1.0]
    )
    return arm.Cell(
        manipulators=[
            arm.Manipulator(
                name="arms",
                links=links,
                loops=[arm.Closure("pin", "end", position="xy")],
                postures=[home],
                home="home",
            )
        ]
    )


@pytest.mark.parametrize("size", [1.0, 1e-3, 1e3])
def test_reasons_at_dead_points(size: float) -> None:
    """Inside closed, at the reach singular, beyond it no assembly."""
    outward = {1e-5: "CLOSED", 0.0: "SINGULAR", -1e-6: "CANNOT_CLOSE"}
    outward |= {1e-9: "SINGULAR", -1e-3: "CANNOT_CLOSE"}
    cell = stretched(size)
    q = [[size * (0.5 - d)] for d in outward] + [[size * (0.1 + d)] for d in outward]
    reasons = cell.close_loops(q).reason
    assert [LoopReason(k).name for k in reasons] == [*outward.values()] * 2


def test_reasons_beyond_a_singularity() -> None:
    """A parallelogram stops where it is flat, but others exist beyond it."""
    plain = bar()
    lengths = {"coupler": 0.1, "rocker": 0.3, "tip": 0.3, "end": 0.1}

    def at(name: str) -> arm.Pose:
        return arm.Pose.translation(lengths[name], 0, 0)

    links = [
        plain.links[0],
        plain.links[1],
        *(
            link.replace(
                joint=arm.joints.Revolute(precursor=at(link.name)),
                frames=[arm.Frame(name=frame, pose=at(frame))],
            )
            for link, frame in zip(plain.links[2:], ("tip", "end"), strict=True)
        ),
    ]
    posture = arm.Posture(
        name="up", joints=["crank", "coupler", "rocker"], q=[1.0, -1.0, 1.0]
    )
    cell = arm.Cell(
        manipulators=[plain.replace(links=links, postures=[posture], home="up")]
    )
    reasons = cell.close_loops([[0.5], [0.0], [-0.5]]).reason
    names = [LoopReason(k).name for k in reasons]
    assert names == ["CLOSED", "SINGULAR", "OTHER_BRANCH"]
