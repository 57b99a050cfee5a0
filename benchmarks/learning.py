"""Gradients of a pose loss through kernels, beside formulas of JAX and torch.

The loss is the sum of squared differences of the tool's 4x4 pose and a target, over a
batch; its gradient by the joint positions is asked for in float64, with the loss in
NumPy, JAX or torch, and as a part of the kernel (`then`). The peer is the same
arm as scalars of JAX, unrolled by hand, under `jit`, `vmap` and `grad`; of torch also
pytorch_kinematics, with the same loss. What counts is the processor's time, of all
threads.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from time import process_time
from typing import Any

import numpy as np

from benchmarks.closed import one_thread
from benchmarks.kinematics import jax_poses
from benchmarks.measure import Figure, absent, beside, best_times, faster
from benchmarks.robots import Robot, panda, ur5

BATCH = 10_000
ASKED = 20.0
BOUND = 1e-12
TORCH_PEER = "pytorch_kinematics"
ROUNDED = 1e-6  # its constants are rounded to float32


def figures() -> Iterator[Figure]:
    """Yield the figures of learning through kernels."""
    with one_thread():
        for name, make in (("Panda", panda), ("UR5", ur5)):
            what = f"{name}, gradient of a pose loss"
            yield from beside("jax", what, lambda w=what, m=make: arm_figures(w, m()))


def arm_figures(what: str, robot: Robot) -> Iterator[Figure]:
    """Yield the figures of one arm."""
    jax: Any = import_module("jax")
    jnp: Any = jax.numpy
    kernel = robot.cell.fk(robot.tip, joints=robot.joints)
    slopes = kernel.vjp()
    Q, target = robot.random_q(BATCH), kernel(robot.random_q(1)[0])

    losses = kernel.then(lambda X, X_W: ((X - X_W) ** 2).sum(), X_W=(4, 4))
    of_losses = losses.vjp(["q"])

    def by_numpy() -> Any:
        return slopes(Q, 2.0 * (kernel(Q) - target))

    was = jax.config.jax_enable_x64
    # For all threads: `jax.enable_x64` is for this one, and JAX calls from others.
    jax.config.update("jax_enable_x64", True)
    try:
        formula, fk = jax_poses(robot.manipulator, robot.tip, "float64"), kernel.jax()
        on_jax = jnp.asarray(Q)

        def gradient(poses: Any) -> Any:
            return jax.jit(jax.grad(lambda q: jnp.sum((poses(q) - target) ** 2)))

        of_formula, of_kernel = gradient(formula), gradient(fk)
        loss = losses.jax()
        of_loss = jax.jit(jax.grad(lambda q: jnp.sum(loss(q, target))))
        tasks = {
            "": lambda: of_formula(on_jax).block_until_ready(),
            "NumPy": by_numpy,
            "kernel.jax()": lambda: of_kernel(on_jax).block_until_ready(),
            "then, NumPy": lambda: of_losses(Q, target, 1.0),
            "then, jax()": lambda: of_loss(on_jax).block_until_ready(),
        }
        if find_spec("torch"):
            tasks["kernel.torch()"] = in_torch(kernel.torch(), Q, target)
            tasks["then, torch()"] = sums_in_torch(losses.torch(), Q, target)
        expected = np.asarray(tasks[""]())
        for name, task in tasks.items():
            error = np.abs(np.asarray(task()) - expected).max()
            assert error < BOUND, (name, error)
        if find_spec("torch") and find_spec("pytorch_kinematics"):
            tasks[TORCH_PEER] = in_torch(of_torch_peer(robot), Q, target)
            error = np.abs(np.asarray(tasks[TORCH_PEER]()) - expected).max()
            assert error < ROUNDED, error
        times = best_times(*tasks.values(), clock=process_time)
    finally:
        jax.config.update("jax_enable_x64", was)
    took = {name: each / BATCH for name, each in zip(tasks, times, strict=True)}
    ways = "NumPy", "kernel.jax()", "kernel.torch()"
    for name in (*ways, "then, NumPy", "then, jax()", "then, torch()"):
        row = f"{what}, {name}"
        if name in took:
            yield faster(row, took[name], took[""], at_least=ASKED)
        else:
            yield absent(row, "torch is not installed")
    row = f"{what}, kernel.torch() beside {TORCH_PEER}"
    if TORCH_PEER in took:
        peer = took[TORCH_PEER]
        yield faster(row, took["kernel.torch()"], peer, at_least=ASKED)
    else:
        yield absent(row, "it is not installed")


def of_torch_peer(robot: Robot) -> Any:
    """Return forward kinematics of pytorch_kinematics, of tensors."""
    torch: Any = import_module("torch")
    peer: Any = import_module(TORCH_PEER)
    # What it does not read, friction, it prints.
    with contextlib.redirect_stderr(io.StringIO()):
        chain = peer.build_serial_chain_from_urdf(robot.path.read_bytes(), robot.tip)
    assert chain.get_joint_parameter_names() == robot.joints
    chain = chain.to(dtype=torch.float64)
    return lambda q: chain.forward_kinematics(q).get_matrix()


def in_torch(fk: Any, Q: Any, target: Any) -> Any:
    """Return a task that computes the gradient in torch."""
    torch: Any = import_module("torch")
    torch.set_num_threads(1)
    goal = torch.from_numpy(target)

    def task() -> Any:
        q = torch.from_numpy(Q).requires_grad_()
        torch.sum((fk(q) - goal) ** 2).backward()
        return q.grad

    return task


def sums_in_torch(losses: Any, Q: Any, target: Any) -> Any:
    """Return the same task of losses that a kernel computes."""
    torch: Any = import_module("torch")
    torch.set_num_threads(1)
    goal = torch.from_numpy(target)

    def task() -> Any:
        q = torch.from_numpy(Q).requires_grad_()
        losses(q, goal).sum().backward()
        return q.grad

    return task
