"""Derivatives of inverse and forward dynamics against differences and each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.dynamics import options
from armillary.errors import ShapeError
from armillary.spatial import rotation
from armillary.spatial.pose import Pose
from arms import ScaraForward
from masses import heavy_example, vectors, with_drives, with_inertias

Array = np.ndarray
Function = Callable[..., Any]

EXAMPLES = ("irb2400", "ur10_on_rail", "ur5e_on_oval", "scara", "pan_tilt", "five_bar")


def differences(function: Function, given: Sequence[Array], k: int) -> Array:
    """Return the derivative by argument k, by differences of order 6 of a kernel."""
    n = given[k].shape[-1]
    weights = ((45.0, 1), (-9.0, 2), (1.0, 3))
    columns = []
    for j in range(n):
        step = 2e-3 * np.eye(n)[j]

        def at(s: float, step: Array = step) -> Array:
            moved = [x + s * step if i == k else x for i, x in enumerate(given)]
            return function(*moved)

        total = sum(w * (at(s) - at(-s)) for w, s in weights)
        columns.append(total / (60.0 * 2e-3))
    return np.stack(columns, -1)


def assert_near(found: Array, expected: Array, tolerance: float = 1e-9) -> None:
    assert np.isfinite(expected).all()
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


def assert_derivatives(cell: arm.Cell, given: Array, **about: Any) -> None:
    """Compare both questions with differences, and with the mass matrix."""
    inverse = cell.inverse_dynamics(**about)
    found = cell.inverse_dynamics_derivatives(**about)(*given)
    for k in range(3):
        assert_near(found[k], differences(inverse, given, k))
    M = cell.mass_matrix(**about)(given[0])
    np.testing.assert_allclose(found[2], M, rtol=1e-11, atol=1e-12)
    q, qd, qdd = given
    torque = inverse(q, qd, qdd)
    forward = cell.forward_dynamics_derivatives(**about)(q, qd, torque)
    for k, sign in enumerate((-1.0, -1.0, 1.0)):
        right = np.eye(M.shape[-1]) if k == 2 else found[k]
        assert_near(M @ forward[k], sign * right + 0.0 * M, 1e-8)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", EXAMPLES)
def test_derivatives_are_those_of_differences(name: str) -> None:
    cell = heavy_example(name, 0)
    assert_derivatives(cell, vectors(cell, 1, 4))


def test_loops_with_motors_friction_and_springs() -> None:
    cell = with_drives(heavy_example("delta", 0), 1)
    q, qd, qdd = vectors(cell, 2, 4)
    assert_derivatives(cell, np.array([q, qd + np.sign(qd), qdd]))


def test_motors_friction_and_springs_of_an_arm() -> None:
    cell = with_drives(heavy_example("pan_tilt", 3), 4)
    q, qd, qdd = vectors(cell, 5, 4)
    assert_derivatives(cell, np.array([q, qd + np.sign(qd), qdd]))


def test_chosen_joints_and_a_gravity_of_its_own() -> None:
    cell = heavy_example("ur5e_on_oval", 6)
    names = [cell.joint_names[k] for k in (4, 0, 2)]
    given = vectors(cell, 7, 4)[:, :, (4, 0, 2)]
    assert_derivatives(cell, given, joints=names, gravity=(1.0, -2.0, 3.0))


def test_long_chains_run_as_python(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = heavy_example("irb2400", 8)
    given = vectors(cell, 9, 3)
    compiled = cell.inverse_dynamics_derivatives()(*given)
    monkeypatch.setattr(options, "MOST_BODIES", 3)
    other = with_inertias(arm.example("irb2400"), 8)
    kernel = other.inverse_dynamics_derivatives()
    assert kernel.lanes == 1
    out = tuple(np.empty((3, 6, 6)) for _ in range(3))
    assert kernel(*given, out=out) is out
    for found, expected in zip(out, compiled, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    with pytest.raises(ShapeError, match=r"out= an array \(3, 6, 6\) and"):
        kernel(*given, out=out[0])


@pytest.mark.thorough
def test_couplings_branches_and_curved_joints(random_cell: Any) -> None:
    for seed in range(3):
        cell = with_drives(with_inertias(random_cell(seed), seed), seed)
        q, qd, qdd = vectors(cell, seed, 3)
        assert_derivatives(cell, np.array([q, qd + np.sign(qd), qdd]))


def test_mechanisms_of_several_coordinates() -> None:
    """A link that is moved by four coordinates at once, behind a joint of its own."""
    angle, length = arm.joints.AngleCoordinate, arm.joints.LengthCoordinate
    kinds = angle, angle, length, angle
    inputs = [
        arm.Link(name=name, parent="base", joint=kind())
        for name, kind in zip("abdc", kinds, strict=True)
    ]
    links = [
        arm.Link(name="base"),
        arm.Link(name="tilt", parent="base", joint=arm.joints.Revolute(axis=(1, 2, 3))),
        *inputs,
        arm.Link(
            name="hand",
            parent="tilt",
            joint=ScaraForward(upper=0.4, fore=0.3),
            inputs=("a", "b", "d", "c"),
        ),
        arm.Link(name="pen", parent="hand", joint=arm.joints.Revolute(axis=(1, 0, 1))),
    ]
    cell = arm.Cell(manipulators=[arm.Manipulator(name="scara", links=links)])
    cell = with_inertias(cell, 0)
    q, qd, qdd = vectors(cell, 1, 3)
    given = np.array([q, qd, qdd])
    found = cell.inverse_dynamics_derivatives()(*given)
    for k in range(3):
        assert_near(found[k], differences(cell.inverse_dynamics(), given, k))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["irb2400", "delta"])
def test_free_bases(name: str) -> None:
    """The base is displaced and turned in the axes of the world, rates stay."""
    cell = heavy_example(name, 9)
    base = cell.manipulators[0].name
    cell = cell.mount(base, bolted=False)
    rng = np.random.default_rng(3)
    X = Pose.from_rpy(*rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 3))
    q = cell.home.q + rng.uniform(-0.3, 0.3, len(cell.joint_names))
    motion = rng.uniform(-1.0, 1.0, (2, 6 + len(q)))
    inverse = cell.inverse_dynamics(free_bases=[base])

    def moved(pose: Array, q: Array, qd: Array, qdd: Array) -> Array:
        X_new = np.eye(4)
        X_new[:3, :3] = np.array(rotation.exp(tuple(pose[3:]))) @ X.matrix()[:3, :3]
        X_new[:3, 3] = pose[:3] + X.position
        return inverse(X_new[None], q, qd, qdd)

    kernel = cell.inverse_dynamics_derivatives(free_bases=[base])
    found = kernel(X.matrix()[None], q, *motion)
    given = [np.zeros(6), q, *motion]
    assert not found[0][:, :3].any()
    by_pose = differences(moved, given, 0)
    expected = np.concatenate([by_pose, differences(moved, given, 1)], axis=1)
    assert_near(found[0], expected)
    assert_near(found[1], differences(moved, given, 2))
    assert_near(found[2], differences(moved, given, 3))
    torque = inverse(X.matrix()[None], q, *motion)
    forward = cell.forward_dynamics_derivatives(free_bases=[base])
    by_q, by_qd, by_torque = forward(X.matrix()[None], q, motion[0], torque)
    np.testing.assert_allclose(by_torque @ found[2], np.eye(len(torque)), atol=1e-9)
    assert_near(found[2] @ by_q, -found[0], 1e-9)
    assert_near(found[2] @ by_qd, -found[1], 1e-9)


def test_gripped_parts_count() -> None:
    cell = heavy_example("irb2400", 2)
    inertia = arm.SpatialInertia.from_centre(5.0, (0.1, 0.2, 0.3), np.eye(3))
    links = [arm.Link(name="body", inertia=inertia)]
    part = arm.Manipulator(name="part", links=links)
    cell = cell.add(part, bolted=False)
    state = cell.home.attach("part", "tool0")
    assert_derivatives(cell, vectors(cell, 4, 3), state=state)


def test_float32() -> None:
    cell = heavy_example("ur10_on_rail", 0)
    given = vectors(cell, 1, 20)
    exact = cell.inverse_dynamics_derivatives()(*given)
    narrow = cell.inverse_dynamics_derivatives(dtype=np.float32)(*given)
    for found, expected in zip(narrow, exact, strict=True):
        assert found.dtype == np.float32
        assert_near(found, expected, 1e-5)


def test_far_from_the_origin_nothing_is_lost() -> None:
    """All is about the first joint, so a base far away changes no digit."""
    cell = heavy_example("irb2400", 0)
    name = cell.manipulators[0].name
    far = cell.mount(name, pose=Pose.translation(1e9, -1e9, 1e9))
    given = vectors(cell, 1, 5)
    near = cell.inverse_dynamics_derivatives()(*given)
    for found, expected in zip(
        far.inverse_dynamics_derivatives()(*given), near, strict=True
    ):
        assert_near(found, expected, 1e-12)
