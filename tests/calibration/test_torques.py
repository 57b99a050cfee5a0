"""Masses, motors and friction from torques, as rigid bodies can have them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.calibration.consistent_inertias import consistent
from armillary.calibration.identifiability import identified
from armillary.calibration.measurements import Positions, Torques, exciting_motion
from armillary.errors import ModelError
from armillary.spatial.inertia import INERTIAL, SpatialInertia
from masses import heavy_example

Array = np.ndarray

NOISE = 0.5


def nominal() -> arm.Cell:
    return arm.example("irb2400")


def names_of(cell: arm.Cell) -> list[str]:
    links = [x for m in cell.manipulators for x in m.links if x.has_coordinate]
    fields = "damping", "friction", "motor_inertia"
    return list(
        cell.parameters(
            [
                *(f"{x.name}.inertia" for x in links),
                *(
                    f"{x.coordinate}.dynamics.{field}"
                    for x in links
                    for field in fields
                ),
            ]
        )
    )


@cache
def real() -> arm.Cell:
    """Return the robot as it is: heavier here, lighter there, with friction."""
    cell, rng = nominal(), np.random.default_rng(0)
    numbers: dict[str, Any] = {}
    for link in cell.manipulators[0].links:
        if not link.has_coordinate:
            continue
        size = rng.uniform(0.8, 1.3)
        inertia = SpatialInertia.from_centre(
            size * link.inertia.mass,
            np.add(link.inertia.centre(), rng.uniform(-0.02, 0.02, 3)),
            size * np.array(link.inertia.about_centre()),
        )
        numbers[f"{link.name}.inertia"] = inertia.parameters
        for field in ("damping", "friction", "motor_inertia"):
            numbers[f"{link.coordinate}.dynamics.{field}"] = rng.uniform(1.0, 5.0)
    return cell.with_parameters(numbers)


def motion(count: int, seed: int = 1) -> Array:
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.0, 1.0, (3, count, 6)) * [[[1.0]], [[2.0]], [[8.0]]]


def measured(count: int, seed: int = 1, noise: float = NOISE) -> Torques:
    q, qd, qdd = motion(count, seed)
    exact = real().inverse_dynamics()(q, qd, qdd)
    rng = np.random.default_rng(seed)
    return Torques(q, qd, qdd, exact + rng.normal(0.0, noise, exact.shape), sigma=NOISE)


def errors(found: arm.Calibration) -> Array:
    """Return the errors of all combinations, in their standard deviations."""
    truth = real().parameters(list(found.names))
    return np.array(
        [
            (each.value - sum(x * truth[k] for k, x in each.factors.items())) / each.std
            for each in found.combinations
        ]
    )


def test_masses_and_friction_are_found_and_written(tmp_path: Path) -> None:
    cell = nominal()
    found = arm.calibrate(cell, measured(400), names_of(cell))
    assert found.success
    assert 0.95 < found.noise < 1.05
    z = errors(found)
    # 36 of inertias (Mayeda et al., 1990), and three of each joint, but that motors of
    # the first two joints, at right angles, count with inertias of their links.
    assert len(z) == found.identified.rank == 36 + 18 - 2
    assert np.abs(z).max() < 4.0
    assert np.sqrt((z**2).mean()) < 1.3
    assert np.isfinite([each.std for each in found.combinations]).all()
    inertias = [x.inertia for x in found.cell.manipulators[0].links[1:]]
    assert [each.fault() for each in inertias] == [None] * 6
    q, qd, qdd = motion(50, 2)
    wanted = real().inverse_dynamics()(q, qd, qdd)
    torque = found.cell.inverse_dynamics()(q, qd, qdd)
    assert np.abs(torque - wanted).max() < NOISE
    for name in ("robot.urdf", "robot.xml", "robot.cell.json"):
        kind = "mjcf" if name.endswith(".xml") else None
        arm.save(found.cell, tmp_path / name, format=kind)
        (back,) = arm.load(tmp_path / name).manipulators
        for link in found.cell.manipulators[0].links[1:]:
            same = back.link(link.name)
            np.testing.assert_allclose(
                same.inertia.parameters, link.inertia.parameters, atol=1e-6
            )
            assert same.dynamics.friction == pytest.approx(link.dynamics.friction)
            assert same.dynamics.armature == pytest.approx(link.dynamics.armature)


def test_few_rows_with_noise_give_bodies_that_exist() -> None:
    cell = nominal()
    names = names_of(cell)[:60]
    cloud = measured(12, noise=5.0)
    # What least squares alone would give: with minimum change of the nominal numbers.
    Y = cell.inertial_regressor([x.name for x in cell.manipulators[0].links[1:]])
    rows = Y(cloud.q, cloud.qd, cloud.qdd).reshape(-1, 60)
    start = np.array(list(cell.parameters(names).values()))
    rest = (cloud.measured).ravel() - rows @ start
    plain = start + np.linalg.lstsq(rows, rest, rcond=None)[0]
    faults = [SpatialInertia.from_parameters(x).fault() for x in plain.reshape(-1, 10)]
    assert any(faults)
    found = arm.calibrate(cell, cloud, names)
    for link in found.cell.manipulators[0].links[1:]:
        P = link.inertia
        assert P.fault() is None
        assert P.mass > 0.0
    assert found.before[0].std() > found.residuals[0].std()


@pytest.mark.parametrize("wrong", ["sign", "unit", "columns"])
def test_torques_that_no_body_causes(wrong: str) -> None:
    """The answer is a body all the same, and is doubted."""
    cell, exact = nominal(), measured(30, noise=0.0)
    torques = {
        "sign": -exact.measured,
        "unit": 1000.0 * exact.measured,
        "columns": exact.measured[:, ::-1],
    }[wrong]
    seen = Torques(exact.q, exact.qd, exact.qdd, torques, sigma=NOISE)
    found = arm.calibrate(cell, seen, names_of(cell)[40:60])
    (one, two) = (x.inertia for x in found.cell.manipulators[0].links[5:])
    assert one.fault() is None is two.fault()
    assert any("standard deviations stated" in each for each in found.doubts)


def test_what_is_minimised_is_least() -> None:
    """Against a general minimiser, in numbers of the log-Cholesky form."""
    optimize = pytest.importorskip("scipy.optimize")
    rng = np.random.default_rng(5)
    link = nominal().manipulators[0].links[2]
    start = np.array(link.inertia.parameters, float)
    J, r = 0.02 * rng.normal(size=(6, 10)), 0.02 * rng.normal(size=6)
    p = start + rng.normal(0.0, 30.0, 10)
    found = consistent(J, r, p, start, [np.arange(10)])

    def pseudo(numbers: Array) -> Array:
        m, x, y, z, xx, xy, yy, xz, yz, zz = numbers
        half = 0.5 * (xx + yy + zz)
        return np.array(
            [
                [half - xx, -xy, -xz, x],
                [-xy, half - yy, -yz, y],
                [-xz, -yz, half - zz, z],
                [x, y, z, m],
            ]
        )

    def cost(numbers: Array) -> float:
        P, P0 = pseudo(numbers), pseudo(start)
        ratio = np.linalg.solve(P0, P)
        divergence = np.trace(ratio) - np.linalg.slogdet(ratio)[1] - 4.0
        return float(0.5 * ((r + J @ (numbers - p)) ** 2).sum() + 1e-4 * divergence)

    def numbers_of(theta: Array) -> Array:
        L = np.zeros((4, 4))
        L[np.tril_indices(4)] = theta
        L[np.diag_indices(4)] = np.exp(np.diag(L))
        P = L @ L.T
        S = P[:3, :3]
        inertia = np.trace(S) * np.eye(3) - S
        return np.array(
            SpatialInertia(
                P[3, 3], tuple(P[:3, 3]), tuple(map(tuple, inertia))
            ).parameters
        )

    L = np.linalg.cholesky(pseudo(found))
    L[np.diag_indices(4)] = np.log(np.diag(L))
    theta = L[np.tril_indices(4)]
    np.testing.assert_allclose(numbers_of(theta), found, rtol=1e-9, atol=1e-9)
    assert np.linalg.eigvalsh(pseudo(found))[0] > 0.0
    best = cost(found)
    for _ in range(3):
        around = theta + rng.normal(0.0, 0.1, 10)
        other = optimize.minimize(
            lambda x: cost(numbers_of(x)), around, method="BFGS", tol=1e-10
        )
        assert best <= other.fun + 1e-7 * abs(other.fun)


def test_a_part_of_unknown_inertia() -> None:
    part = arm.Manipulator(name="part", links=[arm.Link(name="block")])
    cell = nominal().add(part, bolted=False)
    truth = SpatialInertia.from_centre(6.0, (0.03, -0.05, 0.12), 0.05 * np.eye(3))
    state = cell.home.attach("part", "tool0", pose=arm.Pose.translation(0, 0, 0.1))
    q, qd, qdd = motion(200)
    heavy = cell.with_parameters({"block.inertia": truth.parameters})
    torques = heavy.inverse_dynamics(state=heavy.bind(state))(q, qd, qdd)
    seen = Torques(q, qd, qdd, torques, sigma=0.1, state=state)
    found = arm.calibrate(cell, seen, ["block.inertia"])
    assert found.identifiable.all()
    z = (found.values - truth.parameters) / found.std
    assert np.abs(z).max() < 0.1
    assert found.cell.parameters(["block.inertia"]) == found.parameters


def test_friction_stays_at_zero_or_above() -> None:
    cell = nominal()
    q, qd, qdd = motion(60)
    torques = cell.inverse_dynamics()(q, qd, qdd) - 2.0 * np.sign(qd)
    names = [f"{each}.dynamics.friction" for each in cell.joint_names]
    found = arm.calibrate(cell, Torques(q, qd, qdd, torques), names)
    np.testing.assert_allclose(found.values, 0.0, atol=1e-6)
    assert (found.values >= 0.0).all()
    found.cell.inverse_dynamics()


def test_exciting_motions_keep_limits_and_tell_more() -> None:
    cell = nominal()
    links = ["link_5", "link_6"]
    names = [f"{link}.inertia" for link in links]
    few = exciting_motion(cell, names, seconds=6.0, most_steps=1, trials=1, harmonics=3)
    more = exciting_motion(cell, names, seconds=6.0, most_steps=25, harmonics=3)
    regressor = cell.inertial_regressor(links)
    determinants = []
    for each in (few, more):
        peaks = each.peaks()
        assert (peaks.velocity <= cell.velocity_limits).all()
        assert each.limit_excess(cell) <= 0.0
        np.testing.assert_allclose(each.qd[[0, -1]], 0.0, atol=1e-9)
        np.testing.assert_allclose(each.q[0], each.q[-1], atol=1e-9)
        s = each.at(np.linspace(0.0, 6.0, 120))
        J = regressor(s.q, s.qd, s.qdd).reshape(-1, 20)
        J = J[:, ~identified(J, list(cell.parameters(names))).is_fixed]
        determinants.append(np.linalg.slogdet(J.T @ J)[1])
    assert determinants[1] > determinants[0] + 3.0


def test_exciting_motions_touch_nothing() -> None:
    wall = arm.Link(
        name="wall",
        collisions=[arm.shapes.Box(size=(0.1, 3.0, 3.0))],
    )
    cell = nominal().add(arm.Manipulator(name="room", links=[wall]))
    cell = cell.mount("room", pose=arm.Pose.translation(1.3, 0.0, 1.0))
    check = cell.collision(margin=0.01)
    where = cell.home.joints({"joint_1": 0.6})
    options: dict[str, Any] = {"harmonics": 2, "most_steps": 1, "trials": 1}
    moved = exciting_motion(cell, ["link_6.inertia"], **options)
    free = exciting_motion(
        cell, ["link_6.inertia"], check=check, state=where, **options
    )
    assert (check.motion(moved.q[:-1], moved.q[1:]).fraction < 1.0).any()
    assert (check.motion(free.q[:-1], free.q[1:]).fraction == 1.0).all()


def test_closed_loops() -> None:
    cell = heavy_example("delta", 0)
    moved = exciting_motion(cell, ["arm1.inertia"], share=0.2, harmonics=2, trials=1)
    s = moved.at(np.linspace(0.0, 10.0, 40))
    names = ["arm1.inertia.I_yy", "J1.dynamics.damping"]
    truth = cell.with_parameters({names[0]: 0.3, names[1]: 0.2})
    torques = truth.inverse_dynamics()(s.q, s.qd, s.qdd)
    found = arm.calibrate(cell, Torques(s.q, s.qd, s.qdd, torques), names)
    np.testing.assert_allclose(found.values, [0.3, 0.2], atol=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda q: Torques(q, q, q, q[:, :5]), "5 torques in a row"),
        (lambda q: Torques(q, q[1:], q, q), "each needs its own"),
        (lambda q: Torques(q, q * np.nan, q, q), "rates of Torques are not finite"),
        (lambda q: Torques(q, q, q, q, sigma=[1.0, 2.0]), "2 were given"),
        (lambda q: Torques(q, q, q, q, sigma=-1.0), "above 0"),
    ],
)
def test_torques_that_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        make(np.ones((4, 6)))


def test_links_without_mass_get_one() -> None:
    """Where the nominal inertia says nothing, torques do."""
    names = [f"link_{k}.inertia" for k in range(1, 7)]
    bare = nominal().with_parameters(dict.fromkeys(names, [0.0] * 10))
    truth = nominal().with_parameters(dict.fromkeys(names[:5], [0.0] * 10))
    q, qd, qdd = motion(50)
    torques = truth.inverse_dynamics()(q, qd, qdd)
    found = arm.calibrate(bare, Torques(q, qd, qdd, torques, sigma=0.1), names[5:])
    (body,) = (x.inertia for x in found.cell.manipulators[0].links[6:])
    assert body.fault() is None
    assert body.mass == pytest.approx(
        truth.parameters([names[5]])[found.names[0]], 1e-3
    )


def test_questions_that_are_refused() -> None:
    cell, seen = nominal(), measured(20)
    with pytest.raises(ModelError, match="Use priors="):
        arm.calibrate(
            cell, seen, ["link_2.inertia"], bounds={"link_2.inertia.m": (1.0, 99.0)}
        )
    degrees = Torques(seen.q, np.degrees(seen.qd), seen.qdd, seen.measured)
    with pytest.raises(ModelError, match="rates are in degrees"):
        arm.calibrate(cell, degrees, ["link_2.inertia.m"])
    found = arm.calibrate(cell, seen, ["link_2.inertia.m"])
    with pytest.raises(ModelError, match="exciting_motion"):
        found.next_poses(np.zeros((4, 6)), 2)
    with pytest.raises(ModelError, match="do not depend"):
        exciting_motion(cell, ["tool0.x"])
    for options, message in (
        ({"harmonics": 1}, "at least 2"),
        ({"harmonics": 10**400}, "at most 100"),
        ({"seconds": "3"}, "above 0, not '3'"),
        ({"trials": 2.5}, "trials is 2.5; it must be a whole number"),
        ({"share": np.nan}, "above 0, not nan"),
        ({"share": 1.5}, "at most 1"),
        ({"seed": -1}, "whole number"),
        ({"check": "x"}, "a collision check"),
        ({"check": arm.example("scara").collision()}, "another cell"),
    ):
        with pytest.raises(ModelError, match=message):
            exciting_motion(cell, ["link_2.inertia"], **options)
    assert len(found.cross_validated(4)[0]) == 20
    assert INERTIAL[0] in found.names[0]
    with pytest.raises(ModelError, match="joint positions"):
        arm.calibrate(
            cell, Positions("tool0", np.zeros((3, 4)), np.zeros((3, 3))), ["tool0"]
        )
