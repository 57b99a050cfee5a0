"""Gradients of a pose loss through kernels, beside formulas of JAX and torch.

The loss is the sum of squared differences of the tool's 4x4 pose and a target, over a
batch; its gradient by the joint positions is asked for in float64. The peer is the same
arm as scalars of JAX, unrolled by hand, under `jit`, `vmap` and `grad`. What counts is
the processor's time, of all threads.
"""

from __future__ import annotations

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

    def by_numpy() -> Any:
        return slopes(Q, 2.0 * (kernel(Q) - target))

    was = jax.config.jax_enable_x64
    # For all threads: `jax.enable_x64` is for this one, and JAX calls from others.
    jax.config.update("jax_enable_x64", True)
    try:
        formula, fk = jax_poses(robot, "float64"), kernel.jax()
        on_jax = jnp.asarray(Q)

        def gradient(poses: Any) -> Any:
            return jax.jit(jax.grad(lambda q: jnp.sum((poses(q) - target) ** 2)))

        of_formula, of_kernel = gradient(formula), gradient(fk)
        tasks = {
            "": lambda: of_formula(on_jax).block_until_ready(),
            "NumPy": by_numpy,
            "kernel.jax()": lambda: of_kernel(on_jax).block_until_ready(),
        }
        if find_spec("torch"):
            tasks["kernel.torch()"] = in_torch(kernel, Q, target)
        expected = np.asarray(tasks[""]())
        for name, task in tasks.items():
            error = np.abs(np.asarray(task()) - expected).max()
            assert error < BOUND, (name, error)
        peer, *ours = best_times(*tasks.values(), clock=process_time)
    finally:
        jax.config.update("jax_enable_x64", was)
    for name, took in zip(list(tasks)[1:], ours, strict=True):
        row = f"{what}, {name}"
        yield faster(row, took / BATCH, peer / BATCH, at_least=ASKED)
    if not find_spec("torch"):
        yield absent(f"{what}, kernel.torch()", "torch is not installed")


def in_torch(kernel: Any, Q: Any, target: Any) -> Any:
    """Return a task that computes the gradient in torch."""
    torch: Any = import_module("torch")
    torch.set_num_threads(1)
    fk, goal = kernel.torch(), torch.from_numpy(target)

    def task() -> Any:
        q = torch.from_numpy(Q).requires_grad_()
        torch.sum((fk(q) - goal) ** 2).backward()
        return q.grad

    return task
