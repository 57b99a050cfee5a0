"""The cells that come with armillary: their numbers, by arithmetic of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files

import numpy as np
import numpy.typing as npt
import pytest

import armillary as arm
from armillary.cli.main import main
from armillary.model.primitive import Primitive

Array = npt.NDArray[np.float64]

LOOPED = {  # with how many of the joints of their loops are free
    "delta": 3,
    "five_bar": 2,
    "palletiser": 2,
    "stewart": 6,
    "two_finger_gripper": 1,
}
PLAIN = ("ur5e_on_oval", *LOOPED)  # kinematics alone
DESCRIBED = [name for name in arm.example_names() if name not in PLAIN]
QUARTER = math.pi / 2


def states(cell: arm.Cell) -> Iterator[tuple[str, arm.State]]:
    """The cell at home, and with each manipulator in each of its postures."""
    yield "home", cell.home
    for manipulator in cell.manipulators:
        for posture in manipulator.postures:
            names = [f"{manipulator.name}/{joint}" for joint in posture.joints]
            state = cell.home.joints(dict(zip(names, posture.q, strict=True)))
            yield f"{manipulator.name} {posture.name}", state


# What holds for all of them.


def test_the_names_are_reported():
    assert set(DESCRIBED) >= {
        "pan_tilt",
        "scara",
        "irb2400",
        "ur10_on_rail",
        "oval_track_cell",
        "two_arms_positioner",
    }
    with pytest.raises(arm.errors.UnknownName, match="Did you mean 'scara'"):
        arm.example("skara")


@pytest.mark.parametrize("name", arm.example_names())
def test_check_finds_nothing(name: str, capsys: pytest.CaptureFixture[str]):
    path = files("armillary") / "cells" / f"{name}.cell.json"
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: 0 errors, 0 warnings\n"


@pytest.mark.parametrize("name", DESCRIBED)
def test_sources_and_postures_are_reported(name: str):
    cell = arm.example(name)
    assert [each.name for each in cell.properties] == ["description"]
    for manipulator in cell.manipulators:
        told = [each.name for each in manipulator.properties]
        assert {"source", "estimate"} <= set(told) <= {"source", "choice", "estimate"}
        assert len(told) == len(set(told))
        if manipulator.joint_names:
            assert manipulator.posture(manipulator.home).joints
            assert len(manipulator.postures) > 1
        for link in manipulator.links:
            if link.moves:
                assert math.isfinite(link.limits.velocity + link.limits.effort)
                assert link.inertia is not None
    assert [link for m in cell.manipulators for link in m.links if ends(link)]


@pytest.mark.parametrize("name", LOOPED)
def test_cells_with_loops_report_their_sources(name: str):
    cell = arm.example(name)
    assert [each.name for each in cell.properties] == ["description"]
    (manipulator,) = cell.manipulators
    told = [each.name for each in manipulator.properties]
    assert {"source"} <= set(told) <= {"source", "choice"}
    assert any(map(ends, manipulator.links))
    assert cell.mobility().count == LOOPED[name]
    assert not cell.mobility().redundant
    assert cell.violations(cell.home) == ()


@pytest.mark.parametrize("name", LOOPED)
def test_loops_are_closed_within_the_limits(name: str):
    """Or at least often: legs of any length do not carry a platform.

    A palletiser's parallelograms are flat where crank and upper arm are 90 degrees
    apart, which its ranges allow; there the branch ends.
    """
    cell = arm.example(name)
    found = cell.close_loops(vectors(cell, 200)[:1])
    assert found.success.all()
    found = cell.close_loops(vectors(cell, 200)[2:])
    least = {"stewart": 0.3, "five_bar": 0.5, "palletiser": 0.9}
    assert found.success.mean() > least.get(name, 0.999)
    assert found.residual[found.success].max() < 1e-12


def ends(link: arm.Link) -> bool:
    return any(each.end_effector for each in link.frames)


@pytest.mark.parametrize("name", DESCRIBED)
def test_postures_keep_to_the_limits(name: str):
    cell = arm.example(name)
    for where, state in states(cell):
        assert cell.violations(state) == (), where


@pytest.mark.parametrize("name", DESCRIBED)
def test_each_mass_is_spread_evenly_over_its_shapes(name: str):
    for manipulator in arm.example(name).manipulators:
        for link in manipulator.links:
            if link.inertia is None:
                continue
            assert all(isinstance(each, Primitive) for each in link.collisions)
            mass = float(link.inertia.mass)
            even = link.inertia_of_shapes(1.0)
            even = link.inertia_of_shapes(mass / float(even.mass))
            for given, expected in (
                (link.inertia.first_moment, even.first_moment),
                (link.inertia.rotational, even.rotational),
            ):
                scale = np.abs(np.array(expected, float)).max()
                np.testing.assert_allclose(given, expected, atol=1e-5 * scale + 1e-12)


def separation(a: Primitive, X_WA: Array, b: Primitive, X_WB: Array) -> float:
    """How far apart two convex bodies are at least: above 0, a plane parts them."""

    def farthest(body: Primitive, X_WL: Array, directions: Array) -> Array:
        X = X_WL @ body.pose.matrix()
        points = body.support(directions @ X[:3, :3])
        return ((points @ X[:3, :3].T + X[:3, 3]) * directions).sum(axis=1)

    gaps = -farthest(a, X_WA, NORMALS) - farthest(b, X_WB, -NORMALS)
    return float(gaps.max())


def sphere(count: int) -> Array:
    """Directions spread evenly: a spiral of the golden angle."""
    z = 1 - (2 * np.arange(count) + 1) / count
    turn = math.pi * (3 - math.sqrt(5)) * np.arange(count)
    across = np.sqrt(1 - z * z)
    return np.stack([across * np.cos(turn), across * np.sin(turn), z], axis=1)


NORMALS = np.concatenate([sphere(600), np.eye(3), -np.eye(3)])


@pytest.mark.parametrize("name", DESCRIBED)
def test_nothing_touches_in_any_posture(name: str):
    cell = arm.example(name)
    for where, state in states(cell):
        pairs = cell.pairs(state)
        assert len(pairs) > 0
        poses = cell.poses(state)
        for pair in pairs:
            one, other = (bodies(cell, each, poses[each]) for each in pair)
            for a, X_WA in one:
                for b, X_WB in other:
                    assert separation(a, X_WA, b, X_WB) > 1e-3, (where, pair)


def bodies(cell: arm.Cell, name: str, X_WL: Array) -> list[tuple[Primitive, Array]]:
    at = cell.frame(name)
    link = cell.workcell.links[at.link]
    X = X_WL @ link.primary.matrix()
    return [(s, X) for s in link.collision_shapes if isinstance(s, Primitive)]


def test_bodies_that_touch_are_reported_from_those_that_do_not():
    ball, X = arm.shapes.Sphere(radius=1.0), np.eye(4)
    far = arm.Pose.translation(1.2, 1.2, 1.2).matrix()
    assert separation(ball, X, ball, far) == pytest.approx(1.2 * 3**0.5 - 2, abs=0.01)
    near = arm.Pose.translation(1.1, 1.1, 1.1).matrix()
    assert separation(ball, X, ball, near) < 0


@pytest.mark.parametrize("name", arm.example_names())
def test_where_all_frames_are_at_home(name: str, golden: Callable[[str, str], None]):
    cell = arm.example(name)
    poses = cell.poses(cell.home)
    width = max(map(len, poses))
    lines = [f"{'frame':{width}}  {'origin [m]':30}  axes x, y, z"]
    for frame, X in poses.items():
        p, x, y, z = (numbers(X[:3, k]) for k in (3, 0, 1, 2))
        lines.append(f"{frame:{width}}  {p}  {x}  {y}  {z}")
    golden(f"cells/{name}.txt", "\n".join(lines) + "\n")


def numbers(values: Array) -> str:
    return " ".join(f"{round(float(value), 6) + 0.0:9.6f}" for value in values)


# Each by arithmetic of its own.


def rz(angle: float) -> Array:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])


def ry(angle: float) -> Array:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, 0, s, 0], [0, 1, 0, 0], [-s, 0, c, 0], [0, 0, 0, 1.0]])


def paul(rows: Sequence[tuple[float, float, float]], q: Array) -> Array:
    """The product of Tz(d) Rz(q) Tx(a) Rx(alpha), written out."""
    X = np.eye(4)
    for (d, a, alpha), t in zip(rows, q, strict=True):
        c, s, ca, sa = math.cos(t), math.sin(t), math.cos(alpha), math.sin(alpha)
        X = X @ [
            [c, -s * ca, s * sa, a * c],
            [s, c * ca, -c * sa, a * s],
            [0, sa, ca, d],
            [0, 0, 0, 1],
        ]
    return X


def opw(q: Array, *, c: Sequence[float], a1: float, a2: float) -> Array:
    """The flange of Brandstoetter's ortho-parallel arm with a spherical wrist, b = 0.

    M. Brandstoetter, A. Angerer, M. Hofbaur, "An analytical solution of the inverse
    kinematics problem of industrial serial manipulators with an ortho-parallel basis
    and a spherical wrist", 2014. c holds c1 to c4.
    """
    k, psi = math.hypot(a2, c[2]), math.atan2(a2, c[2])
    reach = a1 + c[1] * math.sin(q[1]) + k * math.sin(q[1] + q[2] + psi)
    height = c[0] + c[1] * math.cos(q[1]) + k * math.cos(q[1] + q[2] + psi)
    X = rz(q[0]) @ ry(q[1] + q[2]) @ rz(q[3]) @ ry(q[4]) @ rz(q[5])
    wrist = reach * math.cos(q[0]), reach * math.sin(q[0]), height
    X[:3, 3] = np.array(wrist) + c[3] * X[:3, 2]
    return X


def vectors(cell: arm.Cell, count: int = 50) -> Array:
    """The joints at home, at zero, and at random within the limits."""
    lower, upper = np.clip(cell.limits, -3.0, 3.0)
    home = np.array(cell.home.q)
    anywhere = np.random.default_rng(0).uniform(lower, upper, (count, len(home)))
    return np.vstack([home, 0 * home, anywhere])


@pytest.mark.parametrize("name", ["irb2400", "scara"])
def test_what_was_reached_is_reached_again(name: str):
    cell = arm.example(name)
    fk, ik = cell.fk("tool0"), cell.ik("tool0")
    targets = fk(vectors(cell, 100))
    answer = ik(targets)
    assert answer.success.all()
    np.testing.assert_allclose(fk(answer.q), targets, rtol=0, atol=5e-6)


def test_pan_tilt():
    cell = arm.example("pan_tilt")
    assert cell.joint_names == ("pan", "tilt")
    fk = cell.fk("camera")
    for pan, tilt in vectors(cell):
        X = fk([pan, tilt])
        # The lens is 50 mm ahead of the tilting axis and 20 mm above; z looks ahead.
        ahead = np.array([math.cos(tilt), 0.0, -math.sin(tilt)])
        above = np.array([math.sin(tilt), 0.0, math.cos(tilt)])
        R = rz(pan)[:3, :3]
        p = R @ (0.05 * ahead + 0.02 * above) + [0, 0, 0.2]
        np.testing.assert_allclose(X[:3, 3], p, atol=1e-15)
        np.testing.assert_allclose(X[:3, 2], R @ ahead, atol=1e-15)
        np.testing.assert_allclose(X[:3, 1], R @ -above, atol=1e-15)


def test_scara():
    cell = arm.example("scara")
    fk = cell.fk("tool0")
    for one, two, lift, spin in vectors(cell):
        X = fk([one, two, lift, spin])
        expected = rz(one + two + spin)
        expected[:3, 3] = [
            0.325 * math.cos(one) + 0.275 * math.cos(one + two),
            0.325 * math.sin(one) + 0.275 * math.sin(one + two),
            0.2 + 0.04 - 0.15 + lift,
        ]
        np.testing.assert_allclose(X, expected, atol=1e-14)
    # As computed by others from the same lengths, in mm and degrees.
    X = fk([*np.radians([30, -40]), 0.01, math.radians(20)])
    np.testing.assert_allclose(1e3 * X[:3, 3], [552.280388, 114.746751, 100], atol=1e-6)
    np.testing.assert_allclose(X[:3, :3], rz(math.radians(10))[:3, :3], atol=1e-15)


def test_irb2400():
    cell = arm.example("irb2400")
    fk = cell.fk("tool0")
    for q in vectors(cell):
        theta = q - [0, 0, -QUARTER, 0, 0, 0]
        c = 0.615, 0.705, 0.755, 0.085
        expected = opw(theta, c=c, a1=0.1, a2=-0.135)
        np.testing.assert_allclose(fk(q), expected, atol=1e-14)
    zero = [0.1 + 0.755 + 0.085, 0, 0.615 + 0.705 + 0.135]
    np.testing.assert_allclose(fk(np.zeros(6))[:3, 3], zero, atol=1e-15)


def ur10_rows() -> list[tuple[float, float, float]]:
    return [
        (0.1273, 0.0, QUARTER),
        (0.0, -0.612, 0.0),
        (0.0, -0.5723, 0.0),
        (0.163941, 0.0, QUARTER),
        (0.1157, 0.0, -QUARTER),
        (0.0922, 0.0, 0.0),
    ]


def ur5e_rows() -> list[tuple[float, float, float]]:
    return [
        (0.1625, 0.0, QUARTER),
        (0.0, -0.425, 0.0),
        (0.0, -0.3922, 0.0),
        (0.1333, 0.0, QUARTER),
        (0.0997, 0.0, -QUARTER),
        (0.0996, 0.0, 0.0),
    ]


def test_ur10_on_rail():
    cell = arm.example("ur10_on_rail")
    fk = cell.fk("tool0")
    for q in vectors(cell):
        expected = paul(ur10_rows(), q[1:])
        expected[:3, 3] += [q[0], 0.0, 0.22 + 0.08]  # along the rail, on the plate
        np.testing.assert_allclose(fk(q), expected, atol=1e-14)
    zero = cell.fk("tool0", relative_to="plate")(np.zeros(7))[:3, 3]
    np.testing.assert_allclose(zero, [-1.1843, -0.25614, 0.0116], atol=1e-5)


def test_oval_track_cell():
    cell = arm.example("oval_track_cell")
    fk = cell.fk(["tool0", "tcp", "right_finger", "left_finger"], relative_to="plate")
    for q in vectors(cell):
        flange, tcp, right, left = fk(q)
        expected = paul(ur5e_rows(), q[1:7])
        np.testing.assert_allclose(flange, expected, atol=1e-14)
        z, y = expected[:3, 2], expected[:3, 1]
        np.testing.assert_allclose(tcp[:3, 3], expected[:3, 3] + 0.128 * z, atol=1e-14)
        apart = 2 * (0.0045 + q[7])
        np.testing.assert_allclose(left[:3, 3] - right[:3, 3], apart * y, atol=1e-14)
        middle = 0.5 * (left + right)[:3, 3]
        np.testing.assert_allclose(middle, expected[:3, 3] + 0.093 * z, atol=1e-14)
    home = cell.poses(cell.home)
    np.testing.assert_allclose(home["plate"][:3, 3], [0, -1.0, 0.5], atol=1e-15)
    np.testing.assert_allclose(home["part/block"][:3, 3], [0, -1.6, 0.6], atol=1e-15)


def test_its_arm_is_the_one_on_the_plain_track():
    """The rest of the cell adds limits, bodies and a hand, and moves nothing."""
    plain, full = arm.example("ur5e_on_oval"), arm.example("oval_track_cell")
    Q = np.random.default_rng(0).uniform(-3, 3, (20, 7))
    few = full.fk("tool0", joints=full.joint_names[:7])
    np.testing.assert_allclose(few(Q), plain.fk("tool0")(Q), atol=1e-14)


def test_two_arms_positioner():
    cell = arm.example("two_arms_positioner")
    frames = ["left/tool0", "right/tool0", "left/tcp", "right/tcp", "seam"]
    fk = cell.fk(frames)
    sides = {"left": rz(math.pi), "right": rz(0.0)}
    sides["left"][0, 3], sides["right"][0, 3] = 0.9, -0.9
    sign, offset = np.array([-1, 1, 1, -1, 1, -1]), [0, -QUARTER, 0, 0, 0, 0]
    c = 0.4, 0.315, 0.365, 0.08
    for q in vectors(cell):
        X = dict(zip(frames, fk(q), strict=True))
        for k, (side, base) in enumerate(sides.items()):
            theta = sign * q[6 * k : 6 * k + 6] - offset
            flange = base @ opw(theta, c=c, a1=0.025, a2=-0.035)
            np.testing.assert_allclose(X[f"{side}/tool0"], flange, atol=1e-14)
            torch = flange[:3, 3] + 0.15 * flange[:3, 2]
            np.testing.assert_allclose(X[f"{side}/tcp"][:3, 3], torch, atol=1e-14)
        tilt, turn = q[12:]
        above = 0.1 + 0.02 - 0.03  # the seam over the plate, that over the tilting axis
        x, y, z = ry(tilt)[:3, :3] @ [0.1 * math.cos(turn), 0.1 * math.sin(turn), above]
        np.testing.assert_allclose(X["seam"][:3, 3], [x, y, z + 0.5], atol=1e-14)
