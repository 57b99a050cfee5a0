"""Least widths of convex bodies: machine code, the reference, and what is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from armillary.errors import KernelError
from armillary.kernel.javascript import pipeline_function
from armillary.kernel.pipeline import Pipeline
from armillary.kernel.pipeline_kernel import compile_pipeline
from armillary.kernel.pipeline_reference import evaluate
from armillary.kernel.stages import LeastWidth, When, program
from armillary.trace import Port
from armillary.trace.functions import select, sqrt

Array = np.ndarray
WAY, POINT, AXIS = (Port(name, (3,)) for name in ("way", "point", "axis"))


def box(way: Any, at: Any) -> Any:
    """Return the farthest corner of a box of half sizes at[:3] about at[3:6]."""
    return [
        middle + select(d > 0.0, half, 0.0 - half)
        for d, half, middle in zip(way, at[:3], at[3:6], strict=True)
    ]


def ellipsoid(way: Any, at: Any) -> Any:
    """Return the farthest point of an ellipsoid of radii at[:3] about at[3:6]."""
    length = sqrt(sum((r * d) ** 2 for r, d in zip(at[:3], way, strict=True)))
    return [
        middle + r * r * d / length
        for d, r, middle in zip(way, at[:3], at[3:6], strict=True)
    ]


def search(farthest: Any, point: str = "point") -> Pipeline:
    """Return the least width, its axis and what is proven; where at[6] is above 0."""
    inner = (program(farthest, point, way=(3,), at=(7,)),)
    region = LeastWidth(WAY, inner, POINT, "extent", "depth", AXIS, "least")
    begin = program(
        lambda at: (10.0, np.inf, [0.6, 0.0, 0.8], at[6], 0.0),
        "extent depth axis going least",
        at=(7,),
    )
    end = program(
        lambda depth, axis, least: [depth, *axis, least],
        "found",
        depth=(),
        axis=(3,),
        least=(),
    )
    stages = begin, When("going", (region,)), end
    return Pipeline("width", (Port("at", (7,)),), (), stages, ("found",))


def rows(count: int = 41) -> Array:
    rng = np.random.default_rng(2)
    at = np.empty((count, 7))
    at[:, :3] = rng.uniform(0.2, 1.0, (count, 3))
    at[:, 3:6] = rng.uniform(-0.5, 0.5, (count, 3)) * at[:, :3]
    at[:, 6] = 1.0
    at[7] = at[6]  # as padding is
    at[9, 2] = at[9, 5] = 0.0  # flat
    at[11, 6] = -1.0  # left alone
    return at


def width_of_box(at: Array) -> Array:
    return np.min(at[:, :3] - np.abs(at[:, 3:6]), axis=1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("lanes", [1, 4, 16])
def test_the_least_width_of_a_box_is_that_of_a_side(dtype: Any, lanes: int):
    kernel = compile_pipeline(search(box), dtype=dtype, lanes=lanes)({})
    at = rows()
    found = kernel(at.astype(dtype))
    expected, tolerance = width_of_box(at), 1e-4 if dtype is np.float32 else 1e-12
    assert np.isinf(found[11, 0])
    assert (found[11, 1:4] == np.array([0.6, 0.0, 0.8], dtype)).all()
    is_asked = np.arange(len(at)) != 11
    found, expected = found[is_asked], expected[is_asked]
    assert np.abs(found[:, 0] - expected).max() < tolerance
    assert np.abs(found[:, 4] - expected).max() < tolerance  # proven
    sides = np.abs(found[:, 1:4]).max(axis=1)
    assert np.abs(sides - 1.0).max() < tolerance
    assert np.array_equal(found[7], found[6])


def test_the_least_width_of_an_ellipsoid_is_that_of_many_directions():
    at = rows(20)
    at[9] = at[11] = at[0]
    found = compile_pipeline(search(ellipsoid))({})(at)
    ways = np.random.default_rng(3).normal(size=(4000, 3))
    ways = np.concatenate([ways, found[:, 1:4] + 1e-3 * ways[:20], found[:, 1:4]])
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    lengths = np.linalg.norm(at[:, np.newaxis, :3] * ways, axis=2)
    least = (lengths + at[:, 3:6] @ ways.T).min(axis=1)
    assert (found[:, 0] <= least + 1e-13).all()
    # Widths are widths of the direction that is returned, and proven.
    along = np.linalg.norm(at[:, :3] * found[:, 1:4], axis=1)
    along += np.sum(at[:, 3:6] * found[:, 1:4], axis=1)
    np.testing.assert_allclose(found[:, 0], along, rtol=0.0, atol=1e-13)
    assert (found[:, 4] <= found[:, 0]).all()
    assert (found[:, 0] - found[:, 4]).max() < 1.1e-8


def test_of_a_ball_a_width_is_found_where_all_are_equal():
    at = rows()[:1]
    at[0, :6] = 0.5, 0.5, 0.5, 0.0, 0.0, 0.0
    depth, *_, least = compile_pipeline(search(ellipsoid))({})(at)[0]
    assert depth == pytest.approx(0.5, abs=1e-12)
    assert 0.48 < least < depth  # as near as its corners allow


def test_the_reference_agrees():
    at = rows(12)
    kernel = compile_pipeline(search(box))({})
    (expected,) = evaluate(search(box), kernel._native.tables, at)
    # Of a flat body both sides are as near.
    numbers = [0, 4]
    found = kernel(at)[:, numbers]
    np.testing.assert_allclose(found, expected[:, numbers], rtol=0.0, atol=1e-12)


def doubled(way: Any, at: Any) -> Any:
    """Return the corner, and numbers of which it is made: a linear function of it."""
    corner = box(way, at)
    return corner, [2.0 * x - 1.0 for x in corner]


def search_with_source() -> Pipeline:
    """Return the least width, what is proven, and the source of the nearest point.

    A width below at[6] will do.
    """
    source, touch = Port("source", (3,)), Port("touch", (3,))
    inner = (program(doubled, "point source", way=(3,), at=(7,)),)
    numbers = "extent", "depth", AXIS, "least"
    region = LeastWidth(WAY, inner, POINT, *numbers, "wanted", source, touch)
    begin = program(
        lambda at: (10.0, np.inf, [0.6, 0.0, 0.8], at[6], 0.0),
        "extent depth axis wanted least",
        at=(7,),
    )
    end = program(
        lambda depth, axis, least, touch: [depth, least, *axis, *touch],
        "found",
        depth=(),
        axis=(3,),
        least=(),
        touch=(3,),
    )
    stages = begin, region, end
    return Pipeline("width", (Port("at", (7,)),), (), stages, ("found",))


@pytest.mark.parametrize("lanes", [1, 4])
def test_the_point_of_the_least_width_is_known_by_its_source(lanes: int):
    # Sides of boxes are two faces of the polytope: the foot is in either of them.
    at = np.delete(rows(200), [9, 11], axis=0)
    at[:, 6] = -1.0
    found = compile_pipeline(search_with_source(), lanes=lanes)({})(at)
    feet = found[:, :1] * found[:, 2:5]
    is_over = (np.abs(feet - at[:, 3:6]) <= at[:, :3] + 1e-12).all(axis=1)
    assert is_over.all()
    np.testing.assert_allclose(found[:, 5:], 2.0 * feet - 1.0, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("lanes", [1, 4])
def test_a_width_that_will_do_ends_a_search(lanes: int):
    at = np.delete(rows(200), [9, 11], axis=0)
    least = width_of_box(at)
    at[:, 6] = 2.0 * least
    depth, proven, *_ = compile_pipeline(search_with_source(), lanes=lanes)({})(at).T
    assert (depth >= least - 1e-12).all() and (depth < at[:, 6]).all()
    assert np.mean(depth > least + 1e-12) > 0.5
    assert (proven == 0.0).all()  # else it went on
    (expected,) = evaluate(search_with_source(), {}, at[:20])
    assert (expected[:, 0] < at[:20, 6]).all() and (expected[:, 1] == 0.0).all()


def test_faulty_regions_are_refused():
    with pytest.raises(KernelError, match="no column 'point'"):
        search(box, point="other")
    with pytest.raises(KernelError, match="grows a polytope"):
        pipeline_function(search(box), {}, "f")
