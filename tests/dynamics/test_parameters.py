"""Masses, friction and dimensions as inputs of dynamics: as of a cell that has them."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import armillary as arm
from armillary.errors import ModelError, UnknownName
from armillary.trace import Op, Program, evaluate
from exact_operations import exact_operation
from masses import heavy_cell, heavy_example, vectors, with_inertias

Array = np.ndarray

QUESTIONS = {
    "inverse_dynamics": ("qd", "qdd"),
    "forward_dynamics": ("qd", "torque"),
    "mass_matrix": (),
    "bias_torque": ("qd",),
    "kinetic_energy": ("qd",),
    "potential_energy": (),
    "centre_of_mass": (),
    "inertial_regressor": ("qd", "qdd"),
}


def names_of(cell: arm.Cell) -> list[str]:
    """Return inertias, friction, motors, a length and a direction of a cell."""
    links = [x for m in cell.manipulators for x in m.links if x.parent]
    moved = [x.coordinate for x in links if x.has_coordinate]
    return list(
        cell.parameters(
            [
                f"{links[0].name}.inertia",
                f"{links[-1].name}.inertia.m",
                f"{moved[0]}.dynamics",
                f"{moved[1]}.precursor.x",
                f"{moved[1]}.precursor.rz",
            ]
        )
    )


def changed(cell: arm.Cell, names: list[str]) -> tuple[Array, arm.Cell]:
    """Return other values of parameters, and the cell that has them."""
    start = np.array(list(cell.parameters(names).values()))
    p = start + 1e-3 * np.random.default_rng(0).uniform(-1.0, 1.0, len(names))
    return p, cell.with_parameters(dict(zip(names, p, strict=True)))


@pytest.mark.parametrize("kind", ["irb2400", "delta"])
def test_kernels_of_parameters_are_those_of_the_cell_with_them(kind: str) -> None:
    cell = heavy_cell(kind)
    names = names_of(cell)
    p, other = changed(cell, names)
    q, qd, qdd = vectors(cell, 1, 3)
    given = {"qd": qd, "qdd": qdd, "torque": qdd}
    for question, vectors_of in QUESTIONS.items():
        rest = [given[name] for name in vectors_of]
        found = getattr(cell, question)(parameters=names)(q, p, *rest)
        wanted = getattr(other, question)()(q, *rest)
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)
        nominal = getattr(cell, question)()(q, *rest)
        assert np.abs(found - nominal).max() > 1e-6


def test_a_frame_that_moves_with_parameters_is_asked_about() -> None:
    cell = heavy_example("irb2400", 0)
    names = ["tool0.x", "tool0.rz", "joint_2.precursor.x"]
    assert list(cell.parameters(["tool0.x"])) == ["irb2400/tool0.x"]
    p, other = changed(cell, list(cell.parameters(names)))
    q, qd, qdd = vectors(cell, 1, 3)
    for question, rest in (
        ("reaction", (qd, qdd)),
        ("operational_inertia", ()),
        ("torque_of_wrench", (np.ones(6),)),
    ):
        found = getattr(cell, question)("tool0", parameters=names)(q, p, *rest)
        wanted = getattr(other, question)("tool0")(q, *rest)
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)
    found = cell.momentum(about="tool0", parameters=names)(q, p, qd)
    np.testing.assert_allclose(found, other.momentum(about="tool0")(q, qd), atol=1e-12)


def test_a_part_that_a_state_grips() -> None:
    part = arm.Manipulator(name="part", links=[arm.Link(name="block")])
    cell = with_inertias(arm.example("irb2400").add(part, bolted=False), 3)
    names = list(cell.parameters(["block.inertia", "tool0.z"]))
    p, other = changed(cell, names)
    q, qd, qdd = vectors(cell, 1, 3)
    for shift in (0.1, 0.2):
        pose = arm.Pose.translation(shift, 0.0, 0.1)
        state = cell.home.attach("part", "tool0", pose=pose)
        found = cell.inverse_dynamics(state=state, parameters=names)(q, p, qd, qdd)
        same = other.home.attach("part", "tool0", pose=pose)
        wanted = other.inverse_dynamics(state=same)(q, qd, qdd)
        np.testing.assert_allclose(found, wanted, rtol=1e-10)
    loose = cell.inverse_dynamics(state=cell.home, parameters=names)(q, p, qd, qdd)
    np.testing.assert_allclose(loose, cell.inverse_dynamics()(q, qd, qdd), rtol=1e-10)


def test_a_free_base_has_an_inertia() -> None:
    base = arm.Link(name="hull")
    cell = arm.Cell(manipulators=[arm.Manipulator(name="drone", links=[base])])
    cell = cell.mount("drone", bolted=False)
    kernel = cell.forward_dynamics(
        free_bases=["drone"],
        parameters=["hull.inertia.m", *(f"hull.inertia.I_{k}{k}" for k in "xyz")],
    )
    push = [0.0, 0.0, 3.0, 0.2, 0.0, 0.0]
    qdd = kernel(np.eye(4)[None], np.zeros(0), [2.0, 0.1, 0.2, 0.3], np.zeros(6), push)
    np.testing.assert_allclose(qdd, [0.0, 0.0, 1.5 - 9.81, 2.0, 0.0, 0.0], atol=1e-14)


# derivatives, against arithmetic of 50 digits


def exact(program: Program, inputs: list[Any]) -> Array:
    """Return what a program computes of numbers of many digits."""

    def meaning(of: Any) -> Any:
        return exact_operation(of.name) if isinstance(of, Op) else mpmath.mpf(of)

    return np.array(evaluate(program, list(map(mpmath.mpf, inputs)), meaning))


@pytest.mark.parametrize("question", ["inverse_dynamics", "forward_dynamics"])
def test_derivatives_are_exact(question: str) -> None:
    cell = heavy_cell("pan_tilt")
    names = list(cell.parameters(["tilt.inertia", "tilt.dynamics", "tilt.precursor"]))
    start = np.array(list(cell.parameters(names).values()))
    q, qd, qdd = vectors(cell, 1, 1)[:, 0]
    kernel = getattr(cell, question)(parameters=names)
    found = getattr(cell, f"{question}_derivatives")(parameters=names)
    *_, rates = found(q, start, qd, qdd)
    reverse = kernel.vjp(["parameters"])
    tangent = kernel.jvp(["parameters"])
    with mpmath.workdps(50):
        h = mpmath.mpf(10) ** -17
        for k, unit in enumerate(np.eye(len(names))):
            ends = [
                exact(kernel.program, [*q, *(start + sign * h * unit), *qd, *qdd])
                for sign in (1, -1)
            ]
            slope = ((ends[0] - ends[1]) / (2 * h)).astype(float)
            np.testing.assert_allclose(rates[:, k], slope, rtol=1e-11, atol=1e-12)
            np.testing.assert_allclose(
                tangent(q, start, qd, qdd, unit), slope, rtol=1e-11, atol=1e-12
            )
    weights = np.array([0.3, -0.7])
    by_p = reverse(q, start, qd, qdd, weights)
    np.testing.assert_allclose(by_p, weights @ rates, rtol=1e-11, atol=1e-12)


def test_derivatives_of_closed_loops() -> None:
    cell = heavy_cell("delta")
    names = list(cell.parameters(["arm1.inertia", "elbow1-ball1.length"]))
    start = np.array(list(cell.parameters(names).values()))
    q, qd, qdd = vectors(cell, 1, 1)[:, 0]
    kernel = cell.inverse_dynamics(parameters=names)
    *_, rates = cell.inverse_dynamics_derivatives(parameters=names)(q, start, qd, qdd)
    h = 1e-3
    for k, unit in enumerate(np.eye(len(names))):
        at = {s: kernel(q, start + s * h * unit, qd, qdd) for s in range(-3, 4)}
        slope = sum(
            w * (at[s] - at[-s]) for w, s in ((45.0, 1), (-9.0, 2), (1.0, 3))
        ) / (60.0 * h)
        np.testing.assert_allclose(rates[:, k], slope, rtol=1e-9, atol=1e-9)


def test_torques_are_linear_in_inertias_and_friction() -> None:
    cell = heavy_cell("irb2400")
    (robot,) = cell.manipulators
    names = list(cell.parameters([f"{x.name}.inertia" for x in robot.links[1:]]))
    q, qd, qdd = vectors(cell, 1, 2)
    *_, rates = cell.inverse_dynamics_derivatives(parameters=names)(
        q, list(cell.parameters(names).values()), qd, qdd
    )
    Y = cell.inertial_regressor([x.name for x in robot.links[1:]])(q, qd, qdd)
    np.testing.assert_allclose(rates, Y, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["link_1.inertia.mass"], "I_xx"),
        (["joint_1.dynamics.drag"], "damping"),
        (["base_link.dynamics"], "base_link"),
        (["nothing.inertia"], "nothing"),
    ],
)
def test_names_that_are_refused(names: list[str], message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        arm.example("irb2400").inverse_dynamics(parameters=names)


def test_values_that_no_body_has() -> None:
    cell = arm.example("irb2400")
    link = cell.manipulators[0].links[1].name
    with pytest.raises(ModelError, match="mass is negative"):
        cell.with_parameters({f"{link}.inertia.m": -1.0})
    joint = cell.joint_names[0]
    with pytest.raises(ModelError, match="cannot be < 0"):
        cell.with_parameters({f"{joint}.dynamics.damping": -1.0})
