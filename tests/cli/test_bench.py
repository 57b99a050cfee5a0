"""`armillary bench`: figures of this machine, each a plausible one."""

from __future__ import annotations

import re

import numpy as np
import pytest

import armillary as arm
from armillary.cli import bench


def test_bench_prints_every_figure(run, file: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bench, "BATCH", 1000)
    monkeypatch.setattr(bench, "DURATION", 0.01)
    result = run("bench", file)
    assert result.code == 0, result.err
    head, *lines = result.out.splitlines()
    assert head.startswith("pose of hand/tip: 3 joints, ")
    figures = {
        line[:34].strip(): float(re.findall(r"[\d.]+", line[34:])[0]) for line in lines
    }
    # Which is longer, a busy machine decides.
    for name in (
        "first kernel, compiled",
        "first kernel, from the cache",
        "new process until then",
        "one call",
        "each of 1,000, 1 thread",
    ):
        assert figures[name] > 0.0, name


def test_a_child_that_fails_is_reported(
    run, file: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bench, "FIRST_KERNEL", "raise RuntimeError('no luck')")
    result = run("bench", file)
    assert result.code == 2
    assert "RuntimeError: no luck" in result.err


def test_random_vectors_stay_within_the_limits(cell: arm.Cell):
    Q = bench.random_vectors(cell, 500)
    assert Q.shape == (500, 3)
    lower, upper = cell.limits
    assert np.all((lower <= Q) & (upper >= Q))
    assert np.all(np.ptp(Q, axis=0) > 1.0)
    assert np.array_equal(Q, bench.random_vectors(cell, 500))


class Stopwatch:
    """Stands for `timeit.Timer`: each measurement takes what was planned."""

    planned: list[float]

    def __init__(self, call: object) -> None: ...

    def timeit(self, count: int) -> float:
        return count * (self.planned.pop(0) if self.planned else 9.0)


@pytest.mark.parametrize(
    ("planned", "expected"),
    [
        ([0.004, 0.002, 0.003], 0.002),
        ([1e-6] * 50, 1e-6),
        ([1e-9, 5e-4, 6e-4, 4e-4, 3e-4], 4e-4),
        ([0.0, *[1e-6] * 50], 1e-6),
    ],
)
def test_seconds_are_those_of_the_quickest_call(
    monkeypatch: pytest.MonkeyPatch, planned: list[float], expected: float
):
    monkeypatch.setattr(Stopwatch, "planned", [*planned], raising=False)
    monkeypatch.setattr(bench.timeit, "Timer", Stopwatch)
    monkeypatch.setattr(bench, "DURATION", 0.0)
    assert bench.seconds(lambda: None) == pytest.approx(expected)
