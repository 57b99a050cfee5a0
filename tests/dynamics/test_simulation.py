"""Simulations obey the laws of mechanics, and converge at the order of their method."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import armillary as arm
from armillary.dynamics import options
from armillary.dynamics.simulation import METHODS
from armillary.errors import ModelError, ShapeError, StateError, UnknownName
from four_bar import four_bar
from masses import heavy_example, with_inertias

G = 9.81
POINT = np.zeros((3, 3))


def chain(*links: arm.Link, name: str = "robot") -> arm.Cell:
    """Return a cell of links one behind the other."""
    base = arm.Link(name="base")
    placed = [base]
    for link in links:
        placed.append(link.replace(parent=placed[-1].name))
    return arm.Cell(manipulators=[arm.Manipulator(name=name, links=placed)])


def bar(name: str, length: float = 1.0, **more: Any) -> arm.Link:
    """Return a uniform bar of 1 kg a metre that hangs from a pin about y."""
    moment = length**3 / 12.0
    inertia = arm.SpatialInertia.from_centre(
        length, [0.0, 0.0, -length / 2.0], np.diag([moment, moment, 1e-4])
    )
    joint = arm.joints.Revolute(axis=(0.0, 1.0, 0.0), **more.pop("joint", {}))
    return arm.Link(name=name, joint=joint, inertia=inertia, **more)


def double_pendulum() -> arm.Cell:
    second = bar("second", 0.7)
    hung = second.joint.prepend(arm.Pose.translation(0.0, 0.0, -1.0))
    return chain(bar("first"), second.replace(joint=hung))


def body(*moments: float, name: str = "body") -> arm.Cell:
    """Return a body of 2 kg that nothing holds, its centre beside its origin."""
    inertia = arm.SpatialInertia.from_centre(2.0, [0.1, -0.2, 0.3], np.diag(moments))
    link = arm.Link(name="link", inertia=inertia)
    cell = arm.Cell(name="flight")
    return cell.add(arm.Manipulator(name=name, links=[link]), bolted=False)


def energy_drift(cell: arm.Cell, path: Any, up: Any = (0.0, 0.0, 1.0)) -> float:
    """Return by how much the energy varies, by the greatest kinetic energy."""
    q, qd = path.q, path.qd
    M = cell.mass_matrix()(q)
    kinetic = total = 0.5 * np.einsum("...i,...ij,...j->...", qd, M, qd)
    for manipulator in cell.manipulators:
        for link in manipulator.links:
            if link.inertia is not None:
                X = cell.fk(f"{manipulator.name}/{link.name}")(q)
                centre = np.append(link.inertia.centre(), 1.0)
                total = total + link.inertia.mass * G * (X @ centre)[..., :3] @ up
    return float(np.ptp(total) / kinetic.max())


# order


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", METHODS)
def test_errors_fall_with_the_order_of_the_method(method: str) -> None:
    cell = double_pendulum()
    start = cell.home.replace(q=[0.5, 0.3])
    counts = (100, 200, 400)
    found = [
        cell.simulate(start, dt=1.0 / n, steps=n, every=n, method=method).q[-1]
        for n in (*counts, 800)
    ]
    errors = [np.abs(a - b).max() for a, b in pairwise(found)]
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert abs(slopes - METHODS[method].order).max() < 0.15


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", METHODS)
def test_errors_of_a_free_body_fall_with_the_order_of_the_method(method: str) -> None:
    cell = body(0.1, 0.2, 0.25)
    start = cell.home.place("body", arm.Pose.rotation_x(1.0)).with_velocity(
        "body", linear=[1.0, 0.0, 2.0], angular=[0.1, 4.0, 0.3]
    )
    found = [
        cell.simulate(
            start, dt=1.0 / n, steps=n, every=n, method=method, free_bases=["body"]
        ).base_poses[-1]
        for n in (100, 200, 400, 800)
    ]
    errors = [np.abs(a - b).max() for a, b in pairwise(found)]
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert abs(slopes - METHODS[method].order).max() < 0.15


# laws


def test_a_double_pendulum_keeps_its_energy() -> None:
    cell = double_pendulum()
    start = cell.home.replace(q=[1.2, 0.5])
    path = cell.simulate(start, dt=1e-3, steps=10_000, every=10)
    assert energy_drift(cell, path) <= 1e-8
    assert np.ptp(path.q[:, 0]) > 2.0


class Hoop(arm.Joint, frozen=True):
    """Ride a bent hoop, turning on the way; its inertia depends on q."""

    def pose(self, q: Any) -> arm.Pose:
        place = arm.Pose.translation(
            0.8 * np.cos(q), 0.1 * np.sin(3.0 * q), 0.5 * np.sin(q)
        )
        return place @ arm.Pose.rotation_z(q)


def test_a_bead_on_a_joint_of_the_user_keeps_its_energy() -> None:
    inertia = arm.SpatialInertia.from_centre(
        2.0, [0.1, 0.05, 0.02], np.diag([0.02, 0.03, 0.04])
    )
    cell = chain(arm.Link(name="bead", joint=Hoop(), inertia=inertia))
    start = cell.home.replace(qd=[4.0])
    path = cell.simulate(start, dt=1e-3, steps=10_000, every=10)
    assert energy_drift(cell, path) <= 1e-8
    assert np.ptp(path.q) > 4.0


def test_jumps_of_curvature_lower_the_order_to_two() -> None:
    track = arm.joints.OvalTrack(straight=2.0, radius=0.5)
    track = track.prepend(arm.Pose.rotation_x(0.3))
    mass = arm.SpatialInertia.from_centre(2.0, [0.0, 0.0, 0.0], POINT)
    cell = chain(arm.Link(name="cart", joint=track, inertia=mass))
    start = cell.home.replace(qd=[4.0])
    drifts = []
    for steps in (5_000, 10_000, 20_000):
        path = cell.simulate(start, dt=10.0 / steps, steps=steps, every=10)
        assert np.ptp(path.q) > 30.0
        drifts.append(energy_drift(cell, path))
    assert drifts[1] < 1e-6
    assert drifts[0] / drifts[2] > 8.0


def test_a_four_bar_keeps_its_energy() -> None:
    cell = with_inertias(arm.Cell(manipulators=[four_bar()]), 3)
    start = cell.home.replace(q=[0.3], qd=[3.0])
    path = cell.simulate(start, dt=1e-3, steps=10_000, every=10, gravity=(0.0, -G, 0.0))
    assert energy_drift(cell, path, (0.0, 1.0, 0.0)) <= 1e-8
    assert np.ptp(path.q) > 2.0 * np.pi
    state = path.state(-1)
    np.testing.assert_allclose(
        cell.pose("tip", state)[:2, 3], cell.pose("end", state)[:2, 3], atol=1e-9
    )


def test_a_delta_keeps_its_energy_until_its_loops_open() -> None:
    cell = heavy_example("delta", 0)
    start = cell.home.replace(qd=[0.3, -0.2, 0.1])
    path = cell.simulate(start, dt=1e-4, steps=3000, every=10)
    assert energy_drift(cell, path) <= 1e-8
    assert np.abs(path.qd).max() > 1.0
    fallen = cell.simulate(start, dt=1e-3, steps=1000)
    assert not fallen.is_finite
    assert repr(fallen) == "<Trajectory: 1 s in 1001 instants, not finite>"
    assert np.isnan(fallen.q[-1]).all()


def test_a_damped_spring_moves_as_its_closed_form() -> None:
    m, d, k, rest, q0 = 2.0, 0.8, 50.0, 0.1, 0.4
    dynamics = arm.JointDynamics(damping=d, stiffness=k, rest=rest, motor_inertia=m)
    slide = arm.joints.Prismatic(axis=(1.0, 0.0, 0.0))
    mass = arm.SpatialInertia.from_centre(1.0, [0.0, 0.0, 0.0], POINT)
    cart = arm.Link(name="cart", joint=slide, inertia=mass, dynamics=dynamics)
    cell = chain(cart)
    path = cell.simulate(cell.home.replace(q=[q0]), dt=1e-3, steps=2000)
    whole = m + 1.0
    a, w = d / (2.0 * whole), np.sqrt(k / whole - (d / (2.0 * whole)) ** 2)
    t = path.time
    swing = np.cos(w * t) + a / w * np.sin(w * t)
    expected = rest + (q0 - rest) * np.exp(-a * t) * swing
    np.testing.assert_allclose(path.q[:, 0], expected, atol=1e-11)


def test_a_projectile_flies_a_parabola_and_spins_evenly() -> None:
    cell = body(0.2, 0.2, 0.2)
    start = cell.home.with_velocity("body", linear=[1.0, 0.0, 5.0], angular=[0, 0, 2.0])
    path = cell.simulate(start, dt=0.01, steps=100, free_bases=["body"])
    centre = np.array([0.1, -0.2, 0.3, 1.0])
    t = path.time
    v = np.array([1.0, 0.0, 5.0]) + np.cross([0, 0, 2.0], centre[:3])
    expected = centre[:3] + np.outer(t, v) - np.outer(0.5 * G * t**2, [0, 0, 1.0])
    np.testing.assert_allclose(
        (path.base_poses[:, 0] @ centre)[:, :3], expected, atol=1e-8
    )
    turned = arm.Pose.rotation_z(2.0 * t[-1]).matrix()
    np.testing.assert_allclose(
        path.base_poses[-1, 0, :3, :3], turned[:3, :3], atol=1e-9
    )


def test_a_free_body_turns_by_eulers_equations() -> None:
    moments = np.array([0.1, 0.2, 0.27])
    link = arm.Link(
        name="link",
        inertia=arm.SpatialInertia.from_centre(2.0, np.zeros(3), np.diag(moments)),
    )
    cell = arm.Cell(name="flight").add(
        arm.Manipulator(name="body", links=[link]), bolted=False
    )
    spin = np.array([1e-3, 5.0, 1e-3])  # about the intermediate axis: it turns over
    start = cell.home.with_velocity("body", angular=spin)
    path = cell.simulate(
        start, dt=1e-3, steps=10_000, every=10, gravity=(0, 0, 0), free_bases=["body"]
    )
    R, w = path.base_poses[:, 0, :3, :3], path.base_velocities[:, 0, 3:]
    own = np.einsum("tji,tj->ti", R, w)
    momentum = np.einsum("tij,tj->ti", R, own * moments)
    np.testing.assert_allclose(momentum, np.tile(spin * moments, (1001, 1)), atol=1e-9)
    energy = 0.5 * (own**2 * moments).sum(-1)
    np.testing.assert_allclose(energy, energy[0], rtol=1e-10)
    assert own[:, 1].min() < -4.9 < 4.9 < own[:, 1].max()

    def euler(_: float, w: np.ndarray) -> np.ndarray:
        return -np.cross(w, moments * w) / moments

    exact = solve_ivp(
        euler, (0.0, 10.0), spin, "DOP853", path.time, rtol=1e-12, atol=1e-12
    ).y.T
    np.testing.assert_allclose(own, exact, atol=1e-6)


def test_rotations_remain_rotations() -> None:
    cell = body(0.1, 0.2, 0.25)
    start = cell.home.with_velocity("body", angular=[1.0, 4.0, 0.3])
    path = cell.simulate(
        start, dt=1e-2, steps=100_000, every=10_000, free_bases=["body"]
    )
    R = path.base_poses[:, 0, :3, :3]
    assert np.abs(R @ R.swapaxes(1, 2) - np.eye(3)).max() < 1e-14


# batches, torques, states


def test_rows_of_a_batch_are_those_of_single_simulations() -> None:
    cell = heavy_example("irb2400", 0)
    rng = np.random.default_rng(1)
    Q, torques = rng.uniform(-1, 1, (3, 1, 6)), rng.uniform(-5, 5, (4, 20, 6))
    path = cell.simulate(cell.home, dt=1e-3, steps=20, q=Q, torque=torques)
    assert path.q.shape == (3, 4, 21, 6)
    assert path.torque.shape == (3, 4, 20, 6)
    for i, j in np.ndindex(3, 4):
        one = cell.simulate(cell.home, dt=1e-3, steps=20, q=Q[i, 0], torque=torques[j])
        np.testing.assert_array_equal(path.q[i, j], one.q)
        np.testing.assert_array_equal(path.qd[i, j], one.qd)
        np.testing.assert_array_equal(path.torque[i, j], torques[j])
    again = cell.simulate(cell.home, dt=1e-3, steps=20, q=Q, torque=torques)
    np.testing.assert_array_equal(path.q, again.q)


def test_torques_may_be_constant_a_table_or_a_function() -> None:
    cell = heavy_example("irb2400", 0)
    constant = np.arange(6.0)
    table = np.tile(constant, (12, 1))
    calls: list[float] = []

    def function(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        calls.append(t)
        assert q.shape == qd.shape == (6,)
        return constant

    paths = [
        cell.simulate(cell.home, dt=1e-2, steps=12, every=3, torque=torque)
        for torque in (constant, constant[None], table, function)
    ]
    for path in paths:
        np.testing.assert_array_equal(path.q, paths[0].q)
        np.testing.assert_array_equal(path.torque, table[:4])
    np.testing.assert_allclose(calls, np.arange(12) * 1e-2)
    np.testing.assert_allclose(paths[0].time, np.arange(5) * 3e-2)


def test_an_instant_is_a_state_of_the_cell() -> None:
    cell = double_pendulum().add(body(0.1, 0.2, 0.25).manipulators[0], bolted=False)
    start = cell.home.replace(q=[1.0, 2.0]).with_velocity("body", angular=[0, 0, 2.0])
    given = {"dt": 1e-2, "steps": 10, "free_bases": ["body"]}
    path = cell.simulate(start, **given)
    middle = path.state(5)
    assert middle.time == path.time[5] > 0.0
    after = cell.simulate(middle, **{**given, "steps": 5})
    np.testing.assert_allclose(after.q[-1], path.q[-1], atol=1e-13)
    np.testing.assert_allclose(after.qd[-1], path.qd[-1], atol=1e-13)
    np.testing.assert_allclose(after.base_poses[-1], path.base_poses[-1], atol=1e-13)
    np.testing.assert_allclose(
        cell.pose("body/link", middle), path.base_poses[5, 0], atol=1e-15
    )


def test_a_part_that_is_gripped_weighs_on_the_arm() -> None:
    cell = double_pendulum()
    part = body(0.1, 0.2, 0.25, name="part").manipulators[0]
    with_part = cell.add(part, bolted=False)
    tip = arm.Pose.translation(0.1, 0.0, -0.7)
    held = with_part.home.attach("part", to="second", pose=tip).replace(q=[0.5, 0.3])

    robot = cell.manipulators[0]
    *links, last = robot.links
    whole = last.inertia + part.links[0].inertia.transformed(tip)
    built = cell.replace(
        manipulators=[robot.replace(links=[*links, last.replace(inertia=whole)])]
    )
    given = {"dt": 1e-3, "steps": 500, "torque": [0.1, 0.2]}
    path = with_part.simulate(held, **given)
    same = built.simulate(built.home.replace(q=[0.5, 0.3]), **given)
    np.testing.assert_allclose(path.q, same.q, atol=1e-11)
    alone = cell.simulate(cell.home.replace(q=[0.5, 0.3]), **given)
    assert np.abs(path.q - alone.q).max() > 0.01


def test_free_bases_may_be_moved_in_states_that_hold_others() -> None:
    cell = double_pendulum()
    for name in ("part", "flying"):
        cell = cell.add(body(0.1, 0.2, 0.25, name=name).manipulators[0], bolted=False)
    start = cell.home.attach("part", to="second").replace(q=[0.5, 0.3])
    start = start.place("flying", arm.Pose.translation(1.0, 2.0, 3.0))
    path = cell.simulate(start, dt=1e-2, steps=30, free_bases=["flying"])
    alone = cell.simulate(start, dt=1e-2, steps=30)
    np.testing.assert_allclose(path.q, alone.q, atol=1e-12)
    fallen = 3.0 - 0.5 * G * path.time**2
    np.testing.assert_allclose(path.base_poses[:, 0, 2, 3], fallen, atol=1e-12)
    X = np.tile(np.eye(4), (4, 1, 1, 1))
    X[:, 0, 2, 3] = np.arange(4.0)
    calls: list[tuple[int, ...]] = []

    def lift(t: float, X: np.ndarray, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        calls.append((*X.shape, *q.shape, *qd.shape))
        torque = np.zeros(qd.shape)
        torque[..., 2], torque[..., 3:6] = 2.0 * G, moment
        return torque

    moment = np.cross([0.1, -0.2, 0.3], [0.0, 0.0, 2.0 * G])
    path = cell.simulate(
        start, base_poses=X, dt=1e-2, steps=10, free_bases=["flying"], torque=lift
    )
    assert calls == [(4, 1, 4, 4, 4, 2, 4, 8)] * 10
    np.testing.assert_allclose(path.base_poses[:, -1], X, atol=1e-12)


def test_a_row_whose_torque_is_nan_is_nan_alone() -> None:
    cell = double_pendulum()
    torques = np.zeros((3, 10, 2))
    torques[1, 4, 0] = np.nan
    path = cell.simulate(cell.home, dt=1e-2, steps=10, torque=torques)
    np.testing.assert_array_equal(path.is_finite, [True, False, True])
    assert np.isfinite(path.q[1, :5]).all()
    assert np.isnan(path.q[1, 5:]).all()
    assert repr(path) == (
        "<Trajectory: 3 rows, 0.1 s in 11 instants, 1 not finite at the end>"
    )
    with pytest.raises(StateError, match="not finite"):
        path.state(7, row=1)
    with pytest.raises(StateError, match="There are 11 instants here, and none is 11"):
        path.state(11, row=0)
    with pytest.raises(StateError, match="There are 3 rows here, and none is 3"):
        path.state(1, row=3)
    with pytest.raises(StateError, match="are whole numbers, not 'first' and 0"):
        path.state("first", row=0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(StateError, match="row= must choose one"):
        path.state(7)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"dt": 0.0}, ModelError, "dt is 0.0"),
        ({"dt": "a"}, ModelError, "dt is 'a'"),
        ({"steps": -1}, ModelError, "steps is -1"),
        ({"steps": 1.5}, ModelError, "steps is 1.5"),
        ({"every": 0}, ModelError, "every is 0"),
        ({"every": 3}, ModelError, "every=3 does not divide steps=10"),
        ({"method": "rk5"}, UnknownName, "no method of integration named 'rk5'"),
        ({"torque": np.zeros(3)}, ShapeError, "torque of shape (..., 2)"),
        ({"torque": np.zeros((9, 2))}, ShapeError, "torque of shape (..., 10, 2)"),
        ({"torque": lambda *_: np.zeros(3)}, ShapeError, "torque of shape (..., 2)"),
        ({"torque": lambda *_: np.zeros((5, 2))}, ShapeError, "of a function have"),
        ({"q": np.zeros(3)}, ShapeError, "q of shape (..., 2)"),
        ({"q": np.zeros((3, 2)), "qd": np.zeros((4, 2))}, ShapeError, "fit together"),
        ({"joints": ["third"]}, UnknownName, "no joint named 'third'"),
        ({"free_bases": ["robot"]}, ModelError, "The mass matrix is singular"),
        ({"free_bases": ["robot"] * 2}, ModelError, "names a manipulator twice"),
        ({"free_bases": "robot"}, ModelError, "takes a list of names"),
        ({"gravity": 9.81}, ModelError, "three finite numbers"),
        ({"base_poses": np.eye(4)}, ShapeError, "base_poses of shape (..., 0, 4, 4)"),
    ],
)
def test_what_cannot_be_simulated_is_refused(
    change: dict[str, Any], error: type[Exception], text: str
) -> None:
    cell = double_pendulum()
    with pytest.raises(error) as caught:
        cell.simulate(cell.home, **{"dt": 0.01, "steps": 10, **change})
    assert text in str(caught.value)


def test_joints_that_are_locked_do_not_move() -> None:
    cell = double_pendulum()
    start = cell.home.replace(q=[0.5, 0.2])
    path = cell.simulate(start, dt=0.01, steps=50, joints=["second"])
    assert path.q.shape == (51, 1)
    assert path.state(-1).q[0] == 0.5
    with pytest.raises(StateError, match="are locked: 'first'"):
        cell.simulate(start.replace(qd=[1, 0]), dt=1, steps=1, joints=["second"])


def test_joints_without_mass_are_refused() -> None:
    light = chain(arm.Link(name="light", joint=arm.joints.Revolute()))
    with pytest.raises(ModelError, match="has an inertia"):
        light.simulate(light.home, dt=0.01, steps=1)


def test_large_cells_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulation runs in compiled code only, so that no size makes it Python."""
    monkeypatch.setattr(options, "MOST_BODIES", 2)
    large, small = (with_inertias(arm.example("irb2400"), 0) for _ in range(2))
    path = large.simulate(large.home, dt=1e-3, steps=5)
    assert large.mass_matrix().operation_count == 0  # it runs as Python
    monkeypatch.undo()
    np.testing.assert_allclose(
        path.q, small.simulate(small.home, dt=1e-3, steps=5).q, atol=1e-14
    )
