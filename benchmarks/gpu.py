"""Kernels on a GPU beside the CPU, and beside the bandwidth of the GPU's memory.

It was never run: write down what it finds where there is a GPU. It needs an NVIDIA GPU
with a driver of CUDA 11.4 or later, and `pip install armillary[gpu] torch`. Each kernel
first agrees with the CPU, at rows that are random and that are not a multiple of a
block; then it is timed by the GPU's own clock, with results that are there already
(`out=`). The peer is a copy of as many bytes by torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

import armillary as arm
from armillary.kernel.gpu import call_on_gpu
from armillary.portable.asked import Asked, asked_of
from benchmarks.measure import Figure, absent, fewer
from benchmarks.robots import panda

ROWS, CHECKED, TURNS = 2**22, 10_007, fewer(20)
BANDWIDTH, CLOSED, CHECKS = 0.7, 300e6, 1000e6
"""What is asked: part of the bandwidth for poses; answers and checks in a second."""


def figures() -> Iterator[Figure]:
    """Yield the agreement of all kernels with the CPU, and their times."""
    what = "kernels on a GPU"
    for module in ("torch", "cuda"):
        if find_spec(module) is None:
            yield absent(what, f"{module} is not installed")
            return
    torch: Any = import_module("torch")
    if not torch.cuda.is_available():
        yield absent(what, "there is no NVIDIA GPU here")
        return
    robot, wrist = panda(), arm.example("irb2400")
    double, single = np.dtype(np.float64), np.dtype(np.float32)
    asks = [f"{kind}:{robot.tip}" for kind in ("fk", "jacobian", "ik")]
    asks += ["inverse_dynamics", "forward_dynamics", "mass_matrix"]
    for dtype in (double, single):
        named = {f"k{k}": ask for k, ask in enumerate(asks) if dtype == double or k < 2}
        for one in asked_of(robot.cell.workcell, named, state=None, dtype=dtype):
            yield from _figures_of(
                torch, robot.cell, one, f"Panda {asks[int(one.name[1:])]}"
            )
    for one in asked_of(wrist.workcell, ["ik:tool0"], state=None, dtype=double):
        yield from _figures_of(torch, wrist, one, "IRB 2400 ik, all branches", CLOSED)
    spheres = import_module("benchmarks.collisions").cell_with(
        import_module("benchmarks.collisions").obstacles("spheres", 20)
    )
    for dtype, asked in ((single, CHECKS), (double, None)):
        for one in asked_of(spheres.workcell, ["check"], state=None, dtype=dtype):
            yield from _figures_of(
                torch, spheres, one, "arm in 59 spheres, check", asked
            )


def _figures_of(
    torch: Any, cell: arm.Cell, asked: Asked, title: str, least: float | None = None
) -> Iterator[Figure]:
    kernel, title = asked.kernel, f"{title}, {asked.kernel.dtype}"
    ports = kernel.computation.inputs
    rows = asked.samples(np.random.default_rng(0), CHECKED, cell.limits)
    free = [port for port in ports if port.name not in asked.bound]
    on_gpu = {
        port.name: torch.tensor(np.ascontiguousarray(x), device="cuda")
        for port, x in zip(free, rows, strict=False)
    }
    found = call_on_gpu(kernel, _arguments(asked, on_gpu))
    found = found if isinstance(found, tuple) else (found,)
    worst = 0.0
    for x, wanted in zip(found, rows[len(free) :], strict=True):
        got = x.cpu().numpy()
        both = np.isfinite(got) & np.isfinite(wanted)
        assert (np.isnan(got) == np.isnan(wanted)).all(), title
        error = np.abs(got - wanted)[both] / (1.0 + np.abs(wanted[both]))
        worst = max(worst, float(error.max(initial=0.0)))
    most = 1e-11 if kernel.dtype == np.float64 else 1e-3
    yield Figure(
        f"{title}: the farthest from the CPU", "", "", f"<= {most:g}", f"{worst:.1e}",
        worst <= most,
    )  # fmt: skip
    repeats = -(-ROWS // CHECKED)
    many = {name: x.repeat(repeats, *[1] * (x.ndim - 1)) for name, x in on_gpu.items()}
    count = repeats * CHECKED
    out = tuple(x.repeat(repeats, *[1] * (x.ndim - 1)) for x in found)
    given = _arguments(asked, many)
    took = _seconds(torch, lambda: call_on_gpu(kernel, given, out=out))
    moved = sum(x.numel() * x.element_size() for x in (*many.values(), *out))
    # A copy reads and writes each byte.
    source = torch.empty(moved // 2, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    copied = _seconds(torch, lambda: target.copy_(source))
    share, rate = copied / took, count / took
    is_enough = rate >= least if least else share >= BANDWIDTH or " fk" not in title
    wanted_rate = f">= {least / 1e6:.0f} million/s" if least else f">= {BANDWIDTH:.0%}"
    got = f"{rate / 1e6:.0f} million/s, {share:.0%} of the bandwidth of a copy"
    yield Figure(title, f"{took * 1e3:.3g} ms", "", wanted_rate, got, is_enough)


def _arguments(asked: Asked, arrays: dict[str, Any]) -> list[Any]:
    ports = asked.kernel.computation.inputs
    return [arrays.get(port.name, asked.bound.get(port.name)) for port in ports]


def _seconds(torch: Any, task: Callable[[], object]) -> float:
    """Return the least time of a task, by events of the stream."""
    task()
    best = float("inf")
    for _ in range(TURNS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        task()
        end.record()
        torch.cuda.synchronize()
        best = min(best, begin.elapsed_time(end) * 1e-3)
    return best
