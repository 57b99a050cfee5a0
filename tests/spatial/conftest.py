"""Samples for the laws: uniform, normal, and so small that series must take over."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

REGIMES = {
    "uniform": lambda rng, shape: rng.uniform(-1.7, 1.7, shape),
    "normal": lambda rng, shape: rng.normal(0.0, 1.0, shape),
    "tiny": lambda rng, shape: rng.uniform(-1e-7, 1e-7, shape),
}

Sample = Callable[..., list[tuple[float, ...]]]


@pytest.fixture(params=REGIMES)
def sample(request: pytest.FixtureRequest) -> Sample:
    """Draw `count` tuples of `size` floats in one of three regimes."""
    rng = np.random.default_rng(20240601)
    draw = REGIMES[request.param]

    def tuples(size: int, count: int = 12) -> list[tuple[float, ...]]:
        return [tuple(map(float, row)) for row in draw(rng, (count, size))]

    return tuples
