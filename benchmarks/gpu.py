"""Kernels on a GPU beside the CPU, JAX, and the bandwidth of the GPU's memory.

It needs an NVIDIA GPU with a driver of CUDA 11.4 or later, and `pip install
armillary[gpu] torch`. Each kernel first agrees with the CPU, at rows that are random
and that are not a multiple of a block; then it is timed by the GPU's own clock, with
results that are there already (`out=`). Rows are random, but where it says that they
are along ways, 32 to each. Peers are a copy of as many bytes by torch, and, where it is
installed, the same chain written in JAX.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

import armillary as arm
from armillary.kernel.gpu import call_on_gpu
from armillary.portable.asked import Asked, asked_of
from benchmarks.collisions import cell_with, obstacles
from benchmarks.kinematics import jax_poses
from benchmarks.measure import Figure, absent, beside, duration, faster, fewer

ROWS, CHECKED, TURNS, WARP = 2**22, 10_007, fewer(20), 32
CALLS, IN_TURN = fewer(1000), 8
TIP = "link7"
BANDWIDTH, CLOSED, CHECKS = 0.7, 300e6, 1000e6
"""What is asked: part of the bandwidth for poses; answers and checks in a second."""

MOST = {np.dtype(np.float64): 1e-11, np.dtype(np.float32): 1e-3}
"""How far results may be from those of the CPU, relative to one and their size."""


def figures() -> Iterator[Figure]:
    """Yield the agreement of all kernels with the CPU, and their times."""
    what = "kernels on a GPU"
    for module in ("torch", "cuda"):
        if find_spec(module) is None:
            yield absent(what, f"{module} is not installed")
            return
    if not _torch().cuda.is_available():
        yield absent(what, "there is no NVIDIA GPU here")
        return
    panda, wrist = cell_with([]), arm.example("irb2400")
    double, single = np.dtype(np.float64), np.dtype(np.float32)
    poses = f"fk:{TIP}"
    for dtype in (double, single):
        for ask in (poses, f"jacobian:{TIP}"):
            least = BANDWIDTH if (ask, dtype) == (poses, double) else None
            yield from _of_question(panda, "Panda", ask, dtype, bandwidth=least)
    what = "Panda fk, gradient of a loss, float64"
    yield from beside("jax", what, lambda: _beside_jax(panda))
    yield from _small_batches(panda)
    yield from _of_question(wrist, "IRB 2400", "ik:tool0", double, rate=CLOSED)
    for ask in (f"ik:{TIP}", f"differential_ik:{TIP}"):
        yield from _of_question(panda, "Panda", ask, double)
    for ask in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
        yield from _of_question(wrist, "IRB 2400", ask, double)
    spheres = cell_with(obstacles("spheres", 20))
    what = "arm in 59 spheres"
    yield from _of_question(spheres, what, "check", single, rate=CHECKS)
    yield from _of_question(spheres, what, "check", single, along=True)
    yield from _of_question(spheres, what, "check", double)
    arms = arm.example("two_arms_positioner")
    yield from _of_question(arms, "two arms and a positioner", "check", double)


def _torch() -> Any:
    return import_module("torch")


def _of_question(
    cell: arm.Cell,
    what: str,
    ask: str,
    dtype: np.dtype[Any],
    *,
    bandwidth: float | None = None,
    rate: float | None = None,
    along: bool = False,
) -> Iterator[Figure]:
    """Yield the agreement of a question with the CPU, and its time.

    Args:
        cell: What is asked.
        what: What the figures call it.
        ask: The question.
        dtype: The type of numbers.
        bandwidth: The least part of the bandwidth of a copy.
        rate: The least number of rows in a second.
        along: Whether 32 rows in turn are near each other, as along a way.
    """
    torch = _torch()
    (asked,) = asked_of(cell.workcell, {"k": ask}, state=None, dtype=dtype)
    kernel, title = asked.kernel, f"{what} {ask}, {dtype}"
    ports = kernel.computation.inputs
    free = [port for port in ports if port.name not in asked.bound]
    rows = asked.samples(np.random.default_rng(0), CHECKED, cell.limits)
    on_gpu = {
        port.name: torch.tensor(np.ascontiguousarray(x), device="cuda")
        for port, x in zip(free, rows, strict=False)
    }
    found = call_on_gpu(kernel, _arguments(asked, on_gpu))
    found = found if isinstance(found, tuple) else (found,)
    if not along:
        yield _agreement(title, found, rows[len(free) :], MOST[dtype])
    count = -(-ROWS // CHECKED) * CHECKED
    if along:
        title = f"{title}, along ways"
        many = _along(on_gpu, count)
    else:
        many = {name: _repeated(x, count // CHECKED) for name, x in on_gpu.items()}
    out = tuple(_repeated(x, count // CHECKED) for x in found)
    given = _arguments(asked, many)
    took = _seconds(lambda: call_on_gpu(kernel, given, out=out))
    moved = sum(x.numel() * x.element_size() for x in (*many.values(), *out))
    # A copy reads and writes each byte.
    source = torch.empty(moved // 2, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    copied = _seconds(lambda: target.copy_(source))
    share, done = copied / took, count / took
    wanted = f">= {rate / 1e6:.0f} million/s" if rate else ""
    wanted = f">= {bandwidth:.0%} of a copy" if bandwidth else wanted
    yield Figure(
        title,
        duration(took / count),
        duration(copied / count),
        wanted,
        f"{done / 1e6:.0f} million/s, {share:.0%} of the bandwidth of a copy",
        done >= (rate or 0.0) and share >= (bandwidth or 0.0),
    )


def _repeated(x: Any, times: int) -> Any:
    return x.repeat(times, *[1] * (x.ndim - 1))


def _along(given: dict[str, Any], count: int) -> dict[str, Any]:
    """Return rows in which each 32 go from one row to the next in small steps."""
    torch = _torch()
    made: dict[str, Any] = {}
    for name, x in given.items():
        ends = _repeated(x, -(-count // (WARP * CHECKED)) + 1)
        steps = torch.linspace(0.0, 0.1, WARP, dtype=x.dtype, device="cuda")
        steps = steps.reshape(1, -1, *[1] * (x.ndim - 1))
        ways = ends[:-1, None] + steps * (ends[1:, None] - ends[:-1, None])
        made[name] = ways.flatten(0, 1)[:count].contiguous()
    return made


def _agreement(title: str, found: Any, wanted: Any, most: float) -> Figure:
    """Return the line for the greatest difference from the CPU."""
    worst = 0.0
    for x, expected in zip(found, wanted, strict=True):
        got = x.cpu().numpy()
        assert (np.isnan(got) == np.isnan(expected)).all(), title
        both = np.isfinite(got) & np.isfinite(expected)
        error = np.abs(got - expected)[both] / (1.0 + np.abs(expected[both]))
        worst = max(worst, float(error.max(initial=0.0)))
    what = f"{title}: the farthest from the CPU"
    return Figure(what, "", "", f"<= {most:g}", f"{worst:.1e}", worst <= most)


def _beside_jax(cell: arm.Cell) -> Iterator[Figure]:
    """Yield poses, and the gradient of a loss of them, beside a formula in JAX."""
    torch, jax = _torch(), import_module("jax")
    jnp: Any = jax.numpy
    was = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        q = torch.rand(ROWS // 4, 7, dtype=torch.float64, device="cuda") - 0.5
        there = jnp.from_dlpack(q)
        formula = jax_poses(cell.manipulators[0], TIP, "float64")
        fk = cell.fk(TIP)
        X = fk(q)
        error = np.abs(np.asarray(formula(there[:100])) - X[:100].cpu().numpy()).max()
        assert error < 1e-12, error
        peer = _by_clock(lambda: formula(there).block_until_ready())
        ours = _by_clock(lambda: (fk(q, out=X), torch.cuda.synchronize()))
        rows = len(q)
        what = "Panda fk, float64, by the clock, beside a formula in JAX on the GPU"
        yield faster(what, ours / rows, peer / rows, at_least=1)
        target = fk(q[:1])[0]
        poses = fk.torch()

        def in_torch() -> Any:
            joints = q.detach().requires_grad_()
            ((poses(joints) - target) ** 2).sum().backward()
            torch.cuda.synchronize()
            return joints.grad

        losses = fk.then(lambda X, X_W: ((X - X_W) ** 2).sum(), X_W=(4, 4)).torch()

        def fused() -> Any:
            joints = q.detach().requires_grad_()
            losses(joints, target).sum().backward()
            torch.cuda.synchronize()
            return joints.grad

        goal = jnp.from_dlpack(target)
        of_loss = jax.jit(jax.grad(lambda q: jnp.sum((formula(q) - goal) ** 2)))
        peer = _by_clock(lambda: of_loss(there).block_until_ready())
        expected = np.asarray(of_loss(there[:100]))
        for how, task in (("torch", in_torch), ("then", fused)):
            error = np.abs(task()[:100].cpu().numpy() - expected).max()
            assert error < 1e-11, (how, error)
            what = f"Panda fk, gradient of a loss by {how}, float64, beside JAX there"
            yield faster(what, _by_clock(task) / rows, peer / rows, at_least=1)
    finally:
        jax.config.update("jax_enable_x64", was)


def _small_batches(cell: arm.Cell) -> Iterator[Figure]:
    """Yield how long calls of few rows take, beside an addition of torch."""
    torch = _torch()
    fk = cell.fk(TIP)
    for rows in (1, 1000):
        q = torch.rand(rows, 7, dtype=torch.float64, device="cuda")
        X = fk(q)

        def add(q: Any = q, X: Any = X) -> None:
            for _ in range(CALLS):
                torch.add(X, 1.0, out=X)
            torch.cuda.synchronize()

        def call(q: Any = q, X: Any = X) -> None:
            for _ in range(CALLS):
                fk(q, out=X)
            torch.cuda.synchronize()

        ours, peer = _by_clock(call) / CALLS, _by_clock(add) / CALLS
        what = f"Panda fk, a call of {rows} rows on the GPU beside torch.add"
        yield Figure(what, duration(ours), duration(peer), "", "", True, ours / peer)


def _arguments(asked: Asked, arrays: dict[str, Any]) -> list[Any]:
    ports = asked.kernel.computation.inputs
    return [arrays.get(port.name, asked.bound.get(port.name)) for port in ports]


def _by_clock(task: Callable[[], object]) -> float:
    """Return the least time of a task that waits for the GPU [s]."""
    task()
    best = float("inf")
    for _ in range(TURNS):
        start = time.perf_counter()
        task()
        best = min(best, time.perf_counter() - start)
    return best


def _seconds(task: Callable[[], object]) -> float:
    """Return the least time of a task [s], by events of the stream.

    Several follow each other, so that the GPU never waits for Python between.
    """
    torch = _torch()
    task()
    best = float("inf")
    for _ in range(TURNS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        task()
        begin.record()
        for _ in range(IN_TURN):
            task()
        end.record()
        torch.cuda.synchronize()
        best = min(best, begin.elapsed_time(end) * 1e-3 / IN_TURN)
    return best
