"""Kernels as functions of JAX, beside kernels, differences and formulas of JAX."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.errors import KernelError, ShapeError
from masses import with_inertias

pytestmark = pytest.mark.peers

jax: Any = pytest.importorskip("jax", reason="JAX is not installed (the extra 'jax')")
jnp: Any = jax.numpy


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    return arm.example("ur5e_on_oval")


NAMES = ["ur5e/elbow.a", "ur5e/shoulder_lift.a", "cart.radius"]


@pytest.fixture(scope="module")
def kernel(cell: arm.Cell) -> Any:
    return cell.fk("tool0", parameters=NAMES)


def point(cell: arm.Cell, *batch: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    p = np.array(list(cell.parameters(NAMES).values()))
    weights = rng.normal(size=(4, 4))
    return rng.uniform(-2.0, 2.0, (*batch, 7)), p, weights


@pytest.mark.parametrize("batch", [(), (1,), (3, 1, 2)])
@pytest.mark.parametrize("compiled", [False, True])
def test_values_and_gradients(cell, kernel, batch, compiled):
    q, p, w = point(cell, *batch)
    fk = kernel.jax()

    def loss(q, p):
        return jnp.sum(w * fk(q, p) ** 2)

    wrap = jax.jit if compiled else (lambda function: function)
    np.testing.assert_array_equal(wrap(fk)(q, p), kernel(q, p))
    by_q, by_p = wrap(jax.grad(loss, argnums=(0, 1)))(q, p)
    X = kernel(q, p)
    wanted_q, wanted_p = kernel.vjp()(q, p, 2 * w * X)
    np.testing.assert_allclose(by_q, wanted_q, atol=1e-13)
    # All rows share p: its cotangent is the sum of theirs.
    np.testing.assert_allclose(by_p, wanted_p.reshape(-1, 3).sum(0), atol=1e-12)


def test_forward_reverse_and_second_order(cell, kernel):
    q, p, w = point(cell)
    fk = kernel.jax()
    forward, reverse = jax.jacfwd(fk)(q, p), jax.jacrev(fk)(q, p)
    np.testing.assert_allclose(forward, reverse, atol=1e-14)
    J = cell.jacobian("tool0", parameters=NAMES)(q, p)
    np.testing.assert_allclose(forward[:3, 3], J[:3], atol=1e-13)

    def loss(q):
        return jnp.sum(w * fk(q, p) ** 2)

    hessians = [
        jax.jit(jax.hessian(loss))(q),
        jax.jacrev(jax.grad(loss))(q),
        jax.jacfwd(jax.jacfwd(loss))(q),
        jax.jacrev(jax.jacfwd(loss))(q),
    ]
    slope = jax.grad(loss)
    steps = [(slope(q + h) - slope(q - h)) / 2e-5 for h in 1e-5 * np.eye(7)]
    np.testing.assert_allclose(hessians[0], steps, atol=1e-8)
    for each in hessians[1:]:
        np.testing.assert_allclose(each, hessians[0], atol=1e-12)


def test_vmap(cell, kernel):
    q, p, w = point(cell, 5, 4)
    fk = kernel.jax()

    def loss(q, p):
        return jnp.sum(w * fk(q, p))

    slope = jax.grad(loss, argnums=(0, 1))
    rows = [slope(each, p) for each in q]
    by_q, by_p = jax.jit(jax.vmap(slope, in_axes=(0, None)))(q, p)
    np.testing.assert_allclose(by_q, [row[0] for row in rows], atol=1e-13)
    np.testing.assert_allclose(by_p, [row[1] for row in rows], atol=1e-13)
    # A mapped dimension at another place, of an input with fewer others.
    many = p + 0.01 * np.arange(6)[:, None]
    found = jax.vmap(fk, in_axes=(None, 1))(q, many.T)
    np.testing.assert_array_equal(found, kernel(q[None], many[:, None, None]))
    twice = jax.vmap(jax.vmap(fk, (0, None)), (None, 0))(q, many)
    np.testing.assert_array_equal(twice, found)


def test_several_outputs_one_of_which_counts():
    kernel = arm.example("ur5e_on_oval").fk(["tool0", "ur5e/forearm"])
    fk = kernel.jax()
    q = np.random.default_rng(1).uniform(-1.0, 1.0, 7)
    outputs = fk(q)
    found = jax.grad(lambda q: jnp.sum(fk(q)[..., 3]))(q)
    assert found.shape == (7,)
    np.testing.assert_array_equal(outputs, kernel(q))


def test_what_a_state_binds(cell):
    kernel = cell.fk("tool0", joints=cell.joint_names[3:], state=cell.home)
    q = np.array(cell.home.q)[3:]
    found = jax.jacrev(kernel.jax())(q)[:3, 3]
    J = cell.jacobian("tool0", joints=cell.joint_names[3:], state=cell.home)(q)
    np.testing.assert_allclose(found, J[:3], atol=1e-13)


def test_torques(cell):
    """Dynamics are Programs too: the mass matrix is the Jacobian of torques by qdd."""
    robot = with_inertias(cell, 3)
    q = np.array(robot.home.q)
    torque = robot.inverse_dynamics().jax()
    found = jax.jacrev(torque, argnums=2)(q, 0 * q, 0 * q)
    np.testing.assert_allclose(found, robot.mass_matrix()(q), atol=1e-12)


@pytest.mark.parametrize("batch", [(), (0,), (3, 0, 2), (300,)])
def test_compiled_code_calls_the_kernel(cell, batch):
    kernel = cell.fk("tool0")
    compiled = jax.jit(kernel.jax())
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (*batch, 7))
    assert "custom_call @armillary_kernel" in compiled.lower(q).as_text()
    np.testing.assert_array_equal(compiled(q), kernel(q))


def test_kernels_write_where_xla_wants_it(cell):
    given = []

    def looking(*arrays, out=None, threads=None):
        given.append(out.ctypes.data)
        return kernel(*arrays, out=out, threads=threads)

    kernel = cell.fk("tool0")
    found = jax.jit(kernel.with_batches(looking).jax())(np.zeros((300, 7)))
    assert given == [found.unsafe_buffer_pointer()]


def test_compiled_code_outlives_the_function_that_it_was_made_for(cell):
    kernel = cell.fk("tool0")
    Q = np.random.default_rng(0).uniform(-1.0, 1.0, (50_000, 7))
    found = [jax.jit(kernel.jax())(Q) for _ in range(3)]
    jax.clear_caches()
    for each in found:
        np.testing.assert_array_equal(each, kernel(Q))


def test_errors_reach_the_caller_of_compiled_code(cell):
    def failing(*arrays, out=None, threads=None):
        raise MemoryError("no memory for this")

    compiled = jax.jit(cell.fk("tool0").with_batches(failing).jax())
    with pytest.raises(jax.errors.JaxRuntimeError, match="no memory for this"):
        compiled(np.zeros((3, 7))).block_until_ready()


def test_float32(cell):
    kernel = cell.fk("tool0", dtype=np.float32)
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (5, 7)).astype(np.float32)
    found = jax.jit(kernel.jax())(q)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, kernel(q))


def test_a_library_of_another_layout_calls_back(cell, monkeypatch):
    """The callback is what other devices have, too."""
    from armillary.kernel import jax_function, xla_call

    monkeypatch.setattr(xla_call, "is_registered", lambda: False)
    monkeypatch.setattr(jax_function, "_primitive", jax_function._primitive.__wrapped__)
    kernel = cell.fk("tool0")
    compiled = jax.jit(kernel.jax())
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (5, 7))
    assert "armillary_kernel" not in compiled.lower(q).as_text()
    np.testing.assert_array_equal(compiled(q), kernel(q))


def test_clear_errors(cell, kernel):
    q, p, _ = point(cell)
    fk = kernel.jax()
    with pytest.raises(ShapeError, match=r"in float64; q was given as float32.*x64"):
        fk(q.astype(np.float32), p)
    with pytest.raises(ShapeError, match=r"takes 2 arrays \(q, parameters\); 1 given"):
        fk(q)
    with pytest.raises(ShapeError, match=r"needs q of shape \(..., 7\)"):
        jax.jit(fk)(q[:6], p)
    with pytest.raises(KernelError, match="is a pipeline"):
        pickle.loads(pickle.dumps(arm.example("five_bar").fk("tip"))).jax()


def test_closed_loops() -> None:
    """All derivatives, by the Jacobian and by differences of gradients."""
    cell = arm.example("five_bar")
    fk = cell.fk("tip").jax()
    q = np.array(cell.home.q) + np.array([[0.0, 0.0], [0.2, 0.1], [0.1, -0.3]])
    J = cell.jacobian("tip")(q)[:, :3]
    for transform in (jax.jacfwd, jax.jacrev):
        slopes = jax.jit(jax.vmap(transform(lambda q: fk(q)[:3, 3])))(q)
        np.testing.assert_allclose(slopes, J, atol=1e-13)

    def height(q: Any) -> Any:
        return jnp.sum(jnp.sin(fk(q)[..., 1, 3]))

    H = jax.vmap(jax.hessian(height))(q)
    slope = jax.jit(jax.grad(height))
    step = 1e-6 * np.eye(2)
    ends = [slope(q + d) - slope(q - d) for d in step]
    np.testing.assert_allclose(H, np.stack(ends, -1) / 2e-6, atol=1e-8)


def test_answers_of_inverse_kinematics() -> None:
    """Derivatives are the inverse Jacobian, under jit, vmap, forward and reverse."""
    cell = arm.example("irb2400")
    ik = cell.ik("tool0").jax()
    Q = np.random.default_rng(0).uniform(0.1, 0.8, (3, 6))
    X = cell.fk("tool0")(Q)

    def turned(angle: Any, X: Any, near: Any) -> Any:
        c, s = jnp.cos(angle), jnp.sin(angle)
        R = jnp.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
        return ik(X @ R, near)

    J = np.linalg.inv(cell.jacobian("tool0", axes="tool0")(Q))[..., 5]
    np.testing.assert_allclose(ik(X, Q), Q, atol=1e-9)
    for transform in (jax.jacfwd, jax.jacrev):
        slopes = jax.jit(jax.vmap(transform(turned), (None, 0, 0)))(0.0, X, Q)
        np.testing.assert_allclose(slopes, J, atol=1e-9)
    with pytest.raises(ShapeError, match="float64"):
        ik(X.astype(np.float32))
    with pytest.raises(ShapeError, match=r"needs the shape \(..., 4, 4\)"):
        ik(X[..., :3])
    with pytest.raises(ShapeError, match=r"\(3,\) and \(2,\), do not fit"):
        ik(X, Q[:2])
    far = X.copy()
    far[1, 0, 3], far[2] = 99.0, np.nan
    answers = np.asarray(ik(far, Q))
    np.testing.assert_allclose(answers[0], Q[0], atol=1e-9)
    assert np.isnan(answers[1:]).all()


def test_distances() -> None:
    check = arm.example("irb2400").collision()
    Q = np.random.default_rng(0).uniform(-0.5, 0.5, (3, 6))
    distances = check.jax()
    np.testing.assert_array_equal(jax.jit(distances)(Q), check.distances(Q))
    for transform in (jax.jacfwd, jax.jacrev):
        slopes = jax.vmap(transform(distances))(Q)
        np.testing.assert_allclose(slopes, check.gradients(Q), atol=1e-14)
    with pytest.raises(ShapeError, match="float64"):
        distances(Q.astype(np.float32))
