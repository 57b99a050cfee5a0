"""Derivatives of kernels as kernels: shapes, batches, names, and what has none."""

from __future__ import annotations

import pickle
import weakref
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.errors import KernelError, UnknownName
from armillary.kernel.derivatives import Derivative


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    return arm.example("ur5e_on_oval")


def test_gradients_of_poses_are_those_of_the_jacobian(cell: arm.Cell):
    """The gradient of w . position is J^T w, with the Jacobian of another question."""
    fk, rng = cell.fk("tool0"), np.random.default_rng(0)
    q = rng.uniform(-2.0, 2.0, (3, 1, 7))
    w = rng.normal(size=(1, 2, 3))
    weights = np.zeros((1, 2, 4, 4))
    weights[..., :3, 3] = w
    found = fk.vjp()(q, weights)
    J = cell.jacobian("tool0")(q)[..., :3, :]
    assert found.shape == (3, 2, 7)
    np.testing.assert_allclose(found, (w[..., None, :] @ J)[..., 0, :], atol=1e-13)
    along = rng.normal(size=7)
    rates = fk.jvp()(q, along)[..., :3, 3]
    np.testing.assert_allclose(rates, J @ along, atol=1e-13)


def test_some_inputs(cell: arm.Cell):
    names = ["ur5e/elbow.a", "cart.radius"]
    fk = cell.fk("tool0", parameters=names)
    q, p = np.array(cell.home.q), np.array(list(cell.parameters(names).values()))
    weights = np.random.default_rng(1).normal(size=(4, 4))
    by_q, by_p = fk.vjp()(q, p, weights)
    assert np.array_equal(fk.vjp(["parameters"])(q, p, weights), by_p)
    h = 1e-6
    steps = [
        weights.ravel() @ (fk(q, p + d) - fk(q, p - d)).ravel() for d in h * np.eye(2)
    ]
    np.testing.assert_allclose(by_p, np.divide(steps, 2 * h), atol=1e-8)
    assert by_q.shape == (7,)
    assert fk.vjp(["parameters"]) is fk.vjp(["parameters"])
    single = cell.fk("tool0", parameters=names, dtype=np.float32).vjp()
    assert single.dtype == np.float32


def test_what_a_state_binds_stays(cell: arm.Cell):
    fk = cell.fk("tool0", joints=cell.joint_names[3:], state=cell.home)
    q = np.array(cell.home.q)
    weights = np.random.default_rng(2).normal(size=(4, 4))
    found = fk.vjp()(q[3:], weights)
    whole = cell.fk("tool0").vjp()(q, weights)
    np.testing.assert_allclose(found, whole[3:], atol=1e-13)


def test_questions_of_jax_can_be_hashed_and_referred_to(cell: arm.Cell):
    """JAX keeps what it has compiled under weak references to them."""
    fk: Any = cell.fk("tool0")
    question = Derivative(fk, "vjp", (0,))
    assert weakref.ref(question)() is question
    assert hash(question) == hash(Derivative(fk, "vjp", (0,)))
    assert question == Derivative(fk, "vjp", (0,)) != Derivative(fk)


def test_clear_errors(cell: arm.Cell):
    fk = cell.fk("tool0")
    with pytest.raises(UnknownName, match="Did you mean 'q'"):
        fk.vjp(["Q"])
    with pytest.raises(KernelError, match="each once, not"):
        fk.jvp(["q", "q"])
    pickled = pickle.loads(pickle.dumps(arm.example("five_bar").fk("tip")))
    with pytest.raises(KernelError, match=r"is a pipeline .*has no vjp.*gradients"):
        pickled.vjp()


def test_a_function_of_outputs_is_a_part_of_the_program(cell: arm.Cell):
    fk, rng = cell.fk("tool0"), np.random.default_rng(3)
    losses = fk.then(lambda X, target: ((X - target) ** 2).sum(), target=(4, 4))
    q, targets = rng.uniform(-2.0, 2.0, (5, 7)), fk(rng.uniform(-2.0, 2.0, (5, 7)))
    apart = fk(q) - targets
    np.testing.assert_allclose(losses(q, targets), (apart**2).sum((-2, -1)), rtol=1e-13)
    found = losses.vjp(["q"])(q, targets, 1.0)
    np.testing.assert_allclose(found, fk.vjp()(q, 2.0 * apart), atol=1e-12)
    twice = losses.then(lambda loss: [loss, 2.0 * loss])
    assert np.array_equal(twice(q, targets)[:, 1], 2.0 * losses(q, targets))
    bound = cell.fk("tool0", joints=cell.joint_names[1:], state=cell.home)
    height = bound.then(lambda X: X[2, 3])
    assert np.array_equal(height(q[:, 1:]), bound(q[:, 1:])[:, 2, 3])
    with pytest.raises(KernelError, match="has an input 'q' already"):
        fk.then(lambda X, q: X, q=(7,))
    with pytest.raises(KernelError, match="is a pipeline"):
        arm.example("five_bar").fk("tip").then(lambda X: X[0, 3])
