"""All assemblies of loops, each once, by names that stay."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

import armillary as arm
from armillary import Pose
from armillary.errors import ModelError
from armillary.kinematics.closing import branches
from four_bar import four_bar

Array = npt.NDArray[np.float64]
AXES = np.eye(3)
HERE = Pose.translation(0, 0, 0)
SIZES = (1e-6, 1e-3, 1e3)


def distinct(found: Array, apart: float = 1e-6) -> Array:
    """Return rows that differ."""
    rows: list[Array] = []
    for each in found:
        if all(np.abs(each - other).max() > apart for other in rows):
            rows.append(each)
    return np.array(rows)


# Platforms by brute force: from random poses of a quaternion and a point


def rotations(x: Array) -> Array:
    """Return the matrices of quaternions w, x, y, z, shape (n, 3, 3)."""
    w, v = x[:, :1], x[:, 1:4]
    K = np.zeros((len(x), 3, 3))
    K[:, [2, 0, 1], [1, 2, 0]] = v
    K[:, [1, 2, 0], [2, 0, 1]] = -v
    scalar = (w * w - (v * v).sum(1, keepdims=True))[..., None]
    return scalar * np.eye(3) + 2.0 * (v[:, :, None] * v[:, None] + w[..., None] * K)


def solutions(equations, count: int, starts: int, scale: Array) -> Array:
    """Return roots of equations by damped Gauss and Newton, from random starts."""
    rng = np.random.default_rng(5)
    x = scale * rng.normal(size=(starts, count))
    eye = np.eye(count)
    damping = np.full(starts, 1e-2)
    r = equations(x)
    for _ in range(60):
        h = 1e-7
        J = np.stack(
            [
                (equations(x + h * e) - equations(x - h * e)) / (2.0 * h)
                for e in scale * eye
            ],
            -1,
        )
        normal = J.swapaxes(1, 2) @ J + damping[:, None, None] * eye
        step = np.linalg.solve(normal, (J.swapaxes(1, 2) @ r[..., None]))[..., 0]
        trial = x - scale * step
        new = equations(trial)
        better = (new * new).sum(1) < (r * r).sum(1)
        x, r = np.where(better[:, None], trial, x), np.where(better[:, None], new, r)
        damping = np.clip(np.where(better, damping * 0.2, damping * 5.0), 1e-14, 1e8)
    return x[np.abs(r).max(axis=1) < 1e-9]


def platform_poses(feet: Array, balls: Array, lengths: Array) -> Array:
    """Return the poses of a platform on six legs, rotation then point, (n, 12)."""

    def equations(x: Array) -> Array:
        ends = x[:, None, 4:] + np.einsum("nij,kj->nki", rotations(x), balls) - feet
        legs = (ends * ends).sum(-1) - lengths**2
        return np.concatenate([legs, (x[:, :4] ** 2).sum(1, keepdims=True) - 1.0], 1)

    x = solutions(equations, 7, 700, np.ones(7))
    return distinct(np.hstack([rotations(x).reshape(-1, 9), x[:, 4:]]))


@cache
def stewart() -> arm.Cell:
    return arm.example("stewart")


def circle(radius: float, degrees: list[int]) -> Array:
    angles = np.radians(degrees)
    return radius * np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], 1)


@pytest.mark.thorough
def test_a_stewart_platform_has_those_of_brute_force() -> None:
    """Eight are above the base, eight below it."""
    cell = stewart()
    feet = circle(0.6, [-10, 10, 110, 130, 230, 250])
    balls = circle(0.35, [-50, 50, 70, 170, 190, 290])
    expected = platform_poses(feet, balls, np.array(cell.home.q))
    assert len(expected) == 16
    found = cell.branches()
    poses = np.array([cell.pose("tool", state) for state in found.values()])
    ours = np.hstack([poses[:, :3, :3].reshape(-1, 9), poses[:, :3, 3]])
    apart = np.abs(ours[:, None] - expected).max(axis=2)
    assert sorted(apart.argmin(axis=1).tolist()) == list(range(16))
    assert apart.min(axis=1).max() < 1e-6


# Linkages whose number of assemblies is known


def linked_delta(size: float) -> arm.Cell:
    """Return a delta whose rods are links, each on two hinges that can flip."""
    links, balls, loops = [arm.Link(name="base")], [], []

    def hinge(axis, X: Pose = HERE) -> arm.Joint:
        return arm.joints.Revolute(axis=axis, precursor=X)

    for k in range(3):
        turn = Pose.rotation_z(2.0 * np.pi * k / 3.0)
        ball = turn @ Pose.translation(0.022 * size, 0, 0)
        balls.append(arm.Frame(name=f"ball{k}", pose=ball))
        base = turn @ Pose.translation(0.164 * size, 0, 0)
        elbow = Pose.translation(0.2 * size, 0, 0)
        end = arm.Frame(name=f"end{k}", pose=Pose.translation(0.4 * size, 0, 0))
        links += [
            arm.Link(name=f"arm{k}", parent="base", joint=hinge((0, 1, 0), base)),
            arm.Link(
                name=f"pitch{k}",
                parent=f"arm{k}",
                joint=hinge((0, 1, 0), elbow),
                passive=True,
            ),
            arm.Link(
                name=f"rod{k}",
                parent=f"pitch{k}",
                joint=hinge((0, 0, 1)),
                passive=True,
                frames=[end],
            ),
        ]
        loops.append(arm.Closure(f"ball{k}", end.name))
    links += slides(balls, ("x", "y", "z"), AXES, ())
    return assembled(
        links, loops, {"z": -0.3 * size} | {f"pitch{k}": 2.0 for k in range(3)}
    )


def three_legs(size: float) -> arm.Cell:
    """Return a 3-RPS: legs that swing and slide, with balls on a platform."""
    links, balls, loops, home = [arm.Link(name="base")], [], [], {"z": 0.5 * size}
    for k in range(3):
        turn = Pose.rotation_z(2.0 * np.pi * k / 3.0)
        foot = turn @ Pose.translation(0.3 * size, 0, 0)
        hinge = arm.joints.Revolute(axis=(0, 1, 0), precursor=foot)
        slide = arm.joints.Prismatic(axis=(0, 0, 1))
        end = arm.Frame(name=f"end{k}")
        links += [
            arm.Link(name=f"swing{k}", parent="base", joint=hinge, passive=True),
            arm.Link(name=f"leg{k}", parent=f"swing{k}", joint=slide, frames=[end]),
        ]
        ball = turn @ Pose.translation(0.2 * size, 0, 0)
        balls.append(arm.Frame(name=f"ball{k}", pose=ball))
        loops.append(arm.Closure(f"ball{k}", end.name))
        home |= {f"leg{k}": float(np.hypot(0.1, 0.5)) * size}
        home |= {f"swing{k}": -float(np.arctan2(0.1, 0.5))}
    links += slides(balls, ("x", "y", "z"), AXES, ("yaw", "pitch", "roll"))
    return assembled(links, loops, home)


def slides(balls, names, axes, turns) -> list[arm.Link]:
    """Return passive joints of a platform that carries balls."""
    joints = [arm.joints.Prismatic(axis=tuple(axis)) for axis in axes]
    turning = [arm.joints.Revolute(axis=tuple(axis)) for axis in AXES[::-1]]
    joints += turning[: len(turns)]
    found, parent, every = [], "base", (*names, *turns)
    for name, joint in zip(every, joints, strict=True):
        frames = balls if name == every[-1] else []
        found.append(
            arm.Link(name=name, parent=parent, joint=joint, passive=True, frames=frames)
        )
        parent = name
    return found


def assembled(links, loops, home) -> arm.Cell:
    posture = arm.Posture(name="home", joints=[*home], q=[*home.values()])
    return arm.Cell(
        manipulators=[
            arm.Manipulator(
                name="parallel",
                links=links,
                loops=loops,
                postures=[posture],
                home="home",
            )
        ]
    )


@cache
def three_legs_by_hand() -> int:
    """Return the number of angles of legs for which their tips are a triangle."""
    side = 0.2 * np.sqrt(3.0)
    feet = circle(0.3, [0, 120, 240])
    out = feet / 0.3
    length = np.hypot(0.1, 0.5)

    def equations(x: Array) -> Array:
        swing = length * np.sin(x)[..., None] * out
        tips = feet + swing + length * np.cos(x)[..., None] * AXES[2]
        apart = tips - np.roll(tips, 1, axis=1)
        return (apart * apart).sum(-1) - side**2

    found = solutions(equations, 3, 500, np.full(3, np.pi))
    return len(distinct(np.concatenate([np.cos(found), np.sin(found)], axis=1)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [1.0, *SIZES])
def test_three_legs_have_the_same_joints_and_assemblies_at_every_size(
    size: float,
) -> None:
    cell = three_legs(size)
    assert cell.joint_names == ("leg0", "leg1", "leg2")
    assert len(cell.branches()) == three_legs_by_hand() == 16


def test_rods_that_flip_are_counted_once() -> None:
    """Two positions of the platform, and two of the hinges of each of three rods."""
    cell = linked_delta(1e-3)
    found = cell.branches()
    assert len(found) == 2 * 2**3
    heights = {round(1e3 * state.passive[-1], 6) for state in found.values()}
    assert len(heights) == 2
    joints = np.array([state.passive for state in found.values()])
    around = np.concatenate([np.cos(joints), np.sin(joints)], axis=1)
    assert len(distinct(around)) == 16


# Names


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", SIZES)
def test_names_stay_in_scaled_cells(size: float) -> None:
    cell = stewart()
    scaled = cell.scaled(size)
    before, after = cell.branches(), scaled.branches()
    assert list(before) == list(after)
    for name, state in before.items():
        X, Y = cell.pose("tool", state), scaled.pose("tool", after[name])
        np.testing.assert_allclose(X[:3, :3], Y[:3, :3], atol=1e-6)
        np.testing.assert_allclose(X[:3, 3], Y[:3, 3] / size, atol=1e-6)


@pytest.mark.thorough
def test_names_do_not_depend_on_what_was_asked_before() -> None:
    cell = arm.example("stewart")
    states = list(cell.branches().items())
    rng = np.random.default_rng(2)
    for k in rng.permutation(len(states))[:4]:
        name, state = states[k]
        fresh = pickle.loads(pickle.dumps(cell))
        assert fresh.bind(arm.State.from_json(state.to_json())).branch == name
        if k % 5:  # the others are first in a fresh cell
            assert cell.bind(arm.State.from_json(state.to_json())).branch == name


def long_crank(coupler: float, rocker: float, **limits: float) -> arm.Cell:
    """Return a four-bar whose crank cannot turn round."""
    bar = four_bar()
    longer = arm.joints.Revolute(precursor=Pose.translation(0.2, 0, 0))
    links = [
        bar.links[0],
        bar.links[1].replace(limits=arm.Limits(**limits)),
        bar.links[2].replace(
            joint=longer,
            frames=[arm.Frame(name="tip", pose=Pose.translation(coupler, 0, 0))],
        ),
        bar.links[3].replace(
            frames=[arm.Frame(name="end", pose=Pose.translation(rocker, 0, 0))]
        ),
    ]
    posture = arm.Posture(name="up", joints=["crank"], q=[0.6])
    return arm.Cell(
        manipulators=[bar.replace(links=links, postures=[posture], home="up")]
    )


def test_the_middle_of_limits_numbers_its_assemblies() -> None:
    """None of the other places lies in the range that home does not reach."""
    cell = long_crank(0.06, 0.17, lower=-4.5, upper=3.5)
    assert [*cell.branches([-0.6])] == ["3", "4"]
    assert [*cell.branches([0.6])] == ["home", "2"]


def test_a_range_that_home_does_not_reach_has_names_as_well() -> None:
    """A crank that cannot turn round has another range, behind two dead points."""
    cell = long_crank(0.06, 0.17)
    one = [*cell.branches([0.6])], [*cell.branches([-0.6])]
    fresh = pickle.loads(pickle.dumps(cell))
    other = [*fresh.branches([-0.6])], [*fresh.branches([0.6])]
    assert one == other[::-1]
    assert one[0] == ["home", "2"]
    assert "home" not in one[1]
    for state in cell.branches([-0.7]).values():
        fk = cell.fk("rocker", state=state)
        np.testing.assert_allclose(fk(state.q), cell.pose("rocker", state), atol=1e-9)
        closed = cell.close_loops(state.q, state=state)
        np.testing.assert_allclose(closed.passive, state.passive, atol=1e-9)
        assert state.replace(q=[-0.65]).branch == state.branch


def test_half_a_turn_is_one_position() -> None:
    """A passive joint at +pi and at -pi is the same linkage."""
    bar = four_bar()
    turned = arm.joints.Revolute(
        precursor=Pose.translation(0.1, 0, 0) @ Pose.rotation_z(np.pi)
    )
    links = [*bar.links[:2], bar.links[2].replace(joint=turned), bar.links[3]]
    cell = arm.Cell(manipulators=[bar.replace(links=links)])
    for q in np.linspace(-3.0, 3.0, 7):
        assert len(cell.branches([q])) == 2


def test_more_assemblies_than_can_be_listed_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two four-bars have two each."""
    cell = arm.Cell(manipulators=[four_bar(name="left"), four_bar(name="right")])
    monkeypatch.setattr(branches, "MOST", 3)
    with pytest.raises(ModelError, match="ask a cell with fewer loops"):
        cell.branches()
