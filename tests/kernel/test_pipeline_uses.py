"""The pipelines that are measured give the right answers."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.pipelines import (
    SphereArm,
    closure,
    four_bar,
    four_bar_by_hand,
    free,
)

from armillary.kernel import compile
from armillary.kernel.pipeline_kernel import compile_pipeline

TYPES = pytest.mark.parametrize("kind", ["float64", "float32"])


@TYPES
def test_spheres_are_free_where_no_two_overlap(kind: str):
    arm, rng = SphereArm(), np.random.default_rng(1)
    code = compile_pipeline(free(arm), dtype=kind)
    q = rng.uniform(-2.5, 2.5, (500, 7))
    centres = compile(free(arm).programs[0])(q)[0]
    shown: list[float] = []
    for count in (0, 1, 20):
        obstacles = np.column_stack(
            [rng.uniform(-1.0, 1.0, (count, 3)), rng.uniform(0.02, 0.1, count)]
        )
        tables = arm.tables(obstacles)
        pairs = tables["pairs"]
        d = np.linalg.norm(centres[:, pairs["a"]] - centres[:, pairs["b"]], axis=-1)
        depth = [(pairs["reach"] - d).max(axis=1)]
        movers = arm.link > 0
        for *centre, radius in obstacles:
            d = np.linalg.norm(centres[:, movers] - centre, axis=-1)
            depth.append((arm.radii[movers] + radius - d).max(axis=1))
        worst = np.max(depth, axis=0)
        clear = np.abs(worst) > 1e-5
        found = code(tables)(q.astype(kind))
        np.testing.assert_array_equal(found[clear], (worst < 0.0)[clear])
        shown.append(found.mean())
    assert 0.9 > shown[0] >= shown[1] > shown[2] > 0.0


@TYPES
def test_a_four_bar_closes_with_the_right_rates(kind: str):
    q = np.linspace(-3.0, 3.0, 101)
    by_hand = compile(four_bar_by_hand())
    wanted = by_hand(q)
    rng = np.random.default_rng(0)
    near = wanted + rng.uniform(-0.2, 0.2, wanted.shape)
    p, rates = compile_pipeline(four_bar(), dtype=kind)()(
        q.astype(kind), near.astype(kind)
    )
    exact = {"float64": 1e-13, "float32": 2e-6}[kind]
    np.testing.assert_allclose(p, wanted, atol=exact)
    assert np.abs(closure(q, p.T)).max() < exact
    slope = (by_hand(q + 1e-6) - by_hand(q - 1e-6)) / 2e-6
    np.testing.assert_allclose(rates, slope, atol=max(1e-7, 20 * exact))
