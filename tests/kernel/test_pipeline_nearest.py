"""Searches of trees of balls: machine code, the reference, and brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from armillary.collision.distance.ball_tree import BALLS, ball_tree
from armillary.errors import KernelError
from armillary.kernel.javascript import pipeline_function
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.pipeline_reference import evaluate
from armillary.kernel.stages import NearestPoint, When, program
from armillary.kernel.tables import Table, reals
from armillary.trace import Port
from armillary.trace.functions import sqrt

Array = np.ndarray
TREE = Table("tree", (reals("balls", (4, BALLS)),))
PLACE, CHOSEN = Port("place", (3,)), Port("chosen", (3,))
POINTS = np.random.default_rng(0).normal(size=(700, 3)).astype(np.float32)


def away(place: Any, at: Any) -> Any:
    square = sum((p - x) ** 2 for p, x in zip(place, at[:3], strict=True))
    return sqrt(square)


def search(part: float = 1.0, stages: Any = None) -> Pipeline:
    """Return the nearest point of rows x, y, z, most, enough, going."""
    inner = stages or (program(away, "value", place=(3,), at=(6,)),)
    region = NearestPoint(
        "tree", "balls", PLACE, inner, "value", "least", "enough", CHOSEN, part
    )
    begin = program(
        lambda at: (at[3], at[4], [at[5], 0.0, 0.0], at[5]),
        "least enough chosen going",
        at=(6,),
    )
    end = program(
        lambda least, chosen: [least, *chosen], "found", least=(), chosen=(3,)
    )
    stages = begin, When("going", (region,)), end
    return Pipeline("search", (Port("at", (6,)),), (TREE,), stages, ("found",))


def tables(points: Array = POINTS) -> dict[str, Any]:
    return {"tree": {"balls": ball_tree(points.astype(np.float64)).balls}}


def rows(most: float = np.inf, enough: float = -np.inf) -> Array:
    rng = np.random.default_rng(1)
    at = np.zeros((41, 6))
    at[:, :3] = rng.normal(size=(41, 3)) * 1.5
    at[:, 3:] = most, enough, 1.0
    at[7] = at[6]  # as padding is
    at[11, 5] = -1.0  # left alone
    at[13, 1] = np.nan
    return at


def nearest(at: Array) -> tuple[Array, Array]:
    apart = np.linalg.norm(POINTS - at[:, np.newaxis, :3], axis=2)
    chosen = np.argmin(apart, axis=1)
    return apart[np.arange(len(at)), chosen], POINTS[chosen]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("lanes", [1, 4, 16])
def test_the_nearest_point_is_that_of_brute_force(dtype, lanes):
    kernel = compile_pipeline(search(), dtype=dtype, lanes=lanes)(tables())
    at = rows()
    found = kernel(at.astype(dtype))
    value, chosen = nearest(at)
    value[[11, 13]], chosen[11], chosen[13] = np.inf, (-1, 0, 0), (1, 0, 0)
    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    assert np.allclose(found[:, 0], value, rtol=0.0, atol=tolerance)
    assert np.allclose(found[:, 1:], chosen, rtol=0.0, atol=tolerance)
    assert np.array_equal(found[7], found[6])
    alone = np.array([kernel(row.astype(dtype)) for row in at[:5]])
    assert np.array_equal(alone, found[:5])


def test_the_reference_agrees():
    kernel = compile_pipeline(search())(tables())
    at = rows(most=0.4)
    (expected,) = evaluate(search(), kernel._native.tables, at)
    assert np.allclose(kernel(at), expected, rtol=0.0, atol=1e-12)


def test_nothing_is_found_beyond_what_is_wanted():
    kernel = compile_pipeline(search())(tables())
    at = rows(most=0.3)
    value, _ = nearest(at)
    found = kernel(at)
    far = ~(value < 0.3)
    far[[11, 13]] = True
    assert 5 < far.sum() < 36
    assert (found[far, 0] == 0.3).all()
    assert (found[far, 2:] == 0.0).all()
    assert np.allclose(found[~far, 0], value[~far], rtol=0.0, atol=1e-12)


def test_a_search_ends_with_what_is_enough():
    at = rows(enough=0.5)
    found, value = compile_pipeline(search())(tables())(at)[:, 0], nearest(at)[0]
    is_enough = value <= 0.5
    is_enough[[11, 13]] = False
    assert (found[is_enough] <= 0.5).all()
    rest = ~is_enough & np.isfinite(found)
    assert np.allclose(found[rest], value[rest], rtol=0.0, atol=1e-12)


def test_a_part_bounds_how_wrong_the_least_value_is():
    at = rows()
    found = compile_pipeline(search(part=0.7))(tables())(at)[:, 0]
    value, usual = nearest(at)[0], np.isfinite(found)
    assert (found[usual] >= value[usual] - 1e-12).all()
    assert (0.7 * found[usual] <= value[usual] + 1e-12).all()
    assert not np.allclose(found[usual], value[usual], atol=1e-12)


@pytest.mark.parametrize("count", [1, BALLS - 1, BALLS, (BALLS - 1) ** 2 + 1])
def test_trees_of_any_size_are_searched(count):
    points = POINTS[:count]
    kernel = compile_pipeline(search())(tables(points))
    at = rows()[:5]
    apart = np.linalg.norm(points - at[:, np.newaxis, :3], axis=2).min(axis=1)
    assert np.allclose(kernel(at)[:, 0], apart, rtol=0.0, atol=1e-12)


def test_faulty_regions_are_refused():
    other = (program(lambda at: at[0], "other", at=(6,)),)
    with pytest.raises(KernelError, match="no column 'value'"):
        search(stages=other)
    with pytest.raises(KernelError, match="has not the one field 'balls'"):
        Pipeline(
            "search",
            (Port("at", (6,)),),
            (Table("tree", (reals("balls", (3, BALLS)),)),),
            search().stages,
            ("found",),
        )
    with pytest.raises(KernelError, match="searches a tree of balls"):
        pipeline_function(search(), tables(), "f")
