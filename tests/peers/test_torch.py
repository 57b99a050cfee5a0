"""Kernels as functions of torch, beside kernels and differences."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import armillary as arm
from armillary.errors import KernelError, ShapeError

pytestmark = [
    pytest.mark.peers,
    # What torch says about itself.
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning"),
]

torch: Any = pytest.importorskip(
    "torch", reason="torch is not installed (the extra 'torch')"
)

NAMES = ["ur5e/elbow.a", "ur5e/shoulder_lift.a", "cart.radius"]


@pytest.fixture(scope="module")
def cell() -> arm.Cell:
    return arm.example("ur5e_on_oval")


@pytest.fixture(scope="module")
def kernel(cell: arm.Cell) -> Any:
    return cell.fk("tool0", parameters=NAMES)


def point(cell: arm.Cell, *batch: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    p = np.array(list(cell.parameters(NAMES).values()))
    arrays = rng.uniform(-2.0, 2.0, (*batch, 7)), p, rng.normal(size=(4, 4))
    return tuple(map(torch.from_numpy, arrays))


@pytest.mark.parametrize("batch", [(), (1,), (3, 1, 2)])
def test_values_and_gradients(cell, kernel, batch):
    q, p, w = point(cell, *batch)
    q.requires_grad_()
    p.requires_grad_()
    fk = kernel.torch()
    X = fk(q, p)
    torch.sum(w * X**2).backward()
    arrays = [x.detach().numpy() for x in (q, p, w)]
    values = kernel(*arrays[:2])
    np.testing.assert_array_equal(X.detach().numpy(), values)
    wanted_q, wanted_p = kernel.vjp()(*arrays[:2], 2 * arrays[2] * values)
    np.testing.assert_allclose(q.grad, wanted_q, atol=1e-13)
    # All rows share p: its cotangent is the sum of theirs.
    np.testing.assert_allclose(p.grad, wanted_p.reshape(-1, 3).sum(0), atol=1e-12)


def test_torchs_own_check_of_all_derivatives(cell, kernel):
    q, p, _ = point(cell, 2)
    inputs = q.requires_grad_(), p.requires_grad_()
    fk = kernel.torch()
    check = torch.autograd.gradcheck
    assert check(fk, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(fk, inputs)


def test_functional_transforms(cell, kernel):
    q, p, w = point(cell, 4)
    fk, func = kernel.torch(), torch.func

    def loss(q, p):
        return torch.sum(w * fk(q, p) ** 2)

    slope = func.grad(loss, argnums=(0, 1))
    rows = [slope(each, p) for each in q]
    by_q, by_p = func.vmap(slope, in_dims=(0, None))(q, p)
    np.testing.assert_allclose(by_q, torch.stack([row[0] for row in rows]), atol=1e-13)
    np.testing.assert_allclose(by_p, torch.stack([row[1] for row in rows]), atol=1e-13)
    many = p + 0.01 * torch.arange(6)[:, None]
    found = func.vmap(fk, in_dims=(None, 1))(q, many.T)
    wanted = kernel(q.numpy()[None], many.numpy()[:, None])
    np.testing.assert_array_equal(found, wanted)
    forward, reverse = func.jacfwd(fk)(q[0], p), func.jacrev(fk)(q[0], p)
    np.testing.assert_allclose(forward, reverse, atol=1e-14)
    J = cell.jacobian("tool0", parameters=NAMES)(q[0].numpy(), p.numpy())
    np.testing.assert_allclose(forward[:3, 3], J[:3], atol=1e-13)
    twice = func.hessian(loss)(q[0], p)
    other = func.jacrev(func.jacrev(loss))(q[0], p)
    np.testing.assert_allclose(twice, other, atol=1e-12)


def test_no_copies(cell):
    """Inputs and results are views of the memory that the kernel reads and writes."""
    seen = []

    def looking(*arrays):
        seen.extend(arrays)
        return kernel(*arrays)

    kernel = cell.fk("tool0")
    watched = kernel.with_batches(looking)
    q, _, _ = point(cell, 300)
    watched.torch()(q)
    assert seen[0].ctypes.data == q.data_ptr()


def test_torch_compile_goes_on_behind_a_call(cell, kernel):
    q, p, w = point(cell, 4)
    fk = kernel.torch()

    def loss(q):
        return torch.sum(w * fk(torch.sin(q), p))

    q.requires_grad_()
    (plain,) = torch.autograd.grad(loss(q), q)
    (compiled,) = torch.autograd.grad(torch.compile(loss, backend="eager")(q), q)
    np.testing.assert_array_equal(compiled, plain)


def test_clear_errors(cell, kernel):
    q, p, _ = point(cell)
    fk = kernel.torch()
    with pytest.raises(ShapeError, match=r"in float64; q was given as float32.*double"):
        fk(q.float(), p)
    with pytest.raises(ShapeError, match=r"takes 2 arrays \(q, parameters\); 1 given"):
        fk(q)
    with pytest.raises(ShapeError, match=r"needs q of shape \(..., 7\)"):
        fk(q[:6], p)
    with pytest.raises(ShapeError, match=r"tensors on cpu, meta were"):
        fk(q.to("meta"), p)
    with pytest.raises(KernelError, match="is a pipeline"):
        pickle.loads(pickle.dumps(arm.example("five_bar").fk("tip"))).torch()


def test_closed_loops():
    """Passive joints follow, by joints and by lengths, also in second derivatives."""
    cell = arm.example("five_bar")
    names = ["five_bar/right.precursor.y", "five_bar/tool.x"]
    fk = cell.fk("tip", parameters=names).torch()
    p = torch.tensor(list(cell.parameters(names).values()), dtype=torch.float64)
    home = torch.tensor(cell.home.q)
    q = home + torch.tensor([[0.0, 0.0], [0.2, 0.1]], dtype=torch.float64)
    inputs = q.requires_grad_(), p.requires_grad_()
    assert torch.autograd.gradcheck(fk, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(fk, inputs)
    mapped = torch.func.vmap(torch.func.jacrev(fk), in_dims=(0, None))(q, p)
    each = torch.stack([torch.func.jacfwd(fk)(row, p) for row in q])
    np.testing.assert_allclose(mapped.detach(), each.detach(), atol=1e-13)


def test_rows_whose_loops_do_not_close():
    """They are NaN with their gradients; other rows are not touched."""
    cell = arm.example("five_bar")
    fk = cell.fk("tip").torch()
    home = torch.tensor(cell.home.q)
    apart = torch.tensor([[0.1, 0.0], [1.5, -1.5]], dtype=torch.float64)
    q = (home + apart).requires_grad_()
    X = fk(q)
    assert torch.isnan(X[1]).all()
    assert not torch.isnan(X[0]).any()
    X[..., 1, 3].sum().backward()
    np.testing.assert_allclose(
        q.grad[0], cell.jacobian("tip")(q[0].detach().numpy())[1], atol=1e-13
    )
    assert torch.isnan(q.grad[1]).all()


def test_one_step_of_newton_has_the_gradient_of_inverse_kinematics():
    arm6 = arm.example("irb2400")
    error, near = arm6.pose_error("tool0"), np.array([0.2, 0.3, 0.1, 0.5, 0.6, 0.7])
    X = arm6.fk("tool0")(near)
    inverse = np.linalg.pinv(error.jvp(["q"])(near, X, np.eye(6)).T)
    target, q = torch.from_numpy(X).requires_grad_(), torch.from_numpy(near)
    answer = q - torch.from_numpy(inverse) @ error.torch()(q, target)
    answer[2].backward()
    step = 1e-6 * X[:, [1]] @ np.array([[0.0, 0.0, 0.0, 1.0]])  # along its own y
    ends = [arm6.ik("tool0")(X + s * step, near=near).q[2] for s in (1, -1)]
    slope = np.sum(target.grad.numpy() * step)
    assert slope == pytest.approx((ends[0] - ends[1]) / 2, rel=1e-5)


@pytest.mark.parametrize("name", ["irb2400", "ur5e_on_oval"])
def test_answers_of_inverse_kinematics(name: str) -> None:
    """The gradient is that of differences; joints that are left free move least."""
    cell = arm.example(name)
    solver = cell.ik("tool0")
    ik, count = solver.torch(), len(cell.joint_names)
    near = torch.from_numpy(np.random.default_rng(0).uniform(0.1, 0.8, (3, count)))
    X = cell.fk("tool0").torch()(near)
    vector = torch.zeros(3, 6, dtype=torch.float64, requires_grad=True)
    twist = torch.zeros(3, 4, 4, dtype=torch.float64)
    for k, (i, j) in enumerate([(0, 3), (1, 3), (2, 3)]):
        twist[:, i, j] = twist[:, i, j] + vector[:, k]
    for k, (i, j) in enumerate([(2, 1), (0, 2), (1, 0)]):
        twist[:, i, j] = twist[:, i, j] + vector[:, 3 + k]
        twist[:, j, i] = twist[:, j, i] - vector[:, 3 + k]
    target = X @ torch.linalg.matrix_exp(twist)
    q = ik(target, near)
    np.testing.assert_allclose(cell.fk("tool0")(q.detach().numpy()), X, atol=1e-6)
    weights = torch.linspace(1.0, 2.0, q.shape[-1], dtype=torch.float64)
    (slope,) = torch.autograd.grad(torch.sum(q * weights), vector)
    J = cell.jacobian("tool0", axes="tool0")(q.detach().numpy())
    wanted = np.einsum("j,njk->nk", weights.numpy(), np.linalg.pinv(J))
    np.testing.assert_allclose(slope, wanted, atol=1e-8)
    far = torch.eye(4, dtype=torch.float64) * 1.0
    far[0, 3] = 99.0
    assert torch.isnan(ik(far)).all()


def test_vmap_of_answers_and_distances() -> None:
    """Mapped dimensions are a batch, whichever arguments have them."""
    cell, func = arm.example("irb2400"), torch.func
    ik = cell.ik("tool0").torch()
    near = torch.from_numpy(np.random.default_rng(0).uniform(0.1, 0.8, (4, 3, 6)))
    X = torch.from_numpy(cell.fk("tool0")(near.numpy()))
    answers = ik(X, near)
    assert torch.equal(func.vmap(func.vmap(ik))(X, near), answers)
    moved = func.vmap(ik, in_dims=(2, 1))(X.movedim(0, 2), near.movedim(0, 1))
    assert torch.equal(moved, answers)
    shared = func.vmap(ik, in_dims=(0, None))(X, near[0, 0])
    assert torch.equal(shared, ik(X, near[0, 0]))
    assert torch.equal(func.vmap(ik)(X, near[:, 0]), ik(X, near[:, :1]))
    reverse = func.vmap(func.jacrev(ik))(X[0], near[0])
    forward = func.vmap(func.jacfwd(ik))(X[0], near[0])
    np.testing.assert_allclose(forward, reverse, atol=1e-13)
    check = cell.collision()
    distances, q = check.torch(), near[0]
    assert torch.equal(func.vmap(distances)(q), distances(q))
    slopes = func.vmap(func.jacrev(distances))(q)
    np.testing.assert_allclose(slopes, check.gradients(q.numpy()), atol=1e-14)


def test_answers_that_have_no_gradient() -> None:
    with pytest.raises(KernelError, match="one full pose"):
        arm.example("irb2400").ik("tool0", rotation="xy").torch()


def test_distances() -> None:
    check = arm.example("irb2400").collision()
    Q = np.random.default_rng(0).uniform(-0.5, 0.5, (3, 6))
    q = torch.from_numpy(Q).requires_grad_()
    distances = check.torch()(q)
    np.testing.assert_array_equal(distances.detach(), check.distances(Q))
    weights = torch.linspace(1.0, 2.0, len(check.pairs), dtype=torch.float64)
    torch.sum(distances * weights).backward()
    wanted = np.einsum("k,nkj->nj", weights.numpy(), check.gradients(Q))
    np.testing.assert_allclose(q.grad, wanted, atol=1e-14)
    with pytest.raises(ShapeError, match="double"):
        check.torch()(q.float())


def test_answers_of_closed_loops() -> None:
    """Where the target follows a motion of the joints, so does the answer."""
    cell = arm.example("stewart")
    fk, q = cell.fk("tool"), np.array(cell.home.q) + 0.02 * np.arange(6)
    target = torch.from_numpy(fk(q)).requires_grad_()
    answer = cell.ik("tool").torch()(target, torch.from_numpy(q))
    np.testing.assert_allclose(answer.detach(), q, atol=1e-9)
    v, w = np.random.default_rng(0).normal(size=(2, 6))
    (answer @ torch.from_numpy(w)).backward()
    found = np.sum(target.grad.numpy() * fk.jvp()(q, v))
    assert found == pytest.approx(v @ w, rel=1e-8)
    # Neither a target out of reach nor one without numbers stops the others.
    rows = np.repeat(target.detach().numpy()[np.newaxis], 3, axis=0)
    rows[1, 2, 3], rows[2] = 9.0, np.nan
    targets = torch.from_numpy(rows).requires_grad_()
    answers = cell.ik("tool").torch()(targets, q)
    (answers @ torch.from_numpy(w)).sum().backward()
    np.testing.assert_allclose(targets.grad[0], target.grad, atol=1e-9)
    assert torch.isnan(answers[1:]).all()
    assert torch.isnan(targets.grad[1:, :3]).all()
